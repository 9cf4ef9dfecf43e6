#include "repl/editor/python_lines.h"

#include <algorithm>
#include <array>
#include <vector>

#include "repl/editor/buffer.h"

namespace kiln::editor {

namespace {

constexpr size_t kNone = std::string_view::npos;

bool is_open(char c) { return c == '(' || c == '[' || c == '{'; }
bool is_close(char c) { return c == ')' || c == ']' || c == '}'; }

/// Goes over a text that may be wrong or unfinished and tells what is code: `code(i)` for each character that is in no
/// string and no comment. Gives whether the text ends inside a triple-quoted string.
template <class F>
bool for_code(std::string_view text, F&& code) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      if (i < text.size()) code(i);
    } else if (c == '"' || c == '\'') {
      const bool triple = text.substr(i).starts_with(c == '"' ? "\"\"\"" : "'''");
      const size_t begin = i;
      code(begin);  // the literal's first quote stands for it
      for (i += triple ? 3 : 1;; ++i) {
        if (i >= text.size()) return triple;
        if (text[i] == '\\') {
          ++i;
        } else if (text[i] == c && (!triple || text.substr(i).starts_with(text.substr(begin, 3)))) {
          i += triple ? 2 : 0;
          break;
        } else if (text[i] == '\n' && !triple) {  // not closed: ends with its line
          code(i);
          break;
        }
      }
    } else {
      code(i);
    }
  }
  return false;
}

size_t line_begin(std::string_view text, size_t at) {
  const size_t end = at == 0 ? kNone : text.rfind('\n', at - 1);
  return end == kNone ? 0 : end + 1;
}

int blanks_at(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && text[end] == ' ') ++end;
  return static_cast<int>(end - begin);
}

std::string_view first_word(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  size_t end = begin;
  while (end < line.size() && line[end] >= 'a' && line[end] <= 'z') ++end;
  // "returned" is no return.
  const bool goes_on = end < line.size() && (line[end] == '_' || (line[end] >= '0' && line[end] <= '9') ||
                                             (line[end] >= 'A' && line[end] <= 'Z'));
  return goes_on ? std::string_view{} : line.substr(begin, end - begin);
}

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 5> kLeaving = {"return", "pass", "break", "continue", "raise"};

}  // namespace

int indent_after(std::string_view text) {
  std::vector<size_t> open;  // brackets
  size_t statement = 0;      // where the last logical line begins
  size_t last = kNone;       // the last character of code that is no blank
  const bool in_string = for_code(text, [&](size_t i) {
    const char c = text[i];
    if (is_open(c)) open.push_back(i);
    if (is_close(c) && !open.empty()) open.pop_back();
    if (c == '\n' && open.empty() && (i == 0 || text[i - 1] != '\\')) {
      // A blank line keeps the indentation that was.
      if (text.substr(i + 1).find_first_not_of(" \t\n") != kNone) statement = i + 1, last = kNone;
      return;
    }
    if (c != ' ' && c != '\t' && c != '\n') last = i;
  });
  if (in_string) return 0;
  if (!open.empty()) {
    const size_t line = line_begin(text, text.size());
    // The first line in a bracket is indented beyond the line that opened it; the others are as the one before.
    return open.back() >= line ? blanks_at(text, line_begin(text, open.back())) + Buffer::kIndent
                               : blanks_at(text, line);
  }
  const size_t content = text.find_first_not_of(" \n", statement);
  if (content == kNone) return 0;
  const size_t begin = line_begin(text, content);
  const int blanks = blanks_at(text, begin);
  if (last != kNone && text[last] == ':') return blanks + Buffer::kIndent;
  if (is_one_of(first_word(text.substr(begin)), kLeaving)) return std::max(0, blanks - Buffer::kIndent);
  return blanks;
}

int indent_of_clause(std::string_view text) {
  const size_t line = line_begin(text, text.size());
  const int blanks = blanks_at(text, line);
  const std::string_view word = first_word(text.substr(line));
  const auto continues = [&](std::string_view opener) {
    if (word == "else")
      return is_one_of(opener, std::array<std::string_view, 6>{"if", "elif", "for", "while", "except", "try"});
    if (word == "case") return opener == "case";
    if (word == "elif") return opener == "if" || opener == "elif";
    return (word == "except" || word == "finally") && (opener == "try" || opener == "except" || opener == "else");
  };
  // Up over the lines that stand as far in as this one, to the statement that it continues.
  int limit = blanks + 1;
  for (size_t end = line; end > 0;) {
    const size_t begin = line_begin(text, end - 1);
    const std::string_view above = text.substr(begin, end - 1 - begin);
    end = begin;
    if (above.find_first_not_of(' ') == kNone) continue;
    const int theirs = blanks_at(above, 0);
    if (theirs >= limit) continue;
    if (continues(first_word(above))) return theirs == blanks ? -1 : theirs;
    limit = theirs;
    if (limit == 0) break;
  }
  return -1;
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Bytes of "[12] " or "In [12]: " at the start; 0: it is none, as in [1] + x.
size_t numbered_prompt(std::string_view line) {
  const bool ipython = line.starts_with("In [");
  size_t at = ipython ? 4 : line.starts_with('[') ? 1 : 0;
  if (at == 0) return 0;
  const size_t digits = at;
  while (at < line.size() && is_digit(line[at])) ++at;
  if (at == digits) return 0;
  const std::string_view close = ipython ? "]:" : "]";
  if (!line.substr(at).starts_with(close)) return 0;
  at += close.size();
  if (at == line.size()) return at;
  if (line[at] != ' ') return 0;
  ++at;
  if (ipython || at == line.size()) return at;
  const char c = line[at];
  const bool starts_code = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '@' || c == '%' ||
                           c == '"' || c == '\'' || c == '(' || c == '[' || c == '{' || c == '#' || c == '?' ||
                           is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
  constexpr std::array<std::string_view, 7> kOperators = {"and", "or", "in", "is", "if", "not", "for"};
  // "[1] if" is a list in a condition, but "[1] if x:" is a statement at a prompt.
  const std::string_view word = first_word(line.substr(at));
  const bool is_operator = is_one_of(word, kOperators) && !line.ends_with(':') && word != "not";
  return starts_code && !is_operator ? at : 0;
}

/// Bytes of "... ", ">>> " or "   ...: " at the start, also with nothing behind it.
size_t further_prompt(std::string_view line) {
  const size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  for (std::string_view prompt : {"...: ", "... "}) {
    if (line.substr(blanks).starts_with(prompt)) return blanks + prompt.size();
    prompt.remove_suffix(1);
    if (line.substr(blanks) == prompt) return line.size();
  }
  return 0;
}

size_t python_prompt(std::string_view line) { return line.starts_with(">>> ") ? 4 : line == ">>>" ? 3 : 0; }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool is_blank_line(std::string_view line) { return line.find_first_not_of(" \t") == kNone; }

}  // namespace

std::vector<std::string> entries_of_transcript(std::string_view text) {
  const std::vector<std::string_view> lines = split_lines(text);
  const auto first = std::find_if_not(lines.begin(), lines.end(), is_blank_line);
  const auto prompt_of = [](std::string_view line) { return std::max(numbered_prompt(line), python_prompt(line)); };
  std::vector<std::string> entries;
  if (first == lines.end() || !prompt_of(*first)) return entries;
  bool in_entry = false;  // further prompts continue it; anything else is output
  for (std::string_view line : lines) {
    const size_t start = prompt_of(line), further = in_entry && !start ? further_prompt(line) : 0;
    in_entry = start || further;
    if (start) entries.emplace_back();
    if (in_entry) (entries.back() += line.substr(std::max(start, further))) += '\n';
  }
  // A blank prompt line at the end was there to end the block.
  return entries;
}

std::string joined(const std::vector<std::string>& entries) {
  std::string all;
  for (const std::string& entry : entries) all += entry;
  return all;
}

std::string cleaned_paste(std::string text) {
  if (const auto entries = entries_of_transcript(text); !entries.empty()) return joined(entries);
  const std::vector<std::string_view> lines = split_lines(text);
  std::string out;
  auto add = [&](std::string_view line) { (out += line) += '\n'; };
  size_t shared = kNone;
  for (std::string_view line : lines)
    if (!is_blank_line(line)) shared = std::min(shared, line.find_first_not_of(' '));
  if (shared == 0 || shared == kNone || lines.size() == 1) return text;
  for (std::string_view line : lines) add(is_blank_line(line) ? std::string_view{} : line.substr(shared));
  out.pop_back();  // the last line has no end, or is the empty one behind it
  return out;
}

BracketPair matching_brackets(std::string_view text, size_t cursor) {
  std::vector<size_t> open;
  BracketPair at_cursor, before;
  for_code(text, [&](size_t i) {
    if (is_open(text[i])) open.push_back(i);
    if (!is_close(text[i]) || open.empty()) return;
    const BracketPair pair{open.back(), i};
    open.pop_back();
    const char want = text[pair.open] == '(' ? ')' : text[pair.open] == '[' ? ']' : '}';
    if (text[i] != want) return;
    if (pair.open == cursor || pair.close == cursor) at_cursor = pair;
    if (cursor > 0 && (pair.open == cursor - 1 || pair.close == cursor - 1)) before = pair;
  });
  return before.open != kNone ? before : at_cursor;
}

}  // namespace kiln::editor
