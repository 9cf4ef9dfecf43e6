#include "profiler/measure/copy.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "kiln/tensor.h"

namespace kiln::profiler {

namespace {

// Worker threads that copy one slice each; the caller waits for all.
class ParallelCopy {
 public:
  ParallelCopy(int threads, size_t bytes) : from_(bytes, 1), to_(bytes, 2) {
    try {
      for (int i = 0; i < threads; ++i) workers_.emplace_back([this, i] { work(static_cast<size_t>(i)); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
      // The system has no more of them: those that there are share the work.
    }
  }
  ~ParallelCopy() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    go_.notify_all();
    for (std::thread& t : workers_) t.join();
  }
  ParallelCopy(const ParallelCopy&) = delete;
  ParallelCopy& operator=(const ParallelCopy&) = delete;

  void run() {
    if (workers_.empty()) return copy(0, 1);
    std::unique_lock lock(mutex_);
    ++round_;
    left_ = static_cast<int>(workers_.size());
    go_.notify_all();
    done_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  void copy(size_t index, size_t threads) {
    const size_t n = from_.size(), begin = n * index / threads, end = n * (index + 1) / threads;
    std::memcpy(to_.data() + begin, from_.data() + begin, end - begin);
  }

  void work(size_t index) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      go_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      lock.unlock();
      copy(index, workers_.size());
      lock.lock();
      if (--left_ == 0) done_.notify_all();
    }
  }

  std::vector<char> from_, to_;
  std::mutex mutex_;
  std::condition_variable go_, done_;
  uint64_t round_ = 0;
  int left_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

Result<Launchable> copy_launchable(const Device& device, int64_t bytes) {
  if (!device.is_cuda()) {
    auto copy = std::make_shared<ParallelCopy>(std::max(1, device.info().compute_units), static_cast<size_t>(bytes));
    return Launchable{"copy", device, [copy]() -> Status {
                        copy->run();
                        return {};
                      }};
  }
  const int64_t shape[] = {std::max<int64_t>(1, bytes / 4)};
  KILN_TRY(Tensor from, Tensor::zeros(device, DType::kI32, shape));
  KILN_TRY(Tensor to, Tensor::empty(device, DType::kI32, shape));
  return Launchable{"copy", device, [from, to]() -> Status { return to.copy_from(from); }};
}

}  // namespace kiln::profiler
