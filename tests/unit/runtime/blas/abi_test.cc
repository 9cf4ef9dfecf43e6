// Our declarations of cuBLAS's C interface against the toolkit's own headers.
#include "runtime/blas/cublas_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cublasLt.h>) && __has_include(<cublas_v2.h>)
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstddef>
#include <type_traits>

namespace kiln::runtime::blas {
namespace {

// Parameters match when both are pointers, or of one size and both integers (an enum counts as one).
template <class A, class B>
constexpr bool kSameKind = std::is_pointer_v<A> == std::is_pointer_v<B> &&
                           sizeof(A) == sizeof(B) && std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <class F, class G>
struct SameShape : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameShape<R(A...), S(B...)>
    : std::bool_constant<kSameKind<R, S> && (kSameKind<A, B> && ...)> {
};

#define KILN_CUBLAS(member, symbol, ...) \
  static_assert(SameShape<__VA_ARGS__, std::remove_pointer_t<decltype(&::symbol)>>::value, #symbol);
#define KILN_CUBLASLT(member, symbol, ...) KILN_CUBLAS(member, symbol, __VA_ARGS__)
#include "runtime/blas/blas.def"

template <class A, class B>
constexpr bool equal(A ours, B theirs) {
  return static_cast<int64_t>(ours) == static_cast<int64_t>(theirs);
}

static_assert(equal(CublasStatus::kSuccess, CUBLAS_STATUS_SUCCESS));
static_assert(equal(CublasStatus::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED));
static_assert(equal(CublasStatus::kAllocFailed, CUBLAS_STATUS_ALLOC_FAILED));
static_assert(equal(CublasStatus::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE));
static_assert(equal(CublasStatus::kArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH));
static_assert(equal(CublasStatus::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED));
static_assert(equal(CublasStatus::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED));
static_assert(equal(CublasOp::kN, CUBLAS_OP_N) && equal(CublasOp::kT, CUBLAS_OP_T));
static_assert(equal(CublasProperty::kMajor, MAJOR_VERSION) && equal(CublasProperty::kMinor, MINOR_VERSION) &&
              equal(CublasProperty::kPatch, PATCH_LEVEL));
static_assert(equal(CublasCompute::k32F, CUBLAS_COMPUTE_32F) && equal(CublasCompute::k64F, CUBLAS_COMPUTE_64F) &&
              equal(CublasCompute::k32I, CUBLAS_COMPUTE_32I) &&
              equal(CublasCompute::k32FFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(equal(CublasAlgo::kDefault, CUBLAS_GEMM_DEFAULT));
static_assert(equal(CudaType::kF32, CUDA_R_32F) && equal(CudaType::kF64, CUDA_R_64F) &&
              equal(CudaType::kF16, CUDA_R_16F) && equal(CudaType::kBF16, CUDA_R_16BF) &&
              equal(CudaType::kI8, CUDA_R_8I) && equal(CudaType::kI32, CUDA_R_32I) &&
              equal(CudaType::kF8E4M3, CUDA_R_8F_E4M3) && equal(CudaType::kF8E5M2, CUDA_R_8F_E5M2));
static_assert(equal(LtLayoutAttribute::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) &&
              equal(LtLayoutAttribute::kStridedBatchOffset, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(equal(LtDescAttribute::kTransA, CUBLASLT_MATMUL_DESC_TRANSA) &&
              equal(LtDescAttribute::kTransB, CUBLASLT_MATMUL_DESC_TRANSB) &&
              equal(LtDescAttribute::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE) &&
              equal(LtDescAttribute::kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER) &&
              equal(LtDescAttribute::kFastAccum, CUBLASLT_MATMUL_DESC_FAST_ACCUM) &&
              equal(LtDescAttribute::kBiasDataType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE));
static_assert(equal(LtPreferenceAttribute::kMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) &&
              equal(LtPreferenceAttribute::kMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) &&
              equal(LtPreferenceAttribute::kMinAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) &&
              equal(LtPreferenceAttribute::kMinAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) &&
              equal(LtPreferenceAttribute::kMinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(equal(LtEpilogue::kDefault, CUBLASLT_EPILOGUE_DEFAULT) &&
              equal(LtEpilogue::kRelu, CUBLASLT_EPILOGUE_RELU) && equal(LtEpilogue::kBias, CUBLASLT_EPILOGUE_BIAS) &&
              equal(LtEpilogue::kReluBias, CUBLASLT_EPILOGUE_RELU_BIAS) &&
              equal(LtEpilogue::kGelu, CUBLASLT_EPILOGUE_GELU) &&
              equal(LtEpilogue::kGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS));
static_assert(sizeof(LtAlgo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtHeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(LtHeuristicResult, workspace_bytes) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(LtHeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state) &&
              offsetof(LtHeuristicResult, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

TEST(CublasAbi, MatchesTheToolkitsHeaders) { SUCCEED() << "checked while compiling"; }

}  // namespace
}  // namespace kiln::runtime::blas

#else

TEST(CublasAbi, MatchesTheToolkitsHeaders) { GTEST_SKIP() << "no cublasLt.h in the toolkit's include folder"; }

#endif
