// What LLVM 21 selects badly and 22 does not. To go with support of LLVM 21.
#pragma once

namespace llvm {
class Module;
}

namespace kiln::codegen {

/// `maximumnum` and `minimumnum` by operations that LLVM 21 selects as it should: its sequence for x86-64 returns one
/// of two numbers whichever is greater, and for NVPTX it compares and selects in place of the one instruction. Leaves
/// the module as it is under LLVM 22, and for other targets. Call it behind the optimizations.
void replace_minmax(llvm::Module& module);

}  // namespace kiln::codegen
