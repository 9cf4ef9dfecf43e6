// The gradients of attention (kernels/attention/gradient.py) through the pipeline for Hopper, played by the distributed
// interpreter against the tile interpreter: blocks and vectors by TMA, a product whose second operand the warps store
// beside the slots, and sums that TMA adds to memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/interp/machine/distributed.h"
#include "compiler/passes/pass.h"
#include "support/float_bits.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln {
namespace {

struct Gradients {
  int columns, block_m, block_n, warps;
  bool causal, adds;
  int each = 2;          // heads of q for a program
  bool is_known = true;  // that the stride of rows is a multiple of 16
  bool apart() const { return each == 1; }
};

void PrintTo(const Gradients& g, std::ostream* out) {
  *out << g.columns << " columns, blocks of " << g.block_m << " x " << g.block_n << ", " << g.warps << " warps"
       << (g.causal ? ", causal" : "") << (g.adds ? ", in one pass" : "") << (g.apart() ? ", heads apart" : "")
       << (g.is_known ? "" : ", of any stride");
}

/// A tensor of halves or floats, at an address that TMA takes.
struct Buffer {
  DType dtype;
  size_t numel;
  std::vector<__uint128_t> memory;

  Buffer(DType type, size_t n) : dtype(type), numel(n), memory((n * static_cast<size_t>(size_of(type)) + 15) / 16, 0) {}
  size_t bytes() const { return numel * static_cast<size_t>(size_of(dtype)); }
  void set(size_t i, double v) {
    const uint64_t bits = float_to_bits(dtype, v);
    const auto size = static_cast<size_t>(size_of(dtype));
    std::memcpy(reinterpret_cast<char*>(memory.data()) + i * size, &bits, size);
  }
  double at(size_t i) const {
    uint64_t bits = 0;
    const auto size = static_cast<size_t>(size_of(dtype));
    std::memcpy(&bits, reinterpret_cast<const char*>(memory.data()) + i * size, size);
    return float_from_bits(dtype, bits);
  }
};

// A group of two heads of q, and rows and keys that end within a block.
constexpr int kHeads = 2, kGroup = 2, kRows = 150, kKeys = 150, kStride = 256;
constexpr size_t kFirstOutput = 6;  // dk, dv, and the parts of dq

Result<std::unique_ptr<ir::Module>> tile_module(const Gradients& g) {
  std::ifstream file(KILN_SOURCE_DIR "/kernels/attention/gradient.py");
  std::stringstream text;
  text << file.rdbuf();
  return frontend::testing::lower_text(
      "gradient.py", text.str(),
      frontend::testing::parse_command(fmt::format(
          "kernel=key_gradients_kernel signature=*fp16:16,*fp16:16,*fp16:16,*fp16:16,*fp32:16,*fp32:16,{0}:16,{0}:16,"
          "*fp32:16,{8},fp32,fp32,i32,i32,i32,i32,i32,i32 ADDS_PARTS={1} CAUSAL={2} COLUMNS={3} BLOCK_M={4} "
          "BLOCK_N={5} "
          "D={6} num_warps={7} num_stages=2",
          g.apart() ? "*fp32" : "*fp16", g.adds ? "True" : "False", g.causal ? "True" : "False", g.columns, g.block_m,
          g.block_n, std::bit_ceil(static_cast<unsigned>(g.columns)), g.warps, g.is_known ? "i32:16" : "i32")));
}

/// The same for Hopper; null, with a failure, where that does not succeed.
std::unique_ptr<ir::Module> for_hopper(const ir::Module& tile) {
  auto distributed = ir::clone(tile);
  passes::RunOptions options;
  options.verify_each = true;
  const Status s = passes::run(passes::pipeline(target::Kind::kCuda), *distributed, *target::find("sm_90a"), options);
  EXPECT_TRUE(s.ok()) << render(s.error());
  return s.ok() ? std::move(distributed) : nullptr;
}

/// q, k, v, do, totals, less, dk, dv and the parts of dq; dk and dv are poisoned.
std::vector<Buffer> random_buffers(const Gradients& g, std::mt19937& random) {
  // Weights below 1, as those of a softmax: one rounding of what larger ones weigh would be more than the bound.
  std::normal_distribution<double> normal(0, 0.5);
  const auto columns = static_cast<size_t>(g.columns);
  const size_t of_q = kHeads * kRows * columns, of_k = kHeads / kGroup * kKeys * columns, rows = kHeads * kStride;
  std::vector<Buffer> buffers;
  for (const size_t numel : {of_q, of_k, of_k, of_q}) buffers.emplace_back(DType::kF16, numel);
  for (int i = 0; i < 2; ++i) buffers.emplace_back(DType::kF32, rows);
  for (int i = 0; i < 2; ++i)
    buffers.emplace_back(g.apart() ? DType::kF32 : DType::kF16, of_k * static_cast<size_t>(kGroup / g.each));
  for (size_t k = 0; k < buffers.size(); ++k)
    for (size_t i = 0; i < buffers[k].numel; ++i) buffers[k].set(i, normal(random));
  for (size_t i = 0; i < rows; ++i) buffers[4].set(i, i % kStride < kRows ? 4 : HUGE_VAL);
  buffers.emplace_back(DType::kF32, rows * columns);
  return buffers;
}

/// What a program of `module` is given.
std::vector<uint64_t> arguments(const Gradients& g, std::vector<Buffer>& buffers, interp::Memory& memory) {
  std::vector<uint64_t> args;
  for (Buffer& b : buffers) {
    memory.allow(b.memory.data(), b.bytes());
    args.push_back(reinterpret_cast<uint64_t>(b.memory.data()));
  }
  const float scale = 0.125F, scale_log2 = scale * 1.4426950F;
  args.push_back(kStride);
  for (const float f : {scale, scale_log2}) args.push_back(std::bit_cast<uint32_t>(f));
  const uint64_t together = g.causal ? 2 : 1;
  args.insert(args.end(), {kHeads, kGroup, static_cast<uint64_t>(g.each), together, kRows, kKeys});
  return args;
}
std::array<int32_t, 3> grid_of(const Gradients& g) {
  return {(kKeys + g.block_n - 1) / g.block_n * (kHeads / g.each), 1, 1};
}
Status play(const Gradients& g, const ir::Module& distributed, std::vector<Buffer>& buffers, uint32_t seed) {
  interp::Memory memory;
  interp::DistributedOptions machine;
  machine.seed = seed;
  return interp::run_distributed(distributed, grid_of(g), arguments(g, buffers, memory), memory, machine);
}

class GradientsDistributed : public testing::TestWithParam<Gradients> {};

TEST_P(GradientsDistributed, MatchTheTileInterpreter) {
  const Gradients& g = GetParam();
  const auto tile = tile_module(g);
  ASSERT_TRUE(tile.ok()) << render(tile.error());
  const auto distributed = for_hopper(**tile);
  ASSERT_TRUE(distributed);
  int products = 0, stored = 0, adding = 0, vectors = 0;
  ir::walk(distributed->body(), [&](const ir::Op* op) {
    products += op->kind == ir::OpKind::kWgmma;
    stored += op->kind == ir::OpKind::kSharedStore && op->parent->parent->kind == ir::OpKind::kFor;
    adding += op->kind == ir::OpKind::kTmaStore && op->has(ir::AttrName::kRmw);
    vectors += op->kind == ir::OpKind::kTmaLoad && op->operand(0)->type.shape.rank == 1;
  });
  const int loops = g.causal ? 2 : 1;
  EXPECT_EQ(products, loops * (g.adds ? 5 : 4));
  // An operand, and what is added to memory. TMA brings no vectors and adds nothing where a row may begin anywhere.
  EXPECT_EQ(stored, g.adds ? (g.is_known ? 2 : 1) * loops : 0);
  EXPECT_EQ(adding, g.adds && g.is_known ? loops : 0);
  EXPECT_EQ(vectors, g.is_known ? 2 * loops : 0);

  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<Buffer> want = random_buffers(g, random), got = want;
  interp::Memory memory;
  Status s = interp::run(**tile, grid_of(g), arguments(g, want, memory), memory);
  ASSERT_TRUE(s.ok()) << render(s.error());
  s = play(g, *distributed, got, seed);
  ASSERT_TRUE(s.ok()) << render(s.error());
  for (size_t output = kFirstOutput; output < want.size(); ++output)
    for (size_t i = 0; i < want[output].numel; ++i) {
      const double w = want[output].at(i);
      ASSERT_NEAR(got[output].at(i), w, 4e-3 * std::max(1.0, std::abs(w))) << "output " << output << " element " << i;
    }
}

constexpr Gradients kOnePass = {64, 128, 128, 8, false, true};

INSTANTIATE_TEST_SUITE_P(Blocks, GradientsDistributed,
                         testing::Values(Gradients{64, 64, 64, 4, true, true}, kOnePass,
                                         Gradients{128, 64, 128, 8, true, true}, Gradients{64, 64, 64, 4, false, false},
                                         Gradients{64, 128, 128, 8, true, true, 1},
                                         Gradients{64, 64, 64, 4, true, true, 2, false},
                                         Gradients{40, 64, 64, 4, true, true}));

/// What plays without `op` of the kernel in one pass ends with.
std::string without(ir::OpKind kind, ir::OpKind behind) {
  const auto tile = tile_module(kOnePass);
  EXPECT_TRUE(tile.ok());
  const auto distributed = for_hopper(**tile);
  std::vector<ir::Op*> found;
  ir::walk(distributed->body(), [&](ir::Op* op) {
    const bool in_loop = op->parent->parent && op->parent->parent->kind == ir::OpKind::kFor;
    if (in_loop && op->kind == kind && op->next->kind == behind) found.push_back(op);
  });
  EXPECT_EQ(found.size(), 1U) << ir::print(*distributed);
  for (ir::Op* op : found) op->erase();
  for (uint32_t seed = 1; seed <= 8; ++seed) {  // of several orders, one shows it
    std::mt19937 random(seed);
    std::vector<Buffer> buffers = random_buffers(kOnePass, random);
    const Status s = play(kOnePass, *distributed, buffers, seed);
    if (!s.ok()) return render(s.error());
  }
  return "";
}

// Planted: the product reads what other warps have not stored yet; a store writes what TMA still reads.
TEST(GradientsDistributed, RacesAreFound) {
  const std::string unjoined = without(ir::OpKind::kBarrier, ir::OpKind::kSharedTrans);
  EXPECT_NE(unjoined.find("of shared memory"), std::string::npos) << unjoined;  // a race, or nothing is there
  const std::string overtaken = without(ir::OpKind::kTmaStoreWait, ir::OpKind::kBarrier);
  EXPECT_NE(overtaken.find("race"), std::string::npos) << overtaken;
}

}  // namespace
}  // namespace kiln
