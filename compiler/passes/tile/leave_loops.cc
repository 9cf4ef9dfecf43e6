#include "compiler/passes/tile/leave_loops.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Predicate;
using ir::Value;

constexpr int kInits = 3;  // operands of `for` behind its bounds and step

class EarlyExit {
 public:
  explicit EarlyExit(Op* loop) : loop_(loop), body_(loop->region()) {}

  /// Whether the loop's iterations do nothing once one of them did nothing.
  bool found() {
    for (Op* op : *body_) {
      if (ir::is_terminator(op) || ir::is_pure(op)) continue;
      if (op->kind != OpKind::kIf || guard_) return false;
      guard_ = op;
    }
    return guard_ && follows_from_kept(guard_->operand(0)) && varies_ && leaves_the_rest();
  }

  void rewrite(ir::Module& module) {
    ir::Builder b(module);
    b.set_before(loop_);
    b.set_range(loop_->range);
    Value *first = loop_->operand(0), *end = loop_->operand(1), *step = loop_->operand(2);
    std::vector<Value*> inits = {first, b.cmp(Predicate::kLt, first, end)};
    inits.insert(inits.end(), loop_->operands.begin() + kInits, loop_->operands.end());
    Op* loop = b.while_loop(inits);
    Block *test = loop->region(0), *again = loop->region(1);
    for (const Block* region : {test, again}) {
      region->args[0]->name = body_->args[0]->name;
      region->args[1]->name = {};
      for (size_t i = 0; i < carried(); ++i) region->args[i + 2]->name = argument(i)->name;
    }

    Copies of_test;
    for (size_t i = 0; i < carried(); ++i) of_test[argument(i)] = test->args[i + 2];
    b.set_to_end(test);
    Value* goes_on = b.binary(OpKind::kAnd, test->args[1], copied_condition(b, of_test));
    std::vector<Value*> passed = {goes_on};
    passed.insert(passed.end(), test->args.begin(), test->args.end());
    b.create(OpKind::kCondition, passed, {});

    ir::replace_all_uses(body_->args[0], again->args[0]);
    for (size_t i = 0; i < carried(); ++i) ir::replace_all_uses(argument(i), again->args[i + 2]);
    const std::vector<Value*> kept = guard_->region(0)->terminator()->operands;
    for (size_t i = 0; i < guard_->results.size(); ++i) ir::replace_all_uses(guard_->results[i], kept[i]);
    inline_block(guard_->region(0), guard_);
    guard_->erase();
    const std::vector<Value*> yielded = body_->terminator()->operands;
    b.set_to_end(again);
    // What is left is compared, as by `for`: the next number might wrap around.
    Value* left = b.binary(OpKind::kSub, end, again->args[0]);
    Value* more = b.cmp(Predicate::kGt, as_unsigned(b, left), as_unsigned(b, step));
    std::vector<Value*> next = {b.binary(OpKind::kAdd, again->args[0], step), more};
    next.insert(next.end(), yielded.begin(), yielded.end());
    b.yield(next);
    inline_block(body_, again->first);
    for (size_t i = 0; i < carried(); ++i) {
      ir::replace_all_uses(loop_->results[i], loop->results[i + 2]);
      loop->results[i + 2]->name = loop_->results[i]->name;
    }
    loop_->erase();
  }

 private:
  size_t carried() const { return loop_->results.size(); }
  Value* argument(size_t i) const { return body_->args[i + 1]; }
  Value* next_of(size_t i) const { return body_->terminator()->operands[i]; }

  /// Whether an iteration that skips the `if` passes the value on as it was.
  bool is_kept(size_t i) const {
    const Value* next = next_of(i);
    if (next == argument(i)) return true;
    return next->op == guard_ && guard_->region(1)->terminator()->operands[next->index] == argument(i);
  }

  /// Whether a value in the loop is computed, by ops that `slice_` gets, from what such an iteration keeps and from
  /// what is outside; `varies_`: not from the latter alone.
  bool follows_from_kept(const Value* value) {
    std::vector<const Value*> work = {value};
    while (!work.empty()) {
      const Value* v = work.back();
      work.pop_back();
      if (v->block == body_) {
        if (v->index == 0 || !is_kept(v->index - 1)) return false;
        varies_ = true;
      }
      if (!v->op || v->op->parent != body_ || !slice_.insert(v->op).second) continue;
      if (v->op == guard_ || !v->op->regions.empty() || v->op->results.size() != 1) return false;
      work.insert(work.end(), v->op->operands.begin(), v->op->operands.end());
    }
    return true;
  }

  /// Whether iterations that skip the `if` change nothing that is read behind the loop, nor do anything but skip it.
  bool leaves_the_rest() const {
    const Block* skipped = guard_->region(1);
    for (size_t i = 0; i < carried(); ++i)
      if (!is_kept(i) && !loop_->results[i]->uses.empty()) return false;
    return skipped->first == skipped->terminator();
  }

  /// The condition of the `if`, computed again; `copies`: what stands for the loop's arguments.
  Value* copied_condition(ir::Builder& b, Copies& copies) const {
    for (const Op* op : *body_)
      if (slice_.contains(op))
        copies[op->result()] =
            b.create(op->kind, copies_of(copies, op->operands), std::span(&op->result()->type, 1), op->attrs)->result();
    return copies_of(copies, guard_->operands)[0];
  }

  static Value* as_unsigned(ir::Builder& b, Value* v) {
    return b.cast(v, v->type.element_bits() == 64 ? DType::kU64 : DType::kU32);
  }

  Op* loop_;
  Block* body_;
  Op* guard_ = nullptr;
  std::unordered_set<const Op*> slice_;  // ops of the body that compute the condition
  bool varies_ = false;                  // it is computed from what the loop carries
};

}  // namespace

Status leave_loops(ir::Module& module, const LeaveLoopsOptions&) {
  std::vector<Op*> loops;
  ir::walk(module.body(), [&](Op* op) {
    // Products of loops run ahead of each other, which those of `while` do not.
    auto multiplies = [](const Op* inner) { return inner->kind == OpKind::kDot || inner->kind == OpKind::kAsyncCopy; };
    const bool is_wide = op->kind == OpKind::kFor && op->operand(0)->type.element_bits() >= 32;
    if (is_wide && !ir::any_nested(op, multiplies)) loops.push_back(op);
  });
  for (Op* loop : loops)
    if (EarlyExit exit(loop); exit.found()) exit.rewrite(module);
  return {};
}

}  // namespace kiln::passes
