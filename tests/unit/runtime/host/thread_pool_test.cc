#include "runtime/host/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <numeric>

namespace kiln::runtime {
namespace {

struct Counter {
  explicit Counter(int64_t n) : hits(static_cast<size_t>(n)) {}
  std::vector<std::atomic<int>> hits;
  std::atomic<int> busiest{0};
  static void run(void* self, int64_t first, int64_t last, int thread) {
    auto& c = *static_cast<Counter*>(self);
    if (thread > c.busiest) c.busiest = thread;
    for (int64_t i = first; i < last; ++i) c.hits[static_cast<size_t>(i)]++;
  }
};

TEST(ThreadPool, EveryItemOnce) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::atomic<int64_t> item_ns{0};
    for (int64_t n : {0, 1, 2, 3, 5, 64, 1000, 12345}) {
      for (auto* hint : {static_cast<std::atomic<int64_t>*>(nullptr), &item_ns}) {
        Counter counter(n);
        pool.run({Counter::run, &counter, hint, nullptr}, n);
        for (auto& hit : counter.hits) ASSERT_EQ(hit, 1) << threads << " threads, " << n << " items";
        EXPECT_LT(counter.busiest, threads);
      }
    }
  }
}

TEST(ThreadPool, LeavesOutWhatAnEndedJobHasNotBegun) {
  struct Ended {
    std::atomic<bool> ended{false};
    std::atomic<int64_t> items{0};
    static void run(void* self, int64_t first, int64_t last, int) {
      auto& e = *static_cast<Ended*>(self);
      if ((e.items += last - first) > 1000) e.ended = true;
    }
  } job;
  ThreadPool pool(3);
  pool.run({Ended::run, &job, nullptr, &job.ended}, int64_t{1} << 40);
  EXPECT_GT(job.items, 1000);
  EXPECT_LT(job.items, int64_t{1} << 20);
}

TEST(ThreadPoolDeathTest, MakesDoWithTheThreadsThatThereAre) {
  auto try_it = [] {
    rlimit limit{};  // room for a stack or two, which are mapped
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(pages) * 4096 + (20 << 20);
    setrlimit(RLIMIT_AS, &limit);
    ThreadPool pool(64);
    Counter counter(1000);
    pool.run({Counter::run, &counter, nullptr, nullptr}, 1000);
    bool all = true;
    for (auto& hit : counter.hits) all &= hit == 1;
    _exit(pool.threads() < 64 && all ? 0 : 1);
  };
  EXPECT_EXIT(try_it(), ::testing::ExitedWithCode(0), "");
}

TEST(ThreadPool, ManyShortJobsInARow) {
  ThreadPool pool(4);
  Counter counter(37);
  for (int i = 0; i < 2000; ++i) pool.run({Counter::run, &counter, nullptr, nullptr}, 37);
  for (auto& hit : counter.hits) ASSERT_EQ(hit, 2000);
}

TEST(ThreadPool, SeveralCallers) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        Counter counter(101);
        pool.run({Counter::run, &counter, nullptr, nullptr}, 101);
        for (auto& hit : counter.hits) ASSERT_EQ(hit, 1);
      }
    });
  for (auto& caller : callers) caller.join();
}

TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(2);
  std::atomic<int> threads_seen{0};
  auto slow = [](void* seen, int64_t, int64_t, int thread) {
    static_cast<std::atomic<int>*>(seen)->fetch_or(1 << thread);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  pool.run({slow, &threads_seen, nullptr}, 40);
  EXPECT_EQ(threads_seen, 3);
}

TEST(ThreadPool, ShortJobsStayOnTheCaller) {
  ThreadPool pool(2);
  std::atomic<int64_t> item_ns{1};
  Counter counter(50);
  for (int i = 0; i < 20; ++i) {
    item_ns = 1;  // as measured for an idle machine
    counter.busiest = 0;
    pool.run({Counter::run, &counter, &item_ns}, 50);
    EXPECT_EQ(counter.busiest, 0);
  }
}

}  // namespace
}  // namespace kiln::runtime
