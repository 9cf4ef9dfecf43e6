// What the hardware's copy and matrix units see in a layout of shared memory: the boxes of a TMA copy, the matrix that
// a wgmma descriptor describes, the 8x8 matrices of ldmatrix and stmatrix. All are read off the layout; nothing is
// chosen here. Shared layouts have offset bits only, counted in elements; the tile begins at an address that is a
// multiple of 1024, or of 8 rows of its swizzle where that is less.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/layout/linear_layout.h"
#include "compiler/layout/xor_map.h"

namespace kiln::layout {

inline constexpr int kMaxTmaBox = 256;  // elements of a box along a dimension
inline constexpr int kAtomRows = 8;     // after which swizzles repeat

/// The TMA copies that move one tile between shared memory and a tensor: boxes of one size.
struct TmaPlan {
  int swizzle = 0;           // bytes: 0, 32, 64 or 128
  std::vector<int32_t> box;  // elements along each dimension of the tile, at most 256
  struct Copy {
    Coord at;            // the box's first element in the tile
    int64_t offset = 0;  // its first byte in the tile's memory, a multiple of 128
  };
  std::vector<Copy> copies;
};
/// Nothing when no boxes make this layout: the last dimension's elements must lie side by side, 16 bytes of them at
/// least, and the swizzle be one of the hardware's. Boxes have at most `rows` elements along the first dimension.
std::optional<TmaPlan> plan_tma(const LinearLayout& shared, int element_bytes, int rows = kMaxTmaBox);

/// An operand of wgmma in shared memory, as descriptors say it (PTX ISA, "Matrix descriptor"; all in bytes).
struct WgmmaMatrix {
  int swizzle = 0;          // 0, 32, 64 or 128
  bool transposed = false;  // neighbours in memory run along M or N, not along K (elements of 16 bits only)
  uint32_t leading = 16, stride = 16;
  std::vector<uint32_t> own, depth;  // what each bit of the coordinate along M or N, and along K, adds to the address

  /// The address, relative to the tile's, that a descriptor starts at for the slice from (own, k) on; `own` is a
  /// multiple of the instruction's rows or columns, `k` of its depth (32 bytes of elements).
  uint32_t at(uint32_t own_index, uint32_t k) const { return XorMap::part(own, own_index) + XorMap::part(depth, k); }
};
/// `k` is the dimension that the product sums over, the other one has `span` (8 … 256) rows or columns in one
/// instruction. Nothing when no descriptor describes this layout.
std::optional<WgmmaMatrix> plan_wgmma_matrix(const LinearLayout& shared, int k, int span, int element_bytes);

/// ldmatrix and stmatrix: `matrices` 8x8 matrices of 16-bit units per instruction, each row of 16 bytes at an address
/// that one lane gives.
struct MatrixAccess {
  bool transposed = false;
  int matrices = 1;                      // 1, 2 or 4
  std::vector<std::vector<int>> groups;  // registers of each instruction: matrix by matrix, 4 bytes of elements each
  XorMap address;                        // bytes: lane l gives address.apply(groups[i][0], l, warp)
};
/// Nothing when the layouts do not factor through such matrices.
std::optional<MatrixAccess> plan_matrix_access(const LinearLayout& tile, const LinearLayout& shared, int element_bytes);

}  // namespace kiln::layout
