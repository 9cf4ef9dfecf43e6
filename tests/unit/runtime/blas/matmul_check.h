// A matrix product held against float64, on whatever device: operands in every layout, a poisoned output, and a bound
// on each element's error that follows from the dtypes.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "kiln/blas.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"
#include "tests/unit/unit_roundoff.h"

namespace kiln::testing {

using Shape = std::vector<int64_t>;

inline uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

struct Product {
  DType a = DType::kF32, b = DType::kF32;
  std::optional<DType> d = {};  // asked for; unset: the default
  int64_t m = 1, n = 1, k = 1;
  int64_t a_batch = 0, b_batch = 0;  // 0: two dimensions
  bool a_transposed = false, b_transposed = false;
  int64_t gap = 0;  // elements between rows (of the operands as stored, and of the output)
  bool bias = false;
  MatmulOptions options = {};  // impl, activation, tf32, fast_accumulation, stream

  std::string text() const {
    return fmt::format("{} {}x{}x{} batches {},{} {}{} gap {}{} {} {}", name(a), m, n, k, a_batch, b_batch,
                       a_transposed ? "T" : "N", b_transposed ? "T" : "N", gap, bias ? " bias" : "",
                       name(options.activation), options.impl ? name(*options.impl) : "default");
  }
};

/// A matrix (or a batch) of random normals (small integers for i8) on the device, with `gap` elements between its rows,
/// or its columns when it is transposed.
inline Tensor make_operand(const Device& device, DType dtype, int64_t batch, int64_t rows, int64_t columns,
                           bool transposed, int64_t gap, uint64_t seed) {
  Device cpu = *open_device("cpu");
  int64_t outer = transposed ? columns : rows, inner = transposed ? rows : columns, ld = inner + gap;
  Shape stored = {std::max<int64_t>(batch, 1), outer, ld};
  Tensor all = is_float(dtype) ? *randn(cpu, dtype, stored, seed) : *randint(cpu, dtype, stored, -9, 10, seed);
  all = *all.to(device);
  Shape shape = {rows, columns}, strides = transposed ? Shape{1, ld} : Shape{ld, 1};
  if (batch > 0) shape.insert(shape.begin(), batch), strides.insert(strides.begin(), outer * ld);
  return *all.as_strided(shape, strides, 0);
}

/// The error of a sum of k products over the sum of their absolute values.
inline double sum_error(const Product& p, DType d, bool gpu) {
  double k = static_cast<double>(p.k);
  if (d == DType::kI32) return 0;
  if (d == DType::kF64) return (k + 1) * std::ldexp(1, -53);
  // Tensor cores cut where a CPU rounds; those of fp8 keep 13 bits of a sum of 32 products.
  if (is_fp8(p.a)) return (k / 32 + 1) * std::ldexp(1, -13);
  double e = (k + 1) * std::ldexp(1, gpu ? -23 : -24);
  if (p.options.tf32) e += std::ldexp(1, -9);
  // A product that is split along k may add its parts in the output's dtype.
  if (gpu && is_half(d)) e += unit_roundoff(d);
  return e;
}

inline double activate(Activation f, double x) {
  switch (f) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

/// What multiplies: it writes options.out and returns it.
using Multiply = std::function<Result<Tensor>(const Tensor& a, const Tensor& b, const MatmulOptions& options)>;

/// Runs the product with an output that was poisoned and compares all of it, the gaps of the output too. A product that
/// the library says it does not do is a failure, unless `unsupported` is given: then it is counted there.
inline void check_product(
    const Device& device, const Product& p, uint64_t seed, int* unsupported = nullptr,
    const Multiply& multiply = [](auto&&... args) { return matmul(args...); }) {
  SCOPED_TRACE(p.text() + fmt::format(" seed {}", seed));
  Tensor a = make_operand(device, p.a, p.a_batch, p.m, p.k, p.a_transposed, p.gap, seed);
  Tensor b = make_operand(device, p.b, p.b_batch, p.k, p.n, p.b_transposed, p.gap, seed + 1);
  DType d = p.d ? *p.d : is_fp8(p.a) ? DType::kBF16 : p.a == DType::kI8 ? DType::kI32 : p.a;
  int64_t batch = std::max(p.a_batch, p.b_batch), batches = std::max<int64_t>(batch, 1), ld = p.n + p.gap;
  constexpr double kPoison = 12345;
  Tensor all = *Tensor::full(device, d, Shape{batches, p.m, ld}, kPoison);
  double poison = all.numel() ? (*all.to_doubles())[0] : 0;
  Shape shape = {p.m, p.n}, strides = {ld, 1};
  if (batch > 0) shape.insert(shape.begin(), batch), strides.insert(strides.begin(), p.m * ld);
  MatmulOptions options = p.options;
  options.out = *all.as_strided(shape, strides, 0);
  if (p.bias) options.bias = *randn(*open_device("cpu"), d, Shape{p.n}, seed + 2)->to(device);
  auto result = multiply(a, b, options);
  if (unsupported && !result.ok() && result.error().kind == ErrorKind::kUnsupported) {
    ++*unsupported;
    return;
  }
  ASSERT_TRUE(result.ok()) << render(result.error());
  ASSERT_TRUE(device.synchronize().ok());
  ASSERT_EQ(Shape(result->shape().begin(), result->shape().end()), shape);
  ASSERT_EQ(result->dtype(), d);

  std::vector<double> x = *a.to_doubles(), y = *b.to_doubles(), got = *all.to_doubles(), bias;
  if (p.bias) bias = *options.bias.to_doubles();
  double factor = sum_error(p, d, device.is_cuda()), u = unit_roundoff(d);
  auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<double> sum(at(p.n)), magnitude(at(p.n));
  for (int64_t i = 0; i < batches; ++i)
    for (int64_t r = 0; r < p.m; ++r) {
      std::fill(sum.begin(), sum.end(), 0.0);
      std::fill(magnitude.begin(), magnitude.end(), 0.0);
      const double* row = x.data() + ((p.a_batch > 1 ? i * p.m : 0) + r) * p.k;
      const double* matrix = y.data() + (p.b_batch > 1 ? i * p.k * p.n : 0);
      for (int64_t q = 0; q < p.k; ++q)
        for (int64_t c = 0; c < p.n; ++c) {
          double product = row[q] * matrix[q * p.n + c];
          sum[at(c)] += product;
          magnitude[at(c)] += std::abs(product);
        }
      for (int64_t c = 0; c < p.n; ++c) {
        double before = sum[at(c)] + (p.bias ? bias[at(c)] : 0);
        double want = activate(p.options.activation, before);
        double bound = 1.2 * factor * (magnitude[at(c)] + std::abs(before)) + u * std::abs(want) + 1e-30;
        if (d == DType::kF16) bound += std::ldexp(1, -25);
        // cublasLt's tanh has 11 bits.
        if (p.options.activation == Activation::kGeluTanh) bound += std::ldexp(std::abs(before), -10);
        double have = got[at((i * p.m + r) * ld + c)];
        ASSERT_TRUE(std::abs(have - want) <= bound)
            << "batch " << i << " [" << r << ", " << c << "]: " << have << " for " << want << ", bound " << bound;
      }
      for (int64_t c = p.n; c < ld; ++c)
        ASSERT_EQ(got[at((i * p.m + r) * ld + c)], poison) << "the gap after row " << r << " was written";
    }
}

}  // namespace kiln::testing
