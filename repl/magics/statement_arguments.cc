#include "repl/magics/statement_arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

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

}  // namespace

Result<MagicArguments> parse_statement_arguments(std::string_view text, std::span<const MagicOption> options,
                                                 StatementForm form) {
  // What is open in the statement, its own parser reports.
  const std::vector<std::string_view> words = parts_of(text, Between::kBlanks).words();
  auto word = [&](size_t i) { return words[i]; };
  MagicArguments out;
  auto take = [&](size_t option, std::string value) -> Status {
    const std::string name(option_name(word(option)));
    if (out.has(name) && !find(word(option), options)->may_repeat())
      return error(ErrorKind::kSyntax, "{} is given twice", name);
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
      if (first + 1 >= last) return lacks_value(*find(word(first), options));
      KILN_CHECK_OK(take(first, std::string(unquoted(word(first + 1)))));
      first += 2;
      continue;
    }
    KILN_CHECK_OK(take(first, value_of(first)));
    ++first;
  }
  while (last > first) {
    if (last - first >= 2 && is_file(last - 2)) {
      KILN_CHECK_OK(take(last - 2, std::string(unquoted(word(last - 1)))));
      last -= 2;
    } else if (is_file(last - 1)) {
      return lacks_value(*find(word(last - 1), options));
    } else if (find(word(last - 1), options)) {
      KILN_CHECK_OK(take(last - 1, value_of(last - 1)));
      --last;
    } else if (form.is_operand && form.is_operand(word(last - 1))) {
      out.operands.emplace(out.operands.begin(), word(--last));
    } else {
      break;
    }
  }
  for (const auto& [name, value] : out.values)
    for (const MagicOption& o : options)
      if (o.name == name && o.form == MagicOption::Form::kValue && value.empty())
        return error(ErrorKind::kSyntax, "{}= needs a value, without a blank before it", name);
  if (first < last && word(first).size() > 2 && word(first).starts_with("--") && std::isalpha(word(first)[2]))
    return no_such_option(word(first), options);
  if (first < last)
    out.expressions.emplace_back(words[first].data(), words[last - 1].end());
  else if (form.needs_statement)
    return error(ErrorKind::kSyntax, "a statement is missing");
  return out;
}

Diagnostic explain_statement(Diagnostic problem, const std::string& statement, std::span<const MagicOption> options) {
  if (problem.kind != ErrorKind::kSyntax) return problem;
  const std::vector<std::string_view> words = parts_of(statement, Between::kBlanks).words();
  if (words.size() < 2) return problem;
  // The first word that looks like an option: --name anywhere behind the statement's own, or name=value at the end.
  auto has_dashes = [](std::string_view w) { return w.size() > 2 && w.starts_with("--"); };
  const auto dashed = std::find_if(words.begin() + 1, words.end(), has_dashes);
  const std::string_view suspect = dashed == words.end() ? words.back() : *dashed;
  const std::string_view name = option_name(suspect);
  if (name.empty() || (dashed == words.end() && name.size() == suspect.size())) return problem;
  return no_such_option(name, options);
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
