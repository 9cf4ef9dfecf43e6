// Each invariant of verifier.cc, broken by a small program.
#include <gtest/gtest.h>

#include "compiler/ir/builder.h"

namespace kiln::ir {
namespace {

std::unique_ptr<Module> parse(const std::string& body,
                              const std::string& header = "kernel @k(%x: *f32, %n: i32, %f: f32)") {
  auto m = parse_module(SourceText::make("test.ir", header + " {\n" + body + "\n}\n"));
  EXPECT_TRUE(m.ok()) << render(m.error());
  return m.ok() ? std::move(*m) : nullptr;
}

void expect_broken(const Module& m, int invariant) {
  const Status s = verify(m);
  ASSERT_FALSE(s.ok()) << print(m);
  EXPECT_EQ(s.error().kind, ErrorKind::kInternal);
  EXPECT_TRUE(s.error().message.starts_with("the IR breaks invariant " + std::to_string(invariant) + ":"))
      << s.error().message;
}

struct Broken {
  int invariant;
  const char* body;
};
class BrokenTest : public testing::TestWithParam<Broken> {};

TEST_P(BrokenTest, IsReported) {
  auto m = parse(GetParam().body);
  ASSERT_TRUE(m);
  expect_broken(*m, GetParam().invariant);
}

INSTANTIATE_TEST_SUITE_P(
    Verifier, BrokenTest,
    testing::Values(
        // 15: handles
        Broken{15,
               "%s = cast %n : i64\n%d = make_descriptor %x, %n, %s : desc f32[4]\n%a = hint %d : desc f32[4]\nreturn"},
        Broken{15, "%a = constant 1 : desc i32[4]\nreturn"},
        // 1: terminators
        Broken{1, ""}, Broken{1, "yield"}, Broken{1, "return\nreturn"}, Broken{1, "%c = program_id {axis = 0} : i32"},
        Broken{1, "%s = while (%i = %n) : i32 { yield %i } do (%j: i32) { yield %j }\nreturn"},
        // 2: scopes
        Broken{2, "for %i = %n to %n step %n : i32 { %y = add %i, %i : i32\nyield }\n%z = add %y, %y : i32\nreturn"},
        Broken{2,
               "%s = while (%i = %n) : i32 { %c = cmp %i, %n {predicate = \"lt\"} : i1\ncondition %c, %i } do (%j: "
               "i32) { yield %i }\nreturn"},
        // 4: counts
        Broken{4, "%a = add %n : i32\nreturn"}, Broken{4, "add %n, %n\nreturn"}, Broken{4, "load\nreturn"},
        // 5: attributes
        Broken{5, "%a = program_id : i32\nreturn"}, Broken{5, "%a = add %n, %n {axis = 0} : i32\nreturn"},
        // 6: attribute values
        Broken{6, "%a = program_id {axis = 3} : i32\nreturn"},
        Broken{6, "%a = cast %n {rounding = \"rtz\"} : f32\nreturn"},
        Broken{6, "%a = arange {start = 4, end = 4} : i32[1]\nreturn"},
        Broken{6, "%a = load %x {cache = \".wb\"} : f32\nreturn"},
        Broken{6, "%t = splat %n : i32[2, 4]\n%a = trans %t {order = [0, 0]} : i32[2, 4]\nreturn"},
        Broken{6, "%t = splat %n : i32[4]\n%a = hint %t {multiple_of = [1, 2]} : i32[4]\nreturn"},
        Broken{6, "%t = splat %n : i32[4]\n%a = expand_dims %t {axis = 2} : i32[4, 1]\nreturn"},
        Broken{6, "store %x, %f {cache = \".ca\"}\nreturn"},
        // 7: shapes
        Broken{7, "%t = splat %n : i32[3]\nreturn"}, Broken{7, "%t = splat %n : i32[0]\nreturn"},
        Broken{7, "%t = splat %n : i32[2048, 1024]\nreturn"},
        // 8: types, one or more per rule
        Broken{8, "%a = constant 1 : *i32\n%b = add %a, %a : *i32\nreturn"}, Broken{8, "%a = add %n, %f : i32\nreturn"},
        Broken{8, "%a = fma %n, %n, %n : i32\nreturn"}, Broken{8, "%a = xor %f, %f : f32\nreturn"},
        Broken{8, "%c = constant 1 : i8\n%a = mulhi %c, %c : i8\nreturn"},
        Broken{8, "%c = constant 1.0 : f16\n%a = exp %c : f16\nreturn"},
        Broken{8, "%a = program_id {axis = 0} : i64\nreturn"},
        Broken{8, "%a = arange {start = 0, end = 4} : i32[8]\nreturn"}, Broken{8, "%a = splat %n : f32[4]\nreturn"},
        Broken{8, "%a = splat %n : i32\nreturn"},
        Broken{8, "%t = splat %n : i32[2, 4]\n%a = broadcast %t : i32[4, 4, 4]\nreturn"},
        Broken{8, "%t = splat %n : i32[2, 4]\n%a = broadcast %t : i32[4, 4]\nreturn"},
        Broken{8, "%t = splat %n : i32[2, 4]\n%a = reshape %t : i32[4]\nreturn"},
        Broken{8, "%t = splat %n : i32[2, 4]\n%a = trans %t {order = [1, 0]} : i32[2, 4]\nreturn"},
        Broken{8, "%t = splat %n : i32[4]\n%a = expand_dims %t {axis = 0} : i32[4, 1]\nreturn"},
        Broken{8, "%t = splat %n : i32[4]\n%a = join %t, %t : i32[2, 4]\nreturn"},
        Broken{8, "%t = splat %n : i32[4, 4]\n%a, %b = split %t : i32[4], i32[4]\nreturn"},
        Broken{8, "%a = cmp %n, %f {predicate = \"eq\"} : i1\nreturn"},
        Broken{8, "%a = cmp %n, %n {predicate = \"eq\"} : i32\nreturn"},
        Broken{8, "%a = select %n, %n, %n : i32\nreturn"}, Broken{8, "%a = cast %x : i64\nreturn"},
        Broken{8, "%a = bitcast %n : i64\nreturn"}, Broken{8, "%a = bitcast %x : i64\nreturn"},
        Broken{8, "%a = int_to_ptr %n : *f32\nreturn"}, Broken{8, "%a = ptr_to_int %x : u64\nreturn"},
        Broken{8, "%a = addptr %x, %f : *f32\nreturn"}, Broken{8, "%a = addptr %n, %n : i32\nreturn"},
        Broken{8, "%a = load %n : i32\nreturn"}, Broken{8, "%a = load %x, %n : f32\nreturn"},
        Broken{8, "%t = constant 1 : i1\n%a = load %x, %t, %n : f32\nreturn"}, Broken{8, "store %x, %n\nreturn"},
        Broken{8, "%a = atomic_rmw %x, %f {rmw = \"add\", sem = \"relaxed\", scope = \"gpu\"} : f32\nreturn"},
        Broken{8, "%t = splat %f : f32[4]\n%a = reduce %t {axis = 0} : f32 (%l: f32) { yield %l }\nreturn"},
        Broken{8, "%t = splat %f : f32[4]\n%a = reduce %t {axis = 0} : f32[4] (%l: f32, %r: f32) { yield %l }\nreturn"},
        Broken{8,
               "%t = splat %f : f32[4]\n%a = reduce %t {axis = 0, contract = true} : f32 (%l: f32, %r: f32) { %m = max "
               "%l, %r : f32\nyield %m }\nreturn"},
        Broken{8,
               "%t = splat %n : i32[4]\n%a = reduce %t {axis = 0, contract = true} : i32 (%l: i32, %r: i32) { %m = add "
               "%l, %r : i32\nyield %m }\nreturn"},
        Broken{8, "%t = splat %f : f32[4]\n%a = scan %t {axis = 0} : f32 (%l: f32, %r: f32) { yield %l }\nreturn"},
        Broken{8, "for %i = %f to %f step %f : f32 { yield }\nreturn"},
        Broken{8, "for %i = %n to %n step %n : i64 { yield }\nreturn"},
        Broken{8, "%z = constant 0 : i32\nfor %i = %z to %n step %z : i32 { yield }\nreturn"},
        Broken{8, "%s = for %i = %n to %n step %n iter (%a = %f) : i32 -> (i32) { yield %a }\nreturn"},
        Broken{8, "if %n { yield }\nreturn"}, Broken{8, "assert %n {text = \"\"}\nreturn"},
        Broken{8, "assume %n\nreturn"}, Broken{8, "%a = hint %n : i64\nreturn"},
        Broken{8, "%t = splat %f : f32[4, 4]\n%a = dot %t, %t, %f : f32\nreturn"},
        Broken{8, "%t = splat %f : f32[4, 8]\n%z = splat %f : f32[4, 8]\n%a = dot %t, %t, %z : f32[4, 8]\nreturn"},
        Broken{8, "%t = splat %n : i32[4, 4]\n%z = splat %f : f32[4, 4]\n%a = dot %t, %t, %z : f32[4, 4]\nreturn"},
        Broken{8, "%t = splat %f : f32[8, 8]\n%a = dot %t, %t, %t {k_width = 4} : f32[8, 8]\nreturn"},
        Broken{8, "%t = splat %f : f32[16, 16]\n%a = dot %t, %t, %t {k_width = 3} : f32[16, 16]\nreturn"},
        Broken{8, "%t = splat %f : f32[16, 16]\n%a = dot %t, %t, %t {k_width = 0} : f32[16, 16]\nreturn"},
        Broken{8, "%d = make_descriptor %x, %n, %n : desc f32[4]\nreturn"},
        Broken{8, "%s = cast %n : i64\n%d = make_descriptor %x, %n, %s : desc i32[4]\nreturn"},
        Broken{8,
               "%s = cast %n : i64\n%d = make_descriptor %x, %n, %s : desc f32[4]\n%a = descriptor_load %d : "
               "f32[4]\nreturn"},
        Broken{8,
               "%s = cast %n : i64\n%d = make_descriptor %x, %n, %s : desc f32[4]\n%a = descriptor_load %d, %n : "
               "f32[8]\nreturn"},
        // 9: what regions yield
        Broken{9, "%t = splat %f : f32[4]\n%a = reduce %t {axis = 0} : f32 (%l: f32, %r: f32) { yield }\nreturn"},
        Broken{9, "%c = constant 1 : i1\n%a = if %c : i32 { yield %n } else { yield %f }\nreturn"},
        Broken{9, "%s = for %i = %n to %n step %n iter (%a = %f) : i32 -> (f32) { yield %i }\nreturn"},
        Broken{9,
               "%s = while (%i = %n) : i32 { %c = cmp %i, %n {predicate = \"lt\"} : i1\ncondition %c, %i } do (%j: "
               "i32) { yield }\nreturn"},
        // 10: combine regions
        Broken{10,
               "%t = splat %f : f32[4]\n%a = reduce %t {axis = 0} : f32 (%l: f32, %r: f32) { %s = add %l, %f : "
               "f32\nyield %s }\nreturn"},
        Broken{10,
               "%t = splat %f : f32[4]\n%a = reduce %t {axis = 0} : f32 (%l: f32, %r: f32) { %s = program_id {axis = "
               "0} : i32\nyield %l }\nreturn"},
        // 11: fp8
        Broken{11, "%a = constant 1.0 : f8e4m3\n%b = add %a, %a : f8e4m3\nreturn"},
        Broken{11, "%a = constant 1.0 : f8e5m2[4]\n%b = cmp %a, %a {predicate = \"lt\"} : i1[4]\nreturn"},
        // 12: stages
        Broken{12, "%t = splat %n : i32[4]\n%a = convert_layout %t : i32[4]\nreturn"}));

constexpr char kDistributed[] =
    "layout L0 = [4] {lane = [(1), (2)]}\nlayout L1 = [4] {lane = [(2), (1)]}\nlayout L2 = [8] {lane = [(2), (1)]}\n"
    "kernel @k(%n: i32) attributes {stage = \"distributed\"}";

TEST(Verifier, DistributedStage) {
  for (const char* body : {"%t = splat %n : i32[4]\nreturn", "%t = splat %n : i32[4]{L2}\nreturn",
                           "%t = splat %n : i32[4]{L0}\n%u = splat %n : i32[4]{L1}\n%c = cmp %t, %t {predicate = "
                           "\"eq\"} : i1[4]{L1}\nreturn"}) {
    auto m = parse(body, kDistributed);
    ASSERT_TRUE(m);
    expect_broken(*m, 12);
  }
  auto good = parse("%t = splat %n : i32[4]{L0}\n%u = convert_layout %t : i32[4]{L1}\nreturn", kDistributed);
  ASSERT_TRUE(good);
  EXPECT_TRUE(verify(*good).ok());
}

// Where ops.def lets no op of the kind stand: ahead of warp_specialize, in its further regions, and it itself.
TEST(Verifier, RolesOfWarps) {
  const std::string roles = "warp_specialize {warps = 4} () { yield } () { %s }\n";
  auto with = [&](const std::string& ahead, const std::string& alone, const std::string& after = "") {
    std::string text = roles;
    return parse(
        ahead + text.replace(text.find("%s"), 2, alone + "yield") + after + "return",
        "layout L0 = [4] {lane = [(1), (2)]}\nkernel @k(%x: *i32, %n: i32) attributes {stage = \"distributed\"}");
  };
  auto good = with("%m = add %n, %n : i32\nbarrier\n", "%a = add %n, %n : i32\n", "store %x, %n\n");
  ASSERT_TRUE(good);
  EXPECT_TRUE(verify(*good).ok());
  expect_broken(*with("store %x, %n\n", ""), 18);
  expect_broken(*with("%c = constant 1 : i1\nif %c { store %x, %n\nyield }\n", ""), 18);
  expect_broken(*with("", "store %x, %n\n"), 18);
  expect_broken(*with("", "%t = splat %n : i32[4]{L0}\n"), 18);
  expect_broken(*with("", "barrier {warps = 1}\n"), 18);
  expect_broken(*with("", "", roles.substr(0, roles.find("%s")) + "yield }\n"), 18);
  expect_broken(*with("", "yield } () { store %x, %n\n"), 18);
  EXPECT_TRUE(verify(*with("", "yield } () { yield } () { yield } () {")).ok());
  expect_broken(*with("", "yield } () { yield } () { yield } () { yield } () {"), 8);  // five, and four warps
  expect_broken(
      *parse("warp_specialize {warps = 4} () { yield }\nreturn", "kernel @k() attributes {stage = \"distributed\"}"),
      8);
}

TEST(Verifier, LayoutInTheTileStage) {
  auto m = parse("%t = splat %n : i32[4]{L0}\nreturn", "layout L0 = [4] {lane = [(1), (2)]}\nkernel @k(%n: i32)");
  ASSERT_TRUE(m);
  expect_broken(*m, 12);
}

TEST(Verifier, UseBeforeDefinition) {
  auto m = parse("%a = add %n, %n : i32\n%b = add %a, %a : i32\nreturn");
  Op* a = m->body()->first;
  a->set_operand(0, a->next->result());
  expect_broken(*m, 2);
}

TEST(Verifier, UsesAndParents) {
  auto lost_use = parse("%a = add %n, %n : i32\nreturn");
  lost_use->body()->args[1]->uses.pop_back();
  expect_broken(*lost_use, 3);

  auto stale_use = parse("%a = add %n, %n : i32\nreturn");
  stale_use->body()->args[2]->uses.push_back({stale_use->body()->first, 0});
  expect_broken(*stale_use, 3);

  auto parent = parse("%a = add %n, %n : i32\nreturn");
  parent->body()->first->parent = nullptr;
  expect_broken(*parent, 3);

  auto region = parse("%c = constant 1 : i1\nif %c { yield }\nreturn");
  region->body()->first->next->region()->parent = nullptr;
  EXPECT_FALSE(verify(*region).ok());
}

TEST(Verifier, AttributeKind) {
  auto m = parse("%a = program_id {axis = 0} : i32\nreturn");
  m->body()->first->set(AttrName::kAxis, std::string("x"));
  expect_broken(*m, 5);
}

TEST(Verifier, Parameters) {
  auto missing = parse("return");
  missing->params.pop_back();
  expect_broken(*missing, 13);
  auto divisibility = parse("return", "kernel @k(%n: i32 {divisibility = 0})");
  expect_broken(*divisibility, 13);
  auto tile = parse("return", "kernel @k(%n: i32[4])");
  expect_broken(*tile, 13);
}

TEST(Verifier, LaunchOptions) {
  expect_broken(*parse("return", "kernel @k() attributes {num_warps = 3}"), 14);
  expect_broken(*parse("return", "kernel @k() attributes {num_stages = 0}"), 14);
}

TEST(Verifier, AcceptsALegalKernel) {
  auto m = parse(R"(
  %pid = program_id {axis = 0} : i32
  %r = arange {start = 0, end = 4} : i32[4]
  %p = splat %pid : i32[4]
  %o = add %p, %r : i32[4]
  %nn = splat %n : i32[4]
  %m = cmp %o, %nn {predicate = "lt"} : i1[4]
  %xs = splat %x : *f32[4]
  %ptr = addptr %xs, %o : *f32[4]
  %v = load %ptr, %m : f32[4]
  %s = reduce %v {axis = 0} : f32 (%a: f32, %b: f32) {
    %c = max %a, %b {nan = "propagate"} : f32
    yield %c
  }
  store %x, %s
  return)");
  const Status s = verify(*m);
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().message);
}

}  // namespace
}  // namespace kiln::ir
