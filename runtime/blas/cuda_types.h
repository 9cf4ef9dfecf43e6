// From Kiln's dtypes to what cuBLAS and cublasLt call them.
//
// Both libraries are column-major. A row-major [r, c] is a column-major [c, r], so they are asked for
// outᵀ [n, m] = bᵀ [n, k] · aᵀ [k, m]: Kiln's b is their first operand, and transposed for them when its columns are
// contiguous in Kiln. The bias of length n then runs along their rows, as cublasLt's epilogue has it.
#pragma once
#include "runtime/blas/cublas_abi.h"
#include "runtime/blas/problem.h"
#include "support/diag.h"

namespace kiln::runtime::blas {

inline CudaType cuda_type(DType t) {
  switch (t) {
    case DType::kF32:
      return CudaType::kF32;
    case DType::kF64:
      return CudaType::kF64;
    case DType::kF16:
      return CudaType::kF16;
    case DType::kBF16:
      return CudaType::kBF16;
    case DType::kI8:
      return CudaType::kI8;
    case DType::kI32:
      return CudaType::kI32;
    case DType::kF8E4M3:
      return CudaType::kF8E4M3;
    case DType::kF8E5M2:
      return CudaType::kF8E5M2;
    case DType::kI1:
    case DType::kI16:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kF8E4B15:
      break;
  }
  KILN_UNREACHABLE("{} has no row in the table of types", name(t));
}

inline CublasCompute compute_type(const GemmProblem& p) {
  if (p.d == DType::kI32) return CublasCompute::k32I;
  if (p.d == DType::kF64) return CublasCompute::k64F;
  return p.tf32 ? CublasCompute::k32FFastTf32 : CublasCompute::k32F;
}

/// alpha = 1 and beta = 0 in the type that the products are summed in.
struct Scales {
  explicit Scales(const GemmProblem& p) {
    if (p.d == DType::kI32)
      type = CudaType::kI32, alpha = &kOneI, beta = &kZeroI;
    else if (p.d == DType::kF64)
      type = CudaType::kF64, alpha = &kOneD, beta = &kZeroD;
  }
  CudaType type = CudaType::kF32;
  const void *alpha = &kOneF, *beta = &kZeroF;

 private:
  static constexpr int32_t kOneI = 1, kZeroI = 0;
  static constexpr float kOneF = 1, kZeroF = 0;
  static constexpr double kOneD = 1, kZeroD = 0;
};

inline CublasOp op_of(const Placement& p) { return p.column_major ? CublasOp::kT : CublasOp::kN; }

}  // namespace kiln::runtime::blas
