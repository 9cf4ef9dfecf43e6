#include "compiler/analysis/cheap_values.h"

#include <algorithm>

namespace kiln::analysis {

constexpr int kCheapOps = 32;  // computed again at most

bool is_shape_op(const ir::Op* op) {
  return op->kind == ir::OpKind::kExpandDims || op->kind == ir::OpKind::kBroadcast ||
         op->kind == ir::OpKind::kReshape || op->kind == ir::OpKind::kTrans;
}

CheapValues::CheapValues(ir::Block* body) { add(body); }

void CheapValues::add(ir::Block* block) {
  for (ir::Op* op : *block) {
    for (ir::Block* b : op->regions) add(b);
    if (op->results.size() != 1) continue;
    if (int ops = cost(op); ops > 0 && ops <= kCheapOps) cost_[op->result()] = ops;
  }
}

int CheapValues::cost(const ir::Op* op) const {
  if (!op->result()->type.is_tile()) return 0;
  if (op->kind == ir::OpKind::kConstant || op->kind == ir::OpKind::kArange || op->kind == ir::OpKind::kSplat) return 1;
  if (!is_shape_op(op) && !(ir::is_elementwise(op) && ir::is_pure(op))) return 0;
  auto is_float = [](const ir::Value* v) { return v->type.is_float(); };
  bool floats = is_float(op->result()) || std::any_of(op->operands.begin(), op->operands.end(), is_float);
  bool light = is_shape_op(op) || op->kind == ir::OpKind::kCast || op->kind == ir::OpKind::kBitcast ||
               op->kind == ir::OpKind::kSelect || op->kind == ir::OpKind::kHint || op->kind == ir::OpKind::kCmp ||
               op->kind == ir::OpKind::kAdd || op->kind == ir::OpKind::kSub || op->kind == ir::OpKind::kMul ||
               op->kind == ir::OpKind::kNeg;
  if (floats && !light) return 0;
  int sum = 1;
  for (const ir::Value* v : op->operands) {
    auto it = cost_.find(v);
    if (it == cost_.end()) return 0;
    sum += it->second;
  }
  return sum;
}

}  // namespace kiln::analysis
