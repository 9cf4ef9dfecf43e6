#include "repl/magics/magics.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "repl/commands/doctor.h"
#include "repl/commands/info_commands.h"
#include "repl/editor/bindings.h"
#include "repl/modules/results/table_object.h"
#include "support/diag.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

Status magic_help(MagicContext& context, std::string_view arguments);

Status magic_devices(MagicContext& context, std::string_view) {
  KILN_TRY(Device current, context.session.device());
  context.print(devices_table(current));
  return {};
}

Status magic_env(MagicContext& context, std::string_view) {
  context.print(env_table());
  return {};
}

Status magic_doctor(MagicContext& context, std::string_view) {
  KILN_TRY(report::Table table, doctor_table(context.session.runtime()));
  context.print(table);
  return {};
}

Status magic_who(MagicContext& context, std::string_view) {
  report::Table table(
      {{"name", "", report::Align::kLeft}, {"type", "", report::Align::kLeft}, {"value", "", report::Align::kLeft}});
  for (const script::Variable& v : context.session.variables()) table.add_row({v.name, v.type, v.summary});
  context.print(table);
  return {};
}

Status magic_format(MagicContext& context, std::string_view arguments) {
  auto format = report::parse_format(arguments);
  if (!format) return error(ErrorKind::kValue, "%format takes text, csv, json or markdown, not '{}'", arguments);
  context.format = *format;
  return {};
}

constexpr Magic kMagics[] = {
    {"help", "[NAME|keys]", "list the commands, or describe one", magic_help},
    {"time", "STATEMENT", "run it once and print the wall time, including the wait for the device", magic_time},
    {"bench", "EXPRESSION [bytes= flop= budget=]",
     "measure it with cold and hot caches: quartiles, spread, clock, rates, flags", magic_bench},
    {"compare", "A, B, … [-v] [--json FILE] [base= out= budget= …]",
     "compare times beyond the noise; for one EXPRESSION its variants", magic_compare},
    {"sweep", "A, B, … NAME=[…] … [setup=] [--svg FILE] […]",
     "measure over sizes, dtypes or constexprs: table, plot, crossings", magic_sweep},
    {"tune", "LAUNCH|KERNEL [NAME=[…] …] [budget=10s]",
     "find the fastest configuration; check=off|NAMES, bounds=off, cache=hot, -v, --json FILE, --forget [KERNEL]",
     magic_tune},
    {"check", "STATEMENT|KERNEL", "run it with bounds-checked launches; report the first access outside of a tensor",
     magic_check},
    {"counters", "STATEMENT|KERNEL [METRIC …] [bundle=memory|compute|stalls|occupancy|tensor] [-v] | --list [FILTER]",
     "hardware counters per kernel; prints the number of passes first", magic_counters},
    {"roofline", "A, B, … [--measured] [--svg FILE] [bytes= flop= dtype= cache= budget=]",
     "share of this device's measured ceilings, and which of them bounds each", magic_roofline},
    {"dispatch", "STATEMENT [runs=50]",
     "CPU cost from the script's line to the device, step by step; CPU- or GPU-bound", magic_dispatch},
    {"source", "EXPRESSION [target=] [--variant V] [--script FILE]",
     "the Triton source of an expression's kernels; as a program that also runs under Triton", magic_source},
    {"profile", "STATEMENT [sort= rows= shapes lines memory streams counters bundle= wait= warmup= active= repeat= …]",
     "time by operation and kernel, launch latency, totals; flop= bytes= --json FILE", magic_profile},
    {"trace", "STATEMENT > FILE.json [warmup= active= …]", "profile it and write a trace for ui.perfetto.dev",
     magic_trace},
    {"report", "FILE.html [STATEMENT [flop= bytes= dtype= counters …]]",
     "write an HTML page with timeline, roofline, tables and findings; default: of the last profile", magic_report},
    {"plan", "EXPRESSION [target=] [--variant V] [--svg FILE]",
     "the kernels of its plan, the buffers between them and their bytes", magic_plan},
    {"why", "EXPRESSION [--variant V] | KERNEL [NAME=VALUE …] [pass= target=]",
     "why an expression is not one kernel, and the edits that would help; what the compiler did with each line of a "
     "kernel, and why not better",
     magic_why},
    {"edit", "EXPRESSION [--kernel NAME] | KERNEL [out=] [--file FILE] [--budget 10s]",
     "edit its source in $EDITOR, compile, and compare with what it was; a kernel's last launch is checked first",
     magic_edit},
    {"ast", "KERNEL", "the syntax tree", magic_ast},
    {"ir", "KERNEL [PASS] [NAME=VALUE …]", "the tile IR, or the IR after a pass", magic_ir},
    {"layout", "KERNEL [NAME=VALUE …]", "the IR with the layout of every tile (GPU targets)", magic_layout},
    {"llvm", "KERNEL [NAME=VALUE …]", "the LLVM IR", magic_llvm},
    {"ptx", "KERNEL [NAME=VALUE …]", "the PTX; sm_90a when the target is not a GPU", magic_ptx},
    {"asm", "KERNEL [NAME=VALUE …]", "the assembly for the CPU", magic_asm},
    {"sass", "KERNEL [NAME=VALUE …]", "the machine code with the source line of each instruction", magic_sass},
    {"lines", "STATEMENT|KERNEL [top= period= runs= -v]", "source lines by sampled stall reasons, hottest first",
     magic_lines},
    {"cubin", "KERNEL [NAME=VALUE …] FILE", "write the cubin to a file", magic_cubin},
    {"static", "KERNEL [NAME=VALUE …] [target=] | EXPRESSION [target=] [--variant V]",
     "registers, spills, shared memory and occupancy of a kernel, or of each kernel of an expression; needs no GPU",
     magic_static},
    {"occupancy", "KERNEL [NAME=VALUE …] [num_warps= shared= registers=] [--achieved]",
     "blocks per SM by resource and by num_warps, and the next step with less of a resource", magic_occupancy},
    {"target", "[NAME]", "the target for showing code: sm_90a, sm_80, host, …", magic_target},
    {"devices", "", "the devices of this machine", magic_devices},
    {"env", "", "the KILN_* variables", magic_env},
    {"doctor", "", "devices, driver, permissions, libraries, folders, terminal; what each that is missing costs",
     magic_doctor},
    {"stats", "TENSOR", "counts of NaN, inf and zeros, moments, quantiles, a histogram", magic_stats},
    {"diff",
     "A, B [rtol= atol= tile=ROWSxCOLUMNS] | KERNEL [NAME=VALUE …], KERNEL [NAME=VALUE …] [--stage STAGE] | "
     "EXPRESSION variant=A, variant=B",
     "two tensors: errors, the first bad element, where they lie; two kernels, or one for two targets (target=): code",
     magic_diff},
    {"who", "", "list the session's variables", magic_who},
    {"run", "FILE [ARGUMENTS]", "run a script in this session: it sees the variables, and leaves its own", magic_run},
    {"history", "[N] [-g TEXT]", "this session's entries, or the last N; -g: those of all sessions that contain TEXT",
     magic_history},
    {"save", "FILE", "write the session's variables, functions, kernels and tensors to a file; tells what stays out",
     magic_save},
    {"load", "FILE", "take over what %save wrote; other variables stay", magic_load},
    {"cd", "[FOLDER|-]", "change the folder: to FOLDER, home, or with - the one before", magic_cd},
    {"sh", "COMMAND", "run a command of the system's shell; ! in place of %sh does the same", magic_sh},
    {"set", "[NAME [VALUE]] [--save]", "list the settings, show or change one; --save keeps them for later sessions",
     magic_set},
    {"format", "text|csv|json|markdown", "set how tables are printed", magic_format},
};

const Magic* find(std::string_view name) {
  for (const Magic& m : kMagics)
    if (m.name == name) return &m;
  return nullptr;
}

/// Commands of IPython that Kiln has otherwise. They have rows of their own, since nearest_name() finds nothing like
/// them among the commands.
struct OtherWay {
  std::string_view name, help;
};
constexpr OtherWay kOtherWays[] = {
    {"autoreload", "%edit changes a kernel in its file; %run runs a script again"},
    {"bash", "!COMMAND runs a command of the shell"},
    {"capture", "r = %COMMAND keeps what a command gives"},
    {"cat", "!cat FILE runs a command of the shell"},
    {"colors", "%set color never, always or auto"},
    {"conda", "!conda runs a command of the shell; Kiln runs without Python, and imports .py files beside the script"},
    {"cp", "!cp runs the command of the shell"},
    {"cpaste", "paste it: what is pasted runs with Enter"},
    {"debug", "an error shows the calls that led to it; %check finds wild accesses of a kernel"},
    {"env", "os.environ has the variables, kiln env lists those of Kiln"},
    {"hist", "did you mean %history?"},
    {"load_ext", "there is nothing to load: %help lists all commands"},
    {"lprun", "%lines shows the time of a kernel's lines"},
    {"ls", "!ls runs the command of the shell"},
    {"lsmagic", "did you mean %help?"},
    {"matplotlib", "plots are drawn in the terminal, and into a file with svg='plot.svg'"},
    {"mkdir", "!mkdir runs the command of the shell"},
    {"mv", "!mv runs the command of the shell"},
    {"paste", "paste it: what is pasted runs with Enter"},
    {"pdb", "an error shows the calls that led to it; %check finds wild accesses of a kernel"},
    {"pdoc", "NAME? describes a name"},
    {"pinfo", "NAME? describes a name"},
    {"pinfo2", "NAME?? shows its source"},
    {"pip", "!pip runs a command of the shell; Kiln runs without Python, and imports .py files beside the script"},
    {"precision", "torch.set_printoptions(precision=4) holds for tensors"},
    {"prun", "did you mean %profile?"},
    {"psource", "NAME?? shows its source"},
    {"pwd", "!pwd runs the command of the shell, %cd changes the folder"},
    {"quickref", "did you mean %help?"},
    {"recall", "Up and Ctrl-R bring an entry back"},
    {"rerun", "Up and Ctrl-R bring an entry back"},
    {"reset", "del NAME removes a variable"},
    {"rm", "!rm runs the command of the shell"},
    {"store", "%save FILE writes the variables, %load FILE reads them"},
    {"sx", "NAME = !COMMAND keeps the lines that it writes"},
    {"system", "!COMMAND runs a command of the shell"},
    {"timeit", "%bench measures an expression, %time runs a statement once"},
    {"who_ls", "did you mean %who?"},
    {"whos", "did you mean %who?"},
    {"writefile", "with open(path, 'w') as f: f.write(text)"},
    {"xdel", "del NAME removes a variable"},
};

Diagnostic with_other_way(Diagnostic d, std::string_view name) {
  for (const OtherWay& w : kOtherWays)
    if (w.name == name) return with_note(std::move(d), "help: " + std::string(w.help));
  return d;
}

Diagnostic unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Magic& m : kMagics) names.push_back(m.name);
  Diagnostic d = with_other_way(error(ErrorKind::kName, "there is no command %{}", name), name);
  if (!d.notes.empty()) return d;
  // "%%name": cells of a notebook.
  if (name.starts_with('%'))
    return with_note(std::move(d),
                     fmt::format("help: a command has one line; %run FILE runs several: %{}", name.substr(1)));
  std::string near = nearest_name(name, names);
  return with_note(std::move(d), near.empty() ? "help: %help lists them" : "help: did you mean %" + near + "?");
}

/// What a list has room for.
std::string first_words(std::string_view synopsis) {
  constexpr size_t kRoom = 20;
  // A synopsis shows the operands; options begin with the first bracket.
  if (synopsis.size() <= kRoom) return std::string(synopsis);
  size_t end = synopsis.rfind(' ', kRoom);
  if (const size_t open = synopsis.find(" ["); open < end) end = open;
  std::string_view shown = synopsis.substr(0, end);
  if (shown.ends_with(" …")) shown.remove_suffix(std::string_view(" …").size());
  return std::string(shown) + " …";
}

report::Table keys_table() {
  report::Table table({{"keys", "", report::Align::kLeft}, {"what they do", "", report::Align::kLeft}});
  for (const editor::Binding& b : editor::bindings()) table.add_row({std::string(b.keys), std::string(b.help)});
  return table;
}

Status magic_help(MagicContext& context, std::string_view arguments) {
  if (arguments.starts_with('%')) arguments.remove_prefix(1);
  if (arguments == "keys") return context.print(keys_table()), Status{};
  if (!arguments.empty()) {
    const Magic* magic = find(arguments);
    if (!magic) return unknown(arguments);
    if (context.format == report::Format::kText && !context.is_assigned)
      // Text reads better as lines, and a value has to be a table.
      context.say(describe_magic(*magic));
    else
      context.print(magic_table(*magic));
    return {};
  }
  report::Table table({{"command", "", report::Align::kLeft},
                       {"", "", report::Align::kLeft, "arguments"},
                       {"what it does", "", report::Align::kLeft}});
  for (const Magic& m : kMagics)
    table.add_row({"%" + std::string(m.name), first_words(m.synopsis), std::string(m.help)});
  table.add_note("NAME? describes a name, NAME?? shows its source; a blank line ends a block; Ctrl-D exits");
  table.add_note("%help NAME shows a command's options and an example; %help keys lists the keys of the prompt");
  table.add_note(
      "KERNEL is a kernel's name, shown as last launched. Override with NAME=VALUE …, "
      "signature=*fp32,i32, num_warps=8");
  context.print(table);
  return {};
}

}  // namespace

void MagicContext::print(const report::Table& table, std::string name) {
  yield.tables.push_back({std::move(name), table});
  // What a variable takes is not printed.
  if (!is_assigned) output(report::format(table, format, style()));
}

std::span<const Magic> magics() { return kMagics; }

Status run_magic(MagicContext& context, std::string_view line) {
  line = trimmed(line);
  std::string shell_command;
  if (line.starts_with('!')) line = shell_command = "sh " + std::string(line.substr(1));
  if (line.starts_with('%')) line.remove_prefix(1);
  size_t end = line.find_first_of(" \t");
  std::string_view name = line.substr(0, end),
                   arguments = end == std::string_view::npos ? std::string_view{} : trimmed(line.substr(end));
  const Magic* magic = find(name);
  if (!magic) return unknown(name);
  // A synopsis that begins with a bracket has nothing but options.
  if (arguments.empty() && !magic->synopsis.empty() && magic->synopsis[0] != '[')
    return error(ErrorKind::kValue, "%{} needs {}", magic->name, magic->synopsis);
  if (!arguments.empty() && magic->synopsis.empty())
    return with_other_way(error(ErrorKind::kValue, "%{} takes nothing behind it, got '{}'", name, arguments), name);
  return magic->run(context, arguments);
}

MagicResult run_magic_for_value(MagicContext& context, std::string_view line, bool is_assigned) {
  std::string text;
  context.yield = {};
  context.is_assigned = is_assigned;
  MagicResult result;
  {
    std::optional<Redirected> captured;
    // An assigned command's text is the value where it has no tables.
    if (is_assigned) captured.emplace(context, [&text](std::string_view part) { text += part; });
    result.status = run_magic(context, line);
  }
  context.is_assigned = false;
  MagicYield yield = std::exchange(context.yield, {});
  if (!yield.tables.empty())
    result.value = script::table_value(std::move(yield.tables), yield.details, yield.fields);
  else if (!yield.value.missing())
    result.value = std::move(yield.value);
  else if (is_assigned && result.status.ok())
    result.value = text.empty() ? script::Value::none() : script::Value::str(text);
  result.text = std::move(text);
  return result;
}

}  // namespace kiln::repl
