#include "compiler/interp/dot.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "compiler/interp/eval.h"
#include "support/diag.h"

namespace kiln::interp {

namespace {

/// f32 bits with 10 bits of fraction, to nearest even; infinities and NaNs as they are.
uint64_t round_to_tf32(uint64_t bits) {
  const auto b = static_cast<uint32_t>(bits);
  if ((b & 0x7f800000u) == 0x7f800000u) return b;
  return (b + 0xfffu + (b >> 13 & 1)) & ~0x1fffu;
}

template <class Number>
std::vector<Number> numbers(const ir::Type& type, ir::Precision precision, std::span<const uint64_t> bits) {
  const bool tf32 = type.dtype == DType::kF32 && precision == ir::Precision::kTf32;
  std::vector<Number> out(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    if constexpr (std::is_integral_v<Number>)
      out[i] = static_cast<Number>(int_value(type.dtype, bits[i]));
    else
      out[i] = number_value(type.dtype, tf32 ? round_to_tf32(bits[i]) : bits[i]);
  }
  return out;
}

template <class Number, class Round>
void product(const ir::Type& a, const ir::Type& b, const ir::Type& c, ir::Precision precision,
             std::span<const uint64_t> a_bits, std::span<const uint64_t> b_bits, std::span<const uint64_t> c_bits,
             std::span<uint64_t> out, Round&& round) {
  const int rank = c.shape.rank;
  const auto m = static_cast<size_t>(c.shape[rank - 2]), n = static_cast<size_t>(c.shape[rank - 1]);
  const auto k = static_cast<size_t>(a.shape[rank - 1]);
  const std::vector<Number> left = numbers<Number>(a, precision, a_bits), right = numbers<Number>(b, precision, b_bits);
  const std::vector<Number> start = numbers<Number>(c, ir::Precision::kIeee, c_bits);
  KILN_ASSERT(left.size() % (m * k) == 0 && right.size() % (k * n) == 0 && out.size() == start.size());
  std::vector<Number> row(n);
  for (size_t i = 0; i < out.size() / n; ++i) {  // rows of all matrices of the batch
    const Number* from_right = right.data() + i / m * k * n;
    std::copy_n(start.data() + i * n, n, row.data());
    for (size_t t = 0; t < k; ++t) {
      const Number factor = left[i * k + t];
      for (size_t j = 0; j < n; ++j) row[j] += factor * from_right[t * n + j];
    }
    for (size_t j = 0; j < n; ++j) out[i * n + j] = round(row[j]);
  }
}

}  // namespace

void eval_dot(const ir::Type& a, const ir::Type& b, const ir::Type& c, ir::Precision precision,
              std::span<const uint64_t> a_bits, std::span<const uint64_t> b_bits, std::span<const uint64_t> c_bits,
              std::span<uint64_t> out) {
  auto run = [&]<class Number>(Number, auto&& round) {
    product<Number>(a, b, c, precision, a_bits, b_bits, c_bits, out, round);
  };
  if (c.is_int())
    run(uint64_t{}, [&](uint64_t v) { return v & element_mask(c.element_bits()); });
  else if (c.dtype == DType::kF64)
    run(static_cast<long double>(0), [](long double v) { return std::bit_cast<uint64_t>(static_cast<double>(v)); });
  else
    run(double{}, [&](double v) { return float_to_bits(c.dtype, v); });
}

}  // namespace kiln::interp
