// dtypes, shapes and errors of random statements over tensors, as PyTorch gave them (torch_surface.py).
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

TEST(TorchSurface, AsPyTorch) {
  std::ifstream in(std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/torch_surface.txt");
  Options options;
  options.device = *open_device("cpu");
  Session session(std::move(options));
  ASSERT_TRUE(session.run("import torch\n", "surface.py", Mode::kFile).ok());
  int rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    const std::string text = line.substr(0, tab), wanted = line.substr(tab + 1);
    auto value = session.evaluate("(lambda v: str(v.dtype)[6:] + ' ' + str(tuple(v.shape)))(" + text + ")");
    if (wanted == "error") {
      EXPECT_FALSE(value.ok()) << text << " is " << *value;
      continue;
    }
    ASSERT_TRUE(value.ok()) << text << "\n" << render(value.error());
    EXPECT_EQ(*value, "'" + wanted + "'") << text;
  }
  EXPECT_GT(rows, 500);
}

}  // namespace
}  // namespace kiln::script
