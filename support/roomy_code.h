// A kernel's second code, with more registers, for grids that leave room on the GPU. Plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "kiln/kernel_info.h"

namespace kiln {

/// Where a kernel's own code was given fewer registers, so that more of its blocks share an SM (codegen/cubin.h), this
/// is the code with as many as the assembler takes by itself. It is the faster one for a grid whose blocks all run at
/// once with either.
struct RoomyCode {
  std::string cubin;
  int registers = -1;     // of a thread; none are spilled
  int blocks_per_sm = 0;  // at once, by all of its resources
  bool operator==(const RoomyCode&) const = default;
};

/// Whether the blocks of a grid all run at once on a GPU that holds `room` of them.
inline bool fits_at_once(const std::array<uint32_t, 3>& blocks, uint32_t room) {
  uint64_t count = 1;
  for (const uint32_t n : blocks)
    if ((count *= n) > room) return false;
  return true;
}

/// `info`, with the second code in place of its own.
inline KernelInfo roomy_info(KernelInfo info, const RoomyCode& roomy) {
  info.cubin = roomy.cubin;
  info.registers = roomy.registers;
  info.spill_bytes = 0;
  return info;
}

}  // namespace kiln
