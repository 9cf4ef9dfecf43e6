#include "compiler/analysis/const_pointers.h"

#include <algorithm>

#include "compiler/analysis/pointer_origins.h"
#include "support/diag.h"

namespace kiln::analysis {

Status check_const_pointers(ir::Module& module) {
  if (std::ranges::none_of(module.params, &ir::ParamInfo::is_const)) return {};
  Status found;
  ir::walk(module.body(), [&](const ir::Op* op) {
    if (!found.ok() || !ir::writes_memory(op) || op->operands.empty()) return;
    for (int param : pointer_origins(op->operand(0)).params) {
      const ir::ParamInfo& p = module.params[static_cast<size_t>(param)];
      if (p.is_const)
        found = with_note(
            error_at(op->range, ErrorKind::kType, "{} is a pointer to constants, and nothing is stored there", p.name),
            "help: leave out its annotation tl.const, or the k of its type in the signature");
    }
  });
  return found;
}

}  // namespace kiln::analysis
