// The part of a `dot` that one warp of the distributed machine computes from its own registers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::interp {

/// `a`, `b` and `c` are the warp's shares of the operands, element reg * 32 + lane; `out` gets that of the result.
/// Returns "" or which element the warp lacks (for a dot that is computed element by element: which one a thread
/// lacks).
std::string warp_dot(const ir::Op& dot, int warp, std::span<const uint64_t> a, std::span<const uint64_t> b,
                     std::span<const uint64_t> c, std::vector<uint64_t>& out);

}  // namespace kiln::interp
