#include "support/diag.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace kiln {

Diagnostic with_note(Diagnostic d, std::string message, SourceRange range) {
  d.notes.push_back({std::move(message), place_of(range)});
  return d;
}

void internal_error(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "kiln: internal error at %s:%d: %s\n", file, line, message.c_str());
  std::fflush(stderr);
  std::abort();
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int substitution = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

namespace {

void append_place(std::string& out, const Place& p, bool color) {
  if (!p.line) return;
  std::string number = std::to_string(p.line);
  out += fmt::format("  {} | {}\n", number, p.text);
  std::string pad;
  for (int i = 0; i + 1 < p.column && i < static_cast<int>(p.text.size()); ++i) pad += p.text[i] == '\t' ? '\t' : ' ';
  std::string carets(static_cast<size_t>(std::max(1, p.end_column - p.column)), '^');
  out += fmt::format("  {} | {}{}{}{}\n", std::string(number.size(), ' '), pad, color ? "\033[1;31m" : "", carets,
                     color ? "\033[0m" : "");
}

std::string head(const Place& p) {
  if (!p.line) return {};
  return fmt::format("{}:{}:{}: ", p.file, p.line, p.column);
}

}  // namespace

std::string render(const Diagnostic& d, bool color) {
  const char* bold = color ? "\033[1m" : "";
  const char* red = color ? "\033[1;31m" : "";
  const char* off = color ? "\033[0m" : "";
  std::string out = fmt::format("{}{}{}{}error: {}{}{}{}\n", bold, head(d.place), off, red, off, bold, d.message, off);
  append_place(out, d.place, color);
  for (const Note& n : d.notes) {
    out += fmt::format("  {}{}\n", n.place.line ? head(n.place) : "", n.message);
    append_place(out, n.place, color);
  }
  return out;
}

}  // namespace kiln
