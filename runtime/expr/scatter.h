// scatter_add, the one operation that no plan has: a kernel of its own, between the plans of what comes before and
// after it. The gradient of looking elements up (embedding, gather, x[i]).
#pragma once
#include <vector>

#include "kiln/expr.h"
#include "runtime/expr/node.h"

namespace kiln::runtime {

/// Whether an operation of the walk is one that is not computed yet.
bool has_scatters(const ExprWalk& walk);

/// Computes every scatter_add that the expressions are made of, with what it needs; and with that, in the same plans,
/// those expressions that need none. Where these go into tensors, they stay pending (`with_others` false), and only
/// what they share with a scatter_add is computed.
Status run_scatters(std::span<const Expr> exprs, ExprVariant variant, bool with_others = true);

}  // namespace kiln::runtime
