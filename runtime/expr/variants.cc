// An expression in each way that it can be computed, compiled and bound.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kiln/blas.h"
#include "kiln/check.h"
#include "runtime/device/device.h"
#include "runtime/expr/plan.h"
#include "support/diag.h"

namespace kiln {

namespace runtime {

class PlannedExpr {
 public:
  Device device;
  std::vector<Tensor> leaves;
  Binding binding;
};

}  // namespace runtime

using namespace runtime;

namespace {

bool is_product(const ExprNode* n) { return n->is_pending() && n->node.op == ExprOp::kMatMul; }

bool runs_on(ExprVariant v, const Device& device) {
  const auto impl = product_impl(v);
  return !impl || info(*impl).on_gpu() == device.is_cuda();
}

std::string note_of(const fusion::Plan& plan, const ExprWalk& walk) {
  const bool exact =
      std::ranges::any_of(walk.order, [](const ExprNode* n) { return n->is_pending() && n->node.op == ExprOp::kGelu; });
  for (const fusion::Group& g : plan.groups)
    if (exact && g.kind == fusion::GroupKind::kProduct && g.product.activation == fusion::Activation::kGeluTanh)
      return "gelu_tanh, not erf: differs by up to 4.7e-4";
  return {};
}

/// What a library's product is called in lists of kernels.
std::string product_name(const BoundStep& step) {
  std::string text = std::string(name(*step.product.impl));
  if (step.product.bias) text += "+bias";
  if (step.product.activation != Activation::kNone) text += fmt::format("+{}", name(step.product.activation));
  return text;
}

/// Launches the steps up to that one, and it with its accesses checked. What that cannot do is said in `note`.
Status launch_checked_step(const Binding& binding, size_t guarded, std::string& note) {
  for (size_t i = 0; i < guarded; ++i) KILN_CHECK_OK(binding.steps[i].launch());
  const BoundStep& step = binding.steps[guarded];
  auto looked = launch_checked(step.kernel, step.grid, step.args, step.options);
  if (!looked.ok() && looked.error().kind != ErrorKind::kUnsupported) return std::move(looked.error());
  std::string unchecked;
  if (!looked.ok())
    unchecked = fmt::format("its accesses were not checked: {}", why_unchecked(looked.error()));
  else if (!looked->unchecked.empty())
    unchecked = fmt::format("its access in line {} was not checked: its address comes from no argument",
                            looked->unchecked[0].line);
  if (!unchecked.empty()) note += (note.empty() ? "" : "; ") + unchecked;
  return {};
}

/// Compiles what is not yet, runs it once, and fills in what is known then. `guarded`: a step whose source somebody
/// wrote, and which is launched with its accesses checked before.
Status complete(VariantPlan& v, std::shared_ptr<const PreparedPlan> prepared, std::vector<Tensor> leaves,
                const Device& device, std::optional<size_t> guarded = std::nullopt) {
  auto planned = std::make_shared<PlannedExpr>();
  planned->device = device;
  planned->leaves = std::move(leaves);
  ExprPlan described = describe_plan(prepared->plan);
  v.groups = std::move(described.groups);
  v.bytes = described.bytes;
  v.flop = described.flop;
  KILN_TRY(planned->binding, bind_plan(std::move(prepared), planned->leaves, device, nullptr, {}, true));
  for (const BoundStep& step : planned->binding.steps) {
    if (!step.kernel) {
      v.kernels.push_back(product_name(step));
      const MatmulImplInfo& impl = info(*step.product.impl);
      if (!impl.has('A')) continue;
      KILN_TRY(MatmulPlan chosen, plan_matmul(step.a, step.b, step.product));
      v.note += fmt::format("{}{} of {} algorithms", v.note.empty() ? "" : "; ",
                            impl.has('B') ? fmt::format("number {}, the fastest", chosen.chosen + 1) : "the first",
                            chosen.offered);
      continue;
    }
    KILN_TRY(KernelInfo info, step.kernel.compile(step.args, step.options));
    v.kernels.push_back(info.name);
    v.infos.push_back(std::move(info));
  }
  if (guarded) KILN_CHECK_OK(launch_checked_step(planned->binding, *guarded, v.note));
  const auto start = std::chrono::steady_clock::now();
  KILN_CHECK_OK(planned->binding.launch());
  KILN_CHECK_OK(device.synchronize());
  v.first_run_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  v.planned = std::move(planned);
  return {};
}

}  // namespace

std::string_view name(ExprVariant variant) {
  if (auto impl = product_impl(variant)) return name(*impl);
  return variant == ExprVariant::kUnfused ? "unfused" : "fused";
}

std::optional<ExprVariant> parse_expr_variant(std::string_view text) {
  for (ExprVariant v : kExprVariants)
    if (name(v) == text) return v;
  return std::nullopt;
}

Result<VariantPlan> variant(const Expr& expr, ExprVariant which, std::span<const ExprName> names) {
  if (!expr || !expr.device()) return error(ErrorKind::kValue, "only an expression with a tensor in it has variants");
  if (expr.tensor())
    return with_note(error(ErrorKind::kValue, "there is nothing to compute: this is a tensor already"),
                     "help: give the expression itself, as in gelu(x @ w + b)");
  const Device& device = expr.device();
  const ExprWalk walk(*expr.node());
  VariantPlan v;
  v.name = name(which);
  std::vector<Tensor> leaves;
  KILN_CHECK_OK(check_leaves(walk));
  for (const ExprNode* n : walk.leaves) leaves.push_back(n->value);
  for (const ExprNode* n : walk.order)
    if (is_product(n)) v.product = n->operands[0]->node.dtype;
  if (!runs_on(which, device))
    return error(ErrorKind::kUnsupported, "{} computes nothing on {}", v.name, device.name());
  if (product_impl(which) && !v.product)
    return error(ErrorKind::kUnsupported, "there is no product in it for {}", v.name);
  KILN_TRY(std::shared_ptr<const PreparedPlan> prepared, prepare(walk, device, machine_of(device), which, names));
  v.note = note_of(prepared->plan, walk);
  v.problem = complete(v, std::move(prepared), std::move(leaves), device);
  return v;
}

Result<std::vector<VariantPlan>> variants(const Expr& expr, std::span<const ExprName> names) {
  std::vector<VariantPlan> out;
  for (ExprVariant which : kExprVariants) {
    auto v = variant(expr, which, names);
    if (v.ok()) {
      out.push_back(*std::move(v));
      continue;
    }
    const bool library = product_impl(which).has_value(), none = v.error().kind == ErrorKind::kUnsupported;
    if (v.error().kind == ErrorKind::kValue) return std::move(v.error());
    if (library && none) continue;  // no product, another device, an epilogue that fits nothing here
    VariantPlan failed;
    failed.name = name(which);
    failed.problem = std::move(v.error());
    out.push_back(std::move(failed));
  }
  return out;
}

Status VariantPlan::launch() const {
  if (!planned) return problem.ok() ? Status(error(ErrorKind::kValue, "launch of an empty variant")) : problem;
  return planned->binding.launch();
}

Result<Tensor> VariantPlan::output() const {
  if (!planned) return problem.ok() ? error(ErrorKind::kValue, "output of an empty variant") : problem.error();
  return planned->binding.outputs[0];
}

Status VariantPlan::poison() const {
  KILN_TRY(Tensor t, output());
  for (const Tensor& leaf : planned->leaves)
    if (leaf.storage() == t.storage()) return {};  // a view of what is there: nothing writes it
  return t.fill(is_float(t.dtype()) ? NAN : 77);
}

Result<Graph> VariantPlan::graph() const {
  if (!planned) return problem.ok() ? error(ErrorKind::kValue, "graph of an empty variant") : problem.error();
  return Graph::capture(planned->device, [p = planned] { return p->binding.launch(); });
}

std::vector<ExprGroup> VariantPlan::configurations(size_t group) const {
  std::vector<ExprGroup> out;
  if (!planned || group >= groups.size()) return out;
  for (const fusion::Configuration& c : planned->binding.plan->plan.groups[group].configurations) {
    ExprGroup as = groups[group];
    as.grid = c.grid;
    static_cast<CodeOptions&>(as) = c;
    for (const auto& [constant, value] : c.constants)
      if (auto own = std::ranges::find(as.constants, constant, &std::pair<std::string, int64_t>::first);
          own != as.constants.end())
        own->second = value;
    out.push_back(std::move(as));
  }
  return out;
}

Result<VariantPlan::Launch> VariantPlan::launch_of(size_t group, const ExprGroup& as) const {
  if (!planned || group >= groups.size() || !planned->binding.steps[group].kernel)
    return error(ErrorKind::kValue, "there is no kernel {} to launch", group);
  const BoundStep& step = planned->binding.steps[group];
  Launch out{step.kernel, as.grid, step.args, step.options};
  out.options = launch_options(as, planned->binding.plan->plan.overlaps);
  const auto& arguments = planned->binding.plan->plan.groups[group].arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    for (const auto& [constant, value] : as.constants)
      if (arguments[i].is_constexpr && arguments[i].name == constant) out.args[i] = Arg(value);
  return out;
}

namespace {

bool same_launch(const ExprGroup& a, const ExprGroup& b) {
  return a.source == b.source && a.grid == b.grid && a.constants == b.constants;
}

/// Whether the planner wrote this source and chose this grid for it.
bool is_launch_of_plan(const VariantPlan& v, size_t group, const ExprGroup& as) {
  if (same_launch(as, v.groups[group])) return true;
  return std::ranges::any_of(v.configurations(group), [&](const ExprGroup& c) { return same_launch(as, c); });
}

}  // namespace

Result<VariantPlan> VariantPlan::edited(size_t group, const ExprGroup& as, std::string new_name) const {
  if (!planned || group >= groups.size()) return error(ErrorKind::kValue, "there is no kernel {} to edit", group);
  const fusion::Group& old = planned->binding.plan->plan.groups[group];
  const bool is_own = is_launch_of_plan(*this, group, as);
  if (old.kind != fusion::GroupKind::kKernel)
    return error(ErrorKind::kValue, "'{}' is a library's product: it has no source to edit", old.name);
  auto prepared = std::make_shared<PreparedPlan>(*planned->binding.plan);
  fusion::Group& g = prepared->plan.groups[group];
  KILN_TRY(Kernel kernel, kernel_of(planned->device, as.source, g.kernel));
  std::vector<std::string> want, got;
  for (const fusion::Argument& a : g.arguments) want.push_back(a.name);
  for (const ParamDesc& p : kernel.params()) got.push_back(p.name);
  if (want != got)
    return error(ErrorKind::kType, "the kernel '{}' must keep its parameters ({}), and has ({})", g.kernel,
                 fmt::join(want, ", "), fmt::join(got, ", "));
  for (const auto& [constant, value] : as.constants) {
    auto found = std::ranges::find(g.arguments, constant, &fusion::Argument::name);
    if (found == g.arguments.end() || !found->is_constexpr)
      return error(ErrorKind::kName, "the kernel '{}' has no constexpr '{}'", g.kernel, constant);
    found->value = value;
  }
  g.source = as.source;
  g.grid = as.grid;
  static_cast<CodeOptions&>(g) = as;
  prepared->kernels[group] = kernel;
  VariantPlan out;
  out.name = std::move(new_name);
  out.product = product;
  out.note = note;
  KILN_CHECK_OK(complete(out, std::move(prepared), planned->leaves, planned->device,
                         is_own ? std::nullopt : std::optional<size_t>(group)));
  return out;
}

}  // namespace kiln
