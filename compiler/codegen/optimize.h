// The LLVM passes that both code generators run; the one file that includes PassBuilder.
#pragma once
#include <llvm/IR/PassManager.h>

#include <functional>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace kiln::codegen {

/// Optimises `module` in place. Our lowerings emit SSA form with explicit vectors and rotated loops, so a short list of
/// passes does what -O3 would, in a tenth of the time. `add_own` puts a target's passes after the simplification,
/// before loop-invariant code is hoisted.
void optimize(llvm::Module& module, llvm::TargetMachine& machine,
              const std::function<void(llvm::FunctionPassManager&)>& add_own = {});

}  // namespace kiln::codegen
