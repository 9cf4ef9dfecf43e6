// The LLVM passes that both code generators run; the one file that includes PassBuilder.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace kiln::codegen {

/// Optimises `module` in place. Our lowerings emit SSA form with explicit vectors and rotated loops, so a short list of
/// passes does what -O3 would, in a tenth of the time.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace kiln::codegen
