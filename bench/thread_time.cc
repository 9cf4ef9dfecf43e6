#include "bench/thread_time.h"

#include <algorithm>
#include <ctime>
#include <thread>
#include <vector>

namespace kiln::bench {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double on_threads(int64_t threads, int64_t items, const std::function<void(int64_t, int64_t)>& run) {
  std::vector<double> seconds(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (int64_t t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      const double start = cpu_seconds();
      run(items * t / threads, items * (t + 1) / threads);
      seconds[static_cast<size_t>(t)] = cpu_seconds() - start;
    });
  for (std::thread& w : workers) w.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

}  // namespace kiln::bench
