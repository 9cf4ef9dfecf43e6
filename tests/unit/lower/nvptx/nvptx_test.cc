// Every op through the NVPTX lowering: valid LLVM IR, PTX without foreign calls, and accepted by the assembler.
#include "tests/unit/lower/nvptx/compiled.h"

#include <fmt/format.h>

namespace kiln::nvptx_tests {
namespace {

/// Loads tiles %a, %b, %c of `type` (not folded), then for each of `lines` ("add %a, %b : i32") stores its result.
std::string elementwise_kernel(std::string_view type, std::span<const std::string> lines) {
  const std::string tile = "[128]{L0}";
  std::string params = fmt::format("%in: *{}", type);
  std::string body =
      fmt::format("  %i = arange {{start = 0, end = 128}} : i32{}\n  %ins = splat %in : *{}{}\n", tile, type, tile);
  for (char name : {'a', 'b', 'c'})
    body += fmt::format("  %p{0} = addptr {1}, %i : *{2}{3}\n  %{0} = load %p{0} : {2}{3}\n", name,
                        name == 'a' ? "%ins" : fmt::format("%p{}", static_cast<char>(name - 1)), type, tile);
  int n = 0;
  for (const std::string& line : lines) {
    const std::string result = line.substr(line.rfind(' ') + 1);
    params += fmt::format(", %out{}: *{}", n, result);
    body += fmt::format(
        "  %r{0} = {1}{2}\n  %s{0} = splat %out{0} : *{3}{2}\n  %q{0} = addptr %s{0}, %i : *{3}{2}\n  store %q{0}, "
        "%r{0}\n",
        n, line, tile, result);
    ++n;
  }
  return kernel(std::string(kSmall), params, body, 1);
}

TEST(NvptxElementwise, EveryIntegerOpOnEveryType) {
  for (std::string_view target : kTargets)
    for (std::string_view t : {"i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
      SCOPED_TRACE(fmt::format("{} {}", target, t));
      std::vector<std::string> lines;
      for (std::string_view op : {"add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr"})
        lines.push_back(fmt::format("{} %a, %b : {}", op, t));
      for (std::string_view op : {"neg", "abs"}) lines.push_back(fmt::format("{} %a : {}", op, t));
      if (t.ends_with("32") || t.ends_with("64")) lines.push_back(fmt::format("mulhi %a, %b : {}", t));
      for (std::string_view p : {"eq", "ne", "lt", "le", "gt", "ge"})
        lines.push_back(fmt::format("cmp %a, %b {{predicate = \"{}\"}} : i1", p));
      compile(elementwise_kernel(t, lines), target);
    }
}

TEST(NvptxElementwise, EveryFloatOpOnEveryType) {
  for (std::string_view target : kTargets)
    for (std::string_view t : {"f16", "bf16", "f32", "f64"}) {
      SCOPED_TRACE(fmt::format("{} {}", target, t));
      std::vector<std::string> lines;
      for (std::string_view op : {"add", "sub", "mul", "div", "div_rn", "rem", "min", "max"})
        lines.push_back(fmt::format("{} %a, %b : {}", op, t));
      for (std::string_view op : {"min", "max"})
        lines.push_back(fmt::format("{} %a, %b {{nan = \"propagate\"}} : {}", op, t));
      for (std::string_view op : {"neg", "abs"}) lines.push_back(fmt::format("{} %a : {}", op, t));
      lines.push_back(fmt::format("fma %a, %b, %c : {}", t));
      for (std::string_view p : {"eq", "ne", "lt", "le", "gt", "ge"})
        lines.push_back(fmt::format("cmp %a, %b {{predicate = \"{}\"}} : i1", p));
      compile(elementwise_kernel(t, lines), target);
    }
}

TEST(NvptxElementwise, EveryMathOp) {
  for (std::string_view target : kTargets)
    for (std::string_view t : {"f32", "f64"}) {
      SCOPED_TRACE(fmt::format("{} {}", target, t));
      std::vector<std::string> lines;
      for (std::string_view op : {"exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh", "erf", "sqrt",
                                  "sqrt_rn", "rsqrt", "floor", "ceil", "trunc", "rint"})
        lines.push_back(fmt::format("{} %a : {}", op, t));
      lines.push_back(fmt::format("pow %a, %b : {}", t));
      compile(elementwise_kernel(t, lines), target);
    }
}

TEST(NvptxElementwise, EveryCast) {
  for (std::string_view target : kTargets)
    for (const DTypeInfo& from : kDTypes) {
      SCOPED_TRACE(fmt::format("{} {}", target, from.name));
      std::vector<std::string> lines;
      for (const DTypeInfo& to : kDTypes) {
        lines.push_back(fmt::format("cast %a : {}", to.name));
        if (from.cls == DTypeClass::kFloat && to.cls == DTypeClass::kFloat && to.bits < from.bits)
          lines.push_back(fmt::format("cast %a {{rounding = \"rtz\"}} : {}", to.name));
        if (from.bits == to.bits) lines.push_back(fmt::format("bitcast %a : {}", to.name));
      }
      compile(elementwise_kernel(from.name, lines), target);
    }
}

TEST(NvptxElementwise, ABitcastBetweenHalvesSurvivesInstCombine) {
  const std::string body = R"(  %a = load %x : bf16
  %b = bitcast %a : f16
  %zero = constant 0.0 : f16
  %c = cmp %b, %zero {predicate = "ne"} : i1
  store %y, %c
)";
  for (std::string_view target : kTargets) compile(kernel("", "%x: *bf16, %y: *i1", body, 1), target);
}

TEST(NvptxElementwise, ManyExactDivisionsHaveOneBranch) {
  const std::string lines[] = {"div_rn %a, %b : f32", "sqrt_rn %a : f32"};
  const Compiled many = compile(elementwise_kernel("f32", lines), "sm_90a");
  EXPECT_EQ(count(many.ptx, "rcp.approx.ftz.f32"), 4);
  EXPECT_EQ(count(many.ptx, "rsqrt.approx.ftz.f32"), 4);
  EXPECT_EQ(count(many.ptx, "div.rn.f32"), 4) << "for operands of rare exponents";
  EXPECT_EQ(count(many.llvm, "exact.rare:"), 1);
  EXPECT_EQ(count(many.llvm, "br i1"), 3) << "one more asks whether those were zeros";
}

TEST(NvptxElementwise, QuotientsThatAreRoundedOnceMoreAreTwoProducts) {
  // By one divisor, and by one for each.
  auto corrections = [](std::string_view divisor, std::string_view reader, std::string_view type) {
    const std::string body = fmt::format(R"(  %i = arange {{start = 0, end = 1024}} : i32[1024]{{L0}}
  %xs = splat %x : *f32[1024]{{L0}}
  %px = addptr %xs, %i : *f32[1024]{{L0}}
  %a = load %px : f32[1024]{{L0}}
{0}
  %q = div_rn %a, %bs : f32[1024]{{L0}}
  %r = {1} %q : {2}[1024]{{L0}}
  %ys = splat %y : *{2}[1024]{{L0}}
  %py = addptr %ys, %i : *{2}[1024]{{L0}}
  store %py, %r
)",
                                         divisor, reader, type);
    const std::string params = fmt::format("%x: *f32, %y: *{}", type);
    const Compiled c = compile(kernel(std::string(kLayout), params, body, 4), "sm_90a");
    return count(c.llvm, "call float @llvm.fma.f32");
  };
  const std::string_view one = "  %b = load %x : f32\n  %bs = splat %b : f32[1024]{L0}";
  const std::string_view each = "  %bs = load %px : f32[1024]{L0}";
  for (auto [reader, type] : {std::pair("cast", "f16"), {"cast", "bf16"}, {"rint", "f32"}, {"floor", "f32"}}) {
    EXPECT_EQ(corrections(one, reader, type), 3) << "of the reciprocal; " << reader << type;
    EXPECT_EQ(corrections(each, reader, type), 8 * 6) << reader << type;
  }
  EXPECT_EQ(corrections(one, "neg", "f32"), 2 + 8 * 4) << "the quotient itself is read";
}

TEST(NvptxElementwise, QuotientsByPowersOfTwoAreProducts) {
  // Who made the divisors is asked here, and whether they are powers where the kernel runs.
  auto branches = [](std::string_view divisor) {
    const std::string lines[] = {std::string(divisor), "div_rn %a, %r0 : f32"};
    return count(compile(elementwise_kernel("f32", lines), "sm_90a").llvm, "br i1");
  };
  EXPECT_EQ(branches("exp2 %b : f32"), branches("abs %b : f32") + 1);
}

TEST(NvptxElementwise, DivisionsOfWhatWereIntegersAskOnlyForTheirDivisors) {
  auto branches = [](std::string_view from, std::string_view divisor) {
    const std::string body = fmt::format(R"(  %i = arange {{start = 0, end = 128}} : i32[128]{{L0}}
  %xs = splat %x : *{0}[128]{{L0}}
  %px = addptr %xs, %i : *{0}[128]{{L0}}
  %a = load %px : {0}[128]{{L0}}
  %f = cast %a : f32[128]{{L0}}
  %b = {1}
  %bs = splat %b : f32[128]{{L0}}
  %q = div_rn %f, %bs : f32[128]{{L0}}
  %ys = splat %y : *f32[128]{{L0}}
  %py = addptr %ys, %i : *f32[128]{{L0}}
  store %py, %q
)",
                                         from, divisor);
    const std::string params = fmt::format("%x: *{}, %y: *f32", from);
    return count(compile(kernel(std::string(kSmall), params, body, 1), "sm_90a").llvm, "br i1");
  };
  // Zeros of either sign, of which the corrections lose one, are no integers; 2^63 is beyond what they may divide.
  for (std::string_view from : {"i8", "u16", "i32"}) EXPECT_EQ(branches(from, "constant 255.0 : f32"), 0) << from;
  for (std::string_view from : {"i8", "u16", "i32"}) EXPECT_EQ(branches(from, "load %y : f32"), 1) << from;
  for (std::string_view from : {"i64", "f16"}) EXPECT_EQ(branches(from, "constant 255.0 : f32"), 2) << from;
}

TEST(NvptxElementwise, ASineAndACosineReduceTheirNumberOnce) {
  const std::string both[] = {"sin %a : f32", "cos %a : f32"}, apart[] = {"sin %a : f32", "cos %b : f32"};
  EXPECT_EQ(count(compile(elementwise_kernel("f32", both), "sm_90a").llvm, "trig.slow:"), 1);
  const std::string two = compile(elementwise_kernel("f32", apart), "sm_90a").llvm;
  EXPECT_EQ(count(two, "\ntrig.slow"), 2);
}

TEST(NvptxElementwise, ASineOfWhatWasAHalfHasNoSlowPath) {
  // Largest numbers: 65504 of f16, 3.4e38 of bf16.
  for (auto [from, branches] : {std::pair("f16", 0), std::pair("i8", 0), std::pair("bf16", 1), std::pair("i32", 1)}) {
    const std::string body =
        fmt::format("  %a = load %x : {}\n  %b = cast %a : f32\n  %c = sin %b : f32\n  store %y, %c\n", from);
    const Compiled c = compile(kernel("", fmt::format("%x: *{}, %y: *f32", from), body, 1), "sm_90a");
    EXPECT_EQ(count(c.llvm, "\ntrig.slow"), branches) << from;
    EXPECT_EQ(count(c.ptx, ".global .align 8 .b8 kiln_two_over_pi"), branches) << from;
    EXPECT_EQ(count(c.ptx, ".func"), 0) << "what was taken in line is not compiled once more\n" << c.ptx;
  }
}

TEST(NvptxElementwise, ArithmeticIsNotContractedAndUsesNativeHalves) {
  const std::string lines[] = {"add %a, %b : f32", "mul %a, %b : f32", "div %a, %b : f32"};
  Compiled f32 = compile(elementwise_kernel("f32", lines), "sm_90a");
  EXPECT_EQ(count(f32.ptx, "add.rn.f32"), 4);
  EXPECT_EQ(count(f32.ptx, "mul.rn.f32"), 4);
  EXPECT_EQ(count(f32.ptx, "div.full.f32"), 4);
  const std::string halves[] = {"add %a, %b : bf16", "fma %a, %b, %c : bf16",
                                "min %a, %b {nan = \"propagate\"} : bf16"};
  Compiled bf16 = compile(elementwise_kernel("bf16", halves), "sm_90a");
  EXPECT_EQ(count(bf16.ptx, "add.rn.bf16x2"), 2);
  EXPECT_EQ(count(bf16.ptx, "fma.rn.bf16x2"), 2);
  EXPECT_EQ(count(bf16.ptx, "min.NaN.bf16x2"), 2);
  const std::string casts[] = {"cast %a : bf16", "cast %a : f16", "cast %a : f8e4m3"};
  Compiled narrow = compile(elementwise_kernel("f32", casts), "sm_90a");
  EXPECT_EQ(count(narrow.ptx, "cvt.rn.bf16x2.f32"), 2);
  EXPECT_EQ(count(narrow.ptx, "cvt.rn.f16x2.f32"), 2);
  EXPECT_EQ(count(narrow.ptx, "cvt.rn.satfinite.e4m3x2.f32"), 2);
}

/// out[i] = x[i] + y[i] over blocks of 1024 elements of `type`, held as `layout`.
std::string add_kernel(std::string_view layout, std::string_view type, int divisibility, bool masked) {
  return fmt::format(
      R"({0}kernel @add(%x: *{1} {{divisibility = 16}}, %y: *{1} {{divisibility = 16}}, %o: *{1} {{divisibility = 16}}, %n: i32 {{divisibility = {2}}}) attributes {{num_warps = 4, num_stages = 3, num_ctas = 1, stage = "distributed", shared_bytes = 0}} {{
  %pid = program_id {{axis = 0}} : i32
  %bs = constant 1024 : i32
  %base = mul %pid, %bs : i32
  %b = splat %base : i32[1024]{{L0}}
  %r = arange {{start = 0, end = 1024}} : i32[1024]{{L0}}
  %off = add %b, %r : i32[1024]{{L0}}
  %nn = splat %n : i32[1024]{{L0}}
  %m = cmp %off, %nn {{predicate = "lt"}} : i1[1024]{{L0}}
  %xs = splat %x : *{1}[1024]{{L0}}
  %ys = splat %y : *{1}[1024]{{L0}}
  %os = splat %o : *{1}[1024]{{L0}}
  %xp = addptr %xs, %off : *{1}[1024]{{L0}}
  %yp = addptr %ys, %off : *{1}[1024]{{L0}}
  %op = addptr %os, %off : *{1}[1024]{{L0}}
  %xv = load %xp{3} : {1}[1024]{{L0}}
  %yv = load %yp{3} : {1}[1024]{{L0}}
  %s = add %xv, %yv : {1}[1024]{{L0}}
  store %op, %s{3}
  return
}}
)",
      layout, type, divisibility, masked ? ", %m" : "");
}

TEST(NvptxMemory, VectorAddMoves16BytesPerInstruction) {
  for (std::string_view target : kTargets) {
    Compiled c = compile(add_kernel(kLayout, "f32", 16, true), target);
    EXPECT_EQ(count(c.ptx, "ld.global.v4.b32"), 4) << c.ptx;
    EXPECT_EQ(count(c.ptx, "st.global.v4.b32"), 2) << c.ptx;
    EXPECT_EQ(count(c.ptx, "bra"), 0) << "a masked access is predicated, not branched around\n" << c.ptx;
    EXPECT_EQ(count(c.ptx, "mul.lo.s64"), 0) << c.ptx;
    EXPECT_EQ(c.cubin.image.empty() ? 0 : c.cubin.spill_bytes, 0);
  }
}

TEST(NvptxMemory, UnmaskedAccessesFoldConstantOffsets) {
  Compiled c = compile(add_kernel(kLayout, "f32", 1, false), "sm_90a");
  EXPECT_EQ(count(c.ptx, "ld.global.v4.b32"), 4) << c.ptx;
  EXPECT_EQ(count(c.ptx, "+2048]"), 3) << c.ptx;
  EXPECT_EQ(count(c.ptx, "add.s64"), 3) << "one address per pointer\n" << c.ptx;
}

TEST(NvptxMemory, HalvesTravelEightAtATime) {
  const char* layout =
      "layout L0 = [1024] {register = [(1), (2), (4)], lane = [(8), (16), (32), (64), (128)], warp = [(256), (512)]}\n";
  Compiled c = compile(add_kernel(layout, "bf16", 16, true), "sm_90a");
  EXPECT_EQ(count(c.ptx, "ld.global.v4.b32"), 2) << c.ptx;
  EXPECT_EQ(count(c.ptx, "st.global.v4.b32"), 1) << c.ptx;
  EXPECT_EQ(count(c.ptx, "add.rn.bf16x2"), 4) << c.ptx;
}

// n may be any number: of each thread's four elements the first few may be inside. Whole vectors move as such, and one
// branch leads to what is left of those that end among their elements.
TEST(NvptxMemory, AMaskMayEndWithinAVector) {
  for (std::string_view target : kTargets) {
    Compiled c = compile(add_kernel(kLayout, "f32", 1, true), target);
    EXPECT_EQ(count(c.ptx, "ld.global.v4.b32"), 4) << c.ptx;
    EXPECT_EQ(count(c.ptx, "ld.global.b32"), 4 * 3) << c.ptx;
    EXPECT_EQ(count(c.ptx, "st.global.v4.b32"), 2) << c.ptx;
    EXPECT_EQ(count(c.ptx, "st.global.b32"), 2 * 3) << c.ptx;
  }
}

// What is left of a row's vector is stored behind a branch of its own, where only the mask of columns is open: one
// predicate for each column, not for each element.
TEST(NvptxMemory, RowsThatEndWithinAVectorShareTheMasksOfColumns) {
  const std::string layouts = R"(
layout L0 = [16, 64] {register = [(0, 1), (0, 2), (0, 4), (4, 0), (8, 0)], lane = [(0, 8), (0, 16), (0, 32), (1, 0), (2, 0)], warp = []}
layout L1 = [16, 1] {register = [(4, 0), (8, 0)], lane = [(0, 0), (0, 0), (0, 0), (1, 0), (2, 0)], warp = []}
layout L2 = [16] {register = [(4), (8)], lane = [(0), (0), (0), (1), (2)], warp = []}
layout L3 = [1, 64] {register = [(0, 1), (0, 2), (0, 4)], lane = [(0, 8), (0, 16), (0, 32), (0, 0), (0, 0)], warp = []}
layout L4 = [64] {register = [(1), (2), (4)], lane = [(8), (16), (32), (0), (0)], warp = []}
)";
  const std::string body = R"(  %i = arange {start = 0, end = 16} : i32[16]{L2}
  %j = arange {start = 0, end = 64} : i32[64]{L4}
  %ms = splat %m : i32[16]{L2}
  %ns = splat %n : i32[64]{L4}
  %row = cmp %i, %ms {predicate = "lt"} : i1[16]{L2}
  %column = cmp %j, %ns {predicate = "lt"} : i1[64]{L4}
  %rows = expand_dims %row {axis = 1} : i1[16, 1]{L1}
  %columns = expand_dims %column {axis = 0} : i1[1, 64]{L3}
  %wide = broadcast %rows : i1[16, 64]{L0}
  %high = broadcast %columns : i1[16, 64]{L0}
  %inside = and %wide, %high : i1[16, 64]{L0}
  %is = expand_dims %i {axis = 1} : i32[16, 1]{L1}
  %js = expand_dims %j {axis = 0} : i32[1, 64]{L3}
  %length = constant 64 : i32[16, 1]{L1}
  %begin = mul %is, %length : i32[16, 1]{L1}
  %begins = broadcast %begin : i32[16, 64]{L0}
  %offsets = broadcast %js : i32[16, 64]{L0}
  %at = add %begins, %offsets : i32[16, 64]{L0}
  %s = splat %x : *f16[16, 64]{L0}
  %p = addptr %s, %at : *f16[16, 64]{L0}
  %one = constant 1.0 : f16[16, 64]{L0}
  store %p, %one, %inside
)";
  const Compiled c = compile(kernel(layouts, "%x: *f16 {divisibility = 16}, %m: i32, %n: i32", body, 1), "sm_90a");
  EXPECT_EQ(count(c.ptx, "st.global.v4.b32"), 4) << c.ptx;
  EXPECT_EQ(count(c.ptx, "st.global.u16") + count(c.ptx, "st.global.b16"), 4 * 7) << c.ptx;
  const size_t branch = c.ptx.find("bra");
  ASSERT_NE(branch, std::string::npos) << c.ptx;
  EXPECT_LE(count(c.ptx.substr(branch), "and.pred"), 4) << c.ptx;
}

// What takes a word apart waits for its load: all threads would, at the branch that few take.
TEST(NvptxMemory, HalvesLeaveTheirWordsBehindTheBranch) {
  Compiled c = compile(add_kernel(kLayout, "f16", 1, true), "sm_90a");
  const size_t branch = c.ptx.find("bra");
  ASSERT_NE(branch, std::string::npos) << c.ptx;
  EXPECT_GT(count(c.ptx.substr(0, branch), "ld.global.v"), 0) << c.ptx;
  EXPECT_EQ(count(c.ptx.substr(0, branch), "mov.b32 \t{"), 0) << c.ptx;
}

TEST(NvptxMemory, AMaskOfSingleElementsForcesScalarAccesses) {
  std::string text = add_kernel(kLayout, "f32", 1, true);
  text.replace(text.find("\"lt\""), 4, "\"ne\"");
  Compiled c = compile(text, "sm_90a");
  EXPECT_EQ(count(c.ptx, "ld.global.v4"), 0);
  EXPECT_EQ(count(c.ptx, "ld.global.b32"), 16) << c.ptx;
}

// Four neighbours read one address: it is loaded once, and again where a load is volatile, or its mask differs.
TEST(NvptxMemory, NeighboursAtOneAddressAreLoadedOnce) {
  const std::string layouts =
      "layout L0 = [512] {register = [(1), (2), (256)], lane = [(4), (8), (16), (32), (64)], warp = [(128)]}\n";
  const std::string addresses = R"(  %i = arange {start = 0, end = 512} : i32[512]{L0}
  %four = constant 4 : i32[512]{L0}
  %q = div %i, %four : i32[512]{L0}
  %s = splat %x : *f32[512]{L0}
  %p = addptr %s, %q : *f32[512]{L0}
  %o = addptr %s, %i : *f32[512]{L0}
  %ns = splat %n : i32[512]{L0}
  %m = cmp %i, %ns {predicate = "lt"} : i1[512]{L0}
  %g = cmp %q, %ns {predicate = "lt"} : i1[512]{L0}
)";
  auto loads = [&](const std::string& load) {
    const std::string body = addresses + "  %a = load " + load + " : f32[512]{L0}\n  store %o, %a\n";
    const Compiled c = compile(kernel(layouts, "%x: *f32, %n: i32", body, 2), "sm_90a");
    return count(c.ptx, "ld.global") + count(c.ptx, "ld.volatile.global");
  };
  EXPECT_EQ(loads("%p"), 2);
  EXPECT_EQ(loads("%p, %g"), 2);
  EXPECT_EQ(loads("%p, %m"), 8);
  EXPECT_EQ(loads("%p {volatile = true}"), 8);
}

TEST(NvptxMemory, CacheHintsVolatileAndCopies) {
  // Lane bits 3 and 4 and the warp bit are copies: one thread of eight stores.
  const std::string layouts = "layout L0 = [8] {lane = [(1), (2), (4), (0), (0)], warp = [(0)]}\n";
  const std::string body = R"(  %i = arange {start = 0, end = 8} : i32[8]{L0}
  %s = splat %x : *f16[8]{L0}
  %p = addptr %s, %i : *f16[8]{L0}
  %a = load %p {cache = ".cg"} : f16[8]{L0}
  %b = load %p {eviction = "evict_last"} : f16[8]{L0}
  %c = load %p {volatile = true} : f16[8]{L0}
  %ab = add %a, %b : f16[8]{L0}
  %abc = add %ab, %c : f16[8]{L0}
  store %p, %abc {cache = ".wt"}
  store %p, %abc {eviction = "evict_first"}
  %one = constant 1.0 : f16
  store %x, %one
)";
  for (std::string_view target : kTargets) {
    Compiled c = compile(kernel(layouts, "%x: *f16", body, 2), target);
    EXPECT_EQ(count(c.ptx, "ld.global.cg.u16"), 1) << c.ptx;
    EXPECT_EQ(count(c.ptx, "createpolicy.fractional.L2::evict_last.b64"), 1);
    EXPECT_EQ(count(c.ptx, "createpolicy.fractional.L2::evict_first"), 0) << "a store has no policy";
    EXPECT_EQ(count(c.ptx, "ld.global.L1::evict_last.L2::cache_hint.u16"), 1);
    EXPECT_EQ(count(c.ptx, "ld.volatile.global.u16"), 1);
    EXPECT_EQ(count(c.ptx, "st.global.wt.u16"), 1);
    EXPECT_EQ(count(c.ptx, "@%p"), 3) << "stores are done by the owner alone\n" << c.ptx;
  }
}

TEST(NvptxMemory, OnePolicyServesAllLoadsMaskedOrNot) {
  const std::string layouts =
      "layout L0 = [512] {register = [(1), (256)], lane = [(2), (4), (8), (16), (32)], warp = [(64), (128)]}\n";
  const std::string body = R"(  %i = arange {start = 0, end = 512} : i32[512]{L0}
  %s = splat %x : *f32[512]{L0}
  %p = addptr %s, %i : *f32[512]{L0}
  %n = constant 300 : i32
  %ns = splat %n : i32[512]{L0}
  %m = cmp %i, %ns {predicate = "lt"} : i1[512]{L0}
  %a = load %p, %m {eviction = "evict_first"} : f32[512]{L0}
  store %p, %a
  %b = load %p {eviction = "evict_first"} : f32[512]{L0}
  store %p, %b
)";
  for (std::string_view target : kTargets) {
    Compiled c = compile(kernel(layouts, "%x: *f32", body, 4), target);
    EXPECT_EQ(count(c.ptx, "createpolicy.fractional.L2::evict_first.b64"), 1) << c.ptx;
    EXPECT_EQ(count(c.ptx, "ld.global.L1::evict_first.L2::cache_hint"), count(c.ptx, "ld.global")) << c.ptx;
  }
}

TEST(NvptxAtomic, EveryOperation) {
  const std::string layouts = "layout L0 = [32] {lane = [(1), (2), (4), (8), (16)], warp = [(0)]}\n";
  for (std::string_view target : kTargets)
    for (std::string_view t : {"i32", "u32", "i64", "u64", "f32", "f64", "f16"}) {
      const bool is_real = t[0] == 'f';
      std::vector<std::string> operations = is_real ? std::vector<std::string>{"fadd"}
                                                    : std::vector<std::string>{"add", "min", "max", "and", "or", "xor"};
      if (t != "f16") operations.push_back("xchg");
      std::string body = fmt::format(
          "  %i = arange {{start = 0, end = 32}} : i32[32]{{L0}}\n  %s = splat %x : *{0}[32]{{L0}}\n"
          "  %p = addptr %s, %i : *{0}[32]{{L0}}\n  %v = load %p : {0}[32]{{L0}}\n  %w = load %x : {0}\n"
          "  %m = cmp %v, %v {{predicate = \"eq\"}} : i1[32]{{L0}}\n",
          t);
      for (const std::string& rmw : operations) {
        body += fmt::format(
            "  %t_{0} = atomic_rmw %p, %v, %m {{rmw = \"{0}\", sem = \"relaxed\", scope = \"gpu\"}} : {1}[32]{{L0}}\n  "
            "store %p, %t_{0}\n",
            rmw, t);
        body += fmt::format(
            "  %u_{0} = atomic_rmw %x, %w {{rmw = \"{0}\", sem = \"acq_rel\", scope = \"sys\"}} : {1}\n  store %x, "
            "%u_{0}\n",
            rmw, t);
        body += fmt::format(
            "  %n_{0} = atomic_rmw %p, %v {{rmw = \"{0}\", sem = \"release\", scope = \"cta\"}} : {1}[32]{{L0}}\n", rmw,
            t);
      }
      body +=
          fmt::format("  %c = atomic_cas %x, %w, %w {{sem = \"acquire\", scope = \"gpu\"}} : {}\n  store %x, %c\n", t);
      SCOPED_TRACE(fmt::format("{} {}", target, t));
      Compiled c = compile(kernel(layouts, fmt::format("%x: *{}", t), body, 2), target);
      EXPECT_GT(count(c.ptx, "atom."), 0);
    }
}

/// x[i] += x[i] for i < n, of 512 elements; `used`: what was there is stored.
std::string add_atomically(std::string_view type, bool used, std::string_view sem, std::string_view predicate) {
  const std::string layout =
      "layout L0 = [512] {register = [(1), (2), (4)], lane = [(8), (16), (32), (64), (128)], warp = [(256)]}\n";
  std::string body = fmt::format(R"(  %i = arange {{start = 0, end = 512}} : i32[512]{{L0}}
  %s = splat %x : *{0}[512]{{L0}}
  %p = addptr %s, %i : *{0}[512]{{L0}}
  %ns = splat %n : i32[512]{{L0}}
  %m = cmp %i, %ns {{predicate = "{1}"}} : i1[512]{{L0}}
  %v = load %p : {0}[512]{{L0}}
  %old = atomic_rmw %p, %v, %m {{rmw = "fadd", sem = "{2}", scope = "gpu"}} : {0}[512]{{L0}}
)",
                                 type, predicate, sem);
  if (used) body += "  store %p, %old\n";
  return kernel(layout, fmt::format("%x: *{} {{divisibility = 16}}, %n: i32", type), body, 2);
}

TEST(NvptxAtomic, FloatsAreAddedInVectors) {
  for (const bool used : {false, true}) {
    // Where the mask may end within a vector and the result is used, elements go one by one.
    const int ends = used ? 0 : 1;
    Compiled c = compile(add_atomically("f32", used, "relaxed", "lt"), "sm_90a");
    EXPECT_EQ(count(c.ptx, "red.global.gpu.relaxed.add.v4.f32"), 2 * ends) << c.ptx;
    EXPECT_EQ(count(c.ptx, "atom.global.gpu.relaxed.add.f32"), used ? 8 : 6) << c.ptx;
    c = compile(add_atomically("bf16", used, "relaxed", "lt"), "sm_90a");
    EXPECT_EQ(count(c.ptx, "red.global.gpu.relaxed.add.noftz.v4.bf16x2"), ends) << c.ptx;
    EXPECT_EQ(count(c.ptx, "atom.global.gpu.relaxed.add.noftz.bf16 "), used ? 8 : 7) << c.ptx;
    c = compile(add_atomically("f32", used, "relaxed", "lt"), "sm_80");
    EXPECT_EQ(count(c.ptx, "atom.global.gpu.relaxed.add.f32"), 8) << c.ptx;
  }
  std::string whole = add_atomically("f16", true, "relaxed", "lt");
  whole.replace(whole.find("%n: i32"), 7, "%n: i32 {divisibility = 16}");
  Compiled c = compile(whole, "sm_90a");
  EXPECT_EQ(count(c.ptx, "atom.global.gpu.relaxed.add.noftz.v4.f16x2"), 1) << "its result is used\n" << c.ptx;
}

// Each atomic that orders would wait for the thread's whole memory.
TEST(NvptxAtomic, AFenceOrdersATile) {
  for (const auto& [sem, fences] : {std::pair("relaxed", 0), {"acquire", 1}, {"release", 1}, {"acq_rel", 2}}) {
    Compiled c = compile(add_atomically("f32", true, sem, "ne"), "sm_90a");
    EXPECT_EQ(count(c.ptx, "fence.acq_rel.gpu"), fences) << c.ptx;
    EXPECT_EQ(count(c.ptx, "atom.global.gpu.relaxed.add.f32"), 8) << c.ptx;
  }
}

TEST(NvptxAtomic, Bf16AddNeedsSm90) {
  auto module = parse(kernel(
      "", "%x: *bf16",
      "  %v = load %x : bf16\n  %o = atomic_rmw %x, %v {rmw = \"fadd\", sem = \"relaxed\", scope = \"gpu\"} : bf16\n"));
  ASSERT_TRUE(module);
  llvm::LLVMContext context;
  auto lowered = lower::lower_nvptx(*module, *target::find("sm_80"), context);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(lowered.error().message, "sm_80 has no atomic add on bf16");
  EXPECT_TRUE(lower::lower_nvptx(*module, *target::find("sm_90"), context).ok());
}

// Where all programs of a large grid let the next launch begin, they begin at half their rate. The last ones do.
TEST(NvptxEffects, OnlyTheLastProgramsLetDependentsBegin) {
  const Compiled c = compile(kernel("", "%x: *i32", "  gdc_wait\n  gdc_launch_dependents\n"), "sm_90a");
  const size_t launch = c.ptx.find("griddepcontrol.launch_dependents");
  ASSERT_NE(launch, std::string::npos) << c.ptx;
  const std::string before = c.ptx.substr(0, launch);
  EXPECT_EQ(count(before, "%nctaid.x"), 1) << c.ptx;
  EXPECT_EQ(count(before, "setp."), 1) << c.ptx;
  EXPECT_EQ(count(before, "griddepcontrol.wait"), 1) << c.ptx;
  EXPECT_GT(before.find("setp."), before.find("griddepcontrol.wait")) << c.ptx;
}

/// Integers of a whole warp have an instruction for their sum, which ptxas knows to be the same in all threads.
/// ptxas does not see that a sum of floats is the same in all threads, and that no warp comes apart where it decides.
TEST(NvptxEffects, PrintAssertAssume) {
  const std::string body = R"(  %r = arange {start = 0, end = 128} : i32[128]{L0}
  %z = splat %n : i32[128]{L0}
  %m = cmp %r, %z {predicate = "lt"} : i1[128]{L0}
  assert %m {text = "r < n"}
  assert %m, %m {text = "masked"}
  %one = constant 1 : i32
  %c = cmp %n, %one {predicate = "gt"} : i1
  assume %c
  print %n, %r {text = "100%: "}
  print %h {text = "half", hex = true}
  print {text = "done"}
  print %x {text = "pointer"}
)";
  for (std::string_view target : kTargets) {
    Compiled c = compile(kernel(std::string(kSmall), "%x: *f32, %n: i32, %h: f16", body, 1), target);
    EXPECT_GT(count(c.ptx, "vprintf"), 0);
    EXPECT_GT(count(c.ptx, "__assertfail"), 0);
    // As Triton writes them.
    for (const char* format :
         {"pid (%u, %u, %u) idx () 100%%: (operand 0) %lld\n", "pid (%u, %u, %u) idx (%3u) 100%%: (operand 1) %lld\n",
          "pid (%u, %u, %u) idx () half0x%04llx\n", "pid (%u, %u, %u) done\n"}) {
      std::string bytes;
      for (const char* at = format; *at; ++at) bytes += fmt::format("{}{}", at == format ? "" : ", ", int{*at});
      EXPECT_GT(count(c.ptx, bytes), 0) << format;
    }
  }
}

TEST(NvptxAsm, TakesElementsByRegisters) {
  const std::string body = R"(  %r = arange {start = 0, end = 1024} : i32[1024]{L0}
  %xs = splat %x : *f32[1024]{L0}
  %px = addptr %xs, %r : *f32[1024]{L0}
  %v = load %px : f32[1024]{L0}
  %one = inline_asm %v {text = "cos.approx.f32 $0, $1;", constraints = "=f,f", outputs = "f32", output = 0, pack = 1} : f32[1024]{L0}
  store %px, %one
  %h = inline_asm %v, %r {text = "{ .reg .b32 t; xor.b32 t, $3, $4; cvt.rn.f16x2.f32 $0, $2, $1; }", constraints = "=r,f,f,r,r", outputs = "f16", output = 0, pack = 2} : f16[1024]{L0}
  %hs = splat %y : *f16[1024]{L0}
  %ph = addptr %hs, %r : *f16[1024]{L0}
  store %ph, %h
  %bs = splat %z : *i8[1024]{L0}
  %pb = addptr %bs, %r : *i8[1024]{L0}
  %b = load %pb : i8[1024]{L0}
  %low = inline_asm %b {text = "and.b32 $0, $2, 252645135; shr.u32 $1, $2, 4;", constraints = "=&r,=r,r", outputs = "i8 i8", output = 0, pack = 4} : i8[1024]{L0}
  %high = inline_asm %b {text = "and.b32 $0, $2, 252645135; shr.u32 $1, $2, 4;", constraints = "=&r,=r,r", outputs = "i8 i8", output = 1, pack = 4} : i8[1024]{L0}
  %sum = add %low, %high : i8[1024]{L0}
  store %pb, %sum
  %q = inline_asm %n {text = "add.u16 $0, $1, 1;", constraints = "=h,0", outputs = "i16", output = 0, pack = 1} : i16
)";
  for (std::string_view target : kTargets) {
    Compiled c = compile(kernel(std::string(kLayout), "%x: *f32, %y: *f16, %z: *i8, %n: i16", body), target);
    EXPECT_EQ(count(c.ptx, "cos.approx"), 8) << "an element each";
    EXPECT_EQ(count(c.ptx, "cvt.rn.f16x2.f32"), 4) << "two each";
    EXPECT_EQ(count(c.ptx, "and.b32"), 2) << "four each, and both outputs of one\n" << c.ptx;
  }
}

TEST(NvptxAsm, EffectsStayInPlace) {
  const std::string body =
      R"(  %a, %b = asm_effect {text = "mov.b64 {$0, $1}, %clock64;", constraints = "=r,=r", outputs = "u32 u32", pack = 1} : u32, u32
  %c, %d = asm_effect {text = "mov.b64 {$0, $1}, %clock64;", constraints = "=r,=r", outputs = "u32 u32", pack = 1} : u32, u32
  asm_effect %n {text = "nanosleep.u32 $0;", constraints = "r", outputs = "", pack = 1}
  %r = arange {start = 0, end = 1024} : i32[1024]{L0}
  %old = asm_effect %r {text = "add.u32 $0, $1, 1;", constraints = "=r,r", outputs = "i32", pack = 1} : i32[1024]{L0}
  store %x, %a
)";
  for (std::string_view target : kTargets) {
    Compiled c = compile(kernel(std::string(kLayout), "%x: *u32, %n: i32", body), target);
    EXPECT_EQ(count(c.ptx, "%clock64"), 2) << "neither removed nor merged\n" << c.ptx;
    EXPECT_EQ(count(c.ptx, "nanosleep"), 1) << c.ptx;
    EXPECT_EQ(count(c.ptx, "add.u32"), 8) << "an element each, though nothing reads it\n" << c.ptx;
  }
}

TEST(NvptxDebug, PtxCarriesSourceLines) {
  Compiled c = compile(
      kernel(std::string(kLayout), "%x: *f32", "  %v = load %x : f32\n  %w = add %v, %v : f32\n  store %x, %w\n"),
      "sm_90a");
  EXPECT_GT(count(c.ptx, ".loc"), 0) << c.ptx;
  EXPECT_GT(count(c.ptx, "test.kir"), 0) << c.ptx;
}

}  // namespace
}  // namespace kiln::nvptx_tests
