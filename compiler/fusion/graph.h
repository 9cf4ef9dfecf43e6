// Tensor expressions as a graph of plain data: no tensors, no devices. What infer() makes and plan() takes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kiln/expr_op.h"
#include "support/source.h"

namespace kiln::fusion {

/// Nodes, groups and dimensions are ints in plans; containers want size_t.
inline size_t at(int i) { return static_cast<size_t>(i); }

using Shape = std::vector<int64_t>;
using Number = std::variant<bool, int64_t, double>;

struct Node {
  ExprOp op = ExprOp::kInput;
  std::vector<int> inputs;  // positions in Graph::nodes, all before this one
  DType dtype = DType::kF32;
  Shape shape;
  ExprAttributes attributes;
  // Of inputs only:
  Shape strides;      // in elements
  int alignment = 1;  // bytes that divide the address of the first element, at most 16
  // Of scalars only: kernels take it as an argument, so that the plan holds for other ordinary numbers.
  bool is_argument = false;
  // Of any node:
  std::string name;   // the user's word for it, for names in the source; may be empty
  SourceRange range;  // where it was written, for messages
};

struct Graph {
  std::vector<Node> nodes;  // operands before their users
  std::vector<int> outputs;
  /// One per output, or none: whether its elements may lie in any order, since it is only seen in another one.
  std::vector<bool> any_order;
};

/// Whether an operation takes a number among its operands as an argument of the kernel. Exponents, divisors of // and
/// %, shifts and bits stay in the source: with another one it is another computation. Keys of random numbers do not.
bool takes_argument(ExprOp op);
/// Whether an operation gives what another one would of the elements up to each: that other one, where it does.
std::optional<ExprOp> reduction_of_scan(ExprOp op);
/// Neither 0, 0.5, 1, 2, their negatives nor what float32 holds no digits of: those change what a plan may do, or read
/// better where they stand.
bool is_ordinary(const Number& number);
/// What an operation rounds the numbers among its operands to, when these meet in `type`: comparisons, % and powers to
/// that dtype, as torch does, and everything else to the type in which it computes (float32 for halves and fp8).
DType number_type(ExprOp op, DType type);
/// A number as the operand of an operation in `type`: floats are rounded, integers wrap as storing them would.
Number converted(const Number& number, DType type);

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
Node scalar(Number value);

}  // namespace kiln::fusion
