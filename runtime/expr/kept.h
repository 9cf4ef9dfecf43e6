// What is stored beside results, since it would be computed once more by what comes later.
#pragma once
#include <memory>
#include <vector>

#include "runtime/expr/node.h"

namespace kiln::runtime {

using Nodes = std::vector<std::shared_ptr<ExprNode>>;

/// Adds those that are no trifle to compute again, each once.
void append_costly(const Nodes& nodes, std::vector<Expr>& to);
/// Adds what is pending in the roots, no trifle, and held by somebody who is not computed with them.
void append_read_elsewhere(const Nodes& roots, std::vector<Expr>& to);

}  // namespace kiln::runtime
