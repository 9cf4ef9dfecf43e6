// Which tiles of numbers or addresses are affine in their indices: start + Σ step_d · i_d, with uniform starts and
// steps that are polynomials of scalars. This identifies pointer tiles that are blocks of a strided tensor.
//
// Arithmetic is on unbounded integers: an index that overflows its type is assumed not to occur, so nothing wraps.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// A sum of products of scalars, with integer factors: {} is 0, {{}: 5} is 5, {{m, n}: 2} is 2·m·n. No factor is 0.
class Polynomial {
 public:
  /// Scalars whose product a term is, in a fixed order; empty for the constant.
  using Product = std::vector<const ir::Value*>;

  Polynomial() = default;
  explicit Polynomial(int64_t constant) { add(constant, {}); }
  explicit Polynomial(const ir::Value* scalar) { add(1, {scalar}); }

  const std::map<Product, int64_t>& terms() const { return terms_; }
  bool is_zero() const { return terms_.empty(); }
  /// The number, when it is one.
  std::optional<int64_t> constant() const;
  bool operator==(const Polynomial&) const = default;

  Polynomial& operator+=(const Polynomial& o);
  Polynomial operator+(const Polynomial& o) const { return Polynomial(*this) += o; }
  Polynomial operator-(const Polynomial& o) const { return *this + o * Polynomial(-1); }
  Polynomial operator*(const Polynomial& o) const;
  /// q and r with *this = q·divisor + r, where q takes every term that a divisor of one term divides.
  std::pair<Polynomial, Polynomial> divide(const Polynomial& divisor) const;

 private:
  void add(int64_t factor, Product product);
  std::map<Product, int64_t> terms_;
};

/// An integer scalar, decomposed through sums, differences and products.
Polynomial polynomial(const ir::Value* scalar);

struct AffineTile {
  const ir::Value* base = nullptr;  // of pointers: the scalar pointer that the rest, in elements, is added to
  Polynomial start;
  std::vector<Polynomial> steps;  // one per dimension
  /// Where the index of a dimension wraps: the tile is base + … + step_d · ((start_d + i_d) mod wraps[d]).
  std::vector<std::optional<Polynomial>> wraps;

  bool is_uniform() const;
};

/// Nothing when it is not affine. A value that a `for` carries and advances by the same amount in each iteration is
/// affine in the loop's variable.
std::optional<AffineTile> affine_tile(const ir::Value* tile);

/// What a mask implies for one dimension: start + i < bound, or start + i ≥ 0.
struct IndexBound {
  int dim = 0;
  Polynomial start;
  std::optional<Polynomial> bound;  // nullopt: start + i ≥ 0
};
/// The bounds that a mask consists of; nothing when it has any other part.
std::optional<std::vector<IndexBound>> index_bounds(const ir::Value* mask);

}  // namespace kiln::analysis
