#include "repl/shell/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "repl/magics/magics.h"
#include "support/launch_options.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using editor::Completion;

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The string literal that is open at the cursor, without its quote; null data() when the cursor is in none. Strings and
// comments end with their line, but for triple quotes.
std::string_view open_string(std::string_view text) {
  size_t start = std::string_view::npos, width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (start != std::string_view::npos) {
      if (c == '\\')
        ++i;
      else if (text.substr(i, width) == text.substr(start - width, width))
        i += width - 1, start = std::string_view::npos;
      else if (c == '\n' && width == 1)
        start = std::string_view::npos;
    } else if (c == '#') {
      i = text.find('\n', i);
      if (i == std::string_view::npos) return {};
    } else if (c == '"' || c == '\'') {
      width = text.substr(i, 3) == (c == '"' ? "\"\"\"" : "\'\'\'") ? 3 : 1;
      start = i + width;
      i = start - 1;
    }
  }
  return start <= text.size() ? text.substr(start) : std::string_view{};
}

Completion paths(std::string_view typed) {
  namespace fs = std::filesystem;
  size_t slash = typed.rfind('/');
  std::string folder(slash == std::string_view::npos ? "" : typed.substr(0, slash + 1));
  std::string_view start = slash == std::string_view::npos ? typed : typed.substr(slash + 1);
  Completion c;
  c.replaced = typed.size();
  std::error_code failed;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(start) && (!name.starts_with('.') || start.starts_with('.')))
      c.candidates.push_back(folder + name + (it->is_directory(ignored) ? "/" : ""));
  }
  std::sort(c.candidates.begin(), c.candidates.end());
  return c;
}

// The bracket that is open at the end of `text`, or npos.
size_t open_bracket(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    char c = text[i];
    if (c == ')' || c == ']' || c == '}') ++depth;
    if ((c == '(' || c == '[' || c == '{') && depth-- == 0) return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::string_view open_call(std::string_view before) {
  size_t at = open_bracket(before);
  if (at == std::string_view::npos || before[at] != '(') return {};
  std::string_view callee = before.substr(0, at);
  if (callee.ends_with(']')) {  // kernel[grid]
    size_t open = open_bracket(callee.substr(0, callee.size() - 1));
    if (open == std::string_view::npos) return {};
    callee = callee.substr(0, open);
  }
  size_t start = callee.size();
  while (start > 0 && (is_name_character(callee[start - 1]) || callee[start - 1] == '.')) --start;
  return callee.substr(start);
}

Completion complete_line(script::Session& session, std::string_view before) {
  if (std::string_view typed = open_string(before); typed.data()) return paths(typed);
  Completion c;
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  size_t first = line.find_first_not_of(' ');
  std::string_view text = first == std::string_view::npos ? std::string_view{} : line.substr(first);
  if (text.starts_with('%') && text.find(' ') == std::string_view::npos) {
    c.replaced = text.size();
    for (const Magic& m : magics())
      if (m.name.starts_with(text.substr(1)))
        c.candidates.push_back("%" + std::string(m.name) + (m.synopsis.empty() ? "" : " "));
    return c;
  }
  size_t start = before.size();
  while (start > 0 && (is_name_character(before[start - 1]) || before[start - 1] == '.')) --start;
  std::string_view word = before.substr(start);
  c.replaced = word.size();
  // After the launch of a %tune come axes and options.
  constexpr std::string_view kTune = "%tune ";
  if (text.starts_with(kTune) && open_bracket(before) == std::string_view::npos &&
      text.find(' ', kTune.size()) != std::string_view::npos) {
    std::string_view target = text.substr(kTune.size());
    std::vector<std::string> names = {"budget=", "cache=", "check="};
    if (auto kernel = session.kernel(std::string(target.substr(0, target.find_first_of(" [(")))); kernel.ok()) {
      for (const ParamDesc& p : kernel->params())
        if (p.is_constexpr) names.push_back(p.name + "=");
      for (const LaunchOption& o : kLaunchOptions)
        if (o.is_tuned()) names.push_back(std::string(o.name) + "=");
    }
    for (std::string& n : names)
      if (n.starts_with(word)) c.candidates.push_back(std::move(n));
    return c;
  }
  if (word.find('.') == std::string_view::npos)
    if (std::string_view callee = open_call(before); !callee.empty())
      if (auto kernel = session.kernel(std::string(callee)); kernel.ok()) {
        for (const ParamDesc& p : kernel->params())
          if (p.name.starts_with(word)) c.candidates.push_back(p.name + "=");
        for (const LaunchOption& o : kLaunchOptions)
          if (o.name.starts_with(word)) c.candidates.push_back(std::string(o.name) + "=");
      }
  for (std::string& s : session.complete(word)) c.candidates.push_back(std::move(s));
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
