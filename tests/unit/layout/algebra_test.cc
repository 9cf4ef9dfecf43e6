#include "compiler/layout/algebra.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/unit/layout/random_layout.h"

namespace kiln::layout {
namespace {

LinearLayout parsed(std::string_view text) {
  auto r = parse_layout(text);
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().message);
  return *r;
}

TEST(Gf2, RightInverse) {
  with_seeds(200, [](std::mt19937& rng) {
    int n = 1 + static_cast<int>(pick(rng, 12));
    BitMatrix m;
    for (int i = 0; i < n + 3; ++i) m.columns.push_back(rng() & ((1u << n) - 1));
    if (m.rank() < n) return;
    BitMatrix r = right_inverse(m, n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(m.apply(r.columns[static_cast<size_t>(i)]), uint64_t{1} << i);
    m.columns.resize(static_cast<size_t>(n));
    if (m.rank() < n) return;
    EXPECT_EQ(right_inverse(right_inverse(m, n), n), m);
  });
}

TEST(Gf2, KernelAndIntersection) {
  with_seeds(200, [](std::mt19937& rng) {
    std::vector<uint64_t> a, b;
    for (uint32_t i = pick(rng, 5); i > 0; --i) a.push_back(rng() & 63);
    for (uint32_t i = pick(rng, 5); i > 0; --i) b.push_back(rng() & 63);
    BitMatrix m{a};
    for (uint64_t k : kernel(m)) EXPECT_EQ(m.apply(k), 0u);
    EXPECT_EQ(kernel(m).size() + static_cast<size_t>(m.rank()), a.size());
    Span both(intersect(a, b)), sa(a), sb(b);
    for (uint64_t v = 0; v < 64; ++v) EXPECT_EQ(both.contains(v), sa.contains(v) && sb.contains(v)) << v;
  });
}

TEST(Algebra, InverseFindsAHolder) {
  with_seeds(200, [](std::mt19937& rng) {
    LinearLayout a = random_layout(rng, random_shape(rng), static_cast<int>(pick(rng, 4)), true);
    ASSERT_TRUE(is_surjective(a));
    LinearLayout id = compose(a, invert(a));
    for (int64_t i = 0; i < num_elements(a); ++i)
      EXPECT_EQ(index_of(a.shape(), id.apply(In::kOffset, static_cast<uint32_t>(i))), static_cast<uint64_t>(i));
  });
}

TEST(Algebra, ComposeIsApplyAfterApply) {
  with_seeds(100, [](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng);
    LinearLayout a = random_layout(rng, shape, 2), b = random_layout(rng, shape, 2, true);
    LinearLayout c = compose(a, invert(b));
    for (uint32_t i = 0; i < static_cast<uint32_t>(num_elements(a)); ++i) {
      Coord holder = invert(b).apply(In::kOffset, i);
      Coord want =
          a.apply(static_cast<uint32_t>(holder[0]), static_cast<uint32_t>(holder[1]), static_cast<uint32_t>(holder[2]));
      EXPECT_EQ(c.apply(In::kOffset, i), want);
    }
  });
}

TEST(Algebra, FreeBitsLeaveEachElementOnce) {
  with_seeds(200, [](std::mt19937& rng) {
    LinearLayout a = random_layout(rng, random_shape(rng), static_cast<int>(pick(rng, 4)), true);
    FreeBits free = free_variables(a);
    std::vector<int> count(static_cast<size_t>(num_elements(a)));
    for (uint32_t r = 0; r < static_cast<uint32_t>(a.num_registers()); ++r)
      for (uint32_t l = 0; l < 32; ++l)
        for (uint32_t w = 0; w < static_cast<uint32_t>(a.size(In::kWarp)); ++w)
          if (!(r & free.reg) && !(l & free.lane) && !(w & free.warp)) ++count[index_at(a, r, l, w)];
    for (int c : count) EXPECT_EQ(c, 1);
    EXPECT_EQ(is_injective(a), free == FreeBits{});
  });
}

TEST(Algebra, ShapeOperationsMoveNothing) {
  with_seeds(200, [](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng);
    LinearLayout a = random_layout(rng, shape, 1);
    uint32_t r = pick(rng, static_cast<uint32_t>(a.num_registers())), l = pick(rng, 32), w = pick(rng, 2);
    Coord at = a.apply(r, l, w);

    std::vector<int64_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    Coord t = transpose(a, order).apply(r, l, w);
    for (size_t d = 0; d < order.size(); ++d) EXPECT_EQ(t[static_cast<int>(d)], at[static_cast<int>(order[d])]);

    std::vector<int32_t> flat = {static_cast<int32_t>(num_elements(a))};
    EXPECT_EQ(static_cast<uint64_t>(reshape(a, flat).apply(r, l, w)[0]), index_of(shape, at));
    EXPECT_EQ(reshape(reshape(a, flat), shape), a);

    int axis = static_cast<int>(pick(rng, static_cast<uint32_t>(shape.size() + 1)));
    EXPECT_EQ(slice(expand_dims(a, axis), axis), without_register_copies(a));
    ASSERT_TRUE(can_split(join(a)));
    EXPECT_EQ(split(join(a)), without_register_copies(a));
    EXPECT_EQ(join(a).apply(2 * r + 1, l, w)[a.rank()], 1);
  });
}

TEST(Algebra, SliceKeepsOtherCoordinates) {
  with_seeds(200, [](std::mt19937& rng) {
    std::vector<int32_t> shape = random_shape(rng);
    LinearLayout a = random_layout(rng, shape, 2);
    int axis = static_cast<int>(pick(rng, static_cast<uint32_t>(shape.size())));
    LinearLayout s = slice(a, axis);
    EXPECT_TRUE(is_surjective(s));
    for (uint32_t l = 0; l < 32; ++l) {
      Coord full = a.apply(0, l, l & 3), less = s.apply(0, l, l & 3);
      for (int d = 0, to = 0; d < a.rank(); ++d)
        if (d != axis) {
          EXPECT_EQ(less[to++], full[d]);
        }
    }
    std::vector<int32_t> one = shape;
    one[static_cast<size_t>(axis)] = 1;
    EXPECT_EQ(broadcast_operand(a, one), expand_dims(s, axis));
    EXPECT_TRUE(is_surjective(broadcast(expand_dims(s, axis), shape)));
  });
}

TEST(Algebra, ProductPutsSecondOnHighBits) {
  LinearLayout a = parsed("[4, 2] register (0,1) lane (1,0)(2,0)"), b = parsed("[2, 4] lane (1,0) warp (0,1)(0,2)");
  EXPECT_EQ(to_string(product(a, b)), "[8, 8] register (0,1) lane (1,0)(2,0)(4,0) warp (0,2)(0,4)");
}

TEST(Algebra, Blocked) {
  int32_t spt[] = {4}, threads[] = {32}, warps[] = {4};
  int order[] = {0};
  int32_t big[] = {1024}, small[] = {64};
  EXPECT_EQ(to_string(blocked(big, spt, threads, warps, order)),
            "[1024] register (1)(2)(512) lane (4)(8)(16)(32)(64) warp (128)(256)");
  EXPECT_EQ(to_string(blocked(small, spt, threads, warps, order)),
            "[64] register (1)(2) lane (4)(8)(16)(32)(0) warp (0)(0)");
  int32_t spt2[] = {1, 4}, threads2[] = {4, 8}, warps2[] = {2, 1}, tile[] = {16, 64};
  int order2[] = {1, 0};
  EXPECT_EQ(to_string(blocked(tile, spt2, threads2, warps2, order2)),
            "[16, 64] register (0,1)(0,2)(0,32)(8,0) lane (0,4)(0,8)(0,16)(1,0)(2,0) warp (4,0)");
}

TEST(Algebra, NeighboursAlongADimensionMoveIntoThreads) {
  const auto before =
      *parse_layout("[4, 64] register (1,0)(0,8)(0,16) lane (2,0)(0,1)(0,0)(0,0)(0,0) warp (0,2)(0,32)(0,4)");
  const auto after =
      *parse_layout("[4, 64] register (1,0)(0,1)(0,2) lane (2,0)(0,4)(0,0)(0,0)(0,0) warp (0,8)(0,16)(0,32)");
  EXPECT_EQ(to_string(neighbours_along(before, 1)), to_string(after));
  EXPECT_EQ(neighbours_along(after, 1), after);
}

TEST(Algebra, StretchesAlongADimensionBelongToWarps) {
  const auto before =
      *parse_layout("[4, 64] register (1,0)(0,1)(0,16)(0,32) lane (2,0)(0,2)(0,0)(0,0)(0,0) warp (0,4)(0,8)");
  const auto after =
      *parse_layout("[4, 64] register (1,0)(0,1)(0,4)(0,8) lane (2,0)(0,2)(0,0)(0,0)(0,0) warp (0,16)(0,32)");
  EXPECT_EQ(to_string(stretches_along(before, 1)), to_string(after));
  EXPECT_EQ(stretches_along(after, 1), after);
}

TEST(Algebra, TensorCoreExamplesAreBijections) {
  // The fragments of the PTX ISA's mma.m16n8k16 and the 128-byte swizzle, as LAYOUTS.md writes them.
  for (const char* text : {"[16, 8] register (0,1)(8,0) lane (0,2)(0,4)(1,0)(2,0)(4,0)",
                           "[16, 16] register (0,1)(8,0)(0,8) lane (0,2)(0,4)(1,0)(2,0)(4,0)",
                           "[64, 32] register (0,1)(8,0)(0,8)(0,16) lane (0,2)(0,4)(1,0)(2,0)(4,0) warp (16,0)(32,0)",
                           "[16, 64] offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)"}) {
    LinearLayout a = parsed(text);
    EXPECT_TRUE(is_surjective(a) && is_injective(a)) << text;
    EXPECT_EQ(to_string(a), text);
  }
}

TEST(Text, RoundTrip) {
  with_seeds(200, [](std::mt19937& rng) {
    LinearLayout a = random_layout(rng, random_shape(rng), static_cast<int>(pick(rng, 3)), true);
    EXPECT_EQ(parsed(to_string(a)), a);
  });
  EXPECT_EQ(to_string(parsed("[]  lane ()()")), "[] lane ()()");
}

TEST(Text, BadLayoutsSayWhatIsExpected) {
  for (const char* text :
       {"", "[3]", "[4", "[4] registers (1)", "[4] register", "[4] register (4)", "[4] register (1,0)",
        "[4] lane (1) register (2)", "[4] lane (1) lane (2)", "[4] lane (-1)", "[99999999999]"}) {
    auto r = parse_layout(text);
    ASSERT_FALSE(r.ok()) << text;
    EXPECT_EQ(r.error().kind, ErrorKind::kSyntax);
  }
}

TEST(Text, Draw) {
  EXPECT_EQ(draw(parsed("[2, 4] register (0,1) lane (0,2)(1,0)")),
            "tile [2, 4]: 2 registers x 4 lanes x 1 warps\n"
            "  register +1    -> (0,1)\n"
            "  lane     +1    -> (0,2)\n"
            "  lane     +2    -> (1,0)\n"
            "each element's holder, [warp.]lane:register\n"
            "0:0 0:1 1:0 1:1\n"
            "2:0 2:1 3:0 3:1\n");
}

}  // namespace
}  // namespace kiln::layout
