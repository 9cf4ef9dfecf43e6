#include "support/diag.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "support/notebook.h"
#include "support/text_width.h"

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
  // The rows for a's first i, i - 1 and i - 2 characters.
  std::vector<int> row(b.size() + 1), before(b.size() + 1), second(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    second.swap(before);
    before.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], second[j - 2] + 1);
    }
  }
  return row[b.size()];
}

namespace {

constexpr size_t kMostShown = 160;  // bytes of a source line
constexpr size_t kLeastShown = 20;  // also where the terminal is narrower
constexpr size_t kLongestWord = 400;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// A part of a line that can be printed, and what stands below it to put a mark under one of its characters.
struct Shown {
  std::string text, below;
};

Shown shown(std::string_view bytes) {
  Shown s;
  for (size_t i = 0; i < bytes.size();) {
    const Character c = first_character(bytes.substr(i));
    const bool control = c.code != '\t' && is_control(c.code);
    s.text += control || c.code == 0xFFFD ? "\ufffd" : bytes.substr(i, c.bytes);
    if (c.code == '\t')
      s.below += '\t';
    else
      s.below.append(static_cast<size_t>(control ? 1 : character_width(c.code)), ' ');
    i += c.bytes;
  }
  return s;
}

void append_place(std::string& out, const Place& p, bool color, int columns) {
  if (!p.line) return;
  const std::string number = std::to_string(p.line);
  // "  NUMBER | ", and an ellipsis on both sides.
  const size_t beside = number.size() + 7, room = static_cast<size_t>(std::max(0, columns));
  const size_t most = columns > 0 ? std::clamp(room - std::min(room, beside), kLeastShown, kMostShown) : kMostShown;
  const std::string_view line = p.text;
  const size_t at = std::min(static_cast<size_t>(std::max(0, p.column - 1)), line.size());
  // Of a long line, the part around the place.
  size_t first = at < most * 3 / 4 ? 0 : std::min(at - most / 2, line.size() - std::min(line.size(), most));
  size_t last = std::min(line.size(), first + most);
  while (first < at && continues_character(line[first])) ++first;
  while (last < line.size() && continues_character(line[last])) ++last;
  const size_t end = std::clamp(static_cast<size_t>(std::max(0, p.end_column - 1)), at, last);

  const std::string_view before = first ? "…" : "", after = last < line.size() ? "…" : "";
  out += fmt::format("  {} | {}{}{}\n", number, before, shown(line.substr(first, last - first)).text, after);
  const std::string carets(std::max<size_t>(1, shown(line.substr(at, end - at)).below.size()), '^');
  out += fmt::format("  {} | {}{}{}{}{}\n", std::string(number.size(), ' '), first ? " " : "",
                     shown(line.substr(first, at - first)).below, color ? "\033[1;31m" : "", carets,
                     color ? "\033[0m" : "");
}

/// Words of a size that only a generated or broken text has lose their middle.
std::string readable(const std::string& message) {
  std::string out;
  for (size_t at = 0; at < message.size();) {
    const size_t end = std::min(message.find_first_of(" \n", at), message.size());
    const std::string_view word = std::string_view(message).substr(at, end - at);
    if (word.size() <= kLongestWord) {
      out += word;
    } else {
      size_t head = kLongestWord / 2, tail = word.size() - 20;
      while (continues_character(word[head])) --head;
      while (continues_character(word[tail])) ++tail;
      out += fmt::format("{}…{}", word.substr(0, head), word.substr(tail));
    }
    if (end < message.size()) out += message[end];
    at = end + 1;
  }
  return out;
}

/// Broken at blanks, with `indent` blanks in front of what follows; `used` columns of the first line are taken.
std::string wrapped(const std::string& text, int used, int columns, size_t indent) {
  if (columns <= 0) return text;
  std::string out;
  bool fresh = true;  // nothing stands on the line yet but its indentation
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const int width = text_width(word);
    if (!fresh && used + 1 + width > columns) {
      out += "\n" + std::string(indent, ' ');
      used = static_cast<int>(indent);
      fresh = true;
    }
    if (!fresh) out += ' ', ++used;
    out += word;
    used += width;
    fresh = false;
    if (end < text.size() && text[end] == '\n') {
      out += '\n';
      used = 0;
      fresh = true;
    }
    at = end + 1;
  }
  return out;
}

std::string head(const Place& p) {
  if (!p.line) return {};
  if (cell_place(p).cell) return fmt::format("{}, line {}: ", printable(p.file), p.line);
  return fmt::format("{}:{}:{}: ", printable(p.file), p.line, p.column);
}

}  // namespace

std::string render(const Diagnostic& d, bool color, int columns) {
  const char* bold = color ? "\033[1m" : "";
  const char* red = color ? "\033[1;31m" : "";
  const char* off = color ? "\033[0m" : "";
  constexpr std::string_view kError = "error: ";
  const std::string where = head(d.place);
  const std::string message =
      wrapped(readable(printable(d.message)), text_width(where) + text_width(kError), columns, 2);
  std::string out = fmt::format("{}{}{}{}{}{}{}{}{}\n", bold, where, off, red, kError, off, bold, message, off);
  append_place(out, d.place, color, columns);
  for (const Note& n : d.notes) {
    const std::string place = n.place.line ? head(n.place) : "";
    out += fmt::format("  {}{}\n", place, wrapped(readable(printable(n.message)), 2 + text_width(place), columns, 4));
    append_place(out, n.place, color, columns);
  }
  return out;
}

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kSyntax:
      return "syntax";
    case ErrorKind::kName:
      return "name";
    case ErrorKind::kType:
      return "type";
    case ErrorKind::kValue:
      return "value";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kMismatch:
      return "mismatch";
    case ErrorKind::kLaunch:
      return "launch";
    case ErrorKind::kMemory:
      return "memory";
    case ErrorKind::kDevice:
      return "device";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kInterrupted:
      return "interrupted";
    case ErrorKind::kInternal:
      return "internal";
  }
  KILN_UNREACHABLE("an error of kind {}", static_cast<int>(kind));
}

}  // namespace kiln
