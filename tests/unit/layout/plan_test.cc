#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "compiler/layout/convert_plan.h"
#include "compiler/layout/reduce_plan.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/layout/tensor_core.h"
#include "tests/unit/layout/random_layout.h"

namespace kiln::layout {
namespace {

/// One number per warp, lane and register.
using Tile = std::vector<std::vector<std::vector<int64_t>>>;

Tile fill(const LinearLayout& layout, const std::vector<int64_t>& elements) {
  Tile t(static_cast<size_t>(layout.size(In::kWarp)));
  for (uint32_t w = 0; w < t.size(); ++w) {
    t[w].resize(32);
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t r = 0; r < static_cast<uint32_t>(layout.num_registers()); ++r)
        t[w][l].push_back(elements[index_at(layout, r, l, w)]);
  }
  return t;
}

std::vector<int64_t> iota(int64_t n) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

Tile play(const ConvertPlan& plan, const Tile& from, int64_t elements) {
  Tile to(from.size(),
          std::vector<std::vector<int64_t>>(32, std::vector<int64_t>(static_cast<size_t>(plan.to_registers))));
  std::vector<int64_t> shared(static_cast<size_t>(elements), -1);
  for (uint32_t w = 0; w < from.size(); ++w)
    for (uint32_t l = 0; l < 32; ++l) {
      if ((l & plan.write.lane_mask) || (w & plan.write.warp_mask)) continue;
      for (const auto& group : plan.write.groups)
        for (size_t k = 0; k < group.size(); ++k) {
          uint32_t at = plan.write.offset.apply(static_cast<uint32_t>(group[0]), l, w) + static_cast<uint32_t>(k);
          EXPECT_EQ(shared.at(at), -1) << "written twice";
          shared.at(at) = from[w][l][static_cast<size_t>(group[k])];
        }
    }
  for (uint32_t w = 0; w < from.size(); ++w)
    for (uint32_t l = 0; l < 32; ++l) switch (plan.kind) {
        case ConvertKind::kRegisters:
          for (uint32_t r = 0; r < static_cast<uint32_t>(plan.to_registers); ++r)
            to[w][l][r] = from[w][l][plan.source.apply(r, l, w)];
          break;
        case ConvertKind::kShuffle:
          for (uint32_t r = 0; r < static_cast<uint32_t>(plan.to_registers); ++r) {
            uint32_t slot = plan.take.apply(r, l, w), asked = plan.ask.apply(slot, l, w);
            EXPECT_LT(slot, static_cast<uint32_t>(plan.num_slots));
            to[w][l][r] = from[w].at(asked).at(plan.send.apply(slot, asked, w));
          }
          break;
        case ConvertKind::kShared: {
          std::vector<int64_t> got(static_cast<size_t>(plan.to_registers), -1);
          for (const auto& group : plan.read.groups)
            for (size_t k = 0; k < group.size(); ++k)
              got[static_cast<size_t>(group[k])] =
                  shared.at(plan.read.offset.apply(static_cast<uint32_t>(group[0]), l, w) + static_cast<uint32_t>(k));
          for (size_t r = 0; r < got.size(); ++r) to[w][l][r] = got[static_cast<size_t>(plan.copy_of[r])];
          break;
        }
      }
  return to;
}

/// Cycles of one access, counted word by word.
int brute_force_wavefronts(const SharedAccess& access, int element_bytes, uint32_t reg, uint32_t warp) {
  int bytes = access.vector * element_bytes, words = std::max(1, bytes / 4), lanes_at_once = 32 / words, cycles = 0;
  for (int first = 0; first < 32; first += lanes_at_once) {
    std::map<uint32_t, std::set<uint32_t>> banks;
    for (int l = first; l < first + lanes_at_once; ++l) {
      uint32_t at = access.offset.apply(reg, static_cast<uint32_t>(l), warp) * static_cast<uint32_t>(element_bytes);
      for (int k = 0; k < words; ++k)
        banks[(at / 4 + static_cast<uint32_t>(k)) % 32].insert(at / 4 + static_cast<uint32_t>(k));
    }
    size_t busiest = 0;
    for (const auto& [bank, set] : banks) busiest = std::max(busiest, set.size());
    cycles += static_cast<int>(busiest);
  }
  return cycles;
}

void check_convert(const LinearLayout& from, const LinearLayout& to, int element_bytes) {
  SCOPED_TRACE(to_string(from) + " -> " + to_string(to));
  ConvertPlan plan = plan_convert(from, to, element_bytes);
  auto elements = iota(num_elements(from));
  EXPECT_EQ(play(plan, fill(from, elements), num_elements(from)), fill(to, elements)) << name(plan.kind);
  if (plan.kind != ConvertKind::kShared) return;
  EXPECT_EQ(plan.scratch_bytes, num_elements(from) * element_bytes);
  for (const SharedAccess* access : {&plan.write, &plan.read}) {
    EXPECT_LE(access->vector * element_bytes, 16);
    for (uint32_t w = 0; w < static_cast<uint32_t>(from.size(In::kWarp)); ++w)
      for (const auto& group : access->groups)
        EXPECT_EQ(brute_force_wavefronts(*access, element_bytes, static_cast<uint32_t>(group[0]), w),
                  access->wavefronts);
  }
}

TEST(ConvertPlan, MovesEveryElement) {
  std::map<ConvertKind, int> seen;
  with_seeds(600, [&](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng, 10);
    int warp_bits = static_cast<int>(pick(rng, 3));
    LinearLayout from = random_layout(rng, shape, warp_bits, pick(rng, 2)),
                 to = random_layout(rng, shape, warp_bits, pick(rng, 2));
    int bytes = 1 << pick(rng, 4);
    check_convert(from, to, bytes);
    ++seen[plan_convert(from, to, bytes).kind];
  });
  EXPECT_GT(seen[ConvertKind::kShared], 0);
}

/// Mixes the bases of registers and lanes only, so that the conversion stays in the warp.
TEST(ConvertPlan, StaysInTheWarpWhenItCan) {
  std::map<ConvertKind, int> seen;
  with_seeds(600, [&](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng, 10);
    LinearLayout from = random_layout(rng, shape, 1);
    std::vector<Coord> bases(from.bases(In::kRegister).begin(), from.bases(In::kRegister).end());
    bases.insert(bases.end(), from.bases(In::kLane).begin(), from.bases(In::kLane).end());
    for (size_t i = 0; i < bases.size(); ++i)
      std::swap(bases[i], bases[pick(rng, static_cast<uint32_t>(bases.size()))]);
    for (size_t i = 0; i < bases.size(); ++i) {
      size_t other = pick(rng, static_cast<uint32_t>(bases.size()));
      if (other != i && pick(rng, 3) == 0) bases[i] = bases[i] ^ bases[other];
    }
    LinearLayout to(shape);
    for (size_t i = 0; i < bases.size(); ++i) to.push(i + 5 < bases.size() ? In::kRegister : In::kLane, bases[i]);
    for (const Coord& basis : from.bases(In::kWarp)) to.push(In::kWarp, basis);
    check_convert(from, to, 4);
    ConvertPlan plan = plan_convert(from, to, 4);
    ++seen[plan.kind];
    if (!is_injective(from)) return;
    // Which of many registers is sent, and which is taken, may depend on the lane: that costs more than memory.
    if (plan.to_registers <= 4) {
      EXPECT_NE(plan.kind, ConvertKind::kShared) << to_string(from) << " -> " << to_string(to);
    }
    if (plan.kind == ConvertKind::kShuffle) {
      EXPECT_LE(plan.num_slots, plan.to_registers);
    }
  });
  EXPECT_GT(seen[ConvertKind::kShuffle], 0);
}

/// Rows of 16 bytes as they are loaded, to an operand of mma.sync that sums along `k`.
ConvertPlan plan_operand(DotSide side, int warps, std::array<int, 2> order) {
  const int32_t shape[] = {64, 64}, result[] = {16, 64}, along_columns[] = {1, warps};
  std::array<int32_t, 2> own{1, 1}, lanes{1, 1}, apart{1, 1};
  own[static_cast<size_t>(order[0])] = lanes[static_cast<size_t>(order[0])] = 8;
  lanes[static_cast<size_t>(order[1])] = 4;
  apart[static_cast<size_t>(order[1])] = warps;
  const LinearLayout loaded = blocked(shape, own, lanes, apart, order);
  const LinearLayout operand = mma_operand(side, shape, 16, mma_accumulator(result, along_columns));
  return plan_convert(loaded, operand, 2);
}

TEST(ConvertPlan, OperandsOfMmaAreReadByMatrices) {
  // Also with one warp, where shuffles could do it, and across the sum, where vectors of 16 bytes could.
  for (const int warps : {1, 2, 4})
    for (const std::array<int, 2> order : {std::array{0, 1}, std::array{1, 0}}) {
      const ConvertPlan plan = plan_operand(DotSide::kB, warps, order);
      ASSERT_EQ(plan.kind, ConvertKind::kShared) << warps;
      EXPECT_LT(plan.read.vector * 2, 16) << warps;
      const int32_t shape[] = {64, 64}, result[] = {16, 64}, along_columns[] = {1, warps};
      const LinearLayout operand = mma_operand(DotSide::kB, shape, 16, mma_accumulator(result, along_columns));
      const auto access = plan_matrix_access(operand, *plan.scratch, 2);
      ASSERT_TRUE(access) << warps;
      EXPECT_EQ(access->transposed, order[0] == 1);
    }
}

TEST(ConvertPlan, VectorsAreReadInTheOrderOfRegisters) {
  // Accumulators of one warp row as an operand of all warps: the four words of an A fragment are one vector.
  for (const int warps : {2, 4}) {
    const int32_t shape[] = {16, 64}, along_columns[] = {1, warps}, next[] = {16, 128};
    const LinearLayout sums = mma_accumulator(shape, along_columns);
    const LinearLayout operand = mma_operand(DotSide::kA, shape, 16, mma_accumulator(next, along_columns));
    const ConvertPlan plan = plan_convert(sums, operand, 2);
    ASSERT_EQ(plan.kind, ConvertKind::kShared);
    EXPECT_EQ(plan.read.vector, 8);
    for (const std::vector<int>& group : plan.read.groups)
      for (size_t i = 0; i < group.size(); ++i) EXPECT_EQ(group[i], group[0] + static_cast<int>(i)) << warps;
    check_convert(sums, operand, 2);
  }
}

LinearLayout blocked2(int32_t m, int32_t n, std::array<int32_t, 2> spt, std::array<int32_t, 2> threads,
                      std::array<int32_t, 2> warps, std::array<int, 2> order) {
  int32_t shape[] = {m, n};
  return blocked(shape, spt, threads, warps, order);
}

TEST(ConvertPlan, Transpose) {
  // Rows to columns: both sides wide and free of conflicts.
  for (int bytes : {1, 2, 4, 8}) {
    int vec = 16 / bytes;
    LinearLayout rows = blocked2(128, 128, {vec, vec}, {4, 8}, {4, 1}, {1, 0}),
                 cols = blocked2(128, 128, {vec, vec}, {8, 4}, {1, 4}, {0, 1});
    ConvertPlan plan = plan_convert(rows, cols, bytes);
    ASSERT_EQ(plan.kind, ConvertKind::kShared);
    EXPECT_EQ(plan.write.vector * bytes, 16);
    EXPECT_EQ(plan.read.vector * bytes, 16);
    EXPECT_EQ(plan.write.wavefronts, plan.write.ideal_wavefronts) << bytes;
    EXPECT_EQ(plan.read.wavefronts, plan.read.ideal_wavefronts) << bytes;
    check_convert(rows, cols, bytes);
  }
  // No register in common: still no conflicts.
  LinearLayout rows = blocked2(64, 64, {1, 4}, {2, 16}, {4, 1}, {1, 0}),
               cols = blocked2(64, 64, {4, 1}, {16, 2}, {1, 4}, {0, 1});
  ConvertPlan plan = plan_convert(rows, cols, 4);
  EXPECT_EQ(plan.write.wavefronts, plan.write.ideal_wavefronts);
  EXPECT_EQ(plan.read.wavefronts, plan.read.ideal_wavefronts);
}

TEST(ConvertPlan, CopiesNeedNoMove) {
  int32_t shape[] = {64};
  int32_t one[] = {1}, threads[] = {32}, warps[] = {4};
  int order[] = {0};
  LinearLayout everywhere = replicated(shape, 4), spread = blocked(shape, one, threads, warps, order);
  EXPECT_EQ(plan_convert(everywhere, spread, 4).kind, ConvertKind::kRegisters);
  EXPECT_EQ(plan_convert(spread, everywhere, 4).kind, ConvertKind::kShared);
  EXPECT_TRUE(plan_convert(spread, spread, 4).is_identity());
  check_convert(everywhere, spread, 4);
  check_convert(spread, everywhere, 4);
}

/// A layout of [32, 32] from lists of (row, column).
LinearLayout layout_of(std::initializer_list<Coord> registers, std::initializer_list<Coord> lanes,
                       std::initializer_list<Coord> warps) {
  const int32_t shape[] = {32, 32};
  LinearLayout l(shape);
  for (const Coord& c : registers) l.push(In::kRegister, c);
  for (const Coord& c : lanes) l.push(In::kLane, c);
  for (const Coord& c : warps) l.push(In::kWarp, c);
  return l;
}

// What a thread computed of rows becomes mma.sync's right operand, which wants pairs along the columns: 16 bytes are
// written at a time, and ldmatrix reads and transposes without bank conflicts.
TEST(ConvertPlan, MatricesReadFragments) {
  auto at = [](int32_t row, int32_t column) {
    Coord c;
    c[0] = row, c[1] = column;
    return c;
  };
  const LinearLayout rows = layout_of({at(0, 1), at(0, 2), at(0, 4)},
                                      {at(0, 8), at(0, 16), at(1, 0), at(2, 0), at(4, 0)}, {at(8, 0), at(16, 0)}),
                     fragment = layout_of({at(1, 0), at(8, 0), at(16, 0), at(0, 8)},
                                          {at(2, 0), at(4, 0), at(0, 1), at(0, 2), at(0, 4)}, {at(0, 0), at(0, 16)});
  const ConvertPlan plan = plan_convert(rows, fragment, 2);
  ASSERT_EQ(plan.kind, ConvertKind::kShared);
  EXPECT_EQ(plan.write.vector, 8);
  EXPECT_EQ(plan.write.wavefronts, plan.write.ideal_wavefronts);
  const auto read = plan_matrix_access(fragment, *plan.scratch, 2);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->transposed);
  EXPECT_EQ(read->matrices, 4);
  const std::vector<uint32_t>& lane = read->address.lane;
  EXPECT_EQ(bank_wavefronts({lane[0], lane[1], lane[2], 0, 0}, 16), 4) << "four matrices of one wavefront";
  check_convert(rows, fragment, 2);
}

TEST(MatchRegisters, OnlyOwnRegisters) {
  with_seeds(200, [](std::mt19937& rng) {
    LinearLayout a = random_layout(rng, random_shape(rng), 1);
    std::vector<int> same = match_registers(a, a);
    ASSERT_EQ(same.size(), static_cast<size_t>(a.num_registers()));
    for (size_t r = 0; r < same.size(); ++r)
      EXPECT_EQ(index_at(a, static_cast<uint32_t>(same[r]), 3, 1), index_at(a, static_cast<uint32_t>(r), 3, 1));
  });
}

/// A combine function that is associative and commutative, and shows lost and repeated elements.
int64_t combine(int64_t a, int64_t b) { return a + b; }

Tile play(const ReducePlan& plan, const Tile& from) {
  size_t n = plan.registers.size();
  Tile part(from.size(), std::vector<std::vector<int64_t>>(32, std::vector<int64_t>(n)));
  auto lanes_step = [&](uint32_t mask) {
    Tile old = part;
    for (size_t w = 0; w < part.size(); ++w)
      for (uint32_t l = 0; l < 32; ++l)
        for (size_t i = 0; i < n; ++i) part[w][l][i] = combine(old[w][l][i], old[w][l ^ mask][i]);
  };
  for (size_t w = 0; w < from.size(); ++w)
    for (size_t l = 0; l < 32; ++l)
      for (size_t i = 0; i < n; ++i) {
        part[w][l][i] = from[w][l][static_cast<size_t>(plan.registers[i][0])];
        for (size_t k = 1; k < plan.registers[i].size(); ++k)
          part[w][l][i] = combine(part[w][l][i], from[w][l][static_cast<size_t>(plan.registers[i][k])]);
      }
  for (const ReducePlan::Halving& step : plan.halvings) {
    Tile old = part;
    for (size_t w = 0; w < part.size(); ++w)
      for (uint32_t l = 0; l < 32; ++l) {
        part[w][l].clear();
        for (uint32_t i = 0; i < n; ++i) {
          const uint32_t kept = l & step.lane_mask ? i | step.part : i;
          if (!(i & step.part)) part[w][l].push_back(combine(old[w][l][kept], old[w][l ^ step.lane_mask][kept]));
        }
      }
    n /= 2;
  }
  for (uint32_t mask : plan.lane_masks) lanes_step(mask);
  if (!plan.crosses_warps) return part;
  std::vector<int64_t> shared(static_cast<size_t>(plan.scratch_elements), -1);
  for (uint32_t w = 0; w < part.size(); ++w)
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t i = 0; i < n; ++i) {
        if ((l & plan.write_lane_mask) || (w & plan.write_warp_mask)) continue;
        EXPECT_EQ(shared.at(plan.write.apply(i, l, w)), -1) << "written twice";
        shared.at(plan.write.apply(i, l, w)) = part[w][l][i];
      }
  for (int64_t v : shared) EXPECT_NE(v, -1) << "never written";
  n = plan.registers.size();
  part.assign(part.size(), std::vector<std::vector<int64_t>>(32, std::vector<int64_t>(n)));
  for (uint32_t w = 0; w < part.size(); ++w)
    for (uint32_t l = 0; l < 32; ++l)
      for (uint32_t i = 0; i < n; ++i) {
        uint32_t at = plan.read.apply(i, l, w);
        part[w][l][i] = shared.at(at);
        for (size_t k = 1; k < plan.serial.size(); ++k)
          part[w][l][i] = combine(part[w][l][i], shared.at(at ^ plan.serial[k]));
      }
  for (uint32_t mask : plan.shared_lane_masks) lanes_step(mask);
  return part;
}

TEST(ReducePlan, EveryElementOnceInEveryCopy) {
  with_seeds(400, [](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng, 10);
    LinearLayout from = random_layout(rng, shape, static_cast<int>(pick(rng, 4)));
    SCOPED_TRACE(to_string(from));
    int axis = static_cast<int>(pick(rng, static_cast<uint32_t>(shape.size())));
    ReducePlan plan = plan_reduce(from, axis);
    std::vector<int64_t> elements, sums(static_cast<size_t>(num_elements(plan.result)));
    for (int64_t i = 0; i < num_elements(from); ++i) {
      elements.push_back(static_cast<int64_t>(rng() % 1000003));
      Coord at = coord_of(shape, static_cast<uint64_t>(i)), less;
      for (int d = 0, to = 0; d < from.rank(); ++d)
        if (d != axis) less[to++] = at[d];
      sums[index_of(plan.result.shape(), less)] += elements.back();
    }
    EXPECT_EQ(play(plan, fill(from, elements)), fill(plan.result, sums)) << "axis " << axis;
  });
}

TEST(ReducePlan, ColumnsOfSeveralWarpsAreHalved) {
  // The sums of the columns of an accumulator of 64x64: 16 of each thread, and eight lanes have the same columns.
  const int32_t shape[] = {64, 64};
  const LinearLayout sums = wgmma_accumulator(shape, 4);
  const ReducePlan plan = plan_reduce(sums, 0);
  EXPECT_EQ(plan.registers.size(), 16U);
  ASSERT_EQ(plan.halvings.size(), 3U);
  EXPECT_EQ(plan.halvings[0].lane_mask, 4U);
  EXPECT_EQ(plan.halvings[0].part, 8U) << "what lies furthest apart";
  EXPECT_TRUE(plan.lane_masks.empty());
  EXPECT_EQ(plan.write_lane_mask, 0U) << "every lane writes what it kept";
  EXPECT_EQ(plan.write.reg, std::vector<uint32_t>{1}) << "two neighbours";
  EXPECT_EQ(plan_reduce(sums, 0, false).lane_masks, (std::vector<uint32_t>{4, 8, 16}));
  EXPECT_TRUE(plan_reduce(sums, 1).halvings.empty()) << "rows stay within warps";
}

TEST(ReducePlan, RowOfOneProgram) {
  int32_t shape[] = {1024}, spt[] = {4}, threads[] = {32}, warps[] = {8};
  int order[] = {0};
  ReducePlan plan = plan_reduce(blocked(shape, spt, threads, warps, order), 0);
  EXPECT_EQ(plan.result.rank(), 0);
  EXPECT_EQ(plan.registers, (std::vector<std::vector<int>>{{0, 1, 2, 3}}));
  EXPECT_EQ(plan.lane_masks, (std::vector<uint32_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(plan.scratch_elements, 8);
  EXPECT_EQ(plan.serial.size(), 1u);
  EXPECT_EQ(plan.shared_lane_masks, (std::vector<uint32_t>{1, 2, 4}));
  int bytes[] = {4, 8};
  EXPECT_EQ(scratch_shares(plan.scratch_elements + 1, bytes), (std::vector<int64_t>{0, 48, 128}));
}

Tile play(const ScanPlan& plan, const LinearLayout& layout, Tile t) {
  std::vector<int64_t> shared(static_cast<size_t>(plan.scratch_elements), -1);
  uint32_t regs = static_cast<uint32_t>(layout.num_registers());
  Tile prefix(t.size(), std::vector<std::vector<int64_t>>(32, std::vector<int64_t>(regs, -1)));
  for (const ScanStep& step : plan.steps) {
    Tile old = t;
    if (step.reach == ScanReach::kPrefix) {
      for (uint32_t w = 0; w < t.size(); ++w)
        for (uint32_t l = 0; l < 32; ++l)
          for (uint32_t r = 0; r < regs; ++r)
            if ((r & step.sources.reg_mask) != step.sources.reg_value && !step.without.has(r, l, w))
              t[w][l][r] = combine(prefix[w][l][(r & ~step.sources.reg_mask) | step.sources.reg_value], old[w][l][r]);
      continue;
    }
    for (uint32_t w = 0; w < t.size(); ++w)
      for (uint32_t l = 0; l < 32; ++l)
        for (uint32_t r = 0; r < regs; ++r) {
          if (step.reach != ScanReach::kShared || !step.writers.has(r, l, w)) continue;
          int64_t& cell = shared.at(static_cast<size_t>(step.first_element + step.offset.apply(r, l, w)));
          EXPECT_EQ(cell, -1) << "written twice";
          cell = old[w][l][r];
        }
    for (uint32_t w = 0; w < t.size(); ++w)
      for (uint32_t l = 0; l < 32; ++l)
        for (uint32_t r = 0; r < regs; ++r) {
          if (!step.active.has(r, l, w)) continue;
          uint32_t sr = (r & ~step.sources.reg_mask) | step.sources.reg_value;
          uint32_t sl = (l & ~step.sources.lane_mask) | step.sources.lane_value;
          uint32_t sw = (w & ~step.sources.warp_mask) | step.sources.warp_value;
          if (step.reach != ScanReach::kShared) {
            EXPECT_EQ(sw, w);
          }
          if (step.reach == ScanReach::kRegisters) {
            EXPECT_EQ(sl, l);
          }
          int64_t source = step.reach == ScanReach::kShared
                               ? shared.at(static_cast<size_t>(step.first_element + step.offset.apply(r, l, w)))
                               : old[sw][sl][sr];
          t[w][l][r] = combine(source, old[w][l][r]);
          if (!step.joins_prefix) continue;
          int64_t& before = prefix[w][l][r];
          before = step.without.has(r, l, w) ? source : combine(source, before);
        }
  }
  for (int64_t v : shared) EXPECT_NE(v, -1) << "never written";
  return t;
}

TEST(ScanPlan, PrefixSums) {
  with_seeds(400, [](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng, 10);
    LinearLayout from = random_layout(rng, shape, static_cast<int>(pick(rng, 4)));
    SCOPED_TRACE(to_string(from));
    int axis = static_cast<int>(pick(rng, static_cast<uint32_t>(shape.size())));
    bool reverse = pick(rng, 2) != 0;
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < num_elements(from); ++i) elements.push_back(static_cast<int64_t>(rng() % 1000003));
    std::vector<int64_t> sums = elements;
    for (int64_t k = 0; k < num_elements(from); ++k) {
      int64_t i = reverse ? num_elements(from) - 1 - k : k;
      Coord at = coord_of(shape, static_cast<uint64_t>(i));
      at[axis] += reverse ? 1 : -1;
      if (at[axis] >= 0 && at[axis] < shape[static_cast<size_t>(axis)])
        sums[static_cast<size_t>(i)] += sums[index_of(shape, at)];
    }
    EXPECT_EQ(play(plan_scan(from, axis, reverse), from, fill(from, elements)), fill(from, sums)) << "axis " << axis;
  });
}

}  // namespace
}  // namespace kiln::layout
