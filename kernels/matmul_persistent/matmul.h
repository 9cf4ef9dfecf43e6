// Products by the kernels on tensor descriptors: their launches.
#pragma once
#include "compiler/target/matmul_tile.h"
#include "kernels/case.h"

namespace kiln::kernels {

using kiln::choose_splits;
using kiln::choose_tile;
using kiln::MatmulTile;
using kiln::to_string;

/// Blocks that programs of a product may have on a device: more than one where it has clusters.
int most_ctas(const DeviceInfo& device);

struct MatmulEpilogue {
  Tensor bias = {};             // [n], or none
  std::string activation = {};  // "gelu_tanh", or none
};

/// out [m, n] = activation(a [m, k] · b [k, n] + bias). Each of a and b has one contiguous dimension, out its last;
/// rows start at multiples of 16 bytes. kType or kValue with what is wrong otherwise. f16, bf16, f32 (as tf32), fp8,
/// and i8 into i32. Without `tile`: the table's. The launch of a split product owns the memory of its parts, so two
/// runs of one must not overlap.
Result<Launch> matmul_launch(Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out,
                             const MatmulEpilogue& epilogue = {}, std::optional<MatmulTile> tile = std::nullopt);

}  // namespace kiln::kernels
