// What the devices of a runtime have in common, and what keeps them open. Ownership goes upwards, so that nothing owns
// itself: a device shares the runtime's compiler, which knows devices without owning them; who holds a handle of the
// runtime keeps both.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/runtime.h"
#include "runtime/device/device.h"

namespace kiln::runtime {

class CompileQueue;
class Jit;

class RuntimeImpl : public std::enable_shared_from_this<RuntimeImpl> {
 public:
  explicit RuntimeImpl(std::unique_ptr<Jit> jit);
  ~RuntimeImpl();

  Jit& jit() { return *jit_; }
  CompileQueue& compilations() { return *compilations_; }
  Result<std::shared_ptr<DeviceImpl>> open(std::string_view name);
  /// Of a CUcontext that the caller made, on the GPU of that number.
  Result<std::shared_ptr<DeviceImpl>> open_context(void* context, int ordinal);
  /// What keeps its devices open; new where nobody does any more.
  std::shared_ptr<OpenDevices> keeper();

 private:
  std::unique_ptr<Jit> jit_;
  std::unique_ptr<CompileQueue> compilations_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::weak_ptr<DeviceImpl>, std::less<>> devices_;
  std::map<void*, std::weak_ptr<DeviceImpl>> of_contexts_;  // of callers
  std::weak_ptr<OpenDevices> keeper_;
};

/// The devices that stay open while somebody holds this.
class OpenDevices {
 public:
  explicit OpenDevices(std::shared_ptr<RuntimeImpl> runtime) : runtime_(std::move(runtime)) {}
  ~OpenDevices();

  RuntimeImpl& runtime() const { return *runtime_; }
  void keep(std::shared_ptr<DeviceImpl> device);

 private:
  std::shared_ptr<RuntimeImpl> runtime_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<DeviceImpl>> devices_;
};

/// A runtime with a compiler of the caller's.
Runtime make_runtime(std::unique_ptr<Jit> jit);

}  // namespace kiln::runtime
