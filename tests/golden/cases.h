// Golden tests: files of cases, text in and text out. A file holds any number of
//
//   === name
//   input lines
//   ---
//   expected lines
//
// and is rewritten with what came out when KILN_BLESS=1 is set.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace kiln::testing {

struct GoldenCase {
  std::string name, input, expected;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::vector<GoldenCase> read_golden(const std::filesystem::path& path) {
  std::vector<GoldenCase> cases;
  std::stringstream in(read_text(path));
  std::string line;
  bool in_expected = false;
  while (std::getline(in, line)) {
    if (line.rfind("=== ", 0) == 0) {
      cases.push_back({line.substr(4), "", ""});
      in_expected = false;
    } else if (line == "---" && !in_expected) {
      in_expected = true;
    } else if (!cases.empty()) {
      (in_expected ? cases.back().expected : cases.back().input) += line + "\n";
    }
  }
  return cases;
}

/// Every golden file of tests/golden/ROOM, in order of name.
inline std::vector<std::filesystem::path> golden_files(const std::string& room) {
  std::vector<std::filesystem::path> files;
  for (const auto& e :
       std::filesystem::directory_iterator(std::filesystem::path(KILN_SOURCE_DIR) / "tests/golden" / room))
    if (e.path().extension() == ".test") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Runs each case of a file through `run` and compares; with KILN_BLESS=1 writes the file anew instead.
inline void check_golden(const std::filesystem::path& path, const std::function<std::string(const GoldenCase&)>& run) {
  std::vector<GoldenCase> cases = read_golden(path);
  ASSERT_FALSE(cases.empty()) << path << " holds no case";
  const char* bless = std::getenv("KILN_BLESS");
  std::string blessed;
  for (const GoldenCase& c : cases) {
    std::string out = run(c);
    if (!out.empty() && out.back() != '\n') out += '\n';
    blessed += "=== " + c.name + "\n" + c.input + "---\n" + out;
    if (!bless) {
      EXPECT_EQ(out, c.expected) << path.filename() << ": " << c.name << "\n" << c.input;
    }
  }
  if (bless) std::ofstream(path, std::ios::binary) << blessed;
}

}  // namespace kiln::testing
