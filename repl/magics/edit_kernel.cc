#include "repl/magics/edit_kernel.h"

#include <fmt/format.h>

#include "repl/magics/compare.h"
#include "repl/magics/edit_file.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

Status edit_kernel(MagicContext& context, const std::string& name, std::string file, const std::string& options) {
  script::Session& session = context.session;
  const script::Value before = session.variable(name);
  if (before.missing()) return error(ErrorKind::kValue, "%edit needs a kernel's own name, not '{}'", name);
  KILN_TRY(std::string source, session.source_of(name));
  // Editors add it, and the text would count as changed.
  if (!source.ends_with('\n')) source += '\n';
  const bool is_given = !file.empty();
  if (!is_given) {
    KILN_TRY(file, new_edit_file(name));
    KILN_CHECK_OK(write_file_atomic(file, source));
    KILN_CHECK_OK(open_editor(file));
  }
  KILN_TRY(const std::string text, read_file(file));
  if (text == source) {
    context.say(fmt::format("{}: {} is as it was\n", file, name));
    return {};
  }
  // Asked before the text runs, which replaces the kernel.
  const std::optional<std::string> launch = session.last_launch(name);
  auto restored = [&](Diagnostic d) {
    session.set_variable(name, before);
    return with_note(std::move(d),
                     fmt::format("help: {} stays as it was; change {} and give --file {}", name, file, file));
  };
  if (Status s = session.run(text, file); !s.ok()) return restored(std::move(s.error()));
  // The text may define other names alone.
  if (session.variable(name).same(before) || !session.kernel(name).ok())
    return restored(error(ErrorKind::kName, "{} defines no kernel {}", file, name));
  const std::string old_name = name + "_before";
  session.set_variable(old_name, before);
  context.say(fmt::format("{}: {} is compiled from it; {} is the one before\n", file, name, old_name));
  if (!launch) return {};
  // With checks first: the comparison launches it many times.
  if (Status s = run_magic(context, "%check " + *launch); !s.ok()) return restored(std::move(s.error()));
  return compare_expressions(
      context, fmt::format("{}{}, {} {}", old_name, launch->substr(name.size()), *launch, options), {old_name, name});
}

}  // namespace kiln::repl
