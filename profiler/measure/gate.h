// Holds back a GPU's stream until the host lets it go, and reads the clock of its multiprocessors: with the first, CPU
// time of a launch stays out of a sample; with the second, times can be given in cycles.
#pragma once
#include <cstdint>
#include <memory>

#include "kiln/device.h"
#include "kiln/result.h"
#include "runtime/device/backend.h"

namespace kiln::profiler {

/// One per device; not thread-safe.
class Gate {
 public:
  /// kUnsupported on the CPU. `limit_ms`: a stream waits no longer than this, so that a launch which itself waits for
  /// the device cannot wait for ever.
  static Result<std::unique_ptr<Gate>> make(const Device& device, double limit_ms = 50);

  /// Queues a kernel on the current stream that ends when open() is called, or at the limit.
  Status close();
  void open();
  /// Whether the last close() ended by its limit: what came between it and open() waited for the device, or took
  /// longer. To be asked when the stream has passed it.
  bool ran_out() const;

  enum Stamp { kBefore, kAfter };
  /// Queues a kernel on the current stream that notes each multiprocessor's cycle counter and the device's time.
  Status stamp(Stamp which);
  /// The clock between the two last stamps in MHz, the median over the multiprocessors that both ran on; -1 when
  /// there is none. To be asked when the stream has passed both.
  double sm_mhz() const;

 private:
  struct Shared;  // with the GPU
  Gate() = default;

  Device device_;
  int units_ = 0;
  uint64_t limit_ns_ = 0;
  uint32_t ticket_ = 0;
  uint64_t round_[2] = {0, 0};
  std::shared_ptr<void> memory_;
  std::shared_ptr<runtime::LoadedKernel> wait_, note_;
};

}  // namespace kiln::profiler
