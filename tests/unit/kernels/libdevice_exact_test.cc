// libdevice's functions with one right answer: arithmetic with a rounding, conversions, and functions of integers and
// of the bits of floats. Compared with the processor's, bit by bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>

#include "kiln/kernel.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"

namespace kiln::kernels {
namespace {

template <class T>
constexpr DType kTypeOf = std::is_same_v<T, float>      ? DType::kF32
                          : std::is_same_v<T, double>   ? DType::kF64
                          : std::is_same_v<T, int32_t>  ? DType::kI32
                          : std::is_same_v<T, uint32_t> ? DType::kU32
                          : std::is_same_v<T, int64_t>  ? DType::kI64
                                                        : DType::kU64;

uint64_t run_seed() {
  static const uint64_t value = [] {
    const uint64_t v = std::random_device{}();
    std::printf("seed %llu\n", static_cast<unsigned long long>(v));
    return v;
  }();
  return value;
}

/// Numbers of every size, neighbours of the interesting ones, and for floats zeros, infinities and NaN.
template <class T>
std::vector<T> operands(uint64_t salt, size_t n = 20'000) {
  std::mt19937_64 random(run_seed() + salt);
  std::vector<T> out(n);
  for (T& v : out) {
    uint64_t bits = random();
    if constexpr (std::is_integral_v<T>) {
      v = static_cast<T>(bits >> (random() % (8 * sizeof(T))) % 64);
      if (random() % 2) v = static_cast<T>(0) - v;
    } else if (random() % 2) {
      std::memcpy(&v, &bits, sizeof(T));  // any exponent
    } else {
      v = std::ldexp(static_cast<T>(static_cast<int>(bits % 2048) - 1024), static_cast<int>(random() % 8) - 4);
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    const T special[] = {T(0),
                         -T(0),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::min(),
                         Limits::denorm_min(),
                         T(1)};
    for (size_t i = 0; i < n; i += 3) out[i] = special[random() % std::size(special)];
  }
  return out;
}

/// out[i] = expression of a, b and c, each of `n` elements.
template <class Out, class... In>
std::vector<Out> computed(const std::string& expression, const std::vector<In>&... in) {
  auto device = open_device("cpu");
  std::string loads;
  int k = 0;
  ((loads += fmt::format("    {0} = tl.load({0}_ptr + i, mask=inside)\n", "abc"[k++]), void(in)), ...);
  const std::string source = fmt::format(
      "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n\n@triton.jit\n"
      "def apply(a_ptr, b_ptr, c_ptr, out, n, BLOCK: tl.constexpr):\n"
      "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    inside = i < n\n{}"
      "    tl.store(out + i, {}, mask=inside)\n",
      loads, expression);
  auto kernel = Kernel::from_source(source, "libdevice_exact_test.py", "apply");
  EXPECT_TRUE(kernel.ok()) << render(kernel.error());
  const size_t sizes[] = {in.size()...};
  const auto n = static_cast<int64_t>(sizes[0]);
  const int64_t shape[] = {n};
  std::vector<std::optional<Arg>> args = {
      *Tensor::from_host(*device, kTypeOf<In>, shape, in.data(), in.size() * sizeof(In))...};
  const std::optional<Arg> unused = args[0];
  args.resize(3, unused);
  Tensor out = *Tensor::zeros(*device, kTypeOf<Out>, shape);
  args.insert(args.end(), {Arg(out), Arg(n), Arg(int64_t{1024})});
  const Status launched = kernel->launch({(n + 1023) / 1024, 1, 1}, args);
  EXPECT_TRUE(launched.ok()) << render(launched.error());
  std::vector<Out> got(sizes[0]);
  auto bytes = out.to_bytes();
  EXPECT_TRUE(bytes.ok());
  if (bytes.ok()) std::memcpy(got.data(), bytes->data(), bytes->size());
  return got;
}

template <class T>
bool same_bits(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

template <class Out, class Fn, class... In>
void check(const std::string& expression, Fn&& expected, const std::vector<In>&... in) {
  const std::vector<Out> got = computed<Out>(expression, in...);
  int wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 3; ++i) {
    const Out want = expected(in[i]...);
    if (same_bits(got[i], want)) continue;
    ++wrong;
    std::string operands;
    ((operands += fmt::format(" {}", in[i])), ...);
    ADD_FAILURE() << expression << " of" << operands << fmt::format(": {} and not {}", got[i], want);
  }
}

struct Mode {
  const char* name;
  int rounding;
};
constexpr Mode kModes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rd", FE_DOWNWARD}, {"ru", FE_UPWARD}};

/// What `fn` gives while the processor rounds that way. The operands are read, and the result is written, in between.
template <class Fn>
auto rounded(int rounding, Fn&& fn) {
  std::fesetround(rounding);
  const volatile auto r = fn();
  std::fesetround(FE_TONEAREST);
  return r;
}

template <class T>
void check_arithmetic() {
  const std::vector<T> x = operands<T>(1), y = operands<T>(2), z = operands<T>(3);
  for (const Mode& m : kModes) {
    auto two = [&](const char* name, auto fn) {
      check<T>(
          fmt::format("libdevice.{}_{}(a, b)", name, m.name),
          [&](T given_a, T given_b) {
            const volatile T a = given_a, b = given_b;
            return rounded(m.rounding, [&] { return fn(a, b); });
          },
          x, y);
    };
    two("add", [](T a, T b) { return a + b; });
    two("sub", [](T a, T b) { return a - b; });
    two("mul", [](T a, T b) { return a * b; });
    two("div", [](T a, T b) { return a / b; });
    auto one = [&](const char* name, auto fn) {
      check<T>(
          fmt::format("libdevice.{}_{}(a)", name, m.name),
          [&](T given) {
            const volatile T a = given;
            return rounded(m.rounding, [&] { return fn(a); });
          },
          x);
    };
    one("rcp", [](T a) { return T(1) / a; });
    one("sqrt", [](T a) { return std::sqrt(a); });
    check<T>(
        fmt::format("libdevice.fma_{}(a, b, c)", m.name),
        [&](T given_a, T given_b, T given_c) {
          const volatile T a = given_a, b = given_b, c = given_c;
          return rounded(m.rounding, [&] { return std::fma(T(a), T(b), T(c)); });
        },
        x, y, z);
  }
}

TEST(LibdeviceExact, ArithmeticOfFloat32) { check_arithmetic<float>(); }
TEST(LibdeviceExact, ArithmeticOfFloat64) { check_arithmetic<double>(); }

TEST(LibdeviceExact, ProductsAreNotFusedIntoSums) {
  const std::vector<double> x = operands<double>(4), y = operands<double>(5);
  check<double>(
      "libdevice.add_rd(a * b, b)",
      [](double given_a, double given_b) {
        const volatile double a = given_a, b = given_b;
        const volatile double p = a * b;
        return rounded(FE_DOWNWARD, [&] { return p + b; });
      },
      x, y);
  check<double>(
      "libdevice.sub_rn(a * b, b)",
      [](double a, double b) {
        const volatile double p = a * b;
        return p - b;
      },
      x, y);
}

template <class From>
void check_to_integers(const char* from) {
  const std::vector<From> x = operands<From>(6);
  for (const Mode& m : kModes) {
    auto whole = [&](From v) { return rounded(m.rounding, [&] { return std::nearbyint(v); }); };
    auto saturated = [&]<class To>(To, const char* to) {
      check<To>(
          fmt::format("libdevice.{}2{}_{}(a)", from, to, m.name),
          [&](From v) {
            const auto r = static_cast<long double>(whole(v));
            constexpr auto low = static_cast<long double>(std::numeric_limits<To>::min()),
                           high = static_cast<long double>(std::numeric_limits<To>::max());
            return std::isnan(r) ? To(0)
                   : r <= low    ? std::numeric_limits<To>::min()
                   : r >= high   ? std::numeric_limits<To>::max()
                                 : static_cast<To>(r);
          },
          x);
    };
    saturated(int32_t{}, "int");
    saturated(uint32_t{}, "uint");
    saturated(int64_t{}, "ll");
    saturated(uint64_t{}, "ull");
  }
}

TEST(LibdeviceExact, FloatsToIntegers) {
  check_to_integers<float>("float");
  check_to_integers<double>("double");
}

TEST(LibdeviceExact, ToFloats) {
  for (const Mode& m : kModes) {
    auto from = [&]<class From, class To>(From, To, const char* name) {
      check<To>(
          fmt::format("libdevice.{}_{}(a)", name, m.name),
          [&](From given) {
            const volatile From v = given;
            return rounded(m.rounding, [&] { return static_cast<To>(v); });
          },
          operands<From>(7));
    };
    from(double{}, float{}, "double2float");
    from(int32_t{}, float{}, "int2float");
    from(uint32_t{}, float{}, "uint2float");
    from(int64_t{}, float{}, "ll2float");
    from(int64_t{}, double{}, "ll2double");
    // Of uint64_t the compiler's own conversion is several instructions, which round more than once.
    auto wide = [&]<class To>(To, const char* name) {
      check<To>(
          fmt::format("libdevice.{}_{}(a)", name, m.name),
          [&](uint64_t given) {
            const volatile long double v = given;
            return rounded(m.rounding, [&] { return static_cast<To>(v); });
          },
          operands<uint64_t>(8));
    };
    wide(float{}, "ull2float");
    wide(double{}, "ull2double");
  }
  check<double>(
      "libdevice.int2double_rn(a)", [](int32_t v) { return static_cast<double>(v); }, operands<int32_t>(9));
  check<double>(
      "libdevice.uint2double_rn(a)", [](uint32_t v) { return static_cast<double>(v); }, operands<uint32_t>(9));
}

TEST(LibdeviceExact, RsqrtRoundsOnce) {
  check<float>(
      "libdevice.rsqrt_rn(a)", [](float x) { return static_cast<float>(1 / std::sqrt(static_cast<long double>(x))); },
      operands<float>(10));
}

template <class T>
void check_parts() {
  const std::vector<T> x = operands<T>(11), y = operands<T>(12);
  std::vector<int32_t> n = operands<int32_t>(13);
  for (size_t i = 0; i < n.size(); i += 2) n[i] %= 200;
  check<T>(
      "libdevice.nextafter(a, b)", [](T a, T b) { return std::nextafter(a, b); }, x, y);
  check<T>(
      "libdevice.remainder(a, b)", [](T a, T b) { return std::remainder(a, b); }, x, y);
  check<T>(
      "libdevice.ldexp(a, b)", [](T a, int32_t e) { return std::ldexp(a, e); }, x, n);
  check<T>(
      "libdevice.scalbn(a, b)", [](T a, int32_t e) { return std::scalbn(a, e); }, x, n);
  check<T>(
      "libdevice.logb(a)", [](T a) { return std::logb(a); }, x);
  check<int32_t>(
      "libdevice.ilogb(a)",
      [](T a) {
        constexpr int32_t least = std::numeric_limits<int32_t>::min();
        return std::isnan(a) || a == 0 ? least : std::isinf(a) ? ~least : std::ilogb(a);
      },
      x);
}

TEST(LibdeviceExact, PartsOfFloats) {
  check_parts<float>();
  check_parts<double>();
}

template <class T>
void check_bits() {
  using U = std::make_unsigned_t<T>;
  const std::vector<T> x = operands<T>(14);
  check<int32_t>(
      "libdevice.popc(a)", [](T a) { return std::popcount(static_cast<U>(a)); }, x);
  check<int32_t>(
      "libdevice.clz(a)", [](T a) { return std::countl_zero(static_cast<U>(a)); }, x);
  check<int32_t>(
      "libdevice.ffs(a)", [](T a) { return a == 0 ? 0 : std::countr_zero(static_cast<U>(a)) + 1; }, x);
  check<T>(
      "libdevice.brev(a)",
      [](T a) {
        U out = 0;
        for (size_t k = 0; k < 8 * sizeof(T); ++k) out |= (static_cast<U>(a) >> k & 1) << (8 * sizeof(T) - 1 - k);
        return static_cast<T>(out);
      },
      x);
  check<T>(
      "libdevice.mulhi(a, b)", [](T a, T b) { return static_cast<T>(static_cast<__int128>(a) * b >> 8 * sizeof(T)); },
      x, operands<T>(15));
}

TEST(LibdeviceExact, BitsOfIntegers) {
  check_bits<int32_t>();
  check_bits<int64_t>();
  const std::vector<int32_t> x = operands<int32_t>(16), y = operands<int32_t>(17), z = operands<int32_t>(18);
  using Wide = int64_t;
  check<int32_t>(
      "libdevice.hadd(a, b)", [](Wide a, Wide b) { return static_cast<int32_t>((a + b) >> 1); }, x, y);
  check<int32_t>(
      "libdevice.rhadd(a, b)", [](Wide a, Wide b) { return static_cast<int32_t>((a + b + 1) >> 1); }, x, y);
  check<int32_t>(
      "libdevice.mul24(a, b)",
      [](int32_t a, int32_t b) {
        auto low = [](int32_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8; };
        return static_cast<int32_t>(Wide{low(a)} * low(b));
      },
      x, y);
  check<uint32_t>(
      "libdevice.sad(a, b, c.to(tl.uint32, bitcast=True))",
      [](Wide a, Wide b, int32_t c) { return static_cast<uint32_t>(std::abs(a - b) + c); }, x, y, z);
  check<int32_t>(
      "libdevice.byte_perm(a, b, c)",
      [](int32_t a, int32_t b, int32_t selector) {
        const uint64_t both = uint64_t{static_cast<uint32_t>(b)} << 32 | static_cast<uint32_t>(a);
        uint32_t out = 0;
        for (int k = 0; k < 4; ++k) {
          const uint32_t pick = static_cast<uint32_t>(selector) >> (4 * k) & 15;
          uint32_t byte = both >> (8 * (pick & 7)) & 255;
          if (pick & 8) byte = byte >= 128 ? 255 : 0;
          out |= byte << (8 * k);
        }
        return static_cast<int32_t>(out);
      },
      x, y, z);
  check<double>(
      "libdevice.hiloint2double(a, b)",
      [](int32_t high, int32_t low) {
        return std::bit_cast<double>(uint64_t{static_cast<uint32_t>(high)} << 32 | static_cast<uint32_t>(low));
      },
      x, y);
  const std::vector<double> d = operands<double>(19);
  check<int32_t>(
      "libdevice.double2loint(a)", [](double v) { return static_cast<int32_t>(std::bit_cast<int64_t>(v)); }, d);
  check<int32_t>(
      "libdevice.double2hiint(a)", [](double v) { return static_cast<int32_t>(std::bit_cast<int64_t>(v) >> 32); }, d);
  check<int32_t>(
      "libdevice.float_as_int(libdevice.int_as_float(a))", [](int32_t v) { return v; }, x);
}

TEST(LibdeviceExact, NormsNeitherOverflowNorVanish) {
  // Within a unit of the last place or two; what matters is that squares beyond the range are none.
  const std::vector<double> x = {3e200, 3e-200, 0, INFINITY, 1}, y = {4e200, 4e-200, 0, 1, 2},
                            z = {12e200, 12e-200, 0, 1, 2};
  const std::vector<double> want = {13e200, 13e-200, 0, INFINITY, 3};
  const std::vector<double> got = computed<double>("libdevice.norm3d(a, b, c)", x, y, z),
                            four = computed<double>("libdevice.norm4d(a, b, c, a * 0.0)", x, y, z),
                            inverse = computed<double>("libdevice.rnorm3d(a, b, c)", x, y, z);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_DOUBLE_EQ(got[i], want[i]);
    if (std::isfinite(x[i])) {
      EXPECT_DOUBLE_EQ(four[i], want[i]);
    }
    EXPECT_DOUBLE_EQ(inverse[i], 1 / want[i]);
  }
}

}  // namespace
}  // namespace kiln::kernels
