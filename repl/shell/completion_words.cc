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
  if (!note.empty()) to.notes.emplace(candidate, std::move(note));
  to.candidates.push_back(std::move(candidate));
}

void offer_paths(Completion& to, std::string_view typed) {
  namespace fs = std::filesystem;
  const size_t slash = typed.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : typed.substr(0, slash + 1));
  const std::string_view start = slash == std::string_view::npos ? typed : typed.substr(slash + 1);
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(start) && (!name.starts_with('.') || start.starts_with('.')))
      found.push_back(folder + name + (it->is_directory(ignored) ? "/" : ""));
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
      std::string name = it->path().filename().string();
      if (name.starts_with(typed) && access(it->path().c_str(), X_OK) == 0) found.insert(std::move(name));
    }
    at = end + 1;
  }
  to.candidates.insert(to.candidates.end(), found.begin(), found.end());
}

void offer_values(script::Session& session, Completion& to, std::string_view typed, std::string_view before_value,
                  Legal legal, std::string_view words) {
  const std::string before(before_value);
  for (std::string_view word : words_of_list(words)) offer(to, typed, before + std::string(word));
  switch (legal) {
    case Legal::kAny:
    case Legal::kWords:
    case Legal::kCount:
    case Legal::kSeconds:
      return;
    case Legal::kFile:
      if (before.empty()) offer_paths(to, typed);
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
      for (std::string_view name : target_names()) offer(to, typed, before + std::string(name));
      return;
    case Legal::kBundle:
      for (const profiler::cupti::Bundle& b : profiler::cupti::bundles())
        offer(to, typed, before + std::string(b.name), std::string(b.help));
      return;
    case Legal::kMetric:
      for (const profiler::cupti::Metric& m : profiler::cupti::metrics()) {
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

void offer_launch_values(Completion& to, std::string_view typed, std::string_view before, std::string_view option) {
  const LaunchOption* o = find_launch_option(option);
  if (!o) return;
  if (o->flag) {
    for (const char* word : {"True", "False"}) offer(to, typed, std::string(before) + word);
    return;
  }
  constexpr int kMostOffered = 32;
  for (int v = o->least; v <= std::min(o->most, kMostOffered); ++v)
    if (o->allows(v)) offer(to, typed, std::string(before) + std::to_string(v));
}

CursorPlace cursor_place(std::string_view text) {
  CursorPlace at;
  std::vector<size_t> brackets;
  size_t width = 0;  // of the quote
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (at.string != std::string_view::npos) {
      if (c == '\\')
        ++i;
      else if (text.substr(i, width) == text.substr(at.string - width, width))
        i += width - 1, at.string = std::string_view::npos;
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

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace kiln::repl
