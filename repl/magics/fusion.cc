// %source, %plan, %why and %edit: the plan of a tensor expression.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "kiln/expr.h"
#include "repl/magics/compile_stages.h"
#include "repl/magics/edit_file.h"
#include "repl/magics/edit_kernel.h"
#include "repl/magics/kernel_target.h"
#include "repl/magics/magic_arguments.h"
#include "repl/magics/magics.h"
#include "repl/magics/static_expression.h"
#include "repl/magics/why_kernel.h"
#include "repl/shell/files.h"
#include "repl/views/static_table.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

using report::Align;
using report::Cell;
using report::Table;

struct Operand {
  std::string text;
  std::vector<Expr> exprs;  // more than one of a text that gives several tensors, which have one plan
  std::vector<ExprName> names;
  ExprVariant variant = ExprVariant::kFused;
};

/// The one expression of a command; `variant` as it was given, empty: fused.
Result<Operand> operand(MagicContext& context, const std::string& text, const std::string& variant,
                        std::string_view magic) {
  Operand out;
  out.text = text;  // as %compare will see it: edits are found by it
  if (!variant.empty()) {
    KILN_TRY(out.variant, expr_variant_of(variant));
  }
  KILN_TRY(script::Session::ToPlan planned, context.session.expressions_to_plan(text));
  out.exprs = std::move(planned.exprs), out.names = std::move(planned.names);
  if (out.exprs.empty())
    return error(ErrorKind::kType, "%{} takes a tensor expression, as in gelu(x @ w + b); '{}' gives no tensor", magic,
                 text);
  return out;
}

Result<MagicArguments> arguments_of(std::string_view text, std::string_view magic) {
  KILN_TRY(MagicArguments a, parse_magic_arguments(text, magic_options(magic)));
  if (a.expressions.size() != 1)
    return error(ErrorKind::kValue, "%{} takes one expression, got {}", magic, a.expressions.size());
  return a;
}

Result<ExprPlan> plan_of(MagicContext& context, const MagicArguments& a, std::string_view magic) {
  KILN_TRY(Operand o, operand(context, a.expressions[0], a.text("--variant"), magic));
  const std::string target = a.text("target");
  if (target.empty()) return plan_together(o.exprs, o.variant, o.names);
  KILN_TRY(TargetPlan p, plan_together_for(o.exprs, target, o.variant, o.names));
  return std::move(p.plan);
}

}  // namespace

Result<ExprVariant> expr_variant_of(std::string_view text) {
  if (auto parsed = parse_expr_variant(text)) return *parsed;
  std::vector<std::string_view> all;
  for (ExprVariant v : kExprVariants) all.push_back(name(v));
  return error(ErrorKind::kValue, "there is no variant '{}': they are {}", text, fmt::join(all, ", "));
}

Status magic_source(MagicContext& context, std::string_view text) {
  KILN_TRY(const MagicArguments arguments, arguments_of(text, "source"));
  const std::string file = arguments.text("--script");
  KILN_TRY(ExprPlan p, plan_of(context, arguments, "source"));
  if (!file.empty()) {
    KILN_CHECK_OK(write_file_atomic(file, p.script));
    context.say(fmt::format("{}: python3 {} runs it under Triton, kiln run {} here\n", file, file, file));
    return {};
  }
  if (p.groups.empty()) context.output("# nothing is launched: the result is a view of its input\n");
  for (const ExprGroup& g : p.groups) {
    if (&g != &p.groups.front()) context.output("\n");
    if (g.source.empty())
      context.output(fmt::format("# {}: a product by the library\n", g.name));
    else
      context.output(g.source + (g.source.ends_with('\n') ? "" : "\n"));
  }
  return {};
}

Status magic_plan(MagicContext& context, std::string_view text) {
  KILN_TRY(const MagicArguments arguments, arguments_of(text, "plan"));
  const std::string svg = arguments.text("--svg");
  KILN_TRY(ExprPlan p, plan_of(context, arguments, "plan"));
  if (!svg.empty()) {
    KILN_CHECK_OK(write_file_atomic(svg, p.svg));
    context.say(fmt::format("{}: {} bytes\n", svg, p.svg.size()));
    return {};
  }
  context.say(p.text + (p.text.ends_with('\n') ? "" : "\n"));
  return {};
}

Status magic_why(MagicContext& context, std::string_view text) {
  if (names_kernel(context, text)) return why_kernel(context, text);
  KILN_TRY(const MagicArguments arguments, arguments_of(text, "why"));
  for (const char* of_kernel : {"pass", "target"})
    if (arguments.has(of_kernel))
      return error(ErrorKind::kValue, "{}= is for kernels; '{}' is none", of_kernel, arguments.expressions[0]);
  KILN_TRY(ExprPlan p, plan_of(context, arguments, "why"));
  if (p.boundaries.empty()) {
    context.say(p.groups.size() == 1 ? "all of it is one kernel\n" : "nothing prevents fusing its operations\n");
    return {};
  }
  Table table({{"from", "", Align::kLeft},
               {"to", "", Align::kLeft},
               {"bytes", ""},
               {"because", "", Align::kLeft},
               {"what would help", "", Align::kLeft}});
  for (const ExprBoundary& b : p.boundaries) {
    table.add_row({b.from, b.to, Cell::shown(report::human_bytes(b.bytes), static_cast<int64_t>(b.bytes)), b.cause,
                   b.help.empty() ? "nothing: it is so" : b.help});
  }
  table.add_note("bytes: written by one kernel and read by the other");
  context.print(table);
  return {};
}

Status static_expression(MagicContext& context, const std::string& text, const std::string& variant,
                         std::string target) {
  KILN_TRY(Operand o, operand(context, text, variant, "static"));
  if (target.empty()) target = is_gpu_target(context.target) ? context.target : o.exprs[0].device().info().target;
  if (!is_gpu_target(target)) target = kDefaultGpuTarget;
  const auto start = std::chrono::steady_clock::now();
  KILN_TRY(TargetPlan p, plan_together_for(o.exprs, target, o.variant, o.names));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  Table table = static_table();
  for (const KernelInfo& info : p.kernels) add_static_row(table, info.name, info);
  for (const ExprGroup& g : p.plan.groups)
    if (g.source.empty()) table.add_note(fmt::format("{}: a product by the library", g.name));
  table.add_note(fmt::format("planned and compiled for {} in {:.0f} ms, not run; {} by the model", target, took.count(),
                             report::human_bytes(p.plan.bytes)));
  context.print(table);
  return {};
}

// --- %edit ----------------------------------------------------------------------------------------------------------

namespace {

Result<size_t> kernel_to_edit(const VariantPlan& v, const std::string& wanted) {
  std::vector<std::string> names;
  std::vector<size_t> kernels;
  for (size_t i = 0; i < v.groups.size(); ++i) {
    if (v.groups[i].source.empty()) continue;
    if (v.groups[i].kernel == wanted) return i;
    names.push_back(v.groups[i].kernel);
    kernels.push_back(i);
  }
  if (kernels.empty()) return error(ErrorKind::kValue, "there is no kernel of Kiln's in it to edit");
  if (!wanted.empty())
    return error(ErrorKind::kName, "there is no kernel '{}' in it: there are {}", wanted, fmt::join(names, ", "));
  if (kernels.size() > 1)
    return error(ErrorKind::kValue, "which of its kernels? --kernel {}", fmt::join(names, ", --kernel "));
  return kernels[0];
}

bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

/// The runtime names a source by its kernel; the user knows the file.
Diagnostic in_file(Diagnostic d, const ExprGroup& group, const std::string& file) {
  const std::string name = fmt::format("<{}>", group.kernel);
  if (d.place.file == name) d.place.file = file;
  for (Note& n : d.notes)
    if (n.place.file == name) n.place.file = file;
  return with_note(std::move(d), fmt::format("help: change {} and give --file {}", file, file));
}

}  // namespace

Status magic_edit(MagicContext& context, std::string_view line) {
  KILN_TRY(const MagicArguments arguments, arguments_of(line, "edit"));
  const std::string wanted = arguments.text("--kernel"), budget = arguments.text("--budget");
  std::string file = arguments.text("--file");
  if (const std::string& name = arguments.expressions[0]; is_name(name) && context.session.kernel(name).ok()) {
    if (!wanted.empty()) return error(ErrorKind::kValue, "--kernel is for expressions; {} is a kernel", name);
    std::string options;
    for (const char* option : {"out", "tol"})
      if (const std::string* given = arguments.find(option)) options += fmt::format("{}={} ", option, *given);
    return edit_kernel(context, name, file, options + (budget.empty() ? "" : "budget=" + budget));
  }
  for (const char* of_kernel : {"out", "tol"})
    if (arguments.has(of_kernel))
      return error(ErrorKind::kValue, "{}= is for kernels; '{}' is none", of_kernel, arguments.expressions[0]);
  KILN_TRY(Operand o, operand(context, arguments.expressions[0], arguments.text("--variant"), "edit"));
  if (o.exprs.size() > 1)
    return error(ErrorKind::kValue, "%edit takes one tensor; '{}' gives {}", o.text, o.exprs.size());
  KILN_TRY(VariantPlan whole, variant(o.exprs[0], o.variant, o.names));
  KILN_CHECK_OK(whole.problem);
  KILN_TRY(size_t index, kernel_to_edit(whole, wanted));
  ExprGroup as = whole.groups[index];
  if (file.empty()) {
    KILN_TRY(file, new_edit_file(as.kernel));
    KILN_CHECK_OK(write_file_atomic(file, edit_text(as)));
    KILN_CHECK_OK(open_editor(file));
  }
  KILN_TRY(std::string text, read_file(file));
  KILN_CHECK_OK(read_edit(text, as));
  const std::string name = fmt::format("edited {}", context.edits[o.text].size() + 1);
  if (auto edited = whole.edited(index, as, name); !edited.ok()) return in_file(std::move(edited.error()), as, file);
  // The kernel is a variable from now on.
  if (!context.session.variable(as.kernel).missing() && !context.session.kernel(as.kernel).ok())
    return with_note(error(ErrorKind::kName, "'{}' is a variable of the session, and the kernel's name", as.kernel),
                     fmt::format("help: del {} or give it another name, then give --file {}", as.kernel, file));
  KILN_CHECK_OK(context.session.run(with_own_helpers(text, as.kernel), file));
  context.edits[o.text].push_back({o.variant, index, std::move(as), name});
  context.say(
      fmt::format("{}: kernel {} is '{}' of this expression from now on\n", file, whole.groups[index].kernel, name));
  return run_magic(context, "%compare " + o.text + (budget.empty() ? "" : " budget=" + budget));
}

}  // namespace kiln::repl
