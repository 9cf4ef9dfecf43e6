#include "compiler/passes/tile/if_conversion.h"

#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/passes/util/loop_slice.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

/// Iterations of a loop, and ops of its body, up to which it is unrolled.
constexpr int kMostIterations = 16, kMostOfBody = 64;
/// Of a branch: its ops, and the elements that a thread loads. They are done in vain where it is not taken.
constexpr int kMostOps = 32;
constexpr int64_t kMostLoaded = 8;

/// Whether all iterations can be written out once the branches of the body are gone.
bool can_unroll(const Op* loop) {
  if (loop->kind != OpKind::kFor) return false;
  const auto trips = trip_count(loop);
  if (!trips || *trips > kMostIterations) return false;
  int ops = 0;
  return !ir::any_nested(loop, [&](const Op* op) {
    const bool is_flat = op == loop || op->kind == OpKind::kIf || op->regions.empty();
    return !is_flat || ++ops > kMostOfBody;
  });
}

bool fits(const Op& branch, int64_t threads) {
  if (branch.region(1)->first != branch.region(1)->terminator()) return false;
  int ops = 0;
  int64_t loaded = 0;
  for (const Op* op : *branch.region(0)) {
    if (ir::is_terminator(op)) break;
    const bool is_load = op->kind == OpKind::kLoad && !op->flag(ir::AttrName::kVolatile);
    if (!op->regions.empty() || !(is_load || ir::is_pure(op)) || ++ops > kMostOps) return false;
    if (is_load) loaded += (op->result()->type.shape.numel() + threads - 1) / threads;
  }
  return loaded > 0 && loaded <= kMostLoaded;
}

void convert(ir::Module& module, Op* branch) {
  ir::Builder b(module);
  Value* taken = branch->operand(0);
  for (Op* op : *branch->region(0)) {
    if (op->kind != OpKind::kLoad) continue;
    b.set_before(op);
    b.set_range(op->range);
    const std::vector<Value*> masked = masked_load(b, taken, op->operands);
    if (op->operands.size() > 1)
      op->set_operand(1, masked[1]);
    else
      op->append_operand(masked[1]);
  }
  const std::vector<Value*> yes = branch->region(0)->terminator()->operands,
                            no = branch->region(1)->terminator()->operands;
  inline_block(branch->region(0), branch);
  b.set_before(branch);
  b.set_range(branch->range);
  for (size_t i = 0; i < yes.size(); ++i) {
    Value* which = yes[i]->type.is_tile() ? b.splat(taken, yes[i]->type.shape) : taken;
    ir::replace_all_uses(branch->results[i], b.select(which, yes[i], no[i]));
  }
  branch->erase();
}

void unroll(ir::Module& module, Op* loop) {
  const ir::Block* body = loop->region();
  std::vector<Value*> carried(loop->operands.begin() + 3, loop->operands.end());
  ir::Builder b(module);
  b.set_before(loop);
  b.set_range(loop->range);
  Value* number = loop->operand(0);
  for (auto left = *trip_count(loop); left > 0; --left) {
    ir::OpCopier copier(module);
    copier.substitute(body->args[0], number);
    for (size_t i = 0; i < carried.size(); ++i) copier.substitute(body->args[i + 1], carried[i]);
    for (const Op* op : *body)
      if (!ir::is_terminator(op)) copier.copy(*op, loop->parent, loop);
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = copier(body->terminator()->operands[i]);
    if (left > 1) number = b.binary(OpKind::kAdd, number, loop->operand(2));
  }
  for (size_t i = 0; i < carried.size(); ++i) ir::replace_all_uses(loop->results[i], carried[i]);
  loop->erase();
}

}  // namespace

Status if_conversion(ir::Module& module) {
  const int64_t threads = int64_t{32} * module.num_warps;
  std::vector<Op*> loops;
  ir::walk(module.body(), [&](Op* op) {
    if (!can_unroll(op)) return;
    bool has_branch = false;
    for (const Op* inner : *op->region()) {
      if (inner->kind != OpKind::kIf) continue;
      if (!fits(*inner, threads)) return;
      has_branch = true;
    }
    if (has_branch) loops.push_back(op);
  });
  for (Op* loop : loops) {
    std::vector<Op*> branches;
    for (Op* op : *loop->region())
      if (op->kind == OpKind::kIf) branches.push_back(op);
    for (Op* branch : branches) convert(module, branch);
    unroll(module, loop);
  }
  return {};
}

}  // namespace kiln::passes
