#include "compiler/analysis/affine.h"

#include <gtest/gtest.h>

namespace kiln::analysis {
namespace {

class AffineTest : public testing::Test {
 protected:
  /// The kernel's values by name; parameters x (a pointer), m, n, k.
  void parse(const std::string& body) {
    auto m = ir::parse_module(
        SourceText::make("t.ir", "kernel @t(%x: *f16, %m: i32, %n: i32, %k: i32) {\n" + body + "\n  return\n}\n"));
    ASSERT_TRUE(m.ok()) << render(m.error());
    ASSERT_TRUE(ir::verify(**m).ok());
    module_ = std::move(*m);
  }
  const ir::Value* value(std::string_view name) const {
    const ir::Value* found = nullptr;
    for (const ir::Value* v : module_->body()->args)
      if (v->name == name) found = v;
    ir::walk(module_->body(), [&](ir::Op* op) {
      for (const ir::Value* v : op->results)
        if (v->name == name) found = v;
      for (const ir::Block* b : op->regions)
        for (const ir::Value* v : b->args)
          if (v->name == name) found = v;
    });
    EXPECT_TRUE(found) << name;
    return found;
  }
  Polynomial p(std::string_view name) const { return Polynomial(value(name)); }

  std::unique_ptr<ir::Module> module_;
};

constexpr char kTile[] = R"(
  %c16 = constant 16 : i32
  %start = mul %m, %c16 : i32
  %r = arange {start = 0, end = 16} : i32[16]
  %starts = splat %start : i32[16]
  %rows = add %starts, %r : i32[16]
  %rows2 = expand_dims %rows {axis = 1} : i32[16, 1]
  %strides = splat %n : i32[16, 1]
  %far = mul %rows2, %strides : i32[16, 1]
  %c = arange {start = 0, end = 8} : i32[8]
  %columns = expand_dims %c {axis = 0} : i32[1, 8]
  %xs = splat %x : *f16[16, 1]
  %row_ptrs = addptr %xs, %far : *f16[16, 1]
  %wide = broadcast %row_ptrs : *f16[16, 8]
  %offsets = broadcast %columns : i32[16, 8]
  %ptrs = addptr %wide, %offsets : *f16[16, 8]
)";

TEST_F(AffineTest, PolynomialsMultiplyAndDivide) {
  parse("");
  const Polynomial a = p("m") * p("n") * Polynomial(6) + p("k") + Polynomial(4);
  const auto [q, r] = a.divide(p("n") * Polynomial(2));
  EXPECT_EQ(q, p("m") * Polynomial(3));
  EXPECT_EQ(r, p("k") + Polynomial(4));
  EXPECT_EQ(a - a, Polynomial());
  EXPECT_EQ((p("m") - p("m") + Polynomial(7)).constant(), 7);
  EXPECT_EQ(a.constant(), std::nullopt);
  EXPECT_EQ((p("m") * p("n")), (p("n") * p("m")));
  EXPECT_TRUE((p("m") * Polynomial(int64_t{0})).is_zero());
}

TEST_F(AffineTest, PointerTilesHaveABaseAStartAndSteps) {
  parse(kTile);
  const auto tile = affine_tile(value("ptrs"));
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->base, value("x"));
  EXPECT_EQ(tile->start, p("m") * p("n") * Polynomial(16));
  EXPECT_EQ(tile->steps[0], p("n"));
  EXPECT_EQ(tile->steps[1], Polynomial(1));
  EXPECT_FALSE(tile->wraps[0] || tile->wraps[1]);
}

TEST_F(AffineTest, ModuloWrapsOneDimension) {
  parse(std::string(kTile) + R"(
  %ks = splat %k : i32[16]
  %wrapped = rem %rows, %ks : i32[16]
  %twice = rem %wrapped, %ks : i32[16]
  %doubled = add %rows, %rows : i32[16]
  %odd = rem %doubled, %ks : i32[16]
  %mixed = add %wrapped, %r : i32[16]
)");
  const auto tile = affine_tile(value("wrapped"));
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->wraps[0], p("k"));
  EXPECT_EQ(tile->start, p("m") * Polynomial(16));
  for (const char* name : {"twice", "odd", "mixed"}) EXPECT_FALSE(affine_tile(value(name))) << name;
}

TEST_F(AffineTest, CarriedPointersMoveWithTheLoop) {
  parse(std::string(kTile) + R"(
  %lo = constant 8 : i32
  %four = constant 4 : i32
  %step = constant 64 : i32
  %moved = splat %step : i32[16, 8]
  %end = for %i = %lo to %k step %four iter (%now = %ptrs) : i32 -> (*f16[16, 8]) {
    %next = addptr %now, %moved : *f16[16, 8]
    yield %next
  }
)");
  const auto tile = affine_tile(value("now"));
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->start, p("m") * p("n") * Polynomial(16) + p("i") * Polynomial(16) - Polynomial(8 * 16));
}

TEST_F(AffineTest, LoopsThatMoveUnevenlyAreNotAffine) {
  parse(std::string(kTile) + R"(
  %lo = constant 0 : i32
  %three = constant 3 : i32
  %end = for %i = %lo to %k step %three iter (%now = %ptrs) : i32 -> (*f16[16, 8]) {
    %moved = splat %i : i32[16, 8]
    %next = addptr %now, %moved : *f16[16, 8]
    yield %next
  }
)");
  EXPECT_FALSE(affine_tile(value("now")));
}

TEST_F(AffineTest, MasksAreBounds) {
  parse(std::string(kTile) + R"(
  %ks = splat %k : i32[16, 1]
  %below = cmp %rows2, %ks {predicate = "lt"} : i1[16, 1]
  %all_below = broadcast %below : i1[16, 8]
  %ns = splat %n : i32[1, 8]
  %above = cmp %ns, %columns {predicate = "gt"} : i1[1, 8]
  %all_above = broadcast %above : i1[16, 8]
  %both = and %all_below, %all_above : i1[16, 8]
  %equal = cmp %rows2, %ks {predicate = "eq"} : i1[16, 1]
  %zero = constant 0 : i32[16, 1]
  %from_zero = cmp %rows2, %zero {predicate = "ge"} : i1[16, 1]
  %from_k = cmp %ks, %rows2 {predicate = "le"} : i1[16, 1]
)");
  const auto bounds = index_bounds(value("both"));
  ASSERT_TRUE(bounds);
  ASSERT_EQ(bounds->size(), 2u);
  EXPECT_EQ((*bounds)[0].dim, 0);
  EXPECT_EQ((*bounds)[0].start, p("m") * Polynomial(16));
  EXPECT_EQ((*bounds)[0].bound, p("k"));
  EXPECT_EQ((*bounds)[1].dim, 1);
  EXPECT_EQ((*bounds)[1].start, Polynomial());
  EXPECT_EQ((*bounds)[1].bound, p("n"));
  EXPECT_FALSE(index_bounds(value("equal")));
  const auto from_zero = index_bounds(value("from_zero"));
  ASSERT_TRUE(from_zero && from_zero->size() == 1);
  EXPECT_EQ((*from_zero)[0].start, p("m") * Polynomial(16));
  EXPECT_FALSE((*from_zero)[0].bound);
  EXPECT_FALSE(index_bounds(value("from_k"))) << "a lower bound is known to be met when it is 0";
}

}  // namespace
}  // namespace kiln::analysis
