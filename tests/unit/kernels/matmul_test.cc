// The kernels that multiply matrices, on the CPU, against float64.
#include "kernels/matmul_persistent/matmul.h"

#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/blas/matmul_check.h"

namespace kiln::kernels {
namespace {

using testing::Product;

TEST(MatmulPointers, EveryLayout) {
  const MatmulTile tile{16, 32, 16, 3, 4};
  for (int layout = 0; layout < 4; ++layout) {
    Product p{.a = DType::kF32, .b = DType::kF32, .m = 35, .n = 67, .k = 41};
    p.a_transposed = layout & 1, p.b_transposed = layout & 2;
    testing::check_product(*open_device("cpu"), p, testing::fresh_seed(), nullptr,
                           [&](const Tensor& a, const Tensor& b, const MatmulOptions& options) -> Result<Tensor> {
                             Sources sources;
                             KILN_TRY(Launch launch, pointer_matmul_launch(sources, a, b, options.out, tile));
                             KILN_CHECK_OK(launch.run());
                             return options.out;
                           });
  }
}

void check(const MatmulTile& tile, const Product& p) {
  SCOPED_TRACE(to_string(tile));
  testing::check_product(*open_device("cpu"), p, testing::fresh_seed(), nullptr,
                         [&](const Tensor& a, const Tensor& b, const MatmulOptions& options) -> Result<Tensor> {
                           Sources sources;
                           MatmulEpilogue epilogue{options.bias, ""};
                           if (options.activation == Activation::kGeluTanh) epilogue.activation = "gelu_tanh";
                           KILN_TRY(Launch launch, matmul_launch(sources, a, b, options.out, epilogue, tile));
                           // The second run finds what the first one left.
                           for (int i = 0; i < 2; ++i) KILN_CHECK_OK(launch.run());
                           return options.out;
                         });
}

TEST(MatmulPersistent, RaggedSizes) {
  Product p{.a = DType::kF32, .b = DType::kF32, .m = 70, .n = 132, .k = 100};
  check({32, 64, 32, 3, 4}, p);
  p.a_transposed = p.b_transposed = true;
  p.m = 72;
  check({16, 64, 32, 3, 4}, p);
}

// One tile, and one program: neither operand is read again.
TEST(MatmulOnce, RaggedSizes) {
  Product p{.a = DType::kF32, .b = DType::kF32, .m = 50, .n = 132, .k = 100, .bias = true};
  const MatmulTile tile{64, 256, 32, 3, 4};
  check(tile, p);
  p.a_transposed = p.b_transposed = true;
  p.m = 48;
  p.options.activation = Activation::kGeluTanh;
  check(tile, p);
}

TEST(MatmulPersistent, ProgramsShareTheSumOfATile) {
  Product p{.a = DType::kF32, .b = DType::kF32, .m = 5, .n = 132, .k = 500, .bias = true};
  for (int splits : {2, 3, 7, 16}) {
    MatmulTile tile{16, 64, 32, 3, 4};
    tile.splits = splits;
    p.options.activation = splits % 2 ? Activation::kGeluTanh : Activation::kNone;
    check(tile, p);
  }
}

TEST(MatmulTile, SplitsWhereTilesAreFew) {
  const int processors = 132;
  const MatmulTile few{16, 64, 128, 8, 4};
  EXPECT_EQ(choose_splits(few, {.m = 16, .n = 1024, .k = 8192}, processors), 8);  // of 16 tiles
  EXPECT_EQ(choose_splits(few, {.m = 16, .n = 1024, .k = 1024}, processors), 2);  // of 8 steps
  EXPECT_EQ(choose_splits(few, {.m = 16, .n = 8192, .k = 8192}, processors), 1);  // 128 tiles
  EXPECT_EQ(choose_splits(few, {.m = 0, .n = 1024, .k = 8192}, processors), 1);
}

TEST(MatmulTile, ClustersWhereTheyHelp) {
  const int processors = 132;
  auto chosen = [&](int64_t m, int64_t n, int bytes) {
    return to_string(choose_tile({.m = m, .n = n, .k = 4096, .operand_bytes = bytes, .result_bytes = bytes}, processors,
                                 {.most_ctas = 2}));
  };
  EXPECT_EQ(chosen(1024, 1024, 2), "128x64x64, 9 stages, 8 warps");
  EXPECT_EQ(chosen(2048, 2048, 2), "128x256x64, 4 stages, 8 warps");
  EXPECT_EQ(chosen(4096, 4096, 2), "128x256x64, 3 stages, 8 warps");
  EXPECT_EQ(chosen(8192, 28672, 2), "128x256x64, 3 stages, 8 warps");
  EXPECT_EQ(chosen(16, 8192, 2), "16x128x64, 16 stages, 4 warps, 2 blocks");
  EXPECT_EQ(chosen(4096, 4096, 4), "256x128x32, 3 stages, 8 warps");
  for (int64_t m : {1, 16, 512, 2048})
    for (const MatmulTile& t : rank_tiles({.m = m, .n = 2048, .k = 2048}, processors)) EXPECT_EQ(t.ctas, 1);
}

}  // namespace
}  // namespace kiln::kernels
