// The narrow interface behind every Device, one implementation per kind of device. Addresses, streams and kernels are
// handles that only the backend that made them understands, and every call is plain data in and out, so that a backend
// can later be a proxy for one in a worker process.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/device.h"
#include "kiln/kernel_info.h"
#include "kiln/result.h"
#include "support/assembler.h"
#include "support/roomy_code.h"
#include "support/tensor_map.h"

namespace kiln::runtime {

class Backend;
struct Storage;

/// The error of what cannot be recorded for a graph; `what` is a clause: "a copy to the host".
Diagnostic not_in_graph(std::string_view what);

/// A number that names memory of one device; on the CPU it is the pointer itself.
using DeviceAddress = uint64_t;

/// An in-order queue. All work of the cpu device is done when the call that queued it returns.
class StreamImpl {
 public:
  virtual ~StreamImpl() = default;
  /// Work is recorded for a graph and not run.
  bool is_capturing() const { return capturing_.load(std::memory_order_relaxed); }
  /// In whose order memory is used that is allocated now: the stream's id, or while it captures that of the graph,
  /// which has memory of its own (Allocator).
  uint64_t order() const { return is_capturing() ? graph_order_ : id_; }
  /// While capturing: memory that the recorded work uses, for the graph to hold on to. That of its own it has anyway.
  void keep_for_graph(std::shared_ptr<Storage> storage);
  std::vector<std::shared_ptr<Storage>> take_graph_storages() {
    graph_workspace_.reset();
    graph_turns_.reset();
    return std::exchange(graph_storages_, {});
  }
  /// The scratch memory that all of the recorded work shares; null until somebody made one.
  std::shared_ptr<Storage>& graph_workspace() { return graph_workspace_; }
  /// The counter of programs that all of the recorded kernels share (runtime/expr/turns.h); null until one needs it.
  std::shared_ptr<Storage>& graph_turns() { return graph_turns_; }
  virtual Status synchronize() = 0;
  /// Later work of this stream starts after `event`.
  virtual Status wait(const EventImpl& event) = 0;
  /// Nothing is queued or running; also on an error, which the next synchronize reports. False while capturing.
  virtual bool is_idle() = 0;
  /// Never reused within the process.
  uint64_t id() const { return id_; }
  Backend& backend() const { return *backend_; }

 protected:
  explicit StreamImpl(Backend& backend);
  void set_capturing(bool on) {
    if (on) graph_order_ = new_order();
    capturing_.store(on, std::memory_order_relaxed);
  }

 private:
  static uint64_t new_order();
  std::atomic<bool> capturing_{false};
  std::vector<std::shared_ptr<Storage>> graph_storages_;
  std::shared_ptr<Storage> graph_workspace_, graph_turns_;
  Backend* backend_;
  uint64_t id_, graph_order_ = 0;
};

class EventImpl {
 public:
  virtual ~EventImpl() = default;
  virtual Status synchronize() = 0;
  /// True once the work before it has finished; also on an error, which the next synchronize reports. False for an
  /// event that was recorded in a graph.
  virtual bool is_done() = 0;
};

/// Runs programs [first, last) of a grid on the CPU; see compiler/compile.h for the meaning of the arguments.
using HostEntry = void (*)(const uint64_t* args, const int32_t* grid, int64_t first, int64_t last, void* scratch);

/// The stream that StreamGuard chose on this thread; null: each device's default stream.
inline thread_local StreamImpl* chosen_stream = nullptr;

/// Code to load. A GPU takes `cubin`, or `ptx` when there is none or the driver refuses it; the CPU takes `entry`.
struct KernelImage : KernelInfo {
  int num_params = 0;
  std::span<const TensorMapRecipe> tensor_maps;  // GPU: parameters after the others, encoded at each launch
  const RoomyCode* roomy = nullptr;              // GPU: for launches of few blocks; null: there is none
  HostEntry entry = nullptr;
  std::function<Status()>
      take_failure;  // CPU: a device assertion that failed in the launch just finished; may be empty
  std::function<Place(uintptr_t)> place_at;  // CPU: where an instruction came from, line 0: unknown; may be empty
  std::shared_ptr<const void> keep;          // owns the code behind `entry`
};

/// A kernel on a device. It lives at least as long as any launch of it is queued.
class LoadedKernel : public std::enable_shared_from_this<LoadedKernel> {
 public:
  virtual ~LoadedKernel() = default;
  const std::string& name() const { return name_; }
  int num_params() const { return num_params_; }
  /// From the device's own loader; -1 unknown.
  int registers() const { return registers_; }
  int64_t local_bytes() const { return local_bytes_; }
  /// Whether the last launch ran KernelImage::roomy.
  bool ran_roomy() const { return ran_roomy_.load(std::memory_order_relaxed); }

 protected:
  std::string name_;
  int num_params_ = 0;
  int registers_ = -1;
  int64_t local_bytes_ = -1;
  mutable std::atomic<bool> ran_roomy_{false};
};

/// What a stream recorded, to be put on a stream again.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  virtual Status launch(StreamImpl& stream) = 0;
  /// Launches, copies and fills.
  virtual int64_t size() const = 0;
};

/// Programs along x, y and z; each at least 1 and within the device's limits.
using Grid = std::array<uint32_t, 3>;

class Backend {
 public:
  virtual ~Backend() = default;

  /// Everything but `target` for a GPU, which the compiler's tables know. Makes no context.
  virtual DeviceInfo info() = 0;
  /// Compute capability × 10 (90 for Hopper); 0 on the CPU.
  virtual int capability() const = 0;

  /// Fresh memory, aligned to 512 bytes (4096 on the CPU). kMemory without sentence details: the allocator adds them.
  virtual Result<DeviceAddress> reserve(int64_t bytes) = 0;
  virtual void release(DeviceAddress address, int64_t bytes) = 0;
  /// Zeroed memory of the host that kernels read and write at the same address while the host does. It must not outlive
  /// the backend. kUnsupported on the CPU, where every memory is such.
  virtual Result<std::shared_ptr<void>> shared_memory(int64_t bytes) = 0;
  /// Bytes that reserve() could still give; -1 unknown, as on a GPU before its first use.
  virtual int64_t free_bytes() = 0;

  virtual Result<std::unique_ptr<StreamImpl>> new_stream() = 0;
  /// Of a handle in the vendor's own interface (a CUstream), which stays the caller's. kUnsupported on the CPU.
  virtual Result<std::unique_ptr<StreamImpl>> stream_of(void* native) = 0;
  virtual StreamImpl& default_stream() = 0;
  /// The stream of the calling thread's work that names none.
  StreamImpl& current_stream() {
    return chosen_stream && &chosen_stream->backend() == this ? *chosen_stream : default_stream();
  }
  /// The stream's handle in the vendor's own interface (a CUstream), for libraries that queue work themselves; the
  /// device is current on this thread afterwards. kUnsupported on the CPU.
  virtual Result<void*> native_stream(StreamImpl& stream) = 0;
  virtual Result<std::unique_ptr<EventImpl>> record(StreamImpl& stream) = 0;
  virtual Result<double> elapsed_ms(const EventImpl& from, EventImpl& to) = 0;
  virtual Status synchronize() = 0;

  /// kWhenDone: the copy is done when the call returns. kQueued: it is queued; the host's memory must be of
  /// shared_memory(), and must not change until the stream has passed the copy.
  enum class CopyReturns { kWhenDone, kQueued };
  virtual Status copy_in(DeviceAddress target, const void* source, size_t bytes, StreamImpl& stream,
                         CopyReturns returns = CopyReturns::kWhenDone) = 0;
  virtual Status copy_out(void* target, DeviceAddress source, size_t bytes, StreamImpl& stream,
                          CopyReturns returns = CopyReturns::kWhenDone) = 0;
  virtual Status copy(DeviceAddress target, DeviceAddress source, size_t bytes, StreamImpl& stream) = 0;
  /// `count` elements of 1, 2, 4 or 8 bytes, each the low bytes of `pattern`.
  virtual Status fill(DeviceAddress target, uint64_t pattern, int element_bytes, int64_t count, StreamImpl& stream) = 0;

  /// The assembler of this device, valid while the backend exists; null: it has none of its own.
  virtual const Assembler* assembler() = 0;
  virtual Result<std::shared_ptr<LoadedKernel>> load(const KernelImage& image) = 0;
  /// `slots` has 8 bytes per parameter. The slots are read before it returns; a fault shows at a later synchronize.
  /// kInterrupted: Ctrl-C ended it (the CPU). `timeout_s` > 0: it waits for the kernel that long at most, then fails
  /// with kLaunch; 0: KILN_TIMEOUT.
  virtual Status launch(const LoadedKernel& kernel, const Grid& grid, const uint64_t* slots, StreamImpl& stream,
                        double timeout_s = 0) = 0;
  /// Work of a library that computes on the calling thread: done, or recorded while the stream captures. The CPU only.
  virtual Status call(std::function<Status()> work, StreamImpl& stream) = 0;

  /// From here on the stream records what is put on it. What would need the host to wait fails with kUnsupported.
  virtual Status begin_capture(StreamImpl& stream) = 0;
  /// Ends it, also after a failure of the work in between. The result keeps the kernels that were launched, not the
  /// memory.
  virtual Result<std::unique_ptr<CapturedWork>> end_capture(StreamImpl& stream) = 0;
};

}  // namespace kiln::runtime
