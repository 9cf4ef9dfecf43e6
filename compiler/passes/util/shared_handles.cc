#include "compiler/passes/util/shared_handles.h"

#include <algorithm>
#include <vector>

#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"

namespace kiln::passes {

using ir::AttrName;
using ir::OpKind;
using ir::Type;
using ir::Value;

Type swizzled_type(ir::Module& module, const Type& tile, std::span<const int> order, int copies) {
  const int bits = tile.element_bits(), swizzle = layout::widest_swizzle(tile.shape[order[0]], bits);
  return ir::shared_type(tile.dtype, tile.shape,
                         module.intern(layout::swizzled(tile.shape.span(), bits, swizzle, order)), copies);
}

Type rows_type(ir::Module& module, const Type& tile, std::span<const int> order, int copies) {
  layout::LinearLayout rows(tile.shape.span());
  for (const int dim : order)
    for (int32_t step = 1; step < tile.shape[dim]; step *= 2) {
      layout::Coord basis;
      basis[dim] = step;
      rows.push(layout::In::kOffset, basis);
    }
  return ir::shared_type(tile.dtype, tile.shape, module.intern(rows), copies);
}

int dim_of_neighbours(const layout::LinearLayout& layout) {
  for (const layout::In in : {layout::In::kRegister, layout::In::kLane})
    for (const layout::Coord& basis : layout.bases(in))
      for (const int d : {0, 1})
        if (basis[d] == 1) return d;
  return 1;
}

Value* view(ir::Builder& b, Value* handle, Value* slot) {
  Type one = handle->type;
  one.copies = 1;
  return b.create1(OpKind::kSharedView, {handle, slot}, one);
}

Value* transposed(ir::Builder& b, Value* handle, std::span<const int64_t> order) {
  Type type = handle->type;
  for (size_t i = 0; i < order.size(); ++i)
    type.shape[static_cast<int>(i)] = handle->type.shape[static_cast<int>(order[i])];
  type.layout = b.module().intern(layout::transpose(*handle->type.layout, order));
  return b.create1(OpKind::kSharedTrans, {handle}, type,
                   {{AttrName::kOrder, std::vector<int64_t>(order.begin(), order.end())}});
}

bool warps_share(const ir::Type& tile) {
  const auto warps = tile.layout->bases(layout::In::kWarp);
  return std::find(warps.begin(), warps.end(), layout::Coord{}) != warps.end();
}

ir::Op* join_lanes(ir::Builder& b, bool of_all_warps) {
  std::vector<std::pair<ir::AttrName, ir::Attr>> joined;
  if (!of_all_warps) joined.emplace_back(ir::AttrName::kWarps, int64_t{1});
  return b.create(ir::OpKind::kBarrier, {}, {}, std::move(joined));
}

Value* warp_group_product(ir::Builder& b, const ir::Op& dot, std::span<Value* const> sides) {
  Value* product = b.create1(ir::OpKind::kWgmma, {sides[0], sides[1], dot.operand(2)}, dot.result()->type);
  for (const ir::AttrName limit : {ir::AttrName::kDepth, ir::AttrName::kColumns})
    if (const ir::Attr* value = dot.find(limit)) product->op->set(limit, *value);
  return product;
}

NextSlot next_slot(ir::Builder& b, Value* slot, int slots) {
  const Type i32 = ir::scalar_type(DType::kI32);
  Value* next = b.binary(OpKind::kAdd, slot, b.constant_int(i32, 1));
  Value* wraps = b.cmp(ir::Predicate::kEq, next, b.constant_int(i32, slots));
  return {b.select(wraps, b.constant_int(i32, 0), next), wraps};
}

}  // namespace kiln::passes
