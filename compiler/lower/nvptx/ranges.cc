#include "compiler/lower/nvptx/ranges.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

namespace kiln::lower {

using llvm::ConstantRange;
using llvm::Value;

namespace {

constexpr int kDeepest = 6;  // of the sums that are looked through

}  // namespace

void Ranges::add_counter(const Value* counter, const llvm::APInt& first, const llvm::APInt& end,
                         const llvm::APInt& step) {
  const llvm::APInt last = first + (end - first - 1).udiv(step) * step;
  counters_.emplace(counter, ConstantRange::getNonEmpty(first, last + 1));
}

std::optional<bool> Ranges::compare(const llvm::ICmpInst& comparison) const {
  if (counters_.empty() || !comparison.getOperand(0)->getType()->isIntegerTy()) return std::nullopt;
  const ConstantRange a = of(comparison.getOperand(0), kDeepest), b = of(comparison.getOperand(1), kDeepest);
  if (a.icmp(comparison.getPredicate(), b)) return true;
  if (a.icmp(comparison.getInversePredicate(), b)) return false;
  return std::nullopt;
}

ConstantRange Ranges::of(const Value* v, int depth) const {
  if (auto it = counters_.find(v); it != counters_.end()) return it->second;
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v)) return constant->getValue();
  const unsigned bits = v->getType()->getIntegerBitWidth();
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(v))
    if (const std::optional<ConstantRange> range = call->getRange()) return *range;
  const auto* op = llvm::dyn_cast<llvm::Instruction>(v);
  if (!op || depth == 0) return ConstantRange::getFull(bits);
  auto operand = [&](unsigned i) { return of(op->getOperand(i), depth - 1); };
  switch (op->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
      return operand(0).overflowingBinaryOp(static_cast<llvm::Instruction::BinaryOps>(op->getOpcode()), operand(1),
                                            llvm::cast<llvm::OverflowingBinaryOperator>(op)->getNoWrapKind());
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor:
    case llvm::Instruction::Shl:
    case llvm::Instruction::LShr:
      return operand(0).binaryOp(static_cast<llvm::Instruction::BinaryOps>(op->getOpcode()), operand(1));
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
      return operand(0).castOp(static_cast<llvm::Instruction::CastOps>(op->getOpcode()), bits);
    default:
      return ConstantRange::getFull(bits);  // a phi, above all: what comes in from behind is not there yet
  }
}

}  // namespace kiln::lower
