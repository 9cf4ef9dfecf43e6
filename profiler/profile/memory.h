// Where a profile's tensors were allocated and freed, and what the allocator took from the driver.
#pragma once
#include <string>
#include <vector>

#include "profiler/profile/timeline.h"
#include "profiler/report/table.h"

namespace kiln::profiler {

/// Allocations and frees by one line of the script in one operation.
struct MemoryRow {
  std::string device;
  std::string line;       // "train.py:12 y = x + 1"; "" outside of statements
  std::string operation;  // "add"; "" outside of operations
  int64_t allocations = 0, frees = 0;
  int64_t allocated = 0, freed = 0;  // bytes
  int64_t largest = 0;
};

/// Of one device. Memory that was there before the profile counts as nothing.
struct MemoryTotals {
  std::string device;
  int64_t allocations = 0, allocated = 0;
  int64_t peak = 0;                                 // bytes of tensors at most, above the start
  std::string peak_line;                            // where it was reached
  int64_t live = 0;                                 // at the end, above the start; negative: less than at the start
  int64_t reserve_taken = 0, reserve_returned = 0;  // by the allocator, from the driver
};

struct Memory {
  std::vector<MemoryRow> rows;  // most bytes allocated first
  std::vector<MemoryTotals> devices;
};
Memory memory(const Timeline& timeline);

report::Table memory_table(const Memory& memory, int64_t rows = 20);
report::Table memory_totals_table(const Memory& memory);

}  // namespace kiln::profiler
