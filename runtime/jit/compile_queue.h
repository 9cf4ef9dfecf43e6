// Compilations that nobody waits for: threads that are started where there is work, and end with it.
#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>

namespace kiln::runtime {

/// Thread-safe. What a job owns may be the last handle of who owns the queue: threads belong to their work alone.
///
/// A process that ends waits for jobs that have begun, since destructors of statics would take away what they use, and
/// drops the others. A child after a fork has neither its parent's threads nor their jobs.
class CompileQueue {
 public:
  /// 0: as many threads as the machine has.
  explicit CompileQueue(unsigned threads = 0);
  /// Runs `job` soon, on a thread that takes no signals; where the system has no thread for it, on this one.
  void add(std::function<void()> job);

 private:
  struct State;
  std::shared_ptr<State> state();

  unsigned limit_;
  std::mutex mutex_;  // of what follows
  std::shared_ptr<State> state_;
  pid_t process_ = 0;
};

}  // namespace kiln::runtime
