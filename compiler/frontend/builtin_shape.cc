// Shapes, and what moves elements.
#include <algorithm>
#include <numeric>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::OpKind;
using ir::Shape;
using ir::Type;

Result<ir::Value*> with_axis(Codegen& g, ir::Value* v, int axis, SourceRange range) {
  if (v->type.shape.rank >= ir::kMaxRank)
    return g.fail(range, ErrorKind::kValue, "a tensor has at most {} dimensions", ir::kMaxRank);
  return v->type.is_scalar() ? g.b.splat(v, {1}) : g.b.expand_dims(v, axis);
}

Result<Value> expand_dims(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(std::vector<int64_t> axes, g.ints_arg(a, 1));
  int rank = v->type.shape.rank + static_cast<int>(axes.size());
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return g.fail(a.at(1), ErrorKind::kValue, "axis {} is out of range for a result of {} dimensions", axis, rank);
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return g.fail(a.at(1), ErrorKind::kValue, "tl.expand_dims got the same axis twice");
  for (int64_t axis : axes) {
    KILN_TRY(v, with_axis(g, v, static_cast<int>(axis), a.range));
  }
  return Value(v);
}

Result<Value> broadcast(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * x, g.tensor(a.args[0]));
  KILN_TRY(ir::Value * y, g.tensor(a.args[1]));
  KILN_TRY(Codegen::Pair p, g.broadcast_pair(x, y, a.range));
  return Value::tuple({Value(p.a), Value(p.b)});
}

Result<Value> broadcast_to(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(Shape shape, g.shape_arg(a, 1));
  KILN_TRY(v, g.broadcast_to(v, shape, "the tensor", a.range));
  return Value(v);
}

Result<Value> reshape(Codegen& g, const BoundArgs& a) {
  if (a.builtin->name == "view") g.warn(a.range, "view is deprecated, please use reshape with can_reorder being true.");
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(std::vector<int64_t> dims, g.ints_arg(a, 1));
  int64_t known = 1;
  int64_t* inferred = nullptr;
  for (int64_t& d : dims) {
    if (d == -1 && !inferred)
      inferred = &d;
    else if (d < 1 || (known *= d) > ir::kMaxNumel)
      return g.fail(a.at(1), ErrorKind::kValue, "a dimension of {} is not possible in a shape of at most {} elements",
                    d, ir::kMaxNumel);
  }
  int64_t numel = v->type.shape.numel();
  if (inferred && numel % known == 0) *inferred = numel / known;
  if (dims.size() > ir::kMaxRank)
    return g.fail(a.at(1), ErrorKind::kValue, "a tensor has at most {} dimensions, got {}", ir::kMaxRank, dims.size());
  Shape shape;
  for (int64_t d : dims) shape.dims[shape.rank++] = static_cast<int32_t>(d);
  if (shape.numel() != numel || (inferred && *inferred < 1))
    return g.fail(a.range, ErrorKind::kType, "{} has {} elements and cannot take the shape {}", describe(v->type),
                  numel, ir::to_string(shape));
  KILN_CHECK_OK(g.check_shape(shape, a.at(1)));
  if (v->type.is_scalar() && shape.rank > 0) return Value(g.b.splat(v, shape));
  if (shape.rank == 0 && v->type.is_tile())
    return g.fail(a.range, ErrorKind::kType,
                  "a tensor of one element becomes a scalar with tl.sum(x), not by a reshape");
  return Value(g.b.reshape(v, shape));
}

namespace {

Result<Value> transpose(Codegen& g, const BoundArgs& a, ir::Value* v, std::vector<int64_t> order) {
  int64_t rank = v->type.shape.rank;
  if (static_cast<int64_t>(order.size()) != rank)
    return g.fail(a.range, ErrorKind::kType, "{} has {} dimensions, but the order has {}", describe(v->type), rank,
                  order.size());
  std::vector<bool> seen(order.size());
  for (int64_t& d : order) {
    if (d < -rank || d >= rank)
      return g.fail(a.range, ErrorKind::kValue, "dimension {} is out of range for {}", d, describe(v->type));
    if (d < 0) d += rank;
    if (seen[static_cast<size_t>(d)])
      return g.fail(a.range, ErrorKind::kValue, "the order names dimension {} twice", d);
    seen[static_cast<size_t>(d)] = true;
  }
  return Value(std::is_sorted(order.begin(), order.end()) ? v : g.b.trans(v, order));
}

}  // namespace

Result<Value> trans(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(std::vector<int64_t> order, g.ints_arg(a, 1));
  if (order.empty()) {
    if (v->type.shape.rank < 2)
      return g.fail(a.range, ErrorKind::kType, "tl.trans needs at least two dimensions, got {}", describe(v->type));
    order.resize(v->type.shape.rank);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  }
  return transpose(g, a, v, std::move(order));
}

Result<Value> permute(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  KILN_TRY(std::vector<int64_t> order, g.ints_arg(a, 1));
  return transpose(g, a, v, std::move(order));
}

Result<Value> join(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * x, g.tensor(a.args[0]));
  KILN_TRY(ir::Value * y, g.tensor(a.args[1]));
  KILN_TRY(Codegen::Pair p, g.broadcast_pair(x, y, a.range));
  if (p.a->type != p.b->type)
    return g.fail(a.range, ErrorKind::kType, "tl.join takes two tensors of one type, got {} and {}", describe(a[0]),
                  describe(a[1]));
  bool scalars = p.a->type.is_scalar();
  if (scalars) p = {g.b.splat(p.a, {1}), g.b.splat(p.b, {1})};
  Shape shape = p.a->type.shape;
  if (shape.rank >= ir::kMaxRank)
    return g.fail(a.range, ErrorKind::kValue, "a tensor has at most {} dimensions", ir::kMaxRank);
  shape.dims[shape.rank++] = 2;
  KILN_CHECK_OK(g.check_shape(shape, a.range));
  ir::Value* out = g.b.create1(OpKind::kJoin, {p.a, p.b}, p.a->type.with_shape(shape));
  return Value(scalars ? g.b.reshape(out, {2}) : out);
}

Result<Value> split(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * v, g.tensor(a.args[0]));
  Shape shape = v->type.shape;
  if (shape.rank < 1 || shape[shape.rank - 1] != 2)
    return g.fail(a.range, ErrorKind::kType, "tl.split needs a last dimension of 2, got {}", describe(v->type));
  if (shape.rank == 1) {
    // Two scalars: each is the sum of the one element that is left of a [1, 2] tensor's half.
    v = g.b.expand_dims(v, 0);
    shape = {1};
  } else {
    shape.dims[--shape.rank] = 0;
  }
  bool scalars = a[0].tensor()->type.shape.rank == 1;
  Type half = v->type.with_shape(shape);
  Type results[] = {half, half};
  ir::Op* op = g.b.create(OpKind::kSplit, std::span(&v, 1), results);
  if (!scalars) return Value::tuple({Value(op->result(0)), Value(op->result(1))});
  std::vector<Value> out;
  for (ir::Value* part : op->results) out.push_back(Value(g.only_element(part)));
  return Value::tuple(std::move(out));
}

Result<Value> gather(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * source, g.tensor(a.args[0]));
  KILN_TRY(ir::Value * index, g.tensor(a.args[1]));
  if (source->type.is_scalar() || source->type.pointer)
    return g.fail(a.at(0), ErrorKind::kType, "tl.gather takes a tensor of numbers, got {}", describe(source->type));
  if (!index->type.is_int() || index->type.is_bool())
    return g.fail(a.at(1), ErrorKind::kType, "the index of tl.gather is a tensor of integers, got {}",
                  describe(index->type));
  KILN_TRY(int axis, g.axis_arg(a, 2, source->type.shape.rank));
  bool fits = index->type.shape.rank == source->type.shape.rank;
  for (int d = 0; fits && d < source->type.shape.rank; ++d)
    fits = d == axis || index->type.shape[d] == source->type.shape[d];
  if (!fits)
    return g.fail(a.at(1), ErrorKind::kType,
                  "the index of tl.gather has the tensor's shape but along axis {}, got {} for {}", axis,
                  describe(index->type), describe(source->type));
  return Value(g.b.create1(OpKind::kGather, {source, index}, source->type.with_shape(index->type.shape),
                           {{ir::AttrName::kAxis, int64_t{axis}}}));
}

Result<Value> bucket_place(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * input, g.tensor(a.args[0]));
  if (input->type.is_scalar() || input->type.shape.rank != 1 || input->type.dtype != DType::kI32)
    return g.fail(a.at(0), ErrorKind::kType, "what is counted are int32 in one dimension, got {}",
                  describe(input->type));
  KILN_TRY(ast::Int wanted, g.const_int(a, 1));
  if (wanted < 1 || wanted > ir::kMaxNumel || (wanted & (wanted - 1)) != 0)
    return g.fail(a.at(1), ErrorKind::kValue, "the number of bins is a power of two of at most {}, got {}",
                  ir::kMaxNumel, ast::to_string(wanted));
  const auto bins = static_cast<int64_t>(wanted);
  const Type of_bins = input->type.with_shape({static_cast<int32_t>(bins)});
  const std::array<Type, 3> types = {input->type, of_bins, of_bins};
  ir::Op* op = g.b.create(OpKind::kBucketPlace, std::span(&input, 1), types, {{ir::AttrName::kBins, bins}});
  return Value::tuple({Value(op->result(0)), Value(op->result(1)), Value(op->result(2))});
}

Result<Value> scatter(Codegen& g, const BoundArgs& a) {
  KILN_TRY(ir::Value * source, g.tensor(a.args[0]));
  KILN_TRY(ir::Value * index, g.tensor(a.args[1]));
  if (source->type.is_scalar() || source->type.pointer)
    return g.fail(a.at(0), ErrorKind::kType, "scatter takes a tensor of numbers, got {}", describe(source->type));
  if (!index->type.is_int() || index->type.is_bool() || index->type.shape != source->type.shape)
    return g.fail(a.at(1), ErrorKind::kType, "the index of scatter has integers of the tensor's shape, got {} for {}",
                  describe(index->type), describe(source->type));
  KILN_TRY(int axis, g.axis_arg(a, 2, source->type.shape.rank));
  return Value(g.b.create1(OpKind::kScatter, {source, index}, source->type, {{ir::AttrName::kAxis, int64_t{axis}}}));
}

}  // namespace kiln::frontend::impl
