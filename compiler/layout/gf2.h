// Linear algebra over GF(2) on vectors of up to 64 bits, the basis of all layout operations.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kiln::layout {

/// The span of vectors inserted one by one. Remembers how each member is a xor of the inserted vectors.
class Span {
 public:
  Span() = default;
  explicit Span(std::span<const uint64_t> vectors) {
    for (uint64_t v : vectors) insert(v);
  }

  /// Adds a vector (at most 64 of them); false when it was in the span already. Either way it has the next number.
  bool insert(uint64_t v);
  bool contains(uint64_t v) const { return reduce(v).first == 0; }
  /// The set of inserted vectors (bit i: the i-th) whose xor is v; free choices are left out.
  std::optional<uint64_t> express(uint64_t v) const;
  int rank() const { return static_cast<int>(rows_.size()); }

 private:
  struct Row {
    uint64_t vector, combination;
  };
  std::pair<uint64_t, uint64_t> reduce(uint64_t v) const;
  std::vector<Row> rows_;  // each with a leading bit that no other row has
  int inserted_ = 0;
};

/// A matrix by columns: column i is the image of input bit i.
struct BitMatrix {
  std::vector<uint64_t> columns;

  uint64_t apply(uint64_t x) const;
  int rank() const { return Span(columns).rank(); }
  bool operator==(const BitMatrix&) const = default;
};

/// a∘b.
BitMatrix multiply(const BitMatrix& a, const BitMatrix& b);
/// For a matrix whose columns span `rows` bits: the right inverse whose images use the earliest independent columns
/// only.
BitMatrix right_inverse(const BitMatrix& m, int rows);
/// A basis of {x : m x = 0}.
std::vector<uint64_t> kernel(const BitMatrix& m);
/// A basis of the intersection of two spans.
std::vector<uint64_t> intersect(std::span<const uint64_t> a, std::span<const uint64_t> b);

inline bool parity(uint64_t x) { return __builtin_parityll(x) != 0; }

}  // namespace kiln::layout
