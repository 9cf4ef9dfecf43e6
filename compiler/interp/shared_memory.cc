#include "compiler/interp/shared_memory.h"

#include <fmt/format.h>

namespace kiln::interp {

bool SharedMemory::conflicts(const Accessor& who, const Touch& other) const {
  return other.epoch == epoch_ && (other.who.warp != who.warp || other.who.lane != who.lane);
}

std::string SharedMemory::outside(const Accessor& who, int64_t at, int bytes, std::string_view verb) const {
  if (at >= 0 && at + bytes <= static_cast<int64_t>(cells_.size())) return "";
  return fmt::format("warp {} lane {} {} shared memory at byte {} of {}", who.warp, who.lane, verb, at, cells_.size());
}

std::string SharedMemory::race(const Accessor& who, std::string_view verb, const Touch& other,
                               std::string_view other_verb, int64_t at) const {
  return fmt::format(
      "race at byte {} of shared memory: warp {} lane {} {} it, and no barrier orders that with warp {} lane {}, which "
      "{} it in: {}",
      at, who.warp, who.lane, verb, other.who.warp, other.who.lane, other_verb, ir::print(*other.who.op));
}

std::string SharedMemory::write(const Accessor& who, int64_t at, int bytes, uint64_t bits) {
  if (std::string wrong = outside(who, at, bytes, "writes"); !wrong.empty()) return wrong;
  for (int64_t b = at; b < at + bytes; ++b, bits >>= 8) {
    Cell& cell = cells_[static_cast<size_t>(b)];
    if (conflicts(who, cell.written)) return race(who, "writes", cell.written, "wrote", b);
    if (conflicts(who, cell.read)) return race(who, "writes", cell.read, "read", b);
    if (conflicts(who, cell.read_by_other)) return race(who, "writes", cell.read_by_other, "read", b);
    cell.value = static_cast<uint8_t>(bits);
    cell.written = {who, epoch_};
  }
  return "";
}

std::string SharedMemory::read(const Accessor& who, int64_t at, int bytes, uint64_t& bits) {
  if (std::string wrong = outside(who, at, bytes, "reads"); !wrong.empty()) return wrong;
  bits = 0;
  for (int64_t b = at; b < at + bytes; ++b) {
    Cell& cell = cells_[static_cast<size_t>(b)];
    if (conflicts(who, cell.written)) return race(who, "reads", cell.written, "wrote", b);
    if (cell.written.epoch < 0)
      return fmt::format("warp {} lane {} reads byte {} of shared memory, which nothing wrote", who.warp, who.lane, b);
    if (cell.written.who.op != who.op)
      return fmt::format("warp {} lane {} reads byte {} of shared memory, which another op wrote: {}", who.warp,
                         who.lane, b, ir::print(*cell.written.who.op));
    if (conflicts(who, cell.read)) cell.read_by_other = cell.read;
    cell.read = {who, epoch_};
    bits |= static_cast<uint64_t>(cell.value) << (8 * (b - at));
  }
  return "";
}

}  // namespace kiln::interp
