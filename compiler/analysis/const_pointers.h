// Pointers that kernels promise not to write through: "*kfp32" in a signature, or a parameter annotated as tl.const.
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// An error at the first store or atomic whose address may be computed from such a parameter, as a choice of two
/// pointers at run time may.
Status check_const_pointers(ir::Module& module);

}  // namespace kiln::analysis
