// A matrix product as plain data: what is checked once for every library, and the key of what they keep.
#pragma once
#include <array>
#include <compare>
#include <string>

#include "kiln/blas.h"

namespace kiln::runtime::blas {

/// How a matrix (or a batch of them) lies in memory. `ld` is the step of its rows, or of its columns when they are what
/// is contiguous; `batch_stride` 0 means that every batch uses the same matrix. Both in elements.
struct Placement {
  bool column_major = false;
  int64_t ld = 1, batch_stride = 0;
  auto operator<=>(const Placement&) const = default;
};

/// out [m, n] = activation(a [m, k] · b [k, n] + bias [n]), `batch` times. The output is row-major.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  DType a = DType::kF32, b = DType::kF32, d = DType::kF32;
  Placement a_place, b_place, d_place;
  bool batched = false;  // the result has three dimensions
  bool has_bias = false;
  Activation activation = Activation::kNone;
  bool tf32 = false, fast_accumulation = false;
  /// Largest power of two up to 256 that divides the address of a, b, the output and the bias.
  std::array<uint32_t, 4> alignment{};
  auto operator<=>(const GemmProblem&) const = default;

  /// "bf16 [16, 64] @ bf16 [64, 32] -> bf16, bias, gelu"
  std::string text() const;
};

/// Which products a library takes; the first row of a pair of operand dtypes gives the result's dtype by default.
struct TypeRow {
  DType a, b, d;
  bool cublas, openblas;  // cublasLt takes all
};
std::span<const TypeRow> type_rows();

/// Checks operands and options against each other and the library, and places the operands. Alignments are left 0.
Result<GemmProblem> make_problem(const Tensor& a, const Tensor& b, const MatmulOptions& options, MatmulImpl impl);

/// Where the elements of a matrix or batch lie; nullopt when neither its rows nor its columns are contiguous. A matrix
/// that can be read both ways is placed as preferred.
std::optional<Placement> place(const Tensor& t, bool prefer_column_major);

/// "[16, 64]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace kiln::runtime::blas
