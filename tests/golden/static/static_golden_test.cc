// What the kernels of kernels/ become on GPUs, so that a change of generated code shows in the diff of its commit.
// Input: one specialisation per line, "FOLDER kernel=… signature=… BLOCK=… num_warps=…" as in kernel_file.h.
// golden/static: PTX instructions, by kind. golden/cubin: registers, spills and shared memory, by one known assembler.
// Under another LLVM than the one they were blessed with, what does not depend on it is compared.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <regex>
#include <sstream>

#include "compiler/codegen/backend.h"
#include "compiler/codegen/host.h"
#include "compiler/passes/pass.h"
#include "support/files.h"
#include "tests/golden/golden.h"
#include "tests/unit/frontend/kernel_file.h"

namespace kiln {
namespace {

constexpr std::string_view kTargets[] = {"sm_80", "sm_90a"};
/// The assembler that golden/cubin was blessed with; others may allocate registers otherwise.
constexpr std::string_view kAssembler = "nvJitLink 13.0";
/// The LLVM that both folders were blessed with; others compute addresses otherwise.
constexpr std::string_view kLlvm = "22.";

/// Without the instructions that compute addresses and move, and without registers.
std::string without_addresses(const std::string& text) {
  static const std::regex varying(
      R"( \d+ ((add|mad\.lo|mov|mul\.wide|or|shl)\.[bsu]\d+|cvt\.[su]\d+\.[su]\d+);|\d+ (?=instructions|registers))");
  return std::regex_replace(text, varying, "");
}

golden::Compared compared() {
  if (codegen::llvm_version().starts_with(kLlvm)) return {};
  return without_addresses;
}

struct Built {
  codegen::CudaCode code;
  int64_t shared_bytes = 0;
};

Result<Built> build(const std::string& line, const target::Target& target, bool want_cubin) {
  const std::string folder = line.substr(0, line.find(' '));
  const std::string file = fmt::format("kernels/{}/kernel.py", folder);
  KILN_TRY(std::string text, read_file(fmt::format("{}/{}", KILN_SOURCE_DIR, file)));
  const auto command = frontend::testing::parse_command(line.substr(folder.size()));
  KILN_TRY(auto module, frontend::testing::lower_text(file, std::move(text), command));
  KILN_CHECK_OK(passes::run(passes::pipeline(target.kind), *module, target, {}));
  codegen::BackendOptions options;
  options.want_cubin = want_cubin;
  KILN_TRY(codegen::CudaCode code, codegen::build_cuda(*module, target, options));
  return Built{std::move(code), module->shared_bytes};
}

/// "ld.global.v4.b32" of "@%p1 ld.global.v4.b32 {…}, […];"; "" for directives, labels and comments.
std::string opcode_of(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line.back() != ';') return "";
  line.remove_prefix(first);
  if (line[0] == '@')
    line.remove_prefix(std::min(line.find_first_not_of(" \t", line.find_first_of(" \t")), line.size()));
  if (line.empty() || !std::islower(static_cast<unsigned char>(line[0]))) return "";
  return std::string(line.substr(0, line.find_first_of(" \t;")));
}

std::string instruction_mix(const std::string& ptx) {
  std::map<std::string, int> counts;
  int all = 0;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);)
    if (std::string opcode = opcode_of(line); !opcode.empty()) ++counts[opcode], ++all;
  std::string out = fmt::format("{} instructions:", all);
  for (const auto& [opcode, n] : counts) out += fmt::format(" {} {};", n, opcode);
  out.back() = '\n';
  return out;
}

template <class Fn>
std::string for_each_build(const golden::Input& in, bool want_cubin, Fn&& describe) {
  std::string out;
  std::istringstream lines(in.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    out += line + "\n";
    for (std::string_view name : kTargets) {
      auto built = build(line, *target::find(name), want_cubin);
      out += fmt::format("  {}: {}", name, built.ok() ? describe(*built) : render(built.error()));
    }
  }
  return out;
}

const bool kStatic = golden::register_folder(
    "static",
    [](const golden::Input& in) {
      return for_each_build(in, false, [](const Built& b) { return instruction_mix(b.code.ptx); });
    },
    compared());

std::string resources(const Built& b) {
  std::string text = fmt::format("{} registers, {} bytes of spills, {} bytes of shared memory\n",
                                 b.code.cubin.registers, b.code.cubin.spill_bytes, b.shared_bytes);
  for (const std::string& remark : b.code.cubin.messages) text += "    " + remark + "\n";
  return text;
}

class NoAssembler : public testing::Test {
 public:
  void TestBody() override {
    GTEST_SKIP() << "registers are compared with what " << kAssembler << " gives; here is '"
                 << codegen::toolkit_assembler_name() << "'";
  }
};

const bool kCubin = [] {
  if (codegen::toolkit_assembler_name() == kAssembler)
    return golden::register_folder(
        "cubin", [](const golden::Input& in) { return for_each_build(in, true, resources); }, compared());
  testing::RegisterTest("Golden_cubin", "all", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new NoAssembler; });
  return true;
}();

}  // namespace
}  // namespace kiln
