// cblas_sgemm and cblas_dgemm.
#include <algorithm>
#include <climits>

#include "runtime/blas/engine.h"
#include "runtime/blas/library.h"
#include "support/diag.h"

namespace kiln::runtime::blas {

namespace {

// Of cblas.h: CBLAS_ORDER and CBLAS_TRANSPOSE.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;

class OpenBlasEngine : public Engine {
 public:
  OpenBlasEngine(DeviceImpl& device, std::shared_ptr<const OpenBlas> lib) : lib_(std::move(lib)) {
    // As many as the host's kernels use, so that comparisons are between equal numbers of threads.
    lib_->set_num_threads(std::max(1, device.info().compute_units));
  }

  Status run(const GemmProblem& p, const Operands& x, StreamImpl& stream) override {
    // The usual build of the library takes 32-bit integers.
    for (int64_t size : {p.m, p.n, p.k, p.a_place.ld, p.b_place.ld, p.d_place.ld})
      if (size > INT_MAX)
        return error(ErrorKind::kUnsupported, "openblas takes sizes and strides below 2^31, got {}", p.text());
    auto multiply = [lib = lib_](const GemmProblem& problem, const Operands& operands) {
      for (int64_t i = 0; i < problem.batch; ++i) {
        if (problem.d == DType::kF32)
          gemm<float>(lib->sgemm, problem, operands, i);
        else
          gemm<double>(lib->dgemm, problem, operands, i);
      }
      return Status();
    };
    if (!stream.is_capturing()) return multiply(p, x);
    // Problem and addresses are copied: the caller's are gone when the graph is launched.
    return stream.backend().call([multiply, p, x] { return multiply(p, x); }, stream);
  }
  Result<MatmulPlan> plan(const GemmProblem&, const Operands&, StreamImpl&) override { return MatmulPlan{}; }

 private:
  template <class T, class F>
  static void gemm(F call, const GemmProblem& p, const Operands& x, int64_t i) {
    auto matrix = [i](uint64_t address, const Placement& place) {
      return reinterpret_cast<T*>(address) + i * place.batch_stride;
    };
    auto op = [](const Placement& place) { return place.column_major ? kTrans : kNoTrans; };
    auto narrow = [](int64_t v) { return static_cast<int>(v); };
    call(kRowMajor, op(p.a_place), op(p.b_place), narrow(p.m), narrow(p.n), narrow(p.k), T{1}, matrix(x.a, p.a_place),
         narrow(p.a_place.ld), matrix(x.b, p.b_place), narrow(p.b_place.ld), T{0}, matrix(x.d, p.d_place),
         narrow(p.d_place.ld));
  }

  std::shared_ptr<const OpenBlas> lib_;
};

}  // namespace

Result<Engine*> openblas_engine(DeviceImpl& device) {
  KILN_TRY(std::shared_ptr<const OpenBlas> lib, OpenBlas::open());
  KILN_TRY(
      Companion * engine,
      device.companion("openblas " + lib->library.path(), [&](DeviceImpl& d) -> Result<std::unique_ptr<Companion>> {
        return std::unique_ptr<Companion>(std::make_unique<OpenBlasEngine>(d, lib));
      }));
  return static_cast<Engine*>(engine);
}

}  // namespace kiln::runtime::blas
