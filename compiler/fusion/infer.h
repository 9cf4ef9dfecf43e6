// torch's rules: the dtype and shape of each operation's result, and the operands that it rejects.
#pragma once
#include <span>

#include "compiler/fusion/graph.h"
#include "kiln/result.h"

namespace kiln::fusion {

/// The node of `op` on operands `inputs`, whose dtypes and shapes are known; `positions` become Node::inputs. Tensors
/// with dimensions decide the dtype among themselves, then 0-d tensors, then Python numbers, unless a later one is of a
/// higher kind (bool < int < float). kType names the shapes that do not fit, kValue an axis or number outside of its
/// range, kUnsupported what no kernel is written for, kMemory a result
/// whose elements 64 bits cannot count; the message has no place of its own.
Result<Node> infer(ExprOp op, std::span<const Node* const> inputs, std::span<const int> positions,
                   ExprAttributes attributes = {});

/// The same into a node that is as it was made: expressions make thousands of them a step, each where it stays.
Status infer_into(Node& out, ExprOp op, std::span<const Node* const> inputs, std::span<const int> positions,
                  ExprAttributes attributes = {});

/// Appends infer()'s node to the graph and gives its position.
Result<int> append(Graph& graph, ExprOp op, std::span<const int> inputs, ExprAttributes attributes = {});

/// The dtype of two tensors with dimensions.
DType promote(DType a, DType b);
/// The dtype in which a pointwise node's operands meet before the operation.
DType operand_dtype(ExprOp op, std::span<const Node* const> inputs);

}  // namespace kiln::fusion
