// What rounding to a type may be off by, for tests' bounds.
#pragma once
#include "support/float_bits.h"

namespace kiln {

/// Relative to the rounded number; 0 for integers, and for the fp8 formats, which no product here is rounded to.
inline double unit_roundoff(DType t) { return is_float(t) && !is_fp8(t) ? float_epsilon(t) / 2 : 0; }

}  // namespace kiln
