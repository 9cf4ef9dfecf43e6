// %profile.
#include <fmt/format.h>

#include "profiler/profile/advisor.h"
#include "profiler/profile/tables.h"
#include "repl/magics/contenders.h"
#include "repl/magics/hardware_look.h"
#include "repl/magics/magics.h"
#include "repl/magics/profile_run.h"
#include "repl/magics/statement_arguments.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

Status read_schedule(const MagicArguments& arguments, profiler::Schedule& schedule) {
  struct Row {
    const char* name;
    int64_t* value;
    int64_t least;
  };
  for (const Row& r : {Row{"wait", &schedule.wait, 0}, Row{"warmup", &schedule.warmup, 0},
                       Row{"active", &schedule.active, 1}, Row{"repeat", &schedule.repeat, 1}}) {
    const std::string* text = arguments.find(r.name);
    if (!text) continue;
    KILN_TRY(*r.value, count_of(*text, std::string(r.name) + "=", r.least));
  }
  return {};
}

std::vector<std::string> bundles_of(const MagicArguments& arguments) {
  std::vector<std::string> bundles;
  for (const auto& [name, value] : arguments.values)
    if (name == "bundle") bundles.push_back(value);
  return bundles;
}

}  // namespace

Status magic_profile(MagicContext& context, std::string_view text) {
  KILN_TRY(MagicArguments arguments, parse_statement_arguments(text, magic_options("profile")));
  profiler::ProfileView view;
  ProfileRunOptions run;
  KILN_CHECK_OK(read_schedule(arguments, run.schedule));
  if (const std::string* column = arguments.find("sort")) {
    KILN_TRY(view.ops.sort, profiler::parse_op_sort(*column));
  }
  if (const std::string* rows = arguments.find("rows")) {
    KILN_TRY(view.ops.rows, count_of(*rows, "rows=", 0));
  }
  KILN_TRY(Declared declared, declared_by(context.session, arguments));
  view.ops.flop = declared.flop, view.ops.bytes = declared.bytes, view.ops.product = declared.product;
  view.ops.by_shape = arguments.has("shapes"), view.ops.lines = arguments.has("lines");
  view.memory = arguments.has("memory"), view.streams = arguments.has("streams");
  if (view.ops.by_shape) run.session.details |= trace::kShapes;

  if (const std::string* file = arguments.find("--json")) KILN_CHECK_OK(check_writable(*file));

  const std::string& statement = arguments.expressions[0];
  auto cycles = profile_cycles(context.session, statement, run);
  // The statement's place in the magic's line is told with the error.
  if (!cycles.ok()) return explain_statement(std::move(cycles.error()), statement, magic_options("profile"));
  TakenProfile taken{statement, std::move(cycles->timelines.back()), view.ops, {}, {}, {}};
  const profiler::Timeline& timeline = taken.timeline;
  // Counting runs the statement once more, which nobody wants after a Ctrl-C.
  if (cycles->interrupted.ok() && (arguments.has("counters") || arguments.has("bundle"))) {
    KILN_CHECK_OK(add_hardware_look(context, bundles_of(arguments), taken));
    view.ops = taken.ops;
  }
  std::vector<profiler::NamedTable> tables = profiler::profile_tables(timeline, view);
  if (cycles->timelines.size() > 1) {
    // It may have been completed by the counters.
    cycles->timelines.back() = timeline;
    tables.insert(tables.begin(), {"cycles", profiler::cycles_table(cycles->timelines)});
  }
  tables.insert(tables.end(), taken.more.begin(), taken.more.end());
  const std::vector<profiler::Finding> findings = profiler::advise(timeline, {taken.figures, taken.sources});
  if (context.format != report::Format::kText || context.is_assigned || arguments.has("--json"))
    tables.push_back({"findings", profiler::findings_table(findings)});
  for (const profiler::NamedTable& t : tables) {
    // People read findings as sentences below the tables.
    if (t.name == "findings" && context.format == report::Format::kText && !context.is_assigned) continue;
    if (&t != &tables.front() && context.format == report::Format::kText) context.output("\n");
    context.print(t.table, t.name);
  }
  if (context.format == report::Format::kText)
    context.output("\n" + profiler::findings_text(findings, context.style()));
  if (const std::string* file = arguments.find("--json"))
    KILN_CHECK_OK(write_file_atomic(*file, profiler::tables_json(timeline, tables)));
  context.last_profile = std::make_shared<TakenProfile>(std::move(taken));
  // Ctrl-C is told after what was seen until then.
  return std::move(cycles->interrupted);
}

}  // namespace kiln::repl
