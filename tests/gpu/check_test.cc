// Checked launches on a real GPU: what would end the context is reported, and the context stays.
#include "kiln/check.h"

#include <gtest/gtest.h>

#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

constexpr const char* kSource = R"(import triton
import triton.language as tl
@triton.jit
def far(x, o, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i + by)
    tl.device_assert(v == 3)
    tl.atomic_add(o + i, v)
)";
constexpr const char* kProduct = R"(import triton
import triton.language as tl
@triton.jit
def product(a, b, c, m, n, k, BLOCK: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [m, k], [k, 1], [128, 64])
    db = tl.make_tensor_descriptor(b, [k, n], [n, 1], [64, 128])
    dc = tl.make_tensor_descriptor(c, [m, n], [n, 1], [128, 128])
    acc = tl.zeros([128, 128], tl.float32)
    row = tl.program_id(0) * 128
    col = tl.program_id(1) * 128
    for i in range(0, k, 64):
        acc = tl.dot(da.load([row, i]), db.load([i, col]), acc)
    dc.store([row, col], acc.to(tl.float16))
)";

TEST(GpuCheck, FaultsAreErrorsAndTheContextStays) {
  GPU_OR_SKIP(device);
  constexpr int64_t kN = 1 << 16;
  const int64_t shape[] = {kN};
  Tensor x = *Tensor::full(device, DType::kF32, shape, 3), o = *Tensor::zeros(device, DType::kF32, shape);
  Kernel kernel = *Kernel::from_source(kSource, "far.py");
  auto launch = [&](int64_t by, int64_t programs) {
    const std::optional<Arg> args[] = {x, o, by, int64_t{1024}};
    return launch_checked(kernel, {programs, 1, 1}, args);
  };
  auto right = launch(0, 64);
  ASSERT_TRUE(right.ok()) << render(right.error());
  EXPECT_EQ(right->accesses, 3);
  EXPECT_EQ(*o.to_doubles(), std::vector<double>(kN, 3));
  for (int64_t by : {int64_t{1} << 40, -(int64_t{1} << 40), int64_t{100}, int64_t{-1}}) {
    auto wrong = launch(by, 64);
    ASSERT_FALSE(wrong.ok()) << by;
    EXPECT_EQ(wrong.error().kind, ErrorKind::kLaunch);
    EXPECT_EQ(wrong.error().place.line, 6) << render(wrong.error());
  }
  auto more = launch(0, 1 << 16);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().message, "kernel 'far' reads element 65536 of 'x', which has 65536 elements, in program 64");
  ASSERT_OK(x.fill(4));
  auto claim = launch(0, 64);
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().place.line, 7) << "the assert stops nothing: " << render(claim.error());
  EXPECT_EQ(x.to_doubles()->at(0), 4);
}

TEST(GpuCheck, ProductsThroughDescriptors) {
  GPU_OR_SKIP(device);
  const int64_t a_shape[] = {256, 192}, b_shape[] = {192, 384}, c_shape[] = {256, 384};
  Tensor a = *Tensor::full(device, DType::kF16, a_shape, 0.5), b = *Tensor::full(device, DType::kF16, b_shape, 2),
         c = *Tensor::zeros(device, DType::kF16, c_shape);
  Kernel kernel = *Kernel::from_source(kProduct, "product.py");
  auto launch = [&](int64_t rows) {
    const std::optional<Arg> args[] = {a, b, c, rows, int64_t{384}, int64_t{192}, int64_t{1}};
    LaunchOptions options;
    options.num_warps = 8;
    return launch_checked(kernel, {(rows + 127) / 128, 3, 1}, args, options);
  };
  auto right = launch(256);
  ASSERT_TRUE(right.ok()) << render(right.error());
  EXPECT_EQ(*c.to_doubles(), std::vector<double>(256 * 384, 192));
  auto wrong = launch(300);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("element 49152 of 'a', which has 49152 elements"), std::string::npos)
      << render(wrong.error());
}

}  // namespace
}  // namespace kiln::runtime
