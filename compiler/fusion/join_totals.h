// Reductions of what a kernel has made, by whichever of its programs ends last.
#pragma once
#include <vector>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/plan.h"

namespace kiln::fusion {

/// Joins kernels with the next one where that is a single program that reduces what the first has made, as the parts of
/// a sum: a launch more takes some 3 us. `group_of` has the group of each cluster, before and after.
void join_totals(Plan& plan, const Grouping& grouping, std::vector<int>& group_of);

}  // namespace kiln::fusion
