#include "repl/magics/statement_arguments.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

struct Word {
  size_t begin = 0, end = 0;
};

/// Words between blanks that stand outside of brackets and strings.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  int depth = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool separates = depth <= 0 && is_blank(c);
    if (!separates && !inside) words.push_back({i, i});
    inside = !separates;
    if (c == '"' || c == '\'') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
      i = std::min(end, text.size() - 1);
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    }
    if (inside) words.back().end = i + 1;
  }
  return words;
}

std::string_view option_name(std::string_view word) {
  const size_t equals = word.find('=');
  return equals == std::string_view::npos || word.substr(equals).starts_with("==") ? word : word.substr(0, equals);
}

const MagicOption* find(std::string_view word, std::span<const MagicOption> options) {
  const bool has_value = option_name(word).size() < word.size();
  for (const MagicOption& o : options)
    if (o.name == option_name(word) && has_value == (o.form == MagicOption::Form::kValue)) return &o;
  return nullptr;
}

std::string unquoted(std::string_view text) {
  if (text.size() > 1 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

}  // namespace

Result<MagicArguments> parse_statement_arguments(std::string_view text, std::span<const MagicOption> options) {
  const std::vector<Word> words = words_of(text);
  auto word = [&](size_t i) { return text.substr(words[i].begin, words[i].end - words[i].begin); };
  MagicArguments out;
  auto take = [&](size_t option, std::string value) -> Status {
    const std::string name(option_name(word(option)));
    if (out.has(name)) return error(ErrorKind::kSyntax, "{} is given twice", name);
    out.values.emplace_back(name, std::move(value));
    return {};
  };
  auto is_file = [&](size_t i) {
    const MagicOption* o = find(word(i), options);
    return o && o->form == MagicOption::Form::kDashed;
  };
  auto value_of = [&](size_t i) {
    return std::string(word(i).substr(std::min(option_name(word(i)).size() + 1, word(i).size())));
  };
  size_t first = 0, last = words.size();
  while (first < last && find(word(first), options)) {
    if (is_file(first)) {
      if (first + 1 >= last) return error(ErrorKind::kSyntax, "{} needs a file", word(first));
      KILN_CHECK_OK(take(first, unquoted(word(first + 1))));
      first += 2;
      continue;
    }
    KILN_CHECK_OK(take(first, value_of(first)));
    ++first;
  }
  while (last > first) {
    if (last - first >= 2 && is_file(last - 2)) {
      KILN_CHECK_OK(take(last - 2, unquoted(word(last - 1))));
      last -= 2;
    } else if (is_file(last - 1)) {
      return error(ErrorKind::kSyntax, "{} needs a file", word(last - 1));
    } else if (find(word(last - 1), options)) {
      KILN_CHECK_OK(take(last - 1, value_of(last - 1)));
      --last;
    } else {
      break;
    }
  }
  for (const auto& [name, value] : out.values)
    for (const MagicOption& o : options)
      if (o.name == name && o.form == MagicOption::Form::kValue && value.empty())
        return error(ErrorKind::kSyntax, "{}= needs a value, without a blank before it", name);
  if (first == last) return error(ErrorKind::kSyntax, "a statement is missing");
  out.expressions.emplace_back(text.substr(words[first].begin, words[last - 1].end - words[first].begin));
  return out;
}

Diagnostic explain_statement(Diagnostic problem, const std::string& statement, std::span<const MagicOption> options) {
  if (problem.kind != ErrorKind::kSyntax) return problem;
  const std::vector<Word> words = words_of(statement);
  if (words.size() < 2) return problem;
  // The first word that looks like an option: --name anywhere behind the statement's own, or name=value at the end.
  auto word = [&](const Word& w) { return std::string_view(statement).substr(w.begin, w.end - w.begin); };
  auto has_dashes = [&](const Word& w) { return word(w).size() > 2 && word(w).starts_with("--"); };
  const auto dashed = std::find_if(words.begin() + 1, words.end(), has_dashes);
  const std::string_view suspect = word(dashed == words.end() ? words.back() : *dashed);
  const std::string_view name = option_name(suspect);
  if (name.empty() || (dashed == words.end() && name.size() == suspect.size())) return problem;
  std::vector<std::string> names;
  for (const MagicOption& o : options) names.emplace_back(o.name);
  Diagnostic d = error(ErrorKind::kName, "there is no option '{}'; there are {}", name, option_summary(options));
  const std::string near = nearest_name(name, names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
}

Result<int64_t> count_of(std::string_view text, std::string_view what, int64_t least) {
  int64_t n = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  constexpr int64_t kMost = 1'000'000'000;
  if (code != std::errc{} || end != text.data() + text.size() || n < least || n > kMost)
    return error(ErrorKind::kValue, "{} is a whole number from {}, got {}", what, least, text);
  return n;
}

}  // namespace kiln::repl
