#include "compiler/layout/shared_forms.h"

#include <gtest/gtest.h>

#include <map>

#include "compiler/layout/convert_plan.h"
#include "compiler/layout/tensor_core.h"
#include "tests/unit/layout/random_layout.h"

namespace kiln::layout {
namespace {

using Shape = std::vector<int32_t>;

/// The hardware's rule on byte addresses.
uint32_t swizzle(uint32_t address, int bytes) {
  return bytes ? address ^ ((address >> 7 & static_cast<uint32_t>(bytes / 16 - 1)) << 4) : address;
}

LinearLayout row_major(const Shape& shape) {
  LinearLayout l(shape);
  for (uint64_t i = 1; i < static_cast<uint64_t>(num_elements(l)); i *= 2) l.push(In::kOffset, coord_of(shape, i));
  return l;
}

struct SharedTile {
  LinearLayout layout;
  int bytes;        // of an element
  bool transposed;  // dimension 0 lies side by side
  int swizzle_bytes;
};

SharedTile random_tile(std::mt19937& rng) {
  const int width = 32 << pick(rng, 3), bits = 8 << pick(rng, 3);
  Shape shape = {8 << pick(rng, 5), (width / (bits / 8)) << pick(rng, 3)};
  const bool transposed = pick(rng, 2);
  if (transposed) std::swap(shape[0], shape[1]);
  return {swizzled(shape, bits, width, transposed ? std::vector{0, 1} : std::vector{1, 0}), bits / 8, transposed,
          width};
}

/// Plays the copies as the TMA unit does, and compares every byte's place with the layout.
void expect_tma_fills(const LinearLayout& l, const TmaPlan& plan, int bytes) {
  std::map<uint32_t, Coord> written;  // address → element
  for (const TmaPlan::Copy& copy : plan.copies) {
    EXPECT_EQ(copy.offset % 128, 0);
    int64_t elements = 1;
    for (int32_t d : plan.box) elements *= d;
    for (int64_t i = 0; i < elements; ++i) {
      Coord at = copy.at;
      int64_t rest = i;
      for (int d = l.rank() - 1; d >= 0; --d) {
        at[d] += static_cast<int32_t>(rest % plan.box[static_cast<size_t>(d)]);
        rest /= plan.box[static_cast<size_t>(d)];
      }
      const auto address = swizzle(static_cast<uint32_t>(copy.offset + i * bytes), plan.swizzle);
      EXPECT_TRUE(written.emplace(address, at).second);
    }
  }
  ASSERT_EQ(static_cast<int64_t>(written.size()), num_elements(l));
  for (const auto& [address, at] : written)
    ASSERT_EQ(l.apply(In::kOffset, address / static_cast<uint32_t>(bytes)), at) << to_string(l);
}

TEST(SharedForms, TmaBoxesOfSwizzledTiles) {
  with_seeds(60, [](std::mt19937& rng) {
    const SharedTile t = random_tile(rng);
    auto plan = plan_tma(t.layout, t.bytes);
    ASSERT_EQ(plan.has_value(), !t.transposed) << to_string(t.layout);
    if (!plan) return;
    EXPECT_EQ(plan->swizzle, t.swizzle_bytes);
    EXPECT_EQ(plan->box[1] * t.bytes, t.swizzle_bytes);
    expect_tma_fills(t.layout, *plan, t.bytes);
  });
}

TEST(SharedForms, TmaBoxesOfOtherTiles) {
  const LinearLayout plain = row_major({64, 32});
  auto plan = plan_tma(plain, 2);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->swizzle, 0);
  EXPECT_EQ(plan->box, (Shape{64, 32}));
  expect_tma_fills(plain, *plan, 2);

  const LinearLayout tall = swizzled(Shape{512, 64}, 16, 128, std::vector{1, 0});  // a box has 256 rows at most
  plan = plan_tma(tall, 2);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->box, (Shape{256, 64}));
  EXPECT_EQ(plan->copies.size(), 2u);
  expect_tma_fills(tall, *plan, 2);

  const LinearLayout batch = swizzled(Shape{2, 4, 64}, 16, 128, std::vector{2, 1, 0});
  plan = plan_tma(batch, 2);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->box, (Shape{2, 4, 64}));
  expect_tma_fills(batch, *plan, 2);

  const LinearLayout line = row_major({1024});
  plan = plan_tma(line, 4);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->copies.size(), 4u);
  expect_tma_fills(line, *plan, 4);

  EXPECT_FALSE(plan_tma(row_major({64, 4}), 2));  // rows of 8 bytes
}

/// Reads a slice as wgmma does through the descriptor, by the canonical forms of the PTX ISA.
void expect_wgmma_reads(const LinearLayout& l, const WgmmaMatrix& m, int k_dim, int span, int bytes) {
  const int depth = 32 / bytes;
  const auto row = static_cast<uint32_t>(m.swizzle ? m.swizzle : 16), e = static_cast<uint32_t>(bytes);
  for (int own0 = 0; own0 < l.shape()[static_cast<size_t>(1 - k_dim)]; own0 += span)
    for (int k0 = 0; k0 < l.shape()[static_cast<size_t>(k_dim)]; k0 += depth)
      for (uint32_t i = 0; i < static_cast<uint32_t>(span); ++i)
        for (uint32_t k = 0; k < static_cast<uint32_t>(depth); ++k) {
          uint32_t address = m.at(static_cast<uint32_t>(own0), static_cast<uint32_t>(k0));
          if (!m.transposed) {
            const uint32_t kb = k * e;
            address += i / 8 * m.stride + i % 8 * row + (m.swizzle ? kb : kb / 16 * m.leading + kb % 16);
          } else {
            const uint32_t unit = row / e;
            address += k % 8 * row + i % unit * e;
            address += m.swizzle ? i / unit * m.leading + k / 8 * m.stride : i / unit * m.stride + k / 8 * m.leading;
          }
          Coord at;
          at[1 - k_dim] = own0 + static_cast<int>(i);
          at[k_dim] = k0 + static_cast<int>(k);
          ASSERT_EQ(l.apply(In::kOffset, swizzle(address, m.swizzle) / e), at) << to_string(l);
        }
}

TEST(SharedForms, WgmmaDescriptorsOfSwizzledTiles) {
  int described = 0;
  with_seeds(80, [&](std::mt19937& rng) {
    const SharedTile t = random_tile(rng);
    const int k_dim = static_cast<int>(pick(rng, 2));
    const int32_t own = t.layout.shape()[static_cast<size_t>(1 - k_dim)],
                  depth = t.layout.shape()[static_cast<size_t>(k_dim)];
    const int span = 8 << pick(rng, static_cast<uint32_t>(log2_exact(std::min(own, 256))) - 2);
    const bool along_k = t.transposed == (k_dim == 0);
    auto m = plan_wgmma_matrix(t.layout, k_dim, span, t.bytes);
    ASSERT_EQ(m.has_value(), depth * t.bytes >= 32 && own >= span && (along_k || t.bytes == 2)) << to_string(t.layout);
    if (!m) return;
    ++described;
    EXPECT_EQ(m->transposed, !along_k);
    EXPECT_EQ(m->swizzle, t.swizzle_bytes);
    expect_wgmma_reads(t.layout, *m, k_dim, span, t.bytes);
  });
  EXPECT_GT(described, 0);
}

/// The figures of the measured recipe: a bf16 tile of 64 along k, and one of 256 columns.
TEST(SharedForms, WgmmaDescriptorsOfTheRecipe) {
  auto a = plan_wgmma_matrix(swizzled(Shape{128, 64}, 16, 128, std::vector{1, 0}), 1, 64, 2);
  ASSERT_TRUE(a);
  EXPECT_FALSE(a->transposed);
  EXPECT_EQ(a->stride, 1024u);
  EXPECT_EQ(a->at(64, 0), 8192u);
  EXPECT_EQ(a->at(0, 16), 32u);
  auto b = plan_wgmma_matrix(swizzled(Shape{64, 256}, 16, 128, std::vector{1, 0}), 0, 256, 2);
  ASSERT_TRUE(b);
  EXPECT_TRUE(b->transposed);
  EXPECT_EQ(b->leading, 8192u);
  EXPECT_EQ(b->stride, 1024u);
  EXPECT_EQ(b->at(0, 16), 2048u);
}

TEST(SharedForms, WgmmaDescriptorsWithoutSwizzle) {
  // Core matrices of 8 rows of 16 bytes, those along k first.
  LinearLayout core(Shape{64, 32});
  for (Coord c : {Coord{{0, 1}}, Coord{{0, 2}}, Coord{{0, 4}}, Coord{{1, 0}}, Coord{{2, 0}}, Coord{{4, 0}},
                  Coord{{0, 8}}, Coord{{0, 16}}, Coord{{8, 0}}, Coord{{16, 0}}, Coord{{32, 0}}})
    core.push(In::kOffset, c);
  for (int k_dim : {0, 1}) {
    auto m = plan_wgmma_matrix(core, k_dim, 32, 2);
    ASSERT_TRUE(m);
    EXPECT_EQ(m->swizzle, 0);
    EXPECT_EQ(m->transposed, k_dim == 0);
    expect_wgmma_reads(core, *m, k_dim, 32, 2);
  }
  EXPECT_FALSE(plan_wgmma_matrix(row_major({64, 64}), 1, 64, 2));
}

/// What a lane's register gets from ldmatrix, or gives to stmatrix, against both layouts.
void expect_matrices_match(const MatrixAccess& access, const LinearLayout& tile, const LinearLayout& shared,
                           int bytes) {
  const int per_word = std::max(1, 4 / bytes);
  std::vector<int> seen(static_cast<size_t>(tile.num_registers()));
  for (const std::vector<int>& group : access.groups) {
    ASSERT_EQ(static_cast<int>(group.size()), access.matrices * per_word);
    for (uint32_t warp = 0; warp < static_cast<uint32_t>(tile.size(In::kWarp)); ++warp)
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (int i = 0; i < static_cast<int>(group.size()); ++i) {
          const auto matrix = static_cast<uint32_t>(i / per_word), part = static_cast<uint32_t>(i % per_word);
          const uint32_t row = access.transposed ? 2 * (lane % 4) + part : lane / 4;
          const uint32_t byte = access.transposed ? lane / 4 * 2 : lane % 4 * 4 + part * static_cast<uint32_t>(bytes);
          const uint32_t address = access.address.apply(static_cast<uint32_t>(group[0]), 8 * matrix + row, warp) + byte;
          const auto reg = static_cast<uint32_t>(group[static_cast<size_t>(i)]);
          ASSERT_EQ(shared.apply(In::kOffset, address / static_cast<uint32_t>(bytes)), tile.apply(reg, lane, warp));
          if (warp == 0 && lane == 0) ++seen[reg];
        }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), tile.num_registers());
}

TEST(SharedForms, MatricesOfAccumulatorsAndOperands) {
  with_seeds(5, [](std::mt19937& rng) {
    const int32_t m = 64 << pick(rng, 2), n = 64 << pick(rng, 3);
    const LinearLayout c = wgmma_accumulator(Shape{m, n}, 4 << pick(rng, 2));
    for (bool transposed : {false, true}) {
      const LinearLayout s =
          swizzled(Shape{m, n}, 16, 32 << pick(rng, 3), transposed ? std::vector{0, 1} : std::vector{1, 0});
      auto access = plan_matrix_access(c, s, 2);
      ASSERT_TRUE(access) << to_string(c) << "\n" << to_string(s);
      EXPECT_EQ(access->transposed, transposed);
      EXPECT_EQ(access->matrices, 4);
      expect_matrices_match(*access, c, s, 2);
    }
    const int bits = 8 << pick(rng, 3);
    const LinearLayout a = mma_operand_tile(DotSide::kA, bits), s = row_major({16, a.shape()[1]});
    auto access = plan_matrix_access(a, s, bits / 8);
    ASSERT_TRUE(access);
    expect_matrices_match(*access, a, s, bits / 8);
  });
}

TEST(SharedForms, MatricesNeedWholeRows) {
  const LinearLayout s = swizzled(Shape{64, 64}, 16, 128, std::vector{1, 0});
  const LinearLayout blocked_tile = blocked(Shape{64, 64}, Shape{1, 8}, Shape{4, 8}, Shape{4, 1}, std::vector{1, 0});
  EXPECT_FALSE(plan_matrix_access(blocked_tile, s, 2));
  const SharedAccess access = plan_shared_access(blocked_tile, s, 2);
  EXPECT_EQ(access.vector, 8);
  EXPECT_EQ(access.wavefronts, access.ideal_wavefronts);
  for (const std::vector<int>& group : access.groups)
    for (uint32_t warp = 0; warp < 4; ++warp)
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t i = 0; i < group.size(); ++i)
          EXPECT_EQ(s.apply(In::kOffset, access.offset.apply(static_cast<uint32_t>(group[0]), lane, warp) + i),
                    blocked_tile.apply(static_cast<uint32_t>(group[i]), lane, warp));
}

}  // namespace
}  // namespace kiln::layout
