// The magics that show a kernel's stages and figures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "compiler/target/target.h"
#include "profiler/cupti/range_profiler.h"
#include "repl/magics/compile_stages.h"
#include "repl/magics/kernel_target.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/statement_arguments.h"
#include "repl/magics/static_expression.h"
#include "repl/views/static_table.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

// "NAME rest" → the kernel of that name, and the rest.
struct KernelOperand {
  Kernel kernel;
  std::string rest;
};

Result<KernelOperand> operand(MagicContext& context, std::string_view arguments) {
  size_t end = arguments.find(' ');
  KILN_TRY(Kernel kernel, context.session.kernel(std::string(arguments.substr(0, end))));
  std::string_view rest = end == std::string_view::npos ? std::string_view{} : arguments.substr(end + 1);
  size_t first = rest.find_first_not_of(' ');
  const bool has_target = std::ranges::any_of(kernel.params(), [](const ParamDesc& p) { return p.name == "target"; });
  if (!has_target && (rest.starts_with("target=") || rest.find(" target=") != std::string_view::npos))
    return with_note(error(ErrorKind::kValue, "the kernel {} has no parameter 'target'", kernel.name()),
                     "help: %target NAME chooses the target that code is shown for");
  return KernelOperand{std::move(kernel), first == std::string_view::npos ? "" : std::string(rest.substr(first))};
}

// %target's, else the one that the kernel was launched for, else the session's device's.
Result<std::string> target_of(MagicContext& context, const Kernel& kernel) {
  if (!context.target.empty()) return context.target;
  if (std::string launched = launched_target(kernel); !launched.empty()) return launched;
  KILN_TRY(Device device, context.session.device());
  return device.info().target;
}

Status print_stage(MagicContext& context, const ShowRequest& request, std::string_view stage) {
  KILN_TRY(Shown shown, show_stage(request, stage));
  if (!shown.assumptions.empty()) context.output("# " + shown.assumptions + "\n");
  if (!shown.text.ends_with('\n')) shown.text += '\n';
  context.output(shown.text);
  return {};
}

Status show(MagicContext& context, std::string_view arguments, std::string_view stage, bool gpu_only) {
  KILN_TRY(KernelOperand o, operand(context, arguments));
  KILN_TRY(std::string target, gpu_only ? gpu_target_of(context, o.kernel) : target_of(context, o.kernel));
  return print_stage(context, {o.kernel, o.rest, target}, stage);
}

struct GpuInfo {
  Kernel kernel;
  KernelInfo info;
  std::string label, assumptions;
};

Result<GpuInfo> gpu_info(MagicContext& context, std::string_view arguments) {
  KILN_TRY(KernelOperand o, operand(context, arguments));
  KILN_TRY(std::string target, gpu_target_of(context, o.kernel));
  KILN_TRY(auto found, show_info({o.kernel, o.rest, target}));
  return GpuInfo{o.kernel, std::move(found.first), o.kernel.name(), std::move(found.second)};
}

}  // namespace

Result<std::string> gpu_target_of(MagicContext& context, const Kernel& kernel) {
  KILN_TRY(std::string target, target_of(context, kernel));
  return is_gpu_target(target) ? target : std::string(kDefaultGpuTarget);
}

Status magic_ast(MagicContext& context, std::string_view arguments) { return show(context, arguments, "ast", false); }

Status magic_ir(MagicContext& context, std::string_view arguments) {
  KILN_TRY(KernelOperand o, operand(context, arguments));
  KILN_TRY(std::string target, target_of(context, o.kernel));
  // A first word that is no NAME=VALUE is a pass.
  std::string stage = "ir";
  std::string first = o.rest.substr(0, o.rest.find(' '));
  if (!first.empty() && first.find('=') == std::string::npos) {
    stage = "ir:" + first;
    o.rest.erase(0, std::min(o.rest.size(), first.size() + 1));
  }
  return print_stage(context, {o.kernel, o.rest, target}, stage);
}

Status magic_layout(MagicContext& context, std::string_view arguments) {
  return show(context, arguments, "layout", true);
}
Status magic_llvm(MagicContext& context, std::string_view arguments) { return show(context, arguments, "llvm", false); }
Status magic_ptx(MagicContext& context, std::string_view arguments) { return show(context, arguments, "ptx", true); }

Status magic_asm(MagicContext& context, std::string_view arguments) {
  KILN_TRY(KernelOperand o, operand(context, arguments));
  return print_stage(context, {o.kernel, o.rest, "host"}, "asm");
}

Status magic_cubin(MagicContext& context, std::string_view arguments) {
  KILN_TRY(KernelOperand o, operand(context, arguments));
  const std::string_view last = parts_of(o.rest, Between::kBlanks).parts.back();
  const std::string file(unquoted(last));
  if (file.empty()) return error(ErrorKind::kValue, "%cubin needs a file to write to: %cubin {} FILE", o.kernel.name());
  KILN_TRY(std::string target, gpu_target_of(context, o.kernel));
  KILN_TRY(Shown shown, show_stage({o.kernel, o.rest.substr(0, o.rest.size() - last.size()), target}, "cubin"));
  KILN_CHECK_OK(write_file_atomic(file, shown.text));
  if (!shown.assumptions.empty()) context.output("# " + shown.assumptions + "\n");
  context.output(fmt::format("{}: {} bytes for {}\n", file, shown.text.size(), target));
  return {};
}

namespace {

/// What stands before the options of a command that shows one kernel or expression: "add_kernel", with the pass or file
/// behind it, and then the values that it is shown for.
struct OneOperand {
  MagicArguments arguments;
  std::string text, values;
  std::string all() const { return values.empty() ? text : text + " " + values; }
};

Result<OneOperand> one_operand(std::string_view text, std::string_view magic) {
  OneOperand out;
  KILN_TRY(out.arguments, parse_magic_arguments(text, magic_options(magic), {.other_names = true}));
  if (out.arguments.expressions.size() != 1)
    return error(ErrorKind::kValue, "%{} takes one, got {}", magic, out.arguments.expressions.size());
  out.text = out.arguments.expressions[0];
  out.values = other_values(out.arguments, magic_options(magic));
  return out;
}

/// Whether nothing but a name stands before the first blank: what is more is no kernel.
bool begins_with_name(std::string_view arguments) {
  const std::string_view first = arguments.substr(0, arguments.find(' '));
  auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return std::ranges::all_of(first, in_name);
}

Result<GpuInfo> gpu_info_for(MagicContext& context, std::string_view arguments, const std::string& target) {
  const std::string before = context.target;
  if (!target.empty()) context.target = target;
  auto info = gpu_info(context, arguments);
  context.target = before;
  return info;
}

}  // namespace

Status magic_static(MagicContext& context, std::string_view text) {
  KILN_TRY(const OneOperand o, one_operand(text, "static"));
  const std::string wanted = o.arguments.text("target"), variant = o.arguments.text("--variant");
  if (!wanted.empty() && !is_gpu_target(wanted))
    return error(ErrorKind::kValue, "target= is a GPU target, as {} is, not '{}'", kDefaultGpuTarget, wanted);
  const std::string first = o.text.substr(0, o.text.find(' '));
  auto kernel = begins_with_name(first) ? context.session.kernel(first) : Result<Kernel>(error(ErrorKind::kType, ""));
  if (!kernel.ok() && kernel.error().kind == ErrorKind::kType) {
    if (!o.values.empty())
      return error(ErrorKind::kValue, "{} is for kernels; '{}' is none", o.values.substr(0, o.values.find('=') + 1),
                   o.text);
    Status shown = static_expression(context, o.text, variant, wanted);
    const bool is_neither = !shown.ok() && shown.error().kind == ErrorKind::kType && first == o.text;
    return is_neither && begins_with_name(first) ? Status(std::move(kernel.error())) : std::move(shown);
  }
  if (!variant.empty()) return error(ErrorKind::kValue, "--variant is for expressions; {} is a kernel", first);
  KILN_TRY(GpuInfo g, gpu_info_for(context, o.all(), wanted));
  report::Table table = static_table();
  add_static_row(table, g.label, g.info);
  if (!g.assumptions.empty()) table.add_note(g.assumptions);
  context.print(table);
  return {};
}

namespace {

/// A figure that stands for the compiled one.
Result<std::optional<int64_t>> supposed(const MagicArguments& arguments, const std::string& name) {
  const std::string* text = arguments.find(name);
  if (!text) return std::optional<int64_t>();
  KILN_TRY(int64_t value, count_of(*text, name + "=", 0));
  return std::optional(value);
}

// Percent of an SM's warps while the kernel's last launch ran, by the hardware counters.
Result<double> achieved_occupancy(MagicContext& context, const Kernel& kernel) {
  namespace cupti = profiler::cupti;
  KILN_TRY(Device device, context.session.device());
  KILN_TRY(std::string chip, cupti::chip_of(device));
  const cupti::Metric* wanted[] = {&cupti::metric(cupti::MetricId::kOccupancy)};
  KILN_TRY(cupti::Resolved resolved, cupti::resolve(chip, wanted));
  KILN_TRY(auto run, statement_runner(context.session, kernel.name(), "<%occupancy>"));
  KILN_CHECK_OK(run());  // compiles
  KILN_TRY(cupti::Collected counted, cupti::collect(device, resolved.names, {}, run));
  if (auto value = profiler::cupti::median_of(counted.launches, kernel.name(), 0)) return *value;
  return error(ErrorKind::kDevice, "its last launch ran no kernel of that name");
}

}  // namespace

Status magic_occupancy(MagicContext& context, std::string_view arguments) {
  KILN_TRY(const OneOperand o, one_operand(arguments, "occupancy"));
  KILN_TRY(const std::optional<int64_t> registers, supposed(o.arguments, "registers"));
  KILN_TRY(const std::optional<int64_t> shared, supposed(o.arguments, "shared"));
  KILN_TRY(GpuInfo g, gpu_info(context, o.all()));
  if (registers) g.info.registers = static_cast<int>(*registers);
  if (shared) g.info.shared_bytes = *shared;
  KILN_TRY(Device device, context.session.device());
  const DeviceInfo here = device.info();
  const bool is_here = device.is_cuda() && here.target == g.info.target;
  KILN_TRY(report::Table table, occupancy_table(g.info, is_here ? here.compute_units : 0));
  if (!g.assumptions.empty()) table.add_note(g.assumptions);
  if (registers || shared) table.add_note("registers or shared memory as given, not as compiled");
  if (o.arguments.has("--achieved")) {
    auto achieved = achieved_occupancy(context, g.kernel);
    table.add_note(achieved.ok()
                       ? fmt::format("achieved: {:.1f} % of the warps of an SM, while it had any (counters)", *achieved)
                       : "achieved occupancy is unknown: " + achieved.error().message);
  }
  context.print(table);

  KILN_TRY(KernelOperand kernel, operand(context, o.all()));
  std::vector<WarpsRow> rows;
  for (int warps = 1; warps <= 32; warps *= 2) {
    const bool is_current = warps == g.info.num_warps;
    WarpsRow row{warps, g.info, is_current};
    if (!is_current) {
      auto other = show_info({kernel.kernel, kernel.rest + fmt::format(" num_warps={}", warps), g.info.target});
      row.info =
          other.ok() ? Result<KernelInfo>(std::move(other->first)) : Result<KernelInfo>(std::move(other.error()));
      if (row.info.ok() && registers) row.info->registers = static_cast<int>(*registers);
      if (row.info.ok() && shared) row.info->shared_bytes = *shared;
    }
    rows.push_back(std::move(row));
  }
  context.print(occupancy_by_warps(rows), "by_warps");
  return {};
}

Status magic_target(MagicContext& context, std::string_view arguments) {
  if (!arguments.empty()) {
    if (!target::find(arguments))
      return error(ErrorKind::kValue, "unknown target '{}'; the targets are {}", arguments,
                   fmt::join(target_names(), ", "));
    context.target = arguments;
    return {};
  }
  report::Table table({{"", "", report::Align::kLeft, "current"},
                       {"target", "", report::Align::kLeft},
                       {"shared/block", "B"},
                       {"shared/SM", "B"},
                       {"registers/SM", ""},
                       {"threads/SM", ""},
                       {"blocks/SM", ""}});
  KILN_TRY(Device device, context.session.device());
  std::string current = context.target.empty() ? device.info().target : context.target;
  for (const target::Target& t : target::all()) {
    auto cell = [&](int64_t v) { return t.is_cuda() ? report::Cell::of(v) : report::Cell(""); };
    table.add_row({t.name == current ? "*" : "", std::string(t.name), cell(t.shared_per_block), cell(t.shared_per_sm),
                   cell(t.registers_per_sm), cell(t.threads_per_sm), cell(t.blocks_per_sm)});
  }
  context.print(table);
  return {};
}

}  // namespace kiln::repl
