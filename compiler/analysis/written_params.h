// Which tensors a kernel writes. As everywhere in Triton, tensors that are passed as different parameters do not
// overlap.
#pragma once
#include <unordered_set>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// The kernel's parameter that a pointer, a tile of pointers or a descriptor is computed from; nullptr where that is
/// not known.
const ir::Value* parameter_of(const ir::Value* address);

/// The parameters that the kernel writes through; nullptr stands for an address of unknown origin.
std::unordered_set<const ir::Value*> written_params(ir::Module& module);

}  // namespace kiln::analysis
