// Tiles of matrix products on Hopper: the one table from which kernels and the fuser choose.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// Of the L2, in bytes.
inline constexpr int kLineBytes = 128;

/// A tile of the product, and how a program makes it. The blocks of a program (`ctas`) part the tile's longer side.
/// Where a tile has several sums, its columns are those of each.
struct MatmulTile {
  int m = 0, n = 0, k = 0;  // elements; k: of one stage
  int stages = 0, warps = 0, group_m = 8;
  int splits = 1;    // programs that share the sum of a tile
  int ctas = 1;      // blocks of a program
  int tail = 0;      // of the columns: the last ones, when a second sum has them
  bool pdl = false;  // launched with launch_pdl
  bool operator==(const MatmulTile&) const = default;
};
/// "128x256x64, 3 stages, 8 warps", "16x64x128, 4 stages, 4 warps, 8 splits" or "128x(128+64)x64, 4 stages, 8 warps".
std::string to_string(const MatmulTile& tile);

/// `batch` products [m, k] · [k, n].
struct ProductSize {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int operand_bytes = 2, result_bytes = 2;  // of an element; of all results that leave in blocks
  int scattered_bytes = 0;  // of the widest result that threads store: a whole tile of it goes through shared memory
  int read_bytes = 0;  // of an element: of what lies beside the product and may come in blocks (select_block_loads)
  int splits = 1;      // programs that share the sum of a tile: `batch` counts them
  int sums = 1;        // of a tile, each with columns of its own right operand, over one block of the left one
  /// Rows of memory of each operand begin at multiples of so many bytes, as far as that counts: 16 to a line.
  int a_alignment = kLineBytes, b_alignment = kLineBytes;
  bool b_along_n = false;  // rows of memory of the right operand lie along n
};

/// What the kernel of a product can do.
struct TileLimits {
  int most_ctas = 1;      // blocks of a program: more than one where the GPU has clusters
  bool has_tail = false;  // a second sum with a number of columns of its own: blocks have powers of two, tiles need not
};

/// The tiles that fit a block's shared memory, with k and stages as the bytes of the elements allow; the one that takes
/// the least time on `multiprocessors` first, by a model of Hopper: rounds of programs, each as long as its products or
/// its loads take, whichever is longer.
std::vector<MatmulTile> rank_tiles(const ProductSize& size, int multiprocessors, TileLimits limits = {});

/// What the model says that the first of them takes, in microseconds.
double least_us(const ProductSize& size, int multiprocessors, TileLimits limits);

/// The first of them.
MatmulTile choose_tile(const ProductSize& size, int multiprocessors, TileLimits limits = {});

/// How many programs should share the sum over k of each tile: more than one where the results have tiles for less than
/// half of the places for programs (multiprocessors, or more where several programs fit on one), and programs have one
/// block.
int choose_splits(const MatmulTile& tile, const ProductSize& size, int places);

}  // namespace kiln
