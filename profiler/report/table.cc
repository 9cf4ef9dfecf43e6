#include "profiler/report/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/diag.h"
#include "support/escape.h"
#include "support/text_width.h"

namespace kiln::report {

namespace {

constexpr std::string_view kUnknown = "–";

// RFC 4180: a field with a separator, a quote or the end of a line is quoted, and quotes are doubled.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// Machine-readable formats get every digit of a number, not the rounded text of the cell.
std::string full_number(double v) { return std::isfinite(v) ? fmt::format("{}", v) : ""; }

std::string escape_markdown(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\r' || c == '\n') {
      // A row is one line of the source.
      if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
      out += "<br>";
      continue;
    }
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string key_of(const Column& c) {
  std::string key = c.key.empty() ? c.name : c.key;
  std::replace_if(
      key.begin(), key.end(), [](char x) { return !std::isalnum(static_cast<unsigned char>(x)) && x != '_'; }, '_');
  return key;
}

std::string heading(const Column& c) { return c.unit.empty() ? c.name : c.name + " " + c.unit; }

// An empty text in a column of numbers means that there is none: in JSON null, as "" would be of another type.
bool is_missing(const Column& column, const Cell& cell) {
  return cell.is_unknown || (cell.text.empty() && column.align == Align::kRight);
}

Cell Cell::of(double value, int digits) {
  if (!std::isfinite(value)) return unknown("not a finite number");
  return shown(fmt::format("{:.{}f}", value, digits), value);
}

Cell Cell::of(int64_t value) { return shown(fmt::format("{}", value), value); }

Cell Cell::shown(std::string text, double value) {
  Cell c(std::move(text));
  c.number = value;
  return c;
}

Cell Cell::shown(std::string text, int64_t value) {
  Cell c = shown(std::move(text), static_cast<double>(value));
  c.is_integer = true;
  return c;
}

Cell Cell::none() { return unknown(""); }

Cell Cell::unknown(std::string reason) {
  Cell c((std::string(kUnknown)));
  c.is_unknown = true;
  c.reason = std::move(reason);
  return c;
}

void Table::add_row(std::vector<Cell> cells) {
  KILN_ASSERT(cells.size() == columns_.size(), "{} cells in a table of {} columns", cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

Table Table::with_rows(const std::vector<size_t>& rows) const {
  Table t(columns_);
  t.title_ = title_, t.notes_ = notes_;
  for (size_t i : rows) t.rows_.push_back(rows_[i]);
  return t;
}

Table Table::with_columns(const std::vector<size_t>& columns) const {
  std::vector<Column> kept;
  for (size_t c : columns) kept.push_back(columns_[c]);
  Table t(std::move(kept));
  t.title_ = title_, t.notes_ = notes_;
  for (const auto& row : rows_) {
    std::vector<Cell> cells;
    for (size_t c : columns) cells.push_back(row[c]);
    t.rows_.push_back(std::move(cells));
  }
  return t;
}

Table Table::printed() const {
  std::vector<size_t> columns;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (!columns_[i].only_data) columns.push_back(i);
  return with_columns(columns);
}

// A reason that several cells share is printed once.
std::vector<std::string> Table::notes() const {
  struct Unknown {
    std::string reason;
    std::vector<std::string> columns;
  };
  std::vector<Unknown> unknowns;
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].reason.empty()) continue;
      auto known = std::ranges::find(unknowns, row[i].reason, &Unknown::reason);
      if (known == unknowns.end()) known = unknowns.insert(unknowns.end(), {row[i].reason, {}});
      if (std::ranges::find(known->columns, columns_[i].name) == known->columns.end())
        known->columns.push_back(columns_[i].name);
    }
  std::vector<std::string> all = notes_;
  for (const Unknown& u : unknowns)
    all.push_back(fmt::format("{} {}: {}", kUnknown, fmt::join(u.columns, ", "), u.reason));
  return all;
}

int display_width(std::string_view text) { return text_width(text); }

std::string to_csv(const Table& table) {
  std::string out;
  for (size_t i = 0; i < table.columns().size(); ++i) {
    const Column& c = table.columns()[i];
    out += (i ? "," : "") + csv_field(c.unit.empty() ? key_of(c) : key_of(c) + " (" + c.unit + ")");
  }
  out += "\n";
  for (const auto& row : table.rows()) {
    for (size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      out += (i ? "," : "") + (cell.is_unknown ? "" : cell.number ? full_number(*cell.number) : csv_field(cell.text));
    }
    out += "\n";
  }
  return out;
}

std::string to_markdown(const Table& whole) {
  const Table table = whole.printed();
  std::string out = table.title().empty() ? "" : "**" + escape_markdown(table.title()) + "**\n\n";
  // Markdown gives columns their side by the rule below the heading.
  std::string rule;
  for (const Column& c : table.columns()) {
    out += "| " + escape_markdown(heading(c)) + " ";
    rule += c.align == Align::kLeft ? "|---" : "|--:";
  }
  out += "|\n" + rule + "|\n";
  for (const auto& row : table.rows()) {
    for (const Cell& cell : row) out += "| " + escape_markdown(cell.text) + " ";
    out += "|\n";
  }
  for (const std::string& note : table.notes()) out += "\n" + escape_markdown(note) + "\n";
  return out;
}

std::string to_html(const Table& whole) {
  const Table table = whole.printed();
  auto side = [&](size_t i) {
    return table.columns()[i].align == Align::kLeft ? " style=\"text-align:left\"" : " style=\"text-align:right\"";
  };
  std::string out = "<table>";
  if (!table.title().empty()) out += "<caption>" + html_escaped(table.title()) + "</caption>";
  out += "\n<thead><tr>";
  for (size_t i = 0; i < table.columns().size(); ++i)
    out += fmt::format("<th{}>{}</th>", side(i), html_escaped(heading(table.columns()[i])));
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows()) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += fmt::format("<td{}{}>{}</td>", side(i),
                         row[i].reason.empty() ? "" : fmt::format(" title=\"{}\"", html_escaped(row[i].reason)),
                         html_escaped(row[i].text));
    out += "</tr>\n";
  }
  out += "</tbody></table>\n";
  for (const std::string& note : table.notes()) out += "<p>" + html_escaped(note) + "</p>\n";
  return out;
}

std::string to_json(const Table& table) {
  using nlohmann::ordered_json;
  ordered_json doc;
  if (!table.title().empty()) doc["title"] = table.title();
  doc["rows"] = ordered_json::array();
  for (const auto& row : table.rows()) {
    ordered_json object;
    for (size_t i = 0; i < row.size(); ++i) {
      ordered_json& value = object[key_of(table.columns()[i])];
      // null rather than left out: every row has the same keys.
      if (is_missing(table.columns()[i], row[i]))
        value = nullptr;
      else if (row[i].number && row[i].is_integer)
        value = static_cast<int64_t>(*row[i].number);
      else if (row[i].number)
        value = *row[i].number;
      else
        value = row[i].text;
    }
    doc["rows"].push_back(std::move(object));
  }
  ordered_json units = ordered_json::object();
  for (const Column& c : table.columns())
    if (!c.unit.empty()) units[key_of(c)] = c.unit;
  if (!units.empty()) doc["units"] = std::move(units);
  if (auto notes = table.notes(); !notes.empty()) doc["notes"] = notes;
  return doc.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::optional<Format> parse_format(std::string_view name) {
  if (name == "text") return Format::kText;
  if (name == "csv") return Format::kCsv;
  if (name == "json") return Format::kJson;
  if (name == "markdown" || name == "md") return Format::kMarkdown;
  return std::nullopt;
}

std::string format(const Table& table, Format format, const TextStyle& style) {
  switch (format) {
    case Format::kText:
      return to_text(table, style);
    case Format::kCsv:
      return to_csv(table);
    case Format::kJson:
      return to_json(table);
    case Format::kMarkdown:
      return to_markdown(table);
  }
  return {};
}

std::string human_bytes(double bytes) {
  // Decimal prefixes, as vendors give bandwidths and capacities.
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2, kUnits[unit]);
}

std::string human_time(double us) {
  auto three = [](double v, const char* unit) {
    return fmt::format("{:.{}f} {}", v, v >= 100 ? 0 : v >= 10 ? 1 : 2, unit);
  };
  if (us < 1000) return three(us, "us");
  if (us < 1e6) return three(us / 1e3, "ms");
  return three(us / 1e6, "s");
}

bool wants_color(int fd) {
  // NO_COLOR counts when it is set and not empty (no-color.org).
  const char *term = std::getenv("TERM"), *none = std::getenv("NO_COLOR");
  return isatty(fd) && !(none && *none) && !(term && std::string_view(term) == "dumb");
}

int terminal_columns(int fd) {
  winsize size{};
  // Where the output is no terminal, whoever reads it may still say how wide it is.
  if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  return columns ? std::clamp(std::atoi(columns), 0, 10000) : 0;
}

TextStyle style_of(int fd) { return {wants_color(fd), terminal_columns(fd)}; }

}  // namespace kiln::report
