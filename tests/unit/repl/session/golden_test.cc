// Scripts with what they print, from tests/golden/script. An error is printed as the command line would show it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "repl/session/session.h"
#include "tests/golden/cases.h"

namespace kiln::script {
namespace {

/// Why there is no such device differs: no driver, a build without CUDA, fewer GPUs.
void hide_reason(std::string& out, const char* device) {
  const auto none = Device::open(device);
  ASSERT_FALSE(none.ok()) << device;
  const std::string& reason = none.error().message;
  for (size_t at = 0; (at = out.find(reason, at)) != std::string::npos;)
    out.replace(at, reason.size(), fmt::format("<no {}>", device));
}

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
