// The autotuner: which of a kernel's configurations is the fastest. Compiles them side by side, leaves out what cannot
// win, checks that they compute the same, and times the others by successive halving.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kernel.h"
#include "profiler/measure/measure.h"

namespace kiln::profiler {

class OutputCheck;
class TuneRecords;

/// One configuration, as it would be launched.
struct TuneCandidate {
  std::string config;  // "BLOCK: 1024, num_warps: 4, num_stages: 3, num_ctas: 1": tells it from the others
  Kernel kernel = {};
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::vector<std::optional<Arg>> args = {};
  LaunchOptions options = {};
  std::function<Status()> prepare = {};  // runs before each launch, outside of the timing; may be empty
  std::string problem = {};              // why it cannot be launched, when that is known already

  Status launch() const { return kernel.launch(grid, args, options); }
};

enum class TuneState {
  kMeasured,
  kPruned,   // not measured: figures alone say that it cannot win
  kFailed,   // it does not compile, or its launch failed
  kWrong,    // it does not compute what the reference does
  kSkipped,  // the budget was spent, or Ctrl-C came, before its turn
};
std::string_view name(TuneState state);
std::optional<TuneState> parse_tune_state(std::string_view name);

/// What was found out about one configuration. Plain data, as records keep it.
struct TuneRow {
  std::string config;
  TuneState state = TuneState::kSkipped;
  std::string reason;  // of every state but kMeasured
  int registers = -1;
  int64_t spill_bytes = -1, shared_bytes = -1;
  double occupancy = -1;  // of 1; -1 unknown
  double compile_ms = 0;
  std::vector<double> us;  // samples
  int rung = 0;            // of successive halving; a higher one was better
  bool from_record = false;

  double median_us() const;  // 0 without samples
};

enum class TunePhase { kCompiling, kChecking, kMeasuring };
std::string_view name(TunePhase phase);

struct TuneProgress {
  TunePhase phase = TunePhase::kCompiling;
  int done = 0, total = 0;  // configurations compiled or checked; of kMeasuring: those left, and all that were measured
  int best = -1;            // candidate
  double best_us = 0;
  double elapsed_s = 0, left_s = 0;  // left_s: an estimate; 0 unknown
};

struct TuneResult;

/// Medians of two rows that were timed in turns.
struct InTurns {
  int row = -1, against = -1;
  double us = 0, against_us = 0;
};

struct TuneOptions {
  double budget_s = 1e9;   // of wall time for all of it; a compilation or launch that has begun is waited for
  double measure_s = 1e9;  // of that for the timing
  double warm_up_s = 0.025;
  Cache cache = Cache::kCold;
  uint64_t seed = 1;
  int threads = 0;  // that compile; 0: one per CPU
  /// Compares what the configurations leave in its tensors, the first that runs being the reference; null: nothing is
  /// compared. The caller restores the tensors when it is done with launches.
  OutputCheck* check = nullptr;
  /// The first launch of each code and grid looks at every access (kiln/check.h): what reaches outside of its tensor
  /// fails alone. Configurations that differ in warps and stages only share one such launch.
  bool check_accesses = false;
  /// Times a candidate itself, in microseconds; empty: device events or the clock, interleaved. One call each then.
  std::function<Result<double>(const TuneCandidate&)> bench = {};
  /// A configuration with a record is not measured again; null: no records. `record_key` identifies them.
  TuneRecords* records = nullptr;
  std::string record_key = {};
  /// False: what was measured with one grid serves every other (an autotuner's key alone says what it holds for). That
  /// a configuration failed or was wrong is known of its own grid and arguments only, either way.
  bool records_per_grid = true;
  /// Compares the best row with one that it has to beat, in turns, and gives their times where it does not: both rows
  /// take them, in the result and in the records. Not asked when everything was known or Ctrl-C ended it.
  std::function<Result<std::optional<InTurns>>(const TuneResult&)> confirm = {};
  /// Asked once when all is compiled and before anything runs; an error ends it all.
  std::function<Status()> before_launches = {};
  std::function<bool()> should_stop = {};  // asked often, from the calling thread
  std::function<void(const TuneProgress&)> on_progress = {};
};

struct TuneResult {
  std::vector<TuneRow> rows;  // one per candidate
  int best = -1;              // the fastest of the measured ones; -1 when there is none
  bool interrupted = false;
  bool from_records = false;  // nothing was measured now
  double compile_s = 0, measure_s = 0, total_s = 0;
  std::string unchecked;  // why accesses of some candidates could not be looked at; empty: they were, or need not be

  int count(TuneState state) const;
};

/// Errors are those of the device itself; a candidate's own are in its row. Launches the candidates many times.
Result<TuneResult> tune(const Device& device, std::span<const TuneCandidate> candidates, const TuneOptions& options);

/// The best row: by rung, then by median; -1 when none was measured.
int best_row(std::span<const TuneRow> rows);

/// The result with all samples, on one line.
std::string to_json(const TuneResult& result);

/// "x: f32 [1024] by [1]", "n = 1024": the arguments of a launch as far as times depend on them. Constexprs are part of
/// each configuration's own identity.
std::vector<std::string> argument_lines(const TuneCandidate& candidate);

/// What records of this kernel with arguments like these belong to: kernel, compiler, driver and device, and `extra`,
/// one line for each further thing that the best configuration depends on.
std::string record_key(const Kernel& kernel, const Device& device, std::span<const std::string> extra);

}  // namespace kiln::profiler
