#include "compiler/interp/memory.h"

#include <algorithm>
#include <cstring>

namespace kiln::interp {

void Memory::allow(void* data, size_t bytes) {
  const uint64_t begin = reinterpret_cast<uint64_t>(data);
  const Range range{begin, begin + bytes};
  ranges_.insert(std::upper_bound(ranges_.begin(), ranges_.end(), range,
                                  [](const Range& a, const Range& b) { return a.begin < b.begin; }),
                 range);
}

bool Memory::contains(uint64_t address, int bytes) const {
  auto inside = [&](const Range& r) {
    return address >= r.begin && address < r.end && r.end - address >= static_cast<uint64_t>(bytes);
  };
  if (last_ < ranges_.size() && inside(ranges_[last_])) return true;
  auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address, [](uint64_t a, const Range& r) { return a < r.begin; });
  if (after == ranges_.begin() || !inside(*(after - 1))) return false;
  last_ = static_cast<size_t>(after - 1 - ranges_.begin());
  return true;
}

uint64_t Memory::read(uint64_t address, DType dtype) {
  uint64_t bits = 0;  // little-endian hosts only, as all of Kiln
  std::memcpy(&bits, reinterpret_cast<const void*>(address), static_cast<size_t>(size_of(dtype)));
  return dtype == DType::kI1 ? bits != 0 : bits;
}

void Memory::write(uint64_t address, DType dtype, uint64_t bits) {
  std::memcpy(reinterpret_cast<void*>(address), &bits, static_cast<size_t>(size_of(dtype)));
}

}  // namespace kiln::interp
