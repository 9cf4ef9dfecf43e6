// One small kernel per row of remarks.def, in a file that is named after it, and what the compiler says of it.
// Command: "FewRows target=sm_90a signature=*fp16:16,i32:16 BLOCK=1024 num_warps=4", as kernel_file.h. Only the remarks
// of that name are compared, so that other passes may say more. With "FewRows target=sm_90a" the text is IR.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "compiler/codegen/backend.h"
#include "compiler/compile.h"
#include "support/diag.h"
#include "tests/docs_table.h"
#include "tests/golden/golden.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln {
namespace {

using passes::RemarkRow;

/// Rows that need an assembler, of which not every machine has one; their texts are tested without it below.
bool needs_assembler(const RemarkRow& row) { return row.pass == "cubin"; }

std::string remarks_of(const golden::Input& in) {
  std::istringstream words(in.command);
  std::string wanted, target, rest;
  words >> wanted >> target;
  std::getline(words, rest);
  if (!target.starts_with("target=")) return "the second word is target=NAME\n";
  // As IR: shapes that the language refuses.
  auto module = in.text.starts_with("kernel")
                    ? ir::parse_module(SourceText::make(in.file, in.text))
                    : frontend::testing::lower_text(in.file, in.text, frontend::testing::parse_command(rest));
  if (!module.ok()) return render(module.error());
  passes::Remarks remarks;
  CompileOptions options;
  options.target = target.substr(target.find('=') + 1);
  options.want_cubin = false;
  options.verify_each = true;
  options.remarks = &remarks;
  auto compiled = compile_ir(std::move(*module), options);
  std::string out, others;
  for (const passes::Remark& r : remarks.by_place())
    (passes::row_of(r.reason).name == wanted ? out : others) += to_string(r) + "\n";
  if (out.empty()) out = "none; there are\n" + others;
  return compiled.ok() ? out : out + render(compiled.error());
}

const bool kRegistered = golden::register_folder("remarks", remarks_of);

/// "FewRows" → "few_rows".
std::string file_of(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) && !out.empty()) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

TEST(Remarks, EachHasAKernelThatGetsIt) {
  for (const RemarkRow& row : passes::remark_rows()) {
    if (needs_assembler(row)) continue;
    const std::string path = fmt::format("{}/tests/golden/remarks/{}.txt", KILN_SOURCE_DIR, file_of(row.name));
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string seen = text.str(), tag = fmt::format("[{}/{}]", row.pass, row.name);
    EXPECT_NE(seen.find(tag), std::string::npos) << path << " has no remark " << tag;
  }
}

TEST(Remarks, DocumentationHasTheTable) {
  std::string table = "| kind | pass/reason | text |\n|---|---|---|\n";
  for (const RemarkRow& row : passes::remark_rows())
    table += fmt::format("| {} | {}/{} | {} |\n", name(row.kind), row.pass, row.name, row.text);
  kiln::testing::check_docs_table("remarks.md", "remarks", table);
}

/// What stands in docs/remarks.md between `open` and `close`.
std::string of_docs(std::string_view open, std::string_view close) {
  std::stringstream buffer;
  buffer << std::ifstream(fmt::format("{}/docs/remarks.md", KILN_SOURCE_DIR)).rdbuf();
  const std::string text = buffer.str();
  const size_t begin = text.find(open), end = text.find(close, begin + open.size());
  if (begin == std::string::npos || end == std::string::npos) return "";
  return text.substr(begin + open.size(), end - begin - open.size());
}

TEST(Remarks, OfTheDocumentationsExampleAreTheCompilers) {
  const std::string signature = of_docs("--signature '", "'");
  auto command = frontend::testing::parse_command(fmt::format("signature={} BLOCK=64", signature));
  auto module = frontend::testing::lower_text("gather_product.py", of_docs("```python\n", "```"), command);
  ASSERT_TRUE(module.ok()) << render(module.error());
  passes::Remarks remarks;
  CompileOptions options;
  options.target = "sm_90a";
  options.want_cubin = false;
  options.remarks = &remarks;
  auto compiled = compile_ir(std::move(*module), options);
  ASSERT_TRUE(compiled.ok()) << render(compiled.error());
  std::string out;
  for (const passes::Remark& r : remarks.by_place()) {
    const std::string_view pass = passes::row_of(r.reason).pass;
    if (pass == "recognize_blocks" || pass == "select_wgmma") out += to_string(r) + "\n";
  }
  EXPECT_EQ(of_docs(signature + "'\n", "```"), out);
}

TEST(Remarks, OfTheAssemblerStandAtTheKernel) {
  auto text = SourceText::make("k.py", "def kernel(x):\n");
  passes::Remarks remarks;
  const SourceRange place{text.get(), 4, 10};
  passes::remark(&remarks, place, passes::Reason::kSpills, 96, 255);
  passes::remark(&remarks, place, passes::Reason::kResources, 255, 49152, 8);
  passes::remark(&remarks, place, passes::Reason::kResources, 255, 49152, 8);  // said once
  passes::remark(&remarks, {}, passes::Reason::kAssembler, "C7510: wgmma is serialized");
  ASSERT_EQ(remarks.all().size(), 3u);
  EXPECT_EQ(to_string(remarks.all()[0]),
            "k.py:1:5: remark: missed: registers spill: 96 bytes of loads and stores, at 255 registers per thread "
            "[cubin/Spills]");
  EXPECT_EQ(to_string(remarks.all()[1]),
            "k.py:1:5: remark: analysis: 255 registers per thread, 49152 bytes of shared memory, 8 warps "
            "[cubin/Resources]");
  EXPECT_EQ(to_string(remarks.all()[2]), "remark: missed: C7510: wgmma is serialized [cubin/Assembler]");
}

/// A compilation without a listener records nothing, and makes the same code.
TEST(Remarks, ChangeNoCode) {
  const std::string kernel =
      "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef product(a, b, c):\n"
      "    i = tl.arange(0, 64)\n    x = tl.load(a + i[:, None] * 64 + i[None, :])\n"
      "    y = tl.load(b + i[:, None] * 64 + i[None, :])\n"
      "    tl.store(c + i[:, None] * 64 + i[None, :], tl.dot(x, y))\n";
  std::string ptx[2];
  passes::Remarks remarks;
  for (int asked : {0, 1}) {
    auto command = frontend::testing::parse_command("signature=*fp16:16,*fp16:16,*fp32:16");
    auto module = frontend::testing::lower_text("k.py", kernel, command);
    ASSERT_TRUE(module.ok()) << render(module.error());
    CompileOptions options;
    options.target = "sm_90a";
    options.want_cubin = false;
    if (asked) options.remarks = &remarks;
    auto compiled = compile_ir(std::move(*module), options);
    ASSERT_TRUE(compiled.ok()) << render(compiled.error());
    ptx[asked] = compiled->ptx;
  }
  EXPECT_EQ(ptx[0], ptx[1]);
  EXPECT_FALSE(remarks.all().empty());
}

}  // namespace
}  // namespace kiln
