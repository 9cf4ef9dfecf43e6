// cublasGemmEx and cublasGemmStridedBatchedEx.
#include <fmt/format.h>

#include <mutex>

#include "runtime/blas/cuda_types.h"
#include "runtime/blas/engine.h"
#include "runtime/blas/library.h"

namespace kiln::runtime::blas {

namespace {

class CublasEngine : public Engine {
 public:
  CublasEngine(DeviceImpl& device, std::shared_ptr<const Cublas> lib) : device_(device), lib_(std::move(lib)) {}
  ~CublasEngine() override {
    if (handle_ && device_.backend().native_stream(device_.backend().default_stream()).ok()) lib_->destroy(handle_);
  }
  Status init() {
    KILN_TRY([[maybe_unused]] void* stream, device_.backend().native_stream(device_.backend().default_stream()));
    KILN_BLAS_TRY(lib_, create(&handle_), "cublasCreate");
    return {};
  }

  Status run(const GemmProblem& p, const Operands& x, StreamImpl& stream) override {
    std::lock_guard lock(mutex_);
    KILN_TRY(void* queue, device_.backend().native_stream(stream));
    return with_workspace(device_, stream,
                          [&](uint64_t workspace) { return enqueue(p, x, queue, reinterpret_cast<void*>(workspace)); });
  }
  Result<MatmulPlan> plan(const GemmProblem&, const Operands&, StreamImpl&) override { return MatmulPlan{}; }

 private:
  Status enqueue(const GemmProblem& p, const Operands& x, void* queue, void* workspace) {
    if (queue != queue_ || workspace != workspace_) {
      KILN_BLAS_TRY(lib_, set_stream(handle_, queue), "cublasSetStream");
      // After the stream, which puts the library's own workspace back.
      KILN_BLAS_TRY(lib_, set_workspace(handle_, workspace, kWorkspaceBytes), "cublasSetWorkspace");
      queue_ = queue, workspace_ = workspace;
    }
    Scales scale(p);
    auto* a = reinterpret_cast<const void*>(x.a);
    auto* b = reinterpret_cast<const void*>(x.b);
    auto* d = reinterpret_cast<void*>(x.d);
    CublasStatus status;
    if (!p.batched)
      status = lib_->gemm(handle_, op_of(p.b_place), op_of(p.a_place), p.n, p.m, p.k, scale.alpha, b, cuda_type(p.b),
                          p.b_place.ld, a, cuda_type(p.a), p.a_place.ld, scale.beta, d, cuda_type(p.d), p.d_place.ld,
                          compute_type(p), CublasAlgo::kDefault);
    else
      status = lib_->gemm_batched(handle_, op_of(p.b_place), op_of(p.a_place), p.n, p.m, p.k, scale.alpha, b,
                                  cuda_type(p.b), p.b_place.ld, p.b_place.batch_stride, a, cuda_type(p.a), p.a_place.ld,
                                  p.a_place.batch_stride, scale.beta, d, cuda_type(p.d), p.d_place.ld,
                                  p.d_place.batch_stride, p.batch, compute_type(p), CublasAlgo::kDefault);
    if (status == CublasStatus::kSuccess) return {};
    Diagnostic failed = lib_->failure(status, p.batched ? "cublasGemmStridedBatchedEx" : "cublasGemmEx");
    return with_note(std::move(failed), fmt::format("the product was {}", p.text()));
  }

  DeviceImpl& device_;
  std::shared_ptr<const Cublas> lib_;
  std::mutex mutex_;  // of the handle, whose stream and workspace belong to one product at a time
  CublasHandle handle_ = nullptr;
  void *queue_ = nullptr, *workspace_ = nullptr;
};

}  // namespace

Result<Engine*> cublas_engine(DeviceImpl& device) {
  KILN_TRY(std::shared_ptr<const Cublas> lib, Cublas::open());
  KILN_TRY(Companion * engine,
           device.companion("cublas " + lib->library.path(), [&](DeviceImpl& d) -> Result<std::unique_ptr<Companion>> {
             auto made = std::make_unique<CublasEngine>(d, lib);
             KILN_CHECK_OK(made->init());
             return std::unique_ptr<Companion>(std::move(made));
           }));
  return static_cast<Engine*>(engine);
}

}  // namespace kiln::runtime::blas
