// Successive halving: many contenders are timed a few times each, in turns, and the slower half goes; what is left is
// timed twice as often, until one remains. No clock of its own: tests pass a made-up one.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "profiler/measure/measure.h"
#include "profiler/measure/timer.h"

namespace kiln::profiler {

struct HalvingProgress {
  int rung = 0;
  int alive = 0;       // contenders of this rung
  int best = -1;       // the one that leads; -1 before the first sample
  double best_us = 0;  // its median
  double left_s = 0;   // estimate until the end
};

struct HalvingOptions {
  double budget_s = 10;      // of now_s, warm-up included; at least one sample is taken
  double warm_up_s = 0.025;  // turns that are not counted come first, for so long
  uint64_t seed = 1;         // of the random order within each turn
  std::function<double()> now_s = steady_seconds;
  std::function<bool()> should_stop;  // asked before each sample; may be empty
  std::function<void(const HalvingProgress&)> on_progress;
};

/// Samples that each contender of rung `rung` gets, and the most rungs that `contenders` can need.
int rung_samples(int rung);
int rung_count(int contenders);

/// What became of one contender.
struct Heat {
  std::vector<double> us;  // its samples of all rungs, in order
  int rung = 0;            // the last rung that it took part in
  std::string failure;     // the error of the sample that threw it out
};

enum class HalvingEnd { kDecided, kBudget, kInterrupted };

struct HalvingResult {
  std::vector<Heat> heats;   // one per contender
  std::vector<int> ranking;  // those with samples and without a failure, best first: by rung, then by median
  HalvingEnd end = HalvingEnd::kDecided;
};

/// Rungs: all remaining candidates get rung_samples(rung) samples in random order, and up to four times as many while
/// noise leaves it unclear who is slower. Then the half with the lesser medians stays, and of the rest, up to half of
/// them, those with one sample as fast as the leader's median. One three times as slow as the leader is dropped after a
/// turn already. Each rung may take an equal share of the time that is left. A sampler that fails is out; kInterrupted
/// from a sampler ends it all, as should_stop does.
HalvingResult halve(std::span<const Sampler> samplers, const HalvingOptions& options);

}  // namespace kiln::profiler
