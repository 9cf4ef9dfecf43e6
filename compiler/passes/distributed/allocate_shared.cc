#include "compiler/passes/distributed/allocate_shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/shared_memory.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"
#include "support/diag.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Block;
using ir::Op;
using ir::OpKind;

namespace {

constexpr int64_t kAlignment = 128;  // a row of banks
/// Up to here every op has bytes of its own: that costs no occupancy worth naming, and fewer barriers are needed.
constexpr int64_t kOwnScratchLimit = 4096;
/// Up to here, of each warp, no two allocations lie at one place, for the same reasons.
constexpr int64_t kOwnBytesOfWarp = 4096;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Interval {
  int64_t begin, end;
  bool operator==(const Interval&) const = default;
  bool overlaps(const Interval& o) const { return begin < o.end && o.begin < end; }
};

/// The stretch of a block in which an allocation is used. What is in it does not outlast the stretch: rings and
/// buffers are written anew in each round of a loop around it.
struct Lifetime {
  Block* home = nullptr;  // null: it may be used anywhere
  Op *first = nullptr, *last = nullptr;
};

bool is_within(const Op* op, const Lifetime& life) {
  while (op && op->parent != life.home) op = op->parent->parent;
  if (!op) return false;
  for (const Op* at = life.first; at; at = at->next) {
    if (at == op) return true;
    if (at == life.last) break;
  }
  return false;
}

/// Products and copies are in flight until they have been waited for.
void extend_to_waits(Lifetime& life, const std::vector<Op*>& users) {
  std::unordered_set<const Op*> waits;
  std::vector<const ir::Value*> unfinished;
  bool copies = false;
  for (const Op* user : users) {
    if (user->kind == OpKind::kWgmma) unfinished.push_back(user->result());
    copies = copies || user->kind == OpKind::kAsyncCopy;
  }
  for (size_t i = 0; i < unfinished.size(); ++i)
    for (const ir::Use& use : unfinished[i]->uses) {
      if (use.op->kind == OpKind::kWgmmaWait)
        waits.insert(use.op);
      else if (use.op->kind == OpKind::kWgmma)
        unfinished.push_back(use.op->result());
      else if (ir::is_terminator(use.op) && use.op->parent->parent)
        unfinished.push_back(use.op->parent->parent->results[use.index]);
    }
  for (Op* op = life.last->next; op; op = op->next) {
    const bool ends_copies = copies && op->kind == OpKind::kAsyncWait && op->int_attr(AttrName::kCount) == 0;
    if (ends_copies || waits.contains(op)) life.last = op;
    if (ends_copies) copies = false;
  }
}

/// The region of a module's own warps beside those of other roles; null without any.
Block* own_region(const ir::Module& module) {
  for (Op* op : *module.body())
    if (op->kind == OpKind::kWarpSpecialize) return op->region(0);
  return nullptr;
}

bool is_in_other_role(const Op* op, const Block& own) {
  return std::ranges::any_of(own.parent->regions,
                             [&](const Block* role) { return role != &own && is_inside(op->parent, role); });
}

/// Of memory that the warps of one program use together, a ring that its producer fills among it: not of one that
/// another block fills. A producer fills a ring from the first, and only with what is read: after the last read nobody
/// writes it. A copy out of a buffer is waited for at the end.
Lifetime lifetime_of(const ir::Module& module, const Op* alloc) {
  std::vector<Op*> users;
  bool is_filled = false, is_sent = false;
  Block* own = module.num_ctas == 1 ? own_region(module) : nullptr;
  std::vector<const ir::Value*> handles = {alloc->result()};
  while (!handles.empty()) {
    const ir::Value* handle = handles.back();
    handles.pop_back();
    for (const ir::Use& use : handle->uses) {
      switch (use.op->kind) {
        case OpKind::kSharedView:
        case OpKind::kSharedTrans:
          handles.push_back(use.op->result());
          break;
        case OpKind::kSharedLoad:
        case OpKind::kSharedStore:
        case OpKind::kAsyncCopy:
        case OpKind::kWgmma:
          break;
        case OpKind::kTmaLoad:
          is_filled = true;
          break;
        case OpKind::kTmaStore:
          is_sent = true;
          break;
        default:
          return {};
      }
      if (!own || !is_in_other_role(use.op, *own))
        users.push_back(use.op);
      else if (use.op->kind == OpKind::kTmaStore)  // of which the own warps only know by mbarriers
        return {};
    }
  }
  // Without a producer all warps fill it, in a loop that waits for all that it asks for.
  Block* whole = own ? own : module.num_ctas == 1 ? module.body() : nullptr;
  const bool is_copied = is_filled || is_sent;
  if (users.empty() || (is_copied && !whole)) return {};
  Block* home = is_copied ? whole : users[0]->parent;
  for (const Op* user : users)
    while (!is_inside(user->parent, home)) home = home->parent->parent;
  if (is_copied && home != whole) return {};
  Lifetime life{home};
  for (Op* op : *home) {
    const bool uses = std::any_of(users.begin(), users.end(),
                                  [&](const Op* user) { return op == user || encloses(op, user->parent); });
    if (!uses) continue;
    if (!life.first) life.first = op;
    life.last = op;
  }
  extend_to_waits(life, users);
  if (is_filled) life.first = home->first;
  if (is_sent) life.last = home->terminator();
  return life;
}

/// Whether both may be in use at once.
bool overlap(const Lifetime& a, const Lifetime& b) {
  if (!a.home || !b.home) return true;
  return is_within(a.first, b) || is_within(a.last, b) || is_within(b.first, a) || is_within(b.last, a);
}

class SharedAllocator {
 public:
  SharedAllocator(ir::Module& module, const target::Target& target, Remarks* remarks)
      : module_(module), target_(target), remarks_(remarks) {}

  Status run() {
    drop_repeated_barriers(module_.body());
    collect(module_.body());
    KILN_CHECK_OK(place());
    Pending pending;
    flow(module_.body(), pending);
    return {};
  }

 private:
  struct Scratch {
    Op* op;
    int64_t bytes;
  };
  /// What was read since the last barrier that all threads passed; writing over it needs a barrier first. Each once, or
  /// it would double at each branch of a long kernel.
  using Pending = std::vector<Interval>;

  static void join(Pending& all, const Pending& more) {
    for (const Interval& i : more)
      if (std::ranges::find(all, i) == all.end()) all.push_back(i);
  }

  static bool converts_by_shared(const Op* op) {
    return op && op->kind == OpKind::kConvertLayout && analysis::scratch_bytes(*op) > 0;
  }
  /// Erases barriers behind ops that have one of their own, or in front of them: all warps meet there, and nothing else
  /// uses shared memory in between.
  void drop_repeated_barriers(Block* block) {
    for (Op *op = block->first, *next = nullptr; op; op = next) {
      next = op->next;
      for (Block* b : op->regions) drop_repeated_barriers(b);
      if (op->kind != OpKind::kBarrier || !joins_all(op)) continue;
      const auto passes = [](const Op* other) {
        return other && ir::is_pure(other) && other->regions.empty() && analysis::scratch_bytes(*other) == 0;
      };
      const Op *before = op->prev, *after = op->next;
      while (passes(before)) before = before->prev;
      while (passes(after)) after = after->next;
      if (converts_by_shared(before) || converts_by_shared(after)) op->erase();
    }
  }

  void collect(Block* block) {
    for (Op* op : *block) {
      op->remove(AttrName::kSharedOffset);
      op->remove(AttrName::kSyncBefore);
      if (op->kind == OpKind::kSharedAlloc) fixed_.push_back(op);
      if (int64_t bytes = analysis::scratch_bytes(*op)) {
        scratch_.push_back({op, bytes});
        bytes_of_[op] = bytes;
        largest_ = std::max(largest_, bytes);
        if (op->kind == OpKind::kConvertLayout && is_in_loop(block))
          remark(remarks_, op->range, Reason::kConversionInLoop, bytes);
      }
      for (Block* b : op->regions) collect(b);
    }
  }

  Diagnostic too_much(const Op* op, std::string_view what, int64_t bytes, std::string help) const {
    Diagnostic e = error_at(op->range, ErrorKind::kMemory, "{} {} bytes of shared memory, but a block on {} has {}",
                            what, bytes, target_.name, target_.shared_per_block);
    e.shortage = {Shortage::Of::kSharedMemory, bytes, target_.shared_per_block};
    return with_note(std::move(e), std::move(help));
  }

  /// The most aligned in front; those that are never in use at once may lie at the same place.
  Status place_fixed() {
    const auto first = [](const Op* a, const Op* b) {
      return analysis::shared_alignment(a->result()->type) > analysis::shared_alignment(b->result()->type);
    };
    std::stable_sort(fixed_.begin(), fixed_.end(), first);
    int64_t sum = 0;
    for (const Op* op : fixed_) sum += aligned(analysis::shared_bytes(op->result()->type));
    apart_ = !own_region(module_) && sum + std::max(largest_, kOwnScratchLimit) <= kOwnBytesOfWarp * module_.num_warps;
    place_in_order();
    // Small ones that stay may lie in the way of large ones, which take turns.
    if (const int64_t end = fixed_end_; end > target_.shared_per_block) {
      const std::vector<Op*> before = fixed_;
      std::stable_sort(fixed_.begin(), fixed_.end(), [&](const Op* a, const Op* b) {
        if (first(a, b) || first(b, a)) return first(a, b);
        return analysis::shared_bytes(a->result()->type) > analysis::shared_bytes(b->result()->type);
      });
      place_in_order();
      if (fixed_end_ >= end) {
        fixed_ = before;
        place_in_order();
      }
    }
    for (size_t i = 0; i < fixed_.size(); ++i) {
      if (interval_of(i).end > target_.shared_per_block)
        return too_much(fixed_[i], "this op and earlier allocations need", interval_of(i).end,
                        "help: use fewer num_stages or smaller blocks");
      for (size_t other = 0; other < i; ++other) {
        if (!interval_of(other).overlaps(interval_of(i))) continue;
        if (comes_before(lives_[other].last, lives_[i])) entered_.insert(lives_[i].first);
        if (comes_before(lives_[i].last, lives_[other])) entered_.insert(lives_[other].first);
      }
    }
    module_.shared_bytes = fixed_end_;
    fixed_end_ = aligned(fixed_end_);
    return {};
  }

  void place_in_order() {
    lives_.clear();
    fixed_end_ = 0;
    for (const Op* op : fixed_) lives_.push_back(lifetime_of(module_, op));
    for (size_t i = 0; i < fixed_.size(); ++i) {
      fixed_[i]->set(AttrName::kSharedOffset, free_place(i));
      fixed_end_ = std::max(fixed_end_, interval_of(i).end);
    }
  }

  Interval interval_of(size_t fixed) const {
    const int64_t begin = fixed_[fixed]->int_attr(AttrName::kSharedOffset);
    return {begin, begin + analysis::shared_bytes(fixed_[fixed]->result()->type)};
  }

  /// The lowest offset for an allocation beside those before it that may be in use at the same time.
  int64_t free_place(size_t number) const {
    const ir::Type& type = fixed_[number]->result()->type;
    const int64_t alignment = analysis::shared_alignment(type), bytes = analysis::shared_bytes(type);
    int64_t begin = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t other = 0; other < number; ++other) {
        const Interval taken = interval_of(other);
        if (!taken.overlaps({begin, begin + bytes}) || (!apart_ && !overlap(lives_[other], lives_[number]))) continue;
        begin = (taken.end + alignment - 1) / alignment * alignment;
        moved = true;
      }
    }
    return begin;
  }

  /// Where scratch may begin: in the first gap between what is live at its op, such as that of a ring which has been
  /// used in front of its barriers, or behind all of it.
  int64_t place_of(const Scratch& s) const {
    int64_t begin = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < fixed_.size(); ++i) {
        const Interval taken = interval_of(i);
        const bool is_live = !lives_[i].home || is_within(s.op, lives_[i]);
        if (!is_live || !taken.overlaps({begin, begin + s.bytes})) continue;
        begin = aligned(taken.end);
        moved = true;
      }
    }
    return begin;
  }

  /// Scratch in memory of an allocation that is not in use there. A barrier ends the use before, and one in front of
  /// the next use lets all warps end theirs of the scratch.
  void lay_over(const Scratch& s, int64_t at) {
    s.op->set(AttrName::kSharedOffset, at);
    over_.insert(s.op);
    for (size_t i = 0; i < fixed_.size(); ++i)
      if (interval_of(i).overlaps({at, at + s.bytes}) && comes_before(s.op, lives_[i]))
        entered_.insert(lives_[i].first);
  }
  /// Whether the op may run ahead of the stretch, perhaps in the round before.
  static bool comes_before(const Op* op, const Lifetime& life) {
    if (is_in_loop(life.home)) return true;
    while (op && op->parent != life.home) op = op->parent->parent;
    for (; op; op = op->next)
      if (op == life.first) return true;
    return false;
  }

  bool joins_all(const Op* op) const {
    return op->kind == OpKind::kClusterBarrier ||
           (op->kind == OpKind::kBarrier && ir::joined_warps(*op, module_.num_warps) == module_.num_warps);
  }

  /// Whether in front of `first`, which begins the use of an allocation, all warps have met in its block since anything
  /// else used memory of the allocation.
  bool is_joined_since(const Op* first) const {
    std::vector<Interval> own;
    for (size_t i = 0; i < fixed_.size(); ++i)
      if (lives_[i].first == first) own.push_back(interval_of(i));
    auto is_own = [&](const Interval& other) {
      return std::any_of(own.begin(), own.end(), [&](const Interval& i) { return i.overlaps(other); });
    };
    for (const Op* op = first->prev; op; op = op->prev) {
      if (joins_all(op)) return true;
      if (!op->regions.empty()) return false;
      if (bytes_of_.contains(op)) {
        const int64_t begin = op->int_attr(AttrName::kSharedOffset);
        if (is_own({begin, begin + bytes_of_.at(op)})) return false;
      }
      for (size_t i = 0; i < fixed_.size(); ++i)
        if (lives_[i].first != first && is_own(interval_of(i)) && (!lives_[i].home || is_within(op, lives_[i])))
          return false;
    }
    return false;
  }

  Status place() {
    KILN_CHECK_OK(place_fixed());
    if (!scratch_.empty()) KILN_CHECK_OK(place_scratch());
    std::vector<Op*> waiting;
    for (Op* op : entered_)
      if (!is_joined_since(op)) waiting.push_back(op);
    ir::Builder b(module_);
    for (Op* op : waiting) {
      b.set_before(op);
      b.set_range(op->range);
      join_lanes(b, true);
    }
    return {};
  }

  Status place_scratch() {
    int64_t sum = 0;
    for (const Scratch& s : scratch_) sum += aligned(s.bytes);
    bool own = sum <= kOwnScratchLimit;
    const int64_t shared = std::max(largest_, std::min(kOwnScratchLimit, target_.shared_per_block - fixed_end_));
    int64_t next = fixed_end_, size = fixed_end_;
    for (size_t i = 0; i < scratch_.size(); ++i) {
      const Scratch& s = scratch_[i];
      const int64_t at = own || apart_ ? fixed_end_ : place_of(s);
      if (at < fixed_end_) {
        lay_over(s, at);
        size = std::max(size, at + s.bytes);
      }
      if (at + s.bytes > target_.shared_per_block)
        return too_much(
            s.op, "this needs", at + s.bytes,
            fmt::format("help: make the tile smaller, or use fewer elements per program; the scratch is that of a {}",
                        ir::info(s.op->kind).mnemonic));
      if (at < fixed_end_) continue;
      // Neighbours that fit beside each other alternate, which saves a barrier between them.
      if (!own && next + s.bytes > std::max(fixed_end_ + shared, size)) next = fixed_end_;
      s.op->set(AttrName::kSharedOffset, next);
      next += aligned(s.bytes);
      size = std::max(size, s.op->int_attr(AttrName::kSharedOffset) + s.bytes);
    }
    module_.shared_bytes = size;
    return {};
  }

  void flow(Block* block, Pending& pending) {
    for (Op* op : *block) {
      // One that joins a few warps says nothing of the others.
      if (joins_all(op)) pending.clear();
      if (bytes_of_.contains(op)) use(op, pending);
      if (op->kind == OpKind::kFor || op->kind == OpKind::kWhile) {
        // An iteration meets what the one before left; the second time round nothing new can come.
        for (int pass = 0; pass < 2; ++pass) {
          Pending entry = pending;
          for (Block* b : op->regions) flow(b, pending);
          join(pending, entry);
        }
      } else if (op->kind == OpKind::kIf) {
        Pending entry = pending, all;
        for (Block* b : op->regions) {
          pending = entry;
          flow(b, pending);
          join(all, pending);
        }
        pending = std::move(all);
      } else if (op->kind == OpKind::kWarpSpecialize) {
        flow(op->region(0), pending);  // scalars of the other roles need no scratch
      }
    }
  }

  void use(Op* op, Pending& pending) {
    int64_t begin = op->int_attr(AttrName::kSharedOffset);
    Interval own{begin, begin + bytes_of_.at(op)};
    if (over_.contains(op) ||
        std::any_of(pending.begin(), pending.end(), [&](const Interval& i) { return i.overlaps(own); }))
      op->set(AttrName::kSyncBefore, true);
    // The op's barrier between its writes and its reads comes after everything read before.
    pending = {own};
  }

  ir::Module& module_;
  const target::Target& target_;
  Remarks* remarks_;
  std::vector<Op*> fixed_;  // shared_alloc
  std::vector<Scratch> scratch_;
  std::unordered_map<const Op*, int64_t> bytes_of_;
  std::vector<Lifetime> lives_;         // of fixed_
  std::unordered_set<const Op*> over_;  // scratch in memory of those
  std::set<Op*> entered_;               // the first ops of these
  int64_t largest_ = 0;                 // scratch of one op
  bool apart_ = false;                  // there is room for all at once
  int64_t fixed_end_ = 0;               // where scratch begins
};

/// Whether an allocation may be in use while `op` or what is in it runs.
bool is_in_use(const ir::Module& module, const Op& alloc, const Op* op) {
  const Lifetime life = lifetime_of(module, &alloc);
  return !life.home || is_within(op, life) || encloses(op, life.home);
}

}  // namespace

Status allocate_shared(ir::Module& module, const target::Target& target, Remarks* remarks) {
  return SharedAllocator(module, target, remarks).run();
}

int64_t shared_room(ir::Module& module, const target::Target& target,
                    const std::function<bool(const ir::Op*)>& has_scratch, const ir::Op* beside) {
  int64_t fixed = 0, largest = 0, sum = 0;
  ir::walk(module.body(), [&](const Op* op) {
    if (op->kind == OpKind::kSharedAlloc && (!beside || is_in_use(module, *op, beside)))
      fixed += analysis::shared_bytes(op->result()->type);
    if (has_scratch && !has_scratch(op)) return;
    const int64_t bytes = aligned(analysis::scratch_bytes(*op));
    largest = std::max(largest, bytes);
    sum += bytes;
  });
  return target.shared_per_block - aligned(fixed) - (sum <= kOwnScratchLimit ? sum : largest);
}

}  // namespace kiln::passes
