// Appends typed ops at an insertion point. Result types follow from operands; shapes must already agree (the frontend
// broadcasts before it builds).
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::ir {

class Builder {
 public:
  explicit Builder(Module& module) : module_(&module), block_(module.body()) {}

  Module& module() const { return *module_; }
  Block* block() const { return block_; }
  void set_to_end(Block* block) {
    block_ = block;
    before_ = nullptr;
  }
  void set_before(Op* op) {
    block_ = op->parent;
    before_ = op;
  }
  void set_after(Op* op) {
    block_ = op->parent;
    before_ = op->next;
  }
  /// Source range given to the ops that follow.
  void set_range(SourceRange range) { range_ = range; }
  SourceRange range() const { return range_; }

  /// The one way ops are made; regions get empty blocks (info(kind).regions of them).
  Op* create(OpKind kind, std::span<Value* const> operands, std::span<const Type> results,
             std::vector<std::pair<AttrName, Attr>> attrs = {});
  Value* create1(OpKind kind, std::initializer_list<Value*> operands, const Type& result,
                 std::vector<std::pair<AttrName, Attr>> attrs = {});

  Value* constant_int(const Type& type, int64_t value);
  Value* constant_float(const Type& type, double value);
  /// 0 of any number type.
  Value* zero(const Type& type);
  Value* arange(int start, int end);
  Value* program_id(int axis);
  Value* num_programs(int axis);
  Value* cta_rank();

  Value* unary(OpKind kind, Value* a) { return create1(kind, {a}, a->type); }
  Value* binary(OpKind kind, Value* a, Value* b) { return create1(kind, {a, b}, a->type); }
  Value* cmp(Predicate predicate, Value* a, Value* b);
  Value* select(Value* cond, Value* a, Value* b) { return create1(OpKind::kSelect, {cond, a, b}, a->type); }
  Value* cast(Value* v, DType to);  // no op when the dtype is already that
  Value* addptr(Value* p, Value* offset) { return create1(OpKind::kAddPtr, {p, offset}, p->type); }

  Value* splat(Value* scalar, const Shape& shape);
  Value* expand_dims(Value* v, int axis);
  /// Same rank; dimensions of size 1 grow to `shape`. No op when the shape is already that.
  Value* broadcast(Value* v, const Shape& shape);
  Value* reshape(Value* v, const Shape& shape);
  Value* trans(Value* v, std::span<const int64_t> order);

  Value* load(Value* ptr, Value* mask = nullptr, Value* other = nullptr);
  Op* store(Value* ptr, Value* value, Value* mask = nullptr);
  /// The op with an empty combine region whose 2n scalar arguments are made; fill it and end it with yield.
  Op* reduce(std::span<Value* const> tiles, int axis);
  /// The op, with block arguments (iv, iters…) made and named results; the block still needs its yield.
  Op* for_loop(Value* lb, Value* ub, Value* step, std::span<Value* const> inits);
  Op* if_op(Value* cond, std::span<const Type> results);
  Op* while_loop(std::span<Value* const> inits);
  void yield(std::span<Value* const> values);
  void ret();

 private:
  Module* module_;
  Block* block_;
  Op* before_ = nullptr;
  SourceRange range_;
};

/// The type of `reduce`'s result: the tile without `axis` (a scalar when that was its only dimension).
Type reduced_type(const Type& tile, int axis);

}  // namespace kiln::ir
