// kiln/tune.h over the engine.
#include <fmt/format.h>

#include <algorithm>

#include "kiln/tune.h"
#include "profiler/tune/output_check.h"
#include "profiler/tune/records.h"
#include "profiler/tune/tune.h"
#include "runtime/launch/args.h"
#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln {

namespace {

using profiler::TuneCandidate;
using profiler::TuneRow;
using profiler::TuneState;

Result<TuneCandidate> candidate_of(const Kernel& kernel,
                                   const std::function<std::array<int64_t, 3>(const TuningConfig&)>& grid,
                                   std::span<const std::optional<Arg>> args, const TuningConfig& config) {
  TuneCandidate c;
  c.config = to_string(config);
  c.kernel = kernel;
  c.grid = grid(config);
  c.args.assign(args.begin(), args.end());
  c.options = {config.options};
  const std::span<const ParamDesc> params = kernel.params();
  for (const auto& [constant, value] : config.constants) {
    const auto param = std::ranges::find(params, constant, &ParamDesc::name);
    const auto at = static_cast<size_t>(param - params.begin());
    if (param == params.end() || !param->is_constexpr || at >= c.args.size())
      return error(ErrorKind::kName, "the kernel '{}' has no constexpr '{}'", kernel.name(), constant);
    c.args[at] = Arg(value);
  }
  return c;
}

/// What a record holds for beside the kernel and the device.
std::vector<std::string> record_lines(const TuneCandidate& first, const TuningOptions& options) {
  std::vector<std::string> lines = profiler::argument_lines(first);
  if (!options.cold_cache) lines.push_back("hot caches");
  return lines;
}

Diagnostic nothing_works(const Kernel& kernel, const profiler::TuneResult& result) {
  if (result.interrupted)
    return error(ErrorKind::kInterrupted, "tuning of {} was stopped before anything was measured", kernel.name());
  Diagnostic d = error(ErrorKind::kLaunch, "no configuration of the kernel '{}' works here", kernel.name());
  for (const TuneRow& r : result.rows)
    if (!r.reason.empty()) d = with_note(std::move(d), fmt::format("{}: {}", r.config, r.reason));
  return d;
}

}  // namespace

std::string to_string(const TuningConfig& config) {
  std::string text;
  for (const auto& [constant, value] : config.constants) text += fmt::format("{}: {}, ", constant, value);
  return text + tuned_text(config.options);
}

Result<Tuning> tune(const Kernel& kernel, const std::function<std::array<int64_t, 3>(const TuningConfig&)>& grid,
                    std::span<const std::optional<Arg>> args, std::span<const TuningConfig> configs,
                    const TuningOptions& options) {
  if (configs.empty()) return error(ErrorKind::kValue, "there is no configuration of '{}' to try", kernel.name());
  std::vector<TuneCandidate> candidates;
  for (const TuningConfig& config : configs) {
    KILN_TRY(TuneCandidate c, candidate_of(kernel, grid, args, config));
    candidates.push_back(std::move(c));
  }
  // The first tensor decides, as in a launch.
  Device device;
  for (const auto& arg : args)
    runtime::each_tensor(arg, [&](const Tensor& t) {
      if (t && !device) device = t.device();
    });
  if (!device)
    return error(ErrorKind::kValue, "the kernel '{}' got no tensor, which would say on what device it is tuned",
                 kernel.name());
  profiler::TuneOptions engine;
  engine.budget_s = options.budget_s;
  engine.cache = options.cold_cache ? profiler::Cache::kCold : profiler::Cache::kHot;
  engine.check_accesses = options.check_accesses;
  engine.should_stop = options.should_stop;
  std::optional<profiler::OutputCheck> check;
  if (!options.compared.empty()) {
    KILN_TRY(check, profiler::OutputCheck::make(options.compared));
    engine.check = &*check;
  }
  profiler::TuneRecords records;
  if (options.use_records) {
    engine.records = &records;
    engine.record_key = profiler::record_key(kernel, device, record_lines(candidates[0], options));
  }
  KILN_TRY(profiler::TuneResult result, profiler::tune(device, candidates, engine));
  // The tensors get back what they held before the first launch, whatever came out.
  if (check) KILN_CHECK_OK(check->restore());
  if (result.best < 0) return nothing_works(kernel, result);
  Tuning out;
  out.best = static_cast<size_t>(result.best);
  out.from_records = result.from_records;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const TuneRow& r = result.rows[i];
    out.rows.push_back({i, r.state == TuneState::kMeasured ? r.median_us() : 0, r.reason, r.registers, r.spill_bytes});
  }
  return out;
}

}  // namespace kiln
