#include "kernels/registry.h"

namespace kiln::kernels {

namespace {

Result<Problem> make(Sources& sources, const Request& request) {
  Problem p = empty_problem(request);
  const Shape& shape = request.shape;
  int64_t n = shape[0];
  for (uint64_t i = 0; i < 2; ++i) {
    KILN_TRY(p.inputs.emplace_back(), randn(p.device, p.dtype, shape, p.seed + i));
  }
  p.sliced_inputs = 2;
  KILN_TRY(p.outputs.emplace_back(), Tensor::empty(p.device, p.dtype, shape));
  PointwiseConfig config = pointwise_config(p.for_gpu, p.dtype);
  KILN_TRY(Kernel kernel, sources.kernel("vector_add", "add_kernel"));
  p.launches.push_back(launch(kernel, cdiv(n, config.block), {p.inputs[0], p.inputs[1], p.outputs[0], n, config.block},
                              config.num_warps));
  p.bytes = 3.0 * static_cast<double>(n) * size_of(p.dtype);
  p.flops = static_cast<double>(n);
  return p;
}

std::vector<std::vector<double>> reference(const Rows& rows) {
  std::vector<double> out(rows.inputs[0].size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = rows.inputs[0][i] + rows.inputs[1][i];
  return {std::move(out)};
}

}  // namespace

const Case kVectorAdd = {
    .name = "vector_add",
    .formula = "x + y",
    .folder = "vector_add",
    .function = "add_kernel",
    .gpu_sizes = [] { return std::vector<Shape>{{int64_t{1} << 28}}; },
    .host_sizes = [] { return std::vector<Shape>{{int64_t{1} << 25}}; },
    .test_sizes =
        [] {
          // No multiples of a block, so that its mask is tested; 98432 is the size in Triton's tutorial.
          return std::vector<Shape>{{1}, {7}, {1023}, {1025}, {98432}};
        },
    .make = make,
    .reference = reference,
    // Twice the rounding of one addition: 2^-24 for f32, 2^-9 for bf16.
    .tolerance = [](DType t) { return t == DType::kF32 ? 1.2e-7 : 4e-3; },
};

}  // namespace kiln::kernels
