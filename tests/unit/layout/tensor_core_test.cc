#include "compiler/layout/tensor_core.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/layout/random_layout.h"

namespace kiln::layout {
namespace {

using Shape = std::vector<int32_t>;

// The texts are the tables of the PTX ISA, "Matrix fragments for mma.m16n8k8 / k16 / k32" and "for wgmma m64nNk…".
TEST(TensorCore, InstructionTiles) {
  EXPECT_EQ(to_string(mma_accumulator_tile()), "[16, 8] register (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0)");
  EXPECT_EQ(to_string(mma_operand_tile(DotSide::kA, 32)), "[16, 8] register (8,0)(0,4) lane (0,1)(0,2)(1,0)(2,0)(4,0)");
  EXPECT_EQ(to_string(mma_operand_tile(DotSide::kB, 32)), "[8, 8] register (4,0) lane (1,0)(2,0)(0,1)(0,2)(0,4)");
  EXPECT_EQ(to_string(mma_operand_tile(DotSide::kA, 16)),
            "[16, 16] register (0,1)(8,0)(0,8) lane (0,2)(0,4)(1,0)(2,0)(4,0)");
  EXPECT_EQ(to_string(mma_operand_tile(DotSide::kB, 16)), "[16, 8] register (1,0)(8,0) lane (2,0)(4,0)(0,1)(0,2)(0,4)");
  EXPECT_EQ(to_string(mma_operand_tile(DotSide::kA, 8)),
            "[16, 32] register (0,1)(0,2)(8,0)(0,16) lane (0,4)(0,8)(1,0)(2,0)(4,0)");
  EXPECT_EQ(to_string(mma_operand_tile(DotSide::kB, 8)),
            "[32, 8] register (1,0)(2,0)(16,0) lane (4,0)(8,0)(0,1)(0,2)(0,4)");
}

// The same tables as the formulas that the ISA prints under them.
TEST(TensorCore, InstructionTilesByTheIsaFormulas) {
  for (int bits : {8, 16, 32}) {
    const LinearLayout a = mma_operand_tile(DotSide::kA, bits), b = mma_operand_tile(DotSide::kB, bits);
    const uint32_t packed = 32 / static_cast<uint32_t>(bits);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t group = lane >> 2, in_group = lane % 4;
      for (uint32_t i = 0; i < 4 * packed; ++i) {
        const uint32_t word = i / packed;
        EXPECT_EQ(a.apply(i, lane, 0)[0], static_cast<int32_t>(word % 2 ? group + 8 : group));
        EXPECT_EQ(a.apply(i, lane, 0)[1],
                  static_cast<int32_t>(in_group * packed + i % packed + (word >= 2 ? 4 * packed : 0)));
      }
      for (uint32_t i = 0; i < 2 * packed; ++i) {
        EXPECT_EQ(b.apply(i, lane, 0)[0],
                  static_cast<int32_t>(in_group * packed + i % packed + (i >= packed ? 4 * packed : 0)));
        EXPECT_EQ(b.apply(i, lane, 0)[1], static_cast<int32_t>(group));
      }
    }
  }
}

TEST(TensorCore, Tiles) {
  EXPECT_EQ(to_string(mma_accumulator(Shape{64, 32}, Shape{2, 2})),
            "[64, 32] register (0,1)(8,0)(0,8)(16,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (32,0)(0,16)");
  const LinearLayout c = mma_accumulator(Shape{64, 32}, Shape{2, 2});
  EXPECT_EQ(to_string(mma_operand(DotSide::kA, Shape{64, 32}, 16, c)),
            "[64, 32] register (0,1)(8,0)(0,8)(0,16)(16,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (32,0)(0,0)");
  EXPECT_EQ(to_string(mma_operand(DotSide::kB, Shape{32, 32}, 16, c)),
            "[32, 32] register (1,0)(8,0)(16,0)(0,8) lane (2,0)(4,0)(0,1)(0,2)(0,4) warp (0,0)(0,16)");
  // Eight rows are half an instruction; the other half would be copies.
  EXPECT_EQ(to_string(mma_accumulator(Shape{8, 16}, Shape{1, 4})),
            "[8, 16] register (0,1) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (0,8)(0,0)");
  EXPECT_EQ(to_string(mma_accumulator(Shape{4, 16, 8}, Shape{2, 1, 1})),
            "[4, 16, 8] register (0,0,1)(0,8,0)(1,0,0) lane (0,0,2)(0,0,4)(0,1,0)(0,2,0)(0,4,0) warp (2,0,0)");
  EXPECT_EQ(to_string(wgmma_accumulator(Shape{64, 32}, 4)),
            "[64, 32] register (0,1)(8,0)(0,8)(0,16) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)");
  EXPECT_EQ(to_string(wgmma_accumulator(Shape{256, 16}, 8)),
            "[256, 16] register (0,1)(8,0)(0,8)(64,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)(128,0)");
  EXPECT_EQ(to_string(wgmma_accumulator(Shape{64, 16}, 8)),
            "[64, 16] register (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)(0,8)");
  EXPECT_EQ(to_string(mma_operand(DotSide::kA, Shape{64, 32}, 16, wgmma_accumulator(Shape{64, 16}, 8))),
            "[64, 32] register (0,1)(8,0)(0,8)(0,16) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)(0,0)");
}

/// Every warp must hold the whole rows and columns of a that its elements of c ask for.
TEST(TensorCore, OperandsFeedTheirAccumulator) {
  with_seeds(60, [](std::mt19937& rng) {
    const int bits = 8 << pick(rng, 3);
    const int32_t m = 1 << pick(rng, 7), n = 1 << pick(rng, 7), k = mma_depth(bits) << pick(rng, 2),
                  batch = 1 << pick(rng, 2);
    const Shape warps = {1 << pick(rng, 2), 1 << pick(rng, 3), 1 << pick(rng, 3)};
    const LinearLayout c = mma_accumulator(Shape{batch, m, n}, warps),
                       a = mma_operand(DotSide::kA, Shape{batch, m, k}, bits, c),
                       b = mma_operand(DotSide::kB, Shape{batch, k, n}, bits, c);
    ASSERT_EQ(c.size(In::kWarp), warps[0] * warps[1] * warps[2]);
    for (const LinearLayout* l : {&c, &a, &b}) {
      EXPECT_TRUE(is_surjective(*l)) << to_string(*l);
      EXPECT_TRUE(has_unit_bases(*l)) << to_string(*l);
      EXPECT_EQ(l->bits(In::kWarp), c.bits(In::kWarp));
    }
    auto held = [](const LinearLayout& l, uint32_t warp) {
      std::set<std::array<int32_t, 3>> r;
      for (uint32_t reg = 0; reg < static_cast<uint32_t>(l.num_registers()); ++reg)
        for (uint32_t lane = 0; lane < 32; ++lane) {
          Coord at = l.apply(reg, lane, warp);
          r.insert({at[0], at[1], at[2]});
        }
      return r;
    };
    const uint32_t warp = pick(rng, static_cast<uint32_t>(c.size(In::kWarp)));
    const auto of_a = held(a, warp), of_b = held(b, warp);
    for (auto [at, row, column] : held(c, warp))
      for (int32_t i = 0; i < k; ++i) {
        ASSERT_TRUE(of_a.contains({at, row, i})) << to_string(c) << "\n" << to_string(a);
        ASSERT_TRUE(of_b.contains({at, i, column})) << to_string(c) << "\n" << to_string(b);
      }
  });
}

TEST(TensorCore, SwizzledTexts) {
  EXPECT_EQ(to_string(swizzled(Shape{16, 128}, 16, 128, std::vector{1, 0})),
            "[16, 128] offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(0,64)");
  EXPECT_EQ(to_string(swizzled(Shape{32, 64}, 16, 64, std::vector{0, 1})),
            "[32, 64] offset (1,0)(2,0)(4,0)(8,0)(16,0)(0,1)(8,2)(16,4)(0,8)(0,16)(0,32)");
  EXPECT_EQ(to_string(swizzled(Shape{16, 32}, 8, 32, std::vector{1, 0})),
            "[16, 32] offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,0)(4,16)(8,0)");
  EXPECT_EQ(to_string(swizzled(Shape{2, 4, 32}, 32, 128, std::vector{2, 1, 0})),
            "[2, 4, 32] offset (0,0,1)(0,0,2)(0,0,4)(0,0,8)(0,0,16)(0,1,4)(0,2,8)(1,0,16)");
}

/// Against the hardware's rule: the 16-byte chunk number of an address is xored with the 128-byte line number.
TEST(TensorCore, SwizzledMovesChunks) {
  with_seeds(60, [](std::mt19937& rng) {
    const int bytes = 32 << pick(rng, 3), bits = 8 << pick(rng, 3), size = bits / 8;
    const int32_t row = bytes / size;
    const bool transposed = pick(rng, 2);
    Shape shape = {1 << pick(rng, 6), row << pick(rng, 3)};
    const int32_t rows = shape[0];
    if (transposed) std::swap(shape[0], shape[1]);
    const LinearLayout l = swizzled(shape, bits, bytes, transposed ? std::vector{0, 1} : std::vector{1, 0});
    EXPECT_TRUE(is_injective(l) && is_surjective(l));
    for (uint32_t offset = 0; offset < static_cast<uint32_t>(num_elements(l)); ++offset) {
      const uint32_t address = offset * static_cast<uint32_t>(size),
                     straight = address ^ ((address >> 7 & static_cast<uint32_t>(bytes / 16 - 1)) << 4);
      const int32_t at = static_cast<int32_t>(straight) / size, panel = at / (rows * row), in_panel = at % (rows * row);
      Coord c = l.apply(In::kOffset, offset);
      if (transposed) std::swap(c[0], c[1]);
      ASSERT_EQ(c[0], in_panel / row);
      ASSERT_EQ(c[1], panel * row + in_panel % row);
    }
  });
}

TEST(TensorCore, WidestSwizzle) {
  EXPECT_EQ(widest_swizzle(64, 16), 128);
  EXPECT_EQ(widest_swizzle(128, 32), 128);
  EXPECT_EQ(widest_swizzle(64, 8), 64);
  EXPECT_EQ(widest_swizzle(16, 16), 32);
  EXPECT_EQ(widest_swizzle(16, 8), 0);
}

}  // namespace
}  // namespace kiln::layout
