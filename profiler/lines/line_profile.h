// Samples of program counters, and what they say of source lines. Plain data and pure functions: a sampler
// (profiler/cupti/pc_sampling.h) or a test makes the samples.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/lines/line_table.h"

namespace kiln::profiler {

enum class Stall : uint8_t {
#define KILN_STALL(e, name, words, help) k##e,
#include "profiler/lines/stall_reason.def"
#undef KILN_STALL
  kOther,  // a reason that this table does not know
};
inline constexpr size_t kNumStalls = static_cast<size_t>(Stall::kOther) + 1;

std::string_view name(Stall stall);        // "long_scoreboard"
std::string_view in_words(Stall stall);    // "waits for global or local memory"
std::string_view what_helps(Stall stall);  // may be empty

/// CUPTI's name of a counter of samples: "smsp__pcsamp_warps_issue_stalled_wait_not_issued". nullopt for those that
/// count no state of a warp (dropped samples).
struct StallCounter {
  Stall stall = Stall::kOther;
  bool idle = false;  // counts only samples in whose cycle the scheduler issued nothing
};
std::optional<StallCounter> parse_stall_counter(std::string_view name);

/// Samples by what the warp did. A sample in whose cycle the scheduler issued nothing is in both.
struct StallCounts {
  std::array<int64_t, kNumStalls> all{}, idle{};

  int64_t total() const;
  int64_t total_idle() const;
  void add(const StallCounts& other);
  /// The reasons with samples, most first; "issues" and "could issue" come last, however many.
  std::vector<Stall> by_weight() const;
};

struct SampledPc {
  uint64_t pc = 0;
  StallCounts counts;
};

struct SampledFunction {
  std::string name;
  uint64_t code = 0;           // CUPTI's checksum of the cubin
  std::vector<SampledPc> pcs;  // each pc once, ascending
};

int64_t total_samples(const SampledFunction& function);

/// What a sampler saw.
struct SampleRun {
  std::vector<SampledFunction> functions;
  int64_t total = 0;      // samples taken, those of `elsewhere` and `dropped` among them
  int64_t dropped = 0;    // by the hardware, because its buffer was full
  int64_t elsewhere = 0;  // in the driver's own kernels
  int period_log2 = 0;    // a sample every 2^n cycles of each SM
};

struct LineSamples {
  int file = -1, line = 0;
  int64_t instructions = 0;  // machine instructions of that line
  StallCounts counts;
  uint64_t hottest = 0;  // the pc of that line with the most samples
};

struct LineProfile {
  std::string function;
  std::vector<std::string> files;
  std::vector<LineSamples> lines;  // by file and line; with instructions or samples
  StallCounts counts;              // of all lines
  int64_t unplaced = 0;            // samples of them at instructions of no line (file -1)
  double share(const LineSamples& line) const {
    const int64_t all = counts.total();
    return all ? static_cast<double>(line.counts.total()) / static_cast<double>(all) : 0;
  }
};

LineProfile line_profile(const SampledFunction& samples, const LineTable& table);

/// The lines with samples, hottest first; equal ones in the order of the source.
std::vector<const LineSamples*> hottest_first(const LineProfile& profile);

/// "waits for global or local memory 87%, issues 4%": the reasons that have at least `least` of the samples, three at
/// most.
std::string describe(const StallCounts& counts, double least = 0.05);

}  // namespace kiln::profiler
