// Compilations that do not depend on each other.
#pragma once
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kiln/result.h"

namespace kiln::runtime {

/// Calls work(i), which gives a Status, for each i below `count`, by as many threads as there are processors, of which
/// this is one. Gives the error of the first i that has one.
template <class Work>
Status at_once(size_t count, Work&& work) {
  std::vector<Status> problems(count);
  std::atomic<size_t> next{0};
  auto take = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) problems[i] = work(i);
  };
  const size_t threads = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < threads; ++i) others.emplace_back(take);
    take();
  }
  for (Status& problem : problems)
    if (!problem.ok()) return std::move(problem);
  return {};
}

}  // namespace kiln::runtime
