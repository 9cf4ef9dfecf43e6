#include "runtime/expr/turns.h"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "compiler/fusion/join_totals.h"
#include "kiln/interop.h"
#include "runtime/device/device.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

/// A block of counters, one for each row of programs that count (fusion::kMostTurns).
class Turns : public Companion {
 public:
  static constexpr int64_t kWords = fusion::kMostTurns, kBytes = 4 * kWords, kCount = 1024;

  static Result<std::unique_ptr<Companion>> make(DeviceImpl& device) {
    auto turns = std::unique_ptr<Turns>(new Turns(device));
    // On a stream that nobody captures, and done before any other one counts.
    KILN_TRY(const Stream stream, Device(device.shared_from_this()).new_stream());
    KILN_TRY(turns->block_, device.allocator().allocate(kBytes * kCount, *stream.impl()));
    KILN_CHECK_OK(device.backend().fill(turns->block_->address, 0, 1, kBytes * kCount, *stream.impl()));
    KILN_CHECK_OK(stream.synchronize());
    return std::unique_ptr<Companion>(std::move(turns));
  }
  ~Turns() override {
    if (block_) device_.allocator().free(block_);
  }

  /// Of the stream with that number, which no other stream ever has; nullopt where all are taken.
  std::optional<DeviceAddress> of_stream(uint64_t id) {
    std::lock_guard lock(mutex_);
    if (const auto known = of_streams_.find(id); known != of_streams_.end()) return known->second;
    std::optional<DeviceAddress> mine = take();
    if (mine) of_streams_[id] = *mine;
    return mine;
  }

  /// Somebody's until give_back().
  std::optional<DeviceAddress> taken() {
    std::lock_guard lock(mutex_);
    return take();
  }
  void give_back(DeviceAddress address) {
    std::lock_guard lock(mutex_);
    free_.push_back(address);
  }

 private:
  explicit Turns(DeviceImpl& device) : device_(device) {}

  std::optional<DeviceAddress> take() {
    if (!free_.empty()) {
      const DeviceAddress address = free_.back();
      free_.pop_back();
      return address;
    }
    if (next_ == kCount) return std::nullopt;
    return block_->address + static_cast<DeviceAddress>(kBytes * next_++);
  }

  DeviceImpl& device_;
  Block* block_ = nullptr;
  std::mutex mutex_;
  std::map<uint64_t, DeviceAddress> of_streams_;
  std::vector<DeviceAddress> free_;
  int64_t next_ = 0;
};

/// Gives a graph's counter back with the graph.
struct Lent {
  Turns& turns;
  DeviceAddress address;
  ~Lent() { turns.give_back(address); }
};

}  // namespace

Result<Tensor> turns_of_stream(const Device& device) {
  constexpr int64_t kShape[] = {Turns::kWords};  // where all counters are taken
  DeviceImpl& impl = *device.impl();
  KILN_TRY(Companion * companion, impl.companion("turns", Turns::make));
  auto& turns = *static_cast<Turns*>(companion);
  StreamImpl& stream = impl.backend().current_stream();
  if (!stream.is_capturing()) {
    const auto address = turns.of_stream(stream.id());
    return address ? tensor_from_memory(device, DType::kI32, {}, {}, {*address, Turns::kBytes, nullptr})
                   : Tensor::zeros(device, DType::kI32, kShape);
  }
  std::shared_ptr<Storage>& of_graph = stream.graph_turns();
  if (!of_graph) {
    Tensor made;
    if (const auto address = turns.taken()) {
      KILN_TRY(made, tensor_from_memory(device, DType::kI32, {}, {},
                                        {*address, Turns::kBytes, std::make_shared<Lent>(turns, *address)}));
      stream.keep_for_graph(made.storage());
    } else {
      KILN_TRY(made, Tensor::zeros(device, DType::kI32, kShape));  // in each replay
    }
    of_graph = made.storage();
  }
  return tensor_from_memory(device, DType::kI32, {}, {}, {of_graph->address(), Turns::kBytes, of_graph});
}

}  // namespace kiln::runtime
