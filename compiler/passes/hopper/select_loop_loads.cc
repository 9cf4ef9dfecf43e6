#include "compiler/passes/hopper/select_loop_loads.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/tensor_map.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/specialize_warps.h"
#include "compiler/passes/util/loop_slice.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;

namespace {

constexpr int64_t kBesideRings = 8 << 10;  // of shared memory, for barriers and the scratch of conversions

/// A block that products read, and as which operands.
struct OperandBlock {
  Op* load = nullptr;
  struct Reader {
    const Op* dot;
    int operand;
    bool transposed;
  };
  std::vector<Reader> readers;
};

/// The loads of all operands of staged products, in the order of the code.
std::vector<OperandBlock> blocks_of(ir::Module& module) {
  std::vector<OperandBlock> blocks;
  ir::walk(module.body(), [&](const Op* op) {
    if (!is_staged(op)) return;
    for (int i : {0, 1}) {
      const BlockOperand operand = block_operand(op->operand(i));
      if (!operand.load) continue;
      auto at = std::ranges::find(blocks, operand.load, &OperandBlock::load);
      if (at == blocks.end()) at = blocks.insert(at, {operand.load, {}});
      at->readers.push_back({op, i, operand.transposed});
    }
  });
  return blocks;
}

/// How many operands of products are views of `v`.
size_t operands_of(const ir::Value* v) {
  size_t count = 0;
  for (const ir::Use& use : v->uses) count += use.op->kind == OpKind::kDot ? 1 : operands_of(use.op->result());
  return count;
}

bool is_read_as_block(const OperandBlock& block, const target::Target& target) {
  const ir::Type& type = block.load->result()->type;
  return type.shape.rank == 2 && layout::widest_swizzle(type.shape[1], type.element_bits()) != 0 &&
         block.readers.size() == operands_of(block.load->result()) &&
         std::ranges::all_of(block.readers, [&](const OperandBlock::Reader& r) {
           return r.dot->parent == block.load->parent && is_staged(r.dot, r.operand) &&
                  lies_for_wgmma({block.load, r.transposed}, /*is_b=*/r.operand == 1, target);
         });
}

/// Whether the loop can ask for the block iterations ahead: it knows where that is, and writes nothing there.
bool can_run_ahead(const OperandBlock& block, const Op* loop) {
  const auto stored = stored_origins(loop);
  if (!stored || stored->meets(analysis::pointer_origins(block.load->operand(0)))) return false;
  LoopSlice slice(loop->region(), &*stored);
  return std::all_of(block.load->operands.begin() + 1, block.load->operands.end(),
                     [&](const ir::Value* offset) { return slice.add(offset); });
}

/// Whether iterations of the loop around a descriptor can differ in it, or it is made of more than scalars without
/// effects.
bool varies(const Op& maker) {
  LoopSlice made_of(maker.parent);
  return !std::ranges::all_of(maker.operands, [&](const ir::Value* v) { return made_of.add(v); }) || made_of.varies();
}

void move_before(Op* loop, Op* op) {
  if (!encloses(loop, op->parent)) return;
  for (const ir::Value* operand : op->operands)
    if (operand->op) move_before(loop, operand->op);
  op->unlink();
  loop->parent->insert_before(loop, op);
}

/// A descriptor is made where it is used; it goes out of the loops around that do not change it.
void hoist(Op* maker) {
  for (Op* around = maker->parent->parent; around; around = maker->parent->parent) {
    const bool is_loop = around->kind == OpKind::kFor || around->kind == OpKind::kWhile;
    if (!is_loop || varies(*maker)) return;
    move_before(around, maker);
  }
}

}  // namespace

void select_loop_loads(ir::Module& module, const target::Target& target, Remarks* remarks) {
  if (!target.has(target::kTma) || module.num_ctas > 1) return;
  const std::vector<OperandBlock> blocks = blocks_of(module);
  if (blocks.empty()) return;
  const analysis::AxisAnalysis axis(module);
  std::map<const Op*, std::vector<const Op*>> of_loop;
  std::vector<Op*> chosen;
  for (const OperandBlock& block : blocks) {
    const Op *loop = block.load->parent->parent, *maker = block.load->operand(0)->op;
    if (!loop || loop->kind != OpKind::kFor || stages_of(loop, module) < 2) continue;
    if (!maker || maker->kind != OpKind::kMakeDescriptor || (encloses(loop, maker->parent) && varies(*maker))) continue;
    if (!analysis::has_tensor_map(*maker, axis, /*stored=*/false) && !analysis::can_make_tensor_map(*maker, axis))
      continue;
    if (!is_read_as_block(block, target) || !can_run_ahead(block, loop)) continue;
    of_loop[loop].push_back(block.load);
    chosen.push_back(block.load);
  }
  for (Op* load : chosen) {
    constexpr int64_t kLeastSlots = 2;
    const int64_t bytes = kLeastSlots * slot_bytes(of_loop.at(load->parent->parent));
    const int64_t room = target.shared_per_block - kBesideRings;
    if (bytes > room) {
      remark(remarks, load->range, Reason::kTileNeedsRoom, bytes, room);
      continue;
    }
    load->set(AttrName::kInLoop, true);
    remark(remarks, load->range, Reason::kBlockByLoop);
    Op* maker = load->operand(0)->op;
    if (analysis::has_tensor_map(*maker, axis, /*stored=*/false) || maker->flag(AttrName::kOnDevice)) continue;
    maker->set(AttrName::kOnDevice, true);
    hoist(maker);
    remark(remarks, maker->range, Reason::kMapOnDevice);
  }
}

bool is_in_loop_ring(const Op* op) { return op->kind == OpKind::kDescriptorLoad && op->flag(AttrName::kInLoop); }

}  // namespace kiln::passes
