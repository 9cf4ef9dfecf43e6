// Strided views: composition, and views that only rename dimensions.
#include <algorithm>
#include <bit>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

struct Dim {
  int64_t size, outer, inner;  // strides in the outer (row-major) index and in the operand
};

/// Row-major dimensions of `shape` with strides of the operand, merged where both run on.
std::vector<Dim> merged(const Shape& shape, const Shape& strides) {
  std::vector<Dim> dims;
  const Shape outer = row_major(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (!dims.empty() && dims.back().inner == strides[d] * shape[d])
      dims.back() = {dims.back().size * shape[d], outer[d], strides[d]};
    else
      dims.push_back({shape[d], outer[d], strides[d]});
  }
  return dims;
}

/// Zeros of either sign are two numbers, a NaN is one.
bool is_same_number(const Number& a, const Number& b) {
  const double *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  return x && y ? std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y) : a == b;
}

}  // namespace

bool is_same(const Operand& a, const Operand& b) {
  if (a.node != b.node) return false;
  if (a.is_number()) return a.argument == b.argument && is_same_number(a.number, b.number);
  if (a.shape != b.shape || a.offset != b.offset) return false;
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.strides[d] != b.strides[d] && a.shape[d] > 1) return false;
  return true;
}

bool is_whole(const Operand& o, const Shape& shape) {
  const Shape strides = row_major(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (o.shape == shape && o.strides[d] != strides[d] && shape[d] > 1) return false;
  return o.shape == shape && o.offset == 0;
}

std::optional<Operand> compose(const Operand& view, const Operand& operand) {
  Operand out = operand;
  out.shape = view.shape;
  out.strides.assign(view.shape.size(), 0);
  if (operand.is_number() || numel(view.shape) == 0) return out;
  const std::vector<Dim> dims = merged(operand.shape, operand.strides);
  std::vector<int64_t> last(dims.size());  // the greatest index along each
  int64_t rest = view.offset;
  for (size_t d = 0; d < dims.size(); ++d) {
    last[d] = rest / dims[d].outer;
    rest %= dims[d].outer;
    out.offset += last[d] * dims[d].inner;
  }
  for (size_t v = 0; v < view.shape.size(); ++v) {
    if (view.shape[v] == 1 || view.strides[v] == 0) continue;
    const auto at = std::find_if(dims.begin(), dims.end(), [&](const Dim& d) { return view.strides[v] >= d.outer; });
    if (at == dims.end() || view.strides[v] % at->outer != 0) return std::nullopt;
    const int64_t step = view.strides[v] / at->outer;
    last[static_cast<size_t>(at - dims.begin())] += step * (view.shape[v] - 1);
    out.strides[v] = step * at->inner;
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (last[d] >= dims[d].size) return std::nullopt;
  return out;
}

std::optional<Operand> reshape(const Operand& operand, const Shape& shape) {
  Operand flat;  // the new shape over the row-major index of the old
  flat.shape = shape;
  flat.strides = row_major(shape);
  return compose(flat, operand);
}

int64_t touched(const Operand& operand) {
  int64_t n = 1, span = 1;
  for (size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.strides[d] != 0) n *= operand.shape[d], span += (operand.shape[d] - 1) * std::abs(operand.strides[d]);
  return n == 0 ? 0 : std::min(n, span);  // windows share elements
}

std::optional<std::vector<int>> axis_map(const Operand& view, const Shape& shape) {
  if (view.offset != 0) return std::nullopt;
  const Shape strides = row_major(shape);
  std::vector<int> map(view.shape.size(), -1);
  std::vector<bool> taken(shape.size());
  for (size_t v = 0; v < view.shape.size(); ++v) {
    if (view.shape[v] == 1 || view.strides[v] == 0) continue;
    for (size_t d = 0; d < shape.size() && map[v] < 0; ++d)
      if (shape[d] == view.shape[v] && strides[d] == view.strides[v] && !taken[d]) {
        map[v] = static_cast<int>(d);
        taken[d] = true;
      }
    if (map[v] < 0) return std::nullopt;
  }
  for (size_t d = 0; d < shape.size(); ++d)
    if (!taken[d] && shape[d] != 1) return std::nullopt;
  return map;
}

}  // namespace kiln::fusion
