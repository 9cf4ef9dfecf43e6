// The sentences about the kernel language: each function has one, and docs/language.md has them all. KILN_BLESS=1
// writes the table there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/frontend/builtins.h"
#include "repl/modules/triton/language.h"
#include "tests/docs_table.h"

namespace kiln::script {
namespace {

struct Row {
  std::string_view name, help;
};
constexpr Row kRows[] = {
#define KILN_BUILTIN_HELP(NAME, HELP) {#NAME, HELP},
#include "repl/modules/triton/builtin_help.def"
};

// But those of libdevice, which are CUDA's, and of no public module.
TEST(BuiltinHelp, EveryFunctionHasASentence) {
  for (const frontend::Builtin& b : frontend::builtins()) {
    if (b.where.find_first_of("LRCAXT") == std::string_view::npos || b.name.starts_with('_')) continue;
    EXPECT_TRUE(std::ranges::any_of(kRows, [&](const Row& r) { return r.name == b.name; })) << b.name;
  }
}

TEST(BuiltinHelp, EveryRowIsOfAFunctionAndStandsOnce) {
  for (const Row& row : kRows) {
    EXPECT_TRUE(std::ranges::any_of(frontend::builtins(), [&](const auto& b) { return b.name == row.name; }))
        << row.name;
    EXPECT_EQ(std::ranges::count(kRows, row.name, &Row::name), 1) << row.name;
    EXPECT_FALSE(row.help.ends_with('.')) << row.name;
  }
}

TEST(BuiltinHelp, IsFoundByThePath) {
  EXPECT_TRUE(KernelMember("triton.language.load").help().starts_with("the elements that a tile of pointers"));
  EXPECT_EQ(KernelMember("triton.language.math.exp").help(), "e to the power of x");
  EXPECT_EQ(KernelMember("triton.language.extra").help(), "");
}

TEST(BuiltinHelp, IsInTheDocuments) {
  std::string table = "| function | what it does |\n|---|---|\n";
  for (const Row& row : kRows) table += fmt::format("| `{}` | {} |\n", row.name, row.help);
  kiln::testing::check_docs_table("language.md", "builtin help", table);
}

}  // namespace
}  // namespace kiln::script
