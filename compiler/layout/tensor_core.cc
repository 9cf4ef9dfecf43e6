#include "compiler/layout/tensor_core.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "compiler/layout/algebra.h"
#include "support/diag.h"

namespace kiln::layout {

namespace {

constexpr int kInstructionRows = 16, kInstructionColumns = 8, kRegisterBits = 32, kFragmentBits = 256;
constexpr int kChunkBytes = 16, kSwizzleLine = 128;  // what is moved by a swizzle, and the bytes of all banks

/// One bit of a fragment's input: a step along a dimension.
struct Step {
  In in;
  int dim;
  int32_t stride;
};

/// Builds a layout onto a tile basis by basis. Steps that leave the tile are copies, and dropped in registers.
class Fragment {
 public:
  explicit Fragment(std::span<const int32_t> shape) : layout_(shape) { filled_.fill(1); }

  void push(In in, int dim, int32_t stride) {
    Coord basis;
    if (stride < size(dim)) {
      basis[dim] = stride;
      filled_[static_cast<size_t>(dim)] = std::max(filled_[static_cast<size_t>(dim)], stride * 2);
    } else if (in == In::kRegister) {
      return;
    }
    layout_.push(in, basis);
  }
  void push(In in, const Coord& basis) {
    if (in != In::kRegister || basis != Coord{}) layout_.push(in, basis);
  }
  /// Registers for all of `dim` up to `end`.
  void repeat(int dim, int32_t end) {
    while (filled_[static_cast<size_t>(dim)] < std::min(end, size(dim)))
      push(In::kRegister, dim, filled_[static_cast<size_t>(dim)]);
  }
  /// `count` warps along `dim`, each with one block of it.
  void spread(int dim, int32_t count) {
    for (int32_t i = 1; i < count; i *= 2) push(In::kWarp, dim, filled_[static_cast<size_t>(dim)]);
  }

  int32_t size(int dim) const { return layout_.shape()[static_cast<size_t>(dim)]; }
  LinearLayout take() { return std::move(layout_); }

 private:
  LinearLayout layout_;
  std::array<int32_t, kMaxDims> filled_;
};

void push_all(Fragment& f, std::initializer_list<Step> steps) {
  for (const Step& s : steps) f.push(s.in, s.dim, s.stride);
}

/// One instruction's accumulator with rows along `m` and columns along `n`.
void push_accumulator(Fragment& f, int m, int n) {
  push_all(f, {{In::kRegister, n, 1},
               {In::kRegister, m, 8},
               {In::kLane, n, 2},
               {In::kLane, n, 4},
               {In::kLane, m, 1},
               {In::kLane, m, 2},
               {In::kLane, m, 4}});
}

/// The operand of one instruction, or of as many as take a run of `k_width` neighbours, which is one register at least:
/// `own` is the dimension of rows (a) or columns (b).
void push_operand(Fragment& f, DotSide side, int own, int k, int element_bits, int32_t k_width) {
  const int32_t packed = kRegisterBits / element_bits;  // elements of a 32-bit register
  for (int32_t i = 1; i < packed; i *= 2) f.push(In::kRegister, k, i);
  if (side == DotSide::kA) f.push(In::kRegister, own, 8);
  for (int32_t i = packed; i < k_width; i *= 2) f.push(In::kRegister, k, i);
  if (k_width == packed) f.push(In::kRegister, k, 4 * packed);
  push_all(f, {{In::kLane, k, k_width},
               {In::kLane, k, 2 * k_width},
               {In::kLane, own, 1},
               {In::kLane, own, 2},
               {In::kLane, own, 4}});
}

/// Each dimension's share of one warp.
int32_t block_of(const Fragment& f, int dim, int32_t warps) { return std::max<int32_t>(1, f.size(dim) / warps); }

}  // namespace

int mma_depth(int element_bits) { return kFragmentBits / element_bits; }

LinearLayout mma_accumulator_tile() {
  Fragment f(std::array<int32_t, 2>{kInstructionRows, kInstructionColumns});
  push_accumulator(f, 0, 1);
  return f.take();
}

LinearLayout mma_operand_tile(DotSide side, int element_bits) {
  const int32_t depth = mma_depth(element_bits);
  Fragment f(side == DotSide::kA ? std::array<int32_t, 2>{kInstructionRows, depth}
                                 : std::array<int32_t, 2>{depth, kInstructionColumns});
  push_operand(f, side, side == DotSide::kA ? 0 : 1, side == DotSide::kA ? 1 : 0, element_bits,
               kRegisterBits / element_bits);
  return f.take();
}

int32_t mma_depth_index(int32_t k, int element_bits, int k_width) {
  const int32_t packed = kRegisterBits / element_bits;
  if (k_width <= packed) return k;
  const int32_t in_register = k % packed, lane = k / packed % 4, nth = k / (4 * packed);  // register of the lane
  const int32_t of_run = k_width / packed;                                                // registers
  return in_register + nth % of_run * packed + lane * k_width + nth / of_run * (4 * k_width);
}

LinearLayout mma_accumulator(std::span<const int32_t> shape, std::span<const int32_t> warps) {
  const int rank = static_cast<int>(shape.size()), m = rank - 2, n = rank - 1;
  KILN_ASSERT(rank >= 2 && warps.size() == shape.size());
  auto warps_along = [&](int dim) { return warps[static_cast<size_t>(dim)]; };
  Fragment f(shape);
  push_accumulator(f, m, n);
  for (int dim : {n, m}) f.repeat(dim, block_of(f, dim, warps_along(dim)));
  for (int dim = m - 1; dim >= 0; --dim) f.repeat(dim, block_of(f, dim, warps_along(dim)));
  for (int dim : {m, n}) f.spread(dim, warps_along(dim));
  for (int dim = m - 1; dim >= 0; --dim) f.spread(dim, warps_along(dim));
  return f.take();
}

LinearLayout mma_operand(DotSide side, std::span<const int32_t> shape, int element_bits,
                         const LinearLayout& accumulator, int k_width) {
  const int rank = static_cast<int>(shape.size()), m = rank - 2, n = rank - 1;
  const int own = side == DotSide::kA ? m : n, k = side == DotSide::kA ? n : m;
  k_width = std::max(k_width, kRegisterBits / element_bits);
  KILN_ASSERT(rank >= 2 && accumulator.rank() == rank && shape[static_cast<size_t>(k)] >= mma_depth(element_bits) &&
              shape[static_cast<size_t>(k)] >= 4 * k_width);
  const int32_t instruction = side == DotSide::kA ? kInstructionRows : kInstructionColumns;
  Fragment f(shape);
  push_operand(f, side, own, k, element_bits, k_width);
  f.repeat(k, f.size(k));
  for (Coord basis : accumulator.bases(In::kRegister)) {
    basis[k] = 0;
    if (basis[own] == 0 || basis[own] >= instruction) f.push(In::kRegister, basis);
  }
  for (Coord basis : accumulator.bases(In::kWarp)) {
    basis[k] = 0;
    f.push(In::kWarp, basis);
  }
  return f.take();
}

LinearLayout fma_operand(DotSide side, std::span<const int32_t> shape, const LinearLayout& result) {
  const int rank = static_cast<int>(shape.size()), k = side == DotSide::kA ? rank - 1 : rank - 2;
  Fragment f(shape);
  f.repeat(k, f.size(k));
  for (In in : {In::kRegister, In::kLane, In::kWarp})
    for (Coord basis : result.bases(in)) {
      basis[k] = 0;
      f.push(in, basis);
    }
  return f.take();
}

LinearLayout wgmma_accumulator(std::span<const int32_t> shape, int num_warps) {
  KILN_ASSERT(shape.size() == 2 && shape[0] >= kGroupRows && num_warps % kGroupWarps == 0);
  const int32_t groups = num_warps / kGroupWarps;
  const int32_t groups_m = std::min(groups, shape[0] / kGroupRows), groups_n = groups / groups_m;
  Fragment f(shape);
  push_accumulator(f, 0, 1);
  f.repeat(1, block_of(f, 1, groups_n));
  f.spread(0, kGroupWarps);
  f.repeat(0, block_of(f, 0, groups_m));
  f.spread(0, groups_m);
  f.spread(1, groups_n);
  return f.take();
}

LinearLayout swizzled(std::span<const int32_t> shape, int element_bits, int swizzle_bytes, std::span<const int> order) {
  KILN_ASSERT(shape.size() == order.size() && shape.size() >= 2);
  KILN_ASSERT(swizzle_bytes == 128 || swizzle_bytes == 64 || swizzle_bytes == 32);
  const int32_t row = swizzle_bytes * 8 / element_bits;
  auto size = [&](int dim) { return shape[static_cast<size_t>(dim)]; };
  KILN_ASSERT(size(order[0]) >= row, "rows of {} elements", size(order[0]));
  std::vector<Coord> bases;  // without the swizzle
  auto fill = [&](int dim, int32_t from, int32_t to) {
    for (; from < to; from *= 2) bases.emplace_back()[dim] = from;
  };
  fill(order[0], 1, row);
  fill(order[1], 1, size(order[1]));
  fill(order[0], row, size(order[0]));
  for (size_t i = 2; i < order.size(); ++i) fill(order[i], 1, size(order[i]));

  const size_t chunk = static_cast<size_t>(log2_exact(kChunkBytes * 8 / element_bits)),
               line = static_cast<size_t>(log2_exact(kSwizzleLine * 8 / element_bits));
  LinearLayout layout(shape);
  for (size_t bit = 0; bit < bases.size(); ++bit) {
    const bool swizzles = bit >= line && (kChunkBytes << (bit - line)) < swizzle_bytes;
    layout.push(In::kOffset, swizzles ? bases[bit] ^ bases[chunk + bit - line] : bases[bit]);
  }
  return layout;
}

int widest_swizzle(int32_t width, int element_bits) {
  for (int bytes : {128, 64, 32})
    if (width * element_bits / 8 >= bytes) return bytes;
  return 0;
}

}  // namespace kiln::layout
