// What the BLAS libraries compute beside a product.
#pragma once
#include "compiler/fusion/dag.h"

namespace kiln::fusion {

/// Makes a bias of the columns and a relu or gelu_tanh part of the products that only they use; true when any was.
bool absorb_epilogues(Dag& dag);

}  // namespace kiln::fusion
