// How a diagnostic looks: the line, what stands under it, and texts that a terminal should not get as they are.
#include "support/diag.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

std::string rendered(std::string line, uint32_t begin, uint32_t end, std::string message = "no") {
  auto source = SourceText::make("f", std::move(line));
  return render(error_at({source.get(), begin, end}, ErrorKind::kValue, "{}", message));
}

TEST(Render, MarksTheRange) {
  EXPECT_EQ(rendered("a = bcd", 4, 7), "f:1:5: error: no\n  1 | a = bcd\n    |     ^^^\n");
  EXPECT_EQ(rendered("\ta = b", 5, 6), "f:1:6: error: no\n  1 | \ta = b\n    | \t    ^\n");
  EXPECT_EQ(rendered("", 0, 0), "f:1:1: error: no\n  1 | \n    | ^\n");
}

TEST(Render, CountsCharactersNotBytes) {
  EXPECT_EQ(rendered("ä = öü + x", 5, 9), "f:1:6: error: no\n  1 | ä = öü + x\n    |     ^^\n");
}

TEST(Render, ShowsNoControlCharacters) {
  EXPECT_EQ(rendered("a\x1b[31m\x7f", 1, 2), "f:1:2: error: no\n  1 | a\ufffd[31m\ufffd\n    |  ^\n");
  EXPECT_EQ(rendered("\xcd"
                     "B\xe2\x82\xac\x80y",
                     6, 7),
            "f:1:7: error: no\n  1 | \ufffd"
            "B€\ufffdy\n    |     ^\n");
}

TEST(Render, MessagesAndNamesReachNoTerminalAsTheyAre) {
  auto source = SourceText::make("a\033[2J.py", "x");
  Diagnostic d = with_note(error_at({source.get(), 0, 1}, ErrorKind::kValue, "raised \033]0;t\007\nand more"),
                           "in \033[31mf", {source.get(), 0, 1});
  EXPECT_EQ(render(d),
            "a\\x1b[2J.py:1:1: error: raised \\x1b]0;t\\x07\nand more\n  1 | x\n    | ^\n"
            "  a\\x1b[2J.py:1:1: in \\x1b[31mf\n  1 | x\n    | ^\n");
}

TEST(Render, MarksStandBelowWideCharacters) {
  EXPECT_EQ(rendered("日本 = x", 9, 10), "f:1:10: error: no\n  1 | 日本 = x\n    |        ^\n");
  EXPECT_EQ(rendered("e\u0301 = 日", 6, 9), "f:1:7: error: no\n  1 | e\u0301 = 日\n    |     ^^\n");
}

TEST(Render, ShowsThePartOfALongLineThatMatters) {
  const std::string filler(100'000, 'a');
  EXPECT_EQ(rendered("x" + filler, 0, 1), "f:1:1: error: no\n  1 | x" + std::string(159, 'a') + "…\n    | ^\n");
  EXPECT_EQ(rendered(filler + "xyz" + filler, 100'000, 100'003),
            "f:1:100001: error: no\n  1 | …" + std::string(80, 'a') + "xyz" + std::string(77, 'a') + "…\n    | " +
                std::string(81, ' ') + "^^^\n");
  EXPECT_EQ(rendered(filler + "x", 100'000, 100'001),
            "f:1:100001: error: no\n  1 | …" + std::string(159, 'a') + "x\n    | " + std::string(160, ' ') + "^\n");
  // A range beyond what is shown.
  EXPECT_EQ(rendered(filler, 0, 100'000),
            "f:1:1: error: no\n  1 | " + std::string(160, 'a') + "…\n    | " + std::string(160, '^') + "\n");
}

TEST(Render, FitsTheTerminal) {
  auto source = SourceText::make("f", "first = second + third * fourth - fifth / sixth");
  Diagnostic d =
      with_note(error_at({source.get(), 17, 22}, ErrorKind::kValue, "this is no number of the kind that adds"),
                "help: write a number there, or the name of one");
  EXPECT_EQ(render(d, false, 40),
            "f:1:18: error: this is no number of the\n"
            "  kind that adds\n"
            "  1 | first = second + third * fourth …\n"
            "    |                  ^^^^^\n"
            "  help: write a number there, or the\n"
            "    name of one\n");
  EXPECT_EQ(render(error(ErrorKind::kValue, "a\nb {}c", std::string(50, 'x')), false, 20),
            "error: a\nb\n  " + std::string(50, 'x') + "c\n");
}

TEST(Render, CutsWhereACharacterStarts) {
  std::string line;
  for (int i = 0; i < 1000; ++i) line += "ä";
  for (uint32_t at = 0; at < 2000; at += 2) {
    const std::string text = rendered(line, at, at + 2);
    const size_t shown = text.find(" | ") + 3;
    const std::string excerpt = text.substr(shown, text.find('\n', shown) - shown);
    for (size_t i = 0; i < excerpt.size();) {
      const bool dots = excerpt.compare(i, 3, "…") == 0;
      ASSERT_TRUE(dots || excerpt.compare(i, 2, "ä") == 0) << "at " << at << ": " << excerpt;
      i += dots ? 3 : 2;
    }
  }
}

TEST(Render, ShortensAWordThatNobodyReads) {
  const std::string text = rendered("x", 0, 1, "the name '" + std::string(1'000'000, 'z') + "' is not defined");
  EXPECT_LT(text.size(), 500u);
  EXPECT_NE(text.find("the name 'zzz"), std::string::npos);
  EXPECT_NE(text.find("zzz' is not defined\n"), std::string::npos);
}

TEST(NearestName, IsAMisspelling) {
  const std::vector<std::string> names = {"print", "type", "pow", "f", "registers", "bench", "BLOCK"};
  EXPECT_EQ(nearest_name("pritn", names), "print") << "neighbours exchanged";
  EXPECT_EQ(nearest_name("prnt", names), "print");
  EXPECT_EQ(nearest_name("bnech", names), "bench");
  EXPECT_EQ(nearest_name("regsters", names), "registers");
  EXPECT_EQ(nearest_name("BLOK", names), "BLOCK");
  EXPECT_EQ(nearest_name("regs", std::vector<std::string>{"registers"}), "") << "another word's beginning";
  EXPECT_EQ(nearest_name("elem_ty", std::vector<std::string>{"element_ty"}), "element_ty") << "shortened";
  for (const char* other : {"nope", "foo", "s", "x", "np", "blocked"})
    EXPECT_EQ(nearest_name(other, names), "") << other;
}

TEST(NearestName, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("abcd", "acbd"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

}  // namespace
}  // namespace kiln
