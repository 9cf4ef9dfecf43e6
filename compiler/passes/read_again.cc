#include "compiler/passes/read_again.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

/// As cheap as a read of shared memory.
bool is_cheap(OpKind kind) {
  switch (kind) {
    case OpKind::kCast:
    case OpKind::kSelect:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kFma:
    case OpKind::kNeg:
      return true;
    default:
      return false;
  }
}

class State {
 public:
  State(ir::Module& module, std::span<Op* const> loads) : b_(module), loads_(loads) {}

  void run() {
    int part = 0;
    for (Op* op : *loads_[0]->parent) {
      for (size_t i = 0; i < op->operands.size(); ++i) {
        const auto known = part_of_.find(op->operands[i]);
        if (known == part_of_.end() || known->second == part) continue;
        b_.set_before(op);
        op->set_operand(static_cast<int>(i), in_part(op->operands[i], part));
      }
      // Behind a barrier: elsewhere the backend would find the first value again.
      if (has_combine_region(op) && analysis::scratch_bytes(*op) > 0) ++part;
      if (std::find(loads_.begin(), loads_.end(), op) != loads_.end() || follows(op)) part_of_[op->result()] = part;
    }
  }

 private:
  /// Cheap, and made of what was read and of what takes no registers worth naming.
  bool follows(const Op* op) const {
    if (!is_cheap(op->kind) || !op->result()->type.is_tile()) return false;
    bool reads = false;
    for (const Value* v : op->operands) {
      const bool read = part_of_.contains(v);
      const bool small = v->op && (v->op->kind == OpKind::kSplat || v->op->kind == OpKind::kConstant);
      // A mask has its bit for each element, and is there already for the store.
      if (!read && !small && v->type.dtype != DType::kI1) return false;
      reads = reads || read;
    }
    return reads;
  }

  Value* in_part(Value* v, int part) {
    const auto known = part_of_.find(v);
    if (known == part_of_.end() || known->second == part) return v;
    Value*& copy = copies_[{v, part}];
    if (copy) return copy;
    std::vector<Value*> operands;
    for (Value* operand : v->op->operands) operands.push_back(in_part(operand, part));
    b_.set_range(v->op->range);
    copy = b_.create(v->op->kind, operands, std::span(&v->type, 1), v->op->attrs)->result();
    part_of_[copy] = part;
    return copy;
  }

  ir::Builder b_;
  std::span<Op* const> loads_;
  std::unordered_map<const Value*, int> part_of_;  // reductions that lie before it
  std::map<std::pair<const Value*, int>, Value*> copies_;
};

}  // namespace

void read_again(ir::Module& module, std::span<Op* const> loads) {
  if (!loads.empty()) State(module, loads).run();
}

}  // namespace kiln::passes
