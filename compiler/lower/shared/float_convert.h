// LLVM for conversions between number types, rounded once whatever the two formats are. Internal to compiler/lower.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "compiler/target/target.h"
#include "kiln/dtype.h"

namespace kiln::lower {

/// `scalar`, or the vector of it with as many lanes as `like` has.
llvm::Type* same_lanes(llvm::Type* scalar, const llvm::Value* like);

/// The value of `v` (a scalar or <N x T>, T the LLVM type of `from`) in the type `to`: ints wrap or extend by the
/// signedness of `from`; float → int truncates and saturates, NaN gives 0; → i1 is != 0; float → float rounds to
/// nearest even, or towards zero with `to_zero`; → fp8 saturates to the largest finite value (infinities too) and keeps
/// NaN.
llvm::Value* convert_number(llvm::IRBuilderBase& b, llvm::Value* v, DType from, DType to, bool to_zero,
                            const target::Target& target);

/// f64 → f32 rounded to odd: a further rounding to a narrower format then gives what one rounding from f64 would.
llvm::Value* round_to_odd(llvm::IRBuilderBase& b, llvm::Value* f64);

}  // namespace kiln::lower
