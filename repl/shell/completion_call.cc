// Tab within brackets: the keywords of a call, the values of its arguments, and the keys of dicts and tables.
#include <algorithm>

#include "kiln/dtype.h"
#include "repl/magics/line_parts.h"
#include "repl/shell/completion.h"
#include "repl/shell/completion_words.h"
#include "support/launch_options.h"
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

/// Where the arguments begin in a text that ends within a call.
std::string_view arguments_of(std::string_view before) {
  const size_t at = cursor_place(before).bracket;
  return at == std::string_view::npos ? std::string_view() : before.substr(at + 1);
}

/// What a call has been given before the argument at the cursor.
struct Given {
  size_t by_position = 0;
  std::vector<std::string_view> by_name;
};

Given given_in(std::string_view arguments) {
  Given out;
  const LineParts split = parts_of(arguments, Between::kCommas);
  for (size_t i = 0; i + 1 < split.parts.size(); ++i) {
    const std::string_view part = trimmed(split.parts[i]);
    size_t end = 0;
    while (end < part.size() && is_name_character(part[end])) ++end;
    const std::string_view rest = trimmed(part.substr(end));
    if (end > 0 && rest.starts_with('=') && !rest.starts_with("=="))
      out.by_name.push_back(part.substr(0, end));
    else if (!part.starts_with('*'))
      ++out.by_position;
  }
  return out;
}

/// "NAME=" of what a call still takes.
void offer_keywords(script::Session& session, Completion& to, std::string_view typed, std::string_view callee,
                    std::string_view before) {
  const Given given = given_in(arguments_of(before));
  auto is_given = [&](std::string_view name) { return std::ranges::find(given.by_name, name) != given.by_name.end(); };
  const std::string form = session.preview(callee);
  size_t position = 0;
  std::vector<std::string> named;
  for (const script::Session::Parameter& p : session.parameters(callee)) {
    const bool by_position = p.by_position && position++ < given.by_position;
    named.push_back(p.name);
    if (!by_position && p.by_name && !is_given(p.name)) offer(to, typed, p.name + "=", form);
  }
  if (!session.is_kernel(callee)) return;
  for (const LaunchOption& o : kLaunchOptions)
    if (!is_given(o.name) && std::ranges::find(named, o.name) == named.end())
      offer(to, typed, std::string(o.name) + "=", std::string(o.help));
}

/// The values of a keyword argument, as code.
std::vector<std::string> keyword_values(script::Session& session, std::string_view callee, std::string_view keyword) {
  std::vector<std::string> out;
  if (keyword == "dtype" || keyword == "out_dtype") {
    const bool has_torch = !session.preview("torch").empty(), in_kernels = session.is_of_kernels(callee);
    for (int i = 0; i < kNumDTypes; ++i) {
      if (in_kernels)
        out.push_back("tl." + std::string(kDTypes[i].triton));
      else if (is_in_torch(static_cast<DType>(i)))
        out.push_back(has_torch ? "torch." + std::string(kDTypes[i].torch) : std::string(kDTypes[i].name));
    }
    return out;
  }
  if (keyword == "device") return {"'cpu'", "'cuda'"};
  out = session.argument_values(callee, keyword);
  for (std::string& value : launch_values(keyword))
    if (std::ranges::find(out, value) == out.end()) out.push_back(std::move(value));
  return out;
}

/// The keys of the dict or table that `text` ends with, closed: those that are strings where `open` is a quote that is
/// typed or still to come.
void offer_keys(script::Session& session, Completion& to, std::string_view text, std::string_view typed,
                std::string_view open, std::string_view quote, std::string_view close) {
  for (const script::Session::Key& key : session.keys(chain_before(text))) {
    if (key.is_string && key.text.find_first_of("'\"\\\n") == std::string::npos)
      offer(to, typed, std::string(open) + key.text + std::string(quote) + std::string(close));
    else if (!key.is_string && !close.empty() && !open.empty())
      offer(to, typed, key.text + std::string(close));
  }
}

/// The dict or table whose method takes a key as its first argument, in "r.sort(", "r.sort(by=" or "d.get("; else
/// empty.
std::string_view keyed_by_call(std::string_view text) {
  if (text.ends_with("by=")) text.remove_suffix(3);
  if (!text.ends_with('(')) return {};
  const std::string_view path = chain_before(text.substr(0, text.size() - 1));
  for (const std::string_view method : {".get", ".pop", ".setdefault", ".sort"})
    if (path.ends_with(method)) return path.substr(0, path.size() - method.size());
  return {};
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

bool complete_string(script::Session& session, std::string_view before, std::string_view typed, Completion& to) {
  const size_t quote = before.size() - typed.size();
  if (quote < 2) return false;
  to.replaced = typed.size();
  const std::string_view ahead = before.substr(0, quote - 1), mark = before.substr(quote - 1, 1);
  const std::string_view keyword = keyword_before(ahead);
  if (const std::string_view callee = open_call(ahead); !keyword.empty() && (!callee.empty() || keyword == "device"))
    for (const std::string& value : keyword_values(session, callee, keyword))
      if (value.starts_with('\'') || value.starts_with('"'))
        offer(to, typed, value.substr(1, value.size() - 2) + std::string(mark));
  if (!to.candidates.empty()) return true;
  const bool is_index = ahead.ends_with('[');
  const std::string_view keyed = is_index ? ahead.substr(0, ahead.size() - 1) : keyed_by_call(ahead);
  if (keyed.empty()) return false;
  offer_keys(session, to, keyed, typed, "", mark, is_index ? "]" : "");
  return is_index || !to.candidates.empty();
}

bool complete_in_brackets(script::Session& session, std::string_view before, std::string_view word, Completion& to) {
  const std::string_view ahead = before.substr(0, before.size() - word.size());
  if (ahead.ends_with('[')) offer_keys(session, to, ahead.substr(0, ahead.size() - 1), word, "'", "'", "]");
  const std::string_view callee = open_call(before), keyword = keyword_before(ahead);
  if (callee.empty()) return false;
  if (keyword.empty()) return offer_keywords(session, to, word, callee, before), false;
  const size_t others = to.candidates.size();
  for (std::string& value : keyword_values(session, callee, keyword)) offer(to, word, std::move(value));
  if (const std::string_view keyed = keyed_by_call(ahead); !keyed.empty())
    offer_keys(session, to, keyed, word, "'", "'", "");
  return to.candidates.size() > others;
}

}  // namespace kiln::repl
