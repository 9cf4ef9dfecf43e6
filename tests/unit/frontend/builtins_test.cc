// Builtins that few kernels call, run on the interpreter and compared with C++.
#include <algorithm>
#include <random>

#include "tests/unit/frontend/run_kernel.h"

namespace kiln::frontend::testing {
namespace {

uint64_t run_seed() {
  const uint64_t value = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(value));
  return value;
}

std::vector<int32_t> some_ints(std::mt19937_64& rng, size_t n) {
  std::vector<int32_t> out(n);
  for (int32_t& v : out) v = std::uniform_int_distribution<int32_t>(-1000, 1000)(rng);
  return out;
}

TEST(Builtins, TensorsHaveManyDimensions) {
  std::mt19937_64 rng(run_seed());
  std::vector<int32_t> x = some_ints(rng, 1024), out(1024);
  Launch(R"(
@triton.jit
def sort(x, out, N: tl.constexpr, LOG: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for stage in tl.static_range(1, LOG + 1):
        h = tl.reshape(v, [2] * LOG)
        for k in tl.static_range(stage):
            axis: tl.constexpr = LOG - stage + k
            other = h ^ tl.xor_sum(h, axis, keep_dims=True)
            right = tl.reshape(tl.arange(0, 2), [1] * axis + [2] + [1] * (LOG - 1 - axis))
            if stage < LOG:
                down = tl.reshape(tl.arange(0, 2), [1] * (LOG - 1 - stage) + [2] + [1] * stage)
                right = right ^ down
            h = tl.where((h > other) != (right != 0), other, h)
        v = tl.reshape(h, [N])
    tl.store(out + i, v)
)",
         "signature=*i32,*i32 N=1024 LOG=10")
      .buffer(x)
      .buffer(out)
      .run();
  std::sort(x.begin(), x.end());
  EXPECT_EQ(out, x);
}

}  // namespace
}  // namespace kiln::frontend::testing
