#include "compiler/fusion/product_form.h"

#include <algorithm>
#include <numeric>

#include "compiler/fusion/writer.h"
#include "compiler/target/mma.h"
#include "support/tensor_map.h"

namespace kiln::fusion {

namespace {

std::optional<Block> block_of(const Dag& dag, const DagNode& product, size_t i, const target::Target& target) {
  const Operand& o = product.operands[i];
  const DagNode& from = dag.nodes[at(o.node)];
  const size_t batches = at(product.batch_dims);
  const int bytes = size_of(from.dtype);
  auto fills_units = [&](int64_t elements) { return elements * bytes % kTensorMapAlignment == 0; };
  if (o.shape.size() != batches + 2 || !begins_at_unit(from, o.offset)) return std::nullopt;
  Block block{};
  for (size_t d = 0; d < batches; ++d) {
    if (o.shape[d] == 1 || o.strides[d] == 0) continue;
    if (o.strides[d] < 0 || !fills_units(o.strides[d])) return std::nullopt;
    block.batch.push_back(d);
  }
  if (block.batch.size() + 2 > kTensorMapDims) return std::nullopt;
  for (bool transposed : {false, true}) {
    const size_t outer = batches + (transposed ? 1 : 0), inner = batches + (transposed ? 0 : 1);
    if (o.strides[inner] != 1 && o.shape[inner] != 1) continue;
    block.stride = o.shape[outer] == 1 ? kTensorMapAlignment : o.strides[outer];
    block.transposed = transposed;
    const bool lies = (i == 0) != transposed || target::lies_either_way(target, from.dtype);
    if (fills_units(block.stride) && block.stride > 0 && lies) return block;
  }
  return std::nullopt;
}

}  // namespace

bool begins_at_unit(const DagNode& tensor, int64_t offset) {
  const int alignment = tensor.kind == DagKind::kLeaf ? tensor.alignment : kTensorMapAlignment;
  return alignment % kTensorMapAlignment == 0 && offset * size_of(tensor.dtype) % kTensorMapAlignment == 0;
}

bool multiplies_blocks(const DagNode& product, const Machine& machine) {
  const target::Target* t = target::find(machine.target);
  const DType d = product.operand_type;
  const DType sum = d == DType::kI8 ? DType::kI32 : DType::kF32;
  return t && target::find_group_mma(*t, d, d, sum) && (d != DType::kF32 || product.tf32) && numel(product.shape) > 0;
}

std::optional<BlockPair> blocks_of(const Dag& dag, const DagNode& product, const Machine& machine) {
  if (!multiplies_blocks(product, machine)) return std::nullopt;
  const target::Target& target = *target::find(machine.target);
  auto a = block_of(dag, product, 0, target), b = block_of(dag, product, 1, target);
  if (!a || !b) return std::nullopt;
  return BlockPair{*std::move(a), *std::move(b)};
}

ProductSize size_of_product(const DagNode& product, const BlockPair* blocks) {
  ProductSize size{.m = 1, .n = product.shape.back(), .k = product.operands[0].shape.back()};
  for (size_t d = 0; d + 1 < product.shape.size(); ++d)
    (static_cast<int>(d) < product.batch_dims ? size.batch : size.m) *= product.shape[d];
  size.operand_bytes = size_of(product.operand_type);
  size.result_bytes = 0;
  size.splits = static_cast<int>(product.splits);
  auto alignment = [&](const Operand& o, const Block& b) {
    int64_t elements = std::gcd(b.stride, o.offset);
    for (size_t d : b.batch) elements = std::gcd(elements, o.strides[d]);
    return static_cast<int>(std::gcd(elements * size.operand_bytes, int64_t{kLineBytes}));
  };
  if (blocks) {
    size.a_alignment = alignment(product.operands[0], blocks->a);
    size.b_alignment = alignment(product.operands[1], blocks->b);
    size.b_along_n = !blocks->b.transposed;
  }
  return size;
}

ProductSize size_of_twins(const ProductSize& first, const ProductSize& second) {
  ProductSize size = first;
  size.sums = 2;
  size.b_alignment = std::min(first.b_alignment, second.b_alignment);
  size.b_along_n = first.b_along_n || second.b_along_n;
  return size;
}

TileLimits tile_limits(const DagNode& product, const Machine& machine) {
  if (!multiplies_blocks(product, machine)) return {};
  return {.most_ctas = 2, .has_tail = true};
}

DType sum_type(const DagNode& product) {
  const DType d = product.operand_type;
  return d == DType::kF64 ? DType::kF64 : is_int(d) ? DType::kI32 : DType::kF32;
}

bool sums_elements(const DagNode& product) {
  return (product.operand_type == DType::kF32 && !product.tf32) || product.operand_type == DType::kF64;
}

}  // namespace kiln::fusion
