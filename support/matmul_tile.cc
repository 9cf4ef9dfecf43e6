#include "support/matmul_tile.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln {

namespace {

constexpr int64_t kSharedBytes = 225 << 10;      // of a Hopper block, but for barriers
constexpr int64_t kMostStagingBytes = 64 << 10;  // of a result on its way out: larger ones leave in parts
constexpr int kFewestSteps = 4;                  // of a part of a split sum
constexpr int kFewestStages = 3, kMostStages = 8;

/// Tiles, and the share of the tensor cores' speed that each keeps busy (H200, long K), with operands of up to 16 bits
/// and of 32. Small tiles take more of K at a time, as they wait more often than they multiply. Of 32 bits, the operand
/// that goes through registers (B along N) costs less where the tile is narrow.
struct TileSpeed {
  int m, n, warps;
  int row_bytes;  // of a row of A or B in one stage: whole swizzle patterns of 128
  double share, share_of_words;
};
constexpr TileSpeed kTiles[] = {
    {128, 256, 8, 128, 1.0, 0.90}, {256, 128, 8, 128, 0.99, 1.0}, {128, 128, 8, 128, 0.90, 0.83},
    {64, 256, 4, 128, 0.85, 0.75}, {128, 64, 8, 256, 0.72, 0.60}, {64, 128, 4, 128, 0.68, 0.60},
    {64, 64, 4, 256, 0.45, 0.40},  {64, 32, 4, 256, 0.28, 0.25},  {16, 64, 4, 256, 0.15, 0.15},
};

int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::string to_string(const MatmulTile& t) {
  return fmt::format("{}x{}x{}, {} stages, {} warps{}", t.m, t.n, t.k, t.stages, t.warps,
                     t.splits > 1 ? fmt::format(", {} splits", t.splits) : "");
}

std::vector<MatmulTile> rank_tiles(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors) {
  std::vector<std::pair<double, MatmulTile>> ranked;
  for (const TileSpeed& t : kTiles) {
    const int64_t stage = int64_t{t.m + t.n} * t.row_bytes,
                  staging = std::min(int64_t{t.m} * t.n * result_bytes, kMostStagingBytes);
    const auto stages = static_cast<int>(std::min<int64_t>(kMostStages, (kSharedBytes - staging) / stage));
    if (stages < kFewestStages) continue;
    const int64_t rounds = cdiv(cdiv(m, t.m) * cdiv(n, t.n), multiprocessors);
    const double share = operand_bytes < 4 ? t.share : t.share_of_words;
    const double time = static_cast<double>(rounds) * t.m * t.n / share;
    ranked.push_back({time, {t.m, t.n, t.row_bytes / operand_bytes, stages, t.warps, 8}});
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<MatmulTile> out;
  for (const auto& [time, tile] : ranked) out.push_back(tile);
  return out;
}

MatmulTile choose_tile(int64_t m, int64_t n, int operand_bytes, int result_bytes, int multiprocessors) {
  return rank_tiles(m, n, operand_bytes, result_bytes, multiprocessors).at(0);
}

int choose_splits(const MatmulTile& tile, int64_t m, int64_t n, int64_t k, int multiprocessors) {
  const int64_t tiles = cdiv(m, tile.m) * cdiv(n, tile.n), steps = cdiv(k, tile.k);
  if (tiles == 0 || tiles * 2 > multiprocessors) return 1;
  return static_cast<int>(std::max<int64_t>(1, std::min(multiprocessors / tiles, steps / kFewestSteps)));
}

}  // namespace kiln
