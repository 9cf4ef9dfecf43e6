// An mbarrier: counts phases, each of some arrivals and announced bytes, and passes on the clocks of its arrivals.
#pragma once
#include <cstdint>
#include <string>

#include "compiler/interp/machine/happens_before.h"

namespace kiln::interp {

class Mbarrier {
 public:
  /// `loads` is the agent of the bulk loads whose bytes arrive here.
  Mbarrier(int64_t count, uint32_t loads, const Stamp& init, size_t agents)
      : count_(count), loads_(loads), init_(init), ended_(agents), arrived_(agents) {}

  const Stamp& init() const { return init_; }
  uint32_t loads() const { return loads_; }
  /// The phase that is under way; also the epoch of its loads.
  uint32_t phase() const { return phase_; }
  /// The phase after the last one in which a load started; 0: none.
  uint32_t loads_started() const { return loads_started_; }
  /// Whether the phase of that parity has ended, as far as one bit can tell.
  bool passed(int64_t parity) const { return (phase_ & 1) != parity; }
  /// What a wait that passes learns.
  const Knowledge& ended() const { return ended_; }

  // Each gives "" or what is wrong.

  /// One arrival, with what its agent knows; `bytes` are announced with it.
  std::string arrive(const Knowledge& knows, int64_t bytes = 0);
  /// A bulk load of `bytes` starts. They must have been announced: now, or by the phase's last arrival when another
  /// block of the program loads them.
  std::string start_load(int64_t bytes, bool announced = true);
  void land(int64_t bytes);

  /// "phase 3 has 1 of 2 arrivals, and 4096 of 8192 announced bytes have landed".
  std::string describe() const;

 private:
  void end_phase_if_complete();

  int64_t count_;
  uint32_t loads_, phase_ = 0, loads_started_ = 0;
  Stamp init_;
  int64_t arrivals_ = 0, announced_ = 0, started_ = 0, landed_ = 0;  // of the phase
  Knowledge ended_, arrived_;                                        // by phases before, in this one
};

}  // namespace kiln::interp
