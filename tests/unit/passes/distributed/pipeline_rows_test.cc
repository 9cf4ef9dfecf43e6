// Loops without dots whose tl.range asks for num_stages: their loads run ahead through shared memory, and what is used
// behind a reduction is read there again. Through the whole CUDA pipeline, on the machine that the distributed
// interpreter plays: the same bits as the tile interpreter (the numbers are small integers, so that sums are exact).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/frontend/frontend.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/interp/tile/interp.h"
#include "compiler/parse/parser.h"
#include "compiler/passes/pass.h"
#include "support/diag.h"
#include "support/float_bits.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

using ir::Module;
using ir::Op;
using ir::OpKind;

constexpr char kHead[] =
    "import triton.language as tl\n@triton.jit\n"
    "def k(x_ptr, w_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):\n";

/// Every row: the distance from its maximum, by weight, and the sum of the distances.
constexpr char kRows[] =
    "    cols = tl.arange(0, BLOCK)\n"
    "    inside = cols < n_cols\n"
    "    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):\n"
    "        x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=-99.0).to(tl.float32)\n"
    "        most = tl.max(x, axis=0)\n"
    "        total = tl.sum(tl.where(inside, x - most, 0.0), axis=0)\n"
    "        w = tl.load(w_ptr + cols, mask=inside).to(tl.float32)\n"
    "        tl.store(out_ptr + row * n_cols + cols, (x - most) * w + total, mask=inside)\n";

/// Four rows at a time, column by column, by pointers that move.
constexpr char kColumns[] =
    "    rows = tl.program_id(0) * 4 + tl.arange(0, 4)\n"
    "    acc = tl.zeros([4, BLOCK], tl.float32)\n"
    "    at = x_ptr + rows[:, None] * n_cols + tl.arange(0, BLOCK)[None, :]\n"
    "    for c in tl.range(0, n_cols, BLOCK, num_stages=STAGES):\n"
    "        inside = (rows[:, None] < n_rows) & (c + tl.arange(0, BLOCK)[None, :] < n_cols)\n"
    "        acc += tl.load(at, mask=inside, other=1.0)\n"
    "        at += BLOCK\n"
    "    tl.store(out_ptr + rows, tl.sum(acc, axis=1), mask=rows < n_rows)\n";

struct Program {
  std::string body = kRows;
  DType dtype = DType::kBF16;
  int64_t rows = 5, columns = 256, block = 256, stages = 3;
  int warps = 4, grid = 2;
  std::string target = "sm_90a";
};

Result<std::unique_ptr<Module>> tile_module(const Program& r) {
  KILN_TRY(auto parsed, parse::parse_module(SourceText::make("k.py", kHead + r.body)));
  KILN_TRY(auto functions, frontend::jit_functions(parsed));
  auto one = [](int64_t v) { return ast::Constant(ast::Int{v}); };
  const std::vector<std::pair<std::string, frontend::Global>> constants = {{"BLOCK", one(r.block)},
                                                                           {"STAGES", one(r.stages)}};
  const std::string_view type = kiln::info(r.dtype).triton;
  KILN_TRY(auto args,
           frontend::parse_signature(
               *functions.back(),
               fmt::format("*{0}:16, *{0}:16, *{0}:16, i32, {1}", type, r.columns % 16 ? "i32" : "i32:16"), constants));
  frontend::Options options;
  options.num_warps = r.warps;
  return frontend::lower_kernel(*functions.back(), args, options);
}

std::unique_ptr<Module> distributed(const Program& r, std::unique_ptr<Module>* tile = nullptr) {
  return through_pipeline(tile_module(r), r.target, tile);
}

/// x, w and the output, aligned as the signature promises.
class Buffers {
 public:
  Buffers(const Program& r, uint32_t seed) : run_(r) {
    std::mt19937 rng(seed);
    for (int i = 0; i < 3; ++i) {
      words_.emplace_back(static_cast<size_t>(count()) + 2);
      addresses_.push_back((reinterpret_cast<uint64_t>(words_.back().data()) + 15) & ~uint64_t{15});
      for (int64_t e = 0; e < count(); ++e)
        write(i, e, i < 2 ? float_to_bits(r.dtype, static_cast<double>(rng() % 7) - 3) : nan_bits(r.dtype));
    }
  }

  Status operator()(const Module& m, const interp::DistributedOptions& options = {}) {
    interp::Memory memory;
    for (uint64_t a : addresses_)
      memory.allow(reinterpret_cast<void*>(a), static_cast<size_t>(count() * size_of(run_.dtype)));
    std::vector<uint64_t> args = addresses_;
    for (int64_t v : {run_.rows, run_.columns}) args.push_back(static_cast<uint64_t>(v));
    return m.stage == ir::Stage::kTile ? interp::run(m, {run_.grid, 1, 1}, args, memory)
                                       : interp::run_distributed(m, {run_.grid, 1, 1}, args, memory, options);
  }

  std::vector<uint64_t> output() const {
    std::vector<uint64_t> out;
    for (int64_t e = 0; e < count(); ++e)
      out.push_back(interp::Memory::read(addresses_[2] + static_cast<uint64_t>(e * size_of(run_.dtype)), run_.dtype));
    return out;
  }

 private:
  int64_t count() const { return run_.rows * run_.columns; }
  void write(int buffer, int64_t e, uint64_t bits) {
    interp::Memory::write(addresses_[static_cast<size_t>(buffer)] + static_cast<uint64_t>(e * size_of(run_.dtype)),
                          run_.dtype, bits);
  }

  Program run_;
  std::vector<std::vector<uint64_t>> words_;
  std::vector<uint64_t> addresses_;
};

void same_bits(const Program& r, int copies) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}: {} {}x{} block {} stages {} warps {} grid {} on {}\n{}", seed, name(r.dtype),
                           r.rows, r.columns, r.block, r.stages, r.warps, r.grid, r.target, r.body));
  std::unique_ptr<Module> tile;
  auto m = distributed(r, &tile);
  ASSERT_TRUE(m);
  EXPECT_EQ(count(*m, OpKind::kAsyncCopy), copies) << ir::print(*m);
  Buffers want(r, seed), got(r, seed);
  Status ran = want(*tile);
  ASSERT_TRUE(ran.ok()) << render(ran.error());
  interp::DistributedOptions options;
  options.seed = seed;
  ran = got(*m, options);
  ASSERT_TRUE(ran.ok()) << render(ran.error()) << ir::print(*m);
  EXPECT_EQ(got.output(), want.output());
}

TEST(PipelineRows, SameBitsAsTheTileInterpreter) {
  for (const DType dtype : {DType::kBF16, DType::kF32})
    for (const int stages : {2, 3, 4})
      for (const int warps : {1, 4}) {
        Program r;
        r.dtype = dtype, r.stages = stages, r.warps = warps;
        same_bits(r, stages);
        r.columns = 240;  // what lies outside is not 0
        same_bits(r, stages);
        r.rows = 1, r.grid = 3;  // programs without a row
        same_bits(r, stages);
        r.body = kColumns, r.dtype = DType::kF32;
        r.columns = 208, r.block = 64, r.rows = 7, r.grid = 2;
        same_bits(r, stages);
        r.columns = 16;  // one iteration
        same_bits(r, stages);
      }
}

/// Where 4 bytes do not lie side by side, where the target has no cp.async, and where one stage is asked for.
TEST(PipelineRows, WithoutCopies) {
  Program r;
  r.columns = 251;
  same_bits(r, 0);
  r.dtype = DType::kF32;
  same_bits(r, 3);
  r.stages = 1;
  same_bits(r, 0);
}

/// A ring has one buffer less than there are stages: three of 64 KiB for four stages. Of 128 KiB one fits, of 256 KiB
/// none.
TEST(PipelineRows, AsManyStagesAsSharedMemoryHas) {
  Program r;
  r.rows = 3, r.columns = 32000, r.block = 32768, r.stages = 4, r.warps = 8;
  same_bits(r, 4);
  r.block = 65536;
  same_bits(r, 2);
  r.dtype = DType::kF32;
  same_bits(r, 0);
}

/// The footprint that scripts compute the number of their programs from.
TEST(PipelineRows, SharedMemoryOfARing) {
  Program r;
  r.dtype = DType::kF32, r.columns = r.block = 4096, r.stages = 4, r.warps = 8;
  auto m = distributed(r);
  ASSERT_TRUE(m);
  EXPECT_GE(m->shared_bytes, 3 * 16384);
  EXPECT_LT(m->shared_bytes, 3 * 16384 + 1024);
}

TEST(PipelineRows, OnlyWhenTheLoopAsks) {
  Program r;
  r.body.replace(r.body.find(", num_stages=STAGES"), strlen(", num_stages=STAGES"), "");
  same_bits(r, 0);
}

/// 64 elements wait in registers where shared memory allows one block of 8 warps; where it allows twelve of 4, each
/// part behind a reduction across warps reads them again.
TEST(PipelineRows, ReadsAgainWhereRegistersAreShort) {
  Program r;
  auto reads = [&] {
    auto m = distributed(r);
    return m ? count(*m, OpKind::kSharedLoad) : -1;
  };
  EXPECT_EQ(reads(), 1) << "few elements";
  r.columns = r.block = 16384, r.stages = 4, r.warps = 8;
  r.dtype = DType::kF32;
  EXPECT_EQ(reads(), 1);
  r.dtype = DType::kBF16, r.columns = r.block = 8192, r.stages = 2, r.warps = 4;
  EXPECT_EQ(reads(), 3);
  same_bits(r, 2);
  r.columns = r.block = 2048, r.warps = 1;
  EXPECT_EQ(reads(), 1) << "within a warp";
}

/// A store of one iteration may be what a later one loads: through the same parameter, or through a pointer that is
/// either, or one that comes from memory; and behind atomics other programs' stores may show.
TEST(PipelineRows, LoadsThatStoresMayMeetStay) {
  const std::string loop =
      "    cols = tl.arange(0, BLOCK)\n"
      "    for row in tl.range(0, n_rows - 1, num_stages=STAGES):\n"
      "        x = tl.load({} + row * BLOCK + cols)\n"
      "{}";
  const std::string store = "        tl.store({} + (row + 1) * BLOCK + cols, x + 1)\n";
  auto with = [&](std::string_view from, std::string_view to) {
    return fmt::format(fmt::runtime(loop), from, fmt::format(fmt::runtime(store), to));
  };
  Program r;
  r.columns = r.block = 256, r.grid = 1;
  r.body = with("x_ptr", "out_ptr");
  same_bits(r, 3);
  r.body = with("out_ptr", "out_ptr");
  same_bits(r, 0);
  r.body = "    to = tl.where(tl.arange(0, BLOCK) < n_rows, out_ptr, w_ptr)\n" + with("w_ptr", "to - cols + cols");
  same_bits(r, 0);
  r.body = "    to = tl.where(tl.arange(0, BLOCK) < n_rows, out_ptr, w_ptr)\n" + with("x_ptr", "to - cols + cols");
  same_bits(r, 3);
  r.dtype = DType::kF32;
  r.body = fmt::format(fmt::runtime(loop), "x_ptr", "        tl.atomic_add(out_ptr + cols, x)\n");
  same_bits(r, 0);
  // A pointer that moves with the loop is still its parameter's.
  r.body =
      "    to = out_ptr + tl.arange(0, BLOCK)\n"
      "    for row in tl.range(0, n_rows - 1, num_stages=STAGES):\n"
      "        x = tl.load(out_ptr + row * BLOCK + tl.arange(0, BLOCK))\n"
      "        to += BLOCK\n"
      "        tl.store(to, x + 1)\n";
  same_bits(r, 0);
}

// --- no loop: hold_in_shared

/// The same of one row per program; the weights come behind a reduction.
constexpr char kRow[] =
    "    at = tl.program_id(0) * n_cols + tl.arange(0, BLOCK)\n"
    "    inside = tl.arange(0, BLOCK) < n_cols\n"
    "    x = tl.load(x_ptr + at, mask=inside, other=-99.0).to(tl.float32)\n"
    "    most = tl.max(x, axis=0)\n"
    "    total = tl.sum(tl.where(inside, x - most, 0.0), axis=0)\n"
    "    w = tl.load(w_ptr + at, mask=inside).to(tl.float32)\n"
    "    least = tl.min(w, axis=0)\n"
    "    tl.store(out_ptr + at, (x - most) * (w - least) + total, mask=inside)\n";

TEST(HoldInShared, SameBitsAsTheTileInterpreter) {
  for (const DType dtype : {DType::kBF16, DType::kF32})
    for (const int64_t columns : {4096, 4000}) {
      Program r;
      r.body = kRow, r.dtype = dtype, r.rows = 2, r.columns = columns, r.block = 4096, r.warps = 2;
      same_bits(r, 2);
      auto m = distributed(r);
      ASSERT_TRUE(m);
      EXPECT_EQ(count(*m, OpKind::kSharedLoad), 3 + 2) << ir::print(*m);
      r.warps = 4;  // 32 elements per thread stay in registers
      same_bits(r, 0);
    }
}

/// A quarter of the registers counts, and units of 8 bytes, where a program waits for others between two uses.
TEST(HoldInShared, LessWhereProgramsWaitForOthers) {
  const std::string load =
      "    at = tl.program_id(0) * n_cols + tl.arange(0, BLOCK)\n"
      "    x = tl.load(x_ptr + at).to(tl.float32)\n"
      "    total = tl.sum(x, axis=0)\n";
  const std::string wait =
      "    told = tl.load(w_ptr, volatile=True)\n"
      "    while told > 9:\n"
      "        told = tl.load(w_ptr, volatile=True)\n";
  const std::string use = "    tl.store(out_ptr + at, x + total)\n";
  Program r;
  r.dtype = DType::kF32, r.rows = 4, r.columns = r.block = 2048;
  r.body = load + wait + use;
  same_bits(r, 1);
  r.body = load + use + wait;
  same_bits(r, 0);
  r.body = load + "    x = tl.cumsum(x, axis=0)\n" + wait + use;
  same_bits(r, 0);
  // Two elements of 4 bytes lie side by side, or one.
  for (const auto& [run, copies] : {std::pair{2, 1}, std::pair{1, 0}}) {
    r.body = fmt::format(
        "    at = (tl.arange(0, BLOCK // {0}) * {0} * 2)[:, None] + tl.arange(0, {0})[None, :]\n"
        "    x = tl.load(x_ptr + at).to(tl.float32)\n"
        "    total = tl.sum(tl.sum(x, axis=1), axis=0)\n",
        run);
    r.body += wait + use;
    same_bits(r, copies);
  }
  r.columns = r.block = 1024, r.body = load + wait + use;  // 8 elements per thread
  same_bits(r, 0);
}

/// Beside the ring of a loop there is what it leaves: 131 KiB for a row of halves; 35 KiB are too few for one of
/// floats.
TEST(HoldInShared, NoMoreThanIsLeft) {
  Program r;
  r.body =
      "    cols = tl.arange(0, BLOCK)\n"
      "    inside = cols < n_cols\n"
      "    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)\n"
      "    w -= tl.max(w, axis=0)\n"
      "    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):\n"
      "        x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=-99.0).to(tl.float32)\n"
      "        tl.store(out_ptr + row * n_cols + cols, x - tl.max(x, axis=0) + w, mask=inside)\n";
  r.rows = 3, r.columns = 16000, r.block = 16384, r.stages = 4, r.warps = 8;
  same_bits(r, 4 + 1);
  r.dtype = DType::kF32;
  same_bits(r, 4);
}

TEST(HoldInShared, OnlyWhatCrossesWarpsInWholeUnits) {
  Program r;
  r.body = kRow, r.rows = 2, r.columns = r.block = 2048, r.warps = 1;
  same_bits(r, 0);
  r.columns = 4001, r.block = 4096, r.warps = 2;
  same_bits(r, 0);
}

TEST(HoldInShared, ExponentialsAreComputedTwiceWhenRegistersAreShort) {
  Program r;
  r.body =
      "    at = tl.program_id(0) * n_cols + tl.arange(0, BLOCK)\n"
      "    x = tl.load(x_ptr + at).to(tl.float32)\n"
      "    e = tl.exp(x - tl.max(x, axis=0))\n"
      "    tl.store(out_ptr + at, e / tl.sum(e, axis=0))\n";
  r.rows = 2, r.columns = r.block = 4096;
  for (const auto& [warps, exponentials] : {std::pair{2, 2}, std::pair{4, 1}}) {
    r.warps = warps;
    auto m = distributed(r);
    ASSERT_TRUE(m);
    EXPECT_EQ(count(*m, OpKind::kExp), exponentials) << ir::print(*m);
  }
}

TEST(HoldInShared, PlantedFaultsAreFound) {
  Program r;
  r.body = kRow, r.rows = 2, r.columns = r.block = 4096, r.warps = 2;
  auto m = distributed(r);
  ASSERT_TRUE(m);
  Buffers launch(r, 1);
  ASSERT_TRUE(launch(*m).ok());
  for (const OpKind kind : {OpKind::kAsyncWait, OpKind::kBarrier}) {
    auto faulty = ir::clone(*m);
    std::vector<Op*> dropped;
    ir::walk(faulty->body(), [&](Op* op) {
      if (op->kind == kind) dropped.push_back(op);
    });
    ASSERT_FALSE(dropped.empty());
    for (Op* op : dropped) op->erase();
    EXPECT_FALSE(launch(*faulty).ok()) << ir::info(kind).mnemonic;
  }
}

// --- loops again

/// A wait for one group less: the machine must see the missing bytes.
TEST(PipelineRows, PlantedFaultsAreFound) {
  Program r;
  r.rows = 9, r.grid = 1;
  auto m = distributed(r);
  ASSERT_TRUE(m);
  Buffers launch(r, 1);
  ASSERT_TRUE(launch(*m).ok());
  auto late = ir::clone(*m);
  ir::walk(late->body(), [&](Op* op) {
    if (op->kind == OpKind::kAsyncWait && op->parent->parent)
      op->set(ir::AttrName::kCount, op->int_attr(ir::AttrName::kCount) + 1);
  });
  EXPECT_FALSE(launch(*late).ok());
}

}  // namespace
}  // namespace kiln::passes
