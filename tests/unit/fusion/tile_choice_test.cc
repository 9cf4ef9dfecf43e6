#include "compiler/fusion/tile_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion {
namespace {

using testing::add_input;
using testing::hopper_machine;
using testing::PlanTest;

/// Halves in rows of `columns`, of one tensor.
RowWork halves(int64_t rows, int64_t columns) {
  RowWork w;
  w.n_rows = rows;
  w.n_cols = columns;
  w.widest = 2;
  w.tensors = w.of_rows = 1;
  w.along = true;
  return w;
}

/// Products of float32 whose sums are in registers.
class SumsInRegisters : public PlanTest {
 protected:
  /// The product's kernel, of operands that lie along k (or across it) in memory.
  Group product_of(const Shape& s, bool a_along_k, bool b_along_k) {
    p = {};
    auto matrix = [&](int64_t rows, int64_t columns, bool by_rows, const char* name) {
      return add_input(p, device, DType::kF32, {rows, columns}, by_rows ? Shape{columns, 1} : Shape{1, rows}, 0,
                       std::vector<double>(static_cast<size_t>(rows * columns), 1), name);
    };
    const int x = matrix(s[0], s[2], a_along_k, "x"), w = matrix(s[2], s[1], !b_along_k, "w");
    p.graph.outputs = {op(ExprOp::kMatMul, {x, w})};
    const auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
    EXPECT_TRUE(made.ok()) << render(made.error());
    return made.ok() ? made->groups.at(0) : Group();
  }
};

int64_t constant(const Group& g, const char* name) {
  const auto found = std::ranges::find(g.arguments, name, &Argument::name);
  return found == g.arguments.end() ? 0 : std::get<int64_t>(found->value);
}

/// Rows of floats at odd addresses along k in both operands: a thread copies them one by one, and registers leave room
/// for three programs of tall tiles, and four of others.
TEST_F(SumsInRegisters, FillTheirRounds) {
  const Group g = product_of({384, 1175, 7761}, true, true);
  const bool is_tall = constant(g, "BLOCK_M") == 128;
  if (is_tall) {
    EXPECT_EQ(g.maxnreg, 168);
  }
  const int64_t at_once = (is_tall ? 3 : 4) * hopper_machine().multiprocessors, rest = g.grid[0] % at_once;
  EXPECT_TRUE(rest == 0 || rest * 4 > at_once * 3) << g.grid[0] << " programs, " << at_once << " at once";
}

/// Where both operands lie across k: wide tiles are tall ones too, since 64 x 128 sums by 32 steps of k spill.
TEST_F(SumsInRegisters, WideTilesAreTall) {
  for (const Shape& s :
       {Shape{2979, 1585, 252}, Shape{3055, 536, 2616}, Shape{1505, 4216, 52}, Shape{2048, 1024, 640}}) {
    const Group g = product_of(s, false, false);
    EXPECT_TRUE(constant(g, "BLOCK_N") <= 64 || constant(g, "BLOCK_M") == 128)
        << ::testing::PrintToString(s) << ": " << constant(g, "BLOCK_M") << " x " << constant(g, "BLOCK_N");
  }
}

/// Narrow tiles have more programs at once where registers are left for them, and where they are not tall, of which
/// each step has half as many columns: 128 x 32 took 400 us for 2048^3, 390 by 64 x 64.
TEST_F(SumsInRegisters, NarrowTilesLeaveRegisters) {
  for (const Shape& s : {Shape{2048, 2048, 2048}, Shape{1999, 2001, 1003}, Shape{15312, 256, 384}}) {
    const Group g = product_of(s, true, false);
    EXPECT_GE(constant(g, "BLOCK_N"), 64) << ::testing::PrintToString(s) << ": " << constant(g, "BLOCK_M");
  }
  EXPECT_EQ(constant(product_of({3392, 288, 808}, false, false), "BLOCK_N"), 32);
  EXPECT_EQ(constant(product_of({8000, 127, 1152}, true, false), "BLOCK_N"), 64);
}

/// Odd rows are copied in words, whose addresses take registers in each stage: tall tiles spill with four stages, and
/// where both operands lie along k with 32 columns.
TEST_F(SumsInRegisters, OddRowsLeaveRegisters) {
  for (const Shape& s : {Shape{2979, 1585, 252}, Shape{3055, 536, 2616}, Shape{3653, 2407, 401}})
    for (const bool a_along : {false, true})
      for (const bool b_along : {false, true}) {
        const Group g = product_of(s, a_along, b_along);
        const int64_t rows = constant(g, "BLOCK_M"), k = constant(g, "BLOCK_K");
        const bool odd = (a_along ? s[2] : s[0]) % 4 || (b_along ? s[2] : s[1]) % 4;
        if (odd && rows == 128) {
          EXPECT_LE(g.num_stages, 3) << ::testing::PrintToString(s) << (a_along ? " N" : " T") << (b_along ? "T" : "N");
        }
        if (odd && a_along && b_along && rows == 64 && constant(g, "BLOCK_N") == 64) {
          EXPECT_EQ(k, 16) << ::testing::PrintToString(s);
        }
      }
}

/// Tuning tries 16 columns of k beside 32, and tall narrow tiles; 32 only where they divide k or the last are masked.
TEST_F(SumsInRegisters, AreTunedOverShallowAndNarrowTiles) {
  auto has = [](const Group& g, int64_t m, int64_t n, int64_t k) {
    using Constants = std::vector<std::pair<std::string, int64_t>>;
    return std::ranges::find(g.configurations, Constants{{"BLOCK_M", m}, {"BLOCK_N", n}, {"BLOCK_K", k}},
                             &Configuration::constants) != g.configurations.end();
  };
  const Group masked = product_of({3055, 536, 2611}, true, false);
  EXPECT_TRUE(has(masked, 128, 32, 16));
  EXPECT_TRUE(has(masked, 64, 64, 16) || constant(masked, "BLOCK_K") == 16);
  const Group whole = product_of({2048, 640, 16 * 65}, false, false);
  EXPECT_EQ(constant(whole, "BLOCK_K"), 16);
  EXPECT_FALSE(has(whole, 64, 64, 32));
}

TEST(RowTile, ProgramsHaveMoreOfTheRowsThatTheyDoNotStore) {
  RowWork w = halves(1 << 20, 64);
  const RowTile reduced = row_tile(hopper_machine(), w);
  EXPECT_EQ(reduced.rows * reduced.block, 4096);
  EXPECT_EQ(reduced.warps, 4);
  w.stores_rows = true;
  const RowTile stored = row_tile(hopper_machine(), w);
  EXPECT_EQ(stored.rows * stored.block, 1024);
  w.stores_rows = false;
  w.n_rows = 10000;
  EXPECT_EQ(row_tile(hopper_machine(), w).rows, 32) << "every processor has two programs";
}

/// Divisions of fewer elements of a thread take fewer registers.
TEST(RowTile, ManyDivisionsHaveMoreThreads) {
  RowWork w{.n_rows = 3146, .n_cols = 3000};
  w.tensors = 3, w.of_rows = 1, w.widest = w.read = 4, w.depth = 1, w.bytes = 8;
  w.stores_rows = w.computes = true;
  w.divisions = 2;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 4);
  w.divisions = 8;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 16) << "a thread has eight elements";
}

/// A program that moves little ends before the next begins.
TEST(RowTile, ProgramsThatMoveLittleHaveMoreRows) {
  RowWork w = halves(254996, 128);
  w.stores_rows = true;
  w.bytes = 4;
  const RowTile to_halves = row_tile(hopper_machine(), w);
  EXPECT_EQ(to_halves.rows, 16);
  w.bytes = 5;
  EXPECT_EQ(row_tile(hopper_machine(), w).rows, 8);
  EXPECT_EQ(to_halves.warps, 2 * row_tile(hopper_machine(), w).warps) << "a thread has as many elements";
  w.bytes = 3;
  const RowTile to_bytes = row_tile(hopper_machine(), w);
  EXPECT_EQ(to_bytes.rows, 16);
  EXPECT_EQ(to_bytes.warps * 2, to_halves.warps) << "a thread has twice the elements";
  w.n_rows = 17000;
  EXPECT_EQ(row_tile(hopper_machine(), w).rows, 8) << "programs are too few to wait for their beginning";
}

TEST(RowTile, TheLastProgramTakesAllRowsAtOnce) {
  RowWork w = halves(5, 105);
  EXPECT_LT(row_tile(hopper_machine(), w).rows, 5);
  w.alone = true;
  EXPECT_GE(row_tile(hopper_machine(), w).rows, 5);
}

TEST(RowTile, FewShortRowsHaveAWarpForEachLoad) {
  RowWork w = halves(34, 921);
  w.widest = 4;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 8);
  w.n_rows = 1 << 16;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 1);
}

TEST(RowTile, FewColumnsThatAreReadOnceHaveEightElementsPerThread) {
  RowWork w = halves(8703, 29);
  w.widest = 4;
  w.along = false;
  w.stores_rows = true;
  const RowTile few = row_tile(hopper_machine(), w);
  EXPECT_EQ(few.rows * few.block, 8 * 32 * few.warps);
  EXPECT_FALSE(few.loop);
  w.n_rows = 1 << 20;
  const RowTile many = row_tile(hopper_machine(), w);
  EXPECT_EQ(many.rows * many.block, 16 * 32 * many.warps);
}

TEST(RowTile, WideFloatsOfOneTensorAreReadAgain) {
  RowWork w = halves(2297, 10304);
  w.widest = 4;
  w.stores_rows = true;
  w.tensors = 3;
  EXPECT_TRUE(row_tile(hopper_machine(), w).loop);
  w.of_rows = 2;
  EXPECT_FALSE(row_tile(hopper_machine(), w).loop) << "a residual would be read again, too";
  w.of_rows = 1;
  w.n_cols = 10305;
  EXPECT_FALSE(row_tile(hopper_machine(), w).loop) << "odd rows are read one by one";
}

TEST(RowTile, HalvesThatFillTheRegistersAreReadAgain) {
  RowWork w = halves(1872, 14016);
  w.stores_rows = true;
  w.tensors = 3;
  w.of_rows = 1;
  w.depth = 2;
  EXPECT_TRUE(row_tile(hopper_machine(), w).loop);
  w.n_cols = 11008;
  EXPECT_FALSE(row_tile(hopper_machine(), w).loop) << "44 KB of registers leave another program room";
  w.n_cols = 14016;
  w.tensors = 1;
  EXPECT_FALSE(row_tile(hopper_machine(), w).loop) << "nothing else takes registers";
}

TEST(RowTile, WhatAllRowsShareTakesNoThreadsRegisters) {
  RowWork w = halves(6824, 2558);
  w.stores_rows = true;
  w.tensors = 3;
  const int shared = row_tile(hopper_machine(), w).warps;
  w.of_rows = 3;
  EXPECT_EQ(shared, 2 * row_tile(hopper_machine(), w).warps);
}

TEST(CrossingTile, ShortRunsHaveLongerPieces) {
  const CrossingTile images = crossing_tile(hopper_machine(), 8 * 8 * 128, 128, 8);
  EXPECT_EQ(images.columns, 128);
  EXPECT_EQ(crossing_tile(hopper_machine(), 8 * 8 * 128, 192, 8).columns, 64) << "a piece would not be whole";
  EXPECT_EQ(crossing_tile(hopper_machine(), 4096, 4096, 4096).columns, 64);
}

TEST(RowTile, WideHalvesLeaveOtherProgramsRoom) {
  RowWork w = halves(3000, 11008);
  w.stores_rows = true;
  w.depth = 2;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 8);
  w.exponentials = true;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 16);
  w.exponentials = false;
  w.widest = 4;
  EXPECT_EQ(row_tile(hopper_machine(), w).warps, 16);
}

/// Columns of float32 that are scanned along rows.
RowWork columns(int64_t count, int64_t length) {
  RowWork w;
  w.n_rows = count;
  w.n_cols = length;
  w.widest = w.read = 4;
  w.tensors = 1;
  w.depth = 0;
  w.along = false;
  w.stores_rows = true;
  return w;
}

TEST(ScanTile, ShortColumnsAreHeldWhole) {
  const RowTile few = scan_tile(hopper_machine(), columns(64, 1300));
  EXPECT_FALSE(few.loop);
  EXPECT_EQ(few.rows, 1) << "as many programs as there are columns";
  EXPECT_EQ(few.warps, 16);
  const RowTile many = scan_tile(hopper_machine(), columns(3000, 1300));
  EXPECT_FALSE(many.loop);
  EXPECT_EQ(many.rows * many.block, 16384);
  EXPECT_EQ(many.warps, 8);
  RowWork several = columns(3000, 1300);
  several.tensors = 4;
  EXPECT_TRUE(scan_tile(hopper_machine(), several).loop) << "registers for all of them hold less than a sector";
  several.n_rows = 200;
  EXPECT_EQ(scan_tile(hopper_machine(), several).rows, 2);
  RowWork longs = columns(3000, 1000);
  longs.widest = longs.read = 8;
  EXPECT_EQ(scan_tile(hopper_machine(), longs).rows, 8);
  EXPECT_EQ(scan_tile(hopper_machine(), longs).warps, 8) << "as many registers to a thread";
  EXPECT_TRUE(scan_tile(hopper_machine(), columns(3000, 5000)).loop);
  RowWork part = columns(3000, 1300);
  part.splits = 4;
  EXPECT_TRUE(scan_tile(hopper_machine(), part).loop);
}

TEST(ScanTile, LoopsOverColumnsLoadAhead) {
  // Half a line of each row where lines leave processors without programs, and 16 elements to a thread. A whole one of
  // rows that begin within sectors, while each processor has a program.
  for (int64_t count : {4096, 7001, 3001, 100000}) {
    const RowTile t = scan_tile(hopper_machine(), columns(count, 4000));
    EXPECT_TRUE(t.loop && t.ahead);
    EXPECT_EQ(t.rows, count == 100000 ? 64 : count == 7001 ? 32 : 16);
    EXPECT_EQ(t.rows * t.block, 512 * t.warps);
    EXPECT_EQ(t.warps, count == 100000 ? 8 : 16);
    EXPECT_EQ(t.registers, count == 100000 ? 0 : 64) << "two programs to a processor";
  }
  RowWork w = columns(4096, 4000);
  w.tensors = 2;
  EXPECT_FALSE(scan_tile(hopper_machine(), w).ahead) << "no shared memory for other programs";
  w.tensors = 1, w.read = w.widest = 2;
  EXPECT_FALSE(scan_tile(hopper_machine(), w).ahead) << "asynchronous copies of less than four bytes";
}

TEST(RowTile, WideFloatsLeaveASecondProgramRoom) {
  RowWork w = halves(3000, 40000);
  w.stores_rows = true;
  EXPECT_EQ(row_tile(hopper_machine(), w).block, 8192);
  w.widest = 4;
  const RowTile floats = row_tile(hopper_machine(), w);
  EXPECT_EQ(floats.block, 4096);
  EXPECT_EQ(floats.warps, 16);
}

TEST(ScanTile, FewRowsAreTakenWhole) {
  RowWork w = halves(23, 15800);
  const RowTile whole = scan_tile(hopper_machine(), w);
  EXPECT_EQ(whole.block, 16384);
  EXPECT_EQ(whole.warps, 32);
  EXPECT_FALSE(whole.loop);
  w.n_rows = 3000;
  EXPECT_EQ(scan_tile(hopper_machine(), w).block, 4096);
}

/// Columns, 64 rows of them side by side, in parts: a part is one tile where it fits, and whole tiles else.
TEST(ScanTile, PartsThatWaitHaveFewThreads) {
  RowWork w{.n_rows = 1, .n_cols = int64_t{1} << 26, .splits = 8192, .chunk = 8192, .looks_back = true, .tensors = 1};
  w.widest = w.read = 2;
  RowTile t = scan_tile(hopper_machine(), w);
  EXPECT_EQ(t.warps, 4);
  EXPECT_EQ(t.run, 8) << "16 bytes";
  w.chunk = 16384;
  EXPECT_EQ(scan_tile(hopper_machine(), w).warps, 4) << "two halves to a register";
  w.chunk = 8192;
  w.tensors = 2;
  EXPECT_EQ(scan_tile(hopper_machine(), w).warps, 8) << "another tensor's elements take registers, too";
  w.tensors = 1, w.widest = w.read = 4;
  t = scan_tile(hopper_machine(), w);
  EXPECT_EQ(t.warps, 4);
  EXPECT_EQ(t.run, 4);
  w.widest = w.read = 8;
  t = scan_tile(hopper_machine(), w);
  EXPECT_EQ(t.warps, 4);
  EXPECT_EQ(t.run, 2);
  w.read = 4;
  t = scan_tile(hopper_machine(), w);
  EXPECT_EQ(t.warps, 8) << "sums take more registers than what is read";
  EXPECT_EQ(t.run, 2);
  w.chunk = 4096, w.read = 1;
  t = scan_tile(hopper_machine(), w);
  EXPECT_EQ(t.warps, 4);
  EXPECT_EQ(t.run, 1) << "held in registers";
  // Many parts of rows that begin where no vector does.
  w.n_rows = 1000, w.splits = 17, w.shifted = true, w.widest = w.read = 2;
  EXPECT_EQ(scan_tile(hopper_machine(), w).warps, 2);
  w.widest = w.read = 8;
  EXPECT_EQ(scan_tile(hopper_machine(), w).warps, 4) << "words of 64 bits spill";
  w.n_rows = 8, w.widest = w.read = 2;
  EXPECT_EQ(scan_tile(hopper_machine(), w).warps, 4) << "few programs";
}

TEST(ScanTile, FewProgramsHaveLargeTiles) {
  RowWork w = halves(64, 32768);
  w.along = false;
  w.splits = 64;
  for (int64_t chunk : {512, 192}) {
    w.chunk = chunk;
    const RowTile t = scan_tile(hopper_machine(), w);
    EXPECT_EQ(chunk % t.block, 0);
    EXPECT_EQ(t.block, chunk == 512 ? 512 : 64);
  }
  w.n_rows = 100000;
  EXPECT_EQ(scan_tile(hopper_machine(), w).block, 64) << "other programs work meanwhile";
}

/// Of a short row whose instructions take longer than its memory, what lies beyond its columns is not computed.
TEST_F(PlanTest, ShortRowsThatComputeMuchAreHeldUpToTheirEnd) {
  const int x = tensor(DType::kF32, {400, 629}, "x");
  ExprAttributes column;
  column.shape = {400, 1};
  auto mean = [&](int of) { return axis(ExprOp::kMean, of, {1}); };
  const int away = op(ExprOp::kSub, {x, op(ExprOp::kReshape, {mean(x)}, column)});
  const int deviation = op(ExprOp::kSqrt, {mean(op(ExprOp::kMul, {away, away}))});
  const int z = op(ExprOp::kDiv, {away, op(ExprOp::kReshape, {deviation}, column)});
  const int z2 = op(ExprOp::kMul, {z, z});
  const Plan made =
      check({mean(op(ExprOp::kMul, {z2, z})), mean(op(ExprOp::kMul, {z2, z2}))}, Variant::kFused, hopper_machine());
  ASSERT_EQ(made.groups.size(), 1u) << plan_text(made);
  EXPECT_NE(made.groups[0].source.find("HELD"), std::string::npos) << made.groups[0].source;
  p = {};
  const Plan quick =
      check({axis(ExprOp::kSum, tensor(DType::kF32, {400, 629}, "x"), {1})}, Variant::kFused, hopper_machine());
  EXPECT_EQ(quick.groups[0].source.find("HELD"), std::string::npos) << quick.groups[0].source;
}

/// 1840 x 2048 has 3.6 tiles of 128 x 64 for each multiprocessor, and 1.8 of 128 x 128; of 4096 x 4096 there are so
/// many that a part of one more round is no reason to sum in two parts.
TEST_F(PlanTest, LastRoundsChooseTilesOfSumsInRegisters) {
  auto expect_columns = [&](int a, int b, int64_t columns) {
    p.graph.outputs = {op(ExprOp::kMatMul, {a, b})};
    const auto made = plan(p.graph, {Variant::kFused, hopper_machine()});
    ASSERT_TRUE(made.ok()) << render(made.error());
    ASSERT_EQ(made->groups.size(), 1u) << plan_text(*made);
    const auto chosen = std::ranges::find(made->groups[0].arguments, "BLOCK_N", &Argument::name);
    ASSERT_NE(chosen, made->groups[0].arguments.end());
    EXPECT_EQ(std::get<int64_t>(chosen->value), columns) << plan_text(*made);
  };
  expect_columns(tensor(DType::kF32, {1840, 512}, "a"), tensor(DType::kF32, {512, 2048}, "b", {1, 512}), 128);
  const int large = add_input(p, device, DType::kF32, {4096, 4096}, {4096, 1}, 0,
                              std::vector<double>(size_t{4096} * 4096, 1), "large");
  expect_columns(large, large, 64);
}

}  // namespace
}  // namespace kiln::fusion
