// Block pointers: a strided tensor in memory and the place of a block in it. A load or store through one becomes
// pointers and a mask, which the passes take for a block again where the hardware has a way to move one.
#include <algorithm>

#include "compiler/frontend/builtin_impl.h"

namespace kiln::frontend::impl {

using ir::OpKind;
using ir::Shape;

namespace {

/// `v`, one-dimensional, along dimension `d` of a tile of `rank` dimensions.
ir::Value* along(Codegen& g, ir::Value* v, int d, int rank) {
  for (int axis = 0; axis < rank; ++axis)
    if (axis != d) v = g.b.expand_dims(v, axis);
  return v;
}

Status check_order(Codegen& g, const BoundArgs& a, int i, int rank) {
  KILN_TRY(std::vector<int64_t> order, g.ints_arg(a, i));
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = static_cast<int>(order.size()) == rank;
  for (int d = 0; is_permutation && d < rank; ++d) is_permutation = sorted[static_cast<size_t>(d)] == d;
  if (is_permutation) return {};
  return with_note(g.fail(a.at(i), ErrorKind::kValue, "order of tl.make_block_ptr must hold each dimension once"),
                   rank == 1 ? "help: (0,)" : "help: the fastest dimension first; (1, 0) for a matrix of rows");
}

}  // namespace

Result<Value> make_block_ptr(Codegen& g, const BoundArgs& a) {
  enum { kBase, kShape, kStrides, kOffsets, kBlock, kOrder };
  ir::Value* base = a[kBase].tensor();
  if (!base || !base->type.pointer || base->type.is_tile())
    return g.fail(a.at(kBase), ErrorKind::kType, "base of tl.make_block_ptr must be a scalar pointer, got {}",
                  describe(a[kBase]));
  auto result = std::make_shared<BlockPointerValue>();
  KILN_TRY(result->block, g.shape_arg(a, kBlock));
  KILN_TRY(std::vector<ir::Value*> sizes, scalars_arg(g, a, kShape, DType::kI64));
  KILN_TRY(std::vector<ir::Value*> strides, scalars_arg(g, a, kStrides, DType::kI64));
  KILN_TRY(std::vector<ir::Value*> offsets, scalars_arg(g, a, kOffsets, DType::kI32));
  const size_t rank = result->block.rank;
  if (rank < 1 || sizes.size() != rank || strides.size() != rank || offsets.size() != rank)
    return with_note(g.fail(a.range, ErrorKind::kType,
                            "a block pointer of {} sizes, {} strides, {} offsets and a block of {} dimensions",
                            sizes.size(), strides.size(), offsets.size(), rank),
                     "help: shape, strides, offsets and block_shape have one entry for each dimension");
  KILN_CHECK_OK(check_order(g, a, kOrder, static_cast<int>(rank)));
  result->parts.emplace_back(base);
  for (const auto& scalars : {sizes, strides, offsets})
    for (ir::Value* v : scalars) result->parts.emplace_back(v);
  return Value(std::shared_ptr<const BlockPointerValue>(std::move(result)));
}

Result<Value> advance(Codegen& g, const BoundArgs& a) {
  const BlockPointerValue* pointer = a[0].block_pointer();
  if (!pointer)
    return with_note(g.fail(a.at(0), ErrorKind::kType, "tl.advance takes a block pointer, got {}", describe(a[0])),
                     "help: a pointer, or a tensor of pointers, moves on by pointer + offset");
  KILN_TRY(std::vector<ir::Value*> steps, scalars_arg(g, a, 1, DType::kI32));
  const size_t rank = pointer->block.rank;
  if (steps.size() != rank)
    return g.fail(a.at(1), ErrorKind::kType, "{} offsets for a block pointer of {} dimensions", steps.size(), rank);
  std::vector<Value> parts = pointer->parts;
  for (size_t d = 0; d < rank; ++d) {
    Value& offset = parts[parts.size() - rank + d];
    offset = Value(g.b.binary(OpKind::kAdd, offset.tensor(), steps[d]));
  }
  return with_parts(a[0], std::move(parts));
}

Result<BlockAccess> access_block(Codegen& g, const BoundArgs& a, const BlockPointerValue& pointer, int boundary_check) {
  const int rank = pointer.block.rank;
  std::vector<bool> checked(static_cast<size_t>(rank));
  if (a.has(boundary_check)) {
    KILN_TRY(std::vector<int64_t> dims, g.ints_arg(a, boundary_check));
    for (int64_t d : dims) {
      if (d < 0 || d >= rank)
        return g.fail(a.at(boundary_check), ErrorKind::kValue,
                      "boundary_check names dimension {} of a block pointer of {} dimension{}", d, rank,
                      rank == 1 ? "" : "s");
      checked[static_cast<size_t>(d)] = true;
    }
  }
  const Shape& block = pointer.block;
  auto spread = [&](ir::Value* v, int d) { return g.b.broadcast(along(g, v, d, rank), block); };
  BlockAccess out{g.b.splat(pointer.base(), block), nullptr};
  for (int d = 0; d < rank; ++d) {
    const Shape line = {block[d]};
    auto in_line = [&](ir::Value* scalar) { return g.b.splat(scalar, line); };
    // Offsets have 32 bits, addresses 64.
    ir::Value* index =
        g.b.cast(g.b.binary(OpKind::kAdd, in_line(pointer.offset(d)), g.b.arange(0, block[d])), DType::kI64);
    out.pointers = g.b.addptr(out.pointers, spread(g.b.binary(OpKind::kMul, index, in_line(pointer.stride(d))), d));
    if (!checked[static_cast<size_t>(d)]) continue;
    ir::Value* zero = in_line(g.b.constant_int(ir::scalar_type(DType::kI64), 0));
    ir::Value* inside = g.b.binary(OpKind::kAnd, g.b.cmp(ir::Predicate::kGe, index, zero),
                                   g.b.cmp(ir::Predicate::kLt, index, in_line(pointer.size(d))));
    inside = spread(inside, d);
    out.mask = out.mask ? g.b.binary(OpKind::kAnd, out.mask, inside) : inside;
  }
  return out;
}

}  // namespace kiln::frontend::impl
