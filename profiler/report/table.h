// One table type for everything that is printed, and its text, CSV, JSON and markdown forms.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::report {

enum class Align { kLeft, kRight };

struct Column {
  std::string name;  // heading
  std::string unit;  // "us", "GB/s", "%": shown after the heading, kept out of the cells
  Align align = Align::kRight;
  std::string key = {};    // name in JSON, CSV and scripts; empty: the heading
  bool only_data = false;  // not printed: only in JSON, CSV and scripts
  int rank = 0;            // where not all fit beside one another, those with a higher one stay together
};

/// The column's name in JSON, CSV and scripts, where units do not belong to it: '_' stands for what is no letter, digit
/// or '_'.
std::string key_of(const Column& column);

/// A cell is a text, or a number with the way it is shown, or unknown with the reason.
struct Cell {
  std::string text;
  std::optional<double> number;
  bool is_integer = false;  // the number; JSON writes it without a point
  bool is_unknown = false;
  std::string reason;  // why it is unknown

  Cell(std::string t) : text(std::move(t)) {}
  Cell(const char* t) : text(t) {}
  /// `digits` after the point in text forms; JSON and CSV keep the full value.
  static Cell of(double value, int digits);
  static Cell of(int64_t value);
  /// A number that text forms show as `text`: "101 MB".
  static Cell shown(std::string text, double value);
  static Cell shown(std::string text, int64_t value);
  /// There is no such figure, and nothing to explain: printed as "–", null in JSON.
  static Cell none();
  /// Printed as "–", null in JSON; the reason is printed under the table.
  static Cell unknown(std::string reason);
};

/// "time us"
std::string heading(const Column& column);

/// Whether there is no figure: an unknown cell, or an empty one in a column of numbers (one on the right).
bool is_missing(const Column& column, const Cell& cell);

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// One cell per column.
  void add_row(std::vector<Cell> cells);
  /// The same table with these of its rows, in this order.
  Table with_rows(const std::vector<size_t>& rows) const;
  /// The same rows with these of its columns.
  Table with_columns(const std::vector<size_t>& columns) const;
  /// Without the columns that are only data.
  Table printed() const;
  /// A line under the table.
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  void set_title(std::string title) { title_ = std::move(title); }

  const std::string& title() const { return title_; }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  /// The notes, and one line for each distinct reason of an unknown cell.
  std::vector<std::string> notes() const;

 private:
  std::string title_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::string> notes_;
};

struct TextStyle {
  bool color = false;
  /// Columns of the terminal; 0: as wide as it is. In a terminal texts are wrapped at blanks, columns of times have one
  /// unit that suits them, and columns that do not fit follow below the others, or are left out of long tables.
  int width = 0;
  /// What shows all of it, for the note about columns that are left out.
  std::string_view whole = {};
};

/// A table of one command, which may print several.
struct NamedTable {
  std::string name;  // "operations", "kernels", "latency"…
  Table table;
};

enum class Format { kText, kCsv, kJson, kMarkdown };
/// "text", "csv", "json", "markdown" or "md".
std::optional<Format> parse_format(std::string_view name);

std::string to_text(const Table& table, const TextStyle& style = {});
std::string to_csv(const Table& table);
std::string to_markdown(const Table& table);
/// A <table> without style but the side of its cells, with the title as its caption; the notes are paragraphs below it.
std::string to_html(const Table& table);
/// {"title": …, "rows": [{key: value}], "units": {key: unit}, "notes": […]} on one line. An empty cell of a column of
/// numbers (one on the right) is null.
std::string to_json(const Table& table);
std::string format(const Table& table, Format format, const TextStyle& style = {});

/// Columns that a terminal gives a UTF-8 text (one per code point).
int display_width(std::string_view text);

/// 268435456 → "268 MB", in powers of ten.
std::string human_bytes(double bytes);
/// Microseconds as "12.3 us", "1.23 ms", "4.56 s".
std::string human_time(double us);

/// Whether the stream is a terminal that wants colour: a tty, NO_COLOR unset or empty (no-color.org), TERM not "dumb".
bool wants_color(int fd);
/// Columns of the terminal that the stream is, else $COLUMNS; 0: neither is known.
int terminal_columns(int fd);
/// How tables are written to the stream.
TextStyle style_of(int fd);

}  // namespace kiln::report
