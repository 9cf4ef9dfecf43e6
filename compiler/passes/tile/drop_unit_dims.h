// Blocks of one matrix of a batch: a block of a tensor with more dimensions, in which it has one element each, is
// loaded and stored as the matrix that it is, and the reshape between goes. Products find their operands so.
//   %a = descriptor_load %d, %batch, %row, %k : bf16[1, 128, 64]        %a = descriptor_load … : bf16[128, 64]
//   %m = reshape %a : bf16[128, 64]                                 →
#pragma once
#include "compiler/ir/ir.h"

namespace kiln::passes {

struct DropUnitDimsOptions {};

Status drop_unit_dims(ir::Module& module, const DropUnitDimsOptions& options = {});

}  // namespace kiln::passes
