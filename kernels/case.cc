#include "kernels/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/diag.h"

namespace kiln::embedded {
std::string_view kernel_text(std::string_view path);
}

namespace kiln::kernels {

namespace {

// Rows [first, first + count) along dimension 0, in float64.
Result<std::vector<double>> rows_of(const Tensor& t, int64_t first, int64_t count) {
  std::vector<int64_t> shape(t.shape().begin(), t.shape().end());
  shape[0] = count;
  KILN_TRY(Tensor slice, t.as_strided(shape, t.strides(), t.offset() + first * t.strides()[0]));
  return slice.to_doubles();
}

double distance(double got, double want) {
  if (std::isnan(got) || std::isnan(want))
    // A comparison with NaN is false: the error would pass every tolerance.
    return std::isnan(got) && std::isnan(want) ? 0 : std::numeric_limits<double>::infinity();
  if (got == want) return 0;  // equal infinities
  // Relative above 1 and absolute below: a relative error means little where a sum has cancelled.
  return std::abs(got - want) / std::max(1.0, std::abs(want));
}

}  // namespace

std::string to_string(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

std::string_view name(Variant variant) {
  switch (variant) {
    case Variant::kFused:
      return "fused";
    case Variant::kUnfused:
      return "unfused";
  }
  return "";
}

std::string_view Sources::text(std::string_view folder) {
  return embedded::kernel_text(fmt::format("{}/kernel.py", folder));
}

Result<Kernel> Sources::kernel(std::string_view folder, std::string_view function) {
  auto key = std::pair(std::string(folder), std::string(function));
  if (auto it = loaded_.find(key); it != loaded_.end()) return it->second;
  std::string_view source = text(folder);
  if (!source.data()) return error(ErrorKind::kName, "there is no kernels/{}/kernel.py", folder);
  KILN_TRY(Kernel k, Kernel::from_source(std::string(source), fmt::format("kernels/{}/kernel.py", folder), function));
  return loaded_.emplace(std::move(key), std::move(k)).first->second;
}

Status Problem::run() const {
  for (const Launch& launch : launches) KILN_CHECK_OK(launch.run());
  return {};
}

Result<Check> check(const Case& which, const Problem& problem, Variant variant, int64_t most_elements) {
  Check c;
  // The chain cancels: gelu(2x + y)·sigmoid(y) may be near x, which reaches 6 among 2^28 normals. Four roundings of it
  // to bf16 make 6·4·2^-9 = 0.047, twelve times the fused kernel's bound.
  c.tolerance = which.tolerance(problem.dtype) * (variant == Variant::kUnfused ? 16 : 1);
  int64_t rows = problem.shape[0], row_size = 1;
  for (size_t d = 1; d < problem.shape.size(); ++d) row_size *= problem.shape[d];

  // At most kPieces runs of rows, spread from the first row to the last.
  constexpr int64_t kPieces = 16;
  int64_t wanted = std::clamp<int64_t>(most_elements / row_size, 1, rows);
  int64_t pieces = std::min(kPieces, wanted), piece_rows = wanted / pieces;
  if (wanted == rows) pieces = 1, piece_rows = rows;
  for (int64_t p = 0; p < pieces; ++p) {
    Rows part;
    part.count = piece_rows;
    part.first = pieces == 1 ? 0 : (rows - piece_rows) * p / (pieces - 1);
    part.row_size = row_size;
    part.seed = problem.seed;
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      const Tensor& t = problem.inputs[i];
      if (static_cast<int>(i) < problem.sliced_inputs) {
        KILN_TRY(part.inputs.emplace_back(), rows_of(t, part.first, part.count));
      } else {
        KILN_TRY(part.inputs.emplace_back(), t.to_doubles());
      }
    }
    std::vector<std::vector<double>> want = which.reference(part);
    KILN_ASSERT(want.size() == problem.outputs.size(), "case {}: {} outputs, {} references", which.name,
                problem.outputs.size(), want.size());
    for (size_t o = 0; o < want.size(); ++o) {
      KILN_TRY(std::vector<double> got, rows_of(problem.outputs[o], part.first, part.count));
      KILN_ASSERT(got.size() == want[o].size(), "case {}: output {} has {} elements, its reference {}", which.name, o,
                  got.size(), want[o].size());
      int64_t per_row = static_cast<int64_t>(got.size()) / std::max<int64_t>(1, part.count);
      for (size_t i = 0; i < got.size(); ++i) {
        double d = distance(got[i], want[o][i]);
        if (d <= c.error) continue;
        c.error = d;
        int64_t at = static_cast<int64_t>(i);
        c.worst = fmt::format("output {}, row {}, column {}: got {}, expected {}", o, part.first + at / per_row,
                              at % per_row, got[i], want[o][i]);
      }
      c.elements += static_cast<int64_t>(got.size());
    }
  }
  return c;
}

int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Problem empty_problem(const Request& request) {
  Problem p;
  p.device = request.device;
  p.dtype = request.dtype;
  p.shape = request.shape;
  p.seed = request.seed;
  p.for_gpu = request.for_gpu;
  return p;
}

Launch launch(Kernel kernel, int64_t programs, std::vector<std::optional<Arg>> args, int num_warps) {
  Launch l;
  l.kernel = std::move(kernel);
  l.grid = {programs, 1, 1};
  l.args = std::move(args);
  l.options.num_warps = num_warps;
  return l;
}

PointwiseConfig pointwise_config(bool gpu, DType dtype) {
  // GPU: two loads of 16 bytes per thread and tensor of 32 bits, four of halves: the six-op chain of 2^28 halves takes
  // 386 us on an H200, 415 with two and 439 with one; an addition 370 to 373 with any. CPU: a block that stays in the
  // first-level cache.
  if (gpu) return size_of(dtype) >= 4 ? PointwiseConfig{1024, 4} : PointwiseConfig{2048, 2};
  return {2048, 4};
}

RowConfig row_config(bool gpu, int64_t n, DType dtype, int vectors) {
  int64_t block = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  if (!gpu) return {block, 4};
  // Two loads of 16 bytes (of halves) per thread, while vectors beside the row leave registers for that; at most 16
  // warps, which wait for each other less. A row of 1024 needs one warp and no barrier, but two warps have a vector
  // sooner.
  constexpr int64_t kWarp = 32, kShort = 1024, kWide = 32768;
  const int64_t per_thread = (block == kShort ? vectors == 1 : block > kShort && vectors <= 1) ? 16 : 32;
  const bool wide = block >= kWide && size_of(dtype) <= 2;
  const int64_t most = wide || vectors <= 1 ? 16 : 32;
  return {block, static_cast<int>(std::clamp<int64_t>(block / (per_thread * kWarp), 1, most)), wide};
}

Status OpChain::add(std::string_view op, int64_t programs, std::vector<std::optional<Arg>> args, int num_warps) {
  KILN_TRY(Kernel kernel, sources_.kernel("ops", op));
  for (const std::optional<Arg>& a : args)
    if (const Tensor* t = a ? std::get_if<Tensor>(&*a) : nullptr)
      problem_.bytes += static_cast<double>(t->numel()) * size_of(t->dtype());
  problem_.launches.push_back(launch(std::move(kernel), programs, std::move(args), num_warps));
  return {};
}

Status OpChain::pointwise(std::string_view op, std::span<const Tensor> inputs, const Tensor& out,
                          std::span<const double> scalars) {
  PointwiseConfig config = pointwise_config(problem_.for_gpu, out.dtype());
  std::vector<std::optional<Arg>> args(inputs.begin(), inputs.end());
  args.push_back(out);
  for (double s : scalars) args.push_back(s);
  args.push_back(out.numel());
  args.push_back(config.block);
  return add(op, cdiv(out.numel(), config.block), std::move(args), config.num_warps);
}

Status OpChain::reduce_rows(std::string_view op, const Tensor& x, const Tensor& out) {
  RowConfig config = row_config(problem_.for_gpu, x.shape()[1], x.dtype(), 1);
  return add(op, x.shape()[0], {x, out, x.shape()[1], config.block}, config.num_warps);
}

Status OpChain::with_vector(std::string_view op, const Tensor& x, const Tensor& vector, const Tensor& out) {
  RowConfig config = row_config(problem_.for_gpu, x.shape()[1], x.dtype(), 1);
  return add(op, x.shape()[0], {x, vector, out, x.shape()[1], config.block}, config.num_warps);
}

}  // namespace kiln::kernels
