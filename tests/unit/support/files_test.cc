#include "support/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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
  // A zero byte inside, as records have.
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

// A full disk is played by a limit on the size of files: the write fails half-way in the same manner.
TEST(Files, FullDiskLeavesNothingBehind) {
  std::string folder = scratch_folder(), path = folder + "/big";
  ASSERT_TRUE(write_file_atomic(path, "old").ok());
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Else the limit would end the process instead of failing the write.
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{8192, 8192};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto status = write_file_atomic(path, std::string(100'000, 'x'));
    bool right = !status.ok() && status.error().kind == ErrorKind::kIo &&
                 status.error().message == "cannot write '" + path + "': File too large";
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(list_files(folder)->size(), 1u) << "the temporary file is gone";
}

TEST(Files, PiecesAreThereWhenTheyAreFinished) {
  std::string folder = scratch_folder(), path = folder + "/a";
  {
    auto file = FileWriter::open(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("one").ok());
    FileWriter moved = *std::move(file);
    ASSERT_TRUE(moved.write(" two").ok());
    EXPECT_FALSE(read_file(path).ok()) << "nothing before the end";
    ASSERT_TRUE(moved.finish().ok());
  }
  EXPECT_EQ(*read_file(path), "one two");
  {
    // Destroyed without finish(): given up.
    auto file = FileWriter::open(path);
    ASSERT_TRUE(file->write("new").ok());
  }
  EXPECT_EQ(*read_file(path), "one two") << "what is given up leaves the old content";
  EXPECT_EQ(list_files(folder)->size(), 1u);
}

TEST(Files, WhetherAFileCanBeWrittenLeavesNothing) {
  std::string folder = scratch_folder();
  EXPECT_TRUE(check_writable(folder + "/a").ok());
  // A device is written in place, so nothing is made beside it.
  EXPECT_TRUE(check_writable("/dev/null").ok());
  EXPECT_EQ(list_files(folder)->size(), 0u);
  EXPECT_EQ(check_writable(folder + "/no/a").error().message,
            "cannot write '" + folder + "/no/a': No such file or directory");
  EXPECT_EQ(check_writable(folder).error().message, "cannot write '" + folder + "': Is a directory");
}

TEST(Files, NoPermissionIsAnError) {
  // Nobody can make a file there, root included.
  auto status = write_file_atomic("/proc/kiln_cannot_be_here", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kIo);
}

TEST(Files, MakesNestedFoldersAndLists) {
  std::string root = scratch_folder();
  ASSERT_TRUE(make_directories(root + "/x/y/z").ok());
  // Again: a folder that is there is no error.
  ASSERT_TRUE(make_directories(root + "/x/y/z").ok());
  ASSERT_TRUE(write_file_atomic(root + "/x/y/z/f", "12345").ok());
  auto files = list_files(root + "/x/y/z");
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->front().bytes, 5);
  // No folder has no files.
  ASSERT_TRUE(list_files(root + "/none").ok());
  auto below_file = make_directories(root + "/x/y/z/f/g");
  ASSERT_FALSE(below_file.ok());
  EXPECT_EQ(below_file.error().kind, ErrorKind::kIo);
}

TEST(Files, ConcurrentWritersNeverShowAPart) {
  std::string path = scratch_folder() + "/shared";
  // Of different lengths, so that a mixture would show.
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

TEST(Files, RefusesWhatIsNoProgramOfOurs) {
  std::string path = scratch_folder() + "/huge";
  ASSERT_TRUE(write_file_atomic(path, "").ok());
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(kLargestFile) + 1), 0);  // takes no room on the disk
  auto text = read_file(path);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, "cannot read '" + path + "': File too large");
}

// Renaming over /dev/null would replace the device by a file.
TEST(Files, WritesSpecialFilesInPlace) {
  std::string path = scratch_folder() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] {
    auto text = read_file(path);
    ASSERT_TRUE(text.ok());
    got = *text;
  });
  EXPECT_TRUE(write_file_atomic(path, "through the pipe").ok());
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_TRUE(S_ISFIFO(st.st_mode));
  // What fails at the end of a write is an error too.
  EXPECT_FALSE(write_file_atomic("/dev/full", "x").ok());
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
