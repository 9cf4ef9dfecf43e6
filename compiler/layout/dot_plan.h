// Which registers of its operands a matrix product combines in each thread or warp. The plan is data: the lowering
// emits it, and it exists only when every thread has what its part of the product needs.
#pragma once
#include <optional>
#include <vector>

#include "compiler/layout/linear_layout.h"

namespace kiln::layout {

/// c += a · b on these registers: of an mma.sync the fragments in the order of the PTX ISA (elements, not 32-bit
/// registers), else one register of each. A register may stand there twice when the tile is smaller than the
/// instruction; of those of c the first one counts.
struct DotStep {
  std::vector<int> a, b, c;
};

struct DotPlan {
  std::vector<DotStep> steps;  // k ascends for each register of c
  std::vector<int> copy_of;    // of each register of c the one that the steps compute: itself, unless it is a copy
};

/// With mma.sync of operands of `element_bits` in runs of `k_width` along k (mma_operand); nothing when the layouts are
/// no fragments of it.
std::optional<DotPlan> plan_mma(const LinearLayout& a, const LinearLayout& b, const LinearLayout& c, int element_bits,
                                int k_width = 0);
/// With one multiplication at a time; nothing when a thread lacks an element.
std::optional<DotPlan> plan_fma(const LinearLayout& a, const LinearLayout& b, const LinearLayout& c);

}  // namespace kiln::layout
