// Tiles that are computed again where another layout needs them: indices, masks and what is made of constants.
#pragma once
#include <unordered_map>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// Ops that change the shape of a tile and nothing else; their operand's layout follows from the result's.
bool is_shape_op(const ir::Op* op);

/// The tiles that are cheaper to recompute in another layout than to convert.
class CheapValues {
 public:
  explicit CheapValues(ir::Block* body);
  bool has(const ir::Value* value) const { return cost_.contains(value); }

 private:
  void add(ir::Block* block);
  /// Number of ops needed to recompute the result; 0 when that is impossible.
  int cost(const ir::Op* op) const;
  std::unordered_map<const ir::Value*, int> cost_;
};

}  // namespace kiln::analysis
