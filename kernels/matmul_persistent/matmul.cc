#include "kernels/matmul_persistent/matmul.h"

#include <algorithm>

#include "compiler/target/target.h"
#include "support/diag.h"

namespace kiln::kernels {

namespace {

constexpr int64_t kFewestStages = 2;
constexpr int64_t kFewOperandBytes = 8 << 20;

struct Matrix {
  int64_t stride;
  bool transposed;  // the first dimension is the contiguous one
};

Result<Matrix> matrix(const Tensor& t, std::string_view name) {
  if (t.shape().size() != 2)
    return error(ErrorKind::kType, "{} of a product has {} dimensions, and must have 2", name, t.shape().size());
  const auto strides = t.strides(), shape = t.shape();
  // A matrix of one row or column may be read either way; its outer stride then says nothing.
  const int64_t unit = 16 / size_of(t.dtype());
  std::optional<int64_t> misaligned;
  for (bool transposed : {false, true}) {
    const size_t outer = transposed, inner = 1 - outer;
    if (strides[inner] != 1 && shape[inner] != 1) continue;
    // 16: what launches know of integers is whether 16 divides them.
    const int64_t stride = shape[outer] == 1 ? 16 : strides[outer];
    if (stride % unit == 0) return Matrix{stride, transposed};
    misaligned = stride;
  }
  if (!misaligned)
    return error(ErrorKind::kType, "{} of a product has the strides {} and {}, and one must be 1", name, strides[0],
                 strides[1]);
  return error(ErrorKind::kValue, "{} of a product has rows of {} bytes, and they must start at multiples of 16", name,
               *misaligned * size_of(t.dtype()));
}

}  // namespace

// The table's clusters were measured there.
int most_ctas(const DeviceInfo& device) {
  const target::Target* t = target::find(device.target);
  return t && t->has(target::kWgmma) ? 2 : 1;
}

Result<Launch> matmul_launch(Sources& sources, const Tensor& a, const Tensor& b, const Tensor& out,
                             const MatmulEpilogue& epilogue, std::optional<MatmulTile> tile) {
  KILN_TRY(Matrix left, matrix(a, "a"));
  KILN_TRY(Matrix right, matrix(b, "b"));
  KILN_TRY(Matrix result, matrix(out, "the result"));
  const int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  if (b.shape()[0] != k || out.shape()[0] != m || out.shape()[1] != n)
    return error(ErrorKind::kType, "[{}, {}] times [{}, {}] gives no [{}, {}]", m, k, b.shape()[0], n, out.shape()[0],
                 out.shape()[1]);
  if (result.transposed && m > 1 && n > 1)
    return error(ErrorKind::kType, "the result of a product must be contiguous along its rows");
  const DeviceInfo info = out.device().info();
  MatmulTile t;
  if (tile) {
    t = *tile;
  } else {
    const ProductSize size{
        .m = m, .n = n, .k = k, .operand_bytes = size_of(a.dtype()), .result_bytes = size_of(out.dtype())};
    t = choose_tile(size, info.compute_units, {.most_ctas = most_ctas(info)});
    t.splits = choose_splits(t, size, info.compute_units);
  }
  // As the tensor cores accumulate: int8 products in int32, all floats in float32.
  const DType sum = is_int(a.dtype()) ? DType::kI32 : DType::kF32;
  const int64_t tiles = cdiv(m, t.m) * cdiv(n, t.n);
  Launch launch;
  launch.args = {a, b, out, epilogue.bias ? Arg(epilogue.bias) : Arg(std::monostate{})};
  auto add = [&](std::initializer_list<Arg> args) { launch.args.insert(launch.args.end(), args.begin(), args.end()); };
  if (t.splits > 1) {
    const int64_t parts[] = {tiles, t.splits, t.m, t.n}, turns[] = {tiles};
    KILN_TRY(Tensor sums, Tensor::empty(out.device(), sum, parts));
    KILN_TRY(Tensor turn, Tensor::zeros(out.device(), DType::kI32, turns));
    add({sums, turn});
  }
  add({m, n, k, left.stride, right.stride, result.stride, left.transposed, right.transposed, int64_t{t.m}, int64_t{t.n},
       int64_t{t.k}});
  if (t.splits > 1) {
    KILN_TRY(launch.kernel, sources.kernel("matmul_persistent", "matmul_split"));
    launch.grid = {tiles, t.splits, 1};
    add({int64_t{t.splits}});
  } else if (tiles * t.ctas <= info.compute_units) {
    KILN_TRY(launch.kernel, sources.kernel("matmul_persistent", "matmul_once"));
    const int64_t tiles_m = cdiv(m, t.m), tiles_n = cdiv(n, t.n);
    launch.grid = {tiles_m, tiles_n, 1};
    // Programs run side by side: what one reads alone, or few bytes that all read at about the same time, need not push
    // anything else out of the L2.
    const bool few = (m + n) * k * size_of(a.dtype()) <= kFewOperandBytes;
    auto eviction = [&](int64_t readers) { return std::string(few || readers == 1 ? "evict_first" : ""); };
    add({eviction(tiles_n), eviction(tiles_m)});
    // No more stages than steps along k: the buffers of further ones would never be filled.
    t.stages = static_cast<int>(std::clamp<int64_t>(cdiv(k, t.k), kFewestStages, t.stages));
  } else {
    KILN_TRY(launch.kernel, sources.kernel("matmul_persistent", "matmul_persistent"));
    // One wave: as many programs as run at the same time, each of which goes on to further tiles.
    const int64_t programs = std::min<int64_t>(tiles, info.compute_units / t.ctas);
    launch.grid = {programs, 1, 1};
    add({int64_t{t.group_m}, programs});
  }
  add({epilogue.activation, sum});
  launch.options.num_warps = t.warps;
  launch.options.num_stages = t.stages;
  launch.options.num_ctas = t.ctas;
  launch.options.launch_pdl = t.pdl;
  return launch;
}

}  // namespace kiln::kernels
