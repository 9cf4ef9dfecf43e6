#include "runtime/expr/host_error.h"

#include <algorithm>
#include <cmath>

#include "runtime/expr/host_scalar.h"
#include "support/float_bits.h"

namespace kiln::runtime {

namespace {

/// Half a unit in the last place of 1.
double unit(DType t) { return float_epsilon(t) / 2; }
/// … of what a kernel computes in.
double register_unit(DType t) { return unit(t == DType::kF64 ? t : DType::kF32); }

/// The units that a function of several instructions may be off.
constexpr double kFunctionUnits = 4;

/// What adding n numbers up does, as a part of the sum of their sizes: each lane adds some of a tile's up one after the
/// other, with roundings that go the same way where the numbers hardly vary; beyond, roundings are as random.
double sum_unit(size_t n, DType t) {
  constexpr double kTile = 8192, kLanes = 64;
  const auto count = static_cast<double>(n);
  return register_unit(t) * (1 + std::min(count, kTile) / kLanes + std::sqrt(count) / 4);
}

double error_at(const HostLine& x, size_t i) { return x.e ? x.e[i] : 0; }

double total_size(const HostLine& x) {
  double sum = 0;
  for (size_t i = 0; i < x.n; ++i) sum += std::fabs(x.v[i]);
  return sum;
}

/// √Σ (w e)²; w null: 1.
double root_square(const HostLine& x, const double* w = nullptr) {
  double sum = 0;
  for (size_t i = 0; i < x.n && x.e; ++i) sum += x.e[i] * x.e[i] * (w ? w[i] * w[i] : 1);
  return std::sqrt(sum);
}

/// A row's mean and how far it may be off, and its variance about it.
struct Moments {
  double mean = 0, mean_error = 0, square = 0, square_error = 0;
};

/// About the mean, or about 0. Where a row hardly varies, all of its elements may be off by the same.
Moments moments(const HostLine& x, bool about_mean) {
  Moments m;
  const auto n = static_cast<double>(x.n);
  double errors = 0;
  for (size_t i = 0; i < x.n; ++i) errors += error_at(x, i);
  if (about_mean) {
    for (size_t i = 0; i < x.n; ++i) m.mean += x.v[i] / n;
    m.mean_error = errors / n + sum_unit(x.n, x.dtype) * total_size(x) / n;
  }
  for (size_t i = 0; i < x.n; ++i) {
    const double away = x.v[i] - m.mean, e = error_at(x, i);
    m.square += away * away / n;
    m.square_error += (2 * std::fabs(away) * e + e * e) / n;
  }
  m.square_error += m.mean_error * m.mean_error + sum_unit(x.n, x.dtype) * m.square;
  return m;
}

}  // namespace

void add_rounding(HostArray& x) {
  x.error.resize(x.floats.size());
  for (size_t i = 0; i < x.floats.size(); ++i)
    if (std::isfinite(x.floats[i])) x.error[i] += unit(x.dtype) * std::fabs(x.floats[i]);
}

std::vector<double> pointwise_error(ExprOp op, std::span<const HostArray> in, const HostArray& out) {
  const size_t n = out.floats.size();
  std::vector<double> error(n), moved, shifted(n);
  const double own = info(op).flop > 1 ? kFunctionUnits * register_unit(out.dtype) : 0;
  for (size_t i = 0; i < n; ++i) error[i] = own * std::fabs(out.floats[i]);
  const double* operands[3] = {};
  for (size_t k = 0; k < in.size(); ++k) operands[k] = in[k].floats.data();
  for (size_t k = 0; k < in.size(); ++k) {
    if (in[k].error.empty()) continue;
    moved = in[k].floats;
    for (size_t i = 0; i < n; ++i) moved[i] += std::copysign(in[k].error[i], moved[i]);
    const double* with[3] = {operands[0], operands[1], operands[2]};
    with[k] = moved.data();
    host_floats<double>(op, with, shifted.data(), n);
    for (size_t i = 0; i < n; ++i) error[i] += std::fabs(shifted[i] - out.floats[i]);
  }
  for (double& e : error)
    if (!std::isfinite(e)) e = 0;  // of infinities there is nothing to say
  return error;
}

double reduce_error(ExprOp op, const HostLine& x, double value, double correction) {
  if (op == ExprOp::kMax || op == ExprOp::kMin) return x.e ? *std::max_element(x.e, x.e + x.n) : 0;
  if (op == ExprOp::kVar) {
    const auto n = static_cast<double>(x.n);
    return moments(x, true).square_error * n / std::max(1.0, n - correction);
  }
  const double sum = root_square(x) + sum_unit(x.n, x.dtype) * total_size(x);
  return op == ExprOp::kMean ? sum / static_cast<double>(x.n) : std::isfinite(value) ? sum : 0;
}

double place_error(ExprOp op, const HostLine& x, double place) {
  if (!x.e || x.n == 0) return 0;
  const auto best = static_cast<size_t>(place);
  double farthest = 0;
  for (size_t i = 0; i < x.n; ++i) {
    const double behind = op == ExprOp::kArgMax ? x.v[best] - x.v[i] : x.v[i] - x.v[best];
    // As far apart as compare() would let both be.
    if (behind <= 4 * (x.e[i] + x.e[best])) farthest = std::max(farthest, std::fabs(static_cast<double>(i) - place));
  }
  return farthest;
}

void scan_error(ExprOp op, const HostLine& x, const double* y, double* out) {
  double squares = 0, sizes = 0, parts = 0, most = 0;
  for (size_t i = 0; i < x.n; ++i) {
    const double e = error_at(x, i), own = sum_unit(i + 1, x.dtype);
    if (op == ExprOp::kCumMax || op == ExprOp::kCumMin) {
      out[i] = most = std::max(most, e);
      continue;
    }
    squares += e * e;
    sizes += std::fabs(x.v[i]);
    if (x.v[i] != 0) parts += e / std::fabs(x.v[i]);
    out[i] = op == ExprOp::kCumSum ? std::sqrt(squares) + own * sizes
                                   : std::fabs(y[i]) * (parts + static_cast<double>(i + 1) * register_unit(x.dtype));
    if (!std::isfinite(out[i])) out[i] = 0;
  }
}

void row_error(ExprOp op, const HostLine& x, const double* y, const HostLine& weight, const HostLine& bias, double eps,
               double* out) {
  const double each = kFunctionUnits * register_unit(x.dtype);
  if (op == ExprOp::kSoftmax || op == ExprOp::kLogSoftmax) {
    const bool log = op == ExprOp::kLogSoftmax;
    const double top = *std::max_element(x.v, x.v + x.n);
    double together = 0;
    for (size_t i = 0; i < x.n; ++i) together += (log ? std::exp(y[i]) : y[i]) * error_at(x, i);
    for (size_t i = 0; i < x.n; ++i) {
      const double of_exponent =
          error_at(x, i) + together + each * (1 + std::fabs(x.v[i] - top)) + sum_unit(x.n, x.dtype);
      out[i] = log ? of_exponent : of_exponent * y[i];
    }
  } else {
    const Moments m = moments(x, op == ExprOp::kLayerNorm);
    const double scale = 1 / std::sqrt(m.square + eps), of_scale = m.square_error * scale * scale / 2 + each;
    for (size_t i = 0; i < x.n; ++i) {
      const double norm = (x.v[i] - m.mean) * scale, w = weight.v ? weight.v[i] : 1;
      const double e = (error_at(x, i) + m.mean_error) * scale + std::fabs(norm) * of_scale;
      out[i] = e * std::fabs(w) + std::fabs(norm) * error_at(weight, i) + error_at(bias, i);
    }
  }
  for (size_t i = 0; i < x.n; ++i)
    if (!std::isfinite(out[i])) out[i] = 0;
}

void product_error(const double* y, const double* a, const double* ea, const double* b, const double* eb, int64_t m,
                   int64_t k, int64_t n, DType dtype, bool tf32, double* out) {
  // Σ|a||b| ≤ ‖a‖‖b‖, for each row and column.
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<double> rows(at(m)), row_errors(at(m)), columns(at(n)), column_errors(at(n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t e = 0; e < k; ++e) {
      rows[at(i)] += a[i * k + e] * a[i * k + e];
      if (ea) row_errors[at(i)] = std::max(row_errors[at(i)], ea[i * k + e]);
    }
  for (int64_t e = 0; e < k; ++e)
    for (int64_t j = 0; j < n; ++j) {
      columns[at(j)] += b[e * n + j] * b[e * n + j];
      if (eb) column_errors[at(j)] = std::max(column_errors[at(j)], eb[e * n + j]);
    }
  for (double& v : rows) v = std::sqrt(v);
  for (double& v : columns) v = std::sqrt(v);
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(1, k)));
  const double own = register_unit(dtype) * (1 + root / 4) + (tf32 ? 0x1p-11 / root : 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double& e = out[i * n + j];
      e = own * rows[at(i)] * columns[at(j)] + row_errors[at(i)] * columns[at(j)] + rows[at(i)] * column_errors[at(j)];
      // Tensor cores cut operands off to tf32: by 2^-11 on average, each towards zero, which no sum averages out.
      if (tf32) e += 0x1p-10 * std::fabs(y[i * n + j]);
      if (!std::isfinite(e)) e = 0;
    }
}

}  // namespace kiln::runtime
