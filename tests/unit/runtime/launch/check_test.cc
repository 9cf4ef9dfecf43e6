// Checked launches: what reaches outside of its tensor is named with its place, and not done.
#include "kiln/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln {
namespace {

using Args = std::vector<std::optional<Arg>>;

class CheckTest : public testing::Test {
 protected:
  Tensor numbers(int64_t n, DType dtype = DType::kF32) {
    const int64_t shape[] = {n};
    // The value 3 everywhere: neither 0, which a refused load gives, nor a sum of it.
    auto t = Tensor::full(device, dtype, shape, 3);
    EXPECT_TRUE(t.ok());
    return *t;
  }
  Result<CheckedLaunch> launch(const std::string& source, std::array<int64_t, 3> grid, const Args& args,
                               const LaunchOptions& options = {}) {
    auto kernel = Kernel::from_source("import triton\nimport triton.language as tl" + source, "k.py");
    EXPECT_TRUE(kernel.ok()) << render(kernel.error());
    return launch_checked(*kernel, grid, args, options);
  }
  /// "line: message | note" of what a launch reports.
  std::string report(const std::string& source, std::array<int64_t, 3> grid, const Args& args) {
    auto looked = launch(source, grid, args);
    if (looked.ok()) return "";
    const Diagnostic& d = looked.error();
    EXPECT_EQ(d.kind, ErrorKind::kLaunch) << render(d);
    std::string text = fmt::format("{}: {}", d.place.line, d.message);
    for (const Note& n : d.notes) text += " | " + n.message;
    return text;
  }

  Device device = *open_device("cpu");
};

constexpr const char* kAdd = R"(
@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)
)";

TEST_F(CheckTest, ARightLaunchDoesItsWork) {
  Tensor x = numbers(1000), y = numbers(1000), o = numbers(1000);
  auto looked = launch(kAdd, {4, 1, 1}, {x, y, o, int64_t{1000}, int64_t{256}});
  ASSERT_TRUE(looked.ok()) << render(looked.error());
  // Two loads and a store.
  EXPECT_EQ(looked->accesses, 3);
  EXPECT_TRUE(looked->unchecked.empty());
  EXPECT_EQ(*o.to_doubles(), std::vector<double>(1000, 6));
}

TEST_F(CheckTest, NamesTheFirstElementOfTheFirstProgram) {
  Tensor x = numbers(1000), y = numbers(2000), o = numbers(2000);
  EXPECT_EQ(report(kAdd, {8, 1, 1}, {x, y, o, int64_t{2000}, int64_t{256}}),
            "7: kernel 'add' reads element 1000 of 'x', which has 1000 elements, in program 3 | "
            "help: its mask lets this element through");
  // The rest was done: what was left out is 0.
  // What the refused loads gave is 0, so only y's 3 is left.
  std::vector<double> want(2000, 6);
  std::fill(want.begin() + 1000, want.end(), 3);
  EXPECT_EQ(*o.to_doubles(), want);
}

constexpr const char* kShift = R"(
@triton.jit
def shift(x, o, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i + by)
    tl.store(o + i, v)
)";

TEST_F(CheckTest, BothEndsAndFarAway) {
  Tensor x = numbers(64), o = numbers(64);
  const auto by = [&](int64_t n) { return report(kShift, {1, 1, 1}, {x, o, n, int64_t{64}}); };
  const std::string help = " | help: give it a mask that leaves such elements out";
  EXPECT_EQ(by(0), "");
  EXPECT_EQ(by(1), "6: kernel 'shift' reads element 64 of 'x', which has 64 elements, in program 0" + help);
  EXPECT_EQ(by(-1), "6: kernel 'shift' reads element -1 of 'x', which has 64 elements, in program 0" + help);
  // Beyond 2 GiB no element's number is told: it would mean nothing.
  EXPECT_EQ(by(int64_t{1} << 40), "6: kernel 'shift' reads 2 GiB or more behind 'x', in program 0" + help);
  EXPECT_EQ(by(-(int64_t{1} << 40)), "6: kernel 'shift' reads 2 GiB or more before 'x', in program 0" + help);
  // An address that wraps around.
  EXPECT_NE(by(INT64_MAX), "");
}

// A kernel may use all of a view's memory, as CUDA would let it.
TEST_F(CheckTest, AViewMayTouchTheMemoryOfAll) {
  Tensor x = numbers(100), o = numbers(64);
  const int64_t shape[] = {10}, strides[] = {1};
  Tensor middle = *x.as_strided(shape, strides, 36);
  EXPECT_EQ(report(kShift, {1, 1, 1}, {middle, o, int64_t{0}, int64_t{64}}), "");
  // Counted from where the view begins.
  EXPECT_EQ(report(kShift, {1, 1, 1}, {middle, o, int64_t{3}, int64_t{64}}),
            "6: kernel 'shift' reads element 64 of 'x', whose memory ends after 64 elements, in program 0 | "
            "help: give it a mask that leaves such elements out");
  EXPECT_EQ(report(kShift, {1, 1, 1}, {middle, o, int64_t{-38}, int64_t{64}}),
            "6: kernel 'shift' reads element -38 of 'x', whose memory begins at -36, in program 0 | "
            "help: give it a mask that leaves such elements out");
}

TEST_F(CheckTest, TensorsOfOtherDtypesAndOfNothing) {
  // Elements of one to eight bytes: the check counts elements and not bytes.
  for (DType dtype : {DType::kI1, DType::kI8, DType::kF16, DType::kBF16, DType::kF64, DType::kI64}) {
    Tensor x = numbers(64, dtype), o = numbers(64, dtype);
    EXPECT_EQ(report(kShift, {1, 1, 1}, {x, o, int64_t{0}, int64_t{64}}), "") << name(dtype);
    EXPECT_EQ(report(kShift, {1, 1, 1}, {x, o, int64_t{2}, int64_t{64}}),
              "6: kernel 'shift' reads element 64 of 'x', which has 64 elements, in program 0 | "
              "help: give it a mask that leaves such elements out")
        << name(dtype);
  }
  Tensor empty = numbers(0), o = numbers(1);
  EXPECT_EQ(report(kShift, {1, 1, 1}, {empty, o, int64_t{0}, int64_t{1}}),
            "6: kernel 'shift' reads element 0 of 'x', which has 0 elements, in program 0 | "
            "help: give it a mask that leaves such elements out");
}

TEST_F(CheckTest, PointersThroughLoopsAndBranches) {
  constexpr const char* kWalk = R"(
@triton.jit
def walk(a, b, o, steps, odd):
    p = a + tl.arange(0, 16)
    total = tl.zeros([16], tl.float32)
    for s in range(0, steps):
        total += tl.load(p)
        p += 16
    q = a
    if odd > 0:
        q = b
    q += odd
    tl.store(o + tl.arange(0, 16), total + tl.load(q))
)";
  Tensor a = numbers(64), b = numbers(8), o = numbers(16);
  // Both pointers stay inside: 64 elements in four steps, and the eighth of b.
  EXPECT_EQ(report(kWalk, {1, 1, 1}, {a, b, o, int64_t{4}, int64_t{7}}), "");
  // Four times 3, and one 3 more.
  EXPECT_EQ(*o.to_doubles(), std::vector<double>(16, 15));
  EXPECT_EQ(report(kWalk, {1, 1, 1}, {a, b, o, int64_t{5}, int64_t{7}}),
            "8: kernel 'walk' reads element 64 of 'a', which has 64 elements, in program 0 | "
            "help: give it a mask that leaves such elements out");
  // From one of two: it has to lie in either.
  auto looked = launch(kWalk, {1, 1, 1}, {a, b, o, int64_t{4}, int64_t{1} << 20});
  ASSERT_FALSE(looked.ok());
  EXPECT_EQ(looked.error().place.line, 14);
}

TEST_F(CheckTest, TheTensorThatABranchChoseIsTheOneThatIsNamed) {
  Tensor x = numbers(1000), y = numbers(100), o = numbers(1000);
  constexpr const char* kBranch = R"(
@triton.jit
def choose(x, y, o, which, n, B: tl.constexpr):
    if which > 0:
        p = x
    else:
        p = y
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(p + i, mask=i < n), mask=i < n)
)";
  EXPECT_EQ(report(kBranch, {1, 1, 1}, {x, y, o, int64_t{1}, int64_t{1000}, int64_t{1024}}), "");
  // What the branch chose decides, not what it might have.
  EXPECT_TRUE(report(kBranch, {1, 1, 1}, {x, y, o, int64_t{0}, int64_t{1000}, int64_t{1024}})
                  .starts_with("10: kernel 'choose' reads element 100 of 'y', which has 100 elements, in program 0"));
  constexpr const char* kSelect = R"(
@triton.jit
def choose(x, y, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(tl.where(i % 2 == 0, x + i, y + i), mask=i < n), mask=i < n)
)";
  EXPECT_EQ(report(kSelect, {1, 1, 1}, {x, y, o, int64_t{100}, int64_t{1024}}), "");
  // By the element: even ones are x's and odd ones y's.
  EXPECT_TRUE(report(kSelect, {1, 1, 1}, {x, y, o, int64_t{1000}, int64_t{1024}})
                  .starts_with("6: kernel 'choose' reads element 101 of 'y', which has 100 elements, in program 0"));
}

TEST_F(CheckTest, ALoopThatWaitsForAnElementOutsideEnds) {
  Tensor x = numbers(10);
  constexpr const char* kWait = R"(
@triton.jit
def wait(x, n):
    while tl.load(x + n, volatile=True) == 0:
        pass
    tl.store(x, 7)
)";
  // The element is there and not zero: no program waits.
  EXPECT_EQ(report(kWait, {3, 1, 1}, {x, int64_t{9}}), "");
  EXPECT_EQ(report(kWait, {3, 1, 1}, {x, int64_t{10}}),
            "5: kernel 'wait' reads element 10 of 'x', which has 10 elements, in program 0 | help: give it a mask that "
            "leaves such elements out");
  constexpr const char* kSteps = R"(
@triton.jit
def steps(x, n):
    left = tl.load(x + n)
    while left != 3:
        left += 0.5
        left -= 0.5
)";
  EXPECT_EQ(report(kSteps, {1, 1, 1}, {x, int64_t{4}}), "");
  // A refused load gives 0, so this loop would run for ever.
  EXPECT_TRUE(report(kSteps, {1, 1, 1}, {x, int64_t{-1}}).starts_with("5: kernel 'steps' reads element -1 of 'x'"));
}

TEST_F(CheckTest, Atomics) {
  constexpr const char* kCount = R"(
@triton.jit
def count(x, o, first, BLOCK: tl.constexpr):
    i = first + tl.arange(0, BLOCK)
    tl.atomic_add(o + i, 1)
    tl.atomic_cas(x + i, 3, 4)
)";
  Tensor x = numbers(64, DType::kI32), o = numbers(64, DType::kI32);
  // All compare with 3, and 4 is what is left.
  EXPECT_EQ(report(kCount, {1, 1, 1}, {x, o, int64_t{0}, int64_t{64}}), "");
  EXPECT_EQ(*x.to_doubles(), std::vector<double>(64, 4));
  EXPECT_EQ(report(kCount, {1, 1, 1}, {x, o, int64_t{32}, int64_t{64}}),
            "6: kernel 'count' updates element 64 of 'o', which has 64 elements, in program 0");
  // Half of the elements were inside and have been counted twice.
  std::vector<double> want(64, 4);
  std::fill(want.begin() + 32, want.end(), 5);
  EXPECT_EQ(*o.to_doubles(), want);
  // Only the exchange: nothing else in the report's memory was taken for it.
  Tensor large = numbers(128, DType::kI32);
  EXPECT_EQ(report(kCount, {1, 1, 1}, {x, large, int64_t{64}, int64_t{64}}),
            "7: kernel 'count' updates element 64 of 'x', which has 64 elements, in program 0");
}

TEST_F(CheckTest, AssertsAreReportedToo) {
  constexpr const char* kClaim = R"(
@triton.jit
def claim(x, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.device_assert(v < 3, "too large")
    tl.store(x + tl.arange(0, BLOCK), v + 1)
)";
  Tensor x = numbers(16);
  // The first program, in whichever order they ran.
  EXPECT_EQ(report(kClaim, {2, 3, 1}, {x, int64_t{16}}),
            "6: kernel 'claim': an assert failed in program (0, 0, 0): too large");
}

TEST_F(CheckTest, OptionsCountAsInAnyLaunch) {
  constexpr const char* kRounds = R"(
@triton.jit
def rounds(x, o):
    v = tl.load(x)
    tl.device_assert(v < 0, "negative")
    tl.store(o, v * v - 1.0002441555261612)
)";
  const int64_t shape[] = {1};
  const float value = 1.0001220703125f;  // 1 + 2^-13, whose square has one bit more than a float
  Tensor x = *Tensor::from_host(device, DType::kF32, shape, &value, 4), o = numbers(1);
  LaunchOptions options;
  // Checks are on: the assert fails.
  EXPECT_FALSE(launch(kRounds, {1, 1, 1}, {x, o}, options).ok());
  options.debug = false;
  ASSERT_TRUE(launch(kRounds, {1, 1, 1}, {x, o}, options).ok());
  // A multiplication and an addition in one rounding.
  const double fused = (*o.to_doubles())[0];
  options.enable_fp_fusion = false;
  ASSERT_TRUE(launch(kRounds, {1, 1, 1}, {x, o}, options).ok());
  EXPECT_NE((*o.to_doubles())[0], fused);

  constexpr const char* kEndless = R"(
@triton.jit
def endless(o):
    i = 0
    while i >= 0:
        i = tl.load(o + i) * 0
)";
  options.timeout_s = 0.05;
  Tensor zeros = numbers(1, DType::kI32);
  auto stopped = launch(kEndless, {1, 1, 1}, {zeros}, options);
  // A timeout holds for a checked launch too.
  ASSERT_FALSE(stopped.ok());
  EXPECT_NE(stopped.error().message.find("0.05 s, its timeout"), std::string::npos) << render(stopped.error());
}

TEST_F(CheckTest, OverflowIsReportedWhereTheOptionAsksForIt) {
  constexpr const char* kSum = R"(
@triton.jit
def total(x):
    tl.store(x, tl.load(x) + 2147483647)
)";
  Tensor x = numbers(1, DType::kI32);
  EXPECT_TRUE(launch(kSum, {1, 1, 1}, {x}).ok());
  LaunchOptions options;
  options.sanitize_overflow = true;
  x = numbers(1, DType::kI32);
  EXPECT_FALSE(launch(kSum, {1, 1, 1}, {x}, options).ok());
}

TEST_F(CheckTest, ProgramsOfAGrid) {
  constexpr const char* kGrid = R"(
@triton.jit
def grid(x, o):
    p = tl.program_id(0) + 4 * tl.program_id(1) + 20 * tl.program_id(2)
    tl.store(o + p, tl.load(x + p))
)";
  Tensor x = numbers(60), o = numbers(51);
  // The program that is told has all three of its numbers.
  EXPECT_EQ(report(kGrid, {4, 5, 3}, {x, o}),
            "6: kernel 'grid' writes element 51 of 'o', which has 51 elements, in program (3, 2, 2) | "
            "help: give it a mask that leaves such elements out");
}

TEST_F(CheckTest, AddressesFromElsewhereAreNamed) {
  constexpr const char* kLoaded = R"(
@triton.jit
def loaded(table, o):
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(o, tl.load(p))
)";
  Tensor x = numbers(1), o = numbers(1);
  const uint64_t address = x.address();
  const int64_t shape[] = {1};
  Tensor table = *Tensor::from_host(device, DType::kI64, shape, &address, 8);
  auto looked = launch(kLoaded, {1, 1, 1}, {table, o});
  ASSERT_TRUE(looked.ok()) << render(looked.error());
  EXPECT_EQ(looked->accesses, 2);
  ASSERT_EQ(looked->unchecked.size(), 1u);
  EXPECT_EQ(looked->unchecked[0].line, 6);
}

TEST_F(CheckTest, DescriptorsThatPromiseTooMuch) {
  constexpr const char* kBlocks = R"(
@triton.jit
def blocks(x, o, rows):
    d = tl.make_tensor_descriptor(x, [rows, 16], [16, 1], [8, 16])
    e = tl.make_tensor_descriptor(o, [8, 16], [16, 1], [8, 16])
    e.store([0, 0], d.load([tl.program_id(0) * 8, 0]))
)";
  const int64_t shape[] = {20, 16}, small[] = {8, 16};
  Tensor x = *Tensor::full(device, DType::kF32, shape, 2), o = *Tensor::full(device, DType::kF32, small, 2);
  EXPECT_EQ(report(kBlocks, {3, 1, 1}, {x, o, int64_t{20}}), "");
  EXPECT_EQ(report(kBlocks, {3, 1, 1}, {x, o, int64_t{24}}),
            "7: kernel 'blocks' reads element 320 of 'x', which has 320 elements, in program 2 | "
            "help: its mask lets this element through");
}

TEST_F(CheckTest, WhatDoesNotCompileSaysSoItself) {
  Tensor x = numbers(4);
  auto bad = launch("\n@triton.jit\ndef k(x):\n    tl.store(x, nothing)\n", {1, 1, 1}, {x});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().kind, ErrorKind::kName);
  auto none = launch(kShift, {0, 1, 1}, {x, x, int64_t{100}, int64_t{4}});
  EXPECT_TRUE(none.ok());
  auto beyond = launch(kShift, {-1, 1, 1}, {x, x, int64_t{0}, int64_t{4}});
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().kind, ErrorKind::kLaunch);
}

}  // namespace
}  // namespace kiln
