#include "compiler/codegen/nvptx_order.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "compiler/codegen/nvptx_calls.h"

namespace kiln::codegen {

namespace {

/// Stays where it is, relative to the others like it.
bool is_anchor(const llvm::Instruction& i) {
  return llvm::isa<llvm::PHINode>(i) || i.isTerminator() || i.mayReadOrWriteMemory() || i.mayHaveSideEffects() ||
         llvm::isa<llvm::AllocaInst>(i) ||
         (llvm::isa<llvm::CallBase>(i) && llvm::cast<llvm::CallBase>(i).isConvergent());
}

bool is_global_load(const llvm::Instruction& i) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) return load->getPointerAddressSpace() == 1;
  return is_asm_with(i, "ld.global");
}

/// What can be computed from the loads that have been placed, without any anchor that has not.
std::vector<llvm::Instruction*> computable(llvm::BasicBlock& block, const llvm::DenseSet<llvm::Instruction*>& placed) {
  llvm::DenseSet<llvm::Instruction*> from_loads, waiting;
  std::vector<llvm::Instruction*> out;
  for (llvm::Instruction& i : block) {
    if (placed.contains(&i)) {
      if (is_global_load(i)) from_loads.insert(&i);
      continue;
    }
    bool loads = false, waits = is_anchor(i);
    for (const llvm::Use& use : i.operands()) {
      auto* operand = llvm::dyn_cast<llvm::Instruction>(use.get());
      if (!operand || operand->getParent() != &block) continue;
      loads |= from_loads.contains(operand);
      waits |= waiting.contains(operand);
    }
    if (waits) {
      waiting.insert(&i);
    } else if (loads) {
      from_loads.insert(&i);
      out.push_back(&i);
    }
  }
  return out;
}

/// `computes_early`: what follows from loads is computed after every few of them, as registers have no room for more.
void order_block(llvm::BasicBlock& block, bool computes_early) {
  constexpr int kLoadsAtOnce = 8;
  computes_early = computes_early && llvm::count_if(block, is_global_load) > 4 * kLoadsAtOnce;
  int loads = 0;
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
  for (llvm::Instruction& i : block) {
    if (&i == terminator || !is_anchor(i)) continue;
    place(&i);
    if (computes_early && is_global_load(i) && ++loads % kLoadsAtOnce == 0)
      for (llvm::Instruction* early : computable(block, placed)) place(early);
  }
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
  const bool has_accumulators = has_wgmma(fn);
  for (llvm::BasicBlock& block : fn) order_block(block, has_accumulators);
}

}  // namespace kiln::codegen
