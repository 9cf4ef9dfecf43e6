// Scaled dot-product attention: its launch.
#pragma once
#include "kernels/case.h"

namespace kiln::kernels {

/// out = softmax(q kᵀ · scale) v for each head. q and out are [heads, n, d], k and v [heads / group, keys, d]: a head
/// of k and v serves `group` heads of q. Contiguous, of one half type; d is a multiple of 8 from 16 to 256. `causal`:
/// row i sees the keys 0 … i. `scale` is positive. kType or kValue when they do not fit. `for_gpu` chooses warps and
/// the grid as on a GPU, wherever the tensors are.
Result<Launch> attention_launch(Sources& sources, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                double scale, bool causal, bool for_gpu);

}  // namespace kiln::kernels
