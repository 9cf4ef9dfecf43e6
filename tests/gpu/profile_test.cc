// Profiles on a real GPU: what CUPTI sees of work whose shape is known.
#include "profiler/session/session.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "kiln/graph.h"
#include "kiln/kernel.h"
#include "kiln/tensor.h"
#include "profiler/cupti/nvtx_listener.h"
#include "support/diag.h"
#include "support/dynlib.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::profiler {
namespace {

using runtime::launch_ptx;
using runtime::load_ptx;
using runtime::LoadedKernel;
using Shape = std::vector<int64_t>;

constexpr int64_t kN = 1 << 20;
// A GPU's clock is converted to the host's, and that takes something off the order of events on both.
constexpr Ns kClockError = 2000;

struct Affine {
  std::shared_ptr<LoadedKernel> kernel;
  Tensor in, out;
  std::vector<uint64_t> slots;
};

void make_affine(const Device& device, Affine& a) {
  auto kernel = load_ptx(device, "affine", runtime::affine_ptx(), 5);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  a.kernel = *kernel;
  a.in = *Tensor::zeros(device, DType::kF32, Shape{kN});
  a.out = *Tensor::zeros(device, DType::kF32, Shape{kN});
  const float scale = 2;
  uint32_t bits = 0;
  std::memcpy(&bits, &scale, sizeof bits);
  a.slots = {a.out.address(), a.in.address(), static_cast<uint64_t>(kN), bits, bits};
}

// What runs `work` under a profile shows; it must be complete.
Timeline profile(const Device& device, const std::function<Status()>& work, SessionOptions options = {}) {
  auto session = ProfileSession::start(device, options);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : render(session.error()));
  Status done = work();
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : render(done.error()));
  auto timeline = (*session)->stop();
  EXPECT_TRUE(timeline.ok()) << (timeline.ok() ? "" : render(timeline.error()));
  if (!timeline.ok()) return {};
  EXPECT_EQ(timeline->dropped, 0);
  for (const Unknown& u : timeline->unknown) ADD_FAILURE() << "unknown: " << u.what << ": " << u.why;
  return *std::move(timeline);
}

std::vector<const Work*> works(const Timeline& t, WorkKind kind, std::string_view name) {
  std::vector<const Work*> found;
  for (const Work& w : t.work)
    if (w.kind == kind && w.name == name) found.push_back(&w);
  return found;
}

std::string describe(const Timeline& t) {
  std::string text = "work:";
  for (const Work& w : t.work)
    text += fmt::format("\n  {} of {} bytes, graph {} node {:x}", w.name, w.bytes, w.graph, w.graph_node);
  return text;
}

const ApiCall& call_of(const Timeline& t, const Work& w) { return t.calls.at(static_cast<size_t>(w.call)); }

// In order, within the profile, and joined with the call that queued it.
void expect_sane(const Timeline& t, const Work& w, std::string_view call) {
  SCOPED_TRACE(w.name);
  EXPECT_FALSE(w.is_lost());
  EXPECT_LT(w.start, w.end);
  EXPECT_GE(w.start, t.start - kClockError);
  EXPECT_LE(w.end, t.end + kClockError);
  ASSERT_GE(w.call, 0) << "no call has its correlation";
  const ApiCall& c = call_of(t, w);
  EXPECT_EQ(c.name, call);
  EXPECT_EQ(c.result, 0u);
  EXPECT_EQ(c.thread, static_cast<uint32_t>(gettid()));
  EXPECT_LE(c.start, w.start + kClockError);
  if (w.kind != WorkKind::kKernel || w.graph) return;
  EXPECT_GT(w.queued, 0);
  EXPECT_GE(w.queued, c.start);
  EXPECT_GE(w.submitted, w.queued);
  EXPECT_LE(w.submitted, w.start + kClockError);
}

TEST(GpuProfile, KernelsCopiesAndFills) {
  GPU_OR_SKIP(device);
  Affine a;
  ASSERT_NO_FATAL_FAILURE(make_affine(device, a));
  ASSERT_OK(launch_ptx(device, *a.kernel, {8192, 1, 1}, a.slots));
  std::vector<float> host(kN, 1.0f);
  Timeline t = profile(device, [&]() -> Status {
    KILN_TRY(Tensor x, Tensor::from_host(device, DType::kF32, Shape{kN}, host.data(), kN * sizeof(float)));
    KILN_CHECK_OK(a.in.copy_from(x));
    KILN_CHECK_OK(launch_ptx(device, *a.kernel, {8192, 1, 1}, a.slots));
    KILN_CHECK_OK(launch_ptx(device, *a.kernel, {40, 2, 1}, a.slots));
    KILN_CHECK_OK(a.in.fill(3));
    KILN_TRY([[maybe_unused]] auto bytes, a.out.to_bytes());
    return {};
  });
  EXPECT_EQ(t.device, "cuda:0");

  auto kernels = works(t, WorkKind::kKernel, "affine");
  ASSERT_EQ(kernels.size(), 2u);
  Ns busy = 0;
  for (const Work* k : kernels) {
    expect_sane(t, *k, "cuLaunchKernel");
    EXPECT_EQ(k->block, (std::array<uint32_t, 3>{128, 1, 1}));
    // CUPTI tells what is allocated: a multiple of 8, 16 at least.
    EXPECT_GE(k->registers, a.kernel->registers());
    EXPECT_LE(k->registers, std::max(16, (a.kernel->registers() + 7) / 8 * 8));
    EXPECT_EQ(k->local_bytes, a.kernel->local_bytes());
    EXPECT_EQ(k->static_shared, 0);
    EXPECT_EQ(k->dynamic_shared, 0);
    EXPECT_EQ(k->graph, 0u);
    EXPECT_EQ(k->device, 0u);
    busy += k->duration();
  }
  EXPECT_EQ(kernels[0]->grid, (std::array<uint32_t, 3>{8192, 1, 1}));
  EXPECT_EQ(kernels[1]->grid, (std::array<uint32_t, 3>{40, 2, 1}));
  EXPECT_GT(kernels[0]->duration(), kernels[1]->duration());
  EXPECT_LE(busy, t.end - t.start);
  EXPECT_LE(kernels[0]->end, kernels[1]->start) << "one stream is in order";

  struct {
    const char *name, *call;
    WorkKind kind;
  } const kOthers[] = {{"copy HtoD", "cuMemcpyHtoDAsync", WorkKind::kCopy},
                       {"copy DtoD", "cuMemcpyDtoDAsync", WorkKind::kCopy},
                       {"copy DtoH", "cuMemcpyDtoHAsync", WorkKind::kCopy},
                       {"fill", "cuMemsetD32Async", WorkKind::kFill}};
  for (const auto& other : kOthers) {
    auto found = works(t, other.kind, other.name);
    ASSERT_EQ(found.size(), 1u) << other.name;
    expect_sane(t, *found[0], other.call);
    EXPECT_EQ(found[0]->bytes, kN * 4) << other.name;
    EXPECT_EQ(found[0]->registers, -1);
    ASSERT_GE(found[0]->span, 0) << other.name << " has no span of the host around its call";
  }
  bool waited = std::any_of(t.waits.begin(), t.waits.end(), [](const Wait& w) { return w.kind == "stream"; });
  EXPECT_TRUE(waited);
}

TEST(GpuProfile, AKernelOfKilnsLiesInItsLaunch) {
  GPU_OR_SKIP(device);
  auto kernel = Kernel::from_source(R"(
import triton
import triton.language as tl

@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
)",
                                    "add_one.py");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{kN});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(kN), Arg(int64_t{1024})};
  // The first launch is in the profile too: it compiles and loads.
  Timeline t = profile(device, [&]() -> Status {
    for (int i = 0; i < 3; ++i) KILN_CHECK_OK(kernel->launch({kN / 1024, 1, 1}, args));
    return {};
  });
  auto kernels = works(t, WorkKind::kKernel, "add_one");
  ASSERT_EQ(kernels.size(), 3u);
  for (const Work* k : kernels) {
    expect_sane(t, *k, call_of(t, *k).name);
    EXPECT_TRUE(call_of(t, *k).name.starts_with("cuLaunchKernel"));
    ASSERT_GE(k->span, 0);
    int span = k->span;
    while (span >= 0 && t.spans.at(static_cast<size_t>(span)).step != trace::Step::kLaunch)
      span = t.spans[static_cast<size_t>(span)].parent;
    ASSERT_GE(span, 0) << "its call lies in no launch";
    EXPECT_EQ(t.spans[static_cast<size_t>(span)].name, "add_one");
  }
  EXPECT_TRUE(
      std::any_of(t.calls.begin(), t.calls.end(), [](const ApiCall& c) { return c.name.starts_with("cuModuleLoad"); }));
}

TEST(GpuProfile, AGraphShowsItsNodes) {
  GPU_OR_SKIP(device);
  Affine a;
  ASSERT_NO_FATAL_FAILURE(make_affine(device, a));
  Tensor small = *Tensor::zeros(device, DType::kF32, Shape{1000});
  auto graph = Graph::capture(device, [&]() -> Status {
    KILN_CHECK_OK(launch_ptx(device, *a.kernel, {8192, 1, 1}, a.slots));
    KILN_CHECK_OK(a.in.fill(1));
    KILN_CHECK_OK(small.fill(1));
    return launch_ptx(device, *a.kernel, {16, 1, 1}, a.slots);
  });
  ASSERT_TRUE(graph.ok()) << render(graph.error());
  Timeline t = profile(device, [&]() -> Status {
    KILN_CHECK_OK(launch_ptx(device, *a.kernel, {1, 1, 1}, a.slots));
    for (int i = 0; i < 2; ++i) KILN_CHECK_OK(graph->launch());
    return {};
  });
  SCOPED_TRACE(describe(t));
  auto kernels = works(t, WorkKind::kKernel, "affine");
  ASSERT_EQ(kernels.size(), 5u);
  EXPECT_EQ(kernels[0]->graph, 0u);
  for (size_t i = 1; i < 5; ++i) {
    expect_sane(t, *kernels[i], "cuGraphLaunch");
    EXPECT_NE(kernels[i]->graph, 0u);
    EXPECT_EQ(kernels[i]->queued, 0) << "a node has no queue time of its own";
    EXPECT_EQ(kernels[i]->grid[0], i % 2 ? 8192u : 16u);
  }
  EXPECT_EQ(kernels[1]->graph_node, kernels[3]->graph_node);
  EXPECT_NE(kernels[1]->graph_node, kernels[2]->graph_node);
  EXPECT_EQ(kernels[1]->correlation, kernels[2]->correlation);
  EXPECT_NE(kernels[1]->correlation, kernels[3]->correlation);
  // Large fills of a graph that was made before the profile are told as what the driver runs for them: "memset32".
  auto fills = works(t, WorkKind::kFill, "fill");
  ASSERT_GE(fills.size(), 2u);
  for (const Work* f : fills) EXPECT_EQ(f->graph, kernels[1]->graph);
  EXPECT_EQ(t.work.size(), 1u + 2 * static_cast<size_t>(graph->size())) << "each node, once per launch";
}

TEST(GpuProfile, TwoStreamsOverlap) {
  GPU_OR_SKIP(device);
  auto spin = load_ptx(device, "spin", runtime::spin_ptx(), 2, 0, 1);
  ASSERT_TRUE(spin.ok()) << render(spin.error());
  Tensor out = *Tensor::zeros(device, DType::kI32, Shape{1});
  Stream first = *device.new_stream(), second = *device.new_stream();
  constexpr uint64_t kCycles = 2'000'000;  // a millisecond or more
  std::vector<uint64_t> slots = {out.address(), kCycles};
  Timeline t = profile(device, [&]() -> Status {
    KILN_CHECK_OK(launch_ptx(device, **spin, {1, 1, 1}, slots, first));
    return launch_ptx(device, **spin, {1, 1, 1}, slots, second);
  });
  auto kernels = works(t, WorkKind::kKernel, "spin");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0]->stream, kernels[1]->stream);
  EXPECT_LT(kernels[1]->start, kernels[0]->end);
  for (const Work* k : kernels) {
    expect_sane(t, *k, "cuLaunchKernel");
    EXPECT_GT(k->duration(), 500'000);
    EXPECT_EQ(k->block[0], 32u);
  }
}

// Before the first thread.
[[maybe_unused]] const bool kIsListening = (cupti::name_nvtx_listener(), true);

// libnvtx3interop is NVTX's own functions as a library of its own: to CUPTI one like any that annotates its work.
TEST(GpuProfile, RangesOfALibraryCome) {
  GPU_OR_SKIP(device);
  Affine a;
  ASSERT_NO_FATAL_FAILURE(make_affine(device, a));
  ASSERT_OK(launch_ptx(device, *a.kernel, {1, 1, 1}, a.slots));
  const std::string names[] = {"/usr/local/cuda/lib64/libnvtx3interop.so.1", "libnvtx3interop.so.1"};
  std::optional<DynLib> library;
  std::string why;
  Timeline t = profile(device, [&]() -> Status {
    auto opened = DynLib::open(names, "NVTX");
    if (!opened.ok()) {
      why = opened.error().message;
      return {};
    }
    library.emplace(*std::move(opened));
    auto* push = library->function<int (*)(const char*)>("nvtxRangePushA");
    auto* pop = library->function<int (*)()>("nvtxRangePop");
    if (!push || !pop) return error(ErrorKind::kDevice, "it has no nvtxRangePushA and nvtxRangePop");
    push("outer");
    KILN_CHECK_OK(launch_ptx(device, *a.kernel, {2, 1, 1}, a.slots));
    push("inner");
    KILN_CHECK_OK(launch_ptx(device, *a.kernel, {3, 1, 1}, a.slots));
    pop();
    pop();
    return launch_ptx(device, *a.kernel, {4, 1, 1}, a.slots);
  });
  if (!library) GTEST_SKIP() << why;
  auto range = [&](int span) { return span < 0 ? std::string("none") : t.spans[static_cast<size_t>(span)].name; };
  auto kernels = works(t, WorkKind::kKernel, "affine");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(range(kernels[0]->span), "outer");
  EXPECT_EQ(range(kernels[1]->span), "inner");
  EXPECT_EQ(range(kernels[2]->span), "none");
  ASSERT_GE(kernels[1]->span, 0);
  const Span& inner = t.spans[static_cast<size_t>(kernels[1]->span)];
  EXPECT_EQ(inner.step, trace::Step::kRange);
  EXPECT_EQ(range(inner.parent), "outer");
}

TEST(GpuProfile, OneAtATime) {
  GPU_OR_SKIP(device);
  auto first = ProfileSession::start(device);
  ASSERT_TRUE(first.ok()) << render(first.error());
  auto second = ProfileSession::start(device);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kValue);
  auto t = (*first)->stop();
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(t->unknown.empty());
  // One that is thrown away leaves nothing behind.
  { auto dropped = ProfileSession::start(device); }
  Timeline after = profile(device, [] { return Status{}; });
  EXPECT_TRUE(after.work.empty());
}

TEST(GpuProfile, TenSessionsOf100000LaunchesLoseNothing) {
  GPU_OR_SKIP(device);
  Affine a;
  ASSERT_NO_FATAL_FAILURE(make_affine(device, a));
  constexpr size_t kLaunches = 100'000;
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    Timeline t = profile(device,
                         [&]() -> Status {
                           for (size_t i = 0; i < kLaunches; ++i)
                             KILN_CHECK_OK(launch_ptx(device, *a.kernel, {1, 1, 1}, a.slots));
                           return {};
                         },
                         {.details = 0});
    EXPECT_EQ(t.work.size(), kLaunches);
    size_t lost = 0, apart = 0, backwards = 0, overlapping = 0;
    Ns busy = 0, last_end = 0;
    for (const Work& w : t.work) {
      lost += w.is_lost();
      apart += w.call < 0;
      backwards += w.end <= w.start;
      overlapping += w.start < last_end;
      last_end = w.end;
      busy += w.duration();
    }
    EXPECT_EQ(lost, 0u);
    EXPECT_EQ(apart, 0u);
    EXPECT_EQ(backwards, 0u);
    EXPECT_EQ(overlapping, 0u);
    EXPECT_LE(busy, t.end - t.start);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace kiln::profiler
