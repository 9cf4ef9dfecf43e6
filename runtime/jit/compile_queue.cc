#include "runtime/jit/compile_queue.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

#include "support/aside.h"

namespace kiln::runtime {
namespace {

std::atomic<int> busy{0};  // jobs that have begun
std::atomic<bool> ending{false};
std::atomic<pid_t> process{0};  // whose jobs those are

void wait_at_exit() {
  if (getpid() != process) return;
  ending = true;
  while (busy > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

struct CompileQueue::State {
  std::mutex mutex;
  std::deque<std::function<void()>> jobs;
  unsigned threads = 0;

  void work() {
    for (;;) {
      std::function<void()> job;
      {
        std::lock_guard lock(mutex);
        if (jobs.empty()) {
          --threads;
          return;
        }
        job = std::move(jobs.front());
        jobs.pop_front();
      }
      ++busy;  // before the look: exit() sees one or the other
      if (!ending) {
        job();
        job = {};  // what it owns goes before the process may end
      }
      --busy;
      if (ending) return;
    }
  }
};

CompileQueue::CompileQueue(unsigned threads)
    : limit_(threads ? threads : std::max(1u, std::thread::hardware_concurrency())) {}

std::shared_ptr<CompileQueue::State> CompileQueue::state() {
  std::lock_guard lock(mutex_);
  if (const pid_t now = getpid(); process_ != now) {
    if (process.exchange(now) != now) busy = 0;
    process_ = now;
    state_ = std::make_shared<State>();
  }
  return state_;
}

void CompileQueue::add(std::function<void()> job) {
  static const int registered = std::atexit(wait_at_exit);
  (void)registered;
  const std::shared_ptr<State> state = this->state();
  {
    std::lock_guard lock(state->mutex);
    state->jobs.push_back(std::move(job));
    if (state->threads == limit_) return;
    ++state->threads;
  }
  run_on_thread([state] { state->work(); });
}

}  // namespace kiln::runtime
