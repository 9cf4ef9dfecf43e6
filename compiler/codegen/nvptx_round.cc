#include "compiler/codegen/nvptx_round.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <vector>

namespace kiln::codegen {

void round_to_bf16_by_pairs(llvm::Function& fn) {
  std::vector<llvm::FPTruncInst*> roundings;
  for (llvm::Instruction& i : llvm::instructions(fn))
    if (auto* t = llvm::dyn_cast<llvm::FPTruncInst>(&i); t && t->getType()->isBFloatTy() && t->getSrcTy()->isFloatTy())
      roundings.push_back(t);
  for (llvm::FPTruncInst* narrow : roundings) {
    llvm::Value* rounded = nullptr;  // one for all extensions, made where the rounding stands
    for (llvm::User* user : llvm::make_early_inc_range(narrow->users())) {
      auto* wide = llvm::dyn_cast<llvm::FPExtInst>(user);
      if (!wide || !wide->getType()->isFloatTy()) continue;
      if (!rounded) {
        llvm::IRBuilder<> b(narrow);
        llvm::Value *x = narrow->getOperand(0), *zero = llvm::ConstantFP::get(x->getType(), 0);
        rounded = b.CreateBitCast(b.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {x, zero}), x->getType());
      }
      wide->replaceAllUsesWith(rounded);
      wide->eraseFromParent();
    }
    if (narrow->use_empty()) narrow->eraseFromParent();
  }
}

}  // namespace kiln::codegen
