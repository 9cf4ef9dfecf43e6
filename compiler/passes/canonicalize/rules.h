// The rules of canonicalize, by subject. Each examines one op and returns true if it changed or erased the op (it may
// have inserted ops before it). The builder's insertion point is the op.
#pragma once
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

/// The op that defines `v`, when it is of this kind.
inline ir::Op* defined_by(const ir::Value* v, ir::OpKind kind) {
  return v->op && v->op->kind == kind ? v->op : nullptr;
}

/// Elementwise ops on constants, identities, comparisons, selects, pointer arithmetic.
bool simplify_arithmetic(ir::Op* op, ir::Builder& b);
/// Chains of casts and bitcasts.
bool simplify_cast(ir::Op* op, ir::Builder& b);
/// splat, expand_dims, broadcast, reshape, trans, join, split; elementwise ops on splats.
bool simplify_shape(ir::Op* op, ir::Builder& b);
/// add(c, dot(a, b, 0)) → dot(a, b, c), floats included: the executor chooses where a dot's sum is rounded.
bool simplify_dot(ir::Op* op, ir::Builder& b);
/// Masks that are constant, asserts and assumptions that hold.
bool simplify_memory(ir::Op* op, ir::Builder& b);
/// Loops and branches whose control flow is known; loop-carried values that do not change.
bool simplify_control(ir::Op* op, ir::Builder& b);

}  // namespace kiln::passes
