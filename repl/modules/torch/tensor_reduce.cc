// Reductions of tensors: sum, mean, max, argmax, any, softmax…
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

namespace {

/// The two results of a function, one of torch.return_types: a tuple whose parts also have names.
class ValuesIndices : public Tuple {
 public:
  ValuesIndices(std::string_view function, Value values, Value indices)
      : Tuple({std::move(values), std::move(indices)}), function_(function) {
    TensorObject::make_siblings(std::array{items[0].get<TensorObject>(), items[1].get<TensorObject>()});
  }
  std::string repr(Interp& in) override {
    return fmt::format("torch.return_types.{}(\nvalues={},\nindices={})", function_, in.repr(items[0]),
                       in.repr(items[1]));
  }
  std::optional<Value> attribute(Interp&, std::string_view name) override {
    if (name == "values") return items[0];
    if (name == "indices") return items[1];
    return std::nullopt;
  }

 private:
  const std::string_view function_;  // a constant
};

/// keepdim=: a number in its place would be a dimension that was meant, as in x.sum(0, 1).
bool flag(Interp& in, const Value& v) {
  if (!v.missing() && !v.is_bool()) in.fail(ErrorKind::kType, "keepdim must be a bool, got '{}'", in.type_name(v));
  return !v.missing() && v.boolean();
}

/// Dimensions as an expression's axes; none means all.
ExprAttributes along_axes(Interp& in, NativeArgs& a, const Value& dims, const Value& keepdim) {
  ExprAttributes attributes;
  attributes.keepdim = flag(in, keepdim);
  if (dims.missing() || dims.is_none()) return attributes;
  const auto rank = static_cast<int64_t>(self_object(a).rank());
  std::vector<Value> list = dims.get<Tuple>() || dims.get<List>() ? in.to_vector(dims) : std::vector<Value>{dims};
  for (const Value& d : list) {
    if (d.is_bool() || d.is_float()) in.fail(ErrorKind::kType, "a dimension must be an int, got '{}'", in.type_name(d));
    if (!d.is_small_int() || d.integer() < -std::max<int64_t>(rank, 1) || d.integer() >= std::max<int64_t>(rank, 1))
      in.fail_as("IndexError", "dimension {} of a tensor that has {}", in.repr(d), rank);
    if (rank > 0) attributes.axes.push_back(static_cast<int>(in.index_in(d, rank, "dimension")));
  }
  return attributes;
}

bool is_along(const ExprAttributes& along, int dim) {
  return along.axes.empty() || std::ranges::find(along.axes, dim) != along.axes.end();
}

/// What is left of a shape that is reduced so.
Shape reduced_shape(std::span<const int64_t> shape, const ExprAttributes& along) {
  Shape out;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = is_along(along, static_cast<int>(d));
    if (!reduced || along.keepdim) out.push_back(reduced ? 1 : shape[d]);
  }
  return out;
}

Value sum(Interp& in, NativeArgs& a) {
  ExprAttributes attributes = along_axes(in, a, a[0], a[1]);
  const DType from = self_object(a).dtype(), to = dtype_of(in, a[2], is_float(from) ? from : DType::kI64);
  attributes.dtype = to;
  // Integers are summed as integers: each element is converted first.
  ExprAttributes as;
  as.dtype = to;
  const Value x = is_float(from) && !is_float(to) ? compute(in, ExprOp::kCast, {*a.self}, as) : *a.self;
  return compute(in, ExprOp::kSum, {x}, std::move(attributes));
}

/// The last of the running products.
Value prod(Interp& in, NativeArgs& a) {
  const DType from = self_object(a).dtype(), to = dtype_of(in, a[2], is_float(from) ? from : DType::kI64);
  ExprAttributes along = along_axes(in, a, a[0], a[1]), order, flat, running, last, out;
  const Shape shape(self_object(a).shape().begin(), self_object(a).shape().end());
  Shape kept;
  int64_t inner = 1;
  std::vector<int> behind;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const auto n = shape[static_cast<size_t>(d)];
    const bool reduced = is_along(along, d);
    (reduced ? behind : order.axes).push_back(d);
    if (!reduced) kept.push_back(n);
    if (reduced) inner *= n;
  }
  out.shape = reduced_shape(shape, along);
  order.axes.insert(order.axes.end(), behind.begin(), behind.end());
  flat.shape = last.shape = kept;
  flat.shape.push_back(inner), last.shape.push_back(1);
  if (inner == 0) return wrap(taken(in, Tensor::full(self_object(a).device(), to, out.shape, 1.0)));
  running.axes = {static_cast<int>(kept.size())};
  running.dtype = to;
  last.starts.assign(last.shape.size(), 0);
  last.starts.back() = inner - 1;
  Expr x = self_object(a).expr();
  if (is_float(from) && !is_float(to)) x = in_dtype(in, x, to);  // each element is converted first
  x = applied(in, ExprOp::kPermute, {x}, std::move(order));
  x = applied(in, ExprOp::kCumProd, {applied(in, ExprOp::kReshape, {x}, std::move(flat))}, std::move(running));
  x = applied(in, ExprOp::kReshape, {applied(in, ExprOp::kSlice, {x}, std::move(last))}, std::move(out));
  if (x.is_row_major()) return settled(in, x);
  ExprAttributes copy;  // not a view of all running products
  copy.dtype = to;
  return settled(in, applied(in, ExprOp::kCast, {x}, std::move(copy)));
}

DType float_result(Interp& in, DType from, const Value& dtype, std::string_view what) {
  DType to = dtype_of(in, dtype, from);
  if (!is_float(to))
    in.fail(with_note(error(ErrorKind::kType, "{} of {} has no dtype to be in", what, info(from).torch),
                      "help: convert first, with .float()"),
            "NotImplementedError");
  return to;
}

Value mean(Interp& in, NativeArgs& a) {
  ExprAttributes attributes = along_axes(in, a, a[0], a[1]);
  attributes.dtype = float_result(in, self_object(a).dtype(), a[2], "the mean");
  return compute(in, ExprOp::kMean, {*a.self}, std::move(attributes));
}

// Operations that are made of several round once, at their end: halves are float32 on the way.
DType computed_in(DType t) { return t == DType::kF64 ? t : DType::kF32; }

/// var and std: `unbiased=False` is correction=0. A bool in place of the dimensions is `unbiased` of all elements.
Value spread(Interp& in, NativeArgs& a, bool root) {
  if (a[0].is_bool() && a[1].missing()) a[1] = std::exchange(a[0], Value::none());
  ExprAttributes attributes = along_axes(in, a, a[0], a[2]);
  attributes.dtype = float_result(in, self_object(a).dtype(), {}, root ? "the standard deviation" : "the variance");
  attributes.correction = !a[1].missing() ? (in.truth(a[1]) ? 1 : 0)
                          : !given(a[3])  ? 1
                                          : in.to_double(a[3], "correction");
  const DType to = *attributes.dtype;
  if (root) attributes.dtype = computed_in(to);
  const Expr variance = applied(in, ExprOp::kVar, {self_object(a).expr()}, std::move(attributes));
  if (root && variance.records()) {  // as torch, no gradient where it is 0
    const Expr zero = Expr::scalar(0.0), none = applied(in, ExprOp::kEq, {variance, zero});
    const Expr some = applied(in, ExprOp::kWhere, {none, Expr::scalar(1.0), variance});
    const Expr out = applied(in, ExprOp::kWhere, {none, zero, applied(in, ExprOp::kSqrt, {some})});
    return settled(in, in_dtype(in, out, to));
  }
  return settled(in, root ? in_dtype(in, applied(in, ExprOp::kSqrt, {variance}), to) : variance);
}
Value var(Interp& in, NativeArgs& a) { return spread(in, a, false); }
Value std_dev(Interp& in, NativeArgs& a) { return spread(in, a, true); }

/// The dimensions of a[0], which have elements: torch has an error of its own for those that have none.
ExprAttributes along_elements(Interp& in, NativeArgs& a, std::string_view what) {
  ExprAttributes along = along_axes(in, a, a[0], a[1]);
  const auto shape = self_object(a).shape();
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == 0 && is_along(along, static_cast<int>(d)))
      in.fail_as("IndexError", "{}() along dimension {}, which has no elements", what, d);
  return along;
}

Value place(Interp& in, NativeArgs& a, bool largest) {
  return compute(in, largest ? ExprOp::kArgMax : ExprOp::kArgMin, {*a.self},
                 along_elements(in, a, largest ? "argmax" : "argmin"));
}

/// max(dim) also says where.
Value extreme_or_pair(Interp& in, NativeArgs& a, bool largest) {
  const std::string_view name = largest ? "max" : "min";
  if (!a[0].missing() && a[0].get<TensorObject>())
    return compute(in, largest ? ExprOp::kMaximum : ExprOp::kMinimum, {*a.self, a[0]});
  if (a[0].missing() || a[0].is_none())
    return compute(in, largest ? ExprOp::kMax : ExprOp::kMin, {*a.self}, along_axes(in, a, {}, a[1]));
  if (self_object(a).records() && self_object(a).rank() > 0) {  // the gradient goes to one of equal elements
    ExprAttributes take = along_axes(in, a, a[0], {}), out;
    Value place_of = place(in, a, largest);
    const Expr at = place_of.get<TensorObject>()->expr();
    ExprAttributes kept;
    kept.shape.assign(self_object(a).shape().begin(), self_object(a).shape().end());
    kept.shape[static_cast<size_t>(take.axes.at(0))] = 1;
    out.shape.assign(at.shape().begin(), at.shape().end());
    const Expr places = applied(in, ExprOp::kReshape, {at}, std::move(kept));
    const Expr found = applied(in, ExprOp::kTake, {self_object(a).expr(), places}, std::move(take));
    return make<ValuesIndices>(name, settled(in, applied(in, ExprOp::kReshape, {found}, std::move(out))),
                               std::move(place_of));
  }
  Value values = compute(in, largest ? ExprOp::kMax : ExprOp::kMin, {*a.self}, along_elements(in, a, name));
  return make<ValuesIndices>(name, std::move(values), place(in, a, largest));
}
Value max(Interp& in, NativeArgs& a) { return extreme_or_pair(in, a, true); }
Value min(Interp& in, NativeArgs& a) { return extreme_or_pair(in, a, false); }
/// Of all elements the error is that of max() and min().
Value extreme(Interp& in, NativeArgs& a, ExprOp op, std::string_view what) {
  return compute(in, op, {*a.self}, given(a[0]) ? along_elements(in, a, what) : along_axes(in, a, a[0], a[1]));
}
Value amax(Interp& in, NativeArgs& a) { return extreme(in, a, ExprOp::kMax, "amax"); }
Value amin(Interp& in, NativeArgs& a) { return extreme(in, a, ExprOp::kMin, "amin"); }
/// torch has no argmax of bools, but the positions of max(dim).
Value place_of_number(Interp& in, NativeArgs& a, bool largest) {
  if (self_object(a).dtype() == DType::kI1)
    in.fail_as("NotImplementedError", "{} does not apply to tensors of bool", largest ? "argmax" : "argmin");
  return place(in, a, largest);
}
Value argmax(Interp& in, NativeArgs& a) { return place_of_number(in, a, true); }
Value argmin(Interp& in, NativeArgs& a) { return place_of_number(in, a, false); }

/// any and all: the greatest and the least of x != 0, where NaN counts as other than 0. Of no elements all are true,
/// and none is. The result is bool, but of uint8 uint8: bool's forerunner.
Value truth_of(Interp& in, NativeArgs& a, bool every) {
  const Expr x = self_object(a).expr();
  const DType to = x.dtype() == DType::kU8 ? DType::kU8 : DType::kI1;
  ExprAttributes along = along_axes(in, a, a[0], a[1]);
  if (x.numel() == 0)
    return wrap(taken(in, Tensor::full(x.device(), to, reduced_shape(x.shape(), along), every ? 1.0 : 0.0)));
  const Expr test = applied(in, ExprOp::kNe, {x, Expr::scalar(int64_t{0})});
  const Expr truth = applied(in, every ? ExprOp::kMin : ExprOp::kMax, {test}, std::move(along));
  return settled(in, in_dtype(in, truth, to));
}
Value any(Interp& in, NativeArgs& a) { return truth_of(in, a, false); }
Value all(Interp& in, NativeArgs& a) { return truth_of(in, a, true); }

Value softmax_of(Interp& in, NativeArgs& a, bool logarithm) {
  ExprAttributes attributes = along_axes(in, a, a[0], {});
  attributes.dtype = float_result(in, self_object(a).dtype(), a[1], "the softmax");
  return compute(in, logarithm ? ExprOp::kLogSoftmax : ExprOp::kSoftmax, {*a.self}, std::move(attributes));
}
Value softmax(Interp& in, NativeArgs& a) { return softmax_of(in, a, false); }
Value log_softmax(Interp& in, NativeArgs& a) { return softmax_of(in, a, true); }

/// torch's choice where nn.functional gets no dim, which it warns of.
int64_t implied_dim(Interp& in, std::string_view function, int64_t rank) {
  const Ref<ModuleObject> warnings = in.import_module("warnings");
  in.call(*warnings->attribute(in, "warn"),
          {Value::str(fmt::format("Implicit dimension choice for {} has been deprecated. Change the call to include "
                                  "dim=X as an argument.",
                                  function))});
  return rank == 0 || rank == 1 || rank == 3 ? 0 : 1;
}

/// (input, dim, _stacklevel, dtype) of nn.functional: a method's work, also without a dimension.
Value functional_softmax(Interp& in, NativeArgs& a, std::string_view method) {
  const auto* t = a[0].get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "{}() needs a tensor, got '{}'", method, in.type_name(a[0]));
  const Value dim = given(a[1]) ? a[1] : Value::integer(implied_dim(in, method, t->rank()));
  return in.call(in.attribute(a[0], method), {dim, given(a[3]) ? a[3] : Value::none()});
}
Value softmax_function(Interp& in, NativeArgs& a) { return functional_softmax(in, a, "softmax"); }
Value log_softmax_function(Interp& in, NativeArgs& a) { return functional_softmax(in, a, "log_softmax"); }

/// log(sum(exp(x - m))) + m, where m is the largest; an infinite one is no distance to measure from.
Value logsumexp(Interp& in, NativeArgs& a) {
  ExprAttributes along = along_axes(in, a, a[0], {});
  along.keepdim = true;
  const DType own = self_object(a).dtype();
  const Expr x = in_dtype(in, self_object(a).expr(), is_float(own) ? own : default_dtype(in));
  if (x.numel() == 0) {  // there is no largest element to start from
    const Value none = wrap(taken(in, Tensor::full(x.device(), x.dtype(), x.shape(), 0.0)));
    const Value sums = in.call(in.attribute(none, "sum"), {a[0], Value::boolean(flag(in, a[1]))});
    return in.call(in.attribute(sums, "log"), {});
  }
  const Expr most = applied(in, ExprOp::kMax, {x}, along);
  const Expr finite = applied(in, ExprOp::kLt, {applied(in, ExprOp::kAbs, {most}), Expr::scalar(INFINITY)});
  const Expr from = applied(in, ExprOp::kWhere, {finite, most, Expr::scalar(0.0)});
  const Expr terms = applied(in, ExprOp::kExp, {applied(in, ExprOp::kSub, {x, from})});
  Expr out = applied(in, ExprOp::kLog, {applied(in, ExprOp::kSum, {terms}, along)});
  out = applied(in, ExprOp::kAdd, {out, from});
  if (flag(in, a[1])) return settled(in, out);
  ExprAttributes flat;
  for (size_t d = 0; d < x.shape().size(); ++d) {
    const auto reduced = [&](int axis) { return static_cast<size_t>(axis) == d; };
    if (!along.axes.empty() && std::none_of(along.axes.begin(), along.axes.end(), reduced))
      flat.shape.push_back(x.shape()[d]);
  }
  return settled(in, applied(in, ExprOp::kReshape, {out}, std::move(flat)));
}

Value scan_of(Interp& in, NativeArgs& a, ExprOp op) {
  const DType from = self_object(a).dtype();
  ExprAttributes attributes = along_axes(in, a, a[0], {});
  if (attributes.axes.empty()) attributes.axes = {0};
  attributes.dtype = dtype_of(in, a[1], is_float(from) ? from : DType::kI64);
  // Of a tensor without dimensions: of its one element.
  if (self_object(a).rank() > 0) return compute(in, op, {*a.self}, std::move(attributes));
  ExprAttributes one, none;
  one.shape = {1};
  const Expr spread = applied(in, ExprOp::kReshape, {self_object(a).expr()}, std::move(one));
  return settled(in,
                 applied(in, ExprOp::kReshape, {applied(in, op, {spread}, std::move(attributes))}, std::move(none)));
}
Value cumsum(Interp& in, NativeArgs& a) { return scan_of(in, a, ExprOp::kCumSum); }
Value cumprod(Interp& in, NativeArgs& a) { return scan_of(in, a, ExprOp::kCumProd); }

/// running_extreme(input, dim, largest): values and where they were, the last of equal ones; a NaN stays until the
/// next. The places are a running maximum too: of those of the elements that are the extreme up to them.
Value running_extreme(Interp& in, NativeArgs& a) {
  auto* given = a[0].get<TensorObject>();
  if (!given) in.fail(ErrorKind::kType, "a tensor is needed, got '{}'", in.type_name(a[0]));
  const TensorObject& t = *given;
  const DType dtype = t.dtype();
  const ExprOp op = in.truth(a[2]) ? ExprOp::kCumMax : ExprOp::kCumMin;
  Expr x = in_dtype(in, t.expr(), dtype == DType::kI1 ? DType::kU8 : dtype);
  ExprAttributes along, own, counts;
  own.shape.assign(t.shape().begin(), t.shape().end());
  if (t.rank() == 0) {
    ExprAttributes one;
    one.shape = {1};
    x = applied(in, ExprOp::kReshape, {x}, std::move(one));
  }
  along.axes = {static_cast<int>(in.index_in(a[1], std::max(t.rank(), 1), "dimension"))};
  const int64_t n = x.shape()[static_cast<size_t>(along.axes[0])];
  counts.shape.assign(x.shape().size(), 1);
  counts.shape[static_cast<size_t>(along.axes[0])] = n;
  const bool narrow = n < (int64_t{1} << 31);
  const Expr place =
      applied(in, ExprOp::kReshape, {Expr::iota(x.device(), n, narrow ? DType::kI32 : DType::kI64)}, std::move(counts));
  const Expr values = applied(in, op, {x}, along);
  Expr found = applied(in, ExprOp::kEq, {x, values});
  if (is_float(dtype)) found = applied(in, ExprOp::kLogicalOr, {found, applied(in, ExprOp::kIsNan, {x})});
  const Expr last = applied(in, ExprOp::kWhere, {found, place, Expr::scalar(int64_t{0})});
  const Expr places = in_dtype(in, applied(in, ExprOp::kCumMax, {last}, along), DType::kI64);
  auto shaped = [&](const Expr& e) { return settled(in, applied(in, ExprOp::kReshape, {e}, own)); };
  return make<ValuesIndices>(op == ExprOp::kCumMax ? "cummax" : "cummin", shaped(in_dtype(in, values, dtype)),
                             shaped(places));
}

constexpr NativeDef kScans[] = {
    {"running_extreme(input, dim, largest)", running_extreme, "running extremes and where they are"},
};

constexpr NativeDef kSoftmaxes[] = {
    {"log_softmax(input, dim=None, _stacklevel=3, dtype=None)", log_softmax_function, "the logarithm of the softmax"},
    {"softmax(input, dim=None, _stacklevel=3, dtype=None)", softmax_function,
     "exp(x) over its sum along a dimension; without one along the first of 0, 1 or 3, else the second, with a "
     "warning"},
};

constexpr NativeDef kReductions[] = {
    {"all(dim=None, keepdim=False)", all, "are all elements other than 0?"},
    {"amax(dim=None, keepdim=False)", amax, "the largest, without its position"},
    {"amin(dim=None, keepdim=False)", amin, "the smallest, without its position"},
    {"any(dim=None, keepdim=False)", any, "is some element other than 0?"},
    {"argmax(dim=None, keepdim=False)", argmax, "the position of the largest"},
    {"argmin(dim=None, keepdim=False)", argmin, "the position of the smallest"},
    {"cumprod(dim, dtype=None)", cumprod, "running products along a dimension"},
    {"cumsum(dim, dtype=None)", cumsum, "running sums along a dimension"},
    {"log_softmax(dim, dtype=None)", log_softmax, "the logarithm of the softmax"},
    {"logsumexp(dim, keepdim=False)", logsumexp, "the logarithm of the sum of exponentials"},
    {"max(dim=None, keepdim=False)", max, "the largest; with dim also where it is"},
    {"mean(dim=None, keepdim=False, *, dtype=None)", mean, "the mean"},
    {"min(dim=None, keepdim=False)", min, "the smallest; with dim also where it is"},
    {"prod(dim=None, keepdim=False, *, dtype=None)", prod, "the product"},
    {"softmax(dim, dtype=None)", softmax, "exp(x) over its sum along a dimension"},
    {"std(dim=None, unbiased=True, keepdim=False, *, correction=1)", std_dev, "the standard deviation"},
    {"sum(dim=None, keepdim=False, *, dtype=None)", sum, "the sum"},
    {"var(dim=None, unbiased=True, keepdim=False, *, correction=1)", var, "the variance"},
};

}  // namespace

std::span<const NativeDef> scanning_functions() { return kScans; }
std::span<const NativeDef> softmax_functions() { return kSoftmaxes; }
void install_tensor_reductions(Interp& in) { in.add_methods({TensorObject::kKind, kReductions}); }

}  // namespace kiln::script
