#include "repl/magics/magic_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

// "NAME" of "NAME=VALUE", else empty.
std::string_view assigned_name(std::string_view word) {
  size_t end = 0;
  while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) || word[end] == '_')) ++end;
  if (end == 0 || std::isdigit(static_cast<unsigned char>(word[0]))) return {};
  if (end >= word.size() || word[end] != '=' || word.substr(end).starts_with("==")) return {};
  return word.substr(0, end);
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
                                             ArgumentForm form) {
  auto known = [&](std::string_view name) -> const MagicOption* {
    for (const MagicOption& o : options)
      if (o.name == name) return &o;
    return nullptr;
  };
  MagicArguments out;
  LineParts line = parts_of(text, Between::kBlanks);
  KILN_CHECK_OK(std::move(line.closed));
  const std::vector<std::string_view> words = line.words();
  std::string rest;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    const MagicOption* o = known(word);
    // "-x" may also be a negated x.
    if (word.starts_with("--") || (o && word.starts_with('-'))) {
      if (!o) return no_such_option(word, options);
      std::string value;
      if (o->form != MagicOption::Form::kFlag) {
        if (++i >= words.size()) return lacks_value(*o);
        value = unquoted(words[i]);
      }
      if (out.has(word)) return error(ErrorKind::kSyntax, "{} is given twice", word);
      out.values.emplace_back(word, std::move(value));
      continue;
    }
    if (std::string_view name = assigned_name(word); !name.empty()) {
      // `budget=1s` says the same as `--budget 1s`, where a command has it so.
      const MagicOption* dashed = known(name) ? nullptr : known("--" + std::string(name));
      if (dashed && dashed->form == MagicOption::Form::kDashed) name = dashed->name;
      if (!known(name) && !form.other_names) return no_such_option(std::string(name) + "=", options);
      std::string value(word.substr(word.find('=') + 1));
      if (value.empty()) return error(ErrorKind::kSyntax, "{}= needs a value, without a blank before it", name);
      if (out.has(name)) return error(ErrorKind::kSyntax, "{}= is given twice", name);
      out.values.emplace_back(name, std::move(value));
      continue;
    }
    rest += (rest.empty() ? "" : " ") + std::string(word);
  }
  KILN_TRY(out.expressions, split_outside_brackets(rest, Between::kCommas));
  if (out.expressions.empty() && form.needs_expression) return error(ErrorKind::kSyntax, "an expression is missing");
  return out;
}

Result<MagicArguments> magic_arguments_of(std::span<const std::string> words) {
  MagicArguments out;
  std::string rest;
  for (const std::string& word : words) {
    const std::string_view name = assigned_name(word);
    if (name.empty()) {
      rest += (rest.empty() ? "" : ", ") + word;
      continue;
    }
    if (name.size() + 1 == word.size()) return error(ErrorKind::kSyntax, "{}= needs a value", name);
    if (out.has(name)) return error(ErrorKind::kSyntax, "{}= is given twice", name);
    out.values.emplace_back(name, word.substr(name.size() + 1));
  }
  KILN_TRY(out.expressions, split_outside_brackets(rest, Between::kCommas));
  if (out.expressions.empty()) return error(ErrorKind::kSyntax, "an expression is missing");
  return out;
}

Diagnostic no_such_option(std::string_view word, std::span<const MagicOption> options) {
  std::vector<std::string> names;
  for (const MagicOption& o : options) names.emplace_back(o.name);
  Diagnostic d = error(ErrorKind::kName, "there is no option '{}'; there are {}", word, option_summary(options));
  std::string near = nearest_name(word.substr(0, word.find('=')), names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
}

Diagnostic lacks_value(const MagicOption& option) {
  return error(ErrorKind::kSyntax, "{} needs a value behind it: {}", option.name, option.shown());
}

std::string other_values(const MagicArguments& arguments, std::span<const MagicOption> options) {
  std::string out;
  for (const auto& [name, value] : arguments.values)
    if (std::ranges::none_of(options, [&, &n = name](const MagicOption& o) { return o.name == n; }))
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
  return out;
}

std::string option_summary(std::span<const MagicOption> options) {
  std::string out;
  for (const MagicOption& o : options) {
    out += out.empty() ? "" : ", ";
    if (o.form == MagicOption::Form::kDashed)
      out += o.shown();
    else
      out += std::string(o.name) + (o.form == MagicOption::Form::kValue ? "=" : "");
  }
  return out;
}

}  // namespace kiln::repl
