// Who takes part in the benchmark of matrix products.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "bench/gemm.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul_persistent/matmul.h"
#include "kiln/blas.h"
#include "kiln/kernel.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

// What follows a product by a library without epilogues. One program per row and block of columns.
// GELU by its tanh form, written as a sigmoid: 1.5957691216057308 is 2 * sqrt(2 / pi).
constexpr const char* kBiasGelu = R"(
import triton
import triton.language as tl

@triton.jit
def bias_gelu(out, bias, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = out + tl.program_id(1) * n
    mask = i < n
    x = tl.load(row + i, mask=mask).to(tl.float32) + tl.load(bias + i, mask=mask).to(tl.float32)
    x = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    tl.store(row + i, x, mask=mask)
)";

Result<std::function<Status()>> separate_bias_gelu(const GemmProblem& p) {
  KILN_TRY(Kernel kernel, Kernel::from_source(kBiasGelu, "bias_gelu.py"));
  // One block for a whole row where it fits, and 2048 columns else.
  int64_t n = p.shape.n, block = std::min<int64_t>(2048, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))));
  std::vector<std::optional<Arg>> args = {p.out, p.bias, n, block};
  std::array<int64_t, 3> grid = {(n + block - 1) / block, p.shape.m, 1};
  return std::function<Status()>([=] { return kernel.launch(grid, args); });
}

template <MatmulImpl Impl>
Result<PreparedGemm> by_blas(const GemmProblem& p) {
  constexpr const MatmulImplInfo& kInfo = info(Impl);
  MatmulOptions options;
  options.impl = Impl;
  // Into the tensor of the problem: allocation is not what is measured.
  options.out = p.out;
  options.tf32 = p.type.tf32;
  options.fast_accumulation = p.type.fast_accumulation;
  PreparedGemm made;
  std::function<Status()> after;
  if (p.type.bias_gelu && kInfo.has_epilogues()) {
    options.bias = p.bias;
    options.activation = Activation::kGeluTanh;
  } else if (p.type.bias_gelu) {
    KILN_TRY(after, separate_bias_gelu(p));
    made.note = "and a kernel for bias and gelu";
  }
  // Planned beforehand, so that the search of an algorithm is not in the time; matmul() finds it in its cache.
  KILN_TRY(MatmulPlan plan, plan_matmul(p.a, p.b, options));
  if (kInfo.has('B')) made.note = fmt::format("algorithm {} of {}", plan.chosen + 1, plan.offered);
  made.enqueue = [a = p.a, b = p.b, options, after]() -> Status {
    KILN_TRY([[maybe_unused]] Tensor out, matmul(a, b, options));
    return after ? after() : Status{};
  };
  return made;
}

MatmulTile tile_for(const GemmProblem& p, int most_ctas) {
  const int units = p.device.info().compute_units;
  const ProductSize size = p.size();
  MatmulTile t = choose_tile(size, units, {.most_ctas = most_ctas});
  // After the tile, whose size decides how many programs there are to share a sum.
  t.splits = choose_splits(t, size, units);
  return t;
}

Result<PreparedGemm> by_persistent(const GemmProblem& p) {
  const MatmulTile tile = tile_for(p, kernels::most_ctas(p.device.info()));
  KILN_TRY(kernels::Launch launch, persistent_launch(p, tile));
  return PreparedGemm{[launch] { return launch.run(); }, to_string(tile)};
}

Result<PreparedGemm> by_pointers(const GemmProblem& p) {
  if (!p.device.is_cuda()) return error(ErrorKind::kUnsupported, "the tiles of the kernel on pointers are for GPUs");
  MatmulTile tile = tile_for(p, /*most_ctas=*/1);  // clusters gain where programs stay
  // Sums are not shared by the kernel on pointers.
  tile.splits = 1;
  KILN_TRY(kernels::Launch launch, pointer_launch(p, tile));
  return PreparedGemm{[launch] { return launch.run(); }, to_string(tile)};
}

const GemmContender kContenders[] = {
    {"kiln", true, true, by_persistent},
    {"pointers", true, true, by_pointers},
#define KILN_MATMUL_IMPL(ENUM, NAME, ...) \
  {NAME, false, info(MatmulImpl::k##ENUM).on_gpu(), by_blas<MatmulImpl::k##ENUM>},
#include "kiln/matmul_impl.def"
};

kernels::Sources& sources() {
  static kernels::Sources all;
  return all;
}

}  // namespace

Result<kernels::Launch> persistent_launch(const GemmProblem& p, const MatmulTile& tile) {
  if (!p.device.is_cuda()) return error(ErrorKind::kUnsupported, "the persistent kernel is made for GPUs");
  // Exact f32 has no instruction on tensor cores.
  if (p.type.operand == DType::kF32 && !p.type.tf32)
    return error(ErrorKind::kUnsupported, "the persistent kernel multiplies f32 as tf32");
  kernels::MatmulEpilogue epilogue;
  if (p.type.bias_gelu) epilogue = {p.bias, "gelu_tanh"};
  return kernels::matmul_launch(sources(), p.a, p.b, p.out, epilogue, tile);
}

Result<kernels::Launch> pointer_launch(const GemmProblem& p, const MatmulTile& t) {
  const bool exact_f32 = p.type.operand == DType::kF32 && !p.type.tf32;
  if (p.type.bias_gelu || is_int(p.type.operand) || (exact_f32 && p.device.is_cuda()))
    return error(ErrorKind::kUnsupported, "the kernel on pointers adds no bias, and takes floats alone, f32 as tf32");
  return kernels::pointer_matmul_launch(sources(), p.a, p.b, p.out, t);
}

std::span<const GemmContender> gemm_contenders() { return kContenders; }

Result<GemmContender> tile_contender(std::string_view text) {
  MatmulTile t;
  // The usual number, where the text names none.
  t.group_m = 8;
  int* const fields[] = {&t.m, &t.n, &t.k, &t.stages, &t.warps, &t.splits, &t.ctas, &t.group_m};
  constexpr size_t kRequired = 5;
  size_t given = 0;
  std::string_view rest = text;
  while (!rest.empty() && given < std::size(fields)) {
    auto [next, code] = std::from_chars(rest.data(), rest.data() + rest.size(), *fields[given]);
    if (code != std::errc{} || *fields[given] < 1) break;
    ++given;
    rest.remove_prefix(static_cast<size_t>(next - rest.data()));
    // After the three sizes the separator changes from x to a colon.
    if (rest.empty() || rest[0] != (given < 3 ? 'x' : ':')) break;
    rest.remove_prefix(1);
  }
  t.pdl = rest == "pdl";
  if (given < kRequired || (!rest.empty() && !t.pdl))
    return error(ErrorKind::kValue, "a tile is MxNxK:STAGES:WARPS[:SPLITS[:BLOCKS[:GROUP]]][:pdl], not '{}'", text);
  return GemmContender{text, true, true, [t](const GemmProblem& p) -> Result<PreparedGemm> {
                         KILN_TRY(kernels::Launch launch, persistent_launch(p, t));
                         return PreparedGemm{[launch] { return launch.run(); }, to_string(t)};
                       }};
}

}  // namespace kiln::bench
