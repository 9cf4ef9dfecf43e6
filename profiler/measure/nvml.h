// Readings of NVIDIA's management library from a busy GPU: its clock, and the reasons for throttling. Loaded at
// run time; nothing of it is linked and no setting is changed.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kiln/device.h"
#include "kiln/result.h"

namespace kiln::profiler {

class Nvml {
 public:
  /// The GPU at that place on the bus (DeviceInfo::pci_bus). kDevice: one sentence that names what is missing.
  /// KILN_NVML_LIBRARY names another library than libnvidia-ml.so.1.
  static Result<Nvml> open(const std::string& pci_bus);

  /// Bits of reason_names, as they are now.
  Result<uint64_t> throttle_reasons() const;
  /// Of the multiprocessors, in MHz: now, and the most it can be.
  Result<int> sm_clock() const;
  Result<int> max_sm_clock() const;

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
  void* gpu_ = nullptr;
};

/// Polls, during a measurement, the reasons for which a device's clock is throttled.
class ThrottleWatch {
 public:
  explicit ThrottleWatch(const Device& device);
  /// Cheap enough to call between samples: it reads every 50 ms at most.
  void look(double now_s);
  bool slowed() const { return seen_ != 0; }
  /// "none", "power cap, thermal slowdown", or "unknown: " and why.
  std::string text() const;

 private:
  std::optional<Nvml> nvml_;
  std::string unknown_;
  uint64_t seen_ = 0;
  double next_ = 0;
};

/// The reasons for which a clock is throttled, without those that only report an idle GPU.
uint64_t slowing_reasons(uint64_t reasons);
/// "power cap, thermal slowdown"; empty for none.
std::string reason_names(uint64_t reasons);

}  // namespace kiln::profiler
