#include "repl/session/session_table.h"

namespace kiln::script {

namespace {

using Json = nlohmann::ordered_json;
using report::Align;

Json cell_to_json(const report::Cell& c) {
  Json out = {{"text", c.text}};
  // A double holds integers up to 2^53 only, so the word says which of both it was.
  if (c.number) out[c.is_integer ? "integer" : "number"] = *c.number;
  if (c.is_unknown) out["unknown"] = c.reason;
  return out;
}

std::string text_of(const Json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const Json& list_of(const Json& j, const char* key) {
  // Kept for the process: a reference to it is given out.
  static const Json kNone = Json::array();
  const auto it = j.find(key);
  return it != j.end() && it->is_array() ? *it : kNone;
}

report::Cell cell_from_json(const Json& j) {
  report::Cell c(j.is_object() ? text_of(j, "text") : "");
  if (!j.is_object()) return c;
  for (const char* key : {"integer", "number"})
    if (const auto it = j.find(key); it != j.end() && it->is_number())
      c.number = it->get<double>(), c.is_integer = key[0] == 'i';
  if (j.contains("unknown")) c.is_unknown = true, c.reason = text_of(j, "unknown");
  return c;
}

/// Those that the table was given: not the reasons of its unknown cells, which it adds itself.
std::vector<std::string> own_notes(const report::Table& table) {
  std::vector<std::string> notes = table.notes();
  for (const auto& row : table.rows())
    for (size_t i = 0; i < row.size(); ++i)
      if (!row[i].reason.empty()) {
        // Reasons come out as "– column: reason" (report::Table::notes).
        const std::string end = " " + table.columns()[i].name + ": " + row[i].reason;
        std::erase_if(notes, [&](const std::string& note) { return note.ends_with(end); });
      }
  return notes;
}

}  // namespace

Json table_to_json(const TableObject& table, const std::function<std::optional<Json>(const Value&)>& value) {
  Json out = {{"title", table.table.title()}, {"notes", own_notes(table.table)}};
  Json& columns = out["columns"] = Json::array();
  for (const report::Column& c : table.table.columns())
    columns.push_back({{"name", c.name},
                       {"unit", c.unit},
                       {"key", c.key},
                       {"left", c.align == Align::kLeft},
                       {"only_data", c.only_data},
                       {"rank", c.rank}});
  Json& rows = out["rows"] = Json::array();
  for (const auto& row : table.table.rows()) {
    Json cells = Json::array();
    for (const report::Cell& c : row) cells.push_back(cell_to_json(c));
    rows.push_back(std::move(cells));
  }
  auto figures = [&](const Ref<Dict>& dict) {
    Json pairs = Json::array();
    if (dict)
      for (const Table::Entry& e : dict->table.live())
        if (auto* key = e.key.get<Str>())
          // A figure that cannot be saved is left out; the rest of the table is still worth keeping.
          if (auto v = value(e.value)) pairs.push_back({key->text, *std::move(v)});
    return pairs;
  };
  Json& details = out["details"] = Json::array();
  for (const Ref<Dict>& row : table.details) details.push_back(figures(row));
  out["fields"] = figures(table.fields);
  Json& others = out["others"] = Json::array();
  for (const auto& [name, other] : table.others) others.push_back({name, table_to_json(*other, value)});
  return out;
}

Ref<TableObject> table_from_json(const Json& json, const std::function<Value(const Json&)>& value, int depth) {
  // Tables of a table have none of their own: deeper ones are no file of ours.
  if (!json.is_object() || depth > 1) return {};
  std::vector<report::Column> columns;
  for (const Json& c : list_of(json, "columns")) {
    if (!c.is_object()) return {};
    auto flag = [&](const char* key) { return c.contains(key) && c[key].is_boolean() && c[key].get<bool>(); };
    columns.push_back({text_of(c, "name"), text_of(c, "unit"), flag("left") ? Align::kLeft : Align::kRight,
                       text_of(c, "key"), flag("only_data"),
                       c.contains("rank") && c["rank"].is_number_integer() ? c["rank"].get<int>() : 0});
  }
  const size_t width = columns.size();
  report::Table table(std::move(columns));
  table.set_title(text_of(json, "title"));
  for (const Json& row : list_of(json, "rows")) {
    // The file may be anybody's: add_row() asserts the number of cells.
    if (!row.is_array() || row.size() != width) return {};
    std::vector<report::Cell> cells;
    for (const Json& c : row) cells.push_back(cell_from_json(c));
    table.add_row(std::move(cells));
  }
  for (const Json& note : list_of(json, "notes"))
    if (note.is_string()) table.add_note(note.get<std::string>());
  const size_t rows = table.rows().size();
  auto out = make<TableObject>(std::move(table));
  auto figures = [&](const Json& pairs) {
    auto dict = make<Dict>();
    if (pairs.is_array())
      for (const Json& pair : pairs)
        if (pair.is_array() && pair.size() == 2 && pair[0].is_string())
          dict->table.set(pair[0].get<std::string>(), value(pair[1]));
    return dict;
  };
  const Json& details = list_of(json, "details");
  // Details belong to rows by their place.
  if (details.size() == rows)
    for (const Json& row : details) out->details.push_back(figures(row));
  if (const Json& fields = list_of(json, "fields"); !fields.empty()) out->fields = figures(fields);
  for (const Json& other : list_of(json, "others"))
    if (other.is_array() && other.size() == 2 && other[0].is_string())
      if (auto t = table_from_json(other[1], value, depth + 1))
        out->others.emplace_back(other[0].get<std::string>(), t);
  return out;
}

}  // namespace kiln::script
