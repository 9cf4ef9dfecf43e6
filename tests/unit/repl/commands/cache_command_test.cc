// `kiln cache export` and `import`: what one machine compiled and tuned serves another.
#include "repl/commands/cache_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "profiler/tune/records.h"
#include "repl/shell/options.h"
#include "runtime/jit/cache.h"
#include "support/files.h"
#include "support/process.h"

namespace kiln::repl {
namespace {

class CacheCommand : public ::testing::Test {
 protected:
  CacheCommand() {
    if (const char* set = std::getenv("KILN_CACHE_DIR")) before_ = set;
    use("here");
    compiled_.name = "add", compiled_.ptx = "code";
    runtime::DiskCache cache([](const std::string& why) { ADD_FAILURE() << why; });
    cache.store("key 1", compiled_);
    cache.store("key 2", compiled_);
    profiler::TuneRow row;
    row.config = "BLOCK: 64", row.state = profiler::TuneState::kMeasured, row.us = {1, 2, 3};
    profiler::TuneRecords().store("kernel add\n", "BLOCK: 64", row);
  }
  ~CacheCommand() override { before_ ? setenv("KILN_CACHE_DIR", before_->c_str(), 1) : unsetenv("KILN_CACHE_DIR"); }
  /// Another machine's cache.
  void use(const std::string& name) { setenv("KILN_CACHE_DIR", (scratch_.path + "/" + name).c_str(), 1); }
  bool has(const std::string& key) {
    const auto found = runtime::DiskCache([](const std::string&) {}).find(key);
    return found && found->ptx == "code" && found->name == "add";
  }
  bool has_record() {
    const auto row = profiler::TuneRecords().find("kernel add\n", "BLOCK: 64");
    return row && row->us == std::vector<double>{1, 2, 3};
  }

  struct Said {
    std::string out, err;
    int code;
  };
  template <class Run>
  static Said said(Run run) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int code = run();
    std::string out = ::testing::internal::GetCapturedStdout();
    return {std::move(out), ::testing::internal::GetCapturedStderr(), code};
  }
  Said write() {
    return said([this] { return export_cache(file_, false); });
  }
  Said read() {
    return said([this] { return import_cache(file_, false); });
  }

  ScratchFolder scratch_;
  std::string file_ = scratch_.path + "/all.cache";
  std::optional<std::string> before_;
  CompiledKernel compiled_;
};

TEST_F(CacheCommand, AnotherMachineStartsWarm) {
  const Said wrote = write();
  EXPECT_EQ(wrote.code, kExitOk) << wrote.err;
  EXPECT_EQ(wrote.out.find("wrote 2 kernels and 1 tuning record ("), 0u) << wrote.out;
  use("there");
  EXPECT_FALSE(has("key 1"));
  const Said took = read();
  EXPECT_EQ(took.code, kExitOk) << took.err;
  EXPECT_EQ(took.out.find("took 2 kernels and 1 tuning record ("), 0u) << took.out;
  EXPECT_TRUE(has("key 1") && has("key 2") && has_record());
  EXPECT_EQ(read().code, kExitOk);  // again: the same files
  EXPECT_EQ(list_files(scratch_.path + "/there/kernels")->size(), 3u) << "2, and when they were last looked at";
}

TEST_F(CacheCommand, WhatIsDamagedHereStaysHere) {
  auto kernels = *list_files(scratch_.path + "/here/kernels");
  std::erase_if(kernels, [](const FileEntry& f) { return f.path.ends_with("/swept"); });
  ASSERT_TRUE(write_file_atomic(kernels[0].path, "kiln kernel 3\nnonsense").ok());
  EXPECT_EQ(write().out.find("wrote 1 kernel and 1 tuning record ("), 0u);
}

TEST_F(CacheCommand, NoPartOfAFileIsOne) {
  ASSERT_EQ(write().code, kExitOk);
  const std::string whole = *read_file(file_);
  use("there");
  for (size_t size = 0; size < whole.size(); size += std::max<size_t>(1, whole.size() / 40)) {
    ASSERT_TRUE(write_file_atomic(file_, whole.substr(0, size)).ok());
    const Said s = read();
    EXPECT_EQ(s.code, kExitError) << size;
    EXPECT_EQ(std::ranges::count(s.err, '\n'), 1) << s.err;
  }
  std::string changed = whole;
  changed[whole.size() / 2] = static_cast<char>(changed[whole.size() / 2] ^ 1);
  ASSERT_TRUE(write_file_atomic(file_, changed).ok());
  EXPECT_EQ(read().err, "error: " + file_ + " is damaged: a part of it is missing or changed\n");
  ASSERT_TRUE(write_file_atomic(file_, "print(1)\n").ok());
  EXPECT_EQ(read().err, "error: " + file_ + " is no cache of this version of Kiln (kiln cache export makes them)\n");
  EXPECT_FALSE(has("key 1") || has("key 2") || has_record());
}

TEST_F(CacheCommand, TheRulesOfTheCacheHoldForTheFile) {
  ASSERT_EQ(write().code, kExitOk);
  use("there");
  ASSERT_EQ(chmod(file_.c_str(), 0664), 0);
  EXPECT_NE(read().err.find("is not trusted: others may write there (mode 664; chmod go-w"), std::string::npos);
  ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
  const std::string link = scratch_.path + "/link";
  ASSERT_EQ(symlink(file_.c_str(), link.c_str()), 0);
  EXPECT_EQ(said([&] { return import_cache(link, false); }).code, kExitError);
  // The cache's own folder too.
  ASSERT_EQ(mkdir((scratch_.path + "/there").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((scratch_.path + "/there/tuning").c_str(), 0700), 0);
  ASSERT_EQ(chmod((scratch_.path + "/there/tuning").c_str(), 0777), 0);
  EXPECT_NE(read().err.find("is not trusted"), std::string::npos);
}

TEST_F(CacheCommand, ACacheThatIsOff) {
  setenv("KILN_CACHE", "0", 1);
  EXPECT_EQ(write().err, "error: the kernel cache is off (KILN_CACHE=0)\n");
  unsetenv("KILN_CACHE");
}

}  // namespace
}  // namespace kiln::repl
