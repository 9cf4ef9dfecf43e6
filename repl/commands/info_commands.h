// `kiln env`, `kiln devices` and the magics of the same names.
#pragma once
#include "kiln/device.h"
#include "profiler/report/table.h"

namespace kiln::repl {

/// Every KILN_* variable with its value, default and meaning.
report::Table env_table();

/// Every device that can be opened; `current` is marked. The reason for missing GPUs is under the table.
report::Table devices_table(const Device& current);

/// "kiln 0.1.0 · cuda:0 NVIDIA H200 sm_90a · driver 580.159 · ? for help", or what runs kernels instead of a GPU,
/// and why where that fits as many columns (0: any).
std::string banner(const Device& device, int width);

}  // namespace kiln::repl
