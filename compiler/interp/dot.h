// The meaning of `dot`, shared by the tile stage and the machine of the distributed stage.
#pragma once
#include <cstdint>
#include <span>

#include "compiler/ir/attrs.h"
#include "compiler/ir/type.h"

namespace kiln::interp {

/// a[…, M, K] · b[…, K, N] + c[…, M, N] on row-major bits; `out` may be `c`.
///
/// Floats: products are exact, sums are kept in double (long double for f64) and rounded once to the result's type, so
/// an executor that rounds at each step is within the usual bound of K terms of the result. `precision` kTf32 first
/// rounds f32 operands to 10 bits of fraction, to nearest even. Integers wrap.
void eval_dot(const ir::Type& a, const ir::Type& b, const ir::Type& c, ir::Precision precision,
              std::span<const uint64_t> a_bits, std::span<const uint64_t> b_bits, std::span<const uint64_t> c_bits,
              std::span<uint64_t> out);

}  // namespace kiln::interp
