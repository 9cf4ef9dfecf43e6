// A device as the rest of the runtime sees it: a backend with its caching allocator, and the storage of tensors on it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kiln/device.h"
#include "runtime/allocator.h"
#include "runtime/backend.h"
#include "support/trace.h"

namespace kiln::runtime {

/// What a room above keeps with a device, as BLAS keeps its handles.
class Companion {
 public:
  virtual ~Companion() = default;
};

class DeviceImpl : public std::enable_shared_from_this<DeviceImpl> {
 public:
  /// Tests make devices of their own from a backend; everyone else calls Device::open.
  DeviceImpl(std::string name, std::unique_ptr<Backend> backend);
  ~DeviceImpl();

  const std::string& name() const { return name_; }
  bool is_cuda() const { return backend_->capability() != 0; }
  /// "sm_90a", "host": what kernels are compiled for; empty when the GPU is older than any target.
  const std::string& target() const { return target_; }
  Backend& backend() { return *backend_; }
  Allocator& allocator() { return allocator_; }
  StreamImpl& stream_or_default(const Stream& stream) { return stream ? *stream.impl() : backend_->default_stream(); }

  /// The companion of that name, made by `make` at the first use; a failure is tried again. It lives as long as the
  /// device.
  using MakeCompanion = std::function<Result<std::unique_ptr<Companion>>(DeviceImpl&)>;
  Result<Companion*> companion(const std::string& name, const MakeCompanion& make);

 private:
  std::string name_, target_;
  std::unique_ptr<Backend> backend_;
  Allocator allocator_;  // after the backend: it gives its memory back first
  std::mutex companion_mutex_;
  std::map<std::string, std::unique_ptr<Companion>> companions_;  // last: they may hold memory of the allocator
};

/// The memory of a tensor and of all its views; gives it back when the last of them goes, or at free().
struct Storage {
  Storage(std::shared_ptr<DeviceImpl> d, Block* b, int64_t n)
      : device(std::move(d)), block(b), bytes(n), address_(b->address) {}
  ~Storage() { free(); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  bool is_freed() const { return block == nullptr; }
  DeviceAddress address() const { return address_; }  // 0 when freed
  void free() {
    if (!block) return;
    device->allocator().free(block);
    trace::add_memory(trace::Step::kMemory, device->name(), -bytes);
    block = nullptr;
    address_ = 0;
  }

  std::shared_ptr<DeviceImpl> device;
  Block* block;
  int64_t bytes;  // as asked for; the block may be larger

 private:
  DeviceAddress address_;  // the block's, beside what else a launch reads
};

Result<std::shared_ptr<Storage>> allocate_storage(const Device& device, int64_t bytes);

/// The error of every operation on a tensor that was freed.
Diagnostic freed_error(std::string_view what);

}  // namespace kiln::runtime
