#include "compiler/fusion/pointer_product.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/writer.h"

namespace kiln::fusion {

namespace {

using Rates = target::PointerProductRates;

constexpr int kLeastSide = 16;  // of a tile

/// From one row of an operand to the next.
int64_t row_bytes(const Operand& o, int bytes) {
  const size_t r = o.shape.size();
  return (o.strides[r - 1] == 1 ? o.strides[r - 2] : o.strides[r - 1]) * bytes;
}

/// One step of a 128 x 128 tile along 128 bytes of k, through pointers: what an operand costs.
double pointer_step_us(const Operand& o, int bytes, bool words, const Rates& rates) {
  const size_t r = o.shape.size();
  if (words) return rates.words_us;
  if (o.strides[r - 1] != 1 && o.strides[r - 2] != 1) return rates.singly_us;
  const int64_t row = row_bytes(o, bytes);
  return row % 16 == 0 ? rates.by_16_us : row % 8 == 0 ? rates.by_8_us : row % 4 == 0 ? rates.by_4_us : rates.singly_us;
}

constexpr int kTallRows = 128, kOtherSide = 64, kLargeSide = 128, kTallDepth = 16, kOtherDepth = 32;

/// Whether a thread has 16 x 8 sums of float32.
bool is_large(const DagNode& product, const MatmulTile& tile) {
  return sums_elements(product) && tile.m >= kTallRows && tile.n >= kLargeSide;
}

bool lies_along_k(const Operand& o, bool is_left) {
  const size_t rank = o.shape.size();
  return o.strides[is_left ? rank - 1 : rank - 2] == 1;
}

bool lies_across_k(const DagNode& product) {
  const Operand &a = product.operands[0], &b = product.operands[1];
  const size_t rank = a.shape.size();
  return a.strides[rank - 2] == 1 && b.strides[rank - 1] == 1;
}

bool lies_along_k(const DagNode& product) {
  return lies_along_k(product.operands[0], true) && lies_along_k(product.operands[1], false);
}

/// Whether rows of an operand begin at odd addresses, so that they are copied in words of 8 or 4 bytes, through the L1.
bool has_odd_rows(const DagNode& product) {
  return std::any_of(product.operands.begin(), product.operands.begin() + 2,
                     [&](const Operand& o) { return row_bytes(o, size_of(product.operand_type)) % 16 != 0; });
}

/// Of the speed that the model gives large tiles, what they have: four k of an operand along k are read at a time, for
/// which few registers are left (4096^3 on an H200 in TFLOP/s: NT 45, by 128 x 64 44; TN 49).
double share_of_large(const DagNode& product) {
  if (lies_across_k(product)) return 1;
  return lies_along_k(product.operands[0], true) ? 0.88 : 0.82;
}

/// One step of a tile along its k, of a multiprocessor that has as many programs as it can use.
double step_us(const DagNode& n, const MatmulTile& tile, const Rates& rates) {
  const int bytes = size_of(n.operand_type);
  const double sides = rates.read_sides;
  if (sums_elements(n))
    return (rates.step_us * rates.busy[0] + 2.0 * (tile.m + sides) * (tile.n + sides) * tile.k /
                                                ((1 + sides / 64) * (1 + sides / 64) * rates.flop_per_us)) /
           (is_large(n, tile) ? share_of_large(n) : 1);
  const bool words = bytes == 4;
  const double alone = (tile.m * pointer_step_us(n.operands[0], bytes, words, rates) +
                        tile.n * pointer_step_us(n.operands[1], bytes, words, rates)) /
                           128 +
                       (tile.m * n.made[0] + tile.n * n.made[1]) * tile.k / rates.made_flop_per_us;
  return (rates.step_us + alone) * rates.busy[0];
}

/// Sums in registers take small tiles: 128 x 64 of float32, of which a thread has 8 x 8, and 16 steps of k at a time
/// leave them the registers (4096^3 on an H100, in TFLOP/s: 42 to 46, cuBLAS 52; 64 x 128 43, 128 x 128 42 at most).
/// Where both operands lie across k, a step reads one k of each at a time, which leaves registers for 16 x 8 sums of a
/// thread (TN: 49, 128 x 64 46, cuBLAS 52).
bool is_in_registers(const DagNode& product, const Machine& machine) {
  return machine.gpu() && (sums_elements(product) || size_of(product.operand_type) == 8);
}

/// Shared memory of one step along k.
int64_t stage_bytes(const DagNode& product, const MatmulTile& tile) {
  return int64_t{tile.m + tile.n} * tile.k * size_of(product.operand_type);
}

/// Whether a small tile leaves registers for a fourth program: one of fewer columns in a step, or of fewer sums, unless
/// odd rows are copied in words along k, for which threads keep addresses (8000 x 127 x 1152 NN on an H200: 68 us by
/// 128 x 64, 72 by 64 x 32; aligned rows, 3392 x 288 x 808 TN: 59 and 49).
bool leaves_registers(const DagNode& n, const MatmulTile& tile, const Machine& machine) {
  if (!sums_elements(n) || tile.m > kOtherSide || tile.n > kOtherSide) return false;
  if (tile.m == kOtherSide && tile.n == kOtherSide) return tile.k < kOtherDepth;
  return machine.gpu() && size_of(n.operand_type) == 4 && (!has_odd_rows(n) || lies_across_k(n));
}

/// Programs that a multiprocessor has at once, as far as more make it busier.
std::span<const double> busy_of(const DagNode& n, const MatmulTile& tile, const Machine& machine) {
  const Rates& rates = machine.rates().pointer_product;
  std::span<const double> busy = rates.busy;
  if (is_large(n, tile))
    busy = rates.busy_of_large;
  else if (leaves_registers(n, tile, machine))
    busy = rates.busy_of_small;
  const int64_t fit = machine.shared_bytes / (tile.stages * stage_bytes(n, tile));
  return busy.first(static_cast<size_t>(std::clamp<int64_t>(fit, 1, std::ssize(busy))));
}

/// Tiles of the result, without those of its parts.
int64_t tiles_of(const DagNode& n, const MatmulTile& tile) {
  const ProductSize size = size_of_product(n);
  return cdiv(size.m, tile.m) * cdiv(size.n, tile.n) * (size.batch / n.splits);
}

/// What the product takes with `splits` programs for each tile, and the sum of their parts.
double time_us(const DagNode& n, const MatmulTile& tile, int64_t splits, const Machine& machine) {
  const ProductSize size = size_of_product(n);
  const std::span<const double> busy = busy_of(n, tile, machine);
  const int64_t tiles = tiles_of(n, tile), steps = cdiv(size.k, tile.k), room = std::ssize(busy),
                programs = std::max<int64_t>(1, cdiv(tiles * splits, machine.multiprocessors));
  // Rounds of as many as there is room for, and a last one of fewer, which keep it less busy. Programs drift apart with
  // each round, so that fewer of them wait for the last ones (4096^3 float32 on an H200: 2953 us in 5.2 rounds, and
  // 2990 in 10.3 of half as long sums).
  auto round = [&](int64_t resident) {
    return resident == 0 ? 0 : static_cast<double>(resident) / busy[static_cast<size_t>(resident - 1)];
  };
  const int64_t full = programs / room;
  const int64_t rest = programs % room;
  const double idle = round(rest) - static_cast<double>(rest) / busy.back();
  const double drifted = 1 - 1.0 / static_cast<double>(std::max<int64_t>(1, full));
  const double rounds = static_cast<double>(full) * round(room) + round(rest) - idle * drifted;
  const target::Rates& rates = machine.rates();
  double us = rates.pointer_product.launch_us +
              static_cast<double>(cdiv(steps, splits)) * rounds * step_us(n, tile, rates.pointer_product);
  if (splits > 1)
    us += rates.kernel_us +
          2.0 * size_of(sum_type(n)) * static_cast<double>(splits * tiles * tile.m * tile.n) / rates.part_bytes_per_us;
  return us;
}

/// Short sums of odd rows have half as many columns in a step: less to wait for at first, and registers for a fourth
/// program (13844 x 250 x 250 float32 on an H200: 63 us by 16 columns, 68 by 32; 5002 x 322 x 402: 57, 68; 4100 x 516 x
/// 1030: 196, 158). So have those of any length where both operands lie along k, of which 32 columns take 228 registers
/// (9640 x 1312 x 491 NT: 363 us, 390; 2999 x 1501 x 999: 277, 280).
int depth_in_registers(const DagNode& product, const MatmulTile& tile) {
  constexpr int64_t kShortSum = 448;
  const bool is_square = tile.m == kOtherSide && tile.n == kOtherSide && size_of(product.operand_type) == 4;
  const bool is_shallow = has_odd_rows(product) && (size_of_product(product).k <= kShortSum || lies_along_k(product));
  return tile.m == kTallRows || (is_square && is_shallow) ? kTallDepth : kOtherDepth;
}

MatmulTile largest_tile(const DagNode& product, const Machine& machine) {
  const ProductSize size = size_of_product(product);
  const bool in_registers = is_in_registers(product, machine);
  auto side = [](int64_t n, int64_t most) { return std::clamp<int64_t>(power_of_two(n), kLeastSide, most); };
  const int64_t most = in_registers ? kOtherSide : 128,
                most_m = in_registers && size.operand_bytes == 4 && size.n >= kOtherSide ? kTallRows : most;
  MatmulTile tile;
  tile.m = static_cast<int>(side(size.m, most_m));
  const bool large = in_registers && size.operand_bytes == 4 && tile.m == kTallRows && lies_across_k(product);
  tile.n = static_cast<int>(side(size.n, large ? kLargeSide : most));
  const int64_t most_k = !machine.gpu() ? 64
                         : in_registers ? depth_in_registers(product, tile)
                                        : 128 / size.operand_bytes;
  tile.k = static_cast<int>(std::max<int64_t>(side(size.k, most_k), size.operand_bytes == 1 ? 32 : 16));
  return with_stages(tile, product, machine);
}

/// The tile for `splits` programs that share each sum: a smaller one than the largest where that leaves processors idle
/// and the model says that it pays.
MatmulTile tile_for(const DagNode& product, int64_t splits, const Machine& machine) {
  const MatmulTile largest = largest_tile(product, machine);
  // Of sums in registers also where all have some: tall tiles leave more outside, and more idle in the last round.
  const bool in_registers = is_in_registers(product, machine);
  if (!machine.gpu() || (!in_registers && tiles_of(product, largest) * splits >= machine.multiprocessors))
    return largest;
  const int64_t depth = std::max<int64_t>(kLeastSide, size_of_product(product).k);
  MatmulTile best = largest;
  double least = time_us(product, largest, splits, machine);
  // Large tiles also leave fewer of them for the last round: 1840 x 2048 x 512 is 3.6 programs of 128 x 64 on each
  // multiprocessor, which has three at a time, and 1.8 of 128 x 128, of which it has two. Where only a lies along k,
  // 128 x 64 was faster (4096^3 NN 46.5 TFLOP/s, 43 by 128 x 128; 64 of 256^3 58.8 us, 59.8).
  const bool may_be_large = in_registers && sums_elements(product) && size_of(product.operand_type) == 4 &&
                            largest.m == kTallRows && size_of_product(product).n > kOtherSide &&
                            lies_along_k(product.operands[1], false) && !has_odd_rows(product);
  // Wide tiles are tall ones: a thread of 64 x 128 spills the addresses of odd rows (2979 x 1585 x 252 TN).
  auto most_columns = [&](int m) {
    if (m == kTallRows) return may_be_large ? kLargeSide : largest.n;
    return in_registers ? std::min(largest.n, kOtherSide) : largest.n;
  };
  for (int m = largest.m; m >= kLeastSide; m /= 2)
    for (int n = most_columns(m); n >= kLeastSide; n /= 2) {
      MatmulTile tile = largest;
      tile.m = m, tile.n = n;
      if (in_registers)
        tile.k = static_cast<int>(std::min<int64_t>(depth_in_registers(product, tile), power_of_two(depth)));
      tile = with_stages(tile, product, machine);
      const double us = time_us(product, tile, splits, machine);
      if (us < least * 0.97) least = us, best = tile;
    }
  return best;
}

}  // namespace

MatmulTile with_stages(MatmulTile tile, const DagNode& product, const Machine& machine) {
  constexpr int64_t kOther = 4096;  // bytes of shared memory that are no stages
  // Odd rows are copied through the L1, which needs some of that memory (the last product above: 158 us with three
  // stages, 190 with four), and in words, of which each stage takes registers for addresses: tall tiles spill with four
  // (3653 x 2407 x 401 NN 201 us with three, 222 with four). Small tiles across k have the registers (3055 x 536 x 2616
  // TN: 247 and 233).
  const bool in_words = is_in_registers(product, machine) && size_of(product.operand_type) == 4;
  const bool is_tall = in_words && tile.m == kTallRows, has_registers = in_words && lies_across_k(product);
  const bool leaves_room = is_tall || (tile.k == kOtherDepth && !has_registers);
  const int64_t most = sums_elements(product) && has_odd_rows(product) && leaves_room ? 3 : 4;
  tile.stages =
      static_cast<int>(std::clamp<int64_t>((machine.shared_bytes - kOther) / stage_bytes(product, tile), 2, most));
  tile.warps = tile.m * tile.n >= 128 * 128 && !(machine.gpu() && is_large(product, tile)) ? 8 : 4;
  return tile;
}

MatmulTile pointer_tile(const DagNode& product, const Machine& machine) {
  return tile_for(product, product.splits, machine);
}

std::vector<MatmulTile> other_pointer_tiles(const DagNode& product, const MatmulTile& tile, const Machine& machine) {
  std::vector<MatmulTile> out;
  auto add = [&](int m, int n, int k) {
    if (m > 2 * tile.m || n > 2 * tile.n) return;
    MatmulTile other = tile;
    other.m = m, other.n = n, other.k = k;
    other = with_stages(other, product, machine);
    if (other != tile && std::ranges::find(out, other) == out.end()) out.push_back(other);
  };
  if (!is_in_registers(product, machine) || size_of(product.operand_type) != 4) {
    if (!sums_elements(product)) add(128, 128, tile.k);
    for (auto [m, n] : {std::pair{128, 64}, {64, 128}, {64, 64}, {32, 64}}) add(m, n, tile.k);
    return out;
  }
  if (lies_across_k(product) || !has_odd_rows(product)) add(kTallRows, kLargeSide, kTallDepth);  // others spill
  for (int n : {kOtherSide, kOtherSide / 2}) add(kTallRows, n, kTallDepth);
  for (int n : {kOtherSide, kOtherSide / 2})
    for (int k : {kOtherDepth, kTallDepth}) add(kOtherSide, n, k);
  return out;
}

int most_registers(const DagNode& product, const MatmulTile& tile) {
  constexpr int kOfThreePrograms = 168;  // of four warps each
  return sums_elements(product) && tile.m == kTallRows && tile.n == kOtherSide ? kOfThreePrograms : 0;
}

double pointer_product_us(const DagNode& product, const MatmulTile& tile, const Machine& machine) {
  return time_us(product, tile, product.splits, machine);
}

SplitTime best_pointer_split(const DagNode& n, const Machine& machine) {
  constexpr int64_t kFewestSteps = 4, kMost = 512;  // of a part; of the parts
  constexpr int64_t kFinely = 16;                   // of more parts, one more makes little difference
  const int64_t steps = cdiv(size_of_product(n).k, largest_tile(n, machine).k);
  SplitTime best{1, 0};
  for (int64_t splits = 1; splits <= std::min(kMost, std::max<int64_t>(1, steps / kFewestSteps));
       splits += std::max<int64_t>(1, splits / kFinely)) {
    const double us = time_us(n, tile_for(n, splits, machine), splits, machine);
    if (splits == 1 || us < best.us * 0.97) best = {splits, us};
  }
  return best;
}

}  // namespace kiln::fusion
