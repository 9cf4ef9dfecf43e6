#include "compiler/lower/host/plan.h"

#include <algorithm>
#include <optional>

#include "compiler/lower/shared/math.h"

namespace kiln::lower::host {

using ir::OpKind;

bool is_light(OpKind kind) {
  return ir::has_trait(kind, 'P') && ir::has_trait(kind, 'E') && !is_math_op(kind) && kind != OpKind::kDiv &&
         kind != OpKind::kDivRn && kind != OpKind::kRem;
}

bool is_index_op(OpKind kind) {
  return ir::op_class(kind) == ir::OpClass::kIndex || ir::op_class(kind) == ir::OpClass::kShape;
}

namespace {

// Storing a tile costs a store and a load per chunk and takes cache from other tiles; about a dozen light ops are
// cheaper.
constexpr int kCheap = 12;

int cost(const ir::Value* v, const std::function<bool(const ir::Value*)>& is_stored, int budget) {
  if (v->type.is_scalar() || is_stored(v)) return 1;
  // The budget bounds the search: without it a shared subexpression would be visited once per path.
  if (!v->op || budget < 0) return kCheap + 1;
  if (!is_index_op(v->op->kind) && !is_light(v->op->kind)) return kCheap + 1;
  int total = is_index_op(v->op->kind) ? 0 : 1;
  for (const ir::Value* operand : v->op->operands) {
    total += cost(operand, is_stored, budget - total);
    if (total > budget) break;
  }
  return total;
}

}  // namespace

bool is_cheap(const ir::Value* v, const std::function<bool(const ir::Value*)>& is_stored) {
  return cost(v, is_stored, kCheap) <= kCheap;
}

bool is_uniform(const ir::Value* v) {
  if (v->type.shape.numel() == 1) return true;
  if (!v->op) return false;
  if (v->op->kind == OpKind::kConstant || v->op->kind == OpKind::kSplat) return true;
  if (v->op->kind == OpKind::kArange || !(is_index_op(v->op->kind) || is_light(v->op->kind))) return false;
  return std::all_of(v->op->operands.begin(), v->op->operands.end(), is_uniform);
}

bool is_affine(const ir::Value* v) {
  if (v->type.is_scalar()) return true;
  if (!v->op) return false;
  const ir::Op& op = *v->op;
  auto operand = [&](int i) { return is_affine(op.operand(i)); };
  if (op.kind == OpKind::kConstant || op.kind == OpKind::kSplat || op.kind == OpKind::kArange) return true;
  if (op.kind == OpKind::kExpandDims || op.kind == OpKind::kBroadcast || op.kind == OpKind::kTrans ||
      op.kind == OpKind::kHint)
    return operand(0);
  // Only integers and pointers are offsets; float arithmetic is not associative.
  if (v->type.is_float() || v->type.is_bool()) return false;
  if (op.kind == OpKind::kAdd || op.kind == OpKind::kSub || op.kind == OpKind::kAddPtr) return operand(0) && operand(1);
  if (op.kind == OpKind::kMul)
    return operand(0) && operand(1) && (is_uniform(op.operand(0)) || is_uniform(op.operand(1)));
  if (op.kind == OpKind::kCast) {
    const ir::Type& from = op.operand(0)->type;
    // A narrowing cast could wrap, which is not affine.
    return from.is_int() && !from.is_bool() && bits(from.dtype) <= bits(v->type.dtype) && operand(0);
  }
  return false;
}

bool keeps_order(const ir::Op& op) {
  const ir::Type& from = op.operand(0)->type;
  const ir::Type& to = op.result()->type;
  if (op.kind == OpKind::kExpandDims || op.kind == OpKind::kReshape) return true;
  if (op.kind == OpKind::kBroadcast) return from.shape.numel() == to.shape.numel();
  if (op.kind != OpKind::kTrans) return false;
  int64_t before = -1;
  for (int64_t d : std::get<std::vector<int64_t>>(*op.find(ir::AttrName::kOrder))) {
    // Dimensions of size 1 may move anywhere without changing the row-major order.
    if (from.shape[static_cast<int>(d)] == 1) continue;
    if (d < before) return false;
    before = d;
  }
  return true;
}

namespace {

// Elements that a core makes in some milliseconds at the least.
constexpr int64_t kLongWork = 1 << 20;

std::optional<int64_t> integer_constant(const ir::Value* v) {
  if (!v->op || v->op->kind != OpKind::kConstant) return std::nullopt;
  const ir::Attr* value = v->op->find(ir::AttrName::kValue);
  auto* number = value ? std::get_if<int64_t>(value) : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

int64_t work_of(const ir::Block& block);

/// Elements that the op makes, about, up to kLongWork: loops stop being counted there.
int64_t work_of(const ir::Op& op) {
  int64_t elements = 1;
  for (const ir::Value* v : op.operands) elements = std::max(elements, v->type.shape.numel());
  for (const ir::Value* v : op.results) elements = std::max(elements, v->type.shape.numel());
  if (op.kind == OpKind::kDot) elements *= op.operand(0)->type.shape[op.operand(0)->type.shape.rank - 1];
  if (op.kind == OpKind::kWhile) return kLongWork;
  int64_t inner = 0;
  for (const ir::Block* region : op.regions) inner += work_of(*region);
  if (op.kind == OpKind::kFor) {
    auto begin = integer_constant(op.operand(0)), end = integer_constant(op.operand(1)),
         step = integer_constant(op.operand(2));
    if (!begin || !end || !step || *step <= 0) return kLongWork;
    const __int128 turns = (static_cast<__int128>(*end) - *begin + *step - 1) / *step;
    return static_cast<int64_t>(std::clamp<__int128>(turns * inner, 0, kLongWork));
  }
  if (op.kind == OpKind::kReduce || op.kind == OpKind::kScan) inner = 0;  // the region is applied to the elements
  return std::min(kLongWork, elements + inner);
}

int64_t work_of(const ir::Block& block) {
  int64_t work = 0;
  for (const ir::Op* op : block) work = std::min(kLongWork, work + work_of(*op));
  return work;
}

}  // namespace

bool may_run_long(const ir::Op& loop) { return work_of(loop) >= kLongWork; }

ir::Shape without_axis(const ir::Shape& shape, int axis) {
  ir::Shape rest;
  for (int d = 0; d < shape.rank; ++d)
    if (d != axis) rest.dims[rest.rank++] = shape[d];
  return rest;
}

bool is_commutative(const ir::Block& region) {
  const size_t n = region.args.size() / 2;
  const ir::Op* end = region.last;
  for (size_t i = 0; i < n; ++i) {
    const ir::Op* op = end->operands[i]->op;
    if (!op || !ir::is_commutative(op) || op->operands.size() != 2) return false;
    const ir::Value *a = region.args[i], *b = region.args[n + i];
    const bool pair = (op->operand(0) == a && op->operand(1) == b) || (op->operand(0) == b && op->operand(1) == a);
    if (!pair) return false;
  }
  return true;
}

}  // namespace kiln::lower::host
