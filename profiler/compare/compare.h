// A comparison from contenders to a table: compile and check each, warm up, take interleaved pairs against the
// baseline, and say what differs beyond the noise (docs/compare.md).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiler/compare/check.h"
#include "profiler/compare/contender.h"
#include "profiler/compare/pairs.h"
#include "profiler/measure/timer.h"
#include "profiler/report/table.h"
#include "profiler/roofline/ceilings.h"

namespace kiln::profiler {

struct ContestOptions {
  size_t baseline = 0;
  Cache cache = Cache::kCold;  // of the pairs; the other state is measured separately
  double timeout_s = 30;       // of the pairs
  int max_pairs = 200;
  /// Seconds from now within which there is to be an answer: where the pairs that verdicts need take longer, there are
  /// fewer, and no figures beside them. 0: verdicts come first.
  double due_s = 0;
  uint64_t seed = 1;
  double tolerance = -1;  // as ResultCheck::max_rel; negative: default_tolerance of the result's type
  /// Compares the result of contender `i` with the reference; called for the baseline first. Empty: the baseline's
  /// result is the reference.
  std::function<Result<ResultCheck>(size_t i, const Tensor& result)> check = {};
  std::string reference = "float64";  // what `check` compares results with
  bool extras = true;                 // the other cache state, graph replay and ceilings
  std::function<bool()> stop = {};    // asked between samples: what was measured until then is kept
  std::function<void(const std::string&)> progress = {};
  std::function<void(const std::string&)> announce = {};  // what to know before the wait begins
};

struct ContestRow {
  std::string name;
  Facts facts;
  Status problem;  // why it has no figures, or ended early
  ResultCheck check;
  std::vector<Sample> samples;  // in the contest's cache state, in order
  std::vector<Sample> base;     // the baseline's samples of the same pairs
  std::vector<double> other_us, graph_us;
  int64_t launches = -1;  // with copies and fills, as the graph counts them
  std::string no_graph;   // why graph_us is empty
  std::optional<Roofline> roof;
  std::string no_roof;
  Decision decision;
  uint32_t flags = 0;

  Summary us() const;
  double call_us() const;  // median; negative: unknown
  double sm_mhz() const;
  bool is_measured() const { return !samples.empty(); }
};

struct Contest {
  std::string device, hardware, target, driver;  // "cuda:0", "NVIDIA H200", "sm_90a", "580.159"
  std::string when;                              // UTC, ISO 8601
  std::string method;                            // what a time is
  Cache cache = Cache::kCold;
  size_t baseline = 0;
  std::string reference;  // what results were compared with: "float64", or the baseline's name
  std::vector<ContestRow> rows;
  std::vector<Sample> control_first, control_second;
  std::optional<Ceiling> memory, math;
  std::string throttle;  // "none", "power cap", or "unknown: …"
  bool timed_out = false, interrupted = false;
  std::string cut;  // why there are fewer pairs than verdicts need, and how to have them; empty: there are not

  /// Names of contenders whose result is wrong.
  std::vector<std::string> wrong() const;
  const ContestRow* find(std::string_view name) const;
};

/// All contenders must be of one device. A contender with a problem keeps its row; an error is a problem of the
/// baseline (then there is nothing to compare with) or of the device itself.
Result<Contest> run_contest(std::vector<Contender> contenders, const ContestOptions& options);

/// One row per contender.
report::Table contest_table(const Contest& contest);
/// The details (-v): kernels, quartiles, counts, clocks, intervals, floor.
report::Table contest_details(const Contest& contest);

/// All of it, with every raw sample: what `kiln compare` reads.
std::string contest_json(const Contest& contest);
/// kIo or kValue when the text is invalid; `name` is the file's.
Result<Contest> parse_contest(const std::string& text, const std::string& name);

/// What changed from one saved contest to another, contender by contender.
struct Change {
  std::string name;
  double old_us = 0, new_us = 0;
  double speedup = 1;   // old/new
  Interval speedup_95;  // of the two medians; each interval at 97.5 %
  Verdict verdict = Verdict::kUndecided;
  std::string note;  // why there is no verdict
  bool wrong = false;
};
struct Changes {
  std::vector<Change> rows;
  std::vector<std::string> missing;
  std::vector<std::string> notes;
  bool any_slower() const;
  bool any_wrong() const;
  /// A contender of the old run has no times in the new one.
  bool any_missing() const;
};
/// Two runs at two times differ by more than their samples do: only changes above `threshold` (0.02 is 2 %) count.
/// kValue when the two are of different hardware or cache states.
Result<Changes> compare_contests(const Contest& before, const Contest& after, double threshold);
report::Table changes_table(const Changes& changes);

}  // namespace kiln::profiler
