#include "compiler/passes/distributed/read_again.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/waits.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

/// Better computed again than kept in registers.
bool is_cheap(const Op* op) {
  const ir::Type& type = op->result()->type;
  if (!type.is_tile()) return false;
  switch (op->kind) {
    case OpKind::kCast:
    case OpKind::kSelect:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kFma:
    case OpKind::kNeg:
      return true;
    case OpKind::kExp:
    case OpKind::kExp2:
      return type.dtype == DType::kF32 && type.layout->num_registers() >= kManyRegisters;
    default:
      return false;
  }
}

/// Behind a barrier: within a warp the backend would find the first value again.
bool ends_part(const Op* op) { return has_combine_region(op) && analysis::scratch_bytes(*op) > 0; }

/// What was read, and what is cheaply made of it and of what takes no registers worth naming; each with the number of
/// reductions that lie before it.
class Parts {
 public:
  void set(const Value* v, int part) { part_of_[v] = part; }
  bool has(const Value* v) const { return part_of_.contains(v); }
  bool is_before(const Value* v, int part) const {
    const auto known = part_of_.find(v);
    return known != part_of_.end() && known->second != part;
  }
  bool takes(const Op* op) const {
    if (op->results.size() != 1 || !is_cheap(op)) return false;
    bool reads = false;
    for (const Value* v : op->operands) {
      const bool small = v->op && (v->op->kind == OpKind::kSplat || v->op->kind == OpKind::kConstant);
      // A mask has its bit for each element, and is there already for the store.
      if (!has(v) && !small && v->type.dtype != DType::kI1) return false;
      reads = reads || has(v);
    }
    return reads;
  }

 private:
  std::unordered_map<const Value*, int> part_of_;
};

class Reader {
 public:
  Reader(ir::Module& module, std::span<Op* const> loads) : b_(module), loads_(loads) {}

  void run() {
    int part = 0;
    for (Op* op : *loads_[0]->parent) {
      for (size_t i = 0; i < op->operands.size(); ++i) {
        if (!parts_.is_before(op->operands[i], part)) continue;
        b_.set_before(op);
        op->set_operand(static_cast<int>(i), in_part(op->operands[i], part));
      }
      part += ends_part(op);
      if (std::find(loads_.begin(), loads_.end(), op) != loads_.end() || parts_.takes(op))
        parts_.set(op->result(), part);
    }
  }

 private:
  Value* in_part(Value* v, int part) {
    if (!parts_.is_before(v, part)) return v;
    Value*& copy = copies_[{v, part}];
    if (copy) return copy;
    std::vector<Value*> operands;
    for (Value* operand : v->op->operands) operands.push_back(in_part(operand, part));
    b_.set_range(v->op->range);
    copy = b_.create(v->op->kind, operands, std::span(&v->type, 1), v->op->attrs)->result();
    parts_.set(copy, part);
    return copy;
  }

  ir::Builder b_;
  std::span<Op* const> loads_;
  Parts parts_;
  std::map<std::pair<const Value*, int>, Value*> copies_;
};

}  // namespace

void read_again(ir::Module& module, std::span<Op* const> loads) {
  if (!loads.empty()) Reader(module, loads).run();
}

namespace {

bool outlives(const Op* load, bool (*ends)(const Op*)) {
  Parts parts;
  parts.set(load->result(), 0);
  int part = 0;
  for (const Op* op = load->next; op; op = op->next) {
    if (std::any_of(op->operands.begin(), op->operands.end(), [&](const Value* v) { return parts.is_before(v, part); }))
      return true;
    part += ends(op);
    if (parts.takes(op)) parts.set(op->result(), part);
  }
  return false;
}

}  // namespace

bool outlives_reduction(const Op* load) { return outlives(load, ends_part); }

bool outlives_wait(const Op* load) { return outlives(load, ir::waits_for_programs); }

}  // namespace kiln::passes
