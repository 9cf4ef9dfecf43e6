// The distributed interpreter against the tile interpreter: what the layout passes and plans make must compute the
// same, whatever the order of the warps; and planted faults must be found.
#include "compiler/interp/machine/distributed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/analysis/verify_layouts.h"
#include "compiler/ir/builder.h"
#include "compiler/passes/distributed/allocate_shared.h"
#include "compiler/passes/distributed/assign_layouts.h"
#include "compiler/passes/distributed/remove_conversions.h"

namespace kiln::passes {
namespace {

using ir::Builder;
using ir::Module;
using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::Value;

void expect_ok(const Status& s) { ASSERT_TRUE(s.ok()) << render(s.error()); }

std::unique_ptr<Module> distribute(const Module& tile) {
  auto m = ir::clone(tile);
  const target::Target& target = *target::find("sm_90a");
  auto expect_legal = [&](Status s) {
    EXPECT_TRUE(s.ok()) << render(s.error());
    // Rules of layouts beyond those of the IR.
    s = ir::verify(*m);
    EXPECT_TRUE(s.ok()) << render(s.error()) << ir::print(*m);
    s = analysis::verify_layouts(*m);
    EXPECT_TRUE(s.ok()) << render(s.error()) << ir::print(*m);
  };
  expect_legal(assign_layouts(*m));
  expect_legal(remove_conversions(*m, target));
  expect_legal(allocate_shared(*m, target));
  return m;
}

std::unique_ptr<Module> parse(const std::string& text) {
  auto m = ir::parse_module(SourceText::make("test.ir", text));
  EXPECT_TRUE(m.ok()) << (m.ok() ? "" : render(m.error()));
  Status ok = ir::verify(**m);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : render(ok.error()));
  return std::move(*m);
}

/// A kernel's buffers, each of 32-bit elements, and its integer arguments.
struct Launch {
  std::vector<std::vector<uint32_t>> buffers;
  std::vector<uint64_t> numbers;

  /// Arguments: the buffers, then the numbers.
  Status operator()(const Module& m, int grid, uint64_t seed, int drop_barrier = -1, int drop_in_warp = -1) {
    interp::Memory memory;
    std::vector<uint64_t> args;
    for (auto& b : buffers) {
      memory.allow(b.data(), b.size() * 4);
      args.push_back(reinterpret_cast<uint64_t>(b.data()));
    }
    args.insert(args.end(), numbers.begin(), numbers.end());
    if (m.stage == ir::Stage::kTile) return interp::run(m, {grid, 1, 1}, args, memory);
    interp::DistributedOptions options;
    options.seed = seed;
    options.drop_barrier = drop_barrier;
    options.drop_in_warp = drop_in_warp;
    return interp::run_distributed(m, {grid, 1, 1}, args, memory, options);
  }
};

// Another one each time, printed where a test fails: many runs cover many orders.
uint32_t fresh_seed() {
  static std::random_device device;
  return device();
}

void expect_close(const Launch& got, const Launch& want, double tolerance) {
  for (size_t b = 0; b < want.buffers.size(); ++b)
    for (size_t i = 0; i < want.buffers[b].size(); ++i) {
      // Equal bits are right whatever they mean, also a NaN.
      if (got.buffers[b][i] == want.buffers[b][i]) continue;
      float g = std::bit_cast<float>(got.buffers[b][i]), w = std::bit_cast<float>(want.buffers[b][i]);
      ASSERT_NEAR(g, w, tolerance * std::max(1.0f, std::abs(w))) << "buffer " << b << " element " << i;
    }
}

constexpr char kSoftmax[] =
    "kernel @softmax(%x: *f32 {divisibility = 16}, %o: *f32 {divisibility = 16}, %n: i32) attributes {num_warps = 4, "
    "num_stages = 3, num_ctas = 1} {\n"
    "  %pid = program_id {axis = 0} : i32\n"
    "  %row = mul %pid, %n : i32\n"
    "  %c = arange {start = 0, end = 512} : i32[512]\n"
    "  %rows = splat %row : i32[512]\n"
    "  %off = add %rows, %c : i32[512]\n"
    "  %ns = splat %n : i32[512]\n"
    "  %mask = cmp %c, %ns {predicate = \"lt\"} : i1[512]\n"
    "  %xs = splat %x : *f32[512]\n"
    "  %xp = addptr %xs, %off : *f32[512]\n"
    "  %low = constant -inf : f32[512]\n"
    "  %v = load %xp, %mask, %low : f32[512]\n"
    "  %top = reduce %v {axis = 0} : f32 (%a: f32, %b: f32) {\n    %m = max %a, %b : f32\n    yield %m\n  }\n"
    "  %tops = splat %top : f32[512]\n"
    "  %d = sub %v, %tops : f32[512]\n"
    "  %e = exp %d : f32[512]\n"
    "  %sum = reduce %e {axis = 0} : f32 (%a2: f32, %b2: f32) {\n    %m2 = add %a2, %b2 : f32\n    yield %m2\n  }\n"
    "  %sums = splat %sum : f32[512]\n"
    "  %r = div %e, %sums : f32[512]\n"
    "  %os = splat %o : *f32[512]\n"
    "  %op = addptr %os, %off : *f32[512]\n"
    "  store %op, %r, %mask\n"
    "  return\n"
    "}\n";

Launch softmax_run(int rows, int n) {
  Launch run;
  std::mt19937 rng(fresh_seed());
  std::normal_distribution<float> normal;
  run.buffers.resize(2, std::vector<uint32_t>(static_cast<size_t>(rows * n)));
  // A normal distribution, whose exponentials stay far from overflow.
  for (uint32_t& x : run.buffers[0]) x = std::bit_cast<uint32_t>(normal(rng));
  run.numbers = {static_cast<uint64_t>(n)};
  return run;
}

TEST(Distributed, SoftmaxMatchesTheTileInterpreter) {
  auto tile = parse(kSoftmax);
  auto m = distribute(*tile);
  // One element, an odd number, one below and one at the block's size.
  for (int n : {1, 33, 500, 512}) {
    Launch want = softmax_run(3, n), got = want;
    expect_ok(want(*tile, 3, 0));
    uint32_t seed = fresh_seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_ok(got(*m, 3, seed));
    // Sums of other orders differ in the last digits.
    expect_close(got, want, 1e-5);
  }
}

TEST(Distributed, ADroppedBarrierIsARace) {
  auto m = distribute(*parse(kSoftmax));
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Launch run = softmax_run(1, 512);
    Status s = run(*m, 1, seed, 0);
    // A warp order may hide the race; the next ones show it.
    if (s.ok()) continue;
    ++found;
    EXPECT_EQ(s.error().kind, ErrorKind::kInternal);
    const std::string& text = s.error().message;
    // A reader that is too early finds nothing, one that is too late finds another's.
    EXPECT_TRUE(text.find("race at byte") != std::string::npos || text.find("which nothing wrote") != std::string::npos)
        << text;
    EXPECT_NE(text.find("seed " + std::to_string(seed)), std::string::npos) << text;
  }
  // Each of the seeds: the interpreter looks for conflicts and not for wrong results.
  EXPECT_EQ(found, 20);
}

TEST(Distributed, ABarrierThatOneWarpSkipsIsADeadlockOrARace) {
  auto m = distribute(*parse(kSoftmax));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Launch run = softmax_run(1, 512);
    // One warp passes the barrier without waiting.
    ASSERT_FALSE(run(*m, 1, seed, 1, 2).ok());
  }
  Launch run = softmax_run(1, 512);
  auto barrier = parse(
      "kernel @k(%x: *f32, %o: *f32, %n: i32) attributes {num_warps = 4, num_stages = 3, num_ctas = 1} {\n  barrier\n  "
      "return\n}\n");
  auto b = distribute(*barrier);
  Status s = run(*b, 1, 7, 0, 2);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().message.find("deadlock"), std::string::npos) << s.error().message;
  EXPECT_NE(s.error().message.find("warp 2 has ended"), std::string::npos) << s.error().message;
}

TEST(Distributed, SharedOffsetsThatOverlapAreFound) {
  auto m = distribute(*parse(kSoftmax));
  int found = 0;
  std::vector<Op*> reduces;
  walk(m->body(), [&](Op* op) {
    if (op->kind == OpKind::kReduce) reduces.push_back(op);
  });
  ASSERT_EQ(reduces.size(), 2u);
  // The second reduction in the place of the first: warps that are still reading it are overtaken.
  reduces[1]->set(ir::AttrName::kSharedOffset, reduces[0]->int_attr(ir::AttrName::kSharedOffset));
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Launch run = softmax_run(1, 512);
    if (!run(*m, 1, seed).ok()) ++found;
  }
  EXPECT_GT(found, 0) << "a warp that is slow to read meets one that is quick to write";
  // Just behind what was allocated.
  reduces[1]->set(ir::AttrName::kSharedOffset, m->shared_bytes);
  Launch run = softmax_run(1, 512);
  Status s = run(*m, 1, 1);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().message.find("shared memory at byte"), std::string::npos) << s.error().message;
}

// What is to be joined before scratch is written again doubled at each branch: 64 of them took all memory there is.
TEST(Distributed, ManyBranchesBetweenUsesOfScratch) {
  std::string text =
      "kernel @k(%x: *f32 {divisibility = 16}, %n: i32) attributes {num_warps = 4, num_stages = 3, num_ctas = 1} {\n"
      "  %r = arange {start = 0, end = 2048} : i32[2048]\n"
      "  %xs = splat %x : *f32[2048]\n"
      "  %p = addptr %xs, %r : *f32[2048]\n"
      "  %a = load %p : f32[2048]\n"
      "  %s = reduce %a {axis = 0} : f32 (%l: f32, %h: f32) {\n    %t = add %l, %h : f32\n    yield %t\n  }\n";
  for (int i = 0; i < 64; ++i)
    text += fmt::format(
        "  %i{0} = constant {0} : i32\n  %c{0} = cmp %n, %i{0} {{predicate = \"gt\"}} : i1\n"
        "  if %c{0} {{\n    %q{0} = addptr %x, %i{0} : *f32\n    store %q{0}, %s\n    yield\n  }}\n",
        i);
  text +=
      "  %ss = splat %s : f32[2048]\n"
      "  %m = sub %a, %ss : f32[2048]\n"
      "  %top = reduce %m {axis = 0} : f32 (%l2: f32, %h2: f32) {\n    %t2 = max %l2, %h2 : f32\n    yield %t2\n  }\n"
      "  %i64 = constant 64 : i32\n  %q64 = addptr %x, %i64 : *f32\n  store %q64, %top\n  return\n}\n";
  auto tile = parse(text);
  auto m = distribute(*tile);
  Launch want{{std::vector<uint32_t>(2048, std::bit_cast<uint32_t>(0.5f))}, {40}}, got = want;
  expect_ok(want(*tile, 1, 0));
  expect_ok(got(*m, 1, fresh_seed()));
  expect_close(got, want, 1e-5);
}

TEST(Distributed, LoopsBranchesAndSmallTiles) {
  auto tile = parse(
      "kernel @k(%x: *i32, %o: *i32, %n: i32) attributes {num_warps = 2, num_stages = 3, num_ctas = 1} {\n"
      "  %c = arange {start = 0, end = 16} : i32[16]\n"
      "  %xs = splat %x : *i32[16]\n"
      "  %xp = addptr %xs, %c : *i32[16]\n"
      "  %zero = constant 0 : i32\n"
      "  %one = constant 1 : i32\n"
      "  %start = constant 0 : i32[16]\n"
      "  %sum, %last = for %i = %zero to %n step %one iter (%acc = %start, %p = %xp) : i32 -> (i32[16], *i32[16]) {\n"
      "    %v = load %p : i32[16]\n"
      "    %total = reduce %v {axis = 0} : i32 (%a: i32, %b: i32) {\n      %s = add %a, %b : i32\n      yield %s\n    "
      "}\n"
      "    %odd = and %total, %one : i32\n"
      "    %is_odd = cmp %odd, %one {predicate = \"eq\"} : i1\n"
      "    %next = if %is_odd : i32[16] {\n"
      "      %scanned = scan %v {axis = 0} : i32[16] (%a2: i32, %b2: i32) {\n        %s2 = add %a2, %b2 : i32\n        "
      "yield %s2\n      }\n"
      "      yield %scanned\n"
      "    } else {\n"
      "      yield %acc\n"
      "    }\n"
      "    %sum1 = add %next, %acc : i32[16]\n"
      "    %ones = splat %one : i32[16]\n"
      "    %p1 = addptr %p, %ones : *i32[16]\n"
      "    yield %sum1, %p1\n"
      "  }\n"
      "  %k = while (%w = %n) : i32 {\n"
      "    %more = cmp %w, %one {predicate = \"gt\"} : i1\n"
      "    condition %more, %w\n"
      "  } do (%w1: i32) {\n"
      "    %w2 = sub %w1, %one : i32\n"
      "    yield %w2\n"
      "  }\n"
      "  %ks = splat %k : i32[16]\n"
      "  %r = add %sum, %ks : i32[16]\n"
      "  %os = splat %o : *i32[16]\n"
      "  %op = addptr %os, %c : *i32[16]\n"
      "  store %op, %r\n"
      "  store %o, %k\n"
      "  return\n"
      "}\n");
  auto m = distribute(*tile);
  // No iteration, one, and numbers of both parities.
  for (int n : {0, 1, 5, 9}) {
    std::mt19937 rng(fresh_seed());
    Launch want;
    want.buffers = {std::vector<uint32_t>(32), std::vector<uint32_t>(16)};
    for (uint32_t& x : want.buffers[0]) x = static_cast<uint32_t>(rng());
    want.numbers = {static_cast<uint64_t>(n)};
    Launch got = want;
    expect_ok(want(*tile, 1, 0));
    uint32_t seed = fresh_seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_ok(got(*m, 1, seed));
    // Integers: the order of sums changes nothing, so the bits are the same.
    EXPECT_EQ(got.buffers, want.buffers) << "n = " << n;
  }
}

TEST(Distributed, AtomicsHappenOncePerElement) {
  auto tile = parse(
      "kernel @k(%x: *i32, %o: *i32) attributes {num_warps = 4, num_stages = 3, num_ctas = 1} {\n"
      "  %c = arange {start = 0, end = 16} : i32[16]\n"
      "  %xs = splat %x : *i32[16]\n"
      "  %xp = addptr %xs, %c : *i32[16]\n"
      "  %one = constant 1 : i32\n"
      "  %ones = constant 1 : i32[16]\n"
      "  %old = atomic_rmw %xp, %ones {rmw = \"add\", sem = \"relaxed\", scope = \"gpu\"} : i32[16]\n"
      "  %ticket = atomic_rmw %x, %one {rmw = \"add\", sem = \"acq_rel\", scope = \"gpu\"} : i32\n"
      "  %ts = splat %ticket : i32[16]\n"
      "  %r = add %old, %ts : i32[16]\n"
      "  %os = splat %o : *i32[16]\n"
      "  %op = addptr %os, %c : *i32[16]\n"
      "  store %op, %r\n"
      "  return\n"
      "}\n");
  auto m = distribute(*tile);
  // 16 elements and 128 threads: copies must not add.
  Launch want;
  want.buffers = {std::vector<uint32_t>(16, 7), std::vector<uint32_t>(16)};
  Launch got = want;
  expect_ok(want(*tile, 1, 0));
  expect_ok(got(*m, 1, fresh_seed()));
  EXPECT_EQ(got.buffers, want.buffers);
}

TEST(Distributed, SumsOfProductsRoundOnceWhereTheyAreContracted) {
  // -1 + (1 + 2^-12)², whose last digit a product of its own loses.
  const float factor = 1 + 0x1p-12F;
  auto run = [&](const std::string& layout, const std::string& tile, std::string_view attributes) {
    const std::string stage = layout.empty() ? "" : ", stage = \"distributed\"";
    auto m =
        parse(layout + "kernel @k(%x: *f32, %o: *f32) attributes {num_warps = 1, num_stages = 3, num_ctas = 1" + stage +
              "} {\n  %c = arange {start = 0, end = 2} : i32" + tile + "\n  %xs = splat %x : *f32" + tile +
              "\n  %xp = addptr %xs, %c : *f32" + tile + "\n  %v = load %xp : f32" + tile + "\n  %a = abs %v : f32" +
              tile + "\n  %p = mul %v, %a : f32" + tile + "\n  %s = reduce %p {axis = 0" + std::string(attributes) +
              "} : f32 (%l: f32, %r: f32) {\n    %lr = add %l, %r : f32\n    yield %lr\n  }\n  store %o, %s\n"
              "  return\n}\n");
    Launch launch;
    launch.buffers = {{std::bit_cast<uint32_t>(-1.0F), std::bit_cast<uint32_t>(factor)}, {0}};
    expect_ok(launch(*m, 1, fresh_seed()));
    return std::bit_cast<float>(launch.buffers[1][0]);
  };
  const std::string layout = "layout L0 = [2] {register = [(1)]}\n";
  for (const auto& [before, tile] : {std::pair<std::string, std::string>{"", "[2]"}, {layout, "[2]{L0}"}}) {
    EXPECT_EQ(run(before, tile, ""), 0x1p-11F);
    EXPECT_EQ(run(before, tile, ", contract = true"), 0x1p-11F + 0x1p-24F);
  }
}

TEST(Distributed, AFalseHintIsFound) {
  // The hint promises what the argument breaks: 16-byte accesses would be misaligned.
  auto tile = parse(
      "kernel @k(%x: *i32 {divisibility = 16}, %o: *i32 {divisibility = 16}, %n: i32) attributes {num_warps = 1, "
      "num_stages = 3, num_ctas = 1} {\n"
      "  %h = hint %n {multiple_of = [16]} : i32\n"
      "  %c = arange {start = 0, end = 256} : i32[256]\n"
      "  %hs = splat %h : i32[256]\n"
      "  %off = add %hs, %c : i32[256]\n"
      "  %xs = splat %x : *i32[256]\n"
      "  %xp = addptr %xs, %off : *i32[256]\n"
      "  %v = load %xp : i32[256]\n"
      "  %os = splat %o : *i32[256]\n"
      "  %op = addptr %os, %c : *i32[256]\n"
      "  store %op, %v\n"
      "  return\n"
      "}\n");
  auto m = distribute(*tile);
  Launch run;
  run.buffers = {std::vector<uint32_t>(512), std::vector<uint32_t>(256)};
  // Of the promised kind first, so that the test itself is right.
  run.numbers = {16};
  expect_ok(run(*m, 1, 1));
  run.numbers = {1};
  Status s = run(*m, 1, 1);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().message.find("axis info promises 4 elements at a time"), std::string::npos) << s.error().message;
}

// --- random programs of tile ops on integers, where every order of a reduction gives the same bits

constexpr int kInputs = 1024;

class Generator {
 public:
  explicit Generator(uint32_t seed) : rng_(seed) {}

  std::unique_ptr<Module> run() {
    auto m = std::make_unique<Module>("random");
    m->num_warps = 1 << pick(4);
    m->params = {{"x", 16}, {"o", 16}};
    x_ = m->add_arg(m->body(), ir::pointer_type(DType::kI32), "x");
    o_ = m->add_arg(m->body(), ir::pointer_type(DType::kI32), "o");
    Builder b(*m);
    for (int i = 0; i < 2; ++i) values_.push_back(load(b, random_shape()));
    for (int i = 0; i < 10; ++i) grow(b, true);
    for (Value* v : values_) store(b, v);
    b.ret();
    return m;
  }
  size_t outputs() const { return static_cast<size_t>(outputs_); }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(rng_() % n); }
  Value* any() { return values_[pick(static_cast<uint32_t>(values_.size()))]; }

  Shape random_shape() {
    Shape s;
    // Nine bits for all dimensions together.
    int left = 9, rank = 1 + static_cast<int>(pick(3));
    for (int d = 0; d < rank; ++d) {
      int bits = static_cast<int>(pick(static_cast<uint32_t>(left) + 1));
      left -= bits;
      s.dims[s.rank++] = 1 << bits;
    }
    return s;
  }

  Value* offsets(Builder& b, const Shape& shape, int first) {
    int n = static_cast<int>(shape.numel());
    Value* v = b.arange(0, n);
    if (first) v = b.binary(OpKind::kAdd, v, b.splat(b.constant_int(ir::scalar_type(DType::kI32), first), Shape{n}));
    v = b.reshape(v, shape);
    return v;
  }
  Value* pointers(Builder& b, Value* base, const Shape& shape, int first) {
    return b.addptr(b.splat(base, shape), offsets(b, shape, first));
  }
  Value* load(Builder& b, const Shape& shape) {
    // Half of the loads are plain, since masks and odd indices hide others' mistakes.
    if (pick(2)) return b.load(pointers(b, x_, shape, static_cast<int>(pick(kInputs / 2))));
    // Index arithmetic that axis info follows, kept inside the buffer; a mask that may be constant over vectors.
    Value* index = offsets(b, shape, static_cast<int>(pick(4) ? 16 * pick(16) : pick(100)));
    // Mostly aligned starts, as vectors come from those.
    auto constant = [&](int64_t n) { return b.constant_int(index->type, n); };
    for (uint32_t n = pick(4); n > 0; --n) {
      // Powers of two and anything: the first keep facts, the second end them.
      int64_t c = pick(3) ? int64_t{1} << pick(7) : 1 + pick(60);
      switch (pick(10)) {
        case 0:
          index = b.binary(OpKind::kDiv, index, constant(c));
          break;
        case 1:
          index = b.binary(OpKind::kRem, index, constant(c));
          break;
        case 2:
          index = b.binary(OpKind::kAnd, index, constant(pick(2) ? c - 1 : -c));
          break;
        case 3:
          index = b.binary(OpKind::kShr, index, constant(pick(5)));
          break;
        case 4:
          index = b.binary(OpKind::kShl, index, constant(pick(5)));
          break;
        case 5:
          index = b.binary(OpKind::kMul, index, constant(c));
          break;
        case 6:
          index = b.binary(OpKind::kSub, index, constant(c));
          break;
        case 7:
          index = b.binary(pick(2) ? OpKind::kMin : OpKind::kMax, index, constant(c));
          break;
        case 8: {
          Value* other = b.binary(OpKind::kAdd, index, constant(c));
          index = b.select(b.cmp(ir::Predicate::kLt, index, constant(4 * c)), index, other);
          break;
        }
        default:
          // A narrow sum wraps, after which nothing of it may be promised.
          index = b.binary(OpKind::kAdd, index, b.cast(b.cast(index, pick(2) ? DType::kI8 : DType::kI16), DType::kI32));
      }
    }
    using ir::Predicate;
    const Predicate predicates[] = {Predicate::kLt, Predicate::kLe, Predicate::kGt,
                                    Predicate::kGe, Predicate::kEq, Predicate::kNe};
    Value* mask = b.cmp(predicates[pick(6)], index, constant(pick(2) ? 16 * pick(32) : pick(500)));
    if (pick(2)) mask = b.cmp(ir::Predicate::kLt, constant(16 * pick(32)), index);
    // Kept inside by a mask of bits, whatever the arithmetic gave.
    Value* pointer = b.addptr(b.splat(x_, shape), b.binary(OpKind::kAnd, index, constant(kInputs - 1)));
    // With and without a value for what the mask leaves out.
    return pick(2) ? b.load(pointer, mask) : b.load(pointer, mask, index);
  }
  void store(Builder& b, Value* v) {
    b.store(v->type.is_tile() ? pointers(b, o_, v->type.shape, outputs_)
                              : b.addptr(o_, b.constant_int(ir::scalar_type(DType::kI32), outputs_)),
            v);
    outputs_ += static_cast<int>(v->type.shape.numel());
  }

  void combine_region(Builder& b, Op* op) {
    Builder inner(b.module());
    inner.set_to_end(op->region());
    // Associative on integers, so that all orders agree.
    const OpKind kinds[] = {OpKind::kAdd, OpKind::kMax, OpKind::kXor};
    Value* sum = inner.binary(kinds[pick(3)], op->region()->args[0], op->region()->args[1]);
    inner.yield(std::span(&sum, 1));
  }

  void grow(Builder& b, bool with_control) {
    Value* v = any();
    if (v->type.is_scalar()) v = b.splat(v, random_shape());
    int rank = v->type.shape.rank, axis = static_cast<int>(pick(static_cast<uint32_t>(rank)));
    // Ten of the kinds without regions; control flow only on the outer level, so that programs stay small.
    switch (pick(with_control ? 11 : 8)) {
      case 0:
      case 1: {
        std::vector<Value*> same;
        for (Value* o : values_)
          if (o->type == v->type) same.push_back(o);
        Value* other =
            same.empty() || pick(3) == 0 ? load(b, v->type.shape) : same[pick(static_cast<uint32_t>(same.size()))];
        const OpKind kinds[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kXor, OpKind::kMin};
        values_.push_back(b.binary(kinds[pick(5)], v, other));
        return;
      }
      case 2: {
        Op* op = b.reduce(std::span(&v, 1), axis);
        combine_region(b, op);
        Value* r = op->result();
        values_.push_back(r);
        if (pick(2) && r->type.is_tile()) {
          Value* wide = b.broadcast(b.expand_dims(r, axis), v->type.shape);
          values_.push_back(b.binary(OpKind::kSub, v, wide));
        }
        return;
      }
      case 3: {
        std::vector<int64_t> order(static_cast<size_t>(rank));
        for (int d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
        std::shuffle(order.begin(), order.end(), rng_);
        values_.push_back(b.trans(v, order));
        return;
      }
      case 4: {
        int64_t n = v->type.shape.numel(), rows = int64_t{1} << pick(10);
        if (n % rows == 0)
          values_.push_back(b.reshape(v, Shape{static_cast<int32_t>(rows), static_cast<int32_t>(n / rows)}));
        return;
      }
      case 5: {
        ir::Type t = v->type;
        Op* op = b.create(OpKind::kScan, std::span(&v, 1), std::span(&t, 1),
                          {{ir::AttrName::kAxis, int64_t{axis}}, {ir::AttrName::kReverse, pick(2) != 0}});
        for (int i = 0; i < 2; ++i) b.module().add_arg(op->region(), t.scalar());
        combine_region(b, op);
        values_.push_back(op->result());
        return;
      }
      case 6: {
        // A rank of 5 is the limit of a tile.
        if (rank >= 5 || v->type.shape.numel() > 512) return;
        Shape s = v->type.shape;
        s.dims[s.rank++] = 2;
        Value* other = load(b, v->type.shape);
        Value* joined = b.create1(OpKind::kJoin, {v, other}, v->type.with_shape(s));
        values_.push_back(joined);
        if (pick(2)) {
          ir::Type half[] = {v->type, v->type};
          Op* op = b.create(OpKind::kSplit, std::span(&joined, 1), half);
          values_.push_back(op->result(0));
          values_.push_back(op->result(1));
        }
        return;
      }
      case 7: {  // a gather
        // Any place, by the values themselves.
        Value* index = b.binary(OpKind::kAnd, v, b.constant_int(v->type, kInputs - 1));
        Value* mask = b.cmp(ir::Predicate::kGe, v, b.constant_int(v->type, 0));
        values_.push_back(b.load(b.addptr(b.splat(x_, v->type.shape), index), mask, v));
        return;
      }
      case 8:
      case 9: {
        ir::Type i32 = ir::scalar_type(DType::kI32);
        Op* op = b.for_loop(b.constant_int(i32, 0), b.constant_int(i32, static_cast<int64_t>(pick(3))),
                            b.constant_int(i32, 1), std::span(&v, 1));
        // What the region makes is not visible outside of it.
        std::vector<Value*> outside = values_;
        Builder inner(b.module());
        inner.set_to_end(op->region());
        Value* carried = op->region()->args[1];
        values_.push_back(carried);
        for (int i = 0; i < 3; ++i) grow(inner, false);
        Value* next = carried;
        for (Value* candidate : values_)
          if (candidate->type == v->type) next = candidate;
        inner.yield(std::span(&next, 1));
        values_ = outside;
        values_.push_back(op->result());
        return;
      }
      default: {
        Value* flat = b.reshape(v, Shape{static_cast<int32_t>(v->type.shape.numel())});
        Op* sum = b.reduce(std::span(&flat, 1), 0);
        combine_region(b, sum);
        Op* op = b.if_op(b.cmp(ir::Predicate::kGt, sum->result(), b.constant_int(sum->result()->type, 0)),
                         // Decided by the data, so that neither side is always taken.
                         std::span(&v->type, 1));
        std::vector<Value*> outside = values_;
        for (int side = 0; side < 2; ++side) {
          Builder inner(b.module());
          inner.set_to_end(op->region(side));
          values_ = {v};
          for (int i = 0; i < 2; ++i) grow(inner, false);
          Value* next = v;
          for (Value* candidate : values_)
            if (candidate->type == v->type) next = candidate;
          inner.yield(std::span(&next, 1));
        }
        values_ = outside;
        values_.push_back(op->result());
        return;
      }
    }
  }

  std::mt19937 rng_;
  std::vector<Value*> values_;
  Value *x_ = nullptr, *o_ = nullptr;
  int outputs_ = 0;
};

TEST(Distributed, RandomProgramsGiveTheSameBits) {
  uint32_t first = fresh_seed();
  // Up to the first failure, whose seed is then the one that is printed.
  for (uint32_t i = 0; i < 150 && !HasFailure(); ++i) {
    uint32_t seed = first + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    Generator generator(seed);
    auto tile = generator.run();
    Status ok = ir::verify(*tile);
    ASSERT_TRUE(ok.ok()) << render(ok.error());
    auto m = distribute(*tile);
    Launch want;
    std::mt19937 rng(seed);
    want.buffers = {std::vector<uint32_t>(2 * kInputs), std::vector<uint32_t>(generator.outputs())};
    for (uint32_t& x : want.buffers[0]) x = static_cast<uint32_t>(rng());
    Launch got = want;
    expect_ok(want(*tile, 1, 0));
    Status s = got(*m, 1, seed);
    ASSERT_TRUE(s.ok()) << render(s.error()) << ir::print(*m);
    ASSERT_EQ(got.buffers, want.buffers) << ir::print(*m);
  }
}

}  // namespace
}  // namespace kiln::passes
