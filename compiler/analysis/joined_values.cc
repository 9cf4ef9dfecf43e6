#include "compiler/analysis/joined_values.h"

namespace kiln::analysis {

using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

// Operand numbers follow the IR's conventions for loops: `for` has lower bound, upper bound and step before its initial
// values, and the condition of a `while` precedes the values that it passes on.
constexpr int kOfFor = 3, kOfCondition = 1;

const Value* passed_on(const Op& loop, int i) { return loop.region(0)->terminator()->operand(i + kOfCondition); }

std::vector<const Value*> of_argument(const Value& v) {
  const Op* op = v.block->parent;
  const int i = static_cast<int>(v.index);
  if (op && op->kind == OpKind::kFor && i > 0)
    return {op->operand(i - 1 + kOfFor), v.block->terminator()->operand(i - 1)};
  if (!op || op->kind != OpKind::kWhile) return {};
  if (v.block != op->region(0)) return {passed_on(*op, i)};
  return {op->operand(i), op->region(1)->terminator()->operand(i)};
}

}  // namespace

std::vector<const Value*> joined_values(const Value* v) {
  if (!v->op) return of_argument(*v);
  const Op& op = *v->op;
  const int i = static_cast<int>(v->index);
  if (op.kind == OpKind::kFor) return {op.operand(i + kOfFor), op.region()->terminator()->operand(i)};
  if (op.kind == OpKind::kWhile) return {passed_on(op, i)};
  if (op.kind == OpKind::kIf) return {op.region(0)->terminator()->operand(i), op.region(1)->terminator()->operand(i)};
  return {};
}

}  // namespace kiln::analysis
