// Devices: "cuda:N" and "cpu". A Device is a cheap handle; std only, no driver types.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kiln/result.h"

namespace kiln {

namespace runtime {
class DeviceImpl;
class StreamImpl;
class EventImpl;
}  // namespace runtime

class Runtime;

struct DeviceInfo {
  std::string name;       // "NVIDIA H200", "AMD EPYC (avx2, 2 threads)"
  std::string target;     // what kernels are compiled for: "sm_90a", "host"
  std::string driver;     // "580.159", or empty
  std::string pci_bus;    // "0000:18:00.0", or empty: how other libraries name the same GPU
  int compute_units = 0;  // SMs, or worker threads
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;      // L2, or the last-level cache
  int64_t shared_bytes = 0;  // most shared memory one program can have; 0: no such limit
  int max_threads_per_block = 0;
};

/// Bytes of one device's tensors, by its caching allocator.
struct MemoryStats {
  int64_t allocated = 0;  // in use, as rounded to blocks
  int64_t reserved = 0;   // taken from the device
  int64_t peak = 0;       // highest `allocated` so far
  int64_t segments = 0;   // number of pieces taken from the device
};

class Event;

/// A queue of work on one device. The default stream of a device always exists.
class Stream {
 public:
  Stream() = default;
  explicit Stream(std::shared_ptr<runtime::StreamImpl> impl) : impl_(std::move(impl)) {}
  explicit operator bool() const { return impl_ != nullptr; }
  /// Waits for all its work; a kernel that faulted is reported here.
  Status synchronize() const;
  /// Work queued after this starts only once the work before `event` (of the same device) is done.
  Status wait(const Event& event) const;
  /// All its work is done; also when it failed, which synchronize() reports.
  bool is_idle() const;
  /// Never used again within the process; 0 for an empty handle.
  uint64_t id() const;
  runtime::StreamImpl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<runtime::StreamImpl> impl_;
};

/// A point in a stream; the time between two is measured on the device's own clock.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<runtime::EventImpl> impl) : impl_(std::move(impl)) {}
  Status synchronize() const;
  /// The work before it is done; also when it failed.
  bool is_done() const;
  runtime::EventImpl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<runtime::EventImpl> impl_;
};

/// While it exists, work of this thread that names no stream goes to that one: launches, products, copies, fills,
/// expressions. New tensors belong to it. Guards of one thread nest. An empty stream changes nothing.
///
/// Streams run concurrently: another stream may read a result after wait() for an event, as in torch. Memory is safe
/// without that: a freed tensor is reused only when the streams that used it have passed.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream stream_;
  runtime::StreamImpl* before_;
};

/// What Runtime::open() gives.
class Device {
 public:
  Device() = default;
  explicit Device(std::shared_ptr<runtime::DeviceImpl> impl) : impl_(std::move(impl)) {}

  /// Every device that can be opened, GPUs first, without making a context.
  static std::vector<std::string> list();

  explicit operator bool() const { return impl_ != nullptr; }
  /// What opened it, and opens the other devices that work together with it.
  Runtime runtime() const;
  const std::string& name() const;  // "cuda:0", "cpu"
  bool is_cuda() const;
  /// Asked for once, and then a copy.
  DeviceInfo info() const;
  /// Memory that nobody has at the time of the call; -1 on a GPU that is not in use yet.
  int64_t free_bytes() const;
  MemoryStats memory() const;
  Stream default_stream() const;
  /// Of this thread: the default stream, unless a StreamGuard chose another one of this device.
  Stream current_stream() const;
  Result<Stream> new_stream() const;
  Result<Event> record(const Stream& stream = {}) const;
  /// Milliseconds between two recorded events of this device; waits for the second.
  Result<double> elapsed_ms(const Event& from, const Event& to) const;
  Status synchronize() const;
  bool operator==(const Device& o) const { return impl_ == o.impl_; }
  runtime::DeviceImpl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<runtime::DeviceImpl> impl_;
};

}  // namespace kiln
