#include "compiler/passes/hopper/skew_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/specialize_warps.h"
#include "compiler/passes/hopper/stage_block_stores.h"
#include "compiler/target/occupancy.h"

namespace kiln::passes {

using ir::Block;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;
using target::Target;

namespace {

constexpr int kAddend = 2;  // the operand of a dot

/// What moves to the next iteration, and what it leaves behind.
struct Late {
  Op* dot = nullptr;
  std::vector<Op*> block;       // the load of its second operand, then the views of it
  std::vector<size_t> offsets;  // operands of the load that differ from one iteration to the next
  size_t sum = 0;               // which result of the loop
  std::vector<Op*> scaling;     // ops from the carried sum to the product's third operand, in order
  Op* ahead = nullptr;          // the product that it is to follow

  const Op* load() const { return block.front(); }
};

bool is_product(const Op* op) { return is_wgmma(op) && !is_staged(op); }

/// The load and its views, if nothing but `dot` reads them.
std::optional<std::vector<Op*>> own_block(const Op& dot) {
  std::vector<Op*> found;
  for (Op* op = dot.operand(1)->op; op && op->parent == dot.parent && op->result()->uses.size() == 1;
       op = op->operand(0)->op) {
    found.insert(found.begin(), op);
    if (op->kind == OpKind::kDescriptorLoad) return found;
    if (op->kind != OpKind::kTrans && op->kind != OpKind::kConvertLayout) break;
  }
  return std::nullopt;
}

/// The elementwise ops between the carried sum and the third operand of `dot`, if that is all that reads the sum.
std::optional<std::vector<Op*>> scaling_of(const Op& dot, const Value* carried) {
  std::unordered_set<const Op*> found;
  std::vector<const Value*> work = {carried};
  while (!work.empty()) {
    const Value* v = work.back();
    work.pop_back();
    for (const ir::Use& use : v->uses) {
      if (use.op == &dot && use.index == kAddend) continue;
      if (use.op->parent != dot.parent || !ir::is_pure(use.op) || !ir::is_elementwise(use.op)) return std::nullopt;
      if (found.insert(use.op).second) work.push_back(use.op->result());
    }
  }
  std::vector<Op*> ordered;
  for (Op* op : *dot.parent)
    if (found.contains(op)) ordered.push_back(op);
  const Value* sum = dot.operand(kAddend);
  if (sum != carried && !found.contains(sum->op)) return std::nullopt;
  return ordered;
}

std::optional<Late> find_late(const Op& loop) {
  const Block& body = *loop.region();
  std::vector<Op*> dots;
  bool nested = false;  // an inner loop's products, of which the copy in front would be another
  for (Op* op : body) {
    if (op->kind == OpKind::kWgmma) return std::nullopt;  // with what its warps store ahead of it
    if (is_product(op)) dots.push_back(op);
    nested |= !op->regions.empty() && ir::any_nested(op, [](const Op* inner) { return inner->kind == OpKind::kDot; });
  }
  if (nested || dots.size() < 2) return std::nullopt;
  Late late;
  late.dot = dots.back();
  if (!takes_registers(late.dot)) return std::nullopt;
  for (Op* dot : dots)
    if (!takes_registers(dot)) late.ahead = dot;
  const std::vector<ir::Use>& uses = late.dot->result()->uses;
  if (!late.ahead || uses.size() != 1 || uses[0].op != body.terminator()) return std::nullopt;
  late.sum = uses[0].index;
  auto block = own_block(*late.dot);
  auto scaling = scaling_of(*late.dot, body.args[late.sum + 1]);
  if (!block || !scaling) return std::nullopt;
  late.block = std::move(*block);
  late.scaling = std::move(*scaling);
  auto is_inside = [&](const Value* v) { return v->block == &body || (v->op && v->op->parent == &body); };
  const std::vector<Value*>& of_load = late.load()->operands;
  if (is_inside(of_load[0])) return std::nullopt;
  for (size_t i = 1; i < of_load.size(); ++i) {
    if (of_load[i]->type.is_tile()) return std::nullopt;
    if (is_inside(of_load[i])) late.offsets.push_back(i);
  }
  if (late.offsets.empty()) late.offsets.push_back(1);  // one that can name a block of zeros
  return late;
}

/// Whether a thread has registers for both products and the weights between them, beside what the arithmetic takes.
bool has_registers(const Late& late, const ir::Module& module, const Target& target, std::span<const Role> roles,
                   int& needed, int& given) {
  constexpr int kBeside = 56;  // for addresses and temporaries
  needed = kBeside;
  for (const Value* v : {late.ahead->result(), late.dot->result(), late.dot->operand(0)})
    needed += v->type.layout->num_registers() * v->type.element_bits() / 32;
  const int threads = (module.num_warps + warps_of_roles(roles.size())) * target::kWarpSize;
  given = target::registers_moved(target, {.threads = threads}, module.num_warps, target::kLeastLeft, 1);
  return needed <= given;
}

/// Whether the loop still has two slots when what it loads last lies beside them.
bool has_room(const Op& loop, const Late& late, ir::Module& module, const Target& target, int64_t& needed,
              int64_t& room) {
  constexpr int64_t kSlots = 2;
  // What each block of code loads; blocks that load the same types share slots (specialize_warps).
  std::map<const Block*, std::vector<const Op*>> blocks;
  ir::walk(module.body(), [&](const Op* op) {
    if (!is_product(op)) return;
    for (int i : {0, 1})
      if (const Op* load = block_operand(op->operand(i)).load) {
        std::vector<const Op*>& loads = blocks[load->parent];
        if (std::find(loads.begin(), loads.end(), load) == loads.end()) loads.push_back(load);
      }
  });
  const std::vector<const Op*> own = blocks.extract(loop.region()).mapped(), last = {late.load()};
  needed = kSlots * slot_bytes(own) + slot_bytes(last);
  for (const auto& [block, loads] : blocks)
    if (!fill_alike(loads, own)) needed += slot_bytes(loads);
  room = shared_room(module, target) - staging_bytes_beside_rings(module);
  return needed <= room;
}

/// Whether the last product of one loop can run in the first iteration of the next: it is added to the same sum, by the
/// same instructions of the same operands, and nothing happens in between.
bool hands_on(const Op& loop, const Late& late, const Op& next, const Late& next_late) {
  const Value* sum = loop.results[late.sum];
  if (next.parent != loop.parent || sum->uses.size() != 1 || next.operand(static_cast<int>(next_late.sum) + 3) != sum)
    return false;
  for (const Op* op = loop.next; op != &next; op = op->next)
    if (!op || !ir::is_pure(op)) return false;
  if (late.dot->attrs != next_late.dot->attrs || late.dot->operand(0)->type != next_late.dot->operand(0)->type ||
      late.block.size() != next_late.block.size() || late.offsets != next_late.offsets)
    return false;
  for (size_t i = 0; i < late.block.size(); ++i) {
    const Op *mine = late.block[i], *other = next_late.block[i];
    if (mine->kind != other->kind || mine->attrs != other->attrs || mine->result()->type != other->result()->type)
      return false;
  }
  for (size_t i = 0; i < late.load()->operands.size(); ++i)
    if (!std::ranges::count(late.offsets, i) && late.load()->operands[i] != next_late.load()->operands[i]) return false;
  return true;
}

/// What a loop hands on of its last iteration: the product that is still to be added to the sum.
struct Pending {
  Value* weights = nullptr;
  std::vector<Value*> offsets;  // of the block that they multiply, those that an iteration computes
  Value* any = nullptr;         // i1: there is such a product; else weights and block are zeros
};

class Skewer {
 public:
  Skewer(ir::Module& module, Op* loop, Late late) : b_(module), module_(module), loop_(loop), late_(std::move(late)) {}

  /// `before`: what the loop in front of it has left to this one.
  Pending run(const Pending* before) {
    b_.set_before(loop_);
    b_.set_range(loop_->range);
    any_ = b_.cmp(ir::Predicate::kLt, loop_->operand(0), loop_->operand(1));
    if (before) any_ = b_.binary(OpKind::kOr, before->any, any_);
    const Pending first = before ? *before : nothing();
    turn_body();
    loop_->append_operand(first.weights);
    for (Value* offset : first.offsets) loop_->append_operand(offset);
    Pending left{loop_->results[loop_->results.size() - late_.offsets.size() - 1], {}, any_};
    left.offsets.assign(loop_->results.end() - static_cast<ptrdiff_t>(late_.offsets.size()), loop_->results.end());
    return left;
  }

  /// The last iteration's product, behind the loop.
  void end(const Pending& left) {
    b_.set_after(loop_);
    Value* sum = loop_->results[late_.sum];
    const std::vector<ir::Use> uses = sum->uses;
    Op* branch = b_.if_op(left.any, std::span(&sum->type, 1));
    ir::OpCopier copier(module_);
    copier.substitute(late_.dot->operand(0), left.weights);
    copier.substitute(late_.dot->operand(kAddend), sum);
    for (size_t i = 0; i < late_.offsets.size(); ++i)
      copier.substitute(late_.load()->operands[late_.offsets[i]], left.offsets[i]);
    for (const Op* op : late_.block) copier.copy(*op, branch->region(0));
    Value* last = copier.copy(*late_.dot, branch->region(0))->result();
    b_.set_to_end(branch->region(0));
    b_.yield(std::span(&last, 1));
    b_.set_to_end(branch->region(1));
    b_.yield(std::span(&sum, 1));
    for (const ir::Use& use : uses) use.op->set_operand(static_cast<int>(use.index), branch->result());
  }

 private:
  Block* body() const { return loop_->region(); }

  /// The product of the iteration in front of the first: of zeros, and of a block that lies in front of its tensor.
  Pending nothing() {
    Pending none{b_.zero(late_.dot->operand(0)->type), {}, nullptr};
    for (const size_t i : late_.offsets) {
      const int extent = late_.load()->operand(0)->type.shape[static_cast<int>(i) - 1];
      none.offsets.push_back(b_.constant_int(late_.load()->operands[i]->type, -extent));
    }
    return none;
  }

  void turn_body() {
    Op* yield = body()->terminator();
    Value* old_sum = late_.dot->operand(kAddend);
    Value* carried_sum = body()->args[late_.sum + 1];
    Op* load = late_.block.front();
    yield->set_operand(static_cast<int>(late_.sum), old_sum == carried_sum ? late_.dot->result() : old_sum);
    yield->append_operand(late_.dot->operand(0));
    for (size_t i : late_.offsets) yield->append_operand(load->operands[i]);
    auto carry = [&](const Type& type) {
      module_.add_result(loop_, type);
      return module_.add_arg(body(), type);
    };
    // The product, behind the one that it is to follow.
    std::vector<Op*> moved = late_.block;
    moved.push_back(late_.dot);
    Op* last = late_.ahead;
    for (Op* op : moved) {
      op->unlink();
      body()->insert_before(last->next, op);
      last = op;
    }
    late_.dot->set_operand(0, carry(late_.dot->operand(0)->type));
    for (size_t i : late_.offsets) load->set_operand(static_cast<int>(i), carry(load->operands[i]->type));
    // What the next iteration's product is added to.
    const std::vector<ir::Use> uses = carried_sum->uses;
    for (const ir::Use& use : uses)
      if (use.op != late_.dot) use.op->set_operand(static_cast<int>(use.index), late_.dot->result());
    late_.dot->set_operand(kAddend, carried_sum);
    for (Op* op : late_.scaling) {
      op->unlink();
      body()->insert_before(yield, op);
    }
  }

  ir::Builder b_;
  ir::Module& module_;
  Op* loop_;
  Late late_;
  Value* any_ = nullptr;  // i1: this loop or one that hands on to it runs
};

}  // namespace

Status skew_products(ir::Module& module, const target::Target& target, std::span<const Role> roles, Remarks* remarks) {
  std::vector<std::pair<Op*, Late>> found;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind != OpKind::kFor) return;
    std::optional<Late> late = find_late(*op);
    if (!late) return;
    int registers = 0, given = 0;
    int64_t bytes = 0, room = 0;
    if (!has_registers(*late, module, target, roles, registers, given))
      return remark(remarks, late->dot->range, Reason::kSkewNeedsRegisters, registers, given);
    if (!has_room(*op, *late, module, target, bytes, room))
      return remark(remarks, late->dot->range, Reason::kSkewNeedsRoom, bytes, room);
    remark(remarks, late->dot->range, Reason::kProductSkewed);
    found.emplace_back(op, std::move(*late));
  });
  std::optional<Pending> pending;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto& [loop, late] = found[i];
    const bool goes_on = i + 1 < found.size() && hands_on(*loop, late, *found[i + 1].first, found[i + 1].second);
    Skewer skewer(module, loop, late);
    Pending left = skewer.run(pending ? &*pending : nullptr);
    pending.reset();
    if (goes_on)
      pending = std::move(left);
    else
      skewer.end(left);
  }
  return {};
}

}  // namespace kiln::passes
