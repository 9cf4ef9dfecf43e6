// Where a stable sort puts the elements of a line, on the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "kiln/dtype.h"

namespace kiln::script {

/// Sorts lines of one dtype: NaN is the greatest, -0.0 equals 0.0, and equal elements keep their order. Its memory
/// serves one line after another.
class LineOrder {
 public:
  /// `pause` is called every few milliseconds and may throw.
  LineOrder(DType dtype, bool descending, std::function<void()> pause);
  ~LineOrder();

  /// Writes where the first places.size() elements of the sorted line are. `line` has `length` packed elements.
  void first(const std::byte* line, size_t length, std::span<int64_t> places);

  /// Where the element is that a sort puts at `rank`, which is below `length`; with `nan_first`, where the first NaN is
  /// if there is one. Of sorters that do not descend.
  int64_t ranked(const std::byte* line, size_t length, size_t rank, bool nan_first);

 private:
  struct Implementation;
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace kiln::script
