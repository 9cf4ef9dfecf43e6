// Products over selected blocks of rows: loads in a branch, which no loop runs ahead. On the machine that the
// distributed interpreter plays, against the tile interpreter; and planted faults.
#include "compiler/passes/distributed/copy_operands.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::OpKind;

constexpr char kSelect[] = R"(
import triton
import triton.language as tl


@triton.jit
def select(q_ptr, k_ptr, v_ptr, out_ptr, chosen_ptr, n, COUNT: tl.constexpr, D: tl.constexpr, N: tl.constexpr):
    row = tl.arange(0, 16)
    col = tl.arange(0, D)
    q = tl.load(q_ptr + row[:, None] * D + col[None, :])
    acc = tl.zeros([16, D], tl.float32)
    for i in range(COUNT):
        start = tl.load(chosen_ptr + i) * N
        if start < n:
            at = start + tl.arange(0, N)
            k = tl.load(k_ptr + at[None, :] * D + col[:, None], mask=at[None, :] < n, other=0.0)
            v = tl.load(v_ptr + at[:, None] * D + col[None, :], mask=at[:, None] < n, other=0.0)
            acc += tl.dot(tl.dot(q, k).to(tl.float16), v)
    tl.store(out_ptr + row[:, None] * D + col[None, :], acc)
)";
constexpr int kSelectRows = 16, kSelectKeys = 80, kSelectColumns = 64, kSelectBlock = 32, kSelectCount = 4;

Result<std::unique_ptr<ir::Module>> selection(int warps, bool stores_keys = false) {
  std::string text = kSelect;
  if (stores_keys) text += "    tl.store(k_ptr + row, acc.to(tl.float16).sum(1))\n";
  KILN_TRY(auto module, parse::parse_module(SourceText::make("select.py", std::move(text))));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  const std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"COUNT", one(kSelectCount)}, {"D", one(kSelectColumns)}, {"N", one(kSelectBlock)}};
  KILN_TRY(auto args, frontend::parse_signature(*functions.back(), "*fp16:16, *fp16:16, *fp16:16, *fp32:16, *i32, i32",
                                                constants));
  frontend::Options options;
  options.num_warps = warps;
  return frontend::lower_kernel(*functions.back(), args, options);
}

/// Whole numbers, of which no sum is rounded.
struct Selection {
  struct alignas(16) Tensor {
    uint16_t at[kSelectKeys * kSelectColumns];
  };
  struct alignas(16) Sums {
    float at[kSelectRows * kSelectColumns];
  };

  explicit Selection(std::mt19937& random) {
    for (Tensor* t : {q.get(), k.get(), v.get()})
      for (uint16_t& x : t->at) x = std::array<uint16_t, 3>{0, 0x3c00, 0xbc00}[random() % 3];
  }

  Status operator()(const ir::Module& m, const interp::DistributedOptions& options = {}) {
    interp::Memory memory;
    std::vector<uint64_t> args;
    auto give = [&](void* at, size_t bytes) {
      memory.allow(at, bytes);
      args.push_back(reinterpret_cast<uint64_t>(at));
    };
    for (Tensor* t : {q.get(), k.get(), v.get()}) give(t->at, sizeof t->at);
    give(out->at, sizeof out->at);
    give(chosen, sizeof chosen);
    args.push_back(kSelectKeys);
    return m.stage == ir::Stage::kTile ? interp::run(m, {1, 1, 1}, args, memory)
                                       : interp::run_distributed(m, {1, 1, 1}, args, memory, options);
  }

  std::unique_ptr<Tensor> q = std::make_unique<Tensor>(), k = std::make_unique<Tensor>(),
                          v = std::make_unique<Tensor>();
  std::unique_ptr<Sums> out = std::make_unique<Sums>();
  int32_t chosen[kSelectCount] = {2, 0, 3, 1};  // the first ends behind the keys, the third begins there
};

TEST(CopyOperands, SelectedBlocksMatchTheTileInterpreter) {
  for (int warps : {1, 2, 4, 8}) {
    std::unique_ptr<ir::Module> tile;
    const auto m = through_pipeline(selection(warps), "sm_90a", &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 2) << ir::print(*m);
    const uint32_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Selection want(random), got(random);
    *got.q = *want.q, *got.k = *want.k, *got.v = *want.v;
    interp::DistributedOptions machine;
    machine.seed = seed;
    Status s = want(*tile);
    ASSERT_TRUE(s.ok()) << render(s.error());
    s = got(*m, machine);
    ASSERT_TRUE(s.ok()) << render(s.error()) << ir::print(*m);
    for (size_t i = 0; i < std::size(want.out->at); ++i) ASSERT_EQ(got.out->at[i], want.out->at[i]) << i;
  }
}

TEST(CopyOperands, NotWhatTheKernelWrites) {
  const auto m = through_pipeline(selection(4, true), "sm_90a");
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 1) << ir::print(*m);
}

TEST(CopyOperands, PlantedFaultsAreFound) {
  const auto m = through_pipeline(selection(4), "sm_90a");
  ASSERT_TRUE(m);
  std::mt19937 random(std::random_device{}());
  Selection problem(random);
  const int barriers = count(*m, OpKind::kBarrier);
  int found = 0;
  for (int i = 0; i < barriers; ++i) {
    interp::DistributedOptions dropped;
    dropped.drop_barrier = i;
    found += !problem(*m, dropped).ok();
  }
  // In front of the copies, and behind the waits for each of them.
  EXPECT_EQ(barriers, 3) << ir::print(*m);
  EXPECT_EQ(found, barriers) << ir::print(*m);
}

}  // namespace
}  // namespace kiln::passes
