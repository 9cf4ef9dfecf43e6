#include "support/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace kiln {
namespace {

std::string scratch_folder() {
  char name[] = "/tmp/kiln_files_XXXXXX";
  return mkdtemp(name);
}

TEST(Files, WritesReadsAndReplaces) {
  std::string path = scratch_folder() + "/a";
  ASSERT_TRUE(write_file_atomic(path, "one").ok());
  ASSERT_TRUE(write_file_atomic(path, std::string("t\0wo", 4)).ok());
  auto text = read_file(path);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, std::string("t\0wo", 4));
}

TEST(Files, MissingFileSaysSo) {
  auto text = read_file("/nowhere/at/all");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().kind, ErrorKind::kIo);
  EXPECT_EQ(text.error().message, "cannot open '/nowhere/at/all': No such file or directory");
}

TEST(Files, FolderIsNotAFile) {
  auto text = read_file("/tmp");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, "cannot read '/tmp': Is a directory");
}

TEST(Files, FullDiskLeavesNothingBehind) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  // The temporary file stands beside its target, so a full disk is played by a folder that cannot be written.
  auto status = write_file_atomic("/proc/kiln_cannot_be_here", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kIo);
}

TEST(Files, MakesNestedFoldersAndLists) {
  std::string root = scratch_folder();
  ASSERT_TRUE(make_directories(root + "/x/y/z").ok());
  ASSERT_TRUE(make_directories(root + "/x/y/z").ok());
  ASSERT_TRUE(write_file_atomic(root + "/x/y/z/f", "12345").ok());
  auto files = list_files(root + "/x/y/z");
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->front().bytes, 5);
  ASSERT_TRUE(list_files(root + "/none").ok());
  auto below_file = make_directories(root + "/x/y/z/f/g");
  ASSERT_FALSE(below_file.ok());
  EXPECT_EQ(below_file.error().kind, ErrorKind::kIo);
}

TEST(Files, ConcurrentWritersNeverShowAPart) {
  std::string path = scratch_folder() + "/shared";
  const std::string a(100'000, 'a'), b(50'000, 'b');
  ASSERT_TRUE(write_file_atomic(path, a).ok());
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(write_file_atomic(path, i % 2 ? a : b).ok());
  });
  for (int i = 0; i < 50; ++i) {
    auto text = read_file(path);
    ASSERT_TRUE(text.ok());
    EXPECT_TRUE(*text == a || *text == b);
  }
  writer.join();
}

TEST(Files, CacheFolderFollowsTheVariables) {
  setenv("XDG_CACHE_HOME", "/x", 1);
  unsetenv("KILN_CACHE_DIR");
  EXPECT_EQ(*cache_directory(), "/x/kiln");
  setenv("KILN_CACHE_DIR", "/own", 1);
  EXPECT_EQ(*cache_directory(), "/own");
  unsetenv("KILN_CACHE_DIR");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(*cache_directory(), "/h/.cache/kiln");
}

}  // namespace
}  // namespace kiln
