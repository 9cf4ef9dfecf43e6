// The methods of tables, rows and columns.
#include <algorithm>
#include <cmath>

#include "profiler/measure/stats.h"
#include "profiler/report/plot.h"
#include "repl/modules/results/results.h"
#include "repl/modules/results/table_compare.h"
#include "repl/modules/results/table_object.h"
#include "support/files.h"

namespace kiln::script {

namespace {

bool is_given(const Value& v) { return !v.missing() && !v.is_none(); }

TableObject& table_of(const NativeArgs& a) { return *a.self->get<TableObject>(); }

/// To the file when one is given, else as a str.
Value text_or_file(Interp& in, const Value& path, std::string text) {
  if (!is_given(path)) return Value::str(std::move(text));
  in.check(write_file_atomic(in.to_text(path, "the file's path"), text));
  return Value::none();
}

template <std::string (*Write)(const report::Table&)>
Value write(Interp& in, NativeArgs& a) {
  return text_or_file(in, a[0], Write(table_of(a).table));
}

std::string plain_text(const report::Table& table) { return report::to_text(table); }

/// (by, reverse): rows without the figure come last, whichever way the others go.
Value sort(Interp& in, NativeArgs& a) {
  const TableObject& t = table_of(a);
  const std::string& by = in.to_text(a[0], "the column to sort by");
  std::vector<size_t> rows, without;
  for (size_t i = 0; i < t.table.rows().size(); ++i) {
    const Value v = t.figure(i, by);
    if (v.missing()) t.column_index(in, by);  // tells the nearest
    (v.is_none() ? without : rows).push_back(i);
  }
  const bool reverse = is_given(a[1]) && in.truth(a[1]);
  std::stable_sort(rows.begin(), rows.end(), [&](size_t x, size_t y) {
    return reverse ? in.less(t.figure(y, by), t.figure(x, by)) : in.less(t.figure(x, by), t.figure(y, by));
  });
  rows.insert(rows.end(), without.begin(), without.end());
  return t.with_rows(rows);
}

Value compare(Interp& in, NativeArgs& a) {
  auto* earlier = a[0].get<TableObject>();
  if (!earlier)
    in.fail(ErrorKind::kType, "compare() takes an earlier table of the same command, got '{}'", in.type_name(a[0]));
  return table_changes(in, *earlier, table_of(a));
}

bool has_numbers(const report::Table& t, size_t column) {
  return std::ranges::any_of(t.rows(), [&](const auto& row) { return row[column].number.has_value(); });
}

/// The columns that plot() draws: those that are named, else the first of numbers behind the axis, and the one in `us`
/// where there is one.
std::vector<size_t> drawn_columns(Interp& in, const TableObject& t, const Value& y, size_t x) {
  std::vector<size_t> out;
  if (is_given(y)) {
    if (y.get<Str>()) return {t.column_index(in, in.to_text(y, "y"))};
    for (const Value& v : in.to_vector(y)) out.push_back(t.column_index(in, in.to_text(v, "y")));
    return out;
  }
  for (size_t i = 0; i < t.table.columns().size(); ++i)
    if (i != x && has_numbers(t.table, i)) out.push_back(i);
  if (out.empty()) in.fail(ErrorKind::kValue, "the table has no column of numbers to plot");
  auto time = std::ranges::find_if(out, [&](size_t i) { return t.table.columns()[i].unit == "us"; });
  return {time == out.end() ? out.front() : *time};
}

/// (y, x, svg)
Value plot(Interp& in, NativeArgs& a) {
  const TableObject& t = table_of(a);
  const report::Table& table = t.table;
  if (table.rows().empty()) in.fail(ErrorKind::kValue, "the table has no rows to plot");
  const size_t x = is_given(a[1]) ? t.column_index(in, in.to_text(a[1], "x")) : 0;
  report::Plot p;
  p.title = table.title();
  p.x_label = report::key_of(table.columns()[x]);
  const bool x_is_number =
      std::ranges::all_of(table.rows(), [&](const auto& row) { return row[x].number.has_value(); });
  if (!x_is_number)
    for (const auto& row : table.rows()) p.x_names.push_back(row[x].text);
  std::vector<double> all_x, all_y;
  for (size_t y : drawn_columns(in, t, a[0], x)) {
    const report::Column& column = table.columns()[y];
    if (!has_numbers(table, y))
      in.fail(ErrorKind::kValue, "the column '{}' has no numbers to plot", report::key_of(column));
    report::PlotLine line{report::key_of(column), {}};
    for (size_t i = 0; i < table.rows().size(); ++i) {
      const auto& number = table.rows()[i][y].number;
      if (!number) continue;
      line.points.push_back({x_is_number ? *table.rows()[i][x].number : static_cast<double>(i), *number});
      all_x.push_back(line.points.back().x), all_y.push_back(*number);
    }
    std::ranges::stable_sort(line.points, {}, &report::PlotPoint::x);
    if (p.y_label.empty()) p.y_label = column.unit.empty() ? line.name : line.name + " " + column.unit;
    p.lines.push_back(std::move(line));
  }
  p.x_log = x_is_number && report::wants_log(all_x);
  p.y_log = report::wants_log(all_y);
  if (is_given(a[2]))
    in.check(write_file_atomic(in.to_text(a[2], "the file's path"), report::to_svg(p)));
  else
    in.print(report::to_terminal(p, report::PlotStyle::kBraille, in.state<Results>().width()));
  return Value::none();
}

constexpr NativeDef kTableMethods[] = {
    {"sort(by, reverse=False)", sort, "the same table with its rows in the order of a column"},
    {"compare(earlier)", compare, "the numbers that differ from an earlier table's; also now - earlier"},
    {"plot(y=None, x=None, svg=None)", plot, "columns over x (the first column) in the terminal, or as an SVG file"},
    {"to_text(path=None)", write<plain_text>, "as it is printed where nothing has to fit; to a file when given"},
    {"to_csv(path=None)", write<report::to_csv>, "as CSV, with units in the heads"},
    {"to_json(path=None)", write<report::to_json>, "as JSON: rows, units, notes"},
    {"to_markdown(path=None)", write<report::to_markdown>, "as a markdown table"},
    {"to_html(path=None)", write<report::to_html>, "as an HTML table"},
};

// --- rows ------------------------------------------------------------------------------------------------------------

Ref<Dict> dict_of(const NativeArgs& a) { return a.self->get<RowObject>()->dict(); }

Value row_dict(Interp&, NativeArgs& a) { return dict_of(a); }
Value row_keys(Interp&, NativeArgs& a) {
  auto out = make<List>();
  for (const auto& e : dict_of(a)->table.live()) out->items.push_back(e.key);
  return out;
}
Value row_values(Interp&, NativeArgs& a) {
  auto out = make<List>();
  for (const auto& e : dict_of(a)->table.live()) out->items.push_back(e.value);
  return out;
}
Value row_items(Interp&, NativeArgs& a) {
  auto out = make<List>();
  for (const auto& e : dict_of(a)->table.live()) out->items.push_back(make<Tuple>(std::vector<Value>{e.key, e.value}));
  return out;
}
Value row_get(Interp& in, NativeArgs& a) {
  const RowObject& row = *a.self->get<RowObject>();
  Value v = row.table->figure(row.index, in.to_text(a[0], "a column's name"));
  return !v.missing() ? v : a[1].missing() ? Value::none() : a[1];
}

constexpr NativeDef kRowMethods[] = {
    {"keys()", row_keys, "the columns' names"},
    {"values()", row_values, "the figures, in the order of the columns"},
    {"items()", row_items, "pairs of name and figure"},
    {"get(name, default=None)", row_get, "a figure, or the default where there is no such column"},
    {"to_dict()", row_dict, "a dict of the columns"},
};

// --- columns ---------------------------------------------------------------------------------------------------------

/// The numbers that there are; an error when there are none.
std::vector<double> numbers_of(Interp& in, const NativeArgs& a) {
  const ColumnObject& c = *a.self->get<ColumnObject>();
  std::vector<double> out;
  for (const Value& v : c.values)
    if (!v.is_none()) out.push_back(in.to_double(v, "a figure of '" + c.name + "'"));
  if (out.empty()) in.fail(ErrorKind::kValue, "the column '{}' has no figures", c.name);
  return out;
}

/// The smallest or largest as it stands in the column, an int as an int.
template <bool kLargest>
Value extreme(Interp& in, NativeArgs& a) {
  const ColumnObject& c = *a.self->get<ColumnObject>();
  Value best;
  for (const Value& v : c.values)
    if (!v.is_none() && (best.missing() || (kLargest ? in.less(best, v) : in.less(v, best)))) best = v;
  if (best.missing()) in.fail(ErrorKind::kValue, "the column '{}' has no figures", c.name);
  return best;
}
Value mean(Interp& in, NativeArgs& a) {
  const std::vector<double> all = numbers_of(in, a);
  double sum = 0;
  for (double v : all) sum += v;
  return Value::real(sum / static_cast<double>(all.size()));
}
Value median(Interp& in, NativeArgs& a) { return Value::real(profiler::median(numbers_of(in, a))); }
Value to_list(Interp&, NativeArgs& a) { return make<List>(a.self->get<ColumnObject>()->values); }

constexpr NativeDef kColumnMethods[] = {
    {"min()", extreme<false>, "the smallest figure; rows without one are left out"},
    {"max()", extreme<true>, "the largest figure; rows without one are left out"},
    {"mean()", mean, "the mean of the figures that there are"},
    {"median()", median, "the median of the figures that there are"},
    {"to_list()", to_list, "a list, None where there is no figure"},
};

}  // namespace

void install_table_methods(Interp& in) {
  in.add_methods({TableObject::kKind, kTableMethods});
  in.add_methods({RowObject::kKind, kRowMethods});
  in.add_methods({ColumnObject::kKind, kColumnMethods});
}

}  // namespace kiln::script
