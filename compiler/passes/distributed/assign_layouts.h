// From the tile stage to the distributed stage: every tile gets a layout, and convert_layout stands where two meet.
//
//   %o = arange … : i32[1024]                %o = arange … : i32[1024]{L0}
//   %p = addptr %xs, %o : *f32[1024]   →     %p = addptr %xs, %o : *f32[1024]{L0}
//   %v = load %p : f32[1024]                 %v = load %p : f32[1024]{L0}
#pragma once
#include <unordered_map>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Values that elementwise ops, loops and branches tie together get one layout; memory ops may differ from their
/// neighbours when the wider access pays for a conversion; reductions give the slice of their operand's layout. What is
/// cheap to compute (arange, constants, splats and arithmetic on them) is computed again wherever another layout needs
/// it.
Status assign_layouts(ir::Module& module, const target::Target& target);

/// The tiles that are better computed again in another layout than converted.
class CheapValues {
 public:
  explicit CheapValues(ir::Block* body);
  bool has(const ir::Value* value) const { return cost_.contains(value); }

 private:
  void add(ir::Block* block);
  /// Ops that computing the result again takes; 0 when it cannot be.
  int cost(const ir::Op* op) const;
  std::unordered_map<const ir::Value*, int> cost_;
};

}  // namespace kiln::passes
