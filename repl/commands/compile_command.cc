#include "repl/commands/compile_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "compiler/ast/walk.h"
#include "compiler/compile.h"
#include "compiler/parse/parser.h"
#include "compiler/target/target.h"
#include "kiln/device.h"
#include "profiler/lines/disassemble.h"
#include "profiler/report/table.h"
#include "repl/commands/compile_kernel_file.h"
#include "repl/commands/compile_launcher.h"
#include "repl/magics/compile_stages.h"
#include "repl/shell/errors.h"
#include "repl/shell/files.h"
#include "repl/views/lines_view.h"
#include "support/diag.h"
#include "support/files.h"

namespace kiln::repl {

namespace {

void print_assumptions(const std::vector<std::string>& assumptions) {
  if (assumptions.empty()) return;
  put(stderr, fmt::format("assumed {}; override with --signature and --constexpr\n", fmt::join(assumptions, ", ")));
}

void print_phases(const CompiledKernel& kernel) {
  report::Table table({{"phase", "", report::Align::kLeft}, {"time", "ms"}});
  double total = 0;
  for (const PhaseTime& p : kernel.phases) {
    table.add_row({p.name, report::Cell::of(p.ms, 3)});
    total += p.ms;
  }
  table.add_row({"total", report::Cell::of(total, 3)});
  put(stderr, report::to_text(table, report::style_of(STDERR_FILENO)));
}

Status emit(const CompileArgs& args, const std::string& bytes, bool binary) {
  if (!args.output.empty()) return write_file_atomic(args.output, bytes);
  if (binary && isatty(STDOUT_FILENO))
    return with_note(error(ErrorKind::kValue, "{} is binary, and this is a terminal", args.emit),
                     "help: write it to a file with -o FILE");
  put(stdout, bytes);
  if (!binary && !bytes.empty() && bytes.back() != '\n') put(stdout, "\n");
  std::fflush(stdout);
  return {};
}

// The forms that a compiled kernel itself holds; the others are stages that the compiler reports on the way.
const std::string* final_form(const CompiledKernel& k, std::string_view name) {
  if (name == "ptx") return &k.ptx;
  if (name == "cubin" || name == "sass") return &k.cubin;  // sass is read from it
  if (name == "object") return &k.object;
  if (name == "asm") return &k.text;
  return nullptr;
}

nlohmann::ordered_json json_of(const auto& value) { return value; }
nlohmann::ordered_json json_of(const std::vector<PhaseTime>& phases) {
  auto out = nlohmann::ordered_json::object();
  for (const PhaseTime& p : phases) out[p.name] = p.ms;
  return out;
}

// The figures of a kernel, a line each or as a JSON object; what is unknown is null.
std::string info_text(const KernelInfo& info, bool json) {
  nlohmann::ordered_json all;
  for_each_field(info, [&](const KernelField& field, const auto& value) {
    if (field.has('T')) return;  // shown by itself
    nlohmann::ordered_json v = json_of(value);
    if (v.is_structured() ? v.empty() : v.is_string() && v.get_ref<const std::string&>().empty()) return;
    all[std::string(field.name)] = v == -1 ? nlohmann::ordered_json() : v;
  });
  if (json) return all.dump();
  std::string out;
  for (const auto& [name, value] : all.items())
    if (name != "phases")
      out += fmt::format("{:<14}{}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

nlohmann::ordered_json json_of(const passes::Remark& r, const std::string& kernel) {
  const passes::RemarkRow& row = passes::row_of(r.reason);
  nlohmann::ordered_json out = {
      {"kind", passes::name(row.kind)}, {"pass", row.pass},     {"reason", row.name},       {"kernel", kernel},
      {"file", r.place.file},           {"line", r.place.line}, {"column", r.place.column}, {"text", r.text}};
  if (!r.operand.empty()) out["operand"] = r.operand;
  if (r.operand_place.line) out["operand_file"] = r.operand_place.file, out["operand_line"] = r.operand_place.line;
  return out;
}

Result<std::regex> remark_filter(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error&) {
    return error(ErrorKind::kValue, "--remarks={} is no regular expression", text);
  }
}

void print_remarks(const passes::Remarks& remarks, const std::regex& filter, const std::string& kernel, bool json,
                   std::FILE* to) {
  for (const passes::Remark& r : remarks.by_place()) {
    const passes::RemarkRow& row = passes::row_of(r.reason);
    if (!std::regex_search(fmt::format("{}/{}", row.pass, row.name), filter)) continue;
    put(to, (json ? json_of(r, kernel).dump() : passes::to_string(r)) + "\n");
  }
}

// One C file for all of the targets, which a comma separates. A target without an assembler has its PTX in it.
Status emit_launcher(const CompileArgs& args, const frontend::JitFunction& function,
                     const std::vector<frontend::ArgSpec>& specs, const std::string& device) {
  std::vector<CompiledKernel> compiled;
  for (size_t at = 0; at <= args.target.size();) {
    const size_t end = std::min(args.target.find(',', at), args.target.size());
    CompileArgs one = args;
    one.target = args.target.substr(at, end - at);
    at = end + 1;
    if (one.target.empty() && !args.target.empty())
      return error(ErrorKind::kValue, "there is a target without a name in '{}'", args.target);
    KILN_TRY(std::string target, target_name(one, device));
    if (!target::find(target)->is_cuda())
      return error(ErrorKind::kValue, "--emit c is for GPUs, and {} is none", target);
    if (std::ranges::find(compiled, target, &CompiledKernel::target) != compiled.end())
      return error(ErrorKind::kValue, "the target {} is there twice in '{}'", target, args.target);
    KILN_TRY(compiled.emplace_back(), compile(function, specs, options_for(one, std::move(target))));
    for (const std::string& warning : compiled.back().warnings) put(stderr, "warning: " + warning + "\n");
    if (compiled.back().cubin.empty())
      put(stderr, fmt::format("no assembler was found for {}: the driver will compile its PTX when it is loaded\n",
                              compiled.back().target));
  }
  KILN_TRY(std::string text, c_launcher(compiled, function.name(), args.file));
  return emit(args, text, false);
}

Diagnostic no_such_form(const CompileArgs& args, const std::string& target,
                        const std::map<std::string, std::string>& stages) {
  if ((args.emit == "cubin" || args.emit == "sass") && target != "host")
    return error(ErrorKind::kDevice,
                 "there is no cubin: neither nvJitLink nor ptxas was found (CUDA_HOME, /usr/local/cuda, PATH)");
  if (final_form({}, args.emit))
    return error(ErrorKind::kValue, "target {} has no {}; it has {}", target, args.emit,
                 target == "host" ? "asm and object" : "ptx, cubin and sass");
  std::string known = "ast";
  for (const auto& [name, text] : stages) known += ", " + name;
  return error(ErrorKind::kValue, "there is no stage '{}' for target {}; there are {}", args.emit, target, known);
}

}  // namespace

Status compile_command(const CompileArgs& given, const std::string& device, bool json) {
  CompileArgs args = given;
  if (args.emit == "ast") {
    KILN_TRY(std::shared_ptr<const ast::Module> module, parse_file(args.file));
    if (args.kernel.empty()) return emit(args, ast::dump(*module), false);
    const ast::FunctionDef* def = module->function(args.kernel);
    if (!def) return error(ErrorKind::kName, "{} has no function '{}'", args.file, args.kernel);
    return emit(args, ast::dump(*def), false);
  }
  KILN_TRY(KernelFile file, load(args.file));
  KILN_TRY(Function function, find(file, args.kernel));
  args.kernel = function->name();
  KILN_TRY(Specialisation special, specialise(*function, args, Evidence::kUse));
  print_assumptions(special.assumed.assumptions);
  if (args.emit == "c") return emit_launcher(args, *function, special.args, device);
  KILN_TRY(std::string target, target_name(args, device));
  const bool wants_remarks = !args.remarks.empty(), only_remarks = wants_remarks && args.emit.empty();
  KILN_TRY(const std::regex filter, remark_filter(args.remarks));
  if (args.emit.empty()) args.emit = target == "host" ? "asm" : "ptx";

  std::map<std::string, std::string> stages;
  std::string last_ir;
  CompileOptions options = options_for(args, target);
  // Registers and spills are remarks too.
  options.want_cubin = args.emit == "cubin" || args.emit == "sass" || args.emit == "info" || only_remarks;
  options.want_asm = args.emit == "asm" && !only_remarks;
  passes::Remarks remarks;
  if (wants_remarks) options.remarks = &remarks;
  if ((!final_form({}, args.emit) && args.emit != "info") || !args.print_after.empty())
    options.on_stage = [&](std::string_view stage, const std::string& text) {
      stages[std::string(stage)] = text;
      if (stage != "ir" && !stage.starts_with("ir:")) return;
      const bool changed = std::exchange(last_ir, text) != text;
      if (stage == "ir") return;
      const std::string_view pass = stage.substr(3);
      if (args.print_after == "all" || args.print_after == pass || (args.print_after == "changed" && changed))
        put(stderr, fmt::format("# after {}\n{}\n", pass, text));
    };
  Result<CompiledKernel> compiled = compile(*function, special.args, options);
  print_remarks(remarks, filter, args.kernel, json, only_remarks ? stdout : stderr);
  // A stage that was reached is worth showing even when a later one failed: that is how one looks for the reason.
  auto stage = stages.find(args.emit);
  if (stage != stages.end()) KILN_CHECK_OK(emit(args, stage->second, false));
  if (!compiled.ok()) return compiled.error();
  for (const std::string& warning : compiled->warnings)
    if (!wants_remarks) put(stderr, "warning: " + warning + "\n");
  const bool names_pass = !args.print_after.empty() && args.print_after != "all" && args.print_after != "changed";
  if (names_pass && !stages.contains("ir:" + args.print_after))
    return no_such_form(
        [&] {
          CompileArgs a = args;
          a.emit = "ir:" + args.print_after;
          return a;
        }(),
        target, stages);
  if (only_remarks) {
    std::fflush(stdout);
  } else if (args.emit == "info") {
    KILN_CHECK_OK(emit(args, info_text(*compiled, json), false));
  } else if (stage == stages.end()) {
    const std::string* form = final_form(*compiled, args.emit);
    if (!form || form->empty()) return no_such_form(args, target, stages);
    if (args.emit == "sass") {
      KILN_TRY(profiler::LineTable machine, profiler::disassemble(*form, compiled->name));
      KILN_CHECK_OK(emit(args, sass_listing(machine, SourceLines({file.module->source})), false));
    } else {
      KILN_CHECK_OK(emit(args, *form, args.emit == "cubin" || args.emit == "object"));
    }
  }
  if (args.time_passes) print_phases(*compiled);
  return {};
}

}  // namespace kiln::repl
