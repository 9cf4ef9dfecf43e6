#include <cmath>

#include "kernels/registry.h"
#include "kernels/rows.h"

namespace kiln::kernels {

namespace {

constexpr double kEps = 1e-5;
constexpr int64_t kWideBlock = 8192;  // of the wide kernel, which takes a row in several steps

Status unfused(Sources& sources, Problem& p) {
  const Tensor &x = p.inputs[0], &weight = p.inputs[1], &bias = p.inputs[2];
  const Tensor &out = p.outputs[0], &mean = p.outputs[1], &rstd = p.outputs[2];
  KILN_TRY(Tensor away, Tensor::empty(p.device, p.dtype, p.shape));
  KILN_TRY(Tensor a, Tensor::empty(p.device, p.dtype, p.shape));
  OpChain ops(sources, p);
  KILN_CHECK_OK(ops.reduce_rows("row_mean_op", x, mean));
  KILN_CHECK_OK(ops.with_vector("row_sub_op", x, mean, away));
  KILN_CHECK_OK(ops.pointwise("square_op", {{away}}, a));
  KILN_CHECK_OK(ops.reduce_rows("row_mean_op", a, rstd));
  KILN_CHECK_OK(ops.pointwise("rsqrt_op", {{rstd}}, rstd, {{kEps}}));
  KILN_CHECK_OK(ops.with_vector("row_mul_op", away, rstd, a));
  KILN_CHECK_OK(ops.with_vector("column_mul_op", a, weight, away));
  return ops.with_vector("column_add_op", away, bias, out);
}

Result<Problem> make(Sources& sources, const Request& request) {
  Problem p = empty_problem(request);
  const Shape& shape = request.shape;
  const int64_t rows[] = {shape[0]}, columns[] = {shape[1]};
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, shape, p.seed));
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, columns, p.seed + 1));
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, columns, p.seed + 2));
  // Only x has a row for each row of the result; weight and bias are read whole.
  p.sliced_inputs = 1;
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, p.dtype, shape));
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, DType::kF32, rows));
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, DType::kF32, rows));
  double n = static_cast<double>(p.inputs[0].numel());
  p.flops = 8 * n;
  if (request.variant == Variant::kUnfused) {
    KILN_CHECK_OK(unfused(sources, p));
    return p;
  }
  RowConfig config = row_config(p.for_gpu, shape[1], p.dtype, 2);
  KILN_TRY(Kernel kernel, sources.kernel("layernorm", config.wide ? "layernorm_wide_kernel" : "layernorm_kernel"));
  std::vector<std::optional<Arg>> args = {p.inputs[0],  p.inputs[1],  p.inputs[2],
                                          p.outputs[0], p.outputs[1], p.outputs[2]};
  if (config.wide)
    args.insert(args.end(), {kEps, kWideBlock, shape[1]});
  else
    args.insert(args.end(), {shape[1], kEps, config.block});
  p.launches.push_back(launch(kernel, shape[0], std::move(args), config.num_warps));
  // The least traffic: x and the result once each, weight and bias once, mean and rstd as f32.
  p.bytes = 2 * n * size_of(p.dtype) + 2.0 * static_cast<double>(shape[1]) * size_of(p.dtype) +
            8.0 * static_cast<double>(shape[0]);
  return p;
}

std::vector<std::vector<double>> reference(const Rows& rows) {
  const std::vector<double>&weight = rows.inputs[1], &bias = rows.inputs[2];
  std::vector<double> means, rstds;
  std::vector<double> out = each_row(rows, [&, n = rows.row_size](const double* x, double* y) {
    const double mean = row_mean(x, n, [](double v) { return v; });
    const double rstd = 1 / std::sqrt(row_mean(x, n, [&](double v) { return (v - mean) * (v - mean); }) + kEps);
    for (int64_t c = 0; c < n; ++c) y[c] = (x[c] - mean) * rstd * weight[c] + bias[c];
    means.push_back(mean);
    rstds.push_back(rstd);
  });
  return {std::move(out), std::move(means), std::move(rstds)};
}

}  // namespace

const Case kLayerNorm = {
    .name = "layernorm",
    .formula = "(x - mean) * rstd * w + b",
    .folder = "layernorm",
    .function = "layernorm_kernel",
    .gpu_sizes = row_gpu_sizes,
    .host_sizes = row_host_sizes,
    .test_sizes = row_test_sizes,
    .make = make,
    .reference = reference,
    .tolerance = [](DType t) { return t == DType::kF32 ? 5e-6 : 5e-3; },
};

}  // namespace kiln::kernels
