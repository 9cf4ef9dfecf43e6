#include "profiler/tune/records.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/files.h"

namespace kiln::profiler {
namespace {

namespace fs = std::filesystem;

class RecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kiln_tuning_XXXXXX";
    root = mkdtemp(name);
    setenv("KILN_CACHE_DIR", root.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("KILN_CACHE_DIR");
    fs::remove_all(root);
  }
  TuneRecords records() {
    return TuneRecords([this](const std::string& s) { notes.push_back(s); });
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    if (fs::exists(root + "/tuning"))
      for (const auto& e : fs::directory_iterator(root + "/tuning")) out.push_back(e.path());
    return out;
  }
  static TuneRow row(std::string config, double us = 12.5) {
    TuneRow r;
    r.config = std::move(config);
    r.state = TuneState::kMeasured;
    r.registers = 64;
    r.spill_bytes = 0;
    r.shared_bytes = 1024;
    r.occupancy = 0.5;
    r.compile_ms = 3.25;
    // A third has no short decimal form, so exact texts are tested too.
    r.us = {us, us + 0.1, us / 3};
    r.rung = 2;
    return r;
  }

  std::string root;
  std::vector<std::string> notes;
};

TEST_F(RecordsTest, WhatWasStoredIsFound) {
  TuneRecords r = records();
  EXPECT_FALSE(r.find("kernel k\n1", "a").has_value());
  r.store("kernel k\n1", "a", row("BLOCK: 1"));
  TuneRow failed = row("BLOCK: 2");
  // Quotes and line breaks in a reason.
  failed.state = TuneState::kFailed;
  failed.reason = "it does not compile: \"quoted\"\n";
  failed.us.clear();
  r.store("kernel k\n1", "b", failed);
  TuneRecords other = records();
  auto a = other.find("kernel k\n1", "a"), b = other.find("kernel k\n1", "b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->config, "BLOCK: 1");
  EXPECT_EQ(a->us, row("").us);  // to the last bit
  EXPECT_EQ(a->rung, 2);
  EXPECT_EQ(a->registers, 64);
  EXPECT_EQ(a->occupancy, 0.5);
  EXPECT_TRUE(a->from_record);
  EXPECT_EQ(b->state, TuneState::kFailed);
  EXPECT_EQ(b->reason, failed.reason);
  // The key of the kernel counts as a whole.
  EXPECT_FALSE(other.find("kernel k\n2", "a").has_value());
  EXPECT_TRUE(notes.empty());
}

TEST_F(RecordsTest, ADamagedRecordIsNotedAndMadeAnew) {
  TuneRecords r = records();
  r.store("kernel k\n", "a", row("BLOCK: 1"));
  ASSERT_EQ(files().size(), 1u);
  const std::string path = files()[0];
  const std::string whole = *read_file(path);
  // Empty, cut, other JSON, another form, an empty record, and below a digit that was changed.
  std::vector<std::string> damaged = {"",
                                      "{",
                                      "[]",
                                      "{\"format\": 5}",
                                      whole.substr(0, whole.size() / 2),
                                      "null",
                                      "{\"format\":\"kiln tuning record 1\",\"record\":{}}"};
  std::string flipped = whole;
  flipped.replace(flipped.find("12.5"), 4, "11.5");
  damaged.push_back(flipped);
  for (const std::string& text : damaged) {
    notes.clear();
    ASSERT_TRUE(write_file_atomic(path, text).ok());
    EXPECT_FALSE(r.find("kernel k\n", "a").has_value()) << text;
    ASSERT_EQ(notes.size(), 1u) << text;
    EXPECT_EQ(notes[0], "the tuning record '" + path + "' is damaged and will be measured again");
    r.store("kernel k\n", "a", row("BLOCK: 1"));
    EXPECT_TRUE(r.find("kernel k\n", "a").has_value());
  }
}

TEST_F(RecordsTest, AFolderThatCannotBeWrittenIsToldOnce) {
  // A file in the folder's place.
  std::ofstream(root + "/file") << "x";
  setenv("KILN_CACHE_DIR", (root + "/file").c_str(), 1);
  TuneRecords r = records();
  for (int i = 0; i < 3; ++i) r.store("kernel k\n", std::to_string(i), row("x"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("Not a directory; tuning results are not kept (KILN_TUNE_RECORDS=0 turns records off)"),
            std::string::npos)
      << notes[0];
}

TEST_F(RecordsTest, BothVariablesTurnThemOff) {
  TuneRecords r = records();
  for (const char* variable : {"KILN_TUNE_RECORDS", "KILN_CACHE"}) {
    setenv(variable, "0", 1);
    // Neither written nor read while off.
    r.store("kernel k\n", "a", row("x"));
    EXPECT_TRUE(files().empty());
    unsetenv(variable);
  }
  r.store("kernel k\n", "a", row("x"));
  setenv("KILN_TUNE_RECORDS", "0", 1);
  EXPECT_FALSE(r.find("kernel k\n", "a").has_value());
  unsetenv("KILN_TUNE_RECORDS");
  EXPECT_TRUE(r.find("kernel k\n", "a").has_value());
}

TEST_F(RecordsTest, ForgettingIsByKernelOrAll) {
  TuneRecords r = records();
  for (const char* kernel : {"add", "add_more", "softmax"})
    for (const char* config : {"a", "b"}) r.store(std::string("kernel ") + kernel + "\nrest", config, row(config));
  // By the whole name: add_more is another kernel.
  EXPECT_EQ(*r.forget("add"), 2);
  EXPECT_FALSE(r.find("kernel add\nrest", "a").has_value());
  EXPECT_TRUE(r.find("kernel add_more\nrest", "a").has_value());
  EXPECT_EQ(*r.forget("nothing"), 0);
  EXPECT_EQ(*r.forget(""), 4);
  EXPECT_TRUE(files().empty());
}

// Readers beside two writers of the same record see one or the other, whole.
TEST_F(RecordsTest, ProcessesAtOnceSpoilNothing) {
  constexpr int kWriters = 2, kRounds = 150;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int bad = 0;
      TuneRecords r([&](const std::string&) { ++bad; });
      for (int i = 0; i < kRounds; ++i) {
        r.store("kernel k\n", "shared", row("shared", 10 + w));
        auto seen = r.find("kernel k\n", "shared");
        // One of the two, and never a mixture.
        bad += !seen || (seen->us[0] != 10 && seen->us[0] != 11);
        r.store("kernel k\n", std::to_string(w * 1000 + i), row("own"));
      }
      _exit(bad ? 1 : 0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  // The shared one and each writer's own.
  EXPECT_EQ(files().size(), 1u + kWriters * kRounds);
  TuneRecords r = records();
  EXPECT_TRUE(r.find("kernel k\n", "shared").has_value());
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace kiln::profiler
