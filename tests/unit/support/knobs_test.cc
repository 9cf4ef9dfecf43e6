#include "support/knobs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace kiln {
namespace {

TEST(Knobs, DefaultsAndOverrides) {
  unsetenv("KILN_CACHE");
  EXPECT_TRUE(knob_on(Knob::kCache));
  setenv("KILN_CACHE", "0", 1);
  EXPECT_FALSE(knob_on(Knob::kCache));
  setenv("KILN_CACHE", "", 1);
  EXPECT_TRUE(knob_on(Knob::kCache)) << "an empty variable counts as unset";
  unsetenv("KILN_CACHE");
}

TEST(Knobs, Sizes) {
  unsetenv("KILN_CACHE_LIMIT");
  // One GiB is the default.
  EXPECT_EQ(**knob_bytes(Knob::kCacheLimit), int64_t{1} << 30);
  for (auto [text, bytes] : {std::pair{"123", 123L}, {"2k", 2048L}, {"3M", 3L << 20}, {"0", 0L}}) {
    setenv("KILN_CACHE_LIMIT", text, 1);
    EXPECT_EQ(**knob_bytes(Knob::kCacheLimit), bytes) << text;
  }
  // Units that do not exist, signs, blanks, and what overflows.
  for (const char* bad : {"x", "1T", "-1", "G", "99999999999G", "1 G"}) {
    setenv("KILN_CACHE_LIMIT", bad, 1);
    auto bytes = knob_bytes(Knob::kCacheLimit);
    ASSERT_FALSE(bytes.ok()) << bad;
    EXPECT_EQ(bytes.error().kind, ErrorKind::kValue);
    EXPECT_NE(bytes.error().message.find(bad), std::string::npos);
  }
  unsetenv("KILN_CACHE_LIMIT");
}

TEST(Knobs, Integers) {
  unsetenv("KILN_THREADS");
  // Without a default the answer is that nothing was chosen.
  EXPECT_FALSE(knob_int(Knob::kThreads, 1)->has_value());
  setenv("KILN_THREADS", "3", 1);
  EXPECT_EQ(**knob_int(Knob::kThreads, 1), 3);
  for (const char* bad : {"0", "two", "3.5", "-2"}) {
    setenv("KILN_THREADS", bad, 1);
    ASSERT_FALSE(knob_int(Knob::kThreads, 1).ok()) << bad;
  }
  unsetenv("KILN_THREADS");
}

TEST(Knobs, ValuesThatNobodyElseWouldTell) {
  EXPECT_EQ(knob_problems(), std::vector<std::string>());
  for (const char* good : {"0", "no", "true", ""}) {
    setenv("KILN_EXACT", good, 1);
    EXPECT_EQ(knob_problems(), std::vector<std::string>()) << good;
  }
  setenv("KILN_EXACT", "maybe", 1);
  // Two at once, told in the order of the table.
  setenv("KILN_PLAN_LIMIT", "0", 1);
  EXPECT_EQ(knob_problems(),
            (std::vector<std::string>{"KILN_PLAN_LIMIT=0 is not an integer of at least 1, and counts as 512",
                                      "KILN_EXACT=maybe is neither 0 nor 1, and counts as 1"}));
  unsetenv("KILN_EXACT");
  unsetenv("KILN_PLAN_LIMIT");
}

// Every KILN_* variable that the sources read has a row, and every row is read somewhere.
TEST(Knobs, TableMatchesTheSources) {
  namespace fs = std::filesystem;
  std::set<std::string> rows, read;
  for (const KnobInfo& k : knobs()) {
    EXPECT_TRUE(rows.insert(std::string(k.variable)).second) << k.variable << " twice";
    EXPECT_FALSE(k.meaning.empty());
  }
  const std::regex direct(R"re(getenv\("(KILN_\w+)"\))re"), by_enum(R"re(Knob::k(\w+))re");
  // The names of variables by the names of the enum.
  std::map<std::string, std::string> variable_of;
  {
    std::ifstream in(KILN_SOURCE_DIR "/support/knobs.def");
    const std::regex row(R"re(KILN_KNOB\((\w+),\s*"(\w+)")re");
    std::smatch m;
    for (std::string line; std::getline(in, line);)
      if (std::regex_search(line, m, row)) variable_of[m[1]] = m[2];
  }
  for (const char* top : {"support", "compiler", "runtime", "profiler", "kernels", "repl", "tests", "bench"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(KILN_SOURCE_DIR) / top)) {
      std::string ext = entry.path().extension();
      if ((ext != ".cc" && ext != ".h") || entry.path().filename() == "knobs_test.cc") continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        for (std::sregex_iterator it(line.begin(), line.end(), direct), end; it != end; ++it) {
          read.insert((*it)[1]);
          EXPECT_TRUE(rows.count((*it)[1]))
              << entry.path() << " reads " << (*it)[1] << ", which has no row in knobs.def";
        }
        for (std::sregex_iterator it(line.begin(), line.end(), by_enum), end; it != end; ++it)
          read.insert(variable_of[(*it)[1]]);
      }
    }
  for (const std::string& row : rows) EXPECT_TRUE(read.count(row)) << row << " is in knobs.def and nothing reads it";
}

TEST(Knobs, TheDriversCacheStaysOffUnlessChosen) {
  const char* kVariable = "CUDA_CACHE_DISABLE";
  const char* before = std::getenv(kVariable);
  const std::optional<std::string> kept = before ? std::optional<std::string>(before) : std::nullopt;
  unsetenv(kVariable);
  leave_drivers_code_cache_off();
  // Kiln has a cache of its own; a second one beside it takes room on the disk.
  EXPECT_STREQ(std::getenv(kVariable), "1");
  // What the user has chosen stays.
  setenv(kVariable, "0", 1);
  leave_drivers_code_cache_off();
  EXPECT_STREQ(std::getenv(kVariable), "0");
  kept ? setenv(kVariable, kept->c_str(), 1) : unsetenv(kVariable);
}

}  // namespace
}  // namespace kiln
