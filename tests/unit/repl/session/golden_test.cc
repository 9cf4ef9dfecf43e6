// Scripts with what they print, from tests/golden/script. An error is printed as the command line would show it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/parse/parser.h"
#include "repl/session/session.h"
#include "tests/golden/cases.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

/// Why there is no such device differs: no driver, a build without CUDA, fewer GPUs.
void hide_reason(std::string& out, const char* device) {
  const auto none = open_device(device);
  ASSERT_FALSE(none.ok()) << device;
  const std::string& reason = none.error().message;
  for (size_t at = 0; (at = out.find(reason, at)) != std::string::npos;)
    out.replace(at, reason.size(), fmt::format("<no {}>", device));
}

/// The statements of each line, in place: behind blank lines.
std::vector<std::string> entries_of(const std::string& text) {
  auto module = parse::parse_module(SourceText::make("script.py", text));
  if (!module.ok()) return {text};
  std::vector<size_t> starts;
  for (const ast::StmtPtr& s : (*module)->body) {
    size_t begin = s->range.begin;
    if (const auto* f = ast::dyn_as<ast::FunctionDef>(s.get())) begin = f->full_range.begin;
    const size_t line = begin == 0 ? 0 : text.rfind('\n', begin - 1) + 1;
    if (starts.empty() || starts.back() != line) starts.push_back(line);
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : text.size();
    const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(starts[i]), '\n');
    out.push_back(std::string(static_cast<size_t>(lines), '\n') + text.substr(starts[i], end - starts[i]));
  }
  return out;
}

std::string run_script(const std::string& text, Mode mode) {
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  setenv("KILN_TUNE_RECORDS", "0", 1);  // each run tunes anew
  auto cpu = open_device("cpu");
  EXPECT_TRUE(cpu.ok());
  if (cpu.ok()) options.device = *cpu;
  Session session(std::move(options));
  for (const std::string& entry : mode == Mode::kInteractive ? entries_of(text) : std::vector{text}) {
    Status status = session.run(entry, "script.py", mode);
    if (status.ok()) continue;
    out += render(status.error());
    break;
  }
  hide_reason(out, "cuda:77");
  return out;
}

class ScriptGolden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(ScriptGolden, Matches) {
  std::string name = GetParam().filename().string();
  Mode mode = name.rfind("prompt_", 0) == 0 ? Mode::kInteractive : Mode::kFile;
  kiln::testing::check_golden(GetParam(),
                              [&](const kiln::testing::GoldenCase& c) { return run_script(c.input, mode); });
}

INSTANTIATE_TEST_SUITE_P(Files, ScriptGolden, ::testing::ValuesIn(kiln::testing::golden_files("script")),
                         [](const auto& file) {
                           std::string name = file.param.stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace kiln::script
