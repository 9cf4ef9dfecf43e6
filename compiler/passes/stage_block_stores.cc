#include "compiler/passes/stage_block_stores.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/layout/tensor_core.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

constexpr int kWarpGroup = 4;  // warps that wgmma leaves with rows of their own

layout::Coord only_rows(int rows) {
  layout::Coord c;
  c[0] = rows;
  return c;
}

/// True when each `warps` neighbouring warps hold the rows, and only those, of one equal part of the tile.
bool part_rows(const Type& tile, int warps, int num_warps) {
  const int rows = tile.shape[0] / (num_warps / warps), first_bit = layout::log2_exact(warps);
  if (rows < layout::kAtomRows) return false;
  for (layout::In in : {layout::In::kRegister, layout::In::kLane, layout::In::kWarp}) {
    const auto bases = tile.layout->bases(in);
    for (size_t bit = 0; bit < bases.size(); ++bit) {
      const int above = in == layout::In::kWarp ? static_cast<int>(bit) - first_bit : -1;
      if (above < 0 ? bases[bit][0] >= rows : bases[bit] != only_rows(rows << above)) return false;
    }
  }
  return true;
}

class Stager {
 public:
  explicit Stager(ir::Module& module) : module_(module), b_(module) {}

  void run() {
    std::vector<Op*> stores;
    ir::walk(module_.body(), [&](Op* op) {
      if (op->kind == OpKind::kDescriptorStore) stores.push_back(op);
    });
    if (stores.empty()) return;
    // Buffers are shared, so all or none are written and sent by groups of warps without waiting for one another.
    const bool apart = module_.num_warps > kWarpGroup && std::all_of(stores.begin(), stores.end(), [&](const Op* op) {
                         return part_rows(op->operand(1)->type, kWarpGroup, module_.num_warps);
                       });
    if (apart) joined_ = {{AttrName::kWarps, int64_t{kWarpGroup}}};
    for (Op* op : stores) stage(op);
    // Shared memory must not go away under a copy that still reads it.
    ir::Block* end = module_.body();
    for (Op* op : *end)
      if (op->kind == OpKind::kWarpSpecialize) end = op->region(0);
    b_.set_before(end->terminator());
    wait();
  }

 private:
  void wait() { b_.create(OpKind::kTmaStoreWait, {}, {}, joined_)->set(AttrName::kCount, int64_t{0}); }
  void barrier() { b_.create(OpKind::kBarrier, {}, {}, joined_); }

  /// The staging buffer of a block, made before everything else.
  Value* buffer_for(const Type& block) {
    constexpr int kOrder[] = {1, 0};
    const int element_bits = block.element_bits();
    const int swizzle = layout::widest_swizzle(block.shape[1], element_bits);
    const Type type = ir::shared_type(
        block.dtype, block.shape, module_.intern(layout::swizzled(block.shape.span(), element_bits, swizzle, kOrder)));
    const auto at = std::find_if(buffers_.begin(), buffers_.end(), [&](const Value* v) { return v->type == type; });
    if (at != buffers_.end()) return *at;
    ir::Builder front(module_);
    front.set_before(module_.body()->first);
    buffers_.push_back(front.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result());
    return buffers_.back();
  }

  void stage(Op* op) {
    b_.set_before(op);
    b_.set_range(op->range);
    Value* buffer = buffer_for(op->operand(1)->type);
    // The copy before has read the buffer, and all who write know.
    wait();
    barrier();
    Value* write[] = {buffer, op->operand(1)};
    b_.create(OpKind::kSharedStore, write, {});
    b_.create(OpKind::kFenceAsync, {}, {});
    barrier();
    std::vector<Value*> operands = {op->operand(0), buffer};
    operands.insert(operands.end(), op->operands.begin() + 2, op->operands.end());
    b_.create(OpKind::kTmaStore, operands, {}, joined_);
    op->erase();
  }

  ir::Module& module_;
  ir::Builder b_;
  std::vector<Value*> buffers_;
  std::vector<std::pair<AttrName, ir::Attr>> joined_;  // which warps write and send a block together
};

}  // namespace

Status stage_block_stores(ir::Module& module, const target::Target&) {
  Stager(module).run();
  return {};
}

}  // namespace kiln::passes
