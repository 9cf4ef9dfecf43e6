// Source lines of machine code, from the line table that a cubin carries. No GPU is needed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/result.h"
#include "profiler/lines/line_table.h"

namespace kiln::profiler::cupti {

/// Every instruction of a function with its file and line, without its text. kDevice: no CUPTI; kValue: the bytes are
/// no cubin, or it has no such function.
Result<LineTable> cubin_lines(std::string_view cubin, const std::string& function);

/// The number by which samples name the cubin that was loaded.
Result<uint64_t> cubin_checksum(std::string_view cubin);

}  // namespace kiln::profiler::cupti
