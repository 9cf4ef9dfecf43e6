// A ring that one thread fills by bulk copies and that warps multiply from, over several tiles, on the distributed
// machine: the whole of mbarriers, tma_load, tma_store and wgmma, and a table of bugs in it.
#include <algorithm>
#include <cmath>

#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "tests/unit/interp/machine/async_machine.h"

namespace kiln::interp {
namespace {

using Shape = std::vector<int32_t>;

// BM, BN and BK are the tile, BYTES those of a stage.
constexpr char kGemm[] = R"(
kernel @gemm(%a: *f16 {divisibility = 16}, %b: *f16 {divisibility = 16}, %c: *f16 {divisibility = 16}, %m: i32, %n: i32, %k: i32) attributes {num_warps = WARPS, num_stages = 3, num_ctas = 1, stage = "distributed"} {
  %one64 = constant 1 : i64
  %k64 = cast %k : i64
  %n64 = cast %n : i64
  %da = make_descriptor %a, %m, %k, %k64, %one64 : desc f16[BM, BK]
  %db = make_descriptor %b, %k, %n, %n64, %one64 : desc f16[BK, BN]
  %dc = make_descriptor %c, %m, %n, %n64, %one64 : desc f16[BM, BN]
  %as = shared_alloc : shared f16[BM, BK]{L1} x 3
  %bs = shared_alloc : shared f16[BK, BN]{L2} x 3
  %cs = shared_alloc : shared f16[BM, BN]{L3}
  %full = shared_alloc : barrier x 3
  %empty = shared_alloc : barrier x 3
  mbarrier_init %full {count = 1}
  mbarrier_init %empty {count = WARPS}
  barrier
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %stages = constant 3 : i32
  %bm = constant BM : i32
  %bn = constant BN : i32
  %bk = constant BK : i32
  %bm1 = sub %bm, %one : i32
  %bn1 = sub %bn, %one : i32
  %bk1 = sub %bk, %one : i32
  %m_up = add %m, %bm1 : i32
  %n_up = add %n, %bn1 : i32
  %k_up = add %k, %bk1 : i32
  %rows = div %m_up, %bm : i32
  %columns = div %n_up, %bn : i32
  %steps = div %k_up, %bk : i32
  %tiles = mul %rows, %columns : i32
  %pid = program_id {axis = 0} : i32
  %programs = num_programs {axis = 0} : i32
  warp_specialize {warps = 4} () {
    %turns = for %tile = %pid to %tiles step %programs iter (%turn = %zero) : i32 -> (i32) {
      %tile_row = div %tile, %columns : i32
      %tile_column = rem %tile, %columns : i32
      %row = mul %tile_row, %bm : i32
      %column = mul %tile_column, %bn : i32
      %start = constant 0.0 : f32[BM, BN]{L0}
LOOP
      %half = cast %sum : f16[BM, BN]{L0}
      tma_store_wait {count = 0}
      barrier
      shared_store %cs, %half
      fence_async
      barrier // stored
      tma_store %dc, %cs, %row, %column
      yield %next_turn
    }
    tma_store_wait {count = 0} // last
    yield
  } () {
    %turns_1 = for %tile_1 = %pid to %tiles step %programs iter (%turn_1 = %zero) : i32 -> (i32) {
      %tile_row_1 = div %tile_1, %columns : i32
      %tile_column_1 = rem %tile_1, %columns : i32
      %row_1 = mul %tile_row_1, %bm : i32
      %column_1 = mul %tile_column_1, %bn : i32
      %next_turn_1 = for %s_1 = %zero to %steps step %one iter (%t_1 = %turn_1) : i32 -> (i32) {
        %slot_1 = rem %t_1, %stages : i32
        %use_1 = div %t_1, %stages : i32
        %parity_1 = and %use_1, %one : i32
        %free = xor %parity_1, %one : i32
        %depth = mul %s_1, %bk : i32
        %e_1 = shared_view %empty, %slot_1 : barrier
        mbarrier_wait %e_1, %free
        %f_1 = shared_view %full, %slot_1 : barrier
        mbarrier_expect %f_1 {bytes = BYTES}
        %a_1 = shared_view %as, %slot_1 : shared f16[BM, BK]{L1}
        %b_1 = shared_view %bs, %slot_1 : shared f16[BK, BN]{L2}
        tma_load %a_1, %f_1, %da, %row_1, %depth
        tma_load %b_1, %f_1, %db, %depth, %column_1
        %t2_1 = add %t_1, %one : i32
        yield %t2_1
      }
      yield %next_turn_1
    }
    yield
  }
  return
}
)";

/// Each step waits for its product.
constexpr char kWaits[] = R"(
      %next_turn, %sum = for %s = %zero to %steps step %one iter (%t = %turn, %x = %start) : i32 -> (i32, f32[BM, BN]{L0}) {
        %slot = rem %t, %stages : i32
        %use = div %t, %stages : i32
        %parity = and %use, %one : i32
        %f = shared_view %full, %slot : barrier
        mbarrier_wait %f, %parity
        %av = shared_view %as, %slot : shared f16[BM, BK]{L1}
        %bv = shared_view %bs, %slot : shared f16[BK, BN]{L2}
        %w = wgmma %av, %bv, %x : f32[BM, BN]{L0}
        %y = wgmma_wait %w {count = 0} : f32[BM, BN]{L0}
        %e = shared_view %empty, %slot : barrier
        mbarrier_arrive %e
        %t2 = add %t, %one : i32
        yield %t2, %y
      }
)";

/// One product stays in flight, and a slot is given back a step later.
constexpr char kOverlaps[] = R"(
      %next_turn, %flying = for %s = %zero to %steps step %one iter (%t = %turn, %x = %start) : i32 -> (i32, f32[BM, BN]{L0}) {
        %slot = rem %t, %stages : i32
        %use = div %t, %stages : i32
        %parity = and %use, %one : i32
        %f = shared_view %full, %slot : barrier
        mbarrier_wait %f, %parity
        %av = shared_view %as, %slot : shared f16[BM, BK]{L1}
        %bv = shared_view %bs, %slot : shared f16[BK, BN]{L2}
        %w = wgmma %av, %bv, %x : f32[BM, BN]{L0}
        %y = wgmma_wait %w {count = 1} : f32[BM, BN]{L0}
        %later = cmp %s, %zero {predicate = "gt"} : i1
        if %later {
          %before = sub %t, %one : i32
          %slot_before = rem %before, %stages : i32
          %e = shared_view %empty, %slot_before : barrier
          mbarrier_arrive %e
          yield
        }
        %t2 = add %t, %one : i32
        yield %t2, %y
      }
      %sum = wgmma_wait %flying {count = 0} : f32[BM, BN]{L0}
      %final = sub %next_turn, %one : i32
      %final_slot = rem %final, %stages : i32
      %final_e = shared_view %empty, %final_slot : barrier
      mbarrier_arrive %final_e
)";

/// The left operand goes through registers.
constexpr char kRegisters[] = R"(
      %next_turn, %sum = for %s = %zero to %steps step %one iter (%t = %turn, %x = %start) : i32 -> (i32, f32[BM, BN]{L0}) {
        %slot = rem %t, %stages : i32
        %use = div %t, %stages : i32
        %parity = and %use, %one : i32
        %f = shared_view %full, %slot : barrier
        mbarrier_wait %f, %parity
        %av = shared_view %as, %slot : shared f16[BM, BK]{L1}
        %ar = shared_load %av : f16[BM, BK]{L4}
        %bv = shared_view %bs, %slot : shared f16[BK, BN]{L2}
        %w = wgmma %ar, %bv, %x : f32[BM, BN]{L0}
        %y = wgmma_wait %w {count = 0} : f32[BM, BN]{L0}
        %e = shared_view %empty, %slot : barrier
        mbarrier_arrive %e
        %t2 = add %t, %one : i32
        yield %t2, %y
      }
)";

struct Tile {
  int32_t m, n, k;
  int warps;
};

std::string gemm_text(const char* loop, const Tile& tile) {
  const std::vector<int> rows{1, 0};
  auto box = [&](int32_t r, int32_t c) {
    return layout::swizzled(Shape{r, c}, 16, layout::widest_swizzle(c, 16), rows);
  };
  std::vector<layout::LinearLayout> layouts{layout::wgmma_accumulator(Shape{tile.m, tile.n}, tile.warps)};
  std::string text = kGemm;
  auto set = [&](const std::string& name, const std::string& value) {
    text = std::regex_replace(text, std::regex(name), value);
  };
  // First, since the loop has names of its own to fill in.
  set("\\nLOOP\\n", loop);
  // Equal layouts have one name.
  const std::pair<const char*, layout::LinearLayout> shared[] = {
      {"\\{L1\\}", box(tile.m, tile.k)},
      {"\\{L2\\}", box(tile.k, tile.n)},
      {"\\{L3\\}", box(tile.m, tile.n)},
      {"\\{L4\\}", layout::mma_operand(layout::DotSide::kA, Shape{tile.m, tile.k}, 16, layouts[0])}};
  for (const auto& [name, l] : shared) {
    auto at = std::find(layouts.begin(), layouts.end(), l);
    if (at == layouts.end()) at = layouts.insert(layouts.end(), l);
    set(name, "{L" + std::to_string(at - layouts.begin()) + "}");
  }
  set("\\bBM\\b", std::to_string(tile.m));
  set("\\bBN\\b", std::to_string(tile.n));
  set("\\bBK\\b", std::to_string(tile.k));
  set("\\bWARPS\\b", std::to_string(tile.warps));
  // Two bytes for each half of both operands.
  set("\\bBYTES\\b", std::to_string(2 * (tile.m * tile.k + tile.k * tile.n)));
  return layout_lines(layouts) + text;
}

struct Problem {
  int m, n, k, programs;
};
/// Rows of whole 16 bytes, and nothing else even.
constexpr Problem kRagged{150, 136, 264, 2};

Status run_gemm(const ir::Module& module, uint64_t seed, const Problem& p = kRagged) {
  std::mt19937 rng(static_cast<uint32_t>(seed));
  std::normal_distribution<double> normal;
  auto size = [](int rows, int columns) { return static_cast<size_t>(rows) * static_cast<size_t>(columns); };
  // Buffers of 16-byte units; the output is poisoned.
  // 0x7e00 is NaN, so that what nobody wrote is seen.
  auto buffer = [](size_t halves) {
    return std::vector<std::array<uint16_t, 8>>(halves / 8,
                                                {0x7e00, 0x7e00, 0x7e00, 0x7e00, 0x7e00, 0x7e00, 0x7e00, 0x7e00});
  };
  auto a = buffer(size(p.m, p.k)), b = buffer(size(p.k, p.n)), c = buffer(size(p.m, p.n));
  auto at = [](auto& v, size_t i) -> uint16_t& { return v[i / 8][i % 8]; };
  for (size_t i = 0; i < size(p.m, p.k); ++i) at(a, i) = static_cast<uint16_t>(float_to_bits(DType::kF16, normal(rng)));
  for (size_t i = 0; i < size(p.k, p.n); ++i) at(b, i) = static_cast<uint16_t>(float_to_bits(DType::kF16, normal(rng)));
  Memory memory;
  for (auto* v : {&a, &b, &c}) memory.allow(v->data(), v->size() * 16);
  const uint64_t args[] = {reinterpret_cast<uint64_t>(a.data()), reinterpret_cast<uint64_t>(b.data()),
                           reinterpret_cast<uint64_t>(c.data()), static_cast<uint64_t>(p.m),
                           static_cast<uint64_t>(p.n),           static_cast<uint64_t>(p.k)};
  DistributedOptions options;
  options.seed = seed;
  KILN_CHECK_OK(run_distributed(module, {p.programs, 1, 1}, args, memory, options));
  std::vector<double> left(size(p.m, p.k)), right(size(p.k, p.n)), row(static_cast<size_t>(p.n)), bound(row.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = float_from_bits(DType::kF16, at(a, i));
  for (size_t i = 0; i < right.size(); ++i) right[i] = float_from_bits(DType::kF16, at(b, i));
  const size_t n = row.size(), k = static_cast<size_t>(p.k);
  // In float64, with the sum of the magnitudes to judge by.
  for (size_t i = 0; i < static_cast<size_t>(p.m); ++i) {
    std::fill(row.begin(), row.end(), 0);
    std::fill(bound.begin(), bound.end(), 0);
    for (size_t t = 0; t < k; ++t)
      for (size_t j = 0; j < n; ++j) {
        row[j] += left[i * k + t] * right[t * n + j];
        bound[j] += std::abs(left[i * k + t] * right[t * n + j]);
      }
    for (size_t j = 0; j < n; ++j) {
      const double got = float_from_bits(DType::kF16, at(c, i * n + j));
      // The result's rounding to f16, and a rounding of the sum to f32 at each step of the loop.
      const auto steps = p.k / 16 + 2;
      const double tolerance = std::abs(row[j]) * 0x1p-11 + bound[j] * 0x1p-24 * static_cast<double>(steps);
      EXPECT_NEAR(got, row[j], tolerance) << "[" << i << ", " << j << "], seed " << seed;
      // One element is told; the others would hide it.
      if (!(std::abs(got - row[j]) <= tolerance)) return {};
    }
  }
  return {};
}

constexpr Tile kSmall{64, 64, 64, 4};

TEST(AsyncProduct, ARingOverSeveralTiles) {
  for (const char* loop : {kWaits, kOverlaps, kRegisters}) {
    auto m = parse_kernel(gemm_text(loop, kSmall));
    ASSERT_NE(m, nullptr);
    // Each with other orders of the warps.
    for (int i = 0; i < 4; ++i) {
      Status s = run_gemm(*m, fresh_seed());
      ASSERT_TRUE(s.ok()) << render(s.error());
    }
  }
}

TEST(AsyncProduct, OtherTiles) {
  // Other numbers of warps and depths, whose layouts have other swizzles.
  for (const Tile& tile : {Tile{128, 32, 32, 8}, Tile{64, 128, 32, 8}, Tile{128, 64, 16, 4}}) {
    SCOPED_TRACE(std::to_string(tile.m) + " x " + std::to_string(tile.n) + " x " + std::to_string(tile.k));
    auto m = parse_kernel(gemm_text(kOverlaps, tile));
    ASSERT_NE(m, nullptr);
    // Sizes that end within a tile.
    Status s = run_gemm(*m, fresh_seed(), {136, 136, 72, 2});
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
}

constexpr char kRaceOrUnwritten[] = "race at byte|which nothing wrote";
/// One bit of parity cannot tell a phase from the next but one: who comes late may wait for ever.
constexpr char kRaceOrDeadlock[] = "race at byte|which nothing wrote|deadlock: .*waits for parity";

// One mistake in each kernel, and what the machine must say of it.
constexpr Planted kErrors[] = {
    // A consumer that waits for the other phase may pass too early.
    {"the consumers' phase off by one", "        mbarrier_wait %f, %parity\n",
     "        %other = xor %parity, %one : i32\n        mbarrier_wait %f, %other\n", kRaceOrDeadlock},
    {"the producer's phase off by one", "mbarrier_wait %e_1, %free", "mbarrier_wait %e_1, %parity_1",
     "deadlock: warp 0 waits for parity 0 of an mbarrier where phase 0 has 0 of 1 arrivals, in: mbarrier_wait .*; the "
     "thread of role 1 waits for parity 0 .*0 of 4 arrivals"},
    {"phases that do not turn", "%use = div %t, %stages : i32", "%use = constant 0 : i32",
     "race at byte|which nothing wrote|an arrival too many|deadlock: .*waits for parity"},
    // The barriers must be there before anybody waits on them.
    {"no barrier after the init", "  barrier\n  %zero", "  %zero",
     "mbarrier at byte .*(nothing orders|nothing has init)"},
    {"no barrier before the staging", "      barrier\n      shared_store", "      shared_store",
     "race at byte .* the tma_store of warp 0"},
    {"no barrier after the staging", "      barrier // stored\n", "", "(race at byte|which nothing wrote).*"},
    // The store still reads the tile that the next one overwrites.
    {"no tma_store_wait", "      tma_store_wait {count = 0}\n      barrier\n", "      barrier\n",
     "race at byte .* the tma_store of warp 0"},
    {"a tma_store_wait too lax", "      tma_store_wait {count = 0}\n      barrier\n",
     "      tma_store_wait {count = 1}\n      barrier\n", "race at byte .* the tma_store of warp 0"},
    {"no last tma_store_wait", "    tma_store_wait {count = 0} // last\n", "",
     "warp 0 ends while its tma_store may read shared memory"},
    // Writes of threads are visible to bulk copies only behind a fence.
    {"no fence", "      fence_async\n", "", "in the async proxy, and warp .*, which wrote it, ran no fence_async"},
    {"the fence before the writes", "      shared_store %cs, %half\n      fence_async\n",
     "      fence_async\n      shared_store %cs, %half\n", "ran no fence_async"},
    // The slot is given back while the product reads it.
    {"a release before the products are there",
     "        %y = wgmma_wait %w {count = 0} : f32[64, 64]{L0}\n        %e = shared_view %empty, %slot : barrier\n     "
     "   "
     "mbarrier_arrive %e\n",
     "        %e = shared_view %empty, %slot : barrier\n        mbarrier_arrive %e\n        %y = wgmma_wait %w {count "
     "= "
     "0} : f32[64, 64]{L0}\n",
     "race at byte .* wgmma"},
    // The producer waits for a slot that nobody gives back.
    {"no release", "        mbarrier_arrive %e\n", "",
     "deadlock: .*the thread of role 1 waits for parity 0 of an mbarrier where phase 0 has 0 of 4 arrivals"},
    {"two releases", "        mbarrier_arrive %e\n", "        mbarrier_arrive %e\n        mbarrier_arrive %e\n",
     "race at byte|which nothing wrote|deadlock: .*waits for parity|an arrival too many"},
    // Five arrivals of four warps.
    {"a count too large", "mbarrier_init %empty {count = 4}", "mbarrier_init %empty {count = 5}",
     "deadlock: .*4 of 5 arrivals"},
    {"a count too small", "mbarrier_init %empty {count = 4}", "mbarrier_init %empty {count = 3}", kRaceOrDeadlock},
    {"no init", "  mbarrier_init %full {count = 1}\n", "", "mbarrier at byte .*nothing has initialised it"},
    {"mbarriers in one place", "shared_alloc : barrier", "shared_alloc {shared_offset = 64} : barrier",
     "is initialised again while it is in use"},
    {"an mbarrier twice", "  mbarrier_init %empty", "  mbarrier_init %full {count = 1}\n  mbarrier_init %empty",
     "is initialised again while it is in use"},
    // The phase ends before all bytes are there.
    {"too few bytes expected", "{bytes = 16384}", "{bytes = 8192}",
     "8192 bytes are on their way to an mbarrier where 8192 are announced and 8192 of these taken|where 0 are "
     "announced|which nothing wrote"},
    // The phase never ends.
    {"too many bytes expected", "{bytes = 16384}", "{bytes = 16400}",
     "deadlock: .*16384 of 16400 announced bytes have landed \\(loads of 16384 have started\\)"},
    {"no bytes expected", "        mbarrier_expect %f_1 {bytes = 16384}\n", "",
     "8192 bytes are on their way to an mbarrier where 0 are announced"},
    {"expected twice", "        mbarrier_expect %f_1 {bytes = 16384}\n",
     "        mbarrier_expect %f_1 {bytes = 16384}\n        mbarrier_expect %f_1 {bytes = 16384}\n",
     "an arrival too many at an mbarrier: phase 0 has 1 of 1 arrivals, and 0 of 16384 announced bytes"},
    {"a load too many", "        %t2_1 = add",
     "        mbarrier_expect %f_1 {bytes = 8192}\n        tma_load %b_1, %f_1, %db, %depth, %column_1\n        %t2_1 "
     "= "
     "add",
     "an arrival too many|race at byte|on their way|deadlock"},
    {"a stage too few", "        %a_1 = shared_view %as, %slot_1",
     "        %two = constant 2 : i32\n        %low = rem %slot_1, %two : i32\n        %a_1 = shared_view %as, %low",
     kRaceOrUnwritten},
    {"a step too many", "for %s_1 = %zero to %steps", "for %s_1 = %zero to %k_up",
     "deadlock: .*the thread of role 1 waits for parity"},
    {"a step too few", "for %s_1 = %zero to", "for %s_1 = %one to",
     "deadlock: warp 0 waits for parity . of an mbarrier .*the thread of role 1 has ended"},
    // Rows must be whole units of 16 bytes.
    {"rows that end inside of a unit", "  %dc = make_descriptor %c, %m, %n,",
     "  %four = constant 4 : i32\n  %short = sub %n, %four : i32\n  %dc = make_descriptor %c, %m, %short,",
     "a copy out writes units of 16 bytes, past the end of rows of"},
    // Two tiles at one place of the result.
    {"one place for two tiles", "tma_store %dc, %cs, %row, %column", "tma_store %dc, %cs, %row, %zero",
     "race in global memory: a tma_store of this program writes byte"},
    // Registers of a product are not to be read before its wait.
    {"the accumulator before its wait", "        %y = wgmma_wait",
     "        %bad = add %w, %w : f32[64, 64]{L0}\n        %y = wgmma_wait",
     "warp .* touches the result of a wgmma before the wgmma_wait that takes it"},
    {"the accumulator beside its wait", "        yield %t2, %y", "        yield %t2, %w",
     "touches the result of a wgmma before the wgmma_wait"},
    {"the addend before the wait", "        %y = wgmma_wait",
     "        %bad = add %x, %x : f32[64, 64]{L0}\n        %y = wgmma_wait",
     "touches an operand of a wgmma before its wgmma_wait"},
    {"another accumulator goes on", "        %y = wgmma_wait",
     "        %two_of = wgmma %av, %bv, %w : f32[64, 64]{L0}\n        %y = wgmma_wait",
     "takes the result of a wgmma that another goes on with"},
    {"no wait for the products", "        %y = wgmma_wait %w {count = 0}", "        %y = wgmma_wait %w {count = 1}",
     "race at byte .* wgmma|touches the result of a wgmma"},
};

TEST(AsyncProduct, PlantedErrorsAreFound) {
  const std::string text = gemm_text(kWaits, kSmall);
  for (const Planted& p : kErrors)
    expect_found(text, p, [](const ir::Module& m, uint64_t seed) { return run_gemm(m, seed); });
}

/// Each four warps write and send the rows that they multiplied, and wait for nobody else.
std::string apart(const Tile& tile) {
  // The words of four warps in place of those of all.
  std::string text = gemm_text(kWaits, tile);
  for (const auto& [from, to] : {std::pair{"      tma_store_wait {count = 0}\n      barrier\n",
                                           "      tma_store_wait {count = 0, warps = 4}\n      barrier {warps = 4}\n"},
                                 {"      barrier // stored\n", "      barrier {warps = 4} // stored\n"},
                                 {"%row, %column\n      yield", "%row, %column {warps = 4}\n      yield"},
                                 {"{count = 0} // last", "{count = 0, warps = 4} // last"}})
    text = plant(text, {"", from, to, ""});
  return text;
}

constexpr Tile kOfTwoGroups{128, 32, 32, 8};

TEST(AsyncProduct, GroupsOfWarpsStoreTheirOwnRows) {
  auto m = parse_kernel(apart(kOfTwoGroups));
  ASSERT_NE(m, nullptr);
  for (int i = 0; i < 4; ++i) {
    Status s = run_gemm(*m, fresh_seed(), {200, 72, 72, 2});
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
}

// A mistake in who waits for whom.
constexpr Planted kGroupErrors[] = {
    {"the first group sends all rows", "%row, %column {warps = 4}", "%row, %column",
     "race at byte|which nothing wrote"},
    {"the first group waits for all", "tma_store_wait {count = 0, warps = 4}\n      barrier",
     "tma_store_wait {count = 0}\n      barrier", "race at byte .* the tma_store of warp 4"},
    {"smaller groups than those that write", "barrier {warps = 4} // stored", "barrier {warps = 2} // stored",
     "race at byte|which nothing wrote"},
    {"the last wait of the first group alone", "{count = 0, warps = 4} // last", "{count = 0} // last",
     "warp 4 ends while its tma_store may read shared memory"},
};

TEST(AsyncProduct, PlantedErrorsOfGroupsAreFound) {
  const std::string text = apart(kOfTwoGroups);
  for (const Planted& p : kGroupErrors)
    expect_found(text, p, [](const ir::Module& m, uint64_t seed) { return run_gemm(m, seed, {136, 72, 72, 2}); });
}

/// The warps hand their rows to a third role, whose thread stores them while they multiply on.
std::string stored_by_role(const Tile& tile) {
  std::string text = gemm_text(kWaits, tile);
  const std::string warps = std::to_string(tile.warps);
  const std::pair<std::string, std::string> changes[] = {
      {"  barrier\n  %zero",
       "  %made = shared_alloc : barrier\n  %sent = shared_alloc : barrier\n  mbarrier_init %made {count = " + warps +
           "}\n  mbarrier_init %sent {count = 1}\n  barrier\n  %zero"},
      {"%column = mul %tile_column, %bn : i32\n", R"(%column = mul %tile_column, %bn : i32
      %since = sub %tile, %pid : i32
      %nth = div %since, %programs : i32
      %phase = and %nth, %one : i32
      %phase_before = xor %phase, %one : i32
)"},
      {"      tma_store_wait {count = 0}\n      barrier\n", "      mbarrier_wait %sent, %phase_before\n"},
      {"      barrier // stored\n      tma_store %dc, %cs, %row, %column\n", "      mbarrier_arrive %made\n"},
      {"    tma_store_wait {count = 0} // last\n", ""},
      {"    yield\n  }\n  return", R"(    yield
  } () {
    for %tile_2 = %pid to %tiles step %programs : i32 {
      %tile_row_2 = div %tile_2, %columns : i32
      %tile_column_2 = rem %tile_2, %columns : i32
      %row_2 = mul %tile_row_2, %bm : i32
      %column_2 = mul %tile_column_2, %bn : i32
      %since_2 = sub %tile_2, %pid : i32
      %nth_2 = div %since_2, %programs : i32
      %phase_2 = and %nth_2, %one : i32
      mbarrier_wait %made, %phase_2
      tma_store %dc, %cs, %row_2, %column_2
      tma_store_wait {count = 0}
      mbarrier_arrive %sent
      yield
    }
    yield
  }
  return)"},
  };
  for (const auto& [from, to] : changes) text = plant(text, {"", from.c_str(), to.c_str(), ""});
  return text;
}

TEST(AsyncProduct, ARoleOfItsOwnStores) {
  auto m = parse_kernel(stored_by_role(kSmall));
  ASSERT_NE(m, nullptr);
  for (int i = 0; i < 4; ++i) {
    Status s = run_gemm(*m, fresh_seed());
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
}

constexpr Planted kRoleErrors[] = {
    {"rows that are stored before they are there", "      mbarrier_wait %made, %phase_2\n", "",
     "race at byte|which nothing wrote"},
    {"rows over those that are stored", "      mbarrier_wait %sent, %phase_before\n", "",
     "race at byte .* the tma_store of the thread of role 2|an arrival too many|deadlock: .*waits for parity"},
    {"a release before the store has read", "      tma_store_wait {count = 0}\n      mbarrier_arrive %sent\n",
     "      mbarrier_arrive %sent\n      tma_store_wait {count = 0}\n",
     "race at byte .* the tma_store of the thread of role 2"},
    {"no fence", "      fence_async\n", "", "in the async proxy, and warp .*, which wrote it, ran no fence_async"},
    {"no release", "      mbarrier_arrive %sent\n", "",
     "deadlock: .*warp 0 waits for parity . of an mbarrier .*the thread of role 2"},
    {"the arrivals of one thread", "mbarrier_init %made {count = 4}", "mbarrier_init %made {count = 1}",
     "race at byte|which nothing wrote|an arrival too many|deadlock: .*waits for parity"},
};

TEST(AsyncProduct, PlantedErrorsOfARoleThatStoresAreFound) {
  const std::string text = stored_by_role(kSmall);
  for (const Planted& p : kRoleErrors)
    expect_found(text, p, [](const ir::Module& m, uint64_t seed) { return run_gemm(m, seed); });
}

// With one product in flight, other waits matter.
constexpr Planted kOverlapErrors[] = {
    {"no last wait", "      %sum = wgmma_wait %flying {count = 0}", "      %sum = wgmma_wait %flying {count = 1}",
     "touches the result of a wgmma before the wgmma_wait|race at byte .* wgmma"},
    {"the slot of this step", "          %before = sub %t, %one : i32\n", "          %before = add %t, %zero : i32\n",
     "race at byte .* wgmma|deadlock: .*the thread of role 1 waits for parity"},
    {"two in flight", "        %y = wgmma_wait %w {count = 1}", "        %y = wgmma_wait %w {count = 2}",
     "race at byte .* wgmma"},
};

TEST(AsyncProduct, PlantedErrorsAreFoundWithProductsInFlight) {
  const std::string text = gemm_text(kOverlaps, kSmall);
  for (const Planted& p : kOverlapErrors)
    expect_found(text, p, [](const ir::Module& m, uint64_t seed) { return run_gemm(m, seed); });
}

constexpr Planted kRegisterErrors[] = {
    {"the left operand before the wait", "        %y = wgmma_wait",
     "        %bad = add %ar, %ar : f16[64, 64]{L0}\n        %y = wgmma_wait",
     "touches an operand of a wgmma before its wgmma_wait"},
    {"loads before the bytes have landed", "        mbarrier_wait %f, %parity\n", "",
     "race at byte|which nothing wrote"},
    {"a release before the loads", "        %ar = shared_load %av",
     "        %soon = shared_view %empty, %slot : barrier\n        mbarrier_arrive %soon\n        %ar = shared_load "
     "%av",
     "race at byte|deadlock|an arrival too many"},
};

TEST(AsyncProduct, PlantedErrorsAreFoundInRegisters) {
  const std::string text = gemm_text(kRegisters, kSmall);
  for (const Planted& p : kRegisterErrors)
    expect_found(text, p, [](const ir::Module& m, uint64_t seed) { return run_gemm(m, seed); });
}

}  // namespace
}  // namespace kiln::interp
