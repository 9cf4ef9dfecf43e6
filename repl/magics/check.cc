// %check: a statement with bounds-checked launches.
#include <fmt/format.h>

#include "repl/magics/contenders.h"
#include "repl/magics/magics.h"

namespace kiln::repl {

Status magic_check(MagicContext& context, std::string_view text) {
  KILN_TRY(auto run, statement_runner(context.session, std::string(text), "<%check>"));
  KILN_TRY(script::AccessLog log, context.session.checked(run, script::AccessChecks::kAlways));
  if (log.launches == 0) {
    context.say("nothing was checked: the statement launches no kernel of the script\n");
    return {};
  }
  auto plural = [](size_t n, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", n, n == 1 ? one : many);
  };
  context.say(fmt::format("{} of {}: all within their tensors\n",
                          plural(static_cast<size_t>(log.accesses), "access", "accesses"),
                          plural(static_cast<size_t>(log.launches), "launch", "launches")));
  for (const Place& p : log.unchecked)
    context.say(fmt::format("{}:{}: not checked: its address comes from no argument\n", p.file, p.line));
  return {};
}

}  // namespace kiln::repl
