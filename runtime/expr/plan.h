// Plans made launchable: kernels compiled from their sources, arguments bound to tensors.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/fusion/plan.h"
#include "kiln/blas.h"
#include "kiln/expr.h"
#include "runtime/expr/node.h"
#include "runtime/expr/totals.h"

namespace kiln::runtime {

struct Binding;

/// What a plan's last launch was bound to, without its tensors: the next one puts its own there, and makes no steps and
/// arguments anew. Empty while a launch has it; another thread's makes its own then.
class SpareBinding {
 public:
  SpareBinding() = default;
  SpareBinding(const SpareBinding&) {}  // of an edited plan, whose kernels are others
  ~SpareBinding();
  std::unique_ptr<Binding> take() const;
  void give(std::unique_ptr<Binding> binding) const;

 private:
  mutable std::atomic<Binding*> spare_ = nullptr;
};

/// A plan with its kernels. Shared by every expression of the same structure; never changes but for the totals and the
/// spare binding.
struct PreparedPlan {
  fusion::Plan plan;
  std::vector<int> leaf_of_node;    // of the planned graph; -1: no leaf
  std::vector<Kernel> kernels;      // per group; empty for a product
  std::optional<MatmulImpl> impl;   // of products
  std::vector<int64_t> slot_bytes;  // temporaries that share memory
  Totals totals;                    // which launches of its scans leave to the next
  SpareBinding spare;
  std::shared_ptr<std::atomic<bool>> are_compiled = std::make_shared<std::atomic<bool>>(false);  // its kernels
};

/// Kernels of a device by their source, so that the same group of two plans is compiled once.
Result<Kernel> kernel_of(const Device& device, const std::string& source, const std::string& name);

fusion::Variant planner_variant(ExprVariant variant);
std::optional<MatmulImpl> product_impl(ExprVariant variant);
const fusion::Machine& machine_of(const Device& device);

/// Plans a graph for a machine, with kernels of the device's; `leaves` of its walk give leaf_of_node. `joins_totals`:
/// fusion::PlanOptions.
Result<std::shared_ptr<const PreparedPlan>> prepare(const ExprWalk& walk, const Device& device,
                                                    const fusion::Machine& machine, ExprVariant variant,
                                                    std::span<const ExprName> names, bool joins_totals = true);
/// For a device and from its cache, planned at the first use.
Result<std::shared_ptr<const PreparedPlan>> cached_plan(const ExprWalk& walk, const Device& device, ExprVariant variant,
                                                        bool joins_totals = true);

ExprPlan describe_plan(const fusion::Plan& plan);

/// How a kernel of a plan is launched: with its own options, or an edit's, and early where the plan's kernels overlap.
LaunchOptions launch_options(const CodeOptions& own, bool overlaps);

/// An error when a tensor of the expression is freed.
Status check_leaves(const ExprWalk& walk);

/// An argument of a kernel; `tensor` makes that of a fusion::TensorArg.
template <class Fn>
Result<Arg> argument_of(const fusion::Argument& a, Fn&& tensor) {
  return std::visit(
      [&](const auto& v) -> Result<Arg> {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, fusion::TensorArg>)
          return tensor(v);
        else
          return Arg(v);
      },
      a.value);
}

/// A number among the arguments of a kernel: that of the expression, where there is one.
Arg number_argument(const fusion::Argument& a, const ExprWalk* numbers);

/// One launch with its arguments, which point into the binding's tensors.
struct BoundStep {
  Kernel kernel;
  std::array<int64_t, 3> grid = {1, 1, 1};
  LaunchOptions options;
  std::vector<std::optional<Arg>> args;
  // A product instead, when there is no kernel.
  Tensor a, b;
  MatmulOptions product;

  Status launch() const;
};

/// A plan bound to leaves, outputs and temporaries.
struct Binding {
  std::shared_ptr<const PreparedPlan> plan;
  std::vector<Tensor> values;   // per plan value
  std::vector<Tensor> offsets;  // first elements of parts of values; arguments point to them
  std::vector<BoundStep> steps;
  std::vector<Tensor> outputs;

  Binding() = default;
  Binding(Binding&&) = default;
  Binding& operator=(Binding&&) = default;
  Status launch() const {
    for (const BoundStep& s : steps) KILN_CHECK_OK(s.launch());
    return {};
  }
};
/// Binds tensors that there are, one per plan value. Launches nothing.
Result<Binding> bind_values(std::shared_ptr<const PreparedPlan> plan, std::vector<Tensor> values,
                            const ExprWalk* numbers = nullptr);
/// Allocates outputs and temporaries. kMemory says how much they need. `numbers`: the expression whose numbers the
/// kernels get; without it those that the plan was made with. `given`: tensors for some of the plan's values.
/// `own_turns`: it may be launched on any stream, not only on the current one.
Result<Binding> bind_plan(std::shared_ptr<const PreparedPlan> plan, std::span<const Tensor> leaves,
                          const Device& device, const ExprWalk* numbers = nullptr,
                          std::span<const std::pair<int, Tensor>> given = {}, bool own_turns = false);
/// The plan's value that may lie in `to` from the start, for root number `root`; -1 where something would be read too
/// late.
int value_in_place(const PreparedPlan& prepared, std::span<const Tensor> leaves, size_t root, const Tensor& to);
/// Plans, binds and launches what the walk began at, none of it empty, and gives the roots their values: in these
/// tensors, one for each root, where those may be written from the start.
Status launch_together(std::span<ExprNode* const> roots, const Device& device, ExprVariant variant,
                       const ExprWalk& walk, std::span<const Tensor> homes = {});
/// The tensors of a walk's leaves.
std::vector<Tensor> leaf_tensors(const ExprWalk& walk);
/// A conversion of a tensor alone, where the runtime has a kernel for it, or no kernel is needed. One to the dtype that
/// the tensor has makes it row-major, which Tensor::to() would not.
bool is_plain_conversion(const ExprNode& n);
/// Whether nobody else sees what this view puts into another order: it may lie in any.
bool sees_alone(const ExprNode& view);
struct Roots {
  std::vector<ExprNode*> nodes;
  std::vector<bool> any_order;  // fusion::Graph::any_order
};
/// What a plan of these begins at: behind views, which share the memory of what they are views of, and without what
/// needs no plan. They go their own way after.
Roots roots_of(std::span<const Expr> exprs);
/// Of the plan of one expression, or of roots_of() several. kValue where nothing is to be planned.
Result<ExprWalk> walk_of(std::span<const Expr> exprs);

}  // namespace kiln::runtime
