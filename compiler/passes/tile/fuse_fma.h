// Contracts a float multiplication with a single use into the addition or subtraction that uses it, as NVIDIA's
// compilers do. Lowerings contract nothing that no pass has marked, so every executor rounds at the same places.
//   %1 = mul %a, %b : f32
//   %2 = add %1, %c : f32   →   %2 = fma %a, %b, %c : f32
// A sum of such products is marked, and what executes it adds by fma.
//   %1 = mul %a, %b : f32[64]
//   %2 = reduce %1 {axis = 0}   →   %2 = reduce %1 {axis = 0, contract = true}
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct FuseFmaOptions {};

/// f16, bf16, f32 and f64 (sums: f32 and f64). When both operands of an addition are products, the left one is fused.
Status fuse_fma(ir::Module& module, const FuseFmaOptions& options = {});

}  // namespace kiln::passes
