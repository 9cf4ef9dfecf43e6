// OpenBLAS on the CPU: every layout and ragged size against float64, and the words of every error.
#include <gtest/gtest.h>

#include <thread>

#include "kiln/interrupt.h"
#include "runtime/blas/library.h"
#include "support/stop.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/blas/matmul_check.h"

namespace kiln {
namespace {

using testing::check_product;
using testing::fresh_seed;
using testing::Product;
using testing::Shape;

class OpenBlasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto lib = runtime::blas::OpenBlas::open();
    if (!lib.ok()) GTEST_SKIP() << lib.error().message;
  }
  Tensor zeros(Shape shape, DType dtype = DType::kF32) { return *Tensor::zeros(cpu, dtype, shape); }
  std::string message(const Tensor& a, const Tensor& b, const MatmulOptions& options = {}) {
    auto r = matmul(a, b, options);
    EXPECT_FALSE(r.ok());
    if (r.ok()) return {};
    std::string text = r.error().message;
    for (const Note& n : r.error().notes) text += " | " + n.message;
    return text;
  }
  Device cpu = *open_device("cpu");
};

TEST_F(OpenBlasTest, ALongProductIsNotWaitedForWithCtrlC) {
  InterruptListener listens;
  const Tensor large = zeros({1024, 1024}), small = zeros({64, 64});
  request_interrupt();
  auto cut = matmul(large, large);
  auto whole = matmul(small, small);
  clear_interrupt();
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().kind, ErrorKind::kInterrupted);
  EXPECT_TRUE(whole.ok());
  EXPECT_TRUE(matmul(large, large).ok());
}

TEST_F(OpenBlasTest, EveryLayoutAndRaggedSize) {
  uint64_t seed = fresh_seed();
  std::mt19937_64 random(seed);
  constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 13, 16, 31, 64, 65, 127, 129, 255, 257};
  auto size = [&] { return kSizes[random() % std::size(kSizes)]; };
  for (DType dtype : {DType::kF32, DType::kF64})
    for (int layout = 0; layout < 4; ++layout) {
      for (int i = 0; i < 12; ++i) {
        Product p{.a = dtype, .b = dtype};
        p.m = size(), p.n = size(), p.k = size();
        p.a_transposed = layout & 1, p.b_transposed = layout & 2;
        p.gap = static_cast<int64_t>(random() % 4);
        check_product(cpu, p, random());
        if (HasFatalFailure()) return;
      }
      for (auto [a_batch, b_batch] : {std::pair<int64_t, int64_t>{3, 3}, {3, 0}, {0, 3}, {1, 4}, {4, 1}, {1, 1}}) {
        Product p{.a = dtype, .b = dtype};
        p.m = size(), p.n = size(), p.k = size(), p.a_batch = a_batch, p.b_batch = b_batch;
        p.a_transposed = layout & 1, p.b_transposed = layout & 2, p.gap = 2;
        check_product(cpu, p, random());
        if (HasFatalFailure()) return;
      }
    }
  Product large{.m = 512, .n = 512, .k = 512};
  check_product(cpu, large, random());
}

TEST_F(OpenBlasTest, EmptyDimensions) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{0, 3, 4}, {3, 0, 4}, {3, 4, 0}}) {
    Product p{.m = m, .n = n, .k = k};
    check_product(cpu, p, 1);
    p.a_batch = 2;
    check_product(cpu, p, 1);
  }
  Product none{.m = 2, .n = 2, .k = 2, .a_batch = 0};
  Tensor r = *matmul(zeros({0, 2, 3}), zeros({3, 4}));
  EXPECT_EQ(Shape(r.shape().begin(), r.shape().end()), (Shape{0, 2, 4}));
}

TEST_F(OpenBlasTest, MakesItsOutput) {
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 2, 2};
  Tensor x = *Tensor::from_host(cpu, DType::kF32, Shape{2, 3}, a, sizeof a);
  Tensor y = *Tensor::from_host(cpu, DType::kF32, Shape{3, 2}, b, sizeof b);
  EXPECT_EQ(*matmul(x, y)->to_doubles(), (std::vector<double>{7, 8, 16, 17}));
  auto plan = plan_matmul(x, y);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->offered, 1);
}

TEST_F(OpenBlasTest, SeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (uint64_t i = 0; i < 5; ++i)
        check_product(cpu, Product{.m = 61, .n = 67, .k = 71, .gap = static_cast<int64_t>(t)}, 100 * t + i);
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(OpenBlasTest, ErrorsOfShapes) {
  EXPECT_EQ(message(zeros({2, 3}), zeros({4, 5})),
            "matmul of a [2, 3] and b [4, 5]: the inner dimensions 3 and 4 differ");
  EXPECT_EQ(message(zeros({3}), zeros({3, 5})),
            "matmul takes matrices [M, K] and [K, N] or batches of them, got a [3] and b [3, 5]");
  EXPECT_EQ(message(zeros({2, 2, 3, 4}), zeros({4, 5})),
            "matmul takes matrices [M, K] and [K, N] or batches of them, got a [2, 2, 3, 4] and b [4, 5]");
  EXPECT_EQ(message(zeros({2, 3, 4}), zeros({3, 4, 5})),
            "matmul of a [2, 3, 4] and b [3, 4, 5]: the batches 2 and 3 differ");
  EXPECT_EQ(message(zeros({2, 3}), zeros({3, 4}), {.out = zeros({4, 2})}),
            "matmul of a [2, 3] and b [3, 4] gives [2, 4], and out is [4, 2]");
  Tensor out = *zeros({4, 2}).as_strided(Shape{2, 4}, Shape{1, 2}, 0);
  EXPECT_EQ(message(zeros({2, 3}), zeros({3, 4}), {.out = out}),
            "matmul: out of shape [2, 4] must be row-major, and its strides are [1, 2]");
  Tensor every_second = *zeros({8, 8}).as_strided(Shape{4, 4}, Shape{16, 2}, 0);
  EXPECT_EQ(message(zeros({2, 4}), every_second),
            "matmul: b of shape [4, 4] has strides [16, 2]: BLAS needs one of the last two to be 1, and the other to "
            "step over it | help: take a copy with b.contiguous()");
  Tensor repeated = *zeros({1, 4}).as_strided(Shape{3, 4}, Shape{0, 1}, 0);
  EXPECT_EQ(message(repeated, zeros({4, 4})),
            "matmul: a of shape [3, 4] has strides [0, 1]: BLAS needs one of the last two to be 1, and the other to "
            "step over it | help: take a copy with a.contiguous()");
}

TEST_F(OpenBlasTest, ErrorsOfDtypesAndOptions) {
  auto of = [&](DType t) { return zeros({2, 2}, t); };
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF16)),
            "matmul: a is f32 and b is f16: the dtypes must be equal (or e4m3 with e5m2)");
  EXPECT_EQ(message(of(DType::kF16), of(DType::kF16)),
            "openblas does not multiply f16 @ f16 | help: openblas multiplies f32 -> f32, f64 -> f64");
  EXPECT_EQ(message(of(DType::kI64), of(DType::kI64)),
            "openblas does not multiply i64 @ i64 | help: openblas multiplies f32 -> f32, f64 -> f64");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.out_dtype = DType::kF64}),
            "openblas does not multiply f32 @ f32 -> f64 | help: openblas multiplies f32 -> f32, f64 -> f64");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.out_dtype = DType::kF32, .out = of(DType::kF64)}),
            "matmul: out is f64, and out_dtype asks for f32");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.bias = zeros({2})}),
            "openblas has no epilogues: bias | help: impl cublaslt or cublaslt-best has them, on a GPU");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.activation = Activation::kGeluTanh}),
            "openblas has no epilogues: gelu | help: impl cublaslt or cublaslt-best has them, on a GPU");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.bias = zeros({3})}),
            "matmul of a [2, 2] and b [2, 2] takes a bias of shape [2], contiguous, got [3] with strides [1]");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.tf32 = true}),
            "openblas multiplies f32 in f32 only, not in tf32");
  EXPECT_EQ(message(of(DType::kF64), of(DType::kF64), {.tf32 = true}),
            "matmul: tf32 is a way to multiply f32, and the operands are f64");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.fast_accumulation = true}),
            "matmul: fast accumulation is a way to multiply fp8, and the operands are f32");
  EXPECT_EQ(message(of(DType::kF32), of(DType::kF32), {.impl = MatmulImpl::kCublasLt}),
            "cublaslt multiplies on a GPU, and the operands are on cpu | help: move them with .to(cuda), or take impl "
            "openblas");
  Tensor freed = of(DType::kF32);
  freed.free();
  EXPECT_EQ(message(freed, of(DType::kF32)), "matmul: a was freed: free() released its memory");
  EXPECT_EQ(message(of(DType::kF32), freed), "matmul: b was freed: free() released its memory");
  EXPECT_EQ(message(Tensor(), of(DType::kF32)), "matmul: a is an empty tensor handle");
}

TEST(BlasNames, GoThereAndBack) {
  for (MatmulImpl impl : kMatmulImpls) EXPECT_EQ(parse_matmul_impl(name(impl)), impl);
  for (Activation f : {Activation::kNone, Activation::kRelu, Activation::kGeluTanh})
    EXPECT_EQ(parse_activation(name(f)), f);
  EXPECT_FALSE(parse_matmul_impl("mkl"));
  EXPECT_FALSE(parse_activation("tanh"));
}

}  // namespace
}  // namespace kiln
