#include "kernels/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numbers>

#include "support/diag.h"

namespace kiln::kernels {

namespace {

constexpr int64_t kBlock = 128;
constexpr int64_t kFewestColumns = 16, kMostColumns = 256;  // of a head, as blocks in registers
constexpr int64_t kColumnStep = 8;                          // rows of 16 bytes, as TMA takes them

Status check_operand(const Tensor& t, const Tensor& q, std::string_view name) {
  const std::span<const int64_t> shape = t.shape(), of_q = q.shape();
  const bool fits =
      shape.size() == 3 && of_q.size() == 3 && shape[0] > 0 && of_q[0] % shape[0] == 0 && shape[2] == of_q[2];
  if (!fits)
    return error(ErrorKind::kType,
                 "{} of attention is [{}], and q is [{}]; q is [heads, n, d], k and v are [heads / group, keys, d]",
                 name, fmt::join(shape, ", "), fmt::join(of_q, ", "));
  if (t.dtype() != q.dtype() || !is_half(t.dtype()))
    return error(ErrorKind::kType, "{} of attention is {}, and q is {}; both must be one of f16 and bf16", name,
                 kiln::name(t.dtype()), kiln::name(q.dtype()));
  if (!t.is_contiguous()) return error(ErrorKind::kValue, "{} of attention must be contiguous", name);
  return {};
}

}  // namespace

Result<Launch> attention_launch(Sources& sources, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                                double scale, bool causal, bool for_gpu) {
  KILN_CHECK_OK(check_operand(q, q, "q"));
  KILN_CHECK_OK(check_operand(k, q, "k"));
  KILN_CHECK_OK(check_operand(v, q, "v"));
  KILN_CHECK_OK(check_operand(out, q, "the result"));
  const int64_t heads = q.shape()[0], n = q.shape()[1], d = q.shape()[2];
  auto is_same = [](const Tensor& a, const Tensor& b) { return std::ranges::equal(a.shape(), b.shape()); };
  if (!is_same(out, q) || !is_same(k, v))
    return error(ErrorKind::kType, "attention: the result is [{}] and q [{}], k is [{}] and v [{}]; they must be pairs",
                 fmt::join(out.shape(), ", "), fmt::join(q.shape(), ", "), fmt::join(k.shape(), ", "),
                 fmt::join(v.shape(), ", "));
  if (d < kFewestColumns || d > kMostColumns || d % kColumnStep != 0)
    return error(ErrorKind::kValue, "heads of attention have {} columns; a multiple of {} from {} to {} would work", d,
                 kColumnStep, kFewestColumns, kMostColumns);
  if (!(scale > 0)) return error(ErrorKind::kValue, "the scale of attention is {}; it must be positive", scale);
  // The kernel takes exp2, which is one instruction of the GPU, where exp needs a multiplication first: exp(x) is
  // exp2(x · log2 e), and the factor joins the scale.
  const double scale_log2 = scale * std::numbers::log2e;
  Launch launch;
  launch.options.num_warps = for_gpu ? 8 : 4;
  launch.options.num_stages = 2;
  KILN_TRY(launch.kernel, sources.kernel("attention", "attention_kernel"));
  const auto columns = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(d)));
  const int64_t block_of_keys = columns > kBlock ? kBlock / 2 : kBlock;
  const int64_t group = heads / k.shape()[0], keys = k.shape()[1];
  launch.args = {q,     k,      v, out,    /*sums, not kept*/ out, scale_log2, heads, group, n, keys,
                 false, causal, d, kBlock, block_of_keys,          columns};
  // Programs take equal blocks in turns; those under a diagonal where there are many short and narrow ones, which then
  // even out. The GPU gives out the others one by one.
  constexpr int64_t kMostRowsInTurns = 4096, kFewestTurns = 4;
  const int64_t blocks = cdiv(n, kBlock) * heads, units = q.device().info().compute_units;
  const bool in_turns =
      for_gpu && (!causal || (n <= kMostRowsInTurns && columns <= kBlock && blocks >= kFewestTurns * units));
  launch.grid = {in_turns ? std::min(blocks, units) : blocks, 1, 1};
  return launch;
}

}  // namespace kiln::kernels
