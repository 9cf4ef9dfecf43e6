// Functions of the language's library that move elements of a tile about, and block pointers: random elements, on every
// device there is, against the standard library's algorithms.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "kiln/kernel.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln::kernels {
namespace {

constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def tile(ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]


@triton.jit
def sorted_rows(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DESCENDING: tl.constexpr):
    i = tile(ROWS, COLUMNS)
    tl.store(out + i, tl.sort(tl.load(x + i), descending=DESCENDING))


@triton.jit
def merged_rows(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DESCENDING: tl.constexpr):
    i = tile(ROWS, COLUMNS)
    tl.store(out + i, tl.bitonic_merge(tl.load(x + i), descending=DESCENDING))


@triton.jit
def largest_of_rows(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, K: tl.constexpr):
    tl.store(out + tile(ROWS, K), tl.topk(tl.load(x + tile(ROWS, COLUMNS)), K))


@triton.jit
def flipped(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIM: tl.constexpr):
    i = tile(ROWS, COLUMNS)
    tl.store(out + i, tl.flip(tl.load(x + i), DIM))


@triton.jit
def gathered(x, out, index, ROWS: tl.constexpr, COLUMNS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    v = tl.gather(tl.load(x + tile(ROWS, COLUMNS)), tl.load(index + tile(M, N)), AXIS)
    tl.store(out + tile(M, N), v)


@triton.jit
def counted(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i, mask=i < n), BINS, mask=i < n))


@triton.jit
def shifted_copy(x, out, rows, columns, stride, row, column, BLOCK: tl.constexpr):
    # Blocks of x from (row, column) on, which may lie before its start, to blocks of out from (0, 0) on.
    source = tl.make_block_ptr(x, (rows, columns), (stride, 1), (row, column), (BLOCK, 2 * BLOCK), (1, 0))
    target = tl.make_block_ptr(out, (rows, columns), (columns, 1), (0, 0), (BLOCK, 2 * BLOCK), (1, 0))
    for _ in range(0, columns, 2 * BLOCK):
        tl.store(target, tl.load(source, boundary_check=(0, 1)), boundary_check=(0, 1))
        source = tl.advance(source, (0, 2 * BLOCK))
        target = target.advance((0, 2 * BLOCK))
)";

using Args = std::vector<std::optional<Arg>>;

class Library : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto device = open_device(GetParam());
    ASSERT_TRUE(device.ok()) << render(device.error());
    device_ = *device;
    const auto seed = std::random_device{}();
    printf("seed %u\n", seed);
    random_.seed(seed);
  }

  template <class T>
  Tensor tensor(DType dtype, const std::vector<T>& values) {
    const int64_t shape[] = {static_cast<int64_t>(values.size())};
    auto t = Tensor::from_host(device_, dtype, shape, values.data(), values.size() * sizeof(T));
    EXPECT_TRUE(t.ok()) << render(t.error());
    return *t;
  }
  template <class T>
  std::vector<T> run(const char* name, Args args, DType dtype, size_t count, int num_warps = 4) {
    std::vector<T> out(count);
    std::memset(out.data(), 0x5a, count * sizeof(T));  // what no program writes
    args.insert(args.begin() + 1, tensor(dtype, out));
    auto kernel = Kernel::from_source(kSource, "library_test.py", name);
    EXPECT_TRUE(kernel.ok()) << render(kernel.error());
    LaunchOptions options;
    options.num_warps = num_warps;
    Status launched = kernel->launch({1, 1, 1}, args, options);
    EXPECT_TRUE(launched.ok()) << render(launched.error());
    auto bytes = std::get<Tensor>(*args[1]).to_bytes();
    EXPECT_TRUE(bytes.ok()) << render(bytes.error());
    std::memcpy(out.data(), bytes->data(), bytes->size());
    return out;
  }
  template <class T>
  std::vector<T> numbers(size_t count, int64_t low, int64_t high) {
    std::uniform_int_distribution<int64_t> pick(low, high);
    std::vector<T> out(count);
    for (T& v : out)
      v = std::is_floating_point_v<T> ? static_cast<T>(static_cast<T>(pick(random_)) / 8)
                                      : static_cast<T>(pick(random_));
    return out;
  }

  template <class T>
  void check_orders(DType dtype, int64_t low, int64_t high, const std::vector<std::pair<int, int>>& sizes = {{4, 8}}) {
    for (const auto& [rows, columns] : sizes) {
      SCOPED_TRACE(fmt::format("{} {}x{}", name(dtype), rows, columns));
      const auto x = numbers<T>(static_cast<size_t>(rows * columns), low, high);
      const int warps = 1 << std::uniform_int_distribution<int>(0, 3)(random_);
      for (const bool descending : {false, true}) {
        std::vector<T> expected = x;
        for (int r = 0; r < rows; ++r) {
          auto row = expected.begin() + r * columns;
          std::sort(row, row + columns);
          if (descending) std::reverse(row, row + columns);
        }
        EXPECT_EQ(run<T>("sorted_rows", {tensor(dtype, x), int64_t{rows}, int64_t{columns}, descending}, dtype,
                         x.size(), warps),
                  expected);
        std::vector<T> halves = expected;  // of each row in opposite orders
        for (int r = 0; r < rows; ++r)
          std::reverse(halves.begin() + r * columns + columns / 2, halves.begin() + (r + 1) * columns);
        EXPECT_EQ(run<T>("merged_rows", {tensor(dtype, halves), int64_t{rows}, int64_t{columns}, descending}, dtype,
                         x.size(), warps),
                  expected);
        if (!descending) continue;
        for (int k = 1; k <= columns; k *= 4) {
          std::vector<T> largest;
          for (int r = 0; r < rows; ++r)
            largest.insert(largest.end(), expected.begin() + r * columns, expected.begin() + r * columns + k);
          EXPECT_EQ(run<T>("largest_of_rows", {tensor(dtype, x), int64_t{rows}, int64_t{columns}, int64_t{k}}, dtype,
                           largest.size(), warps),
                    largest)
              << "k " << k;
        }
      }
      for (const int dim : {0, 1}) {
        std::vector<T> expected(x.size());
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < columns; ++c)
            expected[static_cast<size_t>(r * columns + c)] =
                x[static_cast<size_t>(dim == 0 ? (rows - 1 - r) * columns + c : r * columns + columns - 1 - c)];
        EXPECT_EQ(run<T>("flipped", {tensor(dtype, x), int64_t{rows}, int64_t{columns}, int64_t{dim}}, dtype, x.size(),
                         warps),
                  expected)
            << "dimension " << dim;
      }
    }
  }

  Device device_;
  std::mt19937 random_;
};

TEST_P(Library, OrdersOfFloats) { check_orders<float>(DType::kF32, -100, 100, {{1, 1}, {1, 2}, {4, 16}}); }
TEST_P(Library, OrdersOfDoubles) { check_orders<double>(DType::kF64, -100, 100); }
TEST_P(Library, OrdersOfSmallIntegers) { check_orders<int8_t>(DType::kI8, -128, 127); }
TEST_P(Library, OrdersOfUnsignedIntegers) { check_orders<uint32_t>(DType::kU32, 0, UINT32_MAX); }
TEST_P(Library, OrdersOfWideIntegers) { check_orders<int64_t>(DType::kI64, INT64_MIN, INT64_MAX); }

TEST_P(Library, GathersAlongAnAxis) {
  for (const auto& [rows, columns, picked] : {std::tuple{1, 1, 1}, {4, 8, 8}, {8, 4, 32}, {16, 128, 2}, {64, 64, 64}})
    for (const int axis : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} of {}x{} along {}", picked, rows, columns, axis));
      const int m = axis == 0 ? picked : rows, n = axis == 0 ? columns : picked, size = axis == 0 ? rows : columns;
      const auto x = numbers<float>(static_cast<size_t>(rows * columns), -99, 99);
      const auto index = numbers<int32_t>(static_cast<size_t>(m * n), 0, size - 1);
      std::vector<float> expected;
      for (int r = 0; r < m; ++r)
        for (int c = 0; c < n; ++c) {
          const int i = index[static_cast<size_t>(r * n + c)];
          expected.push_back(x[static_cast<size_t>(axis == 0 ? i * columns + c : r * columns + i)]);
        }
      const int warps = 1 << std::uniform_int_distribution<int>(0, 3)(random_);
      EXPECT_EQ(run<float>("gathered",
                           {tensor(DType::kF32, x), tensor(DType::kI32, index), int64_t{rows}, int64_t{columns},
                            int64_t{m}, int64_t{n}, int64_t{axis}},
                           DType::kF32, expected.size(), warps),
                expected);
    }
}

TEST_P(Library, CountsOfBins) {
  for (const int block : {1, 32, 1024})
    for (const int bins : {1, 2, 16, 256}) {
      SCOPED_TRACE(fmt::format("{} numbers in {} bins", block, bins));
      // Some are in no bin, on either side.
      const auto x = numbers<int32_t>(static_cast<size_t>(block), -2, bins + 1);
      const int n = std::uniform_int_distribution<int>(0, block)(random_);
      std::vector<int32_t> expected(static_cast<size_t>(bins));
      for (int i = 0; i < n; ++i)
        if (const int32_t v = x[static_cast<size_t>(i)]; v >= 0 && v < bins) ++expected[static_cast<size_t>(v)];
      EXPECT_EQ(run<int32_t>("counted", {tensor(DType::kI32, x), int64_t{n}, int64_t{block}, int64_t{bins}},
                             DType::kI32, expected.size()),
                expected);
    }
}

TEST_P(Library, BlocksOverTheEdge) {
  constexpr int64_t kBlock = 16;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {16, 32}, {13, 31}, {9, 75}, {16, 128}})
    for (const auto& [row, column] : {std::pair{0, 0}, {-3, 5}, {2, -7}, {40, 0}}) {
      SCOPED_TRACE(fmt::format("{}x{} from ({}, {})", rows, columns, row, column));
      const int64_t stride = columns + 3;
      const auto x = numbers<float>(static_cast<size_t>(rows * stride), -99, 99);
      std::vector<float> expected(static_cast<size_t>(rows * columns));
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t from_r = r + row, from_c = c + column;
          if (from_r >= 0 && from_r < rows && from_c >= 0 && from_c < columns)
            expected[static_cast<size_t>(r * columns + c)] = x[static_cast<size_t>(from_r * stride + from_c)];
        }
      EXPECT_EQ(run<float>("shifted_copy",
                           {tensor(DType::kF32, x), int64_t{rows}, int64_t{columns}, stride, int64_t{row},
                            int64_t{column}, kBlock},
                           DType::kF32, expected.size()),
                expected);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Library, ::testing::ValuesIn(Device::list()), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

}  // namespace
}  // namespace kiln::kernels
