#include "compiler/passes/pipeline_loads.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/read_again.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/shared_handles.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

constexpr int kLeastCopyBytes = 4;
constexpr int64_t kReserved = 4096;  // bytes of shared memory for reductions beside the rings

bool reaches_dot(const Value* v, const Block* body) {
  return std::any_of(v->uses.begin(), v->uses.end(), [&](const ir::Use& use) {
    if (use.op->parent != body) return false;
    if (use.op->kind == OpKind::kDot) return use.index < 2 && analysis::is_on_registers(*use.op);
    return ir::is_pure(use.op) && use.op->regions.empty() &&
           std::any_of(use.op->results.begin(), use.op->results.end(),
                       [&](const Value* r) { return reaches_dot(r, body); });
  });
}

/// The ops and loop values that a load's address and mask are made of, closed over iterations.
class Slice {
 public:
  explicit Slice(const Block* body) : body_(body) {}

  /// False when `v` needs something that cannot be computed ahead.
  bool add(const Value* v) {
    if (v->block == body_) {
      varies_ = true;
      if (v->index == 0 || !args_.insert(v).second) return true;
      return add(body_->terminator()->operands[v->index - 1]);
    }
    if (!v->op || v->op->parent != body_ || ops_.contains(v->op)) return true;
    const Op* op = v->op;
    if (!ir::is_pure(op) || !op->regions.empty() || ir::has_trait(op->kind, 'X') || ir::has_trait(op->kind, 'H'))
      return false;
    ops_.insert(op);
    return std::all_of(op->operands.begin(), op->operands.end(), [&](const Value* operand) { return add(operand); });
  }
  bool has(const Op* op) const { return ops_.contains(op); }
  bool has(const Value* arg) const { return args_.contains(arg); }
  /// Whether iterations can differ in it.
  bool varies() const { return varies_; }

 private:
  const Block* body_;
  bool varies_ = false;
  std::unordered_set<const Op*> ops_;
  std::unordered_set<const Value*> args_;
};

/// What a loop lets run ahead.
enum class Ahead {
  kNothing,
  kOperands,  // of its dots
  kLoads      // whatever its own num_stages asks for
};

class Loop {
 public:
  /// `room`: bytes of shared memory that are left.
  Loop(ir::Module& module, Op* loop, int stages, Ahead which, int64_t room, const analysis::PointerOrigins& stored,
       const analysis::AxisAnalysis& axis)
      : module_(module),
        loop_(loop),
        body_(loop->region()),
        stages_(stages),
        which_(which),
        room_(room),
        stored_(stored),
        axis_(axis),
        slice_(body_),
        b_(module) {}

  /// Returns the bytes of its rings.
  int64_t run() {
    int64_t bytes = 0;  // of a stage
    for (Op* op : *body_)
      if (op->kind == OpKind::kLoad && fits(op)) {
        loads_.push_back(op);
        bytes += op->result()->type.shape.numel() * size_of(op->result()->type.dtype);
      }
    // Rows are read at once, so that a stage less costs some latency; a dot's stages are what its kernel was tuned for.
    if (which_ == Ahead::kLoads && bytes > 0) stages_ = static_cast<int>(std::min<int64_t>(stages_, room_ / bytes));
    if (loads_.empty() || stages_ < 2) return 0;
    b_.set_range(loads_[0]->range);
    make_buffers();
    prologue();
    ahead();
    take_loads();
    b_.set_after(loop_);
    wait(0);
    b_.create(OpKind::kBarrier, {}, {});
    return bytes * stages_;
  }

 private:
  using Env = std::unordered_map<const Value*, Value*>;

  bool fits(const Op* load) {
    const Type& type = load->result()->type;
    if (!type.is_tile() || type.pointer || load->flag(AttrName::kVolatile)) return false;
    if (axis_.vector_width(load) * size_of(type.dtype) < kLeastCopyBytes) return false;
    if (which_ == Ahead::kOperands) {
      if (load->operands.size() == 3 && constant_of(load->operand(2)) != uint64_t{0}) return false;
      if (type.shape.rank < 2 || swizzle_of(load) == 0 || !reaches_dot(load->result(), body_)) return false;
    } else {
      Slice own(body_);
      if (analysis::pointer_origins(load->operand(0)).meets(stored_) || !own.add(load->operand(0)) || !own.varies())
        return false;
    }
    Slice slice = slice_;
    for (size_t i = 0; i < std::min<size_t>(2, load->operands.size()); ++i)
      if (!slice.add(load->operands[i])) return false;
    slice_ = std::move(slice);
    return true;
  }

  std::vector<int> order_of(const Op* load) const {
    const auto order = axis_.order_of(load->operand(0));
    return {order.begin(), order.begin() + load->result()->type.shape.rank};
  }
  int swizzle_of(const Op* load) const {
    const Type& type = load->result()->type;
    return layout::widest_swizzle(type.shape[order_of(load)[0]], type.element_bits());
  }

  // --- scalars

  Value* number(const Type& type, int64_t v) { return b_.constant_int(type, v); }
  Value* i32(int64_t v) { return number(ir::scalar_type(DType::kI32), v); }
  /// %k + n·step < upper bound, in 64 bits.
  Value* runs(Value* iv) { return b_.cmp("lt", b_.cast(iv, DType::kI64), b_.cast(loop_->operand(1), DType::kI64)); }
  Value* later(Value* iv, int n) {
    if (n == 0) return iv;
    Value* step = loop_->operand(2);
    return b_.binary(OpKind::kAdd, iv, b_.binary(OpKind::kMul, step, number(step->type, n)));
  }

  // --- copies

  void make_buffers() {
    ir::Builder front(module_);
    front.set_before(module_.body()->first);
    front.set_range(b_.range());
    for (const Op* load : loads_) {
      const Type& type = load->result()->type;
      const Type ring = which_ == Ahead::kOperands ? swizzled_type(module_, type, order_of(load), stages_)
                                                   : rows_type(module_, type, order_of(load), stages_);
      buffers_.push_back(front.create(OpKind::kSharedAlloc, {}, std::span(&ring, 1))->result());
    }
  }

  void wait(int64_t count) { b_.create(OpKind::kAsyncWait, {}, {}, {{AttrName::kCount, count}}); }

  /// The slice of the body, with `env` for the induction variable and the loop's values; then the copies of one
  /// iteration, of nothing when `valid` is false; then env has the values of the next iteration.
  void issue(Env& env, Value* valid, Value* slot) {
    auto of = [&](Value* v) {
      const auto it = env.find(v);
      return it == env.end() ? v : it->second;
    };
    for (Op* op : *body_) {
      if (!slice_.has(op)) continue;
      std::vector<Value*> operands;
      for (Value* v : op->operands) operands.push_back(of(v));
      std::vector<Type> types;
      for (const Value* r : op->results) types.push_back(r->type);
      const Op* copy = b_.create(op->kind, operands, types, op->attrs);
      for (size_t i = 0; i < types.size(); ++i) env[op->results[i]] = copy->results[i];
    }
    for (size_t i = 0; i < loads_.size(); ++i) {
      const Op* load = loads_[i];
      Value* pointers = of(load->operand(0));
      Value* mask = b_.create1(OpKind::kSplat, {valid}, pointers->type.with_dtype(DType::kI1));
      if (load->operands.size() > 1) mask = b_.binary(OpKind::kAnd, of(load->operand(1)), mask);
      Value* operands[] = {view(b_, buffers_[i], slot), pointers, mask};
      b_.create(OpKind::kAsyncCopy, operands, {});
    }
    b_.create(OpKind::kAsyncCommit, {}, {});
    Env next;
    for (size_t i = 1; i < body_->args.size(); ++i)
      if (slice_.has(body_->args[i])) next[body_->args[i]] = of(body_->terminator()->operands[i - 1]);
    env = std::move(next);
  }

  void prologue() {
    b_.set_before(loop_);
    for (size_t i = 1; i < body_->args.size(); ++i)
      if (slice_.has(body_->args[i])) ahead_[body_->args[i]] = loop_->operands[i + 2];
    for (int s = 0; s + 1 < stages_; ++s) {
      Value* iv = later(loop_->operand(0), s);
      ahead_[body_->args[0]] = iv;
      issue(ahead_, runs(iv), i32(s));
    }
  }

  /// A value that the loop carries beside the user's: its argument; finish it with `yields`.
  Value* carry(Value* init) {
    loop_->append_operand(init);
    module_.add_result(loop_, init->type);
    return module_.add_arg(body_, init->type);
  }

  void ahead() {
    std::vector<const Value*> carried;
    for (size_t i = 1; i < body_->args.size(); ++i)
      if (slice_.has(body_->args[i])) carried.push_back(body_->args[i]);
    Value* read = i32(0);
    Value* write = i32(stages_ - 1);
    Env env;
    for (const Value* arg : carried) env[arg] = carry(ahead_.at(arg));
    read_slot_ = carry(read);
    Value* write_slot = carry(write);
    b_.set_before(body_->first);
    wait(stages_ - 2);
    b_.create(OpKind::kBarrier, {}, {});
    Value* iv = later(body_->args[0], stages_ - 1);
    env[body_->args[0]] = iv;
    issue(env, runs(iv), write_slot);
    std::vector<Value*> yields;
    for (const Value* arg : carried) yields.push_back(env.at(arg));
    yields.push_back(next_slot(b_, read_slot_, stages_).slot);
    yields.push_back(next_slot(b_, write_slot, stages_).slot);
    for (Value* v : yields) body_->terminator()->append_operand(v);
  }

  // --- what becomes of the loads

  Value* read(Value* handle, const Type& type) {
    Value* v = b_.create1(OpKind::kSharedLoad, {handle}, type);
    reads_.push_back(v->op);
    return v;
  }

  void replace_conversion(Op* convert, Value* handle) {
    b_.set_before(convert);
    replace(convert, read(handle, convert->result()->type));
  }

  void take_loads() {
    for (size_t i = 0; i < loads_.size(); ++i) {
      Op* load = loads_[i];
      b_.set_before(load);
      b_.set_range(load->range);
      Value* handle = view(b_, buffers_[i], read_slot_);
      const std::vector<ir::Use> uses = load->result()->uses;
      // A copy fills what is masked off with 0.
      const bool filled = load->operands.size() == 3 && constant_of(load->operand(2)) != uint64_t{0};
      for (const ir::Use& use : uses) {
        if (use.op->kind == OpKind::kConvertLayout && !filled) replace_conversion(use.op, handle);
        if (use.op->kind == OpKind::kTrans && !filled) take_transposed(use.op, handle);
      }
      b_.set_before(load);
      if (load->result()->uses.empty()) {
        load->erase();
        continue;
      }
      Value* v = read(handle, load->result()->type);
      if (filled) v = b_.select(load->operand(1), v, load->operand(2));
      replace(load, v);
    }
    if (which_ == Ahead::kLoads) read_again(module_, reads_);
  }

  /// The conversions of a transposed tile read the transposed memory.
  void take_transposed(Op* trans, Value* handle) {
    b_.set_before(trans);
    Value* turned = transposed(b_, handle, std::get<std::vector<int64_t>>(*trans->find(AttrName::kOrder)));
    const std::vector<ir::Use> uses = trans->result()->uses;
    for (const ir::Use& use : uses)
      if (use.op->kind == OpKind::kConvertLayout) replace_conversion(use.op, turned);
    if (trans->result()->uses.empty()) trans->erase();
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  int stages_;
  const Ahead which_;
  const int64_t room_;
  const analysis::PointerOrigins& stored_;
  const analysis::AxisAnalysis& axis_;
  Slice slice_;
  ir::Builder b_;
  std::vector<Op*> loads_;
  std::vector<Value*> buffers_;
  std::vector<Op*> reads_;
  Env ahead_;
  Value* read_slot_ = nullptr;
};

/// `stored` gets what the loop writes through.
Ahead runs_ahead(const Op* loop, analysis::PointerOrigins& stored) {
  bool dots = false, changes = false, unknown = false;
  for (const Op* op : *loop->region())
    ir::any_nested(op, [&](const Op* inner) {
      dots = dots || inner->kind == OpKind::kDot;
      if (inner->kind == OpKind::kStore) {
        changes = true;
        stored.join(analysis::pointer_origins(inner->operand(0)));
      } else if (inner->regions.empty() && changes_memory(inner)) {
        unknown = true;
      }
      return false;
    });
  if (unknown) return Ahead::kNothing;
  if (dots) return changes ? Ahead::kNothing : Ahead::kOperands;
  return loop->has(AttrName::kNumStages) ? Ahead::kLoads : Ahead::kNothing;
}

}  // namespace

Status pipeline_loads(ir::Module& module, const target::Target& target) {
  if (!target.has(target::kCpAsync)) return {};
  std::vector<Op*> loops;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor) loops.push_back(op);
  });
  int64_t room = target.shared_per_block - kReserved;
  for (Op* loop : loops) {
    analysis::PointerOrigins stored;
    const Ahead which = runs_ahead(loop, stored);
    const auto stages = static_cast<int>(loop->int_or(AttrName::kNumStages, module.num_stages));
    if (which == Ahead::kNothing || stages < 2) continue;
    const analysis::AxisAnalysis axis(module);
    room -= Loop(module, loop, stages, which, room, stored, axis).run();
  }
  return dce(module);
}

}  // namespace kiln::passes
