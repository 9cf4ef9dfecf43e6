// Epilogues that the BLAS libraries compute with a product.
#pragma once
#include "compiler/fusion/dag.h"

namespace kiln::fusion {

/// Makes a bias of the columns and a relu or gelu part of the products that only they use; true when any was. The
/// libraries' gelu is the tanh form, which differs from the exact one by up to 4.7e-4: whoever shows the result says
/// so.
bool absorb_epilogues(Dag& dag);

}  // namespace kiln::fusion
