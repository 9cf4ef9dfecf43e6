// The order of instructions in long loop bodies.
#pragma once

namespace llvm {
class Module;
}

namespace kiln::codegen {

/// Reorders the instructions of long blocks of vector arithmetic: those on the longest paths first, so that independent
/// chains alternate, as long as what is live fits into the vector registers (`registers` of `register_bits` bits). Code
/// generation must keep the order of the IR, that is run without a scheduler of its own.
void schedule_long_blocks(llvm::Module& module, unsigned register_bits, unsigned registers);

}  // namespace kiln::codegen
