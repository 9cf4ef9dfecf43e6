// The records of all shards, put together again.
#pragma once
#include <string>
#include <vector>

#include "profiler/report/table.h"
#include "profiler/shard/records.h"

namespace kiln::profiler {

/// One list of measurements on devices of one name.
struct MergedList {
  std::vector<ShardRecord> records;  // by number; of several of one number the last by time
  std::vector<size_t> missing;       // numbers without a record

  /// Of a tuning: the record of the fastest, by its time against the launch as it stands, which each shard measured
  /// beside it; nullptr when none ran.
  const ShardRecord* best() const;
};

/// In the order in which the lists and devices first appear.
std::vector<MergedList> merge_shards(const ShardRecords& records);

/// "3, 5–9"
std::string number_ranges(const std::vector<size_t>& numbers);

/// Of a list that is a sweep.
Sweep sweep_of(const MergedList& list);

/// The table of a sweep, or the configurations from the fastest on and the best of them.
report::Table merged_table(const MergedList& list);
/// "all 6 are there", or which numbers are missing.
std::string missing_note(const MergedList& list);

}  // namespace kiln::profiler
