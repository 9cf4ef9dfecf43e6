// Bandwidth of the kernels of kernels/, at real size, against the device's copy and against their unfused variants.
#include <fmt/format.h>

#include "bench/bench.h"
#include "kernels/case.h"
#include "profiler/measure/copy.h"
#include "support/diag.h"

namespace kiln::bench {

namespace {

using kernels::Case;
using kernels::Problem;
using kernels::Variant;

constexpr uint64_t kSeed = 1;

// A checked problem: a fast kernel that is wrong is no figure.
Result<std::shared_ptr<Problem>> ready(kernels::Sources& sources, const Context& context, const Case& c, DType dtype,
                                       const kernels::Shape& shape, Variant variant) {
  KILN_TRY(Problem made, c.make(sources, {context.device, dtype, shape, kSeed, variant}));
  auto p = std::make_shared<Problem>(std::move(made));
  KILN_CHECK_OK(p->run());
  // A part of the largest tensors, so that the check takes less than the measurement.
  KILN_TRY(kernels::Check checked, kernels::check(c, *p, variant, int64_t{1} << 18));
  if (!checked.ok())
    return error(ErrorKind::kMismatch, "{} {} {} {}: error {:.3g} is above {:.3g}: {}", c.name, name(dtype),
                 kernels::to_string(shape), name(variant), checked.error, checked.tolerance, checked.worst);
  return p;
}

profiler::Launchable launchable(std::string name, std::shared_ptr<Problem> p) {
  Device device = p->device;
  // The problem is held by the closure: its tensors live as long as it may be launched.
  return {std::move(name), device, [p = std::move(p)] { return p->run(); }};
}

int64_t elements(const kernels::Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Status against_copy(const Context& context, std::string_view group, const Case& c, DType dtype,
                    const kernels::Shape& shape, double goal) {
  kernels::Sources sources;
  KILN_TRY(std::shared_ptr<Problem> p, ready(sources, context, c, dtype, shape, Variant::kFused));
  int64_t copied = elements(shape) * size_of(dtype);
  KILN_TRY(profiler::Launchable copy, profiler::copy_launchable(context.device, copied));
  double bytes = p->bytes;
  KILN_TRY(Figure f, compare_sides(context, launchable(std::string(c.name), std::move(p)), bytes, copy,
                                   // A copy reads and writes.
                                   2.0 * static_cast<double>(copied)));
  f.group = group;
  f.name = fmt::format("{} {}", c.name, name(dtype));
  f.size = kernels::to_string(shape);
  f.goal = {Goal::Kind::kRatioAtLeast, goal};
  context.add(std::move(f));
  return {};
}

const std::vector<kernels::Shape> sizes(const Context& context, const Case& c) {
  return context.device.is_cuda() ? c.gpu_sizes() : c.host_sizes();
}

}  // namespace

Status bench_pointwise(const Context& context) {
  bool gpu = context.device.is_cuda();
  for (const char* name : {"vector_add", "pointwise_chain"})
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const Case& c = *kernels::find_case(name);
      for (const auto& shape : sizes(context, c))
        KILN_CHECK_OK(against_copy(context, "pointwise", c, dtype, shape, gpu ? 0.95 : 0.7));
    }
  return {};
}

Status bench_rows(const Context& context) {
  for (const char* name : {"softmax", "layernorm", "rmsnorm"}) {
    const Case& c = *kernels::find_case(name);
    for (const auto& shape : sizes(context, c))
      KILN_CHECK_OK(against_copy(context, "rows", c, DType::kBF16, shape, context.device.is_cuda() ? 0.90 : 0));
  }
  return {};
}

Status bench_fusion(const Context& context) {
  for (const Case* c : kernels::all_cases()) {
    if (c->name == "vector_add") continue;  // one operation: nothing to fuse
    // The first size: the ratio, and not its dependence on the size.
    kernels::Shape shape = sizes(context, *c)[0];
    DType dtype = context.device.is_cuda() ? DType::kBF16 : DType::kF32;
    kernels::Sources sources;
    KILN_TRY(std::shared_ptr<Problem> fused, ready(sources, context, *c, dtype, shape, Variant::kFused));
    KILN_TRY(std::shared_ptr<Problem> unfused, ready(sources, context, *c, dtype, shape, Variant::kUnfused));
    KILN_TRY(Figure f, compare_sides(context, launchable("fused", fused), 0,
                                     // No bytes: the ratio is of times, since both variants do the same work.
                                     launchable(fmt::format("{} kernels", unfused->launches.size()), unfused), 0));
    f.ours.bytes = fused->bytes;
    f.peer->bytes = unfused->bytes;
    f.group = "fusion";
    f.name = fmt::format("{} {}", c->name, name(dtype));
    f.size = kernels::to_string(shape);
    if (c->name == "pointwise_chain") f.goal = {Goal::Kind::kRatioAtLeast, 2};
    context.add(std::move(f));
  }
  return {};
}

}  // namespace kiln::bench
