// Reductions and scans: the combine function becomes the op's region.
#include <algorithm>
#include <functional>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::OpKind;
using ir::Shape;
using ir::Type;

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

/// A combine function, compiled into a block of its own: its arguments are the elements of both sides.
struct Combine {
  ir::Block* body;
  std::vector<ir::Value*> yields;
  std::vector<ir::Op*> asserts;
};

/// What keeps the function from being a region, or null. Asserts do not: they are taken out of it.
const ir::Op* obstacle(const ir::Block& body) {
  const ir::Op* bad = nullptr;
  for (ir::Op* op : body)
    ir::any_nested(op, [&](const ir::Op* o) {
      const bool scalar_math = o->kind == OpKind::kConstant || o->kind == OpKind::kIf || o->kind == OpKind::kYield ||
                               o->kind == OpKind::kAssert ||
                               (ir::is_pure(o) && ir::is_elementwise(o) && ir::stands_at(o->kind, 'c'));
      const bool wrong = !scalar_math || std::any_of(o->results.begin(), o->results.end(),
                                                     [](const ir::Value* v) { return v->type.is_tile(); });
      if (wrong && !bad) bad = o;
      return wrong;
    });
  return bad;
}

/// Moves an assert out of the branches around it, with what they compute before it (scalar arithmetic, which may run
/// where it is not needed). It then holds where the program would not have come by.
void leave_branches(Codegen& g, ir::Op* check, const ir::Block* body) {
  auto negated = [&](ir::Value* v) {
    return g.b.binary(OpKind::kXor, v, g.b.constant_int(ir::scalar_type(DType::kI1), 1));
  };
  g.b.set_before(check);
  g.b.set_range(check->range);
  if (check->operands.size() == 2) {  // a mask
    check->set_operand(0, g.b.binary(OpKind::kOr, check->operand(0), negated(check->operand(1))));
    check->erase_operand(1);
  }
  while (check->parent != body) {
    ir::Block* branch = check->parent;
    ir::Op* around = branch->parent;
    while (branch->first != check) {
      ir::Op* op = branch->first;
      op->unlink();
      around->parent->insert_before(around, op);
    }
    check->unlink();
    around->parent->insert_before(around, check);
    g.b.set_before(check);
    ir::Value* elsewhere = branch == around->region(0) ? negated(around->operand(0)) : around->operand(0);
    check->set_operand(0, g.b.binary(OpKind::kOr, check->operand(0), elsewhere));
    auto is_left = [](const ir::Block* b) { return b->empty() || b->first->kind == OpKind::kYield; };
    if (around->results.empty() && std::all_of(around->regions.begin(), around->regions.end(), is_left))
      around->erase();
  }
}

/// The combine function on elements of the inputs; it must give scalars of their types.
Result<Combine> compile_combine(Codegen& g, const BoundArgs& a, const std::vector<ir::Value*>& inputs) {
  ir::Block* after = g.b.block();
  Combine out{g.module.new_block(nullptr), {}, {}};
  std::vector<Arg> args;
  for (int side = 0; side < 2; ++side)
    for (ir::Value* v : inputs) args.push_back({Value(g.module.add_arg(out.body, v->type.scalar())), a.at(2)});
  g.b.set_to_end(out.body);
  const bool before = std::exchange(g.sanitizes, false);
  Result<Value> made = g.call(a[2], std::move(args), {}, a.at(2), a.at(2));
  g.sanitizes = before;
  KILN_TRY(Value combined, std::move(made));
  std::vector<Value> items = combined.as_tuple() ? combined.as_tuple()->items : std::vector<Value>{combined};
  if (items.size() != inputs.size())
    return g.fail(a.at(2), ErrorKind::kType, "the combine function of {} must return {} value{}, got {}",
                  a.builtin->display_name(), inputs.size(), inputs.size() == 1 ? "" : "s", items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    Type wanted = inputs[i]->type.scalar();
    ir::Value* v =
        items[i].is_number() && !wanted.pointer ? g.constant(*items[i].constant(), wanted.dtype) : items[i].tensor();
    if (!v || v->type != wanted)
      return with_note(
          g.fail(a.at(2), ErrorKind::kType, "the combine function of {} gets {} and must return that type, got {}",
                 a.builtin->display_name(), describe(wanted), describe(items[i])),
          "help: cast the tensor before the reduction, or the result inside the function");
    out.yields.push_back(v);
  }
  // Tiles that serve only to ask for a type (`(x + tl.zeros([1], tl.int1)).dtype`) are gone before anybody minds them.
  std::vector<ir::Op*> ops;
  for (ir::Op* inner : *out.body) ops.push_back(inner);
  auto is_used = [&](const ir::Value* v) {
    return !v->uses.empty() || std::find(out.yields.begin(), out.yields.end(), v) != out.yields.end();
  };
  for (; !ops.empty(); ops.pop_back())
    if (ir::Op* o = ops.back();
        ir::is_pure(o) && o->regions.empty() && std::none_of(o->results.begin(), o->results.end(), is_used))
      o->erase();
  if (const ir::Op* bad = obstacle(*out.body))
    return with_note(
        g.fail(a.at(2), ErrorKind::kType,
               "the combine function of {} computes on scalars only: no memory, program ids, loops or tensors",
               a.builtin->display_name()),
        "not scalar arithmetic", bad->range);
  ir::walk(out.body, [&](ir::Op* o) {
    if (o->kind == OpKind::kAssert) out.asserts.push_back(o);
  });
  const SourceRange range = g.b.range();
  for (ir::Op* check : out.asserts) leave_branches(g, check, out.body);
  g.b.set_range(range);
  g.b.set_to_end(after);
  return out;
}

/// The op that combines the inputs, made by `make` of them. The region of such an op is arithmetic: an assert of the
/// function becomes one more value that is combined, whether the assert has held so far, and is checked behind the op.
/// So nothing is asserted of elements that a target combines beyond what the result needs. The op's further results
/// are those values.
ir::Op* combine(Codegen& g, std::vector<ir::Value*> inputs, const Combine& function,
                const std::function<ir::Op*(const std::vector<ir::Value*>&)>& make) {
  const size_t n = inputs.size();
  const SourceRange range = g.b.range();  // the user's line, of the library's reductions too
  const Type flag = inputs[0]->type.with_dtype(DType::kI1);
  for (size_t i = 0; i < function.asserts.size(); ++i)
    inputs.push_back(g.b.splat(g.b.constant_int(flag.scalar(), 1), flag.shape));
  ir::Op* op = make(inputs);
  ir::Block *after = g.b.block(), *region = op->region();
  ir::OpCopier copier(g.module);
  const std::vector<ir::Value*>& args = region->args;
  for (size_t side = 0; side < 2; ++side)
    for (size_t i = 0; i < n; ++i) {
      const ir::Value* from = function.body->args[side * n + i];
      ir::Value* to = args[side * inputs.size() + i];
      to->name = from->name;
      copier.substitute(from, to);
    }
  for (const ir::Op* inner : *function.body)
    if (inner->kind != OpKind::kAssert) copier.copy(*inner, region);
  g.b.set_to_end(region);
  std::vector<ir::Value*> yields;
  for (ir::Value* v : function.yields) yields.push_back(copier(v));
  for (size_t i = 0; i < function.asserts.size(); ++i) {
    g.b.set_range(function.asserts[i]->range);
    ir::Value* before = g.b.binary(OpKind::kAnd, args[n + i], args[inputs.size() + n + i]);
    yields.push_back(g.b.binary(OpKind::kAnd, before, copier(function.asserts[i]->operand(0))));
  }
  g.b.set_range(range);
  g.b.yield(yields);
  g.b.set_to_end(after);
  for (size_t i = 0; i < function.asserts.size(); ++i) {
    g.b.set_range(function.asserts[i]->range);
    g.b.create(OpKind::kAssert, std::span(&op->results[n + i], 1), {}, function.asserts[i]->attrs);
  }
  g.b.set_range(range);
  while (function.body->last) function.body->last->erase();
  return op;
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
  KILN_TRY(const Combine function, compile_combine(g, a, inputs));
  ir::Op* op = combine(g, inputs, function, [&](auto& values) { return g.b.reduce(values, axis); });
  std::vector<Value> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ir::Value* v = op->results[i];
    if (keep_dims && all) {
      Shape ones;
      for (int d = 0; d < shape.rank; ++d) ones.dims[ones.rank++] = 1;
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
  std::vector<std::pair<ir::AttrName, ir::Attr>> attrs = {{ir::AttrName::kAxis, int64_t{axis}}};
  if (reverse) attrs.emplace_back(ir::AttrName::kReverse, true);
  KILN_TRY(const Combine function, compile_combine(g, a, inputs));
  ir::Op* op = combine(g, inputs, function, [&](auto& values) {
    std::vector<Type> types;
    for (ir::Value* v : values) types.push_back(v->type);
    ir::Op* scan = g.b.create(OpKind::kScan, values, types, attrs);
    for (int side = 0; side < 2; ++side)
      for (ir::Value* v : values) g.module.add_arg(scan->region(), v->type.scalar());
    return scan;
  });
  std::vector<Value> out;
  for (size_t i = 0; i < inputs.size(); ++i) out.push_back(Value(op->results[i]));
  return a[0].as_tuple() ? Value::tuple(std::move(out)) : out[0];
}

}  // namespace kiln::frontend::impl
