// Kernels in the Triton language on a real GPU, through the public API alone.
#include "kiln/kernel.h"

#include <cmath>
#include <cstdlib>

#include "tests/gpu/gpu_test_util.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {
namespace {

using Args = std::vector<std::optional<Arg>>;
using Shape = std::vector<int64_t>;

constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def row_max(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    tl.store(out + row, tl.max(v, axis=0))


@triton.jit
def wraps(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n)
    bits = (-a >= b).to(tl.int8) | (tl.abs(a) < b).to(tl.int8) << 1 | (a + b > a).to(tl.int8) << 2
    bits |= (a - b < a).to(tl.int8) << 3 | (a * b <= b).to(tl.int8) << 4 | (-a < 0).to(tl.int8) << 5
    tl.store(out + i, bits, mask=i < n)


@triton.jit
def signs(x, out, n, UNSIGNED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    least = tl.minimum(v.to(UNSIGNED), (-v).to(UNSIGNED))
    tl.store(out + i, tl.abs(v).to(UNSIGNED).to(tl.float64), mask=i < n)
    tl.store(out + n + i, least.to(tl.float32).to(tl.float64), mask=i < n)
    tl.store(out + 2 * n + i, (tl.abs(v) < 0).to(tl.float64), mask=i < n)


@triton.jit
def rows_of_two(x, y, rows, columns, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = m[:, None].to(tl.int64) * columns + n[None, :].to(tl.int64)
    mask = (m[:, None] < rows) & (n[None, :] < columns)
    tl.store(y + at, tl.load(x + at, mask=mask) * 2.0, mask=mask)


@triton.jit
def log_sums(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf")).to(tl.float32)
    most = tl.max(v, axis=0)
    tl.store(out + tl.program_id(0), most + tl.log(tl.sum(tl.exp(v - most), axis=0)))


@triton.jit
def hashes(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.uint64)
    h = (v * 0xCC9E2D51) & 0xFFFFFFFF
    h = ((h << 15) | (h >> 17)) & 0xFFFFFFFF
    h = (h * 5 + (v >> 32)) & 0xFFFFFFFF
    h ^= h >> 13
    tl.store(out + i, ((h - v) & 0xFFFFF) ^ (h & 0xFF), mask=i < n)


@triton.jit
def sines(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.sin(v), mask=i < n)
    tl.store(out + n + i, tl.cos(v), mask=i < n)


@triton.jit
def add_waiting(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.extra.cuda.gdc_wait()
    a = tl.load(x + i, mask=mask)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + i, a + tl.load(y + i, mask=mask), mask=mask)
)";

class GpuKernel : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kiln_gpu_cache_XXXXXX";
    setenv("KILN_CACHE_DIR", mkdtemp(name), 1);
  }
  void TearDown() override { unsetenv("KILN_CACHE_DIR"); }
  static Kernel make(const char* name) {
    auto kernel = Kernel::from_source(kSource, "gpu_test.py", name);
    EXPECT_TRUE(kernel.ok()) << render(kernel.error());
    return *kernel;
  }
};

// What registers of 32 bits hold must be cut before it is compared.
TEST_F(GpuKernel, SmallIntegersWrap) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  for (DType dtype : {DType::kI16, DType::kI8, DType::kU16, DType::kU8}) {
    const bool is_16 = size_of(dtype) == 2;
    std::vector<int64_t> edges = is_signed(dtype)
                                     ? (is_16 ? std::vector<int64_t>{-32768, -32767, -1, 0, 1, 5, 181, 32766, 32767}
                                              : std::vector<int64_t>{-128, -127, -1, 0, 1, 5, 11, 126, 127})
                                     : (is_16 ? std::vector<int64_t>{0, 1, 5, 255, 256, 32767, 32768, 65534, 65535}
                                              : std::vector<int64_t>{0, 1, 5, 15, 16, 127, 128, 254, 255});
    std::vector<std::byte> x, y;
    for (int64_t a : edges)
      for (int64_t b : edges)
        for (int byte = 0; byte < size_of(dtype); ++byte) {
          x.push_back(static_cast<std::byte>(a >> 8 * byte));
          y.push_back(static_cast<std::byte>(b >> 8 * byte));
        }
    const auto n = static_cast<int64_t>(edges.size() * edges.size());
    std::vector<std::vector<double>> results;
    for (const Device& d : {device, cpu}) {
      Tensor a = *Tensor::from_host(d, dtype, Shape{n}, x.data(), x.size()),
             b = *Tensor::from_host(d, dtype, Shape{n}, y.data(), y.size()),
             out = *Tensor::zeros(d, DType::kI8, Shape{n});
      ASSERT_OK(make("wraps").launch({1, 1, 1}, Args{a, b, out, n, int64_t{128}}));
      results.push_back(*out.to_doubles());
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      EXPECT_EQ(results[0][i], results[1][i])
          << name(dtype) << " " << edges[i / edges.size()] << ", " << edges[i % edges.size()];
  }
}

// The least number is its own absolute value, which ptxas takes for no negative one.
TEST_F(GpuKernel, AbsoluteValueOfTheLeastNumber) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  for (auto [dtype, as_unsigned] : {std::pair{DType::kI64, DType::kU64}, std::pair{DType::kI32, DType::kU32},
                                    std::pair{DType::kI16, DType::kU16}, std::pair{DType::kI8, DType::kU8}}) {
    const int64_t least = int64_t{-1} << (8 * size_of(dtype) - 1);
    std::vector<std::byte> x;
    for (int64_t v : {least, least + 1, int64_t{-1}, int64_t{0}, int64_t{5}, ~least})
      for (int byte = 0; byte < size_of(dtype); ++byte) x.push_back(static_cast<std::byte>(v >> 8 * byte));
    const int64_t n = 6;
    std::vector<std::vector<double>> results;
    for (const Device& d : {device, cpu}) {
      Tensor in = *Tensor::from_host(d, dtype, Shape{n}, x.data(), x.size()),
             out = *Tensor::zeros(d, DType::kF64, Shape{3 * n});
      ASSERT_OK(make("signs").launch({1, 1, 1}, Args{in, out, n, as_unsigned, int64_t{8}}));
      results.push_back(*out.to_doubles());
    }
    EXPECT_EQ(results[0], results[1]) << name(dtype);
    EXPECT_EQ(results[0][0], -static_cast<double>(least)) << name(dtype);
  }
}

/// Threads with several numbers reduce the large ones of them in a loop.
TEST_F(GpuKernel, SinesOfLargeNumbers) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  const int64_t n = 3000;
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) {
    const float small = 0.37f * static_cast<float>(i % 100) - 18;
    x.push_back(i % 7 == 3 ? std::ldexp(small, static_cast<int>(i) % 120) : small);
  }
  x[17] = std::numeric_limits<float>::infinity(), x[18] = std::numeric_limits<float>::quiet_NaN(), x[19] = -0.0f;
  for (int64_t block : {128, 512, 2048}) {
    std::vector<std::vector<double>> results;
    for (const Device& d : {device, cpu}) {
      Tensor in = *Tensor::from_host(d, DType::kF32, Shape{n}, x.data(), x.size() * sizeof(float)),
             out = *Tensor::zeros(d, DType::kF32, Shape{2 * n});
      ASSERT_OK(make("sines").launch({(n + block - 1) / block, 1, 1}, Args{in, out, n, block}));
      results.push_back(*out.to_doubles());
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      if (!std::isnan(results[0][i]) || !std::isnan(results[1][i])) {
        ASSERT_NEAR(results[0][i], results[1][i], 1e-6) << x[i % x.size()] << ", block " << block;
      }
  }
}

TEST_F(GpuKernel, AddEveryWidth) {
  GPU_OR_SKIP(device);
  Kernel add = make("add");
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI32, DType::kI8})
    for (int64_t n : {1, 97, 1024, 100'003}) {
      auto make_input = [&](uint64_t seed) {
        return is_float(dtype) ? *randn(device, dtype, Shape{n}, seed) : *randint(device, dtype, Shape{n}, 0, 50, seed);
      };
      Tensor x = make_input(1), y = make_input(2), out = *Tensor::zeros(device, dtype, Shape{n});
      ASSERT_OK(add.launch({(n + 255) / 256, 1, 1}, Args{x, y, out, n, int64_t{256}}));
      auto a = *x.to_doubles(), b = *y.to_doubles(), got = *out.to_doubles();
      for (size_t i = 0; i < a.size(); ++i) {
        double expected = 0;
        from_double(dtype, a[i] + b[i], &expected);
        ASSERT_EQ(got[i], to_double(dtype, &expected)) << name(dtype) << " " << n << " [" << i << "]";
      }
    }
}

// Each launch may begin before the one before has ended, and must not read what that has yet to write.
TEST_F(GpuKernel, AChainOfEarlyLaunches) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "needs dependent launches";
  constexpr int kRounds = 1000;
  for (const char* name : {"add", "add_waiting"})
    for (int64_t n : {1000, 300'007, 2'000'003}) {
      Kernel add = make(name);
      Tensor x = *Tensor::zeros(device, DType::kI32, Shape{n}), other = *Tensor::zeros(device, DType::kI32, Shape{n});
      Tensor one = *Tensor::full(device, DType::kI32, Shape{n}, 1.0);
      LaunchOptions options;
      options.launch_pdl = true;
      for (int round = 0; round < kRounds; ++round) {
        ASSERT_OK(add.launch({(n + 255) / 256, 1, 1}, Args{x, one, other, n, int64_t{256}}, options));
        std::swap(x, other);
      }
      const std::vector<double> sums = *x.to_doubles();
      for (double v : sums) ASSERT_EQ(v, kRounds) << name << " " << n;
    }
}

// Programs on several blocks of threads.
TEST_F(GpuKernel, ProgramsOfSeveralBlocks) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "needs clusters";
  for (int ctas : {2, 4, 8})
    for (int64_t n : {1, 97, 1024, 100'003}) {
      Tensor x = *randn(device, DType::kF32, Shape{n}, 1), y = *randn(device, DType::kF32, Shape{n}, 2),
             out = *Tensor::zeros(device, DType::kF32, Shape{n});
      LaunchOptions options;
      options.num_ctas = ctas;
      ASSERT_OK(make("add").launch({(n + 1023) / 1024, 1, 1}, Args{x, y, out, n, int64_t{1024}}, options));
      auto a = *x.to_doubles(), b = *y.to_doubles(), got = *out.to_doubles();
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], static_cast<double>(static_cast<float>(a[i] + b[i]))) << ctas << " " << n << " [" << i << "]";
    }
  Tensor rows = *randn(device, DType::kF32, Shape{5, 100}, 1), out = *Tensor::zeros(device, DType::kF32, Shape{5});
  LaunchOptions options;
  options.num_ctas = 2;
  auto refused = make("row_max").launch({5, 1, 1}, Args{rows, out, int64_t{100}, int64_t{128}}, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
}

TEST_F(GpuKernel, SecondProcessFindsTheCubinOnDisk) {
  GPU_OR_SKIP(device);
  Tensor x = *randn(device, DType::kF32, Shape{1000}, 1);
  Args args{x, x, x, int64_t{1000}, int64_t{128}};
  auto first = make("add").compile(args);
  ASSERT_TRUE(first.ok()) << render(first.error());
  EXPECT_FALSE(first->from_cache);
  EXPECT_GT(first->registers, 0);
  EXPECT_NE(first->ptx.find(".entry"), std::string::npos);
  auto second = make("add").compile(args);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->from_cache);
  EXPECT_EQ(second->registers, first->registers);
  double ms = 0;
  for (const auto& [phase, time] : second->phases) {
    std::printf("cached: %s %.3f ms\n", phase.c_str(), time);
    ms += time;
  }
  for (const auto& [phase, time] : first->phases) std::printf("cold: %s %.3f ms\n", phase.c_str(), time);
  EXPECT_LT(ms, 20);
}

// Offsets of 64 bits in rows that two tensors have in common.
TEST_F(GpuKernel, RowsOfTwoTensors) {
  GPU_OR_SKIP(device);
  Kernel kernel = make("rows_of_two");
  for (const int64_t block : {16, 64, 128})
    for (const Shape& shape : {Shape{1, 1}, Shape{33, 200}, Shape{257, 129}, Shape{300, 1024}}) {
      Tensor x = *randn(device, DType::kBF16, shape, 5), y = *Tensor::zeros(device, DType::kF32, shape);
      const int64_t grid[] = {(shape[0] + block - 1) / block, (shape[1] + block - 1) / block};
      ASSERT_OK(kernel.launch({grid[0], grid[1], 1}, Args{x, y, shape[0], shape[1], block}));
      const std::vector<double> in = *x.to_doubles(), got = *y.to_doubles();
      for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(got[i], 2 * in[i]) << block << " " << shape[1] << " " << i;
    }
}

// Rows in pieces, by programs that share an SM and, few of them, by those that have one for themselves.
TEST_F(GpuKernel, LogSumsOfLongRows) {
  GPU_OR_SKIP(device);
  Kernel kernel = make("log_sums");
  for (const int warps : {16, 32})
    for (const Shape& shape : {Shape{3, 50257}, Shape{300, 50257}, Shape{300, 40000}, Shape{2, 65536}, Shape{5, 1}}) {
      Tensor x = *randn(device, DType::kBF16, shape, 7), out = *Tensor::zeros(device, DType::kF32, Shape{shape[0]});
      LaunchOptions options;
      options.num_warps = warps;
      ASSERT_OK(kernel.launch({shape[0], 1, 1}, Args{x, out, shape[1], int64_t{65536}}, options));
      const std::vector<double> in = *x.to_doubles(), got = *out.to_doubles();
      for (int64_t r = 0; r < shape[0]; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < shape[1]; ++c) sum += std::exp(in[static_cast<size_t>(r * shape[1] + c)]);
        ASSERT_NEAR(got[static_cast<size_t>(r)], std::log(sum), 1e-4) << warps << " warps, " << shape[1];
      }
    }
}

// Arithmetic of 64 bits under masks, as on the CPU.
TEST_F(GpuKernel, HashesThatMask) {
  GPU_OR_SKIP(device);
  Device cpu = *open_device("cpu");
  std::vector<int64_t> x{0, 1, -1, INT64_MIN, INT64_MAX, INT64_C(1) << 32, (INT64_C(1) << 32) - 1};
  for (uint64_t v = 88172645463325252; x.size() < 1003; x.push_back(static_cast<int64_t>(v)))
    v ^= v << 13, v ^= v >> 7, v ^= v << 17;
  const auto n = static_cast<int64_t>(x.size());
  std::vector<std::vector<double>> results;
  for (const Device& d : {device, cpu}) {
    Tensor in =
               *Tensor::from_host(d, DType::kI64, Shape{n}, reinterpret_cast<const std::byte*>(x.data()), 8 * x.size()),
           out = *Tensor::zeros(d, DType::kI64, Shape{n});
    ASSERT_OK(make("hashes").launch({(n + 255) / 256, 1, 1}, Args{in, out, n, int64_t{256}}));
    results.push_back(*out.to_doubles());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(GpuKernel, ReductionOverRows) {
  GPU_OR_SKIP(device);
  Kernel row_max = make("row_max");
  for (int64_t columns : {1, 31, 1000, 4096}) {
    const int64_t rows = 33;
    Tensor x = *randn(device, DType::kF32, Shape{rows, columns}, 3),
           out = *Tensor::zeros(device, DType::kF32, Shape{rows});
    int64_t block = 1;
    while (block < columns) block *= 2;
    ASSERT_OK(row_max.launch({rows, 1, 1}, Args{x, out, columns, block}));
    auto in = *x.to_doubles(), got = *out.to_doubles();
    for (int64_t r = 0; r < rows; ++r) {
      double expected = -INFINITY;
      for (int64_t c = 0; c < columns; ++c) expected = std::max(expected, in[static_cast<size_t>(r * columns + c)]);
      ASSERT_EQ(got[static_cast<size_t>(r)], expected) << columns;
    }
  }
}

TEST_F(GpuKernel, SideStreamAndEvents) {
  GPU_OR_SKIP(device);
  Kernel add = make("add");
  const int64_t n = 1 << 22;
  Tensor x = *Tensor::full(device, DType::kF32, Shape{n}, 1), y = *Tensor::full(device, DType::kF32, Shape{n}, 2),
         out = *Tensor::zeros(device, DType::kF32, Shape{n});
  LaunchOptions options;
  options.stream = *device.new_stream();
  ASSERT_OK(options.stream.wait(*device.record()));
  ASSERT_OK(add.launch({n / 1024, 1, 1}, Args{x, y, out, n, int64_t{1024}}, options));
  ASSERT_OK(device.default_stream().wait(*device.record(options.stream)));
  EXPECT_EQ(*out.to_doubles(), std::vector<double>(static_cast<size_t>(n), 3.0));
}

TEST_F(GpuKernel, ErrorsBeforeTheLaunch) {
  GPU_OR_SKIP(device);
  Kernel add = make("add");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{16}),
         host = *Tensor::zeros(*open_device("cpu"), DType::kF32, Shape{16});
  auto status = add.launch({1, 1, 1}, Args{x, host, x, int64_t{16}, int64_t{16}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "kernel 'add': 'x' is on cuda:0 and 'y' is on cpu");
  Tensor gone = *Tensor::zeros(device, DType::kF32, Shape{16});
  gone.free();
  EXPECT_EQ(add.launch({1, 1, 1}, Args{x, gone, x, int64_t{16}, int64_t{16}}).error().message,
            "kernel 'add': argument 'y' was freed: free() released its memory");
  EXPECT_EQ(add.launch({1, 70'000, 1}, Args{x, x, x, int64_t{16}, int64_t{16}}).error().kind, ErrorKind::kLaunch);
  ASSERT_OK(add.launch({0, 1, 1}, Args{x, x, x, int64_t{16}, int64_t{16}}));
  ASSERT_OK(device.synchronize());
}

}  // namespace
}  // namespace kiln::runtime
