// Kernel times as a profile has them, for bench/ncu_compare: the same launches, whoever looks at them.
//
// Each launch is alone: the caches hold what a read of 256 MB left in them (read, so that nothing is left to be written
// back), the GPU has been idle for some milliseconds as it is under Nsight Compute, and a range of NVTX stands around
// the launch and nothing else.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/bench.h"
#include "kernels/case.h"
#include "kernels/matmul_persistent/matmul.h"
#include "profiler/cupti/nvtx.h"
#include "profiler/session/session.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

constexpr int kWarmup = 5, kTimes = 20;
constexpr int64_t kFlushed = int64_t{1} << 26, kFlushBlock = 4096;  // f32: five times the L2 of an H200
constexpr std::chrono::milliseconds kIdle{3};

constexpr const char* kFlushSource = R"(import triton
import triton.language as tl


@triton.jit
def read_all(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i)))
)";

struct Timed {
  std::string size;
  std::function<Status()> run;
};

struct CaseSize {
  const char* name;
  DType dtype;
  kernels::Shape shape;
};
// From 20 us to a millisecond on an H200; the first is far shorter, and shows what the two clocks take to differ by.
const CaseSize kCases[] = {
    {"vector_add", DType::kF32, {1024}},
    {"vector_add", DType::kF32, {int64_t{3} << 21}},
    {"vector_add", DType::kF32, {int64_t{1} << 24}},
    {"vector_add", DType::kF32, {int64_t{1} << 27}},
    {"pointwise_chain", DType::kBF16, {int64_t{1} << 26}},
    {"softmax", DType::kBF16, {8192, 8192}},
    {"layernorm", DType::kBF16, {16384, 4096}},
};
constexpr int64_t kProducts[] = {2048, 4096, 6144};

Result<Timed> make(const Context& context, kernels::Sources& sources, const CaseSize& which) {
  KILN_TRY(kernels::Problem made,
           kernels::find_case(which.name)->make(sources, {context.device, which.dtype, which.shape, 1}));
  auto problem = std::make_shared<kernels::Problem>(std::move(made));
  return Timed{kernels::to_string(which.shape), [problem] { return problem->run(); }};
}

/// The square product of bf16 matrices with its epilogue, gelu(a · b + bias).
Result<Timed> make_product(const Context& context, kernels::Sources& sources, int64_t n) {
  const int64_t shape[] = {n, n}, row[] = {n};
  KILN_TRY(Tensor a, Tensor::full(context.device, DType::kBF16, shape, 0.5));
  KILN_TRY(Tensor b, Tensor::full(context.device, DType::kBF16, shape, 0.25));
  KILN_TRY(Tensor bias, Tensor::full(context.device, DType::kBF16, row, 0.125));
  KILN_TRY(Tensor out, Tensor::zeros(context.device, DType::kBF16, shape));
  KILN_TRY(kernels::Launch made, kernels::matmul_launch(sources, a, b, out, {bias, "gelu_tanh"}));
  auto launch = std::make_shared<kernels::Launch>(std::move(made));
  return Timed{kernels::to_string(kernels::Shape{n, n, n}), [launch] { return launch->run(); }};
}

/// A row of the launches of `timed`; what the device did not show is said instead.
Status time_one(const Context& context, const Timed& timed, const std::function<Status()>& flush,
                report::Table& table) {
  for (int i = 0; i < kWarmup; ++i) KILN_CHECK_OK(timed.run());
  KILN_TRY(auto session, profiler::ProfileSession::start(context.device, {.details = 0}));
  Status ran;
  for (int i = 0; i < kTimes && ran.ok(); ++i) {
    ran = flush();
    if (ran.ok()) ran = context.device.synchronize();
    std::this_thread::sleep_for(kIdle);
    profiler::nvtx::push("kernel-times");
    if (ran.ok()) ran = timed.run();
    if (ran.ok()) ran = context.device.synchronize();
    profiler::nvtx::pop();
  }
  KILN_TRY(profiler::Timeline t, session->stop());
  KILN_CHECK_OK(std::move(ran));
  std::vector<double> us;
  std::string kernel;
  for (const profiler::Work& w : t.work)
    if (w.kind == profiler::WorkKind::kKernel && !w.is_lost() && w.name != "read_all")
      us.push_back(static_cast<double>(w.duration()) / 1e3), kernel = w.name;
  if (us.empty()) {
    for (const auto& u : t.unknown) context.skip(fmt::format("kernel-times, {}: {}: {}", timed.size, u.what, u.why));
    return {};
  }
  const profiler::Summary s = profiler::summarize(us);
  table.add_row({kernel, timed.size, report::Cell::of(s.min, 2), report::Cell::of(s.median, 2),
                 report::Cell::of(s.max, 2), report::Cell::of(int64_t{s.n})});
  context.add_json(nlohmann::ordered_json{
      {"group", "kernel-times"},
      {"kernel", kernel},
      {"size", timed.size},
      {"min_us", s.min},
      {"median_us", s.median},
      {"max_us", s.max},
      {"n", s.n}}.dump());
  return {};
}

}  // namespace

Status bench_kernel_times(const Context& context) {
  if (!context.device.is_cuda()) {
    context.skip("kernel-times: needs a GPU");
    return {};
  }
  const int64_t flushed[] = {kFlushed}, sums[] = {kFlushed / kFlushBlock};
  KILN_TRY(Tensor x, Tensor::zeros(context.device, DType::kF32, flushed));
  KILN_TRY(Tensor out, Tensor::zeros(context.device, DType::kF32, sums));
  KILN_TRY(Kernel read_all, Kernel::from_source(kFlushSource, "bench/kernel_times.py", "read_all"));
  const std::vector<std::optional<Arg>> args = {x, out, kFlushBlock};
  auto flush = [&] { return read_all.launch({kFlushed / kFlushBlock, 1, 1}, args); };
  report::Table table({{"kernel", "", report::Align::kLeft},
                       {"size", "", report::Align::kLeft},
                       {"min", "us"},
                       {"median", "us"},
                       {"max", "us"},
                       {"n", ""}});
  kernels::Sources sources;
  KILN_CHECK_OK(flush());
  for (const CaseSize& which : kCases) {
    KILN_TRY(Timed timed, make(context, sources, which));
    KILN_CHECK_OK(time_one(context, timed, flush, table));
  }
  for (int64_t n : kProducts) {
    KILN_TRY(Timed timed, make_product(context, sources, n));
    KILN_CHECK_OK(time_one(context, timed, flush, table));
  }
  if (!table.rows().empty()) context.show(table);
  return {};
}

}  // namespace kiln::bench
