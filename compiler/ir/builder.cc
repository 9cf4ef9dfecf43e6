#include "compiler/ir/builder.h"

#include "support/diag.h"

namespace kiln::ir {

Op* Builder::create(OpKind kind, std::span<Value* const> operands, std::span<const Type> results,
                    std::vector<std::pair<AttrName, Attr>> attrs) {
  Op* op = module_->new_op(kind, range_);
  for (Value* v : operands) op->append_operand(v);
  for (const Type& t : results) module_->add_result(op, t);
  op->attrs = std::move(attrs);
  for (int i = 0; i < info(kind).regions; ++i) module_->new_block(op);
  block_->insert_before(before_, op);
  return op;
}

Value* Builder::create1(OpKind kind, std::initializer_list<Value*> operands, const Type& result,
                        std::vector<std::pair<AttrName, Attr>> attrs) {
  return create(kind, std::span(operands.begin(), operands.size()), std::span(&result, 1), std::move(attrs))->result();
}

Value* Builder::constant_int(const Type& type, int64_t value) {
  KILN_ASSERT(type.is_int() || type.pointer);
  return create1(OpKind::kConstant, {}, type, {{AttrName::kValue, value}});
}

Value* Builder::constant_float(const Type& type, double value) {
  KILN_ASSERT(type.is_float());
  return create1(OpKind::kConstant, {}, type, {{AttrName::kValue, value}});
}

Value* Builder::zero(const Type& type) { return type.is_float() ? constant_float(type, 0.0) : constant_int(type, 0); }

Value* Builder::arange(int start, int end) {
  return create1(OpKind::kArange, {}, tile_type(DType::kI32, {end - start}),
                 {{AttrName::kStart, int64_t{start}}, {AttrName::kEnd, int64_t{end}}});
}

Value* Builder::program_id(int axis) {
  return create1(OpKind::kProgramId, {}, scalar_type(DType::kI32), {{AttrName::kAxis, int64_t{axis}}});
}

Value* Builder::num_programs(int axis) {
  return create1(OpKind::kNumPrograms, {}, scalar_type(DType::kI32), {{AttrName::kAxis, int64_t{axis}}});
}

Value* Builder::cta_rank() { return create1(OpKind::kCtaRank, {}, scalar_type(DType::kI32)); }

Value* Builder::cmp(Predicate predicate, Value* a, Value* b) {
  return create1(OpKind::kCmp, {a, b}, a->type.with_dtype(DType::kI1), {{AttrName::kPredicate, predicate}});
}

Value* Builder::cast(Value* v, DType to) {
  KILN_ASSERT(!v->type.pointer);
  return v->type.dtype == to ? v : create1(OpKind::kCast, {v}, v->type.with_dtype(to));
}

Value* Builder::splat(Value* scalar, const Shape& shape) {
  KILN_ASSERT(scalar->type.is_scalar());
  return shape.rank == 0 ? scalar : create1(OpKind::kSplat, {scalar}, scalar->type.with_shape(shape));
}

Value* Builder::expand_dims(Value* v, int axis) {
  Shape shape;
  for (int i = 0; i <= v->type.shape.rank; ++i) {
    if (i == axis) shape.dims[shape.rank++] = 1;
    if (i < v->type.shape.rank) shape.dims[shape.rank++] = v->type.shape[i];
  }
  return create1(OpKind::kExpandDims, {v}, v->type.with_shape(shape), {{AttrName::kAxis, int64_t{axis}}});
}

Value* Builder::broadcast(Value* v, const Shape& shape) {
  return v->type.shape == shape ? v : create1(OpKind::kBroadcast, {v}, v->type.with_shape(shape));
}

Value* Builder::reshape(Value* v, const Shape& shape) {
  KILN_ASSERT(v->type.shape.numel() == shape.numel());
  return v->type.shape == shape ? v : create1(OpKind::kReshape, {v}, v->type.with_shape(shape));
}

Value* Builder::trans(Value* v, std::span<const int64_t> order) {
  Shape shape;
  for (int64_t d : order) shape.dims[shape.rank++] = v->type.shape[static_cast<int>(d)];
  return create1(OpKind::kTrans, {v}, v->type.with_shape(shape),
                 {{AttrName::kOrder, std::vector<int64_t>(order.begin(), order.end())}});
}

Value* Builder::load(Value* ptr, Value* mask, Value* other) {
  Type result = scalar_type(ptr->type.dtype).with_shape(ptr->type.shape);
  if (other) return create1(OpKind::kLoad, {ptr, mask, other}, result);
  return mask ? create1(OpKind::kLoad, {ptr, mask}, result) : create1(OpKind::kLoad, {ptr}, result);
}

Op* Builder::store(Value* ptr, Value* value, Value* mask) {
  Value* operands[] = {ptr, value, mask};
  return create(OpKind::kStore, std::span(operands, mask ? 3 : 2), {});
}

Type reduced_type(const Type& tile, int axis) {
  Shape shape;
  for (int i = 0; i < tile.shape.rank; ++i)
    if (i != axis) shape.dims[shape.rank++] = tile.shape[i];
  return tile.with_shape(shape);
}

Op* Builder::reduce(std::span<Value* const> tiles, int axis) {
  std::vector<Type> results;
  for (Value* v : tiles) results.push_back(reduced_type(v->type, axis));
  Op* op = create(OpKind::kReduce, tiles, results, {{AttrName::kAxis, int64_t{axis}}});
  for (int side = 0; side < 2; ++side)
    for (Value* v : tiles) module_->add_arg(op->region(), v->type.scalar());
  return op;
}

Op* Builder::for_loop(Value* lb, Value* ub, Value* step, std::span<Value* const> inits) {
  std::vector<Value*> operands = {lb, ub, step};
  operands.insert(operands.end(), inits.begin(), inits.end());
  std::vector<Type> results;
  for (Value* v : inits) results.push_back(v->type);
  Op* op = create(OpKind::kFor, operands, results);
  module_->add_arg(op->region(), lb->type);
  for (Value* v : inits) module_->add_arg(op->region(), v->type, v->name);
  return op;
}

Op* Builder::if_op(Value* cond, std::span<const Type> results) {
  return create(OpKind::kIf, std::span(&cond, 1), results);
}

Op* Builder::while_loop(std::span<Value* const> inits) {
  std::vector<Type> results;
  for (Value* v : inits) results.push_back(v->type);
  Op* op = create(OpKind::kWhile, inits, results);
  for (int r = 0; r < 2; ++r)
    for (Value* v : inits) module_->add_arg(op->region(r), v->type, v->name);
  return op;
}

void Builder::yield(std::span<Value* const> values) { create(OpKind::kYield, values, {}); }
void Builder::ret() { create(OpKind::kReturn, {}, {}); }

}  // namespace kiln::ir
