#include "runtime/expr/host_scalar.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/tensor/random.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

// Has the sign of the divisor, as Python's % does; std::fmod has that of the dividend.
template <class T>
T python_mod(T a, T b) {
  const T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/// torch's: from the exact remainder.
template <class T>
T floor_div(T a, T b) {
  if (b == 0) return a / b;
  const T r = std::fmod(a, b);
  T q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  // A zero has the sign of the quotient, as torch's has.
  if (q == 0) return std::copysign(T{0}, a / b);
  // q is whole but for the rounding of the division: more than a half above its floor, it was rounded down.
  const T whole = std::floor(q);
  return q - whole > T{0.5} ? whole + 1 : whole;
}
// NaN from either side, as in torch; -0 is below 0.
template <class T>
T larger(T a, T b) {
  if (a == b) return std::signbit(a) ? b : a;
  return a > b || std::isnan(a) ? a : b;
}
template <class T>
T smaller(T a, T b) {
  if (a == b) return std::signbit(a) ? a : b;
  return a < b || std::isnan(a) ? a : b;
}
double gelu(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }
// By zero as kernels do.
int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return a < 0 ? -1 : 0;
  // INT64_MIN // -1 does not fit, and x86 traps on it.
  if (b == -1) return wrap(uint64_t{0} - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
int64_t python_mod(int64_t a, int64_t b) {
  // x86 divides to take a remainder: INT64_MIN % -1 traps, although it is 0.
  const int64_t r = b == -1 || b == 0 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t wrapped_pow(uint64_t base, uint64_t exponent) {
  // By squaring, modulo 2^64, as products of kernels wrap.
  uint64_t r = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) r *= base;
  return wrap(r);
}

template <class T, class E, class F>
void each(const E* x, E* out, size_t n, F f) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<E>(f(static_cast<T>(x[i])));
}
template <class T, class E, class F>
void each(const E* x, const E* y, E* out, size_t n, F f) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<E>(f(static_cast<T>(x[i]), static_cast<T>(y[i])));
}

}  // namespace

#define KILN_UNARY(op, expression) \
  case ExprOp::k##op:              \
    return each<T>(in[0], out, n, [](T x) { return expression; })
#define KILN_BINARY(op, expression) \
  case ExprOp::k##op:               \
    return each<T>(in[0], in[1], out, n, [](T x, T y) { return expression; })

template <class T>
void host_floats(ExprOp op, const double* const* in, double* out, size_t n) {
  switch (op) {
    KILN_BINARY(Add, x + y);
    KILN_BINARY(Sub, x - y);
    KILN_BINARY(Mul, x * y);
    KILN_BINARY(Div, x / y);
    KILN_BINARY(FloorDiv, floor_div(x, y));
    KILN_BINARY(Mod, python_mod(x, y));
    KILN_BINARY(Pow, std::pow(x, y));
    KILN_BINARY(Maximum, larger(x, y));
    KILN_BINARY(Minimum, smaller(x, y));
    KILN_BINARY(Eq, x == y);
    KILN_BINARY(Ne, x != y);
    KILN_BINARY(Lt, x < y);
    KILN_BINARY(Le, x <= y);
    KILN_BINARY(Gt, x > y);
    KILN_BINARY(Ge, x >= y);
    KILN_BINARY(LogicalAnd, x != 0 && y != 0);
    KILN_BINARY(LogicalOr, x != 0 || y != 0);
    KILN_UNARY(LogicalNot, x == 0);
    KILN_UNARY(Neg, -x);
    KILN_UNARY(Abs, std::fabs(x));
    KILN_UNARY(Reciprocal, 1 / x);
    KILN_UNARY(IsNan, std::isnan(x));
    KILN_UNARY(Exp, std::exp(x));
    KILN_UNARY(Exp2, std::exp2(x));
    KILN_UNARY(Expm1, std::expm1(x));
    KILN_UNARY(Log, std::log(x));
    KILN_UNARY(Log2, std::log2(x));
    KILN_UNARY(Log1p, std::log1p(x));
    KILN_UNARY(Sqrt, std::sqrt(x));
    KILN_UNARY(Rsqrt, 1 / std::sqrt(x));
    KILN_UNARY(Sin, std::sin(x));
    KILN_UNARY(Cos, std::cos(x));
    KILN_UNARY(Tanh, std::tanh(x));
    KILN_UNARY(Erf, std::erf(x));
    KILN_UNARY(Sigmoid, 1 / (1 + std::exp(-x)));
    KILN_UNARY(Relu, x < 0 ? T{0} : x);
    KILN_UNARY(Silu, x / (1 + std::exp(-x)));
    KILN_UNARY(Gelu, gelu(x));
    KILN_UNARY(GeluTanh, gelu_tanh(x));
    KILN_UNARY(Floor, std::floor(x));
    KILN_UNARY(Ceil, std::ceil(x));
    KILN_UNARY(Round, std::nearbyint(x));
    KILN_UNARY(Trunc, std::trunc(x));
    case ExprOp::kClamp:
      for (size_t i = 0; i < n; ++i)
        out[i] = static_cast<double>(
            smaller(larger(static_cast<T>(in[0][i]), static_cast<T>(in[1][i])), static_cast<T>(in[2][i])));
      return;
    case ExprOp::kInput:
    case ExprOp::kScalar:
    case ExprOp::kRandomWord:
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor:
    case ExprOp::kBitNot:
    case ExprOp::kShl:
    case ExprOp::kShr:
    case ExprOp::kWhere:
    case ExprOp::kCast:
    case ExprOp::kExpand:
    case ExprOp::kPermute:
    case ExprOp::kReshape:
    case ExprOp::kSlice:
    case ExprOp::kIota:
    case ExprOp::kFull:
    case ExprOp::kTake:
    case ExprOp::kScatterAdd:
    case ExprOp::kPut:
    case ExprOp::kSum:
    case ExprOp::kMax:
    case ExprOp::kMin:
    case ExprOp::kMean:
    case ExprOp::kVar:
    case ExprOp::kArgMax:
    case ExprOp::kArgMin:
    case ExprOp::kCumSum:
    case ExprOp::kCumProd:
    case ExprOp::kCumMax:
    case ExprOp::kCumMin:
    case ExprOp::kSoftmax:
    case ExprOp::kLogSoftmax:
    case ExprOp::kLayerNorm:
    case ExprOp::kRmsNorm:
    case ExprOp::kMatMul:
    case ExprOp::kCall:
      break;
  }
  KILN_UNREACHABLE("{} of floats", name(op));
}
#undef KILN_UNARY
#undef KILN_BINARY

template void host_floats<float>(ExprOp op, const double* const* in, double* out, size_t n);
template void host_floats<double>(ExprOp op, const double* const* in, double* out, size_t n);

void host_ints(ExprOp op, DType dtype, const int64_t* const* in, int64_t* out, size_t n) {
  using U = uint64_t;
  const int64_t *x = in[0], *y = in[1];
  // A uint64 is kept as its bits in an int64_t; every other unsigned type fits there as it is.
  const bool unsigned_wide = dtype == DType::kU64;
  auto less = [unsigned_wide](int64_t a, int64_t b) { return unsigned_wide ? U(a) < U(b) : a < b; };
  auto run = [&](auto f) { each<int64_t>(x, y, out, n, f); };
  auto map = [&](auto f) { each<int64_t>(x, out, n, f); };
  switch (op) {
    case ExprOp::kAdd:
      return run([](int64_t a, int64_t b) { return wrap(U(a) + U(b)); });
    case ExprOp::kSub:
      return run([](int64_t a, int64_t b) { return wrap(U(a) - U(b)); });
    case ExprOp::kMul:
      return run([](int64_t a, int64_t b) { return wrap(U(a) * U(b)); });
    case ExprOp::kFloorDiv:
      if (unsigned_wide) return run([](int64_t a, int64_t b) { return b == 0 ? 0 : wrap(U(a) / U(b)); });
      return run([](int64_t a, int64_t b) { return floor_div(a, b); });
    case ExprOp::kMod:
      if (unsigned_wide) return run([](int64_t a, int64_t b) { return b == 0 ? 0 : wrap(U(a) % U(b)); });
      return run([](int64_t a, int64_t b) { return python_mod(a, b); });
    case ExprOp::kPow:
      if (unsigned_wide) return run([](int64_t a, int64_t b) { return wrapped_pow(U(a), U(b)); });
      return run([](int64_t a, int64_t b) {
        // The whole part of 1 / a^|b|: 0 but for 1 and -1.
        if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? int64_t{1} : a == -1 ? int64_t{-1} : int64_t{0};
        return wrapped_pow(U(a), U(b));
      });
    case ExprOp::kMaximum:
      return run([&](int64_t a, int64_t b) { return less(a, b) ? b : a; });
    case ExprOp::kMinimum:
      return run([&](int64_t a, int64_t b) { return less(b, a) ? b : a; });
    case ExprOp::kClamp:
      for (size_t i = 0; i < n; ++i) {
        const int64_t raised = less(x[i], y[i]) ? y[i] : x[i];
        out[i] = less(in[2][i], raised) ? in[2][i] : raised;
      }
      return;
    case ExprOp::kEq:
      return run([](int64_t a, int64_t b) { return a == b; });
    case ExprOp::kNe:
      return run([](int64_t a, int64_t b) { return a != b; });
    case ExprOp::kLt:
      return run([&](int64_t a, int64_t b) { return less(a, b); });
    case ExprOp::kLe:
      return run([&](int64_t a, int64_t b) { return !less(b, a); });
    case ExprOp::kGt:
      return run([&](int64_t a, int64_t b) { return less(b, a); });
    case ExprOp::kGe:
      return run([&](int64_t a, int64_t b) { return !less(a, b); });
    case ExprOp::kLogicalAnd:
      return run([](int64_t a, int64_t b) { return a != 0 && b != 0; });
    case ExprOp::kLogicalOr:
      return run([](int64_t a, int64_t b) { return a != 0 || b != 0; });
    case ExprOp::kLogicalNot:
      return map([](int64_t a) { return a == 0; });
    case ExprOp::kRandomWord:
      return run([](int64_t place, int64_t key) { return wrap(random_word(U(key), place)); });
    case ExprOp::kBitAnd:
      return run([](int64_t a, int64_t b) { return a & b; });
    case ExprOp::kBitOr:
      return run([](int64_t a, int64_t b) { return a | b; });
    case ExprOp::kBitXor:
      return run([](int64_t a, int64_t b) { return a ^ b; });
    case ExprOp::kBitNot:
      // A bool is kept as 0 or 1, whose ~ is neither.
      if (dtype == DType::kI1) return map([](int64_t a) { return a == 0; });
      return map([](int64_t a) { return ~a; });
    case ExprOp::kShl:
      // C++ leaves shifts by 64 and more undefined. Here all bits go out, and copies of a signed number's sign come in.
      return run([](int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : wrap(U(a) << b); });
    case ExprOp::kShr:
      if (unsigned_wide) return run([](int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : wrap(U(a) >> b); });
      return run([](int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); });
    case ExprOp::kNeg:
      return map([](int64_t a) { return wrap(U(0) - U(a)); });
    case ExprOp::kAbs:
      if (!is_signed(dtype)) return map([](int64_t a) { return a; });
      return map([](int64_t a) { return a < 0 ? wrap(U(0) - U(a)) : a; });
    case ExprOp::kRelu:
      if (!is_signed(dtype)) return map([](int64_t a) { return a; });
      return map([](int64_t a) { return a > 0 ? a : 0; });
    case ExprOp::kIsNan:
      return map([](int64_t) { return 0; });
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kRound:
    case ExprOp::kTrunc:
      return map([](int64_t a) { return a; });
    case ExprOp::kInput:
    case ExprOp::kScalar:
    case ExprOp::kDiv:
    case ExprOp::kReciprocal:
    case ExprOp::kWhere:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kLog1p:
    case ExprOp::kSqrt:
    case ExprOp::kRsqrt:
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kTanh:
    case ExprOp::kErf:
    case ExprOp::kSigmoid:
    case ExprOp::kSilu:
    case ExprOp::kGelu:
    case ExprOp::kGeluTanh:
    case ExprOp::kCast:
    case ExprOp::kExpand:
    case ExprOp::kPermute:
    case ExprOp::kReshape:
    case ExprOp::kSlice:
    case ExprOp::kIota:
    case ExprOp::kFull:
    case ExprOp::kTake:
    case ExprOp::kScatterAdd:
    case ExprOp::kPut:
    case ExprOp::kSum:
    case ExprOp::kMax:
    case ExprOp::kMin:
    case ExprOp::kMean:
    case ExprOp::kVar:
    case ExprOp::kArgMax:
    case ExprOp::kArgMin:
    case ExprOp::kCumSum:
    case ExprOp::kCumProd:
    case ExprOp::kCumMax:
    case ExprOp::kCumMin:
    case ExprOp::kSoftmax:
    case ExprOp::kLogSoftmax:
    case ExprOp::kLayerNorm:
    case ExprOp::kRmsNorm:
    case ExprOp::kMatMul:
    case ExprOp::kCall:
      break;
  }
  KILN_UNREACHABLE("{} of integers", name(op));
}

namespace {

/// The first of the greatest (or least); a NaN is both.
template <class T>
size_t place_of(const T* v, size_t n, bool greatest) {
  size_t best = 0;
  auto is_nan = [](T x) { return x != x; };  // NOLINT(misc-redundant-expression)
  for (size_t i = 1; i < n && !is_nan(v[best]); ++i)
    if (is_nan(v[i]) || (greatest ? v[i] > v[best] : v[i] < v[best])) best = i;
  return best;
}

}  // namespace

double host_reduce(ExprOp op, const double* v, size_t n, double correction) {
  if (op == ExprOp::kArgMax || op == ExprOp::kArgMin) return static_cast<double>(place_of(v, n, op == ExprOp::kArgMax));
  if (op == ExprOp::kMax) return std::accumulate(v, v + n, -double{INFINITY}, larger<double>);
  if (op == ExprOp::kMin) return std::accumulate(v, v + n, double{INFINITY}, smaller<double>);
  const double total = std::accumulate(v, v + n, 0.0), mean = total / static_cast<double>(n);
  if (op == ExprOp::kSum) return total;
  if (op == ExprOp::kMean) return mean;
  KILN_ASSERT(op == ExprOp::kVar, "{} is no reduction", name(op));
  // In two passes: the mean of squares less the square of the mean would cancel.
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += (v[i] - mean) * (v[i] - mean);
  // As in torch: with a correction of n or more the variance is inf or NaN, never negative.
  return squares / std::max(0.0, static_cast<double>(n) - correction);
}

int64_t host_reduce(ExprOp op, const int64_t* v, size_t n) {
  if (op == ExprOp::kArgMax || op == ExprOp::kArgMin)
    return static_cast<int64_t>(place_of(v, n, op == ExprOp::kArgMax));
  if (op == ExprOp::kMax) return *std::max_element(v, v + n);
  if (op == ExprOp::kMin) return *std::min_element(v, v + n);
  KILN_ASSERT(op == ExprOp::kSum, "{} of integers", name(op));
  // Unsigned, since the overflow of signed integers is undefined; the bits are the same.
  uint64_t total = 0;
  for (size_t i = 0; i < n; ++i) total += static_cast<uint64_t>(v[i]);
  return wrap(total);
}

void host_scan(ExprOp op, double* v, size_t n) {
  for (size_t i = 1; i < n; ++i) {
    if (op == ExprOp::kCumMax || op == ExprOp::kCumMin) {  // a NaN stays
      const bool stays = std::isnan(v[i - 1]) || (op == ExprOp::kCumMax ? v[i - 1] > v[i] : v[i - 1] < v[i]);
      if (stays) v[i] = v[i - 1];
    } else {
      v[i] = op == ExprOp::kCumSum ? v[i - 1] + v[i] : v[i - 1] * v[i];
    }
  }
}

void host_scan(ExprOp op, int64_t* v, size_t n) {
  for (size_t i = 1; i < n; ++i) {
    if (op == ExprOp::kCumMax || op == ExprOp::kCumMin) {
      v[i] = op == ExprOp::kCumMax ? std::max(v[i - 1], v[i]) : std::min(v[i - 1], v[i]);
      continue;
    }
    const auto a = static_cast<uint64_t>(v[i - 1]), b = static_cast<uint64_t>(v[i]);
    v[i] = wrap(op == ExprOp::kCumSum ? a + b : a * b);
  }
}

void host_row(ExprOp op, double* v, size_t n, const double* weight, const double* bias, double eps) {
  if (op == ExprOp::kSoftmax || op == ExprOp::kLogSoftmax) {
    // Less the maximum, so that exp does not overflow; the quotient is the same.
    const double high = host_reduce(ExprOp::kMax, v, n, 0);
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += std::exp(v[i] - high);
    for (size_t i = 0; i < n; ++i)
      v[i] = op == ExprOp::kSoftmax ? std::exp(v[i] - high) / total : v[i] - high - std::log(total);
    return;
  }
  KILN_ASSERT(op == ExprOp::kLayerNorm || op == ExprOp::kRmsNorm, "{} works along no row", name(op));
  // An RMS norm is a layer norm around 0.
  const double mean = op == ExprOp::kLayerNorm ? host_reduce(ExprOp::kMean, v, n, 0) : 0;
  double square = 0;
  for (size_t i = 0; i < n; ++i) square += (v[i] - mean) * (v[i] - mean);
  const double scale = 1 / std::sqrt(square / static_cast<double>(n) + eps);
  for (size_t i = 0; i < n; ++i) {
    v[i] = (v[i] - mean) * scale;
    if (weight) v[i] *= weight[i];
    if (bias) v[i] += bias[i];
  }
}

}  // namespace kiln::runtime
