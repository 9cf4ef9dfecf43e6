// Values in shared memory need not stay in registers: a value that is used on both sides of a reduction over warps is
// reloaded, and cheaply recomputed, after it.
//
//   %x = shared_load %h                      %x = shared_load %h
//   %f = cast %x                             %f = cast %x
//   %m = reduce %f …                         %m = reduce %f …
//   %s = splat %m                       →    %s = splat %m
//   %d = sub %f, %s                          %x1 = shared_load %h
//                                            %f1 = cast %x1
//                                            %d = sub %f1, %s
#pragma once
#include <span>

#include "compiler/ir/ir.h"

namespace kiln::passes {

/// This many registers are a quarter of a thread's maximum; a tile that takes them limits occupancy to half of the
/// threads. From here on recomputing an exponential is cheaper than keeping it.
inline constexpr int kManyRegisters = 64;

/// `loads`: shared_load ops of one block, after which, up to the end of the block, nothing overwrites what they read.
void read_again(ir::Module& module, std::span<ir::Op* const> loads);

/// Whether the result of `load`, or values cheaply computed from it, are used after a reduction over warps that `load`
/// itself precedes. Only then does reloading help.
bool outlives_reduction(const ir::Op* load);

/// The same of a loop that waits for other programs.
bool outlives_wait(const ir::Op* load);

}  // namespace kiln::passes
