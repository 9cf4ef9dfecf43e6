// The cuBLAS and cublasLt engines over fakes that multiply as the real ones document it: column-major.
#ifdef FAKE_CUDA

#include <dlfcn.h>

#include <cstdlib>
#include <thread>

#include "kiln/graph.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/blas/fake/fake_cublas.h"
#include "tests/unit/runtime/blas/matmul_check.h"

namespace kiln {
namespace {

using runtime::blas::CublasStatus;
using testing::check_product;
using testing::fresh_seed;
using testing::Product;
using testing::Shape;

constexpr MatmulImpl kCudaImpls[] = {MatmulImpl::kCublas, MatmulImpl::kCublasLt, MatmulImpl::kCublasLtBest};

class CublasFakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("KILN_CUDA_LIBRARY", FAKE_CUDA, 1);
    setenv("KILN_CUBLAS_LIBRARY", FAKE_CUBLAS, 1);
    setenv("KILN_CUBLASLT_LIBRARY", FAKE_CUBLAS, 1);
    void* library = dlopen(FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    fake = reinterpret_cast<FakeCublas* (*)()>(dlsym(library, "fake_cublas"))();
    int handles = fake->handles;
    *fake = FakeCublas();
    fake->handles = handles;
    auto opened = open_device("cuda:0");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    device = *opened;
  }
  Tensor zeros(Shape shape, DType dtype = DType::kF16) { return *Tensor::zeros(device, dtype, shape); }
  std::string message(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
    auto r = matmul(a, b, options);
    EXPECT_FALSE(r.ok());
    if (r.ok()) return {};
    std::string text = r.error().message;
    for (const Note& n : r.error().notes) text += " | " + n.message;
    return text;
  }

  FakeCublas* fake = nullptr;
  Device device;
};

TEST_F(CublasFakeTest, EveryDtypeLayoutAndBatch) {
  uint64_t seed = fresh_seed();
  fake->offered = 2;
  std::mt19937_64 random(seed);
  auto size = [&] { return static_cast<int64_t>(1 + random() % 20); };
  struct Types {
    DType a, b;
    std::optional<DType> d;
  };
  using enum DType;
  const Types types[] = {{kF16, kF16, {}},       {kBF16, kBF16, {}},       {kF16, kF16, kF32},
                         {kF32, kF32, {}},       {kF64, kF64, {}},         {kI8, kI8, {}},
                         {kF8E4M3, kF8E4M3, {}}, {kF8E4M3, kF8E5M2, kF16}, {kF8E5M2, kF8E4M3, kF32}};
  for (MatmulImpl impl : kCudaImpls)
    for (const Types& t : types)
      for (int layout = 0; layout < 4; ++layout)
        for (auto [a_batch, b_batch] : {std::pair<int64_t, int64_t>{0, 0}, {3, 3}, {0, 2}, {4, 1}}) {
          if (is_fp8(t.a) && (impl == MatmulImpl::kCublas || layout != 2)) continue;
          if (impl == MatmulImpl::kCublasLtBest && t.a != kBF16) continue;  // plans as kCublasLt does, and times it
          Product p{.a = t.a, .b = t.b, .d = t.d};
          p.m = size(), p.n = size(), p.k = size(), p.a_batch = a_batch, p.b_batch = b_batch;
          p.a_transposed = layout & 1, p.b_transposed = layout & 2, p.gap = static_cast<int64_t>(random() % 3);
          p.options.impl = impl;
          check_product(device, p, random());
          if (HasFatalFailure()) return;
        }
}

TEST_F(CublasFakeTest, Epilogues) {
  uint64_t seed = fresh_seed();
  fake->offered = 1;
  for (MatmulImpl impl : {MatmulImpl::kCublasLt, MatmulImpl::kCublasLtBest})
    for (bool bias : {false, true})
      for (Activation f : {Activation::kNone, Activation::kRelu, Activation::kGeluTanh})
        for (int64_t batch : {0, 2}) {
          Product p{.a = DType::kF32, .b = DType::kF32, .m = 7, .n = 11, .k = 5, .a_batch = batch, .bias = bias};
          p.options.impl = impl, p.options.activation = f;
          check_product(device, p, seed++);
        }
  Tensor x = zeros({4, 4});
  EXPECT_EQ(message(x, x, {.impl = MatmulImpl::kCublas, .activation = Activation::kRelu}),
            "cublas has no epilogues: relu | help: impl cublaslt or cublaslt-best has them, on a GPU");
}

TEST_F(CublasFakeTest, WorkspaceStreamAlignmentAndBias) {
  Tensor a = zeros({8, 24}), b = zeros({24, 8}), bias = zeros({8});
  Stream stream = *device.new_stream();
  for (MatmulImpl impl : kCudaImpls) {
    fake->workspace_bytes = 0, fake->stream = nullptr;
    ASSERT_TRUE(matmul(a, b, {.impl = impl}).ok());
    EXPECT_EQ(fake->workspace_bytes, size_t{32} << 20) << name(impl);
    void* before = fake->stream;
    EXPECT_NE(before, nullptr);
    ASSERT_TRUE(matmul(a, b, {.impl = impl, .stream = stream}).ok());
    EXPECT_NE(fake->stream, before) << name(impl);
    EXPECT_EQ(fake->workspace_bytes, size_t{32} << 20) << "a new stream takes the library's own workspace back";
  }
  // The library's A is our b. Ours is shifted by 16 bytes here, the output by 4.
  Tensor shifted = *zeros({24 * 8 + 8}).as_strided(Shape{24, 8}, Shape{8, 1}, 8);
  Tensor out = *zeros({66}).as_strided(Shape{8, 8}, Shape{8, 1}, 2);
  ASSERT_TRUE(matmul(a, shifted, {.impl = MatmulImpl::kCublasLt, .out = out, .bias = bias}).ok());
  EXPECT_EQ(fake->alignments[0], 16u);
  EXPECT_EQ(fake->alignments[1], 256u);
  EXPECT_EQ(fake->alignments[2], 4u);
  EXPECT_EQ(fake->alignments[3], 4u);
  EXPECT_EQ(fake->bias_when_asked, bias.address());
}

// Each replay writes to the workspace, whatever was allocated since.
TEST_F(CublasFakeTest, AGraphKeepsTheWorkspaceOfItsProducts) {
  Tensor a = zeros({8, 24}), b = zeros({24, 8}), out = zeros({8, 8});
  for (MatmulImpl impl : kCudaImpls) {
    ASSERT_TRUE(matmul(a, b, {.impl = impl, .out = out}).ok());
    const MemoryStats before = device.memory();
    auto product = [&]() -> Status {
      auto done = matmul(a, b, {.impl = impl, .out = out});
      return done.ok() ? Status() : Status(done.error());
    };
    auto graph = Graph::capture(device, [&]() -> Status {
      KILN_CHECK_OK(product());
      return product();
    });
    ASSERT_TRUE(graph.ok()) << render(graph.error());
    EXPECT_EQ(device.memory().reserved - before.reserved, int64_t{32} << 20) << "one for both, the graph's own";
    graph->reset();
    EXPECT_EQ(device.memory().allocated, before.allocated);
  }
}

TEST_F(CublasFakeTest, PlansAreKept) {
  Tensor a = zeros({6, 10}), b = zeros({10, 6}), bias = zeros({6}),
         other_bias = *Tensor::full(device, DType::kF16, Shape{6}, 3);
  MatmulOptions options{.impl = MatmulImpl::kCublasLt, .bias = bias};
  EXPECT_EQ((*matmul(a, b, options)->to_doubles())[0], 0);
  int asked = fake->heuristics;
  options.bias = other_bias;
  EXPECT_EQ((*matmul(a, b, options)->to_doubles())[0], 3) << "the plan is the same, the bias is this call's";
  EXPECT_EQ(fake->heuristics, asked);
  auto plan = plan_matmul(a, b, options);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->offered, 5);
  EXPECT_EQ(plan->chosen, 0);
  EXPECT_EQ(plan->workspace_bytes, 16 << 20);
  EXPECT_EQ(fake->heuristics, asked);
  ASSERT_TRUE(matmul(b, a, {.impl = MatmulImpl::kCublasLt}).ok());
  EXPECT_EQ(fake->heuristics, asked + 1) << "another problem";
}

TEST_F(CublasFakeTest, FirstAndBest) {
  Tensor a = zeros({3, 17}), b = zeros({17, 3});
  fake->failing = {0, 1, 2, 4};
  auto plan = plan_matmul(a, b, {.impl = MatmulImpl::kCublasLtBest});
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  EXPECT_EQ(plan->chosen, 3);
  EXPECT_TRUE(std::isnan(plan->us[0]) && plan->us[3] > 0);
  fake->failing.clear();
  fake->run.clear();
  ASSERT_TRUE(matmul(a, b, {.impl = MatmulImpl::kCublasLtBest}).ok());
  EXPECT_EQ(fake->run, std::vector<int>{3}) << "timed once, then kept";
  ASSERT_TRUE(matmul(a, b, {.impl = MatmulImpl::kCublasLt}).ok());
  EXPECT_EQ(fake->run, (std::vector<int>{3, 0})) << "the heuristics' first";
  fake->failing = {0, 1, 2, 3, 4};
  EXPECT_EQ(message(b, a, {.impl = MatmulImpl::kCublasLtBest}),
            "cublasLtMatmul failed: CUBLAS_STATUS_NOT_SUPPORTED (the fake library says so) | the product was f16 [17, "
            "3] @ f16 [3, 17] -> f16");
}

TEST_F(CublasFakeTest, ManyAlgorithmsAreAsked) {
  fake->offered = 100;
  auto plan = plan_matmul(zeros({2, 19}), zeros({19, 2}), {.impl = MatmulImpl::kCublasLtBest});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->offered, 32);
  EXPECT_EQ(plan->us.size(), 32u);
}

TEST_F(CublasFakeTest, ErrorsOfTheLibraries) {
  Tensor a = zeros({4, 4});
  fake->fail = CublasStatus::kExecutionFailed;
  auto failed = matmul(a, a, {.impl = MatmulImpl::kCublas});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kDevice);
  EXPECT_EQ(failed.error().message, "cublasGemmEx failed: CUBLAS_STATUS_EXECUTION_FAILED (the fake library says so)");
  fake->fail = CublasStatus::kAllocFailed;
  EXPECT_EQ(matmul(a, a, {.impl = MatmulImpl::kCublas}).error().kind, ErrorKind::kMemory);
  fake->fail = CublasStatus::kNotSupported;
  EXPECT_EQ(matmul(a, a, {.impl = MatmulImpl::kCublas}).error().kind, ErrorKind::kUnsupported);
  EXPECT_TRUE(matmul(a, a).ok()) << "and then it works again; cuBLAS is the default on a GPU";

  fake->offered = 0;
  EXPECT_EQ(message(zeros({5, 7}), zeros({7, 5}), {.impl = MatmulImpl::kCublasLt}),
            "cublasLt 13.4.2 has no algorithm for f16 [5, 7] @ f16 [7, 5] -> f16");
  auto fp8 = [&](Shape s) { return zeros(std::move(s), DType::kF8E4M3); };
  Tensor w = *fp8({5, 7}).as_strided(Shape{7, 5}, Shape{1, 7}, 0);
  EXPECT_EQ(
      message(fp8({5, 7}), w, {.impl = MatmulImpl::kCublasLt}),
      "cublasLt 13.4.2 has no algorithm for f8e4m3 [5, 7] @ f8e4m3 [7, 5] (transposed) -> bf16 | help: fp8 needs a "
      "GPU of capability 8.9 or newer, N and K that are multiples of 16, and operands that are aligned to 16 "
      "bytes");
  EXPECT_EQ(
      message(fp8({16, 16}), fp8({16, 16}), {.impl = MatmulImpl::kCublasLt}),
      "cublaslt multiplies fp8 only where k is contiguous in both operands: b is laid out the other way | help: a "
      "row-major [M, K], and b as the transposed view w.t() of a row-major w [N, K]");
  EXPECT_EQ(message(zeros({4, 4}), *Tensor::zeros(*open_device("cpu"), DType::kF16, Shape{4, 4}), {}),
            "matmul: a is on cuda:0 and b on cpu | help: move one with .to(device)");
  EXPECT_EQ(message(a, a, {.impl = MatmulImpl::kOpenBlas}).find("openblas does not multiply f16"), 0u);
  setenv("KILN_CUBLAS_LIBRARY", "/no/such/libcublas.so.13", 1);
  EXPECT_EQ(message(a, a, {}), "no cuBLAS: tried /no/such/libcublas.so.13");
}

TEST_F(CublasFakeTest, SeveralThreadsAtOnce) {
  uint64_t seed = fresh_seed();
  std::vector<std::thread> threads;
  for (MatmulImpl impl : kCudaImpls)
    for (uint64_t t = 0; t < 2; ++t)
      threads.emplace_back([&, impl, t] {
        for (uint64_t i = 0; i < 4; ++i) {
          Product p{.a = DType::kF32, .b = DType::kF32, .m = 9, .n = 10, .k = 11};
          p.options.impl = impl;
          check_product(device, p, seed + 10 * t + i);
        }
      });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace kiln

#endif
