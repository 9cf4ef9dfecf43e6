#include "compiler/passes/distributed/pipeline_loads.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/analysis/shared_memory.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/distributed/index_loads.h"
#include "compiler/passes/distributed/prefetch_loads.h"
#include "compiler/passes/distributed/read_again.h"
#include "compiler/passes/hopper/select_loop_loads.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/stage_block_stores.h"
#include "compiler/passes/hopper/stage_operands.h"
#include "compiler/passes/tile/dce.h"
#include "compiler/passes/util/loop_slice.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/ring_reader.h"
#include "compiler/passes/util/shared_handles.h"
#include "compiler/target/occupancy.h"

namespace kiln::passes {

namespace {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

/// `seen`: values without a way to a dot, so that one with many ways is walked once.
bool reaches_dot(const Value* v, const Block* body, std::unordered_set<const Value*>& seen) {
  if (!seen.insert(v).second) return false;
  return std::any_of(v->uses.begin(), v->uses.end(), [&](const ir::Use& use) {
    if (use.op->parent != body) return false;
    if (use.op->kind == OpKind::kDot) return use.index < 2 && (analysis::is_on_registers(*use.op) || is_staged(use.op));
    return ir::is_pure(use.op) && use.op->regions.empty() &&
           std::any_of(use.op->results.begin(), use.op->results.end(),
                       [&](const Value* r) { return reaches_dot(r, body, seen); });
  });
}
bool reaches_dot(const Value* v, const Block* body) {
  std::unordered_set<const Value*> seen;
  return reaches_dot(v, body, seen);
}

/// Bulk copies into slots of a ring, by one thread of the kernel's own warps, and the mbarriers they arrive at.
class BulkRing {
 public:
  /// Slots at the front of the kernel for what these loads bring. `b` keeps its place.
  BulkRing(ir::Module& module, ir::Builder& b, std::vector<Op*> loads, int slots)
      : module_(module), b_(b), loads_(std::move(loads)), slots_(slots) {
    ir::Builder front(module);
    front.set_before(module.body()->first);
    front.set_range(loads_[0]->range);
    auto alloc = [&](const Type& type) {
      return front.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result();
    };
    for (const Op* load : loads_) {
      buffers_.push_back(alloc(swizzled_type(module, load->result()->type, kRowMajor, slots)));
      bytes_ += load->result()->type.shape.numel() * size_of(load->result()->type.dtype);
    }
    full_ = alloc(ir::barrier_type(slots));
    front.create(OpKind::kMbarrierInit, std::span(&full_, 1), {}, {{AttrName::kCount, int64_t{1}}});
    Value* staging = nullptr;
    for (const Op* load : loads_) {
      Op* maker = load->operand(0)->op;
      if (!maker->flag(AttrName::kOnDevice) || maker->operands.size() % 2 == 0) continue;  // made by the host; has one
      constexpr int kAlong[] = {0};
      if (!staging) staging = alloc(rows_type(module, ir::tile_type(DType::kI32, {kTensorMapWords}), kAlong));
      maker->append_operand(staging);
    }
  }

  Value* buffer(size_t load) const { return buffers_[load]; }

  /// Ahead of the first copies: all warps have done with the slots' memory, and see the mbarriers; what threads wrote
  /// there, or to the tensors, comes before the copies.
  void open() {
    const analysis::PointerOrigins written = analysis::written_origins(module_);
    const bool may_be_written = written.unknown || std::ranges::any_of(loads_, [&](const Op* load) {
                                  return written.meets(analysis::pointer_origins(load->operand(0)));
                                });
    Op* fence = b_.create(OpKind::kFenceAsync, {}, {});
    if (may_be_written) fence->set(AttrName::kGlobal, true);
    join_lanes(b_, true);
  }

  /// Where `valid` (null: always), copies to `slot`; `of` gives the loads' operands as they are here.
  template <class Of>
  void fill(Value* valid, Value* slot, Of&& of) {
    Op* branch = valid ? b_.if_op(valid, {}) : nullptr;
    if (branch) b_.set_to_end(branch->region(0));
    Value* full = expect(slot, bytes_);
    for (size_t i = 0; i < loads_.size(); ++i) {
      std::vector<Value*> operands = {view(b_, buffers_[i], slot), full};
      for (Value* v : loads_[i]->operands) operands.push_back(of(v));
      Op* copy = b_.create(OpKind::kTmaLoad, operands, {});
      if (const ir::Attr* eviction = loads_[i]->find(AttrName::kEviction)) copy->set(AttrName::kEviction, *eviction);
    }
    if (branch) end_branch(branch);
  }

  void wait(Value* slot, Value* parity) {
    Value* operands[] = {view(b_, full_, slot), parity};
    b_.create(OpKind::kMbarrierWait, operands, {});
  }

  /// Behind a barrier after the last wait: the phases of each slot become an even number, as they were, for the next
  /// time. `slot` and `parity` are where the next copies would go.
  void close(Value* slot, Value* parity) {
    Value* is_odd = b_.cmp(ir::Predicate::kNe, parity, i32(0));
    for (int s = 0; s < slots_; ++s) {
      Value* one_more = b_.cmp(ir::Predicate::kLt, i32(s), slot);
      Op* branch = b_.if_op(b_.binary(OpKind::kXor, one_more, is_odd), {});
      b_.set_to_end(branch->region(0));
      expect(i32(s), 0);
      end_branch(branch);
    }
  }

 private:
  static constexpr int kTensorMapWords = 32;

  Value* i32(int64_t v) { return b_.constant_int(ir::scalar_type(DType::kI32), v); }
  Value* expect(Value* slot, int64_t bytes) {
    Value* full = view(b_, full_, slot);
    b_.create(OpKind::kMbarrierExpect, std::span(&full, 1), {}, {{AttrName::kBytes, bytes}});
    return full;
  }
  void end_branch(Op* branch) {
    b_.yield({});
    b_.set_to_end(branch->region(1));
    b_.yield({});
    b_.set_after(branch);
  }

  ir::Module& module_;
  ir::Builder& b_;
  std::vector<Op*> loads_;
  int slots_;
  std::vector<Value*> buffers_;  // of the loads
  Value* full_ = nullptr;
  int64_t bytes_ = 0;  // of a slot
};

/// Brings a block where it stands, and waits for it: its loop had but one iteration and is gone.
void bring_here(ir::Module& module, Op* load) {
  ir::Builder b(module);
  b.set_range(load->range);
  BulkRing ring(module, b, {load}, 1);
  b.set_before(load);
  Value* zero = b.constant_int(ir::scalar_type(DType::kI32), 0);
  ring.open();
  ring.fill(nullptr, zero, [](Value* v) { return v; });
  ring.wait(zero, zero);
  join_lanes(b, true);
  ring.close(zero, b.constant_int(ir::scalar_type(DType::kI32), 1));
  Value* handle = view(b, ring.buffer(0), zero);
  RingReader(b).take(load, handle);
}

/// What a loop lets run ahead.
enum class Ahead {
  kNothing,
  kOperands,  // of its dots
  kLoads      // whatever its own num_stages asks for
};

class Loop {
 public:
  Loop(ir::Module& module, const target::Target& target, Op* loop, int stages, Ahead which,
       const analysis::PointerOrigins& stored, const analysis::AxisAnalysis& axis, Remarks* remarks)
      : module_(module),
        target_(target),
        loop_(loop),
        body_(loop->region()),
        which_(which),
        lead_(stages - 1),
        stored_(stored),
        axis_(axis),
        remarks_(remarks),
        slice_(body_, &stored),
        indices_(module, body_, stored, axis),
        b_(module),
        reader_(b_) {}

  void run() {
    int64_t bytes = 0;                          // of a stage
    for (const bool is_vector : {false, true})  // whether there is a ring decides what becomes of vectors
      for (Op* op : *body_) {
        if (!is_vector && is_in_loop_ring(op) && fits_block(op)) {
          loads_.push_back(op);
          blocks_.push_back(op);
          bytes += analysis::shared_stride(op->result()->type);
        }
        if (op->kind != OpKind::kLoad || (op->result()->type.shape.rank < 2) != is_vector) continue;
        std::optional<Cause> why;
        if (fits(op, why)) {
          loads_.push_back(op);
          bytes += analysis::shared_stride(op->result()->type);
        } else if (remarks_ && why && (which_ == Ahead::kLoads || reaches_dot(op->result(), body_))) {
          remarks_->add(*why, op->range);
        }
      }
    if (loads_.empty()) return;
    for (const Op* load : indices_.loads()) bytes += analysis::shared_stride(load->result()->type);
    // Rows are read at once, so that a stage less costs some latency.
    const bool rows = which_ == Ahead::kLoads;
    // What works behind the loop may use the rings' memory, unless TMA fills them anew in a loop around it, or for
    // other blocks of a cluster; and what only fed products reads the rings.
    const bool fills_again = !blocks_.empty() && (is_in_loop(loop_->parent) || module_.num_ctas > 1);
    const bool keeps_rings = rows || fills_again;
    const auto has_scratch = [&](const Op* op) {
      return (keeps_rings || encloses(loop_, op->parent)) &&
             (rows || !(op->kind == OpKind::kConvertLayout && is_brought(op->result())));
    };
    const int64_t room = shared_room(module_, target_, has_scratch, loop_) -
                         staged_bytes(module_, target_, loop_, loads_) - staging_bytes_beside_rings(module_);
    all_ahead_ = fits_ahead(bytes, room);
    if (all_ahead_) lead_ = static_cast<int>(*trip_count(loop_));
    reads_first_ = rows || (!all_ahead_ && saves_slot(bytes, target_.shared_per_block - room));
    meets_twice_ = !reads_first_ && !all_ahead_ && makes_room_by_barrier(bytes, target_.shared_per_block - room);
    if (meets_twice_) --lead_;
    const int wanted = lead_;
    const int beside = reads_first_ || all_ahead_ ? 0 : 1;
    lead_ = std::min(lead_, static_cast<int>(room / bytes) - beside);
    if (lead_ < 1) {
      if (has_copies()) remark(remarks_, loop_->range, Reason::kNoRoomForRing, (1 + beside) * bytes, room);
      if (blocks_.empty()) return;
      loads_ = blocks_;  // which have no other way
      lead_ = 1;
      bytes = 0;
      for (const Op* block : blocks_) bytes += analysis::shared_stride(block->result()->type);
    }
    slots_ = lead_ + beside;
    if (lead_ < wanted)
      remark(remarks_, loop_->range, Reason::kFewerStages, (wanted + beside) * bytes, room, wanted + 1, lead_ + 1);
    remark(remarks_, loop_->range, has_copies() ? Reason::kLoopPipelined : Reason::kLoopBlocks, loads_.size(), lead_,
           slots_, bytes);
    find_product_in_flight();
    for (Op* load : loads_) {
      sources_.push_back(load->kind == OpKind::kLoad ? source_of(load) : Source{});
      all_warps_ = all_warps_ || !rows || warps_share(load->result()->type) || is_converted(load);
    }
    b_.set_range(loads_[0]->range);
    make_buffers();
    prologue();
    ahead();
    b_.set_after(loop_);
    if (has_copies()) {
      wait(0);
      join_lanes(b_, true);
    }
    if (ring_ && is_in_loop(loop_->parent)) ring_->close(last_slot_, last_parity_);
  }

 private:
  using Env = std::unordered_map<const Value*, Value*>;
  struct Source {
    Value *pointers = nullptr, *mask = nullptr;  // no mask: null; both: a block
  };

  bool has_indices() const { return !indices_.loads().empty(); }
  bool has_copies() const { return loads_.size() > blocks_.size(); }

  bool fits(const Op* load, std::optional<Cause>& why) {
    auto no = [&](Reason reason, const auto&... values) {
      why = because(reason, values...);
      return false;
    };
    const Type& type = load->result()->type;
    if (!type.is_tile() || type.pointer) return false;
    if (load->flag(AttrName::kVolatile)) return no(Reason::kLoadVolatile);
    const int width = axis_.vector_width(load) * size_of(type.dtype);
    if (width < kLeastCopyBytes) return no(Reason::kLoadNarrow, width, kLeastCopyBytes);
    if (analysis::pointer_origins(load->operand(0)).meets(stored_)) return no(Reason::kLoadWritten);
    if (which_ == Ahead::kOperands) {
      if (is_filled(load)) return no(Reason::kLoadFilled);
      if (!reaches_dot(load->result(), body_)) return false;
      if (type.shape.rank < 2 && !takes_vector(load)) return false;
    } else {
      LoopSlice own(body_, &stored_);
      if (!own.add(load->operand(0)) || !own.varies()) return false;
    }
    LoopSlice slice = slice_;
    for (size_t i = 0; i < std::min<size_t>(2, load->operands.size()); ++i)
      if (!add_address(load->operands[i], slice)) return no(Reason::kLoadDepends);
    slice_ = std::move(slice);
    return true;
  }

  bool add_address(Value* v, LoopSlice& slice) {
    LoopSlice more = slice;
    if (!more.add(v)) {
      more = slice;
      if (which_ != Ahead::kOperands || !indices_.add(v, more)) return false;
    }
    slice = std::move(more);
    return true;
  }

  /// Its own loop may have been inlined into this one, of which nobody has asked yet.
  bool fits_block(const Op* load) {
    if (which_ != Ahead::kOperands || analysis::pointer_origins(load->operand(0)).meets(stored_)) return false;
    LoopSlice slice = slice_;
    for (size_t i = 1; i < load->operands.size(); ++i)
      if (!slice.add(load->operands[i])) return false;
    slice_ = std::move(slice);
    return true;
  }

  bool takes_vector(const Op* load) const {
    if (registers_of(load->result()->type) > prefetch_room(*body_)) return true;
    return !loads_.empty() && vector_runs_ahead(load, loop_, lead_ + 1, axis_);
  }

  std::vector<int> order_of(const Op* load) const {
    const auto order = axis_.order_of(load->operand(0));
    return {order.begin(), order.begin() + load->result()->type.shape.rank};
  }
  int swizzle_of(const Op* load) const {
    const Type& type = load->result()->type;
    return layout::widest_swizzle(type.shape[order_of(load)[0]], type.element_bits());
  }

  /// A loop's only product ends behind the next one's begin, if both operands come by rings: between the two there
  /// would else be the copies and a barrier.
  void find_product_in_flight() {
    for (Op* op : *body_) {
      if (op->kind != OpKind::kDot || !is_staged(op)) continue;
      std::optional<Cause> why;
      if (!carried_sum(*op, &why)) {
        if (remarks_ && why) remarks_->add(*why, op->range);
        continue;
      }
      for (int i : {0, 1})
        if (!is_staged(op, i) || !is_brought(op->operand(i)))
          return remark_operand(remarks_, op->range, dot_operand(*op, i), Reason::kWaitsForOperand);
      in_flight_ = op;
      op->set(AttrName::kInFlight, true);
      remark(remarks_, op->range, Reason::kProductAhead);
    }
  }
  /// Whether a product can read the operand in a ring.
  bool is_brought(const Value* operand) const {
    while (operand->op && (operand->op->kind == OpKind::kTrans || operand->op->kind == OpKind::kConvertLayout))
      operand = operand->op->operand(0);
    return std::find(loads_.begin(), loads_.end(), operand->op) != loads_.end();
  }

  /// The first op behind all reads of the rings at which all warps meet on the way through shared memory.
  Op* meeting() const {
    const auto reads = [&](const Op* op) { return op->results.size() == 1 && is_brought(op->result()); };
    Op* found = nullptr;
    for (Op* op : *body_) {
      if (ir::any_nested(op, reads))
        found = nullptr;
      else if (!found && analysis::scratch_bytes(*op) > 0)
        found = op;
    }
    return found;
  }

  /// Whether the copies of a short loop all go ahead of it: its slots are written once, and none is beside those read.
  bool fits_ahead(int64_t slot_bytes, int64_t room) const {
    if (which_ != Ahead::kOperands || !blocks_.empty() || has_indices()) return false;
    const auto trips = trip_count(loop_);
    return trips && *trips >= 1 && *trips <= static_cast<unsigned>(lead_) &&
           static_cast<int64_t>(*trips) * slot_bytes <= room;
  }

  /// Whether the next copies had better wait for such a meeting and need no slot beside those that are read: where one
  /// more program shares an SM by it, and the other slots are enough to be ahead of the loop (H200: three draws of
  /// Mamba-2's chunk states in tiles of 64 x 32 x 32 take 2 to 14 % less).
  bool saves_slot(int64_t slot_bytes, int64_t other_bytes) const {
    constexpr int kLeastAhead = 3;
    if (which_ != Ahead::kOperands || lead_ < kLeastAhead || !blocks_.empty() || has_indices() || !meeting())
      return false;
    // The tensor cores of warp groups read the rings themselves; read_operands lets threads read what they add up late.
    if (ir::any_nested(loop_, [](const Op* op) { return op->kind == OpKind::kDot && !analysis::uses_mma(*op); }))
      return false;
    const auto blocks = [&](int slots) {
      return target::occupancy(target_, {.threads = module_.num_warps * target::kWarpSize,
                                         .shared_bytes = other_bytes + slots * slot_bytes})
          .blocks_per_sm;
    };
    return blocks(lead_) > blocks(lead_ + 1);
  }

  /// Whether the copies had better go ahead of the wait for those of the iteration itself, behind a barrier of their
  /// own, into the slot of the iteration before: where a slot less lets one more program share an SM, and its registers
  /// do too. As much is on the way while a program waits. Many warps hide each other's waits already.
  bool makes_room_by_barrier(int64_t slot_bytes, int64_t other_bytes) const {
    if (which_ != Ahead::kOperands || lead_ < 2 || !blocks_.empty() || has_indices()) return false;
    const auto words = [](const Value* v) {
      const Type& type = v->type;
      return type.pointer || !type.layout ? 0 : (type.layout->num_registers() * size_of(type.dtype) + 3) / 4;
    };
    int sums = 0, operands = 0;
    for (const Value* arg : body_->args) sums += words(arg);
    bool by_mma = true;
    ir::walk(body_, [&](const Op* op) {
      if (op->kind != OpKind::kDot) return;
      by_mma = by_mma && analysis::uses_mma(*op);
      operands = std::max(operands, words(op->operand(0)) + words(op->operand(1)));
    });
    target::BlockResources block{.threads = module_.num_warps * target::kWarpSize};
    const auto blocks = [&](int slots) {
      block.shared_bytes = other_bytes + slots * slot_bytes;
      return target::occupancy(target_, block).blocks_per_sm;
    };
    const int now = blocks(lead_ + 1);
    constexpr int kManyWarps = 16, kOfAddresses = 64;
    return by_mma && now * module_.num_warps < kManyWarps && blocks(lead_) > now &&
           sums + operands + kOfAddresses <= target::registers_for(target_, block, now + 1);
  }

  /// The first product of warp groups, if what it multiplies is there when an iteration begins.
  const Op* first_product() const {
    for (const Op* op : *body_) {
      if (op->kind != OpKind::kDot || !is_staged(op)) continue;
      const bool is_ready = std::all_of(op->operands.begin(), op->operands.begin() + 2, [&](const Value* v) {
        return is_brought(v) || !encloses(loop_, v->op ? v->op->parent : v->block);
      });
      return is_ready ? op : nullptr;
    }
    return nullptr;
  }

  // --- scalars

  Value* number(const Type& type, int64_t v) { return b_.constant_int(type, v); }
  Value* i32(int64_t v) { return number(ir::scalar_type(DType::kI32), v); }
  Value* later(Value* iv, int n) {
    if (n == 0) return iv;
    Value* step = loop_->operand(2);
    return b_.binary(OpKind::kAdd, iv, b_.binary(OpKind::kMul, step, number(step->type, n)));
  }

  // --- copies

  void make_buffers() {
    ir::Builder front(module_);
    front.set_before(module_.body()->first);
    front.set_range(b_.range());
    const auto alloc = [&](const Type& type) {
      return front.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result();
    };
    for (const Op* load : indices_.loads()) {
      constexpr int kAlong[] = {0};
      index_buffers_.push_back(alloc(rows_type(module_, load->result()->type, kAlong, slots_)));
    }
    if (!blocks_.empty()) ring_.emplace(module_, b_, blocks_, slots_);
    size_t block = 0;
    for (const Op* load : loads_) {
      if (load->kind != OpKind::kLoad) {
        buffers_.push_back(ring_->buffer(block++));
        continue;
      }
      const Type& type = load->result()->type;
      const bool has_swizzle = which_ == Ahead::kOperands && type.shape.rank > 1 && swizzle_of(load) != 0;
      const Type ring = has_swizzle ? swizzled_type(module_, type, order_of(load), slots_)
                                    : rows_type(module_, type, order_of(load), slots_);
      buffers_.push_back(alloc(ring));
    }
  }

  void wait(int64_t count) { b_.create(OpKind::kAsyncWait, {}, {}, {{AttrName::kCount, count}}); }

  /// What stands for values of the body in an iteration ahead.
  static Value* in(const Env& env, Value* v) {
    const auto it = env.find(v);
    return it == env.end() ? v : it->second;
  }
  /// A slice of the body, with `env` for the induction variable and the loop's values.
  void compute(const LoopSlice& slice, Env& env, Value* valid) {
    for (Op* op : *body_) {
      if (!slice.has(op)) continue;
      std::vector<Value*> operands;
      for (Value* v : op->operands) operands.push_back(in(env, v));
      if (op->kind == OpKind::kLoad) operands = masked_load(b_, valid, std::move(operands));  // an index
      std::vector<Type> types;
      for (const Value* r : op->results) types.push_back(r->type);
      const Op* copy = b_.create(op->kind, operands, types, op->attrs);
      for (size_t i = 0; i < types.size(); ++i) env[op->results[i]] = copy->results[i];
    }
  }
  /// Then the copy of a load, of nothing when `valid` is false.
  void copy(const Env& env, Value* valid, Value* handle, const Source& source) {
    Value* pointers = in(env, source.pointers);
    Value* mask = masked(b_, valid, source.mask ? in(env, source.mask) : nullptr, pointers);
    Value* operands[] = {handle, pointers, mask};
    b_.create(OpKind::kAsyncCopy, operands, {});
  }
  /// Then `env` has the values of the next iteration.
  void advance(const LoopSlice& slice, Env& env) {
    Env next;
    for (const Value* arg : carried_by(slice)) next[arg] = in(env, body_->terminator()->operands[arg->index - 1]);
    env = std::move(next);
  }
  std::vector<const Value*> carried_by(const LoopSlice& slice) const {
    std::vector<const Value*> args;
    for (size_t i = 1; i < body_->args.size(); ++i)
      if (slice.has(body_->args[i])) args.push_back(body_->args[i]);
    return args;
  }
  static Source source_of(const Op* load) {
    return {load->operand(0), load->operands.size() > 1 ? load->operand(1) : nullptr};
  }

  /// The copies of one iteration's indices; `env` as for a slice.
  void issue_indices(Env& env, Value* iv, Value* slot) {
    env[body_->args[0]] = iv;
    Value* valid = runs(b_, loop_, iv);
    compute(indices_.slice(), env, valid);
    for (size_t i = 0; i < index_buffers_.size(); ++i)
      copy(env, valid, view(b_, index_buffers_[i], slot), source_of(indices_.loads()[i]));
    advance(indices_.slice(), env);
  }

  /// The copies of iteration `iv`, whose indices lie in the same slot of their ring, and of the indices that are needed
  /// as many iterations later as the copies run ahead: those of this one are then there. They take the slot before,
  /// which all warps have read in front of the last barrier.
  void issue(Env& env, Env& index_env, Value* iv, Value* slot) {
    env[body_->args[0]] = iv;
    Value* valid = runs(b_, loop_, iv);
    for (const IndexLoads::Read& read : indices_.reads())
      env[read.value] = b_.create1(OpKind::kSharedLoad, {view(b_, index_buffers_[read.load], slot)}, read.value->type);
    compute(slice_, env, valid);
    for (size_t i = 0; i < sources_.size(); ++i)
      if (sources_[i].pointers) copy(env, valid, view(b_, buffers_[i], slot), sources_[i]);
    if (has_indices()) {
      Value* is_first = b_.cmp(ir::Predicate::kEq, slot, i32(0));
      Value* before = b_.select(is_first, i32(slots_ - 1), b_.binary(OpKind::kSub, slot, i32(1)));
      issue_indices(index_env, later(iv, lead_), before);
    }
    if (has_copies()) b_.create(OpKind::kAsyncCommit, {}, {});
    if (ring_) ring_->fill(valid, slot, [&](Value* v) { return in(env, v); });
    advance(slice_, env);
  }

  void prologue() {
    b_.set_before(loop_);
    if (ring_) ring_->open();
    for (const Value* arg : carried_by(slice_)) ahead_[arg] = loop_->operands[arg->index + 2];
    for (const Value* arg : carried_by(indices_.slice())) indices_ahead_[arg] = loop_->operands[arg->index + 2];
    if (has_indices()) {
      for (int s = 0; s < lead_; ++s) issue_indices(indices_ahead_, later(loop_->operand(0), s), i32(s));
      b_.create(OpKind::kAsyncCommit, {}, {});
      wait(0);
      join_lanes(b_, true);
    }
    for (int s = 0; s < lead_; ++s) {
      if (has_indices() && s > 0) join_lanes(b_, true);  // the slot before is read no more
      issue(ahead_, indices_ahead_, later(loop_->operand(0), s), i32(s));
    }
  }

  /// A value that the loop carries beside the user's: its argument; finish it with `yields`. `last` gets its result.
  Value* carry(Value* init, Value** last = nullptr) {
    loop_->append_operand(init);
    Value* result = module_.add_result(loop_, init->type);
    if (last) *last = result;
    return module_.add_arg(body_, init->type);
  }

  void ahead() {
    std::vector<const Value*> carried = carried_by(slice_), by_indices = carried_by(indices_.slice());
    if (all_ahead_) carried.clear();
    Env env, index_env;
    for (const Value* arg : carried) env[arg] = carry(ahead_.at(arg));
    for (const Value* arg : by_indices) index_env[arg] = carry(indices_ahead_.at(arg));
    read_slot_ = carry(i32(0), &last_slot_);
    // Dots read their operands all through the iteration, so that there is one slot more, to copy to.
    const bool writes_elsewhere = !reads_first_ && !all_ahead_;
    Value* write_slot = writes_elsewhere ? carry(i32(lead_)) : read_slot_;
    Value* parity = ring_ ? carry(i32(0), &last_parity_) : nullptr;
    b_.set_before(body_->first);
    if (meets_twice_) {
      join_lanes(b_, all_warps_);
      issue(env, index_env, later(body_->args[0], lead_), write_slot);
    }
    if (has_copies()) {
      wait(meets_twice_ ? lead_ : lead_ - 1);
      if (ir::any_nested(loop_, [](const Op* op) { return is_staged(op); })) b_.create(OpKind::kFenceAsync, {}, {});
    }
    if (ring_) ring_->wait(read_slot_, parity);
    // Each warp waits for blocks itself; the next ones are asked for behind the other barrier, if there is one.
    if (has_copies() || !in_flight_) join_lanes(b_, all_warps_);
    if (in_flight_ && !all_ahead_) {  // the product of the iteration before still reads its slot up to here
      b_.set_after(in_flight_);
      join_lanes(b_, all_warps_);
    }
    if (reads_first_) {
      Op* met = which_ == Ahead::kOperands ? meeting() : nullptr;
      take_loads();
      Op* last = last_read();
      const Op* behind = last;
      while (behind && behind != met) behind = behind->next;
      b_.set_after(behind ? met : last);
      join_lanes(b_, all_warps_);
    }
    // The tensor cores begin before the threads make addresses.
    if (const Op* product = first_product(); product && !in_flight_ && !ring_) b_.set_after(const_cast<Op*>(product));
    if (all_ahead_)
      b_.create(OpKind::kAsyncCommit, {}, {});  // of nothing, for the count of those to wait for
    else if (!meets_twice_)
      issue(env, index_env, later(body_->args[0], lead_), write_slot);
    std::vector<Value*> yields;
    for (const Value* arg : carried) yields.push_back(env.at(arg));
    for (const Value* arg : by_indices) yields.push_back(index_env.at(arg));
    const NextSlot read_next = next_slot(b_, read_slot_, slots_);
    yields.push_back(read_next.slot);
    if (writes_elsewhere) yields.push_back(next_slot(b_, write_slot, slots_).slot);
    if (parity) yields.push_back(b_.binary(OpKind::kXor, parity, b_.cast(read_next.wraps, DType::kI32)));
    for (Value* v : yields) body_->terminator()->append_operand(v);
    if (!reads_first_) take_loads();
  }

  // --- what becomes of the loads

  /// Whether reads of its ring have another layout than the copies into it.
  static bool is_converted(const Op* load) {
    const std::vector<ir::Use>& uses = load->result()->uses;
    return std::any_of(uses.begin(), uses.end(), [](const ir::Use& use) {
      return use.op->kind == OpKind::kConvertLayout || use.op->kind == OpKind::kTrans;
    });
  }

  void take_loads() {
    for (size_t i = 0; i < loads_.size(); ++i) {
      b_.set_before(loads_[i]);
      b_.set_range(loads_[i]->range);
      reader_.take(loads_[i], view(b_, buffers_[i], read_slot_));
    }
    if (which_ == Ahead::kLoads && !has_registers()) read_again(module_, reader_.reads());
  }

  /// Whether what waits for reductions can wait in registers, with as many blocks as shared memory has room for.
  bool has_registers() const {
    int waiting = 0;
    for (const Op* op : reader_.reads())
      if (outlives_reduction(op)) waiting += op->result()->type.layout->num_registers();
    if (waiting < kManyRegisters) return true;
    target::BlockResources block{.threads = module_.num_warps * target::kWarpSize};
    block.shared_bytes = target_.shared_per_block - shared_room(module_, target_);
    const int blocks = std::max(1, target::occupancy(target_, block).blocks_per_sm);
    // Half as many again are computed with, and some hold addresses and masks.
    return waiting * 3 / 2 + 32 <= target::registers_for(target_, block, blocks);
  }

  /// The last op of the body that reads the rings.
  Op* last_read() const {
    auto reads = [&](const Op* op) {
      return op->kind == OpKind::kSharedLoad &&
             std::ranges::find(reader_.handles(), op->operand(0)) != reader_.handles().end();
    };
    Op* op = body_->terminator();
    while (op->prev && !ir::any_nested(op, reads)) op = op->prev;
    return op;
  }

  ir::Module& module_;
  const target::Target& target_;
  Op* loop_;
  Block* body_;
  const Ahead which_;
  int lead_;                  // iterations that the copies run ahead
  int slots_ = 0;             // of a ring
  bool all_ahead_ = false;    // no copies in the loop
  bool reads_first_ = false;  // a slot is read before the next copies, which may be to it
  bool meets_twice_ = false;  // before the next copies, and behind the wait
  bool all_warps_ = false;    // read what others copied
  const analysis::PointerOrigins& stored_;
  const analysis::AxisAnalysis& axis_;
  Remarks* remarks_;
  LoopSlice slice_;
  IndexLoads indices_;
  ir::Builder b_;
  std::vector<Op*> loads_;
  std::vector<Source> sources_;  // of the loads
  std::vector<Op*> blocks_;      // of these, what comes by TMA
  std::vector<Value*> buffers_, index_buffers_;
  std::optional<BulkRing> ring_;
  RingReader reader_;
  Env ahead_, indices_ahead_;
  Value *read_slot_ = nullptr, *last_slot_ = nullptr, *last_parity_ = nullptr;
  Op* in_flight_ = nullptr;  // the product that the iteration leaves unfinished
};

/// Of a loop whose writes are known.
Ahead runs_ahead(const Op* loop) {
  if (ir::any_nested(loop, [](const Op* op) { return op->kind == OpKind::kDot; })) return Ahead::kOperands;
  return loop->has(AttrName::kNumStages) ? Ahead::kLoads : Ahead::kNothing;
}

/// Why nothing of a loop with loads for dots, or with num_stages of its own, runs ahead.
void tell_refusal(const Op* loop, int stages, const Op* unknown, Remarks& remarks) {
  const bool is_asked = loop->has(AttrName::kNumStages) && stages > 1;
  const bool has_operands = ir::any_nested(loop, [&](const Op* op) {
    return op->parent == loop->region() && op->kind == OpKind::kLoad && reaches_dot(op->result(), loop->region());
  });
  if (unknown && (is_asked || has_operands))
    remarks.add(because(Reason::kLoopWrites, ir::info(unknown->kind).mnemonic, place_of(unknown->range).line),
                loop->range);
  else if (stages < 2 && has_operands)
    remarks.add(because(Reason::kOneStage, stages), loop->range);
}

}  // namespace

bool vector_runs_ahead(const Op* load, const Op* loop, int stages, const analysis::AxisAnalysis& axis) {
  if (stages < 3) return false;
  return axis.alignment_width(load->operand(0), analysis::mask_of(load), 0) == 1 ||
         ir::any_nested(loop, [](const Op* op) { return is_staged(op); });
}

Status pipeline_loads(ir::Module& module, const target::Target& target, Remarks* remarks) {
  if (!target.has(target::kCpAsync)) return {};
  std::vector<Op*> loops;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kFor) loops.push_back(op);
  });
  for (Op* loop : loops) {
    const Ahead which = runs_ahead(loop);
    const int stages = stages_of(loop, module);
    const Op* unknown = nullptr;
    const auto stored = stored_origins(loop, &unknown);
    if (which == Ahead::kNothing || stages < 2 || !stored) {
      if (remarks) tell_refusal(loop, stages, unknown, *remarks);
      continue;
    }
    const analysis::AxisAnalysis axis(module);
    Loop(module, target, loop, stages, which, *stored, axis, remarks).run();
  }
  std::vector<Op*> blocks;
  ir::walk(module.body(), [&](Op* op) {
    if (is_in_loop_ring(op)) blocks.push_back(op);
  });
  for (Op* block : blocks) bring_here(module, block);
  return dce(module);
}

}  // namespace kiln::passes
