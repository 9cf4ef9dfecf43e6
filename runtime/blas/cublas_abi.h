// The part of the C interface of cuBLAS and cublasLt that Kiln calls, as it has been since CUDA 12. Declared here so
// that a build needs no toolkit; tests/unit/runtime/blas/abi_test.cc holds it against the toolkit's headers where they
// are.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::runtime::blas {

enum class CublasStatus : int32_t {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kArchMismatch = 8,
  kExecutionFailed = 13,
  kNotSupported = 15
};
enum class CublasOp : int32_t { kN = 0, kT = 1 };
enum class CublasProperty : int32_t { kMajor = 0, kMinor = 1, kPatch = 2 };
enum class CublasCompute : int32_t { k32F = 68, k64F = 70, k32I = 72, k32FFastTf32 = 77 };
enum class CublasAlgo : int32_t { kDefault = -1 };
enum class CudaType : int32_t {
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kI8 = 3,
  kI32 = 10,
  kBF16 = 14,
  kF8E4M3 = 28,
  kF8E5M2 = 29
};

enum class LtLayoutAttribute : int32_t { kBatchCount = 5, kStridedBatchOffset = 6 };
enum class LtDescAttribute : int32_t {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kFastAccum = 25,
  kBiasDataType = 26
};
enum class LtPreferenceAttribute : int32_t {
  kMaxWorkspaceBytes = 1,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8
};
enum class LtEpilogue : int32_t { kDefault = 1, kRelu = 2, kBias = 4, kReluBias = 6, kGelu = 32, kGeluBias = 36 };

using CublasHandle = struct CublasContext*;
using LtHandle = struct LtContext*;
using LtLayout = struct LtLayoutOpaque*;
using LtDesc = struct LtDescOpaque*;
using LtPreference = struct LtPreferenceOpaque*;
using CudaStream = void*;

struct LtAlgo {
  uint64_t data[8];
};
struct LtHeuristicResult {
  LtAlgo algo;
  size_t workspace_bytes;
  CublasStatus state;
  float waves;
  int32_t reserved[4];
};

}  // namespace kiln::runtime::blas
