// Products of blocks through the whole pipeline for Hopper, on the machine that the distributed interpreter plays,
// against the tile interpreter: whatever the passes make of warps, mbarriers and fences must be free of races.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "compiler/interp/distributed.h"
#include "compiler/passes/pass.h"
#include "support/float_bits.h"

namespace kiln::passes {
namespace {

// Persistent over tiles; BLOCK_B and TURN make b [k, n] or [n, k].
constexpr char kProduct[] = R"(
kernel @product(%a: *TYPE {divisibility = 16}, %b: *TYPE {divisibility = 16}, %c: *TYPE {divisibility = 16}, %m: i32, %n: i32 {divisibility = 16}, %k: i32 {divisibility = 16}) attributes {num_warps = WARPS, num_stages = STAGES, num_ctas = 1} {
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %one64 = constant 1 : i64
  %bm = constant ROWS : i32
  %bn = constant COLUMNS : i32
  %n_more = sub %bn, %one : i32
  %bk = constant 32 : i32
  %m_more = sub %bm, %one : i32
  %n64 = cast %n : i64
  %k64 = cast %k : i64
  %da = make_descriptor %a, %m, %k, %k64, %one64 : desc TYPE[ROWS, 32]
  DESCRIPTOR_B
  %dc = make_descriptor %c, %m, %n, %n64, %one64 : desc TYPE[ROWS, COLUMNS]
  %m_up = add %m, %m_more : i32
  %rows = div %m_up, %bm : i32
  %n_up = add %n, %n_more : i32
  %columns = div %n_up, %bn : i32
  %tiles = mul %rows, %columns : i32
  %pid = program_id {axis = 0} : i32
  %programs = num_programs {axis = 0} : i32
  for %tile = %pid to %tiles step %programs : i32 {
    %tile_row = div %tile, %columns : i32
    %tile_column = rem %tile, %columns : i32
    %row = mul %tile_row, %bm : i32
    %column = mul %tile_column, %bn : i32
    %init = constant 0.0 : f32[ROWS, COLUMNS]
    %sum = for %t = %zero to %k step %bk iter (%acc = %init) : i32 -> (f32[ROWS, COLUMNS]) {
      %x = descriptor_load %da, %row, %t : TYPE[ROWS, 32]
      LOAD_B
      %next = dot %x, %y, %acc : f32[ROWS, COLUMNS]
      yield %next
    }
    %half = cast %sum : TYPE[ROWS, COLUMNS]
    descriptor_store %dc, %half, %row, %column
    yield
  }
  return
}
)";

struct Case {
  const char* name;
  const char* descriptor_b;
  const char* load_b;
  int warps, stages, rows = 64;
  DType type = DType::kF16;
  int columns = 64;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kDescriptorKn[] = "%db = make_descriptor %b, %k, %n, %n64, %one64 : desc TYPE[32, COLUMNS]";
constexpr char kLoadKn[] = "%y = descriptor_load %db, %t, %column : TYPE[32, COLUMNS]";
constexpr char kDescriptorNk[] = "%db = make_descriptor %b, %n, %k, %k64, %one64 : desc TYPE[COLUMNS, 32]";
constexpr char kLoadNk[] =
    "%z = descriptor_load %db, %column, %t : TYPE[COLUMNS, 32]\n      %y = trans %z {order = [1, 0]} : TYPE[32, "
    "COLUMNS]";

class ProductPipeline : public testing::TestWithParam<Case> {};

TEST_P(ProductPipeline, MatchesTheTileInterpreter) {
  const Case& c = GetParam();
  std::string text = kProduct;
  auto set = [&](const std::string& name, const std::string& value) {
    ASSERT_NE(text.find(name), std::string::npos);
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  };
  set("DESCRIPTOR_B", c.descriptor_b);
  set("LOAD_B", c.load_b);
  set("TYPE", std::string(name(c.type)));
  set("COLUMNS", std::to_string(c.columns));
  set("ROWS", std::to_string(c.rows));
  set("WARPS", std::to_string(c.warps));
  set("STAGES", std::to_string(c.stages));
  auto tile = ir::parse_module(SourceText::make("product.ir", text));
  ASSERT_TRUE(tile.ok()) << render(tile.error());
  auto distributed = ir::clone(**tile);
  RunOptions options;
  options.verify_each = true;
  Status s = run(pipeline(target::Kind::kCuda), *distributed, *target::find("sm_90a"), options);
  ASSERT_TRUE(s.ok()) << render(s.error());
  int products = 0, regions = 0;
  walk(distributed->body(), [&](const ir::Op* op) {
    products += op->kind == ir::OpKind::kWgmma;
    regions += op->kind == ir::OpKind::kWarpSpecialize;
  });
  ASSERT_GT(products, 0) << ir::print(*distributed);
  ASSERT_EQ(regions, 1) << ir::print(*distributed);

  const size_t m = 70, n = 144, k = 208;
  for (int round = 0; round < 2; ++round) {
    const uint32_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    std::normal_distribution<double> normal;
    struct alignas(16) Unit {
      std::byte bytes[16];
    };
    const size_t element = static_cast<size_t>(size_of(c.type));
    auto put = [&](std::vector<Unit>& v, size_t at, double x) {
      const uint64_t bits = float_to_bits(c.type, x);
      std::memcpy(v[0].bytes + at * element, &bits, element);
    };
    auto get = [&](const std::vector<Unit>& v, size_t at) {
      uint64_t bits = 0;
      std::memcpy(&bits, v[0].bytes + at * element, element);
      return float_from_bits(c.type, bits);
    };
    auto buffer = [&](size_t elements) {
      std::vector<Unit> v(elements * element / sizeof(Unit));
      for (size_t at = 0; at < elements; ++at) put(v, at, normal(rng));
      return v;
    };
    std::vector<Unit> a = buffer(m * k), b = buffer(k * n), want = buffer(m * n), got = want;
    auto slots = [&](std::vector<Unit>& out, interp::Memory& memory) {
      for (auto* v : {&a, &b, &out}) memory.allow(v->data(), v->size() * sizeof(Unit));
      return std::vector<uint64_t>{reinterpret_cast<uint64_t>(a.data()),
                                   reinterpret_cast<uint64_t>(b.data()),
                                   reinterpret_cast<uint64_t>(out.data()),
                                   m,
                                   n,
                                   k};
    };
    interp::Memory want_memory, got_memory;
    s = interp::run(**tile, {2, 1, 1}, slots(want, want_memory), want_memory);
    ASSERT_TRUE(s.ok()) << render(s.error());
    interp::DistributedOptions machine;
    machine.seed = seed;
    s = interp::run_distributed(*distributed, {2, 1, 1}, slots(got, got_memory), got_memory, machine);
    ASSERT_TRUE(s.ok()) << render(s.error()) << ir::print(*distributed);
    for (size_t i = 0; i < m * n; ++i) {
      // Both round one sum to f16, and sums in f32 may differ in their last bits; tf32 cuts operands to 10 bits.
      const double w = get(want, i), relative = c.type == DType::kF32 ? 0 : 0x1p-10;
      double absolute = 1e-4;
      if (c.type == DType::kF32)
        for (size_t t = 0; t < k; ++t) absolute += 0x1p-9 * std::abs(get(a, i / n * k + t) * get(b, t * n + i % n));
      ASSERT_NEAR(get(got, i), w, std::abs(w) * relative + absolute) << "element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, ProductPipeline,
    testing::Values(Case{"kn", kDescriptorKn, kLoadKn, 4, 3}, Case{"nk", kDescriptorNk, kLoadNk, 4, 4},
                    Case{"eight_warps", kDescriptorNk, kLoadNk, 8, 2},
                    Case{"rows_by_group", kDescriptorKn, kLoadKn, 8, 2, 128},
                    Case{"few_rows", kDescriptorKn, kLoadKn, 4, 3, 16},
                    Case{"few_rows_nk", kDescriptorNk, kLoadNk, 4, 3, 32},
                    Case{"tf32_nk", kDescriptorNk, kLoadNk, 4, 3, 64, DType::kF32},
                    Case{"tf32_through_registers", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF32},
                    Case{"tf32_few_rows", kDescriptorKn, kLoadKn, 4, 2, 16, DType::kF32},
                    Case{"stored_in_parts", kDescriptorNk, kLoadNk, 8, 2, 128, DType::kF32, 256},
                    Case{"stored_in_parts_of_rows", kDescriptorKn, kLoadKn, 8, 2, 128, DType::kF32, 256}));

}  // namespace
}  // namespace kiln::passes
