#include "compiler/fusion/tile_choice.h"

#include <gtest/gtest.h>

#include "tests/unit/fusion/plan_fixture.h"

namespace kiln::fusion {
namespace {

using testing::hopper_machine;

/// Halves in rows of `columns`, of one tensor.
RowWork halves(int64_t rows, int64_t columns) {
  RowWork w;
  w.n_rows = rows;
  w.n_cols = columns;
  w.widest = 2;
  w.tensors = 1;
  w.along = true;
  return w;
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

}  // namespace
}  // namespace kiln::fusion
