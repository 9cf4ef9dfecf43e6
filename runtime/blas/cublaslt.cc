// cublasLtMatmul, with the heuristics' first algorithm or the fastest of their candidates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "runtime/blas/cuda_types.h"
#include "runtime/blas/engine.h"
#include "runtime/blas/library.h"
#include "runtime/blas/select.h"

namespace kiln::runtime::blas {

namespace {

// A sample of a short product runs it several times, since the clock of events ticks in half microseconds.
constexpr double kSampleUs = 100;
constexpr int kMaxRepeats = 10;
constexpr uint64_t kSelectSeed = 1;

LtEpilogue epilogue_of(const GemmProblem& p) {
  switch (p.activation) {
    case Activation::kNone:
      return p.has_bias ? LtEpilogue::kBias : LtEpilogue::kDefault;
    case Activation::kRelu:
      return p.has_bias ? LtEpilogue::kReluBias : LtEpilogue::kRelu;
    case Activation::kGeluTanh:
      return p.has_bias ? LtEpilogue::kGeluBias : LtEpilogue::kGelu;
  }
  return LtEpilogue::kDefault;
}

// The descriptors of a problem and what the heuristics said to it.
struct Plan {
  explicit Plan(const CublasLt& l) : lib(l) {}
  ~Plan() {
    for (LtLayout layout : {first, second, out})
      if (layout) lib.layout_destroy(layout);
    if (desc) lib.desc_destroy(desc);
    if (preference) lib.preference_destroy(preference);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const CublasLt& lib;
  LtDesc desc = nullptr;
  LtLayout first = nullptr, second = nullptr, out = nullptr;  // bᵀ, aᵀ, outᵀ
  LtPreference preference = nullptr;
  uint64_t bias = 0;  // the address that desc holds
  std::vector<LtHeuristicResult> algorithms;
  std::optional<Selection> selection;  // once they were timed
};

#define LT_TRY(call, symbol) KILN_BLAS_TRY(lib_, call, symbol)

class CublasLtEngine {
 public:
  CublasLtEngine(DeviceImpl& device, std::shared_ptr<const CublasLt> lib) : device_(device), lib_(std::move(lib)) {}
  ~CublasLtEngine() {
    plans_.clear();
    if (handle_ && device_.backend().native_stream(device_.backend().default_stream()).ok()) lib_->destroy(handle_);
  }
  Status init() {
    KILN_TRY([[maybe_unused]] void* stream, device_.backend().native_stream(device_.backend().default_stream()));
    LT_TRY(create(&handle_), "cublasLtCreate");
    return {};
  }

  Status run(const GemmProblem& p, const Operands& x, StreamImpl& stream, bool best) {
    std::lock_guard lock(mutex_);
    KILN_TRY(Plan * plan, prepared(p, x, stream, best));
    return with_workspace(device_, stream, [&](uint64_t workspace) {
      return enqueue(p, *plan, best ? plan->selection->best : 0, x, stream, workspace);
    });
  }

  Result<MatmulPlan> describe(const GemmProblem& p, const Operands& x, StreamImpl& stream, bool best) {
    std::lock_guard lock(mutex_);
    KILN_TRY(Plan * plan, prepared(p, x, stream, best));
    MatmulPlan out;
    out.offered = static_cast<int>(plan->algorithms.size());
    if (best) out.chosen = plan->selection->best, out.us = plan->selection->us;
    out.workspace_bytes = static_cast<int64_t>(plan->algorithms[static_cast<size_t>(out.chosen)].workspace_bytes);
    return out;
  }

 private:
  Result<Plan*> prepared(const GemmProblem& p, const Operands& x, StreamImpl& stream, bool best) {
    auto found = plans_.find(p);
    if (found == plans_.end()) {
      auto plan = std::make_unique<Plan>(*lib_);
      KILN_CHECK_OK(make_plan(p, x, *plan));
      found = plans_.emplace(p, std::move(plan)).first;
    }
    if (best && !found->second->selection) KILN_CHECK_OK(time_algorithms(p, *found->second, x, stream));
    return found->second.get();
  }

  Status set_layout(LtLayout& layout, DType type, const Placement& place, int64_t rows, int64_t columns,
                    const GemmProblem& p) {
    // In the library's terms: the stored matrix, before any transposition.
    if (place.column_major) std::swap(rows, columns);
    LT_TRY(
        layout_create(&layout, cuda_type(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), place.ld),
        "cublasLtMatrixLayoutCreate");
    if (!p.batched) return {};
    auto batch = static_cast<int32_t>(p.batch);
    if (batch != p.batch) return error(ErrorKind::kUnsupported, "cublaslt takes fewer than 2^31 batches");
    LT_TRY(layout_set(layout, LtLayoutAttribute::kBatchCount, &batch, sizeof batch),
           "cublasLtMatrixLayoutSetAttribute(BATCH_COUNT)");
    LT_TRY(layout_set(layout, LtLayoutAttribute::kStridedBatchOffset, &place.batch_stride, sizeof place.batch_stride),
           "cublasLtMatrixLayoutSetAttribute(STRIDED_BATCH_OFFSET)");
    return {};
  }

  template <class T>
  Status set(Plan& plan, LtDescAttribute attribute, T value, const char* call) {
    LT_TRY(desc_set(plan.desc, attribute, &value, sizeof value), call);
    return {};
  }
  template <class T>
  Status prefer(Plan& plan, LtPreferenceAttribute attribute, T value, const char* call) {
    LT_TRY(preference_set(plan.preference, attribute, &value, sizeof value), call);
    return {};
  }

  // The heuristics look at the pointer's alignment, so it is set before they are asked.
  Status set_bias(Plan& plan, uint64_t address) {
    if (plan.bias == address) return {};
    KILN_CHECK_OK(set(plan, LtDescAttribute::kBiasPointer, reinterpret_cast<const void*>(address),
                      "cublasLtMatmulDescSetAttribute(BIAS_POINTER)"));
    plan.bias = address;
    return {};
  }

  Status make_plan(const GemmProblem& p, const Operands& x, Plan& plan) {
    LT_TRY(desc_create(&plan.desc, compute_type(p), Scales(p).type), "cublasLtMatmulDescCreate");
    KILN_CHECK_OK(set(plan, LtDescAttribute::kTransA, op_of(p.b_place), "cublasLtMatmulDescSetAttribute(TRANSA)"));
    KILN_CHECK_OK(set(plan, LtDescAttribute::kTransB, op_of(p.a_place), "cublasLtMatmulDescSetAttribute(TRANSB)"));
    KILN_CHECK_OK(set(plan, LtDescAttribute::kEpilogue, epilogue_of(p), "cublasLtMatmulDescSetAttribute(EPILOGUE)"));
    if (p.fast_accumulation)
      KILN_CHECK_OK(set(plan, LtDescAttribute::kFastAccum, int8_t{1}, "cublasLtMatmulDescSetAttribute(FAST_ACCUM)"));
    if (p.has_bias) {
      KILN_CHECK_OK(
          set(plan, LtDescAttribute::kBiasDataType, cuda_type(p.d), "cublasLtMatmulDescSetAttribute(BIAS_DATA_TYPE)"));
      KILN_CHECK_OK(set_bias(plan, x.bias));
    }
    KILN_CHECK_OK(set_layout(plan.first, p.b, p.b_place, p.n, p.k, p));
    KILN_CHECK_OK(set_layout(plan.second, p.a, p.a_place, p.k, p.m, p));
    KILN_CHECK_OK(set_layout(plan.out, p.d, p.d_place, p.n, p.m, p));
    LT_TRY(preference_create(&plan.preference), "cublasLtMatmulPreferenceCreate");
    KILN_CHECK_OK(prefer(plan, LtPreferenceAttribute::kMaxWorkspaceBytes, uint64_t{kWorkspaceBytes},
                         "cublasLtMatmulPreferenceSetAttribute(MAX_WORKSPACE_BYTES)"));
    const std::pair<LtPreferenceAttribute, uint32_t> kAlignments[] = {
        {LtPreferenceAttribute::kMinAlignmentA, p.alignment[1]},
        {LtPreferenceAttribute::kMinAlignmentB, p.alignment[0]},
        {LtPreferenceAttribute::kMinAlignmentC, p.alignment[2]},
        {LtPreferenceAttribute::kMinAlignmentD, p.alignment[2]}};
    for (auto [attribute, bytes] : kAlignments)
      KILN_CHECK_OK(prefer(plan, attribute, bytes, "cublasLtMatmulPreferenceSetAttribute(MIN_ALIGNMENT)"));

    plan.algorithms.resize(kMaxAlgorithms);
    int found = 0;
    CublasStatus status = lib_->heuristics(handle_, plan.desc, plan.first, plan.second, plan.out, plan.out,
                                           plan.preference, kMaxAlgorithms, plan.algorithms.data(), &found);
    if (status != CublasStatus::kSuccess && status != CublasStatus::kNotSupported)
      return with_note(lib_->failure(status, "cublasLtMatmulAlgoGetHeuristic"),
                       fmt::format("the product was {}", p.text()));
    plan.algorithms.resize(status == CublasStatus::kSuccess ? static_cast<size_t>(found) : 0);
    std::erase_if(plan.algorithms, [](const LtHeuristicResult& r) {
      return r.state != CublasStatus::kSuccess || r.workspace_bytes > size_t{kWorkspaceBytes};
    });
    if (!plan.algorithms.empty()) return {};
    Diagnostic none = error(ErrorKind::kUnsupported, "cublasLt {} has no algorithm for {}", lib_->version, p.text());
    if (is_fp8(p.a))
      return with_note(std::move(none),
                       "help: fp8 needs a GPU of capability 8.9 or newer, N and K that are multiples of 16, and "
                       "operands that are aligned to 16 bytes");
    if (p.a == DType::kI8)
      return with_note(std::move(none),
                       "help: i8 needs sizes that are multiples of 4, and k contiguous in both operands: b as the "
                       "transposed view w.t() of a row-major w [N, K]");
    return none;
  }

  Status enqueue(const GemmProblem& p, Plan& plan, int algorithm, const Operands& x, StreamImpl& stream,
                 uint64_t workspace) {
    KILN_TRY(void* queue, device_.backend().native_stream(stream));
    if (p.has_bias) KILN_CHECK_OK(set_bias(plan, x.bias));
    Scales scale(p);
    auto* d = reinterpret_cast<void*>(x.d);
    CublasStatus status = lib_->matmul(handle_, plan.desc, scale.alpha, reinterpret_cast<const void*>(x.b), plan.first,
                                       reinterpret_cast<const void*>(x.a), plan.second, scale.beta, d, plan.out, d,
                                       plan.out, &plan.algorithms[static_cast<size_t>(algorithm)].algo,
                                       reinterpret_cast<void*>(workspace), size_t{kWorkspaceBytes}, queue);
    if (status == CublasStatus::kSuccess) return {};
    return with_note(lib_->failure(status, "cublasLtMatmul"), fmt::format("the product was {}", p.text()));
  }

  Status time_algorithms(const GemmProblem& p, Plan& plan, const Operands& x, StreamImpl& stream) {
    return with_workspace(device_, stream, [&](uint64_t workspace) -> Status {
      Backend& backend = device_.backend();
      int repeats = 1;
      auto sample = [&](int algorithm) -> Result<double> {
        // Keeps the GPU busy while the CPU queues what is timed.
        KILN_CHECK_OK(backend.fill(workspace, 0, 1, kWorkspaceBytes, stream));
        KILN_TRY(std::unique_ptr<EventImpl> from, backend.record(stream));
        for (int i = 0; i < repeats; ++i) KILN_CHECK_OK(enqueue(p, plan, algorithm, x, stream, workspace));
        KILN_TRY(std::unique_ptr<EventImpl> to, backend.record(stream));
        KILN_TRY(double ms, backend.elapsed_ms(*from, *to));
        return ms * 1e3 / repeats;
      };
      // The first run of a kernel loads it, so it is the second that says how long one takes.
      for (int i = 0; i < 2; ++i)
        if (auto us = sample(0); us.ok() && i == 1)
          repeats = std::clamp(static_cast<int>(std::ceil(kSampleUs / std::max(*us, 1.0))), 1, kMaxRepeats);
      KILN_TRY(plan.selection, select_best(static_cast<int>(plan.algorithms.size()), sample, kSelectSeed));
      return {};
    });
  }

  DeviceImpl& device_;
  std::shared_ptr<const CublasLt> lib_;
  std::mutex mutex_;  // of the plans, whose bias pointer belongs to one product at a time
  LtHandle handle_ = nullptr;
  std::map<GemmProblem, std::unique_ptr<Plan>> plans_;
};

#undef LT_TRY

// The first and the best share handle and plans.
class FirstOrBest : public Engine {
 public:
  FirstOrBest(std::shared_ptr<CublasLtEngine> engine, bool best) : engine_(std::move(engine)), best_(best) {}
  Status run(const GemmProblem& p, const Operands& x, StreamImpl& stream) override {
    return engine_->run(p, x, stream, best_);
  }
  Result<MatmulPlan> plan(const GemmProblem& p, const Operands& x, StreamImpl& stream) override {
    return engine_->describe(p, x, stream, best_);
  }

 private:
  std::shared_ptr<CublasLtEngine> engine_;
  bool best_;
};

struct BothEngines : Companion {
  explicit BothEngines(const std::shared_ptr<CublasLtEngine>& engine) : first(engine, false), best(engine, true) {}
  FirstOrBest first, best;
};

}  // namespace

Result<Engine*> cublaslt_engine(DeviceImpl& device, bool best) {
  KILN_TRY(std::shared_ptr<const CublasLt> lib, CublasLt::open());
  KILN_TRY(
      Companion * companion,
      device.companion("cublaslt " + lib->library.path(), [&](DeviceImpl& d) -> Result<std::unique_ptr<Companion>> {
        auto engine = std::make_shared<CublasLtEngine>(d, lib);
        KILN_CHECK_OK(engine->init());
        return std::unique_ptr<Companion>(std::make_unique<BothEngines>(engine));
      }));
  auto& both = *static_cast<BothEngines*>(companion);
  return static_cast<Engine*>(best ? &both.best : &both.first);
}

}  // namespace kiln::runtime::blas
