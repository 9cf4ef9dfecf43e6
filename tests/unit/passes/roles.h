// Roles of warps that no pipeline has, as tests give them to specialize_warps.
#pragma once
#include "compiler/passes/hopper/roles.h"

namespace kiln::passes {

/// Whether a block is operand `Index` of a product, perhaps turned.
template <uint32_t Index>
bool is_operand_of_product(const ir::Op& load) {
  ir::Use use = load.result()->uses.at(0);
  while (use.op->kind == ir::OpKind::kTrans || use.op->kind == ir::OpKind::kConvertLayout)
    use = use.op->result()->uses.at(0);
  return use.op->kind == ir::OpKind::kDot && use.index == Index;
}

inline constexpr Role kProducerPerOperand[] = {{"first producer", is_operand_of_product<0>},
                                               {"second producer", is_operand_of_product<1>},
                                               {"producer of tiles", [](const ir::Op&) { return true; }}};

}  // namespace kiln::passes
