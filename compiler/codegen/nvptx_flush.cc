#include "compiler/codegen/nvptx_flush.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <cmath>

namespace kiln::codegen {

namespace {

/// An addition of a constant whose last place is far above every denormal.
bool absorbs_denormals(const llvm::User* user) {
  auto* add = llvm::dyn_cast<llvm::BinaryOperator>(user);
  if (!add || add->getOpcode() != llvm::Instruction::FAdd) return false;
  for (const llvm::Use& operand : add->operands())
    if (auto* c = llvm::dyn_cast<llvm::ConstantFP>(operand))
      if (std::fabs(c->getValueAPF().convertToFloat()) >= 0x1p-60f) return true;
  return false;
}

/// max(x, c) with a c from which on 2^x is no denormal.
bool is_at_least_normal(const llvm::Value* x) {
  constexpr float kLeastNormalExponent = -126;
  auto* max = llvm::dyn_cast<llvm::IntrinsicInst>(x);
  if (!max) return false;
  const llvm::Intrinsic::ID id = max->getIntrinsicID();
  if (id != llvm::Intrinsic::maximumnum && id != llvm::Intrinsic::maximum && id != llvm::Intrinsic::maxnum)
    return false;
  return llvm::any_of(max->args(), [](const llvm::Use& arg) {
    auto* c = llvm::dyn_cast<llvm::ConstantFP>(arg);
    return c && c->getValueAPF().convertToFloat() >= kLeastNormalExponent;
  });
}

}  // namespace

void flush_where_unseen(llvm::Function& fn) {
  for (llvm::Instruction& i : llvm::instructions(fn)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call || call->getIntrinsicID() != llvm::Intrinsic::nvvm_ex2_approx || !call->getType()->isFloatTy()) continue;
    if (!is_at_least_normal(call->getArgOperand(0)) && !llvm::all_of(call->users(), absorbs_denormals)) continue;
    call->setCalledFunction(llvm::Intrinsic::getOrInsertDeclaration(
        fn.getParent(), llvm::Intrinsic::nvvm_ex2_approx_ftz, {call->getType()}));
  }
}

}  // namespace kiln::codegen
