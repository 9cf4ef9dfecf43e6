#include "profiler/session/session.h"

#include <fmt/format.h>

#include "profiler/cupti/activity.h"
#include "support/diag.h"

namespace kiln::profiler {

Unknown cut_short(std::string_view by) {
  return {"everything after that", fmt::format("interrupted by {}: the profile ends there", by)};
}

Result<std::unique_ptr<ProfileSession>> ProfileSession::start(const Device& device, const SessionOptions& options) {
  std::unique_ptr<ProfileSession> session(new ProfileSession);
  session->device_ = device;
  Timeline& t = session->timeline_;
  const DeviceInfo info = device.info();
  t.device = device.name(), t.hardware = info.name, t.target = info.target, t.driver = info.driver;
  if (device.is_cuda()) t.multiprocessors = info.compute_units;
  // What was queued before is not of the profile.
  KILN_CHECK_OK(device.synchronize());
  if (device.is_cuda() && options.device_work) {
    auto collector = cupti::make_activity_collector();
    Status started = collector.ok() ? (*collector)->start() : Status(std::move(collector.error()));
    if (started.ok())
      session->collector_ = *std::move(collector);
    else
      t.unknown.push_back({"the GPU's side: kernels, copies, calls of the driver", started.error().message});
  }
  // After the collector, whose attaching takes milliseconds and is not the program's.
  if (!trace::start(options.details)) return error(ErrorKind::kValue, "a profile is being taken already");
  session->running_ = true;
  t.start = trace::now_ns();
  return session;
}

ProfileSession::~ProfileSession() {
  if (running_) trace::stop();
}

Result<Timeline> ProfileSession::stop() {
  KILN_ASSERT(running_, "a profile is stopped once");
  const Ns ending = trace::now_ns();
  add_events(timeline_, trace::stop());
  running_ = false;
  // Work that is still running ends within the profile, with the wait for it at the end.
  Status idle = device_.synchronize();
  timeline_.end = trace::now_ns();
  if (collector_) {
    KILN_CHECK_OK(collector_->stop(timeline_));
    // The wait that ends the profile is not the program's.
    std::erase_if(timeline_.calls, [&](const ApiCall& c) { return c.start >= ending; });
    std::erase_if(timeline_.waits, [&](const Wait& w) { return w.start >= ending; });
  }
  if (!idle.ok()) timeline_.unknown.push_back({"what ran last", idle.error().message});
  join(timeline_);
  return std::move(timeline_);
}

}  // namespace kiln::profiler
