// Static guards of the kernels that multiply matrices: every tile of the table, in every form and type, becomes machine
// code without spills, within a block's shared memory, and without a remark of the assembler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul_persistent/matmul.h"
#include "support/diag.h"
#include "tests/unit/lower/remarks.h"
#include "tests/unit/open_device.h"

namespace kiln::kernels {
namespace {

constexpr int64_t kM = 2048, kN = 1024, kK = 768;
constexpr int64_t kMostSharedBytes = 227 << 10;  // that a block may have on Hopper

struct Types {
  DType operand, result;
};
constexpr Types kTypes[] = {{DType::kBF16, DType::kBF16},
                            {DType::kF16, DType::kF32},
                            {DType::kF32, DType::kF32},
                            {DType::kF8E4M3, DType::kBF16},
                            {DType::kI8, DType::kI32}};

struct Form {
  const char* name;
  Result<Launch> (*launch)(Sources&, const Tensor& a, const Tensor& b, const Tensor& out, MatmulTile tile);
  bool integers = true, splits = false;
};
constexpr Form kForms[] = {
    {"descriptors", [](Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out,
                       MatmulTile tile) { return matmul_launch(sources, a, b, out, {}, tile); }},
    {"descriptors, once",
     [](Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out, MatmulTile tile) -> Result<Launch> {
       const int64_t a_shape[] = {tile.m, kK}, b_shape[] = {kK, tile.n}, shape[] = {tile.m, tile.n};
       KILN_TRY(Tensor one_a, a.as_strided(a_shape, a.strides(), 0));
       KILN_TRY(Tensor one_b, b.as_strided(b_shape, b.strides(), 0));
       KILN_TRY(Tensor one_out, out.as_strided(shape, out.strides(), 0));
       KILN_TRY(Launch launch, matmul_launch(sources, one_a, one_b, one_out, {}, tile));
       EXPECT_EQ(launch.kernel.name(), "matmul_once");
       return launch;
     }},
    {"descriptors, split",
     [](Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out, MatmulTile tile) {
       tile.splits = 2;
       return matmul_launch(sources, a, b, out, {}, tile);
     },
     /*integers=*/true, /*splits=*/true},
    {"pointers",
     [](Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out, MatmulTile tile) {
       return pointer_matmul_launch(sources, a, b, out, tile);
     },
     /*integers=*/false},
};

Tensor matrix(const Device& device, DType type, int64_t rows, int64_t columns, bool transposed) {
  const int64_t shape[] = {rows, columns}, strides[] = {1, rows};
  Tensor t = *Tensor::empty(device, type, shape);
  return transposed ? *t.as_strided(shape, strides, 0) : t;
}

void expect_clean(const Launch& launch, bool by_warp_groups) {
  auto info = launch.kernel.compile(launch.args, launch.options, "sm_90a");
  ASSERT_TRUE(info.ok()) << render(info.error());
  auto has = [&](std::string_view text) { return info->ptx.find(text) != std::string::npos; };
  EXPECT_EQ(has("wgmma.mma_async"), by_warp_groups);
  // Of what is read once TMA knows it.
  EXPECT_EQ(has("createpolicy.fractional.L2::evict_first") && has(".L2::cache_hint"),
            by_warp_groups && launch.kernel.name() == "matmul_once");
  EXPECT_LE(info->shared_bytes, kMostSharedBytes);
  EXPECT_LE(info->spill_bytes, 0) << info->registers << " registers";
  testing_support::expect_no_remarks(info->warnings);
}

class MatmulTiles : public ::testing::TestWithParam<Types> {
 protected:
  Device cpu = *open_device("cpu");
  Sources sources;
};

TEST_P(MatmulTiles, BecomeCleanMachineCode) {
  const Types types = GetParam();
  // 8-bit operands come to the tensor cores with K contiguous: B lies transposed.
  const bool b_is_nk = size_of(types.operand) == 1;
  const Tensor a = matrix(cpu, types.operand, kM, kK, false), b = matrix(cpu, types.operand, kK, kN, b_is_nk),
               out = matrix(cpu, types.result, kM, kN, false);
  const auto tiles = rank_tiles(
      {.m = kM, .n = kN, .k = kK, .operand_bytes = size_of(types.operand), .result_bytes = size_of(types.result)}, 132,
      {.most_ctas = 2});
  ASSERT_GE(tiles.size(), 5u);
  for (const MatmulTile& tile : tiles)
    for (const Form& form : kForms) {
      if (is_int(types.operand) && !form.integers) continue;
      if (tile.ctas > 1 && form.splits) continue;  // who shares a sum counts who has come, block by block
      SCOPED_TRACE(fmt::format("{} x {} in {}, {}, {}", name(types.operand), name(types.operand), name(types.result),
                               form.name, to_string(tile)));
      auto launch = form.launch(sources, a, b, out, tile);
      ASSERT_TRUE(launch.ok()) << render(launch.error());
      // A 32-bit B along N makes the product the other way round, where the tile's columns are rows: 64 at least.
      expect_clean(*launch, size_of(types.operand) < 4 || tile.n >= 64);
    }
}

INSTANTIATE_TEST_SUITE_P(All, MatmulTiles, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(name(test.param.operand)); });

}  // namespace
}  // namespace kiln::kernels
