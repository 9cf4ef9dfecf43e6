#include "kernels/attention/attention.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "support/diag.h"

namespace kiln::kernels {

namespace {

constexpr int64_t kBlock = 128;
constexpr int64_t kFewestColumns = 16, kMostColumns = 128;  // of a head, as blocks in registers

Status check_operand(const Tensor& t, const Tensor& q, std::string_view name) {
  if (t.shape().size() != 3 || !std::equal(t.shape().begin(), t.shape().end(), q.shape().begin(), q.shape().end()))
    return error(ErrorKind::kType, "{} of attention is [{}], and q is [{}]; both must be one [heads, n, d]", name,
                 fmt::join(t.shape(), ", "), fmt::join(q.shape(), ", "));
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
  if (d < kFewestColumns || d > kMostColumns || !std::has_single_bit(static_cast<uint64_t>(d)))
    return error(ErrorKind::kValue, "heads of attention have {} columns; a power of two from {} to {} would work", d,
                 kFewestColumns, kMostColumns);
  if (!(scale > 0)) return error(ErrorKind::kValue, "the scale of attention is {}; it must be positive", scale);
  // The kernel takes exp2, which is one instruction of the GPU, where exp needs a multiplication first: exp(x) is
  // exp2(x · log2 e), and the factor joins the scale.
  const double scale_log2 = scale * std::numbers::log2e;
  Launch launch;
  launch.options.num_warps = for_gpu ? 8 : 4;
  launch.options.num_stages = 2;
  if (n % kBlock == 0) {
    KILN_TRY(launch.kernel, sources.kernel("attention", "attention_kernel"));
    launch.args = {q, k, v, out, scale_log2, heads, n, causal, kBlock, kBlock, d};
    // Equal blocks share the SMs evenly; those under a diagonal are given out one by one.
    const int64_t blocks = n / kBlock * heads;
    launch.grid = {causal || !for_gpu ? blocks : std::min<int64_t>(blocks, q.device().info().compute_units), 1, 1};
  } else {
    KILN_TRY(launch.kernel, sources.kernel("attention", "attention_any_length_kernel"));
    launch.args = {q, k, v, out, scale_log2, n, causal, kBlock, kBlock / 2, d};
    launch.grid = {cdiv(n, kBlock), heads, 1};
  }
  return launch;
}

}  // namespace kiln::kernels
