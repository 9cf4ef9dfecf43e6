#include "compiler/interp/machine/happens_before.h"

#include <fmt/format.h>

#include "support/diag.h"

namespace kiln::interp {

std::string Agents::name_warp(int warp) const {
  const int number = warp % warps_per_block();
  std::string who = number < own_warps ? fmt::format("warp {}", number)
                                       : fmt::format("the thread of role {}", number - own_warps + 1);
  if (blocks > 1) who += fmt::format(" of block {}", warp / warps_per_block());
  return who;
}

std::string Agents::name(uint32_t agent, int lane) const {
  const int warp = home(agent);
  if (warp < 0) return "a tma_load";
  std::string who = name_warp(warp);
  if (lane >= 0 && warp % warps_per_block() < own_warps) who += fmt::format(" lane {}", lane);
  switch (static_cast<Engine>(agent % kNumEngines)) {
    case Engine::kThreads:
      return who;
    case Engine::kCopies:
      return "the async_copy of " + who;
    case Engine::kProducts:
      return "the wgmma of " + who;
    case Engine::kStores:
      return "the tma_store of " + who;
  }
  KILN_UNREACHABLE("engine");
}

bool Accessor::follows(const Stamp& made, int lane) const {
  if (knows->seen[made.agent] <= made.epoch) return false;
  const bool other_lane = made.lane == kSomeLane || made.lane != lane;
  if (agents->home(made.agent) != warp || made.lane == kWholeWarp || !other_lane) return true;
  return knows->synced[made.agent] > made.epoch;
}

}  // namespace kiln::interp
