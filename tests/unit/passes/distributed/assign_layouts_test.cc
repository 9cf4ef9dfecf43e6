#include "compiler/passes/distributed/assign_layouts.h"

#include <gtest/gtest.h>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/layout/algebra.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/distributed/remove_conversions.h"

namespace kiln::passes {
namespace {

using ir::Module;
using ir::Op;
using ir::OpKind;

// One of each kind: aligned floats and halves, an aligned number and one of which nothing is known.
constexpr char kParams[] =
    "%x: *f32 {divisibility = 16}, %h: *bf16 {divisibility = 16}, %o: *f32 {divisibility = 16}, "
    "%q: *bf16 {divisibility = 16}, %n: i32 {divisibility = 16}, %m: i32";

std::unique_ptr<Module> parse(const std::string& body, int num_warps = 4) {
  auto text = SourceText::make("test.ir", "kernel @t(" + std::string(kParams) +
                                              ") attributes {num_warps = " + std::to_string(num_warps) +
                                              ", num_stages = 3, num_ctas = 1} {\n" + body + "  return\n}\n");
  auto m = ir::parse_module(text);
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : render(m.error()));
  Status ok = ir::verify(**m);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : render(ok.error()));
  return std::move(*m);
}

void expect_ok(const Status& s) { EXPECT_TRUE(s.ok()) << (s.ok() ? "" : render(s.error())); }

std::unique_ptr<Module> distributed(const std::string& body, int num_warps = 4) {
  auto m = parse(body, num_warps);
  const target::Target& target = *target::find("sm_90a");
  auto expect_legal = [&](const Status& s) {
    expect_ok(s);
    expect_ok(ir::verify(*m));
    expect_ok(analysis::verify_layouts(*m));
  };
  // After each pass, so that the first to break a rule is the one that is named.
  expect_legal(assign_layouts(*m));
  expect_legal(remove_conversions(*m, target));
  expect_legal(allocate_shared(*m, target));
  SCOPED_TRACE(ir::print(*m));
  return m;
}

std::vector<const Op*> all(Module& m, OpKind kind) {
  std::vector<const Op*> r;
  walk(m.body(), [&](Op* op) {
    if (op->kind == kind) r.push_back(op);
  });
  return r;
}

/// The width of each load and store, in order.
std::vector<int> widths(Module& m) {
  // Made anew: the facts of values that the passes have added are needed too.
  analysis::AxisAnalysis axis(m);
  std::vector<int> r;
  walk(m.body(), [&](Op* op) {
    if (op->kind == OpKind::kLoad || op->kind == OpKind::kStore) r.push_back(axis.vector_width(op));
  });
  return r;
}

std::string offsets(int block) {
  std::string t = "i32[" + std::to_string(block) + "]";
  return "  %pid = program_id {axis = 0} : i32\n"
         "  %b = constant " +
         std::to_string(block) +
         " : i32\n"
         "  %first = mul %pid, %b : i32\n"
         "  %fs = splat %first : " +
         t +
         "\n"
         "  %ar = arange {start = 0, end = " +
         std::to_string(block) + "} : " + t +
         "\n"
         "  %off = add %fs, %ar : " +
         t +
         "\n"
         "  %ns = splat %n : " +
         t +
         "\n"
         "  %mask = cmp %off, %ns {predicate = \"lt\"} : i1[" +
         std::to_string(block) + "]\n";
}

std::string pointer(const std::string& name, const std::string& param, const std::string& type,
                    const std::string& off = "%off") {
  return "  %s" + name + " = splat %" + param + " : " + type + "\n  %" + name + " = addptr %s" + name + ", " + off +
         " : " + type + "\n";
}

TEST(AssignLayouts, VectorAddIsWideAndWithoutConversions) {
  auto m = distributed(offsets(1024) + pointer("xp", "x", "*f32[1024]") + pointer("op", "o", "*f32[1024]") +
                       "  %v = load %xp, %mask : f32[1024]\n"
                       "  %w = add %v, %v : f32[1024]\n"
                       "  store %op, %w, %mask\n");
  // Four floats are the 16 bytes of the widest access.
  EXPECT_EQ(widths(*m), (std::vector<int>{4, 4}));
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty());
  EXPECT_EQ(layout::to_string(*all(*m, OpKind::kLoad)[0]->result()->type.layout),
            "[1024] register (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
  // No conversion, so no shared memory.
  EXPECT_EQ(m->shared_bytes, 0);
}

TEST(AssignLayouts, HalvesComputedInFloatKeepSixteenBytes) {
  auto m = distributed(offsets(2048) + pointer("hp", "h", "*bf16[2048]") + pointer("qp", "q", "*bf16[2048]") +
                       "  %v = load %hp, %mask : bf16[2048]\n"
                       "  %f = cast %v : f32[2048]\n"
                       "  %e = exp %f : f32[2048]\n"
                       "  %w = cast %e : bf16[2048]\n"
                       "  store %qp, %w, %mask\n");
  // Eight halves are 16 bytes; the floats between them follow that layout.
  EXPECT_EQ(widths(*m), (std::vector<int>{8, 8}));
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty());
}

TEST(AssignLayouts, UnknownAlignmentStaysCoalesced) {
  auto m = distributed(offsets(1024) + "  %ms = splat %m : i32[1024]\n  %moved = add %off, %ms : i32[1024]\n" +
                       pointer("xp", "x", "*f32[1024]", "%moved") + "  %v = load %xp : f32[1024]\n  store %xp, %v\n");
  // One element at a time, and neighbouring lanes still read neighbouring elements.
  EXPECT_EQ(widths(*m), (std::vector<int>{1, 1}));
  EXPECT_EQ(layout::to_string(*all(*m, OpKind::kLoad)[0]->result()->type.layout),
            "[1024] register (128)(256)(512) lane (1)(2)(4)(8)(16) warp (32)(64)");
}

TEST(AssignLayouts, SmallTilesHaveCopies) {
  auto m = distributed(offsets(16) + pointer("xp", "x", "*f32[16]") +
                       "  %v = load %xp, %mask : f32[16]\n  store %xp, %v, %mask\n");
  // 16 elements for 128 threads: half of the lanes and all other warps hold copies.
  auto free = layout::free_variables(*all(*m, OpKind::kStore)[0]->operand(0)->type.layout);
  EXPECT_EQ(free.lane, 16u);
  EXPECT_EQ(free.warp, 3u);
}

std::string row_reduce(const std::string& name, const std::string& from, const std::string& result,
                       const std::string& op, int axis) {
  return "  %" + name + " = reduce %" + from + " {axis = " + std::to_string(axis) + "} : " + result + " (%a" + name +
         ": f32, %b" + name + ": f32) {\n    %c" + name + " = " + op + " %a" + name + ", %b" + name +
         " : f32\n    yield %c" + name + "\n  }\n";
}

TEST(AssignLayouts, SoftmaxRowStaysInRegisters) {
  auto m = distributed(offsets(4096) + pointer("hp", "h", "*bf16[4096]") + pointer("qp", "q", "*bf16[4096]") +
                           "  %v = load %hp, %mask : bf16[4096]\n"
                           "  %f = cast %v : f32[4096]\n" +
                           row_reduce("top", "f", "f32", "max", 0) +
                           "  %tops = splat %top : f32[4096]\n"
                           "  %d = sub %f, %tops : f32[4096]\n"
                           "  %e = exp %d : f32[4096]\n" +
                           row_reduce("sum", "e", "f32", "add", 0) +
                           "  %sums = splat %sum : f32[4096]\n"
                           "  %r = div %e, %sums : f32[4096]\n"
                           "  %w = cast %r : bf16[4096]\n"
                           "  store %qp, %w, %mask\n",
                       8);
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty());
  EXPECT_EQ(widths(*m), (std::vector<int>{8, 8}));
  auto reduces = all(*m, OpKind::kReduce);
  ASSERT_EQ(reduces.size(), 2u);
  // The warps exchange their sums through shared memory.
  EXPECT_GT(m->shared_bytes, 0);
  // Two places, so that the second reduction need not wait for the readers of the first.
  EXPECT_NE(reduces[0]->int_attr(ir::AttrName::kSharedOffset), reduces[1]->int_attr(ir::AttrName::kSharedOffset));
  for (const Op* r : reduces) EXPECT_FALSE(r->flag(ir::AttrName::kSyncBefore));
}

const std::string kTile2d =
    "  %r = arange {start = 0, end = 16} : i32[16]\n"
    "  %c = arange {start = 0, end = 256} : i32[256]\n"
    "  %r1 = expand_dims %r {axis = 1} : i32[16, 1]\n"
    "  %c1 = expand_dims %c {axis = 0} : i32[1, 256]\n"
    "  %stride = splat %n : i32[16, 1]\n"
    "  %rs = mul %r1, %stride : i32[16, 1]\n"
    "  %rb = broadcast %rs : i32[16, 256]\n"
    "  %cb = broadcast %c1 : i32[16, 256]\n"
    "  %off = add %rb, %cb : i32[16, 256]\n"
    "  %sx = splat %x : *f32[16, 256]\n"
    "  %xp = addptr %sx, %off : *f32[16, 256]\n"
    "  %v = load %xp : f32[16, 256]\n";

TEST(AssignLayouts, RowsOfATileReduceInsideTheirWarps) {
  auto m = distributed(kTile2d + row_reduce("s", "v", "f32[16]", "add", 1) +
                       "  %s1 = expand_dims %s {axis = 1} : f32[16, 1]\n"
                       "  %sb = broadcast %s1 : f32[16, 256]\n"
                       "  %y = sub %v, %sb : f32[16, 256]\n"
                       "  store %xp, %y\n"
                       "  %so = splat %o : *f32[16]\n"
                       "  %op = addptr %so, %r : *f32[16]\n"
                       "  store %op, %s\n");
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty()) << ir::print(*m);
  // A row lies within a warp: lanes exchange by shuffles.
  EXPECT_EQ(m->shared_bytes, 0);
  // The third store is of one element for each row.
  EXPECT_EQ(widths(*m), (std::vector<int>{4, 4, 1}));
}

/// Rows lie side by side in memory and are scanned along the other dimension: lanes have neighbours in memory, and each
/// thread neighbours of the scan, so that all but its last steps stay inside of it.
TEST(AssignLayouts, ScansAcrossMemoryStayInsideThreads) {
  auto m = distributed(
      "  %r = arange {start = 0, end = 32} : i32[32]\n"
      "  %c = arange {start = 0, end = 64} : i32[64]\n"
      "  %r2 = expand_dims %r {axis = 1} : i32[32, 1]\n"
      "  %c2 = expand_dims %c {axis = 0} : i32[1, 64]\n"
      "  %rb = broadcast %r2 : i32[32, 64]\n"
      "  %cb = broadcast %c2 : i32[32, 64]\n"
      "  %ns = splat %n : i32[32, 64]\n"
      "  %far = mul %cb, %ns : i32[32, 64]\n"
      "  %at = add %far, %rb : i32[32, 64]\n"
      "  %ps = splat %x : *f32[32, 64]\n"
      "  %p = addptr %ps, %at : *f32[32, 64]\n"
      "  %v = load %p : f32[32, 64]\n"
      "  %s = scan %v {axis = 1} : f32[32, 64] (%a: f32, %b: f32) {\n"
      "    %t = add %a, %b : f32\n"
      "    yield %t\n"
      "  }\n"
      "  %os = splat %o : *f32[32, 64]\n"
      "  %q2 = addptr %os, %at : *f32[32, 64]\n"
      "  store %q2, %s\n");
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty());
  const layout::LinearLayout& l = *all(*m, OpKind::kScan)[0]->result()->type.layout;
  for (const layout::Coord& lane : l.bases(layout::In::kLane))
    for (const layout::Coord& own : l.bases(layout::In::kRegister))
      EXPECT_TRUE(lane[1] == 0 || own[1] < lane[1]) << to_string(l);
  EXPECT_EQ(widths(*m), (std::vector{4, 4}));
}

/// The sums of runs are scanned: warps have stretches of their own, and nothing is converted on the way to the sums, to
/// what comes before each of them and back to the elements.
TEST(AssignLayouts, ScannedSumsKeepTheLayoutOfTheirRuns) {
  auto m = distributed(
      "  %r = arange {start = 0, end = 512} : i32[512]\n"
      "  %c = arange {start = 0, end = 4} : i32[4]\n"
      "  %four = constant 4 : i32[512]\n"
      "  %first = mul %r, %four : i32[512]\n"
      "  %r2 = expand_dims %first {axis = 1} : i32[512, 1]\n"
      "  %c2 = expand_dims %c {axis = 0} : i32[1, 4]\n"
      "  %rb = broadcast %r2 : i32[512, 4]\n"
      "  %cb = broadcast %c2 : i32[512, 4]\n"
      "  %at = add %rb, %cb : i32[512, 4]\n"
      "  %ps = splat %x : *f32[512, 4]\n"
      "  %p = addptr %ps, %at : *f32[512, 4]\n"
      "  %v = load %p : f32[512, 4]\n"
      "  %sums = reduce %v {axis = 1} : f32[512] (%a: f32, %b: f32) {\n"
      "    %t = add %a, %b : f32\n"
      "    yield %t\n"
      "  }\n"
      "  %zeros = constant 0.0 : f32[512]\n"
      "  %all, %before = scan %sums, %zeros {axis = 0} : f32[512], f32[512] (%c0: f32, %d0: f32, %c1: f32, %d1: f32) "
      "{\n"
      "    %t0 = add %c0, %c1 : f32\n"
      "    %t1 = add %c0, %d1 : f32\n"
      "    yield %t0, %t1\n"
      "  }\n"
      "  %b2 = expand_dims %before {axis = 1} : f32[512, 1]\n"
      "  %bb = broadcast %b2 : f32[512, 4]\n"
      "  %y = add %v, %bb : f32[512, 4]\n"
      "  %os = splat %o : *f32[512, 4]\n"
      "  %q2 = addptr %os, %at : *f32[512, 4]\n"
      "  store %q2, %y\n");
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty()) << ir::print(*m);
  const layout::LinearLayout& l = *all(*m, OpKind::kScan)[0]->result()->type.layout;
  EXPECT_EQ(to_string(l), "[512] register (32)(64) lane (1)(2)(4)(8)(16) warp (128)(256)");
  EXPECT_EQ(widths(*m), (std::vector{4, 4}));
}

TEST(AssignLayouts, TransposedStoreConvertsOnce) {
  std::string tile = kTile2d;
  auto m = distributed(tile +
                       "  %t = trans %v {order = [1, 0]} : f32[256, 16]\n"
                       "  %e = exp %t : f32[256, 16]\n"
                       "  %c2 = expand_dims %c {axis = 1} : i32[256, 1]\n"
                       "  %r2 = expand_dims %r {axis = 0} : i32[1, 16]\n"
                       "  %cstride = splat %n : i32[256, 1]\n"
                       "  %cs = mul %c2, %cstride : i32[256, 1]\n"
                       "  %csb = broadcast %cs : i32[256, 16]\n"
                       "  %rbb = broadcast %r2 : i32[256, 16]\n"
                       "  %toff = add %csb, %rbb : i32[256, 16]\n"
                       "  %to = splat %o : *f32[256, 16]\n"
                       "  %tp = addptr %to, %toff : *f32[256, 16]\n"
                       "  store %tp, %e\n");
  // Both accesses stay wide: the conversion is the price, paid once.
  EXPECT_EQ(widths(*m), (std::vector<int>{4, 4}));
  EXPECT_EQ(all(*m, OpKind::kConvertLayout).size(), 1u) << ir::print(*m);
  // The whole tile in floats, as each element goes through shared memory.
  EXPECT_EQ(m->shared_bytes, 16 * 256 * 4);
}

TEST(AssignLayouts, LoopsCarryOneLayout) {
  auto m = distributed(
      offsets(1024) + pointer("xp", "x", "*f32[1024]") + pointer("op", "o", "*f32[1024]") +
      "  %zero = constant 0.0 : f32[1024]\n"
      "  %z = constant 0 : i32\n"
      "  %step = constant 16 : i32\n"
      "  %acc, %ptr = for %i = %z to %n step %step iter (%sum = %zero, %p = %xp) : i32 -> (f32[1024], *f32[1024]) {\n"
      "    %v = load %p, %mask : f32[1024]\n"
      "    %next = add %sum, %v : f32[1024]\n"
      "    %steps = splat %step : i32[1024]\n"
      "    %pn = addptr %p, %steps : *f32[1024]\n"
      "    yield %next, %pn\n"
      "  }\n"
      "  store %op, %acc, %mask\n");
  // What a loop carries has one layout, or it would be converted in each iteration.
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty()) << ir::print(*m);
  EXPECT_EQ(widths(*m), (std::vector<int>{4, 4}));
}

TEST(AssignLayouts, BranchesAndWhile) {
  auto m = distributed(offsets(1024) + pointer("xp", "x", "*f32[1024]") +
                       "  %v = load %xp, %mask : f32[1024]\n"
                       "  %z = constant 0 : i32\n"
                       "  %zero = constant 0.0 : f32[1024]\n"
                       "  %flag = cmp %m, %z {predicate = \"gt\"} : i1\n"
                       "  %b1 = if %flag : f32[1024] {\n    yield %v\n  } else {\n    yield %zero\n  }\n"
                       "  %last, %k2 = while (%w = %b1, %k = %m) : f32[1024], i32 {\n"
                       "    %more = cmp %k, %z {predicate = \"gt\"} : i1\n"
                       "    condition %more, %w, %k\n"
                       "  } do (%w1: f32[1024], %k1: i32) {\n"
                       "    %w2 = add %w1, %v : f32[1024]\n"
                       "    %one = constant 1 : i32\n"
                       "    %k3 = sub %k1, %one : i32\n"
                       "    yield %w2, %k3\n"
                       "  }\n"
                       "  store %xp, %last, %mask\n");
  EXPECT_TRUE(all(*m, OpKind::kConvertLayout).empty()) << ir::print(*m);
}

TEST(AllocateShared, ReuseNeedsABarrier) {
  // A loop around one reduction: the next iteration writes what this one's slow warps may still read.
  auto m = distributed(offsets(1024) + pointer("xp", "x", "*f32[1024]") +
                       "  %v = load %xp, %mask : f32[1024]\n"
                       "  %z = constant 0 : i32\n"
                       "  %one = constant 1 : i32\n"
                       "  %out = for %i = %z to %n step %one iter (%w = %v) : i32 -> (f32[1024]) {\n" +
                       row_reduce("s", "w", "f32", "add", 0) +
                       "    %ss = splat %s : f32[1024]\n"
                       "    %u = sub %w, %ss : f32[1024]\n"
                       "    yield %u\n"
                       "  }\n"
                       "  store %xp, %out, %mask\n");
  EXPECT_TRUE(all(*m, OpKind::kReduce)[0]->flag(ir::AttrName::kSyncBefore));
}

TEST(AllocateShared, TooMuchIsTheUsersError) {
  auto m = parse(
      "  %c = arange {start = 0, end = 65536} : i32[65536]\n"
      "  %r = reshape %c : i32[256, 256]\n"
      "  %sx = splat %x : *f32[256, 256]\n"
      "  %xp = addptr %sx, %r : *f32[256, 256]\n"
      "  %v = load %xp : f32[256, 256]\n"
      "  %t = trans %v {order = [1, 0]} : f32[256, 256]\n"
      "  store %xp, %t\n");
  // A target with less shared memory than the newest.
  const target::Target& target = *target::find("sm_89");
  expect_ok(assign_layouts(*m));
  Status s = allocate_shared(*m, target);
  ASSERT_FALSE(s.ok()) << ir::print(*m);
  EXPECT_EQ(s.error().kind, ErrorKind::kMemory);
  EXPECT_EQ(s.error().message, "this needs 262144 bytes of shared memory, but a block on sm_89 has 101376");
}

TEST(VerifyLayouts, FindsBrokenRules) {
  auto text = [](const std::string& body) {
    return "layout L0 = [64] {register = [(1)], lane = [(2), (4), (8), (16), (32)], warp = [(0), (0)]}\n"
           "layout L1 = [64] {register = [(32)], lane = [(1), (2), (4), (8), (16)], warp = [(0), (0)]}\n"
           "layout L2 = [64] {register = [(1)], lane = [(2), (4), (8), (16), (32)]}\n"
           "layout L3 = [64] {lane = [(2), (4), (8), (16), (32)], warp = [(0), (0)]}\n"
           "layout L4 = [64, 1] {register = [(1, 0)], lane = [(2, 0), (4, 0), (8, 0), (16, 0), (32, 0)], warp = [(0, "
           "0), (0, 0)]}\n"
           "layout L5 = [64] {register = [(1), (32)], lane = [(2), (4), (8), (16), (32)], warp = [(0), (0)]}\n"
           "kernel @t() attributes {num_warps = 4, num_stages = 3, num_ctas = 1, stage = \"distributed\"} {\n" +
           body + "  return\n}\n";
  };
  struct Case {
    const char *body, *rule;
  };
  // Each layout and the rule that it breaks; an empty rule: none.
  for (const Case& c :
       {Case{"  %a = arange {start = 0, end = 64} : i32[64]{L0}\n", ""},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L2}\n", "rule 1"},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L3}\n", "rule 1"},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L0}\n  %b = expand_dims %a {axis = 1} : i32[64, 1]{L4}\n",
             ""},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L1}\n  %b = expand_dims %a {axis = 1} : i32[64, 1]{L4}\n",
             "rule 2"},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L0}\n  %b = scan %a {axis = 0} : i32[64]{L1} (%p: i32, %q: "
             "i32) {\n    yield %p\n  }\n",
             "rule 3"},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L5}\n  %b = reduce %a {axis = 0} : i32 (%p: i32, %q: i32) "
             "{\n    yield %p\n  }\n",
             "rule 3"},
        Case{"  %a = arange {start = 0, end = 64} : i32[64]{L0}\n  %b = convert_layout %a {shared_offset = 8} : "
             "i32[64]{L3}\n",
             "rule 1"}}) {
    auto m = ir::parse_module(SourceText::make("test.ir", text(c.body)));
    ASSERT_TRUE(m.ok()) << render(m.error());
    Status s = analysis::verify_layouts(**m);
    if (std::string(c.rule).empty()) {
      expect_ok(s);
    } else {
      ASSERT_FALSE(s.ok()) << c.body;
      EXPECT_NE(s.error().message.find(c.rule), std::string::npos) << s.error().message;
    }
  }
}

}  // namespace
}  // namespace kiln::passes
