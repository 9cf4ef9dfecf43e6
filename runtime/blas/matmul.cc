// The public API: validates once, then passes the problem to the library's engine.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>

#include "runtime/blas/engine.h"
#include "runtime/blas/library.h"
#include "support/aside.h"
#include "support/diag.h"
#include "support/trace.h"

namespace kiln {

namespace {

using namespace runtime;
using namespace runtime::blas;

constexpr std::string_view kActivationNames[] = {"none", "relu", "gelu"};

template <class E, size_t N>
std::optional<E> parse_name(const std::string_view (&names)[N], std::string_view text) {
  auto found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<E>(found - std::begin(names));
}

Result<Engine*> engine_of(DeviceImpl& device, MatmulImpl impl) {
  const bool cuda = info(impl).on_gpu();
  if (cuda != device.is_cuda())
    return with_note(
        error(ErrorKind::kUnsupported, "{} multiplies on {}, and the operands are on {}", name(impl),
              cuda ? "a GPU" : "the CPU", device.name()),
        fmt::format("help: move them with .to({}), or take impl {}", cuda ? "cuda" : "cpu", name(usual_impl(!cuda))));
  switch (info(impl).library) {
    case BlasLibraryId::kCublas:
      return cublas_engine(device);
    case BlasLibraryId::kCublasLt:
      return cublaslt_engine(device, info(impl).has('B'));
    case BlasLibraryId::kOpenBlas:
      return openblas_engine(device);
  }
  KILN_UNREACHABLE("a library outside of the enum");
}

// Everything that running and planning share.
struct Call {
  GemmProblem problem;
  MatmulImpl impl = MatmulImpl::kCublas;
  Operands operands;
  Tensor out;
  std::shared_ptr<DeviceImpl> device;
  StreamImpl* stream = nullptr;
  Engine* engine = nullptr;
};

uint32_t alignment_of(uint64_t address) {
  constexpr int kMost = 8;  // 256 bytes, what the libraries' heuristics assume
  return address == 0 ? 1u << kMost : 1u << std::min(std::countr_zero(address), kMost);
}

// Later work of `second` comes after the present work of `first`: memory is handed out in the current stream's order.
Status order(DeviceImpl& device, StreamImpl& first, StreamImpl& second) {
  if (&first == &second) return {};
  KILN_TRY(std::unique_ptr<EventImpl> event, device.backend().record(first));
  return second.wait(*event);
}

Result<Call> prepare(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  if (!a || a.is_freed()) {  // make_problem has the words for it, but the device is asked first
    KILN_TRY([[maybe_unused]] GemmProblem none, make_problem(a, b, options, usual_impl(/*gpu=*/false)));
  }
  Call call;
  call.device = a.storage()->device;
  const MatmulImpl impl = call.impl = options.impl.value_or(usual_impl(call.device->is_cuda()));
  KILN_TRY(call.problem, make_problem(a, b, options, impl));
  GemmProblem& p = call.problem;
  KILN_TRY(call.engine, engine_of(*call.device, impl));
  call.stream = &call.device->stream_or_current(options.stream);
  if (&call.stream->backend() != &call.device->backend())
    return error(ErrorKind::kValue, "matmul: the stream belongs to another device than {}", call.device->name());
  call.out = options.out;
  if (!call.out) {
    std::vector<int64_t> shape = {p.m, p.n};
    if (p.batched) shape.insert(shape.begin(), p.batch);
    KILN_TRY(call.out, Tensor::empty(a.device(), p.d, shape));
    KILN_CHECK_OK(order(*call.device, call.device->backend().current_stream(), *call.stream));
  }
  call.operands = {a.address(), b.address(), call.out.address(), options.bias ? options.bias.address() : 0};
  p.alignment = {alignment_of(call.operands.a), alignment_of(call.operands.b), alignment_of(call.operands.d),
                 alignment_of(call.operands.bias)};
  if (call.stream != &call.device->backend().default_stream())
    for (const Tensor* t : {&a, &b, &options.bias, static_cast<const Tensor*>(&call.out)})
      if (*t) t->storage()->used_on(*call.stream);
  return call;
}

/// A library's product on the CPU ends no sooner than it is done. One that takes long is left to itself with Ctrl-C;
/// the hand-over to a thread is some thousandth of such a one.
Status run_interruptibly(const Call& call, const Tensor& a, const Tensor& b, const Tensor& bias) {
  constexpr double kLong_flop = 2e9;  // 20 to 100 ms
  const GemmProblem& p = call.problem;
  const double flop = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                      static_cast<double>(p.batch);
  if (call.device->is_cuda() || call.stream->is_capturing() || flop < kLong_flop)
    return call.engine->run(p, call.operands, *call.stream);
  auto status = std::make_shared<Status>();
  if (run_aside([call, a, b, bias, status] { *status = call.engine->run(call.problem, call.operands, *call.stream); }))
    return std::move(*status);
  return error(ErrorKind::kInterrupted, "matmul was stopped; what it writes is incomplete");
}

bool is_empty(const GemmProblem& p) { return p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0; }

}  // namespace

std::optional<MatmulImpl> parse_matmul_impl(std::string_view text) {
  for (MatmulImpl impl : kMatmulImpls)
    if (name(impl) == text) return impl;
  return std::nullopt;
}
std::string matmul_impl_names(std::optional<BlasLibraryId> library) {
  std::string out;
  for (const MatmulImplInfo& row : kMatmulImplRows)
    if (!library || row.library == *library) out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}
std::string_view name(Activation activation) { return kActivationNames[static_cast<size_t>(activation)]; }
std::optional<Activation> parse_activation(std::string_view text) {
  return parse_name<Activation>(kActivationNames, text);
}

Result<Tensor> matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  KILN_TRY(Call call, prepare(a, b, options));
  const GemmProblem& p = call.problem;
  if (is_empty(p)) {
    // Sums of nothing are 0; the libraries disagree about such sizes.
    if (p.has_bias && call.out.numel() > 0)
      return error(ErrorKind::kUnsupported, "matmul: a bias is not added to a product over an empty dimension: {}",
                   p.text());
    if (call.out.numel() == 0) return call.out;
    StreamImpl& fills = call.device->backend().current_stream();
    KILN_CHECK_OK(order(*call.device, *call.stream, fills));
    KILN_CHECK_OK(call.out.fill(0));
    KILN_CHECK_OK(order(*call.device, fills, *call.stream));
    return call.out;
  }
  if (call.stream->is_capturing())
    for (const Tensor* t : {&a, &b, &options.bias, static_cast<const Tensor*>(&call.out)})
      if (*t) call.stream->keep_for_graph(t->storage());
  trace::Scope span(trace::kSpans, trace::Step::kLibrary, name(call.impl));
  if (trace::Event* event = span.event()) event->detail = p.text();
  KILN_CHECK_OK(run_interruptibly(call, a, b, options.bias));
  return call.out;
}

bool matmul_takes_strides(const Tensor& t) { return t.rank() >= 2 && t.rank() <= 3 && place(t, false).has_value(); }

Result<MatmulPlan> plan_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  KILN_TRY(Call call, prepare(a, b, options));
  if (is_empty(call.problem)) return MatmulPlan{};
  return call.engine->plan(call.problem, call.operands, *call.stream);
}

std::vector<BlasLibrary> blas_libraries() {
  std::vector<BlasLibrary> out;
  auto add = [&](std::string_view title, BlasLibraryId id, const auto& opened) {
    BlasLibrary row{title, matmul_impl_names(id), "", ""};
    if (opened.ok())
      row.version = (*opened)->version, row.detail = (*opened)->library.path();
    else
      row.detail = opened.error().message;
    out.push_back(std::move(row));
  };
  add("cuBLAS", BlasLibraryId::kCublas, Cublas::open());
  add("cublasLt", BlasLibraryId::kCublasLt, CublasLt::open());
  add("OpenBLAS", BlasLibraryId::kOpenBlas, OpenBlas::open());
  return out;
}

}  // namespace kiln
