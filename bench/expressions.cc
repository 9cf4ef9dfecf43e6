// Expressions: the CPU time of launching what is planned. bench/plan measures the planning.
#include <fmt/format.h>

#include <optional>

#include "bench/bench.h"
#include "bench/launch/launch_bench.h"
#include "kiln/expr.h"
#include "kiln/graph.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

constexpr int kBatch = 100, kBatches = 50, kWarmUp = 5;

// Microseconds of each call of `ours`, and of `raw` (when there is one) in batches between those of the other; waits
// for the device left out.
struct PerCall {
  std::vector<double> us, raw_us;
};
Result<PerCall> per_call(const Device& device, const std::function<Status()>& ours, int raw_calls = 0,
                         const std::optional<RawCall>& raw = {}) {
  PerCall out;
  for (int b = -kWarmUp; b < kBatches; ++b) {
    const double start = profiler::steady_seconds();
    for (int i = 0; i < kBatch; ++i) KILN_CHECK_OK(ours());
    const double spent = profiler::steady_seconds() - start;
    KILN_CHECK_OK(device.synchronize());
    if (b >= 0) out.us.push_back(spent / kBatch * 1e6);
    if (!raw) continue;
    const double raw_start = profiler::steady_seconds();
    for (int i = 0; i < raw_calls; ++i) raw->launch();
    const double raw_spent = profiler::steady_seconds() - raw_start;
    KILN_CHECK_OK(raw->drain());
    if (b >= 0) out.raw_us.push_back(raw_spent / raw_calls * 1e6);
  }
  return out;
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
  // Beside it what the driver takes for as many launches, which is CPU time too: behind a kernel that holds the stream
  // back it is the same, so no wait for the GPU is in it.
  KILN_TRY(std::optional<RawCall> raw, raw_launch(context.device));
  KILN_TRY(PerCall launches, per_call(
                                 context.device, [&] { return unfused.launch(); }, kBatch * kUnfused, raw));
  for (double& us : launches.us) us /= kUnfused;
  Figure each = time_figure("expressions", "a kernel of a bound plan", launches.us, goal);
  if (raw) {
    set_peer(each, {"cuLaunchKernel", profiler::summarize(launches.raw_us)});
    each.note = fmt::format("{:+.0f} ns over the cuLaunchKernel; the interval is of the quartiles",
                            (each.ours.us.median - each.peer->us.median) * 1000);
  }
  context.add(std::move(each));

  // The same plan as a graph: one launch of all its kernels. The GPU runs behind the host here, so the batches are
  // short enough to be queued whole.
  KILN_TRY(Graph graph, unfused.graph());
  KILN_TRY(PerCall replays, per_call(context.device, [&] { return graph.launch(); }));
  for (double& us : replays.us) us /= kUnfused;
  context.add(time_figure("expressions", "a kernel of a bound plan, as a graph", replays.us, goal));

  // From the operations to the launch, with the plan found again and the result allocated.
  auto build_and_run = [&]() -> Status {
    KILN_TRY(Expr e, chain(x, kUnfused));
    KILN_TRY([[maybe_unused]] Tensor result, run(e));
    return {};
  };
  KILN_TRY(PerCall whole, per_call(context.device, build_and_run));
  context.add(
      time_figure("expressions", fmt::format("{} operations built and run, plan cached", kUnfused), whole.us, {}));
  return {};
}

}  // namespace kiln::bench
