#include "compiler/codegen/nvptx_negate.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln::codegen {

void negate_by_32_bits(llvm::Function& fn) {
  constexpr const char* kText = "{ .reg .b32 wide; cvt.s32.s16 wide, $1; neg.s32 wide, wide; cvt.u16.u32 $0, wide; }";
  for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::instructions(fn))) {
    llvm::Value* x = nullptr;
    if (!i.getType()->isIntegerTy(16) || !match(&i, llvm::PatternMatch::m_Neg(llvm::PatternMatch::m_Value(x))))
      continue;
    llvm::IRBuilder<> b(&i);
    auto* type = llvm::FunctionType::get(i.getType(), {i.getType()}, false);
    llvm::Value* negated = b.CreateCall(type, llvm::InlineAsm::get(type, kText, "=h,h", false), {x});
    i.replaceAllUsesWith(negated);
    i.eraseFromParent();
  }
}

}  // namespace kiln::codegen
