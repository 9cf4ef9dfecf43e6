#include "compiler/codegen/nvptx_order.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace kiln::codegen {

namespace {

/// Stays where it is, relative to the others like it.
bool is_anchor(const llvm::Instruction& i) {
  return llvm::isa<llvm::PHINode>(i) || i.isTerminator() || i.mayReadOrWriteMemory() || i.mayHaveSideEffects() ||
         llvm::isa<llvm::AllocaInst>(i) ||
         (llvm::isa<llvm::CallBase>(i) && llvm::cast<llvm::CallBase>(i).isConvergent());
}

void order_block(llvm::BasicBlock& block) {
  std::vector<llvm::Instruction*> order;
  llvm::DenseSet<llvm::Instruction*> placed;
  // Depth first, without recursion: chains may be thousands long.
  std::vector<std::pair<llvm::Instruction*, unsigned>> stack;
  auto place = [&](llvm::Instruction* root) {
    if (placed.contains(root)) return;
    // What a phi of a loop takes from this very block belongs to the iteration before: it is not needed here.
    if (llvm::isa<llvm::PHINode>(root)) {
      placed.insert(root);
      return;
    }
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      if (next < i->getNumOperands()) {
        auto* operand = llvm::dyn_cast<llvm::Instruction>(i->getOperand(next++));
        if (operand && operand->getParent() == &block && !placed.contains(operand) && !is_anchor(*operand))
          stack.emplace_back(operand, 0);
        continue;
      }
      if (placed.insert(i).second) order.push_back(i);
      stack.pop_back();
    }
  };
  llvm::Instruction* terminator = block.getTerminator();
  for (llvm::Instruction& i : block)
    if (&i != terminator && is_anchor(i)) place(&i);
  auto is_used_later = [&](const llvm::Instruction& i) {
    return llvm::any_of(i.users(), [&](const llvm::User* u) {
      return llvm::cast<llvm::Instruction>(u)->getParent() != &block || llvm::isa<llvm::PHINode>(u);
    });
  };
  for (llvm::Instruction& i : block)
    if (&i != terminator && is_used_later(i)) place(&i);
  for (llvm::Instruction& i : block)  // what nobody uses
    if (&i != terminator) place(&i);
  place(terminator);
  for (llvm::Instruction* i : order) i->moveBefore(block, block.end());
}

}  // namespace

void order_by_need(llvm::Function& fn) {
  for (llvm::BasicBlock& block : fn) order_block(block);
}

}  // namespace kiln::codegen
