// cuBLAS and cublasLt on a real GPU, against float64: every dtype, layout and epilogue, at small odd sizes and at 512.
#include "kiln/blas.h"
#include "tests/gpu/gpu_test_util.h"
#include "tests/unit/runtime/blas/matmul_check.h"

namespace kiln {
namespace {

using testing::check_product;
using testing::fresh_seed;
using testing::Product;

constexpr MatmulImpl kCudaImpls[] = {MatmulImpl::kCublas, MatmulImpl::kCublasLt, MatmulImpl::kCublasLtBest};

// Gives `device`, or skips with the reason: no GPU, or no library of NVIDIA's.
#define BLAS_OR_SKIP(device)                                \
  GPU_OR_SKIP(device)                                       \
  for (const BlasLibrary& lib : blas_libraries())           \
    if (lib.name != "OpenBLAS" && !lib.available()) {       \
      if (knob_on(Knob::kRequireGpu)) FAIL() << lib.detail; \
      GTEST_SKIP() << lib.detail;                           \
    }

TEST(GpuBlas, TheLibraries) {
  BLAS_OR_SKIP(device);
  for (const BlasLibrary& lib : blas_libraries())
    std::printf("%s %s %s\n", std::string(lib.name).c_str(), lib.version.c_str(), lib.detail.c_str());
}

TEST(GpuBlas, FloatsInEveryLayoutAndRaggedSize) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 15, 17, 33, 64, 65, 127, 130, 257};
  auto size = [&] { return kSizes[random() % std::size(kSizes)]; };
  struct Types {
    DType t;
    std::optional<DType> d;
    bool tf32 = false;
  };
  using enum DType;
  const Types types[] = {{kF16, {}}, {kBF16, {}},      {kF16, kF32}, {kBF16, kF32},
                         {kF32, {}}, {kF32, {}, true}, {kF64, {}}};
  for (MatmulImpl impl : kCudaImpls)
    for (const Types& t : types)
      for (int layout = 0; layout < 4; ++layout)
        for (int i = 0; i < (impl == MatmulImpl::kCublasLtBest ? 1 : 4); ++i) {
          Product p{.a = t.t, .b = t.t, .d = t.d};
          p.m = size(), p.n = size(), p.k = size();
          p.a_transposed = layout & 1, p.b_transposed = layout & 2, p.gap = static_cast<int64_t>(random() % 9);
          p.options.impl = impl, p.options.tf32 = t.tf32;
          check_product(device, p, random());
          if (HasFatalFailure()) return;
        }
}

TEST(GpuBlas, Batches) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  for (MatmulImpl impl : kCudaImpls)
    for (DType t : {DType::kBF16, DType::kF32})
      for (auto [a_batch, b_batch] : {std::pair<int64_t, int64_t>{5, 5}, {5, 0}, {0, 5}, {1, 3}, {3, 1}, {1, 1}})
        for (int layout = 0; layout < 4; ++layout) {
          Product p{.a = t, .b = t, .m = 33, .n = 48, .k = 65, .a_batch = a_batch, .b_batch = b_batch};
          p.a_transposed = layout & 1, p.b_transposed = layout & 2, p.gap = 3;
          p.options.impl = impl;
          check_product(device, p, seed++);
          if (HasFatalFailure()) return;
        }
}

TEST(GpuBlas, Epilogues) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  int unsupported = 0, unsupported_at_odd_sizes = 0;
  for (MatmulImpl impl : {MatmulImpl::kCublasLt, MatmulImpl::kCublasLtBest})
    for (DType t : {DType::kF16, DType::kBF16, DType::kF32})
      for (bool bias : {false, true})
        for (Activation f : {Activation::kNone, Activation::kRelu, Activation::kGeluTanh})
          for (auto [m, n, k] : {std::array<int64_t, 3>{64, 128, 96}, {129, 63, 131}}) {
            Product p{.a = t, .b = t, .m = m, .n = n, .k = k, .bias = bias};
            p.options.impl = impl, p.options.activation = f;
            check_product(device, p, seed++, n % 2 ? &unsupported_at_odd_sizes : &unsupported);
            if (HasFatalFailure()) return;
          }
  EXPECT_EQ(unsupported, 0);
  std::printf("epilogues at odd sizes that cublasLt has no algorithm for: %d of 36\n", unsupported_at_odd_sizes);
}

TEST(GpuBlas, Fp8) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  using enum DType;
  int unsupported = 0;
  for (MatmulImpl impl : {MatmulImpl::kCublasLt, MatmulImpl::kCublasLtBest})
    for (auto [a, b] : {std::pair{kF8E4M3, kF8E4M3}, {kF8E4M3, kF8E5M2}, {kF8E5M2, kF8E4M3}})
      for (DType d : {kBF16, kF16, kF32})
        for (bool fast : {false, true})
          for (auto [m, n, k] : {std::array<int64_t, 3>{16, 32, 64}, {128, 272, 512}, {48, 16, 1040}}) {
            Product p{.a = a, .b = b, .d = d, .m = m, .n = n, .k = k, .b_transposed = true};
            p.options.impl = impl, p.options.fast_accumulation = fast;
            check_product(device, p, seed++, &unsupported);
            if (HasFatalFailure()) return;
          }
  // Hopper has them all.
  if (device.info().target == "sm_90a") {
    EXPECT_EQ(unsupported, 0);
  }
}

TEST(GpuBlas, Int8) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  for (MatmulImpl impl : kCudaImpls)
    for (auto [m, n, k] : {std::array<int64_t, 3>{16, 32, 64}, {64, 132, 260}, {512, 512, 512}}) {
      Product p{.a = DType::kI8, .b = DType::kI8, .m = m, .n = n, .k = k, .b_transposed = true};
      p.options.impl = impl;
      check_product(device, p, seed++);
      if (HasFatalFailure()) return;
    }
}

TEST(GpuBlas, Of512) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  for (MatmulImpl impl : kCudaImpls)
    for (DType t : {DType::kF16, DType::kBF16, DType::kF32})
      for (bool transposed : {false, true}) {
        Product p{.a = t, .b = t, .m = 512, .n = 520, .k = 1000, .b_transposed = transposed};
        p.options.impl = impl;
        check_product(device, p, seed++);
        if (HasFatalFailure()) return;
      }
}

TEST(GpuBlas, OnAStreamOfItsOwn) {
  BLAS_OR_SKIP(device);
  uint64_t seed = fresh_seed();
  Stream stream = *device.new_stream();
  for (MatmulImpl impl : kCudaImpls)
    for (int i = 0; i < 3; ++i) {
      Product p{.a = DType::kBF16, .b = DType::kBF16, .m = 129, .n = 64, .k = 96};
      p.options.impl = impl, p.options.stream = stream;
      check_product(device, p, seed++);
    }
}

TEST(GpuBlas, BestOfManyIsChosenOnce) {
  BLAS_OR_SKIP(device);
  Tensor a = *randn(device, DType::kBF16, std::vector<int64_t>{512, 512}, 1);
  const Tensor& b = a;
  auto plan = plan_matmul(a, b, {.impl = MatmulImpl::kCublasLtBest});
  ASSERT_TRUE(plan.ok()) << render(plan.error());
  EXPECT_GT(plan->offered, 1);
  ASSERT_EQ(plan->us.size(), static_cast<size_t>(plan->offered));
  for (int i = 0; i < plan->offered; ++i) std::printf("%s%.2f us\n", i == plan->chosen ? "* " : "  ", plan->us[i]);
  EXPECT_EQ(plan_matmul(a, b, {.impl = MatmulImpl::kCublasLtBest})->chosen, plan->chosen);
}

TEST(GpuBlas, WhatItDoesNotDoIsSaid) {
  BLAS_OR_SKIP(device);
  auto ints = *Tensor::zeros(device, DType::kI32, std::vector<int64_t>{4, 4});
  auto r = matmul(ints, ints);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().message, "cublas does not multiply i32 @ i32");
  auto odd = *Tensor::zeros(device, DType::kF8E4M3, std::vector<int64_t>{17, 17});
  auto w = *odd.as_strided(std::vector<int64_t>{17, 17}, std::vector<int64_t>{1, 17}, 0);
  auto fp8 = matmul(odd, w, {.impl = MatmulImpl::kCublasLt});
  ASSERT_FALSE(fp8.ok());
  EXPECT_EQ(fp8.error().kind, ErrorKind::kUnsupported) << fp8.error().message;
  EXPECT_FALSE(fp8.error().notes.empty());
}

}  // namespace
}  // namespace kiln
