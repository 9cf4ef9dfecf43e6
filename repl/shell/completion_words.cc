#include "repl/shell/completion_words.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "kiln/dtype.h"
#include "profiler/cupti/metrics.h"
#include "repl/magics/compile_stages.h"
#include "repl/magics/magics.h"
#include "repl/magics/settings.h"
#include "support/environment.h"
#include "support/launch_options.h"

namespace kiln::repl {

using editor::Completion;

void offer(Completion& to, std::string_view typed, std::string candidate, std::string note) {
  if (!candidate.starts_with(typed)) return;
  // The note is shown beside the candidate while the menu is open.
  if (!note.empty()) to.notes.emplace(candidate, std::move(note));
  to.candidates.push_back(std::move(candidate));
}

namespace {

/// What a shell or a command would take for something else than a part of a name.
constexpr std::string_view kNeedsQuotes = " \t'\"\\()[]{}$&;|<>*?#`!";

/// The name as a word of a command; empty when no quotes make it one.
std::string quoted_word(const std::string& name) {
  if (name.find_first_of(kNeedsQuotes) == std::string::npos) return name;
  for (const char quote : {'\'', '"'})
    if (name.find(quote) == std::string::npos) return quote + name + quote;
  return {};
}

}  // namespace

void offer_paths(Completion& to, std::string_view typed, PathForm form) {
  namespace fs = std::filesystem;
  const size_t slash = typed.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : typed.substr(0, slash + 1));
  const std::string_view start = slash == std::string_view::npos ? typed : typed.substr(slash + 1);
  const auto home = environment("HOME");
  const bool is_home = form.place != PathPlace::kString && folder.starts_with("~/") && home && !home->empty();
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator it(folder.empty() ? "."
                                 : is_home      ? *home + folder.substr(1)
                                                : folder,
                                 failed),
       end;
       !failed && it != end; it.increment(failed)) {
    // A folder that cannot be read has no candidates; the prompt tells no errors while one types.
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    // Hidden files are offered once a dot was typed, as shells do.
    if (!name.starts_with(start) || (name.starts_with('.') && !start.starts_with('.'))) continue;
    const bool is_folder = it->is_directory(ignored);
    if (form.folders_only && !is_folder) continue;
    std::string path = folder + name + (is_folder ? "/" : "");
    // The closing quote belongs to a file; a folder is gone on with.
    if (form.place == PathPlace::kQuoted && !is_folder) path += form.quote;
    // Quotes would keep a shell from finding the home folder.
    if (form.place == PathPlace::kWord)
      path = quoted_word(is_home && name.find_first_of(kNeedsQuotes) != name.npos ? *home + path.substr(1) : path);
    if (!path.empty()) found.push_back(std::move(path));
  }
  std::sort(found.begin(), found.end());
  to.candidates.insert(to.candidates.end(), found.begin(), found.end());
}

void offer_programs(Completion& to, std::string_view typed) {
  namespace fs = std::filesystem;
  std::set<std::string> found;
  const std::string path = environment("PATH").value_or("");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    std::error_code failed;
    for (fs::directory_iterator it(path.substr(at, end - at), failed), last; !failed && it != last;
         it.increment(failed)) {
      // One program may stand in several folders.
      std::string name = it->path().filename().string();
      if (name.starts_with(typed) && access(it->path().c_str(), X_OK) == 0) found.insert(std::move(name));
    }
    at = end + 1;
  }
  to.candidates.insert(to.candidates.end(), found.begin(), found.end());
}

void offer_values(script::Session& session, Completion& to, std::string_view typed, std::string_view before_value,
                  Legal legal, std::string_view words, const std::string& about) {
  const std::string before(before_value);
  for (std::string_view word : words_of_list(words)) offer(to, typed, before + std::string(word), about);
  switch (legal) {
    case Legal::kAny:
    case Legal::kWords:
    case Legal::kCount:
    case Legal::kSeconds:
      return;
    case Legal::kFile:
    case Legal::kFolder:
      if (before.empty()) offer_paths(to, typed, {.place = PathPlace::kWord, .folders_only = legal == Legal::kFolder});
      return;
    case Legal::kDType:
      for (const DTypeInfo& row : kDTypes) offer(to, typed, before + std::string(row.name), std::string(row.torch));
      return;
    case Legal::kTensor:
      for (const ExprName& n : session.tensor_names()) offer(to, typed, before + n.name);
      return;
    case Legal::kKernel:
    case Legal::kKernelName:
      for (const std::string& n : session.kernel_names()) offer(to, typed, before + n);
      return;
    case Legal::kPass:
      for (std::string_view name : pass_names()) offer(to, typed, before + std::string(name));
      return;
    case Legal::kTarget:
      for (std::string_view name : target_names()) offer(to, typed, before + std::string(name), target_summary(name));
      return;
    case Legal::kBundle:
      for (const profiler::cupti::Bundle& b : profiler::cupti::bundles())
        offer(to, typed, before + std::string(b.name), std::string(b.help));
      return;
    case Legal::kMetric:
      for (const profiler::cupti::Metric& m : profiler::cupti::metrics()) {
        // The name that newer chips have stands first.
        const std::string_view first = m.names.substr(0, m.names.find(' '));
        offer(to, typed, before + std::string(first), std::string(m.meaning));
      }
      return;
    case Legal::kVariant:
      for (ExprVariant v : kExprVariants) offer(to, typed, before + std::string(name(v)));
      return;
    case Legal::kSetting:
      for (const Setting& s : settings()) offer(to, typed, before + std::string(s.name), std::string(s.help));
      return;
    case Legal::kSettingValue:  // complete_magic knows of which
      return;
    case Legal::kMagic:
      for (const Magic& m : magics()) offer(to, typed, before + std::string(m.name), std::string(m.help));
      return;
  }
}

void offer_launch_keywords(Completion& to, std::string_view typed, const Kernel& kernel) {
  for (const ParamDesc& p : kernel.params())
    offer(to, typed, p.name + "=", p.is_constexpr ? "a constexpr parameter" : "");
  for (const LaunchOption& o : kLaunchOptions) offer(to, typed, std::string(o.name) + "=", std::string(o.help));
}

std::vector<std::string> launch_values(std::string_view option) {
  const LaunchOption* o = find_launch_option(option);
  if (!o) return {};
  if (o->flag) return {"True", "False"};
  // A menu of all numbers of warps or registers would hide the names.
  constexpr int kMostOffered = 32;
  std::vector<std::string> out;
  for (int v = o->least; v <= std::min(o->most, kMostOffered); ++v)
    if (o->allows(v)) out.push_back(std::to_string(v));
  return out;
}

CursorPlace cursor_place(std::string_view text) {
  CursorPlace at;
  std::vector<size_t> brackets;
  size_t width = 0;  // of the quote
  // Goes forward from the beginning: only so it is known what stands within a string.
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (at.string != std::string_view::npos) {
      if (c == '\\')
        ++i;
      else if (text.substr(i, width) == text.substr(at.string - width, width))
        i += width - 1, at.string = std::string_view::npos;
      // A string of one line ends with it: it is not closed yet.
      else if (c == '\n' && width == 1)
        at.string = std::string_view::npos;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"' || c == '\'') {
      width = text.substr(i, 3) == (c == '"' ? "\"\"\"" : "\'\'\'") ? 3 : 1;
      at.string = i + width;
      i = at.string - 1;
    } else if (c == '(' || c == '[' || c == '{') {
      brackets.push_back(i);
    } else if ((c == ')' || c == ']' || c == '}') && !brackets.empty()) {
      brackets.pop_back();
    }
  }
  if (!brackets.empty()) at.bracket = brackets.back();
  return at;
}

std::string_view path_before(std::string_view text) {
  size_t start = text.size();
  while (start > 0 && (is_name_character(text[start - 1]) || text[start - 1] == '.')) --start;
  return text.substr(start);
}

std::string_view chain_before(std::string_view text) {
  size_t start = text.size();
  // Through brackets: in `a[f(x)].b`, the chain begins at `a`.
  for (;;) {
    start -= path_before(text.substr(0, start)).size();
    if (start == 0 || text[start - 1] != ']') return text.substr(start);
    const CursorPlace inside = cursor_place(text.substr(0, start - 1));
    if (inside.bracket == std::string_view::npos || text[inside.bracket] != '[') return text.substr(start);
    start = inside.bracket;
  }
}

std::string_view word_before(std::string_view text) {
  const std::string_view path = path_before(text);
  return path.starts_with('.') ? chain_before(text) : path;
}

bool is_name_character(char c) {
  // All of UTF-8 beyond ASCII may be in a name.
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace kiln::repl
