#include "runtime/device/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "kiln/interop.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/host/host_backend.h"
#include "runtime/jit/compile_queue.h"
#include "runtime/jit/jit.h"
#include "support/diag.h"
#include "support/knobs.h"

namespace kiln {
namespace runtime {
namespace {

// "cuda" and "cuda:0" are one device: gives the canonical name, or nullopt.
std::optional<std::string> canonical(std::string_view name, int& ordinal) {
  ordinal = -1;
  if (name == "cpu") return "cpu";
  if (name == "cuda") name = "cuda:0";
  if (!name.starts_with("cuda:")) return std::nullopt;
  std::string_view digits = name.substr(5);
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (code != std::errc{} || end != digits.data() + digits.size() || ordinal < 0) return std::nullopt;
  return fmt::format("cuda:{}", ordinal);
}

}  // namespace

RuntimeImpl::RuntimeImpl(std::unique_ptr<Jit> jit)
    : jit_(std::move(jit)), compilations_(std::make_unique<CompileQueue>()) {}
RuntimeImpl::~RuntimeImpl() = default;

Result<std::shared_ptr<DeviceImpl>> RuntimeImpl::open(std::string_view name) {
  int ordinal = -1;
  auto full_name = canonical(name, ordinal);
  if (!full_name) return error(ErrorKind::kDevice, "unknown device '{}': devices are cpu, cuda and cuda:N", name);
  std::lock_guard lock(mutex_);
  // Weak: devices are kept by OpenDevices, which handles share; the runtime only finds them again.
  std::weak_ptr<DeviceImpl>& known = devices_[*full_name];
  if (auto device = known.lock()) return device;
  std::unique_ptr<Backend> backend;
  if (ordinal < 0) {
    KILN_TRY(backend, make_host_backend());
  } else {
    KILN_TRY(backend, make_cuda_backend(ordinal));
  }
  auto device = std::make_shared<DeviceImpl>(*full_name, std::move(backend), shared_from_this());
  known = device;
  return device;
}

Result<std::shared_ptr<DeviceImpl>> RuntimeImpl::open_context(void* context, int ordinal) {
  std::lock_guard lock(mutex_);
  std::erase_if(of_contexts_, [](const auto& entry) { return entry.second.expired(); });
  if (auto found = of_contexts_.find(context); found != of_contexts_.end())
    if (auto device = found->second.lock()) return device;
  KILN_TRY(std::unique_ptr<Backend> backend, make_cuda_backend(ordinal, context));
  auto device = std::make_shared<DeviceImpl>(fmt::format("cuda:{}", ordinal), std::move(backend), shared_from_this());
  of_contexts_[context] = device;
  return device;
}

std::shared_ptr<OpenDevices> RuntimeImpl::keeper() {
  std::lock_guard lock(mutex_);
  std::shared_ptr<OpenDevices> keeper = keeper_.lock();
  if (!keeper) keeper_ = keeper = std::make_shared<OpenDevices>(shared_from_this());
  return keeper;
}

void OpenDevices::keep(std::shared_ptr<DeviceImpl> device) {
  std::lock_guard lock(mutex_);
  if (std::ranges::find(devices_, device) == devices_.end()) devices_.push_back(std::move(device));
}

OpenDevices::~OpenDevices() {
  // A copy in flight holds its storage, and that the device: left there, they would keep one another.
  for (const auto& device : devices_) device->finish_copies();
}

std::vector<std::shared_ptr<const LoadedCode>> loaded_code(const Device& device) {
  return device.impl()->runtime().jit().loaded_code();
}

Runtime make_runtime(std::unique_ptr<Jit> jit) {
  return Runtime(std::make_shared<RuntimeImpl>(std::move(jit))->keeper());
}

}  // namespace runtime

using namespace runtime;

RuntimeImpl& Runtime::impl() const { return devices_->runtime(); }

Result<Device> Runtime::open(std::string_view name) const {
  KILN_TRY(std::shared_ptr<DeviceImpl> device, impl().open(name));
  devices_->keep(device);
  return Device(std::move(device));
}

Result<Device> Runtime::open_default() const {
  if (std::string name = knob(Knob::kDevice); !name.empty()) return open(name);
  if (auto gpu = open("cuda:0"); gpu.ok()) return gpu;
  return open("cpu");
}

Result<Device> device_from_cuda(const Runtime& runtime, void* context) {
  if (!context) return error(ErrorKind::kValue, "device_from_cuda needs a CUcontext, got null");
  KILN_TRY(const ContextOwner owner, owner_of_cuda_context(context));
  if (owner.is_primary) return runtime.open(fmt::format("cuda:{}", owner.ordinal));
  // The context is the caller's to keep, and so is its device.
  KILN_TRY(std::shared_ptr<DeviceImpl> device, runtime.impl().open_context(context, owner.ordinal));
  return Device(std::move(device));
}

}  // namespace kiln
