#include "runtime/host/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>

namespace kiln::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Waking a sleeping thread costs several microseconds: less work than this stays on the caller.
constexpr int64_t kInlineNs = 8'000;
// A chunk should take about this long: long against the atomic counter, short against the whole job.
constexpr int64_t kChunkNs = 20'000;
// A thread spins before it sleeps, as jobs often follow one another within microseconds.
constexpr int kSpins = 2'000;

/// How many forks lie between this process and the first.
std::atomic<uint32_t> forks{0};
uint32_t count_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;  // without memory for it, a child waits for ever, as it did
  return forks.load();
}

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : made_in_(count_forks()) {
  try {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { worker_loop(t); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // The system has no more of them (ulimit -u, a container's limit): those that there are do the work.
  }
}

bool ThreadPool::is_orphaned() const { return forks.load(std::memory_order_relaxed) != made_in_; }

ThreadPool::~ThreadPool() {
  if (is_orphaned()) {
    for (std::thread& worker : workers_) worker.detach();
    return;
  }
  stop_.store(true);
  state_.fetch_add(1ull << 32);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Job job, int64_t count) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1 || is_orphaned()) return job.fn(job.context, 0, count, 0);
  auto start = Clock::now();
  auto note_time = [&](int64_t items) {
    if (!job.item_ns || items == 0) return;
    int64_t ns = std::chrono::nanoseconds(Clock::now() - start).count();
    job.item_ns->store(std::max<int64_t>(1, ns / items), std::memory_order_relaxed);
  };
  int64_t item_ns = job.item_ns ? job.item_ns->load(std::memory_order_relaxed) : 0;
  if (item_ns != 0 && item_ns <= kInlineNs / count) {
    job.fn(job.context, 0, count, 0);
    return note_time(count);
  }

  std::unique_lock lock(run_mutex_);
  job_ = job;
  count_ = count;
  // At least four chunks for each thread, so that the last ones end at about the same time.
  int64_t fair = std::max<int64_t>(1, count / (int64_t{threads()} * 4));
  chunk_ = item_ns == 0 ? std::clamp<int64_t>(count / (int64_t{threads()} * 32), 1, 64)
                        : std::clamp<int64_t>(kChunkNs / item_ns, 1, fair);
  next_.store(0, std::memory_order_relaxed);
  uint64_t generation = (state_.load(std::memory_order_relaxed) >> 32) + 1;
  state_.store(generation << 32 | kOpen, std::memory_order_release);
  state_.notify_all();
  start = Clock::now();
  note_time(work(0));
  // Close the job: nobody enters any more; then wait for those inside.
  uint64_t state = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  for (int spin = 0; (state & kInside) != 0; ++spin) {
    if (spin < kSpins)
      pause_cpu();
    else
      state_.wait(state, std::memory_order_acquire);
    state = state_.load(std::memory_order_acquire);
  }
}

int64_t ThreadPool::work(int thread) {
  int64_t done = 0;
  while (true) {
    int64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (first >= count_ || (job_.ended && job_.ended->load(std::memory_order_relaxed))) return done;
    int64_t last = std::min(count_, first + chunk_);
    job_.fn(job_.context, first, last, thread);
    done += last - first;
  }
}

void ThreadPool::worker_loop(int thread) {
  uint64_t seen = 0;  // generation
  while (true) {
    uint64_t state = state_.load(std::memory_order_acquire);
    for (int spin = 0; (state >> 32) == seen; ++spin) {
      if (spin < kSpins)
        pause_cpu();
      else
        state_.wait(state, std::memory_order_acquire);
      state = state_.load(std::memory_order_acquire);
    }
    if (stop_.load()) return;
    seen = state >> 32;
    // A worker that wakes late must not enter the next job with the numbers of this one.
    bool entered = false;
    while ((state & kOpen) && (state >> 32) == seen && !entered)
      entered = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel);
    if (!entered) continue;
    work(thread);
    if ((state_.fetch_sub(1, std::memory_order_acq_rel) & kInside) == 1) state_.notify_all();
  }
}

}  // namespace kiln::runtime
