// The pointer-form matmul of kernels/, through the whole CUDA pipeline, on the machine that the distributed interpreter
// plays: the same bits as the tile interpreter, at ragged sizes; and planted faults must be found.
#include "compiler/passes/distributed/pipeline_loads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/ir/builder.h"
#include "compiler/parse/parser.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/float_bits.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::AttrName;
using ir::Module;
using ir::Op;
using ir::OpKind;

struct Matmul {
  DType dtype = DType::kF16, out = DType::kF32;
  int64_t m = 32, n = 32, k = 32, block_m = 32, block_n = 32, block_k = 32;
  int warps = 4, stages = 3;
  bool a_by_columns = false, b_by_columns = false;
  bool k_is_constant = false;
  std::string target = "sm_80";

  std::string describe() const {
    return fmt::format("{} {}x{}x{} blocks {}x{}x{} warps {} stages {} columns {}{} on {}", name(dtype), m, n, k,
                       block_m, block_n, block_k, warps, stages, a_by_columns, b_by_columns, target);
  }
};

Result<std::unique_ptr<Module>> lower(const Matmul& c) {
  const std::string file = "kernels/matmul/kernel.py";
  KILN_TRY(std::string text, read_file(fmt::format("{}/{}", KILN_SOURCE_DIR, file)));
  KILN_TRY(auto module, parse::parse_module(SourceText::make(file, std::move(text))));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"BLOCK_M", one(c.block_m)}, {"BLOCK_N", one(c.block_n)}, {"BLOCK_K", one(c.block_k)},
      {"GROUP_M", one(2)},         {"stride_cn", one(1)},       {"ACTIVATION", ast::Constant(ast::None{})}};
  constants.emplace_back(c.a_by_columns ? "stride_am" : "stride_ak", one(1));
  constants.emplace_back(c.b_by_columns ? "stride_bk" : "stride_bn", one(1));
  if (c.k_is_constant) constants.emplace_back("K", one(c.k));
  const std::string constant = "constexpr", number = "i32:16";
  auto size = [&](int64_t v) { return v % 16 == 0 ? number : "i32"; };
  KILN_TRY(auto args, frontend::parse_signature(
                          *functions.back(),
                          fmt::format("*{}:16, *{}:16, *{}:16, {}, {}, {}, {}, {}, {}, {}, i32, constexpr",
                                      kiln::info(c.dtype).triton, kiln::info(c.dtype).triton, kiln::info(c.out).triton,
                                      size(c.m), size(c.n), c.k_is_constant ? constant : size(c.k),
                                      c.a_by_columns ? constant : number, c.a_by_columns ? number : constant,
                                      c.b_by_columns ? constant : number, c.b_by_columns ? number : constant),
                          constants));
  frontend::Options options;
  options.num_warps = c.warps;
  options.num_stages = c.stages;
  return frontend::lower_kernel(*functions.back(), args, options);
}

/// Memory and arguments of one run; leading dimensions are multiples of 16.
struct Problem {
  Problem(const Matmul& c, std::mt19937& rng) : matmul(c) {
    auto up = [](int64_t v) { return (v + 15) / 16 * 16; };
    lda = up(c.a_by_columns ? c.m : c.k), ldb = up(c.b_by_columns ? c.k : c.n);
    std::normal_distribution<double> normal;
    auto fill = [&](DType t, int64_t count) {
      auto& buffer = buffers.emplace_back(static_cast<size_t>(count) + 2);
      // Aligned to 16 bytes, as the signature promises.
      const uint64_t begin = (reinterpret_cast<uint64_t>(buffer.data()) + 15) & ~uint64_t{15};
      addresses.push_back(begin);
      for (int64_t i = 0; i < count; ++i)
        interp::Memory::write(begin + static_cast<uint64_t>(i * size_of(t)), t,
                              is_float(t) ? float_to_bits(t, normal(rng)) : rng() & 0xff);
    };
    fill(c.dtype, lda * (c.a_by_columns ? c.k : c.m));
    fill(c.dtype, ldb * (c.b_by_columns ? c.n : c.k));
    fill(c.out, c.m * c.n);
  }

  Status operator()(const Module& m, const interp::DistributedOptions& options = {}) {
    const Matmul& c = matmul;
    interp::Memory memory;
    const int64_t counts[] = {lda * (c.a_by_columns ? c.k : c.m), ldb * (c.b_by_columns ? c.n : c.k), c.m * c.n};
    for (size_t i = 0; i < 3; ++i)
      memory.allow(reinterpret_cast<void*>(addresses[i]),
                   static_cast<size_t>(counts[i] * size_of(i == 2 ? c.out : c.dtype)));
    std::vector<uint64_t> args = addresses;
    for (int64_t v : {c.m, c.n}) args.push_back(static_cast<uint64_t>(v));
    if (!c.k_is_constant) args.push_back(static_cast<uint64_t>(c.k));
    for (int64_t v : {lda, ldb, c.n}) args.push_back(static_cast<uint64_t>(v));
    const int grid = static_cast<int>((c.m + c.block_m - 1) / c.block_m * ((c.n + c.block_n - 1) / c.block_n));
    return m.stage == ir::Stage::kTile ? interp::run(m, {grid, 1, 1}, args, memory)
                                       : interp::run_distributed(m, {grid, 1, 1}, args, memory, options);
  }

  std::vector<uint64_t> result() const {
    std::vector<uint64_t> out;
    for (int64_t i = 0; i < matmul.m * matmul.n; ++i)
      out.push_back(interp::Memory::read(addresses[2] + static_cast<uint64_t>(i * size_of(matmul.out)), matmul.out));
    return out;
  }

  Matmul matmul;
  int64_t lda = 0, ldb = 0;
  std::vector<std::vector<uint64_t>> buffers;
  std::vector<uint64_t> addresses;
};

std::unique_ptr<Module> distributed(const Matmul& c, std::unique_ptr<Module>* tile = nullptr) {
  return through_pipeline(lower(c), c.target, tile);
}

/// Slots of the deepest ring.
int64_t ring_slots(Module& of) {
  int64_t most = 0;
  ir::walk(of.body(), [&](Op* op) {
    if (op->kind == OpKind::kSharedAlloc) most = std::max<int64_t>(most, op->result()->type.copies);
  });
  return most;
}

/// Whether a loop copies ahead of its wait: behind a barrier, into the slot of the iteration before.
bool copies_before_it_waits(Module& of) {
  std::optional<OpKind> first;
  ir::walk(of.body(), [&](Op* op) {
    const bool in_loop = op->parent->parent != nullptr;
    if (in_loop && !first && (op->kind == OpKind::kAsyncCopy || op->kind == OpKind::kAsyncWait)) first = op->kind;
  });
  return first == OpKind::kAsyncCopy;
}

TEST(PipelineLoads, SameBitsAsTheTileInterpreter) {
  static constexpr std::pair<DType, DType> kTypes[] = {{DType::kF16, DType::kF32},
                                                       {DType::kBF16, DType::kBF16},
                                                       {DType::kF32, DType::kF32},
                                                       {DType::kF16, DType::kF16},
                                                       {DType::kF8E4M3, DType::kF32}};
  const uint32_t first = std::random_device{}();
  for (uint32_t i = 0; i < 20; ++i) {
    std::mt19937 rng(first + i);
    auto pick = [&](uint32_t n) { return static_cast<int64_t>(rng() % n); };
    Matmul c;
    std::tie(c.dtype, c.out) = kTypes[i % std::size(kTypes)];
    c.block_m = 16 << pick(3), c.block_n = 16 << pick(3), c.block_k = 32 << pick(2);
    auto size = [&](uint32_t most) { return pick(4) ? 16 + pick(most) / 16 * 16 : 1 + pick(most); };
    c.m = size(70), c.n = size(70), c.k = size(200);
    c.warps = 1 << pick(4), c.stages = 1 + static_cast<int>(pick(4));
    // A thread copies 4 bytes at least.
    while (std::min(c.block_m, c.block_n) * c.block_k * size_of(c.dtype) < 4 * 32 * c.warps) c.warps /= 2;
    c.a_by_columns = pick(2), c.b_by_columns = pick(2);
    c.target = pick(2) ? "sm_80" : "sm_90";
    SCOPED_TRACE(fmt::format("seed {}: {}", first + i, c.describe()));
    std::unique_ptr<Module> tile;
    auto m = distributed(c, &tile);
    ASSERT_TRUE(m);
    // Those of one stage that ldmatrix can read come by copies too, not ahead (copy_operands).
    if (c.stages > 1) {
      // A slot is saved where the next copies follow the reads and as many are on their way, or by a barrier of theirs.
      const int64_t slots = ring_slots(*m);
      const bool by_barrier = copies_before_it_waits(*m);
      EXPECT_TRUE((slots == c.stages && !by_barrier) || (slots == c.stages - 1 && slots > 1)) << ir::print(*m);
      EXPECT_EQ(count(*m, OpKind::kAsyncCopy), (by_barrier ? slots : c.stages) * 2) << ir::print(*m);
    }
    Problem launch(c, rng);
    Status ran = launch(*tile);
    ASSERT_TRUE(ran.ok()) << render(ran.error());
    const std::vector<uint64_t> expected = launch.result();
    for (int64_t e = 0; e < c.m * c.n; ++e)  // poison
      interp::Memory::write(launch.addresses[2] + static_cast<uint64_t>(e * size_of(c.out)), c.out, nan_bits(c.out));
    interp::DistributedOptions options;
    options.seed = first + i;
    ran = launch(*m, options);
    ASSERT_TRUE(ran.ok()) << render(ran.error()) << ir::print(*m);
    ASSERT_EQ(launch.result(), expected);
  }
}

/// A second operand that is computed from what a ring brings is read, and computed, as the product takes it. A vector
/// comes with the tiles where its elements lie apart, and else in registers, without a conversion either.
TEST(PipelineLoads, ShortLoopsCopyAheadOfThemselvesAlone) {
  for (const char* target : {"sm_80", "sm_90"})
    for (const int64_t k : {64, 90, 96, 128}) {
      Matmul c{
          .m = 40, .n = 64, .k = k, .block_m = 32, .block_n = 64, .block_k = 32, .stages = 4, .k_is_constant = true};
      c.target = target;
      SCOPED_TRACE(c.describe());
      std::unique_ptr<Module> tile;
      auto m = distributed(c, &tile);
      ASSERT_TRUE(m);
      // Up to three iterations are there before the loop, which asks for nothing; of four it asks for the last.
      const int trips = static_cast<int>((k + 31) / 32);
      EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 2 * (trips <= 3 ? trips : 4)) << ir::print(*m);
      ir::walk(m->body(), [&](const Op* op) {
        if (op->kind == OpKind::kFor) {
          EXPECT_EQ(ir::any_nested(op, [](const Op* inner) { return inner->kind == OpKind::kAsyncCopy; }), trips > 3);
        }
        if (op->kind == OpKind::kSharedAlloc && trips <= 3) {
          EXPECT_EQ(op->result()->type.copies, trips);
        }
      });
      std::mt19937 rng(5);
      Problem launch(c, rng);
      Status ran = launch(*tile);
      ASSERT_TRUE(ran.ok()) << render(ran.error());
      const std::vector<uint64_t> expected = launch.result();
      for (int64_t e = 0; e < c.m * c.n; ++e)  // poison
        interp::Memory::write(launch.addresses[2] + static_cast<uint64_t>(e * size_of(c.out)), c.out, nan_bits(c.out));
      ran = launch(*m);
      ASSERT_TRUE(ran.ok()) << render(ran.error());
      EXPECT_EQ(launch.result(), expected);
    }
}

TEST(PipelineLoads, OperandsAreComputedAsDotsTakeThem) {
  for (const bool apart : {true, false}) {
    const std::string text = fmt::format(R"(
import triton
import triton.language as tl

@triton.jit
def scaled(a, b, s, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (i + k)[None, :])
        y = tl.load(b + (i + k)[:, None] * BN + n[None, :])
        y = (y * tl.load(s + (i + k) * {})[:, None]).to(tl.bfloat16)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * BN + n[None, :], acc)
)",
                                         apart ? 3 : 1);
    auto module = parse::parse_module(SourceText::make("scaled.py", text));
    ASSERT_TRUE(module.ok());
    auto functions = frontend::jit_functions(*module);
    ASSERT_TRUE(functions.ok());
    auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
    const std::vector<std::pair<std::string, frontend::Global>> constants = {
        {"BM", one(32)}, {"BN", one(32)}, {"BK", one(64)}};
    auto args =
        frontend::parse_signature(*functions->back(), "*bf16:16, *bf16:16, *fp32:16, *fp32:16, i32:16", constants);
    ASSERT_TRUE(args.ok());
    frontend::Options options;
    options.num_warps = 2, options.num_stages = 4;
    auto m = through_pipeline(frontend::lower_kernel(*functions->back(), *args, options), "sm_80");
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kDot), 1);
    ir::walk(m->body(), [&](Op* op) {
      const bool in_loop = op->parent->parent != nullptr;
      EXPECT_FALSE(in_loop && op->kind == OpKind::kConvertLayout) << ir::print(*m);
    });
    // Of each iteration, of which all slots but one are copied ahead of the loop.
    EXPECT_EQ(count(*m, OpKind::kAsyncCopy), (apart ? 3 : 2) * ring_slots(*m)) << ir::print(*m);
  }
}

/// Of 32 halves that all threads could load one each, some threads copy two: cp.async takes no less than four bytes.
TEST(PipelineLoads, FewHalvesBesideWordsAreCopied) {
  auto module = parse::parse_module(SourceText::make("words.py", R"(
import triton
import triton.language as tl

@triton.jit
def scaled_words(a, b, scales, out, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, k, BK):
        depth = first + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + depth[None, :])
        words = tl.load(b + depth[:, None] * n + columns[None, :])
        scale = tl.load(scales + (first // BK + tl.arange(0, 1))[:, None] * n + columns[None, :])
        acc = tl.dot(x, ((words & 15) * tl.broadcast_to(scale, (BK, BN))).to(tl.float16), acc)
    tl.store(out + rows[:, None] * n + columns[None, :], acc.to(tl.float16))
)"));
  ASSERT_TRUE(module.ok());
  auto functions = frontend::jit_functions(*module);
  ASSERT_TRUE(functions.ok());
  const ast::Constant size(ast::Int{32});
  const std::vector<std::pair<std::string, frontend::Global>> sizes = {{"BM", size}, {"BN", size}, {"BK", size}};
  auto args =
      frontend::parse_signature(*functions->back(), "*fp16:16, *i32:16, *fp16:16, *fp16:16, i32:16, i32:16", sizes);
  ASSERT_TRUE(args.ok());
  frontend::Options options;
  options.num_warps = 4, options.num_stages = 3;
  auto m = through_pipeline(frontend::lower_kernel(*functions->back(), *args, options), "sm_90a");
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 3 * 3) << ir::print(*m);
}

/// 0, 1, 2, -1 and -2, of which all sums are exact.
void fill_with_small_halves(std::vector<uint16_t>& v, std::mt19937& rng) {
  for (uint16_t& x : v) x = std::array<uint16_t, 5>{0, 0x3c00, 0x4000, 0xbc00, 0xc000}[rng() % 5];
}

template <class T>
uint64_t aligned(const std::vector<T>& v) {
  return (reinterpret_cast<uint64_t>(v.data()) + 15) & ~uint64_t{15};
}

/// Both stages put the same into `out`; the pipeline with one of these barriers dropped fails. The first arguments
/// point to memory of so many bytes.
void play(const Module& tile, const Module& pipelined, const std::vector<uint64_t>& args,
          const std::vector<int64_t>& bytes, std::vector<float>& out, const std::vector<int>& barriers) {
  auto played = [&](const Module& of, const interp::DistributedOptions& options = {}) {
    interp::Memory memory;
    for (size_t i = 0; i < bytes.size(); ++i) memory.allow(reinterpret_cast<void*>(args[i]), bytes[i]);
    const Status done = of.stage == ir::Stage::kTile ? interp::run(of, {1, 1, 1}, args, memory)
                                                     : interp::run_distributed(of, {1, 1, 1}, args, memory, options);
    return done.ok();
  };
  std::fill(out.begin(), out.end(), -1.0f);
  ASSERT_TRUE(played(tile));
  const std::vector<float> expected = out;
  std::fill(out.begin(), out.end(), -1.0f);
  ASSERT_TRUE(played(pipelined));
  EXPECT_EQ(out, expected);
  for (int i : barriers) {
    interp::DistributedOptions dropped;
    dropped.drop_barrier = i;
    EXPECT_FALSE(played(pipelined, dropped)) << i << ir::print(pipelined);
  }
}

/// Where threads exchange something on the way through shared memory behind the reads of a ring, the next copies wait
/// for that and go to the slot that was read, if one more program shares an SM for it.
TEST(PipelineLoads, CopiesTakeTheSlotThatWasRead) {
  auto module = parse::parse_module(SourceText::make("scales.py", R"(
import triton
import triton.language as tl

@triton.jit
def scales(a, b, s, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (i + k)[None, :])
        y = tl.load(b + n[None, :] * K + (i + k)[:, None])
        scale = tl.max(tl.load(s + m[:, None] * K + (i + k)[None, :]), 1)
        acc += tl.dot(x, y) * scale[:, None]
    tl.store(c + m[:, None] * BN + n[None, :], acc)
)"));
  ASSERT_TRUE(module.ok());
  auto functions = frontend::jit_functions(*module);
  ASSERT_TRUE(functions.ok());
  constexpr int64_t kM = 16, kN = 128, kBlock = 64, kK = 6 * kBlock;
  auto lowered = [&](int stages) {
    auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
    const std::vector<std::pair<std::string, frontend::Global>> constants = {
        {"BM", one(kM)}, {"BN", one(kN)}, {"BK", one(kBlock)}};
    auto args =
        frontend::parse_signature(*functions->back(), "*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16", constants);
    frontend::Options options;
    options.num_warps = 4, options.num_stages = stages;
    return frontend::lower_kernel(*functions->back(), *args, options);
  };
  std::unique_ptr<Module> tile;
  auto m = through_pipeline(lowered(4), "sm_90", &tile);
  ASSERT_TRUE(m);
  EXPECT_EQ(ring_slots(*m), 3) << ir::print(*m);  // 55 KB let four programs share an SM, 73 KB three
  // The barrier of the exchange is enough.
  int barriers = 0;
  ir::walk(m->body(), [&](Op* op) { barriers += op->kind == OpKind::kBarrier && op->parent->parent; });
  EXPECT_EQ(barriers, 1) << ir::print(*m);
  // With fewer stages all slots are wanted.
  auto short_ring = through_pipeline(lowered(3), "sm_90");
  ASSERT_TRUE(short_ring);
  EXPECT_EQ(ring_slots(*short_ring), 3) << ir::print(*short_ring);

  std::mt19937 rng(std::random_device{}());
  std::vector<uint16_t> a(kM * kK + 8), b(kN * kK + 8);
  std::vector<float> s(kM * kK + 4), c(kM * kN + 4);
  for (auto* v : {&a, &b}) fill_with_small_halves(*v, rng);
  for (float& x : s) x = static_cast<float>(rng() % 64);
  const std::vector<uint64_t> args = {aligned(a), aligned(b), aligned(s), aligned(c), kK};
  // Neither the barrier in front of the reads nor that of the exchange can be done without.
  play(*tile, *m, args, {kM * kK * 2, kN * kK * 2, kM * kK * 4, kM * kN * 4}, c, {0, 1});
}

/// Where one more program shares an SM by a slot less, the next copies go ahead of the wait, behind a barrier that says
/// that all warps have read the slot of the iteration before.
TEST(PipelineLoads, ABarrierSavesASlot) {
  auto module = parse::parse_module(SourceText::make("product.py", R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (i + k)[None, :])
        y = tl.load(b + n[None, :] * K + (i + k)[:, None])
        acc += tl.dot(x, y)
    tl.store(c + m[:, None] * BN + n[None, :], acc)
)"));
  ASSERT_TRUE(module.ok());
  auto functions = frontend::jit_functions(*module);
  ASSERT_TRUE(functions.ok());
  constexpr int64_t kM = 16, kN = 64, kBlock = 256, kK = 5 * kBlock;
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  const std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"BM", one(kM)}, {"BN", one(kN)}, {"BK", one(kBlock)}};
  auto signature = frontend::parse_signature(*functions->back(), "*fp16:16, *fp16:16, *fp32:16, i32:16", constants);
  frontend::Options options;
  options.num_warps = 4, options.num_stages = 3;
  std::unique_ptr<Module> tile;
  auto m = through_pipeline(frontend::lower_kernel(*functions->back(), *signature, options), "sm_90", &tile);
  ASSERT_TRUE(m);
  int barriers = 0;
  ir::walk(m->body(), [&](Op* op) { barriers += op->kind == OpKind::kBarrier && op->parent->parent; });
  EXPECT_EQ(ring_slots(*m), 2) << ir::print(*m);  // 80 KB let two programs share an SM, 120 KB one
  EXPECT_EQ(barriers, 2) << ir::print(*m);

  std::mt19937 rng(std::random_device{}());
  std::vector<uint16_t> a(kM * kK + 8), b(kN * kK + 8);
  std::vector<float> c(kM * kN + 4);
  for (auto* v : {&a, &b}) fill_with_small_halves(*v, rng);
  // An iteration, two and all.
  for (const int64_t depth : {kBlock, 2 * kBlock, kK}) {
    SCOPED_TRACE(depth);
    const std::vector<uint64_t> args = {aligned(a), aligned(b), aligned(c), static_cast<uint64_t>(depth)};
    play(*tile, *m, args, {kM * kK * 2, kN * kK * 2, kM * kN * 4}, c,
         depth < kK ? std::vector<int>() : std::vector<int>{0, 1});
  }
}

/// A value with 2^60 ways through the loop is followed along each op once.
TEST(PipelineLoads, FollowsSharedUsesOnce) {
  std::string text =
      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef chain(p, n):\n  for k in range(n):\n"
      "    i = tl.arange(0, 16)\n    at = p + i[:, None] * 16 + i[None, :]\n    x = tl.load(at)\n";
  for (int i = 0; i < 60; ++i) text += "    x = x * 0.5 + tl.sin(x)\n";
  text += "    tl.store(at, x)\n";
  auto module = parse::parse_module(SourceText::make("chain.py", std::move(text)));
  ASSERT_TRUE(module.ok());
  auto functions = frontend::jit_functions(*module);
  ASSERT_TRUE(functions.ok());
  auto args = frontend::parse_signature(*functions->back(), "*fp32:16, i32", {});
  ASSERT_TRUE(args.ok());
  auto m = through_pipeline(frontend::lower_kernel(*functions->back(), *args, {}), "sm_80");
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kAsyncCopy), 0);
}

/// A barrier less, or a wait for one group less: the machine must see the race or the missing bytes.
TEST(PipelineLoads, PlantedFaultsAreFound) {
  Matmul c;
  c.m = c.n = 32, c.k = 160;
  auto m = distributed(c);
  ASSERT_TRUE(m);
  std::mt19937 rng(std::random_device{}());
  Problem launch(c, rng);
  ASSERT_TRUE(launch(*m).ok());
  interp::DistributedOptions dropped;
  dropped.drop_barrier = 0;  // the loop's
  EXPECT_FALSE(launch(*m, dropped).ok());
  auto late = ir::clone(*m);
  ir::walk(late->body(), [&](Op* op) {
    if (op->kind == OpKind::kAsyncWait && op->parent->parent)
      op->set(AttrName::kCount, op->int_attr(AttrName::kCount) + 1);
  });
  EXPECT_FALSE(launch(*late).ok());
}

TEST(PipelineLoads, LoopsThatWriteMemoryStay) {
  Matmul c;
  auto m = lower(c);
  ASSERT_TRUE(m.ok());
  Context context{*target::find("sm_80")};
  for (const Pass& pass : pipeline(target::Kind::kCuda)) {
    if (pass.when) continue;
    if (pass.name == "pipeline_loads") {
      ir::walk((*m)->body(), [&](Op* op) {  // a barrier: other threads' writes may show behind it
        if (op->kind != OpKind::kDot) return;
        ir::Builder b(**m);
        b.set_before(op);
        b.create(OpKind::kBarrier, {}, {});
      });
    }
    ASSERT_TRUE(pass.run(**m, context).ok());
    if (pass.name == "pipeline_loads") break;
  }
  EXPECT_EQ(count(**m, OpKind::kAsyncCopy), 0);
}

}  // namespace
}  // namespace kiln::passes
