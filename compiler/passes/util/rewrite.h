// Small steps that several passes take.
#pragma once
#include <optional>

#include "compiler/ir/builder.h"

namespace kiln::passes {

/// The bits that every element of `v` has, when a constant op says so.
std::optional<uint64_t> constant_of(const ir::Value* v);
/// A constant of that type before the builder's insertion point; null for a NaN whose payload a constant cannot hold.
ir::Value* make_constant(ir::Builder& b, const ir::Type& type, uint64_t bits);

/// Whether the kernel has such an op, at any depth.
bool has_op(ir::Module& module, ir::OpKind kind);
/// Gives op's only result's uses (and its name, if the new value has none) to `value` and erases op.
void replace(ir::Op* op, ir::Value* value);
/// Removes a result that has no uses.
void erase_result(ir::Op* op, int index);
/// Moves the block's ops, but its terminator, in front of `before`.
void inline_block(ir::Block* from, ir::Op* before);
/// The op whose region, at any depth, is `block`'s or holds it: true when op encloses it.
bool encloses(const ir::Op* op, const ir::Block* block);
/// Reduce or scan: its region is closed, so nothing moves into or out of it.
inline bool has_combine_region(const ir::Op* op) {
  return op->kind == ir::OpKind::kReduce || op->kind == ir::OpKind::kScan;
}
/// True when the op, or one nested in it, may change what a load sees: a write through a pointer, or a barrier, behind
/// which other threads' writes show. Prints, asserts and assumptions do not.
bool changes_memory(const ir::Op* op);

}  // namespace kiln::passes
