// Recognises the classic pointer form of a matrix product as block accesses. A tile of pointers base + row · stride +
// column, with bounds in its mask or with rows taken modulo the matrix, is a block of a strided tensor, which TMA can
// load.
#pragma once
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Tile stage, before select_wgmma, on targets with wgmma. Turns the loads of both operands of a dot that wgmma can
/// compute, and in kernels with such a dot the stores and the loads of what meets its sum (select_block_loads.h), into
/// descriptor_load and descriptor_store. A load with an index modulo n becomes one that gives 0 beyond n, provided that
/// every store masks those rows off.
Status recognize_blocks(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

}  // namespace kiln::passes
