#include "kernels/dropout/philox.h"
#include "kernels/registry.h"

namespace kiln::kernels {

namespace {

constexpr float kP = 0.3f;
// A seed that uses both words of the Philox key.
int64_t philox_seed(uint64_t seed) { return static_cast<int64_t>((seed * 0x9E3779B97F4A7C15u) >> 1); }

Status unfused(Sources& sources, Problem& p) {
  const Tensor &x = p.inputs[0], &out = p.outputs[0];
  KILN_TRY(Tensor r, Tensor::empty(p.device, DType::kF32, p.shape));
  KILN_TRY(Tensor keep, Tensor::empty(p.device, p.dtype, p.shape));
  KILN_TRY(Kernel uniform, sources.kernel("ops", "uniform_op"));
  PointwiseConfig config = pointwise_config(p.for_gpu, DType::kF32);
  int64_t n = p.shape[0];
  p.launches.push_back(
      launch(uniform, cdiv(n, config.block), {r, philox_seed(p.seed), n, config.block}, config.num_warps));
  // This launch is made outside of OpChain, which counts the bytes of the others.
  p.bytes += static_cast<double>(n) * 4;
  OpChain ops(sources, p);
  KILN_CHECK_OK(ops.pointwise("keep_op", {{r}}, keep, {{static_cast<double>(kP)}}));
  return ops.pointwise("mul_op", {{x, keep}}, out);
}

Result<Problem> make(Sources& sources, const Request& request) {
  Problem p = empty_problem(request);
  const Shape& shape = request.shape;
  int64_t n = shape[0];
  KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, shape, p.seed));
  p.sliced_inputs = 1;
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, p.dtype, shape));
  p.flops = 4.0 * static_cast<double>(n);
  if (request.variant == Variant::kUnfused) {
    KILN_CHECK_OK(unfused(sources, p));
    return p;
  }
  PointwiseConfig config = pointwise_config(p.for_gpu, p.dtype);
  KILN_TRY(Kernel kernel, sources.kernel("dropout", "dropout_kernel"));
  p.launches.push_back(launch(
      kernel, cdiv(n, config.block),
      {p.inputs[0], p.outputs[0], n, static_cast<double>(kP), philox_seed(p.seed), config.block}, config.num_warps));
  p.bytes = 2.0 * static_cast<double>(n) * size_of(p.dtype);
  return p;
}

std::vector<std::vector<double>> reference(const Rows& rows) {
  std::vector<double> out(rows.inputs[0].size());
  for (size_t i = 0; i < out.size(); ++i) {
    // In float32 like the kernel: which elements are kept must agree exactly, as a single flip would be an error of x /
    // (1-p).
    float r = philox_uniform(static_cast<uint64_t>(philox_seed(rows.seed)),
                             static_cast<uint32_t>(rows.first + static_cast<int64_t>(i)));
    out[i] = r > kP ? rows.inputs[0][i] / (1 - static_cast<double>(kP)) : 0;
  }
  return {std::move(out)};
}

}  // namespace

const Case kDropout = {
    .name = "dropout",
    .formula = "x / (1-p) where rand(seed, i) > p",
    .folder = "dropout",
    .function = "dropout_kernel",
    .gpu_sizes = [] { return std::vector<Shape>{{int64_t{1} << 28}}; },
    .host_sizes = [] { return std::vector<Shape>{{int64_t{1} << 25}}; },
    .test_sizes =
        [] {
          return std::vector<Shape>{{1}, {7}, {1023}, {1025}, {98432}};
        },
    .make = make,
    .reference = reference,
    .tolerance = [](DType t) { return t == DType::kF32 ? 5e-7 : 4e-3; },
};

}  // namespace kiln::kernels
