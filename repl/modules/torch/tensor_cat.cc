// cat and stack. Tensors in memory are copied one after the other on a CPU; pending ones, and most on a GPU, are read
// where they are used.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "repl/modules/torch/tensor_object.h"
#include "repl/script/builtins/builtins.h"

namespace kiln::script {

namespace {

TensorObject& part_of(Interp& in, const Value& v) {
  auto* t = v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "cat() needs a tensor, got '{}'", in.type_name(v));
  return *t;
}

constexpr size_t kMostParts = 16;

/// The lengths that computed tensors had when they were put together, by what else decides their kernel: dtype,
/// dimension, number of parts, and the shape without that dimension.
struct JoinedLengths {
  explicit JoinedLengths(Interp&) {}
  using Key = std::tuple<DType, size_t, size_t, Shape>;
  std::map<Key, std::vector<int64_t>> lengths;
  std::set<Key> varying;
};

/// Whether tensors of these lengths grow, as a cache of keys does: the same came with others before. Each length would
/// compile a kernel.
bool grows(Interp& in, const std::vector<Value>& parts, size_t dim, DType dtype, const Shape& shape) {
  constexpr size_t kMostKnown = 256;
  auto& known = in.state<JoinedLengths>();
  JoinedLengths::Key key{dtype, dim, parts.size(), shape};
  std::get<Shape>(key)[dim] = 0;
  std::vector<int64_t> lengths;
  for (const Value& v : parts) lengths.push_back(v.get<TensorObject>()->shape()[dim]);
  if (known.lengths.size() >= kMostKnown) known.lengths.clear();
  if (known.lengths.try_emplace(key, lengths).first->second != lengths) known.varying.insert(key);
  return known.varying.contains(key);
}

/// Each element of the result looks at every part, so there are few of them; on a GPU more are put together in steps.
/// Computed tensors alone are copied where copies cost less than a kernel would: on a CPU, or when there are many
/// elements of many parts.
bool stays_lazy(Interp& in, const std::vector<Value>& parts, size_t dim, DType dtype, const Shape& shape) {
  constexpr size_t kMostPendingParts = 64, kMostLargeParts = 4;
  constexpr int64_t kLarge = int64_t{1} << 22;
  if (std::ranges::any_of(parts, [](const Value& v) { return v.get<TensorObject>()->records(); }))
    return !shape.empty();
  if (parts.empty() || shape.empty()) return false;
  const Device& device = parts[0].get<TensorObject>()->device();
  bool pending = torch_state(in).always_lazy;
  int64_t elements = 1;
  for (const int64_t d : shape) elements *= d;
  for (const Value& v : parts) {
    if (!(v.get<TensorObject>()->device() == device)) return false;
    pending = pending || v.get<TensorObject>()->is_pending();
  }
  if (pending) return parts.size() <= (device.is_cuda() ? kMostPendingParts : kMostParts);
  if (parts.size() < 2 || parts.size() > kMostParts) return false;
  if (!device.is_cuda() && !torch_state(in).always_kernels) return false;
  return (parts.size() <= kMostLargeParts || elements <= kLarge) && !grows(in, parts, dim, dtype, shape);
}

/// where(i < end, part[i - start], …); of one part a copy.
Value joined(Interp& in, std::vector<Value> parts, size_t dim, DType dtype, const Shape& shape) {
  while (parts.size() > kMostParts) {
    std::vector<Value> wider;
    for (size_t i = 0; i < parts.size(); i += kMostParts) {
      const std::vector<Value> some(
          parts.begin() + static_cast<std::ptrdiff_t>(i),
          parts.begin() + static_cast<std::ptrdiff_t>(std::min(i + kMostParts, parts.size())));
      Shape size = shape;
      size[dim] = 0;
      for (const Value& v : some) size[dim] += v.get<TensorObject>()->shape()[dim];
      wider.push_back(some.size() > 1 ? joined(in, some, dim, dtype, size) : some[0]);
    }
    parts = std::move(wider);
  }
  if (parts.size() == 1) {
    ExprAttributes as;
    as.dtype = dtype;
    return settled(in, applied(in, ExprOp::kCast, {parts[0].get<TensorObject>()->expr()}, as));
  }
  ExprAttributes along, take;
  along.shape.assign(shape.size(), 1);
  along.shape[dim] = shape[dim];
  take.axes = {static_cast<int>(dim)};
  take.any_outside = true;
  const Device& device = parts[0].get<TensorObject>()->device();
  const DType places = shape[dim] < (int64_t{1} << 30) ? DType::kI32 : DType::kI64;
  const Expr i = applied(in, ExprOp::kReshape, {Expr::iota(device, shape[dim], places)}, along);
  Expr out;
  int64_t end = shape[dim];
  for (size_t p = parts.size(); p-- > 0;) {
    const Expr part = in_dtype(in, parts[p].get<TensorObject>()->expr(), dtype);
    const int64_t size = part.shape()[dim], start = end - size;
    const Expr at = start == 0 ? i : applied(in, ExprOp::kSub, {i, Expr::scalar(start)});
    const Expr here = applied(in, ExprOp::kTake, {part, at}, take);
    out = out ? applied(in, ExprOp::kWhere, {applied(in, ExprOp::kLt, {i, Expr::scalar(end)}), here, out}) : here;
    end = start;
  }
  return settled(in, out);
}

/// A list or tuple: a tensor is no list of its rows.
std::vector<Value> parts_of(Interp& in, const Value& tensors, std::string_view what) {
  if (tensors.get<TensorObject>()) in.fail(ErrorKind::kType, "{}() takes a list or tuple of tensors, got one", what);
  return in.to_vector(tensors);
}

Value cat(Interp& in, NativeArgs& a) {
  std::vector<Value> parts = parts_of(in, a[0], "cat");
  if (parts.empty()) in.fail(ErrorKind::kValue, "cat() of no tensors");
  // As in torch a tensor of shape (0,) goes with any; its dtype counts.
  std::vector<Value> wide;
  for (const Value& v : parts)
    if (const TensorObject& t = part_of(in, v); t.rank() != 1 || t.numel() > 0) wide.push_back(v);
  const TensorObject& first = part_of(in, wide.empty() ? parts[0] : wide[0]);
  Shape shape(first.shape().begin(), first.shape().end());
  if (wide.empty()) a[1] = Value::integer(0);
  size_t dim = static_cast<size_t>(in.index_in(a[1].missing() ? Value::integer(0) : a[1], first.rank(), "dimension"));
  DType dtype = first.dtype();
  shape[dim] = 0;
  for (const Value& v : parts) dtype = promote(dtype, part_of(in, v).dtype());
  for (const Value& v : wide) {
    const TensorObject& t = part_of(in, v);
    Shape s(t.shape().begin(), t.shape().end());
    if (s.size() != shape.size())
      in.fail_as("RuntimeError", "cat() of tensors with {} and {} dimensions", shape.size(), s.size());
    shape[dim] += s[dim];
    s[dim] = shape[dim];
    if (s != shape)
      in.fail_as("RuntimeError", "cat() of {} does not fit the first tensor's {}", in.repr(size_value(t.shape())),
                 in.repr(size_value(first.shape())));
  }
  // What has no elements is no part of an expression, whose gradients alone ask for it.
  if (shape[dim] > 0)
    std::erase_if(wide, [](const Value& v) {
      auto* t = v.get<TensorObject>();
      return t->numel() == 0 && !t->records();
    });
  if (stays_lazy(in, wide, dim, dtype, shape)) return joined(in, wide, dim, dtype, shape);
  Tensor out = taken(in, Tensor::empty(first.device(), dtype, shape));
  int64_t at = out.offset();
  for (const Value& v : wide) {
    Tensor t = taken(in, tensor_of(in, v, "cat()").to(dtype));
    checked(in, taken(in, out.as_strided(t.shape(), out.strides(), at)).copy_from(t));
    at += t.shape()[dim] * out.strides()[dim];
  }
  return wrap(out);
}

Value stack(Interp& in, NativeArgs& a) {
  std::vector<Value> parts;
  Value dim = a[1].missing() ? Value::integer(0) : a[1];
  for (const Value& v : parts_of(in, a[0], "stack")) parts.push_back(in.call(in.attribute(v, "unsqueeze"), {dim}));
  if (parts.empty()) in.fail_as("RuntimeError", "stack() of no tensors");
  Value list = make<List>(std::move(parts));
  Value slots[] = {list, dim};
  NativeArgs args{slots};
  return cat(in, args);
}

Value cat_function(Interp& in, NativeArgs& a) { return put_out(in, "cat", cat(in, a), a[2]); }
Value stack_function(Interp& in, NativeArgs& a) { return put_out(in, "stack", stack(in, a), a[2]); }

constexpr NativeDef kCat[] = {
    {"cat(tensors, dim=0, *, out=None)", cat_function, "tensors one after the other along a dimension"},
    {"stack(tensors, dim=0, *, out=None)", stack_function, "tensors along a new dimension"},
};

}  // namespace

std::span<const NativeDef> cat_functions() { return kCat; }

}  // namespace kiln::script
