#include "compiler/target/matmul_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/target/target.h"

namespace kiln {

namespace {

constexpr int64_t kBarrierBytes = 2 << 10;               // of shared memory, at most
constexpr int64_t kMostStagingBytes = 64 << 10;          // of a result on its way out: larger ones leave in parts
constexpr int kFewestSteps = 4;                          // of a part of a split sum
constexpr int kFewestStages = 3, kMostRingBytes = 2048;  // of a row, in all stages

/// What a program's first loads and last stores take, as a part of the time that its products take in one round.
constexpr double kEnds = 0.2;

/// A row of matmul_tile.def.
struct TileSpeed {
  int m, n, warps, ctas;
  int row_bytes;  // of a row of A or B in one stage: whole swizzle patterns of 128
  int group_m;
  double share, share_of_words;
};
constexpr TileSpeed kTiles[] = {
#define KILN_MATMUL_TILE(M, N, WARPS, CTAS, ROW_BYTES, GROUP_M, SHARE, SHARE_OF_WORDS) \
  {M, N, WARPS, CTAS, ROW_BYTES, GROUP_M, SHARE, SHARE_OF_WORDS},
#include "compiler/target/matmul_tile.def"
};

int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Whether so many tiles leave half of the multiprocessors idle.
bool are_few(int64_t tiles, int multiprocessors) { return tiles * 2 <= multiprocessors; }

}  // namespace

std::string to_string(const MatmulTile& t) {
  return fmt::format("{}x{}x{}, {} stages, {} warps{}{}", t.m, t.n, t.k, t.stages, t.warps,
                     t.splits > 1 ? fmt::format(", {} splits", t.splits) : "",
                     t.ctas > 1 ? fmt::format(", {} blocks", t.ctas) : "") +
         (t.pdl ? ", launched early" : "");
}

std::vector<MatmulTile> rank_tiles(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors,
                                   int most_ctas) {
  const int64_t shared_bytes = target::find(target::kDefaultGpu)->shared_per_block - kBarrierBytes;
  std::vector<std::pair<double, MatmulTile>> ranked;
  for (const TileSpeed& t : kTiles) {
    const double share = operand_bytes < 4 ? t.share : t.share_of_words;
    const int64_t tiles = cdiv(m, t.m) * cdiv(n, t.n);
    if (t.ctas > most_ctas || share == 0 || multiprocessors < t.ctas) continue;
    if (t.ctas > 1 && are_few(tiles * t.ctas, multiprocessors)) continue;  // programs rather split sums
    // Of one block, which has its part of the longer side.
    const int rows = t.m >= t.n ? t.m / t.ctas : t.m, columns = t.m >= t.n ? t.n : t.n / t.ctas;
    const int64_t stage = int64_t{rows + columns} * t.row_bytes,
                  staging = std::min(int64_t{rows} * columns * result_bytes, kMostStagingBytes);
    const int64_t most = kMostRingBytes / t.row_bytes;
    const auto stages = static_cast<int>(std::min(most, (shared_bytes - staging) / stage));
    if (stages < kFewestStages) continue;
    const int64_t rounds = cdiv(tiles, multiprocessors / t.ctas);
    const double time = (static_cast<double>(rounds) + kEnds) * rows * columns / share;
    MatmulTile tile{t.m, t.n, t.row_bytes / operand_bytes, stages, t.warps, t.group_m};
    tile.ctas = t.ctas;
    ranked.push_back({time, tile});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<MatmulTile> out;
  for (const auto& [time, tile] : ranked) out.push_back(tile);
  return out;
}

MatmulTile choose_tile(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors, int most_ctas) {
  return rank_tiles(m, n, operand_bytes, result_bytes, multiprocessors, most_ctas).at(0);
}

int choose_splits(const MatmulTile& tile, int64_t m, int64_t n, int64_t k, int multiprocessors) {
  const int64_t tiles = cdiv(m, tile.m) * cdiv(n, tile.n), steps = cdiv(k, tile.k);
  if (tile.ctas > 1 || tiles == 0 || !are_few(tiles, multiprocessors)) return 1;
  return static_cast<int>(std::max<int64_t>(1, std::min(multiprocessors / tiles, steps / kFewestSteps)));
}

}  // namespace kiln
