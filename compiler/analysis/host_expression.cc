#include "compiler/analysis/host_expression.h"

#include "support/diag.h"

namespace kiln::analysis {

using ir::AttrName;
using ir::Op;
using ir::OpKind;

namespace {

/// A shared value is computed once per use: without a limit a chain of squares would take exponential time.
constexpr size_t kMaxSteps = 64;
constexpr int kMaxParams = 1 << 20;

class Builder {
 public:
  std::optional<HostExpression> build(const ir::Value* v) {
    if (!value(v) || !is_well_formed(expression_, kMaxParams)) return std::nullopt;
    return std::move(expression_);
  }

 private:
  bool push(HostOp op, DType type, int64_t number = 0) {
    expression_.steps.push_back({op, type, number});
    return expression_.steps.size() <= kMaxSteps;
  }

  static DType type_of(const ir::Value* v) { return v->type.pointer ? DType::kU64 : v->type.dtype; }

  bool value(const ir::Value* v) {
    if (!v->type.is_scalar() || (!v->type.pointer && kiln::is_float(v->type.dtype))) return false;
    if (v->is_result()) return result(*v->op);
    return !v->block->parent && push(HostOp::kParam, type_of(v), v->index);
  }

  bool operands(const Op& op) {
    for (const ir::Value* v : op.operands)
      if (!value(v)) return false;
    return true;
  }

  bool result(const Op& op) {
    const DType type = type_of(op.result());
    auto apply = [&](HostOp host) { return operands(op) && push(host, type); };
    switch (op.kind) {
      case OpKind::kConstant: {
        const int64_t* number = std::get_if<int64_t>(op.find(AttrName::kValue));
        return number && push(HostOp::kConstant, type, *number);
      }
      case OpKind::kHint:
        return operands(op);
      case OpKind::kCast:
      case OpKind::kBitcast:
      case OpKind::kIntToPtr:
      case OpKind::kPtrToInt:
        return apply(HostOp::kCast);
      case OpKind::kAdd:
        return apply(HostOp::kAdd);
      case OpKind::kSub:
        return apply(HostOp::kSub);
      case OpKind::kMul:
        return apply(HostOp::kMul);
      case OpKind::kDiv:
        return apply(HostOp::kDiv);
      case OpKind::kRem:
        return apply(HostOp::kRem);
      case OpKind::kMin:
        return apply(HostOp::kMin);
      case OpKind::kMax:
        return apply(HostOp::kMax);
      case OpKind::kAnd:
        return apply(HostOp::kAnd);
      case OpKind::kOr:
        return apply(HostOp::kOr);
      case OpKind::kXor:
        return apply(HostOp::kXor);
      case OpKind::kShl:
        return apply(HostOp::kShl);
      case OpKind::kShr:
        return apply(HostOp::kShr);
      case OpKind::kSelect:
        return apply(HostOp::kSelect);
      case OpKind::kNeg:
        return push(HostOp::kConstant, type, 0) && apply(HostOp::kSub);
      case OpKind::kCmp:
        return operands(op) && push(comparison(op.word<ir::Predicate>()), type_of(op.operand(0)));
      case OpKind::kAddPtr: {
        const ir::Type& pointer = op.result()->type;
        return value(op.operand(0)) && value(op.operand(1)) && push(HostOp::kCast, DType::kI64) &&
               push(HostOp::kConstant, DType::kI64, size_of(pointer.dtype)) && push(HostOp::kMul, DType::kI64) &&
               push(HostOp::kAdd, DType::kU64);
      }
      default:  // Everything else asks the program, memory or floats.
        return false;
    }
  }

  static HostOp comparison(ir::Predicate predicate) {
    switch (predicate) {
      case ir::Predicate::kEq:
        return HostOp::kEq;
      case ir::Predicate::kNe:
        return HostOp::kNe;
      case ir::Predicate::kLt:
        return HostOp::kLt;
      case ir::Predicate::kLe:
        return HostOp::kLe;
      case ir::Predicate::kGt:
        return HostOp::kGt;
      case ir::Predicate::kGe:
        return HostOp::kGe;
    }
    KILN_UNREACHABLE("predicate");
  }

  HostExpression expression_;
};

}  // namespace

std::optional<HostExpression> host_expression(const ir::Value* v) { return Builder().build(v); }

}  // namespace kiln::analysis
