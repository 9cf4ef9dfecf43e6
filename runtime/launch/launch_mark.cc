#include "runtime/launch/launch_mark.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace kiln::runtime {
namespace {

// Never destroyed: threads may end after main().
struct LaunchSlots {
  std::mutex mutex;
  std::vector<LaunchSlot*> all;
};
LaunchSlots& launch_slots() {
  static auto* const slots = new LaunchSlots;
  return *slots;
}

// Takes the slot out of the list when its thread ends.
struct OwnSlot {
  LaunchSlot slot;
  ~OwnSlot() {
    launch_slot = nullptr;
    std::lock_guard lock(launch_slots().mutex);
    std::erase(launch_slots().all, &slot);
  }
};

bool barrier_on_all_threads() {
  static const bool registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return registered && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

LaunchSlot* make_launch_slot() {
  static thread_local OwnSlot own;
  std::lock_guard lock(launch_slots().mutex);
  launch_slots().all.push_back(&own.slot);
  return launch_slot = &own.slot;
}

bool others_may_read(const KernelImpl* kernel) {
  // Behind it, either a thread's mark is seen here, or what the thread reads is what stands in the tables now.
  if (!barrier_on_all_threads()) return true;
  std::lock_guard lock(launch_slots().mutex);
  return std::ranges::any_of(launch_slots().all, [&](const LaunchSlot* slot) {
    return slot != launch_slot && slot->kernel.load(std::memory_order_acquire) == kernel;
  });
}

}  // namespace kiln::runtime
