// Keeps vector constants of long loops in memory operands.
#pragma once

namespace llvm {
class Module;
}

namespace kiln::codegen {

/// LLVM materialises a vector constant with a broadcast. When a loop needs more of them than there are registers, it
/// does so in every iteration: one more instruction and register per use. A constant that it cannot see through is
/// spilled once, and its uses read memory operands instead. Replaces the vector constants of loops that have more than
/// the registers hold.
void hide_loop_constants(llvm::Module& module);

}  // namespace kiln::codegen
