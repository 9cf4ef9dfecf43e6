#include "repl/editor/history.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "support/files.h"
#include "support/process.h"

namespace kiln::editor {
namespace {

std::vector<std::string> all(const History& h) {
  std::vector<std::string> out;
  for (size_t i = 0; i < h.size(); ++i) out.push_back(h[i]);
  return out;
}

std::vector<std::string> in_file(const std::string& file) {
  auto text = read_file(file);
  return text.ok() ? parse_history(*text) : std::vector<std::string>{};
}

using Entries = std::vector<std::string>;

TEST(History, KeepsBlocks) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  // Blocks, blank lines within them, comments, other scripts, backslashes, escapes.
  const Entries entries = {"x = 1", "def f():\n    # 1\n\n    return '#2'", "é日本", "# only a note", "\\n \033[31m"};
  {
    History h({file, "", 100});
    EXPECT_TRUE(h.refresh().ok());
    for (const std::string& e : entries) EXPECT_TRUE(h.add(e + "\n").ok());
    EXPECT_TRUE(h.add(entries.back()).ok());  // the same again
    EXPECT_TRUE(h.add(" \n").ok());
    EXPECT_EQ(all(h), entries);
  }
  EXPECT_EQ(in_file(file), entries);
  struct stat info {};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  // A history may hold secrets.
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(History, SessionsShareOneFile) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  // Two prompts at once.
  History a({file, "", 100}), b({file, "", 100});
  EXPECT_TRUE(a.refresh().ok() && b.refresh().ok());
  EXPECT_TRUE(a.add("a1").ok());
  EXPECT_TRUE(b.add("b1").ok());
  EXPECT_TRUE(a.add("a2").ok());
  EXPECT_TRUE(a.refresh().ok() && b.refresh().ok());
  EXPECT_EQ(all(a), (Entries{"b1", "a1", "a2"}));  // one's own are the nearest
  EXPECT_EQ(all(b), (Entries{"a1", "a2", "b1"}));
  EXPECT_EQ(in_file(file), (Entries{"a1", "b1", "a2"}));
}

TEST(History, ManyWritersLoseNothing) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      History h({file, "", 1000});
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(h.add("w" + std::to_string(w) + "\n  " + std::to_string(i)).ok());
    });
  for (std::thread& t : writers) t.join();
  const Entries found = in_file(file);
  // As a set, for the order between writers is open.
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 200u);
}

TEST(History, OutlivesAKill) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  const pid_t child = fork();
  if (child == 0) {
    History h({file, "", 100});
    if (!h.add("kept").ok()) _exit(1);
    // Without a chance to write anything.
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(in_file(file), Entries{"kept"});
}

TEST(History, ATornEndHarmsNothing) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  // A record that was cut: the next one must begin on a line of its own.
  ASSERT_TRUE(write_file_atomic(file, history_record("one", 1) + "#2\n tw").ok());
  History h({file, "", 100});
  EXPECT_TRUE(h.refresh().ok());
  EXPECT_EQ(all(h), Entries{"one"});
  EXPECT_TRUE(h.add("three").ok());
  EXPECT_EQ(in_file(file), (Entries{"one", "tw", "three"}));
  EXPECT_EQ(parse_history("garbage\n more\n#\n"), Entries{});
}

TEST(History, TakesOverLibeditsFile) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h", old_file = folder.path + "/old";
  // libedit's way to write blanks, backslashes and the end of its file.
  ASSERT_TRUE(write_file_atomic(old_file, "_HiStOrY_V2_\nx\\040=\\0401\nprint('\\\\n')\n\n").ok());
  History h({file, old_file, 100});
  EXPECT_TRUE(h.refresh().ok());
  EXPECT_EQ(all(h), (Entries{"x = 1", "print('\\n')"}));
  EXPECT_TRUE(h.add("y").ok());
  // The old file is taken over once.
  History again({file, old_file, 100});
  EXPECT_TRUE(again.refresh().ok());
  EXPECT_EQ(all(again), (Entries{"x = 1", "print('\\n')", "y"}));
}

TEST(History, ALargeFileIsCut) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  std::string text;
  for (int i = 0; i < 40; ++i) text += history_record("e" + std::to_string(i), i);
  ASSERT_TRUE(write_file_atomic(file, text).ok());
  History other({file, "", 100});
  EXPECT_TRUE(other.refresh().ok());
  History h({file, "", 10});
  EXPECT_TRUE(h.refresh().ok());
  EXPECT_EQ(h.size(), 10u);
  // The newest ten.
  EXPECT_EQ(h[0], "e30");
  struct stat info {};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(other.add("from the other").ok());  // which still knows the old file
  EXPECT_EQ(in_file(file).back(), "from the other");
  EXPECT_EQ(in_file(file).size(), 11u);
}

TEST(History, WhatIsNoFileIsAnError) {
  ScratchFolder folder;
  const std::string file = folder.path + "/h";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  History h({file, "", 10});
  EXPECT_FALSE(h.refresh().ok());
  EXPECT_FALSE(h.add("x").ok());
  EXPECT_EQ(h.size(), 1u);  // still in memory
  unlink(file.c_str());
  History nowhere({folder.path + "/no/h", "", 10});
  // No file yet is an empty history, and a folder that is missing shows with the first entry.
  EXPECT_TRUE(nowhere.refresh().ok());
  EXPECT_FALSE(nowhere.add("x").ok());
}

TEST(History, Finds) {
  History h({"", "", 10});
  for (const char* e : {"abc", "x = 1", "abd", "y"}) EXPECT_TRUE(h.add(e).ok());
  EXPECT_EQ(h.find_before(4, "ab", true, ""), 2u);
  EXPECT_EQ(h.find_before(2, "ab", true, ""), 0u);
  // Not the same text as the one that is shown.
  EXPECT_EQ(h.find_before(4, "ab", true, "abd"), 0u);
  EXPECT_EQ(h.find_before(4, "b", true, ""), std::nullopt);
  EXPECT_EQ(h.find_before(4, "=", false, ""), 1u);
  EXPECT_EQ(h.find_after(0, "ab", true, ""), 2u);
  EXPECT_EQ(h.find_after(2, "ab", true, ""), std::nullopt);
}

TEST(History, CountsNames) {
  History h({"", "", 10});
  for (const char* e : {"torch.zeros(4)", "x = torch.zeros(n=3)\nx", "%bench torch.ones(2)"})
    EXPECT_TRUE(h.add(e).ok());
  EXPECT_EQ(h.uses("torch.zeros"), 2);
  EXPECT_EQ(h.uses("torch.ones"), 1);
  // A name counts as it was written: torch alone was not used.
  EXPECT_EQ(h.uses("torch"), 0);
  EXPECT_EQ(h.uses("%bench "), 1);
  EXPECT_EQ(h.uses("n="), 1);
  EXPECT_TRUE(h.add("torch.ones(3)").ok());
  EXPECT_EQ(h.uses("torch.ones"), 2);
}

TEST(History, EntriesOfOtherSessionsCountOnce) {
  ScratchFolder folder;
  History h({folder.path + "/h", "", 10}), other({folder.path + "/h", "", 10});
  EXPECT_TRUE(h.add("torch.ones(3)").ok());
  EXPECT_EQ(h.uses("torch.ones"), 1);
  EXPECT_TRUE(other.add("torch.zeros(3)").ok());
  // Read again: what was counted before must not count twice.
  EXPECT_TRUE(h.refresh().ok());
  EXPECT_EQ(h.uses("torch.zeros"), 1);
  EXPECT_EQ(h.uses("torch.ones"), 1);
}

}  // namespace
}  // namespace kiln::editor
