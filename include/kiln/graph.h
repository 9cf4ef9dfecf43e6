// Work recorded once and put on a stream again with one call: a CUDA graph, or on the CPU a list of launches.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "kiln/device.h"
#include "kiln/result.h"

namespace kiln {

namespace runtime {
class GraphImpl;
}

class Graph {
 public:
  Graph() = default;

  /// Calls `work` once; the launches, copies and fills that it puts on `stream` (empty: the current one), which is the
  /// current one meanwhile, are recorded and not run. No other thread may use the stream meanwhile.
  ///
  /// Addresses and numbers are recorded as they are: a replay reads what the same memory holds then. The graph keeps
  /// `work`, the kernels, and the tensors of before that were their arguments. Tensors that `work` makes are in memory
  /// of the graph's own: those that are still held when it ends have their elements after a replay, the others' memory
  /// is used again by the same graph alone, and given back with it.
  ///
  /// kUnsupported: `work` waited for the device, copied to or from the host, or captured itself.
  static Result<Graph> capture(const Device& device, std::function<Status()> work, const Stream& stream = {});

  explicit operator bool() const { return impl_ != nullptr; }
  /// Nothing is kept any more than by other handles.
  void reset() { impl_.reset(); }
  /// Puts all of it on `stream` (empty: the one it was captured on), without waiting. kValue when a tensor that it uses
  /// was freed by free().
  Status launch(const Stream& stream = {}) const;
  /// How many launches, copies and fills there are.
  int64_t size() const;

 private:
  friend class GraphCapture;
  explicit Graph(std::shared_ptr<runtime::GraphImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<runtime::GraphImpl> impl_;
};

/// Graph::capture() in two steps, for what is no function. The thread's current stream is the captured one between
/// them. A capture that is not ended is thrown away.
class GraphCapture {
 public:
  static Result<GraphCapture> begin(const Device& device, const Stream& stream = {});
  GraphCapture(GraphCapture&&) noexcept;
  GraphCapture& operator=(GraphCapture&&) = delete;
  ~GraphCapture();
  /// Once, on the thread that began it.
  Result<Graph> end();

 private:
  GraphCapture(std::shared_ptr<runtime::GraphImpl> impl, Stream queue);
  std::shared_ptr<runtime::GraphImpl> impl_;  // null once it was ended
  Stream queue_;                              // that is captured, whatever is current when it ends
  std::unique_ptr<StreamGuard> guard_;
};

}  // namespace kiln
