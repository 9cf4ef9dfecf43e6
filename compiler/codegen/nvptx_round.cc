#include "compiler/codegen/nvptx_round.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <span>
#include <vector>

namespace kiln::codegen {

namespace {

/// The extensions to float of a rounding, or of one element of a rounded vector.
std::vector<llvm::FPExtInst*> extensions_of(llvm::Value* narrow) {
  std::vector<llvm::FPExtInst*> out;
  for (llvm::User* user : narrow->users())
    if (auto* wide = llvm::dyn_cast<llvm::FPExtInst>(user); wide && wide->getType()->isFloatTy()) out.push_back(wide);
  return out;
}

/// Replaces them by one packed conversion of `x`, made before `place`.
void round_at_once(std::span<llvm::FPExtInst* const> extensions, llvm::Value* x, llvm::Instruction* place) {
  if (extensions.empty()) return;
  llvm::IRBuilder<> b(place);
  llvm::Value* zero = llvm::ConstantFP::get(b.getFloatTy(), 0);
  llvm::Value* rounded =
      b.CreateBitCast(b.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {x, zero}), b.getFloatTy());
  for (llvm::FPExtInst* wide : extensions) {
    wide->replaceAllUsesWith(rounded);
    wide->eraseFromParent();
  }
}

}  // namespace

void round_to_bf16_by_pairs(llvm::Function& fn) {
  std::vector<llvm::FPTruncInst*> roundings;
  for (llvm::Instruction& i : llvm::instructions(fn))
    if (auto* t = llvm::dyn_cast<llvm::FPTruncInst>(&i);
        t && t->getType()->getScalarType()->isBFloatTy() && t->getSrcTy()->getScalarType()->isFloatTy())
      roundings.push_back(t);
  for (llvm::FPTruncInst* narrow : roundings) {
    llvm::Value* x = narrow->getOperand(0);
    if (!narrow->getType()->isVectorTy()) {
      round_at_once(extensions_of(narrow), x, narrow);
    } else {  // LLVM's vectoriser rounds neighbours together and extends them apart
      for (llvm::User* user : llvm::make_early_inc_range(narrow->users())) {
        auto* element = llvm::dyn_cast<llvm::ExtractElementInst>(user);
        if (!element) continue;
        const auto extensions = extensions_of(element);
        if (extensions.empty()) continue;
        llvm::IRBuilder<> b(element);
        round_at_once(extensions, b.CreateExtractElement(x, element->getIndexOperand()), element);
        if (element->use_empty()) element->eraseFromParent();
      }
    }
    if (narrow->use_empty()) narrow->eraseFromParent();
  }
}

}  // namespace kiln::codegen
