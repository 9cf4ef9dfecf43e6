// Which kernel each thread is launching, so that a variant that a launch may be reading is not freed under it. A launch
// pays two plain stores for it: who frees pays the barriers (membarrier).
#pragma once
#include <atomic>

namespace kiln::runtime {

class KernelImpl;

struct LaunchSlot {
  std::atomic<const KernelImpl*> kernel{nullptr};
};
/// Of this thread; null before its first launch.
inline constinit thread_local LaunchSlot* launch_slot = nullptr;
LaunchSlot* make_launch_slot();

/// While it lives this thread may read what the kernel has. Launches do not nest.
class LaunchMark {
 public:
  explicit LaunchMark(const KernelImpl* kernel) : slot_(launch_slot ? launch_slot : make_launch_slot()) {
    slot_->kernel.store(kernel, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // others_may_read() orders it for the processor
  }
  ~LaunchMark() { slot_->kernel.store(nullptr, std::memory_order_release); }
  LaunchMark(const LaunchMark&) = delete;
  LaunchMark& operator=(const LaunchMark&) = delete;

 private:
  LaunchSlot* slot_;
};

/// Whether a thread other than the caller may be reading what the kernel had when this was called: what was taken out
/// of its tables before is theirs alone. True where the system has no such barrier.
bool others_may_read(const KernelImpl* kernel);

}  // namespace kiln::runtime
