#include "compiler/interp/eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/diag.h"

namespace kiln::interp {

using ir::AttrName;
using ir::OpKind;

namespace {

int64_t sign_extend(uint64_t bits, int width) {
  const int unused = 64 - width;
  return static_cast<int64_t>(bits << unused) >> unused;
}

// --- float formats: how an element is computed with. kNarrow goes through double, which loses nothing that the final
// rounding to at most 11 bits could see (53 >= 2 * 11 + 2); fma needs round to odd besides.

struct F32 {
  using T = float;
  static constexpr uint64_t kSign = uint64_t{1} << 31;
  T load(uint64_t b) const { return std::bit_cast<float>(static_cast<uint32_t>(b)); }
  uint64_t store(T v) const { return v != v ? nan_bits(DType::kF32) : std::bit_cast<uint32_t>(v); }
  T fma(T a, T b, T c) const { return std::fma(a, b, c); }
  template <class Fn>
  T math(Fn fn, T a) const {
    return static_cast<float>(fn(static_cast<double>(a)));
  }
  T pow(T a, T b) const { return static_cast<float>(std::pow(static_cast<double>(a), static_cast<double>(b))); }
  uint64_t sign() const { return kSign; }
};

struct F64 {
  using T = double;
  T load(uint64_t b) const { return std::bit_cast<double>(b); }
  uint64_t store(T v) const { return v != v ? nan_bits(DType::kF64) : std::bit_cast<uint64_t>(v); }
  T fma(T a, T b, T c) const { return std::fma(a, b, c); }
  template <class Fn>
  T math(Fn fn, T a) const {
    return static_cast<double>(fn(static_cast<long double>(a)));
  }
  T pow(T a, T b) const {
    return static_cast<double>(std::pow(static_cast<long double>(a), static_cast<long double>(b)));
  }
  uint64_t sign() const { return uint64_t{1} << 63; }
};

struct Narrow {
  using T = double;
  DType dtype;
  T load(uint64_t b) const { return float_from_bits(dtype, b); }
  uint64_t store(T v) const { return float_to_bits(dtype, v); }
  T fma(T a, T b, T c) const { return add_round_to_odd(a * b, c); }
  template <class Fn>
  T math(Fn fn, T a) const {
    return fn(a);
  }
  T pow(T a, T b) const { return std::pow(a, b); }
  uint64_t sign() const { return uint64_t{1} << (bits(dtype) - 1); }
};

template <class Fn>
void with_float(DType dtype, Fn&& fn) {
  if (dtype == DType::kF32)
    fn(F32{});
  else if (dtype == DType::kF64)
    fn(F64{});
  else
    fn(Narrow{dtype});
}

/// The loops. `in` are the operands' elements.
struct Lanes {
  std::span<const uint64_t* const> in;
  int64_t n;
  uint64_t* out;

  template <class Fn>
  void unary(Fn fn) const {
    const uint64_t* a = in[0];
    for (int64_t i = 0; i < n; ++i) out[i] = fn(a[i]);
  }
  template <class Fn>
  void binary(Fn fn) const {
    const uint64_t *a = in[0], *b = in[1];
    for (int64_t i = 0; i < n; ++i) out[i] = fn(a[i], b[i]);
  }
  template <class Fn>
  void ternary(Fn fn) const {
    const uint64_t *a = in[0], *b = in[1], *c = in[2];
    for (int64_t i = 0; i < n; ++i) out[i] = fn(a[i], b[i], c[i]);
  }
};

template <class T>
T min_max(T a, T b, bool want_max, bool propagate) {
  if (std::isnan(a) || std::isnan(b)) {
    if (propagate || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) != want_max ? a : b;  // differ for zeros alone
  return (a < b) != want_max ? a : b;
}

void float_op(const ir::Op& op, const Lanes& lanes) {
  const bool propagate = op.find_word<ir::Nan>() == ir::Nan::kPropagate;
  with_float(op.result()->type.dtype, [&](auto f) {
    using T = decltype(f)::T;
    auto unary = [&](auto fn) { lanes.unary([&](uint64_t a) { return f.store(fn(f.load(a))); }); };
    auto binary = [&](auto fn) {
      lanes.binary([&](uint64_t a, uint64_t b) { return f.store(fn(f.load(a), f.load(b))); });
    };
    auto math = [&](auto fn) { unary([&](T a) { return f.math(fn, a); }); };
    switch (op.kind) {
      case OpKind::kAdd:
        return binary([](T a, T b) { return a + b; });
      case OpKind::kSub:
        return binary([](T a, T b) { return a - b; });
      case OpKind::kMul:
        return binary([](T a, T b) { return a * b; });
      case OpKind::kDiv:
      case OpKind::kDivRn:
        return binary([](T a, T b) { return a / b; });
      case OpKind::kRem:
        return binary([](T a, T b) { return std::fmod(a, b); });
      // The sign bit alone, also of a NaN.
      case OpKind::kNeg:
        return lanes.unary([&](uint64_t a) { return a ^ f.sign(); });
      case OpKind::kAbs:
        return lanes.unary([&](uint64_t a) { return a & ~f.sign(); });
      case OpKind::kMin:
        return binary([&](T a, T b) { return min_max(a, b, false, propagate); });
      case OpKind::kMax:
        return binary([&](T a, T b) { return min_max(a, b, true, propagate); });
      case OpKind::kFma:
        return lanes.ternary(
            [&](uint64_t a, uint64_t b, uint64_t c) { return f.store(f.fma(f.load(a), f.load(b), f.load(c))); });
      case OpKind::kExp:
        return math([](auto a) { return std::exp(a); });
      case OpKind::kExp2:
        return math([](auto a) { return std::exp2(a); });
      case OpKind::kExpm1:
        return math([](auto a) { return std::expm1(a); });
      case OpKind::kLog:
        return math([](auto a) { return std::log(a); });
      case OpKind::kLog2:
        return math([](auto a) { return std::log2(a); });
      case OpKind::kLog1p:
        return math([](auto a) { return std::log1p(a); });
      case OpKind::kSin:
        return math([](auto a) { return std::sin(a); });
      case OpKind::kCos:
        return math([](auto a) { return std::cos(a); });
      case OpKind::kTanh:
        return math([](auto a) { return std::tanh(a); });
      case OpKind::kErf:
        return math([](auto a) { return std::erf(a); });
      case OpKind::kPow:
        return binary([&](T a, T b) { return f.pow(a, b); });
      case OpKind::kSqrt:
      case OpKind::kSqrtRn:
        return unary([](T a) { return std::sqrt(a); });
      case OpKind::kRsqrt:
        return math([](auto a) { return 1 / std::sqrt(a); });
      case OpKind::kFloor:
        return unary([](T a) { return std::floor(a); });
      case OpKind::kCeil:
        return unary([](T a) { return std::ceil(a); });
      case OpKind::kTrunc:
        return unary([](T a) { return std::trunc(a); });
      case OpKind::kRint:
        return unary([](T a) { return std::nearbyint(a); });
      default:
        KILN_UNREACHABLE("{} on floats", info(op.kind).mnemonic);
    }
  });
}

uint64_t multiply_high(uint64_t a, uint64_t b, int width, bool is_signed) {
  using U = unsigned __int128;
  if (is_signed) {
    const __int128 product = static_cast<__int128>(sign_extend(a, width)) * sign_extend(b, width);
    return static_cast<uint64_t>(product >> width) & element_mask(width);
  }
  return static_cast<uint64_t>(static_cast<U>(a) * b >> width) & element_mask(width);
}

void int_op(const ir::Op& op, const Lanes& lanes) {
  const ir::Type& type = op.result()->type;
  const int width = type.element_bits();
  const bool is_signed = kiln::is_signed(type.dtype);
  const uint64_t mask = element_mask(width);
  // fn on sign- or zero-extended numbers; the result is cut to the width.
  auto signed_or_not = [&](auto fn) {
    if (is_signed)
      lanes.binary([&](uint64_t a, uint64_t b) {
        return static_cast<uint64_t>(fn(sign_extend(a, width), sign_extend(b, width))) & mask;
      });
    else
      lanes.binary([&](uint64_t a, uint64_t b) { return fn(a, b) & mask; });
  };
  switch (op.kind) {
    case OpKind::kAdd:
      return lanes.binary([&](uint64_t a, uint64_t b) { return (a + b) & mask; });
    case OpKind::kSub:
      return lanes.binary([&](uint64_t a, uint64_t b) { return (a - b) & mask; });
    case OpKind::kMul:
      return lanes.binary([&](uint64_t a, uint64_t b) { return (a * b) & mask; });
    case OpKind::kDiv:
      return signed_or_not([](auto a, auto b) -> decltype(a) {
        if (b == 0) return 0;
        if (b == static_cast<decltype(b)>(-1) && std::is_signed_v<decltype(a)>)
          return static_cast<decltype(a)>(0 - static_cast<uint64_t>(a));
        return a / b;
      });
    case OpKind::kRem:
      return signed_or_not([](auto a, auto b) -> decltype(a) {
        if (b == 0 || (b == static_cast<decltype(b)>(-1) && std::is_signed_v<decltype(a)>)) return 0;
        return a % b;
      });
    case OpKind::kNeg:
      return lanes.unary([&](uint64_t a) { return (0 - a) & mask; });
    case OpKind::kAbs:
      return lanes.unary([&](uint64_t a) { return is_signed && sign_extend(a, width) < 0 ? (0 - a) & mask : a; });
    case OpKind::kMin:
      return signed_or_not([](auto a, auto b) { return std::min(a, b); });
    case OpKind::kMax:
      return signed_or_not([](auto a, auto b) { return std::max(a, b); });
    case OpKind::kAnd:
      return lanes.binary([](uint64_t a, uint64_t b) { return a & b; });
    case OpKind::kOr:
      return lanes.binary([](uint64_t a, uint64_t b) { return a | b; });
    case OpKind::kXor:
      return lanes.binary([](uint64_t a, uint64_t b) { return a ^ b; });
    case OpKind::kShl:
      return lanes.binary(
          [&](uint64_t a, uint64_t b) { return b >= static_cast<uint64_t>(width) ? 0 : (a << b) & mask; });
    case OpKind::kShr:
      return lanes.binary([&](uint64_t a, uint64_t b) -> uint64_t {
        const uint64_t amount = std::min<uint64_t>(b, 63);
        if (is_signed) return static_cast<uint64_t>(sign_extend(a, width) >> amount) & mask;
        return b >= static_cast<uint64_t>(width) ? 0 : a >> amount;
      });
    case OpKind::kMulHi:
      return lanes.binary([&](uint64_t a, uint64_t b) { return multiply_high(a, b, width, is_signed); });
    default:
      KILN_UNREACHABLE("{} on integers", info(op.kind).mnemonic);
  }
}

template <class T>
using Comparison = bool (*)(T, T);

/// The predicate as a function on numbers; for floats a NaN makes all but ne false by C's own rules.
template <class T>
Comparison<T> comparison(ir::Predicate predicate) {
  switch (predicate) {
    case ir::Predicate::kEq:
      return [](T a, T b) { return a == b; };
    case ir::Predicate::kNe:
      return [](T a, T b) { return a != b; };
    case ir::Predicate::kLt:
      return [](T a, T b) { return a < b; };
    case ir::Predicate::kLe:
      return [](T a, T b) { return a <= b; };
    case ir::Predicate::kGt:
      return [](T a, T b) { return a > b; };
    case ir::Predicate::kGe:
      return [](T a, T b) { return a >= b; };
  }
  KILN_UNREACHABLE("predicate");
}

void compare(const ir::Op& op, const Lanes& lanes) {
  const ir::Type& type = op.operand(0)->type;
  const auto predicate = op.word<ir::Predicate>();
  if (type.is_float()) {
    with_float(type.dtype, [&](auto f) {
      const auto holds = comparison<typename decltype(f)::T>(predicate);
      lanes.binary([&](uint64_t a, uint64_t b) { return static_cast<uint64_t>(holds(f.load(a), f.load(b))); });
    });
  } else if (!type.pointer && is_signed(type.dtype)) {
    const int width = type.element_bits();
    const auto holds = comparison<int64_t>(predicate);
    lanes.binary([&](uint64_t a, uint64_t b) {
      return static_cast<uint64_t>(holds(sign_extend(a, width), sign_extend(b, width)));
    });
  } else {
    const auto holds = comparison<uint64_t>(predicate);
    lanes.binary([&](uint64_t a, uint64_t b) { return static_cast<uint64_t>(holds(a, b)); });
  }
}

uint64_t float_to_int(double v, DType to) {
  if (to == DType::kI1) return v != 0;
  if (std::isnan(v)) return 0;
  const int width = std::max(bits(to), 32);
  uint64_t result;
  if (is_signed(to)) {
    const double limit = std::ldexp(1.0, width - 1);
    const int64_t highest = static_cast<int64_t>(element_mask(width - 1));
    result = static_cast<uint64_t>(v >= limit ? highest : v < -limit ? -highest - 1 : static_cast<int64_t>(v));
  } else {
    result = v >= std::ldexp(1.0, width) ? element_mask(width) : v <= 0 ? 0 : static_cast<uint64_t>(v);
  }
  return result & element_mask(bits(to));
}

void add_pointer(const ir::Op& op, const Lanes& lanes) {
  const DType offset = op.operand(1)->type.dtype;
  const uint64_t size = static_cast<uint64_t>(size_of(op.result()->type.dtype));
  lanes.binary([&](uint64_t p, uint64_t o) { return p + static_cast<uint64_t>(int_value(offset, o)) * size; });
}

}  // namespace

int64_t int_value(DType dtype, uint64_t bits) {
  return is_signed(dtype) ? sign_extend(bits, kiln::bits(dtype)) : static_cast<int64_t>(bits);
}

double number_value(DType dtype, uint64_t bits) {
  if (is_float(dtype)) return float_from_bits(dtype, bits);
  return is_signed(dtype) ? static_cast<double>(int_value(dtype, bits)) : static_cast<double>(bits);
}

uint64_t convert(DType from, DType to, uint64_t bits, Rounding rounding) {
  if (from == to) return bits;
  if (is_float(from)) {
    const double v = float_from_bits(from, bits);
    return is_float(to) ? float_to_bits(to, v, rounding) : float_to_int(v, to);
  }
  if (is_float(to))
    return is_signed(from) ? float_bits_from_int(to, int_value(from, bits)) : float_bits_from_uint(to, bits);
  if (to == DType::kI1) return bits != 0;
  return static_cast<uint64_t>(int_value(from, bits)) & element_mask(kiln::bits(to));
}

uint64_t constant_bits(const ir::Op& op) {
  const ir::Type& type = op.result()->type;
  const ir::Attr& value = *op.find(AttrName::kValue);
  if (type.is_float()) return float_to_bits(type.dtype, std::get<double>(value));
  return static_cast<uint64_t>(std::get<int64_t>(value)) & element_mask(type.element_bits());
}

void eval_lanes(const ir::Op& op, std::span<const uint64_t* const> operands, int64_t n, uint64_t* out) {
  const Lanes lanes{operands, n, out};
  switch (op.kind) {
#define KILN_NUMBER_OP(e, ...) \
  case OpKind::k##e:           \
    return op.result()->type.is_float() ? float_op(op, lanes) : int_op(op, lanes);
#define KILN_BITS_OP(e, ...) \
  case OpKind::k##e:         \
    return int_op(op, lanes);
#define KILN_FLOAT_OP(e, ...) \
  case OpKind::k##e:          \
    return float_op(op, lanes);
#define KILN_MATH_OP KILN_FLOAT_OP
#define KILN_MIXED_OP(...)
#define KILN_OP(e, ...) case OpKind::k##e:
#include "compiler/ir/ops.def"
    break;
    case OpKind::kCmp:
      return compare(op, lanes);
    case OpKind::kSelect:
      return lanes.ternary([](uint64_t c, uint64_t a, uint64_t b) { return c ? a : b; });
    case OpKind::kCast: {
      const DType from = op.operand(0)->type.dtype, to = op.result()->type.dtype;
      const Rounding rounding =
          op.find_word<ir::Rounding>() == ir::Rounding::kTowardZero ? Rounding::kTowardZero : Rounding::kNearestEven;
      return lanes.unary([&](uint64_t a) { return convert(from, to, a, rounding); });
    }
    case OpKind::kBitcast:
    case OpKind::kIntToPtr:
    case OpKind::kPtrToInt:
    case OpKind::kHint:
      return lanes.unary([](uint64_t a) { return a; });
    case OpKind::kAddPtr:
      return add_pointer(op, lanes);
  }
  KILN_UNREACHABLE("{} has no scalar meaning", info(op.kind).mnemonic);
}

uint64_t eval(const ir::Op& op, std::span<const uint64_t> operands) {
  const uint64_t* pointers[3] = {};
  KILN_ASSERT(operands.size() <= 3);
  for (size_t i = 0; i < operands.size(); ++i) pointers[i] = &operands[i];
  uint64_t out = 0;
  eval_lanes(op, std::span<const uint64_t* const>(pointers, operands.size()), 1, &out);
  return out;
}

void eval_fma(const ir::Op& product, const uint64_t* x, const uint64_t* y, const uint64_t* addend, int64_t n,
              uint64_t* out) {
  ir::Op fma;
  fma.kind = OpKind::kFma;
  fma.operands = {product.operand(0), product.operand(1), product.result()};
  fma.results = product.results;
  const uint64_t* const in[] = {x, y, addend};
  eval_lanes(fma, in, n, out);
}

int64_t source_element(const ir::Op& op, int64_t position, std::span<const uint64_t> others) {
  switch (op.kind) {
    case OpKind::kGather: {
      const ir::Shape &from = op.operand(0)->type.shape, &to = op.result()->type.shape;
      const int axis = static_cast<int>(op.int_attr(AttrName::kAxis));
      int64_t inner = 1;
      for (int d = axis + 1; d < to.rank; ++d) inner *= to[d];
      const auto index = static_cast<uint64_t>(int_value(op.operand(1)->type.dtype, others[0]));
      const auto along = static_cast<int64_t>(std::min(index, static_cast<uint64_t>(from[axis] - 1)));
      return (position / (inner * to[axis]) * from[axis] + along) * inner + position % inner;
    }
    default:
      KILN_UNREACHABLE("{} is no gather op", ir::info(op.kind).mnemonic);
  }
}

int64_t target_element(const ir::Op& op, int64_t position, uint64_t index) {
  const ir::Shape& shape = op.result()->type.shape;
  const int axis = static_cast<int>(op.int_attr(AttrName::kAxis));
  int64_t inner = 1;
  for (int d = axis + 1; d < shape.rank; ++d) inner *= shape[d];
  const int64_t along = int_value(op.operand(1)->type.dtype, index);
  if (along < 0 || along >= shape[axis]) return -1;
  return (position / (inner * shape[axis]) * shape[axis] + along) * inner + position % inner;
}

}  // namespace kiln::interp
