// Hardware counters of a statement's kernels, in addition to its profile, and the lines where their warps
// stall. Both are taken in separate runs, which are announced; the profile contains no time from them.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/advisor.h"
#include "profiler/report/table.h"
#include "repl/magics/lines_run.h"
#include "repl/magics/magics.h"

namespace kiln::repl {

struct HardwareLook {
  std::vector<profiler::KernelFigures> figures;
  std::vector<profiler::KernelSource> sources;
  report::Table counters{{}};  // why there are none where they could not be read
};

/// Runs the statement under counters (`bundles`; empty: what the advisor reads) and then under the sampler of program
/// counters. Obstacles are listed in the table; a statement that fails gives its own error, and kName a
/// bundle that there is not.
Result<HardwareLook> look_at_hardware(MagicContext& context, const std::string& statement,
                                      const std::vector<std::string>& bundles);

/// The same of a profile's statement, added to the profile.
Status add_hardware_look(MagicContext& context, const std::vector<std::string>& bundles, TakenProfile& profile);

/// What is known of the kernels of Kiln's that are loaded here: whether they multiply tiles, and the lines at which the
/// samples wait most for memory of the device and for shared memory.
std::vector<profiler::KernelSource> kernel_sources(const Device& device, const profiler::SampleRun& samples);

}  // namespace kiln::repl
