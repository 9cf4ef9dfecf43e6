#include "kiln/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/device/device.h"
#include "tests/unit/open_device.h"

namespace kiln {
namespace {

using Shape = std::vector<int64_t>;

Device cpu() {
  auto device = open_device("cpu");
  EXPECT_TRUE(device.ok());
  return *device;
}

Tensor iota(const Shape& shape, DType dtype = DType::kF32) {
  Tensor t = *Tensor::empty(cpu(), DType::kF64, shape);
  std::vector<double> values(static_cast<size_t>(t.numel()));
  std::iota(values.begin(), values.end(), 0.0);
  return *(*Tensor::from_host(cpu(), DType::kF64, shape, values.data(), values.size() * 8)).to(dtype);
}

TEST(Tensor, ShapesStridesAndAddresses) {
  Tensor t = *Tensor::empty(cpu(), DType::kBF16, Shape{3, 5, 7});
  EXPECT_EQ(t.numel(), 105);
  EXPECT_EQ(Shape(t.strides().begin(), t.strides().end()), (Shape{35, 7, 1}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.address() % 64, 0u);
  EXPECT_EQ(t.bytes_available(), 210);
  Tensor row = *t.as_strided(Shape{7}, Shape{1}, 70);
  EXPECT_EQ(row.address(), t.address() + 140);
  EXPECT_EQ(row.bytes_available(), 70);
  EXPECT_EQ(row.device(), cpu());
}

// More dimensions than lie in the handle itself.
TEST(Tensor, HandlesOfManyDimensionsAreCopiedAndMoved) {
  const Shape shape = {2, 1, 3, 1, 2, 1, 2, 5};
  const Tensor t = iota(shape);
  Tensor copy = t, other = iota({4});
  other = copy;
  Tensor moved = std::move(copy);
  copy = iota({2, 2});
  moved = std::move(moved);
  for (const Tensor& each : {t, other, moved}) {
    EXPECT_EQ(Shape(each.shape().begin(), each.shape().end()), shape);
    EXPECT_EQ(each.to_doubles()->at(119), 119);
  }
  EXPECT_EQ(copy.rank(), 2);
  EXPECT_EQ(other.view(Shape{6, 20})->strides()[0], 20);
}

TEST(Tensor, EmptyAndScalarShapes) {
  Tensor none = *Tensor::zeros(cpu(), DType::kF32, Shape{0, 4});
  EXPECT_EQ(none.numel(), 0);
  EXPECT_TRUE(none.to_bytes()->empty());
  EXPECT_TRUE(none.fill(3).ok());
  EXPECT_EQ(none.view(Shape{4, 0})->numel(), 0);
  Tensor scalar = *Tensor::full(cpu(), DType::kI64, Shape{}, -7);
  EXPECT_EQ(scalar.to_doubles()->at(0), -7);
}

TEST(Tensor, BadShapesAreErrors) {
  EXPECT_EQ(Tensor::empty(cpu(), DType::kF32, Shape{2, -1}).error().message,
            "a tensor's sizes must not be negative, got shape [2, -1]");
  EXPECT_EQ(Tensor::empty(cpu(), DType::kF32, Shape{1L << 40, 1L << 40}).error().kind, ErrorKind::kValue);
  EXPECT_EQ(Tensor::empty(cpu(), DType::kF64, Shape{1L << 61}).error().kind, ErrorKind::kValue);
  auto large = Tensor::empty(cpu(), DType::kF32, Shape{1L << 50});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().kind, ErrorKind::kMemory);
  EXPECT_EQ(large.error().message.find("out of memory on cpu: asked for 4.00 PiB, "), 0u) << large.error().message;
  float x = 0;
  EXPECT_EQ(Tensor::from_host(cpu(), DType::kF32, Shape{2}, &x, 4).error().message,
            "a tensor of shape [2] and dtype f32 has 8 bytes, got 4");
  EXPECT_EQ(Tensor::empty(Device(), DType::kF32, Shape{2}).error().kind, ErrorKind::kDevice);
}

TEST(Tensor, ViewsStayInside) {
  Tensor t = iota({4, 6});
  EXPECT_TRUE(t.as_strided(Shape{6, 4}, Shape{1, 6}, 0).ok());
  EXPECT_FALSE(t.as_strided(Shape{6, 4}, Shape{1, 6}, 1).ok());
  EXPECT_TRUE(t.as_strided(Shape{1000}, Shape{0}, 23).ok());
  EXPECT_FALSE(t.as_strided(Shape{1}, Shape{1}, 24).ok());
  EXPECT_TRUE(t.as_strided(Shape{0}, Shape{1}, 24).ok());
  EXPECT_FALSE(t.as_strided(Shape{2}, Shape{-1}, 5).ok());
  EXPECT_FALSE(t.as_strided(Shape{2}, Shape{1, 1}, 0).ok());
  EXPECT_FALSE(t.as_strided(Shape{1L << 32, 1L << 30}, Shape{1L << 31, 1}, 0).ok());
}

TEST(Tensor, ViewFollowsStrides) {
  Tensor t = iota({4, 6});
  EXPECT_EQ(t.view(Shape{2, -1, 3})->to_doubles()->at(23), 23);
  Tensor transposed = *t.as_strided(Shape{6, 4}, Shape{1, 6}, 0);
  EXPECT_FALSE(transposed.is_contiguous());
  auto flat = transposed.view(Shape{24});
  ASSERT_FALSE(flat.ok());
  EXPECT_EQ(flat.error().message, "a view of shape [24] is not possible: shape [6, 4] has strides [1, 6]");
  Tensor split = *transposed.view(Shape{2, 3, 4, 1});
  EXPECT_EQ(Shape(split.strides().begin(), split.strides().begin() + 3), (Shape{3, 1, 6}));
  EXPECT_EQ(*split.to_doubles(), *transposed.to_doubles());
  EXPECT_FALSE(t.view(Shape{5, -1}).ok());
  EXPECT_FALSE(t.view(Shape{-1, -1}).ok());
  EXPECT_FALSE(t.view(Shape{23}).ok());
  Tensor columns = *t.as_strided(Shape{4, 2, 1, 2}, Shape{6, 2, 99, 1}, 1);
  Tensor joined = *columns.view(Shape{4, 4});
  EXPECT_EQ(*joined.to_doubles(), *columns.to_doubles());
}

TEST(Tensor, StridedCopies) {
  Tensor t = iota({5, 7}), transposed = *t.as_strided(Shape{7, 5}, Shape{1, 7}, 0);
  Tensor packed = *transposed.contiguous();
  ASSERT_TRUE(packed.is_contiguous());
  auto values = *packed.to_doubles();
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 5; ++j) EXPECT_EQ(values[static_cast<size_t>(i * 5 + j)], j * 7 + i);
  // Into a strided view: every second column.
  Tensor target = *Tensor::full(cpu(), DType::kF32, Shape{5, 14}, -1);
  ASSERT_TRUE((*target.as_strided(Shape{5, 7}, Shape{14, 2}, 1)).copy_from(t).ok());
  values = *target.to_doubles();
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 14; ++j) EXPECT_EQ(values[static_cast<size_t>(i * 14 + j)], j % 2 ? i * 7 + j / 2 : -1);
  ASSERT_TRUE((*target.as_strided(Shape{5}, Shape{14}, 0)).fill(9).ok());
  EXPECT_EQ(target.to_doubles()->at(14), 9);
  EXPECT_EQ(target.to_doubles()->at(15), 7);
  EXPECT_EQ(t.copy_from(transposed).error().kind, ErrorKind::kType);
  EXPECT_EQ(t.copy_from(*t.to(DType::kF16)).error().message,
            "copy needs equal shapes and dtypes: f32[5, 7] from f16[5, 7]");
}

TEST(Tensor, FreedTensorsSaySo) {
  Tensor t = iota({4}), view = *t.as_strided(Shape{2}, Shape{1}, 1);
  t.free();
  EXPECT_TRUE(view.is_freed());
  EXPECT_EQ(view.to_bytes().error().message, "the tensor was freed: free() released its memory");
  EXPECT_FALSE(view.fill(1).ok());
  EXPECT_FALSE(view.view(Shape{2}).ok());
  EXPECT_FALSE(iota({2}).copy_from(view).ok());
  t.free();
}

TEST(Tensor, FillsEveryDtype) {
  for (int i = 0; i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    for (double value : {0.0, 1.0, 3.0, -2.0}) {
      if (value < 0 && is_int(dtype) && !is_signed(dtype)) continue;
      Tensor t = *Tensor::full(cpu(), dtype, Shape{33}, value);
      const double stored = dtype == DType::kF8E4B15 ? std::clamp(value, -1.75, 1.75) : value;
      std::vector<double> expected(33, dtype == DType::kI1 ? value != 0 : stored);
      EXPECT_EQ(*t.to_doubles(), expected) << name(dtype);
    }
  }
}

TEST(Tensor, ConversionsRoundAsTorchsAndSaturate) {
  auto convert = [](DType from, double value, DType to) {
    Tensor t = *(*Tensor::full(cpu(), from, Shape{1}, value)).to(to);
    return t.to_doubles()->at(0);
  };
  EXPECT_EQ(convert(DType::kF64, 2.7, DType::kI32), 2);
  EXPECT_EQ(convert(DType::kF64, -2.7, DType::kI8), -2);
  EXPECT_EQ(convert(DType::kF64, 1e20, DType::kI32), 2147483647);
  EXPECT_EQ(convert(DType::kF64, -1e20, DType::kI64), -9223372036854775808.0);
  EXPECT_EQ(convert(DType::kF32, std::nan(""), DType::kI32), 0);
  EXPECT_EQ(convert(DType::kF32, -5, DType::kU8), 251) << "as torch's";
  EXPECT_EQ(convert(DType::kF32, 300, DType::kI8), 44);
  EXPECT_EQ(convert(DType::kF32, 464, DType::kF8E4M3), 448);
  EXPECT_TRUE(std::isnan(convert(DType::kF32, 465, DType::kF8E4M3))) << "as torch's";
  EXPECT_EQ(convert(DType::kF32, 61439, DType::kF8E5M2), 57344);
  EXPECT_EQ(convert(DType::kF32, -61440, DType::kF8E5M2), -INFINITY) << "as torch's";
  EXPECT_TRUE(std::isnan(convert(DType::kI32, 500, DType::kF8E4M3)));
  EXPECT_EQ(convert(DType::kF32, 1e6, DType::kF16), INFINITY);
  EXPECT_EQ(convert(DType::kI32, 300, DType::kU8), 44) << "integers wrap";
  EXPECT_EQ(convert(DType::kI32, -1, DType::kU64), 18446744073709551616.0);
  EXPECT_EQ(convert(DType::kI32, 256, DType::kI1), 1);
  EXPECT_EQ(convert(DType::kF32, 0.25, DType::kI1), 1);
  EXPECT_EQ(convert(DType::kF64, 1.0 + std::ldexp(1, -8) + std::ldexp(1, -30), DType::kBF16), 1)
      << "through f32, as torch's";
  // 2^60 + 2^36 + 1 as f32 must not round twice.
  int64_t odd = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  Tensor t = *(*Tensor::from_host(cpu(), DType::kI64, Shape{1}, &odd, 8)).to(DType::kF32);
  EXPECT_EQ(t.to_doubles()->at(0), static_cast<double>(static_cast<float>(odd)));
}

TEST(Tensor, BoolReadsAnyNonZeroByteAsTrue) {
  const uint8_t bytes[] = {0, 1, 2, 255};
  Tensor t = *Tensor::from_host(cpu(), DType::kI1, Shape{4}, bytes, 4);
  EXPECT_EQ(*t.to_doubles(), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(*(*t.to(DType::kI32)).to_doubles(), (std::vector<double>{0, 1, 1, 1}));
}

TEST(Tensor, LargeCopiesAreSplitOverThreads) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Tensor a = *randint(cpu(), DType::kI32, Shape{3'000'001}, INT32_MIN, INT32_MAX, seed);
  Tensor b = *Tensor::zeros(cpu(), DType::kI32, a.shape());
  ASSERT_TRUE(b.copy_from(a).ok());
  EXPECT_EQ(*a.to_bytes(), *b.to_bytes());
}

TEST(Random, SameForEverySplit) {
  Tensor all = *randn(cpu(), DType::kF32, Shape{50'000}, 42), part = *randn(cpu(), DType::kF32, Shape{100, 99}, 42);
  auto a = *all.to_doubles(), b = *part.to_doubles();
  for (size_t i = 0; i < b.size(); ++i) ASSERT_EQ(a[i], b[i]);
  EXPECT_NE(*randn(cpu(), DType::kF32, Shape{8}, 43)->to_doubles(),
            *randn(cpu(), DType::kF32, Shape{8}, 42)->to_doubles());
}

TEST(Random, FirstNumbersAreFixed) {
  // Scripts print them; a change would change every printed result.
  auto values = *randn(cpu(), DType::kF32, Shape{3}, 0)->to_doubles();
  auto again = *randn(cpu(), DType::kF64, Shape{3}, 0)->to_doubles();
  EXPECT_EQ(values, again);
  EXPECT_EQ(*randint(cpu(), DType::kI32, Shape{4}, 0, 100, 0)->to_doubles(),
            *randint(cpu(), DType::kI64, Shape{4}, 0, 100, 0)->to_doubles());
}

TEST(Random, NormalsHaveTheRightMoments) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  auto values = *randn(cpu(), DType::kF32, Shape{1 << 20}, seed)->to_doubles();
  double m[5] = {};
  int beyond_3 = 0;
  for (double v : values) {
    double p = 1;
    for (double& moment : m) moment += p, p *= v;
    beyond_3 += std::fabs(v) > 3;
  }
  double n = static_cast<double>(values.size());
  EXPECT_NEAR(m[1] / n, 0, 5e-3);
  EXPECT_NEAR(m[2] / n, 1, 1e-2);
  EXPECT_NEAR(m[3] / n, 0, 3e-2);
  EXPECT_NEAR(m[4] / n, 3, 6e-2);
  EXPECT_NEAR(beyond_3 / n, 0.0027, 5e-4);
}

TEST(Random, UniformsAndIntegersCoverTheirRange) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    auto values = *rand(cpu(), dtype, Shape{100'000}, 7)->to_doubles();
    double sum = 0, low = 1, high = 0;
    for (double v : values) sum += v, low = std::min(low, v), high = std::max(high, v);
    EXPECT_GE(low, 0);
    EXPECT_LT(high, 1) << name(dtype) << ": never rounds up to 1";
    EXPECT_NEAR(sum / 1e5, 0.5, bits(dtype) == 8 ? 0.13 : 0.01) << name(dtype);
  }
  auto dice = *randint(cpu(), DType::kU8, Shape{60'000}, 1, 7, 3)->to_doubles();
  std::vector<int> count(8);
  for (double v : dice) ++count.at(static_cast<size_t>(v));
  for (int face = 1; face <= 6; ++face) EXPECT_NEAR(count[static_cast<size_t>(face)], 10'000, 500);
  EXPECT_EQ(randint(cpu(), DType::kI8, Shape{4}, 0, 129, 0).error().message,
            "randint: not every integer in [0, 129) is a value of i8");
  EXPECT_TRUE(randint(cpu(), DType::kI8, Shape{4}, -128, 128, 0).ok());
  EXPECT_EQ(randint(cpu(), DType::kI32, Shape{4}, 5, 5, 0).error().kind, ErrorKind::kValue);
  EXPECT_EQ(rand(cpu(), DType::kI32, Shape{4}, 0).error().kind, ErrorKind::kType);
  auto wide = *randint(cpu(), DType::kI64, Shape{1000}, INT64_MIN, INT64_MAX, 1)->to_doubles();
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -8e18);
}

TEST(Device, NamesAndErrors) {
  EXPECT_EQ(cpu().name(), "cpu");
  EXPECT_FALSE(cpu().is_cuda());
  EXPECT_EQ(cpu().info().target, "host");
  EXPECT_GT(cpu().info().compute_units, 0);
  EXPECT_GT(cpu().free_bytes(), 0);
  for (const char* bad : {"gpu", "cuda:", "cuda:x", "cuda:-1", "", "cuda:0x"}) {
    auto device = open_device(bad);
    ASSERT_FALSE(device.ok()) << bad;
    EXPECT_EQ(device.error().kind, ErrorKind::kDevice);
  }
  EXPECT_EQ(open_device("gpu").error().message, "unknown device 'gpu': devices are cpu, cuda and cuda:N");
  EXPECT_EQ(Device::list().back(), "cpu");
}

// Scripts leave `with stream` blocks in any order, and a stream may live by its guard alone.
TEST(Device, GuardsOfStreamsEndInAnyOrder) {
  auto cpu = open_device("cpu");
  ASSERT_TRUE(cpu.ok());
  const uint64_t usual = cpu->current_stream().impl()->id();
  auto first = std::make_unique<StreamGuard>(*cpu->new_stream());
  auto second = std::make_unique<StreamGuard>(*cpu->new_stream());
  const uint64_t inner = cpu->current_stream().impl()->id();
  first.reset();  // and with it its stream, which the second one would go back to
  second.reset();
  EXPECT_EQ(cpu->current_stream().impl()->id(), usual);
  EXPECT_NE(inner, usual);
}

TEST(Device, EventsAndStreamsOfTheCpu) {
  Device device = cpu();
  Stream stream = *device.new_stream();
  Event from = *device.record(stream);
  Tensor t = *Tensor::zeros(device, DType::kF32, Shape{1 << 20});
  Event to = *device.record();
  EXPECT_TRUE(stream.wait(from).ok());
  EXPECT_TRUE(stream.synchronize().ok());
  double ms = *device.elapsed_ms(from, to);
  EXPECT_GE(ms, 0);
  EXPECT_LT(ms, 60'000);
  EXPECT_FALSE(device.elapsed_ms(Event(), to).ok());
}

}  // namespace
}  // namespace kiln
