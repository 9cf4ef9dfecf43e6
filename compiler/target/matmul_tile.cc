#include "compiler/target/matmul_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/target/target.h"

namespace kiln {

namespace {

constexpr int64_t kBarrierBytes = 2 << 10;               // of shared memory, at most
constexpr int64_t kMostStagingBytes = 64 << 10;          // of a result on its way out: larger ones leave in parts,
constexpr int64_t kMostStagingBytesOfTwo = 32 << 10;     // and smaller parts where a tile has two sums
constexpr int kFewestSteps = 4;                          // of a part of a split sum
constexpr int kFewestStages = 3, kMostRingBytes = 2048;  // of a row, in all stages
constexpr int64_t kLongStageBytes = 56 << 10;            // two of these are enough
constexpr int kFewestColumns = 16;                       // of each of several sums

// The model of an H200, fitted on 40 products drawn at random, each with all tiles, and again on nine of one to four
// rounds of programs with 250 tiles. Rows of 128 bytes that begin within a line of the L2 are read from two of them,
// and those that begin within a sector of 32 bytes from one sector more (measured on an H100). Where blocks of columns
// begin within lines, two programs read each of these at different times: 272 x 3968 x 2240 takes 23.7 us in tiles of
// 128 x 96, and 18.9 in those of 128 x 128.
constexpr double kFlopPerUs = 6.1e6;       // of a multiprocessor, with operands of 16 bits
constexpr double kMostBytesPerUs = 138e3;  // from the L2 to one of them; and when all load:
constexpr double kBytesPerUs = 85e3, kTwoLinesBytesPerUs = 58e3, kSplitSectorsBytesPerUs = 45e3;
constexpr double kSharedLinesBytesPerUs = 40e3;
constexpr double kRoundUs = 0.25, kElementUs = 3e-5;  // of a tile's end; of an element of 16 bits, stored
constexpr double kReadUs = 1.6e-4;  // of an element of 16 bits beside the product, where threads load it
constexpr double kLaunchUs = 2.5;
constexpr double kMemoryBytesPerUs = 4.2e6;

/// A row of matmul_tile.def.
struct TileSpeed {
  int m, n, tail, warps, ctas;
  int row_bytes;  // of a row of A or B in one stage: whole swizzle patterns of 128
  int group_m;
  double share, share_of_words;
};
constexpr TileSpeed kTiles[] = {
#define KILN_MATMUL_TILE(M, N, TAIL, WARPS, CTAS, ROW_BYTES, GROUP_M, SHARE, SHARE_OF_WORDS) \
  {M, N, TAIL, WARPS, CTAS, ROW_BYTES, GROUP_M, SHARE, SHARE_OF_WORDS},
#include "compiler/target/matmul_tile.def"
};

int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tiles_of(const ProductSize& s, int64_t m, int64_t n) { return cdiv(s.m, m) * cdiv(s.n, n) * s.batch; }

/// Whether so many tiles leave half of the multiprocessors idle.
bool are_few(int64_t tiles, int multiprocessors) { return tiles * 2 <= multiprocessors; }

}  // namespace

std::string to_string(const MatmulTile& t) {
  const std::string columns = t.tail ? fmt::format("({}+{})", t.n - t.tail, t.tail) : std::to_string(t.n);
  return fmt::format("{}x{}x{}, {} stages, {} warps{}{}", t.m, columns, t.k, t.stages, t.warps,
                     t.splits > 1 ? fmt::format(", {} splits", t.splits) : "",
                     t.ctas > 1 ? fmt::format(", {} blocks", t.ctas) : "") +
         (t.pdl ? ", launched early" : "");
}

namespace {

/// Rows and columns of a tile that one of a program's blocks has: they divide the longer side of its (first) sum.
struct Share {
  int rows, columns;
};
bool divides_rows(const TileSpeed& t) { return t.m >= t.n - t.tail; }
Share share_of(const TileSpeed& t) { return divides_rows(t) ? Share{t.m / t.ctas, t.n} : Share{t.m, t.n / t.ctas}; }

/// Of shared memory, for results on their way out in blocks: large ones leave in parts, and equal parts share a buffer.
int64_t staging_bytes(const TileSpeed& t, int sums, int bytes) {
  const int rows = share_of(t).rows, columns = share_of(t).columns / sums, tail = t.tail / sums;
  auto part = [&](int width) {
    int64_t size = int64_t{rows} * width * bytes;
    while (size > (t.tail ? kMostStagingBytesOfTwo : kMostStagingBytes)) size /= 2;
    return size;
  };
  const int64_t first = part(columns - tail), last = tail ? part(tail) : 0;
  return first == last ? first : first + last;
}

/// Of the tensor cores' time, what one keeps of several sums: shared memory gives 128 bytes a cycle, so that one of 64
/// rows reads its operands for as long as it multiplies 64 columns, and narrower ones wait for it.
double share_beside_others(const TileSpeed& t, int sums) {
  if (sums == 1) return 1;
  auto cycles = [](double columns) { return columns / 2; };
  auto read = [](double columns) { return 16 + columns / 4; };
  const double first = static_cast<double>(t.n - t.tail) / sums, tail = static_cast<double>(t.tail) / sums;
  const double taken = std::max(cycles(first), read(first)) + (tail > 0 ? std::max(cycles(tail), read(tail)) : 0);
  return (cycles(first) + cycles(tail)) / taken;
}

/// `by_threads`: what lies beside the product is loaded by threads, for want of shared memory.
double product_us(const ProductSize& size, const TileSpeed& t, int multiprocessors, bool by_threads) {
  const int64_t tiles = tiles_of(size, t.m, t.n / size.sums), k = t.row_bytes / size.operand_bytes,
                steps = cdiv(cdiv(size.k, k), size.splits), places = multiprocessors / t.ctas;
  const auto [rows, columns] = share_of(t);
  constexpr int kSectorBytes = 32;
  // Of narrow tiles without a tail the share has it in it.
  const bool shares_lines = size.b_along_n && t.tail && t.tail / size.sums * size.operand_bytes % kLineBytes != 0;
  auto load_us = [&](int length, bool shared, int alignment, bool lines_are_shared, int64_t programs) {
    const double when_all = alignment < kSectorBytes ? kSplitSectorsBytesPerUs
                            : alignment < kLineBytes ? kTwoLinesBytesPerUs
                            : lines_are_shared       ? kSharedLinesBytesPerUs
                                                     : kBytesPerUs;
    // The fewer load, the more is left for each.
    const double bytes_per_us =
        std::min(kMostBytesPerUs, when_all * static_cast<double>(places) / static_cast<double>(programs));
    return static_cast<double>(length) * t.row_bytes / (shared ? t.ctas : 1) / bytes_per_us;
  };
  const bool words = size.operand_bytes == 4;
  const double products =
      2.0 * rows * columns * static_cast<double>(k) /
      (kFlopPerUs * 2 / size.operand_bytes * (words ? t.share_of_words : t.share) * share_beside_others(t, size.sums));
  const double stored = size.result_bytes + size.scattered_bytes;
  const double elements = static_cast<double>(rows) * columns / size.sums / 2;
  const double end =
      kRoundUs + kElementUs * elements * stored + (by_threads ? kReadUs : kElementUs) * elements * size.read_bytes;
  auto round_us = [&](int64_t programs) {
    if (programs == 0) return 0.0;
    const double loads = load_us(rows, !divides_rows(t), size.a_alignment, false, programs) +
                         load_us(columns, divides_rows(t), size.b_alignment, shares_lines, programs);
    return static_cast<double>(steps) * std::max(products, loads) + end;
  };
  const double all_bytes =
      static_cast<double>(size.batch) *
      (static_cast<double>((size.m + size.sums * size.n) * size.k) * size.operand_bytes / size.splits +
       static_cast<double>(size.m * size.n) * (stored + size.read_bytes));
  const int64_t full_rounds = tiles / places;
  const double in_programs = static_cast<double>(full_rounds) * round_us(places) + round_us(tiles % places),
               from_memory = all_bytes / kMemoryBytesPerUs;
  // Programs that wait for memory anyway still take longer when they have more to do.
  constexpr double kHidden = 0.85;
  return kLaunchUs + std::max(in_programs, from_memory) + (1 - kHidden) * std::min(in_programs, from_memory);
}

struct RankedTile {
  double us;
  MatmulTile tile;
};
std::vector<RankedTile> ranked(const ProductSize& size, int multiprocessors, TileLimits limits) {
  const int64_t shared_bytes = target::find(target::kDefaultGpu)->shared_per_block - kBarrierBytes;
  std::vector<RankedTile> out;
  for (const TileSpeed& t : kTiles) {
    const double share = size.operand_bytes < 4 ? t.share : t.share_of_words;
    if (t.ctas > limits.most_ctas || share == 0 || multiprocessors < t.ctas || (t.tail && !limits.has_tail)) continue;
    // Of few rows narrow tiles would read many empty ones for each of their columns: others read no more of them.
    constexpr int kFewestRows = 16, kNarrow = 32;
    const int n = t.n / size.sums, tail = t.tail / size.sums;
    if (size.sums > 1 && (n < kFewestColumns || (tail > 0 && tail < kFewestColumns))) continue;
    if (size.m <= kFewestRows && t.m > kFewestRows && t.n <= kNarrow) continue;
    if (t.ctas > 1 && are_few(tiles_of(size, t.m, n) * t.ctas, multiprocessors)) continue;  // rather split sums
    const auto [rows, columns] = share_of(t);
    // Of fewer rows the product is made the other way round, of as many columns.
    constexpr int kWgmmaRows = 64;
    if (rows < kWgmmaRows && columns / size.sums < kWgmmaRows) continue;
    const int64_t elements = int64_t{rows} * columns / size.sums;
    const int64_t stage = int64_t{rows + columns} * t.row_bytes,
                  staged = staging_bytes(t, size.sums, size.result_bytes) + elements * size.scattered_bytes;
    // The result of a program's only tile takes the place of the stages, if no other block still fills these.
    const bool once = t.ctas == 1 && tiles_of(size, t.m, n) <= multiprocessors;
    const int64_t staging = once ? 0 : staged;
    const int64_t most = kMostRingBytes / t.row_bytes,
                  least = stage >= kLongStageBytes ? kFewestStages - 1 : kFewestStages;
    auto stages_beside = [&](int64_t bytes) { return std::min(most, (shared_bytes - bytes) / stage); };
    const int64_t beside = staging + elements * size.read_bytes;
    const bool by_threads = stages_beside(beside) < least;
    const int64_t stages = stages_beside(by_threads ? staging : beside);
    if (stages < least || staged > shared_bytes) continue;
    // Few columns of tiles are all made at a time: neighbours then share what is larger, the rows of A.
    constexpr int64_t kFewColumns = 8;
    const int group = cdiv(size.n, n) <= kFewColumns ? 1 : t.group_m;
    MatmulTile tile{t.m, n, t.row_bytes / size.operand_bytes, static_cast<int>(stages), t.warps, group};
    tile.ctas = t.ctas;
    tile.tail = tail;
    out.push_back({product_us(size, t, multiprocessors, by_threads), tile});
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  return out;
}

}  // namespace

std::vector<MatmulTile> rank_tiles(const ProductSize& size, int multiprocessors, TileLimits limits) {
  std::vector<MatmulTile> out;
  for (const RankedTile& r : ranked(size, multiprocessors, limits)) out.push_back(r.tile);
  return out;
}

double least_us(const ProductSize& size, int multiprocessors, TileLimits limits) {
  return ranked(size, multiprocessors, limits).at(0).us;
}

MatmulTile choose_tile(const ProductSize& size, int multiprocessors, TileLimits limits) {
  return rank_tiles(size, multiprocessors, limits).at(0);
}

int choose_splits(const MatmulTile& tile, const ProductSize& size, int places) {
  const int64_t tiles = tiles_of(size, tile.m, tile.n), steps = cdiv(size.k, tile.k);
  if (tile.ctas > 1 || tiles == 0 || !are_few(tiles, places)) return 1;
  return static_cast<int>(std::max<int64_t>(1, std::min(places / tiles, steps / kFewestSteps)));
}

}  // namespace kiln
