// CPU time of host code: what a thread took itself, whatever else runs on the machine.
#pragma once
#include <cstdint>
#include <functional>

namespace kiln::bench {

/// Of the calling thread.
double cpu_seconds();

/// Runs [first, last) shares of `items` on so many threads and gives the most CPU time that one of them took: equal to
/// the elapsed time, unless something else runs on the machine.
double on_threads(int64_t threads, int64_t items, const std::function<void(int64_t, int64_t)>& run);

}  // namespace kiln::bench
