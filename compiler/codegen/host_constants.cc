#include "compiler/codegen/host_constants.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <map>
#include <numeric>
#include <span>
#include <vector>

namespace kiln::codegen {

namespace {

constexpr size_t kMostInRegisters = 10;
constexpr uint64_t kRegisterBits = 256;

/// A splat of floats that arithmetic uses: what becomes a broadcast.
bool is_broadcast(const llvm::Value* v) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (!type || !constant || constant->isNullValue()) return false;
  // Not halves: without AVX512-FP16 no vector register holds them for an asm operand.
  if (!type->getElementType()->isFloatTy() && !type->getElementType()->isDoubleTy()) return false;
  return type->getPrimitiveSizeInBits().getFixedValue() % kRegisterBits == 0 && constant->getSplatValue() != nullptr;
}

/// What takes an operand from memory. A minimum or maximum is a comparison and a selection of the same two values.
bool is_arithmetic(const llvm::Instruction& i) {
  if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) return call->getIntrinsicID() == llvm::Intrinsic::fma;
  return llvm::isa<llvm::BinaryOperator, llvm::FCmpInst, llvm::SelectInst>(i);
}

llvm::Value* concatenate(llvm::IRBuilderBase& b, std::span<llvm::Value* const> parts) {
  if (parts.size() == 1) return parts[0];
  llvm::Value* low = concatenate(b, parts.first(parts.size() / 2));
  llvm::Value* high = concatenate(b, parts.last(parts.size() / 2));
  llvm::SmallVector<int, 64> all(2 * llvm::cast<llvm::FixedVectorType>(low->getType())->getNumElements());
  std::iota(all.begin(), all.end(), 0);
  return b.CreateShuffleVector(low, high, all);
}

}  // namespace

void hide_loop_constants(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    std::map<std::pair<llvm::Type*, llvm::Constant*>, llvm::Value*> known;
    for (llvm::BasicBlock& block : f) {
      if (&block == &f.getEntryBlock()) continue;
      std::map<llvm::Constant*, std::vector<llvm::Use*>> uses;
      for (llvm::Instruction& i : block) {
        if (!is_arithmetic(i)) continue;
        for (llvm::Use& operand : i.operands())
          if (is_broadcast(operand.get())) uses[llvm::cast<llvm::Constant>(operand.get())].push_back(&operand);
      }
      if (uses.size() <= kMostInRegisters) continue;
      llvm::IRBuilder<> b(f.getEntryBlock().getTerminator()), here(&block, block.getFirstInsertionPt());
      for (auto& [constant, places] : uses) {
        auto* type = llvm::cast<llvm::FixedVectorType>(constant->getType());
        const auto copies = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue() / kRegisterBits);
        const unsigned lanes = type->getNumElements() / copies;
        auto* one = llvm::FixedVectorType::get(type->getElementType(), lanes);
        llvm::Value*& hidden = known[{one, constant->getSplatValue()}];
        if (!hidden) {
          auto* hide = llvm::InlineAsm::get(llvm::FunctionType::get(one, {one}, false), "", "=x,0", false);
          hidden = b.CreateCall(hide, {b.CreateVectorSplat(lanes, constant->getSplatValue())});
        }
        // Concatenated in another block, each part would take a register of its own.
        const llvm::SmallVector<llvm::Value*, 4> parts(copies, hidden);
        llvm::Value* value = concatenate(here, parts);
        for (llvm::Use* use : places) use->set(value);
      }
    }
  }
}

}  // namespace kiln::codegen
