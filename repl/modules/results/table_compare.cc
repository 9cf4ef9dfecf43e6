#include "repl/modules/results/table_compare.h"

#include <fmt/format.h>

#include <map>

namespace kiln::script {

namespace {

using report::Align;
using report::Column;

/// The rows by name; the second of a name is "name (2)".
std::vector<std::string> row_names(const TableObject& t) {
  const std::vector<Column>& columns = t.table.columns();
  size_t key = 0;
  while (key + 1 < columns.size() && columns[key].align != Align::kLeft) ++key;
  std::map<std::string, int> seen;
  std::vector<std::string> out;
  for (const auto& row : t.table.rows()) {
    const int n = ++seen[row[key].text];
    out.push_back(n == 1 ? row[key].text : fmt::format("{} ({})", row[key].text, n));
  }
  return out;
}

/// A column of both with numbers in it.
struct Shared {
  size_t old_index, new_index;
};

bool has_numbers(const TableObject& t, size_t column) {
  for (const auto& row : t.table.rows())
    if (row[column].number) return true;
  return false;
}

report::Cell ratio_cell(double before, double after) {
  if (before == 0) return report::Cell::none();
  return report::Cell::of((after / before - 1) * 100, 1);
}

}  // namespace

Ref<TableObject> table_changes(Interp& in, const TableObject& earlier, const TableObject& now) {
  std::vector<Shared> shared;
  const std::vector<std::string> keys = now.keys();
  for (size_t i = 0; i < keys.size(); ++i)
    if (auto old = earlier.find_column(keys[i]); old && has_numbers(earlier, *old) && has_numbers(now, i))
      shared.push_back({*old, i});
  if (shared.empty()) in.fail(ErrorKind::kValue, "the two tables have no column of numbers in common");
  const Column& first = now.table.columns()[0];
  report::Table table({{first.name.empty() ? "row" : first.name, "", Align::kLeft, "row"},
                       {"figure", "", Align::kLeft},
                       {"unit", "", Align::kLeft},
                       {"before", ""},
                       {"now", ""},
                       {"change", "%"}});
  const std::vector<std::string> old_names = row_names(earlier), new_names = row_names(now);
  std::map<std::string, size_t> old_rows;
  for (size_t i = 0; i < old_names.size(); ++i) old_rows[old_names[i]] = i;
  std::string only_now, only_before;
  auto add = [](std::string& list, const std::string& name) { list += (list.empty() ? "" : " | ") + name; };
  size_t matched = 0;
  for (size_t r = 0; r < new_names.size(); ++r) {
    auto old = old_rows.find(new_names[r]);
    if (old == old_rows.end()) {
      add(only_now, new_names[r]);
      continue;
    }
    ++matched;
    for (const Shared& s : shared) {
      const report::Cell& before = earlier.table.rows()[old->second][s.old_index];
      const report::Cell& after = now.table.rows()[r][s.new_index];
      if (!before.number || !after.number || *before.number == *after.number) continue;
      table.add_row({new_names[r], keys[s.new_index], now.table.columns()[s.new_index].unit, before, after,
                     ratio_cell(*before.number, *after.number)});
    }
    old_rows.erase(old);
  }
  for (const std::string& name : old_names)
    if (old_rows.contains(name)) add(only_before, name);
  if (!only_now.empty()) table.add_note("only now: " + only_now);
  if (!only_before.empty()) table.add_note("only before: " + only_before);
  if (matched == 0)
    table.add_note("no row has a name that the other table has");
  else if (table.rows().empty())
    table.add_note("no number differs");
  return make<TableObject>(std::move(table));
}

}  // namespace kiln::script
