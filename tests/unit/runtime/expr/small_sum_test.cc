// Sums of small tensors against the fake driver: what is copied to the host and back.
#ifdef FAKE_CUDA
#include <gtest/gtest.h>

#include "kiln/expr.h"
#include "kiln/tensor.h"
#include "tests/unit/runtime/cuda/fake/fake_device.h"

namespace kiln::runtime {
namespace {

using SmallSumTest = FakeDeviceTest;

TEST_F(SmallSumTest, CopiesNothing) {
  const int64_t shape[] = {100};
  const auto x = Tensor::full(Device(impl), DType::kF32, shape, 1.0);
  ASSERT_TRUE(x.ok()) << x.error().message;
  ExprAttributes along;
  along.axes = {0};
  const auto sum = apply(ExprOp::kSum, {Expr(*x)}, along);
  ASSERT_TRUE(sum.ok()) << sum.error().message;
  fake->param_bytes = {8, 8};
  const auto result = run_on_host(*sum);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(fake->count("cuLaunchKernel") + fake->count("cuLaunchKernelEx"), 1);
  EXPECT_EQ(fake->count("cuMemcpyDtoHAsync"), 0);
  EXPECT_EQ(fake->count("cuMemcpyHtoDAsync"), 0);
}

}  // namespace
}  // namespace kiln::runtime
#endif
