#include "compiler/passes/hopper/select_wgmma.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/analysis/pointer_origins.h"
#include "compiler/analysis/producer_slice.h"
#include "compiler/analysis/tensor_map.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/transpose_product.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;
using target::GroupMma;
using target::Target;

namespace {

struct Candidate {
  Op* dot;
  const GroupMma* group;
  std::vector<const Op*> loads;  // of the operands that are blocks
  bool swapped;                  // as trans(trans b · trans a)
};

bool has_swizzle(const BlockOperand& operand) {
  const Type& block = operand.load->result()->type;
  return layout::widest_swizzle(block.shape[1], block.element_bits()) != 0;
}

BlockOperand turned(BlockOperand operand) {
  operand.transposed = !operand.transposed;
  return operand;
}

/// Whether a · b can be made of these blocks in shared memory, or with a in registers.
bool fits_memory(const BlockOperand& a, const BlockOperand& b, bool through_registers) {
  if (!has_swizzle(a) || !has_swizzle(b)) return false;
  const Type& left = a.load->result()->type;
  return lies_for_wgmma(b, /*is_b=*/true) &&
         (lies_for_wgmma(a, /*is_b=*/false) || (through_registers && size_of(left.dtype) == 4));
}

/// A wait for other launches that stands where only some programs, or one more than once, come by: a producer would run
/// past it.
bool waits_in_branches(ir::Module& module) {
  bool found = false;
  ir::walk(module.body(), [&](Op* op) { found |= op->kind == OpKind::kGdcWait && op->parent != module.body(); });
  return found;
}

/// Whether a product of warp groups is among what `v` is computed from in its own block.
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

std::vector<Candidate> candidates(ir::Module& module, const Target& target) {
  const analysis::AxisAnalysis axis(module);
  // A tensor that the kernel writes itself must not be read ahead.
  const analysis::PointerOrigins written = analysis::written_origins(module);
  if (written.unknown || waits_in_branches(module)) return {};
  std::vector<Candidate> found;
  std::unordered_set<const Op*> products;
  auto is_block = [&](const BlockOperand& operand) {
    return operand.load && analysis::has_tensor_map(*operand.load->operand(0)->op, axis, /*stored=*/false) &&
           !written.meets(analysis::pointer_origins(operand.load->operand(0)));
  };
  auto take = [&](Candidate c) {
    products.insert(c.dot);
    found.push_back(std::move(c));
  };
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind != OpKind::kDot) return;
    const BlockOperand a = block_operand(op->operand(0)), b = block_operand(op->operand(1));
    if (!is_block(b)) return;
    if (!a.load && op->operand(0)->op) {
      // What warp groups have computed lies in their registers as their next product takes it.
      const GroupMma* group = fitting_group(*op, module.num_warps, target);
      if (group && is_made_of_product(op->operand(0), products) && has_swizzle(b) && lies_for_wgmma(b, /*is_b=*/true))
        take({op, group, {b.load}, /*swapped=*/false});
      return;
    }
    if (!is_block(a)) return;
    // Operands that can stay in shared memory are better than one that takes the way through registers.
    for (bool through_registers : {false, true})
      for (bool swapped : {false, true})
        if (const GroupMma* group = fitting_group(*op, module.num_warps, target, swapped);
            group && fits_memory(swapped ? turned(b) : a, swapped ? turned(a) : b, through_registers)) {
          take({op, group, {a.load, b.load}, swapped});
          return;
        }
  });
  return found;
}

}  // namespace

const GroupMma* fitting_group(const Op& dot, int num_warps, const Target& target, bool swapped) {
  const Type &a = dot.operand(0)->type, &b = dot.operand(1)->type, &c = dot.result()->type;
  const GroupMma* group = target::find_group_mma(target, a.dtype, b.dtype, c.dtype);
  if (!group || a.shape.rank != 2 || num_warps % group->warps != 0) return nullptr;
  const auto precision = dot.find_word<ir::Precision>().value_or(ir::Precision::kTf32);
  if (a.dtype == DType::kF32 && precision != ir::Precision::kTf32) return nullptr;
  // Groups take further rows first, then columns (layout::wgmma_accumulator).
  const int m = c.shape[swapped], n = c.shape[!swapped];
  const int groups = num_warps / group->warps, across = std::max(1, groups * group->rows / m);
  const int columns = n / across;
  const bool fits = m >= group->rows && columns >= group->fewest_columns && columns <= group->most_columns &&
                    a.shape[1] * size_of(a.dtype) >= group->fewest_bytes;
  return fits ? group : nullptr;
}

bool lies_for_wgmma(const BlockOperand& operand, bool is_b) {
  return operand.transposed == is_b || is_half(operand.load->result()->type.dtype);
}

BlockOperand block_operand(const Value* operand) {
  BlockOperand found;
  while (operand->op && operand->uses.size() == 1) {
    if (operand->op->kind == OpKind::kDescriptorLoad) {
      found.load = operand->op;
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

bool takes_registers(const Op* op) { return is_wgmma(op) && !block_operand(op->operand(0)).load; }

bool is_wgmma(const Op* op) {
  return op->kind == OpKind::kDot && target::group_mma(op->text_or(AttrName::kMma, "")) != nullptr;
}

Status select_wgmma(ir::Module& module, const target::Target& target) {
  if (!target::has_group_mma(target) || !has_op(module, OpKind::kDot)) return {};
  for (const Candidate& c : candidates(module, target)) {
    if (!analysis::producer_slice(c.loads).ok()) continue;
    Op* dot = c.swapped ? transpose_product(module, c.dot) : c.dot;
    dot->set(AttrName::kMma, std::string(c.group->name));
  }
  return {};
}

}  // namespace kiln::passes
