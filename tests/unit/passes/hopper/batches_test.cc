// Attention through pointers, whose batches and heads have strides of their own: blocks of tensors of four dimensions
// for TMA, on the machine that the distributed interpreter plays, against the tile interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "support/float_bits.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

constexpr char kBatchedAttention[] = R"(
import triton
import triton.language as tl


@triton.jit
def attention(Q, K, V, Out, stride_qz, stride_qh, stride_qn, stride_kz, stride_kh, stride_kn, n, keys,
              BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    z = tl.program_id(2).to(tl.int64)
    h = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.arange(0, BN)
    d = tl.arange(0, D)
    q = tl.load(Q + (z * stride_qz + h * stride_qh) + m[:, None] * stride_qn + d[None, :], mask=m[:, None] < n)
    k_ptrs = K + (z * stride_kz + (h // 2) * stride_kh) + j[None, :] * stride_kn + d[:, None]
    v_ptrs = V + (z * stride_kz + (h // 2) * stride_kh) + j[:, None] * stride_kn + d[None, :]
    peak = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, keys, BN):
        seen = j[None, :] < keys - start
        scores = tl.where(seen, tl.dot(q, tl.load(k_ptrs, mask=seen)) * 0.25, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(peak - higher)
        v = tl.load(v_ptrs, mask=j[:, None] < keys - start)
        acc = tl.dot(weights.to(tl.float16), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        peak = higher
        k_ptrs += BN * stride_kn
        v_ptrs += BN * stride_kn
    o_ptrs = Out + (z * stride_qz + h * stride_qh) + m[:, None] * stride_qn + d[None, :]
    tl.store(o_ptrs, (acc / total[:, None]).to(tl.float16), mask=m[:, None] < n)
)";

constexpr int kOfBatches = 2, kOfHeads = 4, kOfRows = 100, kOfKeys = 75, kOfColumns = 32;

Result<std::unique_ptr<ir::Module>> lower_batched(std::string_view hint) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("attention.py", kBatchedAttention)));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  const std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"BM", one(64)}, {"BN", one(32)}, {"D", one(32)}};
  KILN_TRY(auto args, frontend::parse_signature(
                          *functions.back(),
                          fmt::format("*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32{0}, i32{0}, i32:16, i32{0}, i32{0}, "
                                      "i32:16, i32, i32",
                                      hint),
                          constants));
  frontend::Options options;
  options.num_stages = 3;
  return frontend::lower_kernel(*functions.back(), args, options);
}

struct alignas(16) TwoWords {
  uint64_t words[2];
};

/// Halves of four tensors; rows of heads side by side in q, heads one behind the other in k.
class BatchedProblem {
 public:
  explicit BatchedProblem(std::mt19937& rng) {
    std::normal_distribution<double> normal;
    for (size_t numel : {kOfQ, kOfK, kOfK, kOfQ}) {
      std::vector<TwoWords>& t = tensors_.emplace_back(numel * 2 / sizeof(TwoWords));
      auto* halves = reinterpret_cast<uint16_t*>(t.data());
      for (size_t i = 0; i < numel; ++i) halves[i] = static_cast<uint16_t>(float_to_bits(DType::kF16, normal(rng)));
    }
  }

  /// `shared`: all batches have the keys of the first.
  Status operator()(const ir::Module& m, bool shared, uint64_t seed) {
    interp::Memory memory;
    std::vector<uint64_t> args;
    for (std::vector<TwoWords>& t : tensors_) {
      memory.allow(t.data(), t.size() * sizeof(TwoWords));
      args.push_back(reinterpret_cast<uint64_t>(t.data()));
    }
    const int batch_of_k = shared ? 0 : kOfHeads / 2 * kOfKeys * kOfColumns;
    for (int v : {kOfRows * kOfHeads * kOfColumns, kOfColumns, kOfHeads * kOfColumns, batch_of_k, kOfKeys * kOfColumns,
                  kOfColumns, kOfRows, kOfKeys})
      args.push_back(static_cast<uint64_t>(v));
    const std::array<int32_t, 3> grid = {(kOfRows + 63) / 64, kOfHeads, kOfBatches};
    interp::DistributedOptions options;
    options.seed = seed;
    return m.stage == ir::Stage::kTile ? interp::run(m, grid, args, memory)
                                       : interp::run_distributed(m, grid, args, memory, options);
  }

  std::vector<double> result() const {
    std::vector<double> out;
    const auto* halves = reinterpret_cast<const uint16_t*>(tensors_[3].data());
    for (size_t i = 0; i < kOfQ; ++i) out.push_back(float_from_bits(DType::kF16, halves[i]));
    return out;
  }

 private:
  static constexpr size_t kOfQ = size_t{kOfBatches} * kOfHeads * kOfRows * kOfColumns,
                          kOfK = size_t{kOfBatches} * kOfHeads / 2 * kOfKeys * kOfColumns;
  std::vector<std::vector<TwoWords>> tensors_;
};

TEST(Batches, AreDimensionsOfTheTensors) {
  for (const bool shared : {false, true}) {
    std::unique_ptr<ir::Module> tile;
    const auto m = through_pipeline(lower_batched(":16"), "sm_90a", &tile);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, ir::OpKind::kDot), 0) << ir::print(*m);
    EXPECT_EQ(count(*m, ir::OpKind::kAsyncCopy), 0) << ir::print(*m);
    EXPECT_GE(count(*m, ir::OpKind::kTmaLoad), 3) << ir::print(*m);
    int batched = 0;
    ir::walk(m->body(), [&](const ir::Op* op) {
      if (op->kind == ir::OpKind::kMakeDescriptor) batched += op->result()->type.shape.rank == 4;
    });
    EXPECT_EQ(batched, 3) << "of q, k and v\n" << ir::print(*m);
    const uint32_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    BatchedProblem problem(rng);
    Status ran = problem(*tile, shared, seed);
    ASSERT_TRUE(ran.ok()) << render(ran.error());
    const std::vector<double> want = problem.result();
    ran = problem(*m, shared, seed);
    ASSERT_TRUE(ran.ok()) << render(ran.error()) << ir::print(*m);
    const std::vector<double> got = problem.result();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 4 * 0x1p-10) << i;
  }
}

/// Strides that may be odd are no dimensions for TMA: the kernel keeps its pointers.
TEST(Batches, OfOddStridesKeepTheirPointers) {
  const auto m = through_pipeline(lower_batched(""), "sm_90a");
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, ir::OpKind::kTmaLoad), 0) << ir::print(*m);
  EXPECT_GT(count(*m, ir::OpKind::kAsyncCopy) + count(*m, ir::OpKind::kLoad), 0) << ir::print(*m);
}

}  // namespace
}  // namespace kiln::passes
