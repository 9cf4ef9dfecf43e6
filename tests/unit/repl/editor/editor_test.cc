// The editor on pseudo-terminals. The program is a loop that shows what each entry was.
#include "repl/editor/editor.h"

#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <random>

#include "support/process.h"
#include "tests/unit/repl/editor/pseudo_terminal.h"

namespace kiln::editor {
namespace {

std::string shown_entry(std::string_view text) {
  std::string out = "<";
  for (char c : text) c == '\n' ? out += "\\n" : out += c;
  return out + ">";
}

/// Enough of Python to test with: a line that ends with a colon opens a block, which ends with an empty line.
bool is_incomplete(std::string_view text) {
  if (text.find(":\n") == std::string_view::npos) return false;
  const size_t content = text.find_last_not_of(" \n");
  return std::count(text.begin() + static_cast<long>(content), text.end(), '\n') < 2;
}

struct LoopSetup {
  int rows = 24, columns = 80;
  std::string history;
  bool color = false;
  bool terminal_keys = true;  // between entries, Ctrl-C, Ctrl-R and Ctrl-S are the terminal's own, as for users
};

/// Shows each entry; "crash" ends the process by a fault while the terminal is raw, "end" as it should.
int edit_loop(const LoopSetup& setup) {
  if (!setup.terminal_keys) {
    termios modes{};
    tcgetattr(STDIN_FILENO, &modes);
    modes.c_lflag &= ~static_cast<tcflag_t>(ISIG | IEXTEN);
    modes.c_iflag &= ~static_cast<tcflag_t>(IXON);
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
  }
  Terminal terminal(STDIN_FILENO, STDOUT_FILENO);
  Language language;
  language.is_incomplete = is_incomplete;
  language.complete = [](std::string_view before) {
    if (before.ends_with("crash")) std::abort();
    Completion c;
    if (before.ends_with("f(")) return Completion{{"zeta=", "alpha.one", "alpha.x"}, 0, 1};
    for (const char* name : {"alpha.one", "alpha.other", "alpha.x", "beta\033[31m"})
      for (size_t n = std::min(before.size(), std::string_view(name).size()); n > 0; --n)
        if (before.ends_with(std::string_view(name).substr(0, n))) {
          c.candidates.push_back(name), c.replaced = n;
          break;
        }
    return c;
  };
  language.preview = [](const std::string& candidate) { return "about " + candidate; };
  Editor editor(terminal, language, {setup.history, "", 100}, setup.color);
  for (int n = 1;; ++n) {
    const Editor::Input input = editor.read("[" + std::to_string(n) + "] ", "... ");
    if (input.event == Editor::Event::kEnd) return 7;
    if (input.event == Editor::Event::kEntry) std::printf("%s\n", shown_entry(input.text).c_str());
    std::fflush(stdout);
  }
}

std::unique_ptr<PseudoTerminal> start(const LoopSetup& setup = {}) {
  auto t = std::make_unique<PseudoTerminal>(setup.rows, setup.columns, [&] { return edit_loop(setup); });
  EXPECT_TRUE(t->wait([&] { return t->screen().bracketed_paste(); }));
  return t;
}

/// Sends keys and gives the entry that comes of them.
std::string entry_of(PseudoTerminal& t, std::string_view keys) {
  // The terminal is given back, then the entry is shown.
  constexpr std::string_view kBefore = "\033[?2004l\033[0m";
  EXPECT_TRUE(t.wait([&] { return t.screen().bracketed_paste(); }));
  const size_t before = t.raw_output().size();
  t.type(keys);
  size_t open = std::string::npos, close = std::string::npos;
  EXPECT_TRUE(t.wait([&] {
    open = t.raw_output().find(std::string(kBefore) + "<", before);
    if (open != std::string::npos) close = t.raw_output().find(">\r\n", open);
    return close != std::string::npos;
  })) << t.screen().text();
  if (close == std::string::npos) return {};
  open += kBefore.size();
  return t.raw_output().substr(open, close + 1 - open);
}

constexpr std::string_view kPasteOn = "\033[200~", kPasteOff = "\033[201~";

TEST(Editor, RunsLinesAndBlocks) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "x = 1\r"), "<x = 1>");
  EXPECT_EQ(entry_of(*t, "def g(n):\rfor i in range(n):\rif i:\rs = 'é日本'\r\r"),
            "<def g(n):\\n    for i in range(n):\\n        if i:\\n            s = 'é日本'\\n            >");
  EXPECT_TRUE(t->wait_for("[3]"));
  EXPECT_EQ(t->screen().text(),
            "[1] x = 1\n<x = 1>\n"
            "[2] def g(n):\n...     for i in range(n):\n...         if i:\n...             s = 'é日本'\n...\n"
            "<def g(n):\\n    for i in range(n):\\n        if i:\\n            s = 'é日本'\\n\n        >\n[3]\n");
  EXPECT_EQ(t->screen().unknown(), "");
}

TEST(Editor, DedentsAfterReturnAndForElse) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "if x:\ry\relse:\rreturn z\r\r"), "<if x:\\n    y\\nelse:\\n    return z\\n>");
}

TEST(Editor, AltEnterRunsWhatIsThere) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "if x:\ry\033\r"), "<if x:\\n    y>");
}

TEST(Editor, ArrowsGoThroughTheBlockAndEnterSplitsIt) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "if x:\rb\033[A!\033[B\033[Hz\033\r"), "<if x:!\\n    zb>");
  EXPECT_EQ(entry_of(*t, "if x:\rc\033[A\rab\033\r"), "<if x:\\n    ab\\n    c>");
}

TEST(Editor, HistoryRecallsWholeBlocks) {
  auto t = start();
  entry_of(*t, "if x:\ry\033\r");
  entry_of(*t, "z\r");
  EXPECT_EQ(entry_of(*t, "\033[A\033[A\033\r"), "<if x:\\n    y>");
  EXPECT_EQ(entry_of(*t, "if\033[A\033[A\033[A\033[B\033[B\033[B!\r"), "<if!>");  // only what begins so; and back
  EXPECT_EQ(entry_of(*t, "\033[A2\033[B\033[A\r"), "<if!2>");                     // an edited entry is kept
}

TEST(Editor, Searches) {
  auto t = start();
  entry_of(*t, "alpha = 1\r");
  entry_of(*t, "beta = 2\r");
  entry_of(*t, "alpha = 3\r");
  EXPECT_TRUE(t->wait_for("\n[4]"));  // before the prompt, Ctrl-R is the terminal's own
  t->type("\022alp");
  EXPECT_TRUE(t->wait_for("search: alp"));
  EXPECT_EQ(entry_of(*t, "\022\r\r"), "<alpha = 1>");
  EXPECT_EQ(entry_of(*t, "draft\022bet\007\r"), "<draft>");
  EXPECT_EQ(entry_of(*t, "\022nowhere\003x\r"), "<x>");
}

TEST(Editor, EditsWithControlKeys) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "one two\033b\013\001\031 \033f\025z\r"), "<z >");
  EXPECT_EQ(entry_of(*t, "one two\033[1;5D\033[1;5Dx\033[1;5C\004y\r"), "<xoneytwo>");
  EXPECT_EQ(entry_of(*t, "ab\024\r"), "<ba>");
  EXPECT_EQ(entry_of(*t, "ab cd\037\r"), "<ab>");
}

TEST(Editor, OddKeysHarmNothing) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "a\033x\033\"\r"), "<a>");
  EXPECT_EQ(entry_of(*t, "'\r"), "<'>");
  EXPECT_EQ(entry_of(*t, "'\t\r"), "<'>");
  EXPECT_EQ(entry_of(*t, "b\034\036\035\r"), "<b>");
}

TEST(Editor, OffersFirstWhatIsUsedMost) {
  auto t = start();
  EXPECT_EQ(entry_of(*t, "f(alpha.x)\r"), "<f(alpha.x)>");
  EXPECT_EQ(entry_of(*t, "alpha.other + alpha.x\r"), "<alpha.other + alpha.x>");
  EXPECT_EQ(entry_of(*t, "alp\t\t\r\r"), "<alpha.x>");
  EXPECT_EQ(entry_of(*t, "alp\t\t\t\r\r"), "<alpha.other>");
  // But for those that lead.
  EXPECT_EQ(entry_of(*t, "f(\t\t)\r"), "<f(zeta=)>");
  EXPECT_EQ(entry_of(*t, "f(\t\t\t)\r"), "<f(alpha.x)>");
}

TEST(Editor, PastesBlocks) {
  auto t = start();
  t->send(std::string(kPasteOn) + "    def f():\r        x\r\r        %y\r    %magic\r" + std::string(kPasteOff));
  EXPECT_TRUE(t->wait_for("%magic"));
  EXPECT_EQ(entry_of(*t, "\r"), "<def f():\\n    x\\n\\n    %y\\n%magic\\n>");
  t->send(std::string(kPasteOn) + "[1] a\r[2] b\r" + std::string(kPasteOff));
  EXPECT_TRUE(t->wait_for("... b"));
  EXPECT_EQ(entry_of(*t, "\r"), "<a\\nb\\n>");
  t->type("if x:\r");
  t->send(std::string(kPasteOn) + "for i in y:\r    z\r" + std::string(kPasteOff));
  EXPECT_TRUE(t->wait_for(" z"));
  EXPECT_EQ(entry_of(*t, "\033\r"), "<if x:\\n    for i in y:\\n        z\\n>");
}

TEST(Editor, UnmarkedPastesKeepTheirIndentation) {
  auto t = start();
  t->send("if x:\r    y\r    if z:\r        w\r\r");
  EXPECT_TRUE(t->wait_for("<if x:\\n    y\\n    if z:\\n        w\\n>"));
}

TEST(Editor, TypedBlanksTakeThePlaceOfThoseThatEnterMade) {
  auto t = start();
  // A program that types a line at a time and waits for each.
  for (const std::string line : {"for i in x:", "  if i:", "      y", "  else:", "    z", "  w"}) {
    t->type(line + "\r");
    EXPECT_TRUE(t->wait_for(line));
  }
  EXPECT_EQ(entry_of(*t, "\r"), "<for i in x:\\n  if i:\\n      y\\n  else:\\n    z\\n  w\\n  >");
  // Behind another key they are more blanks, as anywhere.
  t->type("if a:\r");
  EXPECT_TRUE(t->wait_for("if a:"));
  EXPECT_EQ(entry_of(*t, "\177 b\r\r"), "<if a:\\n b\\n >");
}

TEST(Editor, CompletesWithAMenu) {
  auto t = start();
  t->type("al\t");
  EXPECT_TRUE(t->wait_for("one    other  x"));
  EXPECT_EQ(t->screen().text(), "[1] alpha.\none    other  x\n");
  t->type("\t");
  EXPECT_TRUE(t->wait_for("about alpha.one"));
  EXPECT_EQ(entry_of(*t, "\t\r+\r"), "<alpha.other+>");
  EXPECT_EQ(entry_of(*t, "al\t\033[Z\r\r"), "<alpha.x>");
  EXPECT_EQ(entry_of(*t, "al\t\t\007!\r"), "<alpha.!>");
  EXPECT_EQ(entry_of(*t, "x\033[D\t\r"), "<    x>");
  EXPECT_EQ(entry_of(*t, "\tx\r"), "<    x>");
}

TEST(Editor, EscapesAreShownAndNotActedOn) {
  auto t = start();
  t->send(std::string(kPasteOn) + "a\033[31mb\033]0;title\007\u009b1m" + std::string(kPasteOff));
  EXPECT_TRUE(t->wait_for("[1] a^[[31mb^[]0;title^G\\x9b1m"));
  EXPECT_EQ(t->screen().unknown(), "");
}

TEST(Editor, LongLinesWrapAndWideCharactersStayWhole) {
  auto t = start({8, 10, {}, false});
  t->type("abcdef日本");
  EXPECT_TRUE(t->wait_for("日本"));
  EXPECT_EQ(t->screen().text(), "[1] abcdef\n日本\n");
  EXPECT_EQ(t->screen().row(), 1);
  EXPECT_EQ(t->screen().column(), 4);
  t->type("\033[D\033[D\033[D");
  EXPECT_TRUE(t->wait([&] { return t->screen().row() == 0; }));
  EXPECT_EQ(t->screen().column(), 9);
  t->type("x");  // 日 no longer fits behind it
  EXPECT_TRUE(t->wait_for("[1] abcdex\nf日本\n"));
}

TEST(Editor, ABlockHigherThanTheScreenIsSeenInPart) {
  auto t = start({5, 20, {}, false});
  std::string block = "if x:";
  for (int i = 0; i < 12; ++i) block += "\r    line" + std::to_string(i);
  t->send(std::string(kPasteOn) + block + std::string(kPasteOff));
  EXPECT_TRUE(t->wait_for("line11"));
  EXPECT_EQ(t->screen().text(), "...     line7\n...     line8\n...     line9\n...     line10\n...     line11\n");
  t->type("\033<");
  EXPECT_TRUE(t->wait_for("[1] if x:\n...     line0\n...     line1\n...     line2\n...     line3\n"));
  entry_of(*t, "\033\r");  // all of it goes by
  EXPECT_NE(t->raw_output().rfind("line5"), std::string::npos);
}

TEST(Editor, FollowsTheSizeOfTheTerminal) {
  auto t = start({10, 40, {}, false});
  t->type("a = 'a text of some length'");
  EXPECT_TRUE(t->wait_for("[1] a = 'a text of some length'\n"));
  t->resize(10, 20);
  EXPECT_TRUE(t->wait_for("[1] a = 'a text of s\nome length'\n"));
  t->resize(10, 60);
  EXPECT_TRUE(t->wait_for("[1] a = 'a text of some length'\n"));
  t->resize(1, 1);
  EXPECT_TRUE(t->wait([&] { return t->screen().text().empty(); }));
  t->resize(10, 60);
  EXPECT_EQ(entry_of(*t, "!\r"), "<a = 'a text of some length'!>");
}

TEST(Editor, WorksOnOneCell) {
  auto t = start({1, 1, {}, false});
  t->send("日x\t\022q\007\033[A");
  t->send("\r");
  EXPECT_TRUE(t->wait([&] {
    std::string seen = t->raw_output();
    return seen.find("<日x>") != std::string::npos;
  }));
}

TEST(Editor, CtrlCDropsTheEntryAndCtrlDEnds) {
  auto t = start();
  t->type("if x:\rab\003");
  EXPECT_TRUE(t->wait_for("ab^C\n[1]"));
  t->type("cd");
  t->signal(SIGINT);  // from outside: the same
  EXPECT_TRUE(t->wait_for("cd^C\n[1]"));
  t->type("\r \r");  // blank lines are no entries
  t->type("\004");
  EXPECT_EQ(t->end(), 7 << 8);
  EXPECT_EQ(t->raw_output().find('<'), std::string::npos);
  EXPECT_TRUE(t->is_cooked());
  EXPECT_FALSE(t->screen().bracketed_paste());
}

TEST(Editor, SignalsThatEndItLeaveACookedTerminal) {
  std::vector<int> numbers = {SIGTERM, SIGHUP, SIGQUIT, SIGABRT};
#ifndef __SANITIZE_ADDRESS__  // which takes these itself, and exits
  numbers.insert(numbers.end(), {SIGSEGV, SIGBUS});
#endif
  for (int number : numbers) {
    auto t = start();
    t->type("half a li");
    EXPECT_FALSE(t->is_cooked());
    t->signal(number);
    const int status = t->end();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number << " " << status;
    EXPECT_TRUE(t->is_cooked()) << number;
    EXPECT_FALSE(t->screen().bracketed_paste()) << number;
  }
  auto t = start();
  t->type("crash\t");
  EXPECT_EQ(WTERMSIG(t->end()), SIGABRT);
  EXPECT_TRUE(t->is_cooked());
}

TEST(Editor, StopsAndGoesOn) {
  auto t = start();
  t->type("half");
  t->signal(SIGSTOP);
  t->signal(SIGCONT);
  EXPECT_EQ(entry_of(*t, "!\r"), "<half!>");
  t->type("again\032");  // no shell to stop for: it goes on at once
  EXPECT_EQ(entry_of(*t, "!\r"), "<again!>");
  // The terminal is cooked while an entry runs: the next prompt takes it back in its own time.
  for (int i = 0; i < 200 && t->is_cooked(); ++i) usleep(10'000);
  EXPECT_FALSE(t->is_cooked());
}

TEST(Editor, TwoSessionsShareTheirHistory) {
  ScratchFolder folder;
  LoopSetup setup;
  setup.history = folder.path + "/h";
  auto a = start(setup), b = start(setup);
  entry_of(*a, "if a:\rone\r\r");
  entry_of(*b, "b1\r");
  EXPECT_EQ(entry_of(*b, "if\033[A\033\r"), "<if a:\\n    one>");
  entry_of(*a, "late\r");  // while b is at its prompt
  EXPECT_EQ(entry_of(*b, "\022late\r\r"), "<late>");
  a->signal(SIGKILL);
  a->end();
  auto c = start(setup);
  EXPECT_EQ(entry_of(*c, "b\033[A\r"), "<b1>");
}

// Whatever comes in, the prompt still works afterwards, and what is on the screen is what it should be.
TEST(Editor, RandomKeysPastesResizesAndSignals) {
  const char* given = std::getenv("KILN_FUZZ_SEED");
  const uint32_t seed = given ? static_cast<uint32_t>(std::atol(given)) : std::random_device()();
  SCOPED_TRACE("KILN_FUZZ_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::string_view kKeys[] = {
      "a",      "(",      ")",      "'",      "日",     "e\u0301", " ",      ":",        "\t",      "\r",      "\033",
      "\033[A", "\033[B", "\033[C", "\033[D", "\033[H", "\033[F",  "\033[Z", "\x7f",     "\033[3~", "\013",    "\025",
      "\027",   "\031",   "\033y",  "\024",   "\037",   "\033_",   "\022",   "\023",     "\007",    "\033\r",  "\033x",
      "\014",   "\033[",  "\xff",   "\xe6",   "\003",   "al",      "\033d",  "\033\033", "\033[5~", "\033[6~", "\033<"};
  // Keys come faster than entries end: Ctrl-S between two of them would stop the terminal, and Ctrl-C end the program.
  auto t = start({12, 30, {}, true, false});
  for (int i = 0; i < 1500; ++i) {
    switch (random() % 40) {
      case 0:
        t->send(std::string(kPasteOn) + "if 日:\r\tx\033[1m\r\r" + std::string(kPasteOff));
        break;
      case 1:
        t->resize(1 + static_cast<int>(random() % 20), 1 + static_cast<int>(random() % 40));
        break;
      case 2:
        t->signal(random() % 2 ? SIGWINCH : SIGCONT);
        break;
      default:
        t->send(kKeys[random() % std::size(kKeys)]);
    }
  }
  t->send("\033");
  t->wait([] { return false; }, 1);
  t->resize(24, 80);
  // Between two entries a terminal drops what its queue has no room for, such as the end of a paste: Ctrl-C ends that
  // when nothing follows it.
  t->send("\003\003");
  t->wait([] { return false; }, 1);
  t->send("\014");
  EXPECT_EQ(entry_of(*t, "sane\r"), "<sane>");
  EXPECT_TRUE(t->wait([&] { return t->screen().text().find("<sane>\n[") != std::string::npos; })) << t->screen().text();
}

}  // namespace
}  // namespace kiln::editor
