#include "compiler/layout/algebra.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>
#include <vector>

#include "support/diag.h"

namespace kiln::layout {

namespace {

constexpr In kAllIns[] = {In::kRegister, In::kLane, In::kWarp, In::kBlock, In::kOffset};

std::vector<int32_t> shape_vector(const LinearLayout& layout) { return {layout.shape().begin(), layout.shape().end()}; }

/// The same input bits with each basis mapped by `fn`.
template <class Fn>
LinearLayout map_bases(const LinearLayout& layout, std::span<const int32_t> shape, Fn&& fn) {
  LinearLayout r(shape);
  for (In in : kAllIns)
    for (const Coord& basis : layout.bases(in)) r.push(in, fn(basis));
  return r;
}

}  // namespace

int log2_exact(int64_t n) {
  KILN_ASSERT(n > 0 && std::has_single_bit(static_cast<uint64_t>(n)), "{} is not a power of two", n);
  return std::countr_zero(static_cast<uint64_t>(n));
}

int64_t num_elements(const LinearLayout& layout) {
  int64_t n = 1;
  for (int32_t d : layout.shape()) n *= d;
  return n;
}

int index_bits(const LinearLayout& layout) { return log2_exact(num_elements(layout)); }

uint64_t index_of(std::span<const int32_t> shape, const Coord& coord) {
  uint64_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    index = index * static_cast<uint64_t>(shape[d]) + static_cast<uint64_t>(coord[static_cast<int>(d)]);
  return index;
}

Coord coord_of(std::span<const int32_t> shape, uint64_t index) {
  Coord c;
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    uint64_t size = static_cast<uint64_t>(shape[static_cast<size_t>(d)]);
    c[d] = static_cast<int32_t>(index % size);
    index /= size;
  }
  return c;
}

std::vector<uint64_t> index_bases(const LinearLayout& layout, In in) {
  std::vector<uint64_t> r;
  for (const Coord& basis : layout.bases(in)) r.push_back(index_of(layout.shape(), basis));
  return r;
}

BitMatrix matrix_of(const LinearLayout& layout) {
  BitMatrix m;
  for (In in : kAllIns)
    for (uint64_t basis : index_bases(layout, in)) m.columns.push_back(basis);
  return m;
}

uint64_t index_at(const LinearLayout& layout, uint32_t reg, uint32_t lane, uint32_t warp) {
  return index_of(layout.shape(), layout.apply(reg, lane, warp));
}

bool is_surjective(const LinearLayout& layout) { return matrix_of(layout).rank() == index_bits(layout); }

bool is_injective(const LinearLayout& layout) {
  BitMatrix m = matrix_of(layout);
  return m.rank() == static_cast<int>(m.columns.size());
}

uint32_t& FreeBits::of(In in) {
  switch (in) {
    case In::kRegister:
      return reg;
    case In::kLane:
      return lane;
    case In::kWarp:
      return warp;
    case In::kBlock:
      return block;
    case In::kOffset:
      return offset;
  }
  KILN_UNREACHABLE();
}

FreeBits free_variables(const LinearLayout& layout) {
  FreeBits free;
  Span span;
  for (In in : kAllIns) {
    auto bases = index_bases(layout, in);
    for (size_t bit = 0; bit < bases.size(); ++bit)
      if (!span.insert(bases[bit])) free.of(in) |= uint32_t{1} << bit;
  }
  return free;
}

bool has_unit_bases(const LinearLayout& layout) {
  uint64_t seen = 0;
  for (uint64_t column : matrix_of(layout).columns) {
    if (column != 0 && !std::has_single_bit(column)) return false;
    if (column & seen) return false;
    seen |= column;
  }
  return true;
}

LinearLayout compose(const LinearLayout& outer, const LinearLayout& inner) {
  KILN_ASSERT(inner.rank() == kNumIns);
  return map_bases(inner, outer.shape(), [&](const Coord& basis) {
    Coord r;
    for (In in : kAllIns) r = r ^ outer.apply(in, static_cast<uint32_t>(basis[static_cast<int>(in)]));
    return r;
  });
}

LinearLayout invert(const LinearLayout& layout) {
  std::array<int32_t, kNumIns> sizes;
  for (In in : kAllIns) sizes[static_cast<size_t>(in)] = layout.size(in);
  LinearLayout r(sizes);
  for (uint64_t holder : right_inverse(matrix_of(layout), index_bits(layout)).columns) {
    Coord basis;
    for (In in : kAllIns) {
      basis[static_cast<int>(in)] = static_cast<int32_t>(holder & (static_cast<uint64_t>(layout.size(in)) - 1));
      holder >>= layout.bits(in);
    }
    r.push(In::kOffset, basis);
  }
  return r;
}

LinearLayout product(const LinearLayout& a, const LinearLayout& b) {
  KILN_ASSERT(a.rank() == b.rank());
  std::vector<int32_t> shape = shape_vector(a);
  for (int d = 0; d < a.rank(); ++d) shape[static_cast<size_t>(d)] *= b.shape()[static_cast<size_t>(d)];
  LinearLayout r(shape);
  for (In in : kAllIns) {
    for (const Coord& basis : a.bases(in)) r.push(in, basis);
    for (Coord basis : b.bases(in)) {
      for (int d = 0; d < a.rank(); ++d) basis[d] *= a.shape()[static_cast<size_t>(d)];
      r.push(in, basis);
    }
  }
  return r;
}

namespace {

/// The bases that run along `dim` alone, dealt out anew in the order that `deal` gives: of each, its space.
LinearLayout dealt_along(const LinearLayout& layout, int dim,
                         const std::function<std::vector<In>(const std::vector<std::pair<int32_t, In>>&)>& deal) {
  auto runs_along = [&](const Coord& basis) {
    Coord alone;
    alone[dim] = basis[dim];
    return basis[dim] != 0 && basis == alone;
  };
  std::vector<std::pair<int32_t, In>> positions;
  for (In in : {In::kRegister, In::kLane, In::kWarp})
    for (const Coord& basis : layout.bases(in))
      if (runs_along(basis)) positions.emplace_back(basis[dim], in);
  std::ranges::sort(positions);
  const std::vector<In> order = deal(positions);
  LinearLayout r(layout.shape());
  for (In in : {In::kRegister, In::kLane, In::kWarp}) {
    size_t next = 0;
    for (Coord basis : layout.bases(in)) {
      if (runs_along(basis)) {
        while (order[next] != in) ++next;
        basis[dim] = positions[next++].first;
      }
      r.push(in, basis);
    }
  }
  return r;
}

}  // namespace

LinearLayout neighbours_along(const LinearLayout& layout, int dim) {
  return dealt_along(layout, dim, [](const auto& positions) {
    std::vector<In> order;
    for (const auto& [position, in] : positions) order.push_back(in);
    std::ranges::sort(order);
    return order;
  });
}

LinearLayout stretches_along(const LinearLayout& layout, int dim) {
  return dealt_along(layout, dim, [](const auto& positions) {
    std::vector<In> order;
    for (const auto& [position, in] : positions) order.push_back(in);
    auto first_far = std::ranges::find_if(order, [](In in) { return in != In::kRegister; });
    auto turn = [](In in) { return in == In::kLane ? 0 : in == In::kRegister ? 1 : 2; };
    std::sort(first_far, order.end(), [&](In a, In b) { return turn(a) < turn(b); });
    return order;
  });
}

LinearLayout without_register_copies(const LinearLayout& layout) {
  LinearLayout r(layout.shape());
  uint32_t free = free_variables(layout).reg;
  for (In in : kAllIns)
    for (size_t bit = 0; bit < layout.bases(in).size(); ++bit)
      if (in != In::kRegister || !(free >> bit & 1)) r.push(in, layout.bases(in)[bit]);
  return r;
}

LinearLayout slice(const LinearLayout& layout, int dim) {
  std::vector<int32_t> shape = shape_vector(layout);
  shape.erase(shape.begin() + dim);
  return without_register_copies(map_bases(layout, shape, [&](const Coord& basis) {
    Coord r;
    for (int d = 0, to = 0; d < layout.rank(); ++d)
      if (d != dim) r[to++] = basis[d];
    return r;
  }));
}

LinearLayout expand_dims(const LinearLayout& layout, int axis) {
  std::vector<int32_t> shape = shape_vector(layout);
  shape.insert(shape.begin() + axis, 1);
  return map_bases(layout, shape, [&](const Coord& basis) {
    Coord r;
    for (int d = 0; d < layout.rank(); ++d) r[d < axis ? d : d + 1] = basis[d];
    return r;
  });
}

LinearLayout broadcast(const LinearLayout& layout, std::span<const int32_t> shape) {
  LinearLayout r = map_bases(layout, shape, [](const Coord& basis) { return basis; });
  for (int d = layout.rank() - 1; d >= 0; --d) {
    int32_t from = layout.shape()[static_cast<size_t>(d)], to = shape[static_cast<size_t>(d)];
    KILN_ASSERT(from == to || from == 1);
    // The copies along a broadcast dimension go to registers, so no data moves between threads.
    for (int32_t step = from; step < to; step *= 2) {
      Coord basis;
      basis[d] = step;
      r.push(In::kRegister, basis);
    }
  }
  return r;
}

LinearLayout broadcast_operand(const LinearLayout& layout, std::span<const int32_t> shape) {
  return without_register_copies(map_bases(layout, shape, [&](Coord basis) {
    for (size_t d = 0; d < shape.size(); ++d) {
      KILN_ASSERT(shape[d] == layout.shape()[d] || shape[d] == 1);
      if (shape[d] == 1) basis[static_cast<int>(d)] = 0;
    }
    return basis;
  }));
}

LinearLayout transpose(const LinearLayout& layout, std::span<const int64_t> order) {
  std::vector<int32_t> shape;
  for (int64_t d : order) shape.push_back(layout.shape()[static_cast<size_t>(d)]);
  return map_bases(layout, shape, [&](const Coord& basis) {
    Coord r;
    for (size_t d = 0; d < order.size(); ++d) r[static_cast<int>(d)] = basis[static_cast<int>(order[d])];
    return r;
  });
}

// With powers of two, a basis is one bit of the row-major index, so reshaping maps each basis by itself.
LinearLayout reshape(const LinearLayout& layout, std::span<const int32_t> shape) {
  LinearLayout r =
      map_bases(layout, shape, [&](const Coord& basis) { return coord_of(shape, index_of(layout.shape(), basis)); });
  KILN_ASSERT(num_elements(r) == num_elements(layout));
  return r;
}

LinearLayout join(const LinearLayout& layout) {
  std::vector<int32_t> shape = shape_vector(layout);
  shape.push_back(2);
  LinearLayout r(shape);
  Coord which;
  which[layout.rank()] = 1;
  r.push(In::kRegister, which);
  for (In in : kAllIns)
    for (const Coord& basis : layout.bases(in)) r.push(in, basis);
  return r;
}

bool can_split(const LinearLayout& layout) {
  int last = layout.rank() - 1, along = 0;
  if (last < 0 || layout.shape()[static_cast<size_t>(last)] != 2) return false;
  for (In in : kAllIns)
    for (const Coord& basis : layout.bases(in)) {
      if (basis[last] == 0) continue;
      Coord which;
      which[last] = 1;
      if (in != In::kRegister || basis != which) return false;
      ++along;
    }
  return along == 1;
}

LinearLayout split(const LinearLayout& layout) {
  KILN_ASSERT(can_split(layout));
  return slice(layout, layout.rank() - 1);
}

LinearLayout blocked(std::span<const int32_t> shape, std::span<const int32_t> size_per_thread,
                     std::span<const int32_t> threads, std::span<const int32_t> warps, std::span<const int> order) {
  LinearLayout r(shape);
  std::array<int64_t, kMaxDims> filled;
  filled.fill(1);
  auto fill = [&](In in, int dim, int64_t count) {
    for (int64_t k = 1; k < count; k *= 2) {
      Coord basis;
      if (filled[static_cast<size_t>(dim)] < shape[static_cast<size_t>(dim)]) {
        basis[dim] = static_cast<int32_t>(filled[static_cast<size_t>(dim)]);
        filled[static_cast<size_t>(dim)] *= 2;
        // More lanes or warps than elements hold copies; a register copy would only waste the register.
      } else if (in == In::kRegister) {
        continue;
      }
      r.push(in, basis);
    }
  };
  for (int dim : order) fill(In::kRegister, dim, size_per_thread[static_cast<size_t>(dim)]);
  for (int dim : order) fill(In::kLane, dim, threads[static_cast<size_t>(dim)]);
  for (int dim : order) fill(In::kWarp, dim, warps[static_cast<size_t>(dim)]);
  for (int dim : order) fill(In::kRegister, dim, shape[static_cast<size_t>(dim)] / filled[static_cast<size_t>(dim)]);
  return r;
}

LinearLayout stretches(int32_t size, int num_warps) {
  const int warp_bits = log2_exact(num_warps);
  const int32_t shape[] = {size};
  LinearLayout r(shape);
  int32_t next = 1;
  auto push = [&](In in) {
    Coord basis;
    if (next < size) {
      basis[0] = next;
      next *= 2;
    }
    r.push(in, basis);
  };
  for (int i = 0; i < 5; ++i) push(In::kLane);
  while (static_cast<int64_t>(next) << warp_bits < size) push(In::kRegister);
  for (int i = 0; i < warp_bits; ++i) push(In::kWarp);
  return r;
}

LinearLayout replicated(std::span<const int32_t> shape, int num_warps) {
  LinearLayout r(shape);
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d)
    for (int32_t k = 1; k < shape[static_cast<size_t>(d)]; k *= 2) {
      Coord basis;
      basis[d] = k;
      r.push(In::kRegister, basis);
    }
  for (int i = 0; i < 5; ++i) r.push(In::kLane, {});
  for (int i = 0; i < log2_exact(num_warps); ++i) r.push(In::kWarp, {});
  return r;
}

}  // namespace kiln::layout
