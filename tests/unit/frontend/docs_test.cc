// The table of docs/language.md is made from builtins.def. KILN_BLESS=1 writes it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/frontend/builtins.h"
#include "support/diag.h"
#include "tests/docs_table.h"

namespace kiln::frontend {
namespace {

std::string table() {
  std::string out = "| function | where | parameters |\n|---|---|---|\n";
  for (const Builtin& b : builtins()) {
    std::string params;
    if (b.in_library()) {
      for (const ast::Param& p : library_function(b)->def->params) {
        params += (params.empty() ? "" : ", ") + p.name;
        if (p.default_value) params += fmt::format("={}", p.default_value->range.str());
      }
    } else {
      params = b.params;
    }
    out += fmt::format("| `{}` | {} | {} |\n", b.name, b.where, params.empty() ? params : "`" + params + "`");
  }
  return out;
}

TEST(LanguageReference, ListsEveryBuiltin) { kiln::testing::check_docs_table("language.md", "builtins", table()); }

TEST(Builtins, TheLibraryHasEveryFunctionOfTheTable) {
  for (const Builtin& b : builtins())
    if (b.in_library()) {
      EXPECT_EQ(library_function(b)->def->name, b.name);
    }
}

TEST(Builtins, NamesAreUniqueWithinAModule) {
  std::span<const Builtin> rows = builtins();
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = i + 1; j < rows.size(); ++j) {
      EXPECT_FALSE(rows[i].name == rows[j].name && (rows[i].exposure() & rows[j].exposure())) << rows[i].name;
    }
}

TEST(Builtins, ModulePathsResolve) {
  EXPECT_TRUE(resolve_path("triton.language.extra.cuda.libdevice.tanh"));
  EXPECT_TRUE(resolve_path("triton.language.math.exp"));
  EXPECT_TRUE(resolve_path("triton.language.float32")->type());
  EXPECT_TRUE(resolve_path("triton.language.extra")->module());
  EXPECT_FALSE(resolve_path("triton.language.no_such"));
  EXPECT_FALSE(resolve_path("torch.exp"));
}

}  // namespace
}  // namespace kiln::frontend
