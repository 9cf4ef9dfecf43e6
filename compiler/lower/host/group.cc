// Which tile ops run in one loop, and which values go to scratch.
//
// Pure tile ops and loads wait until a store, a reduction or the end of a region needs them; then everything that the
// root needs is emitted in one loop. A value that is needed again later is kept in scratch, unless it is cheap to
// recompute.
//
// Loads must not pass a store that they precede. Inside a loop a chunk's loads come before its stores, so they may
// share a loop when the two accesses are disjoint or touch the same address at the same element; that is tested when
// the program runs (alias.cc). Otherwise, and in front of anything else that writes, loads that are still needed
// are kept first.
#include <algorithm>

#include "compiler/lower/host/lowering.h"
#include "compiler/lower/host/plan.h"
#include "compiler/lower/shared/math.h"
#include "support/diag.h"

namespace kiln::lower::host {

using ir::OpKind;

bool Lowering::cheap(const ir::Value* v) const {
  // Addresses by rows and columns are a few scalars, and stored ones would not be known to count up.
  if (v->type.pointer && is_affine(v)) return true;
  return is_cheap(v, [this](const ir::Value* stored) { return is_stored(stored); });
}

bool Lowering::needed(const ir::Value* v) {
  if (auto it = needed_.find(v); it != needed_.end()) return it->second;
  auto uses = [&](const ir::Use& use) {
    if (done(use.op)) return false;
    const bool waits = ir::is_pure(use.op) ? !ir::is_across(use.op->kind)
                                           : use.op->kind == OpKind::kLoad && use.op->result()->type.is_tile();
    if (!waits) return true;
    return std::any_of(use.op->results.begin(), use.op->results.end(),
                       [&](const ir::Value* r) { return !is_stored(r) && !scalars_.contains(r) && needed(r); });
  };
  return needed_[v] = std::any_of(v->uses.begin(), v->uses.end(), uses);
}

bool Lowering::depends_on_open(const ir::Value* v) {
  if (!open_) return false;
  std::unordered_set<const ir::Value*> visited;
  std::vector<const ir::Value*> work = {v};
  while (!work.empty()) {
    const ir::Value* next = work.back();
    work.pop_back();
    if (!next->op || scalars_.contains(next) || is_stored(next) || !visited.insert(next).second) continue;
    if (next->op->kind == OpKind::kReduce) return true;
    work.insert(work.end(), next->op->operands.begin(), next->op->operands.end());
  }
  return false;
}

void Lowering::collect(const ir::Value* v, bool same_position, Slice* slice) {
  if (v->type.is_scalar()) {
    slice->needs_open_reduce |= depends_on_open(v);
    return;
  }
  if (is_stored(v) || !slice->visited.insert({v, same_position}).second) return;
  KILN_ASSERT(v->op, "a tile argument without a buffer");
  const ir::Op& op = *v->op;
  if (op.kind == OpKind::kReduce) {
    slice->needs_open_reduce = true;
    return;
  }
  if (is_index_op(op.kind)) {
    for (const ir::Value* operand : op.operands)
      collect(operand, same_position && operand->type.is_tile() && keeps_order(op), slice);
    slice->values.push_back(v);
    return;
  }
  KILN_ASSERT(op.kind == OpKind::kLoad || (ir::is_pure(&op) && ir::is_elementwise(&op)), "{}", ir::print(op));
  if (!same_position && !cheap(v)) {
    if (std::find(slice->keep_first.begin(), slice->keep_first.end(), v) == slice->keep_first.end())
      slice->keep_first.push_back(v);
    return;
  }
  if (op.kind == OpKind::kLoad) slice->loads.push_back(&op);
  if (!cheap(v) || v->type.is_float()) {
    slice->heavy += is_math_op(op.kind) ? 12 : 1;
    slice->widest = std::max(slice->widest, element_bytes(v->type));
  }
  for (const ir::Value* operand : op.operands) collect(operand, same_position, slice);
  slice->values.push_back(v);
}

std::vector<const ir::Value*> Lowering::needs_of(const Root& root) const {
  if (root.kind == Root::Kind::kKeep) return {root.value};
  return {root.op->operands.begin(), root.op->operands.end()};
}

Slice Lowering::slice_of(const Group& group) {
  Slice slice;
  for (const Root& root : group.roots)
    for (const ir::Value* v : needs_of(root)) collect(v, true, &slice);
  return slice;
}

void Lowering::add_root(Root root, std::span<const ir::Value* const> needs, const ir::Shape& shape, int axis) {
  Slice slice;
  auto recollect = [&] {
    slice = {};
    for (const ir::Value* v : needs) collect(v, true, &slice);
  };
  recollect();
  if (slice.needs_open_reduce) {
    flush();
    recollect();
  }
  if (!slice.keep_first.empty()) {
    flush();
    // Keeping one value may keep another of the list.
    for (const ir::Value* v : slice.keep_first) keep(v);
    recollect();
    KILN_ASSERT(slice.keep_first.empty() && !slice.needs_open_reduce);
  }
  if (open_) {
    bool fits = open_->shape == shape && open_->axis == axis;
    // A load that follows a store of the open loop must see what it wrote.
    for (const ir::Op* load : slice.loads)
      fits = fits && (open_->first_store_epoch < 0 || load_epoch_.at(load) <= open_->first_store_epoch);
    const bool stores = root.kind == Root::Kind::kStore;
    for (const Root& other : open_->roots)
      if (stores && other.kind == Root::Kind::kStore)
        fits = fits && is_affine(root.op->operand(0)) && is_affine(other.op->operand(0));
    // Some loads could be kept neither in front of the loop nor behind it: those between two of its stores, and those
    // between a reduction that they depend on and a store.
    for (const ir::Op* load : pending_loads_) {
      if (!stores || !fits) break;
      fits = open_->first_store_epoch < 0 || load_epoch_.at(load) <= open_->first_store_epoch;
      fits = fits && !depends_on_open(load->result());
    }
    if (!fits) flush();
  }
  if (!open_) {
    open_.emplace();
    open_->shape = shape;
    open_->axis = axis;
  }
  if (root.kind == Root::Kind::kStore) {
    if (open_->first_store_epoch < 0) open_->first_store_epoch = store_epoch_;
    ++store_epoch_;
  }
  open_->roots.push_back(root);
}

void Lowering::keep(const ir::Value* v) {
  if (is_stored(v)) return;
  flush();
  if (is_stored(v)) return;
  Root root{Root::Kind::kKeep, nullptr, v, {}};
  const ir::Value* needs[] = {v};
  add_root(root, needs, v->type.shape);
  flush();
}

void Lowering::keep_needed_loads(const std::unordered_set<const ir::Op*>& except, int last_epoch) {
  needed_.clear();
  std::vector<const ir::Value*> values;
  std::erase_if(pending_loads_, [&](const ir::Op* load) {
    const ir::Value* v = load->result();
    if (is_stored(v) || !needed(v)) return true;
    if (except.contains(load) || load_epoch_.at(load) > last_epoch) return false;
    values.push_back(v);
    return true;
  });
  for (const ir::Value* v : values) keep(v);
}

void Lowering::prepare_scalars(const Slice& slice) {
  for (const ir::Value* v : slice.values)
    for (const ir::Value* operand : v->op->operands)
      if (operand->type.is_scalar()) scalar(operand);
}

void Lowering::flush() {
  if (!open_) return;
  Group group = std::move(*open_);
  open_.reset();
  Slice slice = slice_of(group);

  if (group.first_store_epoch >= 0) {
    // Loads of this loop that may interfere with its stores in a way that cannot be tested are kept first, as are those
    // that come before the stores and are needed only later.
    std::unordered_set<const ir::Op*> fused(slice.loads.begin(), slice.loads.end());
    for (const Root& root : group.roots)
      if (root.kind == Root::Kind::kStore)
        for (const ir::Op* load : slice.loads)
          if (!is_affine(load->operand(0)) || !is_affine(root.op->operand(0))) fused.erase(load);
    for (const ir::Op* load : slice.loads) {
      needed_.clear();
      // One whose address was loaded has been kept with what it loaded, and nothing else needs that address.
      if (!fused.contains(load) && needed(load->result())) keep(load->result());
    }
    keep_needed_loads(fused, group.first_store_epoch);
  }
  emit_group(group);
}

void Lowering::emit_group(Group& group) {
  Slice slice = slice_of(group);
  prepare_scalars(slice);
  for (const Root& root : group.roots) {
    if (root.op) {
      done_.insert(root.op);
      for (const ir::Value* result : root.op->results)
        if (result->type.is_tile()) keep_buffer(result);
      for (const ir::Value* operand : root.op->operands)
        if (operand->type.is_scalar()) scalar(operand);
    }
    if (root.kind == Root::Kind::kKeep && root.value->op) {
      for (const ir::Value* operand : root.value->op->operands)
        if (operand->type.is_scalar()) scalar(operand);
    }
  }
  // Users come last in slice.values: what is kept of them decides what is needed of their operands.
  std::vector<std::pair<const ir::Value*, Buffer>> fresh;
  auto take = [&](const ir::Value* v) { return fresh.emplace_back(v, allocate(bytes_of(v->type))).second; };
  auto is_fresh = [&](const ir::Value* v) {
    return std::any_of(fresh.begin(), fresh.end(), [&](const auto& f) { return f.first == v; });
  };
  for (Root& root : group.roots)
    if (root.kind == Root::Kind::kKeep && root.buffer.bytes == 0) root.buffer = take(root.value);
  needed_.clear();
  for (const auto& [v, buffer] : fresh) needed_[v] = false;  // what is kept needs its operands no more
  for (auto it = slice.values.rbegin(); it != slice.values.rend(); ++it) {
    const ir::Value* v = *it;
    if (is_fresh(v) || is_index_op(v->op->kind) || !slice.visited.contains({v, true}) || cheap(v)) continue;
    if (!needed(v)) continue;
    needed_[v] = false;
    Root root{Root::Kind::kKeep, nullptr, v, take(v)};
    group.roots.push_back(root);
  }
  emit_versions(group, slice);
  for (const auto& [v, buffer] : fresh) {
    buffers_[v] = buffer;
    scopes_.back().buffers.push_back(v);
  }
  needed_.clear();
  release_unneeded();
}

// A grid that writes more than the caches hold gains from stores around them: the memory need not be read first.
Lowering::V Lowering::gains_from_streaming(const ir::Op& store, unsigned width) {
  constexpr int64_t kSmallest = 1024, kCacheBytes = 32 << 20;
  const ir::Type& type = store.operand(1)->type;
  const int64_t bytes = bytes_of(type);
  const bool one_row = *std::max_element(type.shape.dims.begin(), type.shape.dims.end()) == type.shape.numel();
  const unsigned align = stream_align(type, width);
  if (!is_affine(store.operand(0)) || !one_row || bytes < kSmallest || align < 16) return nullptr;
  V written = b.CreateMul(programs_, b.getInt64(static_cast<uint64_t>(bytes)));
  V aligned = b.CreateICmpEQ(b.CreateAnd(corners_of(store.operand(0)).front(), b.getInt64(align - 1)), b.getInt64(0));
  return b.CreateAnd(b.CreateICmpSGE(written, b.getInt64(kCacheBytes)), aligned);
}

// if (all masks are true and no accesses interfere) { one loop, no masks } else { loads first, then a loop per store }
void Lowering::emit_versions(Group& group, const Slice& slice) {
  std::vector<const ir::Op*> stores, accesses = slice.loads;
  for (const Root& root : group.roots)
    if (root.kind == Root::Kind::kStore) stores.push_back(root.op), accesses.push_back(root.op);

  V fast = b.getTrue();
  std::unordered_set<const ir::Value*> masks;
  for (const ir::Op* op : accesses) {
    const size_t at = op->kind == OpKind::kLoad ? 1 : 2;
    if (op->operands.size() <= at || masks.contains(op->operands[at])) continue;
    if (V condition = all_true(op->operands[at])) {
      masks.insert(op->operands[at]);
      fast = b.CreateAnd(fast, condition);
    }
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    for (const ir::Op* load : slice.loads) fast = b.CreateAnd(fast, do_not_interfere(*load, *stores[i]));
    for (size_t k = 0; k < i; ++k) fast = b.CreateAnd(fast, do_not_interfere(*stores[k], *stores[i]));
  }
  const unsigned width = width_of(group, slice);
  for (const ir::Op* store : stores)
    if (store->operands.size() <= 2 || masks.contains(store->operand(2)))
      if (V condition = gains_from_streaming(*store, width)) stream_[store] = condition;
  prefetch_ = true;
  assumed_true_ = masks;
  auto leave_fast = [&] {
    assumed_true_.clear();
    stream_.clear();
    prefetch_ = false;
  };
  if (fast == b.getTrue()) {
    emit_loops(group, width);
    leave_fast();
    return;
  }
  llvm::BasicBlock *fast_block = block("fast"), *slow_block = block("slow"), *join = block("join");
  b.CreateCondBr(fast, fast_block, slow_block);
  b.SetInsertPoint(fast_block);
  emit_loops(group, width);
  leave_fast();
  std::vector<std::pair<const ir::Value*, V>> fast_scalars;
  for (const Root& root : group.roots)
    if (root.kind == Root::Kind::kReduce)
      for (const ir::Value* result : root.op->results)
        if (result->type.is_scalar()) fast_scalars.emplace_back(result, scalars_.at(result));
  llvm::BasicBlock* fast_end = b.GetInsertBlock();
  b.CreateBr(join);

  b.SetInsertPoint(slow_block);
  const unsigned narrow = std::max(1u, std::min(width, native_bytes_ / 4));
  std::vector<const ir::Value*> loaded;
  if (!stores.empty() && !slice.loads.empty()) {
    Group loads;
    loads.shape = group.shape;
    for (const ir::Op* load : slice.loads) {
      const ir::Value* v = load->result();
      Buffer buffer = allocate(bytes_of(v->type));
      loads.roots.push_back({Root::Kind::kKeep, nullptr, v, buffer});
      loaded.push_back(v);
    }
    emit_loops(loads, narrow);
    for (const Root& root : loads.roots) buffers_[root.value] = root.buffer;
  }
  if (stores.size() > 1) {
    // Whole stores, in their order; what is kept is computed before any of them.
    Group rest = group;
    std::erase_if(rest.roots, [](const Root& r) { return r.kind == Root::Kind::kStore; });
    if (!rest.roots.empty()) emit_loops(rest, narrow);
    for (const ir::Op* store : stores) {
      Group one;
      one.shape = group.shape;
      one.roots = {{Root::Kind::kStore, store, nullptr, {}}};
      emit_loops(one, narrow);
    }
  } else {
    emit_loops(group, narrow);
  }
  for (const ir::Value* v : loaded) {
    release(buffers_.at(v));
    buffers_.erase(v);
  }
  llvm::BasicBlock* slow_end = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  for (const auto& [v, value] : fast_scalars) {
    auto* phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, fast_end);
    phi->addIncoming(scalars_.at(v), slow_end);
    scalars_[v] = phi;
  }
}

}  // namespace kiln::lower::host
