#include "repl/modules/torch/memory_order.h"

#include <algorithm>
#include <numeric>

namespace kiln::script {

bool is_dense(const Tensor& t) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < t.shape().size(); ++d)
    // A dimension of size 1 may have any stride.
    if (t.shape()[d] != 1) dims.push_back(d);
  std::sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return t.strides()[a] < t.strides()[b]; });
  int64_t step = 1;
  for (const size_t d : dims) {
    if (t.strides()[d] != step) return false;
    step *= t.shape()[d];
  }
  return t.numel() > 0;
}

std::vector<int> memory_order(const Tensor& t) {
  std::vector<int> order(t.shape().size());
  std::iota(order.begin(), order.end(), 0);
  // Stable, so that equal strides stay in the order of the dimensions.
  std::ranges::stable_sort(order, std::ranges::greater(), [&](int d) { return t.strides()[static_cast<size_t>(d)]; });
  return order;
}

std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[static_cast<size_t>(order[i])] = static_cast<int>(i);
  return out;
}

Tensor in_memory_order(Interp& in, const Tensor& t, const std::function<Result<Tensor>(const Tensor&)>& make) {
  // Not dense: there are elements in between, which belong to others.
  if (t.is_freed() || t.is_contiguous() || !is_dense(t)) return in.take(make(t));
  // All elements are neighbours, so the operation sees one dimension, and the result takes the strides over.
  const int64_t elements[] = {t.numel()}, steps[] = {1};
  const Tensor flat = in.take(make(in.take(t.as_strided(elements, steps, t.offset()))));
  return in.take(flat.as_strided(t.shape(), t.strides(), flat.offset()));
}

}  // namespace kiln::script
