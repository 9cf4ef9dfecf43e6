// Dots from the tile stage to the distributed machine: every type, shape, transposition and number of warps must
// compute what the tile interpreter says, on layouts that feed each warp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::passes {
namespace {

struct DotCase {
  DType a, b, acc;
  std::string precision;
  int batch = 1, m = 16, n = 16, k = 16, warps = 4;
  bool trans_a = false, trans_b = false, zero = false, added = false;
  std::string target = "sm_80";
  std::optional<DType> from_a = {}, from_b = {};  // widened from these
  bool chained = false;                           // a is multiplied by the first k * k elements of b's memory before

  DType loaded_a() const { return from_a.value_or(a); }
  DType loaded_b() const { return from_b.value_or(b); }
  std::string describe() const {
    return fmt::format("{}{} x {} in {} {} [{}, {}, {}, {}] warps {} trans {}{} zero {} added {} of {} and {} on {}",
                       chained ? "chained " : "", name(a), name(b), name(acc), precision, batch, m, n, k, warps,
                       trans_a, trans_b, zero, added, name(loaded_a()), name(loaded_b()), target);
  }
};

/// A tile of `dims` at row-major offsets from %`pointer`; `line` uses %p and %o as "load" or "store" does.
std::string offsets(const std::string& id, const std::string& pointer, DType t, const std::vector<int>& dims) {
  int total = 1;
  for (int d : dims) total *= d;
  const std::string shape = fmt::format("[{}]", fmt::join(dims, ", "));
  return fmt::format(
      "  %r{0} = arange {{start = 0, end = {1}}} : i32[{1}]\n  %q{0} = reshape %r{0} : i32{2}\n"
      "  %s{0} = splat %{3} : *{4}{2}\n  %p{0} = addptr %s{0}, %q{0} : *{4}{2}\n",
      id, total, shape, pointer, name(t));
}

std::vector<int> dims_of(const DotCase& c, int rows, int columns) {
  if (c.batch == 1) return {rows, columns};
  return {c.batch, rows, columns};
}

std::string text_of(const DotCase& c) {
  std::string s = fmt::format(
      "kernel @k(%x: *{} {{divisibility = 16}}, %y: *{} {{divisibility = 16}}, %z: *{}, %out: *{}) attributes "
      "{{num_warps = {}, num_stages = 3, num_ctas = 1}} {{\n",
      name(c.loaded_a()), name(c.loaded_b()), name(c.acc), name(c.acc), c.warps);
  auto type = [](DType t, const std::vector<int>& dims) {
    return fmt::format("{}[{}]", name(t), fmt::join(dims, ", "));
  };
  auto operand = [&](const std::string& id, const std::string& pointer, DType from, DType t, int rows, int columns,
                     bool trans) {
    auto dims = dims_of(c, trans ? columns : rows, trans ? rows : columns);
    s += offsets(id, pointer, from, dims);
    const std::string wide = trans ? id + "_t" : id, loaded = from == t ? wide : id + "_l";
    s += fmt::format("  %{} = load %p{} : {}\n", loaded, id, type(from, dims));
    if (from != t) s += fmt::format("  %{} = cast %{} : {}\n", wide, loaded, type(t, dims));
    if (trans)
      s += fmt::format("  %{0} = trans %{0}_t {{order = [{1}]}} : {2}\n", id, c.batch == 1 ? "1, 0" : "0, 2, 1",
                       type(t, dims_of(c, rows, columns)));
  };
  const std::string precision = c.precision.empty() ? "" : fmt::format(" {{precision = \"{}\"}}", c.precision);
  operand(c.chained ? "a0" : "a", "x", c.loaded_a(), c.a, c.m, c.k, c.trans_a);
  operand("b", "y", c.loaded_b(), c.b, c.k, c.n, c.trans_b);
  operand("c", "z", c.acc, c.acc, c.m, c.n, false);
  if (c.chained) {
    operand("a1", "y", c.loaded_b(), c.b, c.k, c.k, c.trans_b);
    const auto sums = dims_of(c, c.m, c.k);
    s += fmt::format("  %a2 = constant 0.0 : {}\n", type(c.acc, sums));
    s += fmt::format("  %{} = dot %a0, %a1, %a2{} : {}\n", c.a == c.acc ? "a" : "a3", precision, type(c.acc, sums));
    if (c.a != c.acc) s += fmt::format("  %a = cast %a3 : {}\n", type(c.a, sums));
  }
  const auto dims = dims_of(c, c.m, c.n);
  if (c.zero || c.added)
    s += fmt::format("  %start = constant {} : {}\n", is_float(c.acc) ? "0.0" : "0", type(c.acc, dims));
  s += fmt::format("  %d = dot %a, %b, %{}{} : {}\n", c.zero || c.added ? "start" : "c", precision, type(c.acc, dims));
  if (c.added) s += fmt::format("  %e = add %c, %d : {}\n", type(c.acc, dims));
  s += offsets("o", "out", c.acc, dims);
  return s + fmt::format("  store %po, %{}\n  return\n}}\n", c.added ? "e" : "d");
}

/// The output as numbers.
std::vector<double> run(const ir::Module& m, const DotCase& c, std::vector<std::vector<uint64_t>> storage) {
  interp::Memory memory;
  std::vector<uint64_t> slots;
  for (auto& buffer : storage) {
    slots.push_back(reinterpret_cast<uint64_t>(buffer.data()));
    memory.allow(buffer.data(), buffer.size() * 8);
  }
  const Status s = m.stage == ir::Stage::kTile ? interp::run(m, {1, 1, 1}, slots, memory)
                                               : interp::run_distributed(m, {1, 1, 1}, slots, memory);
  EXPECT_TRUE(s.ok()) << render(s.error()) << ir::print(m);
  std::vector<double> out;
  for (int i = 0; s.ok() && i < c.batch * c.m * c.n; ++i) {
    const uint64_t bits = interp::Memory::read(slots[3] + static_cast<uint64_t>(i * size_of(c.acc)), c.acc);
    out.push_back(is_float(c.acc) ? float_from_bits(c.acc, bits) : static_cast<int32_t>(bits));
  }
  return out;
}

/// `what` sees the module that the pipeline has made.
void check(const DotCase& c, std::mt19937& rng, const std::function<void(ir::Module&)>& what = {}) {
  SCOPED_TRACE(c.describe());
  auto m = ir::parse_module(SourceText::make("test.kir", text_of(c)));
  ASSERT_TRUE(m.ok()) << render(m.error()) << text_of(c);
  std::normal_distribution<double> normal;
  std::vector<std::vector<uint64_t>> storage;
  auto fill = [&](DType t, int count) {
    auto& buffer = storage.emplace_back(static_cast<size_t>(count));
    const auto begin = reinterpret_cast<uint64_t>(buffer.data());
    for (int i = 0; i < count; ++i)
      interp::Memory::write(begin + static_cast<uint64_t>(i * size_of(t)), t,
                            !is_float(t)
                                ? rng() & (c.chained  ? 1
                                           : c.from_a ? 3
                                                      : 0xff)
                                : float_to_bits(t, c.chained ? static_cast<double>(rng() % 3) - 1 : normal(rng)));
  };
  fill(c.loaded_a(), c.batch * c.m * c.k);
  fill(c.loaded_b(), c.batch * c.k * std::max(c.n, c.chained ? c.k : 0));
  fill(c.acc, c.batch * c.m * c.n);
  fill(c.acc, c.batch * c.m * c.n);
  const std::vector<double> want = run(**m, c, storage);
  RunOptions options;
  options.verify_each = true;
  const target::Target& target = *target::find(c.target);
  const Status s = passes::run(pipeline(target.kind), **m, target, options);
  ASSERT_TRUE(s.ok()) << render(s.error());
  if (what) what(**m);
  const std::vector<double> got = run(**m, c, storage);
  ASSERT_EQ(got.size(), want.size());
  // Two roundings to the result's type, where three small products or a sum in f32 stand for one exact sum.
  const double ulp = c.acc == DType::kF16   ? 0x1p-10
                     : c.acc == DType::kF32 ? 0x1p-21
                     : c.acc == DType::kF64 ? 0x1p-51
                                            : 0;
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 4 * ulp * (std::abs(want[i]) + std::sqrt(c.k))) << "element " << i << ir::print(**m);
}

struct Types {
  DType a, b, acc;
  const char* precision;
};
constexpr Types kDotTypes[] = {
    {DType::kF16, DType::kF16, DType::kF32, ""},       {DType::kF16, DType::kF16, DType::kF16, ""},
    {DType::kBF16, DType::kBF16, DType::kF32, ""},     {DType::kF32, DType::kF32, DType::kF32, "tf32"},
    {DType::kF32, DType::kF32, DType::kF32, "tf32x3"}, {DType::kF32, DType::kF32, DType::kF32, "ieee"},
    {DType::kF64, DType::kF64, DType::kF64, ""},       {DType::kI8, DType::kI8, DType::kI32, ""},
    {DType::kU8, DType::kU8, DType::kI32, ""},         {DType::kF8E4M3, DType::kF8E4M3, DType::kF32, ""},
    {DType::kF8E4M3, DType::kF8E5M2, DType::kF32, ""}, {DType::kF8E5M2, DType::kF8E4M3, DType::kF16, ""},
    {DType::kF8E5M2, DType::kF8E5M2, DType::kF32, ""},
};

TEST(Dot, DistributedAgreesWithTiles) {
  const uint32_t first = std::random_device{}();
  for (uint32_t i = 0; i < 40; ++i) {
    std::mt19937 rng(first + i);
    SCOPED_TRACE(fmt::format("seed {}", first + i));
    auto pick = [&](uint32_t n) { return static_cast<int>(rng() % n); };
    const Types& t = kDotTypes[i % std::size(kDotTypes)];
    DotCase c{t.a, t.b, t.acc, t.precision};
    c.batch = pick(3) ? 1 : 1 << pick(3);
    c.m = 1 << pick(7), c.n = 1 << pick(7), c.k = 8 << pick(4);
    c.warps = 1 << pick(4);
    c.trans_a = pick(2), c.trans_b = pick(2);
    c.zero = pick(2), c.added = !c.zero && pick(2);
    c.target = pick(2) ? "sm_80" : "sm_90a";
    check(c, rng);
    if (::testing::Test::HasFailure()) return;
  }
}

/// Operands of narrower elements, of another product, and both: a thread holds them in runs along k, however wide.
TEST(Dot, OfWidenedOperands) {
  struct Widened {
    DType from_a, from_b;
    Types to;
  };
  constexpr Types kTf32{DType::kF32, DType::kF32, DType::kF32, "tf32"},
      kThrice{DType::kF32, DType::kF32, DType::kF32, "tf32x3"}, kF16{DType::kF16, DType::kF16, DType::kF32, ""},
      kBF16{DType::kBF16, DType::kBF16, DType::kF32, ""}, kF16Sums{DType::kF16, DType::kF16, DType::kF16, ""};
  constexpr Widened kWidened[] = {
      {DType::kF16, DType::kF16, kTf32},   {DType::kBF16, DType::kF32, kTf32},
      {DType::kF32, DType::kF16, kTf32},   {DType::kI8, DType::kF16, kTf32},
      {DType::kF8E5M2, DType::kI8, kTf32}, {DType::kF16, DType::kBF16, kThrice},
      {DType::kI8, DType::kI8, kF16},      {DType::kF8E4M3, DType::kF16, kF16},
      {DType::kF32, DType::kI8, kBF16},    {DType::kF8E5M2, DType::kF32, kF16},
      {DType::kI8, DType::kF8E4M3, kBF16}, {DType::kF8E5M2, DType::kF8E4M3, kF16Sums},
  };
  const uint32_t first = std::random_device{}();
  int wide = 0;
  for (uint32_t i = 0; i < 48; ++i) {
    std::mt19937 rng(first + i);
    SCOPED_TRACE(fmt::format("seed {}", first + i));
    auto pick = [&](uint32_t n) { return static_cast<int>(rng() % n); };
    const Widened& t = kWidened[i % std::size(kWidened)];
    DotCase c{t.to.a, t.to.b, t.to.acc, t.to.precision};
    c.from_a = t.from_a, c.from_b = t.from_b;
    c.batch = pick(3) ? 1 : 1 << pick(2);
    c.m = 1 << pick(7), c.n = 1 << pick(7), c.k = 4 << pick(5);
    c.warps = 1 << pick(4);
    c.trans_a = pick(2), c.trans_b = pick(2), c.chained = pick(2);
    c.zero = pick(2), c.added = !c.zero && pick(2);
    c.target = pick(2) ? "sm_80" : "sm_90a";
    check(c, rng,
          [&](ir::Module& m) { ir::walk(m.body(), [&](ir::Op* op) { wide += op->has(ir::AttrName::kKWidth); }); });
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(wide, 0);
}

/// Less along k than any instruction takes.
TEST(Dot, OfOneOrTwoAlongK) {
  std::mt19937 rng(1);
  for (const int k : {1, 2}) {
    DotCase c{DType::kF32, DType::kF32, DType::kF32, "tf32"};
    c.k = k;
    check(c, rng);
  }
}

/// Two warps over the rows, but eight of a's rows are given to the other warp: each lacks what its half needs.
TEST(Dot, WrongOperandIsFound) {
  const auto text = [](int register_of_a, int warp_of_a) {
    return fmt::format(
        "layout L0 = [32, 8] {{register = [(0, 1), (8, 0)], lane = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], warp = "
        "[(16, 0)]}}\n"
        "layout L1 = [32, 16] {{register = [(0, 1), ({}, 0), (0, 8)], lane = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], "
        "warp = [({}, 0)]}}\n"
        "layout L2 = [16, 8] {{register = [(1, 0), (8, 0)], lane = [(2, 0), (4, 0), (0, 1), (0, 2), (0, 4)], warp = "
        "[(0, 0)]}}\n"
        "kernel @k(%x: *f16) attributes {{num_warps = 2, num_stages = 3, num_ctas = 1, stage = \"distributed\"}} {{\n"
        "  %a = constant 1.0 : f16[32, 16]{{L1}}\n  %b = constant 2.0 : f16[16, 8]{{L2}}\n"
        "  %c = constant 3.0 : f32[32, 8]{{L0}}\n"
        "  %d = dot %a, %b, %c {{mma = \"m16n8k16.f32.f16.f16.f32\"}} : f32[32, 8]{{L0}}\n"
        "  print %d {{text = \"\"}}\n  return\n}}\n",
        register_of_a, warp_of_a);
  };
  auto good = ir::parse_module(SourceText::make("good.kir", text(8, 16)));
  ASSERT_TRUE(good.ok()) << render(good.error());
  EXPECT_TRUE(analysis::verify_layouts(**good).ok());
  int prints = 0;
  interp::DistributedOptions options;
  options.on_print = [&](const std::string& line) { prints += line.find(" 35") != std::string::npos; };
  EXPECT_TRUE(interp::run_distributed(**good, {1, 1, 1}, std::vector<uint64_t>{0}, {}, options).ok());
  EXPECT_EQ(prints, 32 * 8);
  auto bad = ir::parse_module(SourceText::make("bad.kir", text(16, 8)));
  ASSERT_TRUE(bad.ok()) << render(bad.error());
  const Status verified = analysis::verify_layouts(**bad);
  ASSERT_FALSE(verified.ok());
  EXPECT_NE(render(verified.error()).find("rule 5"), std::string::npos) << render(verified.error());
  const Status ran = interp::run_distributed(**bad, {1, 1, 1}, std::vector<uint64_t>{0}, {}, options);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(render(ran.error()).find("which it does not hold"), std::string::npos) << render(ran.error());
}

}  // namespace
}  // namespace kiln::passes
