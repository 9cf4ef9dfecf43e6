// Products by mma.sync of operands that are widened from narrower elements, on a real GPU: every pair of types, both
// orders of memory, ragged sizes, and sums of another product. All numbers are small integers, whose sums are exact.
#include <fmt/format.h>

#include "kiln/kernel.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using Args = std::vector<std::optional<Arg>>;
using Shape = std::vector<int64_t>;

constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def product(x, y, out, rows, columns, depth, sxm, sxk, syk, syn, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
            K: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for i in range(0, depth, K):
        k = i + tl.arange(0, K)
        a = tl.load(x + m[:, None] * sxm + k[None, :] * sxk, mask=(m[:, None] < rows) & (k[None, :] < depth), other=0)
        b = tl.load(y + k[:, None] * syk + n[None, :] * syn, mask=(k[:, None] < depth) & (n[None, :] < columns), other=0)
        acc = tl.dot(a.to(T), b.to(T), acc)
    tl.store(out + m[:, None] * columns + n[None, :], acc, mask=(m[:, None] < rows) & (n[None, :] < columns))


@triton.jit
def chained(x, y, out, rows, columns, depth, sxm, sxk, syk, syn, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
            K: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(x + m[:, None] * sxm + k[None, :] * sxk, mask=(m[:, None] < rows) & (k[None, :] < depth), other=0)
    acc = tl.zeros((M, N), tl.float32)
    for i in range(0, columns, N):
        n = i + tl.arange(0, N)
        b = tl.load(y + k[:, None] * syk + n[None, :] * syn, mask=(k[:, None] < depth) & (n[None, :] < columns), other=0)
        s = tl.dot(a.to(T), b.to(T))
        d = tl.load(y + tl.arange(0, N)[None, :] * syk + n[:, None] * syn,
                    mask=(tl.arange(0, N)[None, :] < depth) & (n[:, None] < columns), other=0)
        acc = tl.dot(s.to(T), d.to(T), acc)
    tl.store(out + m[:, None] * columns + c[None, :], acc, mask=(m[:, None] < rows) & (c[None, :] < columns))
)";

struct Types {
  DType x, y, to;
};
constexpr Types kTypes[] = {
    {DType::kF16, DType::kF16, DType::kF32},       {DType::kBF16, DType::kF32, DType::kF32},
    {DType::kF32, DType::kBF16, DType::kF32},      {DType::kI8, DType::kF16, DType::kF32},
    {DType::kI8, DType::kI8, DType::kF16},         {DType::kI8, DType::kF16, DType::kF16},
    {DType::kF32, DType::kI8, DType::kBF16},       {DType::kF8E5M2, DType::kI8, DType::kF16},
    {DType::kF8E4M3, DType::kF8E5M2, DType::kF32},
};

struct Tile {
  int64_t m, n, k, warps;
};
constexpr Tile kTiles[] = {{16, 16, 16, 1}, {16, 64, 32, 4}, {32, 32, 64, 2}, {64, 32, 32, 4}, {128, 64, 64, 8}};

/// [height, width] of small integers, stored by columns when `turned`; `host` gets them by rows.
Tensor drawn(const Device& device, DType type, int64_t height, int64_t width, bool turned, uint64_t seed,
             std::vector<double>& host) {
  const Shape stored = turned ? Shape{width, height} : Shape{height, width};
  Tensor whole = *randint(device, DType::kF32, stored, -2, 3, seed);
  Tensor narrow = *whole.to(type);
  if (turned)
    narrow = *narrow.as_strided(Shape{height, width}, Shape{1, height}, 0),
    whole = *whole.as_strided(Shape{height, width}, Shape{1, height}, 0);
  host = *whole.to_doubles();
  return narrow;
}

std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b, int64_t m, int64_t n, int64_t k) {
  std::vector<double> r(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        r[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
  return r;
}

void check(const char* name, const Types& types, const Tile& tile, int64_t m, int64_t n, int64_t k) {
  GPU_OR_SKIP(device);
  auto kernel = Kernel::from_source(kSource, "widened_operands_test.py", name);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  for (const bool turned_x : {false, true})
    for (const bool turned_y : {false, true}) {
      SCOPED_TRACE(fmt::format("{} of {} and {} in {}, {} x {} x {}, tiles {} x {} x {} by {} warps, by columns {} {}",
                               name, kiln::name(types.x), kiln::name(types.y), kiln::name(types.to), m, n, k, tile.m,
                               tile.n, tile.k, tile.warps, turned_x, turned_y));
      std::vector<double> a, b;
      Tensor x = drawn(device, types.x, m, k, turned_x, 1, a), y = drawn(device, types.y, k, n, turned_y, 2, b),
             out = *Tensor::empty(device, DType::kF32, Shape{m, n});
      ASSERT_OK(out.fill(77));
      const auto programs = [](int64_t size, int64_t block) {
        return static_cast<uint32_t>((size + block - 1) / block);
      };
      LaunchOptions options;
      options.num_warps = static_cast<int>(tile.warps);
      ASSERT_OK(
          kernel->launch({programs(m, tile.m), programs(n, tile.n), 1},
                         Args{x, y, out, m, n, k, turned_x ? int64_t{1} : k, turned_x ? m : int64_t{1},
                              turned_y ? int64_t{1} : n, turned_y ? k : int64_t{1}, types.to, tile.m, tile.n, tile.k},
                         options));
      std::vector<double> want = times(a, b, m, n, k);
      if (std::string_view(name) == "chained") {
        // The sums times the first columns of b's transpose, the same for each block of columns.
        std::vector<double> turned(static_cast<size_t>(n * n));
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j)
            if (j % tile.n < k) turned[static_cast<size_t>(i * n + j)] = b[static_cast<size_t>(j % tile.n * n + i)];
        want = times(want, turned, m, n, n);
      }
      const std::vector<double> got = *out.to_doubles();
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_EQ(got[i], want[i]) << i / static_cast<size_t>(n) << ", " << i % static_cast<size_t>(n);
    }
}

TEST(GpuWidenedOperands, Products) {
  for (const Types& types : kTypes)
    for (const Tile& tile : kTiles) {
      check("product", types, tile, 131, 72, 80);
      if (::testing::Test::HasFailure() || ::testing::Test::IsSkipped()) return;
    }
  check("product", kTypes[0], kTiles[1], 64, 128, 96);
  check("product", kTypes[4], kTiles[3], 33, 17, 1);
}

/// Sums of at most 4 * 16 are exact in bf16 too.
TEST(GpuWidenedOperands, SumsOfAnotherProduct) {
  for (const Types& types : kTypes)
    for (const Tile& tile : kTiles) {
      check("chained", types, tile, 67, 80, 16);
      if (::testing::Test::HasFailure() || ::testing::Test::IsSkipped()) return;
    }
}

}  // namespace
}  // namespace kiln::runtime
