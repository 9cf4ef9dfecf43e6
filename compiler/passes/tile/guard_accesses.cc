#include "compiler/passes/tile/guard_accesses.h"

#include <algorithm>
#include <map>
#include <vector>

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
    std::vector<Op*> loops;
    ir::walk(module_.body(), [&](Op* op) {
      if (op->kind == OpKind::kWhile) loops.push_back(op);
    });
    add_params();
    if (!ops.empty()) number_programs();
    notes_ended_ = !loops.empty();
    for (Op* op : ops) {
      b_.set_before(op);
      b_.set_range(op->range);
      if (op->kind == OpKind::kAssert)
        guard_assert(op);
      else
        guard_access(op);
    }
    if (!ops.empty())
      for (Op* loop : loops) end_loop(loop);
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

  Value* word(int64_t i) { return b_.addptr(report_, b_.constant_int(i64_, i)); }
  Value* lower(Value* at, Value* value, Value* where) {
    std::vector<Value*> operands{at, value};
    if (where) operands.push_back(where);
    const ir::Type& result = value->type;
    return b_
        .create(
            OpKind::kAtomicRmw, operands, std::span(&result, 1),
            {{AttrName::kRmw, ir::Rmw::kMin}, {AttrName::kSem, ir::Sem::kRelaxed}, {AttrName::kScope, ir::Scope::kGpu}})
        ->result();
  }

  /// Notes `finding` (the lower half of a word) where `wrong` is true.
  void note(Guard guard, Value* wrong, Value* finding) {
    const ir::Shape shape = wrong->type.shape;
    Value* program = like(program_, shape);
    lower(like(word(kFirstGuardWord + static_cast<int64_t>(out_.guards.size())), shape),
          b_.binary(OpKind::kOr, program, finding), wrong);
    if (notes_ended_) lower(like(word(kEndedWord), shape), program, wrong);
    out_.guards.push_back(std::move(guard));
  }

  /// The loop ends once this program, or one that is reported before it, has found something. The word is read by an
  /// atomic, so that all threads of a program see the same.
  void end_loop(Op* loop) {
    Op* condition = loop->region(0)->terminator();
    b_.set_before(condition);
    b_.set_range(loop->range);
    Value* ended = lower(word(kEndedWord), b_.constant_int(i64_, kNothingFound), nullptr);
    Value* after_this = b_.binary(OpKind::kOr, program_, b_.constant_int(i64_, UINT32_MAX));
    condition->set_operand(0, both(condition->operand(0), b_.cmp(ir::Predicate::kGt, ended, after_this)));
  }

  void guard_assert(Op* op) {
    Value* wrong = both(analysis::mask_of(op), inverted(op->operand(0)));
    Guard guard{GuardKind::kAssert,
                place_of(op->range),
                -1,
                DType::kI8,
                analysis::mask_of(op) != nullptr,
                std::string(op->text_or(AttrName::kText, ""))};
    ++out_.accesses;
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
    std::map<int, Reach> reaches;
    Value* outside = nullptr;
    for (int i : origins.params) {
      reaches[i] = reach(address, ranges_[static_cast<size_t>(i)], bytes);
      outside = both(outside, reaches[i].outside);
    }
    // Through branches and selects it is known which of them is meant; else it is the nearest.
    Value* meant = origins.params.size() > 1 ? origin_of(pointer) : nullptr;
    b_.set_before(op);
    b_.set_range(op->range);
    if (meant) {
      outside = nullptr;
      for (auto& [i, r] : reaches) {
        Value* here = both(b_.cmp(ir::Predicate::kEq, meant, b_.constant_int(meant->type, i)), r.outside);
        outside = outside ? b_.binary(OpKind::kOr, outside, here) : here;
      }
    } else if (origins.params.size() > 1) {
      meant = nearest(reaches, shape);
    }
    Value* mask = analysis::mask_of(op);
    ++out_.accesses;
    for (auto& [i, r] : reaches) {
      Value* wrong = both(mask, outside);
      if (meant) wrong = both(wrong, b_.cmp(ir::Predicate::kEq, meant, b_.constant_int(meant->type, i)));
      note({kind_of(*op), place_of(op->range), i, pointer->type.dtype, mask != nullptr, ""}, wrong,
           in_half_a_word(r.distance));
    }
    keep_inside(op, outside, mask);
  }

  /// Where an address is to a tensor's memory: how far behind the last place where the access fits, or before the
  /// first.
  struct Reach {
    Value *outside = nullptr, *distance = nullptr;
  };
  Reach reach(Value* address, const Range& range, int64_t bytes) {
    const ir::Shape& shape = address->type.shape;
    Value* last = like(b_.binary(OpKind::kSub, range.end, b_.constant_int(i64_, bytes)), shape);
    Value* begin = like(range.begin, shape);
    Value* behind = b_.cmp(ir::Predicate::kGt, address, last);
    return {b_.binary(OpKind::kOr, behind, b_.cmp(ir::Predicate::kLt, address, begin)),
            b_.select(behind, b_.binary(OpKind::kSub, address, last), b_.binary(OpKind::kSub, address, begin))};
  }
  Value* in_half_a_word(Value* distance) {
    const ir::Shape& shape = distance->type.shape;
    distance = b_.binary(OpKind::kMin, distance, number(INT32_MAX, shape));
    distance = b_.binary(OpKind::kMax, distance, number(INT32_MIN, shape));
    return b_.binary(OpKind::kAnd, distance, number(UINT32_MAX, shape));
  }

  const ir::Type i32_ = ir::scalar_type(DType::kI32);

  Value* nearest(const std::map<int, Reach>& reaches, const ir::Shape& shape) {
    Value *best = nullptr, *which = nullptr;
    for (const auto& [i, r] : reaches) {
      Value* far = b_.binary(OpKind::kMax, r.distance, b_.binary(OpKind::kSub, number(0, shape), r.distance));
      Value* own = b_.constant_int(i32_.with_shape(shape), i);
      Value* nearer = best ? b_.cmp(ir::Predicate::kLt, far, best) : nullptr;
      which = best ? b_.select(nearer, own, which) : own;
      best = best ? b_.select(nearer, far, best) : far;
    }
    return which;
  }

  /// The number of the parameter that each address is computed from, beside the address itself; null where that cannot
  /// be followed (a pointer that a loop exchanges for another tensor's).
  Value* origin_of(Value* address) {
    if (auto known = origins_.find(address); known != origins_.end()) return known->second;
    Value* origin = make_origin(address);
    origins_[address] = origin;
    return origin;
  }
  Value* make_origin(Value* address) {
    const ir::Type type = i32_.with_shape(address->type.shape);
    const analysis::PointerOrigins from = analysis::pointer_origins(address);
    if (from.unknown || from.params.empty()) return nullptr;
    Op* op = address->op;
    auto stand = [&] {
      if (op)
        b_.set_after(op);
      else if (address->block->first)
        b_.set_before(address->block->first);
    };
    if (from.params.size() == 1) return stand(), b_.constant_int(type, *from.params.begin());
    if (!op) return nullptr;
    switch (op->kind) {
      case OpKind::kSelect: {
        Value *left = origin_of(op->operand(1)), *right = origin_of(op->operand(2));
        if (!left || !right) return nullptr;
        return stand(), b_.select(op->operand(0), left, right);
      }
      case OpKind::kIf: {
        std::vector<Value*> branches;
        for (ir::Block* region : op->regions)
          branches.push_back(origin_of(region->terminator()->operand(static_cast<int>(address->index))));
        if (std::find(branches.begin(), branches.end(), nullptr) != branches.end()) return nullptr;
        for (size_t k = 0; k < branches.size(); ++k) op->regions[k]->terminator()->append_operand(branches[k]);
        return module_.add_result(op, type);
      }
      case OpKind::kAddPtr:
      case OpKind::kBitcast:
      case OpKind::kHint:
        return origin_of(op->operand(0));
      case OpKind::kSplat:
      case OpKind::kExpandDims:
      case OpKind::kBroadcast:
      case OpKind::kReshape:
      case OpKind::kTrans: {
        Value* inner = origin_of(op->operand(0));
        if (!inner) return nullptr;
        return stand(), b_.create1(op->kind, {inner}, type, op->attrs);
      }
      default:
        return nullptr;
    }
  }

  /// What lies outside is not accessed: masked off, or where there is no mask, done to a word of its own.
  void keep_inside(Op* op, Value* outside, Value* mask) {
    const int i = analysis::mask_index(*op);
    if (i < 0) {
      Value* pointer = op->operand(0);
      Value* spare = word(kSpareWord);
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
  bool notes_ended_ = false;                // some loop asks
  std::map<const Value*, Value*> origins_;  // origin_of
};

}  // namespace

GuardedAccesses guard_accesses(ir::Module& module) {
  expand_all_descriptors(module);
  return Guarding(module).run();
}

}  // namespace kiln::passes
