// tl.map_elementwise: a function of scalars on each element of tensors.
//
// The function is compiled as one of scalars, and its ops are then repeated on tiles. A branch becomes a selection:
// both sides are computed for all elements, which differs in nothing but time, since neither may touch memory. An
// assert is masked by the branches around it.
#include <fmt/format.h>

#include <unordered_map>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::OpKind;
using ir::Shape;
using ir::Type;

namespace {

class Spreader {
 public:
  Spreader(Codegen& g, const Shape& shape) : g_(g), shape_(shape) {}

  void substitute(const ir::Value* scalar, ir::Value* tile) { tiles_[scalar] = tile; }

  /// The op that keeps a function from being spread, or null.
  static const ir::Op* obstacle(const ir::Block& block) {
    const ir::Op* bad = nullptr;
    for (ir::Op* op : block)
      ir::any_nested(op, [&](const ir::Op* o) {
        const bool fine = o->kind == OpKind::kConstant || o->kind == OpKind::kIf || o->kind == OpKind::kYield ||
                          o->kind == OpKind::kAssert || (ir::is_pure(o) && ir::is_elementwise(o));
        const bool wrong = !fine || std::any_of(o->results.begin(), o->results.end(),
                                                [](const ir::Value* v) { return !v->type.is_scalar(); });
        if (wrong && !bad) bad = o;
        return wrong;
      });
    return bad;
  }

  ir::Value* operator()(ir::Value* scalar) {
    auto it = tiles_.find(scalar);
    // What the function did not compute is the same for all elements.
    if (it == tiles_.end()) it = tiles_.emplace(scalar, g_.b.splat(scalar, shape_)).first;
    return it->second;
  }

  /// Repeats the block's ops at the builder's place; the values of its yield. `here`: for which elements the program
  /// comes by, all where it is null.
  std::vector<ir::Value*> spread(const ir::Block& block, ir::Value* here = nullptr) {
    std::vector<ir::Value*> yields;
    for (ir::Op* op : block) {
      g_.b.set_range(op->range);
      std::vector<ir::Value*> operands;
      for (ir::Value* v : op->operands) operands.push_back((*this)(v));
      switch (op->kind) {
        case OpKind::kYield:
          yields = std::move(operands);
          break;
        case OpKind::kIf: {
          ir::Value* all = g_.b.splat(g_.b.constant_int(ir::scalar_type(DType::kI1), 1), shape_);
          ir::Value* otherwise = g_.b.binary(OpKind::kXor, operands[0], all);
          const std::vector<ir::Value*> x = spread(*op->region(0), both(here, operands[0])),
                                        y = spread(*op->region(1), both(here, otherwise));
          for (size_t i = 0; i < x.size(); ++i) tiles_[op->results[i]] = g_.b.select(operands[0], x[i], y[i]);
          break;
        }
        case OpKind::kAssert: {
          ir::Value* mask = operands.size() == 2 ? both(here, operands[1]) : here;
          operands.resize(1);
          if (mask) operands.push_back(mask);
          g_.b.create(OpKind::kAssert, operands, {}, op->attrs);
          break;
        }
        case OpKind::kConstant: {
          ir::OpCopier copier(g_.module);
          tiles_[op->result()] = g_.b.splat(copier.copy(*op, g_.b.block())->result(), shape_);
          break;
        }
        default: {
          const Type result = op->result()->type.with_shape(shape_);
          tiles_[op->result()] = g_.b.create(op->kind, operands, std::span(&result, 1), op->attrs)->result();
        }
      }
    }
    return yields;
  }

 private:
  ir::Value* both(ir::Value* a, ir::Value* b) { return a ? g_.b.binary(OpKind::kAnd, a, b) : b; }

  Codegen& g_;
  const Shape shape_;
  std::unordered_map<const ir::Value*, ir::Value*> tiles_;
};

/// Elements k, k + n, k + 2n, … along the last dimension, for each k below n, a power of two.
std::vector<ir::Value*> strided_parts(Codegen& g, ir::Value* v, int64_t n) {
  if (n == 1) return {v};
  Shape pairs = v->type.shape, halves = pairs;
  pairs[pairs.rank - 1] /= 2;
  halves[halves.rank - 1] /= 2;
  pairs.dims[pairs.rank++] = 2;
  ir::Value* paired = g.b.reshape(v, pairs);
  const Type half = v->type.with_shape(halves);
  const Type results[] = {half, half};
  ir::Op* op = g.b.create(OpKind::kSplit, std::span(&paired, 1), results);
  const std::vector<ir::Value*> even = strided_parts(g, op->result(0), n / 2),
                                odd = strided_parts(g, op->result(1), n / 2);
  std::vector<ir::Value*> out;
  for (size_t k = 0; k < even.size(); ++k) out.insert(out.end(), {even[k], odd[k]});
  return out;
}

/// The inverse of strided_parts.
ir::Value* interleaved(Codegen& g, std::span<ir::Value* const> parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<ir::Value*> even, odd;
  for (size_t k = 0; k < parts.size(); k += 2) even.push_back(parts[k]), odd.push_back(parts[k + 1]);
  ir::Value *a = interleaved(g, even), *c = interleaved(g, odd);
  Shape pairs = a->type.shape, flat = pairs;
  pairs.dims[pairs.rank++] = 2;
  flat[flat.rank - 1] *= 2;
  return g.b.reshape(g.b.create1(OpKind::kJoin, {a, c}, a->type.with_shape(pairs)), flat);
}

/// The arguments, broadcast to their common shape.
Result<std::vector<ir::Value*>> common_shape(Codegen& g, const BoundArgs& a, int i) {
  const TupleValue* items = a[i].as_tuple();
  if (!items || items->items.empty())
    return g.fail(a.range, ErrorKind::kType, "{} needs at least one tensor", a.builtin->display_name());
  std::vector<ir::Value*> out;
  for (const Value& item : items->items) {
    KILN_TRY(ir::Value * v, g.tensor({item, a.at(i)}));
    out.push_back(v);
  }
  for (ir::Value*& v : out) {
    KILN_TRY(Codegen::Pair pair, g.broadcast_pair(out[0], v, a.at(i)));
    out[0] = pair.a, v = pair.b;
  }
  for (ir::Value*& v : out) {
    KILN_TRY(v, g.broadcast_to(v, out[0]->type.shape, "an argument", a.at(i)));
  }
  return out;
}

}  // namespace

Result<Value> map_elementwise(Codegen& g, const BoundArgs& a) {
  enum { kFunction, kArgs, kPack };
  KILN_TRY(std::vector<ir::Value*> inputs, common_shape(g, a, kArgs));
  KILN_TRY(const ast::Int pack, g.const_int(a, kPack));
  const Shape shape = inputs[0]->type.shape;
  if (pack < 1 || (pack & (pack - 1)) != 0 || (pack > 1 && (shape.rank == 0 || shape[shape.rank - 1] % pack != 0)))
    return g.fail(a.at(kPack), ErrorKind::kValue,
                  "pack of {} must be a power of two that divides the last dimension of {}", a.builtin->display_name(),
                  describe(inputs[0]->type));
  ir::Block* after = g.b.block();
  ir::Block* scratch = g.module.new_block(nullptr);
  std::vector<Arg> args;
  for (const ir::Value* v : inputs)
    for (ast::Int k = 0; k < pack; ++k)
      args.push_back({Value(g.module.add_arg(scratch, v->type.scalar())), a.at(kFunction)});
  g.b.set_to_end(scratch);
  KILN_TRY(Value result, g.call(a[kFunction], std::move(args), {}, a.range, a.at(kFunction)));
  const bool single = !result.as_tuple();
  std::vector<ir::Value*> yields;
  for (const Value& item : single ? std::vector<Value>{result} : result.as_tuple()->items) {
    KILN_TRY(ir::Value * v, g.tensor({item, a.at(kFunction)}));
    yields.push_back(v);
  }
  const auto step = static_cast<size_t>(pack);
  if (yields.empty() || yields.size() % step != 0)
    return g.fail(a.at(kFunction), ErrorKind::kType, "the function of {} must return {} for each result, got {}",
                  a.builtin->display_name(), pack == 1 ? "a value" : fmt::format("{} values", pack), yields.size());
  for (size_t i = 0; i < yields.size(); ++i)
    if (yields[i]->type != yields[i / step * step]->type)
      return g.fail(a.at(kFunction), ErrorKind::kType, "the values of one result have one type, got {} and {}",
                    describe(yields[i / step * step]->type), describe(yields[i]->type));
  g.b.yield(yields);
  if (const ir::Op* bad = Spreader::obstacle(*scratch))
    return with_note(g.fail(a.at(kFunction), ErrorKind::kUnsupported,
                            "the function of {} computes on scalars only: no memory, program ids, loops or tensors",
                            a.builtin->display_name()),
                     "not scalar arithmetic", bad->range);
  g.b.set_to_end(after);
  g.b.set_range(a.range);
  Shape part = shape;
  if (pack > 1) part[part.rank - 1] /= static_cast<int32_t>(pack);
  Spreader spreader(g, part);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<ir::Value*> parts = strided_parts(g, inputs[i], static_cast<int64_t>(pack));
    for (size_t k = 0; k < step; ++k) spreader.substitute(scratch->args[i * step + k], parts[k]);
  }
  const std::vector<ir::Value*> tiles = spreader.spread(*scratch);
  while (scratch->last) scratch->last->erase();
  g.b.set_range(a.range);
  std::vector<Value> out;
  for (size_t i = 0; i < tiles.size(); i += step)
    out.push_back(Value(interleaved(g, std::span(tiles).subspan(i, step))));
  return single ? out[0] : Value::tuple(std::move(out));
}

}  // namespace kiln::frontend::impl
