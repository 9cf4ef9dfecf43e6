// What copies of tensors on a GPU ask of the driver: the host may not read them, which waits for the GPU.
#include <gtest/gtest.h>

#include <numeric>

#include "kiln/tensor.h"
#include "runtime/device/runtime.h"
#include "support/diag.h"
#include "tests/unit/runtime/cuda/fake/fake_device.h"
#include "tests/unit/runtime/fake_compiler.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

class CudaCopies : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("KILN_CACHE", "0", 1);
    device = *make_runtime(std::make_unique<Jit>(fake_compiler(recorder), nullptr)).open("cuda");
    fake->calls.clear();
  }
  void TearDown() override { unsetenv("KILN_CACHE"); }

  static Shape row_major(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (size_t d = shape.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * shape[d];
    return strides;
  }
  Tensor zeros(const Shape& shape, DType dtype = DType::kF32) const { return *Tensor::zeros(device, dtype, shape); }
  int reads() const { return fake->count("cuMemcpyDtoHAsync"); }

  Recorder recorder;
  Device device;
};

TEST_F(CudaCopies, ConversionsOfAllTypes) {
  for (int f = 0; f < kNumDTypes; ++f)
    for (int t = 0; t < kNumDTypes; ++t) {
      const auto to = static_cast<DType>(t);
      if (is_fp8(to)) continue;
      EXPECT_TRUE(zeros({1 << 14}, static_cast<DType>(f)).to(to).ok()) << f << " " << t;
    }
  EXPECT_EQ(reads(), 0);
  EXPECT_GT(fake->launches.size(), 150U);
}

TEST_F(CudaCopies, ViewsOfManyDimensions) {
  const Shape shape = {4, 4, 4, 4, 4, 4, 4};
  Shape turned = row_major(shape);
  std::reverse(turned.begin(), turned.end());
  const Tensor x = zeros(shape), view = *x.as_strided(shape, turned, 0);
  ASSERT_TRUE(zeros(shape).copy_from(view).ok());
  EXPECT_EQ(fake->launches.size(), 16U) << "five dimensions at once";
  EXPECT_EQ(reads(), 0);
}

TEST_F(CudaCopies, FewElementsOfALargeTensor) {
  const Tensor cache = zeros({8, 1 << 16, 8});
  const Tensor place = *cache.as_strided(Shape{8, 8}, Shape{8 << 16, 1}, 800);
  ASSERT_TRUE(place.copy_from(zeros({8, 8})).ok());
  EXPECT_EQ(reads(), 0) << "the host would read all that lies between them";
}

TEST_F(CudaCopies, OfFewElements) {
  const Tensor small = zeros({4, 8}), large = zeros({1 << 16});
  ASSERT_TRUE(small.as_strided(Shape{8, 4}, Shape{1, 8}, 0)->contiguous().ok());
  ASSERT_TRUE(small.as_strided(Shape{4}, Shape{8}, 1)->fill(3).ok());
  ASSERT_TRUE(large.as_strided(Shape{4}, Shape{8}, 1)->to(DType::kF16).ok());
  EXPECT_EQ(fake->launches.size(), 4U);
  EXPECT_EQ(reads(), 0);
}

TEST_F(CudaCopies, RandomNumbersOfAllTypes) {
  for (int t = 0; t < kNumDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    const Shape shape = {1 << 14};
    EXPECT_TRUE(randint(device, dtype, shape, 0, 2, 7).ok());
    if (!is_float(dtype)) continue;
    EXPECT_TRUE(randn(device, dtype, shape, 7).ok());
    EXPECT_TRUE(rand(device, dtype, shape, 7).ok());
  }
  EXPECT_EQ(fake->count("cuMemcpyHtoDAsync"), 0);
}

TEST_F(CudaCopies, WithinOneTensor) {
  const Tensor x = zeros({1 << 16});
  ASSERT_TRUE(x.as_strided(Shape{60'000}, Shape{1}, 1)->copy_from(*x.as_strided(Shape{60'000}, Shape{1}, 0)).ok());
  ASSERT_TRUE(x.as_strided(Shape{200, 100}, Shape{1, 200}, 0)
                  ->copy_from(*x.as_strided(Shape{200, 100}, Shape{100, 1}, 7))
                  .ok());
  EXPECT_EQ(reads(), 0);
}

}  // namespace
}  // namespace kiln::runtime
