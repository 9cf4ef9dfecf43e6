// Machine code as text, by the toolkit's nvdisasm as a child process.
#pragma once
#include <string>
#include <string_view>

#include "kiln/result.h"
#include "profiler/lines/line_table.h"

namespace kiln::profiler {

/// A function of a cubin with its instructions and their lines. kDevice, with how to get it: nvdisasm is not there.
/// kInternal: it refuses the cubin.
Result<LineTable> disassemble(std::string_view cubin, const std::string& function);

}  // namespace kiln::profiler
