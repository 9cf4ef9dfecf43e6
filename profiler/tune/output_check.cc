#include "profiler/tune/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::profiler {

namespace {

// Elements per tensor that are compared as numbers once its bytes differ: the first, the last, and some of those
// between.
constexpr size_t kDense = size_t{1} << 20, kSparse = size_t{1} << 21;

bool same_view(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() &&
         std::ranges::equal(a.shape(), b.shape()) && std::ranges::equal(a.strides(), b.strides());
}

/// Calls `visit` with the elements to look at until it returns false.
template <class Visit>
void some_elements(size_t count, Visit&& visit) {
  const size_t step = count <= 2 * kDense + kSparse ? 1 : std::max<size_t>(1, (count - 2 * kDense) / kSparse);
  for (size_t i = 0; i < count;) {
    visit(i);
    i += i < kDense || i + kDense >= count ? 1 : std::min(step, count - kDense - i);
  }
}

double largest_of(DType dtype, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(size_of(dtype));
  double largest = 0;
  some_elements(bytes.size() / size, [&](size_t i) {
    const double v = std::abs(to_double(dtype, &bytes[i * size]));
    if (std::isfinite(v)) largest = std::max(largest, v);
  });
  return largest;
}

std::string worst_difference(DType dtype, const std::vector<std::byte>& got, const std::vector<std::byte>& want) {
  if (got == want) return "";
  const auto size = static_cast<size_t>(size_of(dtype));
  const double largest = largest_of(dtype, want);
  double worst = 1;  // in units of what is allowed
  std::string text;
  some_elements(want.size() / size, [&](size_t i) {
    const double g = to_double(dtype, &got[i * size]), w = to_double(dtype, &want[i * size]);
    if (g == w || (std::isnan(g) && std::isnan(w))) return;
    const double allowed = allowed_difference(dtype, w, largest);
    const double off = std::isfinite(g) && std::isfinite(w) ? std::abs(g - w) / std::max(allowed, 1e-300)
                                                            : std::numeric_limits<double>::infinity();
    if (!(off > worst)) return;
    worst = off;
    text = fmt::format("at {}: {} instead of {}", i, g, w);
  });
  return text;
}

/// The bytes of `before` with `poison` where `got`, computed from a tensor that was `fill` throughout, is what was
/// wanted. Nothing where some element is neither that nor as it was filled: the kernel reads the tensor.
std::optional<std::vector<std::byte>> poisoned(DType dtype, std::vector<std::byte> before,
                                               const std::vector<std::byte>& got, const std::vector<std::byte>& want,
                                               double fill, double poison) {
  const auto size = static_cast<size_t>(size_of(dtype));
  const double largest = largest_of(dtype, want);
  std::vector<std::byte> value(size), filled(size);
  from_double(dtype, poison, value.data());
  from_double(dtype, fill, filled.data());
  bool any = false;
  for (size_t i = 0; i < got.size(); i += size) {
    if (std::memcmp(&got[i], filled.data(), size) == 0) continue;  // not written, or that by chance
    if (std::memcmp(&got[i], &want[i], size) != 0) {
      const double g = to_double(dtype, &got[i]), w = to_double(dtype, &want[i]);
      if (!(std::isnan(g) && std::isnan(w)) && !(std::abs(g - w) <= allowed_difference(dtype, w, largest)))
        return std::nullopt;
    }
    std::copy(value.begin(), value.end(), before.begin() + static_cast<std::ptrdiff_t>(i));
    any = true;
  }
  return any ? std::optional(std::move(before)) : std::nullopt;
}

/// 0, or 1 where every element is 0 already.
double another_value(DType dtype, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<size_t>(size_of(dtype));
  for (size_t i = 0; i < bytes.size(); i += size)
    if (to_double(dtype, &bytes[i]) != 0) return 0;
  return 1;
}

/// A value that a tensor of integers does not hold, or holds rarely where it holds them all.
double unwritten_value(DType dtype, const std::vector<std::byte>& bytes) {
  constexpr double kCandidates[] = {85, 77, 1, 0};  // they fit every dtype but bool
  const auto size = static_cast<size_t>(size_of(dtype));
  for (double candidate : kCandidates) {
    if (dtype == DType::kI1 && candidate > 1) continue;
    bool found = false;
    for (size_t i = 0; i < bytes.size() && !found; i += size) found = to_double(dtype, &bytes[i]) == candidate;
    if (!found) return candidate;
  }
  return dtype == DType::kI1 ? 1 : 85;
}

}  // namespace

double allowed_difference(DType dtype, double want, double largest) {
  if (is_int(dtype)) return 0;
  if (dtype == DType::kF64) return 0x1p-40 * largest;
  // Sums are kept in f32, or tf32's products in it; what they are rounded to adds its own half unit on either side.
  constexpr double kSums = 0x1p-13;
  const double epsilon = is_fp8(dtype) ? 0x1p-2 : float_epsilon(dtype);  // of the coarser fp8 format
  return 2 * epsilon * std::abs(want) + kSums * largest;
}

Result<OutputCheck> OutputCheck::make(std::vector<Tensor> tensors) {
  OutputCheck check;
  for (Tensor& t : tensors) {
    if (!t || t.numel() == 0) continue;
    if (std::any_of(check.tensors_.begin(), check.tensors_.end(), [&](const Tensor& o) { return same_view(t, o); }))
      continue;
    KILN_TRY(Tensor copy, Tensor::empty(t.device(), t.dtype(), t.shape()));
    KILN_CHECK_OK(copy.copy_from(t));
    check.tensors_.push_back(std::move(t));
    check.saved_.push_back(std::move(copy));
  }
  return check;
}

Status OutputCheck::restore() {
  for (size_t i = 0; i < tensors_.size(); ++i) KILN_CHECK_OK(tensors_[i].copy_from(saved_[i]));
  return {};
}

Status OutputCheck::take_reference(const std::function<Status()>& launch, const std::function<Status()>& guarded) {
  KILN_CHECK_OK(restore());
  KILN_CHECK_OK(launch());
  std::vector<std::vector<std::byte>> wanted;
  for (const Tensor& t : tensors_) {
    KILN_TRY(std::vector<std::byte> bytes, t.to_bytes());
    wanted.push_back(std::move(bytes));
  }
  // An element that comes out as the reference whatever was in it is one that the kernel writes without reading.
  poisoned_.assign(tensors_.size(), std::nullopt);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const DType dtype = tensors_[i].dtype();
    const std::function<Status()>& probe = is_float(dtype) ? launch : guarded;
    if (!probe) continue;
    KILN_TRY(std::vector<std::byte> before, saved_[i].to_bytes());
    const double other = another_value(dtype, before);
    KILN_CHECK_OK(restore());
    KILN_CHECK_OK(tensors_[i].fill(other));
    if (Status s = probe(); !s.ok()) {
      if (is_float(dtype) || s.error().kind != ErrorKind::kLaunch) return s;
      continue;  // it was an index
    }
    KILN_TRY(std::vector<std::byte> got, tensors_[i].to_bytes());
    const double poison =
        is_float(dtype) ? std::numeric_limits<double>::quiet_NaN() : unwritten_value(dtype, wanted[i]);
    if (auto bytes = poisoned(dtype, std::move(before), got, wanted[i], other, poison)) {
      KILN_TRY(Tensor t,
               Tensor::from_host(tensors_[i].device(), dtype, tensors_[i].shape(), bytes->data(), bytes->size()));
      poisoned_[i] = std::move(t);
    }
  }
  wanted_ = std::move(wanted);
  return restore();
}

Result<std::string> OutputCheck::differs(const std::function<Status()>& launch) {
  KILN_CHECK_OK(restore());
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (poisoned_[i]) KILN_CHECK_OK(tensors_[i].copy_from(*poisoned_[i]));
  KILN_CHECK_OK(launch());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    KILN_TRY(std::vector<std::byte> got, tensors_[i].to_bytes());
    const std::string text = worst_difference(tensors_[i].dtype(), got, wanted_[i]);
    if (!text.empty()) return fmt::format("tensor {} {}", i, text);
  }
  return std::string();
}

}  // namespace kiln::profiler
