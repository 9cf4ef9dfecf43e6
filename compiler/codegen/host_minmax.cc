#include "compiler/codegen/host_minmax.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace kiln::codegen {

namespace {

/// Vectors of one lane are selected as scalars; others take another sequence. So do halves, which are widened first.
bool is_scalar(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const llvm::Type* element = type->getScalarType();
  return (!vector || vector->getNumElements() == 1) && (element->isFloatTy() || element->isDoubleTy());
}

}  // namespace

void fence_minmax(llvm::Module& module) {
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::instructions(f)) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (!call || !is_scalar(call->getType())) continue;
      const llvm::Intrinsic::ID id = call->getIntrinsicID();
      if (id != llvm::Intrinsic::maximumnum && id != llvm::Intrinsic::minimumnum) continue;
      llvm::IRBuilder<> b(call);
      for (llvm::Use& operand : call->args())
        // With a constant the sequence is another one, and right.
        if (!llvm::isa<llvm::Constant>(operand))
          operand = b.CreateUnaryIntrinsic(llvm::Intrinsic::arithmetic_fence, operand);
    }
}

}  // namespace kiln::codegen
