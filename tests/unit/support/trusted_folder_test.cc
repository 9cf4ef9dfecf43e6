#include "support/trusted_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace kiln {
namespace {

class TrustedFolderTest : public testing::Test {
 protected:
  TrustedFolderTest() {
    char name[] = "/tmp/kiln_trust_XXXXXX";
    root = mkdtemp(name);
  }
  ~TrustedFolderTest() override { std::system(("rm -rf " + root).c_str()); }
  std::string error_of(const std::string& folder) {
    auto opened = TrustedFolder::open(folder, true);
    return opened.ok() ? "" : opened.error().message;
  }
  mode_t mode(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::stat(path.c_str(), &st), 0);
    return st.st_mode & 07777;
  }

  std::string root;
};

TEST_F(TrustedFolderTest, KeepsFilesForThisUserAlone) {
  // Only the second call may make folders.
  ASSERT_FALSE(TrustedFolder::open(root + "/a/b", false).ok());
  auto folder = TrustedFolder::open(root + "/a/b", true);
  ASSERT_TRUE(folder.ok()) << folder.error().message;
  EXPECT_EQ(mode(root + "/a"), 0700u);
  EXPECT_EQ(mode(root + "/a/b"), 0700u);
  EXPECT_FALSE(folder->read("none")->has_value());
  ASSERT_TRUE(folder->write("one", std::string("a\0b", 3)).ok());
  ASSERT_TRUE(folder->write("one", std::string("c\0d", 3)).ok());
  EXPECT_EQ(mode(root + "/a/b/one"), 0600u);
  EXPECT_EQ(**folder->read("one"), std::string("c\0d", 3));
  ASSERT_EQ(folder->list()->size(), 1u);
  EXPECT_EQ((*folder->list())[0].path, "one");
  EXPECT_EQ((*folder->list())[0].bytes, 3);
  EXPECT_TRUE(folder->remove("one").ok());
  EXPECT_TRUE(folder->list()->empty());
}

TEST_F(TrustedFolderTest, OthersMustNotBeAbleToWriteThere) {
  // Everybody, the group, everybody with the sticky bit, others without reading.
  for (mode_t bad : {0777, 0770, 01777, 0702}) {
    const std::string folder = root + "/open";
    ::mkdir(folder.c_str(), 0700);
    ::chmod(folder.c_str(), bad);
    EXPECT_NE(error_of(folder).find("is not trusted: others may write there (mode "), std::string::npos)
        << error_of(folder);
  }
  // Others may read.
  ::chmod((root + "/open").c_str(), 0755);
  EXPECT_EQ(error_of(root + "/open"), "");
  // A link could be pointed elsewhere by whoever owns it.
  ::symlink((root + "/open").c_str(), (root + "/link").c_str());
  EXPECT_NE(error_of(root + "/link"), "");
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
  ASSERT_EQ(::chown((root + "/open").c_str(), 12345, 12345), 0);
  EXPECT_NE(error_of(root + "/open").find("is not trusted: it belongs to another user (12345)"), std::string::npos);
}

TEST_F(TrustedFolderTest, AFileMustBeTrustworthyToo) {
  auto folder = *TrustedFolder::open(root, true);
  ASSERT_TRUE(folder.write("entry", "code").ok());
  ::chmod((root + "/entry").c_str(), 0666);
  EXPECT_NE(folder.read("entry").error().message.find("others may write there"), std::string::npos);
  ::chmod((root + "/entry").c_str(), 0644);
  EXPECT_EQ(**folder.read("entry"), "code");
  ::symlink((root + "/entry").c_str(), (root + "/link").c_str());
  EXPECT_FALSE(folder.read("link").ok());
  // Opening a pipe must not wait for its writer.
  ASSERT_EQ(::mkfifo((root + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(folder.read("pipe").error().message.find("is not trusted: it is no regular file"), std::string::npos);
  ::mkdir((root + "/folder").c_str(), 0700);
  EXPECT_FALSE(folder.read("folder").ok());
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of other users";
  ASSERT_EQ(::chown((root + "/entry").c_str(), 12345, 12345), 0);
  EXPECT_NE(folder.read("entry").error().message.find("it belongs to another user"), std::string::npos);
}

}  // namespace
}  // namespace kiln
