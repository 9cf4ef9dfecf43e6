// Every case, in every dtype, fused and unfused, at odd sizes, on every device there is, against its float64 reference.
#include <gtest/gtest.h>

#include <random>

#include "kernels/case.h"
#include "tests/unit/open_device.h"

namespace kiln::kernels {
namespace {

uint64_t fresh_seed() {
  uint64_t seed = std::random_device{}();
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

class Cases : public ::testing::TestWithParam<const Case*> {};

void run_everywhere(const Case& c, Variant variant) {
  uint64_t seed = fresh_seed();
  Sources sources;
  for (const std::string& device_name : Device::list()) {
    auto device = open_device(device_name);
    ASSERT_TRUE(device.ok()) << render(device.error());
    for (DType dtype : c.dtypes)
      for (const Shape& shape : c.test_sizes()) {
        SCOPED_TRACE(device_name + " " + std::string(name(dtype)) + " " + to_string(shape));
        auto p = c.make(sources, {*device, dtype, shape, seed, variant});
        ASSERT_TRUE(p.ok()) << render(p.error());
        Status ran = p->run();
        ASSERT_TRUE(ran.ok()) << render(ran.error());
        auto checked = check(c, *p, variant);
        ASSERT_TRUE(checked.ok()) << render(checked.error());
        EXPECT_TRUE(checked->ok()) << "error " << checked->error << " above " << checked->tolerance << ": "
                                   << checked->worst;
        EXPECT_GT(checked->elements, 0);
      }
  }
}

TEST_P(Cases, FusedMatchesTheReference) { run_everywhere(*GetParam(), Variant::kFused); }
TEST_P(Cases, UnfusedMatchesTheReference) { run_everywhere(*GetParam(), Variant::kUnfused); }

// What a GPU would run for rows of 32768 halves, on every device: the last row of a program, and a ragged row.
TEST_P(Cases, WideRowsMatchTheReference) {
  const Case& c = *GetParam();
  uint64_t seed = fresh_seed();
  Sources sources;
  for (const std::string& device_name : Device::list()) {
    auto device = open_device(device_name);
    ASSERT_TRUE(device.ok()) << render(device.error());
    Request request{*device, DType::kBF16, {7, 30011}, seed, Variant::kFused};
    if (c.test_sizes().front().size() == 1) request.shape = {30011};
    request.for_gpu = true;
    auto p = c.make(sources, request);
    ASSERT_TRUE(p.ok()) << render(p.error());
    Status ran = p->run();
    ASSERT_TRUE(ran.ok()) << render(ran.error());
    auto checked = check(c, *p, Variant::kFused);
    ASSERT_TRUE(checked.ok()) << render(checked.error());
    EXPECT_TRUE(checked->ok()) << device_name << ": error " << checked->error << ": " << checked->worst;
  }
}

TEST_P(Cases, ACheckCanFail) {
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  Sources sources;
  Shape shape = GetParam()->test_sizes().back();
  auto p = GetParam()->make(sources, {*device, DType::kF32, shape, 1, Variant::kFused});
  ASSERT_TRUE(p.ok()) << render(p.error());
  ASSERT_TRUE(p->outputs[0].fill(123).ok());
  auto checked = check(*GetParam(), *p, Variant::kFused);
  ASSERT_TRUE(checked.ok());
  EXPECT_FALSE(checked->ok());
}

TEST_P(Cases, FusionMovesFewerBytes) {
  auto device = open_device("cpu");
  ASSERT_TRUE(device.ok());
  Sources sources;
  Shape shape = GetParam()->test_sizes().back();
  auto fused = GetParam()->make(sources, {*device, DType::kF32, shape, 1, Variant::kFused});
  auto unfused = GetParam()->make(sources, {*device, DType::kF32, shape, 1, Variant::kUnfused});
  ASSERT_TRUE(fused.ok() && unfused.ok());
  EXPECT_EQ(fused->launches.size(), 1u);
  EXPECT_LE(fused->bytes, unfused->bytes);
}

INSTANTIATE_TEST_SUITE_P(All, Cases, ::testing::ValuesIn(all_cases().begin(), all_cases().end()),
                         [](const auto& each) { return std::string(each.param->name); });

}  // namespace
}  // namespace kiln::kernels
