#include "compiler/passes/hopper/limit_products.h"

#include <algorithm>
#include <optional>

#include "compiler/passes/hopper/select_wgmma.h"
#include "compiler/passes/util/rewrite.h"

namespace kiln::passes {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

constexpr int kInstructionDepthBytes = 32;
constexpr int64_t kColumnStep = 16;  // of N, for every type of element

std::optional<int64_t> number_of(const Value* v) {
  const auto bits = constant_of(v);
  if (!bits) return std::nullopt;
  return static_cast<int32_t>(*bits);
}

/// How many elements from the first on of a block's dimension can lie in the tensor, as far as that is known when the
/// kernel is compiled. `offsets`: where those begin among the operands of `access`, a load or store of a block.
int64_t extent(const Op& access, const ir::Shape& block, int dim, size_t offsets) {
  const Op* maker = access.operand(0)->op;
  if (!maker || maker->kind != OpKind::kMakeDescriptor) return block[dim];
  const int of_tensor = dim + maker->result()->type.shape.rank - block.rank;
  const auto size = number_of(maker->operand(1 + of_tensor));
  const auto start = number_of(access.operands[offsets + static_cast<size_t>(of_tensor)]);
  if (!size || !start || *start < 0) return block[dim];
  return std::clamp<int64_t>(*size - *start, 0, block[dim]);
}

/// Of a dimension of an operand.
std::optional<int64_t> extent(const Value* operand, int dim) {
  const BlockOperand from = block_operand(operand);
  if (!from.load) return std::nullopt;
  return extent(*from.load, from.load->result()->type.shape, from.transposed ? 1 - dim : dim, 1);
}

/// Whether columns of `v` from `count` on reach no memory: it goes element by element into stores of blocks alone,
/// whose tensors end there.
bool is_left_out(const Value* v, int64_t count) {
  return ends_in(v, [&](const ir::Use& use) {
    const ir::Shape& shape = v->type.shape;
    return use.op->kind == OpKind::kDescriptorStore && use.index == 1 &&
           extent(*use.op, shape, shape.rank - 1, 2) <= count;
  });
}

int64_t rounded(int64_t count, int64_t step) { return std::max(step, (count + step - 1) / step * step); }

}  // namespace

Status limit_products(ir::Module& module, const target::Target&, Remarks* remarks) {
  ir::walk(module.body(), [&](Op* dot) {
    if (!is_wgmma(dot)) return;
    const ir::Shape &a = dot->operand(0)->type.shape, &c = dot->result()->type.shape;
    const auto left = extent(dot->operand(0), 1), right = extent(dot->operand(1), 0);
    // Both are zero there: beside one alone there might be an infinity.
    const int64_t step = kInstructionDepthBytes / size_of(dot->operand(0)->type.dtype);
    const int64_t depth = left && right ? rounded(std::max(*left, *right), step) : a[1];
    const auto across = extent(dot->operand(1), 1);
    int64_t columns = across ? rounded(*across, kColumnStep) : c[1];
    if (columns < c[1] && !is_left_out(dot->result(), columns)) columns = c[1];
    if (depth < a[1]) dot->set(AttrName::kDepth, depth);
    if (columns < c[1]) dot->set(AttrName::kColumns, columns);
    if (depth < a[1] || columns < c[1])
      remark(remarks, dot->range, Reason::kProductLimited, std::min<int64_t>(depth, a[1]), a[1], columns, c[1]);
  });
  return {};
}

}  // namespace kiln::passes
