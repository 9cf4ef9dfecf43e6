// A device as the rest of the runtime sees it: a backend with its caching allocator, and the storage of tensors on it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "kiln/device.h"
#include "runtime/device/allocator.h"
#include "runtime/device/backend.h"
#include "support/trace.h"

namespace kiln::runtime {

/// What a room above keeps with a device, as BLAS keeps its handles.
class Companion {
 public:
  virtual ~Companion() = default;
};

class RuntimeImpl;
struct Storage;

class DeviceImpl : public std::enable_shared_from_this<DeviceImpl> {
 public:
  /// Tests make devices of their own from a backend; everyone else calls Runtime::open.
  DeviceImpl(std::string name, std::unique_ptr<Backend> backend, std::shared_ptr<RuntimeImpl> runtime);
  ~DeviceImpl();

  const std::string& name() const { return name_; }
  RuntimeImpl& runtime() const { return *runtime_; }
  bool is_cuda() const { return backend_->capability() != 0; }
  /// "sm_90a", "host": what kernels are compiled for; empty when the GPU is older than any target.
  const std::string& target() const { return target_; }
  Backend& backend() const { return *backend_; }
  /// Drivers and the system take 20 us and more for it: what a launch wants of it is asked for once.
  const DeviceInfo& info();
  /// For code that was loaded there, which the device may own and which may outlive it.
  const std::shared_ptr<Backend>& share_backend() const { return backend_; }
  Allocator& allocator() { return allocator_; }
  StreamImpl& stream_or_current(const Stream& stream) { return stream ? *stream.impl() : backend_->current_stream(); }
  /// Holds on to the host's side of a queued copy.
  void keep_until_passed(std::shared_ptr<Storage> storage, StreamImpl& stream);
  /// Releases those that are done; called by every wait for the device.
  void release_passed();
  /// Waits for those that are queued. They hold memory of the host that holds this device.
  void finish_copies();

  /// The companion of that name, made by `make` at the first use; a failure is tried again. It lives as long as the
  /// device.
  using MakeCompanion = std::function<Result<std::unique_ptr<Companion>>(DeviceImpl&)>;
  Result<Companion*> companion(const std::string& name, const MakeCompanion& make);

  /// The stream of the caller's handle; the same one as long as it lives.
  Result<std::shared_ptr<StreamImpl>> stream_of(void* native);

 private:
  struct InFlight {
    std::unique_ptr<EventImpl> passed;
    std::shared_ptr<Storage> storage;
  };

  std::shared_ptr<RuntimeImpl> runtime_;
  std::string name_, target_;
  std::once_flag asked_;
  DeviceInfo info_;
  std::shared_ptr<Backend> backend_;
  Allocator allocator_;  // after the backend: it gives its memory back first
  std::mutex in_flight_mutex_;
  std::vector<InFlight> in_flight_;
  std::mutex foreign_streams_mutex_;
  std::map<void*, std::weak_ptr<StreamImpl>> foreign_streams_;
  std::mutex companion_mutex_;
  std::map<std::string, std::unique_ptr<Companion>> companions_;  // last: they may hold memory of the allocator
};

/// Memory of the host that a GPU copies from and to by itself.
struct Pinned {
  Pinned(std::shared_ptr<DeviceImpl> g, std::shared_ptr<void> m) : gpu(std::move(g)), memory(std::move(m)) {}
  std::shared_ptr<DeviceImpl> gpu;  // outlives its memory
  std::shared_ptr<void> memory;
};

/// The address of foreign memory that has none, being empty: 0 is that of a freed storage. Aligned as tensors are.
inline constexpr DeviceAddress kNowhere = 4096;

/// The memory of a tensor and of all its views, released with the last of them, or by free().
struct Storage {
  Storage(std::shared_ptr<DeviceImpl> d, Block* b, int64_t n)
      : device(std::move(d)), bytes(n), address_(b->address), block_(b) {}
  Storage(std::shared_ptr<DeviceImpl> cpu, std::shared_ptr<Pinned> p, int64_t n)
      : device(std::move(cpu)),
        bytes(n),
        address_(reinterpret_cast<DeviceAddress>(p->memory.get())),
        pinned_(std::move(p)) {}
  /// Of somebody else, at least 1 byte or at kNowhere.
  Storage(std::shared_ptr<DeviceImpl> d, DeviceAddress address, int64_t n, std::shared_ptr<void> owner)
      : device(std::move(d)), bytes(n), address_(address), is_foreign_(true), foreign_(std::move(owner)) {}
  ~Storage() { free(); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  bool is_freed() const { return address_ == 0; }
  bool is_pinned() const { return pinned_ != nullptr; }
  bool is_foreign() const { return is_foreign_; }
  DeviceAddress address() const { return address_; }  // 0 when freed
  /// `stream` works on it too: it is not reused before that work is done.
  void used_on(StreamImpl& stream) {
    if (block_) device->allocator().used_on(block_, stream);
  }
  /// Whether it was allocated in that order (StreamImpl::order()).
  bool is_of(uint64_t order) const { return block_ && device->allocator().is_of(block_, order); }
  bool is_used_elsewhere(const StreamImpl& stream) {
    return block_ && device->allocator().is_used_elsewhere(block_, stream);
  }
  void free() {
    if (is_freed()) return;
    if (block_) device->allocator().free(block_);
    if (!is_foreign_) trace::add_memory(trace::Step::kMemory, device->name(), -bytes);
    block_ = nullptr;
    pinned_.reset();
    foreign_.reset();
    address_ = 0;
  }

  std::shared_ptr<DeviceImpl> device;
  int64_t bytes;  // as asked for; the block may be larger

 private:
  DeviceAddress address_;  // next to the other fields that a launch reads
  Block* block_ = nullptr;
  std::shared_ptr<Pinned> pinned_;
  bool is_foreign_ = false;
  std::shared_ptr<void> foreign_;
};

/// In the order of the thread's current stream.
Result<std::shared_ptr<Storage>> allocate_storage(const Device& device, int64_t bytes);
/// Of the cpu device, zeroed, in memory that `gpu` can copy from and to by itself. kUnsupported when that is the CPU.
Result<std::shared_ptr<Storage>> allocate_pinned(const Device& gpu, int64_t bytes);

/// The error of every operation on a tensor that was freed.
Diagnostic freed_error(std::string_view what);

}  // namespace kiln::runtime
