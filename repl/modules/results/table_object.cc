#include "repl/modules/results/table_object.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "repl/modules/results/results.h"
#include "repl/modules/results/table_compare.h"
#include "support/diag.h"

namespace kiln::script {

namespace {

constexpr std::string_view kAttributes[] = {"columns", "units", "title", "notes", "rows", "tables"};

Value strings(const std::vector<std::string>& texts) {
  auto list = make<List>();
  for (const std::string& t : texts) list->items.push_back(Value::str(t));
  return list;
}

/// A heading as a name: "blocks/SM" is blocks_SM.
std::string name_of_heading(const report::Column& c) { return report::key_of({c.name, "", c.align, ""}); }

const std::string* text_of(const Value& v) {
  auto* s = v.get<Str>();
  return s ? &s->text : nullptr;
}

}  // namespace

std::optional<size_t> TableObject::find_column(std::string_view name) const {
  // As they are written in other tools, and in tables that have less room.
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {{"regs", "registers"}, {"occ", "occupancy"}};
  const std::vector<report::Column>& columns = table.columns();
  // Keys first: a heading may be another column's key.
  for (size_t i = 0; i < columns.size(); ++i)
    if (report::key_of(columns[i]) == name) return i;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == name || report::heading(columns[i]) == name || name_of_heading(columns[i]) == name) return i;
  for (const auto& [shorter, key] : kShort)
    if (shorter == name) return find_column(key);
  return std::nullopt;
}

std::vector<std::string> TableObject::keys() const {
  std::vector<std::string> out;
  for (const report::Column& c : table.columns()) out.push_back(report::key_of(c));
  return out;
}

void TableObject::fail_unknown(Interp& in, std::string_view name) const {
  std::vector<std::string> names = keys();
  const std::string near = nearest_name(name, names);
  in.fail_as_type("KeyError", fmt::format("the table has no column '{}'", name),
                  near.empty() ? fmt::format("help: its columns are {}", fmt::join(names, ", "))
                               : fmt::format("help: did you mean '{}'?", near));
}

size_t TableObject::column_index(Interp& in, std::string_view name) const {
  if (auto i = find_column(name)) return *i;
  fail_unknown(in, name);
}

Value TableObject::cell(size_t row, size_t column) const {
  const report::Cell& c = table.rows()[row][column];
  if (report::is_missing(table.columns()[column], c)) return Value::none();
  if (!c.number) return Value::str(c.text);
  return c.is_integer ? Value::integer(static_cast<int64_t>(*c.number)) : Value::real(*c.number);
}

Value TableObject::figure(size_t row, std::string_view name) const {
  // Details have more than the cells show, under the same names.
  if (Value* v = row < details.size() ? details[row]->table.find(name) : nullptr) return *v;
  auto column = find_column(name);
  return column ? cell(row, *column) : Value();
}

Value TableObject::find(std::string_view name) const {
  const std::optional<size_t> column = find_column(name);
  if (column || (!details.empty() && details[0]->table.find(name))) {
    std::vector<Value> values;
    for (size_t i = 0; i < table.rows().size(); ++i) {
      Value v = figure(i, name);
      values.push_back(v.missing() ? Value::none() : std::move(v));
    }
    return make<ColumnObject>(column ? report::key_of(table.columns()[*column]) : std::string(name),
                              column ? table.columns()[*column].unit : "", std::move(values));
  }
  Value* field = fields ? fields->table.find(name) : nullptr;
  return field ? *field : Value();
}

Ref<TableObject> TableObject::with_rows(const std::vector<size_t>& rows) const {
  auto t = make<TableObject>(table.with_rows(rows));
  if (!details.empty())
    for (size_t i : rows) t->details.push_back(details[i]);
  t->fields = fields;
  t->others = others;
  return t;
}

std::string TableObject::summary() const {
  const size_t count = table.rows().size();
  return fmt::format("{} row{} of {}", count, count == 1 ? "" : "s", fmt::join(keys(), ", "));
}

std::string TableObject::text(Interp& in, bool colored) {
  const auto& shown = in.state<Results>().table_text;
  return shown ? shown(table, colored) : report::to_text(table);
}

std::string TableObject::repr(Interp& in) {
  std::string out = text(in, false);
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

Value TableObject::row_list() {
  auto rows = make<List>();
  for (size_t i = 0; i < table.rows().size(); ++i) rows->items.push_back(make<RowObject>(Ref<TableObject>(this), i));
  return rows;
}

Value TableObject::iterate(Interp& in) { return row_list().object()->iterate(in); }

std::optional<Value> TableObject::attribute(Interp& in, std::string_view name) {
  // A column named `rows` must not hide the list of all rows.
  if (Value v = find(name); !v.missing() && name != "rows") return v;
  // Methods are looked up by the caller.
  if (in.method(kKind, name)) return std::nullopt;
  if (name == "columns") return strings(keys());
  if (name == "notes") return strings(table.notes());
  if (name == "title") return Value::str(table.title());
  if (name == "rows") return row_list();
  if (name == "units") {
    auto units = make<Dict>();
    for (const report::Column& c : table.columns())
      if (!c.unit.empty()) units->table.set(report::key_of(c), Value::str(c.unit));
    return units;
  }
  if (name == "tables") {
    auto tables = make<Dict>();
    for (const auto& [key, t] : others) tables->table.set(key, t);
    return tables;
  }
  // Last, since a table's own names come first.
  for (const auto& [key, t] : others)
    if (key == name) return Value(t);
  return std::nullopt;
}

void TableObject::attribute_names(std::vector<std::string>& out) const {
  for (std::string_view a : kAttributes) out.emplace_back(a);
  for (std::string& key : keys()) out.push_back(std::move(key));
  for (const auto& [key, t] : others) out.push_back(key);
  if (fields)
    for (const auto& e : fields->table.live())
      if (const std::string* key = text_of(e.key)) out.push_back(*key);
}

Value TableObject::filtered(Interp& in, const std::vector<Value>& index) {
  const auto all = [&](auto&& holds) { return std::ranges::all_of(index, holds); };
  const size_t count = table.rows().size();
  std::vector<size_t> chosen;
  if (!index.empty() && all([](const Value& v) { return text_of(v) != nullptr; })) {
    for (const Value& v : index) chosen.push_back(column_index(in, *text_of(v)));
    auto t = make<TableObject>(table.with_columns(chosen));
    t->details = details;
    t->fields = fields;
    return t;
  }
  if (!index.empty() && all([](const Value& v) { return v.is_bool(); })) {
    if (index.size() != count)
      in.fail(ErrorKind::kValue, "a choice of rows needs one bool for each of the {} rows, got {}", count,
              index.size());
    for (size_t i = 0; i < count; ++i)
      if (index[i].boolean()) chosen.push_back(i);
    return with_rows(chosen);
  }
  if (!all([](const Value& v) { return v.is_small_int(); }))
    in.fail(ErrorKind::kType, "rows are chosen by bools, as in r[r.{} < 1], or by their numbers; columns by names",
            table.columns().empty() ? "time" : report::key_of(table.columns().back()));
  for (const Value& v : index)
    chosen.push_back(static_cast<size_t>(in.index_in(v, static_cast<int64_t>(count), "table")));
  return with_rows(chosen);
}

Value TableObject::item(Interp& in, const Value& index) {
  if (const std::string* name = text_of(index)) {
    if (Value v = find(*name); !v.missing()) return v;
    fail_unknown(in, *name);
  }
  const auto count = static_cast<int64_t>(table.rows().size());
  if (auto* slice = index.get<SliceObject>()) {
    const Interp::SliceSpan span = in.slice_span(*slice, count);
    std::vector<size_t> rows;
    for (int64_t i = 0; i < span.count; ++i) rows.push_back(static_cast<size_t>(span.start + i * span.step));
    return with_rows(rows);
  }
  if (auto* column = index.get<ColumnObject>()) return filtered(in, column->values);
  if (auto* list = index.get<List>()) return filtered(in, list->items);
  if (!index.small_int_or_bool())
    in.fail(ErrorKind::kType,
            "a table is indexed by a row's number, a column's name, a slice or a choice of rows, got '{}'",
            in.type_name(index));
  return make<RowObject>(Ref<TableObject>(this), static_cast<size_t>(in.index_in(index, count, "table")));
}

std::optional<Value> TableObject::binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) {
  // Only `later - earlier`; the difference of a table and something else is nobody's.
  auto* earlier = other.get<TableObject>();
  if (op != ast::BinaryOp::kSub || !earlier || reflected) return std::nullopt;
  return Value(table_changes(in, *earlier, *this));
}

// --- a row -----------------------------------------------------------------------------------------------------------

std::optional<Value> RowObject::attribute(Interp&, std::string_view name) {
  Value v = table->figure(index, name);
  return v.missing() ? std::nullopt : std::optional(v);
}

void RowObject::attribute_names(std::vector<std::string>& out) const {
  for (std::string& key : table->keys()) out.push_back(std::move(key));
}

Value RowObject::item(Interp& in, const Value& key) {
  // Asks for details too, so that r["x"] gives what r.x gives.
  if (const std::string* name = text_of(key)) {
    if (Value v = table->figure(index, *name); !v.missing()) return v;
    return table->cell(index, table->column_index(in, *name));
  }
  const int64_t at = in.index_in(key, static_cast<int64_t>(table->table.columns().size()), "row");
  return table->cell(index, static_cast<size_t>(at));
}

Ref<Dict> RowObject::dict() const {
  auto d = make<Dict>();
  const std::vector<std::string> keys = table->keys();
  for (const std::string& key : keys) d->table.set(key, table->figure(index, key));
  return d;
}

Value RowObject::iterate(Interp& in) { return strings(table->keys()).object()->iterate(in); }

std::optional<bool> RowObject::contains(Interp&, const Value& key) {
  const std::string* name = text_of(key);
  return name && !table->figure(index, *name).missing();
}

std::string RowObject::repr(Interp& in) { return dict()->repr(in); }

// --- the value of a command ------------------------------------------------------------------------------------------

Value table_value(std::vector<report::NamedTable> tables, const Value& details, const Value& fields) {
  if (tables.empty()) return {};
  auto main = make<TableObject>(std::move(tables[0].table));
  if (auto* rows = details.missing() ? nullptr : details.get<List>();
      rows && rows->items.size() == main->table.rows().size())
    for (const Value& row : rows->items) main->details.emplace_back(row.get<Dict>());
  if (!fields.missing()) main->fields = Ref<Dict>(fields.get<Dict>());
  // The table itself is not in its list: it would never go away.
  for (size_t i = 1; i < tables.size(); ++i) {
    std::string name = tables[i].name.empty() ? fmt::format("table{}", i + 1) : tables[i].name;
    main->others.emplace_back(std::move(name), make<TableObject>(std::move(tables[i].table)));
  }
  return main;
}

}  // namespace kiln::script
