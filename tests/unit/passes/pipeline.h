// A tile module through the whole pipeline of a target, as tests of one pass look at it.
#pragma once
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "support/diag.h"

namespace kiln::passes {

/// `made` in the distributed stage, verified after each pass; null, with a failure, where that does not succeed. `tile`
/// gets a copy from before.
inline std::unique_ptr<ir::Module> through_pipeline(Result<std::unique_ptr<ir::Module>> made, std::string_view name,
                                                    std::unique_ptr<ir::Module>* tile = nullptr) {
  EXPECT_TRUE(made.ok()) << render(made.error());
  if (!made.ok()) return nullptr;
  if (tile) *tile = ir::clone(**made);
  RunOptions options;
  options.verify_each = true;
  const target::Target& target = *target::find(name);
  const Status s = run(pipeline(target.kind), **made, target, options);
  EXPECT_TRUE(s.ok()) << render(s.error());
  return s.ok() ? std::move(*made) : nullptr;
}

inline int count(ir::Module& m, ir::OpKind kind) {
  int n = 0;
  ir::walk(m.body(), [&](ir::Op* op) { n += op->kind == kind; });
  return n;
}

}  // namespace kiln::passes
