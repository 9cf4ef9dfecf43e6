// Texts side by side.
#include "repl/views/text_diff.h"

#include <gtest/gtest.h>

#include <random>

namespace kiln::repl {
namespace {

std::string as_it_is(std::string_view line) { return std::string(line); }

/// The rows as "=", "<", ">" and "|".
std::string marks(std::string_view left, std::string_view right) {
  std::string out;
  for (const TextDiff::Row& r : text_diff(left, right, as_it_is).rows)
    out += r.is_same ? '=' : r.left < 0 ? '>' : r.right < 0 ? '<' : '|';
  return out;
}

TEST(TextDiff, PairsWhatWasReplaced) {
  EXPECT_EQ(marks("a\nb\nc\n", "a\nb\nc\n"), "===");
  EXPECT_EQ(marks("a\nb\nc\n", "a\nx\nc\n"), "=|=");
  EXPECT_EQ(marks("a\nc\n", "a\nb\nc\n"), "=>=");
  EXPECT_EQ(marks("a\nb\nc\n", "c\n"), "<<=");
  EXPECT_EQ(marks("", "a\nb\n"), ">>");
  EXPECT_EQ(marks("", ""), "");
  EXPECT_EQ(marks("a\nb", "b\na"), "<=>");
}

TEST(TextDiff, EveryLineStandsOnceAndInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string left, right;
    for (auto n = random() % 30; n > 0; --n) left += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    for (auto n = random() % 30; n > 0; --n) right += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
    const TextDiff d = text_diff(left, right, as_it_is);
    int l = 0, r = 0;
    for (const TextDiff::Row& row : d.rows) {
      EXPECT_TRUE(row.left < 0 || row.left == l++);
      EXPECT_TRUE(row.right < 0 || row.right == r++);
      EXPECT_TRUE(!row.is_same || d.left[static_cast<size_t>(row.left)] == d.right[static_cast<size_t>(row.right)]);
    }
    EXPECT_EQ(static_cast<size_t>(l), d.left.size());
    EXPECT_EQ(static_cast<size_t>(r), d.right.size());
  }
}

TEST(TextDiff, TextsWithoutAnythingInCommonAreOneBlock) {
  std::string left, right;
  for (int i = 0; i < 5000; ++i) left += "l" + std::to_string(i) + "\n", right += "r" + std::to_string(i) + "\n";
  EXPECT_EQ(text_diff(left, right, as_it_is).changed, 5000);
}

TEST(TextDiff, NumbersOfRegistersDoNotCount) {
  EXPECT_EQ(without_numbers("add.f32 %f12, %f3, 0f40;"), without_numbers("add.f32 %f1, %f30, 0f40;"));
  EXPECT_NE(without_numbers("mov %r1, 5;"), without_numbers("mov %r1, 6;"));
  EXPECT_NE(without_numbers("%f1"), without_numbers("%r1"));
  EXPECT_EQ(without_numbers("%12 = tile.add %3, %4"), without_numbers("%7 = tile.add %1, %2"));
}

TEST(TextDiff, FitsItsWidth) {
  const TextDiff d = text_diff("same\n1\n2\n3\n4\nélong line of text here\n", "same\n1\n2\n3\n4\nshort\n", as_it_is);
  EXPECT_EQ(side_by_side(d, {"left", "right", 33, 1, false}),
            "left            | right\n… 4 same lines\n4                 4\nélong line of … | short\n");
}

}  // namespace
}  // namespace kiln::repl
