// Threads that share a range of work items. One job runs at a time; the calling thread takes part.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::runtime {

/// A job: fn(context, first, last, thread) runs items [first, last) on thread number `thread` (0 is the caller).
struct Job {
  void (*fn)(void* context, int64_t first, int64_t last, int thread) = nullptr;
  void* context = nullptr;
  /// Nanoseconds per item as last measured (0: not yet): read to size the job and updated by it. May be null.
  std::atomic<int64_t>* item_ns = nullptr;
  /// Items that nobody has begun are left out once it is true. May be null.
  const std::atomic<bool>* ended = nullptr;
};

class ThreadPool {
 public:
  /// `threads` includes the caller of run(). Fewer, when the system starts no more.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }
  /// Whether this is a child of the process that made the pool: its threads are not there, and what another thread of
  /// the parent was at never ends.
  bool is_orphaned() const;
  /// Runs all items [0, count) (but see Job::ended) and returns when they are done. A job known to take less than
  /// waking a worker costs is done by the caller alone, as is every job of a child.
  void run(Job job, int64_t count);

 private:
  // state_ = generation << 32 | kOpen | number of workers inside the job. A worker enters only while the job is open,
  // so the caller never waits for one that is still asleep.
  static constexpr uint64_t kOpen = 1u << 31, kInside = kOpen - 1;
  int64_t work(int thread);  // gives the number of items done
  void worker_loop(int thread);

  const uint32_t made_in_;  // which process
  std::mutex run_mutex_;
  Job job_;
  int64_t count_ = 0, chunk_ = 1;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace kiln::runtime
