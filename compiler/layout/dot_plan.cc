#include "compiler/layout/dot_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"

namespace kiln::layout {

namespace {

/// The lowest register that holds each element in lane 0 of warp 0.
class Registers {
 public:
  explicit Registers(const LinearLayout& layout) : shape_(layout.shape().begin(), layout.shape().end()) {
    for (int r = 0; r < layout.num_registers(); ++r)
      at_.try_emplace(index_of(shape_, layout.apply(In::kRegister, static_cast<uint32_t>(r))), r);
  }
  /// -1 when there is none.
  int find(const Coord& c) const {
    auto it = at_.find(index_of(shape_, c));
    return it == at_.end() ? -1 : it->second;
  }

 private:
  std::vector<int32_t> shape_;
  std::unordered_map<uint64_t, int> at_;
};

Coord without(Coord c, int dim) {
  c[dim] = 0;
  return c;
}

/// `of` holds what it holds for the same lane or warp of the result, whose dimension `dim` it lacks.
bool follows(const LinearLayout& of, const LinearLayout& result, In in, int dim) {
  if (of.bits(in) != result.bits(in)) return false;
  for (size_t i = 0; i < of.bases(in).size(); ++i)
    if (of.bases(in)[i] != without(result.bases(in)[i], dim)) return false;
  return true;
}

/// A coordinate of an instruction's tile in the last two dimensions of a tile, cut to its size.
Coord placed(const LinearLayout& layout, const Coord& in_tile) {
  Coord c;
  for (int i = 0; i < 2; ++i) {
    const int dim = layout.rank() - 2 + i;
    c[dim] = in_tile[i] & (layout.shape()[static_cast<size_t>(dim)] - 1);
  }
  return c;
}

/// What the first instruction takes of a tile whose threads hold runs of `k_width` neighbours along k.
LinearLayout operand_tile(DotSide side, int element_bits, int k_width) {
  const LinearLayout tile = mma_operand_tile(side, element_bits);
  const int k = side == DotSide::kA ? 1 : 0;
  std::vector<int32_t> shape(tile.shape().begin(), tile.shape().end());
  shape[static_cast<size_t>(k)] = std::max(shape[static_cast<size_t>(k)], 4 * k_width);
  LinearLayout spread(shape);
  for (In in : {In::kRegister, In::kLane})
    for (Coord basis : tile.bases(in)) {
      basis[k] = mma_depth_index(basis[k], element_bits, k_width);
      spread.push(in, basis);
    }
  return spread;
}

bool has_lanes_of(const LinearLayout& layout, const LinearLayout& tile) {
  if (layout.bits(In::kLane) != tile.bits(In::kLane)) return false;
  for (size_t i = 0; i < tile.bases(In::kLane).size(); ++i)
    if (layout.bases(In::kLane)[i] != placed(layout, tile.bases(In::kLane)[i])) return false;
  return true;
}

/// The registers of one instruction's fragment at `base`; false when one is not there.
bool fragment(const LinearLayout& layout, const Registers& registers, const LinearLayout& tile, const Coord& base,
              std::vector<int>& out) {
  for (uint32_t r = 0; r < static_cast<uint32_t>(tile.num_registers()); ++r) {
    const int found = registers.find(base ^ placed(layout, tile.apply(In::kRegister, r)));
    if (found < 0) return false;
    out.push_back(found);
  }
  return true;
}

std::vector<int> copies(const LinearLayout& layout, const Registers& registers) {
  std::vector<int> r;
  for (int i = 0; i < layout.num_registers(); ++i)
    r.push_back(registers.find(layout.apply(In::kRegister, static_cast<uint32_t>(i))));
  return r;
}

/// The order of the multiplications of one k, there and back: by rows, so that a register of a is multiplied by all of
/// b, or by columns. Each has an operand of the one before it, also where a row or column ends, which the GPU then does
/// not read from its registers again.
void go_there_and_back(std::vector<DotStep>& steps, size_t first, bool by_columns) {
  std::map<std::pair<int, int>, DotStep> by_operands;
  std::vector<int> outer, inner;  // registers, in the order of their first steps
  for (size_t i = first; i < steps.size(); ++i) {
    const int o = by_columns ? steps[i].b[0] : steps[i].a[0], n = by_columns ? steps[i].a[0] : steps[i].b[0];
    if (std::ranges::find(outer, o) == outer.end()) outer.push_back(o);
    if (std::ranges::find(inner, n) == inner.end()) inner.push_back(n);
    by_operands.try_emplace({o, n}, steps[i]);
  }
  if (by_operands.size() != steps.size() - first || by_operands.size() != outer.size() * inner.size()) return;
  auto at = steps.begin() + static_cast<std::ptrdiff_t>(first);
  for (int o : outer) {
    for (int n : inner) *at++ = by_operands.at({o, n});
    std::ranges::reverse(inner);
  }
}

}  // namespace

std::optional<DotPlan> plan_mma(const LinearLayout& a, const LinearLayout& b, const LinearLayout& c, int element_bits,
                                int k_width) {
  const int m = c.rank() - 2, n = c.rank() - 1;
  const LinearLayout tile_a = operand_tile(DotSide::kA, element_bits, k_width),
                     tile_b = operand_tile(DotSide::kB, element_bits, k_width), tile_c = mma_accumulator_tile();
  if (!has_lanes_of(a, tile_a) || !has_lanes_of(b, tile_b) || !has_lanes_of(c, tile_c)) return std::nullopt;
  if (!follows(a, c, In::kWarp, n) || !follows(b, c, In::kWarp, m)) return std::nullopt;
  const Registers of_a(a), of_b(b), of_c(c);
  DotPlan plan;
  plan.copy_of = copies(c, of_c);
  std::vector<bool> covered(plan.copy_of.size());
  const int32_t rows = tile_c.shape()[0], columns = tile_c.shape()[1], depth = mma_depth(element_bits);
  for (int32_t k = 0; k < a.shape()[static_cast<size_t>(n)]; k += depth)
    for (int r = 0; r < c.num_registers(); ++r) {
      const Coord at = c.apply(In::kRegister, static_cast<uint32_t>(r));
      if (plan.copy_of[static_cast<size_t>(r)] != r || at[m] % rows != 0 || at[n] % columns != 0) continue;
      Coord at_a = at, at_b = at;
      at_a[n] = at_b[m] = mma_depth_index(k, element_bits, k_width);
      DotStep& step = plan.steps.emplace_back();
      if (!fragment(a, of_a, tile_a, at_a, step.a) || !fragment(b, of_b, tile_b, at_b, step.b) ||
          !fragment(c, of_c, tile_c, at, step.c))
        return std::nullopt;
      for (int held : step.c) covered[static_cast<size_t>(held)] = true;
    }
  for (size_t r = 0; r < covered.size(); ++r)
    if (!covered[static_cast<size_t>(plan.copy_of[r])]) return std::nullopt;
  return plan;
}

std::optional<DotPlan> plan_fma(const LinearLayout& a, const LinearLayout& b, const LinearLayout& c) {
  const int m = c.rank() - 2, n = c.rank() - 1;
  for (In in : {In::kLane, In::kWarp})
    if (!follows(a, c, in, n) || !follows(b, c, in, m)) return std::nullopt;
  const Registers of_a(a), of_b(b), of_c(c);
  DotPlan plan;
  plan.copy_of = copies(c, of_c);
  // By columns where a thread's columns are no neighbours, so that b is read along k (float32 of 4096^3 on an H200 in
  // ms, by rows and by columns: NN 2.95, 3.03; TN 2.79, 2.77; NT 3.23, 3.06. TN of odd rows: 0.281, 0.306).
  bool by_columns = true;
  for (int r = 1; r < c.num_registers(); r *= 2)
    if (c.apply(In::kRegister, static_cast<uint32_t>(r))[n] == 1) by_columns = false;
  for (int32_t k = 0; k < a.shape()[static_cast<size_t>(n)]; ++k) {
    const size_t first = plan.steps.size();
    for (int r = 0; r < c.num_registers(); ++r) {
      if (plan.copy_of[static_cast<size_t>(r)] != r) continue;
      const Coord at = c.apply(In::kRegister, static_cast<uint32_t>(r));
      Coord at_a = at, at_b = at;
      at_a[n] = at_b[m] = k;
      const int left = of_a.find(at_a), right = of_b.find(at_b);
      if (left < 0 || right < 0) return std::nullopt;
      plan.steps.push_back({{left}, {right}, {r}});
    }
    go_there_and_back(plan.steps, first, by_columns);
  }
  return plan;
}

}  // namespace kiln::layout
