// The kernels that fill, convert and copy on a GPU, run on the CPU and compared bit for bit with the C++ they stand
// for.
#include "runtime/device/device_kernels.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

#include "kiln/kernel.h"
#include "runtime/tensor/convert.h"
#include "tests/unit/open_device.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

class DeviceKernels : public testing::Test {
 protected:
  void SetUp() override {
    setenv("KILN_CACHE", "0", 1);
    cpu = *open_device("cpu");
  }
  void TearDown() override { unsetenv("KILN_CACHE"); }
  Device cpu;
  uint64_t seed = std::random_device{}();
};

TEST_F(DeviceKernels, RandomNumbersAreTheSameBits) {
  SCOPED_TRACE(seed);
  const int64_t n = 70'001;
  std::vector<RandomSpec> specs;
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    specs.push_back({RandomKind::kNormal, dtype, seed, 0, 0});
    specs.push_back({RandomKind::kUniform, dtype, seed, 0, 0});
  }
  for (DType dtype : {DType::kI8, DType::kU16, DType::kI32, DType::kU64, DType::kF8E4M3, DType::kBF16})
    specs.push_back({RandomKind::kInteger, dtype, seed, 3, 100});
  specs.push_back({RandomKind::kInteger, DType::kI1, seed, 0, 2});
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64})
    specs.push_back({RandomKind::kInteger, dtype, seed, -(int64_t{1} << 40), uint64_t{1} << 41});
  specs.push_back({RandomKind::kInteger, DType::kI64, seed, -(int64_t{1} << 60), uint64_t{1} << 61});
  for (const RandomSpec& spec : specs) {
    ASSERT_TRUE(has_random_kernel(spec));
    Tensor t = *Tensor::zeros(cpu, spec.dtype, Shape{n});
    Status status = random_on_device(t, spec);
    ASSERT_TRUE(status.ok()) << render(status.error());
    std::vector<std::byte> expected(static_cast<size_t>(n * size_of(spec.dtype)));
    random_elements(spec, 0, n, expected.data());
    auto got = *t.to_bytes();
    int64_t different = 0;
    for (size_t i = 0; i < expected.size(); ++i) different += expected[i] != got[i];
    EXPECT_EQ(different, 0) << "kind " << static_cast<int>(spec.kind) << " of " << name(spec.dtype);
  }
}

TEST_F(DeviceKernels, RandomIntegersOfFp8OnlyWhereTheyFit) {
  EXPECT_TRUE(has_random_kernel({RandomKind::kInteger, DType::kF8E4M3, seed, -448, 897}));
  EXPECT_FALSE(has_random_kernel({RandomKind::kInteger, DType::kF8E4M3, seed, -448, 898}));
  EXPECT_FALSE(has_random_kernel({RandomKind::kInteger, DType::kF8E4M3, seed, INT64_MIN, 2}));
  EXPECT_TRUE(has_random_kernel({RandomKind::kInteger, DType::kF8E5M2, seed, 0, 57345}));
}

TEST_F(DeviceKernels, ConversionsAreTheSameBits) {
  SCOPED_TRACE(seed);
  const int64_t n = 5'003;
  int pairs = 0;
  for (int f = 0; f < kNumDTypes; ++f)
    for (int t = 0; t < kNumDTypes; ++t) {
      auto from = static_cast<DType>(f), to = static_cast<DType>(t);
      if (from == to || !has_convert_kernel(to)) continue;
      ++pairs;
      Tensor source = is_float(from) ? *randn(cpu, from, Shape{n}, seed)
                                     : *randint(cpu, DType::kI64, Shape{n}, INT64_MIN, INT64_MAX, seed)->to(from);
      Tensor target = *Tensor::zeros(cpu, to, Shape{n});
      Status status = convert_on_device(target, source);
      ASSERT_TRUE(status.ok()) << render(status.error());
      EXPECT_EQ(*target.to_bytes(), *source.to(to)->to_bytes()) << name(from) << " to " << name(to);
    }
  EXPECT_GT(pairs, 150);
}

TEST_F(DeviceKernels, StridedCopies) {
  SCOPED_TRACE(seed);
  Tensor data = *randint(cpu, DType::kI32, Shape{6, 5, 4, 7, 3}, -1000, 1000, seed);
  struct Case {
    Shape shape, strides;
  };
  for (const Case& c : {Case{{3, 7, 4, 5, 6}, {1, 3, 21, 84, 420}},
                        {{420, 6}, {1, 420}},
                        {{5, 6}, {84, 420}},
                        {{9, 9}, {0, 1}},
                        {{2520}, {1}},
                        {{}, {}},
                        {{1, 6, 1, 5}, {9, 420, 9, 84}}}) {
    Tensor view = *data.as_strided(c.shape, c.strides, 0);
    Tensor target = *Tensor::zeros(cpu, DType::kI32, c.shape);
    Status status = copy_on_device(target, view);
    ASSERT_TRUE(status.ok()) << render(status.error());
    EXPECT_EQ(*target.to_bytes(), *view.to_bytes());
  }
  // More than a tile either way, turned around and not, in any order of dimensions.
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int round = 0; round < 20; ++round) {
    Shape sizes(1 + random() % 5), strides(sizes.size());
    int64_t span = 1, count = 1;
    for (int64_t& size : sizes) {
      size = 1 + static_cast<int64_t>(random() % (count < 500 ? 150 : 9));
      count *= size;
    }
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (size_t d : order) strides[d] = span, span *= sizes[d] + static_cast<int64_t>(random() % 2);
    Tensor view = *randint(cpu, DType::kI16, Shape{span}, -1000, 1000, seed)->as_strided(sizes, strides, 0);
    Tensor target = *Tensor::zeros(cpu, DType::kI16, sizes);
    ASSERT_TRUE(copy_on_device(target, view).ok());
    EXPECT_EQ(*target.to_bytes(), *view.to_bytes()) << testing::PrintToString(sizes) << testing::PrintToString(strides);
  }
  // By several launches.
  const Shape seven = {2, 3, 2, 2, 2, 2, 2};
  Tensor view = *data.as_strided(seven, Shape{1, 3, 21, 84, 420, 9, 0}, 5);
  Tensor target = *Tensor::zeros(cpu, DType::kI32, seven);
  ASSERT_TRUE(copy_on_device(target, view).ok());
  EXPECT_EQ(*target.to_bytes(), *view.to_bytes());
}

TEST_F(DeviceKernels, CompileForGpus) {
  Tensor t = *Tensor::zeros(cpu, DType::kF32, Shape{16}), i = *Tensor::zeros(cpu, DType::kI32, Shape{16});
  using Args = std::vector<std::optional<Arg>>;
  const int64_t n = 1 << 28, block = 1024;
  const uint64_t key = 12345;
  Args copy = {t, t};
  for (int k = 0; k < 14; ++k) copy.emplace_back(int64_t{41});
  for (int k = 0; k < 2; ++k) copy.emplace_back(int64_t{64});
  const std::pair<const char*, Args> cases[] = {
      {"random_normal", {t, n, key, block}},
      {"random_uniform", {t, n, key, int64_t{24}, 0x1p-24, block}},
      {"random_integer", {i, n, key, int64_t{-5}, uint64_t{10}, false, block}},
      {"convert", {t, i, n, DType::kI64, block}},
      {"copy_strided", copy}};
  for (const auto& [name, args] : cases)
    for (const char* target : {"sm_80", "sm_90a"}) {
      auto kernel = Kernel::from_source(device_kernel_source(), "device_kernels.py", name);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      auto info = kernel->compile(args, {}, target);
      ASSERT_TRUE(info.ok()) << name << " for " << target << "\n" << render(info.error());
      EXPECT_NE(info->ptx.find(std::string(".entry ") + name), std::string::npos);
      std::printf("%-15s %-7s %3d registers, %lld bytes spilled\n", name, target, info->registers,
                  static_cast<long long>(info->spill_bytes));
    }
}

}  // namespace
}  // namespace kiln::runtime
