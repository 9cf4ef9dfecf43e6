#include "compiler/passes/hopper/select_block_loads.h"

#include <algorithm>
#include <map>
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/analysis/producer_slice.h"
#include "compiler/analysis/tensor_map.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/hopper/specialize_warps.h"
#include "compiler/passes/hopper/stage_block_stores.h"
#include "compiler/passes/util/rewrite.h"
#include "support/tensor_map.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int64_t kReserve = 8 << 10;          // of shared memory, for barriers and the scratch of conversions
constexpr int64_t kLongStageBytes = 56 << 10;  // two of these hide the memory's latency, of shorter ones three

/// Whether the load brings a vector, such as the statistics of rows, in a block of code whose products take slots: it
/// then lies in the slot beside their operands, where any layout can read it. A copy of a single row whose first
/// element is not at a multiple of 16 bytes ends in an illegal instruction (H200, driver 580).
bool is_vector_of_slot(const Op& load, const std::unordered_set<const ir::Block*>& blocks,
                       const analysis::AxisAnalysis& axis) {
  constexpr int64_t kUnit = 128;  // of shared memory, that copies begin at
  const ir::Type& type = load.result()->type;
  return type.shape.rank == 1 &&
         axis.of(load.operands.back()).divisibility[0] * size_of(type.dtype) % kTensorMapAlignment == 0 &&
         type.element_bits() >= 8 && type.shape.numel() * size_of(type.dtype) % kUnit == 0 &&
         type.shape[0] <= layout::kMaxTmaBox && blocks.contains(load.parent);
}

}  // namespace

LoadsBesideProducts::LoadsBesideProducts(ir::Module& module, std::span<Op* const> dots, const target::Target& target)
    : written_(analysis::written_origins(module)), waits_(waiting_loops(module)) {
  std::map<const ir::Block*, std::vector<const Op*>> of_block;  // loads of operands
  std::vector<const Value*> work;
  for (const Op* dot : dots) {
    work.push_back(dot->result());
    blocks_.insert(dot->parent);
    for (int i : {0, 1})
      if (const Op* load = load_of(dot->operand(i))) {
        std::vector<const Op*>& loads = of_block[load->parent];
        if (std::find(loads.begin(), loads.end(), load) == loads.end()) loads.push_back(load);
      }
  }
  room_ = target.shared_per_block - kReserve - staging_bytes_beside_rings(module);
  for (const auto& [block, loads] : of_block) {
    const int64_t stage = slot_bytes(loads);
    room_ -= stage * (is_in_loop(block) ? std::min<int64_t>(module.num_stages, stage < kLongStageBytes ? 3 : 2) : 1);
    blocks_.insert(block);
  }
  while (!work.empty()) {
    const Value* v = work.back();
    work.pop_back();
    if (!made_.insert(v).second) continue;
    for (const ir::Use& use : v->uses)
      for (const Value* next : carried_on(use)) work.push_back(next);
  }
}

bool LoadsBesideProducts::may_be_written(const Op& load) const {
  return written_.unknown || wait_before(load, waits_) || written_.meets(analysis::pointer_origins(load.operand(0)));
}

bool LoadsBesideProducts::meets_product(const Value* tile) const {
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> work = {tile};
  while (!work.empty()) {
    const Value* v = work.back();
    work.pop_back();
    if (!seen.insert(v).second) continue;
    for (const ir::Use& use : v->uses) {
      if (!ir::is_pure(use.op) || !ir::is_elementwise(use.op)) continue;
      if (std::any_of(use.op->operands.begin(), use.op->operands.end(), [&](auto* o) { return made_.contains(o); }))
        return true;
      work.insert(work.end(), use.op->results.begin(), use.op->results.end());
    }
  }
  return false;
}

LoadsBesideProducts::Answer LoadsBesideProducts::take(const Op& load) {
  const ir::Type& tile = load.result()->type;
  if (tile.shape.rank != 2 || tile.pointer || tile.element_bits() < 8 || blocks_.contains(load.parent)) return kNo;
  if (layout::widest_swizzle(tile.shape[1], tile.element_bits()) == 0 || !meets_product(load.result())) return kNo;
  if (may_be_written(load)) return kNo;
  const Op* alone[] = {&load};
  const int64_t bytes = slot_bytes(alone);
  if (bytes > room_) return kNoRoom;
  room_ -= bytes;
  return kTaken;
}

Status select_block_loads(ir::Module& module, const target::Target& target, Remarks* remarks) {
  std::vector<Op*> dots, loads;
  ir::walk(module.body(), [&](Op* op) {
    if (is_wgmma(op) && !is_staged(op)) dots.push_back(op);
    if (op->kind == OpKind::kDescriptorLoad) loads.push_back(op);
  });
  if (dots.empty() || loads.empty()) return {};
  std::unordered_set<const ir::Block*> slots;  // blocks of code that take them
  for (const Op* dot : dots)
    for (int i : {0, 1})
      if (const Op* load = slot_load(dot, i)) slots.insert(load->parent);
  const analysis::AxisAnalysis axis(module);
  LoadsBesideProducts beside(module, dots, target);
  for (Op* load : loads) {
    const Op* alone[] = {load};
    if (only_feeds_dots(load->result()) || !analysis::has_tensor_map(*load->operand(0)->op, axis, /*stored=*/false) ||
        !analysis::producer_slice(alone).ok())
      continue;
    if (module.num_ctas == 1 && is_vector_of_slot(*load, slots, axis)) {
      if (beside.may_be_written(*load)) continue;
      load->set(AttrName::kAhead, true);
      remark(remarks, load->range, Reason::kVectorByTma, slot_bytes(alone));
      continue;
    }
    switch (beside.take(*load)) {
      case LoadsBesideProducts::kTaken:
        load->set(AttrName::kAhead, true);
        remark(remarks, load->range, Reason::kTileByTma, slot_bytes(alone));
        break;
      case LoadsBesideProducts::kNoRoom:
        remark(remarks, load->range, Reason::kTileNeedsRoom, slot_bytes(alone), std::max<int64_t>(0, beside.room()));
        break;
      case LoadsBesideProducts::kNo:
        break;
    }
  }
  return {};
}

bool is_ahead(const Op* op) { return op->kind == OpKind::kDescriptorLoad && op->flag(AttrName::kAhead); }

}  // namespace kiln::passes
