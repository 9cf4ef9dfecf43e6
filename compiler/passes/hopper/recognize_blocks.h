// Reads the classic pointer form of a matrix product as block accesses: a tile of pointers base + row · stride + column
// with bounds in its mask, or with rows taken modulo the matrix, is a block of a strided tensor, which the tensor
// memory accelerator can bring.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Tile stage, before select_wgmma, on targets with wgmma. Turns the loads behind both operands of a dot that warp
/// groups can compute, and the stores of kernels with such a dot, into descriptor_load and descriptor_store. A load
/// with an index taken modulo n becomes one that gives 0 beyond n, where every store leaves those rows out.
Status recognize_blocks(ir::Module& module, const target::Target& target);

}  // namespace kiln::passes
