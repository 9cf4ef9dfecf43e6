// The pointer-form matmul of kernels/matmul on a real GPU: every type, layout of the operands and ragged sizes, into
// poisoned memory, against float64 with the bound that the types' rounding gives.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/matmul/matmul.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},       {16, 16, 16},  {17, 33, 65},    {256, 128, 192},
                           {200, 136, 264}, {1, 1337, 77}, {513, 130, 1000}};

constexpr MatmulTile kTiles[] = {
    {64, 64, 32, 3, 4}, {16, 64, 64, 3, 4}, {128, 128, 64, 3, 8}, {16, 32, 64, 2, 2}, {128, 64, 32, 1, 4}};

/// [rows, columns], stored by columns when `transposed`.
Tensor matrix(const Device& device, DType dtype, int64_t rows, int64_t columns, bool transposed, uint64_t seed) {
  Tensor t = *randn(device, dtype, transposed ? Shape{columns, rows} : Shape{rows, columns}, seed);
  return transposed ? *t.as_strided(Shape{rows, columns}, Shape{1, rows}, 0) : t;
}

/// |got - want| for sums of K products whose magnitudes sum to `magnitude`: rounding at each step in f32 (tensor cores
/// cut), operands cut to tf32, and one rounding of the result.
double bound(DType from, DType to, int64_t k, double magnitude, double want) {
  double error = static_cast<double>(k + 8) * 0x1p-23 * magnitude;
  if (from == DType::kF32) error += 2 * 0x1p-10 * magnitude;
  // Hopper's sums of fp8 products keep 13 bits of fraction within an instruction of 32 of them.
  const auto steps = k / 32 + 1;
  if (is_fp8(from)) error += static_cast<double>(steps) * 0x1p-13 * magnitude;
  const double unit = to == DType::kBF16 ? 0x1p-8 : to == DType::kF16 ? 0x1p-11 : 0x1p-24;
  return error + unit * (std::abs(want) + error) + (to == DType::kF16 ? 0x1p-25 : 0);
}

/// Runs code for `target` ("": the device's own): PTX of an older generation runs on newer ones.
Status run_for(const Device& device, const kernels::Launch& launch, const std::string& target) {
  if (target.empty()) return launch.run();
  const auto& args = launch.args;
  KILN_TRY(KernelInfo info, launch.kernel.compile(args, launch.options, target));
  std::vector<uint64_t> slots;  // integers that are 1 became constants
  for (size_t i = 0; i < args.size(); ++i) {
    if (const auto* t = std::get_if<Tensor>(&*args[i])) slots.push_back(t->address());
    const auto* number = std::get_if<int64_t>(&*args[i]);
    if (number && *number != 1 && !launch.kernel.params()[i].is_constexpr)
      slots.push_back(static_cast<uint64_t>(*number));
  }
  KILN_TRY(auto loaded,
           load_ptx(device, info.name, info.ptx, static_cast<int>(slots.size()), info.shared_bytes, info.num_warps));
  auto& backend = device.impl()->backend();
  KILN_CHECK_OK(
      backend.launch(*loaded, {static_cast<uint32_t>(launch.grid[0]), 1, 1}, slots.data(), backend.default_stream()));
  return device.synchronize();
}

void check_everything(const std::string& target) {
  GPU_OR_SKIP(device);
  kernels::Sources sources;
  struct Types {
    DType from, to;
  };
  uint64_t seed = std::random_device{}();
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  int which = 0;
  for (const Types& t :
       {Types{DType::kF16, DType::kF16}, Types{DType::kBF16, DType::kBF16}, Types{DType::kBF16, DType::kF32},
        Types{DType::kF32, DType::kF32}, Types{DType::kF8E4M3, DType::kF32}, Types{DType::kF8E5M2, DType::kF16}})
    for (const Size& s : kSizes)
      for (int layout = 0; layout < 4; ++layout) {
        MatmulTile tile = kTiles[which++ % std::size(kTiles)];
        SCOPED_TRACE(fmt::format("{} -> {} {}x{}x{} layout {}{} tile {}x{}x{}", name(t.from), name(t.to), s.m, s.n, s.k,
                                 layout & 1 ? 'T' : 'N', layout & 2 ? 'T' : 'N', tile.m, tile.n, tile.k));
        const Tensor a = matrix(device, t.from, s.m, s.k, layout & 1, seed + 1),
                     b = matrix(device, t.from, s.k, s.n, layout & 2, seed + 2),
                     c = *Tensor::full(device, t.to, Shape{s.m, s.n}, std::numeric_limits<double>::quiet_NaN());
        if (t.from == DType::kF32) tile.k /= 2;
        tile.group_m = 4;
        ASSERT_OK(run_for(device, *kernels::pointer_matmul_launch(sources, a, b, c, tile), target));
        const auto left = *a.to_doubles(), right = *b.to_doubles(), got = *c.to_doubles();
        for (int64_t i = 0; i < s.m; ++i) {
          std::vector<double> want(static_cast<size_t>(s.n)), magnitude(static_cast<size_t>(s.n));
          for (int64_t k = 0; k < s.k; ++k)
            for (int64_t j = 0; j < s.n; ++j) {
              const double product = left[static_cast<size_t>(i * s.k + k)] * right[static_cast<size_t>(k * s.n + j)];
              want[static_cast<size_t>(j)] += product;
              magnitude[static_cast<size_t>(j)] += std::abs(product);
            }
          for (int64_t j = 0; j < s.n; ++j) {
            const auto at = static_cast<size_t>(j);
            const double g = got[static_cast<size_t>(i * s.n + j)];
            ASSERT_TRUE(std::abs(g - want[at]) <= bound(t.from, t.to, s.k, magnitude[at], want[at]))
                << "element (" << i << ", " << j << "): got " << g << ", expected " << want[at];
          }
        }
      }
}

TEST(GpuMatmulPointers, EveryTypeLayoutAndSize) { check_everything(""); }
TEST(GpuMatmulPointers, AmpereCode) { check_everything("sm_80"); }

}  // namespace
}  // namespace kiln::runtime
