// Values that are cheaper to recompute than to store and reload.
#pragma once
#include "compiler/fusion/grouping.h"

namespace kiln::fusion {

/// Gives clusters their own copies of cheap pointwise nodes of others, where reading what those are made of moves no
/// more bytes than reading them; a node that nobody reads any more is no longer stored, or not computed at all.
void recompute_cheap(Dag& dag, Grouping& grouping, const Machine& machine);

}  // namespace kiln::fusion
