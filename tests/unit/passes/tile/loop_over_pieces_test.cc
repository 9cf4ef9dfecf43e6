// Reductions and stores that became loops over pieces give what they gave, where none but they need the values whole.
#include "compiler/passes/tile/loop_over_pieces.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "compiler/passes/tile/fuse_fma.h"
#include "support/diag.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

constexpr std::string_view kHead = R"(
import triton
import triton.language as tl

@triton.jit
def reduce(x, y, out, n, scale, B: tl.constexpr):
)";
constexpr int kBlock = 1 << 15;  // of one warp: 1024 elements for each thread

std::unique_ptr<ir::Module> kernel(std::string_view body) {
  auto made = [&]() -> Result<std::unique_ptr<ir::Module>> {
    KILN_TRY(auto module, parse::parse_module(SourceText::make("r.py", std::string(kHead) + std::string(body))));
    KILN_TRY(auto functions, frontend::jit_functions(module));
    const std::vector<std::pair<std::string, frontend::Global>> constants = {{"B", ast::Constant(ast::Int{kBlock})}};
    KILN_TRY(auto args, frontend::parse_signature(*functions.back(), "*i32, *fp32, *i32, i32, fp32", constants));
    return frontend::lower_kernel(*functions.back(), args, {});
  }();
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : render(made.error()));
  if (!made.ok()) return nullptr;
  (*made)->num_warps = 1;
  return std::move(*made);
}

class LoopOverPieces : public ::testing::Test {
 protected:
  void SetUp() override {
    const unsigned seed = std::random_device{}();
    std::mt19937 rng(seed);
    printf("seed %u\n", seed);
    for (int32_t& v : x) v = static_cast<int32_t>(rng() % 1000) - 500;
    for (float& v : y) v = static_cast<float>(rng() % 50);  // equal ones among them
    n = static_cast<int32_t>(rng() % kBlock) + 1;
  }

  std::vector<int32_t> run(const ir::Module& m) {
    std::vector<int32_t> out(64, -7);
    interp::Memory memory;
    memory.allow(x.data(), static_cast<size_t>(n) * sizeof(int32_t));
    memory.allow(y.data(), static_cast<size_t>(n) * sizeof(float));
    memory.allow(out.data(), out.size() * sizeof(int32_t));
    const std::vector<uint64_t> slots = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(y.data()),
                                         reinterpret_cast<uint64_t>(out.data()), static_cast<uint32_t>(n),
                                         std::bit_cast<uint32_t>(0.25F)};
    const Status done = interp::run(m, {1, 1, 1}, slots, memory);
    EXPECT_TRUE(done.ok()) << render(done.error());
    return out;
  }

  /// Takes `loops` reductions and stores apart, and gives the same.
  void check(std::string_view body, int loops) {
    SCOPED_TRACE(body);
    auto made = kernel(body);
    ASSERT_TRUE(made);
    const auto before = ir::clone(*made);
    ASSERT_TRUE(loop_over_pieces(*made, *target::find("sm_90a")).ok());
    const Status valid = ir::verify(*made);
    ASSERT_TRUE(valid.ok()) << render(valid.error());
    EXPECT_EQ(count(*made, ir::OpKind::kFor), loops) << ir::print(*made);
    EXPECT_EQ(run(*made), run(*before));
  }

  std::vector<int32_t> x = std::vector<int32_t>(kBlock);
  std::vector<float> y = std::vector<float>(kBlock);
  int32_t n = 0;
};

TEST_F(LoopOverPieces, GivesTheSame) {
  check(R"(
    i = tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n, other=0), tl.load(y + i, mask=i < n, other=-1.0)
    greatest, total, least = tl.argmax(a * scale + b, axis=0), tl.sum(a * i), tl.argmin(b, axis=0)
    tl.store(out, greatest)
    tl.store(out + 1, total)
    tl.store(out + 2, least)
)",
        3);
}

TEST_F(LoopOverPieces, AddsProductsOfPiecesByFma) {
  auto made = kernel(R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0).to(tl.float32)
    tl.store(out, tl.sum(a * a).to(tl.int32))
)");
  ASSERT_TRUE(made);
  ASSERT_TRUE(fuse_fma(*made).ok());
  const auto before = ir::clone(*made);
  ASSERT_TRUE(loop_over_pieces(*made, *target::find("sm_90a")).ok());
  EXPECT_TRUE(ir::verify(*made).ok());
  EXPECT_EQ(count(*made, ir::OpKind::kFor), 1) << ir::print(*made);
  EXPECT_EQ(count(*made, ir::OpKind::kFma), 1) << ir::print(*made);
  // Sums of squares below 2^18 are close to each other in any order.
  EXPECT_NEAR(run(*made)[0] / 1e9, run(*before)[0] / 1e9, 1e-3);
}

TEST_F(LoopOverPieces, TakesAnyDimension) {
  check(R"(
    i, j = tl.arange(0, B // 8), tl.arange(0, 8)
    at = i[:, None] * 8 + j[None, :]
    a = tl.load(x + at, mask=at < n, other=0)
    sums = tl.sum(a + j[None, :], axis=0)
    row = tl.arange(0, 4)
    k = tl.arange(0, B // 4)
    of = row[:, None] * (B // 4) + k[None, :]
    b = tl.load(x + of, mask=of < n, other=-1000)
    most = tl.max(b + row[:, None], axis=1)
    tl.store(out + j, sums)
    tl.store(out + 8 + row, most)
)",
        2);
}

TEST_F(LoopOverPieces, TakesThoseThatShareValuesTogether) {
  check(R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    most = tl.max(a, axis=0)
    tl.store(out, tl.sum(most - a))
)",
        2);
}

TEST_F(LoopOverPieces, StoresInPiecesWhatElseWouldBeHeld) {
  check(R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    most = tl.max(a, axis=0)
    total = tl.sum(most - a)
    tl.store(out + i, a - total - most, mask=i < 64)
)",
        3);
}

TEST_F(LoopOverPieces, LeavesWhatIsNeededWhole) {
  const auto* in_place = R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    most = tl.max(a, axis=0)
    tl.store(x + (i & 31), a - most, mask=i < 32)
    tl.store(out, most)
)";
  check(in_place, 0);
  const auto* written = R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(x, 1)
    tl.store(out + 1, tl.max(a, axis=0))
)";
  check(written, 0);
  // The launch may give x as `out`, too, and the first pieces would then be stored over the last.
  const auto* turned = R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + 63 - i, a - tl.max(a, axis=0), mask=i < 64)
)";
  check(turned, 0);
  // Both stores would load x, and the launch may give it as `out`, too.
  const auto* twice = R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    most = tl.max(a, axis=0)
    tl.store(out + (i & 31), a - a + most, mask=i < 32)
    tl.store(out + 32 + (i >> 11), a - a - most, mask=(i & 2047) == 0)
)";
  check(twice, 0);
  const auto* scanned = R"(
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out, tl.max(tl.cumsum(a, axis=0), axis=0))
)";
  check(scanned, 0);
  const auto* few = R"(
    i = tl.arange(0, B // 128)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out, tl.max(a, axis=0))
)";
  check(few, 0);
}

}  // namespace
}  // namespace kiln::passes
