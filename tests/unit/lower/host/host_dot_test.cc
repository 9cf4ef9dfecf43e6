// Matrix products on the host against the interpreter. The interpreter rounds once; the bound of what the host's order
// of summation may add comes from running the same kernel on absolute values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/interp/tile/interp.h"
#include "support/diag.h"
#include "support/float_bits.h"
#include "tests/unit/lower/harness/host_harness.h"
#include "tests/unit/unit_roundoff.h"

namespace kiln {
namespace {

/// Parameters %a, %b, %c (read) and %o, %o2 (written), each a row-major tile.
struct DotKernel {
  std::string text;
  DType in = DType::kF32, out = DType::kF32;
  int64_t a_elements = 0, b_elements = 0, c_elements = 0;
  double terms = 0;        // of the longest sum, products and additions
  double input_error = 0;  // relative, of an operand: tf32 in the interpreter
  int64_t seconds = 0;     // elements of %o2
  int roundings = 1;       // to `out` on the way to an element of the output
};

uint64_t random_bits(std::mt19937_64& random, DType dtype) {
  if (!is_float(dtype)) return random();  // the whole range: sums wrap
  std::normal_distribution<double> normal;
  return float_to_bits(dtype, random() % 64 ? normal(random) : 0.0);
}

uint64_t element_at(const std::vector<std::byte>& bytes, DType dtype, int64_t i) {
  uint64_t bits = 0;
  const auto size = static_cast<size_t>(size_of(dtype));
  std::memcpy(&bits, bytes.data() + static_cast<size_t>(i) * size, size);
  return bits;
}

void expect_product(const DotKernel& k) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, k.text));
  std::mt19937_64 random(seed);
  auto module = ir::parse_module(SourceText::make("dot.ir", k.text));
  ASSERT_TRUE(module.ok()) << render(module.error());
  Status verified = ir::verify(**module);
  ASSERT_TRUE(verified.ok()) << render(verified.error());
  auto host = test::compile_host(**module);
  ASSERT_TRUE(host.ok()) << host.error().message;

  using Bytes = std::vector<std::byte>;
  constexpr int64_t kGuard = 64;  // elements behind each output, which must stay as they are
  const int64_t counts[] = {k.a_elements, k.b_elements, k.c_elements, k.c_elements, k.seconds};
  const DType dtypes[] = {k.in, k.in, k.out, k.out, k.out};
  // 0: the interpreter, 1: the host, 2: the interpreter on absolute values.
  std::vector<Bytes> memory[3];
  for (int i = 0; i < 5; ++i) {
    const auto size = static_cast<size_t>(size_of(dtypes[i]));
    Bytes plain(static_cast<size_t>(counts[i] + (i > 2 ? kGuard : 0)) * size, std::byte{0xcd}), absolute = plain;
    for (int64_t e = 0; e < counts[i] && i <= 2; ++e) {
      const uint64_t bits = random_bits(random, dtypes[i]);
      std::memcpy(plain.data() + static_cast<size_t>(e) * size, &bits, size);
      if (!is_float(dtypes[i])) continue;
      const uint64_t magnitude = float_to_bits(dtypes[i], std::abs(float_from_bits(dtypes[i], bits)));
      std::memcpy(absolute.data() + static_cast<size_t>(e) * size, &magnitude, size);
    }
    memory[0].push_back(plain);
    memory[1].push_back(plain);
    memory[2].push_back(absolute);
  }
  for (int run = 0; run < 3; ++run) {
    std::vector<uint64_t> args;
    interp::Memory allowed;
    for (Bytes& bytes : memory[run]) {
      args.push_back(reinterpret_cast<uint64_t>(bytes.data()));
      if (!bytes.empty()) allowed.allow(bytes.data(), bytes.size());
    }
    if (run == 1) {
      std::fill(host->scratch.begin(), host->scratch.end(), std::byte{0xff});  // NaNs
      host->run(args, {1, 1, 1});
      continue;
    }
    interp::Options options;
    Status s = interp::run(**module, {1, 1, 1}, args, allowed, options);
    ASSERT_TRUE(s.ok()) << render(s.error());
  }
  const double sums = unit_roundoff(k.out == DType::kF64 ? DType::kF64 : DType::kF32) * 2 * (k.terms + 2);
  const double relative = sums + 2 * k.input_error + k.roundings * 2 * unit_roundoff(k.out);
  for (int i : {3, 4})
    for (int64_t e = 0; e < counts[i] + kGuard; ++e) {
      const uint64_t want = element_at(memory[0][i], k.out, e), got = element_at(memory[1][i], k.out, e);
      if (want == got) continue;
      ASSERT_TRUE(is_float(k.out) && e < counts[i]) << "element " << e << ": " << want << " and " << got;
      const double x = float_from_bits(k.out, want), y = float_from_bits(k.out, got);
      const double bound = relative * float_from_bits(k.out, element_at(memory[2][i], k.out, e));
      // Halves near zero have a spacing of their own.
      const double spacing = k.out == DType::kF16 ? std::ldexp(k.roundings, -24) : 0;
      ASSERT_LE(std::abs(x - y), bound + spacing) << "element " << e << " of output " << i << ": " << x << ", " << y;
    }
}

struct Shape {
  int64_t m, n, k, batch = 1;
};

std::string type_of(std::string_view dtype, std::initializer_list<int64_t> dims) {
  return fmt::format("{}[{}]", dtype, fmt::join(dims, ", "));
}

std::string matrix_type(std::string_view dtype, int64_t batch, int64_t rows, int64_t columns) {
  return batch == 1 ? type_of(dtype, {rows, columns}) : type_of(dtype, {batch, rows, columns});
}

/// Loads %name, or with `transposed` its transpose, whose rows and columns these are.
std::string load_matrix(const std::string& name, std::string_view dtype, int64_t batch, int64_t rows, int64_t columns,
                        bool transposed = false) {
  const int64_t numel = batch * rows * columns;
  std::string text = fmt::format(R"(
  %{0}_i = arange {{start = 0, end = {2}}} : i32[{2}]
  %{0}_s = splat %{0} : *{1}[{2}]
  %{0}_p = addptr %{0}_s, %{0}_i : *{1}[{2}]
  %{0}_f = load %{0}_p : {1}[{2}]
)",
                                 name, dtype, numel);
  if (!transposed)
    return text + fmt::format("  %{0}_m = reshape %{0}_f : {1}\n", name, matrix_type(dtype, batch, rows, columns));
  return text + fmt::format("  %{0}_t = reshape %{0}_f : {1}\n  %{0}_m = trans %{0}_t {{order = [{2}]}} : {3}\n", name,
                            matrix_type(dtype, batch, columns, rows), batch == 1 ? "1, 0" : "0, 2, 1",
                            matrix_type(dtype, batch, rows, columns));
}

std::string store_matrix(const std::string& name, const std::string& value, std::string_view dtype, int64_t numel) {
  return fmt::format(R"(
  %{0}_i = arange {{start = 0, end = {2}}} : i32[{2}]
  %{0}_s = splat %{0} : *{1}[{2}]
  %{0}_p = addptr %{0}_s, %{0}_i : *{1}[{2}]
  %{0}_v = reshape {3} : {1}[{2}]
  store %{0}_p, %{0}_v
)",
                     name, dtype, numel, value);
}

std::string wrap(std::string_view in, std::string_view out, const std::string& body) {
  return fmt::format("kernel @k(%a: *{0}, %b: *{0}, %c: *{1}, %o: *{1}, %o2: *{1}) {{\n{2}  return\n}}\n", in, out,
                     body);
}

struct Types {
  const char *in, *out, *precision;
};

/// o = a·b + c, or + 0 with `zero`.
DotKernel one_dot(const Types& t, const Shape& s, bool a_transposed, bool b_transposed, bool zero) {
  DotKernel k;
  k.in = *parse_dtype(t.in);
  k.out = *parse_dtype(t.out);
  k.a_elements = s.batch * s.m * s.k;
  k.b_elements = s.batch * s.k * s.n;
  k.c_elements = s.batch * s.m * s.n;
  k.terms = static_cast<double>(s.k);
  const std::string_view precision = t.precision;
  if (precision == "tf32") k.input_error = std::ldexp(1, -11);
  const std::string c = matrix_type(t.out, s.batch, s.m, s.n);
  const std::string attributes = precision.empty() ? "" : fmt::format(" {{precision = \"{}\"}}", precision);
  k.text =
      wrap(t.in, t.out,
           load_matrix("a", t.in, s.batch, s.m, s.k, a_transposed) +
               load_matrix("b", t.in, s.batch, s.k, s.n, b_transposed) + load_matrix("c", t.out, s.batch, s.m, s.n) +
               fmt::format("  %z = constant {} : {}\n", is_float(k.out) ? "0.0" : "0", c) +
               fmt::format("  %d = dot %a_m, %b_m, {}{} : {}\n", zero ? "%z" : "%c_m", attributes, c) +
               store_matrix("o", "%d", t.out, k.c_elements));
  return k;
}

constexpr Types kTypes[] = {
    {"f32", "f32", "ieee"}, {"f32", "f32", "tf32"}, {"f32", "f32", "tf32x3"}, {"f64", "f64", ""},
    {"f16", "f32", ""},     {"f16", "f16", ""},     {"bf16", "f32", ""},      {"bf16", "bf16", ""},
    {"f8e4m3", "f32", ""},  {"f8e5m2", "f32", ""},  {"f8e5m2", "f16", ""},    {"i8", "i32", ""},
    {"u8", "i32", ""},      {"i16", "i32", ""},     {"i32", "i32", ""},
};

TEST(HostDot, EveryTypeAndTransposition) {
  for (const Types& t : kTypes)
    for (int form = 0; form < 4; ++form) {
      for (const Shape& s : {Shape{16, 32, 16}, Shape{32, 16, 64, 2}}) {
        expect_product(one_dot(t, s, form & 1, form & 2, form == 3));
        if (HasFatalFailure()) return;
      }
    }
}

TEST(HostDot, EveryShape) {
  const Shape shapes[] = {
      {1, 1, 1},     {1, 16, 16},   {2, 2, 2},      {1, 256, 32}, {2, 128, 16},   {4, 64, 16},     {8, 8, 4},
      {16, 1, 16},   {16, 16, 256}, {32, 4, 8},     {64, 32, 1},  {128, 16, 16},  {16, 128, 512},  {64, 64, 64},
      {8, 16, 1024}, {4, 4, 4, 8},  {16, 16, 2, 4}, {1, 1, 512},  {128, 128, 32}, {2, 16, 512, 2},
  };
  std::mt19937_64 random(std::random_device{}());
  for (const Shape& s : shapes)
    for (const Types& t : {Types{"f32", "f32", "ieee"}, Types{"f16", "f16", ""}, Types{"u8", "i32", ""}}) {
      const uint64_t form = random();
      expect_product(one_dot(t, s, form & 1, form & 2, form & 4));
      if (HasFatalFailure()) return;
    }
}

// --- accumulators: 32 x 32 matrices x, y, c; `body` gives %r (to %o) and %r2 (to %o2)

DotKernel squares(const std::string& body, double products, const Types& t = {"f32", "f32", "ieee"}) {
  constexpr int64_t kSide = 32;
  DotKernel k;
  k.in = *parse_dtype(t.in);
  k.out = *parse_dtype(t.out);
  k.a_elements = k.b_elements = k.c_elements = k.seconds = kSide * kSide;
  k.terms = products * kSide + 8;
  k.roundings = static_cast<int>(products) + 2;
  std::string text = load_matrix("a", t.in, 1, kSide, kSide) + load_matrix("b", t.in, 1, kSide, kSide) +
                     load_matrix("c", t.out, 1, kSide, kSide) +
                     "  %n0 = constant 0 : i32\n  %n1 = constant 1 : i32\n  %n3 = constant 3 : i32\n" + body +
                     store_matrix("o", "%r", t.out, k.c_elements) + store_matrix("o2", "%r2", t.out, k.c_elements);
  if (*t.precision)
    for (size_t at = 0; (at = text.find("= dot ", at)) != std::string::npos; ++at)
      text.insert(text.find(" : ", at), fmt::format(" {{precision = \"{}\"}}", t.precision));
  for (size_t at; (at = text.find("TILE")) != std::string::npos;)
    text.replace(at, 4, fmt::format("{}[{}, {}]", t.out, kSide, kSide));
  k.text = wrap(t.in, t.out, text);
  return k;
}

TEST(HostDot, CarriedAccumulatorsAreUsedAfterTheLoop) {
  for (const Types& t :
       {Types{"f32", "f32", "ieee"}, Types{"f16", "f32", ""}, Types{"f16", "f16", ""}, Types{"i8", "i32", ""}}) {
    expect_product(squares(R"(
  %r = for %i = %n0 to %n3 step %n1 iter (%acc = %c_m) : i32 -> (TILE) {
    %next = dot %a_m, %b_m, %acc : TILE
    yield %next
  }
  %r2 = add %r, %r : TILE
)",
                           4, t));
    if (HasFatalFailure()) return;
  }
}

TEST(HostDot, CarriedAccumulatorsThatSomethingElseReads) {
  const char* bodies[] = {
      // after the product, by the yield
      R"(
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%acc = %c_m, %old = %c_m) : i32 -> (TILE, TILE) {
    %next = dot %a_m, %b_m, %acc : TILE
    yield %next, %acc
  }
)",
      // after the product, by an op
      R"(
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%acc = %c_m, %sum = %c_m) : i32 -> (TILE, TILE) {
    %next = dot %a_m, %b_m, %acc : TILE
    %both = add %next, %acc : TILE
    yield %next, %both
  }
)",
      // exchanged
      R"(
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%x = %c_m, %y = %a_m) : i32 -> (TILE, TILE) {
    %p = dot %a_m, %b_m, %x : TILE
    %q = dot %b_m, %a_m, %y : TILE
    yield %q, %p
  }
)",
      // at other positions
      R"(
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%x = %c_m, %y = %c_m) : i32 -> (TILE, TILE) {
    %p = dot %a_m, %b_m, %x : TILE
    %q = trans %p {order = [1, 0]} : TILE
    yield %q, %p
  }
)",
      // twice, and in place twice
      R"(
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%x = %c_m, %y = %c_m) : i32 -> (TILE, TILE) {
    %p = dot %a_m, %b_m, %x : TILE
    %q = dot %b_m, %a_m, %p : TILE
    yield %q, %q
  }
)",
      // by a later turn of the loop
      R"(
  %start = add %c_m, %a_m : TILE
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%x = %c_m, %y = %c_m) : i32 -> (TILE, TILE) {
    %p = dot %a_m, %b_m, %start : TILE
    %q = add %p, %x : TILE
    yield %q, %p
  }
)",
      // as an operand of its own product
      R"(
  %r = for %i = %n0 to %n1 step %n1 iter (%x = %c_m) : i32 -> (TILE) {
    %p = dot %x, %b_m, %x : TILE
    yield %p
  }
  %t = trans %r {order = [1, 0]} : TILE
  %r2 = dot %a_m, %t, %r : TILE
)",
      // the sum of products without an addend
      R"(
  %zero = constant 0.0 : TILE
  %r = for %i = %n0 to %n3 step %n1 iter (%acc = %zero) : i32 -> (TILE) {
    %p = dot %a_m, %b_m, %zero : TILE
    %next = add %acc, %p : TILE
    yield %next
  }
  %r2 = sub %r, %c_m : TILE
)",
      // scaled before each product
      R"(
  %half = constant 0.5 : TILE
  %r = for %i = %n0 to %n3 step %n1 iter (%acc = %c_m) : i32 -> (TILE) {
    %scaled = mul %acc, %half : TILE
    %next = dot %a_m, %b_m, %scaled : TILE
    yield %next
  }
  %r2 = add %r, %c_m : TILE
)",
      // in branches
      R"(
  %r, %r2 = for %i = %n0 to %n3 step %n1 iter (%acc = %c_m, %other = %c_m) : i32 -> (TILE, TILE) {
    %first = cmp %i, %n1 {predicate = "lt"} : i1
    %next = if %first : TILE {
      %p = dot %a_m, %b_m, %acc : TILE
      yield %p
    } else {
      %q = dot %b_m, %a_m, %acc : TILE
      %s = add %q, %acc : TILE
      yield %s
    }
    yield %next, %next
  }
)",
      // of a while
      R"(
  %last, %r = while (%i = %n0, %acc = %c_m) : i32, TILE {
    %more = cmp %i, %n3 {predicate = "lt"} : i1
    condition %more, %i, %acc
  } do (%j: i32, %x: TILE) {
    %next = dot %a_m, %b_m, %x : TILE
    %k = add %j, %n1 : i32
    yield %k, %next
  }
  %r2 = add %r, %c_m : TILE
)",
  };
  for (const char* body : bodies) {
    expect_product(squares(body, 16));
    if (HasFatalFailure()) return;
  }
}

TEST(HostDot, ProductsOfProducts) {
  expect_product(squares(R"(
  %p = dot %a_m, %b_m, %c_m : TILE
  %q = dot %p, %b_m, %c_m : TILE
  %r = dot %q, %p, %q : TILE
  %r2 = add %p, %q : TILE
)",
                         200));
}

}  // namespace
}  // namespace kiln
