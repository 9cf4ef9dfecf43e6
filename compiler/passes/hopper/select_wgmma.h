// Selects the dots that wgmma can compute; they get mma = "wgmma". Their operands come by one of two roads:
//
// - TMA loads. The operands are block loads (perhaps transposed) whose addresses a producer can compute ahead; or the
//   first operand is computed from an earlier such product, as in attention, and stays in registers. Where only the
//   transposed product qualifies, the dot is transposed first: wgmma takes at least 64 rows and as few as 8 columns,
//   and may have its first operand, not the second, in registers.
// - The warps' own copies (staged = 1 or 2): whatever is masked, gathered, converted or computed. The second operand
//   goes through shared memory, and the first one too where it is loaded as it is; else it stays in registers. A dot of
//   a loop whose operands are both loaded, and whose sum is stored element by element, is transposed as well where only
//   that qualifies.
#pragma once
#include <optional>
#include <unordered_set>

#include "compiler/analysis/axis_info.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/remarks.h"
#include "compiler/target/mma.h"

namespace kiln::passes {

/// Tile stage, before expand_descriptors, which skips the loads of these dots. Does nothing on targets without wgmma.
Status select_wgmma(ir::Module& module, const target::Target& target, Remarks* remarks = nullptr);

/// The target's row (target/mma.def) that multiplies these element types and shapes, or nullptr.
/// `swapped`: the transposed product, trans b · trans a. `why` gets what keeps it from fitting.
const target::GroupMma* fitting_group(const ir::Op& dot, int num_warps, const target::Target& target,
                                      bool swapped = false, Cause* why = nullptr);

/// How many operands of a dot have to be put in shared memory for wgmma, counted from the second; 0 where wgmma cannot
/// read the second one there.
int64_t operands_to_stage(const ir::Op& dot, const analysis::AxisAnalysis& axis, const target::Target& target);

/// Bytes of operands that the dots of one place, a loop or none, may have staged.
inline int64_t room_to_stage(const target::Target& target) { return target.shared_per_block / 2; }

/// Whether the value has no uses but as operands of dots, perhaps transposed.
bool only_feeds_dots(const ir::Value* v);

/// What loads an operand of a dot (load or descriptor_load), behind what only turns it and whatever else reads it;
/// nullptr where it is computed.
const ir::Op* load_of(const ir::Value* operand);

/// The block load of a dot's operand: the descriptor_load, and whether it is transposed; {nullptr} when the operand is
/// anything else, or the loaded tile has uses other than by dots.
struct BlockOperand {
  ir::Op* load = nullptr;
  bool transposed = false;
};
BlockOperand block_operand(const ir::Value* operand);

/// Whether wgmma can read the operand from its block in shared memory: with K contiguous, or of a type that may lie
/// either way (target/mma.def). Otherwise an operand a goes through registers.
bool lies_for_wgmma(const BlockOperand& operand, bool is_b, const target::Target& target);

/// A dot that select_wgmma has chosen.
bool is_wgmma(const ir::Op* op);
/// The same, with operands that the warps put in shared memory, or their loop brings (select_loop_loads), and none from
/// a producer.
bool is_staged(const ir::Op* op);
/// Whether the warps put operand `index` of a dot in shared memory.
bool is_staged(const ir::Op* dot, int index);
/// Whether one of these products is among what `v` is computed from in its own block of code.
bool is_made_of_product(const ir::Value* v, const std::unordered_set<const ir::Op*>& products);
/// A dot for wgmma whose first operand is computed, and stays in registers.
bool takes_registers(const ir::Op* op);
/// The load of the operand of a dot for wgmma, or of a wgmma that still waits for its slot, if TMA brings it; nullptr
/// where it is computed.
ir::Op* slot_load(const ir::Op* product, int index);

/// The result of the loop around a dot that is the sum of its products, when nothing else reads it inside of the loop.
std::optional<size_t> carried_result(const ir::Op& dot);
/// The same, when the loop has no other dot, at any depth. `why` gets what a loop around it lacks.
std::optional<size_t> carried_sum(const ir::Op& dot, std::optional<Cause>* why = nullptr);

}  // namespace kiln::passes
