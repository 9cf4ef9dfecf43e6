// Dots of every type down to PTX, and through the assembler where one is there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "compiler/compile.h"
#include "compiler/parse/parser.h"

namespace kiln {
namespace {

constexpr const char* kKernel = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANS: tl.constexpr,
            PRECISION: tl.constexpr, OUT: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(x + m * K + k[None, :])
    if TRANS:
        b = tl.load(y + n[:, None] * K + k[None, :]).T
    else:
        b = tl.load(y + k[:, None] * N + n[None, :])
    tl.store(out + m * N + n[None, :], tl.dot(a, b, input_precision=PRECISION, out_dtype=OUT))
)";

struct DotRow {
  const char *x, *y, *out;
  DType out_dtype;
  const char *precision, *everywhere, *sm_89;  // what the PTX must have
};
constexpr DotRow kRows[] = {
    {"fp16", "fp16", "fp32", DType::kF32, "tf32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", nullptr},
    {"fp16", "fp16", "fp16", DType::kF16, "tf32", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", nullptr},
    {"bf16", "bf16", "fp32", DType::kF32, "tf32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", nullptr},
    {"fp32", "fp32", "fp32", DType::kF32, "tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", nullptr},
    {"fp32", "fp32", "fp32", DType::kF32, "tf32x3", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", nullptr},
    {"fp32", "fp32", "fp32", DType::kF32, "ieee", "fma.rn.f32", nullptr},
    {"fp64", "fp64", "fp64", DType::kF64, "tf32", "fma.rn.f64", nullptr},
    {"i8", "i8", "i32", DType::kI32, "tf32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", nullptr},
    {"u8", "u8", "i32", DType::kI32, "tf32", "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", nullptr},
    {"fp8e4nv", "fp8e5", "fp32", DType::kF32, "tf32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
     "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"},
    {"fp8e5", "fp8e4nv", "fp16", DType::kF16, "tf32", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", nullptr},
};

Result<CompiledKernel> compile_product(const DotRow& row, int m, int n, bool trans, const std::string& target,
                                       bool want_cubin, int depth = 32) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("product.py", kKernel)));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  const std::vector<std::pair<std::string, frontend::Global>> constants = {
      {"M", ast::Constant(ast::Int{m})},        {"N", ast::Constant(ast::Int{n})},
      {"K", ast::Constant(ast::Int{depth})},    {"TRANS", ast::Constant(trans)},
      {"OUT", frontend::Global(row.out_dtype)}, {"PRECISION", ast::Constant(std::string(row.precision))}};
  KILN_TRY(auto args, frontend::parse_signature(
                          *functions.at(0), fmt::format("*{}:16, *{}:16, *{}:16", row.x, row.y, row.out), constants));
  CompileOptions options;
  options.target = target;
  options.verify_each = true;
  options.want_cubin = want_cubin;
  return compile(*functions.at(0), args, options);
}

TEST(DotCompile, EveryTypeToItsInstruction) {
  struct Size {
    int m, n;
    bool trans;
  };
  for (const DotRow& row : kRows)
    for (const Size& size : {Size{64, 32, true}, Size{16, 16, false}, Size{128, 8, true}, Size{4, 64, false}})
      for (const std::string target : {"sm_80", "sm_89", "sm_90", "sm_90a"}) {
        SCOPED_TRACE(fmt::format("{} x {} in {} {} [{}, {}] on {}", row.x, row.y, row.out, row.precision, size.m,
                                 size.n, target));
        auto kernel = compile_product(row, size.m, size.n, size.trans, target,
                                      size.m == 64 && (target == "sm_80" || target == "sm_90a"));
        ASSERT_TRUE(kernel.ok()) << render(kernel.error());
        const char* wanted = target == "sm_89" && row.sm_89 ? row.sm_89 : row.everywhere;
        const bool by_groups = target == "sm_90a" && kernel->ptx.find("wgmma.mma_async") != std::string::npos;
        EXPECT_TRUE(by_groups || kernel->ptx.find(wanted) != std::string::npos) << wanted << "\n" << kernel->ptx;
        // Where the hardware multiplies f16, the conversion is ours: ptxas 13.0.88 does it wrongly for some constants.
        if (target != "sm_89") {
          EXPECT_EQ(kernel->ptx.find("mma.sync.aligned.m16n8k32.row.col.f32"), std::string::npos) << kernel->ptx;
        }
        if (std::string_view(wanted).starts_with("mma")) {
          EXPECT_LE(kernel->spill_bytes, 0);
        }
      }
}

/// A thread's only sum along a long k is added up in parts, so that instructions need not wait for one another.
TEST(DotCompile, OneSumIsMadeInParts) {
  for (const auto& [depth, parts] : {std::pair{128, 1}, {256, 2}, {512, 4}, {1024, 4}})
    for (const DotRow& row : {kRows[0], kRows[2]}) {
      SCOPED_TRACE(fmt::format("{} of depth {}", row.x, depth));
      auto kernel = compile_product(row, 16, 16, /*trans=*/true, "sm_80", true, depth);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      const std::regex sum(R"(add(\.rn)?\.f32)"), product(R"(mma\.sync)");
      const auto count = [&](const std::regex& what) {
        return std::distance(std::sregex_iterator(kernel->ptx.begin(), kernel->ptx.end(), what), {});
      };
      EXPECT_EQ(count(product), depth / 16) << kernel->ptx;
      EXPECT_EQ(count(sum), 4 * (parts - 1)) << kernel->ptx;
    }
}

Result<CompiledKernel> compile_text(const char* text, const std::string& signature, const CompileOptions& options) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make("product.py", text)));
  KILN_TRY(auto functions, frontend::jit_functions(module));
  KILN_TRY(auto args, frontend::parse_signature(*functions.at(0), signature, {}));
  return compile(*functions.at(0), args, options);
}

/// A tile that products sum over along both of its dimensions (flash-linear-attention's chunks do), computed from bytes
/// or halves and loaded, in no loop and in one.
TEST(DotCompile, TilesAreSummedOverBothDimensions) {
  constexpr const char* kBothWays = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, u, out, steps):
    t = tl.arange(0, 64)
    k = tl.arange(0, 32)
    acc = tl.zeros((64, 64), tl.float32)
    for i in range({}):
        a = tl.load(x + i * 4096 + t[:, None] * 64 + t[None, :])
        b = tl.load(u + i * 2048 + t[:, None] * {} + k[None, :] * {}).to({})
        w = tl.dot(a, b)
        acc += tl.dot(w.to(b.dtype), tl.trans(b))
    tl.store(out + t[:, None] * 64 + t[None, :], acc)
)";
  struct Row {
    const char *x, *u, *made;
    int wgmma;  // at least, whichever way the tile lies in memory
  };
  for (const Row& row :
       {Row{"fp32", "fp16", "tl.float32", 2}, Row{"fp32", "fp32", "tl.float32", 0}, Row{"fp16", "i8", "tl.float16", 2},
        Row{"bf16", "bf16", "tl.bfloat16", 2}, Row{"i8", "i8", "tl.int8", 0}, Row{"i8", "i32", "tl.int8", 0},
        Row{"fp8e4nv", "fp16", "tl.float8e4nv", 0}, Row{"fp8e4nv", "fp8e4nv", "tl.float8e4nv", 0},
        Row{"fp8e5", "fp8e5", "tl.float8e5", 0}})
    for (const char* steps : {"1", "steps"})
      for (const bool turned : {false, true}) {
        const std::string text = fmt::format(kBothWays, steps, turned ? 1 : 32, turned ? 64 : 1, row.made);
        CompileOptions options;
        options.target = "sm_90a";
        options.verify_each = true;
        options.want_cubin = true;
        SCOPED_TRACE(fmt::format("{} x {}\n{}", row.x, row.u, text));
        auto kernel = compile_text(text.c_str(), fmt::format("*{}:16, *{}:16, *fp32:16, i32", row.x, row.u), options);
        ASSERT_TRUE(kernel.ok()) << render(kernel.error());
        const std::regex wgmma("wgmma\\.mma_async");
        const auto found = std::distance(std::sregex_iterator(kernel->ptx.begin(), kernel->ptx.end(), wgmma), {});
        EXPECT_GE(found, row.wgmma) << kernel->ptx;
      }
}

/// Rings of vectors count where the rings of tiles leave little room.
TEST(DotCompile, RingsFitBesideTheScratchOfTheirLoop) {
  constexpr const char* kScaled = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, s, t, y, out, n, stride):
    m, k, c = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 256)
    acc = tl.zeros((128, 256), tl.float32)
    for i in range(0, n, 64):
        a = tl.load(x + m[:, None] * stride + k[None, :] * stride)
        a *= tl.exp(tl.load(t + k * stride))[None, :]
        a *= tl.load(s + k * stride)
        acc = tl.dot(a, tl.load(y + k[:, None] * stride + c[None, :] * stride), acc)
        x += 64 * stride
        y += 64 * stride
        s += 64 * stride
        t += 64 * stride
    tl.store(out + m[:, None] * 256 + c[None, :], acc)
)";
  CompileOptions options;
  options.target = "sm_90";
  auto kernel = compile_text(kScaled, "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32", options);
  EXPECT_TRUE(kernel.ok()) << render(kernel.error());
}

/// Of a vector that is copied ahead most threads hold copies: those leave its copies out by a predicate, since a branch
/// parts what ptxas schedules together.
TEST(DotCompile, CopiesOfVectorsAreNotBranchedAround) {
  constexpr const char* kDecayed = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, g, y, out, n):
    m, k = tl.arange(0, 32), tl.arange(0, 64)
    acc = tl.zeros((32, 32), tl.float32)
    for i in range(0, n, 64):
        a = tl.load(x + m[:, None] * n + (i + k)[None, :])
        b = tl.load(y + (i + k)[:, None] * 32 + m[None, :])
        b = (b * tl.exp2(tl.load(g + (i + k) * 8))[:, None]).to(tl.bfloat16)
        acc = tl.dot(a, b, acc)
    tl.store(out + m[:, None] * 32 + m[None, :], acc)
)";
  CompileOptions options;
  options.target = "sm_90";
  auto kernel = compile_text(kDecayed, "*bf16:16, *fp32:16, *bf16:16, *fp32:16, i32:16", options);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  const std::regex predicated(R"(@%p\d+ cp\.async\.ca\.shared\.global \[%r\d+\], \[%rd\d+\], 4, )");
  EXPECT_TRUE(std::regex_search(kernel->ptx, predicated)) << kernel->ptx;
}

/// A mixture of experts in float8 with a scale for each row and block of columns. The rows' numbers are also those of a
/// store of halves, whose layout would have copies of eight bytes; the scales change layouts through shared memory,
/// with barriers, for which the product need not wait.
TEST(DotCompile, ScalesAreConvertedBesideTheProduct) {
  constexpr const char* kExperts = R"(
import triton
import triton.language as tl

@triton.jit
def experts(a, b, c, a_scale, b_scale, rows, experts, n, k, stride_a, stride_b, stride_s):
    row = tl.load(rows + tl.program_id(0) * 64 + tl.arange(0, 64))
    inside = row < n
    expert = tl.load(experts + tl.program_id(0))
    column, depth = tl.arange(0, 128), tl.arange(0, 128)
    at = c + row[:, None] * 128 + column[None, :]
    if expert == -1:
        tl.store(at, tl.zeros((64, 128), tl.bfloat16), mask=inside[:, None] & (column[None, :] < n))
        return
    pa = a + row[:, None] * stride_a + depth[None, :]
    pb = b + expert * stride_b + depth[:, None] + column[None, :] * stride_a
    acc = tl.zeros((64, 128), tl.float32)
    for i in range(0, tl.cdiv(k, 128)):
        x = tl.load(pa, mask=inside[:, None] & (depth[None, :] < k - i * 128), other=0.0)
        y = tl.load(pb, mask=depth[:, None] < k - i * 128, other=0.0)
        xs = tl.load(a_scale + row * stride_s + i, mask=inside, other=0.0)
        ys = tl.load(b_scale + column // 128 * stride_s + i)
        acc += tl.dot(x, y) * xs[:, None] * ys[None, :]
        pa += 128
        pb += 128
    tl.store(at, acc.to(tl.bfloat16), mask=inside[:, None] & (column[None, :] < n))
)";
  CompileOptions options;
  options.target = "sm_90a";
  options.verify_each = true;
  auto kernel = compile_text(kExperts,
                             "*fp8e4nv:16, *fp8e4nv:16, *bf16:16, *fp32:16, *fp32:16, *i32:16, *i32:16, i32, i32:16, "
                             "i32:16, i32:16, i32",
                             options);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  const std::string& ptx = kernel->ptx;
  EXPECT_FALSE(std::regex_search(ptx, std::regex(R"(cp\.async\.c[ag]\.shared\.global \[%r\d+\], \[%rd\d+\], 8[,;])")))
      << ptx;
  // One barrier, behind which all have copied, and then the product.
  const size_t product = ptx.find("wgmma.mma_async"), wait = ptx.rfind("cp.async.wait_group", product);
  ASSERT_NE(product, std::string::npos) << ptx;
  ASSERT_NE(wait, std::string::npos) << ptx;
  const std::string before = ptx.substr(wait, product - wait);
  const std::regex barrier("bar(rier)?\\.sync");
  EXPECT_EQ(std::distance(std::sregex_iterator(before.begin(), before.end(), barrier), {}), 1) << ptx;
}

/// Wide operands of sums in registers stay in shared memory: made ahead of the loop, computed in it, or loaded; also
/// where one size is small and others are deep, whose patterns in shared memory are none of the hardware's.
TEST(DotCompile, SumsOfFloat32KeepTheirRegisters) {
  constexpr const char* kChained = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, o, n):
    m, c, d = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
    acc = tl.zeros([ROWS, COLUMNS], tl.float32)
    x = tl.load(a + m[:, None] * DEPTH + d[None, :])
    for s in range(0, n, DEPTH):
        y = tl.load(b + (s + d)[:, None] * COLUMNS + c[None, :])
        acc = tl.dot(x * 2.0, tl.exp(y), acc, input_precision="ieee")
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(o + m[:, None] * COLUMNS + c[None, :], acc)
)";
  for (const auto& [rows, columns, depth, warps] :
       {std::tuple{32, 16, 64, 2}, {128, 16, 64, 4}, {16, 32, 128, 8}, {64, 64, 64, 4}, {16, 16, 64, 8}}) {
    std::string text = kChained;
    for (const auto& [name, value] : {std::pair("ROWS", rows), {"COLUMNS", columns}, {"DEPTH", depth}})
      for (size_t i; (i = text.find(name)) != std::string::npos;)
        text.replace(i, std::string_view(name).size(), std::to_string(value));
    SCOPED_TRACE(fmt::format("{} x {} x {} by {} warps", rows, columns, depth, warps));
    CompileOptions options;
    options.target = "sm_90a";
    options.frontend.num_warps = warps;
    auto kernel = compile_text(text.c_str(), "*fp32:16, *fp32:16, *fp32:16, i32:16", options);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    EXPECT_LE(kernel->spill_bytes, 128) << kernel->registers << " registers";
  }
}

/// How many additions of floats stand behind one another at most.
int longest_sum(const std::string& ptx) {
  const std::regex addition(R"(add\.rn\.f32\s+(%\w+), (%\w+), (%\w+);)");
  std::map<std::string, int> depth;
  int longest = 0;
  for (std::sregex_iterator i(ptx.begin(), ptx.end(), addition), end; i != end; ++i)
    longest = std::max(longest, depth[(*i)[1]] = 1 + std::max(depth[(*i)[2]], depth[(*i)[3]]));
  return longest;
}

/// Beside the products of one warp group a thread's 16 elements of a row are summed by two chains, else by a tree.
TEST(DotCompile, TwoSumsRunThroughARowBesideProducts) {
  constexpr const char* kWeights = R"(
import triton
import triton.language as tl

@triton.jit
def attention(q, k, v, out, n, m):
    r, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, 64)
    x = tl.load(q + r[:, None] * 64 + d[None, :])
    acc = tl.zeros((M, 64), tl.float32)
    total = tl.zeros((M,), tl.float32)
    for i in range(0, n, 64):
        c = i + tl.arange(0, 64)
        y = tl.load(k + c[None, :] * 64 + d[:, None], mask=(c[None, :] < n) & (c[None, :] < m), other=0.0)
        p = tl.exp2(tl.dot(x, y))
        total += tl.sum(p, 1)
        z = tl.load(v + c[:, None] * 64 + d[None, :], mask=(c[:, None] < n) & (c[:, None] < m), other=0.0)
        acc = tl.dot(p.to(tl.float16), z, acc)
    tl.store(out + r[:, None] * 64 + d[None, :], acc / total[:, None])
)";
  for (const int warps : {4, 8}) {
    CompileOptions options;
    options.target = "sm_90a";
    options.frontend.num_warps = warps;
    std::string text = kWeights;
    text.replace(text.find("n, m):"), 5, "n, m, M: tl.constexpr = " + std::to_string(16 * warps) + ")");
    auto kernel = compile_text(text.c_str(), "*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32, i32", options);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    EXPECT_NE(kernel->ptx.find("wgmma.mma_async"), std::string::npos);
    // Of the elements, then over four lanes, then with the sum of the iterations before.
    EXPECT_EQ(longest_sum(kernel->ptx), (warps == 4 ? 8 : 4) + 3) << kernel->ptx;
  }
}

/// Half of this A is a zero, the value that the sum starts from: the first instruction of the product would write it
/// before the last one has read it.
TEST(DotCompile, ASumSharesNoRegisterWithAnOperand) {
  constexpr const char* kTriangle = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, y, out):
    m = tl.arange(0, 64)
    a = tl.load(x + m[:, None] * 64 + m[None, :])
    b = tl.load(y + m[:, None] * 64 + m[None, :])
    s = tl.dot(a, b)
    s = tl.where((m[:, None] >= m[None, :]), s, 0)
    tl.store(out + m[:, None] * 64 + m[None, :], tl.dot(s.to(b.dtype), b))
)";
  CompileOptions options;
  options.target = "sm_90a";
  auto kernel = compile_text(kTriangle, "*bf16:16, *bf16:16, *fp32:16", options);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  const std::regex by_registers(R"(wgmma\.mma_async\S* \{([^}]*)\}, \{([^}]*)\})");
  int products = 0;
  for (std::sregex_iterator i(kernel->ptx.begin(), kernel->ptx.end(), by_registers), end; i != end; ++i, ++products) {
    const std::string sums = (*i)[1].str() + ",";
    std::istringstream operands((*i)[2].str());
    for (std::string word; std::getline(operands, word, ',');)
      EXPECT_EQ(sums.find(word.substr(word.find('%')) + ","), std::string::npos) << word << " in " << i->str();
  }
  EXPECT_EQ(products, 4) << kernel->ptx;
  // Descriptors are made beside the instructions, not held in registers.
  EXPECT_FALSE(std::regex_search(kernel->ptx, std::regex(R"(wgmma\.mma_async[^\n]*%rd)"))) << kernel->ptx;
}

/// 256 KB of sums, which shared memory cannot turn into rows for wide stores: they are stored as the instruction gave
/// them.
TEST(DotCompile, ASumLargerThanSharedMemoryIsStored) {
  constexpr const char* kLarge = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, y, out, N):
    m = tl.arange(0, 256)
    k = tl.arange(0, 64)
    a = tl.load(x + m[:, None] * 64 + k[None, :])
    b = tl.load(y + m[None, :] * 64 + k[:, None])
    tl.store(out + m[:, None] * N + m[None, :], tl.dot(a, b), mask=m[:, None] < N)
)";
  CompileOptions options;
  options.target = "sm_80";
  options.frontend.num_warps = 8;
  auto kernel = compile_text(kLarge, "*i8:16, *i8:16, *i32:16, i32:16", options);
  EXPECT_TRUE(kernel.ok()) << render(kernel.error());
}

/// TMA would bring what is multiplied once no sooner than loads of 16 bytes do, all at once. It stays where there is a
/// loop or a product ahead of a load, where a mask would part these loads, and where there are too many of them.
TEST(DotCompile, OperandsOfOneTripAreLoadedByTheWarps) {
  constexpr const char* kOnce = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, y, out, R, M: tl.constexpr = {}, N: tl.constexpr = {}, K: tl.constexpr = {}, KIND: tl.constexpr = "{}"):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    k = tl.arange(0, K)
    xs = x + m * K + k[None, :]
    ys = y + k[:, None] * N + n
    s = tl.zeros((M, N), tl.float32)
    if KIND == "masked":
        s = tl.dot(tl.load(xs, mask=k[None, :] < R, other=0), tl.load(ys, mask=k[:, None] < R, other=0))
    elif KIND == "loop":
        for i in range(R):
            s = tl.dot(tl.load(xs + i * K), tl.load(ys + i * K * N), s)
    else:
        s = tl.dot(tl.load(xs), tl.load(ys))
        if KIND == "twice":
            s = tl.dot(tl.load(xs + M * K), tl.load(ys + K * N), s)
    tl.store(out + m * N + n, s)
)";
  struct Row {
    int m, n, k;
    const char* kind;
    bool by_tma;
    const char* by;
  };
  for (const Row& row :
       {Row{128, 128, 64, "once", false, "wgmma.mma_async"}, Row{32, 128, 64, "once", false, "mma.sync"},
        Row{128, 128, 64, "masked", true, "wgmma.mma_async"}, Row{128, 128, 64, "loop", true, "wgmma.mma_async"},
        Row{128, 128, 256, "once", true, "wgmma.mma_async"}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}, {}", row.m, row.n, row.k, row.kind));
    CompileOptions options;
    options.target = "sm_90a";
    const std::string text = fmt::format(fmt::runtime(kOnce), row.m, row.n, row.k, row.kind);
    auto kernel = compile_text(text.c_str(), "*fp16:16, *fp16:16, *fp32:16, i32", options);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    EXPECT_EQ(kernel->ptx.find("cp.async.bulk.tensor") != std::string::npos, row.by_tma) << kernel->ptx;
    const bool by_warps =
        kernel->ptx.find("ld.global.v4") != std::string::npos || kernel->ptx.find("cp.async.cg") != std::string::npos;
    EXPECT_EQ(by_warps, !row.by_tma) << kernel->ptx;
    EXPECT_NE(kernel->ptx.find(row.by), std::string::npos) << kernel->ptx;
  }
}

/// Halves that are multiplied as tf32 come by ldmatrix, two along k to a thread, in either order of memory; bytes that
/// are multiplied as halves come four at a time, and their bytes are not read one by one.
TEST(DotCompile, WidenedOperandsAreReadAsTheyWereLoaded) {
  constexpr const char* kWidened = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, y, out, R, T: tl.constexpr = {}, TURNED: tl.constexpr = {}):
    m, n, k = tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 32)
    s = tl.zeros((32, 64), tl.float32)
    for i in range(0, R, 32):
        a = tl.load(x + m[:, None] * R + i + k[None, :])
        if TURNED:
            b = tl.load(y + n[None, :] * R + i + k[:, None])
        else:
            b = tl.load(y + (i + k)[:, None] * 64 + n[None, :])
        s = tl.dot(a.to(T), b.to(T), s)
    tl.store(out + m[:, None] * 64 + n[None, :], s)
)";
  struct Row {
    const char *loaded, *to, *turned, *wanted;
  };
  for (const Row& row : {Row{"fp16", "tl.float32", "True", "ldmatrix"}, Row{"bf16", "tl.float32", "False", "ldmatrix"},
                         Row{"i8", "tl.float16", "True", "ldmatrix"}, Row{"fp8e5", "tl.bfloat16", "True", "ldmatrix"}})
    for (const char* target : {"sm_80", "sm_90"}) {
      SCOPED_TRACE(fmt::format("{} to {}, {} on {}", row.loaded, row.to, row.turned, target));
      CompileOptions options;
      options.target = target;
      options.verify_each = true;
      const std::string text = fmt::format(fmt::runtime(kWidened), row.to, row.turned);
      auto kernel = compile_text(text.c_str(), fmt::format("*{0}:16, *{0}:16, *fp32:16, i32:16", row.loaded), options);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      EXPECT_NE(kernel->ptx.find("ldmatrix"), std::string::npos) << kernel->ptx;
      EXPECT_FALSE(std::regex_search(kernel->ptx, std::regex(R"(ld\.shared\.(b|u|s)(8|16)\s)"))) << kernel->ptx;
      if (std::string_view(row.to) == "tl.float32") {
        EXPECT_EQ(kernel->ptx.find("st.shared"), std::string::npos) << kernel->ptx;
      }
    }
}

/// Four lanes hold 32 bytes of a fragment's row. What is multiplied once is stored by whole rows, 16 bytes per thread;
/// behind a loop, floats are stored as they are held.
TEST(DotCompile, ResultsOfOneTripAreStoredByRows) {
  constexpr const char* kStored = R"(
import triton
import triton.language as tl

@triton.jit
def product(x, y, out, R, S: tl.constexpr = {}, LOOP: tl.constexpr = {}):
    m = tl.arange(0, S)
    xs = x + m[:, None] * S + m[None, :]
    ys = y + m[:, None] * S + m[None, :]
    if LOOP:
        s = tl.zeros((S, S), tl.float32)
        for i in range(R):
            s = tl.dot(tl.load(xs + i * S), tl.load(ys + i * S * S), s)
    else:
        s = tl.dot(tl.load(xs), tl.load(ys))
    tl.store(out + m[:, None] * S + m[None, :], s.to(out.dtype.element_ty))
)";
  struct Row {
    int size;
    const char *loop, *out, *stores;
  };
  for (const Row& row : {Row{64, "False", "fp32", "st.global.v4.b32"}, Row{64, "True", "fp32", "st.global.v2.b32"},
                         Row{32, "False", "bf16", "st.global.v4.b32"}})
    for (const char* target : {"sm_80", "sm_90a"}) {
      SCOPED_TRACE(fmt::format("{}, {}, {} on {}", row.size, row.loop, row.out, target));
      CompileOptions options;
      options.target = target;
      options.verify_each = true;
      const std::string text = fmt::format(fmt::runtime(kStored), row.size, row.loop);
      auto kernel = compile_text(text.c_str(), fmt::format("*bf16:16, *bf16:16, *{}:16, i32", row.out), options);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      EXPECT_NE(kernel->ptx.find(row.stores), std::string::npos) << kernel->ptx;
    }
}

// ptxas writes iterations out that it can count: of 21 with 128 sums each for a second and a half.
TEST(DotCompile, LoopsOfWarpGroupsStayLoops) {
  constexpr char kGathered[] = R"(
import triton
import triton.language as tl

@triton.jit
def rows(x, places, y, out, k, KNOWN: tl.constexpr):
    m = tl.arange(0, 128)
    d = tl.arange(0, 32)
    at = tl.load(places + m)
    acc = tl.zeros((128, 128), tl.float32)
    depth = 672 if KNOWN else k
    for i in range(0, depth, 32):
        a = tl.load(x + at[:, None] * 672 + i + d[None, :], mask=at[:, None] >= 0, other=0.0)
        b = tl.load(y + (i + d)[:, None] * 128 + m[None, :])
        acc += tl.dot(a, b)
    tl.store(out + m[:, None] * 128 + m[None, :], acc)
)";
  for (const char* known : {"True", "False"}) {
    SCOPED_TRACE(known);
    CompileOptions options;
    options.target = "sm_90a";
    options.frontend.num_stages = 4;
    std::string text = kGathered;
    text.replace(text.find("KNOWN: tl.constexpr"), 19, std::string("KNOWN: tl.constexpr = ") + known);
    auto kernel = compile_text(text.c_str(), "*bf16:16, *i32:16, *bf16:16, *fp32:16, i32", options);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    EXPECT_NE(kernel->ptx.find("wgmma.mma_async"), std::string::npos) << kernel->ptx;
    EXPECT_EQ(kernel->ptx.find(".pragma \"nounroll\"") != std::string::npos, known == std::string("True"))
        << kernel->ptx;
  }
}

/// A mask that all elements of a copy share is a predicate: as a size it would take two instructions of each copy.
TEST(Dot, CopiesUnderAMaskTakeAPredicate) {
  constexpr const char* kMasked = R"(
import triton
import triton.language as tl

@triton.jit
def product(a, b, out, m):
    n: tl.constexpr = 64
    row = tl.program_id(0) * 64 + tl.arange(0, 64)
    column = tl.arange(0, n)
    depth = tl.arange(0, 16)
    acc = tl.zeros((64, n), tl.float32)
    for i in range(0, 1024, 16):
        x = tl.load(a + row[:, None] * 1024 + i + depth[None, :], mask=(row < m)[:, None], other=0.0)
        y = tl.load(b + (i + depth)[:, None] * n + column[None, :])
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(out + row[:, None] * n + column[None, :], acc, mask=(row < m)[:, None])
)";
  CompileOptions options;
  options.target = "sm_90a";
  auto kernel = compile_text(kMasked, "*fp32:16, *fp32:16, *fp32:16, i32", options);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  EXPECT_TRUE(
      std::regex_search(kernel->ptx, std::regex(R"(cp\.async\.cg\.shared\.global \[[^\]]+\], \[[^\]]+\], 16, %p)")))
      << kernel->ptx;
  EXPECT_FALSE(
      std::regex_search(kernel->ptx, std::regex(R"(cp\.async\.c[ag]\.shared\.global \[[^\]]+\], \[[^\]]+\], \d+, %r)")))
      << kernel->ptx;
}

}  // namespace
}  // namespace kiln
