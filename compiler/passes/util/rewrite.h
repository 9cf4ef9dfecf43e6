// Small rewriting steps that several passes share.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/ir/builder.h"

namespace kiln::passes {

/// The bits of every element of `v`, when it is a constant.
std::optional<uint64_t> constant_of(const ir::Value* v);
/// A constant of that type before the builder's insertion point; null for a NaN whose payload a constant cannot hold.
ir::Value* make_constant(ir::Builder& b, const ir::Type& type, uint64_t bits);

/// Whether the kernel has such an op, at any depth.
bool has_op(ir::Module& module, ir::OpKind kind);
/// Replaces the uses of op's only result by `value` (which takes its name, if it has none) and erases op.
void replace(ir::Op* op, ir::Value* value);
/// What stands for values in a copy of ops; a value without one stands for itself.
using Copies = std::unordered_map<const ir::Value*, ir::Value*>;
std::vector<ir::Value*> copies_of(const Copies& copies, std::span<ir::Value* const> values);
/// Removes a result that has no uses.
void erase_result(ir::Op* op, int index);
/// Moves the block's ops, except its terminator, in front of `before`.
void inline_block(ir::Block* from, ir::Op* before);
/// True when op encloses `block` at any depth.
bool encloses(const ir::Op* op, const ir::Block* block);
/// True when `inner` is `outer` or in one of its ops at any depth.
bool is_inside(const ir::Block* inner, const ir::Block* outer);
/// Iterations of a `for` with constant bounds.
std::optional<unsigned __int128> trip_count(const ir::Op* loop);
/// How many `for` and `while` stand around the block.
int loops_around(const ir::Block* block);
inline bool is_in_loop(const ir::Block* block) { return loops_around(block) > 0; }
/// What a use carries its value on as, element by element: the results of pure ops, what loops and branches give and
/// their next iterations see. Nothing for any other op.
std::vector<const ir::Value*> carried_on(const ir::Use& use);
/// Whether all that `v` is carried on as, sums of dots included, keeps its shape and ends in uses that `is_end` takes.
bool ends_in(const ir::Value* v, const std::function<bool(const ir::Use&)>& is_end);
/// Whether `other` may run after `op`, in its iteration of the loops around both or in a later one.
bool may_follow(const ir::Op& other, const ir::Op& op);
/// Whether it is a `while` that reads, by atomics, volatile loads or inline assembly, what others write.
bool waits_for_others(const ir::Op* op);
/// All of these.
std::vector<const ir::Op*> waiting_loops(ir::Module& module);
/// One of these that a load may come behind, or null. A load that runs ahead of it may read what is not there yet.
const ir::Op* wait_before(const ir::Op& load, const std::vector<const ir::Op*>& waits);
/// Reduce or scan: its region is closed, so nothing moves into or out of it.
inline bool has_combine_region(const ir::Op* op) {
  return op->kind == ir::OpKind::kReduce || op->kind == ir::OpKind::kScan;
}
/// True when the op, or one nested in it, may change what a load sees: a write through a pointer, or a barrier, after
/// which other threads' writes are visible. Prints, asserts and assumptions do not.
bool changes_memory(const ir::Op* op);

}  // namespace kiln::passes
