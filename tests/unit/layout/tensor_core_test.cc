#include "compiler/layout/tensor_core.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "compiler/layout/dot_plan.h"
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

/// Runs of two f32 lie as halves do in a register, and runs of four as bytes.
TEST(TensorCore, OperandsInRuns) {
  const LinearLayout c = mma_accumulator(Shape{64, 32}, Shape{2, 2});
  EXPECT_EQ(to_string(mma_operand(DotSide::kA, Shape{64, 32}, 32, c, 2)),
            "[64, 32] register (8,0)(0,1)(0,8)(0,16)(16,0) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (32,0)(0,0)");
  EXPECT_EQ(to_string(mma_operand(DotSide::kB, Shape{32, 32}, 32, c, 2)),
            "[32, 32] register (1,0)(8,0)(16,0)(0,8) lane (2,0)(4,0)(0,1)(0,2)(0,4) warp (0,0)(0,16)");
  EXPECT_EQ(to_string(mma_operand(DotSide::kB, Shape{32, 32}, 16, c, 4)),
            "[32, 32] register (1,0)(2,0)(16,0)(0,8) lane (4,0)(8,0)(0,1)(0,2)(0,4) warp (0,0)(0,16)");
  EXPECT_EQ(to_string(mma_operand(DotSide::kA, Shape{64, 16}, 32, c, 4)),
            "[64, 16] register (8,0)(0,1)(0,2)(16,0) lane (0,4)(0,8)(1,0)(2,0)(4,0) warp (32,0)(0,0)");
  for (const int width : {0, 1, 2})
    EXPECT_EQ(mma_operand(DotSide::kA, Shape{64, 32}, 16, c, width), mma_operand(DotSide::kA, Shape{64, 32}, 16, c));
  // The first instruction takes the first half of each run of four registers' worth, the second the other.
  std::vector<int32_t> order;
  for (int32_t k = 0; k < 16; ++k) order.push_back(mma_depth_index(k, 32, 4));
  EXPECT_EQ(order, (std::vector<int32_t>{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}));
}

/// Instructions multiply what lanes hold at the same place of both operands: that must be the same element along k,
/// each once for each element of the result.
TEST(TensorCore, InstructionsMultiplyTheSameElementsAlongK) {
  with_seeds(60, [](std::mt19937& rng) {
    const int bits = 8 << pick(rng, 3);
    const int32_t m = 1 << pick(rng, 7), n = 1 << pick(rng, 7), k = mma_depth(bits) << pick(rng, 3);
    const int k_width = 1 << pick(rng, static_cast<uint32_t>(std::countr_zero(static_cast<uint32_t>(k))) - 1);
    const Shape warps = {1 << pick(rng, 3), 1 << pick(rng, 3)};
    const LinearLayout c = mma_accumulator(Shape{m, n}, warps),
                       a = mma_operand(DotSide::kA, Shape{m, k}, bits, c, k_width),
                       b = mma_operand(DotSide::kB, Shape{k, n}, bits, c, k_width);
    const auto plan = plan_mma(a, b, c, bits, k_width);
    ASSERT_TRUE(plan) << to_string(a) << "\n" << to_string(b) << "\n" << to_string(c) << " width " << k_width;
    const LinearLayout tile_a = mma_operand_tile(DotSide::kA, bits), tile_b = mma_operand_tile(DotSide::kB, bits),
                       tile_c = mma_accumulator_tile();
    const uint32_t warp = pick(rng, static_cast<uint32_t>(c.size(In::kWarp)));
    std::map<std::array<int32_t, 2>, std::multiset<int32_t>> summed;  // over what, for each element of the result
    for (const DotStep& step : plan->steps) {
      // What the warp holds at each place of the instruction's tiles.
      const auto held = [&](const LinearLayout& tile, const LinearLayout& layout, const std::vector<int>& registers) {
        std::map<std::array<int32_t, 2>, Coord> r;
        for (uint32_t reg = 0; reg < static_cast<uint32_t>(tile.num_registers()); ++reg)
          for (uint32_t lane = 0; lane < 32; ++lane) {
            const Coord at = tile.apply(reg, lane, 0);
            r[{at[0], at[1]}] = layout.apply(static_cast<uint32_t>(registers[reg]), lane, warp);
          }
        return r;
      };
      const auto of_a = held(tile_a, a, step.a), of_b = held(tile_b, b, step.b), of_c = held(tile_c, c, step.c);
      for (const auto& [at, sum] : of_c)
        for (int32_t i = 0; i < mma_depth(bits); ++i) {
          const Coord x = of_a.at({at[0], i}), y = of_b.at({i, at[1]});
          ASSERT_EQ(x[1], y[0]) << to_string(a) << "\n" << to_string(b);
          ASSERT_EQ(x[0], sum[0]);
          ASSERT_EQ(y[1], sum[1]);
          if (at[0] < m && at[1] < n) summed[{sum[0], sum[1]}].insert(x[1]);
        }
    }
    std::multiset<int32_t> all;
    for (int32_t i = 0; i < k; ++i) all.insert(i);
    for (const auto& [at, over] : summed) ASSERT_EQ(over, all) << at[0] << ", " << at[1] << " width " << k_width;
  });
}

/// Every warp must hold the whole rows and columns of a that its elements of c ask for.
TEST(TensorCore, OperandsFeedTheirAccumulator) {
  with_seeds(60, [](std::mt19937& rng) {
    const int bits = 8 << pick(rng, 3);
    const int32_t m = 1 << pick(rng, 7), n = 1 << pick(rng, 7), k = mma_depth(bits) << pick(rng, 2),
                  batch = 1 << pick(rng, 2);
    const Shape warps = {1 << pick(rng, 2), 1 << pick(rng, 3), 1 << pick(rng, 3)};
    const int k_width = pick(rng, 2) ? k / 4 : 0;
    const LinearLayout c = mma_accumulator(Shape{batch, m, n}, warps),
                       a = mma_operand(DotSide::kA, Shape{batch, m, k}, bits, c, k_width),
                       b = mma_operand(DotSide::kB, Shape{batch, k, n}, bits, c, k_width);
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

// Of each k, a step has an operand of the one before it: of a's where a thread's columns are neighbours, else of b's.
TEST(TensorCore, MultiplicationsGoThereAndBack) {
  for (const int neighbours : {4, 1}) {
    const LinearLayout c =
        blocked(Shape{32, 64}, Shape{4, neighbours}, Shape{8, 4}, Shape{1, 1}, std::vector<int>{1, 0});
    const LinearLayout a = fma_operand(DotSide::kA, Shape{32, 4}, c), b = fma_operand(DotSide::kB, Shape{4, 64}, c);
    const auto plan = plan_fma(a, b, c);
    ASSERT_TRUE(plan);
    const size_t of_k = static_cast<size_t>(c.num_registers());
    ASSERT_EQ(plan->steps.size(), 4 * of_k);
    std::set<int> sums;
    size_t same_a = 0, same_b = 0;
    for (size_t i = 0; i < of_k; ++i) {
      const DotStep& step = plan->steps[i];
      sums.insert(step.c[0]);
      EXPECT_EQ(plan->steps[i + of_k].c, step.c);
      if (i == 0) continue;
      same_a += step.a == plan->steps[i - 1].a;
      same_b += step.b == plan->steps[i - 1].b;
    }
    EXPECT_EQ(sums.size(), of_k);
    EXPECT_EQ(same_a + same_b, of_k - 1);
    EXPECT_EQ((neighbours > 1 ? same_b : same_a), (neighbours > 1 ? 4u : 16u) - 1);
  }
}

}  // namespace
}  // namespace kiln::layout
