#include "repl/modules/torch/tensor_grad.h"

#include <algorithm>

#include "repl/modules/torch/tensor_sort.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

Expr in_shape(Interp& in, const Expr& x, Shape shape) {
  ExprAttributes a;
  a.shape = std::move(shape);
  return applied(in, ExprOp::kReshape, {x}, std::move(a));
}
Expr in_dtype_of(Interp& in, const Expr& x, const Expr& like) { return in_dtype(in, x, like.dtype()); }
Shape shape_of_expr(const Expr& x) { return {x.shape().begin(), x.shape().end()}; }

/// For each element of `to`, the element of `values` that is put there, and whether there is one.
Expr chosen(Interp& in, const Expr& to, const Expr& values, const Expr& table, const Expr& otherwise) {
  ExprAttributes take;
  take.axes = {0};
  take.any_outside = true;
  const Expr flat = in_shape(in, in_dtype_of(in, values, to), {values.numel()});
  const Expr found = applied(in, ExprOp::kTake, {flat, table}, std::move(take));
  const Expr there = applied(in, ExprOp::kGe, {table, Expr::scalar(int64_t{0})});
  return applied(in, ExprOp::kWhere, {there, found, otherwise});
}

}  // namespace

Expr with_put(Interp& in, const Expr& to, const Tensor& places, const Expr& values) {
  const int64_t n = places.numel(), size = to.numel();
  if (n == 0) return to;
  Tensor table;
  if (to.device().is_cuda()) {
    table = taken(in, Tensor::full(to.device(), DType::kI64, Shape{size}, -1));
    const Tensor numbers = taken(in, run(Expr::iota(to.device(), n, DType::kI64)));
    const Value arguments[] = {wrap(table), Value::integer(0), wrap(places), wrap(numbers), Value::str("amax")};
    by_kernels(in, "torch._put", "along", arguments);
  } else {
    std::vector<int64_t> from(static_cast<size_t>(size), -1);
    const std::vector<int64_t> at = load_ints(in, places, {n});
    for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(at[i])] = static_cast<int64_t>(i);
    table = store_ints(in, to.device(), DType::kI64, {size}, from);
  }
  return in_shape(in, chosen(in, to, values, Expr(table), in_shape(in, to, {size})), shape_of_expr(to));
}

Expr with_added(Interp& in, const Expr& to, const Tensor& places, const Expr& values) {
  const int64_t n = places.numel();
  if (n == 0) return to;
  const Expr table(places);
  ExprAttributes added;
  added.axes = {0};
  added.shape = {to.numel()};
  const Expr flat = in_shape(in, in_dtype_of(in, values, to), {n});
  const Expr sums = in_shape(in, applied(in, ExprOp::kScatterAdd, {flat, table}, std::move(added)), shape_of_expr(to));
  return applied(in, ExprOp::kAdd, {to, sums});
}

Expr with_part(Interp& in, const Expr& to, const Shape& starts, const Shape& steps, const Expr& values) {
  const Shape whole = shape_of_expr(to), part = shape_of_expr(values);
  if (values.numel() == 0) return to;
  std::vector<Expr> operands = {in_dtype_of(in, values, to)};
  ExprAttributes take;
  take.any_outside = true;
  Expr inside;
  auto require = [&](const Expr& test) { inside = inside ? applied(in, ExprOp::kLogicalAnd, {inside, test}) : test; };
  for (size_t d = 0; d < whole.size(); ++d) {
    if (part[d] == whole[d]) continue;
    const Expr zero = Expr::scalar(int64_t{0}), step = Expr::scalar(steps[d]);
    Shape along(whole.size(), 1);
    along[d] = whole[d];
    Expr at = in_shape(in, Expr::iota(to.device(), whole[d], DType::kI64), along);
    at = applied(in, ExprOp::kSub, {at, Expr::scalar(starts[d])});
    if (steps[d] > 1) {
      require(applied(in, ExprOp::kEq, {applied(in, ExprOp::kMod, {at, step}), zero}));
      at = applied(in, ExprOp::kFloorDiv, {at, step});
    }
    require(applied(in, ExprOp::kGe, {at, zero}));
    require(applied(in, ExprOp::kLt, {at, Expr::scalar(part[d])}));
    take.axes.push_back(static_cast<int>(d));
    operands.push_back(at);
  }
  if (!inside) return operands[0];
  const Expr found = taken(in, apply(ExprOp::kTake, operands, std::move(take)));
  return applied(in, ExprOp::kWhere, {inside, found, to});
}

namespace {

TensorObject& only_tensor(Interp& in, const Value& v) {
  auto* t = v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "only tensors have gradients, not '{}'", in.type_name(v));
  return *t;
}

class GradScopeObject : public Object {
 public:
  static inline const KindOf<GradScopeObject> kKind{"torch.func.scope"};
  explicit GradScopeObject(TorchState& state) : Object(kKind), scope(std::make_unique<GradScope>()), state_(state) {
    ++state_.gradient_scopes;
  }
  ~GradScopeObject() override { end(); }
  void end() {
    if (scope) --state_.gradient_scopes;
    scope = nullptr;
  }
  std::string repr(Interp&) override { return "<scope of gradients>"; }
  std::unique_ptr<GradScope> scope;

 private:
  TorchState& state_;
};

Value grad_scope(Interp& in, NativeArgs&) { return make<GradScopeObject>(torch_state(in)); }
Value end_scope(Interp&, NativeArgs& a) {
  a.self->get<GradScopeObject>()->end();
  return Value::none();
}
Value variable(Interp& in, NativeArgs& a) {
  TensorObject& t = only_tensor(in, a[0]);
  const GradScope* scope = a.self->get<GradScopeObject>()->scope.get();
  if (!scope) in.fail(ErrorKind::kValue, "the scope of gradients has ended");
  return make<TensorObject>(in, taken(in, scope->variable(t.expr())));
}

std::vector<Expr> exprs_of(Interp& in, const Value& tensors) {
  std::vector<Expr> out;
  for (const Value& v : in.to_vector(tensors)) out.push_back(only_tensor(in, v).expr());
  return out;
}

/// A gradient has memory of its own, which no seed or input shares.
Expr with_own_memory(Interp& in, const Expr& e) {
  if (!e.tensor() && !e.is_view()) return e;
  ExprAttributes same;
  same.dtype = e.dtype();
  return applied(in, ExprOp::kCast, {e}, std::move(same));
}

/// While it lives, nothing is recorded where `on`.
class Pause {
 public:
  Pause(Tape& tape, bool on) : tape_(tape), before_(tape.is_paused) { tape_.is_paused = on || before_; }
  ~Pause() { tape_.is_paused = before_; }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  Tape& tape_;
  bool before_;
};

/// A tensor for each input, or None where the values do not depend on it. `constant`: without gradients of their own.
Value gradients_found(Interp& in, NativeArgs& a, bool constant) {
  const std::vector<Expr> values = exprs_of(in, a[0]), seeds = exprs_of(in, a[1]), inputs = exprs_of(in, a[2]);
  torch_state(in).tape->expects_gradients = true;
  const Pause pause(*torch_state(in).tape, constant);
  const bool always_lazy = torch_state(in).always_lazy;
  auto is_small = [&](const Expr& e) { return !always_lazy && !e.has_elements(kLazyElements); };
  auto on_host = [](const Expr& e) -> Status {
    auto done = run_on_host(e);
    return done.ok() ? Status() : Status(std::move(done.error()));
  };
  // As each operation of small tensors is computed at once, but on a GPU, and a long chain from time to time.
  auto settle_small = [&](const Expr& e) -> Status {
    return e.tensor() || e.device().is_cuda() || !is_small(e) ? Status() : on_host(e);
  };
  int calls = 0;
  auto settle = [&](const Expr& gradient, const std::function<std::vector<Expr>()>& all) -> Status {
    constexpr int kBetweenLooks = 32;
    in.check_interrupt();
    KILN_CHECK_OK(settle_small(gradient));
    if (always_lazy || ++calls % kBetweenLooks != 0 || !gradient.has_operations(kMostGradientOperations)) return {};
    return is_small(gradient) ? on_host(gradient) : run_together(all());
  };
  std::vector<Value> out;
  for (const Expr& e : taken(in, gradients(values, seeds, inputs, settle, constant))) {
    if (!e) {
      out.push_back(Value::none());
      continue;
    }
    const Expr own = with_own_memory(in, torch_state(in).no_grad() ? detached(e) : e);
    checked(in, settle_small(own));
    out.push_back(own.tensor() && !own.records() ? wrap(*own.tensor()) : Value(make<TensorObject>(in, own)));
  }
  return make<Tuple>(std::move(out));
}

Value gradients_of_scope(Interp& in, NativeArgs& a) { return gradients_found(in, a, false); }
Value gradients_of_tape(Interp& in, NativeArgs& a) { return gradients_found(in, a, in.truth(a[3])); }

/// compute(*tensors): in one plan, with what their gradients will read.
Value compute(Interp& in, NativeArgs& a) {
  std::vector<Expr> pending;
  for (const Expr& e : exprs_of(in, a[0]))
    if (!e.tensor()) pending.push_back(e);
  if (!pending.empty()) checked(in, run_and_keep(pending, torch_state(in).expects_gradients()));
  for (const Value& v : rest_of(a[0])) v.get<TensorObject>()->settle_if_known();
  return Value::none();
}

/// siblings(*tensors): of one call.
Value make_siblings(Interp& in, NativeArgs& a) {
  std::vector<TensorObject*> results;
  for (const Value& v : rest_of(a[0])) results.push_back(&only_tensor(in, v));
  TensorObject::make_siblings(results);
  return Value::none();
}

Value count_scopes_of(Interp& in, NativeArgs& a) { return Value::integer(count_scopes(exprs_of(in, a[0]))); }

/// with_gradient(value, operands, rule): rule(gradient, *operands) gives a tuple of a tensor, or None, for each
/// operand.
Value with_gradient_of(Interp& in, NativeArgs& a) {
  TensorObject& value = only_tensor(in, a[0]);
  const std::vector<Expr> operands = exprs_of(in, a[1]);
  auto rule = [&in, call = a[2]](const Expr& gradient, std::span<const Expr> of) -> Result<std::vector<Expr>> {
    CallArgs args;
    args.args.push_back(make<TensorObject>(in, gradient));
    for (const Expr& e : of) args.args.push_back(make<TensorObject>(in, e));
    std::vector<Expr> found;
    for (const Value& v : in.to_vector(in.call(call, args))) {
      auto* t = v.get<TensorObject>();
      found.push_back(t ? t->expr() : Expr());
    }
    return found;
  };
  return make<TensorObject>(in, taken(in, with_gradient(value.tensor(in), operands, std::move(rule))));
}

Value records(Interp&, NativeArgs& a) {
  for (const Value& v : rest_of(a[0]))
    if (auto* t = v.get<TensorObject>(); t && t->records()) return Value::boolean(true);
  return Value::boolean(false);
}

/// no_grad(on): what it was before.
Value set_no_grad(Interp& in, NativeArgs& a) {
  TorchState& state = torch_state(in);
  const bool on = in.truth(a[0]);
  // A leaf that records has its elements.
  if (!on && state.no_grad()) state.pending()->store_leaves(in);
  return Value::boolean(std::exchange(state.tape->is_paused, on));
}
Value is_no_grad(Interp& in, NativeArgs&) { return Value::boolean(torch_state(in).no_grad()); }

Value record(Interp& in, NativeArgs& a) {
  only_tensor(in, a[0]).record(in);
  torch_state(in).tape->expects_gradients = true;
  return Value::none();
}

Value expects_gradients(Interp& in, NativeArgs&) { return Value::boolean(torch_state(in).expects_gradients()); }

/// hook(tensor, rule): rule(gradient) gives the gradient that what the tensor is made of gets.
Value hook(Interp& in, NativeArgs& a) {
  TensorObject& t = only_tensor(in, a[0]);
  auto rule = [&in, call = a[1]](const Expr& gradient, std::span<const Expr>) -> Result<std::vector<Expr>> {
    CallArgs args;
    args.args.push_back(make<TensorObject>(in, gradient));
    const Value changed = in.call(call, args);
    return std::vector<Expr>{only_tensor(in, changed).expr()};
  };
  const Tensor& elements = t.tensor(in);
  const Expr made_of[] = {t.expr()};
  t.pass_gradient_to(taken(in, with_gradient(elements, made_of, std::move(rule))));
  return Value::none();
}

Value retain(Interp& in, NativeArgs& a) {
  only_tensor(in, a[0]).retain_grad(in);
  return Value::none();
}

/// leaves(*values): the tensors whose gradients backward() keeps.
Value leaves(Interp& in, NativeArgs& a) {
  const Tape& tape = *torch_state(in).tape;
  std::vector<Value> found;
  for (const Expr& v : variables_of(exprs_of(in, a[0]))) {
    const Tape::Leaf leaf = tape.leaf_of(v);
    if (leaf.was_changed)
      in.fail_as_type("RuntimeError",
                      "one of the variables needed for gradient computation has been modified by an inplace operation: "
                      "a tensor of " +
                          leaf.tensor->summary(),
                      "help: ask for gradients before the change, or compute their value again");
    if (leaf.tensor) found.emplace_back(leaf.tensor);
  }
  for (TensorObject* t : tape.retained()) found.emplace_back(t);
  return make<Tuple>(std::move(found));
}

Value release_of(Interp& in, NativeArgs& a) {
  release(exprs_of(in, a[0]));
  return Value::none();
}

constexpr NativeDef kGradMethods[] = {
    {"end()", end_scope, "nothing is recorded any more"},
    {"gradients(values, seeds, inputs)", gradients_of_scope, "of the sum of the values by seeds, to each input"},
    {"variable(tensor)", variable, "the same elements, as what gradients may be asked of"},
};
constexpr NativeDef kGradFunctions[] = {
    {"GradScope()", grad_scope, "while it lives, what is made of its variables is recorded"},
    {"compute(*tensors)", compute, "computes what is pending in one plan, with what gradients will read again"},
    {"siblings(*tensors)", make_siblings, "all results of one call: dropped unread, they are computed if all are"},
    {"count_scopes(*tensors)", count_scopes_of, "how many gradients, each of the one before, may be asked of these"},
    {"expects_gradients()", expects_gradients, "does the session keep what gradients will read again?"},
    {"gradients(values, seeds, inputs, constant)", gradients_of_tape, "as a scope's; constant: without their own"},
    {"hook(tensor, rule)", hook, "rule(gradient) is the gradient of what the tensor is made of"},
    {"is_no_grad()", is_no_grad, "are results constants for gradients?"},
    {"leaves(*values)", leaves, "the tensors whose gradients backward() of the values keeps"},
    {"record(tensor)", record, "makes it a leaf: what is made of it has a gradient"},
    {"records(*tensors)", records, "has one of them a gradient?"},
    {"release(*values)", release_of, "their gradients are asked for no more"},
    {"retain(tensor)", retain, "backward() keeps its gradient too"},
    {"with_gradient(value, operands, rule)", with_gradient_of, "a tensor whose gradient is rule(gradient, *operands)"},
    {"set_no_grad(on)", set_no_grad, "makes results constants for gradients, or not; what it was before"},
};

}  // namespace

void TensorObject::pass_gradient_to(const Expr& with) {
  held_ = with.hold();
  history_ = with;
}

std::span<const NativeDef> grad_functions() { return kGradFunctions; }
void install_grad(Interp& in) { in.add_methods({GradScopeObject::kKind, kGradMethods}); }

}  // namespace kiln::script
