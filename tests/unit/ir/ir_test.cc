#include "compiler/ir/ir.h"

#include <gtest/gtest.h>

#include "compiler/ir/builder.h"

namespace kiln::ir {
namespace {

TEST(Ir, UsesFollowOperands) {
  Module m("k");
  Builder b(m);
  Value* x = m.add_arg(m.body(), scalar_type(DType::kI32), "x");
  Value* one = b.constant_int(x->type, 1);
  Value* sum = b.binary(OpKind::kAdd, x, one);
  EXPECT_EQ(x->uses.size(), 1u);
  sum->op->set_operand(0, one);
  EXPECT_TRUE(x->uses.empty());
  EXPECT_EQ(one->uses.size(), 2u);
  sum->op->erase();
  EXPECT_TRUE(one->uses.empty());
}

TEST(Ir, EraseDropsNestedUses) {
  Module m("k");
  Builder b(m);
  Value* n = m.add_arg(m.body(), scalar_type(DType::kI32), "n");
  Value* init = b.constant_int(n->type, 0);
  Op* loop = b.for_loop(init, n, n, std::span(&init, 1));
  b.set_to_end(loop->region());
  Value* next = b.binary(OpKind::kAdd, loop->region()->args[1], n);
  b.yield(std::span(&next, 1));
  EXPECT_EQ(n->uses.size(), 3u);
  loop->erase();
  EXPECT_TRUE(n->uses.empty());
  EXPECT_TRUE(init->uses.empty());
}

}  // namespace
}  // namespace kiln::ir
