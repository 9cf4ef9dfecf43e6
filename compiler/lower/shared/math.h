// LLVM for the math ops of ops.def on f32 and f64: range reduction and polynomials, shared by the host and the NVPTX
// lowering.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <span>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::lower {

/// True for the math ops of ops.def: those that emit_math takes.
bool is_math_op(ir::OpKind kind);

/// The result of math op `kind` on `operands`: one (two for pow) scalars or <N x T> vectors of f32 or f64 (`dtype`).
///
/// Defined for every input: infinities, NaN, denormals and both zeros behave as in C's math.h. The error in ULP of each
/// function, measured over the whole range, stands in docs/math.md. On CUDA targets f32 exp, exp2, sqrt, rsqrt and the
/// divisions inside of others use the hardware's approximations; everything else gives the same bits on every target.
///
/// Straight-line code, but for sin and cos, which branch to a slow reduction when |x| is large, and pow of vectors of
/// f32 on CUDA, which branches where an operand or the result is no ordinary number. They need `b` at the end of a
/// block without terminator and leave it at the end of a new one. Callers take b.GetInsertBlock() after the call.
llvm::Value* emit_math(llvm::IRBuilderBase& b, ir::OpKind kind, DType dtype, std::span<llvm::Value* const> operands,
                       const target::Target& target);

/// What to compute of one number; `may_be_large` false: it is known to be at most 102400, and there is no branch.
struct SinCosOptions {
  bool sine, cosine, may_be_large = true;
};
/// What was asked for; else null.
struct SinCos {
  llvm::Value *sine, *cosine;
};
/// Of a scalar or vector of f32 or f64; branches as said above (math_trig.cc). Both share the reduction of x.
SinCos emit_sin_cos(llvm::IRBuilderBase& b, llvm::Value* x, SinCosOptions options, const target::Target& target);

}  // namespace kiln::lower
