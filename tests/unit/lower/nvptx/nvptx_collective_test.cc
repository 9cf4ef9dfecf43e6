// Ops across threads and control flow through the NVPTX lowering.
#include "tests/unit/lower/nvptx/compiled.h"

#include <fmt/format.h>

namespace kiln::nvptx_tests {
namespace {

TEST(NvptxCollective, NumbersOfElementsTakeNoRegistersInArgmax) {
  // The constants are selected among, and the thread's part is joined to the one that is left.
  const std::string body = R"(  %i = arange {start = 0, end = 1024} : i32[1024]{L0}
  %xs = splat %x : *f32[1024]{L0}
  %px = addptr %xs, %i : *f32[1024]{L0}
  %a = load %px : f32[1024]{L0}
  %v, %n = reduce %a, %i {axis = 0} : f32, i32 (%l: f32, %j: i32, %r: f32, %k: i32) {
    %c = cmp %l, %r {predicate = "gt"} : i1
    %m = select %c, %l, %r : f32
    %w = select %c, %j, %k : i32
    yield %m, %w
  }
  store %y, %n
)";
  const std::string text = compile(kernel(std::string(kLayout), "%x: *f32, %y: *i32", body, 4), "sm_90a").llvm;
  EXPECT_NE(text.find("i32 0, i32 1"), std::string::npos) << text;
}

TEST(NvptxControl, LoopsBetweenConstantsAreCounted) {
  auto loop = [](std::string_view end, int step) {
    const std::string body = fmt::format(R"(  %first = constant 0 : i32
  %end = {}
  %step = constant {} : i32
  for %i = %first to %end step %step : i32 {{
    %p = addptr %x, %i : *i32
    store %p, %i
    yield
  }}
)",
                                         end, step);
    return compile(kernel("", "%x: *i32, %n: i32", body, 1), "sm_90a").llvm;
  };
  // ptxas counts iterations, and unrolls, where the next one is compared with the end; where that might wrap around,
  // what is left is compared.
  for (int step : {1, 3}) {
    EXPECT_EQ(count(loop("constant 64 : i32", step), "add nsw i32"), 1) << step;
    EXPECT_EQ(count(loop("constant 64 : i32", step), "sub i32"), 0) << step;
  }
  EXPECT_EQ(count(loop("constant 2147483646 : i32", 3), "add nsw i32"), 0);
  EXPECT_EQ(count(loop("bitcast %n : i32", 1), "add nsw i32"), 0);
}

TEST(NvptxControl, CountersOf64BitsAreComparedWithTheEnd) {
  auto rests = [](std::string_view end, int step) {
    const std::string body = fmt::format(R"(  %first = constant 0 : i64
  %wide = cast %n : i64
  %end = {}
  %step = constant {} : i64
  for %i = %first to %end step %step : i64 {{
    %p = addptr %x, %i : *i64
    store %p, %i
    yield
  }}
)",
                                         end, step);
    return count(compile(kernel("", "%x: *i64, %n: i32, %m: i64", body, 1), "sm_90a").llvm, "sub i64");
  };
  EXPECT_EQ(rests("bitcast %m : i64", 1), 0);
  EXPECT_EQ(rests("bitcast %wide : i64", 3), 0);
  EXPECT_EQ(rests("min %m, %wide : i64", 3), 0);
  // The counter might wrap around.
  EXPECT_EQ(rests("bitcast %m : i64", 3), 1);
  EXPECT_EQ(rests("max %m, %wide : i64", 3), 1);
}

TEST(NvptxCollective, ReduceWithinAndAcrossWarps) {
  const std::string body = R"(  %r = arange {start = 0, end = 1024} : i32[1024]{L0}
  %xs = splat %x : *f32[1024]{L0}
  %p = addptr %xs, %r : *f32[1024]{L0}
  %v = load %p : f32[1024]{L0}
  %s = reduce %v {axis = 0, shared_offset = 0} : f32 (%a: f32, %b: f32) {
    %c = add %a, %b : f32
    yield %c
  }
  store %x, %s
)";
  for (std::string_view target : kTargets) {
    Compiled c = compile(kernel(std::string(kLayout), "%x: *f32 {divisibility = 16}", body, 4, 64), target);
    EXPECT_EQ(count(c.ptx, "bar.sync") + count(c.ptx, "barrier.sync"), 1) << c.ptx;
    EXPECT_GE(count(c.ptx, "shfl.sync.bfly"), 5) << c.ptx;
    EXPECT_EQ(count(c.ptx, "add.rn.f32") >= 7 + 5, true) << c.ptx;
  }
}

TEST(NvptxCollective, SumsOfProductsAreFma) {
  auto ptx = [](std::string_view attributes) {
    const std::string body = fmt::format(R"(  %r = arange {{start = 0, end = 1024}} : i32[1024]{{L0}}
  %xs = splat %x : *f32[1024]{{L0}}
  %p = addptr %xs, %r : *f32[1024]{{L0}}
  %v = load %p : f32[1024]{{L0}}
  %q = mul %v, %v : f32[1024]{{L0}}
  %s = reduce %q {{axis = 0, {}shared_offset = 0}} : f32 (%a: f32, %b: f32) {{
    %c = add %a, %b : f32
    yield %c
  }}
  store %x, %s
)",
                                         attributes);
    return compile(kernel(std::string(kLayout), "%x: *f32 {divisibility = 16}", body, 4, 64), "sm_90a").ptx;
  };
  const std::string apart = ptx(""), contracted = ptx("contract = true, ");
  EXPECT_EQ(count(apart, "fma.rn.f32"), 0) << apart;
  EXPECT_EQ(count(apart, "mul.rn.f32"), 8) << apart;
  EXPECT_EQ(count(contracted, "fma.rn.f32"), 7) << contracted;
  EXPECT_EQ(count(contracted, "mul.rn.f32"), 1) << contracted;
  EXPECT_EQ(count(contracted, "add.rn.f32"), count(apart, "add.rn.f32") - 7) << contracted;
}

TEST(NvptxCollective, IntegersOfAWarpAreReducedAtOnce) {
  auto ptx = [](std::string_view type, std::string_view op) {
    const std::string body = fmt::format(R"(  %r = arange {{start = 0, end = 256}} : i32[256]{{L0}}
  %xs = splat %x : *{0}[256]{{L0}}
  %p = addptr %xs, %r : *{0}[256]{{L0}}
  %v = load %p : {0}[256]{{L0}}
  %s = reduce %v {{axis = 0}} : {0} (%a: {0}, %b: {0}) {{
    %c = {1} %a, %b : {0}
    yield %c
  }}
  store %x, %s
)",
                                         type, op);
    const std::string_view layout =
        "layout L0 = [256] {register = [(1), (2), (4)], lane = [(8), (16), (32), (64), (128)]}\n";
    return compile(kernel(std::string(layout), fmt::format("%x: *{} {{divisibility = 16}}", type), body, 1), "sm_90a")
        .ptx;
  };
  for (auto [type, op, instruction] : {std::tuple{"i32", "add", "redux.sync.add.s32"},
                                       {"i32", "max", "redux.sync.max.s32"},
                                       {"u32", "min", "redux.sync.min.u32"},
                                       {"i32", "xor", "redux.sync.xor.b32"}}) {
    EXPECT_EQ(count(ptx(type, op), instruction), 1) << ptx(type, op);
    EXPECT_EQ(count(ptx(type, op), "shfl.sync"), 0) << ptx(type, op);
  }
  for (auto [type, op] : {std::pair{"i64", "add"}, {"f32", "add"}, {"i32", "mul"}}) {
    EXPECT_EQ(count(ptx(type, op), "redux.sync"), 0) << ptx(type, op);
    EXPECT_GE(count(ptx(type, op), "shfl.sync"), 5) << ptx(type, op);
  }
}

/// Whether any element of a program is so: one barrier says it, without shared memory.
TEST(NvptxCollective, BarriersTellWhetherAnyIs) {
  const std::string layout =
      "layout L0 = [256] {register = [(128)], lane = [(1), (2), (4), (8), (16)], warp = [(32), (64)]}\n";
  const std::string body = R"(  %r = arange {start = 0, end = 256} : i32[256]{L0}
  %xs = splat %x : *i32[256]{L0}
  %p = addptr %xs, %r : *i32[256]{L0}
  %v = load %p : i32[256]{L0}
  %least = splat %n : i32[256]{L0}
  %less = cmp %v, %least {predicate = "lt"} : i1[256]{L0}
  %ones = cast %less : i32[256]{L0}
  %s = reduce %ones {axis = 0, shared_offset = 0, sync_before = true} : i32 (%a: i32, %b: i32) {
    %c = max %a, %b : i32
    yield %c
  }
  store %x, %s
)";
  const std::string text = compile(kernel(layout, "%x: *i32 {divisibility = 16}, %n: i32", body, 4, 16), "sm_90a").ptx;
  EXPECT_EQ(count(text, "bar.red.or.pred"), 1) << text;
  EXPECT_EQ(count(text, "bar.sync") + count(text, "barrier.sync") + count(text, "redux.sync"), 0) << text;
  EXPECT_EQ(count(text, "st.shared"), 0) << text;
}

TEST(NvptxControl, BranchesBehindSumsVote) {
  auto ptx = [](std::string_view condition) {
    const std::string body = fmt::format(R"(  %r = arange {{start = 0, end = 32}} : i32[32]{{L0}}
  %xs = splat %x : *f32[32]{{L0}}
  %p = addptr %xs, %r : *f32[32]{{L0}}
  %v = load %p : f32[32]{{L0}}
  %s = reduce %v {{axis = 0}} : f32 (%a: f32, %b: f32) {{
    %c = add %a, %b : f32
    yield %c
  }}
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %last, %i = for %k = %zero to %n step %one iter (%sum = %s, %count = %zero) : i32 -> (f32, i32) {{
    %up = add %count, %one : i32
    %yes = {} : i1
    %w = if %yes : f32 {{
      %t = reduce %v {{axis = 0}} : f32 (%d: f32, %e: f32) {{
        %g = max %d, %e : f32
        yield %g
      }}
      yield %t
    }} else {{
      yield %sum
    }}
    yield %w, %up
  }}
  store %x, %last
)",
                                         condition);
    return compile(kernel("layout L0 = [32] {lane = [(1), (2), (4), (8), (16)]}\n",
                          "%x: *f32 {divisibility = 16}, %n: i32, %f: f32", body, 1),
                   "sm_90a")
        .ptx;
  };
  EXPECT_EQ(count(ptx("cmp %sum, %f {predicate = \"lt\"}"), "vote.sync.any"), 1);
  EXPECT_EQ(count(ptx("cmp %count, %n {predicate = \"lt\"}"), "vote.sync.any"), 0) << "counts of loops are the same";
}

TEST(NvptxCollective, ReduceOfTwoTilesScanAndConversions) {
  const std::string layouts =
      R"(layout L0 = [64, 16] {register = [(0, 1), (0, 2), (0, 4)], lane = [(0, 8), (1, 0), (2, 0), (4, 0), (8, 0)], warp = [(16, 0), (32, 0)]}
layout L1 = [64, 16] {register = [(1, 0), (2, 0), (4, 0)], lane = [(8, 0), (16, 0), (32, 0), (0, 1), (0, 2)], warp = [(0, 4), (0, 8)]}
layout L2 = [16] {lane = [(8), (0), (0), (0), (0)], register = [(1), (2), (4)], warp = [(0), (0)]}
layout L3 = [64, 16] {register = [(0, 1), (0, 2), (0, 8)], lane = [(0, 4), (1, 0), (2, 0), (4, 0), (8, 0)], warp = [(16, 0), (32, 0)]}
layout L4 = [64, 16] {register = [(0, 4), (0, 1), (0, 2)], lane = [(0, 8), (1, 0), (2, 0), (4, 0), (8, 0)], warp = [(16, 0), (32, 0)]}
)";
  auto body = [](std::string_view t) {
    return fmt::format(R"(  %z = constant 3 : i32[64, 16]{{L0}}
  %xs = splat %x : *{0}[64, 16]{{L0}}
  %p = addptr %xs, %z : *{0}[64, 16]{{L0}}
  %v = load %p : {0}[64, 16]{{L0}}
  %s0, %s1 = reduce %v, %z {{axis = 0, shared_offset = 0, sync_before = true}} : {0}[16]{{L2}}, i32[16]{{L2}} (%a: {0}, %ai: i32, %b: {0}, %bi: i32) {{
    %gt = cmp %a, %b {{predicate = "gt"}} : i1
    %m = select %gt, %a, %b : {0}
    %mi = select %gt, %ai, %bi : i32
    yield %m, %mi
  }}
  %xs2 = splat %x : *{0}[16]{{L2}}
  %p2 = addptr %xs2, %s1 : *{0}[16]{{L2}}
  store %p2, %s0
  %sc = scan %v {{axis = 0, shared_offset = 0}} : {0}[64, 16]{{L0}} (%c: {0}, %d: {0}) {{
    %e = max %c, %d : {0}
    yield %e
  }}
  %sr = scan %sc {{axis = 1, reverse = true}} : {0}[64, 16]{{L0}} (%f: {0}, %g: {0}) {{
    %h = min %f, %g : {0}
    yield %h
  }}
  %k = convert_layout %sr {{shared_offset = 0}} : {0}[64, 16]{{L1}}
  %k2 = convert_layout %k {{shared_offset = 0, sync_before = true}} : {0}[64, 16]{{L3}}
  %k3 = convert_layout %k2 : {0}[64, 16]{{L0}}
  %k4 = convert_layout %k3 : {0}[64, 16]{{L4}}
  %q = convert_layout %p : *{0}[64, 16]{{L4}}
  store %q, %k4
)",
                       t);
  };
  for (std::string_view target : kTargets)
    for (std::string_view t : {"f32", "i8", "f64", "bf16", "u16"}) {
      SCOPED_TRACE(fmt::format("{} {}", target, t));
      Compiled c =
          compile(kernel(layouts, fmt::format("%x: *{} {{divisibility = 16}}", t), body(t), 4, 1 << 15), target);
      EXPECT_GT(count(c.ptx, "st.shared"), 0);
      EXPECT_GT(count(c.ptx, "shfl.sync.idx"), 0);
    }
}

TEST(NvptxCollective, AScanBringsATotalOnceForAllRegisters) {
  const std::string body = R"(  %i = arange {start = 0, end = 128} : i32[128]{L0}
  %xs = splat %x : *f32[128]{L0}
  %p = addptr %xs, %i : *f32[128]{L0}
  %v = load %p : f32[128]{L0}
  %s = scan %v {axis = 0} : f32[128]{L0} (%a: f32, %b: f32) {
    %c = add %a, %b : f32
    yield %c
  }
  store %p, %s
)";
  const Compiled c = compile(kernel(std::string(kSmall), "%x: *f32", body, 1), "sm_90a");
  EXPECT_EQ(count(c.ptx, "shfl.sync.idx"), 5) << "one for each doubling of the lanes";
}

TEST(NvptxControl, LoopsBranchesAndShapes) {
  const std::string layouts = R"(layout L0 = [32] {lane = [(1), (2), (4), (8), (16)]}
layout L1 = [32, 1] {lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)]}
layout L2 = [32, 4] {lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], register = [(0, 1), (0, 2)]}
layout L3 = [4, 32] {lane = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)], register = [(1, 0), (2, 0)]}
layout L4 = [32, 4, 2] {register = [(0, 0, 1), (0, 1, 0), (0, 2, 0)], lane = [(1, 0, 0), (2, 0, 0), (4, 0, 0), (8, 0, 0), (16, 0, 0)]}
layout L5 = [128] {register = [(1), (2)], lane = [(4), (8), (16), (32), (64)]}
)";
  const std::string body = R"(  %zero = constant 0 : i32
  %step = constant 3 : i32
  %f0 = constant 0.5 : f32
  %r = arange {start = 0, end = 32} : i32[32]{L0}
  %e = expand_dims %r {axis = 1} : i32[32, 1]{L1}
  %bc = broadcast %e : i32[32, 4]{L2}
  %xs = splat %x : *f32[32, 4]{L2}
  %p = addptr %xs, %bc : *f32[32, 4]{L2}
  %init = load %p : f32[32, 4]{L2}
  %acc, %k = for %i = %zero to %n step %step iter (%a = %init, %c = %zero) : i32 -> (f32[32, 4]{L2}, i32) {
    %even = cmp %c, %zero {predicate = "eq"} : i1
    %b = if %even : f32[32, 4]{L2} {
      %t = add %a, %init : f32[32, 4]{L2}
      yield %t
    } else {
      %u = mul %a, %init : f32[32, 4]{L2}
      yield %u
    }
    %c2 = add %c, %i : i32
    yield %b, %c2
  }
  %w = while (%v = %k) : i32 {
    %go = cmp %v, %zero {predicate = "gt"} : i1
    condition %go, %v
  } do (%v2: i32) {
    %v3 = sub %v2, %step : i32
    yield %v3
  }
  %tr = trans %acc {order = [1, 0]} : f32[4, 32]{L3}
  %tb = trans %tr {order = [1, 0]} : f32[32, 4]{L2}
  %j = join %acc, %tb : f32[32, 4, 2]{L4}
  %s0, %s1 = split %j : f32[32, 4]{L2}, f32[32, 4]{L2}
  %sum = add %s0, %s1 : f32[32, 4]{L2}
  %flat = reshape %sum : f32[128]{L5}
  %np = num_programs {axis = 1} : i32
  %wn = add %w, %np : i32
  %ws = splat %wn : i32[128]{L5}
  %xs5 = splat %x : *f32[128]{L5}
  %p5 = addptr %xs5, %ws : *f32[128]{L5}
  store %p5, %flat
  barrier
)";
  for (std::string_view target : kTargets) compile(kernel(layouts, "%x: *f32, %n: i32", body, 1), target);
}

}  // namespace
}  // namespace kiln::nvptx_tests
