// Scripts with what they print, from tests/golden/script. An error is printed as the command line would show it.
#include <gtest/gtest.h>

#include "repl/script/session.h"
#include "tests/golden/cases.h"

namespace kiln::script {
namespace {

std::string run_script(const std::string& text, Mode mode) {
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  setenv("KILN_TUNE_RECORDS", "0", 1);  // each run tunes anew
  auto cpu = Device::open("cpu");
  EXPECT_TRUE(cpu.ok());
  if (cpu.ok()) options.device = *cpu;
  Session session(std::move(options));
  Status status = session.run(text, "script.py", mode);
  if (!status.ok()) out += render(status.error());
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
