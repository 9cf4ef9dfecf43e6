#include "repl/shell/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "repl/magics/magics.h"
#include "repl/shell/completion_words.h"
#include "repl/shell/entry_text.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using editor::Completion;

/// Of a shell's line: paths, and as its first word programs too.
Completion complete_shell(std::string_view line) {
  Completion c;
  const size_t blank = line.rfind(' ');
  const std::string_view word = blank == std::string_view::npos ? line : line.substr(blank + 1);
  c.replaced = word.size();
  if (trimmed(line) == word && !word.empty() && word.find('/') == std::string_view::npos) offer_programs(c, word);
  offer_paths(c, word, {.place = PathPlace::kWord});
  return c;
}

}  // namespace

Completion complete_line(script::Session& session, std::string_view before) {
  Completion c;
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  std::string_view text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  if (auto command = percent_command(text)) text = command->command;  // r = %bench …
  if (const size_t string = cursor_place(before).string; string <= before.size()) {
    const std::string_view typed = before.substr(string);
    if (complete_string(session, before, typed, c)) return c;
    c.replaced = typed.size();
    const bool in_command = text.starts_with('%') || text.starts_with('!');
    if (in_command)
      complete_quoted_path(text, typed, before[string - 1], c);
    else
      offer_paths(c, typed, {});
    return c;
  }
  if (text.starts_with('!')) return complete_shell(text.substr(1));
  if (text.starts_with("%sh ")) return complete_shell(text.substr(4));
  if (text.starts_with('%')) {
    if (text.find(' ') == std::string_view::npos) {
      c.replaced = text.size();
      for (const Magic& m : magics()) offer(c, text, "%" + std::string(m.name) + (m.synopsis.empty() ? "" : " "));
      return c;
    }
    if (complete_magic(session, text, c)) return c;
  }
  if (complete_import(session, before, c)) return c;
  const std::string_view word = word_before(before), ahead = before.substr(0, before.size() - word.size());
  if (c.candidates.empty())
    c.replaced = word.size();
  else if (c.replaced != word.size())
    return c;  // options alone: names would stand for a part of the word
  // Where the values of an argument are known, they are what an empty word asks for.
  if (word.find('.') == std::string_view::npos && complete_in_brackets(session, before, word, c) && word.empty())
    return c;
  // Behind a whole expression, or within a call's brackets, names could be anything: what is taken there comes first.
  if (word.empty()) c.leading = c.candidates.size();
  std::vector<std::string> names = session.complete(word);
  if (word.find('.') == std::string_view::npos) add_bound_names(ahead, names);
  for (std::string& s : names) offer(c, word, std::move(s));
  return c;
}

std::string describe_candidate(script::Session& session, const std::string& candidate) {
  if (candidate.starts_with('%')) {
    for (const Magic& m : magics())
      if (m.name == trimmed(candidate).substr(1)) return fmt::format("%{} {}: {}", m.name, m.synopsis, m.help);
    return {};
  }
  return session.preview(candidate);
}

}  // namespace kiln::repl
