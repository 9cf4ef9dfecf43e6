#include "compiler/interp/machine/warp_dot.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/analysis/dot_layouts.h"
#include "compiler/interp/dot.h"
#include "compiler/layout/algebra.h"

namespace kiln::interp {

namespace {

/// The elements of one operand that a warp holds.
class HeldElements {
 public:
  HeldElements(const ir::Type& type, int warp, std::span<const uint64_t> share, bool by_thread) : type_(type) {
    for (size_t i = 0; i < share.size(); ++i) {
      const uint64_t at = layout::index_at(*type.layout, static_cast<uint32_t>(i / kLanes),
                                           static_cast<uint32_t>(i % kLanes), static_cast<uint32_t>(warp));
      values_.try_emplace(at, share[i]);
      if (by_thread) of_lane_[i % kLanes].insert(at);
    }
  }

  const uint64_t* find(const layout::Coord& c) const {
    auto it = values_.find(layout::index_of(type_.shape.span(), c));
    return it == values_.end() ? nullptr : &it->second;
  }
  bool has(size_t lane, const layout::Coord& c) const {
    return of_lane_[lane].contains(layout::index_of(type_.shape.span(), c));
  }

 private:
  const ir::Type& type_;
  std::unordered_map<uint64_t, uint64_t> values_;
  std::array<std::unordered_set<uint64_t>, kLanes> of_lane_;
};

/// What a warp computes of one matrix of the batch: the product of some rows and some columns.
struct BlockProduct {
  std::set<int32_t> rows, columns;
  std::vector<std::pair<size_t, layout::Coord>> elements;  // place in the share, coordinate
};

std::string missing(std::string_view operand, int warp, const layout::Coord& c, int rank) {
  std::string at;
  for (int d = 0; d < rank; ++d) at += fmt::format("{}{}", d ? ", " : "", c[d]);
  return fmt::format("warp {} multiplies with element ({}) of {}, which it does not hold", warp, at, operand);
}

}  // namespace

std::string warp_dot(const ir::Op& dot, int warp, std::span<const uint64_t> a, std::span<const uint64_t> b,
                     std::span<const uint64_t> c, std::vector<uint64_t>& out) {
  const ir::Type &type_a = dot.operand(0)->type, &type_b = dot.operand(1)->type, &type = dot.result()->type;
  const bool by_thread = !analysis::uses_mma(dot);
  const HeldElements of_a(type_a, warp, a, by_thread), of_b(type_b, warp, b, by_thread);
  const int rank = type.shape.rank, m = rank - 2, n = rank - 1;
  const int32_t depth = type_a.shape[n];

  std::map<std::vector<int32_t>, BlockProduct> blocks;  // by place in the batch
  for (size_t i = 0; i < c.size(); ++i) {
    const layout::Coord at = type.layout->apply(static_cast<uint32_t>(i / kLanes), static_cast<uint32_t>(i % kLanes),
                                                static_cast<uint32_t>(warp));
    BlockProduct& block = blocks[{at.at.begin(), at.at.begin() + m}];
    block.rows.insert(at[m]);
    block.columns.insert(at[n]);
    block.elements.emplace_back(i, at);
    layout::Coord left = at, right = at;
    for (int32_t k = 0; by_thread && k < depth; ++k) {
      left[n] = right[m] = k;
      if (!of_a.has(i % kLanes, left)) return missing("a in one thread", warp, left, rank);
      if (!of_b.has(i % kLanes, right)) return missing("b in one thread", warp, right, rank);
    }
  }
  out.assign(c.size(), 0);
  for (const auto& [batch, block] : blocks) {
    layout::Coord at;
    for (int d = 0; d < m; ++d) at[d] = batch[static_cast<size_t>(d)];
    std::vector<uint64_t> left, right, sums(block.rows.size() * block.columns.size());
    for (int32_t row : block.rows)
      for (at[m] = row, at[n] = 0; at[n] < depth; ++at[n]) {
        const uint64_t* v = of_a.find(at);
        if (!v) return missing("a", warp, at, rank);
        left.push_back(*v);
      }
    for (at[m] = 0; at[m] < depth; ++at[m])
      for (int32_t column : block.columns) {
        at[n] = column;
        const uint64_t* v = of_b.find(at);
        if (!v) return missing("b", warp, at, rank);
        right.push_back(*v);
      }
    std::map<int32_t, size_t> row_at, column_at;
    for (int32_t row : block.rows) row_at.emplace(row, row_at.size());
    for (int32_t column : block.columns) column_at.emplace(column, column_at.size());
    auto place = [&](const layout::Coord& e) { return row_at.at(e[m]) * column_at.size() + column_at.at(e[n]); };
    for (const auto& [i, e] : block.elements) sums[place(e)] = c[i];
    const auto rows = static_cast<int32_t>(row_at.size()), columns = static_cast<int32_t>(column_at.size());
    eval_dot(type_a.with_shape({rows, depth}), type_b.with_shape({depth, columns}), type.with_shape({rows, columns}),
             dot.find_word<ir::Precision>().value_or(ir::Precision::kIeee), left, right, sums, sums);
    for (const auto& [i, e] : block.elements) out[i] = sums[place(e)];
  }
  return "";
}

}  // namespace kiln::interp
