#include "repl/magics/magics.h"

#include <fmt/format.h>

#include "repl/commands/info_commands.h"
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
    {"help", "[NAME]", "what there is, or one command", magic_help},
    {"time", "STATEMENT", "run it once; wall time, with the wait for the device", magic_time},
    {"bench", "EXPRESSION [bytes= flop= budget=]", "measure it, cold and hot: quartiles, spread, clock, rates, flags",
     magic_bench},
    {"compare", "A, B, … [-v] [--json FILE] [base= out= budget= …]",
     "which is faster, beyond the noise; of one EXPRESSION its variants", magic_compare},
    {"sweep", "A, B, … NAME=[…] … [setup=] [--svg FILE] […]",
     "measure over sizes, dtypes or constexprs: table, plot, where two cross", magic_sweep},
    {"tune", "LAUNCH|KERNEL [NAME=[…] …] [budget=10s]",
     "find its fastest configuration; check=off|NAMES, bounds=off, cache=hot, -v, --json FILE, --forget [KERNEL]",
     magic_tune},
    {"check", "STATEMENT|KERNEL",
     "run it with every access of its launches looked at: which reaches outside, and where", magic_check},
    {"counters", "STATEMENT|KERNEL [METRIC …] [bundle=memory|compute|stalls|occupancy|tensor] [-v] | --list [FILTER]",
     "what the hardware counted, per kernel; its cost in passes first", magic_counters},
    {"roofline", "A, B, … [--measured] [--svg FILE] [bytes= flop= dtype= cache= budget=]",
     "how close they come to what this device can do, and what bounds them", magic_roofline},
    {"dispatch", "STATEMENT [runs=50]",
     "what it costs the CPU from the script's line to the device, step by step; CPU- or GPU-bound", magic_dispatch},
    {"source", "EXPRESSION [--variant V] [--script FILE]",
     "the Triton source that an expression becomes; as a program that runs under Triton too", magic_source},
    {"profile", "STATEMENT [sort= rows= shapes lines memory streams counters bundle= wait= warmup= active= repeat= …]",
     "where its time goes: operations, kernels, launch latency, totals; flop= bytes= --json FILE", magic_profile},
    {"trace", "STATEMENT > FILE.json [warmup= active= …]",
     "run it under a profile and write a trace for ui.perfetto.dev", magic_trace},
    {"report", "FILE.html [STATEMENT [flop= bytes= dtype= counters …]]",
     "one page with timeline, roofline, tables and findings; of the last profile without STATEMENT", magic_report},
    {"plan", "EXPRESSION [--variant V] [--svg FILE]", "its kernels, the buffers between them and their bytes",
     magic_plan},
    {"why", "EXPRESSION", "why its operations are not all in one kernel, and what would help", magic_why},
    {"edit", "EXPRESSION [--kernel NAME] [--file FILE] [--budget 10s]", "change its source in $EDITOR and compare",
     magic_edit},
    {"ast", "KERNEL", "the syntax tree", magic_ast},
    {"ir", "KERNEL [PASS]", "the tile IR, or the IR after a pass", magic_ir},
    {"layout", "KERNEL", "the IR with every tile's layout (GPU targets)", magic_layout},
    {"llvm", "KERNEL", "the LLVM IR", magic_llvm},
    {"ptx", "KERNEL", "the PTX; sm_90a when the target is not a GPU", magic_ptx},
    {"asm", "KERNEL", "the host's assembly", magic_asm},
    {"sass", "KERNEL", "its machine code with the source line beside each instruction", magic_sass},
    {"lines", "STATEMENT|KERNEL [top= period= runs= -v]",
     "its own source lines with samples of what the warps wait for, hottest first", magic_lines},
    {"cubin", "KERNEL FILE", "write the cubin to a file", magic_cubin},
    {"static", "KERNEL", "registers, spills, shared memory, occupancy; needs no GPU", magic_static},
    {"occupancy", "KERNEL [num_warps= shared= registers=] [--achieved]",
     "blocks per SM by each resource, by warps, and what a step less would give", magic_occupancy},
    {"target", "[NAME]", "what kernels are compiled for when shown: sm_90a, sm_80, host, …", magic_target},
    {"devices", "", "what kernels can run on here", magic_devices},
    {"env", "", "the KILN_* variables", magic_env},
    {"who", "", "the variables of this session", magic_who},
    {"format", "text|csv|json|markdown", "how tables are printed from now on", magic_format},
};

const Magic* find(std::string_view name) {
  for (const Magic& m : kMagics)
    if (m.name == name) return &m;
  return nullptr;
}

Diagnostic unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Magic& m : kMagics) names.push_back(m.name);
  Diagnostic d = error(ErrorKind::kName, "there is no command %{}", name);
  std::string near = nearest_name(name, names);
  return with_note(std::move(d), near.empty() ? "help: %help lists them" : "help: did you mean %" + near + "?");
}

Status magic_help(MagicContext& context, std::string_view arguments) {
  if (arguments.starts_with('%')) arguments.remove_prefix(1);
  if (!arguments.empty() && !find(arguments)) return unknown(arguments);
  report::Table table({{"command", "", report::Align::kLeft},
                       {"", "", report::Align::kLeft, "arguments"},
                       {"what it does", "", report::Align::kLeft}});
  for (const Magic& m : kMagics)
    if (arguments.empty() || m.name == arguments)
      table.add_row({"%" + std::string(m.name), std::string(m.synopsis), std::string(m.help)});
  if (arguments.empty()) {
    table.add_note("NAME? describes a name, NAME?? shows its source; a blank line ends a block; Ctrl-D leaves");
    table.add_note(
        "KERNEL is a kernel's name; it is shown as it was launched last. Other values: NAME=VALUE …, "
        "signature=*fp32,i32, num_warps=8");
  }
  context.print(table);
  return {};
}

}  // namespace

std::span<const Magic> magics() { return kMagics; }

Status run_magic(MagicContext& context, std::string_view line) {
  line = trimmed(line);
  if (line.starts_with('%')) line.remove_prefix(1);
  size_t end = line.find_first_of(" \t");
  std::string_view name = line.substr(0, end),
                   arguments = end == std::string_view::npos ? std::string_view{} : trimmed(line.substr(end));
  const Magic* magic = find(name);
  if (!magic) return unknown(name);
  if (arguments.empty() && !magic->synopsis.empty() && magic->synopsis[0] != '[')
    return error(ErrorKind::kValue, "%{} needs {}", magic->name, magic->synopsis);
  return magic->run(context, arguments);
}

}  // namespace kiln::repl
