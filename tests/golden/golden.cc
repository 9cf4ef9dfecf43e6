#include "tests/golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace kiln::golden {

namespace {

namespace fs = std::filesystem;
constexpr char kMark[] = "---- ";
constexpr char kExpect[] = "---- expect\n";

class FileTest : public testing::Test {
 public:
  FileTest(fs::path path, Runner runner, Compared compared)
      : path_(std::move(path)), runner_(std::move(runner)), compared_(std::move(compared)) {}

  void TestBody() override {
    std::stringstream buffer;
    buffer << std::ifstream(path_).rdbuf();
    const std::string all = buffer.str();
    const size_t line_end = all.find('\n'), expect = all.find(std::string("\n") + kExpect);
    ASSERT_TRUE(all.starts_with(kMark) && line_end != std::string::npos)
        << path_ << " does not start with ---- COMMAND";
    const size_t text_end = expect == std::string::npos ? all.size() : expect + 1;
    Input input{path_.filename().string(), all.substr(sizeof(kMark) - 1, line_end - sizeof(kMark) + 1),
                all.substr(line_end + 1, text_end - line_end - 1)};
    std::string actual = runner_(input);
    if (actual.empty() || actual.back() != '\n') actual += '\n';
    std::string expected = expect == std::string::npos ? "" : all.substr(text_end + sizeof(kExpect) - 1);
    if (compared_) {
      actual = compared_(actual), expected = compared_(expected);
      EXPECT_EQ(expected, actual) << path_ << ": of these lines a part is compared, so KILN_BLESS=1 leaves them";
      return;
    }
    if (actual == expected) return;
    if (std::getenv("KILN_BLESS")) {
      std::ofstream(path_) << all.substr(0, text_end) << kExpect << actual;
      return;
    }
    EXPECT_EQ(expected, actual) << path_ << ": run with KILN_BLESS=1 to accept the new text";
  }

 private:
  fs::path path_;
  Runner runner_;
  Compared compared_;
};

class EmptyFolderTest : public testing::Test {
 public:
  explicit EmptyFolderTest(std::string folder) : folder_(std::move(folder)) {}
  void TestBody() override { FAIL() << "no *.txt under " << folder_; }

 private:
  std::string folder_;
};

}  // namespace

bool register_folder(const std::string& folder, const Runner& runner, const Compared& compared) {
  const fs::path root = fs::path(KILN_SOURCE_DIR) / "tests/golden" / folder;
  std::vector<fs::path> files;
  std::error_code ignored;  // a missing folder is an empty one
  for (const auto& entry : fs::directory_iterator(root, ignored))
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const std::string suite = "Golden_" + folder;
  if (files.empty())
    testing::RegisterTest(suite.c_str(), "Files", nullptr, nullptr, __FILE__, __LINE__,
                          [root]() -> testing::Test* { return new EmptyFolderTest(root.string()); });
  for (const fs::path& file : files)
    testing::RegisterTest(suite.c_str(), file.stem().c_str(), nullptr, nullptr, file.c_str(), 1,
                          [=]() -> testing::Test* { return new FileTest(file, runner, compared); });
  return true;
}

}  // namespace kiln::golden
