// A column of a table: elementwise comparisons and arithmetic.
#include "repl/modules/results/table_object.h"

namespace kiln::script {

std::optional<Value> ColumnObject::attribute(Interp&, std::string_view attribute) {
  if (attribute == "name") return Value::str(name);
  if (attribute == "unit") return Value::str(unit);
  return std::nullopt;
}

void ColumnObject::attribute_names(std::vector<std::string>& out) const {
  out.emplace_back("name");
  out.emplace_back("unit");
}

Value ColumnObject::item(Interp& in, const Value& index) {
  Value v = make<List>(values)->item(in, index);
  if (auto* part = v.get<List>(); part && index.get<SliceObject>()) return make<ColumnObject>(name, unit, part->items);
  return v;
}

Value ColumnObject::iterate(Interp& in) { return make<List>(values)->iterate(in); }

bool ColumnObject::truth(Interp& in) {
  in.fail(ErrorKind::kValue, "a column is neither true nor false: use any(…), all(…), or & and | between conditions");
}

std::string ColumnObject::repr(Interp& in) {
  return name + (unit.empty() ? "" : " " + unit) + ": " + make<List>(values)->repr(in);
}

std::vector<Value> ColumnObject::operands(Interp& in, const Value& other) const {
  auto* column = other.get<ColumnObject>();
  auto* list = other.get<List>();
  if (!column && !list) return std::vector<Value>(values.size(), other);
  const std::vector<Value>& given = column ? column->values : list->items;
  if (given.size() != values.size())
    in.fail(ErrorKind::kValue, "the column has {} rows, the other operand {}", values.size(), given.size());
  return given;
}

std::optional<Value> ColumnObject::binary(Interp& in, ast::BinaryOp op, const Value& other, bool reflected) {
  const std::vector<Value> right = operands(in, other);
  std::vector<Value> out;
  for (size_t i = 0; i < values.size(); ++i)
    out.push_back(values[i].is_none() || right[i].is_none() ? Value::none()
                  : reflected                               ? in.binary(op, right[i], values[i])
                                                            : in.binary(op, values[i], right[i]));
  return Value(make<ColumnObject>(name, "", std::move(out)));
}

std::optional<Value> ColumnObject::unary(Interp& in, ast::UnaryOp op) {
  std::vector<Value> out;
  for (const Value& v : values)
    // ~ of a condition is its contrary; Python's ~True is -2.
    out.push_back(v.is_none()                                  ? v
                  : op == ast::UnaryOp::kInvert && v.is_bool() ? Value::boolean(!v.boolean())
                                                               : in.unary(op, v));
  return Value(make<ColumnObject>(name, "", std::move(out)));
}

std::optional<Value> ColumnObject::compare(Interp& in, ast::CompareOp op, const Value& other) {
  const std::vector<Value> right = operands(in, other);
  const bool equality = op == ast::CompareOp::kEq || op == ast::CompareOp::kNe;
  std::vector<Value> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool none = values[i].is_none() || right[i].is_none();
    out.push_back(Value::boolean((!none || equality) && in.truth(in.compare(op, values[i], right[i]))));
  }
  return Value(make<ColumnObject>(name, "", std::move(out)));
}

}  // namespace kiln::script
