// The names of torch against what PyTorch gave for them (torch_names.py), on the host and as kernels.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "repl/session/session.h"

namespace kiln::script {
namespace {

const std::string kFolder = std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/";

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "\\'" : std::string(1, c);
  return out + "'";
}

/// What differs: a line each.
std::string differences(bool lazy, size_t step) {
  std::stringstream check;
  check << std::ifstream(kFolder + "torch_names_check.py").rdbuf();
  std::string variables, script = check.str();
  if (lazy) script += "torch._kiln.stay_lazy(True)\n";
  std::ifstream file(kFolder + "torch_names.txt");
  size_t rows = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      if (line[0] != '#') variables += "    " + line + "\n";
      continue;
    }
    if (rows++ % step != 0) continue;
    const std::string text = line.substr(0, tab), wanted = line.substr(tab + 1);
    script +=
        fmt::format("def one():\n{}    return {}\ncheck({}, one, (lambda inf, nan: {})(float('inf'), float('nan')))\n",
                    variables, text, quoted(text), wanted == "error" ? "'error'" : wanted);
  }
  EXPECT_GT(rows, 1000u);
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.device = *Device::open("cpu");
  Session session(std::move(options));
  Status status = session.run(script, "names.py", Mode::kFile);
  if (!status.ok()) out += render(status.error());
  return out;
}

TEST(TorchNames, OnTheHost) { EXPECT_EQ(differences(false, 1), ""); }
TEST(TorchNames, AsKernels) { EXPECT_EQ(differences(true, 3), ""); }

/// A row that is wrong is seen.
TEST(TorchNames, DifferencesAreTold) {
  std::stringstream check;
  check << std::ifstream(kFolder + "torch_names_check.py").rdbuf();
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.device = *Device::open("cpu");
  Session session(std::move(options));
  const std::string text = check.str() +
                           "check('a', lambda: torch.ones(2), ('float32', (2,), [1.0, 1.1]))\n"
                           "check('b', lambda: torch.ones(2), ('float64', (2,), [1.0, 1.0]))\n"
                           "check('c', lambda: torch.ones(2), 'error')\n"
                           "check('d', lambda: [1 / 0], [1.0])\n";
  ASSERT_TRUE(session.run(text, "names.py", Mode::kFile).ok());
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 4) << out;
}

}  // namespace
}  // namespace kiln::script
