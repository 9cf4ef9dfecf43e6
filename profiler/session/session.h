// Takes a profile: starts the host's trace and the device's collector, and joins what both saw.
#pragma once
#include <memory>

#include "kiln/device.h"
#include "kiln/result.h"
#include "profiler/profile/collector.h"
#include "profiler/profile/timeline.h"

namespace kiln::profiler {

struct SessionOptions {
  uint32_t details = trace::kSpans | trace::kStatements | trace::kMemory;
  /// False: the host's side alone, so that no profiler is attached to the driver.
  bool device_work = true;
};

/// Why a profile ended before its time, for Timeline::unknown.
Unknown cut_short(std::string_view by);

/// One at a time in a process.
class ProfileSession {
 public:
  /// kValue when a profile is being taken already. What the device's side lacks (no CUPTI, no permission) is no error:
  /// it is in the timeline's `unknown`.
  static Result<std::unique_ptr<ProfileSession>> start(const Device& device, const SessionOptions& options = {});
  ~ProfileSession();
  ProfileSession(const ProfileSession&) = delete;
  ProfileSession& operator=(const ProfileSession&) = delete;

  /// Waits for the device, ends the profile and joins it. Once.
  Result<Timeline> stop();

 private:
  ProfileSession() = default;

  Device device_;
  std::unique_ptr<Collector> collector_;
  Timeline timeline_;
  bool running_ = false;
};

}  // namespace kiln::profiler
