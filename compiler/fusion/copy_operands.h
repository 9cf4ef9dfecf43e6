// Copies of operands for the tensor cores. Blocks of a matrix are copied by TMA only where its rows begin at multiples
// of 16 bytes, at full speed only at multiples of 32, and operands of 8 and 32 bits only along k. Where a product takes
// longer without than the copies take, its operands are first written in rows of that kind.
#pragma once
#include "compiler/fusion/dag.h"

namespace kiln::fusion {

/// Adds the copies that pay, as pointwise nodes with padded rows.
void copy_operands(Dag& dag, const Machine& machine);

}  // namespace kiln::fusion
