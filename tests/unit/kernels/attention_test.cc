// Attention on every device there is against its float64 reference, and the machine code that Hopper gets.
#include "kernels/attention/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "support/diag.h"
#include "tests/unit/lower/remarks.h"
#include "tests/unit/open_device.h"

namespace kiln::kernels {
namespace {

/// Row `i` of one head: k and v are [keys, d].
std::vector<double> reference(const double* q, const double* k, const double* v, int64_t i, int64_t keys, int64_t d,
                              double scale, bool causal) {
  const int64_t seen = causal ? std::min(i + 1, keys) : keys;
  std::vector<double> weights(static_cast<size_t>(seen)), out(static_cast<size_t>(d));
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double dot = 0;
    for (int64_t c = 0; c < d; ++c) dot += q[i * d + c] * k[j * d + c];
    most = std::max(most, weights[static_cast<size_t>(j)] = dot * scale);
  }
  for (double& w : weights) sum += w = std::exp(w - most);
  for (int64_t j = 0; j < seen; ++j)
    for (int64_t c = 0; c < d; ++c) out[static_cast<size_t>(c)] += weights[static_cast<size_t>(j)] / sum * v[j * d + c];
  return out;
}

Tensor random_tensor(const Device& device, DType dtype, const Shape& shape, std::mt19937& random) {
  std::normal_distribution<float> normal;
  int64_t count = 1;
  for (int64_t s : shape) count *= s;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = normal(random);
  auto wide = Tensor::from_host(device, DType::kF32, shape, values.data(), values.size() * sizeof(float));
  EXPECT_TRUE(wide.ok()) << render(wide.error());
  return *wide->to(dtype);
}

/// `group` heads of q share one of k and v, which have `more` keys than q has rows.
void check(const Device& device, DType dtype, const Shape& shape, bool causal, int64_t group = 1, int64_t more = 0) {
  SCOPED_TRACE(fmt::format("{} {} {}{}", device.name(), name(dtype), to_string(shape), causal ? " causal" : ""));
  const auto seed = std::random_device{}();
  printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const Shape of_keys = {shape[0] / group, shape[1] + more, shape[2]};
  const Tensor q = random_tensor(device, dtype, shape, random), k = random_tensor(device, dtype, of_keys, random),
               v = random_tensor(device, dtype, of_keys, random);
  const Tensor out = *Tensor::full(device, dtype, shape, std::numeric_limits<double>::quiet_NaN());
  const int64_t heads = shape[0], n = shape[1], d = shape[2];
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Sources sources;
  auto launch = attention_launch(sources, q, k, v, out, scale, causal, device.is_cuda());
  ASSERT_TRUE(launch.ok()) << render(launch.error());
  Status ran = launch->run();
  ASSERT_TRUE(ran.ok()) << render(ran.error());
  const auto got = *out.to_doubles(), qs = *q.to_doubles(), ks = *k.to_doubles(), vs = *v.to_doubles();
  // Weights are rounded to the operands' type before the second product, the result once more: two roundings of values
  // that an average of v bounds.
  const double rounding = dtype == DType::kF16 ? std::ldexp(1, -11) : std::ldexp(1, -8);
  double worst = 0;
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < n; i += i < 2 || i >= n - 2 ? 1 : std::max<int64_t>(1, n / 40)) {
      const int64_t at = h * n * d;
      const auto of_head = static_cast<size_t>(h / group * (n + more) * d);
      const auto want =
          reference(&qs[static_cast<size_t>(at)], &ks[of_head], &vs[of_head], i, n + more, d, scale, causal);
      for (int64_t c = 0; c < d; ++c) {
        const double difference = std::abs(got[static_cast<size_t>(at + i * d + c)] - want[static_cast<size_t>(c)]);
        worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
      }
    }
  EXPECT_LE(worst, 4 * 2 * rounding);  // v is within 4 of 0
}

class Attention : public ::testing::TestWithParam<std::string> {};

TEST_P(Attention, MatchesTheReference) {
  auto device = open_device(GetParam());
  ASSERT_TRUE(device.ok()) << render(device.error());
  for (const bool causal : {false, true}) {
    check(*device, DType::kF16, {2, 256, 64}, causal);
    check(*device, DType::kBF16, {1, 384, 128}, causal);
    check(*device, DType::kF16, {3, 128, 16}, causal);
    check(*device, DType::kF16, {70, 256, 64}, causal);   // more blocks than a GPU has SMs
    check(*device, DType::kF16, {330, 200, 32}, causal);  // … and several turns, the last of them short
    check(*device, DType::kF16, {2, 1, 32}, causal);
    check(*device, DType::kBF16, {2, 77, 64}, causal);
    check(*device, DType::kF16, {1, 301, 128}, causal);
    check(*device, DType::kF16, {6, 200, 64}, causal, /*group=*/3);
    check(*device, DType::kBF16, {2, 130, 96}, causal);
    check(*device, DType::kF16, {2, 150, 64}, causal, /*group=*/2, /*more=*/201);
    check(*device, DType::kF16, {2, 300, 64}, causal, /*group=*/1, /*more=*/-171);
    check(*device, DType::kF16, {2, 257, 256}, causal);
    check(*device, DType::kF16, {1, 129, 24}, causal);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Attention, ::testing::ValuesIn(Device::list()), [](const auto& each) {
  return each.param == "cpu" ? std::string("cpu") : "cuda_" + each.param.substr(5);
});

TEST(AttentionCode, StaysInRegistersOfWarpGroups) {
  const Device cpu = *open_device("cpu");
  Sources sources;
  for (const int64_t d : {64, 128})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(fmt::format("d {}{}", d, causal ? " causal" : ""));
      const int64_t shape[] = {2, 256, d};
      const Tensor t = *Tensor::empty(cpu, DType::kF16, shape);
      auto launch = attention_launch(sources, t, t, t, *Tensor::empty(cpu, DType::kF16, shape), 1, causal, true);
      ASSERT_TRUE(launch.ok()) << render(launch.error());
      auto info = launch->kernel.compile(launch->args, launch->options, "sm_90a");
      ASSERT_TRUE(info.ok()) << render(info.error());
      EXPECT_EQ(info->ptx.find("mma.sync"), std::string::npos) << "a product left the warp groups";
      EXPECT_NE(info->ptx.find("wgmma.mma_async"), std::string::npos);
      EXPECT_LE(info->spill_bytes, 0) << info->registers << " registers";
      testing_support::expect_no_remarks(info->warnings);
    }
}

/// What Hopper gets of a kernel of kernels/attention, as torch._attention launches it.
void expect_warp_groups(const std::string& file, const std::string& function, std::vector<std::optional<Arg>> args,
                        int warps, int stages) {
  SCOPED_TRACE(fmt::format("{} with {} warps", function, warps));
  std::ifstream in(fmt::format("{}/kernels/attention/{}", KILN_SOURCE_DIR, file));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto kernel = Kernel::from_source(text, file, function);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  LaunchOptions options;
  options.num_warps = warps;
  options.num_stages = stages;
  auto info = kernel->compile(args, options, "sm_90a");
  ASSERT_TRUE(info.ok()) << render(info.error());
  EXPECT_EQ(info->ptx.find("mma.sync"), std::string::npos) << "a product left the warp groups";
  EXPECT_NE(info->ptx.find("wgmma.mma_async"), std::string::npos);
  EXPECT_LE(info->spill_bytes, 128) << info->registers << " registers";
  testing_support::expect_no_remarks(info->warnings);
}

TEST(AttentionCode, GradientsAndMasksStayInRegistersToo) {
  const Device cpu = *open_device("cpu");
  for (const int64_t d : {64, 128}) {
    SCOPED_TRACE(d);
    const int64_t shape[] = {2, 512, d}, of_rows[] = {2, 512}, square[] = {512, 512};
    const Tensor t = *Tensor::empty(cpu, DType::kBF16, shape), sums = *Tensor::empty(cpu, DType::kF32, of_rows),
                 mask = *Tensor::empty(cpu, DType::kI1, square), parts = *Tensor::empty(cpu, DType::kF32, shape);
    const int64_t two = 2, one = 1, n = 512, none = 0;
    for (const auto& [block, warps] : {std::pair<int64_t, int>{128, 8}, {64, 4}}) {
      for (const bool causal : {false, true}) {
        const int64_t rows = d == 64 ? block : 64;
        for (const bool adds : {false, true})
          expect_warp_groups("gradient.py", "key_gradients_kernel",
                             {t,   t,   t,   t,   sums, sums, t,    t,      parts, n,    0.1,   0.2,
                              two, one, one, one, n,    n,    adds, causal, d,     rows, block, d},
                             warps, 2);
        expect_warp_groups("gradient.py", "key_gradients_kernel",
                           {t,   t,   t,   t,   sums, sums, parts, parts,  parts, n,    0.1,   0.2,
                            two, two, one, two, n,    n,    true,  causal, d,     rows, block, d},
                           warps, 2);
        expect_warp_groups("gradient.py", "query_gradient_kernel",
                           {t, t, t, t, sums, sums, t, n, 0.1, 0.2, two, one, n, n, causal, d, block, int64_t{64}, d},
                           warps, 2);
      }
      expect_warp_groups("kernel.py", "masked_attention_kernel",
                         {t, t, t, mask, t, 0.1, two, one, n, n, one, none, none, n, one, d, block, block, d}, warps,
                         warps == 8 ? 2 : 3);
    }
  }
}

TEST(AttentionCode, WideHeadsHaveTwoSlotsOfKeysAndValues) {
  const Device cpu = *open_device("cpu");
  const int64_t shape[] = {2, 512, 256}, two = 2, one = 1, n = 512;
  constexpr int64_t rows = 128, keys = 64, d = 256;
  const Tensor t = *Tensor::empty(cpu, DType::kBF16, shape);
  const std::string file = fmt::format("{}/kernels/attention/kernel.py", KILN_SOURCE_DIR);
  std::ifstream in(file);
  auto kernel = Kernel::from_source({std::istreambuf_iterator<char>(in), {}}, file, "attention_kernel");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  LaunchOptions options;
  options.num_warps = 8;
  options.num_stages = 2;
  const std::vector<std::optional<Arg>> args = {
      t, t, t, t, t, 0.1, two, one, n, n, /*KEEPS=*/false, /*CAUSAL=*/true, d, rows, keys, d};
  auto info = kernel->compile(args, options, "sm_90a");
  ASSERT_TRUE(info.ok()) << render(info.error());
  constexpr int64_t kSlot = 2 * keys * d * 2, kQuery = rows * d * 2;  // bytes
  EXPECT_GE(info->shared_bytes, kQuery + 2 * kSlot);
  EXPECT_EQ(info->spill_bytes, 0) << info->registers << " registers";
}

TEST(AttentionCode, SumsOfFloat32HaveRegisters) {
  const Device cpu = *open_device("cpu");
  const int64_t two = 2, one = 1, n = 512, none = 0, rows = 64, keys = 32;
  for (const auto& [d, warps] : {std::pair<int64_t, int>{64, 4}, {128, 8}}) {
    const int64_t shape[] = {2, 512, d}, square[] = {512, 512};
    const Tensor t = *Tensor::empty(cpu, DType::kF32, shape), mask = *Tensor::empty(cpu, DType::kI1, square);
    auto check = [&](const std::string& function, const std::vector<std::optional<Arg>>& args) {
      SCOPED_TRACE(fmt::format("{} of {} columns", function, d));
      const std::string file = fmt::format("{}/kernels/attention/kernel.py", KILN_SOURCE_DIR);
      std::ifstream in(file);
      auto kernel = Kernel::from_source({std::istreambuf_iterator<char>(in), {}}, file, function);
      ASSERT_TRUE(kernel.ok()) << render(kernel.error());
      LaunchOptions options;
      options.num_warps = warps;
      options.num_stages = 2;
      auto info = kernel->compile(args, options, "sm_90a");
      ASSERT_TRUE(info.ok()) << render(info.error());
      EXPECT_NE(info->ptx.find("fma.rn.f32"), std::string::npos);
      EXPECT_EQ(info->ptx.find("tf32"), std::string::npos) << "a product rounds its operands";
      EXPECT_LE(info->spill_bytes, 64) << info->registers << " registers";
    };
    check("attention_kernel", {t, t, t, t, t, 0.1, two, one, n, n, /*KEEPS=*/false, /*CAUSAL=*/true, d, rows, keys, d});
    check("masked_attention_kernel",
          {t, t, t, mask, t, 0.1, two, one, n, n, one, none, none, n, one, d, rows, keys, d});
  }
}

TEST(AttentionErrors, SayWhatWouldWork) {
  const Device cpu = *open_device("cpu");
  Sources sources;
  auto refused = [&](DType dtype, std::vector<int64_t> shape, std::vector<int64_t> keys) {
    const Tensor q = *Tensor::empty(cpu, dtype, shape), k = *Tensor::empty(cpu, dtype, keys);
    auto launch = attention_launch(sources, q, k, k, q, 1, false, false);
    return launch.ok() ? std::string("accepted") : launch.error().message;
  };
  EXPECT_EQ(refused(DType::kF16, {2, 64, 50}, {2, 64, 50}),
            "heads of attention have 50 columns; a multiple of 8 from 16 to 256 would work");
  EXPECT_EQ(
      refused(DType::kF16, {2, 64, 64}, {3, 64, 64}),
      "k of attention is [3, 64, 64], and q is [2, 64, 64]; q is [heads, n, d], k and v are [heads / group, keys, "
      "d]");
  const int64_t shape[] = {2, 64, 64};
  const Tensor t = *Tensor::empty(cpu, DType::kF16, shape);
  auto negative = attention_launch(sources, t, t, t, t, -1, false, false);
  EXPECT_EQ(negative.ok() ? "accepted" : negative.error().message, "the scale of attention is -1; it must be positive");
  EXPECT_EQ(refused(DType::kF32, {2, 64, 64}, {2, 64, 64}),
            "q of attention is f32, and q is f32; both must be one of f16 and bf16");
}

}  // namespace
}  // namespace kiln::kernels
