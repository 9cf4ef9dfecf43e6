// Samples a statement of the script on the GPU, and finds the code of the sampled kernels.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/lines/line_profile.h"
#include "runtime/jit/loaded_code.h"

namespace kiln::repl {

struct SampleOptions {
  int period_log2 = 0;  // 0: as CUPTI chooses
  int runs = 0;         // of the statement; 0: until there are samples enough
};

struct Samples {
  profiler::SampleRun run;
  int runs = 0;  // of the statement
};

/// Runs `run` once to warm up, then under the sampler. kDevice says why the device cannot be sampled.
Result<Samples> sample_statement(const Device& device, const std::function<Status()>& run,
                                 const SampleOptions& options);

/// A sampled function with its code.
struct SampledCode {
  std::shared_ptr<const runtime::LoadedCode> code;  // null: no kernel of Kiln's
  profiler::LineTable machine;                      // no code: `unknown` says why
  std::string unknown;
};
SampledCode find_code(const Device& device, const profiler::SampledFunction& function);

/// Instructions and their lines: by nvdisasm where it is, else by CUPTI without the instructions' text; `missing` gets
/// why there is no text.
Result<profiler::LineTable> machine_lines(std::string_view cubin, const std::string& function, std::string* missing);

}  // namespace kiln::repl
