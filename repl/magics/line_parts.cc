#include "repl/magics/line_parts.h"

#include <algorithm>

#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

std::vector<std::string_view> LineParts::words() const {
  std::vector<std::string_view> out;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(out), [](std::string_view p) { return !p.empty(); });
  return out;
}

LineParts parts_of(std::string_view text, Between separators, Groups groups) {
  LineParts out;
  const bool code = groups == Groups::kCode;
  auto problem = [&](Diagnostic d) {
    // The first problem is the one to tell: those behind it mostly follow from it.
    if (out.closed.ok()) out.closed = std::move(d);
  };
  std::string open;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      size_t end = i + 1;
      // Code has escapes in its strings; a word's quotes are a shell's, where a backslash is a character.
      while (end < text.size() && text[end] != c) end += code && text[end] == '\\' ? 2 : 1;
      if (end >= text.size())
        problem(error(ErrorKind::kSyntax, "{} is not closed: {}", code ? "a string" : "a quote", text.substr(i)));
      // Goes on behind the quote; the end of the text counts as its end.
      i = std::min(end, text.size() - 1);
    } else if (code && (c == '(' || c == '[' || c == '{')) {
      open += c;
    } else if (code && (c == ')' || c == ']' || c == '}')) {
      const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (!open.empty() && open.back() == wanted)
        open.pop_back();
      else
        problem(error(ErrorKind::kSyntax, "'{}' closes nothing", c));
    } else if (open.empty() && (separators == Between::kCommas ? c == ',' : is_blank(c))) {
      out.parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (!open.empty()) problem(error(ErrorKind::kSyntax, "'{}' is not closed", open.back()));
  // The last part is there even if it is empty, so that `parts` is never empty.
  out.parts.push_back(text.substr(begin));
  return out;
}

Result<std::vector<std::string>> split_outside_brackets(std::string_view text, Between separators) {
  LineParts split = parts_of(text, separators);
  KILN_CHECK_OK(std::move(split.closed));
  std::vector<std::string> out;
  for (std::string_view part : split.parts)
    if (const std::string_view found = trimmed(part); !found.empty()) out.emplace_back(found);
  return out;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  LineParts split = parts_of(text, Between::kBlanks, Groups::kQuotes);
  KILN_CHECK_OK(std::move(split.closed));
  std::vector<std::string> out;
  for (std::string_view word : split.words()) {
    std::string& bare = out.emplace_back();
    // Quotes may begin within a word, as a shell's do: --file="a b".
    char quote = 0;
    for (char c : word) {
      if (quote ? c == quote : c == '"' || c == '\'')
        quote = quote ? 0 : c;
      else
        bare += c;
    }
  }
  return out;
}

std::string_view unquoted(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace kiln::repl
