// Operations on single elements that both interpreters share.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "compiler/interp/memory.h"
#include "compiler/ir/ir.h"

namespace kiln::interp {

/// Row-major index of an element as "[1, 2]"; "" for a scalar.
std::string index_text(const ir::Shape& shape, int64_t element);
/// How device_print shows an element.
std::string element_text(const ir::Type& type, uint64_t bits, bool hex);
/// What an atomic of that name writes over `old`: the plain op's meaning.
uint64_t combine_rmw(ir::Rmw rmw, const ir::Type& type, uint64_t old, uint64_t value);
/// "" or why `op` may not access its element there: outside of `memory`, or misaligned.
std::string access_fault(const ir::Op& op, const Memory& memory, uint64_t address, int64_t element);

}  // namespace kiln::interp
