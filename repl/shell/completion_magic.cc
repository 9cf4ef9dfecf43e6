// Tab behind "%name ": its options, their values, and what it takes, from the rows of magic_option.def.
#include <algorithm>
#include <vector>

#include "repl/magics/line_parts.h"
#include "repl/magics/magics.h"
#include "repl/magics/settings.h"
#include "repl/shell/completion_words.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using editor::Completion;
using Form = MagicOption::Form;

const MagicOption* find(std::span<const MagicOption> options, std::string_view name, Form form) {
  const auto it = std::ranges::find_if(options, [&](const auto& o) { return o.name == name && o.form == form; });
  return it == options.end() ? nullptr : &*it;
}

std::string_view help_of(std::string_view magic) {
  const auto row = std::ranges::find(magics(), magic, &Magic::name);
  return row == magics().end() ? std::string_view() : row->help;
}

std::string note_of(const MagicOption& o) {
  std::string note(o.help);
  if (!o.otherwise.empty()) note += " (default: " + std::string(o.otherwise) + ")";
  return note;
}

void offer_options(Completion& to, std::string_view typed, std::span<const MagicOption> options,
                   std::span<const std::string_view> words) {
  for (const MagicOption& o : options) {
    const bool given = !o.may_repeat() && std::ranges::any_of(words, [&](std::string_view w) {
      return o.form == Form::kValue ? w.starts_with(std::string(o.name) + "=") : w == o.name;
    });
    if (given) continue;
    std::string text(o.name);
    if (o.form == Form::kValue) text += '=';
    if (o.form == Form::kDashed) text += ' ';
    offer(to, typed, std::move(text), note_of(o));
  }
}

/// Words that are neither options nor the values of dashed ones.
size_t operands_in(std::span<const std::string_view> words, std::span<const MagicOption> options) {
  size_t count = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = words[i].substr(0, words[i].find('='));
    if (find(options, words[i], Form::kDashed)) {
      ++i;
    } else if (!find(options, words[i], Form::kFlag) &&
               !(name.size() < words[i].size() && find(options, name, Form::kValue))) {
      ++count;
    }
  }
  return count;
}

}  // namespace

void complete_quoted_path(std::string_view line, std::string_view typed, char quote, Completion& to) {
  const std::string_view magic = line.substr(1, line.find_first_of(" \t") - 1);
  const auto operands = line.starts_with('%') ? magic_operands(magic) : std::span<const MagicOperand>();
  const bool folders_only = !operands.empty() && operands[0].legal == Legal::kFolder;
  offer_paths(to, typed, {.place = PathPlace::kQuoted, .quote = quote, .folders_only = folders_only});
}

bool complete_magic(script::Session& session, std::string_view line, Completion& to) {
  const size_t end = line.find_first_of(" \t");
  const std::string_view magic = line.substr(1, end - 1);
  const std::span<const MagicOption> options = magic_options(magic);
  const std::span<const MagicOperand> operands = magic_operands(magic);
  LineParts parts = parts_of(line.substr(end), Between::kBlanks);
  const std::string_view word = parts.parts.back();  // the one at the cursor, perhaps empty
  parts.parts.pop_back();
  const std::vector<std::string_view> words = parts.words();
  if (cursor_place(word).bracket != std::string_view::npos) return false;
  to.replaced = word.size();

  if (!words.empty()) {
    if (words.back() == ">") return offer_paths(to, word, {.place = PathPlace::kWord}), true;
    if (const MagicOption* o = find(options, words.back(), Form::kDashed))
      return offer_values(session, to, word, "", o->legal, o->words, std::string(o->help)), true;
  }
  const bool takes_kernel = !operands.empty() && operands[0].legal == Legal::kKernel;
  const size_t equals = word.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view name = word.substr(0, equals), before = word.substr(0, equals + 1);
    if (const MagicOption* o = find(options, name, Form::kValue))
      return offer_values(session, to, word, before, o->legal, o->words, std::string(o->help)), true;
    if (takes_kernel)
      for (const std::string& value : launch_values(name)) offer(to, word, std::string(before) + value);
    return !to.candidates.empty();
  }
  const size_t index = operands_in(words, options);
  const auto operand = std::ranges::find_if(operands, [&](const auto& o) { return o.index == index; });
  if (operand != operands.end())
    offer_values(session, to, word, "", operand->legal, operand->words, std::string(help_of(magic)));
  if (operand != operands.end() && operand->legal == Legal::kSettingValue)
    for (const Setting& s : settings())
      if (s.name == words[0])
        offer_values(session, to, word, "", s.legal, s.legal == Legal::kWords ? s.allowed : std::string_view(),
                     std::string(s.help));
  if (takes_kernel && index > 0)
    if (auto kernel = session.kernel(std::string(words[0].substr(0, words[0].find('[')))); kernel.ok())
      offer_launch_keywords(to, word, *kernel);
  if (index > 0 || operand != operands.end() || !word.empty()) offer_options(to, word, options, words);
  // Where an expression may stand its names are candidates too.
  const bool of_kernels = operand != operands.end() && operand->legal == Legal::kKernelName;
  const bool closed = operand != operands.end() && operand->legal != Legal::kKernel && !of_kernels;
  return closed || ((takes_kernel || of_kernels) && !to.candidates.empty());
}

}  // namespace kiln::repl
