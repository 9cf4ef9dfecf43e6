// Products by the persistent kernel: its tiles, and its launches.
#pragma once
#include "kernels/case.h"

namespace kiln::kernels {

/// A tile of the product, and how a program makes it.
struct MatmulTile {
  int m = 0, n = 0, k = 0;  // elements; k: of one stage
  int stages = 0, warps = 0, group_m = 8;
  bool operator==(const MatmulTile&) const = default;
};
/// "128x256x64, 3 stages, 8 warps".
std::string to_string(const MatmulTile& tile);

/// The tile that takes the least time for a product [m, k] · [k, n] on `multiprocessors`, by the number of rounds and a
/// table of how fast each tile goes on Hopper. k and stages follow from the bytes of the elements.
MatmulTile choose_tile(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors);

struct MatmulEpilogue {
  Tensor bias = {};             // [n], or none
  std::string activation = {};  // "gelu_tanh", or none
};

/// out [m, n] = activation(a [m, k] · b [k, n] + bias). Each of a and b has one contiguous dimension, out its last;
/// rows start at multiples of 16 bytes. kType or kValue with what is wrong otherwise. f16, bf16, f32 (as tf32), fp8,
/// and i8 into i32.
Result<Launch> matmul_launch(Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out,
                             const MatmulEpilogue& epilogue = {}, std::optional<MatmulTile> tile = std::nullopt);

}  // namespace kiln::kernels
