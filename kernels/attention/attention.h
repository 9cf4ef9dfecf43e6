// Scaled dot-product attention: its launch.
#pragma once
#include "kernels/case.h"

namespace kiln::kernels {

/// out = softmax(q kᵀ · scale) v for each head. q, k, v and out are [heads, n, d], contiguous, of one half type; d is a
/// power of two from 16 to 128. `causal`: row i sees the keys 0 … i. `scale` is
/// positive. kType or kValue when they do not fit.
/// By blocks (and on Hopper by TMA and warp groups) where n is a multiple of 128, else by pointers. `for_gpu` chooses
/// block sizes and warps as on a GPU, wherever the tensors are.
Result<Launch> attention_launch(Sources& sources, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                double scale, bool causal, bool for_gpu);

}  // namespace kiln::kernels
