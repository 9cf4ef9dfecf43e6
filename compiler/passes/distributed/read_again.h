// Values that lie in shared memory need no registers to wait in: what is used on both sides of a reduction across warps
// is read, and cheaply computed, again behind it.
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

/// So many registers per thread are a quarter of what a thread may have; a tile that takes them leaves room for half of
/// the threads at most. From here on an exponential is better computed twice than kept.
inline constexpr int kManyRegisters = 64;

/// `loads`: shared_load ops of one block, behind which, up to the end of the block, nothing writes what they read.
void read_again(ir::Module& module, std::span<ir::Op* const> loads);

/// Whether what `load` gives, or what is cheaply computed from it, is used behind a reduction across warps that it does
/// not lie behind itself: what reading again would help.
bool outlives_reduction(const ir::Op* load);

}  // namespace kiln::passes
