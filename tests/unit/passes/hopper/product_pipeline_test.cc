// Products of blocks through the whole pipeline for Hopper, on the machine that the distributed interpreter plays,
// against the tile interpreter: whatever the passes make of warps, mbarriers and fences must be free of races.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "compiler/interp/machine/distributed.h"
#include "compiler/passes/pass.h"
#include "support/float_bits.h"
#include "tests/unit/passes/roles.h"

namespace kiln::passes {
namespace {

// Persistent over tiles; DESCRIPTOR_B and LOAD_B make b [k, n] or [n, k]; r is a residual of c's size.
constexpr char kProduct[] = R"(
kernel @product(%a: *TYPE {divisibility = 16}, %b: *TYPE {divisibility = 16}, %c: *TYPE {divisibility = 16}, %r: *TYPE {divisibility = 16}, %m: i32, %n: i32 {divisibility = 16}, %k: i32 {divisibility = 16}) attributes {num_warps = WARPS, num_stages = STAGES, num_ctas = CTAS} {
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
  DESCRIPTOR_A
  DESCRIPTOR_B
  DESCRIPTOR_C
  DESCRIPTOR_R
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
    SUMS_BEGIN {
      LOAD_A
      LOAD_B
      %next = dot %x, %y, %acc : f32[ROWS, COLUMNS]
      SUMS_END
    }
    ADD_SUMS
    ADD_R
    %half = cast SUM : TYPE[ROWS, COLUMNS]
    STORE_C
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
  int ctas = 1;
  bool batch = false;     // a and c are two matrices each, of half of the rows
  bool one_tile = false;  // of each program; else programs take turns
  bool residual = false;  // added to the sum, loaded as a block
  bool two_sums = false;  // of the same product, added behind the loop

  int programs(size_t m, size_t n) const {
    const auto tiles = [](size_t size, int block) { return (static_cast<int>(size) + block - 1) / block; };
    return one_tile ? tiles(m, rows) * tiles(n, columns) : 2;
  }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr char kDescriptorKn[] = "%db = make_descriptor %b, %k, %n, %n64, %one64 : desc TYPE[32, COLUMNS]";
constexpr char kLoadKn[] = "%y = descriptor_load %db, %t, %column : TYPE[32, COLUMNS]";
constexpr char kDescriptorNk[] = "%db = make_descriptor %b, %n, %k, %k64, %one64 : desc TYPE[COLUMNS, 32]";
constexpr char kLoadNk[] =
    "%z = descriptor_load %db, %column, %t : TYPE[COLUMNS, 32]\n      %y = trans %z {order = [1, 0]} : TYPE[32, "
    "COLUMNS]";

class ProductPipeline : public testing::TestWithParam<Case> {};

std::unique_ptr<ir::Module> product(const Case& c) {
  std::string text = kProduct;
  auto set = [&](const std::string& name, const std::string& value) {
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  };
  if (c.one_tile) {
    set("for %tile = %pid to %tiles step %programs : i32 {", "%tile = add %pid, %zero : i32");
    set("    yield\n  }\n  return", "  return");
  }
  if (c.batch) {
    set("DESCRIPTOR_A", R"(%two = constant 2 : i32
  %each = div %m, %two : i32
  %each64 = cast %each : i64
  %batch_a = mul %each64, %k64 : i64
  %batch_c = mul %each64, %n64 : i64
  %da = make_descriptor %a, %two, %each, %k, %batch_a, %k64, %one64 : desc TYPE[1, ROWS, 32])");
    set("LOAD_A", R"(%matrix = descriptor_load %da, %tile_row, %zero, %t : TYPE[1, ROWS, 32]
      %x = reshape %matrix : TYPE[ROWS, 32])");
    set("DESCRIPTOR_C",
        "%dc = make_descriptor %c, %two, %each, %n, %batch_c, %n64, %one64 : desc TYPE[1, ROWS, COLUMNS]");
    set("STORE_C", R"(%one_of_them = reshape %half : TYPE[1, ROWS, COLUMNS]
    descriptor_store %dc, %one_of_them, %tile_row, %zero, %column)");
  } else {
    set("DESCRIPTOR_A", "%da = make_descriptor %a, %m, %k, %k64, %one64 : desc TYPE[ROWS, 32]");
    set("LOAD_A", "%x = descriptor_load %da, %row, %t : TYPE[ROWS, 32]");
    set("DESCRIPTOR_C", "%dc = make_descriptor %c, %m, %n, %n64, %one64 : desc TYPE[ROWS, COLUMNS]");
    set("STORE_C", "descriptor_store %dc, %half, %row, %column");
  }
  if (c.two_sums) {
    set("SUMS_BEGIN", R"(%other_init = constant 1.0 : f32[ROWS, COLUMNS]
    %first, %other = for %t = %zero to %k step %bk iter (%acc = %init, %other_acc = %other_init) : i32 -> (f32[ROWS, COLUMNS], f32[ROWS, COLUMNS]))");
    set("SUMS_END", R"(%other_next = dot %x, %y, %other_acc : f32[ROWS, COLUMNS]
      yield %next, %other_next)");
    set("ADD_SUMS", "%sum = add %first, %other : f32[ROWS, COLUMNS]");
  } else {
    set("SUMS_BEGIN", "%sum = for %t = %zero to %k step %bk iter (%acc = %init) : i32 -> (f32[ROWS, COLUMNS])");
    set("SUMS_END", "yield %next");
    set("ADD_SUMS", "");
  }
  set("DESCRIPTOR_R", c.residual ? "%dr = make_descriptor %r, %m, %n, %n64, %one64 : desc TYPE[ROWS, COLUMNS]" : "");
  set("ADD_R", c.residual ? R"(%residual = descriptor_load %dr, %row, %column : TYPE[ROWS, COLUMNS]
    %wide = cast %residual : f32[ROWS, COLUMNS]
    %whole = add %sum, %wide : f32[ROWS, COLUMNS])"
                          : "");
  set("SUM", c.residual ? "%whole" : "%sum");
  set("DESCRIPTOR_B", c.descriptor_b);
  set("LOAD_B", c.load_b);
  set("TYPE", std::string(name(c.type)));
  set("COLUMNS", std::to_string(c.columns));
  set("ROWS", std::to_string(c.rows));
  set("WARPS", std::to_string(c.warps));
  set("STAGES", std::to_string(c.stages));
  set("CTAS", std::to_string(c.ctas));
  auto tile = ir::parse_module(SourceText::make("product.ir", text));
  EXPECT_TRUE(tile.ok()) << render(tile.error());
  return std::move(*tile);
}

std::unique_ptr<ir::Module> distribute(const ir::Module& tile, std::span<const Role> roles = kOneProducer) {
  auto distributed = ir::clone(tile);
  RunOptions options;
  options.verify_each = true;
  Context context{*target::find("sm_90a")};
  context.roles = roles;
  Status s = run(pipeline(target::Kind::kCuda), *distributed, context, options);
  EXPECT_TRUE(s.ok()) << render(s.error());
  return distributed;
}

TEST_P(ProductPipeline, MatchesTheTileInterpreter) {
  const Case& c = GetParam();
  const auto tile = product(c);
  Status s;
  const size_t m = 70, n = 144, k = 208;
  for (int round = 0; round < 3; ++round) {
    const bool apart = round == 2;
    const auto distributed = apart ? distribute(*tile, kProducerPerOperand) : distribute(*tile);
    int products = 0, shared = 0;
    size_t regions = 0;
    walk(distributed->body(), [&](const ir::Op* op) {
      products += op->kind == ir::OpKind::kWgmma;
      if (op->kind == ir::OpKind::kWarpSpecialize) regions += op->regions.size();
      shared += op->kind == ir::OpKind::kTmaLoad && op->flag(ir::AttrName::kCluster);
    });
    EXPECT_EQ(shared, c.ctas > 1) << "one operand serves all blocks: " << ir::print(*distributed);
    ASSERT_GT(products, 0) << ir::print(*distributed);
    ASSERT_EQ(regions, !apart ? 2u : c.residual ? 4u : 3u) << ir::print(*distributed);
    EXPECT_EQ(ir::print(*distributed).find("load %residual"), std::string::npos) << "TMA brings it";
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
    std::vector<Unit> a = buffer(m * k), b = buffer(k * n), r = buffer(m * n), want = buffer(m * n), got = want;
    auto slots = [&](std::vector<Unit>& out, interp::Memory& memory) {
      for (auto* v : {&a, &b, &out, &r}) memory.allow(v->data(), v->size() * sizeof(Unit));
      return std::vector<uint64_t>{reinterpret_cast<uint64_t>(a.data()),
                                   reinterpret_cast<uint64_t>(b.data()),
                                   reinterpret_cast<uint64_t>(out.data()),
                                   reinterpret_cast<uint64_t>(r.data()),
                                   m,
                                   n,
                                   k};
    };
    interp::Memory want_memory, got_memory;
    s = interp::run(*tile, {c.programs(m, n), 1, 1}, slots(want, want_memory), want_memory);
    ASSERT_TRUE(s.ok()) << render(s.error());
    interp::DistributedOptions machine;
    machine.seed = seed;
    s = interp::run_distributed(*distributed, {c.programs(m, n), 1, 1}, slots(got, got_memory), got_memory, machine);
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
    testing::Values(
        Case{"kn", kDescriptorKn, kLoadKn, 4, 3}, Case{"nk", kDescriptorNk, kLoadNk, 4, 4},
        Case{"eight_warps", kDescriptorNk, kLoadNk, 8, 2}, Case{"rows_by_group", kDescriptorKn, kLoadKn, 8, 2, 128},
        Case{"few_rows", kDescriptorKn, kLoadKn, 4, 3, 16}, Case{"few_rows_nk", kDescriptorNk, kLoadNk, 4, 3, 32},
        Case{"tf32_nk", kDescriptorNk, kLoadNk, 4, 3, 64, DType::kF32},
        Case{"tf32_through_registers", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF32},
        Case{"tf32_few_rows", kDescriptorKn, kLoadKn, 4, 2, 16, DType::kF32},
        Case{"stored_in_parts", kDescriptorNk, kLoadNk, 8, 2, 128, DType::kF32, 256},
        Case{"stored_in_parts_of_rows", kDescriptorKn, kLoadKn, 8, 2, 128, DType::kF32, 256},
        Case{"two_blocks_part_rows", kDescriptorKn, kLoadKn, 4, 3, 128, DType::kF16, 64, 2},
        Case{"two_blocks_part_columns", kDescriptorNk, kLoadNk, 4, 2, 64, DType::kF16, 128, 2},
        Case{"four_blocks", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF16, 256, 4},
        Case{"two_blocks_tf32", kDescriptorNk, kLoadNk, 4, 2, 128, DType::kF32, 64, 2},
        Case{"of_a_batch", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF16, 64, 1, true},
        Case{"of_a_batch_in_parts", kDescriptorNk, kLoadNk, 8, 2, 64, DType::kF32, 256, 1, true},
        Case{"of_a_batch_two_blocks", kDescriptorNk, kLoadNk, 4, 2, 64, DType::kF16, 128, 2, true},
        Case{"in_flight", kDescriptorKn, kLoadKn, 4, 4, 64, DType::kF16, 128},
        Case{"in_flight_nk", kDescriptorNk, kLoadNk, 4, 5, 64, DType::kF16, 256},
        Case{"two_blocks_in_flight", kDescriptorKn, kLoadKn, 4, 4, 128, DType::kF16, 128, 2},
        Case{"two_sums_in_flight", kDescriptorKn, kLoadKn, 4, 4, 64, DType::kF16, 128, 1, false, false, false, true},
        Case{"one_tile_two_sums_in_flight", kDescriptorNk, kLoadNk, 4, 5, 64, DType::kF16, 128, 1, false, true, false,
             true},
        Case{"one_tile", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF16, 64, 1, false, true},
        Case{"one_tile_two_groups", kDescriptorNk, kLoadNk, 8, 2, 128, DType::kF16, 64, 1, false, true},
        Case{"one_tile_in_flight", kDescriptorKn, kLoadKn, 4, 4, 64, DType::kF16, 128, 1, false, true},
        Case{"one_tile_two_blocks", kDescriptorKn, kLoadKn, 4, 3, 128, DType::kF16, 64, 2, false, true},
        Case{"residual", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF16, 64, 1, false, false, true},
        Case{"residual_tf32", kDescriptorNk, kLoadNk, 8, 2, 128, DType::kF32, 64, 1, false, false, true},
        Case{"residual_wide", kDescriptorKn, kLoadKn, 8, 3, 128, DType::kF16, 128, 1, false, true, true},
        Case{"residual_in_flight", kDescriptorKn, kLoadKn, 4, 4, 64, DType::kF16, 128, 1, false, false, true},
        Case{"residual_two_blocks", kDescriptorKn, kLoadKn, 4, 3, 128, DType::kF16, 64, 2, false, false, true},
        Case{"residual_one_tile_two_blocks", kDescriptorNk, kLoadNk, 4, 3, 128, DType::kF16, 64, 2, false, true,
             true}));

// Blocks of 64x64 that share b.
constexpr Case kCluster = {"cluster", kDescriptorKn, kLoadKn, 4, 3, 128, DType::kF16, 64, 2};

// A product that is left in flight.
constexpr Case kInFlight = {"in_flight", kDescriptorKn, kLoadKn, 4, 4, 64, DType::kF16, 128};

/// What the machine says of the product after `plant` has changed it.
std::string played(const Case& of, void (*plant)(ir::Module&), uint64_t seed) {
  const auto m = distribute(*product(of));
  plant(*m);
  EXPECT_TRUE(ir::verify(*m).ok()) << render(ir::verify(*m).error());
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  const size_t rows = 300, columns = static_cast<size_t>(of.columns), depth = 224;
  std::vector<Unit> a(rows * depth / 8), b(depth * columns / 8), c(rows * columns / 8), r = c;
  interp::Memory memory;
  std::vector<uint64_t> args;
  for (auto* v : {&a, &b, &c, &r}) {
    memory.allow(v->data(), v->size() * sizeof(Unit));
    args.push_back(reinterpret_cast<uint64_t>(v->data()));
  }
  args.insert(args.end(), {rows, columns, depth});
  interp::DistributedOptions options;
  options.seed = seed;
  Status s = interp::run_distributed(*m, {of.programs(rows, columns), 1, 1}, args, memory, options);
  return s.ok() ? "" : render(s.error());
}

template <class Fn>
void each(ir::Module& m, ir::OpKind kind, Fn&& fn) {
  ir::walk(m.body(), [&](ir::Op* op) {
    if (op->kind == kind) fn(op);
  });
}

struct Planted {
  const char* name;
  void (*plant)(ir::Module&);
  std::vector<const char*> found;  // any of them; without: it works
};

void expect_found(const Case& of, const std::vector<Planted>& planted) {
  for (const Planted& p : planted)
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const std::string said = played(of, p.plant, seed);
      if (p.found.empty()) {
        EXPECT_EQ(said, "");
        continue;
      }
      EXPECT_TRUE(std::any_of(p.found.begin(), p.found.end(),
                              [&](const char* text) { return said.find(text) != std::string::npos; }))
          << p.name << ", seed " << seed << ": '" << said << "'";
    }
}

TEST(Cluster, PlantedErrorsAreFound) {
  using ir::AttrName, ir::Module, ir::Op, ir::OpKind;
  expect_found(kCluster,
               {
                   {"none", [](Module&) {}, {}},
                   {"no release in the other block",
                    [](Module& m) { each(m, OpKind::kMbarrierArrive, [](Op* op) { op->remove(AttrName::kCluster); }); },
                    {"deadlock"}},
                   {"nobody waits for the other block's release",
                    [](Module& m) {
                      each(m, OpKind::kMbarrierArrive, [](Op* op) { op->remove(AttrName::kCluster); });
                      each(m, OpKind::kMbarrierInit, [](Op* op) {
                        op->set(AttrName::kCount, std::min<int64_t>(4, op->int_attr(AttrName::kCount)));
                      });
                    },
                    {"race", "on their way"}},
                   {"too few bytes announced",
                    [](Module& m) {
                      each(m, OpKind::kMbarrierExpect,
                           [](Op* op) { op->set(AttrName::kBytes, op->int_attr(AttrName::kBytes) * 3 / 4); });
                    },
                    {"bytes are on their way", "which nothing wrote"}},
                   {"too many bytes announced",
                    [](Module& m) {
                      each(m, OpKind::kMbarrierExpect,
                           [](Op* op) { op->set(AttrName::kBytes, op->int_attr(AttrName::kBytes) + 64); });
                    },
                    {"deadlock", "bytes are on their way"}},
                   {"no wait at the end for the last releases",
                    [](Module& m) {
                      each(m, OpKind::kWarpSpecialize, [](Op* op) { op->region(1)->terminator()->prev->erase(); });
                    },
                    {"may end before", "which has ended"}},
                   {"a block's barrier for the cluster's after the initialisation",
                    [](Module& m) {
                      Op* first = nullptr;
                      each(m, OpKind::kClusterBarrier, [&](Op* op) { first = first ? first : op; });
                      first->kind = OpKind::kBarrier;
                    },
                    {"mbarrier_init", "initialised"}},
               });
}

TEST(InFlight, PlantedErrorsAreFound) {
  using ir::AttrName, ir::Module, ir::Op, ir::OpKind;
  const auto made = distribute(*product(kInFlight));
  std::vector<int64_t> counts;
  each(*made, OpKind::kWgmmaWait, [&](Op* op) { counts.push_back(op->int_attr(AttrName::kCount)); });
  EXPECT_EQ(counts, (std::vector<int64_t>{1, 0})) << ir::print(*made);
  expect_found(
      kInFlight,
      {
          {"none", [](Module&) {}, {}},
          {"the product before may be unfinished",
           [](Module& m) {
             each(m, OpKind::kWgmmaWait, [](Op* op) { op->set(AttrName::kCount, 2 * op->int_attr(AttrName::kCount)); });
           },
           {"race", "on their way"}},
          {"the last product may be unfinished",
           [](Module& m) { each(m, OpKind::kWgmmaWait, [](Op* op) { op->set(AttrName::kCount, int64_t{1}); }); },
           {"touches the result of a wgmma"}},
          {"a slot is released while it is read",
           [](Module& m) {
             each(m, OpKind::kMbarrierArrive, [](Op* op) {
               Op* view = op->operand(0)->op;
               const Op* before = view->operand(1)->op;
               view->set_operand(1, before->operand(2)->op->operand(0));
             });
           },
           {"race", "on their way", "deadlock", "phase"}},
          {"the last slot is not released",
           [](Module& m) {
             Op* last = nullptr;
             each(m, OpKind::kMbarrierArrive, [&](Op* op) { last = op; });
             last->erase();
           },
           {"deadlock"}},
      });
}

/// The consumers' waits for, and releases of, the slot of a residual: the ones that stand in no inner loop.
void each_of_residual(ir::Module& m, ir::OpKind kind, void (*fn)(ir::Op*)) {
  ir::Op* split = nullptr;
  each(m, ir::OpKind::kWarpSpecialize, [&](ir::Op* op) { split = op; });
  std::vector<ir::Op*> found;
  ir::walk(split->region(0), [&](ir::Op* op) {
    const ir::Op* loop = op->parent->parent;
    if (op->kind == kind && loop->kind == ir::OpKind::kFor && loop->parent == split->region(0)) found.push_back(op);
  });
  ASSERT_EQ(found.size(), 1u) << ir::print(m);
  fn(found[0]);
}

TEST(Residual, PlantedErrorsAreFound) {
  using ir::Module, ir::Op, ir::OpKind;
  constexpr Case kResidual = {"residual", kDescriptorKn, kLoadKn, 4, 3, 64, DType::kF16, 64, 1, false, false, true};
  expect_found(kResidual,
               {
                   {"none", [](Module&) {}, {}},
                   {"nobody waits for the tile",
                    [](Module& m) { each_of_residual(m, OpKind::kMbarrierWait, [](Op* op) { op->erase(); }); },
                    {"race", "on their way", "which nothing wrote", "phase"}},
                   {"its slot is not released",
                    [](Module& m) { each_of_residual(m, OpKind::kMbarrierArrive, [](Op* op) { op->erase(); }); },
                    {"deadlock"}},
               });
}

/// Behind the last product its result is staged where the ring was.
TEST(Epilogue, TakesTheRingsPlace) {
  using ir::Module, ir::Op, ir::OpKind;
  constexpr Case kGroups = {"groups", kDescriptorKn, kLoadKn, 8, 3, 128, DType::kF16, 64, 1, false, true};
  Case loop = kGroups;
  loop.one_tile = false;
  const int64_t buffer = 128 * 64 * 2;
  const auto once = distribute(*product(kGroups)), persistent = distribute(*product(loop));
  EXPECT_EQ(once->shared_bytes + buffer, persistent->shared_bytes) << ir::print(*once);
  expect_found(kGroups, {
                            {"none", [](Module&) {}, {}},
                            {"a group's result over what the other group still multiplies",
                             [](Module& m) {
                               Op* store = nullptr;
                               each(m, OpKind::kSharedStore, [&](Op* op) { store = store ? store : op; });
                               ASSERT_EQ(store->prev->kind, OpKind::kBarrier);
                               store->prev->erase();
                             },
                             {"race", "on their way"}},
                        });
}

}  // namespace
}  // namespace kiln::passes
