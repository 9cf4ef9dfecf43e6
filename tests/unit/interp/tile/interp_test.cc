#include "compiler/interp/tile/interp.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <numeric>

namespace kiln::interp {
namespace {

class InterpTest : public testing::Test {
 protected:
  /// Runs "kernel @k(%x: *f32, %y: *i32, %n: i32) { body }" on buffers x and y.
  Status run_body(const std::string& body, std::array<int32_t, 3> grid = {1, 1, 1}, int32_t n = 5,
                  const Options& options = {}) {
    auto m = ir::parse_module(
        SourceText::make("t.ir", "kernel @k(%x: *f32, %y: *i32, %n: i32) {\n" + body + "\nreturn\n}\n"));
    if (!m) return m.error();
    KILN_CHECK_OK(ir::verify(**m));
    Memory memory;
    // y first: the order of what is allowed must not matter.
    memory.allow(y.data(), y.size() * 4);
    memory.allow(x.data(), x.size() * 4);
    const uint64_t args[] = {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(y.data()),
                             static_cast<uint64_t>(n)};
    return run(**m, grid, args, memory, options);
  }
  void expect_ok(const Status& s) { ASSERT_TRUE(s.ok()) << render(s.error()); }
  void expect_error(const Status& s, ErrorKind kind, const std::string& message) {
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().kind, kind);
    EXPECT_EQ(s.error().message, message);
    // An error stands at a place in the text.
    EXPECT_GT(s.error().place.line, 0);
  }

  std::vector<float> x = std::vector<float>(16);
  std::vector<int32_t> y = std::vector<int32_t>(16);
};

constexpr char kOffsets[] = R"(
  %r = arange {start = 0, end = 8} : i32[8]
  %ys = splat %y : *i32[8]
  %p = addptr %ys, %r : *i32[8]
  %nn = splat %n : i32[8]
  %m = cmp %r, %nn {predicate = "lt"} : i1[8]
)";

// x is a 3 × 5 tensor with rows of 6; y receives a block as integers.
constexpr char kDescriptor[] = R"(
  %rows = constant 3 : i32
  %columns = constant 5 : i32
  %stride = constant 6 : i64
  %one = constant 1 : i64
  %d = make_descriptor %x, %rows, %columns, %stride, %one : desc f32[2, 4]
)";

TEST_F(InterpTest, DescriptorLoadsGiveZeroOutside) {
  x.resize(18);
  std::iota(x.begin(), x.end(), 1.0f);
  const std::string store = R"(
  %v = descriptor_load %d, %i, %j : f32[2, 4]
  %flat = reshape %v : f32[8]
  %ints = cast %flat : i32[8]
  %r = arange {start = 0, end = 8} : i32[8]
  %ys = splat %y : *i32[8]
  %p = addptr %ys, %r : *i32[8]
  store %p, %ints
)";
  expect_ok(run_body(kDescriptor + std::string("%i = constant 1 : i32\n%j = constant 0 : i32") + store));
  EXPECT_EQ(std::vector(y.begin(), y.begin() + 8), (std::vector<int32_t>{7, 8, 9, 10, 13, 14, 15, 16}));
  // Rows and columns beyond the tensor, though the memory goes on there.
  expect_ok(run_body(kDescriptor + std::string("%i = constant 2 : i32\n%j = constant 3 : i32") + store));
  EXPECT_EQ(std::vector(y.begin(), y.begin() + 8), (std::vector<int32_t>{16, 17, 0, 0, 0, 0, 0, 0}));
  // Negative coordinates are outside too.
  expect_ok(run_body(kDescriptor + std::string("%i = constant -1 : i32\n%j = constant -2 : i32") + store));
  EXPECT_EQ(std::vector(y.begin(), y.begin() + 8), (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 2}));
}

TEST_F(InterpTest, DescriptorStoresDropWhatIsOutside) {
  x.assign(18, -1);
  expect_ok(run_body(kDescriptor + std::string(R"(
  %i = constant 2 : i32
  %j = constant 3 : i32
  %v = constant 4.0 : f32[2, 4]
  descriptor_store %d, %v, %i, %j
)")));
  // Two elements of the block lie inside.
  for (size_t k = 0; k < x.size(); ++k) EXPECT_EQ(x[k], k == 15 || k == 16 ? 4 : -1) << k;
}

TEST_F(InterpTest, DotSumsExactProducts) {
  for (int k = 0; k < 16; ++k) x[static_cast<size_t>(k)] = 0;
  expect_ok(run_body(R"(
  %r = arange {start = 0, end = 8} : i32[8]
  %rf = cast %r : f32[8]
  %a = reshape %rf : f32[2, 4]
  %b = reshape %rf : f32[4, 2]
  %c = constant 100.0 : f32[2, 2]
  %v = dot %a, %b, %c {precision = "ieee"} : f32[2, 2]
  %flat = reshape %v : f32[4]
  %q = arange {start = 0, end = 4} : i32[4]
  %xs = splat %x : *f32[4]
  %p = addptr %xs, %q : *f32[4]
  store %p, %flat
)"));
  // A and B from 0 to 7, and 100 everywhere.
  EXPECT_EQ(std::vector(x.begin(), x.begin() + 4), (std::vector<float>{128, 134, 176, 198}));
}

TEST_F(InterpTest, DotRoundsToTf32AndWrapsIntegers) {
  expect_ok(run_body(R"(
  %a = constant 1.0004883 : f32[1, 1]
  %z = constant 0.0 : f32[1, 1]
  %t = dot %a, %a, %z : f32[1, 1]
  %s = reshape %t : f32[1]
  %xs = splat %x : *f32[1]
  store %xs, %s
  %ai = constant -128 : i8[1, 1]
  %zi = constant 2147483647 : i32[1, 1]
  %ti = dot %ai, %ai, %zi : i32[1, 1]
  %si = reshape %ti : i32[1]
  %ys = splat %y : *i32[1]
  store %ys, %si
)"));
  EXPECT_EQ(x[0], 1);  // 1 + 2^-11 is a tie, and goes to the even 1
  EXPECT_EQ(y[0], std::numeric_limits<int32_t>::min() + 16383);
}

TEST_F(InterpTest, MaskedLoadsGiveZeroOrOther) {
  std::iota(y.begin(), y.end(), 10);
  expect_ok(run_body(std::string(kOffsets) + R"(
  %v = load %p, %m : i32[8]
  %o = load %p, %m, %r : i32[8]
  %s = add %v, %o : i32[8]
  store %p, %s)"));
  // Zero for what is masked in one load, the other's value in the second.
  EXPECT_EQ(y, (std::vector<int32_t>{20, 22, 24, 26, 28, 5, 6, 7, 18, 19, 20, 21, 22, 23, 24, 25}));
}

TEST_F(InterpTest, MaskedStoresLeaveTheRest) {
  expect_ok(run_body(std::string(kOffsets) + "store %p, %nn, %m"));
  EXPECT_EQ(y, (std::vector<int32_t>{5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(InterpTest, ReportsTheFirstAccessOutside) {
  const Status s = run_body(R"(
  %id = program_id {axis = 0} : i32
  %eight = constant 8 : i32
  %base = mul %id, %eight : i32
  %bases = splat %base : i32[2, 4]
  %r = arange {start = 0, end = 8} : i32[8]
  %rr = reshape %r : i32[2, 4]
  %o = add %bases, %rr : i32[2, 4]
  %ys = splat %y : *i32[2, 4]
  %p = addptr %ys, %o : *i32[2, 4]
  store %p, %o)",
                            {3, 1, 1});
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kLaunch);
  EXPECT_NE(s.error().message.find("store of i32 outside of every buffer"), std::string::npos) << s.error().message;
  // The third program begins at element 16, the first one outside.
  EXPECT_NE(s.error().message.find("at element [0, 0] in program (2, 0, 0)"), std::string::npos) << s.error().message;
  EXPECT_EQ(s.error().place.line, 12);
}

TEST_F(InterpTest, ReportsMisalignedAccess) {
  const Status s = run_body(R"(
  %a = ptr_to_int %y : i64
  %two = constant 2 : i64
  %b = add %a, %two : i64
  %p = int_to_ptr %b : *i32
  %v = load %p : i32)");
  ASSERT_FALSE(s.ok());
  // Two bytes off an address of four.
  EXPECT_NE(s.error().message.find("misaligned"), std::string::npos);
}

TEST_F(InterpTest, ShapesMoveElements) {
  expect_ok(run_body(R"(
  %r = arange {start = 0, end = 8} : i32[8]
  %a = reshape %r : i32[2, 4]
  %t = trans %a {order = [1, 0]} : i32[4, 2]
  %l, %h = split %t : i32[4], i32[4]
  %j = join %h, %l : i32[4, 2]
  %e = expand_dims %l {axis = 1} : i32[4, 1]
  %b = broadcast %e : i32[4, 2]
  %ten = constant 10 : i32[4, 2]
  %s = mul %b, %ten : i32[4, 2]
  %sum = add %s, %j : i32[4, 2]
  %flat = reshape %sum : i32[8]
  %ys = splat %y : *i32[8]
  %p = addptr %ys, %r : *i32[8]
  store %p, %flat)"));
  // t = [[0,4],[1,5],[2,6],[3,7]]; l = 0..3; h = 4..7; j = [[4,0],[5,1],…]
  EXPECT_EQ(std::vector<int32_t>(y.begin(), y.begin() + 8), (std::vector<int32_t>{4, 0, 15, 11, 26, 22, 37, 33}));
}

TEST_F(InterpTest, ReduceAndScanAlongEachAxis) {
  expect_ok(run_body(R"(
  %r = arange {start = 1, end = 9} : i32[8]
  %a = reshape %r : i32[2, 4]
  %rows = reduce %a {axis = 1} : i32[2] (%p: i32, %q: i32) {
    %s = add %p, %q : i32
    yield %s
  }
  %columns = reduce %a {axis = 0} : i32[4] (%p1: i32, %q1: i32) {
    %s1 = sub %p1, %q1 : i32
    yield %s1
  }
  %down = scan %a {axis = 1, reverse = true} : i32[2, 4] (%p2: i32, %q2: i32) {
    %s2 = add %p2, %q2 : i32
    yield %s2
  }
  %two = arange {start = 0, end = 2} : i32[2]
  %four = arange {start = 2, end = 6} : i32[4]
  %eight = arange {start = 8, end = 16} : i32[8]
  %y2 = splat %y : *i32[2]
  %y4 = splat %y : *i32[4]
  %y8 = splat %y : *i32[8]
  %a2 = addptr %y2, %two : *i32[2]
  %a4 = addptr %y4, %four : *i32[4]
  %a8 = addptr %y8, %eight : *i32[8]
  store %a2, %rows
  store %a4, %columns
  %flat = reshape %down : i32[8]
  store %a8, %flat)"));
  // Rows added, columns subtracted in order, sums from the right.
  EXPECT_EQ(y, (std::vector<int32_t>{10, 26, -4, -4, -4, -4, 0, 0, 10, 9, 7, 4, 26, 21, 15, 8}));
}

// Index and value travel together; the region has an `if`, and order decides between equals.
TEST_F(InterpTest, ReduceOfPairsKeepsOrder) {
  y = {3, 9, 9, 1, 9, 2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0};
  expect_ok(run_body(std::string(kOffsets) + R"(
  %v = load %p : i32[8]
  %best, %at = reduce %v, %r {axis = 0} : i32, i32 (%a: i32, %i: i32, %b: i32, %j: i32) {
    %more = cmp %b, %a {predicate = "gt"} : i1
    %w, %k = if %more : i32, i32 {
      yield %b, %j
    } else {
      yield %a, %i
    }
    yield %w, %k
  }
  %one = constant 1 : i32
  %second = addptr %y, %one : *i32
  store %y, %best
  store %second, %at)"));
  // The first of the three nines, at place 1.
  EXPECT_EQ(y[0], 9);
  EXPECT_EQ(y[1], 1);
}

TEST_F(InterpTest, LoopsAndBranches) {
  expect_ok(run_body(R"(
  %z = constant 0 : i32
  %o = constant 1 : i32
  %two = constant 2 : i32
  %a, %b = for %i = %z to %n step %two iter (%p = %z, %q = %o) : i32 -> (i32, i32) {
    %s = add %p, %i : i32
    yield %q, %s
  }
  %w = while (%k = %b) : i32 {
    %c = cmp %k, %n {predicate = "lt"} : i1
    %kk = mul %k, %two : i32
    condition %c, %kk
  } do (%t: i32) {
    %u = add %t, %o : i32
    yield %u
  }
  %c0 = cmp %a, %b {predicate = "lt"} : i1
  %m = if %c0 : i32 {
    yield %a
  } else {
    yield %b
  }
  %p1 = addptr %y, %o : *i32
  %p2 = addptr %y, %two : *i32
  store %y, %m
  store %p1, %w
  store %p2, %b)"));
  // i = 0: (1, 0); i = 2: (0, 3); i = 4: (3, 4). while from 4: 4 < 5: 8, 9; 9 < 5 is false: 18.
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], 18);
  EXPECT_EQ(y[2], 4);
}

TEST_F(InterpTest, ForEndsAtTheLargestInteger) {
  expect_ok(run_body(R"(
  %lo = constant 2147483646 : i32
  %hi = constant 2147483647 : i32
  %s = constant 5 : i32
  for %i = %lo to %hi step %s : i32 {
    store %y, %i
    yield
  })"));
  // The next step would overflow, so the loop ends before it.
  EXPECT_EQ(y[0], 2147483646);
}

TEST_F(InterpTest, AtomicsReturnTheOldValue) {
  x[0] = 1.5f;
  expect_ok(run_body(R"(
  %one = constant 1 : i32[4]
  %ys = splat %y : *i32[4]
  %old = atomic_rmw %ys, %one {rmw = "add", sem = "acq_rel", scope = "gpu"} : i32[4]
  %r = arange {start = 4, end = 8} : i32[4]
  %p = addptr %ys, %r : *i32[4]
  store %p, %old
  %f = constant 0.5 : f32
  %fo = atomic_rmw %x, %f {rmw = "fadd", sem = "relaxed", scope = "gpu"} : f32
  %z = constant 8 : i32
  %c = atomic_cas %y, %z, %n {sem = "acq_rel", scope = "gpu"} : i32
  %eight = addptr %y, %z : *i32
  store %eight, %c)",
                     {2, 1, 1}));
  EXPECT_EQ(y[0], 5);  // 8 after the second program's adds, then swapped for n
  EXPECT_EQ(std::vector<int32_t>(y.begin() + 4, y.begin() + 9), (std::vector<int32_t>{4, 5, 6, 7, 8}));
  EXPECT_EQ(x[0], 2.5f);
}

TEST_F(InterpTest, EndlessLoopsStop) {
  Options options;
  options.step_limit = 1000;
  expect_error(run_body(R"(
  %t = constant 1 : i1
  while () {
    condition %t
  } do () {
    yield
  })",
                        {1, 1, 1}, 5, options),
               ErrorKind::kLaunch, "no end after 1000 steps: an endless loop in program (0, 0, 0)");
}

TEST_F(InterpTest, RuntimeStepsMustBePositive) {
  expect_error(run_body("for %i = %n to %n step %n : i32 { yield }", {1, 1, 1}, 0), ErrorKind::kLaunch,
               "a loop step that is not positive in program (0, 0, 0)");
}

TEST_F(InterpTest, AssertNamesProgramAndElement) {
  expect_error(run_body(std::string(kOffsets) + "assert %m {text = \"r < n\"}", {1, 2, 1}), ErrorKind::kMismatch,
               "assertion failed: r < n, in program (0, 0, 0) at element [5]");
  // Masked elements are not asserted.
  expect_ok(run_body(std::string(kOffsets) + "assert %m, %m {text = \"r < n\"}"));
}

TEST_F(InterpTest, PrintsLikeTheDevice) {
  std::vector<std::string> lines;
  Options options;
  options.on_print = [&](const std::string& line) { lines.push_back(line); };
  expect_ok(run_body(R"(
  %id = program_id {axis = 1} : i32
  %f = cast %id : f32
  %r = arange {start = 0, end = 2} : i32[2]
  print {text = "start"}
  print %f {text = "f: "}
  print %r, %n {text = "", hex = true})",
                     {1, 2, 1}, -1, options));
  // Five lines of each program.
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[5], "pid (0, 1, 0) start");
  EXPECT_EQ(lines[6], "pid (0, 1, 0) idx () f: 1.000000");
  EXPECT_EQ(lines[8], "pid (0, 1, 0) idx [1] (operand 0) 0x00000001");
  EXPECT_EQ(lines[9], "pid (0, 1, 0) idx () (operand 1) 0xffffffff");
}

TEST_F(InterpTest, SeedsShuffleProgramsOnly) {
  // Each order writes the same, as programs are independent.
  for (uint64_t seed : {0, 1, 2}) {
    Options options;
    options.seed = seed;
    expect_ok(run_body(R"(
  %id = program_id {axis = 0} : i32
  %np = num_programs {axis = 0} : i32
  %p = addptr %y, %id : *i32
  %v = mul %id, %np : i32
  store %p, %v)",
                       {5, 1, 1}, 0, options));
    EXPECT_EQ(std::vector<int32_t>(y.begin(), y.begin() + 6), (std::vector<int32_t>{0, 5, 10, 15, 20, 0}));
  }
}

TEST_F(InterpTest, RefusesWhatItCannotRun) {
  ir::Module m("k");
  m.stage = ir::Stage::kDistributed;
  EXPECT_EQ(run(m, {1, 1, 1}, {}, Memory()).error().kind, ErrorKind::kUnsupported);
  m.stage = ir::Stage::kTile;
  const uint64_t args[] = {1};
  // Too few arguments.
  EXPECT_EQ(run(m, {1, 1, 1}, args, Memory()).error().kind, ErrorKind::kType);
}

TEST(Memory, RangesAreExact) {
  std::vector<uint8_t> a(64), b(64);
  Memory memory;
  memory.allow(a.data(), 10);
  memory.allow(b.data(), 7);
  const uint64_t pa = reinterpret_cast<uint64_t>(a.data()), pb = reinterpret_cast<uint64_t>(b.data());
  // The last four bytes of ten; one further is outside.
  EXPECT_TRUE(memory.contains(pa + 6, 4));
  EXPECT_FALSE(memory.contains(pa + 7, 4));
  EXPECT_FALSE(memory.contains(pa - 1, 1));
  EXPECT_TRUE(memory.contains(pb + 6, 1));
  EXPECT_FALSE(memory.contains(pb + 7, 1));
  EXPECT_TRUE(memory.contains(pa, 8));
}

}  // namespace
}  // namespace kiln::interp
