// Shared memory and cp.async on the distributed machine.
#include "compiler/layout/algebra.h"
#include "compiler/layout/tensor_core.h"
#include "tests/unit/interp/machine/async_machine.h"

namespace kiln::interp {
namespace {

using layout::blocked;
using layout::LinearLayout;
using Shape = std::vector<int32_t>;

const std::vector<int> kRowMajor{1, 0}, kColumnMajor{0, 1};

LinearLayout plain(std::span<const int32_t> shape) {
  LinearLayout l(shape);
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d)
    for (int32_t x = 1; x < shape[static_cast<size_t>(d)]; x *= 2) {
      layout::Coord c;
      c[d] = x;
      l.push(layout::In::kOffset, c);
    }
  return l;
}

// --- a ring of three stages: copies run two blocks ahead

constexpr char kRing[] = R"(
kernel @ring(%x: *i32 {divisibility = 16}, %o: *i32 {divisibility = 16}, %n: i32, %limit: i32) attributes {num_warps = 4, num_stages = 3, num_ctas = 1, stage = "distributed"} {
  %ring = shared_alloc : shared i32[512]{L2} x 3
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %two = constant 2 : i32
  %stages = constant 3 : i32
  %size = constant 512 : i32
  %r = arange {start = 0, end = 512} : i32[512]{L0}
  %limits = splat %limit : i32[512]{L0}
  %xs = splat %x : *i32[512]{L0}
  for %k = %zero to %two step %one : i32 {
    %first = mul %k, %size : i32
    %firsts = splat %first : i32[512]{L0}
    %begin = add %firsts, %r : i32[512]{L0}
    %start_inside = cmp %begin, %limits {predicate = "lt"} : i1[512]{L0}
    %start = addptr %xs, %begin : *i32[512]{L0}
    %v = shared_view %ring, %k : shared i32[512]{L2}
    async_copy %v, %start, %start_inside
    async_commit
    yield
  }
  for %i = %zero to %n step %one : i32 {
    async_wait {count = 1}
    barrier
    %ahead = add %i, %two : i32
    %slot = rem %ahead, %stages : i32
    %offset = mul %ahead, %size : i32
    %offsets = splat %offset : i32[512]{L0}
    %at = add %offsets, %r : i32[512]{L0}
    %inside = cmp %at, %limits {predicate = "lt"} : i1[512]{L0}
    %p = addptr %xs, %at : *i32[512]{L0}
    %w = shared_view %ring, %slot : shared i32[512]{L2}
    async_copy %w, %p, %inside
    async_commit
    %here = rem %i, %stages : i32
    %u = shared_view %ring, %here : shared i32[512]{L2}
    %t = shared_load %u : i32[512]{L1}
    %q = arange {start = 0, end = 512} : i32[512]{L1}
    %to = mul %i, %size : i32
    %tos = splat %to : i32[512]{L1}
    %out = add %tos, %q : i32[512]{L1}
    %os = splat %o : *i32[512]{L1}
    %op = addptr %os, %out : *i32[512]{L1}
    store %op, %t
    yield
  }
  return
}
)";

std::string ring_text() {
  const Shape shape{512};
  return layout_lines({blocked(shape, Shape{4}, Shape{32}, Shape{4}, std::vector<int>{0}),
                       blocked(shape, Shape{1}, Shape{32}, Shape{4}, std::vector<int>{0}), plain(shape)}) +
         kRing;
}

Status run_ring(const ir::Module& m, uint64_t seed, int drop_barrier = -1, int drop_in_warp = -1) {
  constexpr int kBlocks = 7;
  std::mt19937 rng(static_cast<uint32_t>(seed));
  std::vector<uint32_t> x(512 * (kBlocks + 2)), o(512 * kBlocks, 0xdeadbeef);
  for (uint32_t& v : x) v = static_cast<uint32_t>(rng());
  const int limit = 512 * kBlocks - 100;
  Memory memory;
  memory.allow(x.data(), static_cast<size_t>(limit) * 4);
  memory.allow(o.data(), o.size() * 4);
  const uint64_t args[] = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(o.data()), kBlocks,
                           static_cast<uint64_t>(limit)};
  DistributedOptions options;
  options.seed = seed;
  options.drop_barrier = drop_barrier;
  options.drop_in_warp = drop_in_warp;
  KILN_CHECK_OK(run_distributed(m, {1, 1, 1}, args, memory, options));
  for (size_t i = 0; i < o.size(); ++i)
    EXPECT_EQ(o[i], i < static_cast<size_t>(limit) ? x[i] : 0) << "element " << i << ", seed " << seed;
  return {};
}

TEST(AsyncCopy, ARingOfThreeStages) {
  auto m = parse_kernel(ring_text());
  for (int i = 0; i < 60; ++i) {
    Status s = run_ring(*m, fresh_seed());
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
}

constexpr Planted kRingErrors[] = {
    {"a count too large", "async_wait {count = 1}", "async_wait {count = 2}",
     "race at byte .* async_copy|which nothing wrote"},
    {"no wait", "async_wait {count = 1}\n", "\n", "race at byte .* async_copy|which nothing wrote"},
    {"no barrier", "    barrier\n", "\n", "race at byte .* shared_load|race at byte .* async_copy|which nothing wrote"},
    {"a stage too few", "%stages = constant 3", "%stages = constant 2", "race at byte .*(shared_load|async_copy)"},
    {"commits forgotten", "    async_copy %w, %p, %inside\n    async_commit\n", "    async_copy %w, %p, %inside\n",
     "race at byte|which nothing wrote"},
    {"another copy", "shared_view %ring, %here", "shared_view %ring, %size", "copy 512 of 3"},
    {"the barrier before the wait", "    async_wait {count = 1}\n    barrier\n",
     "    barrier\n    async_wait {count = 1}\n", "race at byte .* async_copy|which nothing wrote"},
};

TEST(AsyncCopy, PlantedErrorsAreFound) {
  for (const Planted& p : kRingErrors)
    expect_found(ring_text(), p, [](const ir::Module& m, uint64_t seed) { return run_ring(m, seed); });
}

TEST(AsyncCopy, ADroppedBarrierIsFound) {
  auto m = parse_kernel(ring_text());
  for (int warp : {-1, 0, 2})
    for (int i = 0; i < 10; ++i) {
      const uint32_t seed = fresh_seed();
      Status s = run_ring(*m, seed, 0, warp);
      ASSERT_FALSE(s.ok()) << seed;
      EXPECT_TRUE(std::regex_search(s.error().message, std::regex("race at byte|nothing wrote|deadlock")))
          << s.error().message;
    }
}

// --- through swizzled shared memory, from one layout of registers to another

constexpr char kRoundTrip[] = R"(
kernel @trip(%x: *ELEMENT {divisibility = 16}, %o: *ELEMENT {divisibility = 16}) attributes {num_warps = 4, num_stages = 3, num_ctas = 1, stage = "distributed"} {
  %pad = shared_alloc : shared ELEMENT[ROWS, COLUMNS]{L2} x 2
  %one = constant 1 : i32
  %s = shared_view %pad, %one : shared ELEMENT[ROWS, COLUMNS]{L2}
  %a = arange {start = 0, end = NUMEL} : i32[NUMEL]{L4}
  %b = reshape %a : i32[ROWS, COLUMNS]{L0}
  %xs = splat %x : *ELEMENT[ROWS, COLUMNS]{L0}
  %p = addptr %xs, %b : *ELEMENT[ROWS, COLUMNS]{L0}
  %v = load %p : ELEMENT[ROWS, COLUMNS]{L0}
  shared_store %s, %v
  barrier
  %t = shared_trans %s {order = [1, 0]} : shared ELEMENT[COLUMNS, ROWS]{L3}
  %w = shared_load %t : ELEMENT[COLUMNS, ROWS]{L1}
  %c = arange {start = 0, end = NUMEL} : i32[NUMEL]{L5}
  %d = reshape %c : i32[COLUMNS, ROWS]{L1}
  %os = splat %o : *ELEMENT[COLUMNS, ROWS]{L1}
  %q = addptr %os, %d : *ELEMENT[COLUMNS, ROWS]{L1}
  store %q, %w
  return
}
)";

TEST(SharedMemory, RoundTripsThroughSwizzledTiles) {
  struct Kind {
    const char* element;
    int bytes;
  };
  std::mt19937 rng(fresh_seed());
  for (const Kind kind : {Kind{"i8", 1}, Kind{"f16", 2}, Kind{"f32", 4}})
    for (int swizzle : {32, 64, 128})
      for (const bool rows_first : {true, false}) {
        const int32_t least = swizzle / kind.bytes;
        const int32_t rows = std::max(rows_first ? 32 : least, 32), columns = std::max(rows_first ? 2 * least : 64, 32);
        SCOPED_TRACE(std::string(kind.element) + " " + std::to_string(swizzle));
        const Shape shape{rows, columns}, turned{columns, rows};
        const auto from = blocked(shape, Shape{1, 2}, Shape{4, 8}, Shape{2, 2}, kRowMajor);
        const auto to = layout::mma_accumulator(turned, Shape{2, 2});
        const auto memory_layout =
            layout::swizzled(shape, 8 * kind.bytes, swizzle, rows_first ? kRowMajor : kColumnMajor);
        const Shape flat{rows * columns};
        std::string text =
            layout_lines({from, to, memory_layout, layout::transpose(memory_layout, std::vector<int64_t>{1, 0}),
                          layout::reshape(from, flat), layout::reshape(to, flat)}) +
            kRoundTrip;
        text = std::regex_replace(text, std::regex("ELEMENT"), kind.element);
        text = std::regex_replace(text, std::regex("ROWS"), std::to_string(rows));
        text = std::regex_replace(text, std::regex("COLUMNS"), std::to_string(columns));
        text = std::regex_replace(text, std::regex("NUMEL"), std::to_string(rows * columns));
        auto m = parse_kernel(text);
        ASSERT_NE(m, nullptr);
        auto run = [&](const ir::Module& module, uint64_t seed) -> Status {
          const auto bytes = static_cast<size_t>(rows * columns * kind.bytes), size = static_cast<size_t>(kind.bytes);
          std::vector<uint64_t> x(bytes / 8), o(bytes / 8, 0xdddddddddddddddd);
          for (uint64_t& word : x) word = rng() * uint64_t{0x100000001};
          Memory memory;
          memory.allow(x.data(), bytes);
          memory.allow(o.data(), bytes);
          const uint64_t args[] = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(o.data())};
          DistributedOptions options;
          options.seed = seed;
          KILN_CHECK_OK(run_distributed(module, {1, 1, 1}, args, memory, options));
          const auto *in = reinterpret_cast<const uint8_t*>(x.data()),
                     *out = reinterpret_cast<const uint8_t*>(o.data());
          for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
            for (size_t c = 0; c < static_cast<size_t>(columns); ++c)
              for (size_t b = 0; b < size; ++b)
                EXPECT_EQ(out[(c * static_cast<size_t>(rows) + r) * size + b],
                          in[(r * static_cast<size_t>(columns) + c) * size + b])
                    << r << ", " << c;
          return {};
        };
        for (int i = 0; i < 3; ++i) {
          Status s = run(*m, fresh_seed());
          ASSERT_TRUE(s.ok()) << render(s.error());
        }
        if (swizzle != 128) continue;
        expect_found(text, {"no barrier", "  barrier\n", "", "race at byte|which nothing wrote"}, run);
        expect_found(text, {"nothing stored", "  shared_store %s, %v\n", "", "which nothing wrote"}, run);
      }
}

}  // namespace
}  // namespace kiln::interp
