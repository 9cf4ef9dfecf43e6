// %tune: the fastest configuration of one launch of the script.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiler/compare/comparison.h"
#include "profiler/tune/tune.h"
#include "repl/session/session.h"

namespace kiln::script {

/// What varies: a constexpr parameter or a launch option (tuned in launch_option.def), and an expression: a list, or
/// one value.
struct TuneAxis {
  std::string name, values;
};

struct TuneRequest {
  /// "add_kernel[grid](x, y, o, n, BLOCK=1024)", or a kernel alone: as the script launched it last outside of
  /// functions.
  std::string launch;
  /// None: an autotuner's own configurations; of other kernels, powers of two around those of the launch.
  std::vector<TuneAxis> axes;
  double budget_s = 10;
  profiler::Cache cache = profiler::Cache::kCold;
  bool check = true;
  bool check_accesses = true;        // of each code's first launch
  std::vector<std::string> outputs;  // parameters whose tensors are compared; none: all
  std::function<void(const profiler::TuneProgress&, std::span<const profiler::TuneCandidate>)> on_progress;
  /// Asked once before the first launch; an error ends the tuning with it.
  std::function<Status()> before_launches = {};
};

struct TuneOutcome {
  std::string kernel;
  Device device;
  std::vector<std::string>
      configs;                  // of each row of the result, as a script writes it: "triton.Config({…}, num_warps=4)"
  profiler::TuneResult result;  // its best is at least 0
  int present = 0;              // the row of the launch as it stands
  std::optional<profiler::Comparison> against;  // the best against the present one, when both are known and two
  std::vector<std::string> notes;
  std::vector<size_t> numbers;  // of each row, among all configurations
  Value value;                  // for the script: a dict with `best`, a triton.Config, `us`, `speedup` and `rows`
};

/// Tunes; the configuration found becomes an autotuner's. Ctrl-C ends it with the best until then. kInterrupted when
/// there is none yet, kLaunch when no configuration works.
Result<TuneOutcome> tune_launch(Session& session, const TuneRequest& request);

/// All configurations of a request, in a fixed order. Runs nothing but the expressions in it.
Result<std::vector<std::string>> tune_configurations(Session& session, const TuneRequest& request);

/// A part of a tuning: some of these configurations, by number, beside the launch as it stands, which is always among
/// the rows. What was found stays in the outcome: no autotuner takes it over, there are no records, nothing is
/// compared in turns, and that no configuration works is no error.
Result<TuneOutcome> tune_part(Session& session, const TuneRequest& request, const std::vector<size_t>& numbers);

}  // namespace kiln::script
