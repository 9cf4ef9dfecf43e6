#include "profiler/measure/nvml.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "support/diag.h"
#include "support/dynlib.h"
#include "support/knobs.h"

namespace kiln::profiler {

namespace {

// nvml.h's, which need not be installed: NVML_CLOCK_SM, and nvmlClocksEventReason… (nvmlClocksThrottleReason… before).
constexpr int kClockSm = 1;
constexpr uint64_t kIdle = 0x1;
constexpr std::pair<uint64_t, std::string_view> kReasons[] = {
    {kIdle, "idle"},
    {0x2, "clocks set by an application"},
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "power brake"},
    {0x100, "display clock"},
};

}  // namespace

struct Nvml::Library {
  DynLib lib;
  int (*init)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*handle_by_bus)(const char*, void**) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*max_clock)(void*, int, unsigned*) = nullptr;
  int (*reasons)(void*, unsigned long long*) = nullptr;

  Status check(int code, std::string_view call) const {
    // NVML_SUCCESS.
    if (code == 0) return {};
    return error(ErrorKind::kDevice, "{} failed: {}", call, error_string(code));
  }
};

Result<Nvml> Nvml::open(const std::string& pci_bus) {
  std::string chosen = knob(Knob::kNvmlLibrary);
  const std::string names[] = {chosen.empty() ? "libnvidia-ml.so.1" : chosen};
  auto library = std::make_shared<Library>();
  KILN_TRY(library->lib, DynLib::open(names, "NVML"));
  auto find = [&](auto& entry, std::initializer_list<const char*> symbols) -> Status {
    for (const char* symbol : symbols)
      if ((entry = library->lib.function<std::remove_reference_t<decltype(entry)>>(symbol))) return {};
    return error(ErrorKind::kDevice, "{} lacks {}", library->lib.path(), *symbols.begin());
  };
  KILN_CHECK_OK(find(library->init, {"nvmlInit_v2"}));
  KILN_CHECK_OK(find(library->error_string, {"nvmlErrorString"}));
  KILN_CHECK_OK(find(library->handle_by_bus, {"nvmlDeviceGetHandleByPciBusId_v2"}));
  KILN_CHECK_OK(find(library->clock, {"nvmlDeviceGetClockInfo"}));
  KILN_CHECK_OK(find(library->max_clock, {"nvmlDeviceGetMaxClockInfo"}));
  // The second is what drivers before 535 call it.
  KILN_CHECK_OK(
      find(library->reasons, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}));
  KILN_CHECK_OK(library->check(library->init(), "nvmlInit"));
  Nvml nvml;
  KILN_CHECK_OK(library->check(library->handle_by_bus(pci_bus.c_str(), &nvml.gpu_), "nvmlDeviceGetHandleByPciBusId"));
  nvml.library_ = std::move(library);
  return nvml;
}

Result<uint64_t> Nvml::throttle_reasons() const {
  unsigned long long bits = 0;
  KILN_CHECK_OK(library_->check(library_->reasons(gpu_, &bits), "nvmlDeviceGetCurrentClocksEventReasons"));
  return uint64_t{bits};
}

Result<int> Nvml::sm_clock() const {
  unsigned mhz = 0;
  KILN_CHECK_OK(library_->check(library_->clock(gpu_, kClockSm, &mhz), "nvmlDeviceGetClockInfo"));
  return static_cast<int>(mhz);
}

Result<int> Nvml::max_sm_clock() const {
  unsigned mhz = 0;
  KILN_CHECK_OK(library_->check(library_->max_clock(gpu_, kClockSm, &mhz), "nvmlDeviceGetMaxClockInfo"));
  return static_cast<int>(mhz);
}

ThrottleWatch::ThrottleWatch(const Device& device) {
  if (!device.is_cuda()) {
    unknown_ = "the CPU does not say";
    return;
  }
  auto nvml = Nvml::open(device.info().pci_bus);
  if (nvml.ok())
    nvml_ = std::move(*nvml);
  else
    unknown_ = nvml.error().message;
}

void ThrottleWatch::look(double now_s) {
  // In seconds: NVML takes longer to answer than short samples take.
  constexpr double kEvery = 0.05;
  if (!nvml_ || now_s < next_) return;
  next_ = now_s + kEvery;
  auto reasons = nvml_->throttle_reasons();
  if (reasons.ok())
    seen_ |= slowing_reasons(*reasons);
  else
    unknown_ = reasons.error().message;
}

std::string ThrottleWatch::text() const {
  if (seen_) return reason_names(seen_);
  return unknown_.empty() ? "none" : "unknown: " + unknown_;
}

// Between samples a GPU is idle, which slows nothing down.
uint64_t slowing_reasons(uint64_t reasons) { return reasons & ~kIdle; }

std::string reason_names(uint64_t reasons) {
  std::string out;
  uint64_t named = 0;
  for (const auto& [bit, text] : kReasons) {
    named |= bit;
    if (reasons & bit) out += (out.empty() ? "" : ", ") + std::string(text);
  }
  if (uint64_t rest = reasons & ~named) out += (out.empty() ? "" : ", ") + fmt::format("reason {:#x}", rest);
  return out;
}

}  // namespace kiln::profiler
