// Matrix products by the vendors' BLAS libraries, the baseline of Kiln's own kernels. Each library is loaded
// at the first use; none is linked.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/tensor.h"

namespace kiln {

enum class BlasLibraryId : uint8_t { kCublas, kCublasLt, kOpenBlas };

/// The rows of matmul_impl.def.
enum class MatmulImpl : uint8_t {
#define KILN_MATMUL_IMPL(ENUM, NAME, LIBRARY, TRAITS, WHAT) k##ENUM,
#include "kiln/matmul_impl.def"
};
inline constexpr MatmulImpl kMatmulImpls[] = {
#define KILN_MATMUL_IMPL(ENUM, ...) MatmulImpl::k##ENUM,
#include "kiln/matmul_impl.def"
};
struct MatmulImplInfo {
  MatmulImpl impl;
  std::string_view name;  // "cublaslt-best"
  BlasLibraryId library;
  std::string_view traits, what;
  constexpr bool has(char trait) const { return traits.find(trait) != std::string_view::npos; }
  constexpr bool on_gpu() const { return has('G'); }
  constexpr bool has_epilogues() const { return has('E'); }
};
inline constexpr MatmulImplInfo kMatmulImplRows[] = {
#define KILN_MATMUL_IMPL(ENUM, NAME, LIBRARY, TRAITS, WHAT) \
  {MatmulImpl::k##ENUM, NAME, BlasLibraryId::LIBRARY, TRAITS, WHAT},
#include "kiln/matmul_impl.def"
};
constexpr const MatmulImplInfo& info(MatmulImpl impl) { return kMatmulImplRows[static_cast<size_t>(impl)]; }
constexpr std::string_view name(MatmulImpl impl) { return info(impl).name; }
/// The usual one of a GPU or of the CPU, or the fastest.
constexpr MatmulImpl usual_impl(bool gpu) {
  for (const MatmulImplInfo& row : kMatmulImplRows)
    if (row.on_gpu() == gpu && row.has('D')) return row.impl;
  return kMatmulImplRows[0].impl;
}
constexpr MatmulImpl fastest_impl(bool gpu) {
  for (const MatmulImplInfo& row : kMatmulImplRows)
    if (row.on_gpu() == gpu && row.has('F')) return row.impl;
  return kMatmulImplRows[0].impl;
}
/// "cublas, cublaslt": all names, or those of a library.
std::string matmul_impl_names(std::optional<BlasLibraryId> library = {});
std::optional<MatmulImpl> parse_matmul_impl(std::string_view text);

/// Applied to A·B + bias before it is rounded. kGeluTanh is x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
enum class Activation : uint8_t { kNone, kRelu, kGeluTanh };
/// "none", "relu", "gelu".
std::string_view name(Activation activation);
std::optional<Activation> parse_activation(std::string_view text);

struct MatmulOptions {
  std::optional<MatmulImpl> impl = {};        // unset: usual_impl
  std::optional<DType> out_dtype = {};        // unset: that of `out`, else a's (fp8 gives bf16, i8 gives i32)
  Tensor out = {};                            // written when set: row-major, of the result's shape
  Tensor bias = {};                           // [N], of the result's dtype; cublasLt only
  Activation activation = Activation::kNone;  // other than kNone: cublasLt only
  bool tf32 = false;                          // f32 operands may be rounded to tf32, 10 bits of mantissa
  bool fast_accumulation = false;             // fp8: sums are carried to full precision less often
  Stream stream = {};                         // empty: the device's default stream
};

/// a [M, K] · b [K, N] → [M, N], or in batches [B, M, K] · [B, K, N] → [B, M, N], where an operand with two dimensions
/// or with B = 1 is broadcast. Operands may be transposed views or have gaps between rows, but one of their last
/// two strides must be 1. Products of f16, bf16, f32 and fp8 are summed in f32, f64 in f64, i8 in i32.
///
/// kType: shapes, dtypes or devices that do not match (both are named). kUnsupported: the library lacks this; the
/// notes name alternatives. kDevice: the library is absent (one line with the names tried), too old or failed.
Result<Tensor> matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

/// Whether matmul takes a matrix or batch with these strides, or needs a contiguous copy of it.
bool matmul_takes_strides(const Tensor& t);

/// How matmul will run that problem: the choice among cublasLt's algorithms.
struct MatmulPlan {
  int offered = 1;              // algorithms of the heuristics, best guess first; 1 for other libraries
  int chosen = 0;               // the one that is used
  int64_t workspace_bytes = 0;  // that it needs, of the 32 MiB that every algorithm may have
  std::vector<double> us = {};  // kCublasLtBest: medians of each; NaN for one that failed or was dropped early
};

/// Prepares what matmul needs for that problem (handles, heuristics, the timing of kCublasLtBest) and keeps it.
/// Timing writes to options.out when it is set.
Result<MatmulPlan> plan_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

/// One of the libraries on this machine.
struct BlasLibrary {
  std::string_view name;  // "cuBLAS"
  std::string impls;      // implementations by it: "cublaslt, cublaslt-best"
  std::string version;    // "13.1.0"; empty when it is absent
  std::string detail;     // its path, or one line with the reason why it cannot be used
  bool available() const { return !version.empty(); }
};
/// Tries to load each of them.
std::vector<BlasLibrary> blas_libraries();

}  // namespace kiln
