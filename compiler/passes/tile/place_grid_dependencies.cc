#include "compiler/passes/tile/place_grid_dependencies.h"

#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

using ir::OpKind;

void place_grid_dependencies(ir::Module& module) {
  if (has_op(module, OpKind::kGdcWait)) return;
  ir::Builder b(module);
  b.set_before(module.body()->first);
  b.create(OpKind::kGdcWait, {}, {});
  if (!has_op(module, OpKind::kGdcLaunchDependents)) b.create(OpKind::kGdcLaunchDependents, {}, {});
}

}  // namespace kiln::passes
