// Attention through the whole pipeline for Hopper, on the machine that the distributed interpreter plays, against the
// tile interpreter: the second product's first operand is computed from the first product and stays in registers, and
// runs during the next iteration (skew_products).
#include <gtest/gtest.h>

#include <random>

#include "compiler/interp/machine/distributed.h"
#include "support/float_bits.h"
#include "tests/unit/passes/pipeline.h"

namespace kiln::passes {
namespace {

// kernels/attention as the frontend leaves it: causal, 64 rows and 32 keys at a time, 32 columns.
constexpr char kAttention[] = R"(
kernel @attention(%q_ptr: *f16 {divisibility = 16}, %k_ptr: *f16 {divisibility = 16}, %v_ptr: *f16 {divisibility = 16}, %out_ptr: *f16 {divisibility = 16}, %scale: f32, %heads: i32, %n: i32 {divisibility = 16}) attributes {num_warps = WARPS, num_stages = 2, num_ctas = 1} {
  %0 = mul %heads, %n : i32
  %1 = constant COLUMNS : i32
  %2 = constant 32 : i32
  %3 = constant 32 : i64
  %4 = constant 1 : i32
  %5 = constant 1 : i64
  %6 = make_descriptor %q_ptr, %0, %1, %3, %5 : desc f16[64, 32]
  %7 = mul %heads, %n : i32
  %8 = constant COLUMNS : i32
  %9 = constant 32 : i32
  %10 = constant 32 : i64
  %11 = constant 1 : i32
  %12 = constant 1 : i64
  %13 = make_descriptor %k_ptr, %7, %8, %10, %12 : desc f16[32, 32]
  %14 = mul %heads, %n : i32
  %15 = constant COLUMNS : i32
  %16 = constant 32 : i32
  %17 = constant 32 : i64
  %18 = constant 1 : i32
  %19 = constant 1 : i64
  %20 = make_descriptor %v_ptr, %14, %15, %17, %19 : desc f16[32, 32]
  %21 = mul %heads, %n : i32
  %22 = constant COLUMNS : i32
  %23 = constant 32 : i32
  %24 = constant 32 : i64
  %25 = constant 1 : i32
  %26 = constant 1 : i64
  %27 = make_descriptor %out_ptr, %21, %22, %24, %26 : desc f16[64, 32]
  %28 = program_id {axis = 0} : i32
  %29 = constant 64 : i32
  %first = mul %28, %29 : i32
  %30 = program_id {axis = 1} : i32
  %head = mul %30, %n : i32
  %31 = add %head, %first : i32
  %32 = constant 0 : i32
  %q = descriptor_load %6, %31, %32 : f16[64, 32]
  %33 = arange {start = 0, end = 64} : i32[64]
  %34 = splat %first : i32[64]
  %row = add %34, %33 : i32[64]
  %35 = constant -inf : f32
  %peak_0 = splat %35 : f32[64]
  %36 = constant 0.0 : f32
  %total_0 = splat %36 : f32[64]
  %37 = constant 0.0 : f32
  %acc_0 = splat %37 : f32[64, 32]
  %38 = constant SEEN : i32
  %end = add %first, %38 : i32
  %39 = constant 0 : i32
  %40 = constant 32 : i32
LOOPS  %77 = add %head, %first : i32
  %78 = expand_dims %total_END {axis = 1} : f32[64, 1]
  %79 = broadcast %78 : f32[64, 32]
  %80 = div %acc_END, %79 : f32[64, 32]
  %81 = cast %80 : f16[64, 32]
  %82 = constant 0 : i32
  descriptor_store %27, %81, %77, %82
  return
}
)";

constexpr char kLoop[] =
    R"(  %acc_TO, %peak_TO, %total_TO = for %~start = FIRST to LAST step %40 iter (%~acc_2 = %acc_FROM, %~peak_2 = %peak_FROM, %~total_2 = %total_FROM) : i32 -> (f32[64, 32], f32[64], f32[64]) {
    %~41 = add %head, %~start : i32
    %~42 = constant 0 : i32
    %~43 = descriptor_load %13, %~41, %~42 : f16[32, 32]
    %~44 = trans %~43 {order = [1, 0]} : f16[32, 32]
    %~45 = constant 0.0 : f32[64, 32]
    %~46 = dot %q, %~44, %~45 : f32[64, 32]
    %~47 = splat %scale : f32[64, 32]
    %~scores = mul %~46, %~47 : f32[64, 32]
    %~48 = expand_dims %row {axis = 1} : i32[64, 1]
    %~49 = arange {start = 0, end = 32} : i32[32]
    %~50 = splat %~start : i32[32]
    %~51 = add %~50, %~49 : i32[32]
    %~52 = expand_dims %~51 {axis = 0} : i32[1, 32]
    %~53 = broadcast %~48 : i32[64, 32]
    %~54 = broadcast %~52 : i32[64, 32]
    %~55 = cmp %~53, %~54 {predicate = "ge"} : i1[64, 32]
    %~56 = constant -inf : f32
    %~57 = splat %~56 : f32[64, 32]
    %~scores_1 = select %~55, %~scores, %~57 : f32[64, 32]
    %~58 = add %head, %~start : i32
    %~59 = constant 0 : i32
    %~v = descriptor_load %20, %~58, %~59 : f16[32, 32]
    %~60 = reduce %~scores_1 {axis = 1} : f32[64] (%~61: f32, %~62: f32) {
      %~63 = max %~61, %~62 : f32
      yield %~63
    }
    %~higher = max %~peak_2, %~60 : f32[64]
    %~64 = expand_dims %~higher {axis = 1} : f32[64, 1]
    %~65 = broadcast %~64 : f32[64, 32]
    %~66 = sub %~scores_1, %~65 : f32[64, 32]
    %~weights = exp2 %~66 : f32[64, 32]
    %~67 = sub %~peak_2, %~higher : f32[64]
    %~shrink = exp2 %~67 : f32[64]
    %~68 = cast %~weights : f16[64, 32]
    %~69 = expand_dims %~shrink {axis = 1} : f32[64, 1]
    %~70 = broadcast %~69 : f32[64, 32]
    %~71 = mul %~acc_2, %~70 : f32[64, 32]
    %~acc_3 = dot %~68, %~v, %~71 : f32[64, 32]
    %~72 = mul %~total_2, %~shrink : f32[64]
    %~73 = reduce %~weights {axis = 1} : f32[64] (%~74: f32, %~75: f32) {
      %~76 = add %~74, %~75 : f32
      yield %~76
    }
    %~total_3 = add %~72, %~73 : f32[64]
    yield %~acc_3, %~higher, %~total_3
  }
)";

void replace(std::string& text, std::string_view placeholder, const std::string& by) {
  for (size_t at; (at = text.find(placeholder)) != std::string::npos;) text.replace(at, placeholder.size(), by);
}

/// The loop number `i` over keys, from 1 on, which carries on from the one before.
std::string loop(int i, std::string_view first, std::string_view last) {
  std::string text = kLoop;
  for (const auto& [placeholder, by] : {std::pair<std::string_view, std::string>{"FROM", std::to_string(i - 1)},
                                        {"TO", std::to_string(i)},
                                        {"FIRST", std::string(first)},
                                        {"LAST", std::string(last)},
                                        {"~", "of_" + std::to_string(i) + "_"}})
    replace(text, placeholder, by);
  return text;
}

/// The number of warps; how many keys behind its first row a program sees: of 0, the first program's loop does not
/// run; of 32, it runs once; the columns that tensors have of the blocks' 32; and the loops, the second over the keys
/// from a program's first row on.
class AttentionPipeline : public testing::TestWithParam<std::tuple<int, int, int, int>> {};

TEST_P(AttentionPipeline, MatchesTheTileInterpreter) {
  const auto [warps, seen, columns, loops] = GetParam();
  std::string text = kAttention;
  replace(text, "LOOPS", loops == 1 ? loop(1, "%39", "%end") : loop(1, "%39", "%first") + loop(2, "%first", "%end"));
  for (const auto& [placeholder, value] :
       {std::pair<std::string, int>{"WARPS", warps}, {"SEEN", seen}, {"COLUMNS", columns}, {"END", loops}})
    replace(text, placeholder, std::to_string(value));
  std::unique_ptr<ir::Module> tile;
  const auto distributed = through_pipeline(ir::parse_module(SourceText::make("attention.ir", text)), "sm_90a", &tile);
  ASSERT_TRUE(distributed);
  EXPECT_EQ(count(*distributed, ir::OpKind::kDot), 0);
  int from_registers = 0, buffers = 0;
  ir::walk(distributed->body(), [&](const ir::Op* op) {
    if (op->kind == ir::OpKind::kWgmma) {
      const bool is_second = op->operand(0)->type.is_tile();
      from_registers += is_second;
      EXPECT_EQ(op->int_or(ir::AttrName::kDepth, 32), is_second ? 32 : columns);
      EXPECT_EQ(op->int_or(ir::AttrName::kColumns, 32), is_second ? columns : 32);
    }
    buffers += op->kind == ir::OpKind::kTmaLoad;
  });
  // The loops' and the last one; q, the last block, and two in each loop. A second loop over no keys goes away.
  const int kept = seen == 0 ? 1 : loops;
  EXPECT_EQ(from_registers, kept + 1) << ir::print(*distributed);
  EXPECT_EQ(buffers, 2 * kept + 2);

  constexpr size_t kHeads = 2, kRows = 128, kColumns = 32, kNumel = kHeads * kRows * kColumns;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  struct alignas(16) Halves {
    uint16_t bits[kNumel];
  };
  auto random_tensor = [&] {
    auto t = std::make_unique<Halves>();
    for (uint16_t& b : t->bits) b = static_cast<uint16_t>(float_to_bits(DType::kF16, normal(random)));
    return t;
  };
  const auto q = random_tensor(), k = random_tensor(), v = random_tensor(), want = random_tensor(),
             got = random_tensor();
  *got = *want;  // columns beyond the tensors' stay
  auto slots = [&](Halves& out, interp::Memory& memory) {
    std::vector<uint64_t> args;
    for (Halves* t : {q.get(), k.get(), v.get(), &out}) {
      memory.allow(t->bits, sizeof t->bits);
      args.push_back(reinterpret_cast<uint64_t>(t->bits));
    }
    const float scale = 0.25F;
    args.push_back(std::bit_cast<uint32_t>(scale));
    args.insert(args.end(), {kHeads, kRows});
    return args;
  };
  interp::Memory want_memory, got_memory;
  const std::array<int32_t, 3> grid = {kRows / 64, kHeads, 1};
  Status s = interp::run(*tile, grid, slots(*want, want_memory), want_memory);
  ASSERT_TRUE(s.ok()) << render(s.error());
  interp::DistributedOptions machine;
  machine.seed = seed;
  s = interp::run_distributed(*distributed, grid, slots(*got, got_memory), got_memory, machine);
  ASSERT_TRUE(s.ok()) << render(s.error()) << ir::print(*distributed);
  for (size_t i = 0; i < kNumel; ++i) {
    const double w = float_from_bits(DType::kF16, want->bits[i]);
    if (std::isnan(w) && std::isnan(float_from_bits(DType::kF16, got->bits[i]))) continue;  // no key was seen
    // A weight and a result may each be rounded the other way.
    ASSERT_NEAR(float_from_bits(DType::kF16, got->bits[i]), w, 4 * 0x1p-10) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(WarpsAndKeys, AttentionPipeline,
                         testing::Combine(testing::Values(4, 8), testing::Values(64, 32, 0), testing::Values(32, 16),
                                          testing::Values(1, 2)));

}  // namespace
}  // namespace kiln::passes
