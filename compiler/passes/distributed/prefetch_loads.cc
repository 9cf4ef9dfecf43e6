#include "compiler/passes/distributed/prefetch_loads.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/passes/tile/dce.h"
#include "compiler/passes/util/loop_slice.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

bool has_dot(const Block& body) {
  for (const Op* op : body)
    if (op->kind == OpKind::kDot) return true;
  return false;
}

/// Of a thread: for what is prefetched, and for that with the loop's sums.
constexpr int kMostRegisters = 48, kMostWithSums = 160;

class Prefetcher {
 public:
  Prefetcher(ir::Module& module, Op* loop, const analysis::PointerOrigins& stored)
      : module_(module), loop_(loop), body_(loop->region()), stored_(stored), b_(module) {}

  void run() {
    std::vector<Op*> loads;
    int room = prefetch_room(*body_);
    for (Op* op : *body_) {
      if (!fits(op)) continue;
      const int registers = registers_of(op->result()->type);
      if (registers > room) continue;
      room -= registers;
      loads.push_back(op);
    }
    for (Op* load : loads) prefetch(load);
  }

 private:
  /// The values of an iteration, as far as they were computed for it.
  using Iteration = std::unordered_map<const Value*, Value*>;

  bool fits(const Op* op) const {
    if (op->kind != OpKind::kLoad || op->flag(AttrName::kVolatile)) return false;
    if (analysis::pointer_origins(op->operand(0)).meets(stored_)) return false;
    LoopSlice slice(body_);
    return std::all_of(op->operands.begin(), op->operands.end(), [&](const Value* v) { return slice.add(v); }) &&
           slice.varies();
  }

  /// `v` of another iteration, made of copies of ops at the insertion point. `before`: the iteration before it, which
  /// is the present one; null where it is the first one.
  Value* at(Value* v, Iteration& iteration, Iteration* before) {
    if (const auto known = iteration.find(v); known != iteration.end()) return known->second;
    Value* made = v;
    if (v->block == body_) {
      const size_t i = v->index;
      if (!before)
        made = i == 0 ? loop_->operand(0) : loop_->operands[i + 2];
      else if (i == 0)
        made = b_.binary(OpKind::kAdd, v, loop_->operand(2));
      else
        made = now(body_->terminator()->operands[i - 1], *before);
    } else if (v->op && v->op->parent == body_) {
      made = copy(*v->op, [&](Value* operand) { return at(operand, iteration, before); });
    }
    return iteration[v] = made;
  }
  /// `v` of the present iteration, at whose front the insertion point is.
  Value* now(Value* v, Iteration& iteration) {
    if (v->block == body_ || !v->op || v->op->parent != body_) return v;
    if (const auto known = iteration.find(v); known != iteration.end()) return known->second;
    return iteration[v] = copy(*v->op, [&](Value* operand) { return now(operand, iteration); });
  }
  template <class Fn>
  Value* copy(const Op& op, Fn&& operand_of) {
    std::vector<Value*> operands;
    for (Value* v : op.operands) operands.push_back(operand_of(v));
    const Type type = op.result()->type;
    return b_.create(op.kind, operands, std::span(&type, 1), op.attrs)->result();
  }

  Value* load_at(const Op& load, Value* iv, Iteration& iteration, Iteration* before) {
    std::vector<Value*> operands;
    for (Value* v : load.operands) operands.push_back(at(v, iteration, before));
    operands = masked_load(b_, runs(b_, loop_, iv), std::move(operands));
    const Type& type = load.result()->type;
    return b_.create(OpKind::kLoad, operands, std::span(&type, 1), load.attrs)->result();
  }

  void prefetch(Op* load) {
    b_.set_range(load->range);
    b_.set_before(loop_);
    Iteration first;
    Value* init = load_at(*load, loop_->operand(0), first, nullptr);
    b_.set_before(body_->first);
    Iteration present, following;
    Value* next = load_at(*load, at(body_->args[0], following, &present), following, &present);
    loop_->append_operand(init);
    module_.add_result(loop_, init->type);
    Value* carried = module_.add_arg(body_, init->type);
    body_->terminator()->append_operand(next);
    replace(load, carried);
  }

  ir::Module& module_;
  Op* loop_;
  Block* body_;
  const analysis::PointerOrigins& stored_;
  ir::Builder b_;
};

}  // namespace

int prefetch_room(const Block& body) {
  int sums = 0;
  for (const Op* op : body)
    if (op->kind == OpKind::kDot) sums += registers_of(op->result()->type);
  return std::min(kMostRegisters, kMostWithSums - sums);
}

Status prefetch_loads(ir::Module& module, const target::Target& target) {
  if (!target.has(target::kCpAsync)) return {};
  std::vector<Op*> loops;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor) loops.push_back(op);
  });
  for (Op* loop : loops) {
    if (loop->int_or(AttrName::kNumStages, module.num_stages) < 2 || !has_dot(*loop->region())) continue;
    if (const auto stored = stored_origins(loop)) Prefetcher(module, loop, *stored).run();
  }
  return dce(module);
}

}  // namespace kiln::passes
