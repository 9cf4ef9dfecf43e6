// Host kernels against the interpreter: each feature of the lowering, on tile IR as text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/diag.h"
#include "tests/unit/lower/harness/host_harness.h"

namespace kiln {
namespace {

using test::expect_same;
using test::HostCase;

std::string kernel(const std::string& params, const std::string& body) {
  return "kernel @k(" + params + ") {\n" + body + "  return\n}\n";
}

// %o: i32[size] offsets of this program; %m: offsets < %n.
std::string offsets(int size) {
  return fmt::format(R"(
  %pid = program_id {{axis = 0}} : i32
  %size = constant {0} : i32
  %start = mul %pid, %size : i32
  %starts = splat %start : i32[{0}]
  %r = arange {{start = 0, end = {0}}} : i32[{0}]
  %o = add %starts, %r : i32[{0}]
  %nn = splat %n : i32[{0}]
  %m = cmp %o, %nn {{predicate = "lt"}} : i1[{0}]
)",
                     size);
}

// %NAME: the tile at %o of pointer parameter NAME, %pNAME its addresses.
std::string load(const std::string& name, const std::string& dtype, int size, const std::string& mask = ", %m") {
  return fmt::format(
      "  %s{0} = splat %{0} : *{1}[{2}]\n  %p{0} = addptr %s{0}, %o : *{1}[{2}]\n  %v{0} = load %p{0}{3} : {1}[{2}]\n",
      name, dtype, size, mask);
}
std::string pointers(const std::string& name, const std::string& dtype, int size) {
  return fmt::format("  %s{0} = splat %{0} : *{1}[{2}]\n  %p{0} = addptr %s{0}, %o : *{1}[{2}]\n", name, dtype, size);
}

std::string add_kernel(int size, const std::string& dtype) {
  return kernel(fmt::format("%x: *{0}, %y: *{0}, %z: *{0}, %n: i32", dtype),
                offsets(size) + load("x", dtype, size) + load("y", dtype, size) + pointers("z", dtype, size) +
                    fmt::format("  %s = add %vx, %vy : {}[{}]\n  store %pz, %s, %m\n", dtype, size));
}

TEST(Host, AddOfEveryTypeAndSize) {
  for (const char* dtype : {"f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u32"})
    for (int size : {1, 2, 8, 64, 1024})
      for (int n : {0, 1, 63, 777, 4096}) {
        HostCase c;
        c.grid = {std::min(4096 / size, 6), 1, 1};
        c.scalars = {{"n", n}};
        expect_same(add_kernel(size, dtype), c);
        if (HasFatalFailure()) return;
      }
}

TEST(Host, ProgramsInTwoParts) {
  HostCase c;
  c.grid = {5, 3, 2};
  c.scalars = {{"n", 4000}};
  c.in_order_chunks = true;
  expect_same(kernel("%x: *i32, %n: i32", R"(
  %a = program_id {axis = 0} : i32
  %b = program_id {axis = 1} : i32
  %c = program_id {axis = 2} : i32
  %na = num_programs {axis = 0} : i32
  %nb = num_programs {axis = 1} : i32
  %t = mul %c, %nb : i32
  %u = add %t, %b : i32
  %v = mul %u, %na : i32
  %w = add %v, %a : i32
  %p = addptr %x, %w : *i32
  %k = constant 100 : i32
  %bk = mul %b, %k : i32
  %s = add %bk, %w : i32
  store %p, %s
)"),
              c);
}

// --- aliasing: whole tiles are loaded before a later store, however the parameters overlap

TEST(Host, StoresMayOverlapLoads) {
  for (int64_t shift : {-1024, -700, -33, -8, -1, 0, 1, 3, 8, 31, 500, 1024})
    for (int n : {1000, 4096}) {
      HostCase c;
      c.scalars = {{"n", n}};
      c.grid = {3, 1, 1};
      c.elements = 8000;
      // x in the middle of the buffer; z shifted against it.
      c.aliases = {{"x", {"base", 2000}}, {"z", {"base", 2000 + shift}}};
      expect_same(kernel("%base: *f32, %x: *f32, %y: *f32, %z: *f32, %n: i32",
                         offsets(1024) + load("x", "f32", 1024) + load("y", "f32", 1024) + pointers("z", "f32", 1024) +
                             "  %s = add %vx, %vy : f32[1024]\n  store %pz, %s, %m\n"),
                  c);
      if (HasFatalFailure()) return;
    }
}

TEST(Host, LoadsAfterAStoreSeeIt) {
  for (int64_t shift : {-5, 0, 1, 64, 2000}) {
    HostCase c;
    c.scalars = {{"n", 256}};
    c.aliases = {{"z", {"x", shift < 0 ? 0 : shift}}};
    const std::string body =
        offsets(256) + load("x", "i32", 256) + pointers("z", "i32", 256) +
        "  %a = add %vx, %o : i32[256]\n  store %pz, %a, %m\n"
        "  %again = load %px, %m : i32[256]\n  %b = mul %again, %vx : i32[256]\n  store %px, %b, %m\n";
    expect_same(kernel("%x: *i32, %z: *i32, %n: i32", body), c);
    if (HasFatalFailure()) return;
  }
}

TEST(Host, LoadsBeforeAStoreThatAreUsedLater) {
  for (int64_t shift : {0, 1, 7}) {
    HostCase c;
    c.scalars = {{"n", 200}};
    c.aliases = {{"z", {"x", shift}}};
    expect_same(kernel("%x: *i32, %z: *i32, %w: *i32, %n: i32",
                       offsets(256) + load("x", "i32", 256) + pointers("z", "i32", 256) + pointers("w", "i32", 256) +
                           "  store %pz, %o, %m\n  %b = add %vx, %o : i32[256]\n  store %pw, %b, %m\n"),
                c);
    if (HasFatalFailure()) return;
  }
}

// The second load waits for the reduction, and must not wait for the store, which could share the reduction's loop.
TEST(Host, LoadsBetweenAReductionAndAStore) {
  for (int64_t shift : {0, 1, 7}) {
    HostCase c;
    c.scalars = {{"n", 200}};
    c.aliases = {{"z", {"y", shift}}};
    expect_same(
        kernel("%x: *i32, %y: *i32, %z: *i32, %w: *i32, %n: i32", offsets(256) + load("x", "i32", 256) + R"(
  %sum = reduce %vx {axis = 0} : i32 (%a: i32, %b: i32) {
    %c = add %a, %b : i32
    yield %c
  }
  %sums = splat %sum : i32[256]
  %some = cmp %vx, %sums {predicate = "lt"} : i1[256]
  %both = and %some, %m : i1[256]
)" + load("y", "i32", 256, ", %both, %o") + pointers("z", "i32", 256) +
                                                                      pointers("w", "i32", 256) +
                                                                      "  store %pz, %o, %m\n  store %pw, %vy, %m\n"),
        c);
    if (HasFatalFailure()) return;
  }
}

TEST(Host, LoadsAtAPlaceThatWasLoadedAtTheEndOfAReduction) {
  // The address of the last load needs the reduction, and nothing else does once that load is there.
  HostCase c;
  c.grid = {2, 1, 1};
  c.scalars = {{"n", 120}};
  expect_same(kernel("%i: *i32, %j: *i32, %x: *f32, %z: *f32, %n: i32", offsets(64) + R"(
  %c = arange {start = 0, end = 4} : i32[4]
  %c2 = expand_dims %c {axis = 0} : i32[1, 4]
  %o2 = expand_dims %o {axis = 1} : i32[64, 1]
  %cb = broadcast %c2 : i32[64, 4]
  %ob = broadcast %o2 : i32[64, 4]
  %at = add %ob, %cb : i32[64, 4]
  %m2 = expand_dims %m {axis = 1} : i1[64, 1]
  %mb = broadcast %m2 : i1[64, 4]
  %si = splat %i : *i32[64, 4]
  %pi = addptr %si, %at : *i32[64, 4]
  %zero2 = constant 0 : i32[64, 4]
  %vi = load %pi, %mb, %zero2 : i32[64, 4]
  %best = reduce %vi {axis = 1} : i32[64] (%a: i32, %b: i32) {
    %least = min %a, %b : i32
    yield %least
  }
  %zero = constant 0 : i32[64]
  %seven = constant 7 : i32[64]
  %place = and %best, %seven : i32[64]
  %sj = splat %j : *i32[64]
  %pj = addptr %sj, %place : *i32[64]
  %vj = load %pj, %m, %zero : i32[64]
  %place2 = and %vj, %seven : i32[64]
  %fzero = constant 0.0 : f32[64]
  %sx = splat %x : *f32[64]
  %px = addptr %sx, %place2 : *f32[64]
  %vx = load %px, %m, %fzero : f32[64]
)" + pointers("z", "f32", 64) + "  store %pz, %vx, %m\n"),
              c);
}

TEST(Host, StoresThroughEqualAddresses) {
  HostCase c;
  c.scalars = {{"n", 200}};
  // Every address is written four times, and read before: the last write stays, the reads see the old values.
  expect_same(kernel("%x: *i32, %n: i32", offsets(256) + R"(
  %four = constant 4 : i32[256]
  %q = div %o, %four : i32[256]
  %s = splat %x : *i32[256]
  %p = addptr %s, %q : *i32[256]
  %v = load %p : i32[256]
  %t = add %v, %o : i32[256]
  store %p, %t, %m
)"),
              c);
  c.grid = {1, 1, 1};
  expect_same(kernel("%x: *i32, %n: i32", offsets(64) + R"(
  %zero = constant 0 : i32[64]
  %z = mul %o, %zero : i32[64]
  %s = splat %x : *i32[64]
  %p = addptr %s, %z : *i32[64]
  %v = load %p : i32[64]
  %t = add %v, %o : i32[64]
  store %p, %t
)"),
              c);
}

TEST(Host, TransposeInPlace) {
  expect_same(kernel("%x: *f32", R"(
  %r = arange {start = 0, end = 32} : i32[32]
  %rr = expand_dims %r {axis = 1} : i32[32, 1]
  %cc = expand_dims %r {axis = 0} : i32[1, 32]
  %w = constant 32 : i32[32, 1]
  %row = mul %rr, %w : i32[32, 1]
  %rows = broadcast %row : i32[32, 32]
  %cols = broadcast %cc : i32[32, 32]
  %o = add %rows, %cols : i32[32, 32]
  %s = splat %x : *f32[32, 32]
  %p = addptr %s, %o : *f32[32, 32]
  %v = load %p : f32[32, 32]
  %t = trans %v {order = [1, 0]} : f32[32, 32]
  store %p, %t
)"));
}

// --- reductions and scans

std::string reduce_kernel(const std::string& shape, int axis, const std::string& result, const std::string& dtype,
                          const std::string& combine, int64_t numel, int64_t left) {
  return kernel(fmt::format("%x: *{0}, %z: *{0}", dtype),
                fmt::format(R"(
  %r = arange {{start = 0, end = {1}}} : i32[{1}]
  %s = splat %x : *{0}[{1}]
  %p = addptr %s, %r : *{0}[{1}]
  %flat = load %p : {0}[{1}]
  %v = reshape %flat : {0}[{2}]
  %sum = reduce %v {{axis = {3}}} : {0}{4} (%a: {0}, %b: {0}) {{
    {5}
    yield %c
  }}
)",
                            dtype, numel, shape, axis, result.empty() ? "" : "[" + result + "]", combine) +
                    (result.empty() ? std::string("  store %z, %sum\n")
                                    : fmt::format(R"(
  %flatsum = reshape %sum : {0}[{1}]
  %q = arange {{start = 0, end = {1}}} : i32[{1}]
  %t = splat %z : *{0}[{1}]
  %u = addptr %t, %q : *{0}[{1}]
  store %u, %flatsum
)",
                                                  dtype, left)));
}

TEST(Host, SumsOfProductsRoundOnceWhereTheyAreContracted) {
  // Bit for bit, since the two elements of a column are added one behind the other.
  expect_same(kernel("%x: *f32, %y: *f32, %z: *f32", R"(
  %r = arange {start = 0, end = 128} : i32[128]
  %xs = splat %x : *f32[128]
  %xp = addptr %xs, %r : *f32[128]
  %v = load %xp : f32[128]
  %ys = splat %y : *f32[128]
  %yp = addptr %ys, %r : *f32[128]
  %w = load %yp : f32[128]
  %m = reshape %v : f32[2, 64]
  %n = reshape %w : f32[2, 64]
  %p = mul %m, %n : f32[2, 64]
  %s = reduce %p {axis = 0, contract = true} : f32[64] (%a: f32, %b: f32) {
    %ab = add %a, %b : f32
    yield %ab
  }
  %k = arange {start = 0, end = 64} : i32[64]
  %zs = splat %z : *f32[64]
  %zp = addptr %zs, %k : *f32[64]
  store %zp, %s
)"));
}

TEST(Host, ReducesAlongEveryAxis) {
  struct Row {
    const char* shape;
    int axis;
    const char* result;
    int64_t numel, left;
  };
  const Row rows[] = {{"1024", 0, "", 1024, 1},
                      {"4", 0, "", 4, 1},
                      {"1", 0, "", 1, 1},
                      {"16, 64", 1, "16", 1024, 16},
                      {"16, 64", 0, "64", 1024, 64},
                      {"256, 4", 1, "256", 1024, 256},
                      {"256, 4", 0, "4", 1024, 4},
                      {"8, 16, 8", 1, "8, 8", 1024, 64},
                      {"2, 4, 128", 2, "2, 4", 1024, 8},
                      {"64, 1", 1, "64", 64, 64},
                      {"1, 64", 0, "64", 64, 64}};
  for (const Row& row : rows)
    for (const char* dtype : {"i32", "f32", "i8", "u64", "f16"}) {
      const bool floats = dtype[0] == 'f';
      HostCase c;
      if (floats) c.tolerance = {dtype[1] == '1' ? 0.05 : 1e-3, dtype[1] == '1' ? 2.0 : 1e-2};
      expect_same(reduce_kernel(row.shape, row.axis, row.result, dtype, fmt::format("%c = add %a, %b : {}", dtype),
                                row.numel, row.left),
                  c);
      for (const char* op : {"max", "min"})
        expect_same(reduce_kernel(row.shape, row.axis, row.result, dtype, fmt::format("%c = {} %a, %b : {}", op, dtype),
                                  row.numel, row.left));
      // Not commutative: the right one of two, so the last element.
      if (!floats)
        expect_same(reduce_kernel(row.shape, row.axis, row.result, dtype,
                                  fmt::format("%k = constant 0 : {0}\n %c = add %b, %k : {0}", dtype), row.numel,
                                  row.left));
      if (HasFatalFailure()) return;
    }
}

TEST(Host, ArgmaxKeepsTheFirst) {
  expect_same(kernel("%x: *i8, %z: *i32", R"(
  %r = arange {start = 0, end = 512} : i32[512]
  %s = splat %x : *i8[512]
  %p = addptr %s, %r : *i8[512]
  %v = load %p : i8[512]
  %best, %at = reduce %v, %r {axis = 0} : i8, i32 (%a: i8, %i: i32, %b: i8, %j: i32) {
    %gt = cmp %a, %b {predicate = "gt"} : i1
    %eq = cmp %a, %b {predicate = "eq"} : i1
    %lt = cmp %i, %j {predicate = "lt"} : i1
    %tie = and %eq, %lt : i1
    %first = or %gt, %tie : i1
    %value = select %first, %a, %b : i8
    %index = select %first, %i, %j : i32
    yield %value, %index
  }
  store %z, %at
)"));
}

TEST(Host, ScansForwardsAndBackwards) {
  for (const char* reverse : {"false", "true"})
    for (const auto& [shape, axis] : {std::pair{"256", 0}, {"8, 32", 1}, {"8, 32", 0}, {"4, 4, 16", 1}})
      expect_same(kernel("%x: *i32, %z: *i32", fmt::format(R"(
  %r = arange {{start = 0, end = 256}} : i32[256]
  %s = splat %x : *i32[256]
  %p = addptr %s, %r : *i32[256]
  %flat = load %p : i32[256]
  %v = reshape %flat : i32[{0}]
  %sum = scan %v {{axis = {1}, reverse = {2}}} : i32[{0}] (%a: i32, %b: i32) {{
    %three = constant 3 : i32
    %t = mul %a, %three : i32
    %c = add %t, %b : i32
    yield %c
  }}
  %w = reshape %sum : i32[256]
  %t2 = splat %z : *i32[256]
  %q = addptr %t2, %r : *i32[256]
  store %q, %w
)",
                                                           shape, axis, reverse)));
}

// exp(x - max) / sum: values are kept between three loops.
TEST(Host, Softmax) {
  for (int n : {1, 100, 781, 1024}) {
    HostCase c;
    c.scalars = {{"n", n}};
    c.grid = {4, 1, 1};
    c.tolerance = {2e-6, 1e-12};
    expect_same(kernel("%x: *f32, %z: *f32, %n: i32", R"(
  %pid = program_id {axis = 0} : i32
  %base = mul %pid, %n : i32
  %r = arange {start = 0, end = 1024} : i32[1024]
  %nn = splat %n : i32[1024]
  %m = cmp %r, %nn {predicate = "lt"} : i1[1024]
  %row = addptr %x, %base : *f32
  %s = splat %row : *f32[1024]
  %p = addptr %s, %r : *f32[1024]
  %inf = constant -inf : f32[1024]
  %v = load %p, %m, %inf : f32[1024]
  %max = reduce %v {axis = 0} : f32 (%a: f32, %b: f32) {
    %c = max %a, %b : f32
    yield %c
  }
  %ms = splat %max : f32[1024]
  %d = sub %v, %ms : f32[1024]
  %e = exp %d : f32[1024]
  %sum = reduce %e {axis = 0} : f32 (%a2: f32, %b2: f32) {
    %c2 = add %a2, %b2 : f32
    yield %c2
  }
  %ss = splat %sum : f32[1024]
  %y = div %e, %ss : f32[1024]
  %zrow = addptr %z, %base : *f32
  %zs = splat %zrow : *f32[1024]
  %q = addptr %zs, %r : *f32[1024]
  store %q, %y, %m
)"),
                c);
    if (HasFatalFailure()) return;
  }
}

// --- control flow

TEST(Host, LoopsCarryTilesAndScalars) {
  for (int n : {0, 1, 5, 100}) {
    HostCase c;
    c.scalars = {{"n", n}};
    expect_same(kernel("%x: *i32, %z: *i32, %n: i32", R"(
  %r = arange {start = 0, end = 128} : i32[128]
  %s = splat %x : *i32[128]
  %p = addptr %s, %r : *i32[128]
  %zero = constant 0 : i32[128]
  %one = constant 1 : i32
  %lo = constant 0 : i32
  %start = load %p : i32[128]
  %acc, %other, %count = for %i = %lo to %n step %one iter (%a = %zero, %b = %start, %k = %lo) : i32 -> (i32[128], i32[128], i32) {
    %t = splat %i : i32[128]
    %o = add %r, %t : i32[128]
    %pp = addptr %s, %o : *i32[128]
    %v = load %pp : i32[128]
    %sum = add %a, %v : i32[128]
    %mix = xor %b, %sum : i32[128]
    %kk = add %k, %i : i32
    yield %b, %mix, %kk
  }
  %cs = splat %count : i32[128]
  %y0 = add %acc, %other : i32[128]
  %y = add %y0, %cs : i32[128]
  %zs = splat %z : *i32[128]
  %q = addptr %zs, %r : *i32[128]
  store %q, %y
)"),
                c);
    if (HasFatalFailure()) return;
  }
}

TEST(Host, LoopsThatReadTheCarriedTileElsewhere) {
  expect_same(kernel("%x: *i32, %z: *i32", R"(
  %r = arange {start = 0, end = 16} : i32[16]
  %rr = expand_dims %r {axis = 1} : i32[16, 1]
  %rc = expand_dims %r {axis = 0} : i32[1, 16]
  %w = constant 16 : i32[16, 1]
  %row = mul %rr, %w : i32[16, 1]
  %rows = broadcast %row : i32[16, 16]
  %cols = broadcast %rc : i32[16, 16]
  %o = add %rows, %cols : i32[16, 16]
  %s = splat %x : *i32[16, 16]
  %p = addptr %s, %o : *i32[16, 16]
  %v = load %p : i32[16, 16]
  %lo = constant 0 : i32
  %hi = constant 3 : i32
  %one = constant 1 : i32
  %a, %b = for %i = %lo to %hi step %one iter (%u = %v, %d = %o) : i32 -> (i32[16, 16], i32[16, 16]) {
    %t = trans %u {order = [1, 0]} : i32[16, 16]
    %sum = add %t, %o : i32[16, 16]
    %x2 = sub %d, %t : i32[16, 16]
    yield %sum, %x2
  }
  %y = xor %a, %b : i32[16, 16]
  %zs = splat %z : *i32[16, 16]
  %q = addptr %zs, %o : *i32[16, 16]
  store %q, %y
)"));
}

TEST(Host, WhileAndIf) {
  for (int n : {0, 3, 50}) {
    HostCase c;
    c.scalars = {{"n", n}};
    expect_same(kernel("%x: *i32, %z: *i32, %n: i32", R"(
  %r = arange {start = 0, end = 64} : i32[64]
  %s = splat %x : *i32[64]
  %p = addptr %s, %r : *i32[64]
  %v = load %p : i32[64]
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %two = constant 2 : i32
  %count, %tile = while (%k = %zero, %t = %v) : i32, i32[64] {
    %more = cmp %k, %n {predicate = "lt"} : i1
    %u = add %t, %r : i32[64]
    condition %more, %k, %u
  } do (%k2: i32, %u2: i32[64]) {
    %odd0 = rem %k2, %two : i32
    %odd = cmp %odd0, %one {predicate = "eq"} : i1
    %w = if %odd : i32[64] {
      %a = mul %u2, %u2 : i32[64]
      yield %a
    } else {
      %b = sub %u2, %v : i32[64]
      yield %b
    }
    %k3 = add %k2, %one : i32
    yield %k3, %w
  }
  %cs = splat %count : i32[64]
  %y = add %tile, %cs : i32[64]
  %zs = splat %z : *i32[64]
  %q = addptr %zs, %r : *i32[64]
  store %q, %y
)"),
                c);
    if (HasFatalFailure()) return;
  }
}

// --- effects

TEST(Host, FailedAssertIsReported) {
  auto module = ir::parse_module(SourceText::make(
      "t.ir", kernel("%x: *i32, %n: i32",
                     offsets(16) + load("x", "i32", 16) + "  assert %m {text = \"small enough\"}\n  store %px, %o\n")));
  ASSERT_TRUE(module.ok()) << render(module.error());
  auto host = test::compile_host(**module);
  ASSERT_TRUE(host.ok()) << host.error().message;
  std::vector<int32_t> x(64, -1);
  host->run({reinterpret_cast<uint64_t>(x.data()), 20}, {4, 1, 1});
  Status failure = host->code->take_failure();
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(failure.error().message, "assertion failed: small enough, in program (1, 0, 0) at element [4]");
  EXPECT_TRUE(host->code->take_failure().ok());
  EXPECT_EQ(x[15], 15);
  EXPECT_EQ(x[16], -1);
}

TEST(Host, PrintsElementsInOrder) {
  auto module = ir::parse_module(SourceText::make("t.ir", kernel("%n: i32", R"(
  %r = arange {start = 0, end = 2} : i32[2]
  %f = cast %r : f32[2]
  print %r, %f {text = "v: "}
  print %n {text = "n=", hex = true}
)")));
  ASSERT_TRUE(module.ok()) << render(module.error());
  auto host = test::compile_host(**module);
  ASSERT_TRUE(host.ok()) << host.error().message;
  testing::internal::CaptureStdout();
  host->run({42}, {1, 1, 1});
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "pid (0, 0, 0) idx [0] v: (operand 0) 0\npid (0, 0, 0) idx [1] v: (operand 0) 1\n"
            "pid (0, 0, 0) idx [0] v: (operand 1) 0.000000\npid (0, 0, 0) idx [1] v: (operand 1) 1.000000\n"
            "pid (0, 0, 0) idx () n=0x0000002a\n");
}

TEST(Host, Atomics) {
  for (const char* rmw : {"add", "min", "max", "and", "or", "xor", "xchg"})
    for (const char* dtype : {"i32", "u32", "i64", "f32"}) {
      const bool bits_only = std::string(rmw) == "and" || std::string(rmw) == "or" || std::string(rmw) == "xor";
      if (dtype[0] == 'f' && (bits_only || rmw[0] == 'm')) continue;
      const std::string name = dtype[0] == 'f' && std::string(rmw) == "add" ? "fadd" : rmw;
      HostCase c;
      c.scalars = {{"n", 50}};
      c.grid = {2, 1, 1};
      expect_same(kernel(fmt::format("%x: *{0}, %y: *{0}, %z: *{0}, %n: i32", dtype),
                         offsets(64) + load("y", dtype, 64) + pointers("z", dtype, 64) +
                             fmt::format(R"(
  %eight = constant 8 : i32[64]
  %slot = rem %o, %eight : i32[64]
  %xs = splat %x : *{0}[64]
  %at = addptr %xs, %slot : *{0}[64]
  %old = atomic_rmw %at, %vy, %m {{rmw = "{1}", sem = "acq_rel", scope = "gpu"}} : {0}[64]
  store %pz, %old, %m
)",
                                         dtype, name)),
                  c);
      if (HasFatalFailure()) return;
    }
}

TEST(Host, CompareAndSwap) {
  expect_same(kernel("%x: *i32, %y: *i32, %n: i32", offsets(16) + load("y", "i32", 16) + R"(
  %zero = constant 0 : i32
  %old = atomic_cas %x, %n, %zero {sem = "relaxed", scope = "gpu"} : i32
  store %y, %old
)"));
}

}  // namespace
}  // namespace kiln
