#include "profiler/compare/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "support/diag.h"

namespace kiln::profiler {

int64_t Values::index(size_t i) const {
  const int64_t at = static_cast<int64_t>(i);
  // Beside the first `head` elements, `data` has the last ones of the tensor.
  return at < head ? at : total - static_cast<int64_t>(data.size()) + at;
}

Result<Values> values_of(const Tensor& tensor, int64_t most) {
  Values v;
  v.dtype = tensor.dtype();
  v.shape.assign(tensor.shape().begin(), tensor.shape().end());
  v.total = tensor.numel();
  KILN_TRY(Tensor whole, tensor.contiguous());
  if (v.total <= most) {
    v.head = v.total;
    KILN_TRY(v.data, whole.to_doubles());
    return v;
  }
  // Both ends: what a kernel leaves out is mostly in its last block.
  v.head = most / 2;
  auto part = [&](int64_t from, int64_t count) -> Status {
    const int64_t shape[] = {count}, strides[] = {1};
    KILN_TRY(Tensor slice, whole.as_strided(shape, strides, whole.offset() + from));
    KILN_TRY(std::vector<double> numbers, slice.to_doubles());
    v.data.insert(v.data.end(), numbers.begin(), numbers.end());
    return {};
  };
  KILN_CHECK_OK(part(0, v.head));
  KILN_CHECK_OK(part(v.total - (most - v.head), most - v.head));
  return v;
}

double default_tolerance(DType dtype) {
  if (is_int(dtype)) return 0;
  // Epsilon of the type, with room for a long sum that is carried in f32 at best.
  switch (size_of(dtype)) {
    case 8:
      return 1e-9;
    case 4:
      return 1e-4;
    case 2:
      return dtype == DType::kF16 ? 4e-3 : 3e-2;
    default:
      return 0.25;
  }
}

ResultCheck check_values(const Values& got, const Values& want, double tolerance) {
  ResultCheck c;
  c.tolerance = tolerance;
  c.total = got.total;
  c.checked = static_cast<int64_t>(got.data.size());
  if (got.shape != want.shape || got.data.size() != want.data.size()) {
    c.unknown = fmt::format("its result has the shape [{}], the reference [{}]", fmt::join(got.shape, ", "),
                            fmt::join(want.shape, ", "));
    return c;
  }
  double squares = 0;
  int64_t finite = 0;
  for (double w : want.data)
    if (std::isfinite(w)) squares += w * w, ++finite;
  // The root mean square: an element near 0 is held to what is usual around it, as its own relative error says nothing.
  const double scale = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  for (size_t i = 0; i < got.data.size(); ++i) {
    const double g = got.data[i], w = want.data[i];
    // Infinities are equal to themselves here, where their difference would be NaN.
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const bool nan = std::isnan(g);
    const double away = std::abs(g - w), relative = away / std::max(std::abs(w), scale);
    if (nan) ++c.nans;
    if (!nan) c.max_abs = std::max(c.max_abs, away), c.max_rel = std::max(c.max_rel, relative);
    // Not `relative > tolerance`, which a NaN would pass.
    if (c.first_bad < 0 && !(relative <= tolerance)) c.first_bad = got.index(i);
  }
  return c;
}

std::string ResultCheck::text() const {
  if (!known()) return "–";
  if (nans > 0) return fmt::format("NaN at {}", first_bad);
  if (!ok()) return fmt::format("{:.1e} WRONG at {}", max_rel, first_bad);
  return max_rel == 0 ? "0 ok" : fmt::format("{:.1e} ok", max_rel);
}

}  // namespace kiln::profiler
