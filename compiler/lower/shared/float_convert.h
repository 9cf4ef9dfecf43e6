// LLVM for conversions between number types, rounded once whatever the two formats are. Internal to compiler/lower.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <span>
#include <vector>

#include "compiler/target/target.h"
#include "kiln/dtype.h"

namespace kiln::lower {

/// `scalar`, or the vector of it with as many lanes as `like` has.
llvm::Type* same_lanes(llvm::Type* scalar, const llvm::Value* like);

/// Applies `fn` lane by lane: for intrinsics that exist on scalars alone.
template <class Fn>
llvm::Value* per_lane(llvm::IRBuilderBase& b, std::span<llvm::Value* const> v, Fn&& fn) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v[0]->getType());
  if (!vector) return fn(v);
  llvm::Value* out = nullptr;
  std::vector<llvm::Value*> lane(v.size());
  for (unsigned i = 0; i < vector->getNumElements(); ++i) {
    for (size_t k = 0; k < v.size(); ++k) lane[k] = b.CreateExtractElement(v[k], i);
    llvm::Value* r = fn(std::span<llvm::Value* const>(lane));
    if (!out) out = llvm::PoisonValue::get(llvm::FixedVectorType::get(r->getType(), vector->getNumElements()));
    out = b.CreateInsertElement(out, r, i);
  }
  return out;
}

/// The value of `v` (a scalar or <N x T>, T the LLVM type of `from`) in the type `to`: ints wrap or extend by the
/// signedness of `from`; float → int truncates and saturates, NaN gives 0; → i1 is != 0; float → float rounds to
/// nearest even, or towards zero with `to_zero`; → fp8 saturates to the largest finite value (infinities too) and keeps
/// NaN.
llvm::Value* convert_number(llvm::IRBuilderBase& b, llvm::Value* v, DType from, DType to, bool to_zero,
                            const target::Target& target);

/// f64 → f32 rounded to odd: a further rounding to a narrower format then gives what one rounding from f64 would.
llvm::Value* round_to_odd(llvm::IRBuilderBase& b, llvm::Value* f64);

}  // namespace kiln::lower
