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
  Value value;  // for the script: a dict with `best`, a triton.Config, `us`, `speedup` and `rows`
};

/// Tunes; the configuration found becomes an autotuner's. Ctrl-C ends it with the best until then. kInterrupted when
/// there is none yet, kLaunch when no configuration works.
Result<TuneOutcome> tune_launch(Session& session, const TuneRequest& request);

}  // namespace kiln::script
