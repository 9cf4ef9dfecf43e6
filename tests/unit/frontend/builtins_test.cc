// Builtins that few kernels call, run on the interpreter and compared with C++.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/frontend/run_kernel.h"

namespace kiln::frontend::testing {
namespace {

uint64_t run_seed() {
  const uint64_t value = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(value));
  return value;
}

std::vector<int32_t> some_ints(std::mt19937_64& rng, size_t n) {
  std::vector<int32_t> out(n);
  for (int32_t& v : out) v = std::uniform_int_distribution<int32_t>(-1000, 1000)(rng);
  return out;
}

std::vector<float> some_floats(std::mt19937_64& rng, size_t n) {
  std::vector<float> out(n);
  for (float& v : out) v = std::normal_distribution<float>()(rng);
  return out;
}

TEST(Builtins, TensorsHaveManyDimensions) {
  std::mt19937_64 rng(run_seed());
  std::vector<int32_t> x = some_ints(rng, 1024), out(1024);
  Launch(R"(
@triton.jit
def sort(x, out, N: tl.constexpr, LOG: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for stage in tl.static_range(1, LOG + 1):
        h = tl.reshape(v, [2] * LOG)
        for k in tl.static_range(stage):
            axis: tl.constexpr = LOG - stage + k
            other = h ^ tl.xor_sum(h, axis, keep_dims=True)
            right = tl.reshape(tl.arange(0, 2), [1] * axis + [2] + [1] * (LOG - 1 - axis))
            if stage < LOG:
                down = tl.reshape(tl.arange(0, 2), [1] * (LOG - 1 - stage) + [2] + [1] * stage)
                right = right ^ down
            h = tl.where((h > other) != (right != 0), other, h)
        v = tl.reshape(h, [N])
    tl.store(out + i, v)
)",
         "signature=*i32,*i32 N=1024 LOG=10")
      .buffer(x)
      .buffer(out)
      .run();
  std::sort(x.begin(), x.end());
  EXPECT_EQ(out, x);
}

TEST(Builtins, DescriptorsGatherScatterAndAdd) {
  std::vector<float> x(8 * 16), gathered(8 * 16, -1), padded(8 * 16), scattered(8 * 16, -1), sums(8 * 16, 1);
  std::vector<int32_t> most(8 * 16, 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  Launch(R"(
@triton.jit
def k(x, gathered, padded, scattered, sums, most):
    rows = tl.arange(0, 8)
    d = tl.make_tensor_descriptor(x, [6, 16], [16, 1], [1, 16])
    v = d.gather(rows * 3 - 2, 4)
    tl.store(gathered + rows[:, None] * 16 + tl.arange(0, 16)[None, :], v)
    q = tl.make_tensor_descriptor(x, [6, 16], [16, 1], [1, 16], padding_option="nan")
    outside = q.load([5, 12]) + q.gather(rows * 3 - 2, 4)
    tl.store(padded + rows[:, None] * 16 + tl.arange(0, 16)[None, :], outside)
    s = tl.make_tensor_descriptor(scattered, [8, 16], [16, 1], [1, 16])
    s.scatter(v, (rows ^ 1) + 1, 0)
    a = tl.make_tensor_descriptor(sums, [8, 16], [16, 1], [4, 16])
    a.atomic_add([6, 8], tl.full((4, 16), 2.0, tl.float32))
    a.atomic_add([6, 8], tl.full((4, 16), 2, tl.int32))
    m = tl.make_tensor_descriptor(most, [8, 16], [16, 1], [8, 16])
    m.atomic_max([0, 0], rows[:, None] + tl.zeros((8, 16), tl.int32))
    m.atomic_xor([7, 12], tl.full((8, 16), 1, tl.int32))
)",
         "signature=*fp32,*fp32,*fp32,*fp32,*fp32,*i32")
      .buffer(x)
      .buffer(gathered)
      .buffer(padded)
      .buffer(scattered)
      .buffer(sums)
      .buffer(most)
      .run();
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 16; ++c) {
      const int from = r * 3 - 2, i = r * 16 + c;
      const bool inside = from >= 0 && from < 6 && c + 4 < 16;
      EXPECT_EQ(gathered[i], inside ? static_cast<float>(from * 16 + c + 4) : 0) << i;
      if (!inside || c + 12 >= 16)
        EXPECT_TRUE(std::isnan(padded[i])) << i;
      else
        EXPECT_EQ(padded[i], gathered[i] + static_cast<float>(5 * 16 + c + 12)) << i;
      // Row k of the value goes to row (k ^ 1) + 1; row 0 is nobody's, and row 8 is outside.
      EXPECT_EQ(scattered[i], r == 0 ? -1 : gathered[((r - 1) ^ 1) * 16 + c]) << i;
      EXPECT_EQ(sums[i], r >= 6 && c >= 8 ? 5 : 1) << i;
      EXPECT_EQ(most[i], std::max(r, 3) ^ (r == 7 && c >= 12 ? 1 : 0)) << i;
    }
}

TEST(Builtins, MapElementwiseRunsAFunctionOnEachElement) {
  std::mt19937_64 rng(run_seed());
  std::vector<float> x = some_floats(rng, 32), out(32), low(16), high(16);
  std::vector<int32_t> kind(32);
  Launch(R"(
@triton.jit
def classified(x, limit):
    if x > limit:
        return x - limit, 2
    elif x > 0:
        y = x * x
        return y if y > 0.25 else -y, 1
    return tl.zeros([], tl.float32), 0

@triton.jit
def ordered(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)

@triton.jit
def k(x, out, kind, low, high):
    i = tl.arange(0, 32)
    v = tl.load(x + i)
    y, which = tl.map_elementwise(classified, v, 1.0)
    tl.store(out + i, y)
    tl.store(kind + i, which)
    z, = tl.map_elementwise(ordered, v, pack=2)
    a, b = tl.split(tl.reshape(z, [16, 2]))
    j = tl.arange(0, 16)
    tl.store(low + j, a)
    tl.store(high + j, b)
)",
         "signature=*fp32,*fp32,*i32,*fp32,*fp32")
      .buffer(x)
      .buffer(out)
      .buffer(kind)
      .buffer(low)
      .buffer(high)
      .run();
  for (size_t i = 0; i < 32; ++i) {
    const float y = x[i] * x[i];
    EXPECT_EQ(kind[i], x[i] > 1 ? 2 : x[i] > 0 ? 1 : 0) << x[i];
    EXPECT_EQ(out[i], x[i] > 1 ? x[i] - 1 : x[i] > 0 ? (y > 0.25F ? y : -y) : 0) << x[i];
    EXPECT_EQ((i % 2 ? high : low)[i / 2], i % 2 ? std::max(x[i - 1], x[i]) : std::min(x[i], x[i + 1]));
  }
}

TEST(Builtins, ItemOfATensorIsAScalar) {
  std::vector<int32_t> x = {7, 8}, out(2);
  Launch(R"(
@triton.jit
def k(x, out):
    i = tl.arange(0, 1)
    v = tl.load(x + i).item()
    w = tl.item(tl.reshape(tl.load(x + 1 + i), [1, 1, 1]))
    tl.store(out, v + 3)
    tl.store((out + 1 + i).item(), w)
)",
         "signature=*i32,*i32")
      .buffer(x)
      .buffer(out)
      .run();
  EXPECT_EQ(out, (std::vector<int32_t>{10, 8}));
}

TEST(Builtins, ConditionOfAWhileLoop) {
  std::vector<int32_t> out(1);
  Launch(R"(
@triton.jit
def k(out, n):
    total = 0
    while tl.condition(n > 0, disable_licm=True):
        total += n
        n -= 1
    tl.store(out, total)
)",
         "signature=*i32,i32")
      .buffer(out)
      .value(10)
      .run();
  EXPECT_EQ(out[0], 55);
}

}  // namespace
}  // namespace kiln::frontend::testing
