// Products by the kernel on pointers: its launch.
#pragma once
#include "compiler/target/matmul_tile.h"
#include "kernels/case.h"

namespace kiln::kernels {

/// out [m, n] = a [m, k] · b [k, n], of floats with any strides; f32 is multiplied as tf32 on a GPU. A tile's splits
/// are not used: a program sums a whole tile. kType when the shapes do not fit.
Result<Launch> pointer_matmul_launch(Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out,
                                     const MatmulTile& tile);

}  // namespace kiln::kernels
