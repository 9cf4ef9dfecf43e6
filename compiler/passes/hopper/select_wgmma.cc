#include "compiler/passes/hopper/select_wgmma.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/analysis/producer_slice.h"
#include "compiler/analysis/tensor_map.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/hopper/select_loop_loads.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/transpose_product.h"
#include "support/tensor_map.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;
using target::GroupMma;
using target::Target;

namespace {

/// Where the operands of a candidate lie, if not both in slots.
enum class Way { kSlots, kARegisters, kBStored };

struct Candidate {
  Op* dot;
  const GroupMma* group;
  std::vector<const Op*> loads;  // of the operands that are blocks
  bool swapped;                  // as trans(trans b · trans a)
  Way way = Way::kSlots;
};

/// What keeps TMA from bringing an operand of a dot.
struct Obstacle {
  Cause cause;
  int operand;
};
using Obstacles = std::unordered_map<const Op*, Obstacle>;

bool has_swizzle(const BlockOperand& operand) {
  const Type& block = operand.load->result()->type;
  return layout::widest_swizzle(block.shape[1], block.element_bits()) != 0;
}

BlockOperand turned(BlockOperand operand) {
  operand.transposed = !operand.transposed;
  return operand;
}

/// Whether a · b can be made of these blocks in shared memory, or with a in registers.
bool fits_memory(const BlockOperand& a, const BlockOperand& b, bool through_registers, const Target& target) {
  if (!has_swizzle(a) || !has_swizzle(b)) return false;
  const Type& left = a.load->result()->type;
  return lies_for_wgmma(b, /*is_b=*/true, target) &&
         (lies_for_wgmma(a, /*is_b=*/false, target) || (through_registers && size_of(left.dtype) == 4));
}

/// What of one operand does not fit, if anything does.
std::optional<Cause> unfit(const BlockOperand& operand, bool is_b, const Target& target) {
  const Type& block = operand.load->result()->type;
  if (!has_swizzle(operand)) return because(Reason::kRowsTooShort, block.shape[1] * size_of(block.dtype));
  if (!lies_for_wgmma(operand, is_b, target)) return because(Reason::kBlockNotAlongK, block.element_bits());
  return std::nullopt;
}

/// A wait for other launches that stands where only some programs, or one more than once, come by: a producer would run
/// past it.
bool waits_in_branches(ir::Module& module) {
  bool found = false;
  ir::walk(module.body(), [&](Op* op) { found |= op->kind == OpKind::kGdcWait && op->parent != module.body(); });
  return found;
}

/// Whether a descriptor loads the operand, whatever else reads it.
bool is_of_block(const Value* operand) {
  const Op* load = load_of(operand);
  return load && load->kind == OpKind::kDescriptorLoad;
}

/// `banned`: loads that something else reads as well. `obstacles` gets why other dots are none.
std::vector<Candidate> candidates(ir::Module& module, const Target& target, const std::unordered_set<const Op*>& banned,
                                  Obstacles& obstacles) {
  const analysis::AxisAnalysis axis(module);
  // A tensor that the kernel writes itself must not be read ahead.
  const analysis::PointerOrigins written = analysis::written_origins(module);
  const bool waits = waits_in_branches(module);
  const std::vector<const Op*> waiting = waiting_loops(module);
  std::vector<Candidate> found;
  std::unordered_set<const Op*> products;
  auto stop = [&](const Op* dot, int operand, Cause cause) {
    obstacles.try_emplace(dot, Obstacle{std::move(cause), operand});  // later rounds only see what that one bans
    return false;
  };
  auto is_block = [&](const Op* dot, int i, const BlockOperand& operand) {
    if (written.unknown) return stop(dot, i, because(Reason::kUnknownWrites));
    if (waits) return stop(dot, i, because(Reason::kWaitInBranch));
    if (!operand.load || banned.contains(operand.load)) return stop(dot, i, because(Reason::kBlockReadElsewhere));
    if (!analysis::has_tensor_map(*operand.load->operand(0)->op, axis, /*stored=*/false))
      return stop(dot, i, because(Reason::kNoTensorMap, kTensorMapAlignment));
    if (const Op* wait = wait_before(*operand.load, waiting))
      return stop(dot, i, because(Reason::kBehindWait, place_of(wait->range).line));
    return !written.meets(analysis::pointer_origins(operand.load->operand(0))) ||
           stop(dot, i, because(Reason::kWrittenToo));
  };
  auto take = [&](Candidate c) {
    products.insert(c.dot);
    found.push_back(std::move(c));
  };
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind != OpKind::kDot) return;
    const BlockOperand a = block_operand(op->operand(0)), b = block_operand(op->operand(1));
    if (a.load && op->operand(1)->op && !is_of_block(op->operand(1)) &&
        target::lies_either_way(target, op->operand(1)->type.dtype)) {
      // The warps store what they have computed of earlier products, as they hold it.
      const GroupMma* group = fitting_group(*op, module.num_warps, target);
      if (!is_made_of_product(op->operand(1), products))
        stop(op, 1, because(Reason::kNotOfProduct));
      else if (group && module.num_ctas == 1 && has_swizzle(a) && is_block(op, 0, a))
        take({op, group, {a.load}, /*swapped=*/false, Way::kBStored});
      return;
    }
    if (!is_block(op, 1, b)) return;
    const std::optional<Cause> unfit_b = unfit(b, /*is_b=*/true, target);
    if (!a.load && op->operand(0)->op) {
      // What warp groups have computed lies in their registers as their next product takes it.
      const GroupMma* group = fitting_group(*op, module.num_warps, target);
      if (is_of_block(op->operand(0)))
        stop(op, 0, because(Reason::kBlockReadElsewhere));
      else if (!is_made_of_product(op->operand(0), products))
        stop(op, 0, because(Reason::kNotOfProduct));
      else if (unfit_b)
        stop(op, 1, *unfit_b);
      else if (group)
        take({op, group, {b.load}, /*swapped=*/false, Way::kARegisters});
      return;
    }
    if (!is_block(op, 0, a)) return;
    // Operands that can stay in shared memory are better than one that takes the way through registers.
    for (bool through_registers : {false, true})
      for (bool swapped : {false, true})
        if (const GroupMma* group = fitting_group(*op, module.num_warps, target, swapped);
            group && fits_memory(swapped ? turned(b) : a, swapped ? turned(a) : b, through_registers, target)) {
          take({op, group, {a.load, b.load}, swapped});
          return;
        }
    if (unfit_b)
      stop(op, 1, *unfit_b);
    else if (auto unfit_a = unfit(a, /*is_b=*/false, target))
      stop(op, 0, *std::move(unfit_a));
  });
  return found;
}

/// What the products of these candidates and others both read.
std::vector<const Op*> shared_loads(ir::Module& module, const std::vector<Candidate>& found) {
  std::unordered_set<const Op*> taken;
  for (const Candidate& c : found) taken.insert(c.dot);
  std::vector<const Op*> shared;
  ir::walk(module.body(), [&](const Op* op) {
    if (op->kind != OpKind::kDot || taken.contains(op)) return;
    for (int i : {0, 1})
      if (const Op* load = block_operand(op->operand(i)).load) shared.push_back(load);
  });
  return shared;
}

/// Where an operand is loaded: the dimension of the operand along which neighbours lie side by side in memory. Nothing
/// for one that is computed.
std::optional<int> contiguous_dim(const Value* operand, const analysis::AxisAnalysis& axis) {
  bool turned = false;
  while (operand->op && operand->op->kind == OpKind::kTrans) {
    turned = !turned;
    operand = operand->op->operand(0);
  }
  if (!operand->op) return std::nullopt;
  int dim = 1;
  if (operand->op->kind == OpKind::kLoad) {
    const Value* pointer = operand->op->operand(0);
    const int first = axis.order_of(pointer)[0];
    const analysis::AxisInfo& info = axis.of(pointer);
    // Elements that lie apart along both are stored one by one, as the product wants them.
    if (info.run[first] > info.constancy[first]) dim = first;
  } else if (operand->op->kind != OpKind::kDescriptorLoad) {
    return std::nullopt;
  }
  return turned ? 1 - dim : dim;
}

const Op* outermost_loop(const Op* op) {
  const Op* found = nullptr;
  for (const ir::Block* b = op->parent; b && b->parent; b = b->parent->parent)
    if (b->parent->kind == OpKind::kFor || b->parent->kind == OpKind::kWhile) found = b->parent;
  return found;
}

/// The operands that dots keep in shared memory, and when. Those of one place, a loop at any depth or none, that take
/// less than half a block's leave room for a second slot of each and for whatever else is there. Where they are more,
/// a program has its SM alone with any instruction, and may fill it: then what counts is how much is in use at once. A
/// tile that is made ahead of a loop stays until the loop has ended, one that the loop loads comes by a ring of two
/// slots, and the memory of a loop's own operands is free behind it.
class StagedOperands {
 public:
  StagedOperands(ir::Module& module, const Target& target) : module_(module), target_(target) {
    ir::walk(module.body(), [&](const Op* op) {
      places_.emplace(op, static_cast<int>(places_.size()));
      is_beside_slots_ |= is_wgmma(op);
    });
  }

  /// Takes the operands of a dot if there is room. Else `most` gets the bytes that would be in use at once.
  bool take(const Op& dot, int64_t staged, int64_t& most) {
    const Op* loop = outermost_loop(&dot);
    std::vector<Tile> more;
    int64_t bytes = 0;
    for (const Key& key : operands(dot, staged)) {
      if (few_[loop].contains(key)) continue;
      more.push_back(tile(key, dot, loop));
      bytes += more.back().bytes;
    }
    const size_t before = tiles_.size();
    tiles_.insert(tiles_.end(), more.begin(), more.end());
    const int64_t spare = staged == 1 ? std::max(spare_, bytes_of(dot.operand(0))) : spare_;
    most = std::max(peak(/*with_rings=*/true) + spare + kBesideOperands, peak(/*with_rings=*/false) * 3 / 2);
    if (bytes > room_.try_emplace(loop, room_to_stage(target_)).first->second || has_many_) {
      if (most > target_.shared_per_block || is_beside_slots_) {
        tiles_.resize(before);
        return false;
      }
      has_many_ = true;
    }
    spare_ = spare;
    room_.at(loop) -= bytes;
    few_[loop].merge(operands(dot, staged));
    return true;
  }

 private:
  /// With the dimension that has to be contiguous, which is 0 for types that wgmma reads either way: of those a tile
  /// and its transpose are one.
  using Key = std::pair<const Value*, int>;
  struct Tile {
    Key key;
    int64_t bytes;
    int slots;
    int first, last;  // ops
  };

  std::set<Key> operands(const Op& dot, int64_t staged) const {
    std::set<Key> r;
    for (int i = 2 - static_cast<int>(staged); i < 2; ++i) {
      const Value* v = dot.operand(i);
      int k = i == 0 ? 1 : 0;
      for (; v->op && v->op->kind == OpKind::kTrans; v = v->op->operand(0)) k = 1 - k;
      r.emplace(v, target::lies_either_way(target_, v->type.dtype) ? 0 : k);
    }
    return r;
  }

  Tile tile(const Key& key, const Op& dot, const Op* loop) const {
    const Value* v = key.first;
    const ir::Block* made = v->op ? v->op->parent : v->block;
    Tile t{key, bytes_of(v), 1, v->op ? places_.at(v->op) : 0, places_.at(&dot)};
    if (!loop) return t;
    t.last = places_.at(last_of(loop));
    if (!encloses(loop, made)) return t;
    t.first = places_.at(loop);
    const Op* around = made->parent;
    const bool is_piped =
        load_of(v) && around->kind == OpKind::kFor && around->int_or(AttrName::kNumStages, module_.num_stages) > 1;
    t.slots = is_piped ? 2 : 1;
    return t;
  }

  static int64_t bytes_of(const Value* v) { return v->type.shape.numel() * size_of(v->type.dtype); }
  static const Op* last_of(const Op* op) {
    while (!op->regions.empty()) op = op->regions.back()->last;
    return op;
  }

  /// Bytes in use at once. Without rings, which there are where conversions and the like leave room for them, a third
  /// stays free for those.
  int64_t peak(bool with_rings) const {
    int64_t most = 0;
    for (const Tile& at : tiles_) {
      std::map<Key, int64_t> bytes;
      for (const Tile& t : tiles_)
        if (t.first <= at.first && at.first <= t.last)
          bytes[t.key] = std::max(bytes[t.key], t.bytes * (with_rings ? t.slots : 1));
      int64_t sum = 0;
      for (const auto& [key, of_key] : bytes) sum += of_key;
      most = std::max(most, sum);
    }
    return most;
  }

  /// For reductions and vectors that come by rings.
  static constexpr int64_t kBesideOperands = 2048;

  ir::Module& module_;
  const Target& target_;
  std::unordered_map<const Op*, int> places_;  // in program order
  std::vector<Tile> tiles_;
  std::map<const Op*, int64_t> room_;  // of half a block, by loop, at any depth; null: of what is in none
  std::map<const Op*, std::set<Key>> few_;
  int64_t spare_ = 0;             // to convert a first operand for registers
  bool has_many_ = false;         // more than half a block's
  bool is_beside_slots_ = false;  // of products that a producer serves
};

/// Whether a dot of a loop may be computed as the transpose of its transposed operands' product: both operands are
/// loaded, and staged as they are, and the sum is computed element by element up to its stores. Of few rows by many
/// columns it has as many rows as a warp group takes.
bool may_be_transposed(const Op& dot, const analysis::AxisAnalysis& axis, const Target& target) {
  constexpr int64_t kBoth = 2;
  return is_in_loop(dot.parent) && load_of(dot.operand(0)) && load_of(dot.operand(1)) &&
         operands_to_stage(dot, axis, target) == kBoth && ends_in(dot.result(), [](const ir::Use& use) {
           return use.op->kind == OpKind::kStore || use.op->kind == OpKind::kDescriptorStore;
         });
}

/// The dots that are left, as far as shared memory has room for their operands beside rings. One loop's buffers are
/// free for the next one's.
void select_staged(ir::Module& module, const Target& target, Remarks* remarks) {
  const analysis::AxisAnalysis axis(module);
  StagedOperands operands(module, target);
  std::vector<Op*> dots;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kDot && !is_wgmma(op)) dots.push_back(op);
  });
  for (Op* dot : dots) {
    Cause why;
    const GroupMma* group = fitting_group(*dot, module.num_warps, target, /*swapped=*/false, &why);
    const bool swapped = !group && module.num_ctas == 1 && may_be_transposed(*dot, axis, target);
    if (swapped) group = fitting_group(*dot, module.num_warps, target, swapped);
    if (!group) {
      if (remarks) remarks->add(why, dot->range);
      continue;
    }
    if (module.num_ctas > 1) {
      remark(remarks, dot->range, Reason::kClusterNeedsTma, module.num_ctas);
      continue;
    }
    const int64_t staged = operands_to_stage(*dot, axis, target);
    if (staged == 0) {
      const Reason reason = contiguous_dim(dot->operand(1), axis) ? Reason::kNotAlongK : Reason::kComputedBytes;
      remark_operand(remarks, dot->range, dot_operand(*dot, 1), reason, dot->operand(1)->type.element_bits());
      continue;
    }
    if (int64_t bytes = 0; !operands.take(*dot, staged, bytes)) {
      remark(remarks, dot->range, Reason::kOperandsTooLarge, bytes, target.shared_per_block);
      continue;
    }
    if (swapped) dot = transpose_product(module, dot);
    dot->set(AttrName::kMma, std::string(group->name));
    dot->set(AttrName::kStaged, staged);
  }
}

void tell_staged(ir::Module& module, Remarks& remarks) {
  ir::walk(module.body(), [&](const Op* op) {
    if (!is_staged(op)) return;
    const bool both = is_staged(op, 0);
    auto is_brought = [&](int operand) {
      const Op* load = load_of(op->operand(operand));
      return load && is_in_loop_ring(load);
    };
    if (both && is_brought(0) && is_brought(1)) return remarks.add(because(Reason::kWgmmaByTma), op->range);
    remarks.add(because(both ? Reason::kWgmmaStaged : Reason::kWgmmaStagedB), op->range);
  });
}

/// Of the dots that no producer serves.
struct Untaken {
  const Op *dot, *load;
  Obstacle obstacle;
};

std::vector<Untaken> untaken(ir::Module& module, const std::vector<Candidate>& found, const Obstacles& obstacles) {
  std::vector<Untaken> list;
  ir::walk(module.body(), [&](const Op* op) {
    const auto it = obstacles.find(op);
    if (it == obstacles.end() || std::any_of(found.begin(), found.end(), [&](auto& c) { return c.dot == op; })) return;
    // The loads that recognize_blocks has made no block of, it has told about.
    const Op* load = load_of(op->operand(it->second.operand));
    if (load ? load->kind == OpKind::kDescriptorLoad : it->second.cause.reason == Reason::kNotOfProduct)
      list.push_back({op, load, it->second});
  });
  return list;
}

Reason way_of(const Candidate& c) {
  if (c.way == Way::kBStored) return Reason::kWgmmaBesideSlot;
  if (c.way == Way::kARegisters) return Reason::kWgmmaOfRegisters;
  return c.swapped ? Reason::kWgmmaTransposed : Reason::kWgmmaByTma;
}

}  // namespace

int64_t operands_to_stage(const Op& dot, const analysis::AxisAnalysis& axis, const Target& target) {
  constexpr int kAlongOfA = 1, kAlongOfB = 0;  // the dimensions that the product sums over
  const bool either = target::lies_either_way(target, dot.operand(0)->type.dtype);
  const auto a = contiguous_dim(dot.operand(0), axis), b = contiguous_dim(dot.operand(1), axis);
  // Computed words are stored as the product reads them, one by one; bytes would be too many stores.
  const bool stores_words = !b && dot.operand(1)->type.element_bits() == 32;
  if (!either && b != kAlongOfB && !stores_words) return 0;
  return a && (either || *a == kAlongOfA) ? 2 : 1;
}

const GroupMma* fitting_group(const Op& dot, int num_warps, const Target& target, bool swapped, Cause* why) {
  auto no = [&](Reason reason, const auto&... values) -> const GroupMma* {
    if (why) *why = because(reason, values...);
    return nullptr;
  };
  const Type &a = dot.operand(0)->type, &b = dot.operand(1)->type, &c = dot.result()->type;
  const GroupMma* group = target::find_group_mma(target, a.dtype, b.dtype, c.dtype);
  if (!group) return no(Reason::kTypesHaveNoWgmma, name(a.dtype), name(b.dtype), name(c.dtype));
  if (a.shape.rank != 2) return no(Reason::kRankHasNoWgmma, a.shape.rank);
  if (num_warps % group->warps != 0) return no(Reason::kFewWarps, num_warps, group->warps);
  const auto precision = dot.find_word<ir::Precision>().value_or(ir::Precision::kTf32);
  if (a.dtype == DType::kF32 && precision != ir::Precision::kTf32)
    return no(Reason::kPrecision, ir::spelling(precision));
  // Groups take further rows first, then columns (layout::wgmma_accumulator).
  const int m = c.shape[swapped], n = c.shape[!swapped];
  const int groups = num_warps / group->warps, across = std::max(1, groups * group->rows / m);
  const int columns = n / across;
  const int bytes = a.shape[1] * size_of(a.dtype);
  if (m < group->rows) return no(Reason::kFewRows, m, group->rows);
  if (columns < group->fewest_columns) return no(Reason::kFewColumns, columns, group->fewest_columns);
  if (columns > group->most_columns) return no(Reason::kManyColumns, columns, group->most_columns);
  if (bytes < group->fewest_bytes) return no(Reason::kShortK, bytes, group->fewest_bytes);
  return group;
}

bool lies_for_wgmma(const BlockOperand& operand, bool is_b, const Target& target) {
  return operand.transposed == is_b || target::lies_either_way(target, operand.load->result()->type.dtype);
}

bool only_feeds_dots(const Value* v) {
  return std::all_of(v->uses.begin(), v->uses.end(), [](const ir::Use& use) {
    if (use.op->kind == OpKind::kDot || use.op->kind == OpKind::kWgmma) return use.index < 2;
    return (use.op->kind == OpKind::kTrans || use.op->kind == OpKind::kConvertLayout) &&
           only_feeds_dots(use.op->result());
  });
}

const Op* load_of(const Value* operand) {
  const Op* op = operand->op;
  while (op && (op->kind == OpKind::kTrans || op->kind == OpKind::kConvertLayout)) op = op->operand(0)->op;
  return op && (op->kind == OpKind::kLoad || op->kind == OpKind::kDescriptorLoad) ? op : nullptr;
}

BlockOperand block_operand(const Value* operand) {
  BlockOperand found;
  while (operand->op) {
    if (operand->op->kind == OpKind::kDescriptorLoad) {
      if (only_feeds_dots(operand)) found.load = operand->op;
      return found;
    }
    // The block's register layout does not matter: it will come through shared memory.
    if (operand->op->kind == OpKind::kTrans)
      found.transposed = !found.transposed;
    else if (operand->op->kind != OpKind::kConvertLayout)
      return {};
    operand = operand->op->operand(0);
  }
  return {};
}

bool is_made_of_product(const Value* v, const std::unordered_set<const Op*>& products) {
  std::unordered_set<const Op*> seen;
  std::vector<const Op*> work = {v->op};
  while (!work.empty()) {
    const Op* op = work.back();
    work.pop_back();
    if (!op || op->parent != v->op->parent || !seen.insert(op).second) continue;
    if (products.contains(op)) return true;
    if (!ir::is_pure(op)) continue;
    for (const Value* operand : op->operands) work.push_back(operand->op);
  }
  return false;
}

bool takes_registers(const Op* op) {
  if (!is_wgmma(op)) return false;
  return is_staged(op) ? !is_staged(op, 0) : !block_operand(op->operand(0)).load;
}

Op* slot_load(const Op* product, int index) {
  const bool waits = product->kind == OpKind::kWgmma || (is_wgmma(product) && !is_staged(product));
  return waits ? block_operand(product->operand(index)).load : nullptr;
}

bool is_wgmma(const Op* op) {
  return op->kind == OpKind::kDot && target::group_mma(op->text_or(AttrName::kMma, "")) != nullptr;
}

std::optional<size_t> carried_result(const Op& dot) {
  const ir::Block* block = dot.parent;
  const Value* sum = dot.operand(2);
  const std::vector<ir::Use>& uses = dot.result()->uses;
  const bool is_carried = sum->block == block && sum->index > 0 && sum->uses.size() == 1 && uses.size() == 1 &&
                          uses[0].op == block->terminator() && uses[0].index + 1 == sum->index;
  if (!is_carried) return std::nullopt;
  return uses[0].index;
}

std::optional<size_t> carried_sum(const Op& dot, std::optional<Cause>* why) {
  auto no = [&](Reason reason) -> std::optional<size_t> {
    if (why) *why = because(reason);
    return std::nullopt;
  };
  const ir::Block* block = dot.parent;
  const Op* loop = block->parent;
  if (!loop || loop->kind != OpKind::kFor) return std::nullopt;
  if (ir::any_nested(
          loop, [&](const Op* op) { return (op->kind == OpKind::kDot || op->kind == OpKind::kWgmma) && op != &dot; }))
    return no(Reason::kWaitsForOthers);
  const std::optional<size_t> sum = carried_result(dot);
  return sum ? sum : no(Reason::kSumIsRead);
}

bool is_staged(const Op* op) { return is_wgmma(op) && op->has(AttrName::kStaged); }

bool is_staged(const Op* dot, int index) {
  return 2 - index <= dot->int_or(AttrName::kStaged, dot->flag(AttrName::kBesideSlot) ? 1 : 0);
}

Status select_wgmma(ir::Module& module, const target::Target& target, Remarks* remarks) {
  if (!has_op(module, OpKind::kDot)) return {};
  if (!target::has_group_mma(target)) {
    ir::walk(module.body(), [&](const Op* op) {
      if (op->kind == OpKind::kDot) remark(remarks, op->range, Reason::kTargetHasNoWgmma, target.name);
    });
    return {};
  }
  std::vector<Candidate> found;
  Obstacles obstacles;
  for (std::unordered_set<const Op*> banned;;) {
    found = candidates(module, target, banned, obstacles);
    std::erase_if(found, [&](const Candidate& c) {
      const analysis::ProducerSlice slice = analysis::producer_slice(c.loads);
      if (slice.ok()) return false;
      const bool is_a = c.loads.size() > 1 && !analysis::producer_slice({&c.loads[0], 1}).ok();
      obstacles.try_emplace(c.dot, Obstacle{because(Reason::kCannotRunAhead, slice.refusal), is_a ? 0 : 1});
      return true;
    });
    // A slot of TMA is read by products alone, and by all of them.
    const size_t before = banned.size();
    for (const Op* load : shared_loads(module, found)) banned.insert(load);
    if (banned.size() == before) break;
  }
  const std::vector<Untaken> others = untaken(module, found, obstacles);
  for (const Candidate& c : found) {
    remark(remarks, c.dot->range, way_of(c));
    Op* dot = c.swapped ? transpose_product(module, c.dot) : c.dot;
    dot->set(AttrName::kMma, std::string(c.group->name));
    if (c.way == Way::kBStored) dot->set(AttrName::kBesideSlot, true);
  }
  select_staged(module, target, remarks);
  select_loop_loads(module, target, remarks);
  if (!remarks) return {};
  tell_staged(module, *remarks);
  for (const auto& [dot, load, obstacle] : others)
    if (!load || !is_in_loop_ring(load)) remarks->add(obstacle.cause, dot->range, dot_operand(*dot, obstacle.operand));
  return {};
}

}  // namespace kiln::passes
