#include "compiler/codegen/nvptx_pairs.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace kiln::codegen {

namespace {

using llvm::InsertElementInst;
using llvm::PHINode;
using llvm::Value;

bool puts(const InsertElementInst& insert, uint64_t at) {
  const auto* index = llvm::dyn_cast<llvm::ConstantInt>(insert.getOperand(2));
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(insert.getType());
  return index && index->getZExtValue() == at && type && type->getNumElements() == 2;
}

/// The other half, and what puts both together.
struct Pair {
  PHINode* high = nullptr;
  std::vector<InsertElementInst*> whole;
};

/// What is put together of `low` and one other phi of its block, if nothing else reads either; else without `high`.
Pair pair_of(PHINode& low) {
  Pair pair;
  for (llvm::User* user : low.users()) {
    auto* first = llvm::dyn_cast<InsertElementInst>(user);
    if (!first || !puts(*first, 0) || first->getOperand(1) != &low ||
        !llvm::isa<llvm::PoisonValue>(first->getOperand(0)) || !first->hasOneUse())
      return {};
    auto* second = llvm::dyn_cast<InsertElementInst>(*first->user_begin());
    if (!second || !puts(*second, 1) || second->getOperand(0) != first) return {};
    auto* high = llvm::dyn_cast<PHINode>(second->getOperand(1));
    if (!high || high == &low || high->getParent() != low.getParent() || (pair.high && pair.high != high)) return {};
    pair.high = high;
    pair.whole.push_back(second);
  }
  if (!pair.high || !pair.high->hasNUses(static_cast<unsigned>(pair.whole.size()))) return {};
  return pair;
}

/// Whether one edge at most leads here from each block.
bool has_single_edges(const PHINode& phi) {
  llvm::SmallPtrSet<const llvm::BasicBlock*, 4> seen;
  for (const llvm::BasicBlock* block : phi.blocks())
    if (!seen.insert(block).second) return false;
  return true;
}

/// Where to put together what leaves `block`: where it is made, so that one instruction can make both.
llvm::Instruction* place_behind(Value* x, Value* y, llvm::BasicBlock& block) {
  auto *a = llvm::dyn_cast<llvm::Instruction>(x), *b = llvm::dyn_cast<llvm::Instruction>(y);
  if (!a || !b || a->getParent() != b->getParent() || llvm::isa<PHINode>(a) || llvm::isa<PHINode>(b))
    return block.getTerminator();
  return (a->comesBefore(b) ? b : a)->getNextNode();
}

void join(PHINode* low, const Pair& pair) {
  llvm::Type* type = pair.whole[0]->getType();
  PHINode* both = PHINode::Create(type, low->getNumIncomingValues(), "", low->getIterator());
  both->setDebugLoc(low->getDebugLoc());
  for (llvm::BasicBlock* block : low->blocks()) {
    Value *x = low->getIncomingValueForBlock(block), *y = pair.high->getIncomingValueForBlock(block);
    llvm::IRBuilder<> b(place_behind(x, y, *block));
    b.SetCurrentDebugLocation(low->getDebugLoc());
    Value* halves = b.CreateInsertElement(llvm::PoisonValue::get(type), x, uint64_t{0});
    both->addIncoming(b.CreateInsertElement(halves, y, uint64_t{1}), block);
  }
  for (InsertElementInst* whole : pair.whole) {
    auto* first = llvm::cast<InsertElementInst>(whole->getOperand(0));
    whole->replaceAllUsesWith(both);
    whole->eraseFromParent();
    first->eraseFromParent();
  }
  low->eraseFromParent();
  pair.high->eraseFromParent();
}

}  // namespace

void carry_halves_in_pairs(llvm::Function& fn) {
  // Joining phis of one block puts together, in the blocks ahead of it, what may be phis of these.
  for (bool again = true; again;) {
    again = false;
    for (llvm::BasicBlock& block : fn) {
      std::vector<PHINode*> phis;
      for (PHINode& phi : block.phis())
        if (phi.getType()->isHalfTy() || phi.getType()->isBFloatTy()) phis.push_back(&phi);
      llvm::SmallPtrSet<const PHINode*, 16> gone;
      for (PHINode* low : phis) {
        if (gone.contains(low) || !has_single_edges(*low)) continue;
        const Pair pair = pair_of(*low);
        if (!pair.high) continue;
        gone.insert(pair.high);
        gone.insert(low);
        join(low, pair);
        again = true;
      }
    }
  }
}

}  // namespace kiln::codegen
