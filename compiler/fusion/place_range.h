// Between which numbers an integer lies that is computed from counts and literals, such as the place of a window.
#pragma once
#include <optional>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

struct Range {
  double low, high;  // both included
};

/// Of all elements that the operand shows; nullopt where that depends on a tensor, or on a number that each launch
/// gives.
std::optional<Range> range_of(const Dag& dag, const Operand& o);

}  // namespace kiln::fusion
