// Selects the tiles beside products that TMA brings: what an epilogue adds to a product's sum or multiplies it by. In
// the layout of the sum a thread reads a few bytes of each row, and with a sum in its registers it has few loads under
// way; a block that the producer asks for while the last products run is there when they end.
//
//   %acc = for … { dot … }                            %acc = for … { dot … }
//   %r = descriptor_load %residual, %row, %column  →  %r = descriptor_load %residual, %row, %column {ahead}
//   %y = add %acc, %r                                 %y = add %acc, %r
#pragma once
#include <span>
#include <unordered_set>

#include "compiler/analysis/pointer_origins.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/target.h"

namespace kiln::passes {

/// Which loads of a kernel stand beside its products, and how many of their tiles shared memory holds beside the rings
/// of the products' operands.
class LoadsBesideProducts {
 public:
  /// `dots`: those whose operands TMA will bring.
  LoadsBesideProducts(ir::Module& module, std::span<ir::Op* const> dots, const target::Target& target);

  enum Answer { kNo, kNoRoom, kTaken };
  /// Whether the tile of `load` (load or descriptor_load) meets the result of one of the dots in an element-wise
  /// operation, in another block of code than theirs, nothing writes to its tensor, and there is room, which it then
  /// takes.
  Answer take(const ir::Op& load);
  /// Whether the kernel may write to the tensor of `load`, or wait for others that do.
  bool may_be_written(const ir::Op& load) const;
  /// Bytes that are left.
  int64_t room() const { return room_; }

 private:
  bool meets_product(const ir::Value* tile) const;

  std::unordered_set<const ir::Block*> blocks_;  // in which dots are, or loads of their operands
  std::unordered_set<const ir::Value*> made_;    // of results of dots, element by element
  analysis::PointerOrigins written_;
  std::vector<const ir::Op*> waits_;
  int64_t room_ = 0;
};

/// Tile stage, after select_wgmma and before expand_descriptors, which skips these loads. Sets their attribute `ahead`.
Status select_block_loads(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

/// A load that select_block_loads has chosen.
bool is_ahead(const ir::Op* op);

}  // namespace kiln::passes
