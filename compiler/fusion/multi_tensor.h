// One kernel for many tensors of different sizes: a computation on elements, such as an optimizer's step of a
// parameter, is written once, for one tuple of tensors, and each program finds in a table which tuple it is for.
// PyTorch calls it multi-tensor apply.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/fusion/plan.h"

namespace kiln::fusion {

/// A kernel whose parameters are two tables of int64 and the numbers of the expression:
///   programs[program]  the tuple's row in `rows`, and in the upper half which block of its elements
///   rows[row]          how many elements each of the tuple's tensors has, and their addresses, a multiple of 16 each
/// Tensors of no dimension are the same for all tuples, and parameters too.
struct MultiTensor {
  Plan of_one;                     // of one tuple, with as many elements as no tensor has
  std::vector<TensorArg> columns;  // the tensors of a row, as values of that plan; their offsets are 0
  std::string source, kernel;
  std::vector<Argument> arguments;  // behind the two tables: numbers, and tensors of no dimension
  int64_t block = 0;                // elements of a program
  CodeOptions options;
};

/// Of an expression whose tensors all have one shape, or none, and lie in row-major order, from addresses that are
/// multiples of 16. Nullopt where it is no computation on elements alone, or takes more than a kernel.
Result<std::optional<MultiTensor>> multi_tensor(const Graph& graph, const PlanOptions& options);

}  // namespace kiln::fusion
