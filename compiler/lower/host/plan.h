// What the host lowering decides from the IR alone: what is cheap to recompute, what is affine, what a combine region
// is.
#pragma once
#include <functional>

#include "compiler/ir/ir.h"

namespace kiln::lower::host {

/// Ops that cost about one instruction and touch no memory.
bool is_light(ir::OpKind kind);
/// constant, arange, splat and the ops that only move elements.
bool is_index_op(ir::OpKind kind);

/// True when recomputing `v` from stored tiles (`is_stored`) and scalars costs less than storing it: a few light ops.
bool is_cheap(const ir::Value* v, const std::function<bool(const ir::Value*)>& is_stored);

/// True when element [i, j, …] of `v` is base + i·a + j·b + … for some base, a, b (integers, or pointers in bytes),
/// unless an integer wraps. Found by structure: no loads.
bool is_affine(const ir::Value* v);
/// True when all elements are equal, by structure.
bool is_uniform(const ir::Value* v);

/// True when the operand of a shape op is read at the same row-major position as the result.
bool keeps_order(const ir::Op& op);

/// A loop that may run for more than some milliseconds, or for ever: its turns look whether the launch is to end.
bool may_run_long(const ir::Op& loop);

/// The shape of a reduction's result.
ir::Shape without_axis(const ir::Shape& shape, int axis);

/// Each result of the combine region is one commutative op on its own pair of arguments: lanes may be combined in any
/// order.
bool is_commutative(const ir::Block& region);

}  // namespace kiln::lower::host
