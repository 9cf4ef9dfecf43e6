// Values recorded from PyTorch (torch_values.py), with as few elements as there and with many.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <fstream>
#include <sstream>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

struct Row {
  std::string expression, value;
};

struct Table {
  std::string variables;
  std::vector<Row> rows;
};

Table read_table() {
  Table out;
  std::ifstream file(std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/torch_values.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos)
      out.rows.push_back({line.substr(0, tab), line.substr(tab + 1)});
    else if (line[0] != '#')
      out.variables += line + "\n";
  }
  return out;
}

/// What each row's expression is, where each variable has its values `least` elements long or longer.
std::vector<std::string> evaluated(const Table& table, int least) {
  std::string script = R"(
import torch
inf, nan = float("inf"), float("nan")
def T(values, dtype):
    n = max(1, LEAST // len(values) + 1)
    return torch.tensor(values * n, dtype=dtype)
def show(x, n):
    v = x.tolist()
    for i in range(len(v) // n, len(v), max(1, len(v) // 7)):
        w = v[i % (len(v) // n)]
        assert v[i] == w or w != w, (i, v[i], w)
    print(x.dtype, v[:len(v) // n])
)";
  script.replace(script.find("LEAST"), 5, std::to_string(least));
  script += table.variables;
  for (const Row& row : table.rows) {
    // The number of copies is that of the row's first variable.
    size_t start = row.expression.find('_');
    while (start > 0 && std::isalnum(static_cast<unsigned char>(row.expression[start - 1]))) --start;
    const size_t end = row.expression.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", start);
    const std::string name = row.expression.substr(start, end - start);
    const size_t values = table.variables.find(name + " = ");
    const size_t close = table.variables.find(']', values);
    const auto commas = std::count(table.variables.begin() + static_cast<std::ptrdiff_t>(values),
                                   table.variables.begin() + static_cast<std::ptrdiff_t>(close), ',');
    script += fmt::format("show({}, {})\n", row.expression, std::max<int64_t>(1, least / (commas + 1) + 1));
  }
  std::string out;
  Options options;
  options.output = [&](std::string_view s) { out += s; };
  options.device = *open_device("cpu");
  Session session(std::move(options));
  Status status = session.run(script, "script.py", Mode::kFile);
  if (!status.ok()) out += render(status.error());
  std::vector<std::string> lines;
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Every `step`th row: each is a kernel of its own where tensors are large.
void expect_as_torch(int least, size_t step) {
  Table table = read_table();
  ASSERT_GT(table.rows.size(), 500u);
  std::vector<Row> rows;
  for (size_t i = 0; i < table.rows.size(); i += step) rows.push_back(table.rows[i]);
  table.rows = std::move(rows);
  const std::vector<std::string> got = evaluated(table, least);
  ASSERT_GE(got.size(), table.rows.size()) << got.back();
  for (size_t i = 0; i < table.rows.size(); ++i) EXPECT_EQ(got[i], table.rows[i].value) << table.rows[i].expression;
}

TEST(TorchValues, OfSmallTensors) { expect_as_torch(0, 1); }
TEST(TorchValues, OfLargeTensors) { expect_as_torch(4096, 3); }

}  // namespace
}  // namespace kiln::script
