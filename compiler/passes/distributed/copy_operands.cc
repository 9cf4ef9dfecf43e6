#include "compiler/passes/distributed/copy_operands.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/dot_layouts.h"
#include "compiler/analysis/pointer_origins.h"
#include "compiler/analysis/shared_memory.h"
#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/distributed/allocate_shared.h"
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

constexpr int kCopyBytes = 16;        // bytes that cp.async copies past the first-level cache
constexpr int kRegistersBeside = 40;  // of a thread, beside sums and fragments: addresses, masks
constexpr int kAllRegisters = 255;
constexpr int kBitsOfWord = 32;

/// A load that becomes a copy.
struct Copied {
  Op* load;
  Type buffer;
  std::vector<Op*> conversions;          // which read it
  Op *first = nullptr, *last = nullptr;  // dots of those
};

bool copies_ahead(const Op* op) { return op->kind == OpKind::kAsyncCopy || op->kind == OpKind::kTmaLoad; }

/// Whether a loop around the block waits for copies that it has started iterations ahead.
bool is_beside_ring(const Block* block) {
  for (const Block* b = block; b && b->parent; b = b->parent->parent)
    if ((b->parent->kind == OpKind::kFor || b->parent->kind == OpKind::kWhile) &&
        ir::any_nested(b->parent, copies_ahead))
      return true;
  return false;
}

int words_of(const Type& type) {
  return (type.layout->num_registers() * type.element_bits() + kBitsOfWord - 1) / kBitsOfWord;
}

class OperandCopier {
 public:
  OperandCopier(ir::Module& module, const target::Target& target, Remarks* remarks)
      : module_(module),
        target_(target),
        remarks_(remarks),
        axis_(module),
        written_(analysis::written_origins(module)),
        bytes_(bytes_now()),
        b_(module) {
    int products = 0;
    ir::walk(module.body(), [&](const Op* op) { products += op->kind == OpKind::kDot; });
    is_one_product_ = products == 1;
  }

  void run() {
    if (written_.unknown) return;
    std::vector<Block*> blocks;
    std::map<const Block*, std::vector<Copied>> copied;
    ir::walk(module_.body(), [&](Op* op) {
      auto c = fits(op);
      if (!c || !has_room(*c)) return;
      auto [it, is_new] = copied.try_emplace(op->parent);
      if (is_new) blocks.push_back(op->parent);
      it->second.push_back(std::move(*c));
    });
    for (const Block* block : blocks) bring(copied.at(block));
  }

 private:
  std::optional<Copied> fits(Op* load) {
    if (load->kind != OpKind::kLoad || load->flag(AttrName::kVolatile) || is_filled(load)) return std::nullopt;
    const Type& type = load->result()->type;
    if (!type.is_tile() || type.pointer || type.shape.rank < 2 || load->result()->uses.empty()) return std::nullopt;
    if (axis_.vector_width(load) * size_of(type.dtype) < kCopyBytes || is_beside_ring(load->parent) ||
        (is_one_product_ && load->parent == module_.body()))
      return std::nullopt;
    if (written_.meets(analysis::pointer_origins(load->operand(0)))) return std::nullopt;
    const auto all = axis_.order_of(load->operand(0));
    const std::span<const int> order(all.data(), type.shape.rank);
    if (layout::widest_swizzle(type.shape[order[0]], type.element_bits()) == 0) return std::nullopt;
    Copied c{load, swizzled_type(module_, type, order), {}};
    for (const ir::Use& use : load->result()->uses)
      if (!add_reader(c, use.op, *c.buffer.layout)) return std::nullopt;
    return c;
  }

  /// `shared`: where the reader finds its operand.
  bool add_reader(Copied& c, Op* reader, const layout::LinearLayout& shared) const {
    if (reader->kind == OpKind::kTrans) {
      const auto& order = std::get<std::vector<int64_t>>(*reader->find(AttrName::kOrder));
      const layout::LinearLayout turned = layout::transpose(shared, order);
      return std::ranges::all_of(reader->result()->uses, [&](const ir::Use& use) {
        return use.op->kind == OpKind::kConvertLayout && add_reader(c, use.op, turned);
      });
    }
    if (reader->kind != OpKind::kConvertLayout || analysis::scratch_bytes(*reader) == 0) return false;
    const Type& type = reader->result()->type;
    if (!layout::plan_matrix_access(*type.layout, shared, size_of(type.dtype))) return false;
    for (const ir::Use& use : reader->result()->uses) {
      if (use.op->kind != OpKind::kDot || use.index > 1 || !analysis::uses_mma(*use.op) ||
          use.op->parent != c.load->parent)
        return false;
      if (!c.first || use.op->is_before(c.first)) c.first = use.op;
      if (!c.last || c.last->is_before(use.op)) c.last = use.op;
    }
    c.conversions.push_back(reader);
    return true;
  }

  /// Of shared memory: scratch may lie over rings.
  int64_t bytes_now() const {
    const int64_t fixed = target_.shared_per_block - shared_room(module_, target_, [](const Op*) { return false; });
    const int64_t all = target_.shared_per_block - shared_room(module_, target_);
    return std::max(fixed, all - fixed);
  }

  /// Registers of a thread that the products of a block ask for, roughly.
  static int registers_for(const Block& block) {
    int sums = 0, fragments = 0;
    for (const Op* op : block) {
      if (op->kind != OpKind::kDot) continue;
      sums += words_of(op->result()->type);
      int own = 0;
      for (const int i : {0, 1})
        if (op->operand(i)->type.layout) own += words_of(op->operand(i)->type);
      fragments = std::max(fragments, own);
    }
    return std::min(kAllRegisters, kRegistersBeside + sums + fragments);
  }

  bool has_room(const Copied& c) {
    const auto blocks = [&](int64_t bytes, int registers) {
      return target::occupancy(target_, {.threads = module_.num_warps * target::kWarpSize,
                                         .registers_per_thread = registers,
                                         .shared_bytes = bytes})
          .blocks_per_sm;
    };
    std::unordered_set<const Op*> gone = gone_;
    gone.insert(c.conversions.begin(), c.conversions.end());
    const int64_t buffers = buffers_ + analysis::shared_bytes(c.buffer);
    const int64_t bytes = target_.shared_per_block + buffers -
                          shared_room(module_, target_, [&](const Op* op) { return !gone.contains(op); });
    const int registers = registers_for(*c.load->parent);
    if (bytes > target_.shared_per_block || blocks(bytes, 1) < blocks(bytes_, registers)) return false;
    gone_ = std::move(gone);
    buffers_ = buffers;
    return true;
  }

  /// Where a dot waits, for the first so many copies of its block.
  using Waits = std::map<const Op*, size_t>;

  /// One for all that a dot reads, unless an earlier one has waited for it too.
  static Waits waits_for(const std::vector<Copied>& all) {
    std::vector<size_t> reads;  // by the dots that read first
    for (size_t i = 0; i < all.size(); ++i) reads.push_back(i);
    std::ranges::stable_sort(reads, [&](size_t a, size_t b) { return all[a].first->is_before(all[b].first); });
    Waits waits;
    size_t here = 0;
    for (size_t r = 0; r < reads.size();) {
      const Op* dot = all[reads[r]].first;
      size_t until = 0;
      for (; r < reads.size() && all[reads[r]].first == dot; ++r) until = std::max(until, reads[r] + 1);
      if (until > here) waits[dot] = here = until;
    }
    return waits;
  }

  /// All of a block.
  void bring(const std::vector<Copied>& all) {
    const Waits waits = waits_for(all);
    if (is_in_loop(all[0].load->parent) && !is_joined(all, waits)) {
      b_.set_range(all[0].load->range);
      b_.set_before(all[0].load);
      join_lanes(b_, true);
    }
    std::vector<Value*> buffers;
    std::vector<const Op*> commits;
    for (const Copied& c : all) {
      b_.set_range(c.load->range);
      b_.set_before(module_.body()->first);
      buffers.push_back(b_.create(OpKind::kSharedAlloc, {}, std::span(&c.buffer, 1))->result());
      b_.set_before(c.load);
      std::vector<Value*> operands = {buffers.back(), c.load->operand(0)};
      if (c.load->operands.size() > 1) operands.push_back(c.load->operand(1));
      b_.create(OpKind::kAsyncCopy, operands, {});
      commits.push_back(b_.create(OpKind::kAsyncCommit, {}, {}));
      remark(remarks_, c.load->range, Reason::kOperandCopied, analysis::shared_bytes(c.buffer));
    }
    std::set<const Op*> waiting;
    for (size_t i = 0; i < all.size(); ++i) {
      Op* dot = all[i].first;
      if (const auto wait = waits.find(dot); wait != waits.end() && waiting.insert(dot).second) {
        const auto started = std::ranges::count_if(commits, [&](const Op* op) { return op->is_before(dot); });
        b_.set_range(dot->range);
        b_.set_before(dot);
        b_.create(OpKind::kAsyncWait, {}, {},
                  {{AttrName::kCount, static_cast<int64_t>(started) - static_cast<int64_t>(wait->second)}});
        join_lanes(b_, true);
      }
      read(all[i], buffers[i]);
    }
  }

  /// Right before the first dot that takes it.
  void read(const Copied& c, Value* buffer) {
    std::vector<Op*> dots;
    RingReader reader(b_);
    b_.set_range(c.load->range);
    reader.take(c.load, buffer);
    for (Op* op : reader.reads()) {
      Op* dot = nullptr;
      for (const ir::Use& use : op->result()->uses)
        if (!dot || use.op->is_before(dot)) dot = use.op;
      op->unlink();
      dot->parent->insert_before(dot, op);
    }
  }

  /// Whether all warps meet between the last read of what a round has copied and the copies of the next: on the way
  /// through shared memory, or to wait for a later copy.
  bool is_joined(const std::vector<Copied>& all, const Waits& waits) const {
    const auto joins = [&](const Op* op) {
      if (op->kind == OpKind::kBarrier) return !op->has(AttrName::kWarps);
      return analysis::scratch_bytes(*op) > 0 && !gone_.contains(op);
    };
    for (const Op* op = all[0].load->prev; op; op = op->prev)
      if (joins(op)) return true;
    return std::ranges::all_of(all, [&](const Copied& c) {
      for (const Op* op = c.last->next; op; op = op->next)
        if (joins(op) || waits.contains(op)) return true;
      return false;
    });
  }

  ir::Module& module_;
  const target::Target& target_;
  Remarks* remarks_;
  const analysis::AxisAnalysis axis_;
  const analysis::PointerOrigins written_;
  const int64_t bytes_;                 // of shared memory, before
  bool is_one_product_ = false;         // nothing is computed while its operands are on their way
  int64_t buffers_ = 0;                 // bytes of what is copied
  std::unordered_set<const Op*> gone_;  // conversions that read it
  ir::Builder b_;
};

}  // namespace

Status copy_operands(ir::Module& module, const target::Target& target, Remarks* remarks) {
  if (!target.has(target::kCpAsync) || !target.has(target::kLdMatrix)) return {};
  OperandCopier(module, target, remarks).run();
  return dce(module);
}

}  // namespace kiln::passes
