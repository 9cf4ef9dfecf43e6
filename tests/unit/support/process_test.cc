#include "support/process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/files.h"
#include "support/knobs.h"

namespace kiln {
namespace {

TEST(Process, GivesWhatItWroteAndItsStatus) {
  auto merged = run_process({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->out, "out\nerr\n");
  EXPECT_NE(merged->status, 0);
  auto apart = run_process({"/bin/sh", "-c", "echo out; echo err >&2"}, Streams::kSeparate);
  ASSERT_TRUE(apart.ok());
  EXPECT_EQ(apart->out, "out\n");
  EXPECT_EQ(apart->errors, "err\n");
  EXPECT_EQ(apart->status, 0);
}

// More than a pipe holds, on both at once: neither may wait for the other.
TEST(Process, ReadsBothStreamsAtOnce) {
  auto much = run_process({"/bin/sh", "-c",
                           "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; "
                           "echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done"},
                          Streams::kSeparate);
  ASSERT_TRUE(much.ok());
  EXPECT_EQ(much->out.size(), 3000u * 41);
  EXPECT_EQ(much->errors.size(), 3000u * 41);
}

TEST(Process, TheToolkitsFoldersAreNamedOnce) {
  const std::string before = knob(Knob::kCudaHome);
  const std::vector<std::string> usual = {"/usr/local/cuda"}, both = {"/opt/cuda", "/usr/local/cuda"};
  for (const char* home : {"", "/usr/local/cuda", "/usr/local/cuda/"}) {
    setenv("CUDA_HOME", home, 1);
    EXPECT_EQ(toolkit_roots(), usual) << home;
  }
  for (const char* home : {"/opt/cuda", "/opt/cuda//"}) {
    setenv("CUDA_HOME", home, 1);
    EXPECT_EQ(toolkit_roots(), both) << home;
  }
  before.empty() ? unsetenv("CUDA_HOME") : setenv("CUDA_HOME", before.c_str(), 1);
}

TEST(Process, WhatIsNotThereIsNamed) {
  auto none = run_process({"/nowhere/tool"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "cannot run /nowhere/tool: No such file or directory");
}

TEST(Process, ProgramsOfTheToolkitComeFirst) {
  ScratchFolder folder;
  ASSERT_FALSE(folder.path.empty());
  ASSERT_TRUE(make_directories(folder.path + "/bin").ok());
  const std::string tool = folder.path + "/bin/sh";
  ASSERT_TRUE(write_file_atomic(tool, "").ok());
  const std::string roots[] = {folder.path};
  auto names = [&](const auto& found) { return std::find(found.begin(), found.end(), tool) != found.end(); };
  EXPECT_FALSE(names(find_programs("sh", roots))) << "it is not executable";
  chmod(tool.c_str(), 0755);
  auto found = find_programs("sh", roots);
  ASSERT_GE(found.size(), 2u) << "PATH has one too";
  EXPECT_EQ(found[0], tool);
  EXPECT_TRUE(find_programs("no-such-program-of-kiln", roots).empty());
}

TEST(Process, AScratchFolderGoes) {
  std::string path;
  {
    ScratchFolder folder;
    path = folder.path;
    ASSERT_TRUE(write_file_atomic(path + "/x", "y").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace kiln
