#include "repl/magics/magic_arguments.h"

#include <algorithm>
#include <cctype>

#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

// Calls `part` for each piece between separators that stand outside of brackets and strings.
template <class IsSeparator, class Part>
Status split(std::string_view text, IsSeparator&& is_separator, Part&& part) {
  std::string open;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      size_t end = i + 1;
      while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
      if (end >= text.size()) return error(ErrorKind::kSyntax, "a string does not end: {}", text.substr(i));
      i = end;
    } else if (c == '(' || c == '[' || c == '{') {
      open += c;
    } else if (c == ')' || c == ']' || c == '}') {
      const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != wanted) return error(ErrorKind::kSyntax, "'{}' closes nothing", c);
      open.pop_back();
    } else if (open.empty() && is_separator(c)) {
      part(text.substr(begin, i - begin), i);
      begin = i + 1;
    }
  }
  if (!open.empty()) return error(ErrorKind::kSyntax, "'{}' is not closed", open.back());
  part(text.substr(begin), text.size());
  return {};
}

// "NAME" of "NAME=VALUE", else empty.
std::string_view assigned_name(std::string_view word) {
  size_t end = 0;
  while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) || word[end] == '_')) ++end;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(word[0]))) return {};
  if (end >= word.size() || word[end] != '=' || word.substr(end).starts_with("==")) return {};
  return word.substr(0, end);
}

Diagnostic unknown_option(std::string_view word, std::span<const MagicOption> options) {
  std::vector<std::string> names;
  for (const MagicOption& o : options) names.emplace_back(o.name);
  Diagnostic d = error(ErrorKind::kName, "there is no option '{}'; there are {}", word, option_summary(options));
  std::string near = nearest_name(word, names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
}

}  // namespace

const std::string* MagicArguments::find(std::string_view name) const {
  for (const auto& [key, value] : values)
    if (key == name) return &value;
  return nullptr;
}

std::string MagicArguments::text(std::string_view name, const std::string& otherwise) const {
  const std::string* found = find(name);
  return found ? *found : otherwise;
}

Result<MagicArguments> parse_magic_arguments(std::string_view text, std::span<const MagicOption> options,
                                             bool other_names) {
  auto known = [&](std::string_view name) -> const MagicOption* {
    for (const MagicOption& o : options)
      if (o.name == name) return &o;
    return nullptr;
  };
  MagicArguments out;
  std::vector<std::string_view> words;
  KILN_CHECK_OK(split(text, is_blank, [&](std::string_view word, size_t) {
    if (!word.empty()) words.push_back(word);
  }));
  std::string rest;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    const MagicOption* o = known(word);
    // "-x" may also be a negated x.
    if (word.starts_with("--") || (o && word.starts_with('-'))) {
      if (!o) return unknown_option(word, options);
      std::string value;
      if (o->form != MagicOption::Form::kFlag) {
        if (++i >= words.size()) return error(ErrorKind::kSyntax, "{} needs a file", word);
        value = words[i];
        if (value.size() > 1 && (value[0] == '"' || value[0] == '\'')) value = value.substr(1, value.size() - 2);
      }
      out.values.emplace_back(word, std::move(value));
      continue;
    }
    if (std::string_view name = assigned_name(word); !name.empty()) {
      if (!known(name) && !other_names) return unknown_option(std::string(name) + "=", options);
      std::string value(word.substr(name.size() + 1));
      if (value.empty()) return error(ErrorKind::kSyntax, "{}= needs a value, without a blank before it", name);
      if (out.has(name)) return error(ErrorKind::kSyntax, "{}= is given twice", name);
      out.values.emplace_back(name, std::move(value));
      continue;
    }
    rest += (rest.empty() ? "" : " ") + std::string(word);
  }
  KILN_CHECK_OK(split(
      rest, [](char c) { return c == ','; },
      [&](std::string_view part, size_t) {
        if (const std::string expression(trimmed(part)); !expression.empty()) out.expressions.push_back(expression);
      }));
  if (out.expressions.empty()) return error(ErrorKind::kSyntax, "an expression is missing");
  return out;
}

Result<std::vector<std::string>> split_outside_brackets(std::string_view text, Between separators) {
  std::vector<std::string> parts;
  KILN_CHECK_OK(split(
      text, [&](char c) { return separators == Between::kCommas ? c == ',' : is_blank(c); },
      [&](std::string_view part, size_t) {
        if (const std::string_view found = trimmed(part); !found.empty()) parts.emplace_back(found);
      }));
  return parts;
}

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_blank(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c != '"' && c != '\'') {
      words.back() += c;
      continue;
    }
    const size_t end = text.find(c, i + 1);
    if (end == std::string_view::npos) return error(ErrorKind::kSyntax, "a quote is not closed: {}", text.substr(i));
    words.back() += text.substr(i + 1, end - i - 1);
    i = end;
  }
  return words;
}

std::string option_summary(std::span<const MagicOption> options) {
  std::string out;
  for (const MagicOption& o : options) {
    out += (out.empty() ? "" : ", ") + std::string(o.name);
    if (o.form == MagicOption::Form::kDashed) out += " FILE";
    if (o.form == MagicOption::Form::kValue) out += "=";
  }
  return out;
}

}  // namespace kiln::repl
