// Gradients recorded from PyTorch (torch_gradients.py), with small tensors on the host and with kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

struct GradientRows {
  std::string variables;
  std::vector<std::pair<std::string, std::string>> rows;
};

GradientRows read_gradient_rows() {
  GradientRows out;
  std::ifstream file(std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/torch_gradients.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos)
      out.rows.emplace_back(line.substr(0, tab), line.substr(tab + 1));
    else if (line[0] != '#')
      out.variables += line + "\n";
  }
  return out;
}

/// "float32 (2,) 1 2.5; …": dtypes and shapes alike, elements up to the rounding of a step in between.
bool are_close(const std::string& got, const std::string& expected) {
  std::istringstream a(got), b(expected);
  double tolerance = 0, most = 0;
  std::vector<std::pair<double, double>> elements;
  auto all_near = [&] {
    for (const auto& [x, y] : elements)
      if (!(x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * std::max(most, 1e-3)))
        return false;
    elements.clear();
    return true;
  };
  for (std::string x, y; b >> y;) {
    if (!(a >> x)) return false;
    char *end_x = nullptr, *end_y = nullptr;
    const double v = std::strtod(x.c_str(), &end_x), w = std::strtod(y.c_str(), &end_y);
    if (end_y != y.c_str() && end_x != x.c_str()) {
      elements.emplace_back(v, w);
      if (std::isfinite(w)) most = std::max(most, std::abs(w));
    } else if (x != y) {
      return false;
    } else if (y.starts_with("float") || y.starts_with("bfloat")) {
      if (!all_near()) return false;
      most = 0;
      tolerance = y == "float16" ? 4e-3 : y == "bfloat16" ? 3e-2 : 2e-5;
    }
  }
  return all_near();
}

void expect_gradients_as_torch(bool as_kernels) {
  const GradientRows table = read_gradient_rows();
  ASSERT_GT(table.rows.size(), 300u);
  std::string script = "import torch\nimport torch.nn.functional as F\n" + table.variables + R"(
def show(value):
    if isinstance(value, (tuple, list)):
        return "; ".join([show(v) for v in value])
    elements = " ".join(["%.6g" % x for x in value.double().reshape(-1).tolist()])
    return str(value.dtype)[6:] + " " + str(tuple(value.shape)) + " " + elements
)";
  if (as_kernels) script += "torch._kiln.stay_lazy(True)\n";
  for (const auto& [text, value] : table.rows)
    script += "try:\n    print(show(" + text + "))\nexcept Exception as e:\n    print('error')\n";
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.device = *open_device("cpu");
  Session session(std::move(options));
  const Status status = session.run(script, "script.py", Mode::kFile);
  ASSERT_TRUE(status.ok()) << render(status.error());
  std::istringstream lines(out);
  std::string line;
  for (const auto& [text, value] : table.rows) {
    ASSERT_TRUE(std::getline(lines, line)) << text;
    EXPECT_TRUE(line == value || (value != "error" && are_close(line, value)))
        << text << "\n  is " << line << "\n  not " << value;
  }
}

/// The examples train, and each model learns.
void expect_learns(const std::string& file, int models) {
  std::stringstream script;
  script << std::ifstream(std::string(KILN_SOURCE_DIR) + "/examples/train/" + file).rdbuf();
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.device = *open_device("cpu");
  Session session(std::move(options));
  const Status status = session.run(script.str(), file, Mode::kFile);
  ASSERT_TRUE(status.ok()) << out << render(status.error());
  EXPECT_EQ(std::ranges::count(out, '\n'), models) << out;
  EXPECT_EQ(out.find("stays"), std::string::npos) << out;
}
TEST(TorchGradients, TrainAnExample) { expect_learns("train.py", 2); }
TEST(TorchGradients, TrainAnExampleByBackwardAndAnOptimizer) { expect_learns("language_model.py", 1); }

TEST(TorchGradients, OfSmallTensors) { expect_gradients_as_torch(false); }
TEST(TorchGradients, ByKernels) { expect_gradients_as_torch(true); }

}  // namespace
}  // namespace kiln::script
