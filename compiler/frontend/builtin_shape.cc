// Shapes, reductions and scans.
#include <algorithm>
#include <numeric>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::OpKind;
using ir::Shape;
using ir::Type;

namespace {

Result<ir::Value*> with_axis(Codegen& g, ir::Value* v, int axis, SourceRange range) {
  if (v->type.shape.rank >= ir::kMaxRank)
    return g.fail(range, ErrorKind::kValue, "a tensor has at most {} dimensions", ir::kMaxRank);
  return v->type.is_scalar() ? g.b.splat(v, {1}) : g.b.expand_dims(v, axis);
}

}  // namespace

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

namespace {

/// The tensors of a reduction's or scan's input, all of one shape.
Result<std::vector<ir::Value*>> inputs_of(Codegen& g, const BoundArgs& a) {
  std::vector<Value> items = a[0].as_tuple() ? a[0].as_tuple()->items : std::vector<Value>{a[0]};
  std::vector<ir::Value*> out;
  for (const Value& item : items) {
    ir::Value* v = item.tensor();
    if (!v || v->type.is_scalar())
      return g.fail(a.at(0), ErrorKind::kType, "{} needs a tensor with at least one dimension, got {}",
                    a.builtin->display_name(), describe(item));
    if (v->type.pointer)
      return g.fail(a.at(0), ErrorKind::kType, "{} takes numbers, got {}", a.builtin->display_name(),
                    describe(v->type));
    if (!out.empty() && v->type.shape != out.front()->type.shape)
      return g.fail(a.at(0), ErrorKind::kType, "the inputs of {} must have one shape, got {} and {}",
                    a.builtin->display_name(), describe(out.front()->type), describe(v->type));
    out.push_back(v);
  }
  if (out.empty()) return g.fail(a.at(0), ErrorKind::kType, "{} needs at least one tensor", a.builtin->display_name());
  return out;
}

/// Inlines the combine function into the op's region; it must give scalars of the inputs' types.
Status fill_combine(Codegen& g, const BoundArgs& a, ir::Op* op, const std::vector<ir::Value*>& inputs) {
  ir::Block* after = g.b.block();
  g.b.set_to_end(op->region());
  std::vector<Arg> args;
  for (ir::Value* v : op->region()->args) args.push_back({Value(v), a.at(2)});
  const bool before = std::exchange(g.sanitizes, false);
  Result<Value> made = g.call(a[2], std::move(args), {}, a.at(2), a.at(2));
  g.sanitizes = before;
  KILN_TRY(Value combined, std::move(made));
  std::vector<Value> items = combined.as_tuple() ? combined.as_tuple()->items : std::vector<Value>{combined};
  if (items.size() != inputs.size())
    return g.fail(a.at(2), ErrorKind::kType, "the combine function of {} must return {} value{}, got {}",
                  a.builtin->display_name(), inputs.size(), inputs.size() == 1 ? "" : "s", items.size());
  std::vector<ir::Value*> yields;
  for (size_t i = 0; i < items.size(); ++i) {
    Type wanted = inputs[i]->type.scalar();
    ir::Value* v =
        items[i].is_number() && !wanted.pointer ? g.constant(*items[i].constant(), wanted.dtype) : items[i].tensor();
    if (!v || v->type != wanted)
      return with_note(
          g.fail(a.at(2), ErrorKind::kType, "the combine function of {} gets {} and must return that type, got {}",
                 a.builtin->display_name(), describe(wanted), describe(items[i])),
          "help: cast the tensor before the reduction, or the result inside the function");
    yields.push_back(v);
  }
  // Tiles that serve only to ask for a type (`(x + tl.zeros([1], tl.int1)).dtype`) are gone before anybody minds them.
  std::vector<ir::Op*> ops;
  for (ir::Op* inner : *op->region()) ops.push_back(inner);
  auto is_used = [&](const ir::Value* v) {
    return !v->uses.empty() || std::find(yields.begin(), yields.end(), v) != yields.end();
  };
  for (; !ops.empty(); ops.pop_back())
    if (ir::Op* o = ops.back();
        ir::is_pure(o) && o->regions.empty() && std::none_of(o->results.begin(), o->results.end(), is_used))
      o->erase();
  const ir::Op* bad = nullptr;
  for (ir::Op* inner : *op->region())
    ir::any_nested(inner, [&](const ir::Op* o) {
      bool scalar_math = o->kind == OpKind::kConstant || o->kind == OpKind::kIf || o->kind == OpKind::kYield ||
                         (ir::is_pure(o) && ir::is_elementwise(o) && ir::stands_at(o->kind, 'c'));
      const bool wrong = !scalar_math || std::any_of(o->results.begin(), o->results.end(),
                                                     [](const ir::Value* v) { return v->type.is_tile(); });
      if (wrong && !bad) bad = o;
      return wrong;
    });
  if (bad)
    return with_note(
        g.fail(a.at(2), ErrorKind::kType,
               "the combine function of {} computes on scalars only: no memory, program ids, loops or tensors",
               a.builtin->display_name()),
        "not scalar arithmetic", bad->range);
  g.b.yield(yields);
  g.b.set_to_end(after);
  return {};
}

}  // namespace

Result<Value> reduce(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::vector<ir::Value*> inputs, inputs_of(g, a));
  KILN_TRY(bool keep_dims, g.const_bool(a, 3));
  Shape shape = inputs[0]->type.shape;
  bool all = a[1].is_none();
  int axis = 0;
  if (all) {
    for (ir::Value*& v : inputs) v = g.b.reshape(v, {static_cast<int32_t>(shape.numel())});
  } else {
    KILN_TRY(axis, g.axis_arg(a, 1, shape.rank));
  }
  ir::Op* op = g.b.reduce(inputs, axis);
  KILN_CHECK_OK(fill_combine(g, a, op, inputs));
  std::vector<Value> out;
  for (ir::Value* v : op->results) {
    if (keep_dims && all) {
      Shape ones;
      for (int i = 0; i < shape.rank; ++i) ones.dims[ones.rank++] = 1;
      v = g.b.splat(v, ones);
    } else if (keep_dims) {
      KILN_TRY(v, with_axis(g, v, axis, a.range));
    }
    out.push_back(Value(v));
  }
  return a[0].as_tuple() ? Value::tuple(std::move(out)) : out[0];
}

Result<Value> associative_scan(Codegen& g, const BoundArgs& a) {
  KILN_TRY(std::vector<ir::Value*> inputs, inputs_of(g, a));
  KILN_TRY(int axis, g.axis_arg(a, 1, inputs[0]->type.shape.rank));
  KILN_TRY(bool reverse, g.const_bool(a, 3));
  std::vector<Type> types;
  for (ir::Value* v : inputs) types.push_back(v->type);
  std::vector<std::pair<ir::AttrName, ir::Attr>> attrs = {{ir::AttrName::kAxis, int64_t{axis}}};
  if (reverse) attrs.emplace_back(ir::AttrName::kReverse, true);
  ir::Op* op = g.b.create(OpKind::kScan, inputs, types, std::move(attrs));
  for (int side = 0; side < 2; ++side)
    for (ir::Value* v : inputs) g.module.add_arg(op->region(), v->type.scalar());
  KILN_CHECK_OK(fill_combine(g, a, op, inputs));
  std::vector<Value> out;
  for (ir::Value* v : op->results) out.push_back(Value(v));
  return a[0].as_tuple() ? Value::tuple(std::move(out)) : out[0];
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
