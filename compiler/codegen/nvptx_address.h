// LLVM function passes for NVPTX, for addresses of few instructions: what indices have in common becomes a base of the
// tensor, and constants move into the offsets of memory instructions, or into comparisons.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// p + ext(x + c) → (p + ext(x)) + c wherever no bit can carry or overflow, so that the registers of one thread share
/// one 64-bit address per tensor:
///   getelementptr T, p, sext(or disjoint x, 512)   →   getelementptr T, (getelementptr T, p, sext x), 512
/// Of indices of 64 bits, which may wrap as addresses do, also the constants of what they add and scale. Returns
/// whether it changed something.
bool split_addresses(llvm::Function& fn);

/// ((p + x) + a) + b, ((p + y) + a) + b → ((p + a) + b) + x, ((p + a) + b) + y of addresses in one loop, where that
/// takes fewer sums: what many have in common is added to the tensor once. Returns whether it changed something.
bool share_steps(llvm::Function& fn);

/// Where share_steps has left an element's own offset of 32 bits, and it does not change in the loop: one instruction
/// that reads it as it is. Hoisted, an offset of 64 bits takes two registers, and its sum two instructions. For the end
/// of the passes. Returns whether it changed something.
bool widen_in_loops(llvm::Function& fn);

/// p + (a + x), p + (a + y) → (p + a) + x, (p + a) + y of 64 bits, where the addresses of a tensor have `a` in common
/// and each something of its own: of 64-bit program numbers and sizes, say. An element then takes one instruction,
/// which multiplies what is its own and adds it to the base. Returns whether it changed something.
bool share_bases(llvm::Function& fn);

/// a | (x | c) → (a | x) | c where no bits meet: of indices that masks compare, the elements of a thread have a | x in
/// common. LICM prefers each x | c in a register of its own, all through a loop. After the passes that do.
void move_constants_out(llvm::Function& fn);

/// p + ext(x + c) * n, q + ext(x + c) * n → (p + ext(x) * n) + c * n, (q + ext(x) * n) + c * n, where addresses of
/// several tensors have products of one size of the kernel in common, as loads and stores of the same rows do: a thread
/// otherwise holds two registers for each row from its load to its store. Multiples of a size that all threads have in
/// common are in uniform registers. For functions without loops, after move_constants_out.
void share_products(llvm::Function& fn);

/// a == x + c, a == x + d → a - x == c, a - x == d, where a loop compares what it counts with many numbers of one sum:
/// LoopStrengthReduce compares the counter with each a - c, in a register of its own (two of 64 bits), and the columns
/// of a thread are up to 64.
void compare_differences(llvm::Function& fn);

}  // namespace kiln::codegen
