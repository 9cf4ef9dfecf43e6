// The memory that an interpreted kernel may access: ranges of this process's memory, with every access checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kiln/dtype.h"

namespace kiln::interp {

class Memory {
 public:
  /// Kernels may read and write these bytes; pointers are their addresses. Ranges must not overlap.
  void allow(void* data, size_t bytes);
  /// True when all of the access lies in one range.
  bool contains(uint64_t address, int bytes) const;

  /// An element's bits from an address that contains() accepted; a bool's byte reads as != 0.
  static uint64_t read(uint64_t address, DType dtype);
  static void write(uint64_t address, DType dtype, uint64_t bits);

 private:
  struct Range {
    uint64_t begin, end;
  };
  std::vector<Range> ranges_;  // sorted
  mutable size_t last_ = 0;    // where the last access was
};

}  // namespace kiln::interp
