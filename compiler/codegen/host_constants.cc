#include "compiler/codegen/host_constants.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <map>
#include <vector>

namespace kiln::codegen {

namespace {

constexpr size_t kMostInRegisters = 10;

/// A splat of floats that arithmetic uses: what becomes a broadcast.
bool is_broadcast(const llvm::Value* v) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (!type || !constant || !type->getElementType()->isFloatingPointTy() || constant->isNullValue()) return false;
  return type->getPrimitiveSizeInBits().getFixedValue() == 256 && constant->getSplatValue() != nullptr;
}

bool is_arithmetic(const llvm::Instruction& i) {
  if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) return call->getIntrinsicID() == llvm::Intrinsic::fma;
  return llvm::isa<llvm::BinaryOperator>(i);
}

}  // namespace

void hide_loop_constants(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    for (llvm::BasicBlock& block : f) {
      if (&block == &f.getEntryBlock()) continue;
      std::map<llvm::Constant*, std::vector<llvm::Use*>> uses;
      for (llvm::Instruction& i : block) {
        if (!is_arithmetic(i)) continue;
        for (llvm::Use& operand : i.operands())
          if (is_broadcast(operand.get())) uses[llvm::cast<llvm::Constant>(operand.get())].push_back(&operand);
      }
      if (uses.size() <= kMostInRegisters) continue;
      llvm::IRBuilder<> b(f.getEntryBlock().getTerminator());
      for (auto& [constant, places] : uses) {
        llvm::Type* type = constant->getType();
        auto* hide = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=x,0", false);
        llvm::Value* hidden = b.CreateCall(hide, {constant});
        for (llvm::Use* use : places) use->set(hidden);
      }
    }
  }
}

}  // namespace kiln::codegen
