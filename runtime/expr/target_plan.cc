// Plans and kernels for a GPU that is not there.
#include <deque>
#include <map>

#include "runtime/device/device.h"
#include "runtime/expr/plan.h"
#include "support/diag.h"

namespace kiln {

using namespace runtime;

namespace {

/// Tensors that stand for a plan's values: code depends on their dtype and alignment alone, so they are small.
class StandIns {
 public:
  StandIns(const PreparedPlan& prepared, const ExprWalk& walk, Device device)
      : prepared_(prepared), walk_(walk), device_(std::move(device)) {}

  Result<Arg> argument(const fusion::Argument& a) {
    return argument_of(a, [this](const fusion::TensorArg& t) { return tensor(t); });
  }

 private:
  static constexpr int64_t kElements = 64;

  Result<Arg> tensor(const fusion::TensorArg& t) {
    const fusion::Value& value = prepared_.plan.values[static_cast<size_t>(t.value)];
    if (value.input >= 0) {
      const auto leaf = static_cast<size_t>(prepared_.leaf_of_node[static_cast<size_t>(value.input)]);
      const Tensor& real = walk_.leaves[leaf]->value;
      KILN_TRY(Tensor first, real.as_strided({}, {}, real.offset() + t.offset));
      return kept(std::move(first));
    }
    auto [small, is_new] = buffers_.try_emplace(value.dtype);
    if (is_new) {
      KILN_TRY(small->second, Tensor::empty(device_, value.dtype, std::span<const int64_t>(&kElements, 1)));
    }
    KILN_TRY(Tensor first, small->second.as_strided({}, {}, t.offset % kElements));
    return kept(std::move(first));
  }
  Arg kept(Tensor t) { return Arg(&std::as_const(tensors_.emplace_back(std::move(t)))); }

  const PreparedPlan& prepared_;
  const ExprWalk& walk_;
  Device device_;
  std::map<DType, Tensor> buffers_;
  std::deque<Tensor> tensors_;  // arguments point to them
};

}  // namespace

Result<TargetPlan> plan_for(const Expr& expr, std::string_view target, ExprVariant variant,
                            std::span<const ExprName> names) {
  return plan_together_for(std::span(&expr, 1), target, variant, names);
}

Result<TargetPlan> plan_together_for(std::span<const Expr> exprs, std::string_view target, ExprVariant variant,
                                     std::span<const ExprName> names) {
  KILN_TRY(const ExprWalk walk, walk_of(exprs));
  const Device device = exprs[0].device();
  std::optional<fusion::Machine> machine = fusion::usual_machine(target);
  if (!machine) return error(ErrorKind::kValue, "'{}' is no GPU target", target);
  if (const fusion::Machine& own = machine_of(device); own.target == target) machine = own;
  KILN_CHECK_OK(check_leaves(walk));
  KILN_TRY(auto prepared, prepare(walk, device, *machine, variant, names));
  TargetPlan out;
  out.plan = describe_plan(prepared->plan);
  StandIns stand_ins(*prepared, walk, device);
  for (size_t i = 0; i < prepared->plan.groups.size(); ++i) {
    const fusion::Group& g = prepared->plan.groups[i];
    if (g.kind == fusion::GroupKind::kProduct) continue;
    std::vector<std::optional<Arg>> args;
    for (const fusion::Argument& a : g.arguments) {
      KILN_TRY(args.emplace_back(), stand_ins.argument(a));
    }
    const LaunchOptions options = launch_options(g, prepared->plan.overlaps);
    KILN_TRY(KernelInfo info, prepared->kernels[i].compile(args, options, target));
    out.kernels.push_back(std::move(info));
  }
  return out;
}

}  // namespace kiln
