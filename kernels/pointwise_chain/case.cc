#include <cmath>

#include "kernels/registry.h"

namespace kiln::kernels {

namespace {

Status unfused(Sources& sources, Problem& p) {
  const Tensor &x = p.inputs[0], &y = p.inputs[1], &out = p.outputs[0];
  KILN_TRY(Tensor a, Tensor::empty(p.device, p.dtype, p.shape));
  KILN_TRY(Tensor b, Tensor::empty(p.device, p.dtype, p.shape));
  OpChain ops(sources, p);
  KILN_CHECK_OK(ops.pointwise("scale_op", {{x}}, a, {{2.0}}));
  KILN_CHECK_OK(ops.pointwise("add_op", {{a, y}}, b));
  KILN_CHECK_OK(ops.pointwise("gelu_op", {{b}}, a));
  KILN_CHECK_OK(ops.pointwise("sigmoid_op", {{y}}, b));
  KILN_CHECK_OK(ops.pointwise("mul_op", {{a, b}}, out));
  return ops.pointwise("sub_op", {{out, x}}, out);
}

Result<Problem> make(Sources& sources, const Request& request) {
  Problem p = empty_problem(request);
  const Shape& shape = request.shape;
  int64_t n = shape[0];
  for (uint64_t i = 0; i < 2; ++i) {
    KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, shape, p.seed + i));
  }
  p.sliced_inputs = 2;
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, p.dtype, shape));
  p.flops = 30.0 * static_cast<double>(n);  // erf and exp counted as their polynomials
  if (request.variant == Variant::kUnfused) {
    KILN_CHECK_OK(unfused(sources, p));
    return p;
  }
  PointwiseConfig config = pointwise_config(p.for_gpu, p.dtype);
  KILN_TRY(Kernel kernel, sources.kernel("pointwise_chain", "chain_kernel"));
  p.launches.push_back(launch(kernel, cdiv(n, config.block), {p.inputs[0], p.inputs[1], p.outputs[0], n, config.block},
                              config.num_warps));
  p.bytes = 3.0 * static_cast<double>(n) * size_of(p.dtype);
  return p;
}

std::vector<std::vector<double>> reference(const Rows& rows) {
  std::vector<double> out(rows.inputs[0].size());
  for (size_t i = 0; i < out.size(); ++i) {
    double x = rows.inputs[0][i], y = rows.inputs[1][i], t = x * 2 + y;
    // 1 + erf(x) as erfc(-x), which does not cancel for large negative x.
    out[i] = 0.5 * t * std::erfc(-t * M_SQRT1_2) / (1 + std::exp(-y)) - x;
  }
  return {std::move(out)};
}

}  // namespace

const Case kPointwiseChain = {
    .name = "pointwise_chain",
    .formula = "gelu(x*2 + y) * sigmoid(y) - x",
    .folder = "pointwise_chain",
    .function = "chain_kernel",
    .gpu_sizes = [] { return std::vector<Shape>{{int64_t{1} << 28}}; },
    .host_sizes = [] { return std::vector<Shape>{{int64_t{1} << 25}}; },
    .test_sizes =
        [] {
          return std::vector<Shape>{{1}, {7}, {1023}, {1025}, {98432}};
        },
    .make = make,
    .reference = reference,
    .tolerance = [](DType t) { return t == DType::kF32 ? 2e-6 : 4e-3; },
};

}  // namespace kiln::kernels
