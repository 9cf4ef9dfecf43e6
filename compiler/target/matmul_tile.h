// Tiles of matrix products on Hopper: the one table from which kernels and the fuser choose.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// A tile of the product, and how a program makes it. The blocks of a program (`ctas`) part the tile's longer side.
struct MatmulTile {
  int m = 0, n = 0, k = 0;  // elements; k: of one stage
  int stages = 0, warps = 0, group_m = 8;
  int splits = 1;    // programs that share the sum of a tile
  int ctas = 1;      // blocks of a program
  bool pdl = false;  // launched with launch_pdl
  bool operator==(const MatmulTile&) const = default;
};
/// "128x256x64, 3 stages, 8 warps", or "16x64x128, 4 stages, 4 warps, 8 splits".
std::string to_string(const MatmulTile& tile);

/// The tiles that fit a block's shared memory, with k and stages as the bytes of the elements allow; the one that takes
/// the least time for a product [m, k] · [k, n] on `multiprocessors` first, by the number of rounds and a table of how
/// fast each tile goes on Hopper. Programs have up to `most_ctas` blocks: more than one where the GPU has clusters and
/// the kernel is launched with that many.
std::vector<MatmulTile> rank_tiles(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors,
                                   int most_ctas = 1);

/// The first of them.
MatmulTile choose_tile(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors,
                       int most_ctas = 1);

/// How many programs should share the sum over k of each tile: more than one where the result has tiles for less than
/// half of the multiprocessors, and programs have one block.
int choose_splits(const MatmulTile& tile, int64_t m, int64_t n, int64_t k, int multiprocessors);

}  // namespace kiln
