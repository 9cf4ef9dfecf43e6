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
  /// current one meanwhile, are recorded and not run. Kernels must have been compiled for these arguments before, by a
  /// launch or compile(). No other thread may use the stream meanwhile.
  ///
  /// Addresses and numbers are recorded as they are: a replay reads what the same memory holds then. The graph keeps
  /// `work`, the kernels and the tensors that were their arguments.
  ///
  /// kUnsupported: `work` allocated a tensor, waited for the device, copied to or from the host, or captured itself.
  static Result<Graph> capture(const Device& device, std::function<Status()> work, const Stream& stream = {});

  explicit operator bool() const { return impl_ != nullptr; }
  /// Puts all of it on `stream` (empty: the one it was captured on), without waiting. kValue when a tensor that it uses
  /// was freed by free().
  Status launch(const Stream& stream = {}) const;
  /// How many launches, copies and fills there are.
  int64_t size() const;

 private:
  explicit Graph(std::shared_ptr<runtime::GraphImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<runtime::GraphImpl> impl_;
};

}  // namespace kiln
