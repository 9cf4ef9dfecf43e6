#include "compiler/layout/gf2.h"

#include <bit>

#include "support/diag.h"

namespace kiln::layout {

std::pair<uint64_t, uint64_t> Span::reduce(uint64_t v) const {
  uint64_t combination = 0;
  for (const Row& row : rows_)
    if (v & std::bit_floor(row.vector)) v ^= row.vector, combination ^= row.combination;
  return {v, combination};
}

bool Span::insert(uint64_t v) {
  KILN_ASSERT(inserted_ < 64);
  auto [rest, combination] = reduce(v);
  combination ^= uint64_t{1} << inserted_++;
  if (rest == 0) return false;
  uint64_t lead = std::bit_floor(rest);
  for (Row& row : rows_)
    if (row.vector & lead) row.vector ^= rest, row.combination ^= combination;
  rows_.push_back({rest, combination});
  return true;
}

std::optional<uint64_t> Span::express(uint64_t v) const {
  auto [rest, combination] = reduce(v);
  if (rest != 0) return std::nullopt;
  return combination;
}

uint64_t BitMatrix::apply(uint64_t x) const {
  uint64_t y = 0;
  for (; x; x &= x - 1) y ^= columns[static_cast<size_t>(std::countr_zero(x))];
  return y;
}

BitMatrix multiply(const BitMatrix& a, const BitMatrix& b) {
  BitMatrix r;
  for (uint64_t column : b.columns) r.columns.push_back(a.apply(column));
  return r;
}

BitMatrix right_inverse(const BitMatrix& m, int rows) {
  Span span(m.columns);
  BitMatrix r;
  for (int i = 0; i < rows; ++i) {
    auto combination = span.express(uint64_t{1} << i);
    KILN_ASSERT(combination, "the matrix does not reach row {}", i);
    r.columns.push_back(*combination);
  }
  return r;
}

std::vector<uint64_t> kernel(const BitMatrix& m) {
  std::vector<uint64_t> basis;
  Span span;
  for (size_t i = 0; i < m.columns.size(); ++i) {
    auto combination = span.express(m.columns[i]);
    if (combination) basis.push_back(*combination ^ (uint64_t{1} << i));
    span.insert(m.columns[i]);
  }
  return basis;
}

std::vector<uint64_t> intersect(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  BitMatrix both;
  both.columns.assign(a.begin(), a.end());
  both.columns.insert(both.columns.end(), b.begin(), b.end());
  // a x = b y gives a member a x of both spans; those of independent (x, y) span the intersection.
  BitMatrix first{{a.begin(), a.end()}};
  std::vector<uint64_t> result;
  Span seen;
  for (uint64_t k : kernel(both)) {
    uint64_t member = first.apply(k & ((uint64_t{1} << a.size()) - 1));
    if (seen.insert(member)) result.push_back(member);
  }
  return result;
}

}  // namespace kiln::layout
