#include <algorithm>
#include <cmath>

#include "kernels/registry.h"
#include "kernels/rows.h"

namespace kiln::kernels {

namespace {

Status unfused(Sources& sources, Problem& p) {
  const Tensor &x = p.inputs[0], &out = p.outputs[0];
  const int64_t rows[] = {p.shape[0]};
  KILN_TRY(Tensor statistic, Tensor::empty(p.device, DType::kF32, rows));
  KILN_TRY(Tensor a, Tensor::empty(p.device, p.dtype, p.shape));
  KILN_TRY(Tensor b, Tensor::empty(p.device, p.dtype, p.shape));
  OpChain ops(sources, p);
  // Shifted by the row's maximum, so that exp cannot overflow; the quotient stays the same.
  KILN_CHECK_OK(ops.reduce_rows("row_max_op", x, statistic));
  KILN_CHECK_OK(ops.with_vector("row_sub_op", x, statistic, a));
  KILN_CHECK_OK(ops.pointwise("exp_op", {{a}}, b));
  KILN_CHECK_OK(ops.reduce_rows("row_sum_op", b, statistic));
  return ops.with_vector("row_div_op", b, statistic, out);
}

Result<Problem> make(Sources& sources, const Request& request) {
  Problem p = empty_problem(request);
  const Shape& shape = request.shape;
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, shape, p.seed));
  p.sliced_inputs = 1;
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, p.dtype, shape));
  double n = static_cast<double>(p.inputs[0].numel());
  p.flops = 13 * n;
  if (request.variant == Variant::kUnfused) {
    KILN_CHECK_OK(unfused(sources, p));
    return p;
  }
  RowConfig config = row_config(p.for_gpu, shape[1], p.dtype, 0);
  KILN_TRY(Kernel kernel, sources.kernel("softmax", config.wide ? "softmax_wide_kernel" : "softmax_kernel"));
  std::vector<std::optional<Arg>> args = {p.inputs[0], p.outputs[0], shape[1], config.block};
  p.launches.push_back(launch(kernel, shape[0], std::move(args), config.num_warps));
  p.bytes = 2 * n * size_of(p.dtype);
  return p;
}

std::vector<std::vector<double>> reference(const Rows& rows) {
  return {each_row(rows, [n = rows.row_size](const double* x, double* y) {
    double most = *std::max_element(x, x + n), sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += y[c] = std::exp(x[c] - most);
    for (int64_t c = 0; c < n; ++c) y[c] /= sum;
  })};
}

}  // namespace

const Case kSoftmax = {
    .name = "softmax",
    .formula = "exp(x - max) / sum",
    .folder = "softmax",
    .function = "softmax_kernel",
    .gpu_sizes = row_gpu_sizes,
    .host_sizes = row_host_sizes,
    .test_sizes = row_test_sizes,
    .make = make,
    .reference = reference,
    .tolerance = [](DType t) { return t == DType::kF32 ? 1e-6 : 4e-3; },
};

}  // namespace kiln::kernels
