// What the functions of the standard library compute (frontend/stdlib), run on the interpreter and compared with C++.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "tests/unit/frontend/random_inputs.h"
#include "tests/unit/frontend/run_kernel.h"

namespace kiln::frontend::testing {
namespace {

/// Philox-4x32-10 as its authors describe it.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, uint32_t k0, uint32_t k1) {
  // Ten rounds, as the name says.
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

TEST(StandardLibrary, HelpersOfTorchCompile) {
  auto rng = generator();
  std::vector<float> x = random_floats(rng, 32), out(4);
  Launch(R"(
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

@triton.jit
def k(x, out, n, BLOCK: tl.constexpr):
    mean = tl.zeros([1, BLOCK], tl.float32) + 7
    m2 = tl.zeros([1, BLOCK], tl.float32) + 7
    weight = tl.zeros([1, BLOCK], tl.float32) + 7
    greatest = tl.full([1, BLOCK], float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        v = tl.load(x + start + tl.arange(0, BLOCK)[None, :])
        mean, m2, weight = triton_helpers.welford_reduce(v, mean, m2, weight, start == 0)
        greatest = triton_helpers.maximum(greatest, v)
    one_mean, one_m2, one_weight = triton_helpers.welford(mean, m2, weight, 1)
    i = tl.arange(0, 1)
    tl.store(out + i, one_mean)
    tl.store(out + 1 + i, one_m2)
    tl.store(out + 2 + i, one_weight)
    tl.store(out + 3 + i, tl_math.abs(libdevice.trunc(triton_helpers.max2(greatest, 1))))
)",
         "signature=*fp32,*fp32,i32 BLOCK=8")
      .buffer(x)
      .buffer(out)
      .value(32)
      .run({1, 1, 1});
  // The variance in two passes, as Welford's way must give it in one.
  double mean = 0, m2 = 0;
  for (float v : x) mean += v / 32.0;
  for (float v : x) m2 += (v - mean) * (v - mean);
  EXPECT_NEAR(out[0], mean, 1e-5);
  EXPECT_NEAR(out[1], m2, 1e-3);
  // The weight is the number of elements.
  EXPECT_EQ(out[2], 32);
  EXPECT_EQ(out[3], std::abs(std::trunc(*std::max_element(x.begin(), x.end()))));
}

TEST(StandardLibrary, IntegerAndIndexHelpersOfTorchCompile) {
  std::vector<int32_t> a, b;
  // All signs of both operands.
  for (int x = -8; x < 8; ++x)
    for (int y : {-3, -1, 2, 5}) a.push_back(x), b.push_back(y);
  std::vector<int32_t> quotients(64), rests(64), by_three(64), indices(8);
  std::vector<float> values = {3, 1, 1, 7, NAN, 7, NAN, 0, -1, 5, 5, -1, 2, 2, 2, 2}, extremes(6);
  Launch(R"(
from torch._inductor.runtime import triton_helpers

@triton.jit
def k(a, b, quotients, rests, by_three, values, extremes, indices, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    y = tl.load(b + i)
    tl.store(quotients + i, triton_helpers.div_floor_integer(x, y))
    tl.store(rests + i, triton_helpers.remainder_integer(x, y))
    tl.store(by_three + i, triton_helpers.div_floor_integer(x, 3))
    row = tl.arange(0, 2)
    at = tl.arange(0, 8)[None, :] + tl.zeros([2, 1], tl.int32)
    v = triton_helpers.device_assert_then(at < 8, "inside", tl.load(values + row[:, None] * 8 + at))
    least, least_at = triton_helpers.min_with_index(v, at, 1)
    most, most_at = triton_helpers.max_with_index(v, at, 1)
    tl.store(extremes + row, least)
    tl.store(extremes + 2 + row, most)
    tl.store(extremes + 4 + row, triton_helpers.select_one(v, at == 6, 1))
    tl.store(indices + row, least_at)
    tl.store(indices + 2 + row, most_at)
    whole, whole_at = triton_helpers.max_with_index(v.to(tl.int32), at, 1)
    tl.store(indices + 4 + row, whole_at)
)",
         "signature=*i32,*i32,*i32,*i32,*i32,*fp32,*fp32,*i32 N=64 debug=1")
      .buffer(a)
      .buffer(b)
      .buffer(quotients)
      .buffer(rests)
      .buffer(by_three)
      .buffer(values)
      .buffer(extremes)
      .buffer(indices)
      .run({1, 1, 1});
  // Toward minus infinity, unlike the language's own division.
  auto floor_of = [](int x, int y) { return static_cast<int>(std::floor(static_cast<double>(x) / y)); };
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(quotients[i], floor_of(a[i], b[i])) << a[i] << " / " << b[i];
    EXPECT_EQ(rests[i], a[i] - b[i] * floor_of(a[i], b[i])) << a[i] << " % " << b[i];
    EXPECT_EQ(by_three[i], floor_of(a[i], 3)) << a[i];
  }
  // NaN is the least and the greatest; of equal values the first counts.
  EXPECT_TRUE(std::isnan(extremes[0]) && std::isnan(extremes[2]));
  EXPECT_EQ(extremes[1], -1);
  EXPECT_EQ(extremes[3], 5);
  EXPECT_TRUE(std::isnan(extremes[4]));
  EXPECT_EQ(extremes[5], 2);
  indices.resize(6);
  EXPECT_EQ(indices, (std::vector<int32_t>{4, 0, 4, 1, 3, 1}));
}

TEST(StandardLibrary, PhiloxIsBitExact) {
  // The vector of the authors' test file.
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (std::array<uint32_t, 4>{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  auto rng = generator();
  const int n = 32;
  uint64_t key = rng();
  // Offsets beyond 32 bits take two words of the counter.
  std::vector<int64_t> offsets = random_ints<int64_t>(rng, n, 0, int64_t{1} << 40);
  std::vector<uint32_t> words(4 * n);
  std::vector<float> uniform(n), normal(n);
  Launch(R"(
@triton.jit
def k(offsets, words, uniform, normal, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    at = tl.load(offsets + i)
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(words + i, a)
    tl.store(words + N + i, b)
    tl.store(words + 2 * N + i, c)
    tl.store(words + 3 * N + i, d)
    tl.store(uniform + i, tl.rand(seed, at))
    tl.store(normal + i, tl.randn(seed, at))
)",
         "signature=*i64,*u32,*fp32,*fp32,i64 N=32")
      .buffer(offsets)
      .buffer(words)
      .buffer(uniform)
      .buffer(normal)
      .value(key)
      .run();
  auto to_uniform = [](uint32_t w) {
    auto s = static_cast<int32_t>(w);
    // Triton's way from a word to [0, 1).
    return static_cast<float>(s < 0 ? ~s : s) * 4.6566127342e-10f;
  };
  for (int i = 0; i < n; ++i) {
    auto at = static_cast<uint64_t>(offsets[i]);
    auto c = philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}, static_cast<uint32_t>(key),
                    static_cast<uint32_t>(key >> 32));
    for (int w = 0; w < 4; ++w) EXPECT_EQ(words[w * n + i], c[w]);
    EXPECT_EQ(uniform[i], to_uniform(c[0]));
    // Box and Muller, with a floor under the logarithm.
    double u1 = std::fmax(1e-7, to_uniform(c[0])), u2 = to_uniform(c[1]);
    EXPECT_NEAR(normal[i], std::sqrt(-2 * std::log(u1)) * std::cos(6.283185307179586 * u2), 1e-5);
  }
}

TEST(StandardLibrary, Libdevice) {
  auto rng = generator();
  const int n = 64, functions = 12;
  // Wide enough for tails, where approximations differ.
  std::vector<float> x = random_floats(rng, n), out(n * functions);
  for (float& v : x) v *= 3;
  Launch(R"(
@triton.jit
def k(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, libdevice.tanh(v))
    tl.store(out + N + i, libdevice.pow(tl.abs(v), 1.5))
    tl.store(out + 2 * N + i, libdevice.sinh(v))
    tl.store(out + 3 * N + i, libdevice.cosh(v))
    tl.store(out + 4 * N + i, libdevice.asinh(v))
    tl.store(out + 5 * N + i, libdevice.log10(tl.abs(v)))
    tl.store(out + 6 * N + i, libdevice.round(v * 2) )
    tl.store(out + 7 * N + i, libdevice.copysign(1.0, v))
    tl.store(out + 8 * N + i, libdevice.fmod(v, 0.7))
    tl.store(out + 9 * N + i, libdevice.hypot(v, 2.0))
    tl.store(out + 10 * N + i, libdevice.cbrt(v))
    tl.store(out + 11 * N + i, libdevice.tan(v * 0.3))
)",
         "signature=*fp32,*fp32 N=64")
      .buffer(x)
      .buffer(out)
      .run();
  for (int i = 0; i < n; ++i) {
    double v = x[i];
    double expected[functions] = {std::tanh(v),
                                  std::pow(std::fabs(v), 1.5),
                                  std::sinh(v),
                                  std::cosh(v),
                                  std::asinh(v),
                                  std::log10(std::fabs(v)),
                                  std::round(x[i] * 2.0f),
                                  std::copysign(1.0, v),
                                  std::fmod(x[i], 0.7f),
                                  std::hypot(v, 2.0),
                                  std::cbrt(v),
                                  std::tan(static_cast<double>(x[i] * 0.3f))};
    // A few roundings of a float.
    for (int f = 0; f < functions; ++f)
      EXPECT_NEAR(out[f * n + i], expected[f], 4e-6 * std::fmax(1.0, std::fabs(expected[f])))
          << "function " << f << " of " << v;
  }
}

/// Where a half, added and cut off, would be wrong: below a half, and where half an ulp is a half.
TEST(StandardLibrary, RoundTakesHalvesAwayFromZero) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,        -0.0f,      0.49999997f, -0.49999997f, 0.5f,        -0.5f,
                          0.99999994f, 1.5f,       -2.5f,       4194303.5f,   4194304.5f,  -4194305.5f,
                          8388607.5f,  8388608.0f, 8388609.0f,  -8388611.0f,  16777215.0f, 3e38f,
                          kInfinity,   -kInfinity, 1e-40f,      -1e-40f,      0.3f,        -0.3f};
  x.resize(32, 2.4999998f);
  std::vector<float> out(x.size());
  Launch(R"(
@triton.jit
def k(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, libdevice.round(tl.load(x + i)))
)",
         "signature=*fp32,*fp32 N=32")
      .buffer(x)
      .buffer(out)
      .run();
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(out[i], std::round(x[i])) << x[i];
    EXPECT_EQ(std::signbit(out[i]), std::signbit(x[i])) << x[i];
  }
}

TEST(StandardLibrary, SoftmaxAndSigmoid) {
  auto rng = generator();
  const int m = 4, n = 32;
  std::vector<float> x = random_floats(rng, m * n), out(m * n), gates(m * n);
  Launch(R"(
@triton.jit
def k(x, out, gates, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, tl.softmax(v, 1))
    tl.store(gates + at, v.sigmoid())
)",
         "signature=*fp32,*fp32,*fp32 M=4 N=32")
      .buffer(x)
      .buffer(out)
      .buffer(gates)
      .run();
  for (int i = 0; i < m; ++i) {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += std::exp(static_cast<double>(x[i * n + j]));
    for (int j = 0; j < n; ++j) {
      EXPECT_NEAR(out[i * n + j], std::exp(static_cast<double>(x[i * n + j])) / sum, 1e-6);
      EXPECT_NEAR(gates[i * n + j], 1 / (1 + std::exp(-static_cast<double>(x[i * n + j]))), 1e-6);
    }
  }
}

TEST(StandardLibrary, Swizzle2dVisitsEveryTileOnce) {
  const int rows = 5, columns = 3, group = 2;
  std::vector<int32_t> out(rows * columns, -1);
  Launch(R"(
@triton.jit
def k(out, rows, columns, G: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), rows, columns, G)
    tl.atomic_add(out + i * columns + j, tl.program_id(0) * columns + tl.program_id(1) + 1)
)",
         "signature=*i32,i32,i32 G=2")
      .buffer(out)
      .value(rows)
      .value(columns)
      .run({rows, columns, 1});
  // Rows of a group, column by column; the last group is lower.
  for (int linear = 0; linear < rows * columns; ++linear) {
    int start = linear / (group * columns) * group, height = std::min(rows - start, group),
        inside = linear % (group * columns);
    EXPECT_EQ(out[(start + inside % height) * columns + inside / height], linear);
  }
}

}  // namespace
}  // namespace kiln::frontend::testing
