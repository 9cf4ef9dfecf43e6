#include "repl/editor/keys.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "repl/editor/bindings.h"

namespace kiln::editor {
namespace {

std::vector<KeyEvent> decode(std::string_view bytes, size_t piece = 1000) {
  KeyDecoder decoder;
  for (size_t at = 0; at < bytes.size(); at += piece) decoder.feed(bytes.substr(at, piece));
  decoder.give_up();
  std::vector<KeyEvent> out;
  while (auto event = decoder.next()) out.push_back(std::move(*event));
  return out;
}

KeyEvent key(std::string_view name) { return {parse_key(name).value(), false, {}}; }

std::vector<KeyEvent> keys(std::initializer_list<std::string_view> names) {
  std::vector<KeyEvent> out;
  for (std::string_view name : names) out.push_back(key(name));
  return out;
}

TEST(Keys, SequencesOfManyTerminals) {
  struct Case {
    std::string_view bytes, name;
  };
  for (const Case& c : {Case{"a", "a"},
                        {"\x01", "Ctrl-A"},
                        {"\r", "Enter"},
                        {"\n", "Enter"},
                        {"\t", "Tab"},
                        {"\x7f", "Backspace"},
                        {"\b", "Backspace"},
                        {"\x1f", "Ctrl-_"},
                        {"\x1a", "Ctrl-Z"},
                        {"\033", "Escape"},
                        {"\033x", "Alt-x"},
                        {"\033\r", "Alt-Enter"},
                        {"\033\x7f", "Alt-Backspace"},
                        {"\033é", "Alt-é"},
                        {"\033[A", "Up"},
                        {"\033OB", "Down"},
                        {"\033[H", "Home"},
                        {"\033[1~", "Home"},
                        {"\033[7~", "Home"},
                        {"\033[4~", "End"},
                        {"\033[3~", "Delete"},
                        {"\033[3;5~", "Ctrl-Delete"},
                        {"\033[5~", "PageUp"},
                        {"\033[Z", "Shift-Tab"},
                        {"\033[1;5D", "Ctrl-Left"},
                        {"\033[1;3C", "Alt-Right"},
                        {"\033[1;6C", "Ctrl-Shift-Right"},
                        {"\033Od", "Ctrl-Left"},
                        {"\033[d", "Shift-Left"},
                        {"\033[3^", "Ctrl-Delete"},
                        {"\033[3$", "Shift-Delete"},
                        {"\033\033[D", "Alt-Left"},
                        {"\033[13;3u", "Alt-Enter"},
                        {"\033[97;5u", "Ctrl-A"},
                        {"\033[27;5;65~", "Ctrl-A"},
                        {"\033[127;5u", "Ctrl-Backspace"},
                        {"é", "é"},
                        {"日", "日"},
                        {"😀", "😀"},
                        {"\033[", "Alt-["},
                        {"\033O", "Alt-O"}})
    for (size_t piece : {size_t{1000}, size_t{1}})
      EXPECT_EQ(decode(c.bytes, piece), keys({c.name})) << c.name << " in pieces of " << piece;
}

TEST(Keys, WhatIsNoKeyIsDropped) {
  for (std::string_view bytes : {"\033[I", "\033[O", "\033[12;40R", "\033[?1;2c", "\033[[A", "\033OP", "\033[15~"})
    EXPECT_EQ(decode(std::string(bytes) + "z"), keys({"z"})) << bytes;
  EXPECT_EQ(decode("\033[\001"), keys({"Ctrl-A"}));  // broken off by a key
}

TEST(Keys, BytesThatAreNoUtf8AreShownAsSuch) {
  EXPECT_EQ(decode("a\xff\xc3z"), keys({"a", "\uFFFD", "\uFFFD", "z"}));
  EXPECT_EQ(decode("\xe6\x97"), keys({"\uFFFD", "\uFFFD"}));  // cut off
}

TEST(Keys, EscapeWaitsForItsSequence) {
  KeyDecoder decoder;
  decoder.feed("\033");
  EXPECT_FALSE(decoder.next());
  EXPECT_TRUE(decoder.is_waiting());
  decoder.feed("b");
  EXPECT_EQ(decoder.next(), key("Alt-b"));
  EXPECT_FALSE(decoder.is_waiting());
}

TEST(Keys, PastesAreOneEvent) {
  const std::string bytes = "x\033[200~def f():\r    \033[31m1\r\n\tb\n\033[20\033[201~y";
  for (size_t piece = 1; piece < 8; ++piece) {
    const std::vector<KeyEvent> events = decode(bytes, piece);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_TRUE(events[1].is_paste);
    EXPECT_EQ(events[1].paste, "def f():\n    \033[31m1\n\tb\n\033[20");
    EXPECT_EQ(events[2], key("y"));
  }
}

TEST(Keys, APasteWithoutAnEndIsLeftWithCtrlC) {
  KeyDecoder decoder;
  decoder.feed("\033[200~abc");
  decoder.give_up();
  EXPECT_FALSE(decoder.next());
  decoder.feed("\003");
  decoder.give_up();
  EXPECT_EQ(decoder.next(), key("Ctrl-C"));
  decoder.feed("z");
  EXPECT_EQ(decoder.next(), key("z"));
}

TEST(Keys, AnyBytesInAnyPiecesGiveTheSameKeys) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  constexpr std::string_view kParts[] = {"\033", "[",    "O",         "1", ";",    "5",    "~",    "A",
                                         "200~", "201~", "\033[201~", "é", "\xe6", "\x97", "\xff", "u",
                                         "\r",   "\003", "x",         "$", "^",    "M"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t i = 0, n = random() % 12; i < n; ++i) bytes += kParts[random() % std::size(kParts)];
    const std::vector<KeyEvent> whole = decode(bytes);
    EXPECT_EQ(decode(bytes, 1 + random() % 3), whole) << "seed " << seed << " round " << round;
  }
}

TEST(Bindings, EveryNameIsAKeyAndNoKeyHasTwoMeanings) {
  std::vector<Key> seen;
  for (const Binding& b : bindings()) {
    EXPECT_FALSE(b.help.empty());
    for (std::string_view rest = b.keys; !rest.empty();) {
      const size_t end = rest.find("  ");
      const std::string_view name = rest.substr(0, end);
      auto k = parse_key(name);
      ASSERT_TRUE(k) << name;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), *k), 0) << name;
      seen.push_back(*k);
      EXPECT_EQ(action_of(*k), b.action) << name;
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 2);
    }
  }
  EXPECT_FALSE(action_of(*parse_key("Alt-x")));
  EXPECT_FALSE(parse_key("Hyper-A"));
}

}  // namespace
}  // namespace kiln::editor
