// One kernel with few and with many programs: each launch runs the code that suits its grid.
#include "kiln/kernel.h"
#include "kiln/tensor.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

/// 64 elements of a row per thread: a program has an SM for itself, or shares it with fewer registers.
constexpr const char* kSource = R"(
import triton
import triton.language as tl


@triton.jit
def centre(x, w, b, out, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * n
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        sums += tl.load(x + start + cols, mask=cols < n, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n
    for first in range(0, n, BLOCK):
        cols = first + tl.arange(0, BLOCK)
        inside = cols < n
        v = tl.load(x + start + cols, mask=inside, other=0.0).to(tl.float32)
        scaled = (v - mean) * tl.load(w + cols, mask=inside) + tl.load(b + cols, mask=inside)
        tl.store(out + start + cols, scaled, mask=inside)
)";

TEST(GpuRoomyCode, TheGridChoosesTheRegisters) {
  GPU_OR_SKIP(device);
  const int64_t n = 16384, few = 8, many = 4 * device.info().compute_units;
  auto kernel = Kernel::from_source(kSource, "roomy_test.py", "centre");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  const auto shape = [](int64_t rows) { return std::vector<int64_t>{rows, n}; };
  auto x = randn(device, DType::kF16, shape(many), 1);
  auto w = randn(device, DType::kF16, std::vector<int64_t>{n}, 2),
       b = randn(device, DType::kF16, std::vector<int64_t>{n}, 3);
  ASSERT_TRUE(x.ok() && w.ok() && b.ok());
  const std::vector<double> in = *x->to_doubles(), weights = *w->to_doubles(), biases = *b->to_doubles();
  LaunchOptions options;
  options.num_warps = 8;
  std::vector<std::shared_ptr<const KernelInfo>> ran;
  for (const int64_t rows : {many, few, many}) {
    Tensor out = *Tensor::zeros(device, DType::kF16, shape(many));
    ASSERT_OK(kernel->launch({rows, 1, 1}, std::vector<std::optional<Arg>>{*x, *w, *b, out, n, n}, options));
    ran.push_back(kernel->launched());
    const std::vector<double> got = *out.to_doubles();
    for (int64_t r = 0; r < many; r += few - 1) {
      double mean = 0;
      for (int64_t c = 0; c < n; ++c) mean += in[static_cast<size_t>(r * n + c)] / n;
      for (int64_t c = 0; c < n; c += 37) {
        const auto i = static_cast<size_t>(r * n + c), column = static_cast<size_t>(c);
        const double expected = r < rows ? (in[i] - mean) * weights[column] + biases[column] : 0;
        ASSERT_NEAR(got[i], expected, 0.02) << rows << " programs, row " << r << ", column " << c;
      }
    }
  }
  if (ran[0]->cubin.empty()) GTEST_SKIP() << "the driver compiled the PTX itself";
  EXPECT_EQ(ran[0], ran[2]);
  EXPECT_GT(ran[1]->registers, ran[0]->registers);
  EXPECT_NE(ran[1]->cubin, ran[0]->cubin);
  EXPECT_EQ(ran[1]->ptx, ran[0]->ptx);
  std::printf("%d registers with %d programs, %d with %d\n", ran[0]->registers, static_cast<int>(many),
              ran[1]->registers, static_cast<int>(few));
}

}  // namespace
}  // namespace kiln::runtime
