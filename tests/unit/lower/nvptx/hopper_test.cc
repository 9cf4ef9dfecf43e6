// The asynchronous ops of the distributed stage through the NVPTX lowering: the instructions that a hand-written GEMM
// becomes, and what the assembler says of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <regex>

#include "compiler/codegen/nvptx.h"
#include "compiler/interp/machine/distributed.h"
#include "compiler/lower/nvptx/nvptx.h"
#include "compiler/lower/shared/launch_plan.h"
#include "support/float_bits.h"
#include "tests/unit/lower/hopper_gemm.h"
#include "tests/unit/lower/remarks.h"

namespace kiln {
namespace {

using testing_support::hopper_gemm_ir;
using testing_support::HopperGemm;

std::unique_ptr<ir::Module> parse(const std::string& text) {
  auto module = ir::parse_module(SourceText::make("gemm.kir", text));
  EXPECT_TRUE(module.ok()) << render(module.error()) << text;
  if (!module.ok()) return nullptr;
  auto valid = ir::verify(**module);
  EXPECT_TRUE(valid.ok()) << render(valid.error()) << text;
  return valid.ok() ? std::move(*module) : nullptr;
}

std::string ptx_of(const std::string& text) {
  auto module = parse(text);
  if (!module) return "";
  const target::Target& target = *target::find("sm_90a");
  llvm::LLVMContext context;
  auto lowered = lower::lower_nvptx(*module, target, context);
  EXPECT_TRUE(lowered.ok()) << render(lowered.error()) << text;
  if (!lowered.ok()) return "";
  auto ptx = codegen::emit_ptx(**lowered, target);
  EXPECT_TRUE(ptx.ok()) << render(ptx.error()) << text;
  return ptx.ok() ? *ptx : "";
}

int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

/// No spill, no stack, and no remark of the assembler: it serialises wgmma with a mere C75xx.
void expect_clean_machine_code(const std::string& ptx) {
  auto cubin = codegen::link_cubin(ptx, *target::find("sm_90a"), nullptr, /*shares_registers=*/true);
  ASSERT_TRUE(cubin.ok()) << render(cubin.error()) << ptx;
  if (cubin->image.empty()) {
    std::printf("[   NOTE   ] neither nvJitLink nor ptxas is here: no cubins are made\n");
    return;
  }
  EXPECT_EQ(cubin->spill_bytes, 0);
  EXPECT_EQ(cubin->stack_bytes, 0);
  testing_support::expect_no_remarks(cubin->messages);
}

TEST(Hopper, GemmBecomesTheRecipe) {
  const std::string ptx = ptx_of(hopper_gemm_ir({}));
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"), 4) << ptx;
  EXPECT_EQ(count(ptx, "wgmma.fence.sync.aligned"), 1);
  EXPECT_EQ(count(ptx, "wgmma.commit_group.sync.aligned"), 1);
  EXPECT_EQ(count(ptx, "wgmma.wait_group.sync.aligned 0"), 1);
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 2);
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.global.shared::cta"), 2);  // two panels of 64 columns
  EXPECT_EQ(count(ptx, "mbarrier.try_wait.parity"), 2);
  EXPECT_EQ(count(ptx, "mbarrier.arrive.expect_tx"), 1);
  EXPECT_EQ(count(ptx, "mbarrier.init"), 6);
  EXPECT_EQ(count(ptx, "stmatrix.sync.aligned.m8n8.x4.shared.b16"), 8);
  EXPECT_EQ(count(ptx, "bar.sync \t1, 256"), 2);
  EXPECT_EQ(count(ptx, ".local"), 0);
  EXPECT_EQ(count(ptx, ".reqntid 384"), 1);
  EXPECT_EQ(count(ptx, ".minnctapersm 1"), 1);
  EXPECT_EQ(count(ptx, ".shared .align 1024"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg"), 0);  // 64 accumulators are content with an even share
  expect_clean_machine_code(ptx);
}

TEST(Hopper, WideTilesWithRowMajorB) {
  const std::string ptx = ptx_of(hopper_gemm_ir({.n = 256, .b_transposed = false}));
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n256k16"), 4);
  EXPECT_EQ(count(ptx, "1, 1, 1, 0, 1;"), 4);                                      // the second operand transposed
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"), 1 + 4);  // b has panels of 64 columns
  expect_clean_machine_code(ptx);
}

TEST(Hopper, ManyWarpsTakeRegistersFromTheProducer) {
  const std::string ptx = ptx_of(hopper_gemm_ir({.m = 256, .num_warps = 16}));
  EXPECT_EQ(count(ptx, ".reqntid 640"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg.dec.sync.aligned.u32 \t40"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg.inc.sync.aligned.u32 \t104"), 1);
  expect_clean_machine_code(ptx);
}

TEST(Hopper, BlocksShareTheRegistersOfAnSm) {
  const struct {
    HopperGemm gemm;
    int blocks, producer, own;
  } rows[] = {{{.n = 64, .stages = 2, .num_warps = 4}, 3, 40, 120},
              {{.n = 128, .stages = 2, .num_warps = 4}, 2, 40, 216},
              // An instruction's 128 accumulators are more than the even share of two blocks.
              {{.m = 64, .n = 256, .k = 32, .stages = 2, .num_warps = 4}, 1, 0, 0}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.gemm.n);
    const std::string ptx = ptx_of(hopper_gemm_ir(row.gemm));
    EXPECT_EQ(count(ptx, fmt::format(".minnctapersm {}", row.blocks)), 1) << ptx;
    EXPECT_EQ(count(ptx, fmt::format("setmaxnreg.dec.sync.aligned.u32 \t{};", row.producer)), row.own > 0);
    EXPECT_EQ(count(ptx, fmt::format("setmaxnreg.inc.sync.aligned.u32 \t{};", row.own)), row.own > 0);
    expect_clean_machine_code(ptx);
  }
}

struct Variant {
  const char* what;
  HopperGemm gemm;
  std::vector<std::pair<const char*, int>> expected;  // text of the PTX, and how often it is there
};

TEST(Hopper, EveryTypeAndMajor) {
  const Variant variants[] = {
      {"bf16, both transposed",
       {.operand = DType::kBF16, .result = DType::kBF16, .a_transposed = true, .b_transposed = false},
       {{"m64n128k16.f32.bf16.bf16", 4}, {"1, 1, 1, 1, 1;", 4}}},
      {"f16 accumulators", {.accumulator = DType::kF16}, {{"m64n128k16.f16.f16.f16", 4}, {"stmatrix", 8}}},
      {"tf32", {.k = 32, .operand = DType::kF32, .result = DType::kF32}, {{"m64n128k8.f32.tf32.tf32", 4}}},
      {"fp8", {.k = 128, .operand = DType::kF8E4M3}, {{"m64n128k32.f32.e4m3.e4m3", 4}, {"stmatrix", 8}}},
      {"int8",
       {.k = 128, .operand = DType::kI8, .result = DType::kI32, .accumulator = DType::kI32},
       {{"m64n128k32.s32.s8.s8", 4}}},
      {"a in registers", {.a_in_registers = true}, {{"m64n128k16.f32.f16.f16", 4}, {"ldmatrix", 4}}},
      {"one group, small tile", {.m = 64, .n = 32, .num_warps = 4}, {{"m64n32k16", 4}, {"bar.sync \t1, 128", 2}}},
      {"two slices of rows", {.m = 256, .n = 64}, {{"m64n64k16", 8}}},
  };
  for (const Variant& v : variants) {
    SCOPED_TRACE(v.what);
    const std::string ptx = ptx_of(hopper_gemm_ir(v.gemm));
    for (const auto& [text, times] : v.expected) EXPECT_EQ(count(ptx, text), times) << text;
    EXPECT_EQ(count(ptx, ".local"), 0);
    expect_clean_machine_code(ptx);
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::string refusal(const std::string& text, std::string_view target_name = "sm_90a") {
  auto module = parse(text);
  if (!module) return "";
  llvm::LLVMContext context;
  auto lowered = lower::lower_nvptx(*module, *target::find(target_name), context);
  EXPECT_FALSE(lowered.ok());
  if (lowered.ok()) return "";
  EXPECT_EQ(lowered.error().kind, ErrorKind::kUnsupported);
  return lowered.error().message;
}

TEST(Hopper, RefusesWhatCannotWork) {
  const std::string good = hopper_gemm_ir({});
  EXPECT_EQ(refusal(good, "sm_80"), "sm_80 has no mbarriers with transactions");
  EXPECT_EQ(refusal(good, "sm_90"), "sm_90 has no wgmma");
  EXPECT_EQ(refusal(replaced(good, "  %da = make_descriptor %a, %M",
                             "  %pid = program_id {axis = 0} : i32\n  %da = make_descriptor %a, %pid")),
            "this tensor is known only while the kernel runs, and TMA takes what the host can compute from the "
            "kernel's arguments");
}

/// The same GEMM, where one role loads a and another b: each announces its own bytes.
std::string of_two_producers(const HopperGemm& gemm) {
  const std::string text = hopper_gemm_ir(gemm), end = "    yield\n  }\n  return";
  const size_t begin = text.find("  } () {\n    %pst"), behind = text.rfind(end);
  const int64_t a_bytes = int64_t{gemm.m} * gemm.k * size_of(gemm.operand),
                b_bytes = int64_t{gemm.n} * gemm.k * size_of(gemm.operand);
  auto role = [&](std::string_view other, int64_t bytes) {
    std::string producer = text.substr(begin, behind - begin);
    const size_t load = producer.find(fmt::format("        tma_load %{}v_1", other));
    producer.erase(load, producer.find('\n', load) + 1 - load);
    return replaced(producer, fmt::format("bytes = {}", a_bytes + b_bytes), fmt::format("bytes = {}", bytes));
  };
  std::string second = std::regex_replace(role("a", b_bytes), std::regex("_1\\b|(%depth)\\b"), "$1_2");
  second = replaced(second, "%pst, %pph", "%pst_2, %pph_2");
  std::string whole = text.substr(0, begin) + role("b", a_bytes) + "    yield\n" + second + text.substr(behind);
  whole = replaced(replaced(whole, "  barrier\n", ""), "  warp_specialize", "  barrier\n  warp_specialize");
  return replaced(whole, "mbarrier_init %full {count = 1}", "mbarrier_init %full {count = 2}");
}

TEST(Hopper, EachRoleHasAWarp) {
  const HopperGemm gemm{.m = 256, .num_warps = 16};
  const std::string ptx = ptx_of(of_two_producers(gemm));
  EXPECT_EQ(count(ptx, "elect.sync"), 2) << ptx;
  EXPECT_EQ(count(ptx, "mbarrier.arrive.expect_tx"), 2);
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared::cluster.global"),
            count(ptx_of(hopper_gemm_ir(gemm)), "cp.async.bulk.tensor.2d.shared::cluster.global"));
  // Both are of one warp group, which gives its registers away. The second waits for what the first initialises.
  EXPECT_EQ(count(ptx, ".reqntid 640"), 1);
  EXPECT_EQ(count(ptx, "setmaxnreg.dec.sync.aligned.u32 \t40"), 1);
  EXPECT_EQ(count(ptx, "bar.sync \t0, 640"), 2);
  EXPECT_EQ(count(ptx, "bar.arrive \t0, 640"), 1);
  expect_clean_machine_code(ptx);
}

/// Sums that are read before their wait make the assembler wait after each product, which it only mentions.
TEST(Hopper, RemarksOfTheAssemblerAreKept) {
  if (codegen::toolkit_assembler_name().empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here";
  const std::string ptx = replaced(ptx_of(hopper_gemm_ir({})), "wgmma.wait_group.sync.aligned 0;", "");
  auto cubin = codegen::link_cubin(ptx, *target::find("sm_90a"));
  ASSERT_TRUE(cubin.ok()) << render(cubin.error());
  std::string remarks;
  for (const std::string& message : cubin->messages) remarks += message + "\n";
  EXPECT_NE(remarks.find("(C75"), std::string::npos) << remarks;
}

/// The text itself, on the played machine: what the GPU is given has no race, no deadlock, and the right sums.
void expect_right_when_played(const std::string& text) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 rng(seed);
  const int m = 70, n = 40, k = 130, lda = 136, ldb = 136, ldc = 48;
  auto module = parse(text);
  ASSERT_NE(module, nullptr);
  std::vector<uint16_t> a(static_cast<size_t>(m * lda)), b(static_cast<size_t>(n * ldb)),
      c(static_cast<size_t>(m * ldc), 0x7e00);
  for (auto* v : {&a, &b})
    for (uint16_t& x : *v)
      x = static_cast<uint16_t>(float_to_bits(DType::kF16, static_cast<double>(rng() % 9) - 4));  // exact sums
  interp::Memory memory;
  for (auto* v : {&a, &b, &c}) memory.allow(v->data(), v->size() * 2);
  auto address = [](const std::vector<uint16_t>& v) { return reinterpret_cast<uint64_t>(v.data()); };
  const uint64_t args[] = {address(a), address(b), address(c), m, n, k, lda, ldb, ldc};
  interp::DistributedOptions options;
  options.seed = seed;
  auto played = interp::run_distributed(*module, {2, 1, 1}, args, memory, options);
  ASSERT_TRUE(played.ok()) << render(played.error());
  auto at = [](const std::vector<uint16_t>& v, int i) {
    return float_from_bits(DType::kF16, v[static_cast<size_t>(i)]);
  };
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < ldc; ++column) {
      if (column >= n) {
        EXPECT_EQ(c[static_cast<size_t>(row * ldc + column)], 0x7e00);
        continue;
      }
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += at(a, row * lda + i) * at(b, column * ldb + i);
      ASSERT_EQ(at(c, row * ldc + column), sum) << row << ", " << column;
    }
}

TEST(Hopper, TheGemmIsRightOnThePlayedMachine) {
  const HopperGemm gemm{.m = 64, .n = 32, .stages = 2, .num_warps = 4};
  expect_right_when_played(hopper_gemm_ir(gemm));
  expect_right_when_played(of_two_producers(gemm));
}

TEST(Hopper, MapsAreMadeOfArguments) {
  auto module = parse(hopper_gemm_ir({.n = 256, .b_transposed = false}));
  ASSERT_NE(module, nullptr);
  auto plan = lower::plan_launch(*module, *target::find("sm_90a"));
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  EXPECT_EQ(plan->extra_warps, 4);
  ASSERT_EQ(plan->tensor_maps.size(), 3u);
  const TensorMapRecipe &c = plan->tensor_maps[0], &a = plan->tensor_maps[1], &b = plan->tensor_maps[2];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.box, (std::vector<int32_t>{128, 64}));
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.box, (std::vector<int32_t>{64, 64}));
  EXPECT_TRUE(c.stored && !a.stored);
  const uint64_t slots[] = {0x1000, 0x2000, 0x3000, 100, 200, 300, 304, 208, 208};
  EXPECT_EQ(evaluate(b.base, slots), 0x2000);
  EXPECT_EQ(evaluate(b.sizes[0], slots), 300);
  EXPECT_EQ(evaluate(b.sizes[1], slots), 200);
  EXPECT_EQ(evaluate(b.strides[0], slots), 208);
  EXPECT_EQ(b.strides[1].constant(), 1);
}

/// A tensor that the kernel finds in memory: no parameter has its map, which the kernel makes in a place of its own.
TEST(Hopper, MapsOfTensorsFoundInMemoryAreMadeByTheKernel) {
  const std::string text = R"(
layout L0 = [64, 64] {offset = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 32), (1, 8), (2, 16), (4, 32), (8, 0), (16, 0), (32, 0)]}
layout L1 = [32] {offset = [(1), (2), (4), (8), (16)]}
kernel @k(%p: *i64, %n: i32) attributes {num_warps = 4, num_stages = 2, num_ctas = 1, stage = "distributed", shared_bytes = 8448} {
  %tile = shared_alloc {shared_offset = 0} : shared bf16[64, 64]{L0}
  %room = shared_alloc {shared_offset = 8192} : shared i32[32]{L1}
  %full = shared_alloc {shared_offset = 8320} : barrier
  mbarrier_init %full {count = 1}
  barrier
  %zero = constant 0 : i32
  %one = constant 1 : i64
  %at = load %p : i64
  %found = int_to_ptr %at : *bf16
  %stride = cast %n : i64
  %d = make_descriptor %found, %n, %n, %stride, %one, %room {on_device = true} : desc bf16[64, 64]
  mbarrier_expect %full {bytes = 8192}
  tma_load %tile, %full, %d, %zero, %zero
  mbarrier_wait %full, %zero
  return
}
)";
  auto module = parse(text);
  ;
  ASSERT_NE(module, nullptr);
  auto plan = lower::plan_launch(*module, *target::find("sm_90a"));
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  EXPECT_TRUE(plan->tensor_maps.empty());
  ASSERT_EQ(plan->device_maps.size(), 1u);
  EXPECT_EQ(plan->device_maps[0].box, (std::vector<int32_t>{64, 64}));
  EXPECT_EQ(plan->device_maps[0].swizzle, 128);
  const std::string ptx = ptx_of(text);
  expect_clean_machine_code(ptx);
  for (const char* instruction :
       {"tensormap.replace.tile.global_address.shared::cta.b1024.b64",
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned",
        "fence.proxy.tensormap::generic.acquire.gpu", "st.release.gpu.global.b32"})
    EXPECT_EQ(count(ptx, instruction), 1) << instruction << "\n" << ptx;
  // LLVM 21 leaves out the scope, which is the GPU's then.
  EXPECT_EQ(count(ptx, "atom.acquire.gpu.global.cas.b32") + count(ptx, "atom.acquire.global.cas.b32"), 1) << ptx;
}

}  // namespace
}  // namespace kiln
