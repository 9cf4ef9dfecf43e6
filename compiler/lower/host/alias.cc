// Run-time conditions, computed from the corners of affine tiles: masks that are all true, and pairs
// of accesses that may share a loop.
//
// Two accesses, one of them a store, may be interleaved element by element when their address ranges are disjoint, or
// when both touch the same address at the same element and no address twice (an update in place). Parameters may alias
// in any way; only addresses count. Ranges are those of all elements, masked or not.
#include <algorithm>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::AttrName;
using ir::OpKind;

namespace {

std::vector<int> long_dimensions(const ir::Shape& shape) {
  std::vector<int> dims;
  for (int d = 0; d < shape.rank; ++d)
    if (shape[d] > 1) dims.push_back(d);
  return dims;
}

}  // namespace

// The elements at all combinations of first and last along each dimension; bit k of the number: the k-th long
// dimension.
std::vector<Lowering::V> Lowering::corners_of(const ir::Value* v) {
  const std::vector<int> dims = long_dimensions(v->type.shape);
  std::vector<V> corners;
  for (size_t bits = 0; bits < size_t{1} << dims.size(); ++bits) {
    std::vector<int64_t> at(v->type.shape.rank, 0);
    for (size_t k = 0; k < dims.size(); ++k)
      if (bits >> k & 1) at[static_cast<size_t>(dims[k])] = v->type.shape[dims[k]] - 1;
    corners.push_back(element_at(v, at));
  }
  return corners;
}

// Smallest and largest element of an affine integer tile; `exact` is and-ed with the test that no element wrapped.
std::optional<std::pair<Lowering::V, Lowering::V>> Lowering::range_of(const ir::Value* v, V* exact) {
  if (!v->type.is_int() || v->type.is_bool() || !is_affine(v)) return std::nullopt;
  const bool sign = is_signed(v->type.dtype);
  std::vector<V> corners = corners_of(v);
  V low = corners[0], high = corners[0];
  for (size_t i = 1; i < corners.size(); ++i) {
    low = b.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, low, corners[i]);
    high = b.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, high, corners[i]);
  }
  auto wide = [&](V x) { return b.CreateIntCast(x, b.getInt64Ty(), sign); };
  const std::vector<int> dims = long_dimensions(v->type.shape);
  for (size_t k = 0; k < dims.size() && !is_uniform(v) && bits(v->type.dtype) < 64; ++k) {
    std::vector<int64_t> at(v->type.shape.rank, 0);
    at[static_cast<size_t>(dims[k])] = 1;
    V step = b.CreateSub(wide(element_at(v, at)), wide(corners[0]));
    V span = b.CreateSub(wide(corners[size_t{1} << k]), wide(corners[0]));
    V expected = b.CreateMul(step, b.getInt64(static_cast<uint64_t>(v->type.shape[dims[k]] - 1)));
    *exact = b.CreateAnd(*exact, b.CreateICmpEQ(span, expected));
  }
  return std::pair(low, high);
}

// A condition under which every element of the mask is true, or null when none is found.
Lowering::V Lowering::all_true(const ir::Value* mask) {
  if (mask->type.is_scalar()) return scalar(mask);
  if (is_stored(mask) || !mask->op) return nullptr;
  const ir::Op& op = *mask->op;
  if (op.kind == OpKind::kSplat) return scalar(op.operand(0));
  if (op.kind == OpKind::kConstant) return element_at(mask, std::vector<int64_t>(mask->type.shape.rank, 0));
  if (op.kind == OpKind::kExpandDims || op.kind == OpKind::kBroadcast || op.kind == OpKind::kReshape ||
      op.kind == OpKind::kTrans || op.kind == OpKind::kHint)
    return all_true(op.operand(0));
  if (op.kind == OpKind::kAnd) {
    V left = all_true(op.operand(0));
    V right = left ? all_true(op.operand(1)) : nullptr;
    return right ? b.CreateAnd(left, right) : nullptr;
  }
  if (op.kind != OpKind::kCmp) return nullptr;
  using ir::Predicate;
  const auto predicate = op.word<Predicate>();
  if (predicate == Predicate::kEq || predicate == Predicate::kNe) return nullptr;
  const bool less = predicate == Predicate::kLt || predicate == Predicate::kLe;
  V exact = b.getTrue();
  auto left = range_of(op.operand(0), &exact), right = range_of(op.operand(1), &exact);
  if (!left || !right) return nullptr;
  V small = less ? left->second : right->second, large = less ? right->first : left->first;
  const bool strict = predicate == Predicate::kLt || predicate == Predicate::kGt,
             sign = is_signed(op.operand(0)->type.dtype);
  using P = llvm::CmpInst;
  const auto compare = strict ? (sign ? P::ICMP_SLT : P::ICMP_ULT) : (sign ? P::ICMP_SLE : P::ICMP_ULE);
  return b.CreateAnd(exact, b.CreateICmp(compare, small, large));
}

Lowering::V Lowering::do_not_interfere(const ir::Op& one, const ir::Op& other) {
  const ir::Value *p = one.operand(0), *q = other.operand(0);
  if (!is_affine(p) || !is_affine(q)) return b.getFalse();
  std::vector<V> pc = corners_of(p), qc = corners_of(q);
  const auto p_bytes = static_cast<uint64_t>(size_of(p->type.dtype)),
             q_bytes = static_cast<uint64_t>(size_of(q->type.dtype));
  auto range = [&](const std::vector<V>& corners, uint64_t bytes) {
    V low = corners[0], high = corners[0];
    for (size_t i = 1; i < corners.size(); ++i) {
      low = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, low, corners[i]);
      high = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, high, corners[i]);
    }
    return std::pair(low, b.CreateAdd(high, b.getInt64(bytes)));
  };
  auto [p_low, p_end] = range(pc, p_bytes);
  auto [q_low, q_end] = range(qc, q_bytes);
  V apart = b.CreateOr(b.CreateICmpULE(p_end, q_low), b.CreateICmpULE(q_end, p_low));
  if (p->type.shape != q->type.shape || p_bytes != q_bytes) return apart;
  // The same affine function, whose rows do not overlap: from the last dimension outwards, each step passes what is
  // inside.
  V same = b.getTrue();
  for (size_t i = 0; i < pc.size(); ++i) same = b.CreateAnd(same, b.CreateICmpEQ(pc[i], qc[i]));
  const std::vector<int> dims = long_dimensions(p->type.shape);
  V inside = b.getInt64(p_bytes);
  for (size_t k = dims.size(); k-- > 0;) {
    V span = b.CreateSub(pc[size_t{1} << k], pc[0]);
    V least = b.CreateMul(inside, b.getInt64(static_cast<uint64_t>(p->type.shape[dims[k]] - 1)));
    same = b.CreateAnd(same, b.CreateICmpSGE(span, least));
    inside = b.CreateAdd(inside, span);
  }
  return b.CreateOr(apart, same);
}

}  // namespace kiln::lower::host
