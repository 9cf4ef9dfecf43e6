#include "support/text_width.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(TextWidth, CountsCells) {
  EXPECT_EQ(text_width("kiln"), 4);
  EXPECT_EQ(text_width("é日本"), 5);
  EXPECT_EQ(text_width("e\u0301"), 1);  // e and a combining acute accent
  EXPECT_EQ(text_width("\u2026µ±"), 3);
  EXPECT_EQ(text_width("😀"), 2);
  EXPECT_EQ(text_width("한글"), 4);
  EXPECT_EQ(text_width("\u200b\u200d"), 0);
  EXPECT_EQ(text_width("\xff\xfe"), 2);  // shown as U+FFFD each
  EXPECT_EQ(character_width(0x10FFFF), 1);
  EXPECT_EQ(character_width('\033'), 0);
}

TEST(TextWidth, ABeginningKeepsCharactersWhole) {
  EXPECT_EQ(beginning_of_width("kernel", 3), "ker");
  EXPECT_EQ(beginning_of_width("kernel", 9), "kernel");
  EXPECT_EQ(beginning_of_width("日本語", 3), "日") << "two cells each";
  EXPECT_EQ(beginning_of_width("e\u0301a", 1), "e\u0301") << "a mark goes with its character";
  EXPECT_EQ(beginning_of_width("日", 1), "");
  EXPECT_EQ(beginning_of_width("a", -1), "");
}

TEST(TextWidth, ACursorStepsOverMarksWithTheirCharacter) {
  const std::string text = "ae\u0301\u0323日x";
  std::string_view rest = text;
  std::vector<size_t> forward;
  for (; !rest.empty(); rest.remove_prefix(forward.back())) forward.push_back(cluster_length(rest));
  EXPECT_EQ(forward, (std::vector<size_t>{1, 5, 3, 1}));
  std::vector<size_t> backward;
  for (rest = text; !rest.empty(); rest.remove_suffix(backward.back())) backward.push_back(last_cluster_length(rest));
  EXPECT_EQ(backward, (std::vector<size_t>{1, 3, 5, 1}));
  // A mark with nothing before it, and one after an end of line.
  EXPECT_EQ(cluster_length("\u0301"), 2u);
  EXPECT_EQ(last_cluster_length("\u0301"), 2u);
  EXPECT_EQ(last_cluster_length("a\n\u0301"), 2u);
  EXPECT_EQ(cluster_length("\n\u0301"), 1u);
  EXPECT_EQ(last_cluster_length("日\xa5"), 1u);
}

TEST(TextWidth, CharactersRoundTrip) {
  for (char32_t c : {U'a', U'é', U'日', U'😀', char32_t{0x7FF}, char32_t{0x800}, char32_t{0x10FFFF}}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(first_character(text).code, c);
    EXPECT_EQ(first_character(text).bytes, text.size());
  }
}

TEST(TextWidth, NothingThatATerminalActsOnIsPrintable) {
  EXPECT_EQ(printable("plain é日\tx\n"), "plain é日\tx\n");
  EXPECT_EQ(printable("\033[31mred\007\r\x7f"), "\\x1b[31mred\\x07\\x0d\\x7f");
  EXPECT_EQ(printable("\u009b31m\u202e\xff"), "\\x9b31m\\u202e\\xff");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(WrapLines, BreaksAtBlanks) {
  EXPECT_EQ(wrap_lines("one two three", 0), "one two three");
  EXPECT_EQ(wrap_lines("one two three", 13), "one two three");
  EXPECT_EQ(wrap_lines("one two three", 12), "one two\n    three");
  EXPECT_EQ(wrap_lines("  one two three four\nnext\n", 13), "  one two\n      three\n      four\nnext\n");
  // Blanks within a line stay, where it is broken they go.
  EXPECT_EQ(wrap_lines("  a   b   c", 9), "  a   b\n    c");
  // A word that is longer than a line stays whole, and starts on a line of its own.
  EXPECT_EQ(wrap_lines("see docs/counters.md#which here", 12), "see\n    docs/counters.md#which\n    here");
  EXPECT_EQ(wrap_lines("日本 日本 日本", 10), "日本 日本\n    日本");
  EXPECT_EQ(wrap_lines("", 5), "");
  EXPECT_EQ(wrap_lines("          x y", 4), "          x\n  y");
}

}  // namespace
}  // namespace kiln
