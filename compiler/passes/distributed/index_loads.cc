#include "compiler/passes/distributed/index_loads.h"

#include <algorithm>

#include "compiler/analysis/layout_ops.h"
#include "compiler/passes/distributed/pipeline_loads.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/ring_reader.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int64_t kMostIndices = 1024;  // of one load

/// Whether the op gives the same elements whatever layout they have.
bool has_any_layout(const Op* op) {
  return op->results.size() == 1 && op->regions.empty() && ir::is_pure(op) &&
         (ir::is_elementwise(op) || analysis::is_shape_op(op) || op->kind == OpKind::kConstant ||
          op->kind == OpKind::kArange || op->kind == OpKind::kSplat);
}

}  // namespace

bool IndexLoads::takes(Op* load, Plan& plan) {
  const ir::Type& type = load->result()->type;
  if (!type.is_tile() || type.pointer || type.shape.rank != 1 || type.shape.numel() > kMostIndices) return false;
  if (load->flag(AttrName::kVolatile) || is_filled(load)) return false;
  if (axis_.vector_width(load) * size_of(type.dtype) < kLeastCopyBytes) return false;
  if (analysis::pointer_origins(load->operand(0)).meets(stored_)) return false;
  for (size_t i = 0; i < std::min<size_t>(2, load->operands.size()); ++i)
    if (!plan.slice.add(load->operands[i])) return false;
  if (std::ranges::find(loads_, load) == loads_.end() && std::ranges::find(plan.loads, load) == plan.loads.end())
    plan.loads.push_back(load);
  return true;
}

/// Whether it can be computed ahead of the indices that it needs.
bool IndexLoads::visit(Value* v, Plan& plan) {
  Op* op = v->op;
  if (!v->type.is_tile()) return LoopSlice(body_, &stored_).add(v);
  if (v->block == body_) return false;  // carried
  if (!op || op->parent != body_) return true;
  const auto [it, is_new] = plan.seen.try_emplace(v, true);
  if (!is_new) return it->second;
  bool ok = false;
  if (op->kind == OpKind::kLoad) {
    ok = takes(op, plan);
  } else if (op->kind == OpKind::kConvertLayout) {
    ok = visit(op->operand(0), plan);
    if (ok && !is_read(v)) plan.conversions.push_back(op);
  } else if (has_any_layout(op)) {
    ok = std::ranges::all_of(op->operands, [&](Value* operand) { return visit(operand, plan); });
  }
  return plan.seen[v] = ok;
}

const IndexLoads::Read* IndexLoads::is_read(const Value* v) const {
  const auto it = std::ranges::find_if(reads_, [&](const Read& r) { return r.value == v; });
  return it == reads_.end() ? nullptr : &*it;
}

/// Right after the original, so that it stands before every use.
Value* IndexLoads::recomputed(Value* v, const layout::LinearLayout* layout) {
  if (!v->type.is_tile() || v->type.layout == layout) return v;
  Value*& made = made_[{v, layout}];
  if (made) return made;
  ir::Builder b(module_);
  if (v->op) {
    b.set_after(v->op);
    b.set_range(v->op->range);
  } else {
    b.set_before(v->block->first);
  }
  const ir::Type type = v->type.with_layout(layout);
  if (!v->op || !has_any_layout(v->op)) {
    made = b.create1(OpKind::kConvertLayout, {v}, type);
    if (const Read* index = is_read(v)) reads_.push_back({made, index->load});
    return made;
  }
  std::vector<Value*> operands;
  for (size_t i = 0; i < v->op->operands.size(); ++i) {
    Value* operand = v->op->operands[i];
    if (operand->type.is_tile())
      operand = recomputed(operand, module_.intern(*analysis::operand_layout(*v->op, static_cast<int>(i), *layout)));
    operands.push_back(operand);
  }
  Value* again = b.create(v->op->kind, operands, std::span(&type, 1), v->op->attrs)->result();
  again->name = v->name;
  return made_[{v, layout}] = again;
}

bool IndexLoads::add(Value* v, LoopSlice& slice) {
  Plan plan{slice_, {}, {}, {}};
  if (v->op && v->op->kind == OpKind::kConvertLayout) return false;  // the analysis knows the alignment of this value
  if (!visit(v, plan)) return false;
  slice_ = std::move(plan.slice);
  for (Op* load : plan.loads) {
    reads_.push_back({load->result(), loads_.size()});
    loads_.push_back(load);
  }
  for (Op* convert : plan.conversions) {
    Value* made = recomputed(convert->operand(0), convert->result()->type.layout);
    ir::replace_all_uses(convert->result(), made);
    convert->erase();
  }
  for (const Read& read : reads_) slice.give(read.value);
  return slice.add(v);
}

}  // namespace kiln::passes
