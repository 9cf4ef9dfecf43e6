// Expressions: the CPU time of launching what is planned. bench/plan measures the planning.
#include "bench/bench.h"
#include "kiln/expr.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

constexpr int kBatch = 100, kBatches = 50, kWarmUp = 5;

// Microseconds of each call, waits for the device left out.
Result<std::vector<double>> per_call(const Device& device, const std::function<Status()>& call) {
  std::vector<double> us;
  for (int b = -kWarmUp; b < kBatches; ++b) {
    const double start = profiler::steady_seconds();
    for (int i = 0; i < kBatch; ++i) KILN_CHECK_OK(call());
    const double spent = profiler::steady_seconds() - start;
    KILN_CHECK_OK(device.synchronize());
    if (b >= 0) us.push_back(spent / kBatch * 1e6);
  }
  return us;
}

Result<Expr> chain(const Tensor& x, int operations) {
  Expr e = x;
  for (int i = 0; i < operations; ++i) {
    const Expr operands[] = {e, Expr::scalar(0.5 + 0.01 * i)};
    KILN_TRY(e, apply(i % 2 ? ExprOp::kAdd : ExprOp::kMul, operands));
  }
  return e;
}

}  // namespace

Status bench_expressions(const Context& context) {
  constexpr int64_t kSmall = 4096;
  constexpr int kUnfused = 6;
  KILN_TRY(Tensor x, randn(context.device, DType::kF32, std::span<const int64_t>(&kSmall, 1), 1));
  KILN_TRY(Expr six, chain(x, kUnfused));
  KILN_TRY(VariantPlan unfused, variant(six, ExprVariant::kUnfused));
  KILN_CHECK_OK(unfused.problem);
  Goal goal = {};
  if (context.device.is_cuda()) goal = {Goal::Kind::kMicrosecondsAtMost, 3};
  KILN_TRY(std::vector<double> launches, per_call(context.device, [&] { return unfused.launch(); }));
  for (double& us : launches) us /= kUnfused;
  context.add(time_figure("expressions", "a kernel of a bound plan", launches, goal));

  // From the operations to the launch, with the plan found again and the result allocated.
  auto build_and_run = [&]() -> Status {
    KILN_TRY(Expr e, chain(x, kUnfused));
    KILN_TRY([[maybe_unused]] Tensor result, run(e));
    return {};
  };
  KILN_TRY(std::vector<double> whole, per_call(context.device, build_and_run));
  context.add(time_figure("expressions", fmt::format("{} operations built and run, plan cached", kUnfused), whole, {}));
  return {};
}

}  // namespace kiln::bench
