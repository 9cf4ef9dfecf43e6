#include "compiler/passes/hopper/specialize_warps.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/producer_slice.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/hopper/select_block_loads.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/stage_block_stores.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"
#include "support/diag.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

constexpr int kPatternRows = 8;                           // of a swizzle: a block's share of a tile is whole patterns
constexpr int64_t kBarrierBytes = 16, kAlignment = 1024;  // of a slot's two mbarriers; of a ring
constexpr int kSoleWarps = 4;                             // one warp group: no other multiplies while it waits
/// From how many slots and which tile on products are left in flight: that keeps one more slot from being filled, which
/// smaller tiles, bound by what they read, would wait for.
constexpr int kLeastSlotsInFlight = 4;
constexpr int64_t kLeastTileInFlight = 64 * 128;

/// The loads of one role in one block of code, and the slots that they fill. Blocks that follow one another share slots
/// where they load the same types.
struct Ring {
  Block* block = nullptr;
  size_t role = 0;              // that fills it: a row
  size_t place = 0;             // its index, or that of the first ring with these slots
  std::vector<Op*> loads;       // in order
  std::vector<Value*> buffers;  // one per load: a tile for each slot
  Value *full = nullptr, *empty = nullptr;
  int64_t bytes = 0;  // that fill a slot
  int slots = 1;
  std::vector<bool> shared;  // one per load: all blocks of the program load the same
  bool is_shared() const { return std::find(shared.begin(), shared.end(), true) != shared.end(); }
};

/// Where an agent stands in a ring: the next slot, and the parity of its round.
struct Position {
  Value *slot, *parity;
};
using Places = std::vector<Position>;  // one per ring

/// A loop whose products are left in flight from one iteration to the next.
struct Flight {
  std::vector<size_t> results;     // of the loop: their sums
  std::vector<Value*> begun = {};  // of the iteration, so far
};

class Specializer {
 public:
  Specializer(ir::Module& module, const target::Target& target, std::span<const Role> rows, Remarks* remarks)
      : module_(module), target_(target), rows_(rows), remarks_(remarks), b_(module) {}

  bool find_rings() {
    std::vector<Op*> dots;
    ir::walk(module_.body(), [&](Op* op) {
      if (is_wgmma(op)) dots.push_back(op);
    });
    std::unordered_set<const Op*> wanted;
    ir::walk(module_.body(), [&](const Op* op) {
      if (op->kind != OpKind::kDot && op->kind != OpKind::kWgmma) return;
      for (int i : {0, 1})
        if (const Op* load = slot_load(op, i)) wanted.insert(load);
    });
    ir::walk(module_.body(), [&](Op* op) {
      if (!wanted.contains(op) && !is_ahead(op)) return;
      const size_t role = role_of(*op);
      auto at = std::find_if(rings_.begin(), rings_.end(),
                             [&](const Ring& r) { return r.block == op->parent && r.role == role; });
      if (at == rings_.end()) {
        at = rings_.emplace(rings_.end());
        at->block = op->parent, at->role = role;
      }
      // What is loaded once has nothing to run ahead of, and what follows a loop of products runs ahead of that.
      if (is_in_loop(op->parent) && !is_ahead(op)) at->slots = module_.num_stages;
      at->loads.push_back(op);
      at->shared.push_back(is_shared(*op));
    });
    for (size_t i = 0; i < rings_.size(); ++i) rings_[i].place = place_of(i);
    fit_shared_memory();
    for (const Ring& ring : rings_)
      if (std::vector<size_t> sums = sums_in_flight(*ring.block, dots); !sums.empty())
        in_flight_[ring.block] = {std::move(sums)};
    return !rings_.empty();
  }

  void run() {
    std::map<size_t, analysis::ProducerSlice> slices;  // by role
    for (size_t role = 0; role < rows_.size(); ++role) {
      std::vector<const Op*> loads;
      for (const Ring& ring : rings_)
        if (ring.role == role) loads.insert(loads.end(), ring.loads.begin(), ring.loads.end());
      if (loads.empty()) continue;
      const analysis::ProducerSlice& slice = slices[role] = analysis::producer_slice(loads);
      KILN_ASSERT(slice.ok(), "{}", slice.refusal);
    }
    for (const Ring& ring : rings_)
      for (const Block* block = ring.block; block->parent; block = block->parent->parent)
        holds_loads_.insert(block->parent);

    Op* split = move_into_regions(slices.size());
    for (Ring& ring : rings_)  // loads that stood outside of every loop
      if (ring.block == module_.body()) ring.block = split->region(0);
    make_rings(split);
    if (remarks_) tell();
    int region = 0;
    for (auto& [role, slice] : slices) {
      role_ = role;
      slice_ = std::move(slice);
      copies_.clear();
      b_.set_to_end(split->region(++region));
      stay_for_others(produce(*split->region(0), start()));
      b_.yield({});
    }
    consume(split->region(0), [&] {
      b_.set_before(split->region(0)->first);
      return start();
    }());
  }

 private:
  void tell() {
    for (size_t i = 0; i < rings_.size(); ++i) {
      const Ring& ring = rings_[i];
      const SourceRange place = ring.loads.front()->range;
      if (ring.place == i)
        remarks_->add(because(Reason::kTmaRing, rows_[ring.role].name, ring.loads.size(), ring.slots, ring.bytes),
                      place);
      if (const auto shared = std::count(ring.shared.begin(), ring.shared.end(), true))
        remarks_->add(because(Reason::kTmaMulticast, shared, ring.loads.size(), module_.num_ctas), place);
      if (in_flight_.contains(ring.block)) remarks_->add(because(Reason::kTmaProductAhead), ring.block->parent->range);
    }
  }

  /// Takes slots from the longest rings until all fit beside what else is in shared memory. num_stages is a wish: what
  /// runs ahead less is still right.
  void fit_shared_memory() {
    const int64_t room = shared_room(module_, target_) - staging_bytes_beside_rings(module_);
    for (;;) {
      int64_t bytes = kAlignment;  // behind the barriers
      int most = 1;
      for (size_t i = 0; i < rings_.size(); ++i) {
        if (rings_[i].place != i) continue;
        const int64_t tiles = rings_[i].slots * slot_bytes(rings_[i].loads);
        bytes += rings_[i].slots * kBarrierBytes + (tiles + kAlignment - 1) / kAlignment * kAlignment;
        most = std::max(most, rings_[i].slots);
      }
      if (bytes <= room || most == 1) return;
      // Of several, what is filled once has less to run ahead of than what is filled by an inner loop.
      int fewest = std::numeric_limits<int>::max();
      for (const Ring& ring : rings_)
        if (ring.slots > 1) fewest = std::min(fewest, loops_around(ring.block));
      most = 1;
      for (const Ring& ring : rings_)
        if (loops_around(ring.block) == fewest) most = std::max(most, ring.slots);
      for (Ring& ring : rings_)
        if (ring.slots == most && loops_around(ring.block) == fewest) --ring.slots;
    }
  }

  size_t role_of(const Op& load) const {
    const auto row = std::ranges::find_if(rows_, [&](const Role& r) { return r.brings(load); });
    KILN_ASSERT(row != rows_.end(), "no role brings {}", ir::print(load));
    return static_cast<size_t>(row - rows_.begin());
  }

  /// Of ring `number`, when those before it have theirs.
  size_t place_of(size_t number) const {
    const std::span before(rings_.data(), number);
    for (size_t place = 0; place < number; ++place) {
      const bool fits = std::all_of(before.begin(), before.end(),
                                    [&](const Ring& r) { return r.place != place || can_share(r, rings_[number]); });
      if (rings_[place].place == place && fits) return place;
    }
    return number;
  }

  /// Whether slots that `a` has used can serve `b` too. Not where one stands around the other: its slots are still
  /// full.
  static bool can_share(const Ring& a, const Ring& b) {
    return a.role == b.role && a.slots == b.slots && a.shared == b.shared && !is_inside(b.block, a.block) &&
           !is_inside(a.block, b.block) && fill_alike(a.loads, b.loads);
  }

  /// Whether every block of the program loads the same, and as often: neither the offsets nor the control flow around
  /// the load ask for the block's rank.
  bool is_shared(const Op& load) const {
    if (module_.num_ctas == 1 || load.result()->type.shape[0] < kPatternRows * module_.num_ctas) return false;
    const Op* alone[] = {&load};
    const auto slice = analysis::producer_slice(alone);
    return std::none_of(slice.ops.begin(), slice.ops.end(), [](const Op* op) { return op->kind == OpKind::kCtaRank; });
  }

  /// Which results of a loop are the sums of its dots, if the next products may begin before these have ended: a lone
  /// group of warps would else leave the tensor cores idle from one slot to the next.
  std::vector<size_t> sums_in_flight(const Block& block, const std::vector<Op*>& dots) const {
    const Op* loop = block.parent;
    if (!loop || loop->kind != OpKind::kFor || module_.num_warps != kSoleWarps) return {};
    std::vector<const Op*> products;
    std::ranges::copy_if(dots, std::back_inserter(products), [&](const Op* dot) { return dot->parent == &block; });
    if (ir::any_nested(loop, [&](const Op* op) {
          return (op->kind == OpKind::kDot || op->kind == OpKind::kWgmma) &&
                 std::ranges::find(products, op) == products.end();
        }))
      return {};
    int64_t elements = 0;
    std::vector<size_t> sums;
    for (const Op* dot : products) {
      for (int i : {0, 1}) {
        const BlockOperand from = block_operand(dot->operand(i));
        if (!from.load || from.load->parent != &block || !lies_for_wgmma(from, /*is_b=*/i == 1, target_)) return {};
      }
      const std::optional<size_t> sum = carried_result(*dot);
      if (!sum) return {};
      sums.push_back(*sum);
      elements += dot->result()->type.shape.numel();
    }
    if (elements < kLeastTileInFlight) return {};
    const bool has_slots = std::ranges::all_of(
        rings_, [&](const Ring& ring) { return ring.block != &block || ring.slots >= kLeastSlotsInFlight; });
    if (has_slots) return sums;
    remark(remarks_, products.front()->range, Reason::kTmaFewSlots, kLeastSlotsInFlight);
    return {};
  }

  static bool is_grid_dependency(const Op* op) {
    return op->kind == OpKind::kGdcWait || op->kind == OpKind::kGdcLaunchDependents;
  }

  Value* number(int64_t v) { return b_.constant_int(ir::scalar_type(DType::kI32), v); }

  /// Everything but descriptors, and what they are made of, goes into the first region; so do those whose maps the own
  /// warps make where they find the tensors.
  Op* move_into_regions(size_t roles) {
    Block* body = module_.body();
    std::unordered_set<const Op*> stay;
    std::vector<const Op*> work;
    ir::walk(body, [&](Op* op) {
      if (op->kind == OpKind::kMakeDescriptor && !op->flag(AttrName::kOnDevice)) work.push_back(op);
    });
    // All regions wait for what was launched before, and a launch that may begin earlier waits itself.
    for (Op* op : *body)
      if (is_grid_dependency(op)) work.push_back(op);
    while (!work.empty()) {
      const Op* op = work.back();
      work.pop_back();
      if (!stay.insert(op).second) continue;
      for (const Value* v : op->operands)
        if (v->op) work.push_back(v->op);
    }
    b_.set_before(body->terminator());
    Op* split = b_.create(OpKind::kWarpSpecialize, {}, {}, {{AttrName::kWarps, int64_t{warps_of_roles(roles)}}});
    for (size_t i = 0; i <= roles; ++i) module_.new_block(split);
    std::vector<Op*> hoisted;  // out of loops, in order
    ir::walk(body, [&](Op* op) {
      if (stay.contains(op) && op->parent != body) hoisted.push_back(op);
    });
    for (Op* op : hoisted) {
      op->unlink();
      body->insert_before(split, op);
    }
    for (Op* op : *body) {
      if (op == split) break;
      if (stay.contains(op)) continue;
      op->unlink();
      split->region(0)->insert_before(nullptr, op);
    }
    b_.set_to_end(split->region(0));
    b_.yield({});
    return split;
  }

  void make_rings(Op* split) {
    b_.set_before(split);
    for (Ring& ring : rings_) {
      if (const Ring& first = rings_[ring.place]; &first != &ring) {
        ring.buffers = first.buffers, ring.full = first.full, ring.empty = first.empty, ring.bytes = first.bytes;
        continue;
      }
      for (Op* load : ring.loads) ring.buffers.push_back(alloc(slot_type(load->result()->type, ring.slots)));
      ring.bytes = slot_bytes(ring.loads);
      ring.full = alloc(ir::barrier_type(ring.slots));
      ring.empty = alloc(ir::barrier_type(ring.slots));
      b_.create(OpKind::kMbarrierInit, std::span(&ring.full, 1), {}, {{AttrName::kCount, int64_t{1}}});
      // A slot that all blocks fill is empty when it is in all of them.
      const int64_t readers = int64_t{module_.num_warps} * (ring.is_shared() ? module_.num_ctas : 1);
      b_.create(OpKind::kMbarrierInit, std::span(&ring.empty, 1), {}, {{AttrName::kCount, readers}});
    }
    b_.create(shares_rings() ? OpKind::kClusterBarrier : OpKind::kBarrier, {}, {});
    // What needs nothing of launches before comes ahead of the wait for them.
    std::vector<Op*> waits;
    for (Op* op : *module_.body())
      if (is_grid_dependency(op)) waits.push_back(op);
    for (Op* op : waits) {
      op->unlink();
      module_.body()->insert_before(split, op);
    }
  }

  bool shares_rings() const {
    return std::any_of(rings_.begin(), rings_.end(), [](const Ring& r) { return r.is_shared(); });
  }

  Type slot_type(const Type& tile, int slots) {
    if (tile.shape.rank > 1) return swizzled_type(module_, tile, kRowMajor, slots);
    constexpr int kAlong[] = {0};
    return rows_type(module_, tile, kAlong, slots);
  }

  Value* alloc(const Type& type) { return b_.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result(); }

  Places start() {
    Places places;
    for (size_t i = 0; i < rings_.size(); ++i) {
      Value* zero = number(0);
      places.push_back({zero, zero});
    }
    return places;
  }

  /// The next slot; a round further when that is the first.
  Position next(const Ring& ring, const Position& place) {
    const NextSlot next = next_slot(b_, place.slot, ring.slots);
    return {next.slot, b_.binary(OpKind::kXor, place.parity, b_.cast(next.wraps, DType::kI32))};
  }

  /// The places of the rings (of one role) whose block is in `op` at any depth.
  std::vector<size_t> rings_in(const Op* op, std::optional<size_t> role = {}) const {
    std::vector<size_t> found;
    for (const Ring& ring : rings_)
      for (const Block* block = ring.block; block->parent; block = block->parent->parent)
        if (block->parent == op && ring.role == role.value_or(ring.role) &&
            std::find(found.begin(), found.end(), ring.place) == found.end()) {
          found.push_back(ring.place);
          break;
        }
    return found;
  }

  /// One for each role that loads in the block.
  std::vector<const Ring*> rings_of(const Block* block) const {
    std::vector<const Ring*> found;
    for (const Ring& ring : rings_)
      if (ring.block == block) found.push_back(&ring);
    return found;
  }

  // --- a producer: a copy of its slice, in which each block of loads fills a slot

  Value* copied(Value* v) const {
    auto it = copies_.find(v);
    return it == copies_.end() ? v : it->second;  // descriptors and parameters are visible from all regions
  }

  /// Appends to the builder's block; gives the places after it.
  Places produce(const Block& block, Places places) {
    const std::vector<const Ring*> rings = rings_of(&block);
    const auto own = std::ranges::find(rings, role_, &Ring::role);
    const Ring* ring = own == rings.end() ? nullptr : *own;
    for (const Op* op : block) {
      if (ring && op == ring->loads.front()) {
        fill_slot(*ring, places[ring->place]);
      } else if (slice_.ops.contains(op) && !op->regions.empty()) {
        places = op->kind == OpKind::kFor ? produce_for(*op, std::move(places)) : produce_if(*op, std::move(places));
      } else if (slice_.ops.contains(op) && !copies_.contains(op->result())) {
        copy_op(*op);
      }
    }
    if (ring) {
      Position& place = places[ring->place];
      place = next(*ring, place);
    }
    return places;
  }

  /// A block must not end while others may still arrive at its mbarriers: the last they do is to empty each slot.
  void stay_for_others(const Places& places) {
    for (size_t i = 0; i < rings_.size(); ++i) {
      if (!rings_[i].is_shared() || rings_[i].place != i || rings_[i].role != role_) continue;
      Value* inits[] = {places[i].slot, places[i].parity};
      Op* loop = b_.for_loop(number(0), number(rings_[i].slots), number(1), inits);
      b_.set_to_end(loop->region());
      const Position place = {loop->region()->args[1], loop->region()->args[2]};
      wait_until_empty(rings_[i], place);
      const Position after = next(rings_[i], place);
      Value* yields[] = {after.slot, after.parity};
      b_.yield(yields);
      b_.set_after(loop);
    }
  }

  void wait_until_empty(const Ring& ring, const Position& place) {
    Value* wait[] = {view(b_, ring.empty, place.slot), b_.binary(OpKind::kXor, place.parity, number(1))};
    b_.create(OpKind::kMbarrierWait, wait, {});
  }

  void copy_op(const Op& op) {
    std::vector<Value*> operands;
    for (Value* v : op.operands) operands.push_back(copied(v));
    std::vector<Type> results;
    for (const Value* r : op.results) results.push_back(r->type);
    b_.set_range(op.range);
    Op* copy = b_.create(op.kind, operands, results, op.attrs);
    for (size_t i = 0; i < results.size(); ++i) {
      copy->results[i]->name = op.results[i]->name;
      copies_[op.results[i]] = copy->results[i];
    }
  }

  /// The offsets of a block's loads are computed before the first of them, which the slice's order allows: they are
  /// copied on demand.
  void copy_needed(Value* v) {
    if (copies_.contains(v) || !v->op || !slice_.ops.contains(v->op)) return;
    for (Value* operand : v->op->operands) copy_needed(operand);
    copy_op(*v->op);
  }

  void fill_slot(const Ring& ring, const Position& place) {
    b_.set_range(ring.loads.front()->range);
    wait_until_empty(ring, place);
    Value* full = view(b_, ring.full, place.slot);
    b_.create(OpKind::kMbarrierExpect, std::span(&full, 1), {}, {{AttrName::kBytes, ring.bytes}});
    for (size_t i = 0; i < ring.loads.size(); ++i) {
      const Op* load = ring.loads[i];
      std::vector<Value*> operands = {view(b_, ring.buffers[i], place.slot), full, load->operand(0)};
      for (size_t k = 1; k < load->operands.size(); ++k) {
        copy_needed(load->operands[k]);
        operands.push_back(copied(load->operands[k]));
      }
      b_.set_range(load->range);
      Op* copy = b_.create(OpKind::kTmaLoad, operands, {});
      if (ring.shared[i]) copy->set(AttrName::kCluster, true);
      if (const ir::Attr* eviction = load->find(AttrName::kEviction)) copy->set(AttrName::kEviction, *eviction);
    }
  }

  Places produce_for(const Op& op, Places places) {
    std::vector<size_t> kept;  // carried values that the slice needs
    std::vector<Value*> inits;
    const Block& body = *op.region();
    for (size_t i = 0; i < op.results.size(); ++i)
      if (slice_.values.contains(op.results[i]) || slice_.values.contains(body.args[i + 1])) {
        kept.push_back(i);
        inits.push_back(copied(op.operands[i + 3]));
      }
    const std::vector<size_t> rings = rings_in(&op, role_);
    for (size_t r : rings) inits.insert(inits.end(), {places[r].slot, places[r].parity});
    b_.set_range(op.range);
    Op* loop = b_.for_loop(copied(op.operand(0)), copied(op.operand(1)), copied(op.operand(2)), inits);
    Block* inner = loop->region();
    copies_[body.args[0]] = inner->args[0];
    inner->args[0]->name = body.args[0]->name;
    for (size_t i = 0; i < kept.size(); ++i) copies_[body.args[kept[i] + 1]] = inner->args[i + 1];
    Places within = places;
    for (size_t i = 0; i < rings.size(); ++i)
      within[rings[i]] = {inner->args[kept.size() + 2 * i + 1], inner->args[kept.size() + 2 * i + 2]};
    b_.set_to_end(inner);
    within = produce(body, std::move(within));
    std::vector<Value*> yields;
    for (size_t i : kept) yields.push_back(copied(body.terminator()->operands[i]));
    for (size_t r : rings) yields.insert(yields.end(), {within[r].slot, within[r].parity});
    b_.yield(yields);
    b_.set_after(loop);
    for (size_t i = 0; i < kept.size(); ++i) copies_[op.results[kept[i]]] = loop->results[i];
    for (size_t i = 0; i < rings.size(); ++i)
      places[rings[i]] = {loop->results[kept.size() + 2 * i], loop->results[kept.size() + 2 * i + 1]};
    return places;
  }

  Places produce_if(const Op& op, Places places) {
    std::vector<size_t> kept;
    std::vector<Type> types;
    for (size_t i = 0; i < op.results.size(); ++i)
      if (slice_.values.contains(op.results[i])) {
        kept.push_back(i);
        types.push_back(op.results[i]->type);
      }
    const std::vector<size_t> rings = rings_in(&op, role_);
    for (size_t i = 0; i < rings.size(); ++i) types.insert(types.end(), 2, ir::scalar_type(DType::kI32));
    b_.set_range(op.range);
    Op* branch = b_.if_op(copied(op.operand(0)), types);
    for (int side : {0, 1}) {
      b_.set_to_end(branch->region(side));
      const Places end = produce(*op.region(side), places);
      std::vector<Value*> yields;
      for (size_t i : kept) yields.push_back(copied(op.region(side)->terminator()->operands[i]));
      for (size_t r : rings) yields.insert(yields.end(), {end[r].slot, end[r].parity});
      b_.yield(yields);
    }
    b_.set_after(branch);
    for (size_t i = 0; i < kept.size(); ++i) copies_[op.results[kept[i]]] = branch->results[i];
    for (size_t i = 0; i < rings.size(); ++i)
      places[rings[i]] = {branch->results[kept.size() + 2 * i], branch->results[kept.size() + 2 * i + 1]};
    return places;
  }

  // --- the consumers: the kernel itself, with slots in place of loads

  Places consume(Block* block, Places places) {
    const std::vector<const Ring*> rings = rings_of(block);
    for (Op* op : *block) {
      for (const Ring* ring : rings) {
        if (op != ring->loads.front()) continue;
        const Position& place = places[ring->place];
        b_.set_before(op);
        b_.set_range(op->range);
        Value* wait[] = {view(b_, ring->full, place.slot), place.parity};
        b_.create(OpKind::kMbarrierWait, wait, {});
        for (size_t i = 0; i < ring->loads.size(); ++i)
          blocks_[ring->loads[i]] = view(b_, ring->buffers[i], place.slot);
      }
      if (is_wgmma(op))
        multiply(op);
      else if (op->kind == OpKind::kWgmma)
        take_slot(op);
      else if (is_ahead(op))
        read(op);
      else if (holds_loads_.contains(op))
        places = op->kind == OpKind::kFor ? consume_for(op, std::move(places)) : consume_if(op, std::move(places));
      else
        multiply_within(op);
    }
    for (const Ring* ring : rings) {
      Position& place = places[ring->place];
      b_.set_before(end_of_reads(*ring, *block));
      if (in_flight_.contains(block)) {  // the slot before is read, after the first
        const Op* loop = block->parent;
        release_if(b_.cmp(ir::Predicate::kNe, block->args[0], loop->operand(0)), *ring, place.slot);
      } else {
        release(*ring, place.slot);
      }
      place = next(*ring, place);
      erase_loads(*ring);
    }
    return places;
  }

  /// Behind it nothing reads the slot: the last copy into registers, a loop or branch, or the block's end, up to where
  /// products may be in flight.
  Op* end_of_reads(const Ring& ring, const Block& block) const {
    std::unordered_set<const Value*> handles;
    for (const Op* load : ring.loads) handles.insert(blocks_.at(load));
    const Op* last = nullptr;
    for (const Op* op : block) {
      const bool reads = ir::any_nested(op, [&](const Op* inner) {
        return std::any_of(inner->operands.begin(), inner->operands.end(),
                           [&](auto* v) { return handles.contains(v); });
      });
      if (!reads) continue;
      last = op;
      if (op->kind == OpKind::kSharedTrans) handles.insert(op->result());
    }
    const bool has_ended =
        last && (!last->regions.empty() || std::all_of(ring.loads.begin(), ring.loads.end(), is_ahead));
    return has_ended ? last->next : block.terminator();
  }

  void release(const Ring& ring, Value* slot) {
    Value* empty = view(b_, ring.empty, slot);
    Op* arrive = b_.create(OpKind::kMbarrierArrive, std::span(&empty, 1), {});
    if (ring.is_shared()) arrive->set(AttrName::kCluster, true);
  }

  /// Where `condition` holds, the slot before `slot`.
  void release_if(Value* condition, const Ring& ring, Value* slot) {
    Op* branch = b_.if_op(condition, {});
    for (int side : {0, 1}) {
      b_.set_to_end(branch->region(side));
      if (side == 0) {
        Value* is_first = b_.cmp(ir::Predicate::kEq, slot, number(0));
        release(ring, b_.select(is_first, number(ring.slots - 1), b_.binary(OpKind::kSub, slot, number(1))));
      }
      b_.yield({});
    }
    b_.set_after(branch);
  }

  /// Behind a loop whose last products are in flight: takes the sums, and releases those products' slots if there were
  /// any.
  void end_flight(Op* loop, const std::vector<size_t>& results, const Places& places) {
    b_.set_after(loop);
    b_.set_range(loop->range);
    for (const size_t result : results) {
      Value* sum = loop->results[result];
      const std::vector<ir::Use> uses = sum->uses;
      Value* done = wait_for(sum, 0);
      for (const ir::Use& use : uses) use.op->set_operand(static_cast<int>(use.index), done);
    }
    for (const Ring* ring : rings_of(loop->region()))
      release_if(b_.cmp(ir::Predicate::kLt, loop->operand(0), loop->operand(1)), *ring, places[ring->place].slot);
  }

  /// `product`, when at most `count` later ones are unfinished.
  Value* wait_for(Value* product, int64_t count) {
    const Type type = product->type;
    return b_.create(OpKind::kWgmmaWait, std::span(&product, 1), std::span(&type, 1), {{AttrName::kCount, count}})
        ->result();
  }

  /// Carries the places of the rings inside of a loop around it.
  Places consume_for(Op* op, Places places) {
    Places within = places;
    const std::vector<size_t> rings = rings_in(op);
    for (size_t r : rings) {
      op->append_operand(places[r].slot);
      op->append_operand(places[r].parity);
      const Type type = ir::scalar_type(DType::kI32);
      within[r].slot = module_.add_arg(op->region(), type, "slot");
      within[r].parity = module_.add_arg(op->region(), type, "parity");
      places[r].slot = module_.add_result(op, type);
      places[r].parity = module_.add_result(op, type);
    }
    within = consume(op->region(), std::move(within));
    for (size_t r : rings) {
      op->region()->terminator()->append_operand(within[r].slot);
      op->region()->terminator()->append_operand(within[r].parity);
    }
    if (const auto flight = in_flight_.find(op->region()); flight != in_flight_.end())
      end_flight(op, flight->second.results, places);
    return places;
  }

  Places consume_if(Op* op, Places places) {
    const std::vector<size_t> rings = rings_in(op);
    for (Block* side : op->regions) {
      const Places end = consume(side, places);
      for (size_t r : rings) {
        side->terminator()->append_operand(end[r].slot);
        side->terminator()->append_operand(end[r].parity);
      }
    }
    for (size_t r : rings) {
      places[r].slot = module_.add_result(op, ir::scalar_type(DType::kI32));
      places[r].parity = module_.add_result(op, ir::scalar_type(DType::kI32));
    }
    return places;
  }

  /// The products in loops and branches without loads of their own: they read the slots of the block around.
  void multiply_within(Op* op) {
    std::vector<Op*> dots;
    for (Block* block : op->regions)
      ir::walk(block, [&](Op* inner) {
        if (is_wgmma(inner)) dots.push_back(inner);
        if (inner->kind == OpKind::kWgmma) take_slot(inner);
      });
    for (Op* dot : dots) multiply(dot);
  }

  /// The first operand of a product whose second one the warps store (stage_operands).
  void take_slot(Op* product) {
    Value* block = product->operand(0);
    const BlockOperand from = block_operand(block);
    if (!from.load) return;
    b_.set_before(product);
    b_.set_range(product->range);
    Value* slot = blocks_.at(from.load);
    product->set_operand(0, from.transposed ? transposed(b_, slot, kSwap) : slot);
    erase_views(block);
  }

  /// A tile that is no operand of products: its slot is copied into registers.
  void read(Op* load) {
    b_.set_before(load);
    b_.set_range(load->range);
    Value* tile = b_.create1(OpKind::kSharedLoad, {blocks_.at(load)}, load->result()->type);
    tile->name = load->result()->name;
    ir::replace_all_uses(load->result(), tile);
  }

  void multiply(Op* dot) {
    b_.set_before(dot);
    b_.set_range(dot->range);
    Value* sides[] = {dot->operand(0), dot->operand(1)};
    const std::vector<Value*> operands = dot->operands;
    for (int i : {0, 1}) {
      const BlockOperand from = block_operand(dot->operand(i));
      if (!from.load) continue;  // computed, in registers
      sides[i] = blocks_.at(from.load);
      if (from.transposed) sides[i] = transposed(b_, sides[i], kSwap);
      if (!lies_for_wgmma(from, /*is_b=*/i == 1, target_))
        sides[i] = in_registers(sides[i], *dot->result()->type.layout);
    }
    Value* product = warp_group_product(b_, *dot, sides);
    if (const auto flight = in_flight_.find(dot->parent); flight != in_flight_.end())
      leave_in_flight(flight->second, product, dot);
    else
      take(dot, wait_for(product, 0));
    dot->erase();
    for (int i : {0, 1})
      if (i == 0 || operands[0] != operands[1]) erase_views(operands[static_cast<size_t>(i)]);
  }

  void take(Op* dot, Value* product) {
    product->name = dot->result()->name;
    ir::replace_all_uses(dot->result(), product);
  }

  /// All products of an iteration begin, then those of the one before are waited for: so many later ones are in flight.
  void leave_in_flight(Flight& flight, Value* product, Op* dot) {
    take(dot, product);
    flight.begun.push_back(product);
    if (flight.begun.size() < flight.results.size()) return;
    for (Value* begun : flight.begun) {
      const ir::Use carried = begun->uses.front();
      Value* done = wait_for(begun, std::ssize(flight.begun));
      std::swap(done->name, begun->name);
      carried.op->set_operand(static_cast<int>(carried.index), done);
    }
  }

  /// The views of a block that nothing uses any more; the load goes with its ring.
  static void erase_views(Value* v) {
    while (v->uses.empty() && v->op && (v->op->kind == OpKind::kTrans || v->op->kind == OpKind::kConvertLayout)) {
      Op* view = v->op;
      v = view->operand(0);
      view->erase();
    }
  }

  Value* in_registers(Value* block, const layout::LinearLayout& accumulator) {
    const Type& t = block->type;
    Type tile = ir::tile_type(t.dtype, t.shape);
    tile.layout =
        module_.intern(layout::mma_operand(layout::DotSide::kA, t.shape.span(), t.element_bits(), accumulator));
    return b_.create1(OpKind::kSharedLoad, {block}, tile);
  }

  static void erase_loads(const Ring& ring) {
    for (Op* load : ring.loads) load->erase();
  }

  ir::Module& module_;
  const target::Target& target_;
  const std::span<const Role> rows_;
  Remarks* remarks_;
  ir::Builder b_;
  std::vector<Ring> rings_;
  std::unordered_map<const Block*, Flight> in_flight_;
  std::unordered_set<const Op*> holds_loads_;  // loops and branches around loads
  // Of the role whose region is being written:
  size_t role_ = 0;
  analysis::ProducerSlice slice_;
  std::unordered_map<const Value*, Value*> copies_;  // its copy of a scalar
  std::unordered_map<const Op*, Value*> blocks_;     // where a load's block lies for the consumers
};

}  // namespace

int64_t slot_bytes(std::span<const Op* const> loads) {
  int64_t bytes = 0;
  for (const Op* load : loads) bytes += load->result()->type.shape.numel() * size_of(load->result()->type.dtype);
  return bytes;
}

bool fill_alike(std::span<const Op* const> a, std::span<const Op* const> b) {
  return std::ranges::equal(a, b, [](const Op* x, const Op* y) { return x->result()->type == y->result()->type; });
}

Status specialize_warps(ir::Module& module, const target::Target& target, std::span<const Role> roles,
                        Remarks* remarks) {
  Specializer specializer(module, target, roles, remarks);
  if (specializer.find_rings()) specializer.run();
  return {};
}

}  // namespace kiln::passes
