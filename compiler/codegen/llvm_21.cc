#include "compiler/codegen/llvm_21.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace kiln::codegen {

#if LLVM_VERSION_MAJOR >= 22

void replace_minmax(llvm::Module&) {}

#else

void replace_minmax(llvm::Module& module) {
  using namespace llvm::Intrinsic;
  const llvm::Triple& target = module.getTargetTriple();
  if (!target.isNVPTX() && !target.isX86()) return;
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::instructions(f))) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      if (!call || (call->getIntrinsicID() != maximumnum && call->getIntrinsicID() != minimumnum)) continue;
      const bool greatest = call->getIntrinsicID() == maximumnum;
      llvm::IRBuilder<> b(call);
      llvm::Value *x = call->getArgOperand(0), *y = call->getArgOperand(1), *result = nullptr;
      if (target.isNVPTX()) {  // PTX's instruction puts -0 below 0, as this intrinsic may and those must
        result = b.CreateBinaryIntrinsic(greatest ? maxnum : minnum, x, y, call);
      } else {
        auto or_other = [&](llvm::Value* v, llvm::Value* other) {
          return b.CreateSelect(b.CreateFCmpUNO(v, v), other, v);
        };
        llvm::Value *left = or_other(x, y), *right = or_other(y, x);
        result = b.CreateBinaryIntrinsic(greatest ? maximum : minimum, left, right, call);
      }
      call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
}

#endif

}  // namespace kiln::codegen
