#include "compiler/passes/tile/prefetch_lines.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/util/loop_slice.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/target/usual_size.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

constexpr int64_t kLineBytes = 128;
/// Programs for each SM up to which nobody else works while a program waits. Places of the largest of rows of 73514
/// floats on an H200, four rows by 4096: 50 us become 35 with 36 programs; with 1000 they would lose 9 %.
constexpr int64_t kFewPrograms = 2;
/// What is ahead of a program: an SM's part of the memory's bandwidth for as long as DRAM takes to answer.
constexpr int64_t kBytesAhead = 32 << 10;
constexpr int64_t kMostIterations = 8;
/// What an iteration loads, beyond which its own loads keep the memory busy.
constexpr int64_t kMostOfIteration = 2 * kBytesAhead;
/// Prefetches of a thread in an iteration, for each load.
constexpr int64_t kMostOfThread = 4;

/// Whether the body has a reduction of what it loads. Iterations wait for each other then. Those of a loop that only
/// adds up are unrolled by the assembler, and a branch in the body would keep it from that: 24 % slower with many
/// programs.
bool reduces(const Block& body) {
  for (const Op* op : body)
    if (op->kind == OpKind::kReduce || op->kind == OpKind::kScan) return true;
  return false;
}

/// The loads of one loop's body.
class LinesAhead {
 public:
  LinesAhead(ir::Module& module, Op* loop, const analysis::AxisAnalysis& axis)
      : module_(module), loop_(loop), body_(loop->region()), axis_(axis), b_(module) {}

  void run(int64_t few) {
    int64_t bytes = 0;
    for (Op* op : *body_)
      if (op->kind == OpKind::kLoad && fits(*op)) {
        loads_.push_back(op);
        bytes += op->result()->type.shape.numel() * size_of(op->result()->type.dtype);
      }
    if (loads_.empty() || bytes > kMostOfIteration) return;
    iterations_ = std::clamp(kBytesAhead / bytes, int64_t{1}, kMostIterations);
    if (const auto trips = trip_count(loop_); trips && *trips <= static_cast<uint64_t>(iterations_)) return;
    b_.set_range(loop_->range);
    b_.set_before(loop_);
    const Type wide = ir::scalar_type(DType::kI64);
    Value* programs = b_.cast(b_.num_programs(0), DType::kI64);
    for (int axis : {1, 2}) programs = b_.binary(OpKind::kMul, programs, b_.cast(b_.num_programs(axis), DType::kI64));
    Value* is_few = b_.cmp(ir::Predicate::kLe, programs, b_.constant_int(wide, few));
    // Behind the loads of this iteration, which are waited for first.
    b_.set_after(loads_.back());
    Op* where_few = b_.if_op(is_few, {});
    b_.set_to_end(where_few->region(1));
    b_.yield({});
    b_.set_to_end(where_few->region(0));
    Value *iv = body_->args[0], *step = loop_->operand(2);
    ahead_ = b_.binary(OpKind::kAdd, iv, b_.binary(OpKind::kMul, step, b_.constant_int(step->type, iterations_)));
    // In 64 bits: so far ahead, the induction variable may have wrapped around.
    Value* distance = b_.binary(OpKind::kMul, b_.cast(step, DType::kI64), b_.constant_int(wide, iterations_));
    runs_ = runs(b_, loop_, b_.binary(OpKind::kAdd, b_.cast(iv, DType::kI64), distance));
    for (const Op* load : loads_) prefetch(*load);
    b_.yield({});
  }

 private:
  /// The dimension of a pointer tile along which elements of a line are neighbours; -1: of a scalar.
  int dim_of(const Value* pointer) const { return pointer->type.is_tile() ? axis_.order_of(pointer)[0] : -1; }
  int64_t of_line(const Value* pointer) const { return kLineBytes / size_of(pointer->type.dtype); }
  /// Elements along that dimension of the tile of lines.
  int32_t lines_along(const Value* pointer, int dim) const {
    return static_cast<int32_t>(std::max(int64_t{1}, pointer->type.shape[dim] / of_line(pointer)));
  }

  bool fits(const Op& load) {
    const Value* pointer = load.operand(0);
    if (load.flag(AttrName::kVolatile)) return false;
    // The pointers and the mask: what stands for masked elements is loaded by nobody.
    const std::span<Value* const> places(load.operands.data(), std::min(size_t{2}, load.operands.size()));
    LoopSlice slice(body_);
    if (!std::ranges::all_of(places, [&](const Value* v) { return slice.add(v); }) || !slice.varies()) return false;
    const int dim = dim_of(pointer);
    if (dim >= 0) {
      const int64_t size = pointer->type.shape[dim], lines = lines_along(pointer, dim);
      if (axis_.of(pointer).contiguity[static_cast<size_t>(dim)] < std::min(size, of_line(pointer))) return false;
      if (pointer->type.shape.numel() / size * lines > kMostOfThread * 32 * module_.num_warps) return false;
    }
    return std::ranges::all_of(places, [&](const Value* v) { return is_known(v, dim); });
  }

  bool is_of_body(const Value* v) const { return v->block == body_ || (v->op && v->op->parent == body_); }

  /// What the loop adds to `arg` in each iteration, the same in all of them; or null.
  const Op* stride_of(const Value* arg) const {
    if (arg->index == 0) return nullptr;
    const Op* next = body_->terminator()->operand(static_cast<int>(arg->index) - 1)->op;
    const bool adds = next && (next->kind == OpKind::kAddPtr || next->kind == OpKind::kAdd) && next->operand(0) == arg;
    return adds && !next->operand(1)->type.is_float() && !is_of_body(next->operand(1)) ? next : nullptr;
  }

  /// Whether `v` can be made for an iteration ahead; with `dim`, of every line_-th element along it alone.
  bool is_known(const Value* v, int dim) const {
    if (dim >= 0 && v->type.shape[dim] == 1) dim = -1;
    if (v->block == body_) {
      if (v->index == 0) return true;
      const Op* next = stride_of(v);
      return next && is_known(loop_->operand(static_cast<int>(v->index) + 2), dim) && is_known(next->operand(1), dim);
    }
    const Op* op = v->op;
    if (dim < 0) {
      if (!is_of_body(v)) return true;
      return ir::is_pure(op) && op->regions.empty() && !ir::has_trait(op->kind, 'X') &&
             std::ranges::all_of(op->operands, [&](const Value* o) { return is_known(o, -1); });
    }
    if (!op) return false;
    switch (op->kind) {
      case OpKind::kConstant:
      case OpKind::kArange:
        return true;
      case OpKind::kSplat:
        return is_known(op->operand(0), -1);
      case OpKind::kExpandDims: {
        const auto at = static_cast<int>(op->int_attr(AttrName::kAxis));
        return is_known(op->operand(0), at < dim ? dim - 1 : dim);
      }
      case OpKind::kBroadcast:
        return is_known(op->operand(0), dim);
      default:
        return ir::is_elementwise(op) && ir::is_pure(op) &&
               std::ranges::all_of(op->operands, [&](const Value* o) { return is_known(o, dim); });
    }
  }

  /// What is_known tells of.
  Value* at(Value* v, int dim) {
    if (dim >= 0 && v->type.shape[dim] == 1) dim = -1;
    if (const auto known = made_.find({v, dim}); known != made_.end()) return known->second;
    return made_[{v, dim}] = make(v, dim);
  }
  Value* make(Value* v, int dim) {
    if (v->block == body_) return v->index == 0 ? ahead_ : carried(v, dim);
    if (dim < 0 && !is_of_body(v)) return v;
    const Op& op = *v->op;
    Type type = v->type;
    if (dim >= 0) type.shape[dim] = lines_;
    switch (dim < 0 ? OpKind::kReturn : op.kind) {
      case OpKind::kArange: {
        Value* number = b_.binary(OpKind::kMul, b_.arange(0, lines_), b_.constant_int(type, line_));
        return b_.binary(OpKind::kAdd, number, b_.constant_int(type, op.int_attr(AttrName::kStart)));
      }
      case OpKind::kSplat:
        return b_.splat(at(op.operand(0), -1), type.shape);
      case OpKind::kExpandDims: {
        const auto axis = static_cast<int>(op.int_attr(AttrName::kAxis));
        return b_.expand_dims(at(op.operand(0), axis < dim ? dim - 1 : dim), axis);
      }
      case OpKind::kBroadcast:
        return b_.broadcast(at(op.operand(0), dim), type.shape);
      default: {
        std::vector<Value*> operands;
        for (Value* o : op.operands) operands.push_back(at(o, dim));
        return b_.create(op.kind, operands, std::span(&type, 1), op.attrs)->result();
      }
    }
  }

  /// A value that the loop carries: what it is, and what the iterations up to the one ahead add. Of lines, which are
  /// no part of a whole tile: the first one, and what all iterations add.
  Value* carried(Value* arg, int dim) {
    const Op& next = *stride_of(arg);
    Value* stride = at(next.operand(1), dim);
    Value* from = dim < 0 ? arg : at(loop_->operand(static_cast<int>(arg->index) + 2), dim);
    Value* count = b_.constant_int(loop_->operand(2)->type, iterations_);
    if (dim >= 0) count = b_.binary(OpKind::kAdd, iterations_done(), count);
    count = b_.cast(count, stride->type.dtype);
    if (stride->type.is_tile()) count = b_.splat(count, stride->type.shape);
    return b_.create1(next.kind, {from, b_.binary(OpKind::kMul, stride, count)}, from->type);
  }

  /// A counter that the loop carries, since (iv - start) / step would be a division in each iteration.
  Value* iterations_done() {
    if (done_) return done_;
    ir::Builder b(module_);
    b.set_range(loop_->range);
    b.set_before(loop_);
    const Type type = loop_->operand(2)->type;
    loop_->append_operand(b.constant_int(type, 0));
    module_.add_result(loop_, type);
    done_ = module_.add_arg(body_, type);
    b.set_before(body_->terminator());
    body_->terminator()->append_operand(b.binary(OpKind::kAdd, done_, b.constant_int(type, 1)));
    return done_;
  }

  void prefetch(const Op& load) {
    Value* pointer = load.operand(0);
    const int dim = dim_of(pointer);
    line_ = of_line(pointer);
    lines_ = dim >= 0 ? lines_along(pointer, dim) : 1;
    made_.clear();
    b_.set_range(load.range);
    std::vector<Value*> operands = {at(pointer, dim)};
    if (load.operands.size() > 1) operands.push_back(at(load.operand(1), dim));
    b_.create(OpKind::kPrefetch, masked_load(b_, runs_, std::move(operands)), {});
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  const analysis::AxisAnalysis& axis_;
  ir::Builder b_;
  std::vector<Op*> loads_;
  int64_t iterations_ = 1;
  Value* ahead_ = nullptr;  // the induction variable of that iteration
  Value* runs_ = nullptr;   // whether there is that iteration
  Value* done_ = nullptr;   // iterations before this one
  int64_t line_ = 1;        // elements of a line, of the load at hand
  int32_t lines_ = 1;       // along its dimension
  std::map<std::pair<const Value*, int>, Value*> made_;
};

}  // namespace

Status prefetch_lines(ir::Module& module, const target::Target& target) {
  // Rings bring what products need, and programs of several blocks share out their loads.
  if (module.num_ctas > 1 || has_op(module, OpKind::kDot) || has_op(module, OpKind::kDescriptorLoad)) return {};
  std::vector<Op*> loops;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor && reduces(*op->region())) loops.push_back(op);
  });
  if (loops.empty()) return {};
  const analysis::AxisAnalysis axis(module);
  for (Op* loop : loops) LinesAhead(module, loop, axis).run(kFewPrograms * target::usual_multiprocessors(target));
  return {};
}

}  // namespace kiln::passes
