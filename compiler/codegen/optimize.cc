#include "compiler/codegen/optimize.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>

namespace kiln::codegen {

namespace {

/// Divisions of 64 bits become those of 32 where ranges allow it, as of offsets of a program by a size: else each one
/// asks at run time, and branches.
struct NarrowDivisionsPass : llvm::PassInfoMixin<NarrowDivisionsPass> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses) {
    const bool any = std::ranges::any_of(llvm::instructions(f), [](const llvm::Instruction& i) {
      const unsigned op = i.getOpcode();
      const bool divides = op == llvm::Instruction::SDiv || op == llvm::Instruction::SRem ||
                           op == llvm::Instruction::UDiv || op == llvm::Instruction::URem;
      return divides && i.getType()->getScalarSizeInBits() == 64;
    });
    // Lazy, and with a price of its own: for those functions alone.
    return any ? llvm::CorrelatedValuePropagationPass().run(f, analyses) : llvm::PreservedAnalyses::all();
  }
};

}  // namespace

void optimize(llvm::Module& module, llvm::TargetMachine& machine,
              const std::function<void(llvm::FunctionPassManager&)>& add_own) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(NarrowDivisionsPass());
  if (add_own) add_own(passes);
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::ADCEPass());
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) passes.run(f, functions);
}

}  // namespace kiln::codegen
