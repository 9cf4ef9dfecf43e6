// The words in which the parts of a scan tell each other their totals (fusion::Value::zeros). A kernel leaves them so
// that its next launch knows what is of it: they are 0 before the first one alone.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "compiler/fusion/graph.h"
#include "kiln/tensor.h"

namespace kiln::runtime {

class Totals {
 public:
  Totals();
  Totals(const Totals& other);  // words of its own: an edited kernel may leave others
  ~Totals();

  /// Words of the plan's value with that number, for kernels of the thread's current stream, one at a time. Fresh ones
  /// while it is captured, which each replay clears, and for more streams than a few.
  Result<Tensor> of_stream(const Device& device, size_t value, const fusion::Shape& shape) const;

 private:
  struct Words;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<uint64_t, size_t>, std::unique_ptr<Words>> words_;
};

}  // namespace kiln::runtime
