#include "compiler/passes/hopper/stage_block_stores.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/layout/algebra.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/passes/util/rewrite.h"
#include "compiler/passes/util/shared_handles.h"
#include "support/diag.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Type;
using ir::Value;

namespace {

constexpr int kWarpGroup = 4;  // warps that wgmma leaves with rows of their own
/// Larger blocks leave in parts, so that more shared memory is left for what is loaded ahead; and smaller ones where
/// blocks of several shapes need a buffer each.
constexpr int64_t kMostStagingBytes = 64 << 10, kMostOfSeveral = 32 << 10;

/// Whether its buffer is there while rings are: not behind the last loop, where no other block of a cluster may still
/// fill these.
bool is_beside_rings(const Op* store, const ir::Module& module) {
  return module.num_ctas > 1 || is_in_loop(store->parent);
}

/// Of a block that leaves in one piece.
int64_t most_bytes(std::span<Op* const> stores, const ir::Module& module) {
  const Op* first = nullptr;
  for (const Op* store : stores) {
    if (!is_beside_rings(store, module)) continue;
    if (first && first->operand(1)->type.shape != store->operand(1)->type.shape) return kMostOfSeveral;
    first = store;
  }
  return kMostStagingBytes;
}

std::vector<Op*> block_stores(ir::Module& module) {
  std::vector<Op*> stores;
  ir::walk(module.body(), [&](Op* op) {
    if (op->kind == OpKind::kDescriptorStore) stores.push_back(op);
  });
  return stores;
}

bool may_halve(const ir::Shape& shape, int dim) { return shape.rank == 2 && shape[dim] >= 2 * layout::kAtomRows; }

/// The dimension along which a block is halved first: -1 where neither is long enough.
int halved_dim(const ir::Shape& shape) { return may_halve(shape, 1) ? 1 : may_halve(shape, 0) ? 0 : -1; }

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

/// Makes two stores of one, each of half the block along `dim`, where every thread holds elements of both halves.
class Halver {
 public:
  explicit Halver(ir::Module& module) : module_(module), b_(module) {}

  /// The two stores; none when no dimension can be halved so, and the store stays as it is.
  std::vector<Op*> halve(Op* store) {
    std::vector<Op*> parts = halve(store, 1);
    return parts.empty() ? halve(store, 0) : parts;
  }

 private:
  std::vector<Op*> halve(Op* store, int dim) {
    Value* whole = store->operand(1);
    const ir::Shape& shape = whole->type.shape;
    if (!may_halve(shape, dim)) return {};
    const int half = shape[dim] / 2;
    const std::vector<int32_t> apart = dim == 0 ? std::vector{2, half, shape[1]} : std::vector{shape[0], 2, half};
    const std::vector<int64_t> order = dim == 0 ? std::vector<int64_t>{1, 2, 0} : std::vector<int64_t>{0, 2, 1};
    const layout::LinearLayout reshaped = layout::reshape(*whole->type.layout, apart),
                               last = layout::transpose(reshaped, order);
    if (!layout::can_split(last)) return {};

    b_.set_before(store);
    b_.set_range(store->range);
    auto tile = [&](const layout::LinearLayout& l) {
      Type t = whole->type;
      t.shape = ir::Shape(l.shape());
      t.layout = module_.intern(l);
      return t;
    };
    Value* v = b_.create1(OpKind::kReshape, {whole}, tile(reshaped));
    v = b_.create1(OpKind::kTrans, {v}, tile(last), {{AttrName::kOrder, order}});
    const Type part = tile(layout::split(last)), parts[] = {part, part};
    const Op* split = b_.create(OpKind::kSplit, std::span(&v, 1), parts);
    Value* descriptor = narrower(store->operand(0), part.shape);
    std::vector<Op*> stores;
    for (int i : {0, 1}) {
      std::vector<Value*> operands = {descriptor, split->results[static_cast<size_t>(i)]};
      operands.insert(operands.end(), store->operands.begin() + 2, store->operands.end());
      const int dropped = ir::dropped_dims(store->operand(0)->type.shape, shape);
      Value*& offset = operands[static_cast<size_t>(dropped + dim) + 2];
      if (i == 1) offset = b_.binary(OpKind::kAdd, offset, b_.constant_int(offset->type, half));
      stores.push_back(b_.create(OpKind::kDescriptorStore, operands, {}, store->attrs));
    }
    Op* made = store->operand(0)->op;
    store->erase();
    if (made->result()->uses.empty()) made->erase();
    return stores;
  }

  /// The descriptor of the same tensor with smaller blocks.
  Value* narrower(const Value* descriptor, const ir::Shape& block) {
    Op* made = descriptor->op;
    KILN_ASSERT(made && made->kind == OpKind::kMakeDescriptor);
    ir::Shape full = descriptor->type.shape;  // with the leading dimensions of 1 that blocks may lack
    for (int d = 0; d < block.rank; ++d) full[full.rank - block.rank + d] = block[d];
    const Type type = ir::descriptor_type(descriptor->type.dtype, full);
    for (Op* next = made->next; next && next->kind == OpKind::kMakeDescriptor; next = next->next)
      if (next->operands == made->operands && next->result()->type == type) return next->result();
    ir::Builder b(module_);
    b.set_after(made);
    b.set_range(made->range);
    return b.create(OpKind::kMakeDescriptor, made->operands, std::span(&type, 1), made->attrs)->result();
  }

  ir::Module& module_;
  ir::Builder b_;
};

class Stager {
 public:
  explicit Stager(ir::Module& module) : module_(module), b_(module) {}

  void run() {
    halve_large();
    const std::vector<Op*> stores = block_stores(module_);
    if (stores.empty()) return;
    // Buffers are shared, so all or none are written and sent by groups of warps without waiting for one another.
    const bool apart = module_.num_warps > kWarpGroup && std::all_of(stores.begin(), stores.end(), [&](const Op* op) {
                         return part_rows(op->operand(1)->type, kWarpGroup, module_.num_warps);
                       });
    if (apart) joined_ = {{AttrName::kWarps, int64_t{kWarpGroup}}};
    std::vector<std::optional<int64_t>> others;
    for (size_t i = 0; i < stores.size(); ++i) others.push_back(stores_since_use(stores, i));
    for (size_t i = 0; i < stores.size(); ++i) stage(stores[i], others[i]);
    // Shared memory must not go away under a copy that still reads it.
    ir::Block* end = module_.body();
    for (Op* op : *end)
      if (op->kind == OpKind::kWarpSpecialize) end = op->region(0);
    b_.set_before(end->terminator());
    wait(0);
  }

 private:
  void halve_large() {
    Halver halver(module_);
    std::vector<Op*> work = block_stores(module_);
    const int64_t most = most_bytes(work, module_);
    while (!work.empty()) {
      Op* store = work.back();
      work.pop_back();
      const Type& t = store->operand(1)->type;
      if (t.shape.numel() * size_of(t.dtype) <= most) continue;
      const std::vector<Op*> parts = halver.halve(store);
      work.insert(work.end(), parts.begin(), parts.end());
    }
  }

  /// How many stores, all with other buffers, come between this one and the last with its buffer; nullopt where it is
  /// the first to have it.
  static std::optional<int64_t> stores_since_use(std::span<Op* const> stores, size_t i) {
    const ir::Block* block = stores[i]->parent;
    const bool together = std::all_of(stores.begin(), stores.end(), [&](const Op* op) { return op->parent == block; });
    if (!together) return 0;
    auto same_buffer = [&](size_t other) { return stores[other]->operand(1)->type == stores[i]->operand(1)->type; };
    const size_t n = stores.size(), before = is_in_loop(block) ? n : i;
    for (size_t back = 1; back <= before; ++back)
      if (same_buffer((i + n - back) % n)) return static_cast<int64_t>(back) - 1;
    return std::nullopt;
  }

  void wait(int64_t count) { b_.create(OpKind::kTmaStoreWait, {}, {}, joined_)->set(AttrName::kCount, count); }
  void barrier() { b_.create(OpKind::kBarrier, {}, {}, joined_); }

  /// The staging buffer of a block, made before everything else.
  Value* buffer_for(const Type& block) {
    const Type type = swizzled_type(module_, block, kRowMajor);
    const auto at = std::find_if(buffers_.begin(), buffers_.end(), [&](const Value* v) { return v->type == type; });
    if (at != buffers_.end()) return *at;
    ir::Builder front(module_);
    front.set_before(module_.body()->first);
    buffers_.push_back(front.create(OpKind::kSharedAlloc, {}, std::span(&type, 1))->result());
    return buffers_.back();
  }

  void stage(Op* op, std::optional<int64_t> stores_since_use) {
    b_.set_before(op);
    b_.set_range(op->range);
    Value* buffer = buffer_for(op->operand(1)->type);
    if (stores_since_use) {  // the last copy has read the buffer, and every writing thread has synchronised with that
      wait(*stores_since_use);
      barrier();
    }
    Value* write[] = {buffer, op->operand(1)};
    b_.create(OpKind::kSharedStore, write, {});
    b_.create(OpKind::kFenceAsync, {}, {});
    barrier();
    std::vector<Value*> operands = {op->operand(0), buffer};
    operands.insert(operands.end(), op->operands.begin() + 2, op->operands.end());
    Op* sent = b_.create(OpKind::kTmaStore, operands, {}, joined_);
    if (const auto rmw = op->find_word<ir::Rmw>()) sent->set(*rmw);
    op->erase();
  }

  ir::Module& module_;
  ir::Builder b_;
  std::vector<Value*> buffers_;
  std::vector<std::pair<AttrName, ir::Attr>> joined_;  // which warps write and send a block together
};

}  // namespace

int64_t staging_bytes_beside_rings(ir::Module& module) {
  const std::vector<Op*> stores = block_stores(module);
  const int64_t most = most_bytes(stores, module);
  std::vector<std::pair<DType, ir::Shape>> blocks;
  int64_t bytes = 0;
  for (const Op* store : stores) {
    if (!is_beside_rings(store, module)) continue;
    const Type& t = store->operand(1)->type;
    ir::Shape shape = t.shape;
    for (int dim; shape.numel() * size_of(t.dtype) > most && (dim = halved_dim(shape)) >= 0;) shape[dim] /= 2;
    if (std::find(blocks.begin(), blocks.end(), std::pair(t.dtype, shape)) != blocks.end()) continue;
    blocks.emplace_back(t.dtype, shape);
    bytes += std::min(shape.numel() * size_of(t.dtype), most);
  }
  return bytes;
}

Status stage_block_stores(ir::Module& module, const target::Target&) {
  Stager(module).run();
  return {};
}

}  // namespace kiln::passes
