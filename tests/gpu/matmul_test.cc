// The persistent matmul kernel on a real GPU, against float64: every dtype and layout, ragged sizes, epilogues.
#include <gtest/gtest.h>

#include "kernels/matmul_persistent/matmul.h"
#include "tests/gpu/gpu_test_util.h"
#include "tests/unit/runtime/blas/matmul_check.h"

namespace kiln {
namespace {

using testing::check_product;
using testing::fresh_seed;
using testing::Product;

/// The kernel with a tile of the given size, or the table's.
testing::Multiply by_kernel(std::optional<kernels::MatmulTile> tile = std::nullopt) {
  return [tile](const Tensor& a, const Tensor& b, const MatmulOptions& options) -> Result<Tensor> {
    static kernels::Sources sources;
    kernels::MatmulEpilogue epilogue{options.bias, ""};
    if (options.activation == Activation::kGeluTanh) epilogue.activation = "gelu_tanh";
    KILN_TRY(kernels::Launch launch, kernels::matmul_launch(sources, a, b, options.out, epilogue, tile));
    KILN_CHECK_OK(launch.run());
    return options.out;
  };
}

struct Types {
  DType operand;
  std::optional<DType> result = {};
  bool tf32 = false;
};

TEST(GpuMatmul, EveryTypeAndLayoutAtRaggedSizes) {
  GPU_OR_SKIP(device);
  std::mt19937_64 random(fresh_seed());
  using enum DType;
  const Types types[] = {{kF16}, {kBF16}, {kF16, kF32}, {kF32, {}, true}, {kF8E4M3, kBF16}, {kF8E5M2, kBF16}, {kI8}};
  for (const Types& t : types)
    for (int layout = 0; layout < 4; ++layout)
      for (int i = 0; i < 4; ++i) {
        Product p{.a = t.operand, .b = t.operand, .d = t.result};
        // One gap aligns all rows: sizes are 1 modulo 16 with a gap of 15, where results are stored through pointers,
        // or multiples of 16 without a gap, where they leave in blocks.
        const int64_t rest = i % 2;
        constexpr uint64_t kMost[] = {84, 84, 21, 21};  // times 16
        auto ragged = [&] { return (1 - rest + static_cast<int64_t>(random() % kMost[i])) * 16 + rest; };
        p.m = ragged(), p.n = ragged(), p.k = ragged();
        p.a_transposed = layout & 1, p.b_transposed = layout & 2;
        p.gap = rest * 15;
        p.options.tf32 = t.tf32;
        check_product(device, p, random(), nullptr, by_kernel());
        if (HasFatalFailure()) return;
      }
}

TEST(GpuMatmul, EveryTileOfTheTable) {
  GPU_OR_SKIP(device);
  const kernels::MatmulTile tiles[] = {
      {128, 256, 64, 3, 8}, {128, 128, 64, 4, 8}, {64, 256, 64, 4, 4},  {128, 64, 64, 4, 8}, {64, 128, 64, 4, 4},
      {64, 64, 64, 4, 4},   {128, 128, 32, 5, 4}, {256, 128, 64, 3, 8}, {64, 64, 128, 2, 8}, {128, 64, 128, 4, 8},
      {64, 32, 128, 4, 4},  {16, 64, 128, 4, 4},  {16, 128, 64, 3, 4},  {32, 64, 64, 4, 4},  {32, 128, 64, 2, 8}};
  for (const kernels::MatmulTile& tile : tiles) {
    SCOPED_TRACE(kernels::to_string(tile));
    Product p{.a = DType::kBF16, .b = DType::kBF16, .m = 385, .n = 528, .k = 320};
    check_product(device, p, fresh_seed(), nullptr, by_kernel(tile));
    if (HasFatalFailure()) return;
  }
}

// Results of more than 64 KB leave in parts; where B lies along N they are made the other way round.
TEST(GpuMatmul, LargeResultsLeaveInParts) {
  GPU_OR_SKIP(device);
  for (bool transposed : {false, true}) {
    Product p{.a = DType::kF32, .b = DType::kF32, .m = 385, .n = 528, .k = 160};
    p.b_transposed = transposed;
    p.options.tf32 = true;
    check_product(device, p, fresh_seed(), nullptr, by_kernel(kernels::MatmulTile{128, 256, 32, 3, 8}));
    if (HasFatalFailure()) return;
  }
}

// Few tiles and a long sum: programs share it, and the last one to come adds their parts. Again and again, as the
// counts of those who came must be as before.
TEST(GpuMatmul, SplitSums) {
  GPU_OR_SKIP(device);
  for (auto [m, n, k] :
       {std::tuple{16, 1024, 8192}, std::tuple{64, 512, 4096}, std::tuple{5, 48, 4112}, std::tuple{128, 128, 16384}})
    for (bool transposed : {false, true}) {
      Product p{.a = DType::kBF16, .b = DType::kBF16, .m = m, .n = n, .k = k, .bias = true};
      p.b_transposed = transposed;
      p.options.activation = Activation::kGeluTanh;
      check_product(device, p, fresh_seed(), nullptr, by_kernel());
      if (HasFatalFailure()) return;
    }
  const int64_t a_shape[] = {16, 8192}, b_shape[] = {8192, 1024}, shape[] = {16, 1024};
  Tensor a = *randn(device, DType::kBF16, a_shape, 1), b = *randn(device, DType::kBF16, b_shape, 2),
         out = *Tensor::empty(device, DType::kBF16, shape);
  kernels::Sources sources;
  auto launch = kernels::matmul_launch(sources, a, b, out);
  ASSERT_TRUE(launch.ok()) << render(launch.error());
  ASSERT_EQ(launch->kernel.name(), "matmul_split");
  std::vector<double> first;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(launch->run());
    std::vector<double> got = *out.to_doubles();
    if (i == 0) first = got;
    EXPECT_EQ(got, first);
  }
}

// Fewer rows than a warp group multiplies: the product is made the other way round.
TEST(GpuMatmul, FewRows) {
  GPU_OR_SKIP(device);
  using enum DType;
  for (DType type : {kBF16, kF16, kF8E4M3, kI8, kF32})
    for (int layout = 0; layout < 4; ++layout)
      for (int64_t m : {1, 7, 16}) {
        Product p{.a = type, .b = type, .m = m, .n = 528, .k = 400};
        if (type == kF8E4M3) p.d = kBF16;
        p.a_transposed = layout & 1, p.b_transposed = layout & 2;
        // Where A lies along m, one gap aligns the rows of all three.
        if (p.a_transposed) p.n = 512 + m, p.k = 384 + m, p.gap = (16 - m % 16) % 16;
        p.options.tf32 = type == kF32;
        check_product(device, p, fresh_seed(), nullptr, by_kernel());
        if (HasFatalFailure()) return;
      }
}

TEST(GpuMatmul, BiasAndGelu) {
  GPU_OR_SKIP(device);
  for (bool gelu : {false, true}) {
    Product p{.a = DType::kBF16, .b = DType::kBF16, .m = 257, .n = 528, .k = 144, .bias = true};
    if (gelu) p.options.activation = Activation::kGeluTanh;
    check_product(device, p, fresh_seed(), nullptr, by_kernel());
    if (HasFatalFailure()) return;
  }
}

// More tiles than multiprocessors: each program goes round its loop several times.
TEST(GpuMatmul, ProgramsTakeSeveralTiles) {
  GPU_OR_SKIP(device);
  Product p{.a = DType::kF16, .b = DType::kF16, .m = 2049, .n = 1552, .k = 64};
  check_product(device, p, fresh_seed(), nullptr, by_kernel(kernels::MatmulTile{64, 64, 64, 4, 4}));
}

// Blocks of a cluster part a tile and bring each other what all of them need.
TEST(GpuMatmul, ClustersAtRaggedSizes) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "needs clusters";
  std::mt19937_64 random(fresh_seed());
  using enum DType;
  const Types types[] = {{kF16}, {kBF16}, {kF32, {}, true}, {kF8E4M3, kBF16}, {kI8}};
  struct Shape {
    int m, n, row_bytes, stages, warps, ctas;
  };
  const Shape shapes[] = {{128, 128, 128, 4, 8, 2}, {128, 128, 128, 4, 4, 2}, {256, 64, 128, 4, 8, 2},
                          {128, 256, 128, 4, 8, 4}, {16, 128, 256, 4, 4, 2},  {64, 64, 128, 3, 4, 2},
                          {256, 256, 128, 3, 8, 2}};
  for (const Types& t : types)
    for (int layout = 0; layout < 4; ++layout)
      for (const Shape& s : shapes) {
        if (s.n == 256 && s.m == 256 && size_of(t.operand) == 4) continue;  // too much shared memory
        kernels::MatmulTile tile{s.m, s.n, s.row_bytes / size_of(t.operand), s.stages, s.warps};
        tile.ctas = s.ctas;
        SCOPED_TRACE(kernels::to_string(tile));
        Product p{.a = t.operand, .b = t.operand, .d = t.result};
        const int64_t rest = static_cast<int64_t>(random() % 2);
        auto ragged = [&] { return (1 - rest + static_cast<int64_t>(random() % 60)) * 16 + rest; };
        p.m = ragged(), p.n = ragged(), p.k = ragged();
        p.a_transposed = layout & 1, p.b_transposed = layout & 2;
        p.gap = rest * 15;
        p.options.tf32 = t.tf32;
        check_product(device, p, random(), nullptr, by_kernel(tile));
        if (HasFatalFailure()) return;
      }
}

// Each product reads what the one before wrote, and may begin before that has ended.
TEST(GpuMatmul, AChainOfEarlyLaunches) {
  GPU_OR_SKIP(device);
  if (device.info().target != "sm_90a") GTEST_SKIP() << "needs dependent launches";
  const int64_t shape[] = {512, 512};
  Tensor start = *randn(device, DType::kBF16, shape, 1), w = *randn(device, DType::kBF16, shape, 2);
  Tensor turns[] = {*Tensor::empty(device, DType::kBF16, shape), *Tensor::empty(device, DType::kBF16, shape)};
  kernels::Sources sources;
  std::vector<double> first;
  for (int ctas : {1, 2})
    for (int round = 0; round < 101; ++round) {
      kernels::MatmulTile tile{128, 64 * ctas, 64, 4, 8};
      tile.ctas = ctas;
      ASSERT_OK(turns[0].copy_from(start));
      for (int i = 0; i < 10; ++i) {
        auto launch = kernels::matmul_launch(sources, turns[i % 2], w, turns[1 - i % 2], {}, tile);
        ASSERT_TRUE(launch.ok()) << render(launch.error());
        launch->options.launch_pdl = round > 0;
        ASSERT_OK(launch->run());
      }
      std::vector<double> got = *turns[0].to_doubles();
      if (first.empty()) first = got;
      ASSERT_EQ(got, first) << "round " << round << ", " << ctas << " blocks";
    }
}

TEST(GpuMatmul, RowsThatAreNotAlignedAreRefused) {
  GPU_OR_SKIP(device);
  Tensor a = testing::make_operand(device, DType::kF16, 0, 64, 63, false, 0, 1);
  Tensor b = testing::make_operand(device, DType::kF16, 0, 63, 64, false, 0, 2);
  Tensor out = *Tensor::empty(device, DType::kF16, std::vector<int64_t>{64, 64});
  kernels::Sources sources;
  auto launch = kernels::matmul_launch(sources, a, b, out);
  ASSERT_FALSE(launch.ok());
  EXPECT_EQ(launch.error().message, "a of a product has rows of 126 bytes, and they must start at multiples of 16");
}

}  // namespace
}  // namespace kiln
