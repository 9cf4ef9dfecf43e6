// What the addresses and masks of a loop's loads are made of, to compute them iterations ahead.
#pragma once
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/pointer_origins.h"
#include "compiler/ir/builder.h"

namespace kiln::passes {

/// The ops and loop values of a `for` that some values depend on, closed over iterations.
class LoopSlice {
 public:
  /// `stored`: what the loop writes through. Loads of other memory may be in the slice if a thread holds little of
  /// them, as an index through which others are gathered; without `stored` no load may.
  explicit LoopSlice(const ir::Block* body, const analysis::PointerOrigins* stored = nullptr)
      : body_(body), stored_(stored) {}

  /// Takes `v` in. False when it needs something that cannot be computed ahead; the slice is of no use then.
  bool add(const ir::Value* v);
  /// The value is there when the slice is computed.
  void give(const ir::Value* v) { given_.insert(v); }
  bool has(const ir::Op* op) const { return ops_.contains(op); }
  bool has(const ir::Value* arg) const { return args_.contains(arg); }
  /// Whether iterations can differ in it.
  bool varies() const { return varies_; }

 private:
  const ir::Block* body_;
  const analysis::PointerOrigins* stored_;
  bool varies_ = false;
  std::unordered_set<const ir::Op*> ops_;
  std::unordered_set<const ir::Value*> args_, given_;
};

/// Registers of a thread for a value; of elements of less than 32 bits, one for each.
int registers_of(const ir::Type& type);

/// Of a loop's pipeline: its own num_stages, or the kernel's.
int stages_of(const ir::Op* loop, const ir::Module& module);

/// What the loop writes through; nothing when its writes cannot be told, or it waits for those of other threads:
/// `unknown` is then the last op that does.
std::optional<analysis::PointerOrigins> stored_origins(const ir::Op* loop, const ir::Op** unknown = nullptr);

/// i1: the loop runs the iteration in which its induction variable is `iv`. Compared in 64 bits.
ir::Value* runs(ir::Builder& b, const ir::Op* loop, ir::Value* iv);
/// `v` and `mask` (may be null): a mask for accesses at `pointers`.
ir::Value* masked(ir::Builder& b, ir::Value* v, ir::Value* mask, const ir::Value* pointers);
/// The operands of a load, of nothing where `v` is false.
std::vector<ir::Value*> masked_load(ir::Builder& b, ir::Value* v, std::vector<ir::Value*> operands);

}  // namespace kiln::passes
