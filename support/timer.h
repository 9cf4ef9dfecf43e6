// Wall-clock time of a scope, in milliseconds.
#pragma once
#include <chrono>

namespace kiln {

class StopWatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }
  /// Milliseconds since the start or the last lap.
  double lap_ms() {
    double t = ms();
    start_ = Clock::now();
    return t;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace kiln
