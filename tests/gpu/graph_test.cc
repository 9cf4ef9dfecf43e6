// CUDA graphs on a real GPU: what a stream recorded, replayed.
#include "kiln/graph.h"

#include <gtest/gtest.h>

#include "kiln/blas.h"
#include "kiln/kernel.h"
#include "kiln/tensor.h"
#include "tests/gpu/gpu_test_util.h"
#include "tests/unit/runtime/add_one.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

TEST(GpuGraph, ReplaysLaunchesCopiesAndProducts) {
  GPU_OR_SKIP(device);
  constexpr int64_t kRows = 129, kSize = kRows * kRows;
  Kernel kernel = *Kernel::from_source(kAddOneSource, "add_one.py");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{kRows, kRows}),
         y = *Tensor::zeros(device, DType::kF32, Shape{kRows, kRows}),
         product = *Tensor::full(device, DType::kF32, Shape{kRows, kRows}, -7);
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(kSize), Arg(int64_t{1024})};
  auto work = [&]() -> Status {
    KILN_CHECK_OK(kernel.launch({(kSize + 1023) / 1024, 1, 1}, args));
    KILN_CHECK_OK(y.copy_from(x));
    KILN_CHECK_OK(kernel.launch({(kSize + 1023) / 1024, 1, 1}, args));
    MatmulOptions options;
    options.out = product;
    auto done = matmul(x, y, options);
    if (!done.ok()) return std::move(done.error());
    return {};
  };
  ASSERT_OK(work());  // compiles, and opens cuBLAS
  ASSERT_OK(device.synchronize());
  auto graph = Graph::capture(device, work);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_GE(graph->size(), 4);
  EXPECT_EQ(x.to_doubles()->at(0), 2) << "a capture runs nothing";
  for (int i = 1; i <= 3; ++i) {
    ASSERT_OK(graph->launch());
    EXPECT_EQ(x.to_doubles()->at(kSize - 1), 2.0 + 2 * i);
    EXPECT_EQ(y.to_doubles()->at(kSize - 1), 1.0 + 2 * i);
    EXPECT_EQ(product.to_doubles()->at(kSize / 2), (2.0 + 2 * i) * (1.0 + 2 * i) * kRows);
  }
  auto refused = Graph::capture(device, [&] { return device.synchronize(); });
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(x.to_doubles()->at(0), 8) << "the stream works again";
}

}  // namespace
}  // namespace kiln::runtime
