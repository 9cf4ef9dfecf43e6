// A number that a thread computes from its register index, lane and warp as a xor of constants: a register to take, a
// lane to ask, an offset in shared memory. Plans are made of these, so a lowering needs one small piece of code for all
// of them.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace kiln::layout {

struct XorMap {
  std::vector<uint32_t> reg, lane, warp;  // one constant per bit of the register index, of the lane and of the warp

  uint32_t apply(uint32_t r, uint32_t l, uint32_t w) const { return part(reg, r) ^ part(lane, l) ^ part(warp, w); }
  /// The compile-time share of a register; the thread's share is apply(0, lane, warp).
  uint32_t of_register(uint32_t r) const { return part(reg, r); }
  /// True when no lane or warp bit changes the number: it is a compile-time constant for each register.
  bool is_uniform() const { return bits_of(lane) == 0 && bits_of(warp) == 0; }
  /// All bits that the thread's share can set; constants outside them may be added instead of xored.
  uint32_t thread_bits() const { return bits_of(lane) | bits_of(warp); }

  static uint32_t part(const std::vector<uint32_t>& bases, uint32_t x) {
    uint32_t y = 0;
    for (; x; x &= x - 1) y ^= bases[static_cast<size_t>(std::countr_zero(x))];
    return y;
  }

 private:
  static uint32_t bits_of(const std::vector<uint32_t>& bases) {
    uint32_t all = 0;
    for (uint32_t b : bases) all |= b;
    return all;
  }
};

}  // namespace kiln::layout
