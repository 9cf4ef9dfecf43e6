// Products of fp8 by mma.sync on a real GPU: constants, and every number that the formats have.
#include <cmath>
#include <cstdlib>

#include "kiln/kernel.h"
#include "support/float_bits.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using Args = std::vector<std::optional<Arg>>;
using Shape = std::vector<int64_t>;

constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def zero_product(out, x, xs, n, T: tl.constexpr):
    i = tl.arange(0, 64)
    # ptxas 13.0.88 has this 0 and those of the product in one register, and then takes the product's wrongly apart.
    v = tl.load(x + i, mask=i < n, other=0)
    a = tl.zeros((32, 64), tl.float32).to(T)
    b = tl.full((64, 16), 4.0, tl.float32).to(T)
    acc = tl.dot(a, b)
    acc = tl.dot(a, b, acc)
    m = tl.arange(0, 32)[:, None]
    k = tl.arange(0, 16)[None, :]
    tl.store(out + m * 16 + k, acc)
    tl.store(xs + i, v, mask=i < n)


@triton.jit
def product(x, y, out):
    m = tl.program_id(0) * 32 + tl.arange(0, 32)[:, None]
    k = tl.arange(0, 64)
    n = tl.arange(0, 16)
    # Loads of single bytes with a row's elements far apart: no block of a tensor, and so no wgmma.
    a = tl.load(x + m + k[None, :] * 256)
    b = tl.load(y + k[:, None] * 16 + n[None, :])
    tl.store(out + m * 16 + n[None, :], tl.dot(a, b))


@triton.jit
def experts(a, b, c, a_scale, b_scale, rows, n, k, stride_s):
    row = tl.load(rows + tl.program_id(0) * 64 + tl.arange(0, 64))
    inside = row < n
    column = tl.arange(0, 128)
    depth = tl.arange(0, 128)
    pa = a + row[:, None] * k + depth[None, :]
    pb = b + depth[:, None] + column[None, :] * k
    acc = tl.zeros((64, 128), tl.float32)
    for i in range(0, tl.cdiv(k, 128)):
        x = tl.load(pa, mask=inside[:, None] & (depth[None, :] < k - i * 128), other=0.0)
        y = tl.load(pb, mask=depth[:, None] < k - i * 128, other=0.0)
        xs = tl.load(a_scale + row * stride_s + i, mask=inside, other=0.0)
        ys = tl.load(b_scale + column // 32 * stride_s + i)
        acc += tl.dot(x, y) * xs[:, None] * ys[None, :]
        pa += 128
        pb += 128
    tl.store(c + row[:, None] * 128 + column[None, :], acc, mask=inside[:, None])
)";

Kernel make(const char* name) {
  auto kernel = Kernel::from_source(kSource, "fp8_test.py", name);
  EXPECT_TRUE(kernel.ok()) << render(kernel.error());
  return *kernel;
}

TEST(GpuFp8, AProductOfZerosIsZero) {
  GPU_OR_SKIP(device);
  for (DType type : {DType::kF8E5M2, DType::kF8E4M3})
    for (DType other : {DType::kI32, DType::kU16}) {
      SCOPED_TRACE(std::string(name(type)) + " beside " + std::string(name(other)));
      Tensor x = *randint(device, other, Shape{64}, 0, 50, 1), xs = *Tensor::zeros(device, other, Shape{64}),
             out = *Tensor::empty(device, DType::kF32, Shape{32, 16});
      ASSERT_OK(out.fill(77));
      ASSERT_OK(make("zero_product").launch({1, 1, 1}, Args{out, x, xs, int64_t{33}, type}));
      const std::vector<double> got = *out.to_doubles();
      for (double v : got) ASSERT_EQ(v, 0);
    }
}

// Row m of A has the number of bits m at one place and zeros elsewhere; columns of B have one number each.
TEST(GpuFp8, EveryNumber) {
  GPU_OR_SKIP(device);
  for (DType left : {DType::kF8E5M2, DType::kF8E4M3})
    for (DType right : {DType::kF8E5M2, DType::kF8E4M3}) {
      SCOPED_TRACE(std::string(name(left)) + " by " + std::string(name(right)));
      std::vector<std::byte> x(256 * 64), y(64 * 16);
      for (size_t m = 0; m < 256; ++m) x[m * 7 % 64 * 256 + m] = static_cast<std::byte>(m);
      std::vector<double> factors;
      for (size_t n = 0; n < 16; ++n) {
        const uint64_t bits =
            float_to_bits(right, std::ldexp(1 + 0.25 * static_cast<double>(n % 4), static_cast<int>(n) - 8));
        factors.push_back(float_from_bits(right, bits));
        for (size_t k = 0; k < 64; ++k) y[k * 16 + n] = static_cast<std::byte>(bits);
      }
      Tensor a = *Tensor::from_host(device, left, Shape{64, 256}, x.data(), x.size()),
             b = *Tensor::from_host(device, right, Shape{64, 16}, y.data(), y.size()),
             out = *Tensor::zeros(device, DType::kF32, Shape{256, 16});
      ASSERT_OK(make("product").launch({8, 1, 1}, Args{a, b, out}));
      const std::vector<double> got = *out.to_doubles();
      for (size_t m = 0; m < 256; ++m)
        for (size_t n = 0; n < 16; ++n) {
          const double want = float_from_bits(left, m) * factors[n], have = got[m * 16 + n];
          ASSERT_TRUE(have == want || (std::isnan(have) && std::isnan(want)))
              << "bits " << m << " times " << factors[n] << " gave " << have << ", not " << want;
        }
    }
}

/// Rows found through an index, with scales that are converted while the products run. All numbers are small integers
/// and powers of two: the sums are exact.
TEST(GpuFp8, ScaledBlocksOfGatheredRows) {
  GPU_OR_SKIP(device);
  for (const int64_t k : {128, 208, 1152}) {
    SCOPED_TRACE(k);
    const int64_t tokens = 301, programs = 5, scales = (k + 127) / 128;
    auto drawn = [&](int64_t count, int64_t low, int64_t high, uint64_t seed) {
      return *randint(device, DType::kI32, Shape{count}, low, high, seed)->to_doubles();
    };
    auto fp8 = [&](const std::vector<double>& values, int64_t height) {
      std::vector<std::byte> bytes;
      for (double v : values) bytes.push_back(static_cast<std::byte>(float_to_bits(DType::kF8E4M3, v)));
      return *Tensor::from_host(device, DType::kF8E4M3, Shape{height, k}, bytes.data(), bytes.size());
    };
    auto floats = [&](const std::vector<double>& values) {
      const std::vector<float> narrow(values.begin(), values.end());
      return *Tensor::from_host(device, DType::kF32, Shape{static_cast<int64_t>(values.size())}, narrow.data(),
                                narrow.size() * sizeof(float));
    };
    const std::vector<double> a = drawn(tokens * k, -4, 5, 1), b = drawn(128 * k, -4, 5, 2);
    std::vector<double> as = drawn(tokens * scales, -2, 3, 3), bs = drawn(4 * scales, -2, 3, 4);
    for (std::vector<double>* s : {&as, &bs})
      for (double& v : *s) v = std::ldexp(1, static_cast<int>(v));
    // Each row once, from the last on, and then rows that do not exist.
    std::vector<int32_t> order;
    for (int64_t i = 0; i < programs * 64; ++i)
      order.push_back(static_cast<int32_t>(i < tokens ? tokens - 1 - i : tokens));
    Tensor rows = *Tensor::from_host(device, DType::kI32, Shape{programs * 64}, order.data(), order.size() * 4),
           out = *Tensor::empty(device, DType::kF32, Shape{tokens, 128});
    ASSERT_OK(out.fill(77));
    ASSERT_OK(make("experts").launch(
        {static_cast<uint32_t>(programs), 1, 1},
        Args{fp8(a, tokens), fp8(b, 128), out, floats(as), floats(bs), rows, tokens, k, scales}));
    const std::vector<double> got = *out.to_doubles();
    for (int64_t m = 0; m < tokens; ++m)
      for (int64_t n = 0; n < 128; ++n) {
        double want = 0;
        for (int64_t i = 0; i < k; ++i)
          want += a[static_cast<size_t>(m * k + i)] * b[static_cast<size_t>(n * k + i)] *
                  as[static_cast<size_t>(m * scales + i / 128)] * bs[static_cast<size_t>(n / 32 * scales + i / 128)];
        ASSERT_EQ(got[static_cast<size_t>(m * 128 + n)], want) << m << ", " << n;
      }
  }
}

}  // namespace
}  // namespace kiln::runtime
