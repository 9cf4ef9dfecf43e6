#include "runtime/expr/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "runtime/device/allocator.h"
#include "runtime/device/device.h"
#include "runtime/device/device_kernels.h"
#include "runtime/expr/host.h"
#include "runtime/expr/scatter.h"
#include "runtime/expr/turns.h"
#include "runtime/jit/at_once.h"
#include "runtime/launch/kernel_launched.h"
#include "support/diag.h"
#include "support/knobs.h"
#include "support/lru.h"
#include "support/trace.h"

namespace kiln::runtime {

namespace {

/// What a device keeps for the expressions on it.
struct PlanCache : Companion {
  explicit PlanCache(DeviceImpl& device) {
    const DeviceInfo info = Device(device.shared_from_this()).info();
    machine.target = info.target;
    machine.multiprocessors = std::max(1, info.compute_units);
    if (info.shared_bytes > 0) machine.shared_bytes = info.shared_bytes;
  }

  fusion::Machine machine;
  std::mutex mutex;  // of what follows
  // A plan holds its kernels, and what is bound to it holds the plan: what is dropped here may still run.
  LruMap<std::shared_ptr<const PreparedPlan>> plans;
  LruMap<Kernel> kernels;
  ExprCacheStats stats;
};
PlanCache& cache_of(const Device& device) {
  auto cache = device.impl()->companion("plans", [](DeviceImpl& d) -> Result<std::unique_ptr<Companion>> {
    return std::unique_ptr<Companion>(std::make_unique<PlanCache>(d));
  });
  KILN_ASSERT(cache.ok(), "{}", cache.error().message);  // it cannot fail
  return static_cast<PlanCache&>(**cache);
}

Activation activation_of(fusion::Activation a) {
  switch (a) {
    case fusion::Activation::kNone:
      return Activation::kNone;
    case fusion::Activation::kRelu:
      return Activation::kRelu;
    case fusion::Activation::kGeluTanh:
      return Activation::kGeluTanh;
  }
  KILN_UNREACHABLE("an activation outside of the enum");
}

Result<Tensor> part(const Tensor& value, const fusion::View& view) {
  return value.as_strided(view.shape, view.strides, value.offset() + view.offset);
}

Arg as_arg(const fusion::Number& number) {
  return std::visit([](auto v) { return Arg(v); }, number);
}

bool is_open_number(const fusion::Argument& a, const ExprWalk* numbers) { return a.scalar >= 0 && numbers; }

Result<Arg> argument(const fusion::Argument& a, Binding& binding, const ExprWalk* numbers) {
  if (is_open_number(a, numbers)) return number_argument(a, numbers);
  return argument_of(a, [&](const fusion::TensorArg& t) -> Result<Arg> {
    const Tensor& value = binding.values[static_cast<size_t>(t.value)];
    if (t.offset == 0) return Arg(&value);
    KILN_TRY(Tensor first, value.as_strided({}, {}, value.offset() + t.offset));
    binding.offsets.push_back(std::move(first));
    return Arg(&std::as_const(binding.offsets.back()));
  });
}

/// Of a plan that is launched for the first time: its kernels, which launches would compile one after the other.
Status compile_kernels(const Binding& binding, const Device& device) {
  std::vector<const BoundStep*> steps;
  for (const BoundStep& s : binding.steps)
    if (s.kernel) steps.push_back(&s);
  // A thread of its own may load no module while a caller's capture forbids it.
  if (steps.size() < 2 || device.impl()->stream_or_current({}).is_capturing()) return {};
  return at_once(steps.size(),
                 [&](size_t i) { return note_launch(steps[i]->kernel, steps[i]->args, steps[i]->options); });
}

Result<BoundStep> bound_product(const fusion::LibraryProduct& p, std::optional<MatmulImpl> impl,
                                const Binding& binding) {
  BoundStep step;
  auto tensor = [&](const fusion::View& v) { return part(binding.values[static_cast<size_t>(v.value)], v); };
  KILN_TRY(step.a, tensor(p.a));
  KILN_TRY(step.b, tensor(p.b));
  KILN_TRY(step.product.out, tensor(p.out));
  step.product.impl = impl;
  step.product.out_dtype = step.product.out.dtype();
  if (p.bias.value >= 0) {
    KILN_TRY(step.product.bias, tensor(p.bias));
  }
  step.product.activation = activation_of(p.activation);
  step.product.tf32 = p.tf32;
  return step;
}

}  // namespace

Arg number_argument(const fusion::Argument& a, const ExprWalk* numbers) {
  if (is_open_number(a, numbers))
    return as_arg(fusion::converted(numbers->order[static_cast<size_t>(a.scalar)]->node.attributes.value, a.dtype));
  KILN_ASSERT(!std::holds_alternative<fusion::TensorArg>(a.value), "a tensor among the numbers");
  return *argument_of(a, [](const fusion::TensorArg&) -> Result<Arg> { return Arg(); });
}

std::optional<MatmulImpl> product_impl(ExprVariant variant) {
  switch (variant) {
    case ExprVariant::kUnfused:
    case ExprVariant::kFused:
      return std::nullopt;
#define KILN_MATMUL_IMPL(ENUM, ...) \
  case ExprVariant::k##ENUM:        \
    return MatmulImpl::k##ENUM;
#include "kiln/matmul_impl.def"
  }
  KILN_UNREACHABLE("a variant outside of the enum");
}
fusion::Variant planner_variant(ExprVariant variant) {
  if (auto impl = product_impl(variant))
    return info(*impl).has_epilogues() ? fusion::Variant::kLibraryEpilogue : fusion::Variant::kLibrary;
  return variant == ExprVariant::kUnfused ? fusion::Variant::kUnfused : fusion::Variant::kFused;
}

const fusion::Machine& machine_of(const Device& device) { return cache_of(device).machine; }

Result<Kernel> kernel_of(const Device& device, const std::string& source, const std::string& name) {
  PlanCache& c = cache_of(device);
  // Held while a source is parsed, no longer: kernels are compiled at their first launch.
  std::lock_guard lock(c.mutex);
  std::string key = name + '\n' + source;
  if (Kernel* found = c.kernels.find(key)) return *found;
  KILN_TRY(Kernel kernel, Kernel::from_source(source, "<" + name + ">", name));
  return c.kernels.add(std::move(key), std::move(kernel), static_cast<size_t>(knob_limit(Knob::kPlanLimit)));
}

Result<std::shared_ptr<const PreparedPlan>> prepare(const ExprWalk& walk, const Device& device,
                                                    const fusion::Machine& machine, ExprVariant variant,
                                                    std::span<const ExprName> names, bool joins_totals) {
  auto prepared = std::make_shared<PreparedPlan>();
  prepared->impl = product_impl(variant);
  for (const ExprNode* n : walk.order) {
    auto leaf = std::find(walk.leaves.begin(), walk.leaves.end(), n);
    prepared->leaf_of_node.push_back(leaf == walk.leaves.end() ? -1 : static_cast<int>(leaf - walk.leaves.begin()));
  }
  fusion::PlanOptions options;
  options.variant = planner_variant(variant);
  options.machine = machine;
  options.exact = knob_on(Knob::kExact);
  options.joins_totals = joins_totals;
  KILN_TRY(prepared->plan, fusion::plan(walk.graph(names), options));
  const fusion::Plan& plan = prepared->plan;
  for (const fusion::Group& g : plan.groups) {
    Kernel kernel;
    if (g.kind == fusion::GroupKind::kKernel) {
      KILN_TRY(kernel, kernel_of(device, g.source, g.kernel));
    }
    prepared->kernels.push_back(std::move(kernel));
  }
  // Temporaries whose lives do not overlap share a slot, which is as large as the largest of them.
  for (const fusion::Value& v : plan.values) {
    if (v.input >= 0 || v.output || v.slot < 0) continue;
    if (prepared->slot_bytes.size() <= static_cast<size_t>(v.slot))
      prepared->slot_bytes.resize(static_cast<size_t>(v.slot) + 1, 0);
    int64_t& bytes = prepared->slot_bytes[static_cast<size_t>(v.slot)];
    bytes = std::max(bytes, v.bytes());
  }
  return std::shared_ptr<const PreparedPlan>(std::move(prepared));
}

Result<std::shared_ptr<const PreparedPlan>> cached_plan(const ExprWalk& walk, const Device& device, ExprVariant variant,
                                                        bool joins_totals) {
  // One for each kind of plan: a walk's own key does not say how it is planned.
  const std::array<char, 2> how = {static_cast<char>(variant),
                                   static_cast<char>((knob_on(Knob::kExact) ? 1 : 0) + (joins_totals ? 2 : 0))};
  thread_local std::string memory;  // that of the keys before
  const std::string_view key = walk.key(memory, {how.data(), how.size()});
  PlanCache& c = cache_of(device);
  trace::Scope step(trace::kSpans, trace::Step::kPlan);
  {
    std::lock_guard lock(c.mutex);
    if (auto* found = c.plans.find(key)) {
      ++c.stats.found;
      return *found;
    }
  }
  std::string own_key(key);
  // Planned without the lock, as it takes milliseconds: two threads that need the same plan at a time both make it.
  KILN_TRY(std::shared_ptr<const PreparedPlan> made, prepare(walk, device, c.machine, variant, {}, joins_totals));
  std::lock_guard lock(c.mutex);
  ++c.stats.planned;
  auto kept = c.plans.add(std::move(own_key), std::move(made), static_cast<size_t>(knob_limit(Knob::kPlanLimit)));
  c.stats.dropped = static_cast<int64_t>(c.plans.dropped());
  return kept;
}

Status check_leaves(const ExprWalk& walk) {
  for (const ExprNode* n : walk.leaves)
    if (n->value.is_freed()) return freed_error("a tensor of the expression");
  return {};
}

Status BoundStep::launch() const {
  if (kernel) return kernel.launch(grid, args, options);
  auto done = matmul(a, b, product);
  return done.ok() ? Status() : Status(std::move(done.error()));
}

namespace {

using Given = std::span<const std::pair<int, Tensor>>;

/// The tensors of a plan's values, of which there are as many as `values` has places.
Status place_values(const PreparedPlan& prepared, std::span<const Tensor> leaves, const Device& device, Given given,
                    bool own_turns, std::span<Tensor> values) {
  std::vector<Tensor> slots;
  slots.reserve(prepared.slot_bytes.size());
  for (int64_t bytes : prepared.slot_bytes) {
    KILN_TRY(Tensor t, Tensor::empty(device, DType::kU8, std::span<const int64_t>(&bytes, 1)));
    slots.push_back(std::move(t));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const fusion::Value& v = prepared.plan.values[i];
    const auto own = std::ranges::find(given, static_cast<int>(i), &std::pair<int, Tensor>::first);
    Tensor& t = values[i];
    KILN_ASSERT(!v.put || own != given.end(), "a put without a tensor to put into");
    if (own != given.end()) {
      t = own->second;
    } else if (v.input >= 0) {
      t = leaves[static_cast<size_t>(prepared.leaf_of_node[static_cast<size_t>(v.input)])];
    } else if (v.zeros) {
      KILN_TRY(t, own_turns ? Tensor::zeros(device, v.dtype, v.shape) : prepared.totals.of_stream(device, i, v.shape));
    } else if (v.turns) {
      KILN_TRY(t, own_turns ? Tensor::zeros(device, v.dtype, v.shape) : turns_of_stream(device));
    } else if (!v.output && v.slot >= 0) {
      KILN_TRY(t, slots[static_cast<size_t>(v.slot)].bits_as(v.dtype, v.shape));
    } else {
      KILN_TRY(t, Tensor::empty(device, v.dtype, v.shape));
    }
  }
  return {};
}

Status place_outputs(Binding& binding) {
  const fusion::Plan& plan = binding.plan->plan;
  binding.outputs.reserve(plan.outputs.size());
  for (const fusion::View& view : plan.outputs) {
    const Tensor& value = binding.values[static_cast<size_t>(view.value)];
    const bool is_put = plan.values[static_cast<size_t>(view.value)].put;
    KILN_TRY(binding.outputs.emplace_back(), is_put ? Result<Tensor>(value) : part(value, view));
  }
  return {};
}

/// A binding whose arguments point to its values already: gives it other tensors, and the numbers of an expression.
Status bind_again(Binding& binding, std::shared_ptr<const PreparedPlan> prepared, std::span<const Tensor> leaves,
                  const Device& device, const ExprWalk& numbers, Given given) {
  trace::Scope span(trace::kSpans, trace::Step::kBind);
  KILN_CHECK_OK(place_values(*prepared, leaves, device, given, /*own_turns=*/false, binding.values));
  binding.plan = std::move(prepared);
  const std::vector<fusion::Group>& groups = binding.plan->plan.groups;
  size_t offset = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].arguments.size(); ++i) {
      const fusion::Argument& a = groups[g].arguments[i];
      if (is_open_number(a, &numbers)) {
        binding.steps[g].args[i] = number_argument(a, &numbers);
      } else if (const auto* t = std::get_if<fusion::TensorArg>(&a.value); t && t->offset != 0) {
        const Tensor& value = binding.values[static_cast<size_t>(t->value)];
        KILN_TRY(binding.offsets[offset], value.as_strided({}, {}, value.offset() + t->offset));
        ++offset;
      }
    }
  return place_outputs(binding);
}

}  // namespace

SpareBinding::~SpareBinding() { delete spare_.load(); }

std::unique_ptr<Binding> SpareBinding::take() const { return std::unique_ptr<Binding>(spare_.exchange(nullptr)); }

void SpareBinding::give(std::unique_ptr<Binding> binding) const {
  // A product's step has tensors of its own, which no value's place stands for.
  if (std::ranges::any_of(binding->steps, [](const BoundStep& s) { return !s.kernel; })) return;
  for (Tensor& t : binding->values) t = {};
  for (Tensor& t : binding->offsets) t = {};
  binding->outputs.clear();
  binding->plan.reset();  // which holds this
  const std::unique_ptr<Binding> other(spare_.exchange(binding.release()));
}

Result<Binding> bind_plan(std::shared_ptr<const PreparedPlan> prepared, std::span<const Tensor> leaves,
                          const Device& device, const ExprWalk* numbers, Given given, bool own_turns) {
  trace::Scope span(trace::kSpans, trace::Step::kBind);
  std::vector<Tensor> values(prepared->plan.values.size());
  KILN_CHECK_OK(place_values(*prepared, leaves, device, given, own_turns, values));
  return bind_values(std::move(prepared), std::move(values), numbers);
}

Result<Binding> bind_values(std::shared_ptr<const PreparedPlan> prepared, std::vector<Tensor> values,
                            const ExprWalk* numbers) {
  Binding out;
  out.plan = std::move(prepared);
  out.values = std::move(values);
  const fusion::Plan& plan = out.plan->plan;
  size_t offsets = 0;
  for (const fusion::Group& g : plan.groups)
    for (const fusion::Argument& a : g.arguments)
      if (auto* t = std::get_if<fusion::TensorArg>(&a.value)) offsets += t->offset != 0;
  out.offsets.reserve(offsets);  // arguments point into it
  out.steps.reserve(plan.groups.size());
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const fusion::Group& g = plan.groups[i];
    BoundStep step;
    if (g.kind == fusion::GroupKind::kProduct) {
      KILN_TRY(step, bound_product(g.product, out.plan->impl, out));
    } else {
      step.kernel = out.plan->kernels[i];
      step.grid = g.grid;
      step.options = launch_options(g, plan.overlaps || plan.begins_early);
      step.args.reserve(g.arguments.size());
      for (const fusion::Argument& a : g.arguments) {
        KILN_TRY(Arg arg, argument(a, out, numbers));
        step.args.emplace_back(std::move(arg));
      }
    }
    out.steps.push_back(std::move(step));
  }
  KILN_CHECK_OK(place_outputs(out));
  return out;
}

std::vector<Tensor> leaf_tensors(const ExprWalk& walk) {
  std::vector<Tensor> leaves;
  leaves.reserve(walk.leaves.size());
  for (const ExprNode* n : walk.leaves) leaves.push_back(n->value);
  return leaves;
}

bool is_plain_conversion(const ExprNode& n) {
  // What was computed has let go of its operands.
  if (n.node.op != ExprOp::kCast || n.operands.empty() || !n.operands[0]->value) return false;
  const Tensor& from = n.operands[0]->value;
  if (from.dtype() == n.node.dtype) return from.is_contiguous();
  return !n.device.is_cuda() ||
         (has_convert_kernel(n.node.dtype) && from.numel() * size_of(from.dtype()) >= kDeviceKernelBytes);
}

Status launch_together(std::span<ExprNode* const> roots, const Device& device, ExprVariant variant,
                       const ExprWalk& walk, std::span<const Tensor> homes) {
  KILN_TRY(auto prepared, cached_plan(walk, device, variant));
  const std::vector<Tensor> leaves = leaf_tensors(walk);
  std::vector<std::pair<int, Tensor>> given;
  for (size_t i = 0; i < homes.size(); ++i) {
    const int value = homes[i] ? value_in_place(*prepared, leaves, i, homes[i]) : -1;
    if (value >= 0) given.emplace_back(value, homes[i]);
  }
  std::unique_ptr<Binding> binding = prepared->spare.take();
  if (binding) {
    KILN_CHECK_OK(bind_again(*binding, prepared, leaves, device, walk, given));
  } else {
    KILN_TRY(Binding made, bind_plan(prepared, leaves, device, &walk, given));
    binding = std::make_unique<Binding>(std::move(made));
  }
  if (!prepared->are_compiled->exchange(true)) KILN_CHECK_OK(compile_kernels(*binding, device));
  KILN_CHECK_OK(binding->launch());
  for (const ExprNode* n : walk.order) n->was_part = true;
  for (size_t i = 0; i < roots.size(); ++i) roots[i]->set_value(std::move(binding->outputs[i]));
  prepared->spare.give(std::move(binding));
  return {};
}

bool sees_alone(const ExprNode& view) { return view.node.op == ExprOp::kPermute && view.operands[0].use_count() == 1; }

Roots roots_of(std::span<const Expr> exprs) {
  Roots roots;
  for (const Expr& e : exprs) {
    ExprNode* n = e.node();
    bool any_order = false;
    // Of a view, its base is what has to be computed; run() takes the view of that.
    while (n->is_pending() && info(n->node.op).kind == ExprKind::kView) {
      any_order = sees_alone(*n);
      n = n->operands[0].get();
    }
    if (!n->is_pending() || n->node.op == ExprOp::kFull || is_plain_conversion(*n) ||
        std::ranges::find(roots.nodes, n) != roots.nodes.end())
      continue;
    roots.nodes.push_back(n);
    roots.any_order.push_back(any_order);
  }
  return roots;
}

/// Gives values to what has no elements, and to what is made of that, as sums of nothing are: kernels compute the rest.
/// Whether there was any below the roots.
Result<bool> compute_of_nothing(const ExprWalk& walk) {
  auto is_empty = [](const std::shared_ptr<ExprNode>& n) { return fusion::numel(n->node.shape) == 0; };
  std::vector<std::shared_ptr<ExprNode>> empty, of_nothing;
  for (const ExprNode* n : walk.order)
    for (const std::shared_ptr<ExprNode>& operand : n->operands) {
      if (!operand->is_pending()) continue;
      if (is_empty(operand))
        empty.push_back(operand);
      else if (std::ranges::any_of(operand->operands, is_empty))
        of_nothing.push_back(operand);
    }
  for (const auto& n : empty) {
    if (!n->is_pending()) continue;
    KILN_TRY(Tensor value, Tensor::empty(n->device, n->node.dtype, n->node.shape));
    n->set_value(std::move(value));
  }
  for (const auto& n : of_nothing) KILN_CHECK_OK(run_on_host(Expr(n)));
  return !empty.empty() || !of_nothing.empty();
}

}  // namespace kiln::runtime

namespace kiln {

using namespace runtime;

ExprCacheStats expr_cache_stats(const Device& device) {
  if (!device) return {};
  PlanCache& c = cache_of(device);
  std::lock_guard lock(c.mutex);
  return c.stats;
}

Status run_together(std::span<const Expr> exprs, ExprVariant variant) {
  for (const Expr& e : exprs)
    if (!e || e.is_scalar()) return error(ErrorKind::kValue, "only an expression with a tensor in it can be run");
  KILN_CHECK_OK(run_scatters(exprs, variant));
  const auto [roots, any_order] = roots_of(exprs);
  if (roots.size() > 1) {
    ExprWalk walk(std::span<const ExprNode* const>(roots.data(), roots.size()), any_order);
    KILN_CHECK_OK(check_leaves(walk));
    auto is_empty = [](const ExprNode* each) { return fusion::numel(each->node.shape) == 0; };
    if (std::ranges::none_of(walk.order, is_empty))
      KILN_CHECK_OK(launch_together(roots, roots[0]->device, variant, walk));
  }
  // What was launched above has its value. This adds views, fills, conversions and what has no elements.
  for (const Expr& e : exprs) KILN_CHECK_OK(run(e, variant));
  return {};
}

namespace {

/// `any_order`: of the result's elements in memory (fusion::Graph::any_order).
Result<Tensor> run_in_order(const Expr& expr, ExprVariant variant, bool any_order) {
  if (!expr || expr.is_scalar()) return error(ErrorKind::kValue, "only an expression with a tensor in it can be run");
  ExprNode& n = *expr.node();
  if (n.node.op == ExprOp::kPut) return error(ErrorKind::kValue, "a put is run by run_put(), into a tensor");
  if (n.value) return n.value;
  if (n.node.op == ExprOp::kFull) return fill(n);
  if (is_plain_conversion(n)) {
    KILN_TRY(Tensor converted, n.operands[0]->value.to(n.node.dtype));
    n.set_value(converted);
    return converted;
  }
  if (info(n.node.op).kind == ExprKind::kView) {
    // What it is a view of is computed as such, so that both share their memory.
    const bool base_in_any = sees_alone(n);
    KILN_TRY(Tensor base, run_in_order(Expr(n.operands[0]), variant, base_in_any));
    if (auto viewed = view_of(base, n.node)) {
      n.set_value(*viewed);
      return *viewed;
    }
  }
  trace::Scope span(trace::kSpans, trace::Step::kOperation, info(n.node.op).name);
  if (trace::Event* event = span.event(); event && trace::on(trace::kShapes))
    event->detail = fmt::format("{}[{}]", name(n.node.dtype), fmt::join(n.node.shape, ", "));
  const ExprNode* const root = &n;
  ExprWalk walk(std::span(&root, 1), {any_order});
  KILN_CHECK_OK(check_leaves(walk));
  if (has_scatters(walk)) {
    KILN_CHECK_OK(run_scatters({&expr, 1}, variant));
    // The scatters have values by now: the next walk ends at them.
    return run_in_order(expr, variant, any_order);
  }
  const bool empty =
      std::ranges::any_of(walk.order, [](const ExprNode* each) { return fusion::numel(each->node.shape) == 0; });
  if (empty && fusion::numel(n.node.shape) == 0) {  // nothing to compute
    KILN_TRY(Tensor result, Tensor::empty(n.device, n.node.dtype, n.node.shape));
    n.set_value(std::move(result));
  } else if (empty) {  // sums of nothing
    KILN_TRY(const bool found, compute_of_nothing(walk));
    if (found) return run_in_order(expr, variant, any_order);  // the next walk ends at what has values by now
    KILN_TRY(HostArray values, evaluate(n));
    KILN_TRY(Tensor result, host_tensor(n.device, n.node.dtype, values));
    n.set_value(std::move(result));
  } else {
    ExprNode* to_compute = &n;
    KILN_CHECK_OK(launch_together({&to_compute, 1}, n.device, variant, walk));
  }
  return n.value;
}

}  // namespace

Result<Tensor> run(const Expr& expr, ExprVariant variant) { return run_in_order(expr, variant, /*any_order=*/false); }

Result<ExprWalk> runtime::walk_of(std::span<const Expr> exprs) {
  for (const Expr& e : exprs)
    if (!e || !e.device()) return error(ErrorKind::kValue, "only an expression with a tensor in it has a plan");
  if (exprs.size() == 1) return ExprWalk(*exprs[0].node());
  const auto [roots, any_order] = roots_of(exprs);
  if (roots.empty()) return error(ErrorKind::kValue, "none of the tensors is left to compute");
  return ExprWalk(std::span<const ExprNode* const>(roots.data(), roots.size()), any_order);
}

Result<ExprPlan> plan(const Expr& expr, ExprVariant variant, std::span<const ExprName> names) {
  return plan_together(std::span(&expr, 1), variant, names);
}

Result<ExprPlan> plan_together(std::span<const Expr> exprs, ExprVariant variant, std::span<const ExprName> names) {
  KILN_TRY(const ExprWalk walk, walk_of(exprs));
  KILN_CHECK_OK(check_leaves(walk));
  const Device& device = exprs[0].device();
  KILN_TRY(auto prepared, prepare(walk, device, machine_of(device), variant, names));
  return describe_plan(prepared->plan);
}

LaunchOptions runtime::launch_options(const CodeOptions& own, bool overlaps) {
  LaunchOptions options{own};
  options.launch_pdl |= overlaps;  // an edit may ask for it, too
  return options;
}

ExprPlan runtime::describe_plan(const fusion::Plan& p) {
  ExprPlan out;
  for (const fusion::Group& g : p.groups) {
    ExprGroup group{g, g.name, g.source, g.kernel, g.bytes, g.flop, g.grid, {}};
    for (const fusion::Argument& a : g.arguments)
      if (const auto* v = std::get_if<int64_t>(&a.value); v && a.is_constexpr) group.constants.emplace_back(a.name, *v);
    out.groups.push_back(std::move(group));
  }
  auto group_name = [&](int i) { return i >= 0 ? p.groups[static_cast<size_t>(i)].name : std::string(); };
  for (const fusion::Boundary& b : p.boundaries)
    out.boundaries.push_back({group_name(b.from_group), group_name(b.to_group), b.bytes, b.cause, b.help});
  out.text = plan_text(p);
  out.svg = plan_svg(p);
  out.script = plan_script(p);
  out.bytes = p.bytes();
  out.flop = p.flop();
  return out;
}

}  // namespace kiln
