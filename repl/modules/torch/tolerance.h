// How far apart values of a dtype may be and still count as equal: |a - b| <= atol + rtol · |b|.
#pragma once
#include "kiln/dtype.h"

namespace kiln::script {

struct Tolerance {
  double rtol, atol;
};

/// Those of torch.testing; of two dtypes the looser counts.
constexpr Tolerance tolerance_of(DType t) {
  switch (t) {
    case DType::kF16:
      return {1e-3, 1e-5};
    case DType::kBF16:
      return {1.6e-2, 1e-5};
    case DType::kF32:
      return {1.3e-6, 1e-5};
    case DType::kF64:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

}  // namespace kiln::script
