#include "compiler/codegen/nvptx_calls.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <vector>

#include "support/diag.h"

namespace kiln::codegen {

bool is_asm_with(const llvm::Instruction& i, llvm::StringRef word) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
  const auto* text = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return text && text->getAsmString().contains(word);
}

bool has_wgmma(const llvm::Function& fn) {
  return llvm::any_of(llvm::instructions(fn),
                      [](const llvm::Instruction& i) { return is_asm_with(i, "wgmma.mma_async"); });
}

void inline_calls(llvm::Function& fn) {
  const bool all = has_wgmma(fn);
  for (;;) {
    std::vector<llvm::CallInst*> calls;
    for (llvm::Instruction& i : llvm::instructions(fn))
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) {
        const llvm::Function* callee = call->getCalledFunction();
        if (callee && !callee->isDeclaration() && (all || callee->hasFnAttribute(llvm::Attribute::AlwaysInline)))
          calls.push_back(call);
      }
    if (calls.empty()) return;
    for (llvm::CallInst* call : calls) {
      llvm::InlineFunctionInfo info;
      const llvm::InlineResult done = llvm::InlineFunction(*call, info);
      KILN_ASSERT(done.isSuccess(), "{}", done.getFailureReason());
    }
  }
}

void drop_uncalled(llvm::Module& module) {
  for (bool any = true; any;) {
    any = false;
    for (llvm::Function& f : llvm::make_early_inc_range(module))
      if (f.hasLocalLinkage() && f.use_empty()) {
        f.eraseFromParent();
        any = true;
      }
  }
}

}  // namespace kiln::codegen
