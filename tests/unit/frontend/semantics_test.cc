// What kernels compute, run on the interpreter and compared with C++.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/frontend/random_inputs.h"
#include "tests/unit/frontend/run_kernel.h"

namespace kiln::frontend::testing {
namespace {

TEST(Semantics, MaskedVectorAdd) {
  auto rng = generator();
  // Neither a multiple of the block nor one below it.
  const int n = 77;
  std::vector<float> x = random_floats(rng, n), y = random_floats(rng, n), out(n, -1);
  Launch(R"(
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, mask=i < n), mask=i < n)
)",
         "signature=*fp32,*fp32,*fp32,i32 BLOCK=32")
      .buffer(x)
      .buffer(y)
      .buffer(out)
      .value(n)
      .run({3, 1, 1});
  for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], x[i] + y[i]) << i;
}

TEST(Semantics, MaskedLoadWithoutOtherGivesZero) {
  std::vector<float> x = {5, 6}, out(4, -1);
  Launch(R"(
@triton.jit
def k(x, out):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(x + i, mask=i < 2))
)",
         "signature=*fp32,*fp32")
      .buffer(x)
      .buffer(out)
      .run();
  EXPECT_EQ(out, (std::vector<float>{5, 6, 0, 0}));
}

TEST(Semantics, RuntimeIntegerDivisionTruncatesAndConstexprFloors) {
  auto rng = generator();
  std::vector<int32_t> a = random_ints<int32_t>(rng, 64, -100, 100), b = random_ints<int32_t>(rng, 64, 1, 9), q(64),
                       r(64), c(2);
  // Divisors of both signs, and none that is zero.
  for (size_t i = 0; i < b.size(); i += 2) b[i] = -b[i];
  Launch(R"(
@triton.jit
def k(a, b, q, r, c):
    i = tl.arange(0, 64)
    x = tl.load(a + i)
    y = tl.load(b + i)
    tl.store(q + i, x // y)
    tl.store(r + i, x % y)
    tl.store(c, -7 // 2)
    tl.store(c + 1, -7 % 2)
)",
         "signature=*i32,*i32,*i32,*i32,*i32")
      .buffer(a)
      .buffer(b)
      .buffer(q)
      .buffer(r)
      .buffer(c)
      .run();
  // C's operators are the reference: both round toward zero.
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(q[i], a[i] / b[i]);
    EXPECT_EQ(r[i], a[i] % b[i]);
  }
  // Python's rule where the compiler knows the numbers.
  EXPECT_EQ(c, (std::vector<int32_t>{-4, 1}));
}

constexpr char kPick[] = R"(
@triton.jit
def pick(a, b):
    if a > b:
        if a > 2 * b:
            return a * 100
        a += 1
    elif a == b:
        return -1
    else:
        return b - a
    return a * 10

@triton.jit
def k(out, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = pid - 3
    y = 0
    if x < 0:
        y = x
        z = 5
    elif x == 0:
        z = 6
    else:
        if x == 2:
            return
        z = 7 if x == 1 else pick(x, 4)
    tl.store(out + pid, y * 1000 + z)
    if pid == 5:
        return
    tl.store(out + n + pid, pick(pid, 3))
)";

int pick_reference(int a, int b) {
  if (a > b) {
    if (a > 2 * b) return a * 100;
    a += 1;
  } else if (a == b) {
    return -1;
  } else {
    return b - a;
  }
  return a * 10;
}

TEST(Semantics, BranchesAndEarlyReturns) {
  const int n = 13;
  std::vector<int32_t> out(2 * n, -7), expected(2 * n, -7);
  // More programs than n: those beyond return at once.
  Launch(kPick, "kernel=k signature=*i32,i32").buffer(out).value(n).run({n + 3, 1, 1});
  for (int pid = 0; pid < n; ++pid) {
    int x = pid - 3, y = 0, z = 0;
    if (x < 0) {
      y = x, z = 5;
    } else if (x == 0) {
      z = 6;
    } else {
      // A return inside of a branch leaves its places as they were.
      if (x == 2) continue;
      z = x == 1 ? 7 : pick_reference(x, 4);
    }
    expected[pid] = y * 1000 + z;
    if (pid != 5) expected[n + pid] = pick_reference(pid, 3);
  }
  EXPECT_EQ(out, expected);
}

TEST(Semantics, LoopsCarryNames) {
  auto rng = generator();
  for (int repeat = 0; repeat < 4; ++repeat) {
    // Zero iterations too, and a number that the inner loop meets only sometimes.
    int n = std::uniform_int_distribution<int>(0, 12)(rng), m = std::uniform_int_distribution<int>(-9, 9)(rng);
    std::vector<int64_t> out(8, 0), expected(8, 0);
    Launch(R"(
@triton.jit
def k(out, n, m):
    a, b = 0, 1
    unchanged = m * 2
    total = tl.full((), 0, tl.int64)
    for i in range(n):
        a, b = b, a + b
        for j in range(i, -2, -2):
            if j == unchanged:
                total += 100
            else:
                total = total + j
            swapped = a
    steps = 0
    x = n * 7 + 3
    while x != 1 and steps < 50:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    pair = (n, m)
    for i in range(3):
        pair = (pair[1], pair[0] + i)
    squares = 0
    for i in tl.static_range(5, 0, -2):
        squares += i * i
    last = -1
    for last in range(2, n, 3):
        squares += 1
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, total)
    tl.store(out + 3, steps)
    tl.store(out + 4, pair[0])
    tl.store(out + 5, pair[1])
    tl.store(out + 6, squares)
    tl.store(out + 7, last)
)",
           "signature=*i64,i32,i32")
        .buffer(out)
        .value(n)
        .value(m)
        .run();
    int64_t a = 0, b = 1, total = 0;
    // The same in C++, with the loop's variable ending where Python's does.
    for (int i = 0; i < n; ++i) {
      int64_t old = a;
      a = b, b = old + b;
      for (int j = i; j > -2; j -= 2) total += j == m * 2 ? 100 : j;
    }
    int steps = 0, x = n * 7 + 3;
    while (x != 1 && steps < 50) x = x % 2 == 0 ? x / 2 : 3 * x + 1, ++steps;
    int p0 = n, p1 = m;
    for (int i = 0; i < 3; ++i) {
      int old = p0;
      p0 = p1, p1 = old + i;
    }
    int squares = 25 + 9 + 1, last = -1;
    for (int i = 2; i < n; i += 3) last = i, ++squares;
    expected = {a, b, total, steps, p0, p1, squares, last};
    EXPECT_EQ(out, expected) << "n = " << n << ", m = " << m;
  }
}

TEST(Semantics, NumbersSpecialisedToOneMayChange) {
  std::vector<int32_t> out(4, 0);
  Launch(R"(
@triton.jit
def k(out, n, m):
    for i in range(3):
        n = n * 2
    while m < 10:
        m += 4
    if tl.program_id(0) == 0:
        k2 = m
        m = n
    else:
        k2 = n
    tl.store(out, n)
    tl.store(out + 1, m)
    tl.store(out + 2, k2)
)",
         "signature=*i32,i32:1,i32:1")
      .buffer(out)
      .run();
  // The specialisation to 1 gives the number its first value, not its only one.
  EXPECT_EQ(out, (std::vector<int32_t>{8, 8, 13, 0}));
}

TEST(Semantics, ValuesOnlyReadInsideABranchAreCarried) {
  std::vector<int32_t> out(6, 0);
  Launch(R"(
@triton.jit
def k(out, n):
    written = 0
    for i in range(n):
        if i % 2 == 1:
            tl.store(out + written, i)
            written += 1
)",
         "signature=*i32,i32")
      .buffer(out)
      .value(9)
      .run();
  // What is stored under a condition is counted across iterations.
  EXPECT_EQ(out, (std::vector<int32_t>{1, 3, 5, 7, 0, 0}));
}

TEST(Semantics, Reductions) {
  auto rng = generator();
  const int m = 8, n = 16;
  std::vector<float> x = random_floats(rng, m * n);
  // The first of equals counts, and a NaN is left out of comparisons.
  x[3 * n + 4] = x[3 * n + 9] = 50.0f;  // a tie
  x[5 * n + 2] = NAN;
  std::vector<float> sums(m), maxima(m), scan(m * n), all(1);
  std::vector<int32_t> where(m), lowest(n);
  Launch(R"(
@triton.jit
def k(x, sums, maxima, scan, every, where, lowest, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    at = rows[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(sums + rows, tl.sum(v, axis=1))
    tl.store(maxima + rows, v.max(axis=-1))
    tl.store(scan + at, tl.cumsum(tl.where(v == v, v, 0.0), 1, reverse=True))
    tl.store(every, tl.min(v))
    tl.store(where + rows, tl.argmax(v, axis=1))
    tl.store(lowest + tl.arange(0, N), tl.argmin(v, 0))
)",
         "signature=*fp32,*fp32,*fp32,*fp32,*fp32,*i32,*i32 M=8 N=16")
      .buffer(x)
      .buffer(sums)
      .buffer(maxima)
      .buffer(scan)
      .buffer(all)
      .buffer(where)
      .buffer(lowest)
      .run();
  float smallest = INFINITY;
  for (int i = 0; i < m; ++i) {
    double sum = 0, size = 0;
    float largest = -INFINITY;
    int best = 0;
    for (int j = 0; j < n; ++j) {
      float v = x[i * n + j];
      sum += v;
      size += std::fabs(v);
      largest = std::fmax(largest, v);
      smallest = std::fmin(smallest, v);
      if (v > x[i * n + best]) best = j;
    }
    // A NaN in a row makes its sum one, and where it stands is left open.
    if (i != 5) {
      EXPECT_NEAR(sums[i], sum, size * 1e-6);
      EXPECT_EQ(where[i], best) << i;
    }
    EXPECT_EQ(maxima[i], largest);
    double suffix = 0;
    for (int j = n - 1; j >= 0; --j) {
      suffix += std::isnan(x[i * n + j]) ? 0 : x[i * n + j];
      EXPECT_NEAR(scan[i * n + j], suffix, 1e-4);
    }
  }
  // A sum has no way around a NaN; a maximum has.
  EXPECT_TRUE(std::isnan(sums[5]));
  EXPECT_EQ(all[0], smallest);
  for (int j = 0; j < n; ++j) {
    // The column with the NaN.
    if (j == 2) continue;
    int best = 0;
    for (int i = 0; i < m; ++i)
      if (x[i * n + j] < x[best * n + j]) best = i;
    EXPECT_EQ(lowest[j], best) << j;
  }
}

TEST(Semantics, UsersCombineFunctions) {
  std::vector<float> x = {3, 1, 4, 1, 5, 9, 2, 6}, out(10);
  Launch(R"(
@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2

@triton.jit
def larger(a, b):
    return a if a > b else b

@triton.jit
def k(x, out):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    half = tl.full([8], 0.5, tl.float32)
    a, h = tl.associative_scan((half, v), 0, linear)
    tl.store(out + i, h)
    tl.store(out + 8, tl.reduce(v, 0, larger))
    a, last = tl.reduce((half, v), 0, linear)
    tl.store(out + 9, last)
)",
         "kernel=k signature=*fp32,*fp32")
      .buffer(x)
      .buffer(out)
      .run();
  float h = 0;
  for (int i = 0; i < 8; ++i) {
    // The recurrence that the pairs stand for.
    h = h * 0.5f + x[i];
    EXPECT_FLOAT_EQ(out[i], h);
  }
  EXPECT_EQ(out[8], 9.0f);
  EXPECT_FLOAT_EQ(out[9], h);
}

TEST(Semantics, Atomics) {
  std::vector<int32_t> counts(4, 0);
  std::vector<float> extremes = {-3.5f, 2.0f, 0.0f};
  std::vector<uint64_t> lock = {0};
  Launch(R"(
@triton.jit
def k(counts, extremes, lock):
    pid = tl.program_id(0)
    i = tl.arange(0, 8)
    tl.atomic_add(counts + i % 4, 1, mask=i < 6)
    tl.atomic_max(extremes, pid * 1.5 - 10)
    tl.atomic_min(extremes + 1, 1.0 - pid)
    tl.atomic_add(extremes + 2, 0.25)
    while tl.atomic_cas(lock, pid, pid + 1) != pid:
        pass
)",
         "signature=*i32,*fp32,*u64")
      .buffer(counts)
      .buffer(extremes)
      .buffer(lock)
      .run({8, 1, 1});
  // Eight programs with six additions each.
  EXPECT_EQ(counts, (std::vector<int32_t>{16, 16, 8, 8}));
  EXPECT_EQ(extremes, (std::vector<float>{0.5f, -6.0f, 2.0f}));
  // Each program waits for the one before it: the order is the lock's.
  EXPECT_EQ(lock[0], 8u);
}

TEST(Semantics, BoolPointersHoldBytes) {
  // 7 is true, whatever bit it has.
  std::vector<uint8_t> flags = {0, 1, 1, 0, 7, 0, 1, 0}, out(8, 9), raw(8, 9);
  // 256 is zero in a byte, and stored as it is.
  std::vector<int32_t> x = {0, 1, 256, 258, -1, 3, 0, 255};
  Launch(R"(
@triton.jit
def k(flags, x, out, raw):
    i = tl.arange(0, 8)
    tl.store(out + i, ~tl.load(flags + i))
    tl.store(raw + i, tl.load(x + i))
)",
         "signature=*i1,*i32,*i1,*i1")
      .buffer(flags)
      .buffer(x)
      .buffer(out)
      .buffer(raw)
      .run();
  EXPECT_EQ(out, (std::vector<uint8_t>{1, 0, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(raw, (std::vector<uint8_t>{0, 1, 0, 2, 255, 3, 0, 255}));
}

TEST(Semantics, UnsignedOffsetsAreZeroExtended) {
  std::vector<float> x(260, 0);
  // The last place that eight unsigned bits reach; as a signed number it would be -1.
  x[255] = 3;
  std::vector<float> out(2);
  Launch(R"(
@triton.jit
def k(x, out, o):
    tl.store(out, tl.load(x + o))
    tl.store(out + 1, tl.load(x + 300 - 45))
)",
         "signature=*fp32,*fp32,u8")
      .buffer(x)
      .buffer(out)
      .value(uint8_t{255})
      .run();
  EXPECT_EQ(out, (std::vector<float>{3, 3}));
}

TEST(Semantics, ShapesMoveElements) {
  std::vector<int32_t> out(64);
  Launch(R"(
@triton.jit
def k(out):
    i = tl.arange(0, 8)
    a, b = tl.split(tl.join(i, i + 10))
    tl.store(out + i, b - a)
    tl.store(out + 8 + tl.arange(0, 16), tl.interleave(i, -i))
    tl.store(out + 24 + tl.arange(0, 16), tl.cat(i, i + 100, can_reorder=True))
    t = tl.trans(tl.reshape(i, (2, 4)))
    tl.store(out + 40 + i, t.reshape(8))
    p = tl.permute(tl.reshape(i, 2, 2, 2), 2, 0, 1)
    tl.store(out + 48 + i, tl.ravel(p))
    x, y = tl.split(tl.join(tl.load(out + 1), tl.load(out + 9)))
    tl.store(out + 56, x + y)
    tl.store(out + 57 + tl.arange(0, 4), tl.broadcast_to(tl.full([1], 5, tl.int32), [4]))
)",
         "signature=*i32")
      .buffer(out)
      .run();
  for (int i = 0; i < 8; ++i) {
    // Joined and split again.
    EXPECT_EQ(out[i], 10);
    EXPECT_EQ(out[8 + 2 * i], i);
    EXPECT_EQ(out[9 + 2 * i], -i);
    EXPECT_EQ(out[24 + i], i);
    EXPECT_EQ(out[32 + i], i + 100);
    EXPECT_EQ(out[40 + i], (i % 2) * 4 + i / 2);
    // p[c][a][b] = r[a][b][c]
    EXPECT_EQ(out[48 + i], (i >> 1 & 1) << 2 | (i & 1) << 1 | i >> 2);
  }
  EXPECT_EQ(out[56], 10 + 0);
  EXPECT_EQ(out[60], 5);
}

TEST(Semantics, WeakScalarsAndPromotion) {
  std::vector<int8_t> a = {100, 127, -128, 5};
  std::vector<int8_t> wrapped(4);
  std::vector<int32_t> wide(4), shifted(4);
  std::vector<float> quotient(4);
  Launch(R"(
@triton.jit
def k(a, wrapped, wide, shifted, quotient, ONE):
    i = tl.arange(0, 4)
    x = tl.load(a + i)
    tl.store(wrapped + i, x + ONE)
    two = 2
    tl.store(wide + i, x + two)
    tl.store(shifted + i, (x.to(tl.int32) << 33) + (x >> 1))
    tl.store(quotient + i, x / 8)
)",
         "signature=*i8,*i8,*i32,*i32,*fp32 ONE=1")
      .buffer(a)
      .buffer(wrapped)
      .buffer(wide)
      .buffer(shifted)
      .buffer(quotient)
      .run();
  for (int i = 0; i < 4; ++i) {
    // A constexpr is as narrow as what it meets; an i32 is not.
    EXPECT_EQ(wrapped[i], static_cast<int8_t>(a[i] + 1));
    EXPECT_EQ(wide[i], a[i] + 2);
    // A shift by more bits than there are gives zero here.
    EXPECT_EQ(shifted[i], a[i] >> 1);
    EXPECT_EQ(quotient[i], static_cast<float>(a[i]) / 8.0f);
  }
}

}  // namespace
}  // namespace kiln::frontend::testing
