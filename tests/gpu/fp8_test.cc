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

}  // namespace
}  // namespace kiln::runtime
