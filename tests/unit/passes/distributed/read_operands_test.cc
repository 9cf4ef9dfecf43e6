// Attention of float32 through the pipeline: operands that would fill the registers are in shared memory until they are
// multiplied. On the machine that the distributed interpreter plays, against the tile interpreter; and planted faults.
#include "compiler/passes/distributed/read_operands.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::OpKind;

constexpr char kAttend[] = R"(
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    col = tl.arange(0, D)
    q = tl.load(q_ptr + row[:, None] * D + col[None, :])
    acc = tl.zeros([M, D], tl.float32)
    for part in tl.static_range(PARTS):  # as kernels do that mask only their last blocks
        for start in range(part * (n - 48), n if part == PARTS - 1 else n - 48, N):
            key = start + tl.arange(0, N)
            k = tl.load(k_ptr + key[:, None] * D + col[None, :], mask=key[:, None] < n, other=0.0)
            scores = tl.dot(q, k.T, input_precision="ieee")
            v = tl.load(v_ptr + key[:, None] * D + col[None, :], mask=key[:, None] < n, other=0.0)
            acc = tl.dot(tl.exp2(scores), v, acc, input_precision="ieee")
    tl.store(out_ptr + row[:, None] * D + col[None, :], acc)
)";
constexpr size_t kQueryRows = 64, kKeys = 80, kHeadColumns = 64;

struct Blocks {
  int rows = 32, keys = 32, warps = 4;
};

Result<std::unique_ptr<ir::Module>> attention(int parts, const Blocks& blocks = {}) {
  std::string text = kAttend;
  for (int i = 0; i < 2; ++i) text.replace(text.find("PARTS"), 5, std::to_string(parts));
  KILN_TRY(auto module, parse::parse_module(SourceText::make("attend.py", std::move(text))));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  const std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"D", one(kHeadColumns)}, {"M", one(blocks.rows)}, {"N", one(blocks.keys)}};
  KILN_TRY(auto args,
           frontend::parse_signature(*functions.back(), "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16", constants));
  frontend::Options options;
  options.num_stages = 2;
  options.num_warps = blocks.warps;
  return frontend::lower_kernel(*functions.back(), args, options);
}

struct Attention {
  struct alignas(16) Matrix {
    float at[kKeys * kHeadColumns];
  };

  explicit Attention(std::mt19937& random) {
    std::normal_distribution<float> normal(0, 0.1F);
    for (Matrix* m : {q.get(), k.get(), v.get()})
      for (float& x : m->at) x = normal(random);
  }

  Status operator()(const ir::Module& m, int rows, const interp::DistributedOptions& options = {}) {
    interp::Memory memory;
    std::vector<uint64_t> args;
    for (Matrix* t : {q.get(), k.get(), v.get(), out.get()}) {
      memory.allow(t->at, sizeof t->at);
      args.push_back(reinterpret_cast<uint64_t>(t->at));
    }
    args.push_back(kKeys);
    const std::array<int32_t, 3> grid = {static_cast<int32_t>(kQueryRows) / rows, 1, 1};
    return m.stage == ir::Stage::kTile ? interp::run(m, grid, args, memory)
                                       : interp::run_distributed(m, grid, args, memory, options);
  }

  std::unique_ptr<Matrix> q = std::make_unique<Matrix>(), k = std::make_unique<Matrix>(),
                          v = std::make_unique<Matrix>(), out = std::make_unique<Matrix>();
};

/// Plays both forms of a kernel on the same random tensors.
void expect_same(const ir::Module& tile, const ir::Module& m, int rows) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  Attention want(random), got(random);
  *got.q = *want.q, *got.k = *want.k, *got.v = *want.v;
  interp::DistributedOptions machine;
  machine.seed = seed;
  Status s = want(tile, rows);
  ASSERT_TRUE(s.ok()) << render(s.error());
  s = got(m, rows, machine);
  ASSERT_TRUE(s.ok()) << render(s.error()) << ir::print(m);
  for (size_t i = 0; i < kQueryRows * kHeadColumns; ++i)
    ASSERT_NEAR(got.out->at[i], want.out->at[i], 1e-4) << "element " << i;
}

TEST(ReadOperands, AttentionMatchesTheTileInterpreter) {
  for (int parts : {1, 2}) {
    std::unique_ptr<ir::Module> tile;
    const auto m = through_pipeline(attention(parts), "sm_90a", &tile);
    ASSERT_TRUE(m);
    // q once for all parts, and the weights of each; both operands of each dot are read where it is.
    EXPECT_EQ(count(*m, OpKind::kSharedStore), 1 + parts) << ir::print(*m);
    ir::walk(m->body(), [](const ir::Op* op) {
      for (int i = 0; op->kind == OpKind::kDot && i < 2; ++i)
        EXPECT_EQ(op->operand(i)->op->kind, OpKind::kSharedLoad) << i;
    });
    expect_same(*tile, *m, Blocks().rows);
  }
}

TEST(ReadOperands, BlocksOfAllSizesDo) {
  for (int rows : {16, 32, 64})
    for (int keys : {16, 32})
      for (int warps : {1, 2, 8}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(keys) + " keys, " + std::to_string(warps) +
                     " warps");
        std::unique_ptr<ir::Module> tile;
        const auto m = through_pipeline(attention(2, {rows, keys, warps}), "sm_90a", &tile);
        ASSERT_TRUE(m);
        EXPECT_GT(count(*m, OpKind::kSharedLoad), 0);
        expect_same(*tile, *m, rows);
      }
}

TEST(ReadOperands, PlantedFaultsAreFound) {
  const auto m = through_pipeline(attention(1), "sm_90a");
  ASSERT_TRUE(m);
  std::mt19937 random(std::random_device{}());
  Attention problem(random);
  const int barriers = count(*m, OpKind::kBarrier);
  int found = 0;
  for (int i = 0; i < barriers; ++i) {
    interp::DistributedOptions dropped;
    dropped.drop_barrier = i;
    found += !problem(*m, Blocks().rows, dropped).ok();
  }
  // The ring's, and the one behind the weights. The ring's comes behind q's store too, and between two rounds' weights,
  // for which there is no other; behind the last round nothing is written.
  EXPECT_EQ(barriers, 4) << ir::print(*m);
  EXPECT_EQ(found, 2) << ir::print(*m);
}

}  // namespace
}  // namespace kiln::passes
