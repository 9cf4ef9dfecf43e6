#include "compiler/lower/nvptx/ranges.h"

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/NoFolder.h>

#include <functional>
#include <random>

#include "tests/unit/lower/nvptx/compiled.h"

namespace kiln::lower {
namespace {

using llvm::APInt;
using nvptx_tests::compile;
using nvptx_tests::count;

/// A warp adds up a row of `n` floats, 256 at a time from 0 to `end`, lane by lane; where the tile lies is `at`, the
/// counter or what is carried beside it.
std::string row_kernel(int n, int end, std::string_view at = "%iv") {
  return fmt::format(
      R"(layout L0 = [256] {{register = [(32), (64), (128)], lane = [(1), (2), (4), (8), (16)], warp = []}}
kernel @row(%x: *f32 {{divisibility = 4}}, %o: *f32 {{divisibility = 16}}) attributes {{num_warps = 1, num_stages = 3, num_ctas = 1, stage = "distributed", shared_bytes = 0}} {{
  %lo = constant 0 : i32
  %hi = constant {1} : i32
  %step = constant 256 : i32
  %zero = constant 0.0 : f32[256]{{L0}}
  %r = arange {{start = 0, end = 256}} : i32[256]{{L0}}
  %n = constant {0} : i32[256]{{L0}}
  %xs = splat %x : *f32[256]{{L0}}
  %os = splat %o : *f32[256]{{L0}}
  %sum, %last = for %iv = %lo to %hi step %step iter (%acc = %zero, %k = %lo) : i32 -> (f32[256]{{L0}}, i32) {{
    %b = splat {2} : i32[256]{{L0}}
    %at = add %b, %r : i32[256]{{L0}}
    %m = cmp %at, %n {{predicate = "lt"}} : i1[256]{{L0}}
    %p = addptr %xs, %at : *f32[256]{{L0}}
    %v = load %p, %m, %zero : f32[256]{{L0}}
    %s = add %acc, %v : f32[256]{{L0}}
    %next = add %k, %step : i32
    yield %s, %next
  }}
  %op = addptr %os, %r : *f32[256]{{L0}}
  store %op, %sum
  return
}}
)",
      n, end, at);
}

// 700 elements are two tiles and 188: in the last one five registers of eight are inside in all lanes, the sixth is in
// some, and nothing is known of the others, which are inside in tiles before.
TEST(NvptxRanges, OnlyTheElementsThatMayEndArePredicated) {
  const std::string ptx = compile(row_kernel(700, 700), "sm_90a").ptx;
  EXPECT_EQ(count(ptx, "ld.global"), 8) << ptx;
  EXPECT_EQ(count(ptx, " ld.global"), 3) << "predicated, by inline assembly\n" << ptx;
  EXPECT_EQ(count(ptx, "setp"), 3 + 1) << "and the loop's\n" << ptx;
}

// One tile: what lies beyond the row in all lanes is not loaded.
TEST(NvptxRanges, WhatIsAlwaysOutsideIsNotLoaded) {
  const std::string ptx = compile(row_kernel(100, 256), "sm_90a").ptx;
  EXPECT_EQ(count(ptx, "ld.global"), 4) << ptx;
}

// While the loop is emitted, the phi of what it carries has but its first value: that must not be taken for all.
TEST(NvptxRanges, NothingIsKnownOfWhatALoopCarries) {
  const std::string ptx = compile(row_kernel(700, 700, "%k"), "sm_90a").ptx;
  EXPECT_EQ(count(ptx, " ld.global"), 8) << ptx;
}

/// A value of 8 bits as LLVM has it, and what it is for a counter and an argument.
struct Term {
  llvm::Value* value;
  std::function<APInt(const APInt&, const APInt&)> of;
};

/// Random sums over the counter, the argument and what is computed from them by bits.
class Terms {
 public:
  Terms(llvm::IRBuilderBase& b, std::mt19937& random, Term counter, Term argument)
      : b_(b), random_(random), counter_(std::move(counter)), argument_(std::move(argument)) {}

  Term draw(int depth) {
    const auto kind = random_() % (depth > 0 ? 6 : 3);
    if (kind == 0) return counter_;
    const APInt constant(8, random_() % 256);
    if (kind == 1) return {b_.getInt(constant), [constant](const APInt&, const APInt&) { return APInt(constant); }};
    if (kind == 2) {
      auto of = [constant, of = argument_.of](const APInt& c, const APInt& x) { return of(c, x) & constant; };
      return {b_.CreateAnd(argument_.value, b_.getInt(constant)), of};
    }
    const Term a = draw(depth - 1), z = draw(depth - 1);
    if (kind == 3)
      return {b_.CreateSub(a.value, z.value),
              [a, z](const APInt& c, const APInt& x) { return a.of(c, x) - z.of(c, x); }};
    if (kind == 4)
      return {b_.CreateOr(a.value, z.value),
              [a, z](const APInt& c, const APInt& x) { return a.of(c, x) | z.of(c, x); }};
    return {b_.CreateAdd(a.value, z.value), [a, z](const APInt& c, const APInt& x) { return a.of(c, x) + z.of(c, x); }};
  }

 private:
  llvm::IRBuilderBase& b_;
  std::mt19937& random_;
  Term counter_, argument_;
};

TEST(NvptxRanges, WhatIsKnownHoldsForEachCounterAndArgument) {
  using P = llvm::CmpInst;
  const P::Predicate predicates[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT,
                                     P::ICMP_SGE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  int known = 0;
  for (int round = 0; round < 400; ++round) {
    // A counter as the lowering notes it: from a constant to one above, so that no step wraps around.
    const bool sign = random() % 2;
    const int low = sign ? -128 : 0, first = low + static_cast<int>(random() % 200);
    const int end = first + 1 + static_cast<int>(random() % static_cast<uint32_t>(low + 255 - first));
    const int step = 1 + static_cast<int>(random() % static_cast<uint32_t>(low + 256 - end));
    auto number = [](int v) { return APInt(8, static_cast<uint64_t>(v) & 255); };
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    llvm::IRBuilder<llvm::NoFolder> b(context);
    llvm::Type* i8 = b.getInt8Ty();
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {i8, i8}, false),
                                     llvm::Function::ExternalLinkage, "f", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "", f));
    Ranges ranges;
    ranges.add_counter(f->getArg(0), number(first), number(end), number(step));
    Terms terms(b, random, {f->getArg(0), [](const APInt& c, const APInt&) { return c; }},
                {f->getArg(1), [](const APInt&, const APInt& x) { return x; }});
    const Term a = terms.draw(3), z = terms.draw(2);
    for (const P::Predicate predicate : predicates) {
      auto* comparison = llvm::cast<llvm::ICmpInst>(b.CreateICmp(predicate, a.value, z.value));
      const std::optional<bool> always = ranges.compare(*comparison);
      if (!always) continue;
      ++known;
      for (int c = first; c < end; c += step)
        for (int x = 0; x < 256; ++x) {
          const APInt left = a.of(number(c), number(x)), right = z.of(number(c), number(x));
          ASSERT_EQ(llvm::ICmpInst::compare(left, right, predicate), *always)
              << "counter " << c << " of " << first << ".." << end << " by " << step << ", argument " << x;
        }
    }
  }
  EXPECT_GT(known, 50);
}

// A counter in 64 bits from a number of a program up to an argument: its remainder by 64 is a mask, without the steps
// that a negative one takes.
TEST(NvptxRanges, WideCountersFromPositiveOnesArePositive) {
  const std::string text = nvptx_tests::kernel("", "%o: *f32, %n: i64", R"(
  %pid = program_id {axis = 0} : i32
  %lo = cast %pid : i64
  %step = constant 1 : i64
  %many = constant 64 : i64
  for %iv = %lo to %n step %step : i64 {
    %place = rem %iv, %many : i64
    %p = addptr %o, %place : *f32
    %v = cast %iv : f32
    store %p, %v
    yield
  }
)",
                                               1);
  const std::string llvm = compile(text, "sm_90a").llvm, ptx = compile(text, "sm_90a").ptx;
  EXPECT_EQ(count(llvm, "add nsw i64"), 1) << llvm;
  EXPECT_EQ(count(ptx, "shr"), 0) << ptx;
}

}  // namespace
}  // namespace kiln::lower
