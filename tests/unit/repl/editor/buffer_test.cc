#include "repl/editor/buffer.h"

#include <gtest/gtest.h>

#include <random>

#include "support/escape.h"
#include "support/text_width.h"

namespace kiln::editor {
namespace {

/// A buffer from a text with | for the cursor.
Buffer at(std::string text) {
  const size_t cursor = text.find('|');
  text.erase(cursor, 1);
  Buffer b;
  b.reset(text);
  b.set_cursor(cursor);
  return b;
}

std::string shown(const Buffer& b) { return b.text().substr(0, b.cursor()) + "|" + b.text().substr(b.cursor()); }

std::string after(const char* before, void (Buffer::*step)()) {
  Buffer b = at(before);
  (b.*step)();
  return shown(b);
}

TEST(Buffer, TheCursorGoesByCharacters) {
  EXPECT_EQ(after("日本|", &Buffer::left), "日|本");
  // A letter with a combining accent is one character.
  EXPECT_EQ(after("e\u0301|", &Buffer::left), "|e\u0301");
  EXPECT_EQ(after("|e\u0301x", &Buffer::right), "e\u0301|x");
  EXPECT_EQ(after("a|", &Buffer::right), "a|");
  EXPECT_EQ(after("|a", &Buffer::left), "|a");
  EXPECT_EQ(after("a\n|b", &Buffer::left), "a|\nb");
}

TEST(Buffer, Words) {
  EXPECT_EQ(after("f(alpha.beta|)", &Buffer::word_left), "f(alpha.|beta)");
  EXPECT_EQ(after("f|(alpha)", &Buffer::word_right), "f(alpha|)");
  EXPECT_EQ(after("a = été|", &Buffer::word_left), "a = |été");
  // Over the line's beginning.
  EXPECT_EQ(after("a\n    |b", &Buffer::word_left), "|a\n    b");
}

TEST(Buffer, Lines) {
  // First to the first letter, then to the first column, and back.
  EXPECT_EQ(after("a\n    b|c\nd", &Buffer::smart_home), "a\n    |bc\nd");
  EXPECT_EQ(after("a\n    |bc\nd", &Buffer::smart_home), "a\n|    bc\nd");
  EXPECT_EQ(after("a\n|    bc\nd", &Buffer::smart_home), "a\n    |bc\nd");
  EXPECT_EQ(after("a\n  |  bc\nd", &Buffer::line_end), "a\n    bc|\nd");
  EXPECT_EQ(after("long line\nab|", &Buffer::up), "lo|ng line\nab");
  // A column of the terminal: a wide character takes two.
  EXPECT_EQ(after("日本\nab|", &Buffer::up), "日|本\nab");
  EXPECT_EQ(after("日本\na|", &Buffer::up), "|日本\na");  // not into the middle of a wide one
  EXPECT_EQ(after("a|b\n", &Buffer::down), "ab\n|");
}

TEST(Buffer, UpAndDownKeepTheirColumn) {
  Buffer b = at("abcdef|\nab\nabcdefgh");
  b.down();
  EXPECT_EQ(shown(b), "abcdef\nab|\nabcdefgh");
  b.down();
  EXPECT_EQ(shown(b), "abcdef\nab\nabcdef|gh");
}

TEST(Buffer, BackspaceGoesBackByIndentation) {
  // Within the indentation by a step, elsewhere by a character.
  EXPECT_EQ(after("        |x", &Buffer::erase_left), "    |x");
  EXPECT_EQ(after("      |", &Buffer::erase_left), "    |");
  EXPECT_EQ(after("a   |", &Buffer::erase_left), "a  |");
  EXPECT_EQ(after("a\n|b", &Buffer::erase_left), "a|b");
  EXPECT_EQ(after("e\u0301|", &Buffer::erase_left), "|");
  EXPECT_EQ(after("|日x", &Buffer::erase_right), "|x");
}

TEST(Buffer, CutAndPutBack) {
  EXPECT_EQ(after("ab|cd\ne", &Buffer::kill_line_end), "ab|\ne");
  // At its end the line is joined with the next one.
  EXPECT_EQ(after("ab|\ne", &Buffer::kill_line_end), "ab|e");
  EXPECT_EQ(after("x\nab|cd", &Buffer::kill_line_start), "x\n|cd");
  EXPECT_EQ(after("f(a.b|)", &Buffer::kill_blank_word_left), "|)");
  EXPECT_EQ(after("f(a.b|)", &Buffer::kill_word_left), "f(a.|)");
  EXPECT_EQ(after("f|(a).b", &Buffer::kill_word_right), "f|).b");

  Buffer b = at("one two three|");
  b.kill_word_left();
  b.kill_word_left();  // in a row: one piece
  b.yank();
  EXPECT_EQ(shown(b), "one two three|");
  b.text_start();
  b.kill_word_right();
  b.yank();
  // The piece before the last, in its place.
  b.yank_previous();
  EXPECT_EQ(shown(b), "two three| two three");
  b.undo();
  EXPECT_EQ(shown(b), "one| two three");
}

TEST(Buffer, Transpose) {
  EXPECT_EQ(after("a日|b", &Buffer::transpose), "ab日|");
  // At the end the two before the cursor.
  EXPECT_EQ(after("ab|", &Buffer::transpose), "ba|");
  EXPECT_EQ(after("|ab", &Buffer::transpose), "|ab");
  EXPECT_EQ(after("a\n|b", &Buffer::transpose), "a\n|b");
  EXPECT_EQ(after("x|", &Buffer::transpose), "x|");
}

TEST(Buffer, Cases) {
  EXPECT_EQ(after("| alpha b", &Buffer::upper_word), " ALPHA| b");
  EXPECT_EQ(after("|ALPHA", &Buffer::lower_word), "alpha|");
  EXPECT_EQ(after("|aLPHA", &Buffer::capitalize_word), "Alpha|");
}

// To the next multiple of four columns, to the right and to the left.
TEST(Buffer, IndentsALine) {
  Buffer b = at("a\n  x|y");
  b.indent_line(true);
  EXPECT_EQ(shown(b), "a\n    x|y");
  b.indent_line(false);
  EXPECT_EQ(shown(b), "a\nx|y");
}

TEST(Buffer, UndoGoesBackByWords) {
  Buffer b;
  for (const char* c : {"a", "b", " ", "c", "d"}) b.type(c);
  // What was pasted is a step of its own.
  b.insert("(pasted)");
  EXPECT_TRUE(b.undo());
  EXPECT_EQ(shown(b), "ab cd|");
  EXPECT_TRUE(b.undo());
  EXPECT_EQ(shown(b), "ab|");
  EXPECT_TRUE(b.undo());
  EXPECT_EQ(shown(b), "|");
  EXPECT_FALSE(b.undo());
  EXPECT_TRUE(b.redo());
  EXPECT_TRUE(b.redo());
  EXPECT_EQ(shown(b), "ab cd|");
  // What was undone is gone once something else is typed.
  b.type("x");
  EXPECT_TRUE(b.redo() == false);
}

// Whatever is done, the cursor stays between characters, and undoing all of it gives the first text.
TEST(Buffer, RandomStepsKeepItSound) {
  using Move = void (Buffer::*)();
  constexpr Move kSteps[] = {
      &Buffer::left,
      &Buffer::right,
      &Buffer::word_left,
      &Buffer::word_right,
      &Buffer::smart_home,
      &Buffer::line_end,
      &Buffer::up,
      &Buffer::down,
      &Buffer::erase_left,
      &Buffer::erase_right,
      &Buffer::kill_line_end,
      &Buffer::kill_line_start,
      &Buffer::kill_word_left,
      &Buffer::kill_word_right,
      &Buffer::kill_blank_word_left,
      &Buffer::yank,
      &Buffer::yank_previous,
      &Buffer::transpose,
      &Buffer::upper_word,
      &Buffer::capitalize_word,
  };
  constexpr std::string_view kTexts[] = {"a", " ", "\n", "日", "e\u0301", "\u0301", "(", "    ", "😀", "\t", "\033"};
  // Printed with a failure.
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Buffer b;
    for (int i = 0; i < 60; ++i) {
      if (random() % 2)
        b.type(kTexts[random() % std::size(kTexts)]);
      else
        (b.*kSteps[random() % std::size(kSteps)])();
      // Between characters, and within the text.
      ASSERT_LE(b.cursor(), b.text().size()) << "seed " << seed;
      for (size_t at = 0; at < b.text().size();) {
        const size_t n = utf8_length(std::string_view(b.text()).substr(at));
        ASSERT_GT(n, 0u) << "seed " << seed;
        ASSERT_FALSE(at < b.cursor() && b.cursor() < at + n) << "seed " << seed;
        at += n;
      }
    }
    while (b.undo()) {
    }
    EXPECT_EQ(shown(b), "|") << "seed " << seed;
  }
}

}  // namespace
}  // namespace kiln::editor
