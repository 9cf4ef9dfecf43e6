// Chooses the fastest of several candidates by timing them against each other.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "kiln/result.h"

namespace kiln::runtime::blas {

struct Selection {
  int best = 0;
  std::vector<double> us;  // median of each candidate; NaN for one that failed
};

/// Times candidates 0 … count - 1 (at least one) with `sample`, which runs one of them and gives microseconds. Every
/// round takes each once in random order, so that a drift of the clock touches all alike. After one round of warm-up
/// and three that count, those within a quarter of the fastest (at most eight) go on for nine more. A candidate that
/// fails is out; when all are, the last failure is returned.
Result<Selection> select_best(int count, const std::function<Result<double>(int)>& sample, uint64_t seed);

}  // namespace kiln::runtime::blas
