// cuBLAS and cublasLt for tests: column-major products in float64 over "device" memory, which the fake driver keeps on
// the host. FAKE_MAJOR is its version; FAKE_INCOMPLETE leaves out what multiplies.
#include "tests/unit/runtime/blas/fake/fake_cublas.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kiln/tensor.h"

using namespace kiln::runtime::blas;
using kiln::DType;

struct kiln::runtime::blas::CublasContext {
  void* stream = nullptr;
  size_t workspace_bytes = 0;
};
struct kiln::runtime::blas::LtContext {};
struct kiln::runtime::blas::LtLayoutOpaque {
  CudaType type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t offset = 0;
};
struct kiln::runtime::blas::LtDescOpaque {
  CublasCompute compute;
  CudaType scale;
  CublasOp op_a = CublasOp::kN, op_b = CublasOp::kN;
  LtEpilogue epilogue = LtEpilogue::kDefault;
  const void* bias = nullptr;
  CudaType bias_type = CudaType::kF32;
  int8_t fast = 0;
};
struct kiln::runtime::blas::LtPreferenceOpaque {
  uint64_t workspace = 0;
  // The alignments that the real library takes for granted unless it is told.
  uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace {

FakeCublas fake;

[[maybe_unused]] DType dtype_of(CudaType t) {
  switch (t) {
    case CudaType::kF32:
      return DType::kF32;
    case CudaType::kF64:
      return DType::kF64;
    case CudaType::kF16:
      return DType::kF16;
    case CudaType::kI8:
      return DType::kI8;
    case CudaType::kI32:
      return DType::kI32;
    case CudaType::kBF16:
      return DType::kBF16;
    case CudaType::kF8E4M3:
      return DType::kF8E4M3;
    case CudaType::kF8E5M2:
      return DType::kF8E5M2;
  }
  return DType::kF32;
}

double load(const void* base, DType t, int64_t i) {
  const char* element = static_cast<const char*>(base) + i * kiln::size_of(t);
  if (t == DType::kI8) return *reinterpret_cast<const int8_t*>(element);
  return kiln::to_double(t, element);
}
void store(void* base, DType t, int64_t i, double v) {
  char* element = static_cast<char*>(base) + i * kiln::size_of(t);
  if (t == DType::kI32) {
    auto whole = static_cast<int32_t>(v);
    std::memcpy(element, &whole, sizeof whole);
  } else {
    kiln::from_double(t, v, element);
  }
}
double scalar(const void* p, CudaType t) { return load(p, dtype_of(t), 0); }

struct Matrix {
  const void* data;
  CudaType type;
  CublasOp op;
  int64_t ld, offset;
  double at(int64_t batch, int64_t r, int64_t c) const {
    // Column-major, and transposed by the operation.
    int64_t i = op == CublasOp::kN ? r + c * ld : c + r * ld;
    return load(data, dtype_of(type), batch * offset + i);
  }
};

[[maybe_unused]] CublasStatus product(const Matrix& a, const Matrix& b, void* d, CudaType d_type, int64_t ldd,
                                      int64_t d_offset, int64_t m, int64_t n, int64_t k, int64_t batch,
                                      LtEpilogue epilogue, const void* bias, CudaType bias_type) {
  // A failure is told once, so that the caller's second way can be seen.
  if (CublasStatus status = std::exchange(fake.fail, CublasStatus::kSuccess); status != CublasStatus::kSuccess)
    return status;
  // The leading dimensions that the real library refuses.
  if (a.ld < (a.op == CublasOp::kN ? m : k) || b.ld < (b.op == CublasOp::kN ? k : n) || ldd < m)
    return CublasStatus::kInvalidValue;
  // The epilogues are bits: 4 a bias, 2 a ReLU, 32 a GELU.
  int bits = static_cast<int>(epilogue);
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t c = 0; c < n; ++c)
      for (int64_t r = 0; r < m; ++r) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a.at(i, r, p) * b.at(i, p, c);
        // Along the rows: cublasLt's bias has one element for each row of the column-major result.
        if (bits & 4) sum += load(bias, dtype_of(bias_type), r);
        if (bits & 2) sum = std::max(sum, 0.0);
        if (bits & 32) sum = sum / 2 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
        store(d, dtype_of(d_type), i * d_offset + r + c * ldd, sum);
      }
  return CublasStatus::kSuccess;
}

// alpha must be 1 and beta 0, in the type that they are said to have.
[[maybe_unused]] bool scales_ok(const void* alpha, const void* beta, CudaType type) {
  if (type == CudaType::kI32)
    return *static_cast<const int32_t*>(alpha) == 1 && *static_cast<const int32_t*>(beta) == 0;
  return scalar(alpha, type) == 1 && scalar(beta, type) == 0;
}

[[maybe_unused]] CudaType scale_type(CublasCompute c) {
  switch (c) {
    case CublasCompute::k32F:
    case CublasCompute::k32FFastTf32:
      return CudaType::kF32;
    case CublasCompute::k64F:
      return CudaType::kF64;
    case CublasCompute::k32I:
      return CudaType::kI32;
  }
  return CudaType::kF32;
}

CublasStatus property(CublasProperty which, int* value) {
  // Major, minor and patch, by the number of the property.
  constexpr int kVersion[] = {FAKE_MAJOR, 4, 2};
  *value = kVersion[static_cast<int>(which)];
  return CublasStatus::kSuccess;
}
const char* status_name(CublasStatus s) {
  return s == CublasStatus::kNotSupported   ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : s == CublasStatus::kAllocFailed  ? "CUBLAS_STATUS_ALLOC_FAILED"
         : s == CublasStatus::kInvalidValue ? "CUBLAS_STATUS_INVALID_VALUE"
                                            : "CUBLAS_STATUS_EXECUTION_FAILED";
}

template <class T>
[[maybe_unused]] CublasStatus assign(T& target, const void* value, size_t bytes) {
  // The real library refuses a value of another size too, and so tells a wrong type.
  if (bytes != sizeof target) return CublasStatus::kInvalidValue;
  std::memcpy(&target, value, bytes);
  return CublasStatus::kSuccess;
}

}  // namespace

extern "C" {

FakeCublas* fake_cublas() { return &fake; }

CublasStatus cublasGetProperty(CublasProperty which, int* value) { return property(which, value); }
CublasStatus cublasLtGetProperty(CublasProperty which, int* value) { return property(which, value); }
const char* cublasGetStatusName(CublasStatus s) { return status_name(s); }
const char* cublasLtGetStatusName(CublasStatus s) { return status_name(s); }
const char* cublasGetStatusString(CublasStatus) { return "the fake library says so"; }
const char* cublasLtGetStatusString(CublasStatus) { return "the fake library says so"; }

CublasStatus cublasCreate_v2(CublasHandle* h) {
  *h = new CublasContext, ++fake.handles;
  return CublasStatus::kSuccess;
}
CublasStatus cublasDestroy_v2(CublasHandle h) {
  delete h, --fake.handles;
  return CublasStatus::kSuccess;
}
CublasStatus cublasSetStream_v2(CublasHandle h, CudaStream s) {
  // As the real one: a new stream takes the workspace away.
  h->stream = s, h->workspace_bytes = 0;
  return CublasStatus::kSuccess;
}
CublasStatus cublasSetWorkspace_v2(CublasHandle h, void*, size_t bytes) {
  h->workspace_bytes = bytes;
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtCreate(LtHandle* h) {
  *h = new LtContext, ++fake.handles;
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtDestroy(LtHandle h) {
  delete h, --fake.handles;
  return CublasStatus::kSuccess;
}

// Without these the runtime must say which library is incomplete.
#ifndef FAKE_INCOMPLETE
CublasStatus cublasGemmStridedBatchedEx_64(CublasHandle h, CublasOp op_a, CublasOp op_b, int64_t m, int64_t n,
                                           int64_t k, const void* alpha, const void* a, CudaType a_type, int64_t lda,
                                           long long a_offset, const void* b, CudaType b_type, int64_t ldb,
                                           long long b_offset, const void* beta, void* c, CudaType c_type, int64_t ldc,
                                           long long c_offset, int64_t batch, CublasCompute compute, CublasAlgo) {
  if (!scales_ok(alpha, beta, scale_type(compute))) return CublasStatus::kInvalidValue;
  fake.stream = h->stream, fake.workspace_bytes = h->workspace_bytes;
  return product({a, a_type, op_a, lda, a_offset}, {b, b_type, op_b, ldb, b_offset}, c, c_type, ldc, c_offset, m, n, k,
                 batch, LtEpilogue::kDefault, nullptr, c_type);
}
CublasStatus cublasGemmEx_64(CublasHandle h, CublasOp op_a, CublasOp op_b, int64_t m, int64_t n, int64_t k,
                             const void* alpha, const void* a, CudaType a_type, int64_t lda, const void* b,
                             CudaType b_type, int64_t ldb, const void* beta, void* c, CudaType c_type, int64_t ldc,
                             CublasCompute compute, CublasAlgo algo) {
  // One product is a batch of one.
  return cublasGemmStridedBatchedEx_64(h, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                                       c_type, ldc, 0, 1, compute, algo);
}
#endif

CublasStatus cublasLtMatrixLayoutCreate(LtLayout* l, CudaType type, uint64_t rows, uint64_t columns, int64_t ld) {
  *l = new LtLayoutOpaque{type, rows, columns, ld};
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtMatrixLayoutDestroy(LtLayout l) {
  delete l;
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtMatrixLayoutSetAttribute(LtLayout l, LtLayoutAttribute which, const void* v, size_t n) {
  switch (which) {
    case LtLayoutAttribute::kBatchCount:
      return assign(l->batch, v, n);
    case LtLayoutAttribute::kStridedBatchOffset:
      return assign(l->offset, v, n);
  }
  return CublasStatus::kInvalidValue;
}
CublasStatus cublasLtMatmulDescCreate(LtDesc* d, CublasCompute compute, CudaType scale) {
  *d = new LtDescOpaque{compute, scale};
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtMatmulDescDestroy(LtDesc d) {
  delete d;
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtMatmulDescSetAttribute(LtDesc d, LtDescAttribute which, const void* v, size_t n) {
  switch (which) {
    case LtDescAttribute::kTransA:
      return assign(d->op_a, v, n);
    case LtDescAttribute::kTransB:
      return assign(d->op_b, v, n);
    case LtDescAttribute::kEpilogue:
      return assign(d->epilogue, v, n);
    case LtDescAttribute::kBiasPointer:
      return assign(d->bias, v, n);
    case LtDescAttribute::kFastAccum:
      return assign(d->fast, v, n);
    case LtDescAttribute::kBiasDataType:
      return assign(d->bias_type, v, n);
  }
  return CublasStatus::kInvalidValue;
}
CublasStatus cublasLtMatmulPreferenceCreate(LtPreference* p) {
  *p = new LtPreferenceOpaque;
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtMatmulPreferenceDestroy(LtPreference p) {
  delete p;
  return CublasStatus::kSuccess;
}
CublasStatus cublasLtMatmulPreferenceSetAttribute(LtPreference p, LtPreferenceAttribute which, const void* v,
                                                  size_t n) {
  switch (which) {
    case LtPreferenceAttribute::kMaxWorkspaceBytes:
      return assign(p->workspace, v, n);
    case LtPreferenceAttribute::kMinAlignmentA:
      return assign(p->alignment[0], v, n);
    case LtPreferenceAttribute::kMinAlignmentB:
      return assign(p->alignment[1], v, n);
    case LtPreferenceAttribute::kMinAlignmentC:
      return assign(p->alignment[2], v, n);
    case LtPreferenceAttribute::kMinAlignmentD:
      return assign(p->alignment[3], v, n);
  }
  return CublasStatus::kInvalidValue;
}
CublasStatus cublasLtMatmulAlgoGetHeuristic(LtHandle, LtDesc d, LtLayout, LtLayout, LtLayout, LtLayout, LtPreference p,
                                            int wanted, LtHeuristicResult* results, int* found) {
  ++fake.heuristics;
  // The bias must be set before the heuristic is asked, since it decides which algorithms fit.
  fake.bias_when_asked = reinterpret_cast<uint64_t>(d->bias);
  std::copy(std::begin(p->alignment), std::end(p->alignment), fake.alignments);
  *found = std::min(fake.offered, wanted);
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    // 100 upwards, so that the number of an algorithm is told from an index.
    results[i].algo.data[0] = static_cast<uint64_t>(i) + 100;
    // Less than is allowed, as real algorithms ask for what they need.
    results[i].workspace_bytes = p->workspace / 2;
  }
  return *found > 0 ? CublasStatus::kSuccess : CublasStatus::kNotSupported;
}
#ifndef FAKE_INCOMPLETE
CublasStatus cublasLtMatmul(LtHandle, LtDesc desc, const void* alpha, const void* a, LtLayout a_layout, const void* b,
                            LtLayout b_layout, const void* beta, const void* c, LtLayout, void* d, LtLayout d_layout,
                            const LtAlgo* algo, void*, size_t workspace_bytes, CudaStream stream) {
  // In place of a separate c; scale and compute must belong together.
  if (c != d || !scales_ok(alpha, beta, desc->scale) || desc->scale != scale_type(desc->compute))
    return CublasStatus::kInvalidValue;
  int number = static_cast<int>(algo->data[0]) - 100;
  if (std::find(fake.failing.begin(), fake.failing.end(), number) != fake.failing.end())
    return CublasStatus::kNotSupported;
  fake.run.push_back(number);
  fake.workspace_bytes = workspace_bytes, fake.stream = stream;
  auto m = static_cast<int64_t>(d_layout->rows), n = static_cast<int64_t>(d_layout->columns);
  bool plain_a = desc->op_a == CublasOp::kN, plain_b = desc->op_b == CublasOp::kN;
  auto k = static_cast<int64_t>(plain_a ? a_layout->columns : a_layout->rows);
  if (static_cast<int64_t>(plain_a ? a_layout->rows : a_layout->columns) != m ||
      static_cast<int64_t>(plain_b ? b_layout->rows : b_layout->columns) != k ||
      static_cast<int64_t>(plain_b ? b_layout->columns : b_layout->rows) != n || a_layout->batch != d_layout->batch ||
      b_layout->batch != d_layout->batch)
    return CublasStatus::kInvalidValue;
  return product({a, a_layout->type, desc->op_a, a_layout->ld, a_layout->offset},
                 {b, b_layout->type, desc->op_b, b_layout->ld, b_layout->offset}, d, d_layout->type, d_layout->ld,
                 d_layout->offset, m, n, k, d_layout->batch, desc->epilogue, desc->bias, desc->bias_type);
}
#endif

}  // extern "C"
