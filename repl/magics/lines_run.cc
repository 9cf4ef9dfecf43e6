#include "repl/magics/lines_run.h"

#include <algorithm>

#include "profiler/cupti/pc_sampling.h"
#include "profiler/cupti/sass_lines.h"
#include "profiler/lines/disassemble.h"
#include "profiler/measure/measure.h"
#include "profiler/measure/timer.h"
#include "runtime/device/device.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

constexpr int64_t kEnoughSamples = 20'000;  // a line with 1 % of them is known to a tenth of that
constexpr double kLongEnough = 0.5;         // seconds of running
constexpr int kMostRuns = 10'000;

/// How many samples there are so far is known only at the end, so the runs between a start and a stop double, and the
/// time decides.
Result<int> run_under(profiler::cupti::PcSampler& sampler, const std::function<Status()>& run, int wanted) {
  int done = 0;
  const double start = profiler::steady_seconds();
  for (int batch = wanted ? wanted : 1;; batch = std::min(2 * batch, kMostRuns - done)) {
    KILN_CHECK_OK(sampler.start());
    Status status;
    for (int i = 0; i < batch && status.ok(); ++i) status = run();
    Status stopped = sampler.stop();
    KILN_CHECK_OK(std::move(status));
    KILN_CHECK_OK(std::move(stopped));
    done += batch;
    if (wanted || done >= kMostRuns || sampler.samples() >= kEnoughSamples ||
        profiler::steady_seconds() - start > kLongEnough)
      return done;
  }
}

bool fits(const profiler::SampledFunction& function, std::string_view cubin) {
  const auto bytes = profiler::code_bytes(cubin, function.name);
  return bytes && (function.pcs.empty() || function.pcs.back().pc < *bytes);
}

}  // namespace

Result<Samples> sample_statement(const Device& device, const std::function<Status()>& run,
                                 const SampleOptions& options) {
  KILN_CHECK_OK(run());
  KILN_CHECK_OK(device.synchronize());
  KILN_TRY(auto sampler, profiler::cupti::PcSampler::attach(device, {options.period_log2}));
  Samples samples;
  KILN_TRY(samples.runs, run_under(*sampler, run, options.runs));
  KILN_TRY(samples.run, sampler->finish());
  std::stable_sort(samples.run.functions.begin(), samples.run.functions.end(), [](const auto& a, const auto& b) {
    return profiler::total_samples(a) > profiler::total_samples(b);
  });
  return samples;
}

Result<profiler::LineTable> machine_lines(std::string_view cubin, const std::string& function, std::string* missing) {
  auto text = profiler::disassemble(cubin, function);
  if (text.ok()) return text;
  if (missing) {
    *missing = text.error().message;
    for (const Note& note : text.error().notes) *missing += "; " + note.message;
  }
  auto lines = profiler::cupti::cubin_lines(cubin, function);
  if (lines.ok()) return lines;
  return with_note(std::move(lines.error()), text.error().message);
}

SampledCode find_code(const Device& device, const profiler::SampledFunction& function) {
  SampledCode found;
  std::string cubin;
  for (const auto& code : runtime::loaded_code(device)) {
    if (code->name != function.name) continue;
    found.code = code;
    if (code->cubin.empty()) continue;
    auto checksum = profiler::cupti::cubin_checksum(code->cubin);
    if (!checksum.ok() || *checksum != function.code) continue;
    cubin = code->cubin;
    break;
  }
  if (!found.code) {
    found.unknown = "no kernel of Kiln's: its source is not known here";
    return found;
  }
  if (cubin.empty()) {
    // The driver compiled the PTX itself, so its assembler makes the same code of it, with line tables beside it.
    auto made = device.impl()->backend().assembler()->assemble(found.code->ptx);
    if (!made.ok() || !fits(function, made->image)) {
      found.unknown =
          made.ok() ? "the code that ran is not the one that the driver makes of its PTX now" : made.error().message;
      return found;
    }
    cubin = std::move(made->image);
  }
  auto table = machine_lines(cubin, function.name, nullptr);
  if (table.ok())
    found.machine = *std::move(table);
  else
    found.unknown = table.error().message;
  return found;
}

}  // namespace kiln::repl
