// Every case, once: a new kernel adds its folder and its name here.
#pragma once
#include "kernels/case.h"

#define KILN_CASES(X) X(kVectorAdd) X(kPointwiseChain) X(kSoftmax) X(kLayerNorm) X(kRmsNorm) X(kDropout)

namespace kiln::kernels {
#define KILN_CASE(symbol) extern const Case symbol;
KILN_CASES(KILN_CASE)
#undef KILN_CASE
}  // namespace kiln::kernels
