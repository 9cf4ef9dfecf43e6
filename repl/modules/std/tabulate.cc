// tabulate.tabulate: a plain table, as Triton's tutorials print their vectors.
#include <algorithm>

#include "repl/modules/modules.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

/// Numbers are aligned at the right, texts at the left; floats drop a useless fraction (3.0 → 3).
Value tabulate(Interp& in, NativeArgs& a) {
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> numeric;
  std::vector<size_t> width;
  auto add = [&](const Value& row, bool header) {
    std::vector<std::string> cells;
    size_t i = 0;
    for (const Value& v : in.to_vector(row)) {
      if (i >= numeric.size()) {
        numeric.push_back(true);
        width.push_back(0);
      }
      if (!header && v.get<Str>()) numeric[i] = false;
      cells.push_back(v.is_none() ? "" : v.is_float() ? in.format(v, "g") : in.str(v));
      width[i] = std::max(width[i], cells.back().size());
      ++i;
    }
    rows.push_back(std::move(cells));
  };
  bool headers = !a[1].missing() && !a[1].is_none();
  if (headers) add(a[1], true);
  for (const Value& row : in.to_vector(a[0])) add(row, false);
  std::string rule;
  for (size_t i = 0; i < width.size(); ++i) rule += (i ? "  " : "") + std::string(width[i], '-');
  std::string out = headers ? "" : rule;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (!out.empty()) out += '\n';
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      std::string space(width[i] - rows[r][i].size(), ' ');
      line += (i ? "  " : "") + (numeric[i] ? space + rows[r][i] : rows[r][i] + space);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line;
    if (headers && r == 0) out += '\n' + rule;
  }
  if (!headers) out += '\n' + rule;
  return Value::str(std::move(out));
}

constexpr NativeDef kTabulate[] = {
    {"tabulate(rows, headers=None, tablefmt='simple')", tabulate, "rows as a plain table"}};
void fill_tabulate(Interp&, ModuleObject& m) { add_functions(m, kTabulate); }
constexpr ModuleDef kModules[] = {{"tabulate", fill_tabulate}};

}  // namespace

std::span<const ModuleDef> tabulate_modules() { return kModules; }

}  // namespace kiln::script
