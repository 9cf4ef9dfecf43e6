#include "compiler/passes/hopper/stage_operands.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/analysis/shared_memory.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/tile/dce.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

constexpr int kAlongRows[] = {1, 0}, kAlongColumns[] = {0, 1};

/// An operand without what only says how it is looked at.
struct Source {
  Value* tile;
  bool turned;
};
Source source_of(Value* operand) {
  Source source{operand, false};
  while (source.tile->op &&
         (source.tile->op->kind == OpKind::kTrans || source.tile->op->kind == OpKind::kConvertLayout)) {
    if (source.tile->op->kind == OpKind::kTrans) source.turned = !source.turned;
    source.tile = source.tile->op->operand(0);
  }
  return source;
}

/// The dimension of the operand's source that its product sums over.
int summed_dim(const Source& source, int index) { return (index == 0) != source.turned ? 1 : 0; }

/// The order in which a tile is stored for wgmma, where `k` is the dimension that the product sums over: as threads
/// hold it, so that they store vectors, unless its rows are too short for a swizzle or only one order is possible.
std::span<const int> order_for(const Type& tile, int k, const target::Target& target) {
  const std::span<const int> along_k = k == 1 ? kAlongRows : kAlongColumns, other = k == 1 ? kAlongColumns : kAlongRows;
  if (!target::lies_either_way(target, tile.dtype)) return along_k;
  return dim_of_neighbours(*tile.layout) == k || layout::widest_swizzle(tile.shape[other[0]], tile.element_bits()) == 0
             ? along_k
             : other;
}

/// What has a buffer of its own: a tile, and the dimension along which it lies there. Products that sum over different
/// dimensions of a tile share one only where wgmma reads its type either way.
using Stored = std::pair<Value*, int>;
Stored stored_as(Value* tile, int k, const target::Target& target) {
  return {tile, order_for(tile->type, k, target).front()};
}

std::vector<Op*> staged_dots(ir::Module& module) {
  std::vector<Op*> dots;
  ir::walk(module.body(), [&](Op* op) {
    if (is_wgmma(op) && is_staged(op, 1)) dots.push_back(op);
  });
  return dots;
}

/// Whether every reader of the buffer is a product of the block, behind `barrier`, that ends in the block.
bool is_read_within(const Value* buffer, const Op* barrier) {
  return std::all_of(buffer->uses.begin(), buffer->uses.end(), [&](const ir::Use& use) {
    if (use.op->parent != barrier->parent || use.op->is_before(barrier)) return false;
    if (use.op->kind == OpKind::kSharedTrans) return is_read_within(use.op->result(), barrier);
    if (use.op->kind == OpKind::kSharedStore) return true;
    if (use.op->kind != OpKind::kWgmma) return false;
    for (const Op* op = use.op->next; op; op = op->next)
      if (op->kind == OpKind::kWgmmaWait && op->int_attr(AttrName::kCount) == 0) return true;
    return false;
  });
}

/// Whether all warps have met in the block before they come to `barrier`.
bool is_joined_before(const Op* barrier) {
  for (const Op* op = barrier->prev; op; op = op->prev)
    if (op->kind == OpKind::kBarrier && !op->has(AttrName::kWarps)) return true;
  return false;
}

bool is_asynchronous(const Op* op) { return op->kind == OpKind::kWgmma || op->kind == OpKind::kTmaStore; }

/// A fence that another follows before anything asynchronous reads shared memory.
void drop_fences(Block* block) {
  Op* last = nullptr;  // a fence whose writes nothing has read yet
  for (Op* op : *block) {
    for (Block* b : op->regions) drop_fences(b);
    if (op->kind == OpKind::kFenceAsync) {
      if (last) last->erase();
      last = op;
    } else if (ir::any_nested(op, is_asynchronous)) {
      last = nullptr;
    }
  }
}

class OperandStager {
 public:
  OperandStager(ir::Module& module, const target::Target& target, Remarks* remarks)
      : module_(module), target_(target), remarks_(remarks), b_(module) {}

  void stage(Op* dot) {
    b_.set_range(dot->range);
    std::vector<Stored> here;  // are to be stored in front of the dot
    Value* sides[] = {dot->operand(0), dot->operand(1)};
    for (int i = 0; i < 2; ++i)
      if (is_staged(dot, i)) sides[i] = in_shared(dot, i, here);
    b_.set_before(dot);
    store(here);
    Value* product = warp_group_product(b_, *dot, sides);
    const int64_t later = dot->flag(AttrName::kInFlight) ? 1 : 0;
    replace(dot, wait_for(product, later));
  }

  /// In an iteration whose warps have met since the products of the one before ended, its stores need no barrier.
  void drop_barriers() {
    for (Op* barrier : barriers_) {
      const std::vector<Value*>& buffers = freed_.at(barrier);
      if (is_joined_before(barrier) && std::all_of(buffers.begin(), buffers.end(), [&](const Value* buffer) {
            return is_read_within(buffer, barrier);
          }))
        barrier->erase();
    }
  }

  /// Behind a loop that leaves its last product in flight.
  void end_flight(Op* loop, size_t index) {
    Value* sum = loop->results[index];
    const std::vector<ir::Use> uses = sum->uses;
    b_.set_range(loop->range);
    b_.set_after(loop);
    Value* done = wait_for(sum, 0);
    for (const ir::Use& use : uses) use.op->set_operand(static_cast<int>(use.index), done);
  }

 private:
  Value* wait_for(Value* product, int64_t count) {
    const Type type = product->type;
    return b_.create(OpKind::kWgmmaWait, std::span(&product, 1), std::span(&type, 1), {{AttrName::kCount, count}})
        ->result();
  }

  /// The operand's handle, as the product takes it. `here` gets the tile if it has yet to be stored before the dot.
  Value* in_shared(Op* dot, int index, std::vector<Stored>& here) {
    const Source source = source_of(dot->operand(index));
    const int k = summed_dim(source, index);
    Value* handle = ring_of(*dot, source, k);
    if (!handle) {
      const Stored stored = stored_as(source.tile, k, target_);
      Value*& buffer = buffers_[stored];
      if (!buffer) {
        buffer = alloc(source.tile->type, k);
        // Where the tile is made outside of the dot's block it is stored once for all rounds.
        const Block* made = source.tile->op ? source.tile->op->parent : source.tile->block;
        if (is_in_loop(dot->parent))
          remark_operand(remarks_, dot->range, dot_operand(*dot, index),
                         made == dot->parent ? Reason::kStoredEachTime : Reason::kStoredOnce);
        if (made == dot->parent) {
          here.push_back(stored);
        } else {
          if (source.tile->op)
            b_.set_after(source.tile->op);
          else
            b_.set_before(source.tile->block->first);
          store({&stored, 1});
        }
      }
      handle = buffer;
    }
    if (!source.turned) return handle;
    b_.set_before(dot);
    return transposed(b_, handle, kSwap);
  }

  /// The shared memory that the tile was read from, if wgmma can read it there.
  static Value* ring_of(const Op& dot, const Source& source, int k) {
    const Op* read = source.tile->op;
    if (!read || read->kind != OpKind::kSharedLoad || read->parent != dot.parent) return nullptr;
    Value* ring = read->operand(0);
    const Type& type = ring->type;
    const int span = std::min(type.shape[1 - k], 64);
    return layout::plan_wgmma_matrix(*type.layout, k, span, size_of(type.dtype)) ? ring : nullptr;
  }

  Value* alloc(const Type& tile, int k) {
    const Type type = swizzled_type(module_, tile, order_for(tile, k, target_));
    ir::Builder front(module_);
    front.set_before(module_.body()->first);
    front.set_range(b_.range());
    return front.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result();
  }

  void store(std::span<const Stored> all) {
    if (all.empty()) return;
    // A warp may still read what the round before stored.
    if (is_in_loop(b_.block())) {
      Op* barrier = join_lanes(b_, true);
      for (const Stored& stored : all) freed_[barrier].push_back(buffers_.at(stored));
      barriers_.push_back(barrier);
    }
    for (const Stored& stored : all) {
      Value* operands[] = {buffers_.at(stored), stored.first};
      b_.create(OpKind::kSharedStore, operands, {});
    }
    b_.create(OpKind::kFenceAsync, {}, {});
    join_lanes(b_, true);
  }

  ir::Module& module_;
  const target::Target& target_;
  Remarks* remarks_;
  ir::Builder b_;
  std::map<Stored, Value*> buffers_;                          // in shared memory
  std::vector<Op*> barriers_;                                 // in front of stores
  std::unordered_map<const Op*, std::vector<Value*>> freed_;  // what those let be stored to
};

}  // namespace

Status stage_operands(ir::Module& module, const target::Target& target, Remarks* remarks) {
  const std::vector<Op*> dots = staged_dots(module);
  if (dots.empty()) return {};
  OperandStager stager(module, target, remarks);
  for (Op* dot : dots) {
    Op* loop = dot->parent->parent;
    const std::optional<size_t> in_flight = dot->flag(AttrName::kInFlight) ? carried_sum(*dot) : std::nullopt;
    stager.stage(dot);
    if (in_flight) stager.end_flight(loop, *in_flight);
  }
  stager.drop_barriers();
  drop_fences(module.body());
  return dce(module);
}

int64_t staged_bytes(ir::Module& module, const target::Target& target, const Op* beside, std::span<Op* const> brought) {
  std::set<Stored> buffers;
  for (const Op* dot : staged_dots(module))
    for (int i = 0; i < 2; ++i) {
      if (!is_staged(dot, i)) continue;
      const Source source = source_of(dot->operand(i));
      buffers.insert(stored_as(source.tile, summed_dim(source, i), target));
    }
  int64_t bytes = 0;
  for (const auto& [tile, along] : buffers) {
    const Block* made = tile->op ? tile->op->parent : tile->block;
    if (!encloses(beside, made) && !is_inside(beside->parent, made)) continue;
    const bool in_ring = tile->op && (tile->op->kind == OpKind::kSharedLoad ||
                                      std::find(brought.begin(), brought.end(), tile->op) != brought.end());
    if (!in_ring)
      bytes += analysis::shared_bytes(ir::shared_type(tile->type.dtype, tile->type.shape, tile->type.layout, 1));
  }
  return bytes;
}

}  // namespace kiln::passes
