// The loads of a loop through whose values others are gathered, such as page tables, where pipeline_loads brings them
// by a ring of their own ahead of what they address.
//
//   %i = load %p : i32[64]{L0}                      %i = load %p : i32[64]{L0}
//   %o = mul %i, %stride : i32[64]{L0}          →   %j = convert_layout %i : i32[64]{L1}      (read from the ring)
//   %c = convert_layout %o : i32[64]{L1}            %o = mul %j, %stride : i32[64]{L1}
//   … load (addptr %base, %c)                       … load (addptr %base, %o)
#pragma once
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/cheap_values.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/util/loop_slice.h"

namespace kiln::passes {

class IndexLoads {
 public:
  /// Of the loop with this body, which writes through `stored`.
  IndexLoads(ir::Module& module, const ir::Block* body, const analysis::PointerOrigins& stored,
             const analysis::AxisAnalysis& axis)
      : module_(module), body_(body), stored_(stored), axis_(axis), slice_(body, &stored) {}

  /// Takes into `slice` an address or a mask that needs such loads, and lets conversions on its way convert the indices
  /// themselves. False, with nothing changed, where it needs anything else that cannot be computed ahead.
  bool add(ir::Value* v, LoopSlice& slice);

  const std::vector<ir::Op*>& loads() const { return loads_; }
  /// What the addresses take from the ring of load number `load`: its value, in several layouts.
  struct Read {
    ir::Value* value;
    size_t load;
  };
  const std::vector<Read>& reads() const { return reads_; }
  /// What the addresses of these loads are made of.
  const LoopSlice& slice() const { return slice_; }

 private:
  struct Plan {
    LoopSlice slice;  // of the indices' addresses
    std::vector<ir::Op*> loads, conversions;
    std::unordered_map<const ir::Value*, bool> seen;
  };
  bool visit(ir::Value* v, Plan& plan);
  bool takes(ir::Op* load, Plan& plan);
  const Read* is_read(const ir::Value* v) const;
  ir::Value* recomputed(ir::Value* v, const layout::LinearLayout* layout);

  ir::Module& module_;
  const ir::Block* body_;
  const analysis::PointerOrigins& stored_;
  const analysis::AxisAnalysis& axis_;
  LoopSlice slice_;
  std::vector<ir::Op*> loads_;
  std::vector<Read> reads_;
  std::map<std::pair<const ir::Value*, const layout::LinearLayout*>, ir::Value*> made_;
};

}  // namespace kiln::passes
