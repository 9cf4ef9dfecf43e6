#include "compiler/ir/block_elements.h"

namespace kiln::ir {

BlockElements block_elements(Builder& b, const Op& descriptor, const Shape& block, std::span<Value* const> offsets) {
  const int rank = descriptor.result()->type.shape.rank, dropped = rank - block.rank;
  /// A scalar or a tile along one dimension, repeated over the block.
  auto over_block = [&](Value* along, int d) {
    if (d < dropped) return b.splat(along, block);
    for (int k = 0; k < block.rank; ++k)
      if (k != d - dropped) along = b.expand_dims(along, k);
    return b.broadcast(along, block);
  };
  BlockElements out{b.splat(descriptor.operand(0), block), nullptr};
  for (int d = 0; d < rank; ++d) {
    Value* size = descriptor.operand(1 + d);
    Value* stride = descriptor.operand(1 + rank + d);
    Value* index = offsets[static_cast<size_t>(d)];
    const Shape along = d < dropped ? Shape{} : Shape{block[d - dropped]};
    auto spread = [&](Value* v) { return along.rank == 0 ? v : b.splat(v, along); };
    if (along.rank > 0 && !index->type.is_tile()) index = b.binary(OpKind::kAdd, spread(index), b.arange(0, along[0]));
    // One unsigned comparison also keeps negative indices out.
    Value* inside = b.cmp(Predicate::kLt, b.cast(index, DType::kU32), spread(b.cast(size, DType::kU32)));
    Value* distance = b.binary(OpKind::kMul, b.cast(index, DType::kI64), spread(stride));
    out.pointers = b.addptr(out.pointers, over_block(distance, d));
    inside = over_block(inside, d);
    out.inside = out.inside ? b.binary(OpKind::kAnd, out.inside, inside) : inside;
  }
  return out;
}

}  // namespace kiln::ir
