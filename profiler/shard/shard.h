// One share of a numbered list of independent measurements.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "kiln/result.h"

namespace kiln::profiler {

struct Shard {
  size_t index = 0, count = 1;  // counted from 0: ranks of MPI and of Slurm are indices as they are

  /// Neighbours in the list go to different shards: sizes of a sweep grow along it, and so do their times.
  bool owns(size_t number) const { return number % count == index; }
  std::string text() const;       // "0/4"
  std::string file_name() const;  // "shard-0-of-4.jsonl"
};

/// "I/N" with 0 <= I < N; kValue.
Result<Shard> parse_shard(std::string_view text);

}  // namespace kiln::profiler
