#include "bench/bench.h"

#include <fmt/format.h>

namespace kiln::bench {

namespace {

constexpr Group kGroups[] = {
    // Compilation first: its first figure is of a process that has compiled nothing yet.
    {"compile", "from text to loaded code, cold and cached", bench_compile},
    {"startup", "a whole process of `kiln -c 'print(1)'`", bench_startup},
    {"launch", "CPU time of a launch", bench_launch},
    {"expressions", "CPU time of launching what is planned", bench_expressions},
    {"pointwise", "vector add and the six-op chain against the device's copy", bench_pointwise},
    {"rows", "softmax, layernorm and rmsnorm against the device's copy", bench_rows},
    {"fusion", "fused kernels against one kernel per operation", bench_fusion},
    {"gemm", "matrix products by cuBLAS, cublasLt or OpenBLAS, in bursts and sustained", bench_gemm},
    {"terrain", "products of random shapes, layouts, types and batches against cuBLAS and cublasLt", bench_terrain},
    {"honesty", "the comparison itself: a kernel against itself, and against one 2 % longer", bench_honesty},
    {"profile", "what a profile costs: launches under and after it, a million records to a trace", bench_profile},
    {"kernel-times", "kernels as CUPTI times them, for bench/ncu_compare", bench_kernel_times},
};

}  // namespace

std::span<const Group> groups() { return kGroups; }

Figure time_figure(std::string group, std::string name, std::span<const double> us, Goal goal, std::string note) {
  Figure f;
  f.group = std::move(group);
  f.name = std::move(name);
  f.ours = {"kiln", profiler::summarize(us)};
  f.goal = goal;
  f.note = std::move(note);
  return f;
}

std::optional<bool> Figure::met() const {
  switch (goal.kind) {
    case Goal::Kind::kNone:
      return std::nullopt;
    case Goal::Kind::kRatioAtLeast:
      return ratio >= goal.value;
    case Goal::Kind::kMicrosecondsAtMost:
      return ours.us.median <= goal.value;
    case Goal::Kind::kExtraMicrosecondsAtMost:
      if (!peer) return std::nullopt;
      // The figure's own number, where pairs were measured, rather than a difference of two medians.
      return extra_us.value_or(ours.us.median - peer->us.median) <= goal.value;
  }
  return std::nullopt;
}

std::string Figure::goal_text() const {
  switch (goal.kind) {
    case Goal::Kind::kNone:
      return "";
    case Goal::Kind::kRatioAtLeast:
      return fmt::format("≥ {:.2f}", goal.value);
    case Goal::Kind::kMicrosecondsAtMost:
      return "≤ " + report::human_time(goal.value);
    case Goal::Kind::kExtraMicrosecondsAtMost:
      return fmt::format("≤ +{:g} us", goal.value);
  }
  return "";
}

void set_peer(Figure& figure, Side peer) {
  const profiler::Summary &ours = figure.ours.us, &theirs = peer.us;
  figure.ratio = theirs.median / ours.median;
  // Quartiles against quartiles: no pairs were taken, so this is wider than an interval of the ratio.
  figure.ratio_95 = {theirs.q1 / ours.q3, theirs.q3 / ours.q1};
  figure.peer = std::move(peer);
}

Result<Figure> compare_sides(const Context& context, const profiler::Launchable& ours, double our_bytes,
                             const profiler::Launchable& peer, double peer_bytes) {
  profiler::CompareOptions options;
  options.timeout_s = context.timeout_s;
  options.max_pairs = 50;
  options.control = false;  // the interval is printed; no verdict is drawn from it
  KILN_TRY(profiler::Comparison c, profiler::compare(ours, peer, options));
  // By bytes moved where the two differ in that: the ratio is then one of rates.
  double scale = our_bytes > 0 && peer_bytes > 0 ? our_bytes / peer_bytes : 1;
  Figure f;
  f.ours = {ours.name, c.a_us, our_bytes};
  f.peer = Side{peer.name, c.b_us, peer_bytes};
  f.ratio = c.speedup * scale;
  f.ratio_95 = {c.speedup_95.low * scale, c.speedup_95.high * scale};
  return f;
}

}  // namespace kiln::bench
