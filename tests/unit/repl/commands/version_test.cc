// What `kiln --version --verbose` says of the program.
#include "repl/commands/version.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace kiln::repl {
namespace {

TEST(Version, HasWhatAReportNeeds) {
  setenv("KILN_TIMEOUT", "77", 1);
  const std::string text = report::to_text(version_table());
  unsetenv("KILN_TIMEOUT");
  for (const char* wanted :
       {"kiln ", "build ", "compiler ", "LLVM ", "system ", "Linux", "processor ", "KILN_TIMEOUT", "77"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("LLVM +2[12]\\.[0-9]"))) << text;
}

}  // namespace
}  // namespace kiln::repl
