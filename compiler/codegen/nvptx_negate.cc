#include "compiler/codegen/nvptx_negate.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace kiln::codegen {

namespace {

/// Assembly that makes one number of another of its type: of 16, 32 or 64 bits, which h, r and l stand for.
llvm::Value* assembled(llvm::IRBuilderBase& b, const char* text, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const char* constraints = type->isIntegerTy(64) ? "=l,l" : type->isIntegerTy(32) ? "=r,r" : "=h,h";
  auto* fn = llvm::FunctionType::get(type, {type}, false);
  llvm::CallInst* call = b.CreateCall(fn, llvm::InlineAsm::get(fn, text, constraints, false), {x});
  call->setDoesNotAccessMemory();
  return call;
}

llvm::Value* absolute(llvm::IRBuilderBase& b, llvm::Value* x) {
  switch (x->getType()->getIntegerBitWidth()) {
    case 64:
      return assembled(b, "{ .reg .s64 t; neg.s64 t, $1; max.s64 $0, $1, t; }", x);
    case 32:
      return assembled(b, "{ .reg .s32 t; neg.s32 t, $1; max.s32 $0, $1, t; }", x);
    case 16:
      return assembled(b, "{ .reg .s32 t; cvt.s32.s16 t, $1; abs.s32 t, t; cvt.u16.u32 $0, t; }", x);
    default:  // narrower ones are computed in 16 bits
      return b.CreateTrunc(absolute(b, b.CreateSExt(x, b.getInt16Ty())), x->getType());
  }
}

}  // namespace

void negate_by_32_bits(llvm::Function& fn) {
  constexpr const char* kText = "{ .reg .b32 wide; cvt.s32.s16 wide, $1; neg.s32 wide, wide; cvt.u16.u32 $0, wide; }";
  for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::instructions(fn))) {
    llvm::Value* x = nullptr;
    if (!i.getType()->isIntegerTy(16) || !match(&i, llvm::PatternMatch::m_Neg(llvm::PatternMatch::m_Value(x))))
      continue;
    llvm::IRBuilder<> b(&i);
    i.replaceAllUsesWith(assembled(b, kText, x));
    i.eraseFromParent();
  }
}

void absolute_by_maximum(llvm::Function& fn) {
  for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::instructions(fn))) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call || call->getIntrinsicID() != llvm::Intrinsic::abs) continue;
    llvm::Value* x = call->getArgOperand(0);
    const bool never_least = llvm::cast<llvm::Constant>(call->getArgOperand(1))->isOneValue();
    if (never_least && !x->getType()->getScalarType()->isIntegerTy(16)) continue;
    llvm::IRBuilder<> b(call);
    llvm::Value* result = nullptr;
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType())) {
      result = llvm::PoisonValue::get(vector);
      for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
        result = b.CreateInsertElement(result, absolute(b, b.CreateExtractElement(x, lane)), lane);
    } else {
      result = absolute(b, x);
    }
    call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }
}

}  // namespace kiln::codegen
