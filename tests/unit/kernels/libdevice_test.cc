// Error in ULP of libdevice's functions that are written in the language, on the host, against a wider libm: f32 over
// every 16411th float (all of them with KILN_MATH_STRIDE=1), f64 at random. docs/math.md holds the same table;
// KILN_BLESS=1 rewrites it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kiln/kernel.h"
#include "support/diag.h"
#include "tests/docs_table.h"
#include "tests/unit/open_device.h"

namespace kiln::kernels {
namespace {

using Real = long double;

struct Row {
  const char* name;
  Real (*reference)(Real x, Real y);
  double f32, f64;                   // the largest error in ULP
  bool two = false;                  // takes two numbers
  Real least = 0;                    // below this size of the result the error is counted in its ULP
  bool (*covers)(Real x) = nullptr;  // the arguments that the row is about; null: all
  const char* about = "";
};
constexpr Real kPi = 3.141592653589793238462643383279502884L;

Real sin_pi(Real x, Real) {
  const Real r = std::remainder(x, 2), a = std::fabs(r);
  return std::copysign(std::sin(kPi * (a > 0.5L ? 1 - a : a)), r == 0 ? x : r);
}
Real cos_pi(Real x, Real) { return std::sin(kPi * (0.5L - std::fabs(std::remainder(x, 2)))); }

// exp(x²) times what is about 1 / exp(x²), for x of 53 bits: the square in two parts.
Real exp_of_square(Real x) {
  const Real high = std::nearbyint(std::ldexp(x, 24)) / 16777216, low = x - high;
  return std::exp(high * high) * std::exp(low * (high + x));
}
Real scaled_erfc(Real x, Real) {
  if (std::isnan(x)) return x;
  if (x < 0) return x < -110 ? INFINITY : 2 * exp_of_square(x) - scaled_erfc(-x, 0);
  if (x < 12) return exp_of_square(x) * std::erfc(x);
  Real term = 1, sum = 1;
  for (int n = 1; n < 40; ++n) sum += term *= -(2 * n - 1) / (2 * x * x);
  return sum / (x * std::sqrt(kPi));
}
// z of erfc(z) = c, where c <= 1, and of erf(z) = x near 0: Newton's steps, on the logarithm in the tail.
Real positive_inverse(Real x, Real c) {
  if (c == 0) return INFINITY;
  Real z = c > 0.5L ? x : std::sqrt(-std::log(c));
  for (int i = 0; i < 60; ++i) {
    const Real slope = 2 / std::sqrt(kPi) * std::exp(-z * z);
    const Real step = c > 0.5L ? (std::erf(z) - x) / slope : std::log(std::erfc(z) / c) * std::erfc(z) / -slope;
    z -= step;
    if (std::fabs(step) <= 1e-19L * z) break;
  }
  return z;
}
Real inverse_erf(Real x, Real) {
  if (!(std::fabs(x) <= 1)) return NAN;
  return x == 0 ? x : std::copysign(positive_inverse(std::fabs(x), 1 - std::fabs(x)), x);
}
Real inverse_erfc(Real y, Real) {
  if (!(y >= 0 && y <= 2)) return NAN;
  return y == 1 ? 0 : y < 1 ? positive_inverse(1 - y, y) : -positive_inverse(y - 1, 2 - y);
}
Real inverse_normcdf(Real p, Real) { return p == 0.5L ? 0 : -std::sqrt(2.0L) * inverse_erfc(2 * p, 0); }
Real gamma(Real x, Real) { return x == -INFINITY || (x < 0 && std::trunc(x) == x) ? NAN : std::tgamma(x); }
Real bessel_i(int order, Real x) {
  if (std::isnan(x)) return x;
  const Real a = std::fabs(x), z = a * a / 4;
  Real sum = 0;
  if (std::isinf(a)) {
    sum = a;
  } else if (a < 60) {
    Real term = order == 0 ? 1 : a / 2;
    for (int k = 1; term > sum * 1e-21L; ++k) sum += term, term *= z / (static_cast<Real>(k) * (k + order));
    if (a == 0) sum = order == 0 ? 1 : 0;
  } else {
    Real term = 1;
    sum = 1;
    for (int k = 1; k < 50; ++k) sum += term *= -(4.0L * order - (2.0L * k - 1) * (2.0L * k - 1)) / (8 * k * a);
    sum *= a > 11000 ? INFINITY : std::exp(a) / std::sqrt(2 * kPi * a);
  }
  return order == 0 ? sum : std::copysign(sum, x);
}
bool positive(Real x) { return !(x < 0); }
bool negative(Real x) { return x < 0; }

constexpr Row kTable[] = {
    {"atan", [](Real x, Real) { return std::atan(x); }, 2.5, 2.5},
    {"atan2", [](Real y, Real x) { return std::atan2(y, x); }, 2.5, 2.5, true},
    {"asin", [](Real x, Real) { return std::asin(x); }, 2.5, 2.5},
    {"acos", [](Real x, Real) { return std::acos(x); }, 1.3, 1.3},
    {"sinpi", sin_pi, 2.5, 2.5},
    {"cospi", cos_pi, 2.7, 2.5},
    {"cbrt", [](Real x, Real) { return std::cbrt(x); }, 1, 1},
    {"rcbrt", [](Real x, Real) { return 1 / std::cbrt(x); }, 2, 2},
    {"normcdf", [](Real x, Real) { return 0.5L + 0.5L * std::erf(x * std::sqrt(0.5L)); }, 5.5, 2, false, 0.25L},
    {"erfc", [](Real x, Real) { return std::erfc(x); }, 8, 8},
    {"erfcx", scaled_erfc, 8, 8},
    {"erfinv", inverse_erf, 3.2, 3.2},
    {"erfcinv", inverse_erfc, 3.2, 5.5},
    {"normcdfinv", inverse_normcdf, 3.7, 5.5},
    {"tgamma", gamma, 8, 8},
    {"lgamma", [](Real x, Real) { return std::lgamma(x); }, 3, 3, false, 0, positive, " (x ≥ 0)"},
    {"lgamma", [](Real x, Real) { return std::lgamma(x); }, 12, 8, false, 1, negative, " (x < 0)"},
    {"j0", [](Real x, Real) { return j0l(x); }, 1, 5, false, 1},
    {"j1", [](Real x, Real) { return j1l(x); }, 1, 5, false, 1},
    {"y0", [](Real x, Real) { return x < 0 ? NAN : y0l(x); }, 4, 12, false, 1},
    {"y1", [](Real x, Real) { return x < 0 ? NAN : y1l(x); }, 4, 4, false, 1},
    {"cyl_bessel_i0", [](Real x, Real) { return bessel_i(0, x); }, 5, 5},
    {"cyl_bessel_i1", [](Real x, Real) { return bessel_i(1, x); }, 5, 5},
};

double spacing(Real value, bool is_f32) {
  const int digits = is_f32 ? 24 : 53, least = is_f32 ? -149 : -1074;
  int e = 0;
  std::frexp(value, &e);
  return std::ldexp(1.0, std::max(e - digits, least));
}

template <class T>
Real rounded(Real v) {
  return static_cast<Real>(static_cast<T>(v));
}

template <class T>
std::vector<T> arguments(std::mt19937_64& random) {
  std::vector<T> out = {T(0), T(-0.0), T(1), T(-1), T(0.5), T(-0.5), T(2), T(INFINITY), T(-INFINITY), T(NAN), T(3)};
  if constexpr (sizeof(T) == 4) {
    const char* given = std::getenv("KILN_MATH_STRIDE");
    const uint64_t stride = given ? std::strtoull(given, nullptr, 10) : 16411;
    for (uint64_t bits = random() % stride; bits < uint64_t{1} << 32; bits += stride) {
      const auto word = static_cast<uint32_t>(bits);
      T v;
      std::memcpy(&v, &word, 4);
      out.push_back(v);
    }
  } else {
    std::uniform_real_distribution<double> unit(-1, 1);
    for (int i = 0; i < 100'000; ++i) out.push_back(std::ldexp(unit(random), static_cast<int>(random() % 64) - 40));
    for (int i = 0; i < 20'000; ++i) out.push_back(std::ldexp(unit(random), static_cast<int>(random() % 2000) - 1000));
  }
  return out;
}

class Libdevice : public ::testing::TestWithParam<std::string> {
 protected:
  template <class T>
  double worst(const Device& device, const Row& row, uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<T> x = arguments<T>(random);
    std::vector<T> y = x;
    std::shuffle(y.begin(), y.end(), random);
    if (row.two)  // half of them of like size
      for (size_t i = 0; i < y.size(); i += 2) y[i] = x[i] * static_cast<T>(1 + static_cast<double>(random() % 64) / 8);
    const std::string source = fmt::format(
        "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n\n@triton.jit\n"
        "def apply(x, y, out, n, BLOCK: tl.constexpr):\n"
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    inside = i < n\n"
        "    a = tl.load(x + i, mask=inside)\n    b = tl.load(y + i, mask=inside)\n"
        "    tl.store(out + i, libdevice.{}(a{}), mask=inside)\n",
        row.name, row.two ? ", b" : "");
    auto kernel = Kernel::from_source(source, "libdevice_test.py", "apply");
    EXPECT_TRUE(kernel.ok()) << render(kernel.error());
    if (!kernel.ok()) return INFINITY;
    const DType dtype = sizeof(T) == 4 ? DType::kF32 : DType::kF64;
    const auto n = static_cast<int64_t>(x.size());
    const int64_t shape[] = {n};
    Tensor a = *Tensor::from_host(device, dtype, shape, x.data(), x.size() * sizeof(T)),
           b = *Tensor::from_host(device, dtype, shape, y.data(), y.size() * sizeof(T)),
           out = *Tensor::zeros(device, dtype, shape);
    std::vector<std::optional<Arg>> args = {a, b, out, n, int64_t{1024}};
    const Status launched = kernel->launch({(n + 1023) / 1024, 1, 1}, args);
    EXPECT_TRUE(launched.ok()) << render(launched.error());
    auto bytes = out.to_bytes();
    EXPECT_TRUE(bytes.ok());
    std::vector<T> got(x.size());
    std::memcpy(got.data(), bytes->data(), bytes->size());
    double most = 0;
    size_t where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (row.covers && !row.covers(static_cast<Real>(x[i]))) continue;
      const Real want = row.reference(static_cast<Real>(x[i]), static_cast<Real>(y[i]));
      const Real closest = rounded<T>(want), have = static_cast<Real>(got[i]);
      double off = 0;
      if (std::isnan(closest) || std::isnan(have))
        off = std::isnan(closest) == std::isnan(have) ? 0 : INFINITY;
      else if (std::isinf(closest) || std::isinf(have))
        off = closest == have || std::fabs(std::isinf(closest) ? have : want) > 0.9999L * std::numeric_limits<T>::max()
                  ? 0
                  : INFINITY;
      else
        off =
            static_cast<double>(std::fabs(have - want)) / spacing(std::max(std::fabs(want), row.least), sizeof(T) == 4);
      if (have == 0 && want == 0 && std::signbit(have) != std::signbit(want)) off = INFINITY;
      if (off > most) most = off, where = i;
    }
    std::printf("%-13s %s %s: %.2f ulp at %.9g, %.9g: %.9g\n", row.name, sizeof(T) == 4 ? "f32" : "f64",
                device.name().c_str(), most, static_cast<double>(x[where]), static_cast<double>(y[where]),
                static_cast<double>(got[where]));
    return most;
  }
};

TEST_P(Libdevice, StaysWithinItsBounds) {
  auto device = open_device(GetParam());
  ASSERT_TRUE(device.ok()) << render(device.error());
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (const Row& row : kTable) {
    EXPECT_LE(worst<float>(*device, row, seed), row.f32) << row.name;
    EXPECT_LE(worst<double>(*device, row, seed), row.f64) << row.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Libdevice, ::testing::Values("cpu"), [](const auto& each) {
  std::string out;
  for (char c : each.param)
    if (std::isalnum(static_cast<unsigned char>(c))) out += c;
  return out;
});

/// Bessel functions of any order, to within so much of the larger of the value and 1/16; Y below -1e30 is left out.
TEST_P(Libdevice, BesselFunctionsOfAnyOrder) {
  auto device = open_device(GetParam());
  ASSERT_TRUE(device.ok()) << render(device.error());
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  auto kernel = Kernel::from_source(
      "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n\n@triton.jit\n"
      "def orders(n, x, j, y, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
      "    tl.store(j + i, libdevice.jn(tl.load(n + i), tl.load(x + i)))\n"
      "    tl.store(y + i, libdevice.yn(tl.load(n + i), tl.load(x + i)))\n",
      "libdevice_test.py", "orders");
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  constexpr int64_t kCount = 4096;
  std::uniform_real_distribution<double> unit(-1, 1);
  std::vector<int32_t> n;
  std::vector<double> x = {0.0, INFINITY, -INFINITY, NAN, 1e-300};
  while (std::ssize(n) < kCount) n.push_back(static_cast<int32_t>(random() % 64) - 1);
  while (std::ssize(x) < kCount) x.push_back(std::ldexp(unit(random), static_cast<int>(random() % 24) - 16));
  const int64_t shape[] = {kCount};
  const Tensor orders = *Tensor::from_host(*device, DType::kI32, shape, n.data(), n.size() * 4),
               at = *Tensor::from_host(*device, DType::kF64, shape, x.data(), x.size() * 8),
               j = *Tensor::zeros(*device, DType::kF64, shape), y = *Tensor::zeros(*device, DType::kF64, shape);
  const Status launched =
      kernel->launch({kCount / 256, 1, 1}, std::vector<std::optional<Arg>>{orders, at, j, y, int64_t{256}});
  ASSERT_TRUE(launched.ok()) << render(launched.error());
  std::vector<double> of_j(kCount), of_y(kCount);
  std::memcpy(of_j.data(), j.to_bytes()->data(), of_j.size() * 8);
  std::memcpy(of_y.data(), y.to_bytes()->data(), of_y.size() * 8);
  for (size_t i = 0; i < x.size(); ++i) {
    const std::string where = fmt::format("order {} of {}", n[i], x[i]);
    if (n[i] < 0 || std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(of_j[i]) && std::isnan(of_y[i])) << where;
      continue;
    }
    const double want_j = std::isinf(x[i]) ? 0 : ::jn(n[i], x[i]);
    EXPECT_NEAR(of_j[i], want_j, 2e-13 * std::max(std::fabs(want_j), 0.0625)) << where;
    const double want_y = x[i] < 0 ? NAN : x[i] == INFINITY ? 0 : ::yn(n[i], x[i]);
    if (std::isnan(want_y))
      EXPECT_TRUE(std::isnan(of_y[i])) << where;
    else if (want_y < -1e30)
      EXPECT_LT(of_y[i], -9e29) << where;
    else
      EXPECT_NEAR(of_y[i], want_y, 2e-12 * std::max(std::fabs(want_y), 0.0625)) << where;
  }
}

TEST(LibdeviceTable, IsInTheManual) {
  std::string table = "| function | f32 | f64 |\n|---|--:|--:|\n";
  for (const Row& row : kTable) {
    const auto least = static_cast<double>(row.least);
    table += fmt::format("| {}{}{} | {} | {} |\n", row.name, row.about,
                         least > 0 ? fmt::format(" (below {}: of {})", least, least) : "", row.f32, row.f64);
  }
  kiln::testing::check_docs_table("math.md", "libdevice", table);
}

}  // namespace
}  // namespace kiln::kernels
