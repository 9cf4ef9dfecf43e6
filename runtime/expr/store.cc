// Values that go into tensors that are there already: changes in place.
#include <algorithm>

#include "runtime/device/device.h"
#include "runtime/expr/plan.h"
#include "runtime/expr/scatter.h"
#include "support/diag.h"

namespace kiln {

using namespace runtime;

namespace {

Result<Tensor> copy_of(const Tensor& value) {
  KILN_TRY(Tensor copy, Tensor::empty(value.device(), value.dtype(), value.shape()));
  KILN_CHECK_OK(copy.copy_from(value));
  return copy;
}

}  // namespace

int runtime::value_in_place(const PreparedPlan& prepared, std::span<const Tensor> leaves, size_t root,
                            const Tensor& to) {
  const fusion::Plan& plan = prepared.plan;
  const fusion::View& output = plan.outputs[root];
  const fusion::Value& v = plan.values[static_cast<size_t>(output.value)];
  if (v.put) return output.value;  // run_put() saw to it that nothing reads there
  if (v.input >= 0 || output.offset != 0 || v.dtype != to.dtype() || !to.is_contiguous() ||
      !std::ranges::equal(v.shape, to.shape()))
    return -1;
  // Two results must not share the memory of `to`.
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    if (i != root && plan.outputs[i].value == output.value) return -1;
  for (size_t read = 0; read < plan.values.size(); ++read) {
    const int node = plan.values[read].input;
    if (node < 0) continue;
    const Tensor& leaf = leaves[static_cast<size_t>(prepared.leaf_of_node[static_cast<size_t>(node)])];
    if (leaf.storage() != to.storage()) continue;
    const bool same = leaf.offset() == to.offset() && leaf.dtype() == to.dtype() && leaf.is_contiguous() &&
                      leaf.numel() == to.numel();
    if (!fusion::is_read_in_time(plan, static_cast<int>(read), output.value, same)) return -1;
  }
  return output.value;
}

Status run_into(std::span<const ExprStore> stores, ExprVariant variant) {
  std::vector<Expr> exprs;
  for (const ExprStore& s : stores) {
    if (!s.value || s.value.is_scalar())
      return error(ErrorKind::kValue, "only an expression with a tensor in it is run");
    exprs.push_back(s.value);
  }
  KILN_CHECK_OK(run_scatters(exprs, variant, /*with_others=*/false));
  std::vector<ExprNode*> roots;
  std::vector<Tensor> homes;
  for (const ExprStore& s : stores) {
    ExprNode* n = s.value.node();
    // No kernel writes these: a view shares memory, a conversion is a call of its own unless a GPU can write into the
    // tensor at once, and of nothing there is no launch.
    const bool converts = is_plain_conversion(*n),
               at_once = converts && s.to && n->device.is_cuda() && n->operands[0]->value.dtype() != n->node.dtype;
    const bool alone =
        info(n->node.op).kind == ExprKind::kView || (converts && !at_once) || fusion::numel(n->node.shape) == 0;
    if (!n->is_pending() || alone || std::ranges::find(roots, n) != roots.end()) continue;
    roots.push_back(n);
    homes.push_back(s.to);
  }
  // Nothing has been written yet.
  for (const ExprStore& s : stores)
    if (std::ranges::find(roots, s.value.node()) == roots.end()) KILN_CHECK_OK(run(s.value, variant));
  if (!roots.empty()) {
    ExprWalk walk(std::span<const ExprNode* const>(roots.data(), roots.size()));
    KILN_CHECK_OK(check_leaves(walk));
    KILN_CHECK_OK(launch_together(roots, roots[0]->device, variant, walk, homes));
  }
  // A value that is a view of memory that another one goes to is read before.
  std::vector<Tensor> values;
  for (const ExprStore& s : stores) {
    Tensor value = *s.value.tensor();
    const bool overlaps = std::ranges::any_of(stores, [&](const ExprStore& other) {
      return other.to && other.to.storage() == value.storage() && s.to && s.to.address() != value.address();
    });
    if (overlaps) {
      KILN_TRY(value, copy_of(value));
    }
    values.push_back(std::move(value));
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    const Tensor &to = stores[i].to, &value = values[i];
    const bool there =
        to && to.storage() == value.storage() && to.address() == value.address() && value.is_contiguous();
    if (to && !there) KILN_CHECK_OK(to.copy_from(value));
  }
  return {};
}

Status run_put(const Expr& put, const Tensor& to) {
  ExprNode* n = put.node();
  if (!n || n->node.op != ExprOp::kPut || n->node.dtype != to.dtype() || n->device != to.device())
    return error(ErrorKind::kType, "run_put() takes a put of {} on the tensor's device", info(to.dtype()).torch);
  if (fusion::numel(n->node.shape) == 0) return {};
  KILN_CHECK_OK(run_scatters({&put, 1}, ExprVariant::kFused));
  const ExprWalk walk(*n);
  KILN_CHECK_OK(check_leaves(walk));
  auto shares = [&](const Tensor& t) { return t.storage() == to.storage(); };
  if (std::ranges::none_of(walk.leaves, [&](const ExprNode* leaf) { return shares(leaf->value); }))
    return launch_together({&n, 1}, n->device, ExprVariant::kFused, walk, {&to, 1});
  // All reading comes first: of what lies in the tensor itself there are copies.
  std::vector<Expr> operands;
  for (const auto& operand : n->operands) {
    KILN_TRY(Tensor value, run(Expr(operand)));
    if (shares(value)) {
      KILN_TRY(value, copy_of(value));
    }
    operands.emplace_back(std::move(value));
  }
  KILN_TRY(const Expr again, apply(ExprOp::kPut, operands, n->node.attributes));
  return run_put(again, to);
}

int64_t count_leaves(std::span<const Expr> exprs, const Storage* storage, int64_t most) {
  const uint64_t visit = next_visit();
  std::vector<const ExprNode*> left;
  int64_t count = 0;
  for (const Expr& e : exprs) left.push_back(e.node());
  while (!left.empty() && count < most) {
    const ExprNode* n = left.back();
    left.pop_back();
    if (!n || n->visit == visit) continue;
    n->visit = visit;
    count += n->value && n->value.storage().get() == storage;
    for (const auto& operand : n->operands) left.push_back(operand.get());
  }
  return count;
}

}  // namespace kiln
