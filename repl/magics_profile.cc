// %profile.
#include <fmt/format.h>

#include "profiler/cupti/range_profiler.h"
#include "profiler/profile/advisor.h"
#include "profiler/profile/tables.h"
#include "repl/contenders.h"
#include "repl/magics.h"
#include "repl/profile_run.h"
#include "repl/statement_arguments.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

using Form = MagicOption::Form;

constexpr MagicOption kProfileOptions[] = {
    {Form::kValue, "sort", "column: self_cpu, cpu, self_gpu, gpu, calls, average, name"},
    {Form::kValue, "rows", "the most of each table; 0: all"},
    {Form::kFlag, "shapes", "a row for each shape and launch configuration"},
    {Form::kFlag, "lines", "statements of the script are rows too"},
    {Form::kFlag, "memory", "allocations by line and operation"},
    {Form::kFlag, "streams", "how busy each stream was, and what overlapped"},
    {Form::kFlag, "counters", "hardware counters, in a pass of their own; the findings see them too"},
    {Form::kValue, "wait", "runs that are left alone first"},
    {Form::kValue, "warmup", "runs under the profiler that are forgotten"},
    {Form::kValue, "active", "runs that are kept"},
    {Form::kValue, "repeat", "how often all that"},
    {Form::kValue, "flop", "of one run"},
    {Form::kValue, "bytes", "moved by one run"},
    {Form::kFile, "--json", "write all tables"},
};

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

/// What the hardware counted in one more run; the reason stands under it when nothing was.
report::Table counters_table(const Result<std::vector<profiler::KernelFigures>>& counted) {
  using report::Cell;
  report::Table table({{"kernel", "", report::Align::kLeft},
                       {"launches", ""},
                       {"achieved occupancy", "%"},
                       {"tensor pipe", "%"},
                       {"issue", "%"},
                       {"DRAM", "%"},
                       {"L1 hit", "%"},
                       {"SM clock", "MHz"}});
  table.set_title("counters");
  if (!counted.ok()) {
    table.add_note("not counted: " + counted.error().message);
    return table;
  }
  auto cell = [](const std::optional<double>& v) {
    return v ? Cell::of(*v, 1) : Cell::unknown("this chip does not give it");
  };
  for (const profiler::KernelFigures& f : *counted)
    table.add_row({f.kernel, Cell::of(int64_t{f.launches}), cell(f.achieved_occupancy), cell(f.tensor_percent),
                   cell(f.issue_percent), cell(f.dram_percent), cell(f.l1_hit_percent), cell(f.sm_mhz)});
  table.add_note("of one more run, kernel by kernel: no time above is of it");
  return table;
}

Result<std::vector<profiler::KernelFigures>> count(script::Session& session, const std::string& statement) {
  KILN_TRY(Device device, session.device());
  KILN_TRY(auto run, session.prepare_statements(statement, "<%profile>"));
  return profiler::cupti::collect_figures(device, run);
}

}  // namespace

Status magic_profile(MagicContext& context, std::string_view text) {
  KILN_TRY(MagicArguments arguments, parse_statement_arguments(text, kProfileOptions));
  profiler::ProfileView view;
  ProfileRunOptions run;
  KILN_CHECK_OK(read_schedule(arguments, run.schedule));
  if (const std::string* column = arguments.find("sort")) {
    KILN_TRY(view.ops.sort, profiler::parse_op_sort(*column));
  }
  if (const std::string* rows = arguments.find("rows")) {
    KILN_TRY(view.ops.rows, count_of(*rows, "rows=", 0));
  }
  if (const std::string* flop = arguments.find("flop")) {
    KILN_TRY(view.ops.flop, number_of(context.session, *flop, "flop="));
  }
  if (const std::string* bytes = arguments.find("bytes")) {
    KILN_TRY(view.ops.bytes, number_of(context.session, *bytes, "bytes="));
  }
  view.ops.by_shape = arguments.has("shapes"), view.ops.lines = arguments.has("lines");
  view.memory = arguments.has("memory"), view.streams = arguments.has("streams");
  if (view.ops.by_shape) run.session.details |= trace::kShapes;

  const std::string& statement = arguments.expressions[0];
  auto cycles = profile_cycles(context.session, statement, run);
  if (!cycles.ok()) return explain_statement(std::move(cycles.error()), statement, kProfileOptions);
  const profiler::Timeline& timeline = cycles->back();
  std::vector<profiler::NamedTable> tables = profiler::profile_tables(timeline, view);
  if (cycles->size() > 1) tables.insert(tables.begin(), {"cycles", profiler::cycles_table(*cycles)});
  profiler::AdvisorInputs inputs;
  Result<std::vector<profiler::KernelFigures>> counted = std::vector<profiler::KernelFigures>{};
  if (arguments.has("counters")) {
    counted = count(context.session, statement);
    if (counted.ok()) inputs.counters = *counted;
    tables.push_back({"counters", counters_table(counted)});
  }
  const std::vector<profiler::Finding> findings = profiler::advise(timeline, inputs);
  if (context.format != report::Format::kText || arguments.has("--json"))
    tables.push_back({"findings", profiler::findings_table(findings)});
  for (const profiler::NamedTable& t : tables) {
    if (t.name == "findings" && context.format == report::Format::kText) continue;
    if (&t != &tables.front() && context.format == report::Format::kText) context.output("\n");
    context.print(t.table);
  }
  if (context.format == report::Format::kText)
    context.output("\n" + profiler::findings_text(findings, {context.color}));
  context.last_profile = std::make_shared<TakenProfile>(TakenProfile{statement, timeline});
  if (const std::string* file = arguments.find("--json"))
    KILN_CHECK_OK(write_file_atomic(*file, profiler::tables_json(timeline, tables)));
  return {};
}

}  // namespace kiln::repl
