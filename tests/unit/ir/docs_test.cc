// The op list of docs/ir.md is that of ops.def.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "compiler/ir/ir.h"
#include "support/diag.h"

namespace kiln::ir {
namespace {

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string range_text(int from, int to) {
  if (from < 0) return "any";
  return from == to ? std::to_string(from) : std::to_string(from) + "–" + std::to_string(to);
}

std::string trimmed(const std::string& s) {
  const size_t begin = s.find_first_not_of(' ');
  return begin == std::string::npos ? "" : s.substr(begin, s.find_last_not_of(' ') - begin + 1);
}

/// The table, in ops.def's order: counts and attributes from the compiled rows, sections and remarks from the file.
std::string table() {
  std::string out;
  std::istringstream lines(read(KILN_SOURCE_DIR "/compiler/ir/ops.def"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("// --- ")) {
      out += "\n**" + line.substr(7) +
             "**\n\n| op | operands | results | traits | stands | attributes | |\n|---|---|---|---|---|---|---|\n";
      continue;
    }
    if (!line.starts_with("KILN_") || line.find("_OP(") == std::string::npos) continue;
    const size_t quote = line.find('"');
    const std::string mnemonic = line.substr(quote + 1, line.find('"', quote + 1) - quote - 1);
    const auto kind = parse_op_kind(mnemonic);
    EXPECT_TRUE(kind) << mnemonic;
    const OpInfo& row = info(*kind);
    const size_t remark = line.find("//");
    out += "| `" + mnemonic + "` | " + range_text(row.min_operands, row.max_operands) + " | " +
           range_text(row.results, row.results) + " | " + std::string(row.traits) + " | " + std::string(row.stands) +
           " | " + std::string(row.attrs) + " | " +
           (remark == std::string::npos ? "" : trimmed(line.substr(remark + 2))) + " |\n";
  }
  return out + "\n";
}

constexpr AttrName kAllAttrs[] = {
#define KILN_ATTR(e, name, kind) AttrName::k##e,
#include "compiler/ir/attrs.def"
};

/// The closed sets of attrs.def, with the ops that alone may carry a word.
std::string words_table() {
  std::string out = "\n| attribute | words |\n|---|---|\n";
  for (AttrName attr : kAllAttrs) {
    std::string words;
    for (const Word& w : words_of(attr)) {
      words += fmt::format("{}`\"{}\"`", words.empty() ? "" : " ", w.text);
      if (!w.ops.empty()) words += fmt::format(" ({})", w.ops);
    }
    if (!words.empty()) out += fmt::format("| `{}` | {} |\n", name(attr), words);
  }
  return out + "\n";
}

/// Holds what stands between <!-- what --> and <!-- end of what --> to `wanted`.
void expect_section(const std::string& what, const std::string& wanted) {
  const std::string path = KILN_SOURCE_DIR "/docs/ir.md", begin = "<!-- " + what + " -->\n",
                    end = "<!-- end of " + what + " -->";
  const std::string text = read(path);
  const size_t from = text.find(begin) + begin.size(), to = text.find(end);
  ASSERT_TRUE(text.find(begin) != std::string::npos && to != std::string::npos && from <= to);
  if (text.substr(from, to - from) == wanted) return;
  if (std::getenv("KILN_BLESS")) {
    std::ofstream(path) << text.substr(0, from) << wanted << text.substr(to);
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), wanted) << "run with KILN_BLESS=1 to write docs/ir.md anew";
}

TEST(Docs, OpListIsThatOfTheTable) { expect_section("ops", table()); }
TEST(Docs, WordsAreThoseOfTheTable) { expect_section("words", words_table()); }

// Its example is legal IR.
TEST(Docs, ExampleParsesAndVerifies) {
  const std::string text = read(KILN_SOURCE_DIR "/docs/ir.md");
  const size_t from = text.find("```\n") + 4, to = text.find("```", from);
  auto m = parse_module(SourceText::make("ir.md", text.substr(from, to - from)));
  ASSERT_TRUE(m.ok()) << render(m.error());
  const Status s = verify(**m);
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : render(s.error()));
}

}  // namespace
}  // namespace kiln::ir
