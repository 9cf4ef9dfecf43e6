// Sums, differences and products of halves that f32 computes and that are rounded back are computed as halves, two by
// one instruction. The bits are the same: f32 has twice the digits of a half and two more, with which rounding twice is
// rounding once (Figueroa, "When is double rounding innocuous?", 1995), but for products of bf16 below 2^-126.
//   %1 = cast %a : f32
//   %2 = cast %b : f32
//   %3 = mul %1, %2 : f32
//   %4 = cast %3 : bf16    →   %4 = mul %a, %b : bf16
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Comes after fuse_fma, which would contract two such operations and so leave out the rounding between them.
Status narrow_halves(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
