#include "compiler/analysis/dot_layouts.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "compiler/target/mma.h"
#include "support/diag.h"

namespace kiln::analysis {

using ir::Op;
using ir::OpKind;
using ir::Value;
using layout::LinearLayout;

namespace {

constexpr int kLanes = 32;
constexpr int32_t kRows = 16, kColumns = 8;       // of an instruction's accumulator
constexpr int32_t kOwnColumns = 4, kOwnRows = 4;  // of a thread that computes element by element
constexpr int32_t kLanesAlongColumns = 8;

/// Whether the result gets into the left operand of another dot without passing through memory or a loop: its rows
/// should stay in one warp then, and the next product finds them in registers.
bool feeds_dot(const Value* v, std::unordered_set<const Value*>& seen) {
  if (!seen.insert(v).second) return false;
  for (const ir::Use& use : v->uses) {
    if (use.op->kind == OpKind::kDot) {
      if (use.index == 0) return true;
      if (use.index == 1) continue;
    } else if (!ir::is_pure(use.op) || use.op->kind == OpKind::kReduce) {
      continue;
    }
    for (const Value* r : use.op->results)
      if (feeds_dot(r, seen)) return true;
  }
  return false;
}

/// Warps along each dimension: over the batch first, then so that a warp's block is done in few instructions and is
/// nearly square, which asks for the fewest operands; of two such ways the one in which no two warps hold, and compute,
/// the same of a second operand that is computed while the first is loaded.
std::vector<int32_t> split_warps(const Op& dot, int num_warps) {
  const ir::Shape& shape = dot.result()->type.shape;
  std::vector<int32_t> warps(shape.rank, 1);
  int32_t left = num_warps;
  for (int d = 0; d + 2 < shape.rank; ++d) {
    warps[static_cast<size_t>(d)] = std::min(left, shape[d]);
    left /= warps[static_cast<size_t>(d)];
  }
  const int32_t m = shape[shape.rank - 2], n = shape[shape.rank - 1];
  std::unordered_set<const Value*> seen;
  const bool keep_rows = feeds_dot(dot.result(), seen);
  const bool split_columns = is_computed(dot.operand(1)) && !is_computed(dot.operand(0));
  std::tuple<int64_t, int64_t, int64_t> best{};
  for (int32_t along_m = left; along_m >= 1; along_m /= 2) {
    const int64_t rows = std::max(kRows, m / along_m), columns = std::max(kColumns, n / (left / along_m));
    const std::tuple<int64_t, int64_t, int64_t> cost{rows * columns, keep_rows ? 0 : rows + columns,
                                                     !keep_rows && split_columns ? along_m : 0};
    if (along_m != left && cost >= best) continue;
    best = cost;
    warps[static_cast<size_t>(shape.rank - 2)] = along_m;
    warps[static_cast<size_t>(shape.rank - 1)] = left / along_m;
  }
  return warps;
}

/// The same with two neighbouring lanes in two rows of the same columns. Shared memory gives half a warp 16 bytes each
/// at once where each lane asks for what the next one, or the one behind that, asks for too, and a quarter of it
/// elsewhere: so columns come in two rounds, not four, as rows do.
LinearLayout with_lanes_in_pairs(const LinearLayout& from, int rows) {
  LinearLayout to(from.shape());
  const auto lanes = from.bases(layout::In::kLane);
  const auto of_row = std::find_if(lanes.begin(), lanes.end(), [&](const layout::Coord& c) { return c[rows] != 0; });
  KILN_ASSERT(of_row != lanes.end());
  to.push(layout::In::kLane, *of_row);
  for (auto lane = lanes.begin(); lane != lanes.end(); ++lane)
    if (lane != of_row) to.push(layout::In::kLane, *lane);
  for (const layout::In in : {layout::In::kRegister, layout::In::kWarp})
    for (const layout::Coord& basis : from.bases(in)) to.push(in, basis);
  return to;
}

/// A thread's rows and columns lie side by side where an operand does, so that it reads several at once. Of an operand
/// that lies along k it reads several steps of k at once, and then neighbouring lanes take neighbouring rows: the
/// swizzle of shared memory keeps those in different banks, but not each fourth row.
LinearLayout element_layout(const ir::Shape& shape, int num_warps, AlongK along_k) {
  const size_t rank = shape.rank, m = rank - 2, n = rank - 1;
  std::vector<int32_t> own(rank, 1), lanes(rank, 1), warps(rank, 1);
  std::vector<int> order;
  for (size_t d = rank; d-- > 0;) order.push_back(static_cast<int>(d));
  const auto share = static_cast<int32_t>(std::max<int64_t>(1, shape.numel() / (kLanes * num_warps)));
  own[n] = std::min({kOwnColumns, shape.dims[n], share});
  own[m] = std::min({kOwnRows, shape.dims[m], share / own[n]});
  lanes[n] = std::min(kLanesAlongColumns, shape.dims[n] / own[n]);
  lanes[m] = std::min(kLanes / lanes[n], shape.dims[m] / own[m]);
  lanes[n] = kLanes / lanes[m];
  int32_t left = num_warps;
  for (size_t d = 0; d < rank; ++d) {
    const int32_t most = std::max(1, shape.dims[d] / own[d] / lanes[d]);
    warps[d] = d == n ? left : std::min(left, most);
    left /= warps[d];
  }
  if (along_k.a) own[m] = 1;
  if (along_k.b) own[n] = 1;
  const LinearLayout rows_last = layout::blocked(shape.span(), own, lanes, warps, order);
  return lanes[m] > 1 && lanes[n] > 1 ? with_lanes_in_pairs(rows_last, static_cast<int>(m)) : rows_last;
}

int k_width(const Op& dot) { return static_cast<int>(dot.int_or(ir::AttrName::kKWidth, 0)); }

int operand_bits(const Op& dot) { return dot.operand(0)->type.element_bits(); }

}  // namespace

bool is_computed(const Value* v) {
  while (v->op && (v->op->kind == OpKind::kTrans || v->op->kind == OpKind::kExpandDims)) v = v->op->operand(0);
  return v->op && v->op->kind != OpKind::kLoad && ir::is_pure(v->op) && v->op->regions.empty();
}

bool uses_mma(const Op& dot) { return target::mma_row(dot.text_or(ir::AttrName::kMma, target::kFma)) != nullptr; }

bool is_on_registers(const Op& dot) {
  return uses_mma(dot) || dot.text_or(ir::AttrName::kMma, target::kFma) == target::kFma;
}

LinearLayout dot_result_layout(const Op& dot, int num_warps, AlongK along_k) {
  const ir::Shape& shape = dot.result()->type.shape;
  return uses_mma(dot) ? layout::mma_accumulator(shape.span(), split_warps(dot, num_warps))
                       : element_layout(shape, num_warps, along_k);
}

LinearLayout dot_operand_layout(const Op& dot, int index, const LinearLayout& result) {
  const auto side = index == 0 ? layout::DotSide::kA : layout::DotSide::kB;
  const auto shape = dot.operand(index)->type.shape.span();
  return uses_mma(dot) ? layout::mma_operand(side, shape, operand_bits(dot), result, k_width(dot))
                       : layout::fma_operand(side, shape, result);
}

std::optional<layout::DotPlan> plan_dot(const Op& dot) {
  const LinearLayout &a = *dot.operand(0)->type.layout, &b = *dot.operand(1)->type.layout,
                     &c = *dot.result()->type.layout;
  return uses_mma(dot) ? layout::plan_mma(a, b, c, operand_bits(dot), k_width(dot)) : layout::plan_fma(a, b, c);
}

}  // namespace kiln::analysis
