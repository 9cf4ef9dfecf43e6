// Who takes part in the benchmark of matrix products.
#include <fmt/format.h>

#include "bench/gemm.h"
#include "kiln/blas.h"

namespace kiln::bench {

namespace {

template <MatmulImpl Impl>
Result<PreparedGemm> by_blas(const GemmProblem& p) {
  MatmulOptions options;
  options.impl = Impl;
  options.out = p.out;
  options.tf32 = p.type.tf32;
  options.fast_accumulation = p.type.fast_accumulation;
  KILN_TRY(MatmulPlan plan, plan_matmul(p.a, p.b, options));
  PreparedGemm made;
  if (Impl == MatmulImpl::kCublasLtBest) made.note = fmt::format("algorithm {} of {}", plan.chosen + 1, plan.offered);
  made.enqueue = [a = p.a, b = p.b, options]() -> Status {
    KILN_TRY([[maybe_unused]] Tensor out, matmul(a, b, options));
    return {};
  };
  return made;
}

constexpr GemmContender kContenders[] = {
    {"cublas", false, by_blas<MatmulImpl::kCublas>},
    {"cublaslt", false, by_blas<MatmulImpl::kCublasLt>},
    {"cublaslt-best", false, by_blas<MatmulImpl::kCublasLtBest>},
    {"openblas", false, by_blas<MatmulImpl::kOpenBlas>},
};

}  // namespace

std::span<const GemmContender> gemm_contenders() { return kContenders; }

}  // namespace kiln::bench
