// What a command gives: a table as a value of the script, its rows and its columns.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/report/table.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

/// Does not change: what sorts and filters it gives another one.
class TableObject : public Object {
 public:
  static inline const KindOf<TableObject> kKind{"kiln.Table"};
  explicit TableObject(report::Table t) : Object(kKind), table(std::move(t)) {}

  /// By its key, its heading with or without the unit, or a short name (regs, occ).
  std::optional<size_t> find_column(std::string_view name) const;
  /// The same with an error that tells the nearest name.
  size_t column_index(Interp& in, std::string_view name) const;
  /// Int, float, str; None where there is no figure.
  Value cell(size_t row, size_t column) const;
  /// A figure of a row, of `details` or of its columns; missing when there is none of that name.
  Value figure(size_t row, std::string_view name) const;
  /// What `name` is: a column, a detail of each row, or one of the fields; missing when it is none.
  Value find(std::string_view name) const;
  std::vector<std::string> keys() const;
  Ref<TableObject> with_rows(const std::vector<size_t>& rows) const;
  /// "2 rows of cache, min, median"
  std::string summary() const;
  /// As the program shows tables.
  std::string text(Interp& in, bool colored);

  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  Value item(Interp& in, const Value& index) override;
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(table.rows().size()); }
  Value iterate(Interp& in) override;
  bool truth(Interp&) override { return !table.rows().empty(); }
  std::string repr(Interp& in) override;
  /// r - earlier: as compare() does it.
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;

  const report::Table table;
  /// For each row what its columns do not show, as all samples, and the values of those that show a text; empty:
  /// nothing.
  std::vector<Ref<Dict>> details;
  /// What is of the whole table, as the best configuration; may be null.
  Ref<Dict> fields;
  /// The command's other tables, by name.
  std::vector<std::pair<std::string, Ref<TableObject>>> others;

 private:
  Value row_list();
  Value filtered(Interp& in, const std::vector<Value>& index);
  [[noreturn]] void fail_unknown(Interp& in, std::string_view name) const;
};

/// A mapping from the table's keys to figures.
class RowObject : public Object {
 public:
  static inline const KindOf<RowObject> kKind{"kiln.Row"};
  RowObject(Ref<TableObject> t, size_t i) : Object(kKind), table(std::move(t)), index(i) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  Value item(Interp& in, const Value& key) override;
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(table->table.columns().size()); }
  Value iterate(Interp& in) override;
  std::optional<bool> contains(Interp& in, const Value& key) override;
  std::string repr(Interp& in) override;
  Ref<Dict> dict() const;

  const Ref<TableObject> table;
  const size_t index;
};

/// The figures of one column. Comparisons and arithmetic are done for each; where there is no figure they give False
/// and None.
class ColumnObject : public Object {
 public:
  static inline const KindOf<ColumnObject> kKind{"kiln.Column"};
  ColumnObject(std::string n, std::string u, std::vector<Value> v)
      : Object(kKind), name(std::move(n)), unit(std::move(u)), values(std::move(v)) {}
  std::optional<Value> attribute(Interp& in, std::string_view attribute) override;
  void attribute_names(std::vector<std::string>& out) const override;
  Value item(Interp& in, const Value& index) override;
  std::optional<int64_t> length(Interp&) override { return static_cast<int64_t>(values.size()); }
  Value iterate(Interp& in) override;
  bool truth(Interp& in) override;
  std::string repr(Interp& in) override;
  std::optional<Value> binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) override;
  std::optional<Value> unary(Interp& in, ast::UnaryOp op) override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;

  const std::string name, unit;
  const std::vector<Value> values;

 private:
  /// `other` for each row: itself, or the elements of a column or a list.
  std::vector<Value> operands(Interp& in, const Value& other) const;
};

/// A command's tables as its value, the first of which is the one to index; missing when there is none. `details` is a
/// list with a dict for each of its rows, `fields` a dict; both may be missing.
Value table_value(std::vector<report::NamedTable> tables, const Value& details, const Value& fields);

void install_table_methods(Interp& in);

}  // namespace kiln::script
