// The choice of a layout for each tile of a kernel, by what accesses, products and reductions take in it and what
// conversions between layouts cost. assign_layouts writes it into the IR.
#pragma once
#include <memory>

#include "compiler/analysis/cheap_values.h"
#include "compiler/ir/ir.h"
#include "compiler/layout/linear_layout.h"

namespace kiln::passes {

inline bool is_tile(const ir::Value* v) { return v->type.is_tile(); }

/// Of a tile that nothing asks a layout of.
layout::LinearLayout default_layout(const ir::Shape& shape, int num_warps);

/// Ops whose results' layout is dictated by their operands' rather than the other way round.
bool is_forward(const ir::Op* op);

class LayoutChoice {
 public:
  /// `cheap`: values that have no layout of their own, but are computed in that of each use.
  LayoutChoice(ir::Module& module, const analysis::CheapValues& cheap);
  ~LayoutChoice();

  const layout::LinearLayout* of(const ir::Value* v);
  /// The layout that an op which needs one of its own (a memory op, a print, a reduction's input) works in.
  const layout::LinearLayout* of(const ir::Op* op);

 private:
  class Chooser;
  std::unique_ptr<Chooser> chooser_;
};

}  // namespace kiln::passes
