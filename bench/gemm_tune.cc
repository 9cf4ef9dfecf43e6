// The best tile of each of our kernels for a product, found by the tuning engine.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/gemm.h"
#include "kernels/matmul_persistent/matmul.h"
#include "profiler/measure/stats.h"
#include "profiler/tune/output_check.h"
#include "profiler/tune/tune.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

using report::Align;
using report::Cell;

struct TunedKernel {
  std::string_view name;
  Result<kernels::Launch> (*launch)(const GemmProblem&, const MatmulTile&);
  bool splits;  // it may share the sum of a tile among programs
};
constexpr TunedKernel kTuned[] = {{"persistent", persistent_launch, true}, {"pointers", pointer_launch, false}};

/// The table's own choice first, then its other tiles, each with neighbouring stages, groups and splits.
std::vector<MatmulTile> gpu_tiles(const GemmProblem& p, bool may_split) {
  const ProductSize size = p.size();
  const int units = p.device.info().compute_units;
  std::vector<MatmulTile> out;
  auto add = [&](const MatmulTile& t) {
    // One stage has nothing to overlap.
    if (t.stages >= 2 && std::find(out.begin(), out.end(), t) == out.end()) out.push_back(t);
  };
  const auto ranked = rank_tiles(size, units, {.most_ctas = kernels::most_ctas(p.device.info())});
  // All tiles as they are before any is varied: within the budget, more tiles are tried rather than more variants of
  // one.
  for (const bool varied : {false, true})
    for (const MatmulTile& ranked_tile : ranked) {
      MatmulTile t = ranked_tile;
      if (may_split) t.splits = choose_splits(t, size, units);
      add(t);
      if (!varied) continue;
      for (int stages : {t.stages - 1, t.stages + 1}) {
        MatmulTile other = t;
        other.stages = stages;
        add(other);
      }
      // 4 and 16 around the usual 8.
      for (int group : {4, 16}) {
        MatmulTile other = t;
        other.group_m = group;
        add(other);
      }
      if (!may_split) continue;
      for (int splits : {1, t.splits * 2}) {
        MatmulTile other = t;
        other.splits = splits;
        // One split is another choice only where the sum was split.
        if (splits == 1 || t.splits > 1) add(other);
      }
    }
  return out;
}

std::vector<MatmulTile> host_tiles() {
  std::vector<MatmulTile> out;
  // The likely ones first, since the budget may end the list early.
  for (int m : {32, 16, 64})
    for (int n : {64, 32, 128, 256})
      for (int k : {32, 16}) out.push_back({m, n, k, /*stages=*/3, /*warps=*/4});
  return out;
}

std::string text_of(const MatmulTile& t) { return fmt::format("{}, groups of {}", to_string(t), t.group_m); }

}  // namespace

report::Table tune_table(const Context& context, std::string_view type) {
  const char* rate = context.device.is_cuda() ? "TFLOP/s" : "GFLOP/s";
  return report::Table({{fmt::format("gemm {} tuned, M,N,K", type), "", Align::kLeft, "shape"},
                        {"kernel", "", Align::kLeft},
                        {"the table's", rate, Align::kRight, "chosen"},
                        {"best", rate},
                        {"gain", "x"},
                        {"", "", Align::kLeft, "verdict"},
                        {"the table's tile", "", Align::kLeft, "chosen_tile"},
                        {"best tile", "", Align::kLeft},
                        {"measured", ""},
                        {"pruned", ""},
                        {"failed", ""},
                        {"wrong", ""},
                        {"seconds", ""}});
}

Status tune_gemm(const Context& context, const GemmProblem& p, const std::function<Status()>& check,
                 report::Table& table) {
  const ProductSize size = p.size();
  const bool gpu = p.device.is_cuda();
  const double flop = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  auto rate = [&](double us) { return flop / us / (gpu ? 1e6 : 1e3); };
  for (const TunedKernel& k : kTuned) {
    const std::string where = fmt::format("gemm {} {}x{}x{}: tuning {}", p.type.name, size.m, size.n, size.k, k.name);
    const std::vector<MatmulTile> tiles = gpu ? gpu_tiles(p, k.splits) : host_tiles();
    std::vector<profiler::TuneCandidate> candidates;
    std::string unsupported;
    for (const MatmulTile& t : tiles) {
      auto launch = k.launch(p, t);
      if (!launch.ok()) {
        unsupported = launch.error().message;
        break;
      }
      candidates.push_back({text_of(t), launch->kernel, launch->grid, launch->args, launch->options});
    }
    if (!unsupported.empty() || candidates.empty()) {
      context.skip(fmt::format("{}: {}", where, unsupported.empty() ? "no tile fits" : unsupported));
      continue;
    }
    // What the others are held to must itself be right.
    auto right = [&]() -> Status {
      // Zeros first, or the check could pass on what the last kernel left.
      KILN_CHECK_OK(p.out.fill(0));
      KILN_CHECK_OK(candidates[0].launch());
      KILN_CHECK_OK(p.device.synchronize());
      return check();
    }();
    if (!right.ok()) {
      context.wrong(fmt::format("{}: {}", where, right.error().message));
      continue;
    }
    KILN_TRY(profiler::OutputCheck outputs, profiler::OutputCheck::make({p.out}));
    profiler::TuneOptions options;
    options.budget_s = context.gemm.seconds;
    options.check = &outputs;
    KILN_TRY(profiler::TuneResult r, profiler::tune(p.device, candidates, options));
    if (r.best < 0) {
      context.wrong(fmt::format("{}: {}: {}", where, r.rows[0].config, r.rows[0].reason));
      continue;
    }
    const auto best = static_cast<size_t>(r.best);
    double chosen_us = r.rows[0].median_us(), best_us = r.rows[best].median_us(), gain = 1;
    std::string verdict;
    // The tuner's own figures rank candidates; a claim of a gain takes a comparison in pairs.
    if (best != 0) {
      auto side = [&](size_t i) {
        return profiler::Launchable{candidates[i].config, p.device, [&, i] { return candidates[i].launch(); }};
      };
      profiler::CompareOptions compared;
      compared.timeout_s = context.gemm.seconds;
      KILN_TRY(profiler::Comparison c, profiler::compare(side(best), side(0), compared));
      chosen_us = c.b_us.median, best_us = c.a_us.median, gain = c.speedup;
      verdict = name(c.verdict);
    }
    auto count = [&](profiler::TuneState state) { return Cell::of(int64_t{r.count(state)}); };
    // The rates of the comparison where there was one, as both sides are of the same minutes.
    table.add_row({fmt::format("{},{},{}", size.m, size.n, size.k), std::string(k.name), Cell::of(rate(chosen_us), 1),
                   Cell::of(rate(best_us), 1), Cell::of(gain, 3), verdict, candidates[0].config,
                   best == 0 ? Cell("the same") : Cell(candidates[best].config), count(profiler::TuneState::kMeasured),
                   count(profiler::TuneState::kPruned), count(profiler::TuneState::kFailed),
                   count(profiler::TuneState::kWrong), Cell::of(r.total_s, 1)});
    nlohmann::ordered_json j = {{"group", "gemm-tune"}, {"type", p.type.name}, {"m", size.m},  {"n", size.n},
                                {"k", size.k},          {"kernel", k.name},    {"gain", gain}, {"chosen_us", chosen_us},
                                {"best_us", best_us}};
    j["result"] = nlohmann::ordered_json::parse(to_json(r));
    context.add_json(j.dump());
  }
  return {};
}

}  // namespace kiln::bench
