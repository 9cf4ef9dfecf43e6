// Tables of docs/ that are made from the program's own.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace kiln::testing {

/// Expects `table` in docs/PAGE between `<!-- NAME -->` and `<!-- end of NAME -->`; with KILN_BLESS=1 writes it there.
inline void check_docs_table(const std::string& page, const std::string& name, const std::string& table) {
  const std::string path = std::string(KILN_SOURCE_DIR) + "/docs/" + page, open = "<!-- " + name + " -->\n",
                    close = "<!-- end of " + name + " -->";
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  const std::string text = buffer.str();
  size_t begin = text.find(open), end = text.find(close);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << path;
  begin += open.size();
  if (std::getenv("KILN_BLESS"))
    std::ofstream(path) << text.substr(0, begin) << table << text.substr(end);
  else
    EXPECT_EQ(text.substr(begin, end - begin), table) << path << ": run with KILN_BLESS=1 to write the table";
}

}  // namespace kiln::testing
