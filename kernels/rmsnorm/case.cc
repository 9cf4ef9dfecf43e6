#include <cmath>

#include "kernels/registry.h"
#include "kernels/rows.h"

namespace kiln::kernels {

namespace {

constexpr double kEps = 1e-6;
constexpr int64_t kWideBlock = 8192;  // of the wide kernel, which takes a row in several steps

Status unfused(Sources& sources, Problem& p) {
  const Tensor &x = p.inputs[0], &weight = p.inputs[1], &out = p.outputs[0];
  const int64_t rows[] = {p.shape[0]};
  KILN_TRY(Tensor statistic, Tensor::empty(p.device, DType::kF32, rows));
  KILN_TRY(Tensor a, Tensor::empty(p.device, p.dtype, p.shape));
  OpChain ops(sources, p);
  KILN_CHECK_OK(ops.pointwise("square_op", {{x}}, a));
  KILN_CHECK_OK(ops.reduce_rows("row_mean_op", a, statistic));
  KILN_CHECK_OK(ops.pointwise("rsqrt_op", {{statistic}}, statistic, {{kEps}}));
  KILN_CHECK_OK(ops.with_vector("row_mul_op", x, statistic, a));
  return ops.with_vector("column_mul_op", a, weight, out);
}

Result<Problem> make(Sources& sources, const Request& request) {
  Problem p = empty_problem(request);
  const Shape& shape = request.shape;
  const int64_t columns[] = {shape[1]};
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, shape, p.seed));
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, columns, p.seed + 1));
  // Only x has a row for each row of the result; weight is read whole.
  p.sliced_inputs = 1;
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, p.dtype, shape));
  double n = static_cast<double>(p.inputs[0].numel());
  p.flops = 4 * n;
  if (request.variant == Variant::kUnfused) {
    KILN_CHECK_OK(unfused(sources, p));
    return p;
  }
  RowConfig config = row_config(p.for_gpu, shape[1], p.dtype, 1);
  const bool wide = config.wide || (p.for_gpu && config.block == kWideBlock);
  KILN_TRY(Kernel kernel, sources.kernel("rmsnorm", wide ? "rmsnorm_wide_kernel" : "rmsnorm_kernel"));
  std::vector<std::optional<Arg>> args = {p.inputs[0], p.inputs[1], p.outputs[0]};
  if (wide)
    args.insert(args.end(), {kEps, kWideBlock, shape[1]});
  else
    args.insert(args.end(), {shape[1], kEps, config.block});
  p.launches.push_back(launch(kernel, shape[0], std::move(args), config.num_warps));
  p.bytes = 2 * n * size_of(p.dtype) + static_cast<double>(shape[1]) * size_of(p.dtype);
  return p;
}

std::vector<std::vector<double>> reference(const Rows& rows) {
  const std::vector<double>& weight = rows.inputs[1];
  return {each_row(rows, [&, n = rows.row_size](const double* x, double* y) {
    const double rstd = 1 / std::sqrt(row_mean(x, n, [](double v) { return v * v; }) + kEps);
    for (int64_t c = 0; c < n; ++c) y[c] = x[c] * rstd * weight[c];
  })};
}

}  // namespace

const Case kRmsNorm = {
    .name = "rmsnorm",
    .formula = "x / rms(x) * w",
    .folder = "rmsnorm",
    .function = "rmsnorm_kernel",
    .gpu_sizes = row_gpu_sizes,
    .host_sizes = row_host_sizes,
    .test_sizes = row_test_sizes,
    .make = make,
    .reference = reference,
    .tolerance = [](DType t) { return t == DType::kF32 ? 5e-6 : 5e-3; },
};

}  // namespace kiln::kernels
