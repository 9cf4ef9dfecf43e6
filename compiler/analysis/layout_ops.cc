#include "compiler/analysis/layout_ops.h"

#include <algorithm>
#include <bit>

#include "compiler/layout/convert_plan.h"
#include "support/diag.h"

namespace kiln::analysis {

using ir::AttrName;
using ir::Op;
using ir::OpKind;
using layout::Coord;
using layout::In;
using layout::LinearLayout;

namespace {

constexpr In kThreadIns[] = {In::kRegister, In::kLane, In::kWarp, In::kBlock};

const std::vector<int64_t>& order_of(const Op& op) {
  return std::get<std::vector<int64_t>>(*op.find(AttrName::kOrder));
}

/// The result's layout seen from the operand's tile, register by register (none dropped): basis by basis the element of
/// the operand that the result's element is made of.
LinearLayout seen_from_operand(const Op& op, const LinearLayout& result) {
  auto shape = op.operand(0)->type.shape.span();
  int axis = op.kind == OpKind::kExpandDims ? static_cast<int>(op.int_attr(AttrName::kAxis)) : -1;
  LinearLayout seen(shape);
  for (In in : kThreadIns)
    for (const Coord& basis : result.bases(in)) {
      Coord c;
      switch (op.kind) {
        case OpKind::kReshape:
          c = layout::coord_of(shape, layout::index_of(result.shape(), basis));
          break;
        case OpKind::kTrans:
          for (size_t d = 0; d < shape.size(); ++d) c[static_cast<int>(order_of(op)[d])] = basis[static_cast<int>(d)];
          break;
        case OpKind::kExpandDims:
          for (int d = 0; d < static_cast<int>(shape.size()); ++d) c[d] = basis[d < axis ? d : d + 1];
          break;
        case OpKind::kBroadcast:
          for (int d = 0; d < static_cast<int>(shape.size()); ++d)
            c[d] = shape[static_cast<size_t>(d)] == 1 ? 0 : basis[d];
          break;
        default:  // join and split: the common dimensions
          for (int d = 0; d < static_cast<int>(shape.size()) && d < result.rank(); ++d) c[d] = basis[d];
      }
      seen.push(in, c);
    }
  return seen;
}

}  // namespace

std::vector<OperandRegister> source_registers(const Op& op, int index) {
  const LinearLayout& result = *op.result(index)->type.layout;
  const LinearLayout& operand = *op.operand(0)->type.layout;
  std::vector<int> registers = layout::match_registers(operand, seen_from_operand(op, result));
  std::vector<OperandRegister> sources;
  for (int reg : registers) sources.push_back({0, reg});
  int last = result.rank() - 1;
  if (op.kind == OpKind::kJoin) {
    for (size_t i = 0; i < result.bases(In::kLane).size(); ++i)
      if (result.bases(In::kLane)[i][last] != 0) return {};
    for (size_t i = 0; i < result.bases(In::kWarp).size(); ++i)
      if (result.bases(In::kWarp)[i][last] != 0) return {};
    for (size_t r = 0; r < sources.size(); ++r)
      sources[r].operand = result.apply(In::kRegister, static_cast<uint32_t>(r))[last];
  }
  if (op.kind == OpKind::kSplit) {
    // match_registers found result 0's elements; result 1's differ by the register bit of the last dimension.
    if (!layout::can_split(operand)) return {};
    auto bases = operand.bases(In::kRegister);
    for (size_t bit = 0; index == 1 && bit < bases.size(); ++bit)
      if (bases[bit][operand.rank() - 1] != 0)
        for (OperandRegister& s : sources) s.reg ^= 1 << bit;
  }
  return sources;
}

std::optional<LinearLayout> operand_layout(const Op& op, int index, const LinearLayout& result) {
  if (ir::is_elementwise(&op) || op.kind == OpKind::kScan || op.kind == OpKind::kScatter) return result;
  if (op.operands.empty() || op.operand(index)->type.is_scalar()) return std::nullopt;
  auto shape = op.operand(index)->type.shape.span();
  if (op.kind == OpKind::kExpandDims) return layout::slice(result, static_cast<int>(op.int_attr(AttrName::kAxis)));
  if (op.kind == OpKind::kBroadcast) return layout::broadcast_operand(result, shape);
  if (op.kind == OpKind::kReshape) return layout::reshape(result, shape);
  if (op.kind == OpKind::kTrans) {
    std::vector<int64_t> inverse(order_of(op).size());
    for (size_t d = 0; d < inverse.size(); ++d) inverse[static_cast<size_t>(order_of(op)[d])] = static_cast<int64_t>(d);
    return layout::transpose(result, inverse);
  }
  if (op.kind == OpKind::kJoin && layout::can_split(result)) return layout::split(result);
  if (op.kind == OpKind::kSplit) return layout::join(result);
  return std::nullopt;
}

std::optional<LinearLayout> result_layout(const Op& op, const LinearLayout& operand) {
  if (ir::is_elementwise(&op) || op.kind == OpKind::kScan || op.kind == OpKind::kScatter) return operand;
  if (op.kind == OpKind::kExpandDims)
    return layout::expand_dims(operand, static_cast<int>(op.int_attr(AttrName::kAxis)));
  if (op.kind == OpKind::kBroadcast) return layout::broadcast(operand, op.result()->type.shape.span());
  if (op.kind == OpKind::kReshape) return layout::reshape(operand, op.result()->type.shape.span());
  if (op.kind == OpKind::kTrans) return layout::transpose(operand, order_of(op));
  if (op.kind == OpKind::kJoin) return layout::join(operand);
  if (op.kind == OpKind::kSplit && layout::can_split(operand)) return layout::split(operand);
  if (op.kind == OpKind::kReduce) return layout::slice(operand, static_cast<int>(op.int_attr(AttrName::kAxis)));
  return std::nullopt;
}

}  // namespace kiln::analysis
