// `kiln demo` without kernel names: expressions, each in all its variants.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "profiler/compare/compare.h"
#include "profiler/report/table.h"
#include "repl/commands/demo.h"
#include "repl/magics/expr_contenders.h"
#include "repl/magics/kernel_target.h"
#include "repl/session/session.h"
#include "repl/shell/files.h"
#include "repl/views/static_table.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

struct DemoExpression {
  std::string_view expression;
  std::string_view gpu, cpu;  // what makes its tensors, at a size for the device
  std::string_view empty;     // those of `gpu` without values, for plans that are not run
};

constexpr DemoExpression kShown[] = {
    {"gelu(x @ w + b)", "x, w, b = randn(4096, 4096, bf16), randn(4096, 4096, bf16) / 64, randn(4096, bf16)",
     "x, w, b = randn(1024, 1024), randn(1024, 1024) / 32, randn(1024)",
     "x, w, b = empty(4096, 4096, bf16), empty(4096, 4096, bf16), empty(4096, bf16)"},
    {"exp(x - x.amax(1, True)) / exp(x - x.amax(1, True)).sum(1, True)", "x = randn(8192, 8192, bf16)",
     "x = randn(2048, 1024)", "x = empty(8192, 8192, bf16)"},
    {"(x - x.mean(1, True)) * rsqrt(x.var(1, False, True) + 1e-5) * scale + shift",
     "x, scale, shift = randn(8192, 8192, bf16), randn(8192, bf16), randn(8192, bf16)",
     "x, scale, shift = randn(2048, 1024), randn(1024), randn(1024)",
     "x, scale, shift = empty(8192, 8192, bf16), empty(8192, bf16), empty(8192, bf16)"},
};

script::Options quiet(const Device& device) {
  return {.output = [](std::string_view) {}, .argv = {"demo"}, .device = device};
}

}  // namespace

Result<report::Table> demo_static_figures(const Device& device) {
  report::Table table = static_table();
  bool is_assembled = true;
  for (const DemoExpression& shown : kShown) {
    script::Session session(quiet(device));
    KILN_CHECK_OK(session.run(std::string(shown.empty), "<demo>"));
    KILN_TRY(std::optional<kiln::Expr> expr, session.expression(std::string(shown.expression)));
    KILN_ASSERT(expr, "'{}' is no expression", shown.expression);
    KILN_TRY(TargetPlan plan, plan_for(*expr, kDefaultGpuTarget, ExprVariant::kFused, session.tensor_names()));
    for (const KernelInfo& info : plan.kernels) {
      add_static_row(table, info.name, info);
      is_assembled = is_assembled && info.registers >= 0;
    }
  }
  table.set_title(
      fmt::format("the same expressions as {} would run them, in bf16 and larger: planned and compiled, not run",
                  kDefaultGpuTarget));
  return is_assembled ? table : without_assembler(table);
}

Result<int> expressions_demo(const DemoArgs& args, const Device& device, bool json) {
  bool right = true;
  for (const DemoExpression& shown : kShown) {
    script::Session session(quiet(device));
    const std::string text(shown.expression), setup(device.is_cuda() ? shown.gpu : shown.cpu);
    KILN_CHECK_OK(session.run(setup, "<demo>"));
    KILN_TRY(std::optional<ContenderSet> set, expression_contenders(session, text));
    KILN_ASSERT(set, "'{}' is no expression", text);
    profiler::ContestOptions options;
    options.timeout_s = args.timeout_s;
    options.check = set->check;
    options.reference = set->reference;
    options.baseline = set->baseline;
    if (isatty(STDERR_FILENO)) options.progress = show_progress;
    KILN_TRY(profiler::Contest contest, profiler::run_contest(std::move(set->contenders), options));
    if (options.progress) options.progress("");
    report::Table table = profiler::contest_table(contest);
    put(stdout,
        json ? report::to_json(table)
             : fmt::format("{}\n{}\n\n{}\n", setup, text, report::to_text(table, report::style_of(STDOUT_FILENO))));
    std::fflush(stdout);
    right = right && contest.wrong().empty();
  }
  if (!device.is_cuda()) {
    KILN_TRY(report::Table table, demo_static_figures(device));
    put(stdout, json ? report::to_json(table) : report::to_text(table, report::style_of(STDOUT_FILENO)));
  }
  return right ? kExitOk : kExitMismatch;
}

}  // namespace kiln::repl
