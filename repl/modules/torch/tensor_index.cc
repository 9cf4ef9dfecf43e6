// Elements of tensors by their places: x[…], x[…] = v, and what other operations that look elements up are made of.
// Ints, slices, None and `...` are views. Tensors of places are operations of the expression (ExprOp::kTake).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include "repl/modules/torch/tensor_grad.h"
#include "repl/modules/torch/tensor_index.h"
#include "repl/modules/torch/tensor_sort.h"
#include "runtime/tensor/convert.h"

namespace kiln::script {

namespace {

[[noreturn]] void index_error(Interp& in, std::string message) { in.fail_as("IndexError", "{}", message); }

/// An index picked apart: first a view of the tensor, then dimensions of that view with tensors of places.
struct Parsed {
  Shape starts, counts, steps;  // of the tensor's dimensions
  Shape shape;                  // of the view
  std::vector<bool> dropped;    // per dimension of the tensor: an int names its one element
  std::vector<size_t> added;    // dimensions of the view that are new, in order…
  std::vector<size_t> before;   // …and the tensor's dimension that each stands before
  std::vector<Looked> looked;
  std::vector<Looked> picked;  // by one place each, which is not read on the host
};

/// For each dimension that a mask covers, where it is true.
std::vector<Expr> places_of_mask(Interp& in, const Value& mask, std::span<const int64_t> covered, size_t dim) {
  const Tensor& m = mask.get<TensorObject>()->tensor(in);
  for (size_t d = 0; d < m.shape().size(); ++d)
    if (d >= covered.size() || covered[d] != m.shape()[d])
      index_error(in, fmt::format("the mask of shape {} does not fit the tensor at dimension {}",
                                  in.repr(size_value(m.shape())), dim + d));
  std::vector<Expr> out;
  for (Tensor& t : places_of_nonzero(in, m)) out.emplace_back(std::move(t));
  return out;
}

bool is_mask(const Value& v) {
  auto* t = v.get<TensorObject>();
  return t && (t->dtype() == DType::kI1 || t->dtype() == DType::kU8);
}
bool is_place(const Value& v) {
  auto* t = v.get<TensorObject>();
  return t && !is_mask(v) && t->rank() > 0;
}

/// Lists of places as tensors; one index as a tuple of one.
std::vector<Value> parts_of(Interp& in, const TensorObject& of, const Value& index) {
  std::vector<Value> parts = index.get<Tuple>() ? index.get<Tuple>()->items : std::vector<Value>{index};
  for (Value& p : parts) {
    if (!p.get<List>()) continue;
    CallArgs args;
    args.args.push_back(p);
    args.keywords.push_back({"device", make<DeviceObject>(of.device()), {}});
    p = in.call(in.attribute(in.import_module("torch"), "tensor"), args);
    auto* t = p.get<TensorObject>();
    if (t->numel() == 0) p = wrap(taken(in, t->tensor(in).to(DType::kI64)));
  }
  return parts;
}

/// As torch reads an index: a list that holds more than numbers is a tuple of indices, True and False are masks
/// without dimensions. Tuples and ranges inside of an index are lists of places.
Value normal_index(Interp& in, const Value& index) {
  constexpr size_t kMostIndices = 32;  // a longer list is one index
  auto is_index = [](const Value& v) {
    return v.get<List>() || v.get<Tuple>() || v.get<TensorObject>() || v.get<SliceObject>() || v.is_none() ||
           v.kind() == Kind::kEllipsis;
  };
  const auto* list = index.get<List>();
  const bool as_tuple = list && list->items.size() < kMostIndices && std::ranges::any_of(list->items, is_index);
  const auto* tuple = index.get<Tuple>();
  std::vector<Value> parts = as_tuple ? list->items : tuple ? tuple->items : std::vector<Value>{index};
  const bool masks = std::ranges::any_of(parts, [](const Value& v) { return v.is_bool(); });
  auto is_places = [](const Value& v) { return v.get<kiln::script::Tuple>() || v.get<Range>(); };
  if (!as_tuple && !masks && std::ranges::none_of(parts, is_places)) return index;
  const Device cpu = taken(in, torch_state(in).runtime().open("cpu"));
  for (Value& v : parts)
    if (is_places(v)) v = make<List>(in.to_vector(v));
  for (Value& v : parts)
    if (v.is_bool()) v = wrap(taken(in, Tensor::full(cpu, DType::kI1, {}, v.boolean() ? 1.0 : 0.0)));
  return parts.size() == 1 && !as_tuple && !tuple ? parts[0] : Value(make<kiln::script::Tuple>(std::move(parts)));
}

/// A value of more dimensions than there is room for loses leading ones of size 1.
Shape without_leading(std::span<const int64_t> shape, size_t rank) {
  while (shape.size() > rank && shape[0] == 1) shape = shape.subspan(1);
  return {shape.begin(), shape.end()};
}
Tensor without_leading(Interp& in, const Tensor& t, size_t rank) {
  const Shape shape = without_leading(t.shape(), rank);
  const size_t dropped = t.shape().size() - shape.size();
  return dropped == 0 ? t : taken(in, t.as_strided(shape, t.strides().subspan(dropped), t.offset()));
}

/// `picks`: one place in a tensor is looked up too while a graph is captured.
Parsed parse(Interp& in, TensorObject& t, const Value& index, bool picks = false) {
  const auto shape = t.shape();
  std::vector<Value> parts = parts_of(in, t, index);
  size_t picked = 0;
  for (const Value& p : parts)
    if (!p.is_none() && p.kind() != Kind::kEllipsis)
      picked += is_mask(p) ? static_cast<size_t>(p.get<TensorObject>()->rank()) : 1;
  if (picked > shape.size())
    index_error(in, fmt::format("{} indices for a tensor of {} dimensions", picked, shape.size()));
  if (std::none_of(parts.begin(), parts.end(), [](const Value& v) { return v.kind() == Kind::kEllipsis; }))
    parts.push_back(in.ellipsis());
  Parsed out;
  out.starts.assign(shape.size(), 0);
  out.steps.assign(shape.size(), 1);
  out.counts.assign(shape.begin(), shape.end());
  out.dropped.assign(shape.size(), false);
  size_t dim = 0;
  bool seen_ellipsis = false;
  auto look = [&](Expr places) {
    out.looked.push_back({out.shape.size(), std::move(places)});
    out.shape.push_back(shape[dim++]);
  };
  for (const Value& p : parts) {
    if (p.is_none()) {
      out.added.push_back(out.shape.size());
      out.before.push_back(dim);
      out.shape.push_back(1);
    } else if (p.kind() == Kind::kEllipsis) {
      if (seen_ellipsis) index_error(in, "only one '...' can stand in an index");
      seen_ellipsis = true;
      for (size_t n = shape.size() - picked; n > 0; --n) out.shape.push_back(shape[dim++]);
    } else if (auto* s = p.get<SliceObject>()) {
      const auto span = in.slice_span(*s, shape[dim]);
      if (span.step < 0) in.fail(ErrorKind::kValue, "a tensor's slice needs a step above 0");
      out.starts[dim] = span.count > 0 ? span.start : 0;
      out.counts[dim] = span.count;
      out.steps[dim] = span.step;
      out.shape.push_back(span.count);
      ++dim;
    } else if (is_mask(p)) {
      auto* mask = p.get<TensorObject>();
      if (mask->rank() == 0) {  // a new dimension of one element, or of none
        out.added.push_back(out.shape.size());
        out.before.push_back(dim);
        const Tensor where = places_of_nonzero(in, taken(in, mask->tensor(in).view(Shape{1})))[0];
        out.looked.push_back({out.shape.size(), Expr(where)});
        out.shape.push_back(1);
        continue;
      }
      for (Expr& e : places_of_mask(in, p, shape.subspan(dim), dim)) look(std::move(e));
    } else if (is_place(p)) {
      const Value ready = places_in(in, p, t.device());
      check_places(in, ready, shape[dim], static_cast<int64_t>(dim), true);
      look(ready.get<TensorObject>()->expr());
    } else {
      Value i = p;
      if (auto* scalar = p.get<TensorObject>()) {
        if (is_float(scalar->dtype())) index_error(in, "a tensor is indexed by integers, not by floats");
        if (picks && torch_state(in).captures && scalar->dtype() != DType::kI8 && scalar->dtype() != DType::kI16) {
          const Value ready = places_in(in, p, t.device());
          check_places(in, ready, shape[dim], static_cast<int64_t>(dim), true);
          out.picked.push_back({out.shape.size(), ready.get<TensorObject>()->expr()});
          out.shape.push_back(shape[dim++]);
          continue;
        }
        i = item_of(in, scalar->tensor(in));
      }
      if (i.is_float()) index_error(in, "a tensor is indexed by integers, slices, None, '...', tensors and lists");
      out.starts[dim] = in.index_in(i, shape[dim], "dimension");
      out.counts[dim] = 1;
      out.dropped[dim++] = true;
    }
  }
  return out;
}

bool is_whole(const Parsed& p, std::span<const int64_t> shape) {
  return std::ranges::equal(p.counts, shape) && std::ranges::equal(p.shape, shape) &&
         std::all_of(p.steps.begin(), p.steps.end(), [](int64_t s) { return s == 1; });
}

/// The view in memory.
Tensor viewed(Interp& in, const Tensor& t, const Parsed& p) {
  Shape strides;
  int64_t offset = t.offset();
  size_t dim = 0, added = 0;
  for (size_t d = 0; d < t.shape().size(); ++d) offset += p.starts[d] * t.strides()[d];
  for (size_t v = 0; v < p.shape.size(); ++v) {
    if (added < p.added.size() && p.added[added] == v) {
      // As unsqueeze() has it: over all of what stands behind it.
      const size_t next = p.before[added++];
      strides.push_back(next < t.shape().size() ? t.shape()[next] * t.strides()[next] : 1);
      continue;
    }
    while (p.dropped[dim]) ++dim;
    strides.push_back(t.strides()[dim] * p.steps[dim]), ++dim;
  }
  return taken(in, t.as_strided(p.shape, strides, offset));
}

/// The view as part of an expression.
Expr viewed(Interp& in, const Expr& x, const Parsed& p) {
  ExprAttributes slice, reshape;
  slice.shape = p.counts;
  slice.starts = p.starts;
  slice.steps = p.steps;
  reshape.shape = p.shape;
  return applied(in, ExprOp::kReshape, {applied(in, ExprOp::kSlice, {x}, std::move(slice))}, std::move(reshape));
}

/// Whether a view of a pending tensor stays pending. Of a second small part the whole is computed instead: rows that a
/// loop reads one by one would else be a kernel each.
bool stays_pending(Interp& in, TensorObject& t, const Parsed& p) {
  if (t.records()) return true;
  if (!t.is_node()) return false;
  if (torch_state(in).always_lazy || !p.looked.empty()) return true;
  constexpr int64_t kSmallPart = 16;
  int64_t n = 1;
  for (int64_t d : p.shape) n *= d;
  if (n < kLazyElements) return false;
  return n * kSmallPart >= t.numel() || t.is_first_part();
}

}  // namespace

std::vector<Tensor> places_of_nonzero(Interp& in, const Tensor& t) {
  if (runs_kernels(in, t.device())) {
    const Value wrapped = wrap(t);
    std::vector<Tensor> found;
    for (const Value& v : in.to_vector(by_kernels(in, "torch._device", "nonzero", {&wrapped, 1})))
      found.push_back(v.get<TensorObject>()->tensor(in));
    return found;
  }
  const Shape shape = shape_vector(t);
  std::vector<std::vector<int64_t>> places(shape.size());
  auto collect = [&](const auto& v) {
    for (size_t i = 0; i < v.size(); ++i) {
      if (v[i] == 0) continue;
      size_t rest = i;
      for (size_t d = shape.size(); d-- > 0; rest /= static_cast<size_t>(shape[d]))
        places[d].push_back(static_cast<int64_t>(rest % static_cast<size_t>(shape[d])));
    }
  };
  if (is_float(t.dtype()))
    collect(load_floats(in, t, shape));
  else
    collect(load_ints(in, t, shape));
  std::vector<Tensor> out;
  for (const auto& p : places)
    out.push_back(store_ints(in, t.device(), DType::kI64, {static_cast<int64_t>(p.size())}, p));
  return out;
}

Value places_in(Interp& in, const Value& v, const Device& device) {
  auto* t = v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "places are a tensor of integers, got '{}'", in.type_name(v));
  if (t->dtype() != DType::kI64 && t->dtype() != DType::kI32)
    index_error(
        in, fmt::format("a tensor is indexed by tensors of int64, int32 or bool, not of {}", info(t->dtype()).torch));
  if (t->device() == device || t->device().is_cuda()) return v;
  return wrap(taken(in, t->tensor(in).to(device)));
}

void check_places(Interp& in, const Value& v, int64_t size, int64_t dim, bool from_end, std::string_view exception) {
  auto* t = v.get<TensorObject>();
  if (t->device().is_cuda() || torch_state(in).captures) return;  // it would wait for the GPU; they are not made yet
  const Tensor& places = t->tensor(in);
  // Once each: what is expanded has the same ones again.
  Shape shape = shape_vector(places);
  for (size_t d = 0; d < shape.size(); ++d)
    if (places.strides()[d] == 0) shape[d] = std::min<int64_t>(shape[d], 1);
  const Tensor once = taken(in, places.as_strided(shape, places.strides(), places.offset()));
  const int64_t reads = torch_state(in).host_reads;  // a check computes nothing
  const std::vector<int64_t> all = load_ints(in, once, shape);
  torch_state(in).host_reads = reads;
  for (int64_t p : all)
    if (p >= size || p < (from_end ? -size : 0))
      in.fail_as(exception, "index {} is out of bounds for dimension {} with size {}", p, dim, size);
}

namespace {

/// Of the dimensions that are looked up: the shape that their places have together, and where it stands in the result:
/// in place of the first where they are side by side, else ahead of all.
struct Places {
  Shape shape;
  size_t first = 0;
};

Places places_of(Interp& in, const std::vector<Looked>& looked) {
  Places out{{}, looked.empty() ? 0 : looked[0].dim};
  for (size_t i = 0; i < looked.size(); ++i) {
    auto both = broadcast_shapes(out.shape, looked[i].places.shape());
    if (!both.ok()) index_error(in, "the tensors of an index do not broadcast: " + both.error().message);
    out.shape = *both;
    if (looked[i].dim != looked[0].dim + i) out.first = 0;
  }
  return out;
}

}  // namespace

Value looked_up(Interp& in, const Value& from, std::vector<Looked> looked) {
  auto* t = from.get<TensorObject>();
  const auto shape = t->shape();
  const auto [places_shape, first] = places_of(in, looked);
  const size_t k = looked.size();
  std::vector<int> order;
  std::vector<size_t> rest;
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::none_of(looked.begin(), looked.end(), [&](const Looked& l) { return l.dim == d; })) rest.push_back(d);
  for (size_t i = 0; i < first; ++i) order.push_back(static_cast<int>(rest[i]));
  for (const Looked& l : looked) order.push_back(static_cast<int>(l.dim));
  for (size_t i = first; i < rest.size(); ++i) order.push_back(static_cast<int>(rest[i]));
  ExprAttributes permute, spread, take, result;
  permute.axes = order;
  Expr x = applied(in, ExprOp::kPermute, {t->expr()}, std::move(permute));
  for (size_t i = 0; i < first; ++i) spread.shape.push_back(shape[rest[i]]);
  for (const Looked& l : looked) spread.shape.push_back(shape[l.dim]);
  spread.shape.insert(spread.shape.end(), places_shape.size(), 1);
  for (size_t i = first; i < rest.size(); ++i) spread.shape.push_back(shape[rest[i]]);
  x = applied(in, ExprOp::kReshape, {x}, std::move(spread));
  std::vector<Expr> operands = {x};
  for (size_t i = 0; i < k; ++i) {
    take.axes.push_back(static_cast<int>(first + i));
    ExprAttributes at;
    at.shape.assign(looked[i].places.shape().begin(), looked[i].places.shape().end());
    at.shape.insert(at.shape.end(), rest.size() - first, 1);
    operands.push_back(applied(in, ExprOp::kReshape, {looked[i].places}, std::move(at)));
  }
  for (size_t i = 0; i < first; ++i) result.shape.push_back(shape[rest[i]]);
  result.shape.insert(result.shape.end(), places_shape.begin(), places_shape.end());
  for (size_t i = first; i < rest.size(); ++i) result.shape.push_back(shape[rest[i]]);
  const Expr picked = taken(in, apply(ExprOp::kTake, operands, std::move(take)));
  return settled(in, applied(in, ExprOp::kReshape, {picked}, std::move(result)));
}

Value TensorObject::item(Interp& in, const Value& given_index) {
  settle_if_known();
  const Value index = normal_index(in, given_index);
  Parsed p = parse(in, *this, index, /*picks=*/true);
  Value base;
  if (is_pending() && is_whole(p, shape()))
    base = Value(this);
  else if (stays_pending(in, *this, p))
    base = settled(in, viewed(in, expr(), p));
  else
    base = wrap(viewed(in, tensor(in), p));
  // One place is an int in an index: it has no say in where the dimensions of others stand.
  for (Looked& l : p.looked)
    l.dim -= static_cast<size_t>(std::ranges::count_if(p.picked, [&](const Looked& o) { return o.dim < l.dim; }));
  if (!p.picked.empty()) base = looked_up(in, base, std::move(p.picked));
  return p.looked.empty() ? base : looked_up(in, base, std::move(p.looked));
}

namespace {

/// For each position and each of `steps`, their sum: the next dimension of an index.
std::vector<int64_t> spread(Interp& in, const std::vector<int64_t>& positions, const std::vector<int64_t>& steps) {
  std::vector<int64_t> out;
  out.reserve(positions.size() * steps.size());
  in.in_pieces(positions.size(), [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i)
      for (const int64_t step : steps) out.push_back(positions[i] + step);
  });
  return out;
}

/// The elements of a tensor of the host that an index names, in the order of looked_up().
struct Positions {
  Shape shape;
  Runs runs;
};

Positions positions(Interp& in, TensorObject& t, const Value& index) {
  const Device cpu = taken(in, torch_state(in).runtime().open("cpu"));
  Value on_host = index;
  auto to_host = [&](const Value& v) {
    auto* each = v.get<TensorObject>();
    return each && each->device().is_cuda() ? wrap(taken(in, each->tensor(in).to(cpu))) : v;
  };
  if (auto* tuple = index.get<Tuple>()) {
    std::vector<Value> parts;
    for (const Value& v : tuple->items) parts.push_back(to_host(v));
    on_host = make<Tuple>(std::move(parts));
  } else {
    on_host = to_host(index);
  }
  const Parsed p = parse(in, t, on_host);
  // Strides of a view are counted in elements: of one byte each, none of which is read.
  const Tensor whole = taken(in, Tensor::empty(cpu, DType::kI8, Shape(t.shape().begin(), t.shape().end())));
  const Tensor view = viewed(in, whole, p);
  const Places at = places_of(in, p.looked);
  const int64_t count = std::accumulate(at.shape.begin(), at.shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<int64_t> looked(static_cast<size_t>(count));
  size_t behind = 0;  // the dimensions behind all that are looked up
  for (const Looked& l : p.looked) {
    const Value given = settled(in, l.places);
    const std::vector<int64_t> each = load_ints(in, given.get<TensorObject>()->tensor(in), at.shape);
    const int64_t size = view.shape()[l.dim], stride = view.strides()[l.dim];
    for (size_t i = 0; i < each.size(); ++i) looked[i] += (each[i] < 0 ? each[i] + size : each[i]) * stride;
    behind = std::max(behind, l.dim + 1);
  }
  Positions out{{}, {{view.offset()}}};
  size_t spread_dims = static_cast<size_t>(view.rank());
  while (spread_dims > behind && view.strides()[spread_dims - 1] == out.runs.run)
    out.runs.run *= view.shape()[--spread_dims];
  for (size_t d = 0; d < static_cast<size_t>(view.rank()); ++d) {
    if (d == at.first) {
      out.runs.first = spread(in, out.runs.first, looked);
      out.shape.insert(out.shape.end(), at.shape.begin(), at.shape.end());
    }
    if (std::ranges::any_of(p.looked, [&](const Looked& l) { return l.dim == d; })) continue;
    out.shape.push_back(view.shape()[d]);
    if (d >= spread_dims) continue;
    std::vector<int64_t> steps(static_cast<size_t>(view.shape()[d]));
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<int64_t>(i) * view.strides()[d];
    out.runs.first = spread(in, out.runs.first, steps);
  }
  if (out.runs.run == 0) out.runs.first.clear(), out.runs.run = 1;
  return out;
}

/// Kernels take one place as well, as a tensor without dimensions, for which the host would wait.
bool looks_up(const Value& v, bool by_kernels) {
  auto* t = v.get<TensorObject>();
  return v.get<List>() || (t && (t->rank() > 0 || is_mask(v) || (by_kernels && is_int(t->dtype()))));
}

}  // namespace

namespace {

/// What an element becomes where a value is put; a NaN stays, and wins.
template <class T>
T combined(Combine how, T a, T b) {
  auto is_nan = [](T x) { return x != x; };  // NOLINT(misc-redundant-expression)
  switch (how) {
    case Combine::kSet:
      return b;
    case Combine::kAdd:
      if constexpr (std::is_same_v<T, double>)
        return a + b;
      else
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case Combine::kMultiply:
      if constexpr (std::is_same_v<T, double>)
        return a * b;
      else
        return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case Combine::kLeast:
      return is_nan(a) || a < b ? a : b;
    case Combine::kGreatest:
      return is_nan(a) || a > b ? a : b;
  }
  KILN_UNREACHABLE("a value put in way {}", static_cast<int>(how));
}

/// Calls put(place, value) for the bytes of each run of elements and of its values.
template <class Put>
void each_put(Interp& in, std::byte* elements, const Runs& to, const std::byte* values, size_t size, Put&& put) {
  const size_t run = static_cast<size_t>(to.run) * size;
  in.in_pieces(to.first.size(), [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) put(elements + static_cast<size_t>(to.first[i]) * size, values + i * run);
  });
}

/// Combines elements that memory holds as Stored, in doubles or 64-bit integers.
template <class Stored>
void combine_each(Interp& in, std::byte* elements, const Runs& to, const std::byte* values, Combine how) {
  using Wide = std::conditional_t<std::is_floating_point_v<Stored>, double, int64_t>;
  each_put(in, elements, to, values, sizeof(Stored), [&](std::byte* place, const std::byte* value) {
    for (int64_t i = 0; i < to.run; ++i, place += sizeof(Stored), value += sizeof(Stored)) {
      Stored a, b;
      std::memcpy(&a, place, sizeof a);
      std::memcpy(&b, value, sizeof b);
      a = static_cast<Stored>(combined<Wide>(how, a, b));
      std::memcpy(place, &a, sizeof a);
    }
  });
}

/// The same for a dtype that C++ has no type of, or for bool.
template <class Wide>
void combine_converted(Interp& in, DType dtype, std::byte* elements, const Runs& to, const std::byte* values,
                       Combine how) {
  const DType wide = is_float(dtype) ? DType::kF64 : DType::kI64;
  const auto size = static_cast<size_t>(size_of(dtype));
  std::vector<Wide> a(static_cast<size_t>(to.run)), b(a.size());
  each_put(in, elements, to, values, size, [&](std::byte* place, const std::byte* value) {
    runtime::convert_elements(dtype, place, wide, a.data(), to.run);
    runtime::convert_elements(dtype, value, wide, b.data(), to.run);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = combined(how, a[i], b[i]);
      if (dtype == DType::kI1) a[i] = a[i] != 0;
    }
    runtime::convert_elements(wide, a.data(), dtype, place, to.run);
  });
}

void combine(Interp& in, DType dtype, std::byte* elements, const Runs& to, const std::byte* values, Combine how) {
  const auto size = static_cast<size_t>(size_of(dtype));
  if (how == Combine::kSet)
    each_put(in, elements, to, values, size, [&](std::byte* place, const std::byte* value) {
      std::memcpy(place, value, static_cast<size_t>(to.run) * size);
    });
  else if (dtype == DType::kF32)
    combine_each<float>(in, elements, to, values, how);
  else if (dtype == DType::kF64)
    combine_each<double>(in, elements, to, values, how);
  else if (dtype == DType::kI32)
    combine_each<int32_t>(in, elements, to, values, how);
  else if (dtype == DType::kI64)
    combine_each<int64_t>(in, elements, to, values, how);
  else if (is_float(dtype))
    combine_converted<double>(in, dtype, elements, to, values, how);
  else
    combine_converted<int64_t>(in, dtype, elements, to, values, how);
}

}  // namespace

void put_elements(Interp& in, const Tensor& to, const Runs& places, const Tensor& values, Combine how) {
  fail_if_shared(in, to);
  const std::vector<std::byte> given = taken(in, taken(in, values.to(to.dtype())).to_bytes());
  if (!to.device().is_cuda() && to.is_contiguous())
    return combine(in, to.dtype(), reinterpret_cast<std::byte*>(to.address()), places, given.data(), how);
  std::vector<std::byte> bytes = taken(in, to.to_bytes());
  combine(in, to.dtype(), bytes.data(), places, given.data(), how);
  checked(in,
          to.copy_from(taken(in, Tensor::from_host(to.device(), to.dtype(), to.shape(), bytes.data(), bytes.size()))));
}

void add_items(Interp& in, TensorObject& t, const Value& index, const Tensor& values, Combine how) {
  const Tensor& self = t.changing(in);
  const Positions at = positions(in, t, normal_index(in, index));
  put_elements(in, self, at.runs, expanded(in, values, at.shape), how);
}

namespace {

/// What index tensors name takes values of the tensor's dtype, as in torch; what slices name, and masks with one value
/// for all, take others too.
void check_put_dtype(Interp& in, const TensorObject& t, const Value& index, const TensorObject& value) {
  auto names_places = [&](const Value& v) {
    const auto* list = v.get<List>();
    const bool mask = is_mask(v) || (list && !list->items.empty() && list->items[0].is_bool());
    return looks_up(v, false) && (!mask || value.numel() != 1);
  };
  const auto* tuple = index.get<Tuple>();
  if (!names_places(index) && (!tuple || std::ranges::none_of(tuple->items, names_places))) return;
  in.fail(with_note(error(ErrorKind::kType, "elements of {} are put into a tensor of {} by an index of tensors",
                          info(value.dtype()).torch, info(t.dtype()).torch),
                    "help: convert them, with .to(x.dtype)"),
          "RuntimeError");
}

/// The values that an index of that shape takes.
Expr fitted(Interp& in, const TensorObject& t, const Value& value, Shape shape) {
  auto given = operand_of(value);
  ExprAttributes fewer;
  fewer.shape = without_leading(given->shape(), shape.size());
  if (!given->is_scalar() && fewer.shape.size() != given->shape().size())
    given = applied(in, ExprOp::kReshape, {*given}, std::move(fewer));
  if (auto both = broadcast_shapes(shape, given->shape()); !both.ok() || *both != shape)
    in.fail_as("RuntimeError", "a value of shape {} does not fit into {}", in.repr(size_value(given->shape())),
               in.repr(size_value(shape)));
  ExprAttributes whole;
  whole.shape = std::move(shape);
  if (!given->is_scalar()) return applied(in, ExprOp::kExpand, {*given}, std::move(whole));
  const double number = in.to_double(value, "the value");
  return Expr(taken(in, Tensor::full(t.device(), t.dtype(), whole.shape, number)));
}

/// The tensor with values in the part that ints and slices name.
Expr with_part(Interp& in, const TensorObject& t, const Parsed& p, const Value& value) {
  ExprAttributes part;
  part.shape = p.counts;
  Shape shape;  // without the dimensions that an int names, nor new ones
  for (size_t d = 0; d < p.counts.size(); ++d)
    if (!p.dropped[d]) shape.push_back(p.counts[d]);
  const Expr given = fitted(in, t, value, p.added.empty() ? shape : p.shape);
  return with_part(in, t.expr(), p.starts, p.steps, applied(in, ExprOp::kReshape, {given}, std::move(part)));
}

/// x[index] = value, where one of both has a gradient.
void put_recorded(Interp& in, TensorObject& t, const Value& index, const Value& value) {
  if (!operand_of(value))
    in.fail(ErrorKind::kType, "an element is a number or a tensor, not '{}'", in.type_name(value));
  const auto* tuple = index.get<Tuple>();
  auto looks = [](const Value& v) { return looks_up(v, false); };
  if (looks(index) || (tuple && std::ranges::any_of(tuple->items, looks))) {
    Shape shape;
    Tensor places;
    if (t.device().is_cuda()) {
      const Value arguments[] = {Value(&t), index};
      const Value found = by_kernels(in, "torch._put", "positions", arguments);
      shape = shape_vector(found.get<TensorObject>()->tensor(in));
      places = taken(in, found.get<TensorObject>()->tensor(in).view(Shape{-1}));
    } else {
      const Positions at = positions(in, t, index);
      std::vector<int64_t> run(static_cast<size_t>(at.runs.run));
      std::iota(run.begin(), run.end(), int64_t{0});
      const std::vector<int64_t> all = spread(in, at.runs.first, run);
      shape = at.shape;
      places = store_ints(in, t.device(), DType::kI64, {static_cast<int64_t>(all.size())}, all);
    }
    return t.become(in, [&] { return with_put(in, t.expr(), places, fitted(in, t, value, shape)); });
  }
  const Parsed p = parse(in, t, index);
  t.become(in, [&] { return with_part(in, t, p, value); });
}

/// A table that is not computed yet: what is put into parts of it is chosen where it is read.
bool is_table(Interp& in, const TensorObject& t) {
  return t.is_pending() && !t.is_store() && !t.records() && runs_kernels(in, t.device()) && t.expr().is_of_counts();
}

/// x[index] = values of a table into another one (the sines and cosines of places). Whether it was done so.
bool put_table(Interp& in, TensorObject& t, const Value& index, TensorObject& values) {
  if (!is_table(in, t) || !is_table(in, values) || values.device() != t.device()) return false;
  const Parsed p = parse(in, t, index);
  if (std::ranges::find(p.counts, 0) != p.counts.end()) return false;
  const Value result = settled(in, with_part(in, t, p, Value(&values)));
  store_in_place(in, t, *result.get<TensorObject>());
  return true;
}

/// The elements that ints and slices name, by counts alone; empty where they are all.
Expr named_by(Interp& in, const TensorObject& t, const Parsed& p) {
  Expr named;
  auto require = [&](ExprOp op, const Expr& at, int64_t number) {
    const Expr test = applied(in, op, {at, Expr::scalar(number)});
    named = named ? applied(in, ExprOp::kLogicalAnd, {named, test}) : test;
  };
  const std::span<const int64_t> whole = t.shape();
  for (size_t d = 0; d < whole.size(); ++d) {
    const int64_t first = p.starts[d], step = p.steps[d], end = first + (p.counts[d] - 1) * step + 1;
    if (p.counts[d] == whole[d]) continue;
    ExprAttributes along;
    along.shape.assign(whole.size(), 1);
    along.shape[d] = whole[d];
    const Expr at = applied(in, ExprOp::kReshape, {Expr::iota(t.device(), whole[d], DType::kI64)}, std::move(along));
    if (first > 0) require(ExprOp::kGe, at, first);
    if (end < whole[d]) require(ExprOp::kLt, at, end);
    if (step > 1) require(ExprOp::kEq, applied(in, ExprOp::kMod, {at, Expr::scalar(step)}), first % step);
  }
  return named;
}

/// x[index] = value of one number for all, where x is not computed yet and cheap (the ones of a mask): the number is
/// chosen where x is read. Whether it was done so.
bool put_number(Interp& in, TensorObject& t, const Value& index, const Value& value) {
  if (!runs_kernels(in, t.device()) || !t.is_pending() || t.is_store() || !t.expr().is_cheap_again()) return false;
  const Parsed p = parse(in, t, index);
  if (std::ranges::find(p.counts, 0) != p.counts.end()) return true;
  const Expr named = named_by(in, t, p);
  if (!named) return false;
  const Expr chosen = applied(in, ExprOp::kWhere, {named, *operand_of(value), t.expr()});
  const Value result = settled(in, in_dtype(in, chosen, t.dtype()));
  store_in_place(in, t, *result.get<TensorObject>());
  return true;
}

/// x[index] = value, where ints and slices name a view.
void put_part(Interp& in, TensorObject& t, const Value& index, Value value) {
  auto* source = value.get<TensorObject>();
  if (source ? put_table(in, t, index, *source) : put_number(in, t, index, value)) return;
  // What is pending is computed into the view, and another dtype converted, by the kernel that computes it; copies
  // otherwise. All reading comes before.
  const bool computes = source && source->device() == t.device() && !source->is_store() &&
                        (source->is_pending() || (t.device().is_cuda() && source->dtype() != t.dtype()));
  if (source && !computes) source->tensor(in);
  const Tensor& self = computes ? t.tensor(in) : t.changing(in);
  const Tensor view = viewed(in, self, parse(in, t, index));
  if (!source) return checked(in, view.fill(fill_value(in, value, view.dtype(), "the value")));
  const Shape shape = shape_vector(view), given = without_leading(source->shape(), shape.size());
  auto check_shape = [&] {
    if (auto both = broadcast_shapes(shape, given); !both.ok() || *both != shape)
      in.fail_as("RuntimeError", "a value of shape {} does not fit into {}", in.repr(size_value(given)),
                 in.repr(size_value(shape)));
  };
  if (computes) {
    check_shape();
    ExprAttributes fewer, whole, as;
    fewer.shape = given, whole.shape = shape, as.dtype = t.dtype();
    Expr e = source->expr();
    value = Value::none();  // what nobody else holds need not be computed for itself
    if (given.size() != e.shape().size()) e = applied(in, ExprOp::kReshape, {e}, std::move(fewer));
    if (given != shape) e = applied(in, ExprOp::kExpand, {e}, std::move(whole));
    // An operation of its own: the source keeps its memory.
    const Value own = settled(in, applied(in, ExprOp::kCast, {e}, std::move(as)));
    const Value part = wrap(view);
    return store_in_place(in, *part.get<TensorObject>(), *own.get<TensorObject>());
  }
  const Tensor& s = source->tensor(in);
  if (s.storage() == view.storage() && s.offset() == view.offset() && s.dtype() == view.dtype() &&
      std::ranges::equal(s.shape(), view.shape()) && std::ranges::equal(s.strides(), view.strides()))
    return;  // x[i] += 1 puts back what changed in place
  const Tensor from = without_leading(in, taken(in, taken(in, s.to(self.device())).to(self.dtype())), shape.size());
  check_shape();
  checked(in, view.copy_from(expanded(in, from, shape)));
}

}  // namespace

bool TensorObject::change_item(Interp& in, const Value& given_index, ast::BinaryOp op,
                               const std::function<Value()>& right) {
  if (!is_float(dtype()) || !is_table(in, *this)) return false;
  const Value index = normal_index(in, given_index);
  const auto* tuple = index.get<Tuple>();
  auto looks = [](const Value& v) { return v.get<TensorObject>() != nullptr || looks_up(v, true); };
  if (looks(index) || (tuple && std::ranges::any_of(tuple->items, looks))) return false;
  Value part = settled(in, viewed(in, expr(), parse(in, *this, index)));
  const Value by = right();
  Value changed = in.binary(op, part, by);
  part = Value::none();  // else the table had a view, with which it shares memory
  set_item(in, index, std::move(changed));
  return true;
}

void TensorObject::set_item(Interp& in, const Value& given_index, Value value) {
  const Value index = normal_index(in, given_index);
  value = constant_if_paused(in, value);
  auto* source = value.get<TensorObject>();
  if (source && source->dtype() != dtype()) check_put_dtype(in, *this, index, *source);
  if (records() || (source && source->records())) return put_recorded(in, *this, index, value);
  if (!source) fill_value(in, value, dtype(), "the value");
  const auto* tuple = index.get<Tuple>();
  const bool kernels = runs_kernels(in, device());
  auto looks = [&](const Value& v) { return looks_up(v, kernels); };
  if (!looks(index) && (!tuple || std::none_of(tuple->items.begin(), tuple->items.end(), looks)))
    return put_part(in, *this, index, std::move(value));
  // One value for all that a mask names: chosen element by element, where the tensor is.
  auto* mask = index.get<TensorObject>();
  if (mask && mask->dtype() == DType::kI1 && (!source || source->numel() == 1) && mask->device() == device() &&
      mask->rank() <= rank() && std::equal(mask->shape().begin(), mask->shape().end(), shape().begin())) {
    Shape whole(mask->shape().begin(), mask->shape().end());
    whole.resize(shape().size(), 1);
    ExprAttributes wide;
    wide.shape = whole;
    const Expr named = applied(in, ExprOp::kReshape, {mask->expr()}, std::move(wide));
    ExprAttributes scalar, as;
    as.dtype = dtype();
    // An expression of this tensor may be the value: all reading comes before.
    Expr v = !source                        ? *operand_of(value)
             : source->device() == device() ? source->expr()
                                            : Expr(taken(in, source->tensor(in).to(device())));
    if (source) v = applied(in, ExprOp::kCast, {applied(in, ExprOp::kReshape, {v}, scalar)}, as);
    if (!is_pending() || is_store()) fail_if_shared(in, home());
    const Expr chosen = applied(in, ExprOp::kWhere, {named, v, expr()});
    const Value result = settled(in, in_dtype(in, chosen, dtype()));
    return store_in_place(in, *this, *result.get<TensorObject>());
  }
  if (source) source->tensor(in);  // it may be an expression of this tensor
  const Tensor& self = changing(in);
  fail_if_shared(in, self);
  if (kernels) {
    const Tensor given =
        source ? taken(in, source->tensor(in).to(device()))
               : taken(in, Tensor::full(device(), dtype(), {}, fill_value(in, value, dtype(), "the value")));
    const Value arguments[] = {Value(this), index, wrap(given)};
    by_kernels(in, "torch._put", "put_items", arguments);
    return;
  }
  const auto [shape, places] = positions(in, *this, index);
  Tensor from;
  if (source) {
    from = source->tensor(in);
    from = without_leading(in, from, shape.size());
    if (auto both = broadcast_shapes(shape, from.shape()); !both.ok() || *both != shape)
      in.fail_as("RuntimeError", "a value of shape {} does not fit into the {} elements that the index names",
                 in.repr(size_value(from.shape())), places.run * static_cast<int64_t>(places.first.size()));
    from = expanded(in, from, shape);
  } else {
    const Device cpu = taken(in, torch_state(in).runtime().open("cpu"));
    from = taken(in, Tensor::full(cpu, self.dtype(), shape, fill_value(in, value, self.dtype(), "the value")));
  }
  put_elements(in, self, places, from, Combine::kSet);
}

}  // namespace kiln::script
