// The table of what a GPU would get of compiled kernels: registers, spills, shared memory, occupancy. Needs no GPU.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kernel.h"
#include "profiler/report/table.h"

namespace kiln::repl {

/// Why there is no machine code to look at.
inline constexpr const char* kNoLinker =
    "neither nvJitLink nor ptxas was found (CUDA_HOME, /usr/local/cuda, PATH), so there is no cubin to read it from";

/// Columns for static_row.
report::Table static_table();

/// One kernel's row; `label` names its specialisation.
void add_static_row(report::Table& table, const std::string& label, const KernelInfo& info);

/// The same rows with what is known without an assembler, and one line on what would tell the rest.
report::Table without_assembler(const report::Table& table);

/// Blocks per SM for each resource, and the gain of using less of it; for a kernel compiled for a GPU.
/// Of one with clusters also how many fit a GPU of so many SMs at once; 0: not known.
Result<report::Table> occupancy_table(const KernelInfo& info, int multiprocessors = 0);

/// A kernel compiled with another number of warps, or why it could not be.
struct WarpsRow {
  int num_warps = 4;
  Result<KernelInfo> info;
  bool is_current = false;
};
/// Occupancy by block size: each row with its own registers and shared memory, and the next step that fewer of either
/// would bring.
report::Table occupancy_by_warps(const std::vector<WarpsRow>& rows);

}  // namespace kiln::repl
