#include "compiler/fusion/place_range.h"

#include <algorithm>
#include <cmath>

namespace kiln::fusion {

namespace {

using Ranges = std::vector<Range>;

/// What can be computed in a type without a change. Rounding to float32 is monotonic, so bounds are rounded as values
/// are; integers that would wrap are unknown.
std::optional<Range> in_type(Range r, DType type) {
  if (type == DType::kF32) return Range{static_cast<float>(r.low), static_cast<float>(r.high)};
  if (type == DType::kF64) return r;
  if (!is_int(type) || type == DType::kI1) return std::nullopt;
  const double most = std::ldexp(1.0, std::min(bits(type), 53) - (is_signed(type) ? 1 : 0));
  if (r.high >= most || r.low < (is_signed(type) ? -most : 0)) return std::nullopt;
  return r;
}

std::optional<Range> of_op(ExprOp op, const Ranges& in, DType type) {
  const Range &a = in[0], &b = in.size() > 1 ? in[1] : in[0];
  const bool fixed = b.low == b.high;
  switch (op) {
    case ExprOp::kCast:
      return is_int(type) ? Range{std::trunc(a.low), std::trunc(a.high)} : a;
    case ExprOp::kFloor:
      return Range{std::floor(a.low), std::floor(a.high)};
    case ExprOp::kAdd:
      return Range{a.low + b.low, a.high + b.high};
    case ExprOp::kSub:
      return Range{a.low - b.high, a.high - b.low};
    case ExprOp::kMul: {
      const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
      return Range{low, high};
    }
    case ExprOp::kMinimum:
      return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
    case ExprOp::kMaximum:
      return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
    case ExprOp::kClamp:
      return Range{std::min(std::max(a.low, b.low), in[2].low), std::min(std::max(a.high, b.high), in[2].high)};
    case ExprOp::kShr:
      if (!fixed || b.low < 0 || b.low > 62) return std::nullopt;
      return Range{std::floor(std::ldexp(a.low, -static_cast<int>(b.low))),
                   std::floor(std::ldexp(a.high, -static_cast<int>(b.low)))};
    case ExprOp::kFloorDiv:
      if (!fixed || b.low <= 0 || !is_int(type)) return std::nullopt;
      return Range{std::floor(a.low / b.low), std::floor(a.high / b.low)};
    case ExprOp::kMod:
      if (!fixed || b.low <= 0 || !is_int(type)) return std::nullopt;
      return Range{0, b.low - 1};
    case ExprOp::kWhere:
      return Range{std::min(in[1].low, in[2].low), std::max(in[1].high, in[2].high)};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Range> range_of(const Dag& dag, const Operand& o) {
  if (o.is_number()) {
    if (!o.is_literal()) return std::nullopt;
    const double v = std::visit([](auto x) { return static_cast<double>(x); }, o.number);
    return Range{v, v};
  }
  const DagNode& n = dag.nodes[at(o.node)];
  if (n.counts) {
    Range r{static_cast<double>(o.offset), static_cast<double>(o.offset)};
    for (size_t d = 0; d < o.shape.size(); ++d) {
      const double last = static_cast<double>(o.strides[d]) * static_cast<double>(std::max<int64_t>(o.shape[d] - 1, 0));
      (last < 0 ? r.low : r.high) += last;
    }
    return r;
  }
  if (n.kind != DagKind::kPointwise || n.op == ExprOp::kTake || n.op == ExprOp::kCall) return std::nullopt;
  Ranges in;
  for (size_t k = 0; k < n.operands.size(); ++k) {
    if (n.op == ExprOp::kWhere && k == 0) {
      in.push_back({0, 1});  // either
      continue;
    }
    auto r = range_of(dag, n.operands[k]);
    if (r && n.op != ExprOp::kCast) r = in_type(*r, n.operands[k].is_number() ? n.number_type : n.operand_type);
    if (!r) return std::nullopt;
    in.push_back(*r);
  }
  if (in.empty()) return std::nullopt;
  const DType type = n.op == ExprOp::kCast ? n.dtype : n.operand_type;
  auto r = of_op(n.op, in, type);
  if (r) r = in_type(*r, type);
  return r && n.dtype != type ? in_type(*r, n.dtype) : r;
}

}  // namespace kiln::fusion
