// Ending work before it is done: by Ctrl-C (kiln/interrupt.h) or because its time is over.
//
// Code that may run long reads one word now and then; while it is not 0 somebody may want some work to end, and the
// code asks stop_wanted(), which knows whether it is the work of this thread. Generated host code does the same between
// programs and in loops (compiler/lower/host).
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace kiln {

/// 0 while nothing may have to end.
extern std::atomic<uint32_t> stop_word;

enum class StopCause : uint8_t { kNone, kInterrupt, kTimeout };

/// One piece of work, which several threads may share, and until when it may take.
class Stop {
 public:
  /// From now on; 0: as long as it takes.
  explicit Stop(double timeout_s);
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  /// True from the first time on that the work should end.
  bool wanted();
  /// Why it was ended; kNone: nobody was told to.
  StopCause cause() const { return cause_.load(std::memory_order_relaxed); }

 private:
  std::atomic<StopCause> cause_{StopCause::kNone};
  bool has_deadline_;
  std::chrono::steady_clock::time_point deadline_;
};

/// Names the work that this thread does while the scope lives.
class StopScope {
 public:
  explicit StopScope(Stop* stop);
  ~StopScope();

 private:
  Stop* outer_;
};

/// While one lives, Ctrl-C becomes request_interrupt(): waits that can be cut short are worth their price (run_aside).
class InterruptListener {
 public:
  InterruptListener();
  ~InterruptListener();
  InterruptListener(const InterruptListener&) = delete;
  InterruptListener& operator=(const InterruptListener&) = delete;

  static bool any();
};

/// Devices on which a kernel still ran when a wait for it was given up. While there are any, a process ends by _exit():
/// the driver's own teardown would wait for the kernel.
extern std::atomic<int> hung_devices;

/// For loops of our own: whether the work of this thread should end now.
bool stop_is_wanted();
inline bool stop_wanted() { return stop_word.load(std::memory_order_relaxed) != 0 && stop_is_wanted(); }

}  // namespace kiln
