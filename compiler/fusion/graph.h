// Tensor expressions as a graph of plain data: no tensors, no devices. What infer() makes and plan() takes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/expr_op.h"
#include "support/source.h"

namespace kiln::fusion {

using Shape = std::vector<int64_t>;

struct Node {
  ExprOp op = ExprOp::kInput;
  std::vector<int> inputs;  // positions in Graph::nodes, all before this one
  DType dtype = DType::kF32;
  Shape shape;
  ExprAttributes attributes;
  // Of inputs only:
  Shape strides;      // in elements
  int alignment = 1;  // bytes that divide the address of the first element, at most 16
  // Of any node:
  std::string name;   // the user's word for it, for names in the source; may be empty
  SourceRange range;  // where it was written, for messages
};

struct Graph {
  std::vector<Node> nodes;  // operands before their users
  std::vector<int> outputs;
};

int64_t numel(const Shape& shape);
/// Strides of a contiguous tensor.
Shape row_major(const Shape& shape);
/// "[4, 5]"
std::string to_string(const Shape& shape);
/// A line per node: "%3 = add %1 %2 : f32[4, 5]".
std::string to_string(const Graph& graph);

/// A leaf for a tensor of these strides (in elements) whose address is a multiple of `alignment` bytes.
Node input(DType dtype, Shape shape, Shape strides, int alignment, std::string name = {});
/// A leaf for a Python number, which follows the dtype of what it meets.
Node scalar(std::variant<bool, int64_t, double> value);

}  // namespace kiln::fusion
