// Waiting for a GPU so that Ctrl-C and a timeout can end it: by asking, since nothing ends a wait inside the driver.
#pragma once
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/stop.h"

namespace kiln::runtime {

/// Asks query() until it says something else than CUDA_ERROR_NOT_READY; that code means that `stop` ended it. For the
/// first 20 ms without a pause, as the driver itself waits; later it is late by half a percent.
template <class Query>
CUresult wait_until_ready(const Query& query, Stop& stop) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSpin = std::chrono::milliseconds(20);
  constexpr Clock::duration kLongestPause = std::chrono::milliseconds(1);
  CUresult code = query();
  if (code != CUDA_ERROR_NOT_READY) return code;
  const auto start = Clock::now();
  while ((code = query()) == CUDA_ERROR_NOT_READY) {
    if (stop_word.load(std::memory_order_relaxed) != 0 && stop.wanted()) return code;
    const auto waited = Clock::now() - start;
    if (waited > kSpin) std::this_thread::sleep_for(std::min(waited / 200, kLongestPause));
  }
  return code;
}

}  // namespace kiln::runtime
