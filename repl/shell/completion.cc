#include "repl/shell/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/dtype.h"
#include "repl/magics/magics.h"
#include "repl/shell/completion_words.h"
#include "repl/shell/entry_text.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using editor::Completion;

/// "name" of "name=" that ends the text; empty for anything else.
std::string_view keyword_before(std::string_view text) {
  if (!text.ends_with('=')) return {};
  text.remove_suffix(1);
  size_t start = text.size();
  while (start > 0 && is_name_character(text[start - 1])) --start;
  return text.substr(start);
}

/// The values of a keyword argument, as far as its name tells them.
void offer_keyword_values(script::Session& session, Completion& to, std::string_view keyword, std::string_view word) {
  if (keyword == "dtype") {
    const bool has_torch = !session.preview("torch").empty();
    for (int i = 0; i < kNumDTypes; ++i)
      if (is_in_torch(static_cast<DType>(i)))
        offer(to, word, has_torch ? "torch." + std::string(kDTypes[i].torch) : std::string(kDTypes[i].name));
  } else if (keyword == "device") {
    for (const char* name : {"'cpu'", "'cuda'"}) offer(to, word, name);
  } else {
    offer_launch_values(to, word, "", keyword);
  }
}

/// The keys of the dict or table that `text` ends with, each with the quote that is still to come, and closed.
void offer_keys(script::Session& session, Completion& to, std::string_view text, std::string_view typed,
                std::string_view open, std::string_view close) {
  for (const std::string& key : session.keys(path_before(text)))
    if (key.find_first_of("'\"\\\n") == std::string::npos)
      offer(to, typed, std::string(open) + key + std::string(close));
}

/// The dict or table whose method takes a key as its first argument, in "r.sort(" or "d.get("; else empty.
std::string_view keyed_by_call(std::string_view text) {
  if (!text.ends_with('(')) return {};
  std::string_view path = path_before(text.substr(0, text.size() - 1));
  for (const std::string_view method : {".get", ".pop", ".setdefault", ".sort"})
    if (path.ends_with(method)) return path.substr(0, path.size() - method.size());
  return {};
}

/// A string that is a key, as in `d['`, or the value of an argument whose values are known: offered with its closing
/// quote. False where it is neither.
bool complete_string(script::Session& session, std::string_view before, std::string_view typed, Completion& to) {
  const size_t quote = before.size() - typed.size();
  if (quote < 2) return false;
  to.replaced = typed.size();
  if (keyword_before(before.substr(0, quote - 1)) == "device") {
    for (const char* name : {"cpu", "cuda"}) offer(to, typed, name + std::string(1, before[quote - 1]));
    return true;
  }
  const std::string_view ahead = before.substr(0, quote - 1), mark = before.substr(quote - 1, 1);
  const bool is_index = ahead.ends_with('[');
  const std::string_view keyed = is_index ? ahead.substr(0, ahead.size() - 1) : keyed_by_call(ahead);
  if (keyed.empty()) return false;
  offer_keys(session, to, keyed, typed, "", std::string(mark) + (is_index ? "]" : ""));
  return is_index || !to.candidates.empty();
}

}  // namespace

std::string_view open_call(std::string_view before) {
  const size_t at = cursor_place(before).bracket;
  if (at == std::string_view::npos || before[at] != '(') return {};
  std::string_view callee = before.substr(0, at);
  if (callee.ends_with(']')) {  // kernel[grid]
    const size_t open = cursor_place(callee.substr(0, callee.size() - 1)).bracket;
    if (open == std::string_view::npos) return {};
    callee = callee.substr(0, open);
  }
  return path_before(callee);
}

namespace {

/// Of a shell's line: paths, and as its first word programs too.
Completion complete_shell(std::string_view line) {
  Completion c;
  const size_t blank = line.rfind(' ');
  const std::string_view word = blank == std::string_view::npos ? line : line.substr(blank + 1);
  c.replaced = word.size();
  if (trimmed(line) == word && !word.empty() && word.find('/') == std::string_view::npos) offer_programs(c, word);
  offer_paths(c, word);
  return c;
}

}  // namespace

Completion complete_line(script::Session& session, std::string_view before) {
  Completion c;
  if (const size_t string = cursor_place(before).string; string <= before.size()) {
    const std::string_view typed = before.substr(string);
    if (complete_string(session, before, typed, c)) return c;
    c.replaced = typed.size();
    offer_paths(c, typed);
    return c;
  }
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  std::string_view text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  if (auto command = percent_command(text)) text = command->command;  // r = %bench …
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
  const std::string_view word = path_before(before), ahead = before.substr(0, before.size() - word.size());
  if (c.candidates.empty())
    c.replaced = word.size();
  else if (c.replaced != word.size())
    return c;  // options alone: names would stand for a part of the word
  if (word.find('.') == std::string_view::npos) {
    if (ahead.ends_with('[')) offer_keys(session, c, ahead.substr(0, ahead.size() - 1), word, "'", "']");
    const std::string_view callee = open_call(before), keyword = keyword_before(ahead);
    if (!callee.empty() && keyword.empty()) {
      if (auto kernel = session.kernel(std::string(callee)); kernel.ok())
        offer_launch_keywords(c, word, *kernel);
      else
        for (const std::string& name : session.parameters(callee)) offer(c, word, name + "=");
    }
    if (!callee.empty() && !keyword.empty()) offer_keyword_values(session, c, keyword, word);
  }
  // Behind a whole expression, or within a call's brackets, names could be anything: what is taken there comes first.
  if (word.empty()) c.leading = c.candidates.size();
  for (std::string& s : session.complete(word)) offer(c, word, std::move(s));
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
