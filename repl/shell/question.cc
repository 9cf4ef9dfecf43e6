#include "repl/shell/question.h"

#include <string>

#include "repl/magics/compile_stages.h"
#include "repl/shell/completion_words.h"
#include "support/diag.h"
#include "support/text.h"
#include "support/text_width.h"

namespace kiln::repl {

namespace {

bool is_name(std::string_view text) {
  if (text.starts_with('%')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
                              std::string_view::npos;
}

}  // namespace

std::optional<Question> question_of(std::string_view line) {
  line = trimmed(line);
  if (line.find_first_of("#\n") != std::string_view::npos) return std::nullopt;
  if (line == "?" || line == "help") return Question{};
  if (line.starts_with("help(") && line.ends_with(')')) {
    const std::string_view inside = trimmed(line.substr(5, line.size() - 6));
    if (is_name(inside) || inside.empty()) return Question{inside, false};
    return std::nullopt;  // a call of the function
  }
  for (std::string_view marks : {"??", "?"}) {
    const bool source = marks.size() == 2;
    std::string_view about = line;
    if (about.ends_with(marks))
      about.remove_suffix(marks.size());
    else if (about.starts_with(marks))
      about.remove_prefix(marks.size());
    else
      continue;
    about = trimmed(about);
    if (cursor_place(about).string != std::string_view::npos) return std::nullopt;  // the mark is of a string
    // Behind a command's name a mark may belong to its arguments.
    if (about.starts_with('%') && !is_name(about)) return std::nullopt;
    return Question{about, source};
  }
  return std::nullopt;
}

Status answer(MagicContext& context, const Question& question) {
  const std::string about(question.about);
  if (about.empty() || about == "%") return run_magic(context, "%help");
  if (about.starts_with('%')) return run_magic(context, "%help " + about.substr(1));
  if (question.source) {
    // What has no source is described.
    if (auto source = context.session.source_of(about); source.ok()) {
      context.output(printable(source->ends_with('\n') ? *source : *source + "\n"));
      return {};
    }
  }
  auto text = context.session.describe(about);
  if (!text.ok() && text.error().kind == ErrorKind::kName)
    for (const Magic& m : magics())
      if (m.name == about) return run_magic(context, "%help " + about);
  KILN_TRY(std::string shown, std::move(text));
  if (!shown.ends_with('\n')) shown += '\n';
  context.say(printable(shown));
  if (auto kernel = context.session.kernel(about); kernel.ok()) {
    if (!launched_target(*kernel).empty()) KILN_CHECK_OK(run_magic(context, "%static " + about));
    if (auto it = context.timings.find(kernel->name()); it != context.timings.end())
      context.say("last measured: " + it->second + "\n");
    return {};
  }
  auto tensor = context.session.computed_tensor(about);
  if (tensor) return run_magic(context, "%stats " + about);
  return {};
}

}  // namespace kiln::repl
