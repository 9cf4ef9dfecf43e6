// Shared by verifier.cc (structure) and verify_types.cc (type rules of each op).
#pragma once
#include <string>

#include "compiler/ir/ir.h"

namespace kiln::ir {

/// "" or what is wrong with the op's attribute values, operand types, result types and region arguments. Operand,
/// result and region counts and attribute kinds are already right.
std::string check_op_types(const Op& op);

/// "" or what is wrong with the terminators' operands of the op's regions; run after the regions were checked
/// themselves.
std::string check_region_results(const Op& op);

}  // namespace kiln::ir
