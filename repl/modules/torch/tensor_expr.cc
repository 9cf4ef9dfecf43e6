// Operations on tensors as expressions, and when they are computed.
#include <algorithm>
#include <cmath>
#include <limits>

#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;

namespace {

/// The tensors' device: that of those with dimensions. A 0-d tensor of another one is brought there.
void gather_on_one_device(Interp& in, std::span<const Value> values, std::vector<Expr>& operands) {
  Device device;
  for (const Value& v : values)
    if (auto* t = v.get<TensorObject>(); t && (!device || t->rank() > 0)) {
      device = t->device();
      if (t->rank() > 0) break;
    }
  for (size_t i = 0; i < values.size(); ++i)
    if (auto* t = values[i].get<TensorObject>(); t && t->rank() == 0 && !(t->device() == device))
      operands[i] = Expr(taken(in, t->constant(in, "a copy to another device").to(device)));
}

}  // namespace

bool is_operand(const Value& v) { return v.get<TensorObject>() || v.is_float() || v.is_bool() || v.is_small_int(); }

std::optional<Expr> operand_of(const Value& v) {
  if (auto* t = v.get<TensorObject>()) return t->expr();
  if (v.is_float()) return Expr::scalar(v.real());
  if (v.is_bool()) return Expr::scalar(v.boolean());
  if (v.is_small_int()) return Expr::scalar(v.integer());
  return std::nullopt;
}

Expr applied(Interp& in, ExprOp op, std::initializer_list<Expr> operands, ExprAttributes attributes) {
  return taken(in, apply(op, operands, std::move(attributes)));
}
Expr in_dtype(Interp& in, const Expr& x, DType dtype) {
  ExprAttributes attributes;
  attributes.dtype = dtype;
  return x.dtype() == dtype ? x : applied(in, ExprOp::kCast, {x}, std::move(attributes));
}

bool is_for_host(Interp& in, const Expr& expr) {
  // Its own elements say it without a look at all that takes part, mostly.
  return !torch_state(in).always_lazy && expr.numel() < kLazyElements && !expr.has_elements(kLazyElements);
}

Value settled(Interp& in, const Expr& made) {
  const Expr expr = torch_state(in).no_grad() ? detached(made) : made;
  auto value = [&](const Tensor& t) { return expr.records() ? Value(make<TensorObject>(in, expr)) : wrap(t); };
  if (const Tensor* t = expr.tensor()) return value(*t);
  if (is_for_host(in, expr) && !expr.device().is_cuda()) return value(taken(in, run_on_host(expr)));
  auto t = make<TensorObject>(in, expr);
  // Gradients were made at once, however many operations they are; what comes after them counts.
  const bool keeps = expr.records() && torch_state(in).expects_gradients();
  const int most = keeps ? kMostRecordedOperations : kMostPendingOperations;
  if (expr.has_operations(most + expr.gradient_operations())) t->tensor(in);
  return t;
}

Value filled_tensor(Interp& in, const Device& device, DType dtype, Shape shape, FillValue value) {
  double bytes = size_of(dtype);
  for (int64_t d : shape) bytes *= static_cast<double>(d);
  constexpr double kMostWaiting = 0x1p40;  // of more it is said at once that no memory holds it
  if ((!device.is_cuda() && !torch_state(in).always_lazy) || bytes <= 0 || bytes > kMostWaiting)
    return wrap(taken(in, Tensor::full(device, dtype, shape, value)));
  if (value.is_integer) return settled(in, Expr::full(device, std::move(shape), value.integer, dtype));
  return settled(in, Expr::full(device, std::move(shape), value.real, dtype));
}

Value detached_value(Interp& in, TensorObject& t) {
  // Another tensor over the same memory, whose own shape and flags can change.
  if (!t.records()) return t.is_pending() ? Value(&t) : wrap(t.tensor(in));
  const Expr constant = detached(t.expr());
  if (const Tensor* known = constant.tensor()) return wrap(*known);
  return make<TensorObject>(in, constant);
}

Value constant_if_paused(Interp& in, const Value& v) {
  auto* t = v.get<TensorObject>();
  return t && torch_state(in).no_grad() && t->records() ? detached_value(in, *t) : v;
}

namespace {

/// With another dimension of size 1.
Expr unsqueezed(Interp& in, const Expr& x, size_t at) {
  ExprAttributes to;
  to.shape.assign(x.shape().begin(), x.shape().end());
  to.shape.insert(to.shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
  return applied(in, ExprOp::kReshape, {x}, std::move(to));
}

/// No library multiplies matrices of integers: each element of the result is a sum of products.
Expr integer_product(Interp& in, Expr a, Expr b) {
  const size_t a_rank = a.shape().size(), b_rank = b.shape().size();
  const DType dtype = a.dtype();
  if (a_rank == 1) a = unsqueezed(in, a, 0);
  if (b_rank == 1) b = unsqueezed(in, b, 1);
  a = unsqueezed(in, a, a.shape().size());      // m k 1
  b = unsqueezed(in, b, b.shape().size() - 2);  // 1 k n
  ExprAttributes along_k, result;
  along_k.axes = {-2};
  along_k.dtype = result.dtype = dtype;
  Expr sum = applied(in, ExprOp::kSum, {applied(in, ExprOp::kMul, {a, b})}, std::move(along_k));
  result.shape.assign(sum.shape().begin(), sum.shape().end());
  if (b_rank == 1) result.shape.pop_back();
  if (a_rank == 1) result.shape.erase(result.shape.end() - (b_rank == 1 ? 1 : 2));
  return applied(in, ExprOp::kReshape, {sum}, std::move(result));
}

/// Whether the shapes fit is for the product of floats to say.
bool is_integer_product(ExprOp op, std::span<const Expr> x) {
  if (op != ExprOp::kMatMul || x[0].dtype() != x[1].dtype()) return false;
  const std::span<const int64_t> a = x[0].shape(), b = x[1].shape();
  return is_int(x[0].dtype()) && x[0].dtype() != DType::kI8 && x[0].dtype() != DType::kI1 && !a.empty() && !b.empty() &&
         a.back() == b[b.size() == 1 ? 0 : b.size() - 2];
}

bool is_small_float(DType d) { return d == DType::kF16 || d == DType::kBF16; }

/// Which operations torch.autocast() computes in float32 on a GPU: those that need a wide range, and sums.
bool is_wide_op(ExprOp op) {
  constexpr ExprOp kWide[] = {ExprOp::kSoftmax, ExprOp::kLogSoftmax, ExprOp::kSum,    ExprOp::kCumSum, ExprOp::kExp,
                              ExprOp::kExpm1,   ExprOp::kLog,        ExprOp::kLog2,   ExprOp::kLog1p,  ExprOp::kPow,
                              ExprOp::kRsqrt,   ExprOp::kLayerNorm,  ExprOp::kRmsNorm};
  return std::ranges::find(kWide, op) != std::end(kWide);
}

/// What torch.autocast() makes of the operands: products get its dtype, operations that need a wide range float32.
void cast_for_autocast(Interp& in, ExprOp op, std::vector<Expr>& operands, ExprAttributes& attributes) {
  const TorchState::Autocast& cast = torch_state(in).autocast;
  if (!cast.cpu && !cast.cuda) return;
  auto first = std::ranges::find_if(operands, [](const Expr& e) { return !e.is_scalar(); });
  if (first == operands.end()) return;
  const std::optional<DType> to = cast.of(first->device());
  if (!to) return;
  if (op == ExprOp::kMatMul) {
    for (Expr& e : operands)
      if (is_autocast_operand(e.dtype())) e = in_dtype(in, e, *to);
  } else if (cast.cuda == to && first->device().is_cuda() && is_wide_op(op)) {
    for (Expr& e : operands)
      if (!e.is_scalar() && is_small_float(e.dtype())) e = in_dtype(in, e, DType::kF32);
    if (attributes.dtype && is_small_float(*attributes.dtype)) attributes.dtype = DType::kF32;
  }
}

/// Integers whose result is a float have the session's default dtype there, as Python's floats beside them.
Expr applied_in_default(Interp& in, ExprOp op, std::span<Expr> operands, ExprAttributes attributes) {
  const DType own = default_dtype(in);
  if (own == DType::kF32) return taken(in, apply(op, operands, std::move(attributes)));
  Expr result = taken(in, apply(op, operands, attributes));
  const auto is_float_tensor = [](const Expr& e) { return !e.is_scalar() && is_float(e.dtype()); };
  if (result.dtype() != DType::kF32 || attributes.dtype || std::ranges::any_of(operands, is_float_tensor))
    return result;
  for (Expr& e : operands.subspan(op == ExprOp::kWhere ? 1 : 0))
    if (!e.is_scalar()) e = in_dtype(in, e, own);
  return taken(in, apply(op, operands, std::move(attributes)));
}

}  // namespace

bool is_autocast_operand(DType d) { return d == DType::kF32 || is_small_float(d); }

Value compute(Interp& in, ExprOp op, std::span<const Value> values, ExprAttributes attributes) {
  std::vector<Expr> operands;
  operands.reserve(values.size());
  for (const Value& v : values) {
    auto operand = operand_of(v);
    if (!operand) in.fail(ErrorKind::kType, "{} does not apply to '{}'", name(op), in.type_name(v));
    operands.push_back(*std::move(operand));
  }
  gather_on_one_device(in, values, operands);
  cast_for_autocast(in, op, operands, attributes);
  if (op == ExprOp::kWhere && default_dtype(in) != DType::kF32 && operands[1].is_scalar() && operands[2].is_scalar())
    // Beside a condition alone numbers have no tensor's dtype to follow.
    for (size_t i : {1U, 2U})
      if (values[i].is_float()) operands[i] = Expr::full(operands[0].device(), {}, values[i].real(), default_dtype(in));
  if (op == ExprOp::kPow && operands[0].dtype() == DType::kI1 && !operands[0].is_scalar() && values[1].is_bool()) {
    // torch has no powers of bools but to the numbers True, a copy, and False, which gives True.
    const Expr& x = operands[0];
    attributes.dtype = DType::kI1;
    if (values[1].boolean()) return settled(in, applied(in, ExprOp::kCast, {x}, std::move(attributes)));
    return settled(in, applied(in, ExprOp::kLogicalOr, {x, applied(in, ExprOp::kLogicalNot, {x})}));
  }
  attributes.tf32 = attributes.tf32 || (op == ExprOp::kMatMul && torch_state(in).tf32);
  if (is_integer_product(op, operands) && !attributes.dtype)
    return settled(in, integer_product(in, operands[0], operands[1]));
  return settled(in, applied_in_default(in, op, operands, std::move(attributes)));
}

Value compute(Interp& in, ExprOp op, std::initializer_list<Value> operands, ExprAttributes attributes) {
  return compute(in, op, std::span<const Value>(operands.begin(), operands.size()), std::move(attributes));
}

// --- operators
// ------------------------------------------------------------------------------------------------------------

namespace {

ExprOp op_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return ExprOp::kAdd;
    case BinaryOp::kSub:
      return ExprOp::kSub;
    case BinaryOp::kMul:
      return ExprOp::kMul;
    case BinaryOp::kDiv:
      return ExprOp::kDiv;
    case BinaryOp::kFloorDiv:
      return ExprOp::kFloorDiv;
    case BinaryOp::kMod:
      return ExprOp::kMod;
    case BinaryOp::kPow:
      return ExprOp::kPow;
    case BinaryOp::kMatMul:
      return ExprOp::kMatMul;
    case BinaryOp::kAnd:
      return ExprOp::kBitAnd;
    case BinaryOp::kOr:
      return ExprOp::kBitOr;
    case BinaryOp::kXor:
      return ExprOp::kBitXor;
    case BinaryOp::kShl:
      return ExprOp::kShl;
    case BinaryOp::kShr:
      return ExprOp::kShr;
  }
  KILN_UNREACHABLE("an operator outside of the enum");
}

std::optional<ExprOp> op_of(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return ExprOp::kEq;
    case CompareOp::kNe:
      return ExprOp::kNe;
    case CompareOp::kLt:
      return ExprOp::kLt;
    case CompareOp::kLe:
      return ExprOp::kLe;
    case CompareOp::kGt:
      return ExprOp::kGt;
    case CompareOp::kGe:
      return ExprOp::kGe;
    case CompareOp::kIs:
    case CompareOp::kIsNot:
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      break;
  }
  return std::nullopt;
}

}  // namespace

Value tensor_binary(Interp& in, BinaryOp op, const Value& left, const Value& right) {
  const bool both = left.get<TensorObject>() && right.get<TensorObject>();
  if (!is_operand(left) || !is_operand(right) || (op == BinaryOp::kMatMul && !both))
    in.fail(ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", ast::spelling(op), in.type_name(left),
            in.type_name(right));
  // torch's 3 / x is x.reciprocal() * 3, rounded twice.
  if (op == BinaryOp::kDiv && !left.get<TensorObject>()) {
    Expr below[] = {*operand_of(right)};
    return settled(
        in, applied(in, ExprOp::kMul, {applied_in_default(in, ExprOp::kReciprocal, below, {}), *operand_of(left)}));
  }
  return compute(in, op_of(op), {left, right});
}

namespace {

/// torch's can_cast: from floats to integers and from anything but bools to bools there is no way in place.
bool casts_in_place(DType from, DType to) {
  if (is_float(from) && !is_float(to)) return false;
  return from == DType::kI1 || to != DType::kI1;
}

/// A result that has a gradient, as what a tensor of its shape becomes in place.
Expr fitted_in_place(Interp& in, const TensorObject& t, const Expr& result) {
  if (!std::ranges::equal(result.shape(), t.shape()))
    in.fail_as("RuntimeError", "a tensor of shape {} cannot take a result of shape {} in place",
               in.repr(size_value(t.shape())), in.repr(size_value(result.shape())));
  if (!is_float(t.dtype()))
    in.fail_as("RuntimeError", "a result of {} cannot be stored in place in a tensor of {}", info(result.dtype()).torch,
               info(t.dtype()).torch);
  return in_dtype(in, result, t.dtype());
}

/// `self op= other`, as torch does it: computed in the dtype of both, stored in that of the tensor, whose shape stays.
Value changed_by(Interp& in, ExprOp op, const Value& self, const Value& given_other) {
  const Value other = constant_if_paused(in, given_other);
  auto* t = self.get<TensorObject>();
  auto* by = other.get<TensorObject>();
  if (t->records() || (by && by->records())) {
    t->become(in, [&] { return fitted_in_place(in, *t, compute(in, op, {self, other}).get<TensorObject>()->expr()); });
    return self;
  }
  if (!t->is_pending() || t->is_store()) fail_if_shared(in, t->home());
  const Value result = compute(in, op, {self, other});
  auto* r = result.get<TensorObject>();
  if (!std::ranges::equal(r->shape(), t->shape()))
    in.fail_as("RuntimeError", "a tensor of shape {} cannot take a result of shape {} in place",
               in.repr(size_value(t->shape())), in.repr(size_value(r->shape())));
  if (!casts_in_place(r->dtype(), t->dtype()))
    in.fail(with_note(error(ErrorKind::kType, "a result of {} cannot be stored in place in a tensor of {}",
                            info(r->dtype()).torch, info(t->dtype()).torch),
                      "help: x = x + y makes a new tensor"),
            "RuntimeError");
  store_in_place(in, *t, *r);
  return self;
}

}  // namespace

void fail_if_shared(Interp& in, const Tensor& to) {
  for (size_t d = 0; d < to.shape().size(); ++d)
    if (to.shape()[d] > 1 && to.strides()[d] == 0)
      in.fail(with_note(error(ErrorKind::kValue, "several elements of this tensor share one place in memory"),
                        "help: clone() it before it is changed in place"),
              "RuntimeError");
}

void store_in_place(Interp& in, TensorObject& t, TensorObject& value) {
  t.have_shared_memory(in);
  const bool row_major = !t.home() || t.home().is_contiguous();
  if (value.is_pending() && row_major && value.device() == t.device()) {
    ExprAttributes as;
    as.dtype = t.dtype();
    return t.assign(in, value.dtype() == t.dtype() ? value.expr() : applied(in, ExprOp::kCast, {value.expr()}, as));
  }
  ExprAttributes as;
  as.dtype = t.dtype();
  const Value from = value.dtype() == t.dtype() ? Value(&value) : compute(in, ExprOp::kCast, {Value(&value)}, as);
  const Tensor elements = from.get<TensorObject>()->tensor(in);
  checked(in, t.changing(in).copy_from(elements));
}

std::optional<Value> TensorObject::in_place(Interp& in, BinaryOp op, const Value& other) {
  if (!operand_of(other)) fail_if_complex(in, other);
  if (op == BinaryOp::kMatMul || !operand_of(other)) return std::nullopt;  // torch has no @= either: a new tensor
  return changed_by(in, op_of(op), Value(this), other);
}

Value tensor_compare(Interp& in, CompareOp op, const Value& left, const Value& right) {
  const auto compared = op_of(op);
  if (!is_operand(left) || !is_operand(right) || !compared) {
    if (op == CompareOp::kEq || op == CompareOp::kNe) return Value::boolean(op == CompareOp::kNe);
    in.fail(ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", ast::spelling(op), in.type_name(left),
            in.type_name(right));
  }
  return compute(in, *compared, {left, right});
}

// --- views
// ----------------------------------------------------------------------------------------------------------------

Value permuted(Interp& in, const Value& v, std::vector<int> order) {
  auto* t = v.get<TensorObject>();
  if (t->is_node()) {
    ExprAttributes a;
    a.axes = std::move(order);
    return compute(in, ExprOp::kPermute, {v}, std::move(a));
  }
  const Tensor& x = t->tensor(in);
  Shape shape, strides;
  for (int d : order) {
    shape.push_back(x.shape()[static_cast<size_t>(d)]);
    strides.push_back(x.strides()[static_cast<size_t>(d)]);
  }
  return wrap(taken(in, x.as_strided(shape, strides, x.offset())));
}

Value expanded_to(Interp& in, const Value& v, Shape shape) {
  auto* t = v.get<TensorObject>();
  if (!t->is_node()) return wrap(expanded(in, t->tensor(in), shape));
  ExprAttributes a;
  a.shape = std::move(shape);
  return compute(in, ExprOp::kExpand, {v}, std::move(a));
}

// --- methods, element by element
// --------------------------------------------------------------------------------------------

namespace {

template <ExprOp Op>
Value unary(Interp& in, NativeArgs& a) {
  return compute(in, Op, {*a.self});
}
template <ExprOp Op>
Value binary(Interp& in, NativeArgs& a) {
  return compute(in, Op, {*a.self, a[0]});
}
template <ExprOp Op>
Value binary_in(Interp& in, NativeArgs& a) {
  return changed_by(in, Op, *a.self, a[0]);
}

/// other * alpha, in float32 for halves, of which the sum is rounded once.
template <ExprOp Op>
Value sum_of(Interp& in, NativeArgs& a, bool in_place) {
  auto apply = [&](const Value& to, const Value& by) {
    return in_place ? changed_by(in, Op, to, by) : compute(in, Op, {to, by});
  };
  if (a[1].missing() || (a[1].small_int_or_bool() && a[1].integer() == 1)) return apply(*a.self, a[0]);
  if (!operand_of(a[0]) || !operand_of(a[1]))
    in.fail(ErrorKind::kType, "{}() takes a tensor or number, and a number as alpha", name(Op));
  const Expr x = self_object(a).expr(), other = *operand_of(a[0]), alpha = *operand_of(a[1]);
  if (other.is_scalar()) {
    const Value scaled = in.binary(BinaryOp::kMul, a[0], a[1]);
    return apply(*a.self, scaled);
  }
  ExprAttributes wide, as;
  wide.dtype = DType::kF32;
  as.dtype = taken(in, kiln::apply(Op, {x, other})).dtype();
  if (!is_float(*as.dtype) && a[1].is_float())
    in.fail_as("RuntimeError", "{}() of integers takes an integer as alpha", name(Op));
  const bool halves = is_float(*as.dtype) && bits(*as.dtype) < 32;
  auto widened = [&](const Expr& e) {
    return halves && is_float(e.dtype()) ? applied(in, ExprOp::kCast, {e}, wide) : e;
  };
  // What is multiplied is of the result's type already.
  const Expr factor = halves || other.dtype() == *as.dtype ? widened(other) : applied(in, ExprOp::kCast, {other}, as);
  Expr sum = applied(in, Op, {widened(x), applied(in, ExprOp::kMul, {factor, alpha})});
  if (sum.dtype() != *as.dtype) sum = applied(in, ExprOp::kCast, {sum}, as);
  Value result = settled(in, sum);
  if (!in_place) return result;
  return in.call(in.attribute(*a.self, "copy_"), {std::move(result)});
}
template <ExprOp Op>
Value sum_with(Interp& in, NativeArgs& a) {
  return sum_of<Op>(in, a, false);
}
template <ExprOp Op>
Value sum_in(Interp& in, NativeArgs& a) {
  return sum_of<Op>(in, a, true);
}

/// torch has these of floats alone, where exp() of integers is a float32.
void of_floats(Interp& in, NativeArgs& a, std::string_view what) {
  if (const DType dtype = a.self->get<TensorObject>()->dtype(); !is_float(dtype))
    in.fail(with_note(error(ErrorKind::kType, "{}() does not apply to tensors of {}", what, info(dtype).torch),
                      "help: convert first, with .float()"),
            "NotImplementedError");
}

Value silu(Interp& in, NativeArgs& a) {
  of_floats(in, a, "silu");
  return compute(in, ExprOp::kSilu, {*a.self});
}
Value gelu(Interp& in, NativeArgs& a) {
  of_floats(in, a, "gelu");
  const std::string form = given(a[0]) ? in.to_text(a[0], "approximate") : "none";
  if (form != "tanh" && form != "none")
    in.fail_as("RuntimeError", "gelu(approximate='{}'): it is 'none' or 'tanh'", form);
  return compute(in, form == "tanh" ? ExprOp::kGeluTanh : ExprOp::kGelu, {*a.self});
}
Value divided(Interp& in, NativeArgs& a) {
  if (!given(a[1])) return compute(in, ExprOp::kDiv, {*a.self, a[0]});
  CallArgs args;
  args.args.push_back(*a.self);
  args.args.push_back(a[0]);
  args.keywords.push_back({"rounding_mode", a[1], {}});
  return in.call(in.attribute(in.import_module("torch"), "divide"), args);
}
Value divided_in(Interp& in, NativeArgs& a) {
  if (!given(a[1])) return binary_in<ExprOp::kDiv>(in, a);
  const Value quotient = divided(in, a);
  return in.call(in.attribute(in.import_module("torch._methods"), "_into"), {*a.self, quotient});
}
template <ExprOp Op>
Value of_tensors(Interp& in, NativeArgs& a) {
  if (!a[0].get<TensorObject>())
    in.fail(ErrorKind::kType, "{}() takes two tensors, got '{}'", name(Op), in.type_name(a[0]));
  return binary<Op>(in, a);
}
/// torch's square is x ** 2: of bools an integer.
Value square(Interp& in, NativeArgs& a) {
  if (a.self->get<TensorObject>()->dtype() == DType::kI1) {
    ExprAttributes as;
    as.dtype = DType::kI64;
    return compute(in, ExprOp::kCast, {*a.self}, std::move(as));
  }
  return compute(in, ExprOp::kMul, {*a.self, *a.self});
}

/// To so many decimals, or with a negative number to tens, hundreds…: torch scales by a power of ten and back, halves
/// in float32.
Value rounded(Interp& in, NativeArgs& a) {
  const int64_t decimals = given(a[0]) ? in.to_int(a[0], "decimals") : 0;
  const Expr x = a.self->get<TensorObject>()->expr();
  if (decimals == 0) return settled(in, applied(in, ExprOp::kRound, {x}));
  if (!is_float(x.dtype()))
    in.fail_as("NotImplementedError", "round(decimals={}) does not apply to tensors of {}", decimals,
               info(x.dtype()).torch);
  const Expr scale = Expr::scalar(std::pow(10.0, std::abs(static_cast<double>(decimals))));
  const ExprOp there = decimals > 0 ? ExprOp::kMul : ExprOp::kDiv, back = decimals > 0 ? ExprOp::kDiv : ExprOp::kMul;
  ExprAttributes as, own;
  as.dtype = x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  own.dtype = x.dtype();
  const Expr wide = applied(in, ExprOp::kCast, {x}, as);
  const Expr whole = applied(in, ExprOp::kRound, {applied(in, there, {wide, scale})});
  return settled(in, applied(in, ExprOp::kCast, {applied(in, back, {whole, scale})}, own));
}

/// Of a bound that an integer tensor's dtype cannot hold: None where it bounds nothing.
Value bound_of(Interp& in, const Value& tensor, const Value& bound, bool is_low) {
  const DType dtype = tensor.get<TensorObject>()->dtype();
  if (!given(bound) || !bound.small_int_or_bool() || is_float(dtype) || dtype == DType::kI1) return bound;
  const int digits = bits(dtype) - is_signed(dtype);
  const int64_t most = digits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << digits) - 1;
  const int64_t least = is_signed(dtype) ? -most - 1 : 0;
  if (bound.integer() >= least && bound.integer() <= most) return bound;
  if ((bound.integer() < least) != is_low)
    in.fail_as("RuntimeError", "clamp() of {} cannot have the {} {}", name(dtype), is_low ? "min" : "max",
               bound.integer());
  return Value::none();
}

Value clamp(Interp& in, NativeArgs& a) {
  if (!given(a[0]) && !given(a[1])) in.fail_as("RuntimeError", "clamp() needs min, max or both");
  a[0] = bound_of(in, *a.self, a[0], true);
  a[1] = bound_of(in, *a.self, a[1], false);
  const bool low = given(a[0]), high = given(a[1]);
  if (low && high) return compute(in, ExprOp::kClamp, {*a.self, a[0], a[1]});
  if (!low && !high) return in.call(in.attribute(*a.self, "clone"), {});
  return low ? compute(in, ExprOp::kMaximum, {*a.self, a[0]}) : compute(in, ExprOp::kMinimum, {*a.self, a[1]});
}

/// |x| = inf, or below it; integers are finite.
Value isinf(Interp& in, NativeArgs& a) {
  auto* t = a.self->get<TensorObject>();
  const Expr x = t->expr();
  if (!is_float(t->dtype())) return settled(in, applied(in, ExprOp::kNe, {x, x}));
  return settled(in, applied(in, ExprOp::kEq, {applied(in, ExprOp::kAbs, {x}), Expr::scalar(INFINITY)}));
}
Value isfinite(Interp& in, NativeArgs& a) {
  auto* t = a.self->get<TensorObject>();
  const Expr x = t->expr();
  if (!is_float(t->dtype())) return settled(in, applied(in, ExprOp::kEq, {x, x}));
  return settled(in, applied(in, ExprOp::kLt, {applied(in, ExprOp::kAbs, {x}), Expr::scalar(INFINITY)}));
}

/// (x > 0) - (x < 0), which is 0 of NaN, as in torch.
Value sign(Interp& in, NativeArgs& a) {
  auto* t = a.self->get<TensorObject>();
  if (t->records()) return in.call(in.attribute(in.import_module("torch._elementwise"), "_sign_of"), {*a.self});
  const Expr x = t->expr(), zero = Expr::scalar(int64_t{0});
  ExprAttributes as;
  as.dtype = t->dtype();
  const Expr above = applied(in, ExprOp::kCast, {applied(in, ExprOp::kGt, {x, zero})}, as);
  if (!is_signed(t->dtype()) && !is_float(t->dtype())) return settled(in, above);
  const Expr below = applied(in, ExprOp::kCast, {applied(in, ExprOp::kLt, {x, zero})}, as);
  return settled(in, applied(in, ExprOp::kSub, {above, below}));
}

/// `out = x.run()` computes a pending tensor now.
Value run_now(Interp& in, NativeArgs& a) {
  a.self->get<TensorObject>()->tensor(in);
  return *a.self;
}
Value is_lazy(Interp&, NativeArgs& a) { return Value::boolean(a.self->get<TensorObject>()->is_pending()); }

constexpr NativeDef kExprMethods[] = {
    {"abs()", unary<ExprOp::kAbs>, "absolute values"},
    {"add(other, *, alpha=1)", sum_with<ExprOp::kAdd>, "x + other"},
    {"add_(other, *, alpha=1)", sum_in<ExprOp::kAdd>, "x += other, in place"},
    {"ceil()", unary<ExprOp::kCeil>, "rounded up"},
    {"clamp(min=None, max=None)", clamp, "limited to a range"},
    {"clip(min=None, max=None)", clamp, "the same as clamp"},
    {"cos()", unary<ExprOp::kCos>, ""},
    {"div(other, *, rounding_mode=None)", divided, "x / other"},
    {"div_(other, *, rounding_mode=None)", divided_in, "x /= other, in place"},
    {"eq(other)", binary<ExprOp::kEq>, "x == other"},
    {"erf()", unary<ExprOp::kErf>, ""},
    {"exp()", unary<ExprOp::kExp>, ""},
    {"exp2()", unary<ExprOp::kExp2>, ""},
    {"expm1()", unary<ExprOp::kExpm1>, "exp(x) - 1, exact for small x"},
    {"floor()", unary<ExprOp::kFloor>, "rounded down"},
    {"ge(other)", binary<ExprOp::kGe>, "x >= other"},
    {"gelu(approximate='none')", gelu, "x · Φ(x); approximate='tanh' is another function, off by up to 4.7e-4"},
    {"gt(other)", binary<ExprOp::kGt>, "x > other"},
    {"is_lazy()", is_lazy, "is it an expression that is not computed yet?"},
    {"isfinite()", isfinite, ""},
    {"isinf()", isinf, ""},
    {"isnan()", unary<ExprOp::kIsNan>, ""},
    {"le(other)", binary<ExprOp::kLe>, "x <= other"},
    {"log()", unary<ExprOp::kLog>, ""},
    {"log1p()", unary<ExprOp::kLog1p>, ""},
    {"log2()", unary<ExprOp::kLog2>, ""},
    {"logical_and(other)", of_tensors<ExprOp::kLogicalAnd>, "are both other than 0?"},
    {"logical_not()", unary<ExprOp::kLogicalNot>, "x == 0"},
    {"logical_or(other)", of_tensors<ExprOp::kLogicalOr>, "is one other than 0?"},
    {"lt(other)", binary<ExprOp::kLt>, "x < other"},
    {"mul(other)", binary<ExprOp::kMul>, "x * other"},
    {"mul_(other)", binary_in<ExprOp::kMul>, "x *= other, in place"},
    {"ne(other)", binary<ExprOp::kNe>, "x != other"},
    {"neg()", unary<ExprOp::kNeg>, "-x"},
    {"pow(exponent)", binary<ExprOp::kPow>, "x ** exponent"},
    {"reciprocal()", unary<ExprOp::kReciprocal>, "1 / x"},
    {"relu()", unary<ExprOp::kRelu>, "max(x, 0)"},
    {"round(*, decimals=0)", rounded, "rounded to the nearest, halves to even"},
    {"rsqrt()", unary<ExprOp::kRsqrt>, "1 / sqrt(x)"},
    {"run()", run_now, "computes it now when it is lazy"},
    {"sigmoid()", unary<ExprOp::kSigmoid>, "1 / (1 + exp(-x))"},
    {"sign()", sign, "-1, 0 or 1"},
    {"silu()", silu, "x · sigmoid(x)"},
    {"sin()", unary<ExprOp::kSin>, ""},
    {"sqrt()", unary<ExprOp::kSqrt>, ""},
    {"square()", square, "x * x"},
    {"sub(other, *, alpha=1)", sum_with<ExprOp::kSub>, "x - other"},
    {"sub_(other, *, alpha=1)", sum_in<ExprOp::kSub>, "x -= other, in place"},
    {"tanh()", unary<ExprOp::kTanh>, ""},
    {"trunc()", unary<ExprOp::kTrunc>, "rounded towards 0"},
};

// --- functions
// ------------------------------------------------------------------------------------------------------------

Value where(Interp& in, NativeArgs& a) {
  if (!a[0].get<TensorObject>()) in.fail(ErrorKind::kType, "where() needs a tensor as its condition");
  if (a[1].missing() && a[2].missing()) {
    CallArgs args;
    args.args.push_back(a[0]);
    args.keywords.push_back({"as_tuple", Value::boolean(true), {}});
    return in.call(in.attribute(in.import_module("torch"), "nonzero"), args);
  }
  if (a[1].missing() || a[2].missing()) in.fail(ErrorKind::kType, "where() takes one tensor for each of the two cases");
  const auto condition = operand_of(a[0]), x = operand_of(a[1]), y = operand_of(a[2]);
  if (x && y && (x->is_scalar() || y->is_scalar())) {
    // As in torch a number has to fit into the result's dtype, unless that is a half, of which it may be infinite.
    const DType dtype = taken(in, kiln::apply(ExprOp::kWhere, {*condition, *x, *y})).dtype();
    for (size_t i : {1, 2})
      if (!a[i].get<TensorObject>() && !(is_float(dtype) && bits(dtype) < 32))
        fill_value(in, a[i], dtype, "where()'s number");
  }
  return put_out(in, "where", compute(in, ExprOp::kWhere, {a[0], a[1], a[2]}), a[3]);
}
template <ExprOp Op>
Value extreme(Interp& in, NativeArgs& a) {
  for (size_t i : {0, 1})
    if (!a[i].get<TensorObject>())
      in.fail(ErrorKind::kType, "torch.{}() takes two tensors, got '{}': clamp() takes a number", name(Op),
              in.type_name(a[i]));
  return put_out(in, name(Op), compute(in, Op, {a[0], a[1]}), a[2]);
}
constexpr NativeDef kExprFunctions[] = {
    {"maximum(input, other, *, out=None)", extreme<ExprOp::kMaximum>, "the larger, element by element"},
    {"minimum(input, other, *, out=None)", extreme<ExprOp::kMinimum>, "the smaller, element by element"},
    {"where(condition, input=, other=, *, out=None)", where, "one or the other, element by element"},
};

/// The last dimensions, whose sizes are given as an int or a tuple.
std::vector<int> normalised_axes(Interp& in, const Value& shape, const TensorObject& x, std::string_view what) {
  const Shape normal =
      shape_of(in, {shape.get<Tuple>() || shape.get<List>() ? shape : Value(make<Tuple>(std::vector<Value>{shape}))});
  const auto own = x.shape();
  if (normal.size() > own.size() || !std::equal(normal.rbegin(), normal.rend(), own.rbegin()))
    in.fail_as("RuntimeError", "{}() over {} does not fit the shape {}", what, in.repr(size_value(normal)),
               in.repr(size_value(own)));
  std::vector<int> axes;
  for (size_t d = own.size() - normal.size(); d < own.size(); ++d) axes.push_back(static_cast<int>(d));
  return axes;
}

TensorObject& tensor_object(Interp& in, const Value& v, std::string_view what) {
  auto* t = v.missing() ? nullptr : v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "{} needs a tensor, got '{}'", what, in.type_name(v));
  return *t;
}

Value layer_norm(Interp& in, NativeArgs& a) {
  const TensorObject& x = tensor_object(in, a[0], "layer_norm()");
  ExprAttributes attributes;
  attributes.axes = normalised_axes(in, a[1], x, "layer_norm");
  attributes.eps = given(a[4]) ? in.to_double(a[4], "eps") : 1e-5;
  if (attributes.axes.empty()) in.fail_as("RuntimeError", "layer_norm() over no dimensions");
  if (!given(a[2]) && !given(a[3])) return compute(in, ExprOp::kLayerNorm, {a[0]}, attributes);
  if (!given(a[3])) return compute(in, ExprOp::kLayerNorm, {a[0], a[2]}, attributes);
  if (given(a[2])) return compute(in, ExprOp::kLayerNorm, {a[0], a[2], a[3]}, attributes);
  // Of one operation, which rounds once.
  if (is_float(x.dtype()) && x.dtype() != DType::kF64) attributes.dtype = DType::kF32;
  const Expr normal = applied(in, ExprOp::kLayerNorm, {x.expr()}, attributes);
  const Expr sum = applied(in, ExprOp::kAdd, {normal, tensor_object(in, a[3], "layer_norm()'s bias").expr()});
  return settled(in, in_dtype(in, sum, x.dtype()));
}

Value rms_norm(Interp& in, NativeArgs& a) {
  const TensorObject& x = tensor_object(in, a[0], "rms_norm()");
  ExprAttributes attributes;
  attributes.axes = normalised_axes(in, a[1], x, "rms_norm");
  if (attributes.axes.empty()) in.fail_as("RuntimeError", "rms_norm() over no dimensions");
  // torch: the distance from 1 to the next number of the dtype in which it computes.
  attributes.eps = given(a[3]) ? in.to_double(a[3], "eps") : x.dtype() == DType::kF64 ? 0x1p-52 : 0x1p-23;
  if (!given(a[2])) return compute(in, ExprOp::kRmsNorm, {a[0]}, attributes);
  return compute(in, ExprOp::kRmsNorm, {a[0], a[2]}, attributes);
}
constexpr NativeDef kNorms[] = {
    {"layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5)", layer_norm,
     "normalised over the last dimensions"},
    {"rms_norm(input, normalized_shape, weight=None, eps=None)", rms_norm, "divided by the root of the mean square"},
};

}  // namespace

void install_tensor_elementwise(Interp& in) { in.add_methods({TensorObject::kKind, kExprMethods}); }
std::span<const NativeDef> expression_functions() { return kExprFunctions; }
std::span<const NativeDef> norm_functions() { return kNorms; }

}  // namespace kiln::script
