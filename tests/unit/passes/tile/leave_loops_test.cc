// Loops that end when they are done give what they gave when they went on, at any count and start.
#include "compiler/passes/tile/leave_loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <limits>
#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "support/diag.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

constexpr std::string_view kSearch = R"(
import triton
import triton.language as tl

@triton.jit
def search(x, out, places, first, last, step, limit, B: tl.constexpr):
    found = False
    total = 0.0
    place = -1
    p = x + tl.arange(0, B)
    for i in range(first, last, step):
        if not found:
            total += tl.sum(tl.load(p))
            found = total > limit
            place = i
        p += B
    tl.store(out, total)
    tl.store(places, place)
    tl.store(places + 1, found.to(tl.int32))
)";

Result<std::unique_ptr<ir::Module>> search(int64_t block) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("search.py", std::string(kSearch))));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  const std::vector<std::pair<std::string, frontend::Global>> constants = {{"B", ast::Constant(ast::Int{block})}};
  KILN_TRY(auto args,
           frontend::parse_signature(*functions.back(), "*fp32, *fp32, *i32, i32, i32, i32, fp32", constants));
  return frontend::lower_kernel(*functions.back(), args, {});
}

struct Found {
  float total = -1;
  std::array<int32_t, 2> places{-7, -7};
  bool operator==(const Found&) const = default;
};

TEST(LeaveLoops, GivesTheSame) {
  constexpr int kBlock = 4, kMost = 40;
  auto made = search(kBlock);
  ASSERT_TRUE(made.ok()) << render(made.error());
  const auto before = ir::clone(**made);
  ASSERT_TRUE(leave_loops(**made).ok());
  ASSERT_EQ(count(**made, ir::OpKind::kWhile), 1) << ir::print(**made);
  ASSERT_EQ(count(**made, ir::OpKind::kFor), 0) << ir::print(**made);
  std::mt19937 rng(std::random_device{}());
  std::vector<float> x(kBlock * kMost);
  for (float& v : x) v = std::uniform_real_distribution<float>(0, 1)(rng);
  const int32_t top = std::numeric_limits<int32_t>::max();
  for (const auto& [first, last, step] : {std::array{0, 0, 1},
                                          {5, 3, 1},
                                          {0, 1, 1},
                                          {0, kMost, 1},
                                          {-7, 60, 2},
                                          {top - 100, top, 3},
                                          {top - 1, top, top},
                                          {-top, top, top / 4}})
    for (const float limit : {-1.0F, 10.0F, 1e9F}) {
      SCOPED_TRACE(fmt::format("from {} to {} by {}, limit {}", first, last, step, limit));
      auto run = [&](const ir::Module& m) {
        Found r;
        interp::Memory memory;
        memory.allow(x.data(), x.size() * sizeof(float));
        memory.allow(&r.total, sizeof(r.total));
        memory.allow(r.places.data(), sizeof(r.places));
        const std::vector<uint64_t> slots = {reinterpret_cast<uint64_t>(x.data()),
                                             reinterpret_cast<uint64_t>(&r.total),
                                             reinterpret_cast<uint64_t>(r.places.data()),
                                             static_cast<uint32_t>(first),
                                             static_cast<uint32_t>(last),
                                             static_cast<uint32_t>(step),
                                             std::bit_cast<uint32_t>(limit)};
        const Status done = interp::run(m, {1, 1, 1}, slots, memory);
        EXPECT_TRUE(done.ok()) << render(done.error());
        return r;
      };
      EXPECT_EQ(run(**made), run(*before));
    }
}

/// A condition with 2^60 ways from what the loop carries is followed along each op once.
TEST(LeaveLoops, FollowsSharedUsesOnce) {
  std::string text = R"(kernel @k(%x: *f32, %n: i32) {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %yes = constant 1 : i1
  %found = for %i = %zero to %n step %one iter (%c0 = %yes) : i32 -> (i1) {
)";
  for (int i = 0; i < 60; ++i) text += fmt::format("    %c{} = or %c{}, %c{} : i1\n", i + 1, i, i);
  text += R"(    %next = if %c60 : i1 {
      %v = load %x : f32
      %nan = cmp %v, %v {predicate = "ne"} : i1
      yield %nan
    } else {
      yield %c0
    }
    yield %next
  }
  return
}
)";
  auto module = ir::parse_module(SourceText::make("ways.kir", text));
  ASSERT_TRUE(module.ok()) << render(module.error());
  ASSERT_TRUE(leave_loops(**module).ok());
  EXPECT_EQ(count(**module, ir::OpKind::kWhile), 1) << ir::print(**module);
  EXPECT_EQ(count(**module, ir::OpKind::kOr), 120);
  const Status valid = ir::verify(**module);
  EXPECT_TRUE(valid.ok()) << render(valid.error());
}

}  // namespace
}  // namespace kiln::passes
