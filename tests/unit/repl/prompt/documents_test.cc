// The entries of README.md and docs/tutorial.md, typed at the prompt: they run, and print what the text shows.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "support/files.h"
#include "support/text.h"
#include "tests/unit/repl/prompt/prompt_fixture.h"

namespace kiln {
namespace {

struct Entry {
  std::string text;
  std::vector<std::string> shown;  // the lines behind it in the document
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Fenced blocks of Python are one entry each; in others an entry is a line behind "[N] " with the "... " lines that
/// follow.
std::vector<Entry> entries_of(const std::string& document) {
  std::vector<Entry> entries;
  const std::regex first(R"(^\[\d+\] (.*)$)"), next(R"(^ *\.\.\.(?: (.*))?$)");
  bool in_block = false, in_python = false, in_entry = false;
  for (const std::string& line : lines_of(document)) {
    std::smatch found;
    if (line.starts_with("```")) {
      in_python = !in_block && line == "```python";
      in_block = !in_block;
      in_entry = false;
      if (in_python) entries.emplace_back();
    } else if (in_python) {
      entries.back().text += line + "\n";
    } else if (in_block && std::regex_match(line, found, first)) {
      entries.push_back({found[1].str() + "\n", {}});
      in_entry = true;
    } else if (in_entry && entries.back().shown.empty() && std::regex_match(line, found, next)) {
      entries.back().text += found[1].str() + "\n";
    } else if (in_entry) {
      entries.back().shown.push_back(line);
    }
  }
  return entries;
}

/// Figures and the width of columns differ from run to run, and so does the device's name.
std::string without_figures(std::string text) {
  text = std::regex_replace(text, std::regex("[0-9][0-9.,_e+-]*"), "#");
  return std::regex_replace(text, std::regex("[ \t]+"), " ");
}

bool measures(const std::string& text) {
  return std::ranges::any_of(std::vector<std::string>{"%bench", "%compare", "%static", "%occupancy"},
                             [&](const std::string& name) { return text.starts_with(name); });
}

class Documents : public Prompt, public testing::WithParamInterface<const char*> {};

TEST_P(Documents, EntriesRunAndPrintWhatIsShown) {
  auto document = read_file(std::string(KILN_SOURCE_DIR) + "/" + GetParam());
  ASSERT_TRUE(document.ok()) << document.error().message;
  const std::vector<Entry> entries = entries_of(*document);
  ASSERT_GE(entries.size(), 10u);
  auto t = start(400, 240);
  int number = 1;
  for (const Entry& entry : entries) {
    // What a GPU does in microseconds, a CPU does at a smaller size.
    const std::string typed = std::regex_replace(entry.text, std::regex("4096"), "64");
    const size_t before = t->raw_output().size();
    t->send("\033[200~" + typed + "\033[201~\r");
    const std::string prompt = "\n[" + std::to_string(++number) + "]";
    ASSERT_TRUE(t->wait_for(prompt, 120)) << typed << t->screen().text();
    const std::string printed = without_figures(t->raw_output().substr(before));
    const bool should_fail =
        std::ranges::any_of(entry.shown, [](const auto& line) { return line.find("error: ") != std::string::npos; });
    EXPECT_EQ(printed.find("error: ") != std::string::npos, should_fail) << typed << t->raw_output().substr(before);
    // Of a measurement the first line alone, which heads its table; the flags and figures are of a machine.
    const size_t compared = measures(entry.text) ? std::min<size_t>(1, entry.shown.size()) : entry.shown.size();
    for (size_t i = 0; i < compared; ++i) {
      const std::string line(trimmed(without_figures(entry.shown[i])));
      if (line.find("…") != std::string::npos || entry.text.starts_with("%compare")) continue;
      EXPECT_NE(printed.find(line), std::string::npos) << typed << "\nshows: " << line << "\nprints: " << printed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Documents, testing::Values("README.md", "docs/tutorial.md"));

// docs/pictures/terminal_svg.py, which makes README's picture of the prompt.
TEST_F(Prompt, ASessionAsAPicture) {
  if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "no python3";
  const std::string entries = state_.path + "/entries.txt", picture = state_.path + "/out.svg";
  ASSERT_TRUE(write_file_atomic(entries, "def f(n):\n    return n & 3\n---\n%help bench\n---\n[f(6), '<é>']").ok());
  const std::string command =
      fmt::format("python3 {}/docs/pictures/terminal_svg.py {} {} --columns 90 --program {} 2>&1", KILN_SOURCE_DIR,
                  picture, entries, KILN_PROGRAM);
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string svg = *read_file(picture);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=")) << svg.substr(0, 80);
  for (const char* part : {"@media (prefers-color-scheme: dark)", ">kiln 0.", ">[2]</text>", ">def</text>",
                           "n &amp;</text>", "[2, '&lt;é&gt;']</text>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << "\n" << svg;
}

}  // namespace
}  // namespace kiln
