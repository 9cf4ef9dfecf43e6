#include "compiler/passes/tile/guard_accesses.h"

#include <algorithm>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/tile/expand_descriptors.h"
#include "support/source.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

GuardKind kind_of(const Op& op) {
  switch (op.kind) {
    case OpKind::kLoad:
      return GuardKind::kRead;
    case OpKind::kStore:
      return GuardKind::kWrite;
    case OpKind::kAssert:
      return GuardKind::kAssert;
    default:
      return GuardKind::kAtomic;
  }
}

bool is_guarded(const Op& op) {
  return op.kind == OpKind::kAssert || op.kind == OpKind::kLoad || op.kind == OpKind::kStore ||
         op.kind == OpKind::kAtomicRmw || op.kind == OpKind::kAtomicCas;
}

class Guarding {
 public:
  explicit Guarding(ir::Module& module) : module_(module), b_(module) {}

  GuardedAccesses run() {
    std::vector<Op*> ops;
    ir::walk(module_.body(), [&](Op* op) {
      if (is_guarded(*op)) ops.push_back(op);
    });
    add_params();
    if (!ops.empty()) number_programs();
    for (Op* op : ops) {
      b_.set_before(op);
      b_.set_range(op->range);
      if (op->kind == OpKind::kAssert)
        guard_assert(op);
      else
        guard_access(op);
    }
    // Known only now: how many words come before the one that refused accesses may use.
    for (Op* offset : spare_offsets_) offset->set(AttrName::kValue, static_cast<int64_t>(out_.guards.size()));
    return std::move(out_);
  }

 private:
  struct Range {
    Value *begin, *end;  // i64
  };

  Value* add_param(const ir::Type& type, std::string name, int divisibility) {
    Value* v = module_.add_arg(module_.body(), type, name);
    module_.params.push_back({std::move(name), divisibility});
    return v;
  }

  void add_params() {
    const size_t own = module_.params.size();
    for (size_t i = 0; i < own; ++i)
      if (module_.body()->args[i]->type.pointer) out_.pointers.push_back(static_cast<int>(i));
    ranges_.resize(own);
    for (int i : out_.pointers) {
      const std::string name = module_.params[static_cast<size_t>(i)].name;
      Value* begin = add_param(i64_, name + ".begin", 1);
      ranges_[static_cast<size_t>(i)] = {begin, add_param(i64_, name + ".end", 1)};
    }
    report_ = add_param(ir::pointer_type(DType::kI64), "guard.report", 16);
  }

  /// The program's number in the grid, x fastest, in the upper half of an i64.
  void number_programs() {
    Op* first = module_.body()->first;
    b_.set_before(first);
    b_.set_range(first->range);
    auto wide = [&](Value* v) { return b_.cast(v, DType::kI64); };
    Value* number = wide(b_.program_id(2));
    for (int axis : {1, 0})
      number = b_.binary(OpKind::kAdd, b_.binary(OpKind::kMul, number, wide(b_.num_programs(axis))),
                         wide(b_.program_id(axis)));
    number = b_.binary(OpKind::kMin, number, b_.constant_int(i64_, INT32_MAX));
    program_ = b_.binary(OpKind::kShl, number, b_.constant_int(i64_, kGuardProgramShift));
  }

  Value* like(Value* scalar, const ir::Shape& shape) { return shape.rank ? b_.splat(scalar, shape) : scalar; }
  Value* number(int64_t v, const ir::Shape& shape) { return b_.constant_int(i64_.with_shape(shape), v); }
  Value* both(Value* a, Value* b) { return a ? b_.binary(OpKind::kAnd, a, b) : b; }
  Value* inverted(Value* v) { return b_.binary(OpKind::kXor, v, b_.constant_int(v->type, 1)); }

  /// Notes `finding` (the lower half of a word) where `wrong` is true.
  void note(Guard guard, Value* wrong, Value* finding) {
    const ir::Shape shape = wrong->type.shape;
    Value* word = like(b_.addptr(report_, b_.constant_int(i64_, static_cast<int64_t>(out_.guards.size()))), shape);
    Value* found = b_.binary(OpKind::kOr, like(program_, shape), finding);
    Value* const operands[] = {word, found, wrong};
    const ir::Type result = i64_.with_shape(shape);
    b_.create(
        OpKind::kAtomicRmw, operands, std::span(&result, 1),
        {{AttrName::kRmw, ir::Rmw::kMin}, {AttrName::kSem, ir::Sem::kRelaxed}, {AttrName::kScope, ir::Scope::kGpu}});
    out_.guards.push_back(std::move(guard));
  }

  void guard_assert(Op* op) {
    Value* wrong = both(analysis::mask_of(op), inverted(op->operand(0)));
    Guard guard{GuardKind::kAssert,
                place_of(op->range),
                {},
                DType::kI8,
                analysis::mask_of(op) != nullptr,
                std::string(op->text_or(AttrName::kText, ""))};
    note(std::move(guard), wrong, number(0, wrong->type.shape));
    op->erase();
  }

  void guard_access(Op* op) {
    Value* pointer = op->operand(0);
    const analysis::PointerOrigins origins = analysis::pointer_origins(pointer);
    if (origins.unknown || origins.params.empty()) {
      out_.unknown.push_back(place_of(op->range));
      return;
    }
    const ir::Shape shape = pointer->type.shape;
    const int64_t bytes = size_of(pointer->type.dtype);
    Value* address = b_.create1(OpKind::kPtrToInt, {pointer}, i64_.with_shape(shape));
    Value *outside = nullptr, *distance = nullptr;
    for (int i : origins.params) {
      const Range& range = ranges_[static_cast<size_t>(i)];
      Value* last = like(b_.binary(OpKind::kSub, range.end, b_.constant_int(i64_, bytes)), shape);
      Value* begin = like(range.begin, shape);
      Value* behind = b_.cmp(ir::Predicate::kGt, address, last);
      Value* here = b_.binary(OpKind::kOr, behind, b_.cmp(ir::Predicate::kLt, address, begin));
      outside = both(outside, here);
      if (!distance)
        distance = b_.select(behind, b_.binary(OpKind::kSub, address, last), b_.binary(OpKind::kSub, address, begin));
    }
    distance = b_.binary(OpKind::kMin, distance, number(INT32_MAX, shape));
    distance = b_.binary(OpKind::kMax, distance, number(INT32_MIN, shape));
    distance = b_.binary(OpKind::kAnd, distance, number(UINT32_MAX, shape));
    Value* mask = analysis::mask_of(op);
    Guard guard{kind_of(*op),        place_of(op->range), {origins.params.begin(), origins.params.end()},
                pointer->type.dtype, mask != nullptr,     ""};
    note(std::move(guard), both(mask, outside), distance);
    keep_inside(op, outside, mask);
  }

  /// What lies outside is not accessed: masked off, or where there is no mask, done to a word of its own.
  void keep_inside(Op* op, Value* outside, Value* mask) {
    const int i = analysis::mask_index(*op);
    if (i < 0) {
      Value* pointer = op->operand(0);
      Value* offset = b_.constant_int(i64_, 0);
      spare_offsets_.push_back(offset->op);
      Value* spare = b_.addptr(report_, offset);
      ir::Type type = pointer->type.scalar();
      if (spare->type != type) spare = b_.create1(OpKind::kBitcast, {spare}, type);
      op->set_operand(0, b_.select(outside, like(spare, pointer->type.shape), pointer));
      return;
    }
    Value* inside = both(mask, inverted(outside));
    if (mask)
      op->set_operand(i, inside);
    else
      op->append_operand(inside);
  }

  ir::Module& module_;
  ir::Builder b_;
  const ir::Type i64_ = ir::scalar_type(DType::kI64);
  GuardedAccesses out_;
  std::vector<Range> ranges_;  // by parameter; null where it is no pointer
  Value* report_ = nullptr;
  Value* program_ = nullptr;
  std::vector<Op*> spare_offsets_;
};

}  // namespace

GuardedAccesses guard_accesses(ir::Module& module) {
  expand_all_descriptors(module);
  return Guarding(module).run();
}

}  // namespace kiln::passes
