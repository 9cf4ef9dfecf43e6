// Methods of tensors: shapes, conversions and copies.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "repl/modules/torch/lazy_scope.h"
#include "repl/modules/torch/memory_order.h"
#include "repl/modules/torch/stream_object.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/modules/torch/torch_formats.h"

namespace kiln::script {

namespace {

/// For methods that write to it.
const Tensor& changing(Interp& in, NativeArgs& a) { return self_object(a).changing(in); }

size_t dim_of(Interp& in, const Value& v, int64_t own, int64_t extra = 0) {
  if (v.is_bool()) in.fail(ErrorKind::kType, "a dimension must be an int, got 'bool'");
  int64_t rank = own + extra, d = in.to_int(v, "a dimension");
  if (d < -rank || d >= rank) in.fail_as("IndexError", "dimension {} of a tensor that has {}", d, own);
  return static_cast<size_t>(d < 0 ? d + rank : d);
}

/// The same where a tensor without dimensions takes 0 and -1; true when it is one.
bool is_scalar_dim(Interp& in, const Value& v, int64_t own) { return own == 0 && (dim_of(in, v, 0, 1), true); }

// --- shape
// ----------------------------------------------------------------------------------------------------------------

Value stride(Interp& in, NativeArgs& a) {
  const Tensor& t = seen_self(in, a);
  if (!a[0].missing()) return Value::integer(t.strides()[dim_of(in, a[0], t.rank())]);
  std::vector<Value> out;
  for (int64_t s : t.strides()) out.push_back(Value::integer(s));
  return make<Tuple>(std::move(out));
}
Value size(Interp& in, NativeArgs& a) {
  auto shape = self_object(a).shape();
  return a[0].missing() ? size_value(shape) : Value::integer(shape[dim_of(in, a[0], self_object(a).rank())]);
}
Value numel(Interp&, NativeArgs& a) { return Value::integer(self_object(a).numel()); }
Value dim(Interp&, NativeArgs& a) { return Value::integer(self_object(a).rank()); }
Value element_size(Interp&, NativeArgs& a) { return Value::integer(size_of(self_object(a).dtype())); }
Value data_ptr(Interp& in, NativeArgs& a) { return Value::wide(static_cast<ast::Int>(seen_self(in, a).address())); }
Value is_contiguous(Interp& in, NativeArgs& a) {
  if (given(a[0])) return Value::boolean(has_memory_format(in, *a.self, a[0]));
  return Value::boolean(seen_self(in, a).is_contiguous());
}
Value is_floating_point(Interp&, NativeArgs& a) { return Value::boolean(is_float(self_object(a).dtype())); }
Value contiguous(Interp& in, NativeArgs& a) {
  if (given(a[0])) return in_memory_format(in, *a.self, a[0]);
  if (self_object(a).is_pending()) {
    if (self_object(a).expr().is_row_major()) return *a.self;  // once it is computed
  } else if (seen_self(in, a).is_contiguous()) {
    return *a.self;
  }
  ExprAttributes same;
  same.dtype = self_object(a).dtype();
  return compute(in, ExprOp::kCast, {*a.self}, std::move(same));
}

/// A pending tensor that is not itself a view is row-major: any shape of as many elements is a view of it.
Value reshaped(Interp& in, NativeArgs& a, Shape shape) {
  ExprAttributes attributes;
  attributes.shape = std::move(shape);
  return compute(in, ExprOp::kReshape, {*a.self}, std::move(attributes));
}
/// The same memory as elements of another dtype; the last dimension grows or shrinks with their size.
Value reinterpreted(Interp& in, const Tensor& t, DType dtype) {
  const int from = size_of(t.dtype()), to = size_of(dtype);
  Shape shape = shape_vector(t), strides(t.strides().begin(), t.strides().end());
  int64_t offset = t.offset();
  if (from != to) {
    if (shape.empty())
      in.fail_as("RuntimeError", "view(dtype) of a tensor without dimensions keeps the size of its elements");
    if (strides.back() != 1 && shape.back() != 1)
      in.fail_as("RuntimeError", "view(dtype) to another size needs a last dimension without gaps");
    const int64_t ratio = from > to ? from / to : to / from;
    if (from > to) {
      shape.back() *= ratio, offset *= ratio;
      for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] *= ratio;
    } else {
      bool fits = shape.back() % ratio == 0 && offset % ratio == 0;
      for (size_t d = 0; d + 1 < strides.size(); ++d) fits = fits && strides[d] % ratio == 0;
      if (!fits)
        in.fail_as("RuntimeError",
                   "view(dtype) to elements {} times as large: sizes, strides and offset must be multiples", ratio);
      shape.back() /= ratio, offset /= ratio;
      for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] /= ratio;
    }
    strides.back() = 1;
  }
  // By way of all of its storage.
  const Shape one = {1};
  if (t.numel() == 0) return wrap(taken(in, Tensor::empty(t.device(), dtype, shape)));
  const int64_t bytes = taken(in, t.as_strided(one, one, 0)).bytes_available() / 8 * 8;
  const Tensor all = taken(in, t.as_strided(Shape{bytes / from}, one, 0));
  return wrap(taken(in, taken(in, all.bits_as(dtype, Shape{bytes / to})).as_strided(shape, strides, offset)));
}

/// A view of all of it: another tensor, whose own shape can change.
Value same_elements(Interp& in, NativeArgs& a) {
  TensorObject& t = self_object(a);
  return t.is_node() ? *a.self : wrap(t.tensor(in));
}
Value view(Interp& in, NativeArgs& a) {
  const Value& asked = !a[1].missing() ? a[1] : rest_of(a[0]).size() == 1 ? rest_of(a[0])[0] : a[1];
  if (!asked.missing() && asked.is_dtype()) return reinterpreted(in, self_tensor(in, a), asked.dtype());
  Shape shape = shape_of(in, rest_of(a[0]));
  if (self_object(a).records() || (self_object(a).is_node() && !self_object(a).expr().is_view()))
    return reshaped(in, a, std::move(shape));
  return wrap(taken(in, self_tensor(in, a).view(shape)));
}
Value reshape(Interp& in, NativeArgs& a) {
  Shape shape = shape_of(in, rest_of(a[0]));
  if (self_object(a).is_node()) return reshaped(in, a, std::move(shape));
  auto viewed = self_tensor(in, a).view(shape);
  return viewed.ok() ? wrap(*viewed) : reshaped(in, a, std::move(shape));
}
Value transpose(Interp& in, NativeArgs& a) {
  const int rank = self_object(a).rank();
  if (is_scalar_dim(in, a[0], rank) && is_scalar_dim(in, a[1], rank)) return same_elements(in, a);
  std::vector<int> order(self_object(a).shape().size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[dim_of(in, a[0], self_object(a).rank())], order[dim_of(in, a[1], self_object(a).rank())]);
  return permuted(in, *a.self, std::move(order));
}
Value t(Interp& in, NativeArgs& a) {
  const int rank = self_object(a).rank();
  if (rank > 2)
    in.fail_as("RuntimeError", "t() is for matrices, this tensor has {} dimensions: use transpose(a, b)", rank);
  return rank < 2 ? same_elements(in, a) : permuted(in, *a.self, {1, 0});
}
Value permute(Interp& in, NativeArgs& a) {
  std::vector<int> order;
  std::vector<bool> used(self_object(a).shape().size());
  for (int64_t d : shape_of(in, rest_of(a[0]))) {
    size_t i = dim_of(in, Value::integer(d), self_object(a).rank());
    if (used[i]) in.fail_as("RuntimeError", "permute() names dimension {} twice", i);
    used[i] = true;
    order.push_back(static_cast<int>(i));
  }
  if (order.size() != used.size()) in.fail_as("RuntimeError", "permute() needs all {} dimensions", used.size());
  return permuted(in, *a.self, std::move(order));
}
Value unsqueeze(Interp& in, NativeArgs& a) {
  size_t d = dim_of(in, a[0], self_object(a).rank(), 1);
  Shape shape(self_object(a).shape().begin(), self_object(a).shape().end());
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(d), 1);
  if (self_object(a).is_node()) return reshaped(in, a, std::move(shape));
  const Tensor& t = self_tensor(in, a);
  Shape strides(t.strides().begin(), t.strides().end());
  // As torch: over all of what stands behind it.
  const int64_t stride = d < strides.size() ? t.shape()[d] * t.strides()[d] : 1;
  strides.insert(strides.begin() + static_cast<ptrdiff_t>(d), stride);
  return wrap(taken(in, t.as_strided(shape, strides, t.offset())));
}
Value squeeze(Interp& in, NativeArgs& a) {
  std::vector<Value> dims = rest_of(a[1]);
  const bool several = a[0].get<Tuple>() || a[0].get<List>();
  if (several) dims = in.to_vector(a[0]);
  if (given(a[0]) && !several) dims.push_back(a[0]);
  std::vector<bool> named(self_object(a).shape().size(), !given(a[0]));
  for (const Value& v : dims) {
    if (is_scalar_dim(in, v, self_object(a).rank())) continue;
    const size_t d = dim_of(in, v, self_object(a).rank());
    if (named[d]) in.fail_as("RuntimeError", "squeeze() names dimension {} twice", d);
    named[d] = true;
  }
  std::vector<size_t> kept;
  for (size_t d = 0; d < named.size(); ++d)
    if (self_object(a).shape()[d] != 1 || !named[d]) kept.push_back(d);
  Shape shape, strides;
  for (size_t d : kept) shape.push_back(self_object(a).shape()[d]);
  if (self_object(a).is_node()) return reshaped(in, a, std::move(shape));
  const Tensor& t = self_tensor(in, a);
  for (size_t d : kept) strides.push_back(t.strides()[d]);
  return wrap(taken(in, t.as_strided(shape, strides, t.offset())));
}
Value expand(Interp& in, NativeArgs& a) {
  Shape shape = shape_of(in, rest_of(a[0])), own(self_object(a).shape().begin(), self_object(a).shape().end());
  if (shape.size() < own.size()) in.fail_as("RuntimeError", "expand() needs at least {} dimensions", own.size());
  size_t skip = shape.size() - own.size();
  for (size_t i = skip; i < shape.size(); ++i) {
    if (shape[i] == -1) shape[i] = own[i - skip];
    if (own[i - skip] != 1 && own[i - skip] != shape[i])
      in.fail_as("RuntimeError", "dimension {} of size {} cannot be expanded to {}", i, own[i - skip], shape[i]);
  }
  return expanded_to(in, *a.self, std::move(shape));
}

// --- conversions and copies
// -------------------------------------------------------------------------------------------------

Value converted(Interp& in, const Value& v, DType dtype) {
  auto* t = v.get<TensorObject>();
  if (t->dtype() == dtype) return v;
  // One whose memory is in another order keeps that order, which a result of an expression would not.
  if (!t->is_node() && !t->is_pending() && !t->tensor(in).is_contiguous() && is_dense(t->tensor(in)))
    return permuted(in, converted(in, permuted(in, v, memory_order(t->tensor(in))), dtype),
                    inverse(memory_order(t->tensor(in))));
  ExprAttributes attributes;
  attributes.dtype = dtype;
  return compute(in, ExprOp::kCast, {v}, std::move(attributes));
}
template <DType T>
Value convert(Interp& in, NativeArgs& a) {
  return in_memory_format(in, converted(in, *a.self, T), a[0]);
}

/// A copy of what records, on another device: its gradient goes back.
Value with_gradient_back(Interp& in, const TensorObject& from, Tensor copy) {
  if (!from.records()) return wrap(std::move(copy));
  auto back = [](const Expr& gradient, std::span<const Expr> of) -> Result<std::vector<Expr>> {
    if (count_scopes({&gradient, 1}) > 0)
      return error(ErrorKind::kUnsupported, "no gradient of the gradient of a copy to another device");
    KILN_TRY(Tensor elements, run(gradient));
    KILN_TRY(Tensor there, elements.to(of[0].device()));
    return std::vector<Expr>{Expr(std::move(there))};
  };
  const Expr made_of[] = {from.expr()};
  return make<TensorObject>(in, taken(in, with_gradient(std::move(copy), made_of, back)));
}

/// Without waiting, where pinned memory allows: to a GPU from it, and to the CPU into it.
Value moved(Interp& in, const Value& v, const Device& device, bool non_blocking) {
  auto* t = v.get<TensorObject>();
  if (t->device() == device) return v;
  const Tensor& from = t->tensor(in);
  const bool now = !non_blocking || from.device().is_cuda() == device.is_cuda();
  auto copied = [&](const Tensor& elements) -> Result<Tensor> {
    if (now) return elements.to(device);
    KILN_TRY(Tensor source, elements.contiguous());
    KILN_TRY(Tensor to, device.is_cuda() ? Tensor::empty(device, source.dtype(), source.shape())
                                         : Tensor::empty_pinned(source.device(), source.dtype(), source.shape()));
    KILN_CHECK_OK(to.queue_copy_from(source));
    return to;
  };
  return with_gradient_back(in, *t, in_memory_order(in, from, copied));
}

bool is_true(Interp& in, const Value& v) { return !v.missing() && in.truth(v); }

/// to(dtype), to(device), to(device, dtype), to(other)
Value to(Interp& in, NativeArgs& a) {
  Value out = *a.self;
  const bool non_blocking = is_true(in, a[3]);
  auto apply = [&](const Value& v) {
    if (v.missing() || v.is_none()) return;
    if (v.is_dtype() || v.get<TypeObject>()) {
      out = converted(in, out, dtype_of(in, v, self_object(a).dtype()));
    } else if (auto* other = v.get<TensorObject>()) {
      out = moved(in, converted(in, out, other->dtype()), other->device(), non_blocking);
    } else {
      out = moved(in, out, device_of(in, v), non_blocking);
    }
  };
  std::vector<Value> target = rest_of(a[0]);
  bool copies = is_true(in, a[4]);
  if (target.size() > 1 && target.back().is_bool()) {  // non_blocking and copy without their names
    if (target.size() > 2 && target[target.size() - 2].is_bool()) {
      copies = copies || target.back().boolean();
      target.pop_back();
    }
    target.pop_back();
  }
  for (const Value& v : target) apply(v);
  apply(a[1]);
  apply(a[2]);
  if (copies && out.get<TensorObject>() == a.self->get<TensorObject>()) out = in.call(in.attribute(out, "clone"), {});
  return in_memory_format(in, out, a[5]);
}
/// torch's old names of the types of tensors, without "Tensor" at the end.
struct LegacyType {
  DType dtype;
  std::string_view name;
};
constexpr LegacyType kLegacyTypes[] = {
    {DType::kF32, "Float"},
    {DType::kF64, "Double"},
    {DType::kF16, "Half"},
    {DType::kBF16, "BFloat16"},
    {DType::kI64, "Long"},
    {DType::kI32, "Int"},
    {DType::kI16, "Short"},
    {DType::kI8, "Char"},
    {DType::kU8, "Byte"},
    {DType::kI1, "Bool"},
    {DType::kU16, "UInt16"},
    {DType::kU32, "UInt32"},
    {DType::kU64, "UInt64"},
    {DType::kF8E4M3, "Float8_e4m3fn"},
    {DType::kF8E5M2, "Float8_e5m2"},
    {DType::kF8E4B15, "Float8e4b15"},
};
static_assert(std::size(kLegacyTypes) == kNumDTypes);

constexpr std::string_view kLegacyEnd = "Tensor", kLegacyGpu = "torch.cuda.", kLegacyCpu = "torch.";

std::string legacy_name(const TensorObject& t) {
  const LegacyType& type = *std::ranges::find(kLegacyTypes, t.dtype(), &LegacyType::dtype);
  return fmt::format("{}{}{}", t.device().is_cuda() ? kLegacyGpu : kLegacyCpu, type.name, kLegacyEnd);
}

/// The tensor as one of that name's dtype, on the device that the name says.
Value to_legacy(Interp& in, const Value& v, std::string_view asked) {
  const bool gpu = asked.starts_with(kLegacyGpu);
  std::string_view name = asked;
  if (gpu || name.starts_with(kLegacyCpu)) {
    name.remove_prefix((gpu ? kLegacyGpu : kLegacyCpu).size());
    if (name.ends_with(kLegacyEnd)) {
      name.remove_suffix(kLegacyEnd.size());
      const auto* type = std::ranges::find(kLegacyTypes, name, &LegacyType::name);
      if (type != std::end(kLegacyTypes)) {
        Value out = converted(in, v, type->dtype);
        if (out.get<TensorObject>()->device().is_cuda() == gpu) return out;
        return moved(in, out, device_of(in, Value::str(gpu ? "cuda" : "cpu")), false);
      }
    }
  }
  in.fail(ErrorKind::kValue, "type({}): it is a dtype, or a name such as 'torch.FloatTensor'",
          in.repr(Value::str(std::string(asked))));
}

/// Without an argument torch's old name of the tensor's type.
Value type(Interp& in, NativeArgs& a) {
  if (!given(a[0])) return Value::str(legacy_name(self_object(a)));
  if (auto* name = a[0].get<Str>()) return to_legacy(in, *a.self, name->text);
  return converted(in, *a.self, dtype_of(in, a[0], self_object(a).dtype()));
}
Value cpu(Interp& in, NativeArgs& a) {
  return moved(in, *a.self, taken(in, torch_state(in).runtime().open("cpu")), is_true(in, a[0]));
}
Value cuda(Interp& in, NativeArgs& a) {
  const bool named = !a[0].missing() && !a[0].is_none();
  return moved(in, *a.self, device_of(in, named ? a[0] : Value::str("cuda")), is_true(in, a[1]));
}
Value as_strided(Interp& in, NativeArgs& a) {
  const Tensor& t = self_tensor(in, a);
  const int64_t offset = a[2].missing() || a[2].is_none() ? t.offset() : in.to_int(a[2], "the offset");
  return wrap(taken(in, t.as_strided(shape_of(in, {a[0]}), shape_of(in, {a[1]}), offset)));
}
Value storage_offset(Interp& in, NativeArgs& a) { return Value::integer(seen_self(in, a).offset()); }
Value pin_memory(Interp& in, NativeArgs& a) {
  const Tensor& from = self_tensor(in, a);
  if (from.is_pinned()) return *a.self;
  if (from.device().is_cuda())
    in.fail(ErrorKind::kValue, "pin_memory() is for tensors on the cpu, this one is on {}", from.device().name());
  const Device& gpu = torch_state(in).device();
  if (!gpu.is_cuda()) return *a.self;  // nothing to copy to
  return wrap(in_memory_order(in, from, [&](const Tensor& elements) -> Result<Tensor> {
    KILN_TRY(Tensor to, Tensor::empty_pinned(gpu, elements.dtype(), elements.shape()));
    KILN_CHECK_OK(to.copy_from(elements));
    return to;
  }));
}
Value is_pinned(Interp& in, NativeArgs& a) { return Value::boolean(seen_self(in, a).is_pinned()); }
Value record_stream(Interp& in, NativeArgs& a) {
  auto* s = a[0].get<StreamObject>();
  if (!s) in.fail(ErrorKind::kType, "record_stream() needs a stream, got '{}'", in.type_name(a[0]));
  seen_self(in, a).used_on(s->stream);
  return Value::none();
}

Tensor copy(Interp& in, const Tensor& t) {
  return in_memory_order(in, t, [](const Tensor& from) -> Result<Tensor> {
    KILN_TRY(Tensor out, Tensor::empty(from.device(), from.dtype(), from.shape()));
    KILN_CHECK_OK(out.copy_from(from));
    return out;
  });
}
Value clone(Interp& in, NativeArgs& a) {
  if (given(a[0])) {
    const Value copied = in.call(in.attribute(*a.self, "clone"), {});
    return in_memory_format(in, copied, a[0]);
  }
  TensorObject& t = self_object(a);
  // Of a tensor in memory, a product with 1 is the same bits, and part of what is made of it. (A conversion to its own
  // dtype would share the memory.)
  const bool waits = !t.is_pending() && t.tensor(in).is_contiguous() && t.dtype() != DType::kI1 && !is_fp8(t.dtype());
  if (!t.records() && waits && (t.numel() >= kLazyElements || torch_state(in).always_lazy))
    return compute(in, ExprOp::kMul, {*a.self, Value::integer(1)});
  if (!t.records()) return wrap(copy(in, self_tensor(in, a)));
  ExprAttributes same;
  same.dtype = self_object(a).dtype();
  return compute(in, ExprOp::kCast, {*a.self}, std::move(same));
}
Value detach(Interp& in, NativeArgs& a) { return detached_value(in, self_object(a)); }
Value requires_grad(Interp& in, NativeArgs& a) {
  const bool on = a[0].missing() || in.truth(a[0]);
  self_object(a).set_requires_grad(in, on);
  if (on) self_object(a).record(in);  // a parameter too, which else waits for an optimizer
  return *a.self;
}

Shape shape_of_self(NativeArgs& a) { return {self_object(a).shape().begin(), self_object(a).shape().end()}; }

Value fill(Interp& in, NativeArgs& a) {
  checked(in, changing(in, a).fill(fill_value(in, a[0], self_object(a).dtype(), "the value")));
  return *a.self;
}
Value zero(Interp& in, NativeArgs& a) {
  checked(in, changing(in, a).fill(0));
  return *a.self;
}
Value copy_in(Interp& in, NativeArgs& a) {
  Value given_source = a[0];
  if (given_source.small_int_or_bool() || given_source.is_float()) {  // as torch, a tensor without dimensions
    CallArgs number;
    number.args.push_back(std::move(given_source));
    given_source = in.call(in.attribute(in.import_module("torch"), "tensor"), number);
  }
  const Value constant = constant_if_paused(in, given_source);
  auto* source = constant.get<TensorObject>();
  if (self_object(a).records() || (source && source->records())) {
    if (!source) in.fail(ErrorKind::kType, "copy_() needs a tensor, got '{}'", in.type_name(constant));
    self_object(a).become(in, [&] {
      ExprAttributes copy;  // an operation of its own: the source keeps its memory
      copy.dtype = self_object(a).dtype();
      const Value whole = compute(in, ExprOp::kCast, {expanded_to(in, constant, shape_of_self(a))}, std::move(copy));
      return whole.get<TensorObject>()->expr();
    });
    return *a.self;
  }
  if (const TensorObject& t = self_object(a); !t.is_pending() || t.is_store()) fail_if_shared(in, t.home());
  const bool converts = source && self_object(a).device().is_cuda() && source->dtype() != self_object(a).dtype();
  if (source && source != &self_object(a) && (source->is_pending() || converts) &&
      source->device() == self_object(a).device()) {
    ExprAttributes copy;  // an operation of its own: the source keeps its memory
    copy.dtype = self_object(a).dtype();
    const Value own = compute(in, ExprOp::kCast, {expanded_to(in, constant, shape_of_self(a))}, std::move(copy));
    store_in_place(in, self_object(a), *own.get<TensorObject>());
    return *a.self;
  }
  const Tensor& from = tensor_of(in, constant, "copy_()");
  const Tensor& to = changing(in, a);
  if (is_true(in, a[1]) && from.dtype() == to.dtype() && std::ranges::equal(from.shape(), to.shape())) {
    checked(in, to.queue_copy_from(from));
    return *a.self;
  }
  checked(in, to.copy_from(expanded(in, taken(in, taken(in, from.to(to.device())).to(to.dtype())), shape_vector(to))));
  return *a.self;
}
/// offset + scale · random numbers, in float64 before they are rounded.
Value fill_random(Interp& in, NativeArgs& a, const Tensor& random, double scale, double offset) {
  if (const DType dtype = self_object(a).dtype(); !is_float(dtype))
    in.fail_as("NotImplementedError", "random numbers with fractions do not fit into a tensor of {}",
               info(dtype).torch);
  const Value scaled = compute(in, ExprOp::kMul, {wrap(random), Value::real(scale)});
  const Value moved = compute(in, ExprOp::kAdd, {scaled, Value::real(offset)});
  store_in_place(in, self_object(a), *moved.get<TensorObject>());
  return *a.self;
}
Value uniform(Interp& in, NativeArgs& a) {
  double low = a[0].missing() ? 0 : in.to_double(a[0], "from"), high = a[1].missing() ? 1 : in.to_double(a[1], "to");
  if (!(low <= high))
    in.fail_as("RuntimeError", "uniform_ expects to return a [from, to) range, but found from={} > to={}", low, high);
  const Tensor& t = changing(in, a);
  const Tensor random = taken(in, rand(t.device(), DType::kF64, t.shape(), torch_state(in).next_seed()));
  return fill_random(in, a, random, high - low, low);
}
Value normal(Interp& in, NativeArgs& a) {
  double mean = a[0].missing() ? 0 : in.to_double(a[0], "mean"), sigma = a[1].missing() ? 1 : in.to_double(a[1], "std");
  if (!(sigma >= 0)) in.fail_as("RuntimeError", "normal expects std >= 0.0, but found std {}", sigma);
  const Tensor& t = changing(in, a);
  const Tensor random = taken(in, randn(t.device(), DType::kF64, t.shape(), torch_state(in).next_seed()));
  return fill_random(in, a, random, sigma, mean);
}

Value item(Interp& in, NativeArgs& a) { return item_of(in, seen_self(in, a)); }
/// What float() and int() of a tensor with one element give. Of others they are a ValueError, item() a RuntimeError.
Value only_element(Interp& in, NativeArgs& a) {
  const int64_t n = self_object(a).numel();
  if (n != 1) in.fail(ErrorKind::kValue, "a tensor of {} elements is no single number", n);
  return item_of(in, seen_self(in, a));
}
Value as_float(Interp& in, NativeArgs& a) { return Value::real(in.to_double(only_element(in, a), "the element")); }
Value as_int(Interp& in, NativeArgs& a) {
  Value v = only_element(in, a);
  if (!v.is_float()) return in.unary(ast::UnaryOp::kPlus, v);
  if (std::isnan(v.real())) in.fail(ErrorKind::kValue, "{} cannot be an int", in.repr(v));
  if (std::fabs(v.real()) >= 0x1p126) in.fail_as("OverflowError", "{} cannot be an int", in.repr(v));
  return Value::wide(static_cast<ast::Int>(v.real()));
}
Value as_index(Interp& in, NativeArgs& a) {
  if (is_float(self_object(a).dtype()))
    in.fail(ErrorKind::kType, "a tensor of {} is no index", info(self_object(a).dtype()).torch);
  if (self_object(a).numel() != 1)
    in.fail(ErrorKind::kType, "a tensor of {} elements is no index", self_object(a).numel());
  return as_int(in, a);
}

/// The elements from `at` on, which moves behind them.
Value to_list(Interp& in, DType dtype, const Shape& shape, size_t dim, const std::byte*& at) {
  in.check_interrupt();
  if (dim == shape.size()) return element_value(dtype, std::exchange(at, at + size_of(dtype)));
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(shape[dim]));
  for (int64_t i = 0; i < shape[dim]; ++i) out.push_back(to_list(in, dtype, shape, dim + 1, at));
  return make<List>(std::move(out));
}
Value tolist(Interp& in, NativeArgs& a) {
  std::vector<std::byte> bytes = taken(in, seen_self(in, a).to_bytes());
  const std::byte* at = bytes.data();
  return to_list(in, self_object(a).dtype(), shape_vector(seen_self(in, a)), 0, at);
}

// --- new tensors like this one
// ----------------------------------------------------------------------------------------------

Value new_filled(Interp& in, NativeArgs& a, std::optional<double> value) {
  Shape shape = shape_of(in, rest_of(a[0]));
  DType dtype = dtype_of(in, a[1], self_object(a).dtype());
  Device device = a[2].missing() || a[2].is_none() ? self_object(a).device() : device_of(in, a[2]);
  if (value) return filled_tensor(in, device, dtype, std::move(shape), *value);
  return wrap(taken(in, Tensor::empty(device, dtype, shape)));
}
Value new_empty(Interp& in, NativeArgs& a) { return new_filled(in, a, std::nullopt); }
Value new_zeros(Interp& in, NativeArgs& a) { return new_filled(in, a, 0.0); }
Value new_ones(Interp& in, NativeArgs& a) { return new_filled(in, a, 1.0); }

constexpr NativeDef kMethods[] = {
    {"__float__()", as_float, "the one element as a float"},
    {"__index__()", as_index, "the one integer"},
    {"__int__()", as_int, "the one element as an int"},
    {"as_strided(size, stride, storage_offset=None)", as_strided, "its storage seen with other sizes and strides"},
    {"bfloat16(memory_format=None)", convert<DType::kBF16>, "as bfloat16"},
    {"bool(memory_format=None)", convert<DType::kI1>, "as bool: is it other than 0?"},
    {"byte(memory_format=None)", convert<DType::kU8>, "as uint8"},
    {"char(memory_format=None)", convert<DType::kI8>, "as int8"},
    {"clone(*, memory_format=None)", clone, "a copy"},
    {"contiguous(memory_format=None)", contiguous, "in row-major order; itself when it is already"},
    {"copy_(other, non_blocking=False)", copy_in, "takes the other's elements"},
    {"cpu(non_blocking=False)", cpu, "on the CPU"},
    {"cuda(device=None, non_blocking=False)", cuda, "on the GPU, or on that one"},
    {"data_ptr()", data_ptr, "its address on the device"},
    {"detach()", detach, "itself, as a constant for gradients"},
    {"dim()", dim, "the number of dimensions"},
    {"double(memory_format=None)", convert<DType::kF64>, "as float64"},
    {"element_size()", element_size, "bytes of an element"},
    {"expand(*size)", expand, "repeated along dimensions of size 1, without a copy"},
    {"fill_(value)", fill, "sets all elements"},
    {"float(memory_format=None)", convert<DType::kF32>, "as float32"},
    {"half(memory_format=None)", convert<DType::kF16>, "as float16"},
    {"int(memory_format=None)", convert<DType::kI32>, "as int32"},
    {"is_contiguous(memory_format=None)", is_contiguous, "is it in row-major order without gaps?"},
    {"is_floating_point()", is_floating_point, "does it hold floats?"},
    {"is_pinned()", is_pinned, "is it in memory that the GPU copies by itself?"},
    {"item()", item, "the one element as a number"},
    {"long(memory_format=None)", convert<DType::kI64>, "as int64"},
    {"ndimension()", dim, "the number of dimensions"},
    {"nelement()", numel, "the number of elements"},
    {"new_empty(*shape, dtype=None, device=None)", new_empty, "an uninitialised tensor of the same dtype and device"},
    {"new_ones(*shape, dtype=None, device=None)", new_ones, "ones of the same dtype and device"},
    {"new_zeros(*shape, dtype=None, device=None)", new_zeros, "zeros of the same dtype and device"},
    {"normal_(mean=0.0, std=1.0)", normal, "fills it with normal random numbers"},
    {"numel()", numel, "the number of elements"},
    {"permute(*dims)", permute, "the dimensions in another order, without a copy"},
    {"pin_memory()", pin_memory, "a copy in memory that the GPU copies by itself"},
    {"record_stream(stream)", record_stream, "its memory is not reused before that stream has passed"},
    {"requires_grad_(requires_grad=True)", requires_grad, "accepted; torch.func.grad says what has gradients"},
    {"reshape(*shape)", reshape, "in another shape; copies only when it must"},
    {"short(memory_format=None)", convert<DType::kI16>, "as int16"},
    {"size(dim=None)", size, "the shape, or one dimension"},
    {"squeeze(dim=None, *more)", squeeze, "without dimensions of size 1"},
    {"storage_offset()", storage_offset, "elements from the start of its storage"},
    {"stride(dim=None)", stride, "the strides in elements, or one of them"},
    {"t()", t, "transposed"},
    {"to(*target, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None)", to,
     "as another dtype or on another device"},
    {"tolist()", tolist, "as nested lists"},
    {"transpose(dim0, dim1)", transpose, "two dimensions swapped, without a copy"},
    {"type(dtype=None)", type, "as another dtype; without one the name of the type"},
    {"uniform_(low=0.0, high=1.0)", uniform, "fills it with uniform random numbers"},
    {"unsqueeze(dim)", unsqueeze, "with a dimension of size 1 put in"},
    {"view(*size, dtype=)", view, "in another shape, or of another dtype, without a copy"},
    {"zero_()", zero, "sets all elements to 0"},
};

}  // namespace

void install_tensor_methods(Interp& in) {
  in.add_methods({TensorObject::kKind, kMethods});
  install_tensor_elementwise(in);
  install_tensor_reductions(in);
  install_tensor_matmul(in);
  install_size_methods(in);
  install_check(in);
  add_complex_methods(in);
}

}  // namespace kiln::script
