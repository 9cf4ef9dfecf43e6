// Ops across threads, following the plans of compiler/layout: layout conversions, reductions and scans.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "compiler/layout/algebra.h"
#include "compiler/layout/convert_plan.h"
#include "compiler/layout/reduce_plan.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/shared/elementwise.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using layout::XorMap;
using llvm::Value;

namespace {

int64_t shared_offset(const ir::Op& op) { return op.int_or(AttrName::kSharedOffset, 0); }

/// Address of element map.apply(r, lane, warp) ^ flip of a scratch that begins at byte `begin`, elements of `bytes`.
Value* element_address(Lowering& l, const XorMap& map, uint32_t r, uint32_t flip, int64_t begin, int bytes) {
  const uint32_t constant = map.of_register(r) ^ flip, varying = map.thread_bits();
  Value* thread_part = l.thread.share(map);
  // Constants that meet no bit of the thread's part are added last: they become the instruction's offset.
  Value* number = join_share(l.b, thread_part, varying, constant & varying);
  Value* offset =
      l.b.CreateShl(number, static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(bytes))), "", true, true);
  return l.shared(offset, begin + static_cast<int64_t>(constant & ~varying) * bytes);
}

using Parts = std::vector<Registers>;  // one Registers per operand of the op

/// combine(left, right) of every operand's number at once.
std::vector<Value*> combine(Lowering& l, const ir::Op& op, std::span<Value* const> left,
                            std::span<Value* const> right) {
  std::vector<Value*> args(left.begin(), left.end());
  args.insert(args.end(), right.begin(), right.end());
  return emit_combine(l.b, *op.region(), args, l.target);
}

std::vector<Value*> column(const Parts& parts, size_t i) {
  std::vector<Value*> c;
  for (const Registers& p : parts) c.push_back(p[i]);
  return c;
}

void set_column(Parts& parts, size_t i, std::span<Value* const> values) {
  for (size_t k = 0; k < parts.size(); ++k) parts[k][i] = values[k];
}

/// Neighbours first, then neighbours of those: the order is that of the axis, and the chain is short.
std::vector<Value*> combine_tree(Lowering& l, const ir::Op& op, std::vector<std::vector<Value*>> items) {
  while (items.size() > 1) {
    std::vector<std::vector<Value*>> next;
    for (size_t i = 0; i + 1 < items.size(); i += 2) next.push_back(combine(l, op, items[i], items[i + 1]));
    if (items.size() % 2) next.push_back(items.back());
    items = std::move(next);
  }
  return items[0];
}

/// Whether a region combines by one op whose operands may change places.
bool combines_in_any_order(const ir::Block& region) {
  const ir::Op* op = region.first;
  const ir::Op* end = region.terminator();
  return ir::is_commutative(op) && op->next == end && end->operands.size() == 1 && end->operand(0) == op->result();
}

/// The instruction that combines integers of a whole warp; none where there is no such.
llvm::Intrinsic::ID warp_reduction(const ir::Op& op) {
  const ir::Op* by = op.region()->first;
  if (!combines_in_any_order(*op.region()) || op.operands.size() != 1) return llvm::Intrinsic::not_intrinsic;
  const DType dtype = by->result()->type.dtype;
  if (size_of(dtype) != 4 || is_float(dtype)) return llvm::Intrinsic::not_intrinsic;
  const bool sign = is_signed(dtype);
  switch (by->kind) {
    case ir::OpKind::kAdd:
      return llvm::Intrinsic::nvvm_redux_sync_add;
    case ir::OpKind::kMin:
      return sign ? llvm::Intrinsic::nvvm_redux_sync_min : llvm::Intrinsic::nvvm_redux_sync_umin;
    case ir::OpKind::kMax:
      return sign ? llvm::Intrinsic::nvvm_redux_sync_max : llvm::Intrinsic::nvvm_redux_sync_umax;
    case ir::OpKind::kAnd:
      return llvm::Intrinsic::nvvm_redux_sync_and;
    case ir::OpKind::kOr:
      return llvm::Intrinsic::nvvm_redux_sync_or;
    case ir::OpKind::kXor:
      return llvm::Intrinsic::nvvm_redux_sync_xor;
    default:
      return llvm::Intrinsic::not_intrinsic;
  }
}

constexpr size_t kLaneBits = 5;

void combine_lanes(Lowering& l, const ir::Op& op, Parts& parts, std::span<const uint32_t> masks) {
  if (const auto reduction = warp_reduction(op);
      reduction != llvm::Intrinsic::not_intrinsic && masks.size() == kLaneBits) {
    for (Value*& v : parts[0]) v = l.b.CreateIntrinsic(reduction, {v, l.b.getInt32(~0U)});
    return;
  }
  for (uint32_t mask : masks)
    for (size_t i = 0; i < parts[0].size(); ++i) {
      std::vector<Value*> mine = column(parts, i), theirs;
      for (Value* v : mine) theirs.push_back(shuffle_xor(l.b, v, mask));
      set_column(parts, i, combine(l, op, mine, theirs));
    }
}

/// Each lane gives its partner the parts that it does not keep.
void combine_halves(Lowering& l, const ir::Op& op, Parts& parts, const layout::ReducePlan::Halving& step) {
  Value* is_lower = l.thread.is_zero(step.lane_mask, 0);
  Parts kept(parts.size());
  for (uint32_t i = 0; i < parts[0].size(); ++i) {
    if (i & step.part) continue;
    std::vector<Value*> mine, theirs;
    for (const Registers& of_operand : parts) {
      Value *low = of_operand[i], *high = of_operand[i | step.part];
      mine.push_back(l.b.CreateSelect(is_lower, low, high));
      theirs.push_back(shuffle_xor(l.b, l.b.CreateSelect(is_lower, high, low), step.lane_mask));
    }
    const std::vector<Value*> sum = combine(l, op, mine, theirs);
    for (size_t k = 0; k < kept.size(); ++k) kept[k].push_back(sum[k]);
  }
  parts = std::move(kept);
}

/// Whether the op stands in a loop beside wgmma of a single warp group, as the softmax of attention. A processor's
/// schedulers then have one warp each: nothing but what surrounds an exponential fills the eight cycles that it takes.
bool is_beside_products(const Lowering& l, const ir::Op& op) {
  constexpr int kWarpsOfGroup = 4;
  if (l.source.num_warps != kWarpsOfGroup) return false;
  for (const ir::Block* b = op.parent; b && b->parent; b = b->parent->parent)
    if (b->parent->kind == ir::OpKind::kFor || b->parent->kind == ir::OpKind::kWhile)
      return ir::any_nested(b->parent, [](const ir::Op* inner) { return inner->kind == ir::OpKind::kWgmma; });
  return false;
}

/// Whether the region only selects among operand k and its like and compares them with each other, as argmax does with
/// indices: the results are the same, but for that number, when one number is added to all of them.
bool only_selects(const ir::Block& region, size_t k) {
  const size_t count = region.args.size() / 2;
  std::set<const ir::Value*> moved = {region.args[k], region.args[count + k]};
  auto is_moved = [&](const ir::Value* v) { return moved.contains(v); };
  for (const ir::Op* op : region) {
    const bool all = std::ranges::all_of(op->operands, is_moved);
    if (op == region.terminator()) {
      for (size_t i = 0; i < count; ++i)
        if (is_moved(op->operand(static_cast<int>(i))) != (i == k)) return false;
    } else if (op->kind == ir::OpKind::kSelect && is_moved(op->operand(1)) && is_moved(op->operand(2))) {
      if (is_moved(op->operand(0))) return false;
      moved.insert(op->result());
    } else if ((op->kind == ir::OpKind::kMin || op->kind == ir::OpKind::kMax) && all) {
      moved.insert(op->result());
    } else if (!(op->kind == ir::OpKind::kCmp && all) && std::ranges::any_of(op->operands, is_moved)) {
      return false;
    }
  }
  return true;
}

/// What all items' operand k have in common when each is that joined with a constant, as the numbers of a row's
/// elements are the lane's part and a register's; `constants` gets the rest. Null when they are anything else.
Value* common_part(std::span<const std::vector<Value*>> items, size_t k, std::vector<Value*>& constants) {
  Value* common = nullptr;
  for (const std::vector<Value*>& item : items) {
    Value* part = item[k];
    auto* joined = llvm::dyn_cast<llvm::PossiblyDisjointInst>(part);
    auto* constant =
        joined && joined->isDisjoint() ? llvm::dyn_cast<llvm::ConstantInt>(joined->getOperand(1)) : nullptr;
    if (constant) part = joined->getOperand(0);
    if (llvm::isa<llvm::Constant>(part) || (common && part != common)) return nullptr;
    common = part;
    constants.push_back(constant ? constant : llvm::ConstantInt::get(item[k]->getType(), 0));
  }
  return common;
}

/// The tree without what numbers of elements have in common, which is joined to the one that is left: their constants
/// need no registers, where the numbers themselves do through a whole loop.
std::vector<Value*> combine_numbered(Lowering& l, const ir::Op& op, std::vector<std::vector<Value*>> items) {
  std::vector<Value*> common(items[0].size());
  for (size_t k = 0; k < common.size(); ++k) {
    std::vector<Value*> constants;
    Value* part = items[0][k]->getType()->isIntegerTy() ? common_part(items, k, constants) : nullptr;
    if (!part || !only_selects(*op.region(), k)) continue;
    common[k] = part;
    for (size_t i = 0; i < items.size(); ++i) items[i][k] = constants[i];
  }
  std::vector<Value*> result = combine_tree(l, op, std::move(items));
  for (size_t k = 0; k < common.size(); ++k)
    if (common[k]) result[k] = l.b.CreateOr(common[k], result[k], "", /*IsDisjoint=*/true);
  return result;
}

/// What a thread holds of a row. Beside products two sums run through it: of a tree, which is short, ptxas puts all
/// additions behind the product, and the exponentials that they add stand in a row.
std::vector<Value*> combine_own(Lowering& l, const ir::Op& op, std::vector<std::vector<Value*>> items) {
  constexpr size_t kSums = 2, kLeastItems = 8;
  if (items.size() < kLeastItems || !combines_in_any_order(*op.region()) || !is_beside_products(l, op))
    return combine_numbered(l, op, std::move(items));
  for (size_t i = kSums; i < items.size(); ++i) items[i % kSums] = combine(l, op, items[i % kSums], items[i]);
  items.resize(kSums);
  return combine_tree(l, op, std::move(items));
}

/// The sum of a thread's products, a multiplication and fma. More sums run through many products, since each fma waits
/// for the one before it.
Value* add_products(Lowering& l, const ir::Op& product, std::span<const int> registers) {
  constexpr size_t kOfSum = 8, kMostSums = 4;
  const Registers &x = l.of(product.operand(0)), &y = l.of(product.operand(1)), &rounded = l.of(product.result());
  const size_t count = std::clamp(registers.size() / kOfSum, size_t{1}, kMostSums);
  std::vector<Value*> sums;
  for (size_t i = 0; i < registers.size(); ++i) {
    const auto r = static_cast<size_t>(registers[i]);
    if (i < count)
      sums.push_back(rounded[r]);
    else
      sums[i % count] =
          l.b.CreateIntrinsic(llvm::Intrinsic::fma, {rounded[r]->getType()}, {x[r], y[r], sums[i % count]});
  }
  for (; sums.size() > 1; sums.pop_back()) sums[0] = l.b.CreateFAdd(sums[0], sums.back());
  return sums[0];
}

std::vector<int> operand_bytes(const ir::Op& op) {
  std::vector<int> bytes;
  for (const ir::Value* v : op.operands) bytes.push_back(element_bytes(v->type));
  return bytes;
}

void store_element(Lowering& l, Value* v, Value* address) {
  Value* m = to_memory(l.b, v);
  l.b.CreateAlignedStore(m, address,
                         llvm::Align(m->getType()->isPointerTy() ? 8 : m->getType()->getScalarSizeInBits() / 8));
}

Value* load_element(Lowering& l, llvm::Type* type, Value* address) {
  llvm::Type* m = memory_type(type);
  const llvm::Align align(m->isPointerTy() ? 8 : m->getScalarSizeInBits() / 8);
  return from_memory(l.b, l.b.CreateAlignedLoad(m, address, align), type);
}

void convert_by_shuffles(Lowering& l, const layout::ConvertPlan& plan, const Registers& from, Registers& to) {
  Registers moved;
  for (int s = 0; s < plan.num_slots; ++s) {
    const auto slot = static_cast<uint32_t>(s);
    Value* sent = l.thread.pick(l.b, from, plan.send, slot);
    // An xor of the lane itself with a constant is the cheaper form, but the plan may ask any lane.
    Value* ask = join_share(l.b, l.thread.share(plan.ask), plan.ask.thread_bits(), plan.ask.of_register(slot));
    moved.push_back(shuffle_from(l.b, sent, ask));
  }
  for (size_t r = 0; r < to.size(); ++r) to[r] = l.thread.pick(l.b, moved, plan.take, static_cast<uint32_t>(r));
}

uint32_t number_of(const ir::Shape& shape, const layout::Coord& at) {
  return static_cast<uint32_t>(layout::index_of(shape.span(), at));
}

/// The number, in a tile of `shape`, of the element at moved(where a register, lane and warp of `l` are).
template <class Moved>
XorMap element_map(const layout::LinearLayout& l, const ir::Shape& shape, Moved&& moved) {
  auto bases = [&](layout::In in) {
    std::vector<uint32_t> v;
    for (const layout::Coord& basis : l.bases(in)) v.push_back(number_of(shape, moved(basis)));
    return v;
  };
  return {bases(layout::In::kRegister), bases(layout::In::kLane), bases(layout::In::kWarp)};
}

/// Lays operand 0 of a gather op into its scratch, in row-major order.
void write_whole(Lowering& l, const ir::Op& op) {
  const ir::Type& type = op.operand(0)->type;
  const XorMap map = element_map(*type.layout, type.shape, std::identity());
  const layout::FreeBits copies = layout::free_variables(*type.layout);
  if (op.flag(AttrName::kSyncBefore)) l.barrier();
  l.when(l.thread.is_zero(copies.lane, copies.warp), [&] {
    const Registers& from = l.of(op.operand(0));
    for (uint32_t r = 0; r < from.size(); ++r)
      if (!(r & copies.reg))
        store_element(l, from[r], element_address(l, map, r, 0, shared_offset(op), element_bytes(type)));
  });
  l.barrier();
}

/// An index as i32, at most last: negative ones count as large.
Value* clamped(llvm::IRBuilder<>& b, Value* index, const ir::Type& type, int64_t last) {
  Value* wide = is_signed(type.dtype) ? b.CreateSExt(index, b.getInt64Ty()) : b.CreateZExt(index, b.getInt64Ty());
  const bool narrow = index->getType()->getScalarSizeInBits() <= 32;
  if (narrow) wide = b.CreateTrunc(wide, b.getInt32Ty());
  Value* limit = llvm::ConstantInt::get(wide->getType(), static_cast<uint64_t>(last));
  return b.CreateTrunc(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, wide, limit), b.getInt32Ty());
}

}  // namespace

template <>
Status lower<ir::OpKind::kConvertLayout>(Lowering& l, const ir::Op& op) {
  const ir::Type &from_type = op.operand(0)->type, &to_type = op.result()->type;
  const layout::ConvertPlan plan = layout::plan_convert(*from_type.layout, *to_type.layout, element_bytes(to_type));
  const Registers& from = l.of(op.operand(0));
  Registers to(static_cast<size_t>(num_registers(to_type)));
  switch (plan.kind) {
    case layout::ConvertKind::kRegisters:
      for (size_t r = 0; r < to.size(); ++r) to[r] = l.thread.pick(l.b, from, plan.source, static_cast<uint32_t>(r));
      break;
    case layout::ConvertKind::kShuffle:
      convert_by_shuffles(l, plan, from, to);
      break;
    case layout::ConvertKind::kShared: {
      if (op.flag(AttrName::kSyncBefore)) l.barrier();
      Value* handle = l.b.getInt32(static_cast<uint32_t>(shared_offset(op)));
      write_shared(l, handle, from, from_type, *plan.scratch, plan.write);
      l.barrier();
      to = read_shared(l, handle, to_type, *plan.scratch, plan.read);
      break;
    }
  }
  l.values[op.result()] = std::move(to);
  return {};
}

namespace {

/// Whether a condition holds for any element, as the maximum of what it is as integers: a barrier tells all threads.
bool asks_for_any(const ir::Op& op, const layout::ReducePlan& plan) {
  if (!plan.crosses_warps || op.result()->type.is_tile() || op.operands.size() != 1) return false;
  const ir::Op *from = op.operand(0)->op, *by = op.region()->first;
  return from && from->kind == ir::OpKind::kCast && from->operand(0)->type.dtype == DType::kI1 &&
         !is_float(op.result()->type.dtype) && combines_in_any_order(*op.region()) &&
         (by->kind == ir::OpKind::kMax || by->kind == ir::OpKind::kOr);
}

}  // namespace

template <>
Status lower<ir::OpKind::kReduce>(Lowering& l, const ir::Op& op) {
  const auto axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  layout::ReducePlan plan = layout::plan_reduce(*op.operand(0)->type.layout, axis);
  if (warp_reduction(op) != llvm::Intrinsic::not_intrinsic &&
      plan.halvings.size() + plan.lane_masks.size() == kLaneBits)
    plan = layout::plan_reduce(*op.operand(0)->type.layout, axis, false);
  if (asks_for_any(op, plan)) {
    const Registers& conditions = l.of(op.operand(0)->op->operand(0));
    Value* mine = conditions[0];
    for (size_t i = 1; i < conditions.size(); ++i) mine = l.b.CreateOr(mine, conditions[i]);
    l.values[op.result()] = {l.b.CreateZExt(l.barrier_any(mine), l.type_of(op.result()->type))};
    return {};
  }
  Parts parts(op.operands.size(), Registers(plan.registers.size()));
  const ir::Op* product = ir::contracted_product(op);
  for (size_t i = 0; i < plan.registers.size(); ++i) {
    if (product) {
      parts[0][i] = add_products(l, *product, plan.registers[i]);
      continue;
    }
    std::vector<std::vector<Value*>> items;
    for (int r : plan.registers[i]) {
      items.emplace_back();
      for (const ir::Value* v : op.operands) items.back().push_back(l.of(v)[static_cast<size_t>(r)]);
    }
    set_column(parts, i, combine_own(l, op, std::move(items)));
  }
  for (const layout::ReducePlan::Halving& step : plan.halvings) combine_halves(l, op, parts, step);
  combine_lanes(l, op, parts, plan.lane_masks);

  if (plan.crosses_warps) {
    const std::vector<int> bytes = operand_bytes(op);
    const std::vector<int64_t> shares = layout::scratch_shares(plan.scratch_elements, bytes);
    auto address = [&](const XorMap& map, size_t k, size_t i, uint32_t flip) {
      return element_address(l, map, static_cast<uint32_t>(i), flip, shared_offset(op) + shares[k], bytes[k]);
    };
    if (op.flag(AttrName::kSyncBefore)) l.barrier();
    l.when(l.thread.is_zero(plan.write_lane_mask, plan.write_warp_mask), [&] {
      for (size_t k = 0; k < parts.size(); ++k)
        for (size_t i = 0; i < parts[k].size(); ++i) store_element(l, parts[k][i], address(plan.write, k, i, 0));
    });
    l.barrier();
    for (Registers& of_operand : parts) of_operand.resize(plan.registers.size());
    for (size_t i = 0; i < parts[0].size(); ++i) {
      std::vector<std::vector<Value*>> items;
      for (uint32_t s : plan.serial) {
        items.emplace_back();
        for (size_t k = 0; k < parts.size(); ++k)
          items.back().push_back(
              load_element(l, l.type_of(op.operand(static_cast<int>(k))->type), address(plan.read, k, i, s)));
      }
      set_column(parts, i, combine_tree(l, op, std::move(items)));
    }
    combine_lanes(l, op, parts, plan.shared_lane_masks);
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    KILN_ASSERT(static_cast<int>(parts[k].size()) == num_registers(op.result(static_cast<int>(k))->type), "{}",
                ir::print(op));
    l.values[op.result(static_cast<int>(k))] = std::move(parts[k]);
  }
  return {};
}

namespace {

/// What comes before a thread's elements in a row, with a total more of those before that: only this one where it had
/// none. Undefined in threads that have none yet.
void join_prefix(Lowering& l, const ir::Op& op, const layout::ScanStep& step, const std::vector<Value*>& total,
                 Value* takes_part, std::vector<Value*>& prefix) {
  if (prefix.empty()) {
    prefix = total;
    return;
  }
  const layout::Positions& without = step.without;
  Value* none = l.thread.matches(without.lane_mask, without.lane_value, without.warp_mask, without.warp_value);
  const std::vector<Value*> both = combine(l, op, total, prefix);
  for (size_t k = 0; k < both.size(); ++k) {
    Value* joined = none ? l.b.CreateSelect(none, total[k], both[k]) : total[k];
    prefix[k] = takes_part ? l.b.CreateSelect(takes_part, joined, prefix[k]) : joined;
  }
}

}  // namespace

template <>
Status lower<ir::OpKind::kScan>(Lowering& l, const ir::Op& op) {
  const auto axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  const layout::ScanPlan plan = layout::plan_scan(*op.operand(0)->type.layout, axis, op.flag(AttrName::kReverse));
  const std::vector<int> bytes = operand_bytes(op);
  const std::vector<int64_t> shares = layout::scratch_shares(plan.scratch_elements, bytes);
  Parts parts;
  for (const ir::Value* v : op.operands) parts.push_back(l.of(v));
  const auto registers = static_cast<uint32_t>(parts[0].size());
  bool may_be_read = op.flag(AttrName::kSyncBefore);
  std::map<uint32_t, std::vector<Value*>> prefix;  // of registers that have the last of a thread's elements in a row

  for (const layout::ScanStep& step : plan.steps) {
    const layout::Positions &active = step.active, &sources = step.sources;
    auto in = [](const layout::Positions& p, uint32_t r) { return (r & p.reg_mask) == p.reg_value; };
    auto address = [&](size_t k, uint32_t r) {
      return element_address(l, step.offset, r, 0, shared_offset(op) + shares[k] + step.first_element * bytes[k],
                             bytes[k]);
    };
    if (step.reach == layout::ScanReach::kShared) {
      if (may_be_read) l.barrier();
      may_be_read = false;
      const layout::Positions& writers = step.writers;
      l.when(l.thread.matches(writers.lane_mask, writers.lane_value, writers.warp_mask, writers.warp_value), [&] {
        for (size_t k = 0; k < parts.size(); ++k)
          for (uint32_t r = 0; r < registers; ++r)
            if (in(writers, r)) store_element(l, parts[k][r], address(k, r));
      });
      l.barrier();
    }
    if (step.reach == layout::ScanReach::kPrefix) {
      Value* none = l.thread.matches(step.without.lane_mask, step.without.lane_value, step.without.warp_mask,
                                     step.without.warp_value);
      for (uint32_t r = 0; r < registers; ++r) {
        if (in(sources, r)) continue;
        const std::vector<Value*> mine = column(parts, r);
        std::vector<Value*> sum = combine(l, op, prefix[(r & ~sources.reg_mask) | sources.reg_value], mine);
        for (size_t k = 0; k < sum.size(); ++k) sum[k] = l.b.CreateSelect(none, mine[k], sum[k]);
        set_column(parts, r, sum);
      }
      prefix.clear();
      continue;
    }
    Value* takes_part = l.thread.matches(active.lane_mask, active.lane_value, active.warp_mask, active.warp_value);
    const Parts old = parts;
    // All registers of a thread add the same total of another one, which is brought once.
    std::map<std::pair<size_t, uint32_t>, Value*> brought;
    for (uint32_t r = 0; r < registers; ++r) {
      if (!in(active, r)) continue;
      const uint32_t from = (r & ~sources.reg_mask) | sources.reg_value;
      std::vector<Value*> theirs;
      for (size_t k = 0; k < parts.size(); ++k) {
        switch (step.reach) {
          case layout::ScanReach::kRegisters:
            theirs.push_back(old[k][from]);
            break;
          case layout::ScanReach::kShuffle: {
            Value*& value = brought[{k, from}];
            if (!value) {
              Value* kept = l.b.CreateAnd(l.thread.lane(), ~sources.lane_mask & (kLanes - 1));
              value = shuffle_from(l.b, old[k][from], l.b.CreateOr(kept, sources.lane_value));
            }
            theirs.push_back(value);
            break;
          }
          case layout::ScanReach::kShared:
            theirs.push_back(load_element(l, l.type_of(op.operand(static_cast<int>(k))->type), address(k, r)));
            break;
          case layout::ScanReach::kPrefix:
            KILN_UNREACHABLE("a step within threads");
        }
      }
      if (step.joins_prefix) join_prefix(l, op, step, theirs, takes_part, prefix[r]);
      const std::vector<Value*> mine = column(old, r);
      std::vector<Value*> sum = combine(l, op, theirs, mine);
      if (takes_part)
        for (size_t k = 0; k < sum.size(); ++k) sum[k] = l.b.CreateSelect(takes_part, sum[k], mine[k]);
      set_column(parts, r, sum);
    }
  }
  for (size_t k = 0; k < parts.size(); ++k) l.values[op.result(static_cast<int>(k))] = std::move(parts[k]);
  return {};
}

template <>
Status lower<ir::OpKind::kGather>(Lowering& l, const ir::Op& op) {
  const ir::Type &from = op.operand(0)->type, &to = op.result()->type;
  const auto axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  write_whole(l, op);
  // Bits of the other dimensions and of the index never meet: sizes are powers of two.
  const XorMap others = element_map(*to.layout, from.shape, [&](layout::Coord at) { return at[axis] = 0, at; });
  const int64_t stride = number_of(from.shape, [&] {
    layout::Coord next;
    next[axis] = 1;
    return next;
  }());
  const int64_t bytes = element_bytes(from), last = from.shape[axis] - 1;
  Registers out;
  for (Value* index : l.of(op.operand(1))) {
    Value* along = l.b.CreateMul(clamped(l.b, index, op.operand(1)->type, last),
                                 l.b.getInt32(static_cast<uint32_t>(stride * bytes)));
    const auto r = static_cast<uint32_t>(out.size());
    Value* place = join_share(l.b, l.thread.share(others), others.thread_bits(), others.of_register(r));
    Value* offset = l.b.CreateAdd(along, l.b.CreateMul(place, l.b.getInt32(static_cast<uint32_t>(bytes))));
    out.push_back(load_element(l, l.type_of(from), l.shared(offset, shared_offset(op))));
  }
  l.values[op.result()] = std::move(out);
  return {};
}

template <>
Status lower<ir::OpKind::kScatter>(Lowering& l, const ir::Op& op) {
  const ir::Type& type = op.result()->type;
  const auto axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  const XorMap whole = element_map(*type.layout, type.shape, std::identity());
  const XorMap others = element_map(*type.layout, type.shape, [&](layout::Coord at) { return at[axis] = 0, at; });
  layout::Coord next;
  next[axis] = 1;
  const int64_t bytes = element_bytes(type), stride = number_of(type.shape, next) * bytes;
  const layout::FreeBits copies = layout::free_variables(*type.layout);
  if (op.flag(AttrName::kSyncBefore)) l.barrier();
  const Registers &from = l.of(op.operand(0)), &index = l.of(op.operand(1));
  l.when(l.thread.is_zero(copies.lane, copies.warp), [&] {
    for (uint32_t r = 0; r < from.size(); ++r) {
      if (r & copies.reg) continue;
      Value* along = clamped(l.b, index[r], op.operand(1)->type, type.shape[axis]);
      Value* inside = l.b.CreateICmpULT(along, l.b.getInt32(static_cast<uint32_t>(type.shape[axis])));
      Value* place = join_share(l.b, l.thread.share(others), others.thread_bits(), others.of_register(r));
      Value* offset = l.b.CreateAdd(l.b.CreateMul(along, l.b.getInt32(static_cast<uint32_t>(stride))),
                                    l.b.CreateMul(place, l.b.getInt32(static_cast<uint32_t>(bytes))));
      l.when(inside, [&] { store_element(l, from[r], l.shared(offset, shared_offset(op))); });
    }
  });
  l.barrier();
  Registers out(from.size());
  for (uint32_t r = 0; r < out.size(); ++r)
    out[r] = load_element(l, l.type_of(type), element_address(l, whole, r, 0, shared_offset(op), element_bytes(type)));
  l.values[op.result()] = std::move(out);
  return {};
}

/// The lanes whose digit has the same low bits: a ballot for each bit, which lanes without the bit negate. (match.any
/// is one instruction, and an SM takes 57 cycles for it, measured on an H200.) Assembly, because LLVM tests each bit
/// twice, for the ballot and for the choice.
Value* lanes_like(llvm::IRBuilder<>& b, Value* digit, uint32_t bits) {
  std::string text = "{ .reg .pred p; .reg .b32 t; mov.b32 $0, -1; ";
  for (uint32_t bit = 0; bit < bits; ++bit)
    text += fmt::format(
        "and.b32 t, $1, {}; setp.ne.u32 p, t, 0; vote.sync.ballot.b32 t, p, -1; "
        "@!p not.b32 t, t; and.b32 $0, $0, t; ",
        1u << bit);
  llvm::Type* i32 = b.getInt32Ty();
  auto* code = llvm::InlineAsm::get(llvm::FunctionType::get(i32, {i32}, false), text + "}", "=&r,r", true);
  llvm::CallInst* call = b.CreateCall(code, {digit});
  call->setConvergent();
  return call;
}

/// The value, computed here and not where it is used: LLVM would keep both terms of a sum till then.
Value* held(llvm::IRBuilder<>& b, Value* v) {
  auto* code = llvm::InlineAsm::get(llvm::FunctionType::get(v->getType(), {v->getType()}, false), "mov.b32 $0, $1;",
                                    "=r,r", true);
  return b.CreateCall(code, {v});
}

// Each warp counts its stretch in a row of its own: the lanes that have the same digit find each other, all read how
// many came before them, and the first one adds them. Then the threads sum each bin's column, the sums are scanned, and
// each counter becomes the place of its warp's first element of that digit. Where only the counts are wanted, each lane
// adds its own element, and the scan is left out.
template <>
Status lower<ir::OpKind::kBucketPlace>(Lowering& l, const ir::Op& op) {
  auto& b = l.b;
  const Registers& digits = l.of(op.operand(0));
  const ir::Type& counts_type = op.result(1)->type;
  const auto bins = static_cast<uint32_t>(op.int_attr(AttrName::kBins));
  const auto size = static_cast<uint32_t>(op.operand(0)->type.shape[0]);
  const auto warps = static_cast<uint32_t>(l.source.num_warps);
  const uint32_t stretches = std::clamp(size / kLanes, 1u, warps);  // further warps are copies
  const uint32_t lanes = std::min<uint32_t>(size, kLanes);          // and further lanes
  const bool only_counts = op.result(0)->uses.empty() && op.result(2)->uses.empty();
  const bool packs = bins <= 1 << 16 && size <= 1 << 16;
  llvm::Type* i32 = b.getInt32Ty();
  Value *lane = l.thread.lane(), *warp = l.thread.uniform_warp();
  auto number = [&](uint32_t n) { return b.getInt32(n); };
  auto counter = [&](Value* row, Value* bin) {
    return l.shared(b.CreateShl(b.CreateAdd(b.CreateMul(row, number(bins)), bin), 2), shared_offset(op));
  };
  auto load = [&](Value* address) -> Value* { return b.CreateAlignedLoad(i32, address, llvm::Align(4)); };
  auto store = [&](Value* v, Value* address) { b.CreateAlignedStore(v, address, llvm::Align(4)); };
  auto meet = [&] { b.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {}, {number(~0u)}); };

  if (op.flag(AttrName::kSyncBefore)) l.barrier();
  for (uint32_t base = 0; base < bins; base += kLanes) {
    Value* bin = b.CreateAdd(lane, number(base));
    l.when(bins >= kLanes ? nullptr : b.CreateICmpULT(bin, number(bins)),
           [&] { store(number(0), counter(warp, bin)); });
  }
  meet();
  Value* before_me = b.CreateSub(b.CreateShl(number(1), b.CreateAnd(lane, number(lanes - 1))), number(1));
  Registers ranks, inside;
  for (Value* digit : digits) {
    Value* counted = b.CreateICmpULT(digit, number(bins));
    Value* place = counter(warp, b.CreateSelect(counted, digit, number(0)));
    Value* acts = lanes < kLanes ? b.CreateAnd(counted, b.CreateICmpULT(lane, number(lanes))) : counted;
    if (only_counts) {
      l.when(acts, [&] {
        b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, place, number(1), llvm::MaybeAlign(4),
                          llvm::AtomicOrdering::Monotonic, l.context().getOrInsertSyncScopeID("block"));
      });
      continue;
    }
    Value* same = lanes_like(b, digit, static_cast<uint32_t>(std::countr_zero(bins)));
    if (!llvm::isa<llvm::Constant>(acts))  // else all lanes count
      same = b.CreateAnd(same, b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {}, {number(~0u), acts}));
    Value* before = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, b.CreateAnd(same, before_me));
    Value* earlier = load(place);
    // One register until the places are known: LLVM would keep the digit's counter as well.
    Value* rank = b.CreateAdd(earlier, before);
    rank = held(b, packs ? b.CreateOr(rank, b.CreateShl(digit, 16)) : rank);
    meet();
    l.when(b.CreateAnd(acts, b.CreateICmpEQ(before, number(0))),
           [&] { store(b.CreateAdd(earlier, b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, same)), place); });
    meet();
    ranks.push_back(rank);
    inside.push_back(counted);
  }
  l.barrier();

  // Each thread has `each` bins that lie side by side.
  const uint32_t threads = warps * kLanes, each = std::max(1u, bins / threads);
  Value* first_bin = b.CreateMul(l.thread.thread(), number(each));
  Value* has_bins = bins >= threads ? nullptr : b.CreateICmpULT(first_bin, number(bins));
  Value* all = number(warps);  // the row of the sums
  std::vector<Value*> own(each, number(0));
  if (has_bins) first_bin = b.CreateSelect(has_bins, first_bin, number(0));
  for (uint32_t i = 0; i < each; ++i) {
    Value* bin = b.CreateAdd(first_bin, number(i));
    for (uint32_t row = 0; row < stretches; ++row) own[i] = b.CreateAdd(own[i], load(counter(number(row), bin)));
    if (has_bins) own[i] = b.CreateSelect(has_bins, own[i], number(0));
    l.when(has_bins, [&] { store(own[i], counter(all, bin)); });
  }
  const XorMap map = element_map(*counts_type.layout, counts_type.shape, std::identity());
  auto read_bins = [&](uint32_t row) {
    Registers out(static_cast<size_t>(num_registers(counts_type)));
    const int64_t begin = shared_offset(op) + static_cast<int64_t>(row) * bins * 4;
    for (uint32_t r = 0; r < out.size(); ++r) out[r] = load(element_address(l, map, r, 0, begin, 4));
    return out;
  };
  if (only_counts) {
    l.barrier();
    l.values[op.result(0)] = Registers(digits.size(), number(0));
    l.values[op.result(1)] = read_bins(warps);
    l.values[op.result(2)] = Registers(l.of(op.result(1)).size(), number(0));
    return {};
  }

  Value* sum = own[0];
  for (uint32_t i = 1; i < each; ++i) sum = b.CreateAdd(sum, own[i]);
  Value* upto = sum;  // of this warp's threads
  for (uint32_t reach = 1; reach < kLanes; reach *= 2) {
    Value* theirs = shuffle_from(b, upto, b.CreateSub(lane, number(reach)));
    upto = b.CreateAdd(upto, b.CreateSelect(b.CreateICmpUGE(lane, number(reach)), theirs, number(0)));
  }
  auto warp_sum = [&](uint32_t w) {
    return l.shared(number(0), shared_offset(op) + (static_cast<int64_t>(warps + 1) * bins + w) * 4);
  };
  const uint32_t summing = std::max(1u, std::min(warps, bins / each / kLanes));  // warps that have bins
  l.when(b.CreateICmpEQ(lane, number(kLanes - 1)), [&] {
    store(upto, l.shared(b.CreateShl(warp, 2), shared_offset(op) + static_cast<int64_t>(warps + 1) * bins * 4));
  });
  l.barrier();
  Value* running = b.CreateSub(upto, sum);
  for (uint32_t w = 0; w + 1 < summing; ++w)
    running = b.CreateAdd(running, b.CreateSelect(b.CreateICmpUGT(warp, number(w)), load(warp_sum(w)), number(0)));
  l.when(has_bins, [&] {
    for (uint32_t i = 0; i < each; ++i)
      for (uint32_t row = 0; row < stretches; ++row) {
        Value* place = counter(number(row), b.CreateAdd(first_bin, number(i)));
        Value* count = load(place);
        store(running, place);
        running = b.CreateAdd(running, count);
      }
  });
  l.barrier();
  Value* row = stretches == warps ? warp : b.CreateAnd(warp, number(stretches - 1));
  Registers places;
  for (size_t r = 0; r < ranks.size(); ++r) {
    Value* digit = packs ? b.CreateLShr(ranks[r], 16) : digits[r];
    Value* rank = packs ? b.CreateAnd(ranks[r], number(0xffff)) : ranks[r];
    Value* base = load(counter(row, b.CreateSelect(inside[r], digit, number(0))));
    // The mask changes nothing, but tells a scatter that no place is outside.
    places.push_back(b.CreateSelect(inside[r], b.CreateAnd(b.CreateAdd(base, rank), number(size - 1)), number(~0u)));
  }
  l.values[op.result(0)] = std::move(places);
  l.values[op.result(1)] = read_bins(warps);
  l.values[op.result(2)] = read_bins(0);
  return {};
}

}  // namespace kiln::lower
