// Source lines in GPU code: they are there, they are right, and they change no instruction.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "compiler/codegen/backend.h"
#include "compiler/frontend/frontend.h"
#include "compiler/parse/parser.h"
#include "compiler/passes/pass.h"

namespace kiln {
namespace {

using Constexprs = std::vector<std::pair<std::string, frontend::Global>>;

frontend::Global number(int64_t value) { return ast::Constant(ast::Int{value}); }
frontend::Global text(std::string value) { return ast::Constant(std::move(value)); }
frontend::Global boolean(bool value) { return ast::Constant(value); }

constexpr const char* kAttention = R"(
import triton
import triton.language as tl

@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    depth = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + depth[None, :], mask=rows[:, None] < n, other=0.0)
    top = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    for start in range(0, n, N):
        columns = start + tl.arange(0, N)
        k = tl.load(k_ptr + columns[:, None] * D + depth[None, :], mask=columns[:, None] < n, other=0.0)
        v = tl.load(v_ptr + columns[:, None] * D + depth[None, :], mask=columns[:, None] < n, other=0.0)
        s = tl.dot(q, k.T) * scale
        s = tl.where(columns[None, :] < n, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new_top[:, None])
        old = tl.exp(top - new_top)
        total = total * old + tl.sum(p, 1)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    tl.store(out_ptr + rows[:, None] * D + depth[None, :], acc / total[:, None], mask=rows[:, None] < n)
)";

struct Case {
  const char* name;
  std::string source, kernel, signature;
  Constexprs constexprs;
  int num_warps = 4;
};

std::string kernel_file(const std::string& name) {
  std::ifstream in(std::string(KILN_SOURCE_DIR) + "/kernels/" + name + "/kernel.py");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Case> cases() {
  return {
      {"add",
       kernel_file("vector_add"),
       "add_kernel",
       "*fp32:16, *fp32:16, *fp32:16, i32:16",
       {{"BLOCK", number(1024)}}},
      {"softmax", kernel_file("softmax"), "softmax_kernel", "*fp32:16, *fp32:16, i32:16", {{"BLOCK", number(2048)}}},
      {"matmul",
       kernel_file("matmul_persistent"),
       "matmul_persistent",
       "*bf16:16, *bf16:16, *bf16:16, *bf16:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32:16",
       {{"A_IS_KM", boolean(false)},
        {"B_IS_NK", boolean(false)},
        {"BLOCK_M", number(128)},
        {"BLOCK_N", number(256)},
        {"BLOCK_K", number(64)},
        {"GROUP_M", number(8)},
        {"NUM_PROGRAMS", number(132)},
        {"ACTIVATION", text("gelu_tanh")},
        {"ACC", frontend::Global(DType::kF32)}},
       8},
      {"attention",
       kAttention,
       "attention",
       "*fp16:16, *fp16:16, *fp16:16, *fp32:16, i32:16, fp32",
       {{"M", number(64)}, {"N", number(64)}, {"D", number(64)}}},
  };
}

Result<codegen::CudaCode> build(const Case& c, bool line_info, const std::string& target_name = "sm_90a") {
  KILN_TRY(auto parsed, parse::parse_module(SourceText::make("kernel.py", c.source)));
  KILN_TRY(auto functions, frontend::jit_functions(parsed));
  const frontend::JitFunction* function = nullptr;
  for (const auto& f : functions)
    if (f->def->name == c.kernel) function = f.get();
  KILN_TRY(auto args, frontend::parse_signature(*function, c.signature, c.constexprs));
  frontend::Options options;
  options.num_warps = c.num_warps;
  KILN_TRY(auto module, frontend::lower_kernel(*function, args, options));
  const target::Target& target = *target::find(target_name);
  KILN_CHECK_OK(passes::run(passes::pipeline(target.kind), *module, target, {}));
  codegen::BackendOptions backend;
  backend.line_info = line_info;
  return codegen::build_cuda(*module, target, backend);
}

/// The lines of PTX that stand for instructions and declarations: without labels of debug information.
std::string without_lines(const std::string& ptx) {
  std::istringstream in(ptx);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    std::string_view rest = std::string_view(line).substr(first);
    if (rest.starts_with(".loc") || rest.starts_with(".file") || rest.starts_with(".section") ||
        rest.starts_with("$L__tmp") || rest.starts_with("$L__func_"))
      continue;
    out += line + "\n";
  }
  return out;
}

/// The bytes of the code sections of a cubin.
std::string code_of(const std::string& image) {
  std::string code;
  Elf64_Ehdr header;
  if (image.size() < sizeof header) return code;
  std::memcpy(&header, image.data(), sizeof header);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr s;
    std::memcpy(&s, image.data() + header.e_shoff + i * sizeof s, sizeof s);
    if (s.sh_flags & SHF_EXECINSTR) code.append(image, s.sh_offset, s.sh_size);
  }
  return code;
}

TEST(Lines, ChangeNoInstruction) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    auto with = build(c, true), without = build(c, false);
    ASSERT_TRUE(with.ok()) << render(with.error());
    ASSERT_TRUE(without.ok()) << render(without.error());
    EXPECT_NE(with->ptx.find(".loc"), std::string::npos);
    EXPECT_EQ(without->ptx.find(".loc"), std::string::npos);
    EXPECT_EQ(without_lines(with->ptx), without_lines(without->ptx));
    if (with->cubin.image.empty()) GTEST_SKIP() << "neither nvJitLink nor ptxas is here: PTX alone was compared";
    EXPECT_EQ(with->cubin.registers, without->cubin.registers);
    EXPECT_EQ(with->cubin.spill_bytes, without->cubin.spill_bytes);
    const std::string code = code_of(with->cubin.image);
    EXPECT_FALSE(code.empty());
    EXPECT_TRUE(code == code_of(without->cubin.image)) << code.size() << " bytes of code";
  }
}

/// The source lines that PTX refers to, of instructions for which `wanted` holds; 0 before the first .loc.
std::set<int> lines_with(const std::string& ptx, std::string_view wanted) {
  std::istringstream in(ptx);
  std::set<int> lines;
  int at = 0;
  for (std::string line; std::getline(in, line);) {
    if (size_t loc = line.find(".loc"); loc != std::string::npos) {
      int file = 0;
      std::istringstream(line.substr(loc + 4)) >> file >> at;
    } else if (line.find(wanted) != std::string::npos) {
      lines.insert(at);
    }
  }
  return lines;
}

int line_of(const std::string& source, std::string_view part) {
  const size_t at = source.find(part);
  return at == std::string::npos
             ? -1
             : 1 + static_cast<int>(std::count(source.begin(), source.begin() + static_cast<long>(at), '\n'));
}

TEST(Lines, LeadFromInstructionsToTheirStatements) {
  const Case add = cases()[0];
  auto code = build(add, true);
  ASSERT_TRUE(code.ok()) << render(code.error());
  EXPECT_EQ(lines_with(code->ptx, "ld.global"),
            (std::set{line_of(add.source, "x = tl.load"), line_of(add.source, "y = tl.load")}));
  EXPECT_EQ(lines_with(code->ptx, "st.global"), std::set{line_of(add.source, "tl.store")});
  EXPECT_EQ(lines_with(code->ptx, "add.rn.f32"), std::set{line_of(add.source, "tl.store")});
}

// A helper's code is inlined and keeps its own lines; the standard library's belongs to the line that called it.
TEST(Lines, OfInlinedFunctionsAreTheirOwn) {
  const Case matmul = cases()[2];
  auto code = build(matmul, true);
  ASSERT_TRUE(code.ok()) << render(code.error());
  EXPECT_EQ(lines_with(code->ptx, "wgmma.mma_async"), std::set{line_of(matmul.source, "acc = tl.dot(a, b, acc)")});
  EXPECT_EQ(lines_with(code->ptx, "ex2.approx"), std::set{line_of(matmul.source, "a * tl.exp2(p)")});
  const Case attention = cases()[3];
  auto on_ampere = build(attention, true, "sm_80");
  ASSERT_TRUE(on_ampere.ok()) << render(on_ampere.error());
  EXPECT_EQ(lines_with(on_ampere->ptx, "mma.sync"),
            (std::set{line_of(attention.source, "s = tl.dot"), line_of(attention.source, "+ tl.dot(p")}));
  EXPECT_EQ(lines_with(on_ampere->ptx, "ex2.approx"),
            (std::set{line_of(attention.source, "p = tl.exp"), line_of(attention.source, "old = tl.exp")}));
  // Reductions are in the standard library.
  EXPECT_TRUE(lines_with(on_ampere->ptx, "shfl.sync").contains(line_of(attention.source, "tl.max(s, 1)")));
}

}  // namespace
}  // namespace kiln
