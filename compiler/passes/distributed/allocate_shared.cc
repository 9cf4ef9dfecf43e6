#include "compiler/passes/distributed/allocate_shared.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/shared_memory.h"
#include "compiler/analysis/verify_layouts.h"
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

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Interval {
  int64_t begin, end;
  bool overlaps(const Interval& o) const { return begin < o.end && o.begin < end; }
};

class SharedAllocator {
 public:
  SharedAllocator(ir::Module& module, const target::Target& target) : module_(module), target_(target) {}

  Status run() {
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
  /// What was read since the last barrier that all threads passed; writing over it needs a barrier first.
  using Pending = std::vector<Interval>;

  void collect(Block* block) {
    for (Op* op : *block) {
      op->remove(AttrName::kSharedOffset);
      op->remove(AttrName::kSyncBefore);
      if (op->kind == OpKind::kSharedAlloc) fixed_.push_back(op);
      if (int64_t bytes = analysis::scratch_bytes(*op)) {
        scratch_.push_back({op, bytes});
        bytes_of_[op] = bytes;
        largest_ = std::max(largest_, bytes);
      }
      for (Block* b : op->regions) collect(b);
    }
  }

  /// What lives as long as the kernel stands first, the most aligned in front.
  Status place_fixed() {
    std::stable_sort(fixed_.begin(), fixed_.end(), [](const Op* a, const Op* b) {
      return analysis::shared_alignment(a->result()->type) > analysis::shared_alignment(b->result()->type);
    });
    for (Op* op : fixed_) {
      const ir::Type& type = op->result()->type;
      fixed_end_ = (fixed_end_ + analysis::shared_alignment(type) - 1) / analysis::shared_alignment(type) *
                   analysis::shared_alignment(type);
      op->set(AttrName::kSharedOffset, fixed_end_);
      fixed_end_ += analysis::shared_bytes(type);
      if (fixed_end_ > target_.shared_per_block)
        return with_note(
            error_at(op->range, ErrorKind::kMemory,
                     "this op and earlier allocations need {} bytes of shared memory, but a block on {} has {}",
                     fixed_end_, target_.name, target_.shared_per_block),
            "help: use fewer num_stages or smaller blocks");
    }
    module_.shared_bytes = fixed_end_;
    fixed_end_ = aligned(fixed_end_);
    return {};
  }

  Status place() {
    KILN_CHECK_OK(place_fixed());
    if (scratch_.empty()) return {};
    int64_t sum = 0;
    for (const Scratch& s : scratch_) sum += aligned(s.bytes);
    bool own = sum <= kOwnScratchLimit;
    int64_t next = fixed_end_, size = fixed_end_;
    for (size_t i = 0; i < scratch_.size(); ++i) {
      const Scratch& s = scratch_[i];
      if (fixed_end_ + s.bytes > target_.shared_per_block)
        return with_note(
            error_at(s.op->range, ErrorKind::kMemory, "this needs {} bytes of shared memory, but a block on {} has {}",
                     fixed_end_ + s.bytes, target_.name, target_.shared_per_block),
            fmt::format("help: make the tile smaller, or use fewer elements per program; the scratch is that of a {}",
                        ir::info(s.op->kind).mnemonic));
      // Neighbours that fit beside each other alternate, which saves a barrier between them.
      if (!own && next + s.bytes > std::max(fixed_end_ + largest_, size)) next = fixed_end_;
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
      const bool joins =
          op->kind == OpKind::kClusterBarrier ||
          (op->kind == OpKind::kBarrier && ir::joined_warps(*op, module_.num_warps) == module_.num_warps);
      if (joins) pending.clear();
      if (bytes_of_.contains(op)) use(op, pending);
      if (op->kind == OpKind::kFor || op->kind == OpKind::kWhile) {
        // An iteration meets what the one before left; the second time round nothing new can come.
        for (int pass = 0; pass < 2; ++pass) {
          Pending entry = pending;
          for (Block* b : op->regions) flow(b, pending);
          pending.insert(pending.end(), entry.begin(), entry.end());
        }
      } else if (op->kind == OpKind::kIf) {
        Pending entry = pending, all;
        for (Block* b : op->regions) {
          pending = entry;
          flow(b, pending);
          all.insert(all.end(), pending.begin(), pending.end());
        }
        pending = std::move(all);
      } else if (op->kind == OpKind::kWarpSpecialize) {
        flow(op->region(0), pending);  // scalars of the second region need no scratch
      }
    }
  }

  void use(Op* op, Pending& pending) {
    int64_t begin = op->int_attr(AttrName::kSharedOffset);
    Interval own{begin, begin + bytes_of_.at(op)};
    if (std::any_of(pending.begin(), pending.end(), [&](const Interval& i) { return i.overlaps(own); }))
      op->set(AttrName::kSyncBefore, true);
    // The op's barrier between its writes and its reads comes after everything read before.
    pending = {own};
  }

  ir::Module& module_;
  const target::Target& target_;
  std::vector<Op*> fixed_;  // shared_alloc
  std::vector<Scratch> scratch_;
  std::unordered_map<const Op*, int64_t> bytes_of_;
  int64_t largest_ = 0;    // scratch of one op
  int64_t fixed_end_ = 0;  // where scratch begins
};

}  // namespace

Status allocate_shared(ir::Module& module, const target::Target& target) {
  return SharedAllocator(module, target).run();
}

int64_t shared_room(ir::Module& module, const target::Target& target) {
  int64_t fixed = 0, largest = 0, sum = 0;
  ir::walk(module.body(), [&](const Op* op) {
    if (op->kind == OpKind::kSharedAlloc) fixed += analysis::shared_bytes(op->result()->type);
    const int64_t bytes = aligned(analysis::scratch_bytes(*op));
    largest = std::max(largest, bytes);
    sum += bytes;
  });
  return target.shared_per_block - aligned(fixed) - (sum <= kOwnScratchLimit ? sum : largest);
}

}  // namespace kiln::passes
