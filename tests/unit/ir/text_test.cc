// The text form: what is printed parses back to the same text; errors have places.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/builder.h"

namespace kiln::ir {
namespace {

Result<std::unique_ptr<Module>> parse(const std::string& text) {
  return parse_module(SourceText::make("test.ir", text));
}

void expect_round_trip(const std::string& text) {
  auto m = parse(text);
  ASSERT_TRUE(m.ok()) << render(m.error());
  EXPECT_EQ(print(**m), text);
  EXPECT_EQ(print(*clone(**m)), text);
}

TEST(Text, NamesAreUniqueAndStable) {
  Module m("k");
  Builder b(m);
  m.params = {{"x", 16}, {"n", 1}};
  m.add_arg(m.body(), pointer_type(DType::kF32), "x");
  Value* n = m.add_arg(m.body(), scalar_type(DType::kI32), "n");
  for (const char* name : {"offsets", "offsets", "offsets_1", "", "3", "a b"}) {
    Value* v = b.binary(OpKind::kAdd, n, n);
    v->name = m.intern(name);
  }
  b.ret();
  const std::string text = print(m);
  EXPECT_EQ(
      text,
      "kernel @k(%x: *f32 {divisibility = 16}, %n: i32) attributes {num_warps = 4, num_stages = 3, num_ctas = 1} {\n"
      "  %offsets = add %n, %n : i32\n"
      "  %offsets_1 = add %n, %n : i32\n"
      "  %offsets_1_1 = add %n, %n : i32\n"
      "  %0 = add %n, %n : i32\n"
      "  %_3 = add %n, %n : i32\n"
      "  %a_b = add %n, %n : i32\n"
      "  return\n"
      "}\n");
  expect_round_trip(text);
}

TEST(Text, ConstantsKeepTheirValue) {
  Module m("k");
  Builder b(m);
  const double doubles[] = {0.1, -0.0, 1e300, 5e-324, HUGE_VAL, -HUGE_VAL, 1.0, 1e22, 3.0000000000000004};
  for (double d : doubles) b.constant_float(scalar_type(DType::kF64), d);
  for (double d : {0.1, 1e-45, 3e38}) b.constant_float(tile_type(DType::kF32, {4, 2}), static_cast<float>(d));
  for (int64_t i : {INT64_MIN, INT64_MAX, int64_t{-1}}) b.constant_int(scalar_type(DType::kU64), i);
  b.ret();
  auto copy = parse(print(m));
  ASSERT_TRUE(copy.ok()) << render(copy.error());
  const Op* theirs = (*copy)->body()->first;
  for (const Op* op = m.body()->first; op != m.body()->last; op = op->next, theirs = theirs->next)
    EXPECT_EQ(*op->find(AttrName::kValue), *theirs->find(AttrName::kValue)) << print(*op);
  EXPECT_TRUE(std::signbit(std::get<double>(*(*copy)->body()->first->next->find(AttrName::kValue))));
}

TEST(Text, ParserRoundsFloatConstantsToTheirType) {
  auto m = parse("kernel @k() {\n  %0 = constant 0.1 : f16\n  return\n}\n");
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(std::get<double>(*(*m)->body()->first->find(AttrName::kValue)), 0.0999755859375);
}

constexpr char kEverything[] =
    R"(layout L0 = [128] {register = [(1), (2)], lane = [(4), (8), (16), (32), (64)], warp = [(0), (0)]}
layout L1 = [2, 2] {block = [(0, 1)], offset = [(1, 0)]}
kernel @all(%x: *f32, %n: i32 {divisibility = 16}) attributes {num_warps = 8, num_stages = 2, num_ctas = 1, stage = "distributed", shared_bytes = 64} {
  %c = constant 1 : i32[128]{L0}
  %big = constant 1.5 : f32[128]{L0}
  %p = splat %x : *f32[128]{L0}
  %m = cmp %c, %c {predicate = "eq"} : i1[128]{L0}
  %v = load %p, %m, %big {cache = ".cg", volatile = true} : f32[128]{L0}
  %s = reduce %v {axis = 0} : f32 (%a: f32, %b: f32) {
    %0 = add %a, %b : f32
    yield %0
  }
  %w = hint %c {multiple_of = [16]} : i32[128]{L0}
  %z = constant 0 : i32
  %o = constant 1 : i32
  %sum, %i_1 = for %i = %z to %n step %o iter (%acc = %s, %j = %z) : i32 -> (f32, i32) attributes {num_stages = 3} {
    %1 = add %acc, %s : f32
    yield %1, %i
  }
  for %2 = %z to %n step %o : i32 {
    yield
  }
  %last = while (%k = %z) : i32 {
    %more = cmp %k, %n {predicate = "lt"} : i1
    condition %more, %k
  } do (%k_1: i32) {
    %next = add %k_1, %o : i32
    yield %next
  }
  %flag = cmp %last, %n {predicate = "ge"} : i1
  if %flag {
    print %last {text = "odd \"text\"\\ with\nlines\x01", hex = false}
    yield
  }
  %r = if %flag : i32 {
    yield %z
  } else {
    yield %o
  }
  if %flag {
    yield
  } else {
    store %x, %sum
    yield
  }
  return
}
)";
// A word that its attribute does not know is an error in the text, with the ones that it knows.
TEST(Text, UnknownWordsAreErrors) {
  const std::pair<const char*, const char*> wrong[] = {
      {"%a = cmp %n, %n {predicate = \"slt\"} : i1",
       "predicate is one of 'eq', 'ne', 'lt', 'le', 'gt', 'ge', got 'slt'"},
      {"%a = max %f, %f {nan = \"never\"} : f32", "nan is one of 'propagate', got 'never'"},
      {"%a = atomic_rmw %x, %f {rmw = \"fadd\", sem = \"strong\", scope = \"gpu\"} : f32",
       "sem is one of 'acquire', 'release', 'acq_rel', 'relaxed', got 'strong'"}};
  for (const auto& [op, message] : wrong) {
    auto m = parse_module(
        SourceText::make("t.ir", fmt::format("kernel @k(%x: *f32, %n: i32, %f: f32) {{\n{}\nreturn\n}}\n", op)));
    ASSERT_FALSE(m.ok()) << op;
    EXPECT_EQ(m.error().message, message);
    EXPECT_EQ(m.error().place.line, 2);
  }
}

TEST(Text, EveryFormRoundTrips) { expect_round_trip(kEverything); }

TEST(Text, OpsPrintWithTheModulesNames) {
  auto m = parse(kEverything);
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(print(*(*m)->body()->first), "%c = constant 1 : i32[128]{L0}");
  const Op* loop = nullptr;
  for (const Op* op : *(*m)->body())
    if (op->kind == OpKind::kWhile) loop = op;
  EXPECT_EQ(print(*loop->region(1)->first), "%next = add %k_1, %o : i32");
}

struct BadText {
  const char *name, *text, *where, *message;
};
class BadTextTest : public testing::TestWithParam<BadText> {};

TEST_P(BadTextTest, IsAnErrorWithAPlace) {
  auto m = parse(GetParam().text);
  ASSERT_FALSE(m.ok());
  const Place& p = m.error().place;
  EXPECT_EQ(std::to_string(p.line) + ":" + std::to_string(p.column), GetParam().where);
  EXPECT_EQ(m.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Text, BadTextTest,
    testing::Values(
        BadText{"empty", "", "1:1", "expected 'kernel', got 'the end of the text'"},
        BadText{"char", "kernel @k() { ; }", "1:15", "';' does not start any token of tile IR"},
        BadText{"string", "kernel @k() {\n  print {text = \"a\n}", "2:17",
                "this string has no closing quote on its line"},
        BadText{"op", "kernel @k() {\n  addd\n}", "2:3", "unknown op 'addd'"},
        BadText{"value", "kernel @k() {\n  print %x {text = \"\"}\n}", "2:9", "%x is not defined above"},
        BadText{"twice", "kernel @k(%x: i32, %x: i32) { return }", "1:20", "%x is defined twice"},
        BadText{"type", "kernel @k(%x: int) { return }", "1:15", "expected a type, got 'int'"},
        BadText{
            "rank",
            "kernel @k(%x: i32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) { return }",
            "1:91", "a tile has at most 24 dimensions"},
        BadText{"layout", "kernel @k(%x: i32[2]{L0}) { return }", "1:22", "unknown layout 'L0'"},
        BadText{"attr", "kernel @k() { %x = program_id {axes = 0} : i32 }", "1:32",
                "expected the name of an attribute, got 'axes'"},
        BadText{"attr_kind", "kernel @k() { %x = program_id {axis = 0.5} : i32 }", "1:39",
                "expected an integer, got '0.5'"},
        BadText{"range", "kernel @k() { %x = constant 9223372036854775808 : i64 }", "1:29",
                "9223372036854775808 does not fit 64 bits"},
        BadText{"results", "kernel @k() { %x, %y = program_id {axis = 0} : i32 }", "1:24", "2 names for 1 results"},
        BadText{"close", "kernel @k() {\n  return\n", "3:1", "expected an op, got 'the end of the text'"},
        BadText{"after", "kernel @k() { return } kernel", "1:24", "expected the end of the text, got 'kernel'"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kiln::ir
