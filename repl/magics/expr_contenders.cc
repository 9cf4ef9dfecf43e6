#include "repl/magics/expr_contenders.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "kiln/blas.h"
#include "profiler/compare/check.h"
#include "profiler/tune/records.h"
#include "profiler/tune/tune.h"
#include "repl/modules/triton/session_records.h"
#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln::repl {

namespace {

using profiler::Contender;

Contender contender_of(const VariantPlan& v, const Device& device) {
  Contender c;
  c.name = v.name;
  c.device = device;
  c.problem = v.problem;
  if (!v.problem.ok()) return c;
  c.launch = [v] { return v.launch(); };
  c.output = [v] { return v.output(); };
  c.poison = [v] { return v.poison(); };
  for (const KernelInfo& info : v.infos) add_kernel(c.facts, info);
  c.facts.kernels = v.kernels;  // with the library's products, in the order of launches
  c.facts.bytes = v.bytes;
  c.facts.flop = v.flop;
  c.facts.product = v.product;
  c.facts.note = v.note;
  if (auto graph = v.graph(); graph.ok()) c.facts.graph = [g = *std::move(graph)] { return g.launch(); };
  return c;
}

profiler::ResultCheck check_of(const ExprReference& expected, const ExprError& e) {
  profiler::ResultCheck out;
  out.max_abs = e.max_abs;
  out.max_rel = e.max_rel;
  out.tolerance = e.tolerance;
  out.nans = e.nans;
  out.first_bad = e.first_bad;
  out.checked = expected.checked();
  out.total = 1;
  for (int64_t d : expected.shape) out.total *= d;
  return out;
}

/// Seconds of a run from which on its kernels are not tuned, because each try would take as long.
constexpr double kLongRun = 0.5;

/// The reference of every result, and the error of the unfused variant.
struct Judge {
  ExprReference expected;
  std::optional<ExprError> unfused;
};

Result<std::shared_ptr<Judge>> judge_of(const Expr& expr, const std::vector<VariantPlan>& variants) {
  auto judge = std::make_shared<Judge>();
  KILN_TRY(judge->expected, reference(expr));
  for (const VariantPlan& v : variants) {
    if (v.name != name(ExprVariant::kUnfused) || !v.problem.ok()) continue;
    KILN_TRY(Tensor result, v.output());
    KILN_TRY(judge->unfused, compare(judge->expected, result));
  }
  return judge;
}

/// Where the fused variant has as many kernels as the unfused one, its row says why.
void say_what_was_not_fused(const Expr& expr, std::vector<VariantPlan>& variants) {
  auto find = [&](ExprVariant which) {
    return std::find_if(variants.begin(), variants.end(),
                        [&](const VariantPlan& v) { return v.name == name(which) && v.problem.ok(); });
  };
  const auto unfused = find(ExprVariant::kUnfused), fused = find(ExprVariant::kFused);
  if (unfused == variants.end() || fused == variants.end() || fused->kernels.size() < unfused->kernels.size()) return;
  std::string why = "it is one kernel as it stands";
  if (fused->kernels.size() > 1)
    if (auto p = plan(expr, ExprVariant::kFused); p.ok() && !p->boundaries.empty()) why = p->boundaries[0].cause;
  fused->note += (fused->note.empty() ? "" : "; ") + ("nothing is fused: " + why);
}

/// A row has one line for its problem, and no text with a caret.
Diagnostic with_line(Diagnostic d) {
  if (d.place.line > 0) d.message = fmt::format("line {}: {}", d.place.line, d.message);
  return d;
}

std::string config_text(const ExprGroup& g) {
  std::string text;
  for (const auto& [constant, value] : g.constants) text += fmt::format("{}: {}, ", constant, value);
  return text + tuned_text(g);
}

}  // namespace

Result<std::optional<VariantPlan>> tuned_variant(const VariantPlan& fused, const Device& device,
                                                 const VariantOptions& options) {
  std::optional<VariantPlan> best;
  for (size_t g = 0; g < fused.groups.size(); ++g) {
    std::vector<ExprGroup> configurations = fused.configurations(g);
    if (configurations.empty()) continue;
    configurations.insert(configurations.begin(), fused.groups[g]);
    std::vector<profiler::TuneCandidate> candidates;
    for (const ExprGroup& as : configurations) {
      KILN_TRY(VariantPlan::Launch l, fused.launch_of(g, as));
      candidates.push_back({.config = config_text(as),
                            .kernel = l.kernel,
                            .grid = l.grid,
                            .args = std::move(l.args),
                            .options = l.options});
    }
    profiler::TuneOptions tuning;
    tuning.budget_s = options.tuning_s;
    tuning.should_stop = options.stop;
    tuning.records = options.records;
    // The plan's own launch and source stand for the shapes that they were made for.
    const std::string lines[] = {config_text(fused.groups[g]),
                                 fmt::format("grid {}", fmt::join(fused.groups[g].grid, ", ")), fused.groups[g].source};
    tuning.record_key = profiler::record_key(candidates[0].kernel, device, lines);
    KILN_TRY(profiler::TuneResult result, profiler::tune(device, candidates, tuning));
    if (result.best <= 0) continue;
    KILN_TRY(best, (best ? *best : fused).edited(g, configurations[static_cast<size_t>(result.best)], "fused+tuned"));
    best->note += (best->note.empty() ? "" : "; ") + candidates[static_cast<size_t>(result.best)].config;
  }
  return best;
}

Result<ContenderSet> variant_contenders(const Expr& expr, std::span<const ExprName> names,
                                        const VariantOptions& options) {
  auto say = [&](std::string_view what) {
    if (options.progress) options.progress(what);
  };
  bool is_tuned = false;  // then what the fused variant wrote has been written over
  say("compiling the variants");
  KILN_TRY(std::vector<VariantPlan> all, variants(expr, names));
  for (size_t i = 0; i < all.size(); ++i) {
    if (options.tuning_s <= 0 || all[i].name != name(ExprVariant::kFused) || !all[i].problem.ok()) continue;
    if (!expr.device().is_cuda() && all[i].first_run_s > kLongRun) {
      all[i].note += (all[i].note.empty() ? "" : "; ") +
                     fmt::format("not tuned: each try would take {:.1f} s", all[i].first_run_s);
      break;
    }
    is_tuned = true;
    say(fmt::format("tuning the fused variant, at most {:.0f} s", options.tuning_s));
    auto tuned = tuned_variant(all[i], expr.device(), options);
    if (!tuned.ok()) {
      VariantPlan failed;
      failed.name = "fused+tuned";
      failed.problem = std::move(tuned.error());
      tuned = std::optional<VariantPlan>(std::move(failed));
    }
    if (*tuned) all.insert(all.begin() + static_cast<ptrdiff_t>(i) + 1, **std::move(tuned));
    break;
  }
  for (const ExpressionEdit& e : options.edits) {
    VariantPlan failed;
    failed.name = e.name;
    auto whole = variant(expr, e.variant, names);
    auto edited = whole.ok() ? whole->edited(e.group, e.as, e.name) : std::move(whole);
    if (!edited.ok()) failed.problem = with_line(std::move(edited.error()));
    all.push_back(edited.ok() ? *std::move(edited) : std::move(failed));
  }
  say_what_was_not_fused(expr, all);
  ContenderSet set;
  for (const VariantPlan& v : all) {
    set.contenders.push_back(contender_of(v, expr.device()));
    if (!is_tuned && v.problem.ok()) set.contenders.back().ran_s = v.first_run_s;
  }
  const bool gpu = expr.device().is_cuda();
  for (std::string_view wanted : {name(usual_impl(gpu)), name(ExprVariant::kUnfused)}) {
    auto found =
        std::find_if(all.begin(), all.end(), [&](const VariantPlan& v) { return v.name == wanted && v.problem.ok(); });
    if (found == all.end()) continue;
    set.baseline = static_cast<size_t>(found - all.begin());
    break;
  }
  // Without any of these, the first that can run: the others stand.
  if (!all[set.baseline].problem.ok())
    for (size_t i = all.size(); i-- > 0;)
      if (all[i].problem.ok()) set.baseline = i;
  say("the float64 reference");
  auto judge = judge_of(expr, all);
  if (!judge.ok() && judge.error().kind != ErrorKind::kUnsupported) return std::move(judge.error());
  if (judge.ok()) {
    const auto unfused = std::find_if(all.begin(), all.end(),
                                      [](const VariantPlan& v) { return v.name == name(ExprVariant::kUnfused); });
    const auto own = static_cast<size_t>(unfused - all.begin());
    set.check = [judge = *judge, own](size_t i, const Tensor& result) -> Result<profiler::ResultCheck> {
      const ExprError* allowed = i != own && judge->unfused ? &*judge->unfused : nullptr;
      KILN_TRY(ExprError e, compare(judge->expected, result, allowed));
      return check_of(judge->expected, e);
    };
  }
  return set;
}

Result<std::optional<profiler::Contender>> fused_contender(script::Session& session, const std::string& text) {
  auto expr = session.expression(text);
  // Anything else may still be a launch; running it reports what is wrong with it.
  if (!expr.ok() || !*expr) return std::optional<Contender>();
  KILN_TRY(VariantPlan plan, variant(**expr, ExprVariant::kFused, session.tensor_names()));
  Contender c = contender_of(plan, (*expr)->device());
  c.name = text;
  return std::optional<Contender>(std::move(c));
}

Result<std::optional<ContenderSet>> expression_contenders(
    script::Session& session, const std::string& text,
    const std::map<std::string, std::vector<ExpressionEdit>>& edits) {
  auto expr = session.expression(text);
  const bool name_alone = text.find_first_of(" ()[].+-*/@%<>=&|^~,") == std::string::npos;
  // What fails to evaluate is a statement with a problem: it keeps its row.
  if (!expr.ok() && !name_alone) return std::optional<ContenderSet>();
  if (!expr.ok()) return std::move(expr.error());
  if (!*expr) return std::optional<ContenderSet>();
  VariantOptions options;
  options.records = &script::tune_records(session.interp());
  if (auto known = edits.find(text); known != edits.end()) options.edits = known->second;
  options.stop = session.interrupt_watch();
  options.progress = [&session](std::string_view what) { tell_progress(session, what); };
  auto set = variant_contenders(**expr, session.tensor_names(), options);
  tell_progress(session, "");
  if (!set.ok()) return std::move(set.error());
  return std::optional<ContenderSet>(*std::move(set));
}

}  // namespace kiln::repl
