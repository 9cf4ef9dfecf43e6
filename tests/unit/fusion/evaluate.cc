#include "tests/unit/fusion/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "compiler/fusion/infer.h"
#include "kiln/tensor.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::fusion::testing {

namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

/// Half a unit in the last place of 1, and what the hardware's functions add.
double epsilon(DType t) {
  switch (t) {
    case DType::kF64:
      return 1e-14;
    case DType::kF16:
      return 1.0 / 2048;
    case DType::kBF16:
      return 1.0 / 256;
    case DType::kF8E4M3:
    case DType::kF8E4B15:
      return 1.0 / 8;
    case DType::kF8E5M2:
      return 1.0 / 4;
    case DType::kF32:
      return 4e-7;
    case DType::kI1:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return 0;
  }
  return 0;
}

/// The error of what may not fit its type: it is infinite, or not.
constexpr double kNothingIsSaid = std::numeric_limits<double>::infinity();
constexpr double kMostExact = 0x1p52;
double most_finite(DType t) { return float_from_bits(t, max_finite_bits(t)); }

/// As storing and loading it would give: integers wrap, floats keep their value (their rounding is in the bound).
double stored(DType t, double v) {
  if (is_float(t)) return v;
  // A bool is 0 or 1 whatever was stored.
  if (t == DType::kI1) return v != 0;
  if (bits(t) == 64) return std::trunc(v);  // a double cannot say what wraps around 64 bits: see kMostExact
  const double range = std::ldexp(1.0, bits(t));
  // Toward zero, and then the lowest bits, in two's complement.
  double r = std::fmod(std::trunc(v), range);
  if (r < 0) r += range;
  if (is_signed(t) && r >= range / 2) r -= range;
  return r;
}

double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  // The remainder has the sign of the divisor.
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double pick(double a, double b, bool greatest) {
  // A NaN wins over any number, as in torch.
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return greatest ? std::max(a, b) : std::min(a, b);
}

double apply(ExprOp op, DType dtype, const std::vector<double>& x) {
  const bool whole = is_int(dtype);
  auto integer = [](double v) { return static_cast<int64_t>(v); };
  switch (op) {
    case ExprOp::kAdd:
      return dtype == DType::kI1 ? (x[0] != 0 || x[1] != 0) : x[0] + x[1];
    case ExprOp::kSub:
      return x[0] - x[1];
    case ExprOp::kMul:
      return x[0] * x[1];
    case ExprOp::kDiv:
      return x[0] / x[1];
    case ExprOp::kFloorDiv:
      return std::floor(x[0] / x[1]);
    case ExprOp::kMod:
      return floor_mod(x[0], x[1]);
    case ExprOp::kPow:
      return std::pow(x[0], x[1]);
    case ExprOp::kNeg:
      return -x[0];
    case ExprOp::kAbs:
      return std::abs(x[0]);
    case ExprOp::kReciprocal:
      return 1 / x[0];
    case ExprOp::kMaximum:
      return pick(x[0], x[1], true);
    case ExprOp::kMinimum:
      return pick(x[0], x[1], false);
    case ExprOp::kClamp:
      return pick(pick(x[0], x[1], true), x[2], false);
    case ExprOp::kEq:
      return x[0] == x[1];
    case ExprOp::kNe:
      return x[0] != x[1];
    case ExprOp::kLt:
      return x[0] < x[1];
    case ExprOp::kLe:
      return x[0] <= x[1];
    case ExprOp::kGt:
      return x[0] > x[1];
    case ExprOp::kGe:
      return x[0] >= x[1];
    case ExprOp::kLogicalAnd:
      return x[0] != 0 && x[1] != 0;
    case ExprOp::kLogicalOr:
      return x[0] != 0 || x[1] != 0;
    case ExprOp::kLogicalNot:
      return x[0] == 0;
    case ExprOp::kBitAnd:
      return static_cast<double>(integer(x[0]) & integer(x[1]));
    case ExprOp::kBitOr:
      return static_cast<double>(integer(x[0]) | integer(x[1]));
    case ExprOp::kBitXor:
      return static_cast<double>(integer(x[0]) ^ integer(x[1]));
    case ExprOp::kBitNot:
      return dtype == DType::kI1 ? x[0] == 0 : static_cast<double>(~integer(x[0]));
    case ExprOp::kShl:
      return static_cast<double>(static_cast<uint64_t>(integer(x[0])) << integer(x[1]));
    case ExprOp::kShr:
      return static_cast<double>(integer(x[0]) >> integer(x[1]));
    case ExprOp::kWhere:
      return x[0] != 0 ? x[1] : x[2];
    case ExprOp::kIsNan:
      return std::isnan(x[0]);
    case ExprOp::kExp:
      return std::exp(x[0]);
    case ExprOp::kExp2:
      return std::exp2(x[0]);
    case ExprOp::kExpm1:
      return std::expm1(x[0]);
    case ExprOp::kLog:
      return std::log(x[0]);
    case ExprOp::kLog2:
      return std::log2(x[0]);
    case ExprOp::kLog1p:
      return std::log1p(x[0]);
    case ExprOp::kSqrt:
      return std::sqrt(x[0]);
    case ExprOp::kRsqrt:
      return 1 / std::sqrt(x[0]);
    case ExprOp::kSin:
      return std::sin(x[0]);
    case ExprOp::kCos:
      return std::cos(x[0]);
    case ExprOp::kTanh:
      return std::tanh(x[0]);
    case ExprOp::kErf:
      return std::erf(x[0]);
    case ExprOp::kSigmoid:
      return 1 / (1 + std::exp(-x[0]));
    case ExprOp::kRelu:
      return x[0] < 0 ? 0 : x[0];
    case ExprOp::kSilu:
      return x[0] / (1 + std::exp(-x[0]));
    case ExprOp::kGelu:
      return 0.5 * x[0] * (1 + std::erf(x[0] / std::sqrt(2.0)));
    case ExprOp::kGeluTanh:
      return 0.5 * x[0] * (1 + std::tanh(std::sqrt(2 / M_PI) * (x[0] + 0.044715 * x[0] * x[0] * x[0])));
    case ExprOp::kFloor:
      return whole ? x[0] : std::floor(x[0]);
    case ExprOp::kCeil:
      return whole ? x[0] : std::ceil(x[0]);
    case ExprOp::kRound:
      return whole ? x[0] : std::nearbyint(x[0]);
    case ExprOp::kTrunc:
      return whole ? x[0] : std::trunc(x[0]);
    case ExprOp::kCast:
      return x[0];
    case ExprOp::kCall:  // the tests' one function: mix(a, b) = 2 a + b
      return 2 * x[0] + x[1];
    case ExprOp::kRandomWord:  // a double does not hold it
    case ExprOp::kInput:
    case ExprOp::kScalar:
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
      break;
  }
  KILN_UNREACHABLE("{} is not of elements", name(op));
}

/// Row-major coordinates of element i.
Shape coordinates(int64_t i, const Shape& shape) {
  Shape c(shape.size());
  for (size_t d = shape.size(); d-- > 0; i /= shape[d]) c[d] = i % shape[d];
  return c;
}

/// Position of coordinates in a tensor that is broadcast to them.
size_t broadcast_at(const Shape& c, const Shape& shape) {
  int64_t i = 0;
  // Missing leading dimensions are broadcast.
  const size_t lead = c.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + (shape[d] == 1 ? 0 : c[d + lead]);
  return at(i);
}

// Below these the last bits are lost.
constexpr double kLeastNormalHalf = 0x1p-14;
constexpr double kLeastNormalFloat = 0x1p-126;  // of bfloat16 too

/// What a number of this size may lose below the normal range of its dtype: half of the last bit of a half, and all of
/// a float, since products of many factors are also taken in other orders.
double lost_below(DType dtype, double size) {
  if (dtype == DType::kF16) return size < kLeastNormalHalf ? 0x1p-25 : 0;
  return is_float(dtype) && dtype != DType::kF64 && size < kLeastNormalFloat ? kLeastNormalFloat : 0;
}

class Evaluator {
 public:
  Evaluator(const Graph& graph, const std::vector<std::vector<double>>& inputs) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& n = graph.nodes[i];
      Elements e;
      e.shape = n.shape;
      if (n.op == ExprOp::kInput) {
        e.value = inputs[i];
      } else if (n.op == ExprOp::kScalar) {
        e.value = {std::visit([](auto v) { return static_cast<double>(v); }, n.attributes.value)};
      } else {
        e = node(n);
      }
      // What an input gives is exact.
      e.error.resize(e.value.size(), 0);
      // A 64-bit integer beyond what a double says exactly may also have wrapped around.
      const double most = is_float(n.dtype) ? most_finite(n.dtype) : kMostExact;
      for (size_t k = 0; k < e.value.size(); ++k)
        if (std::abs(e.value[k]) + e.error[k] > most)
          e.error[k] = kNothingIsSaid;
        else if (n.op != ExprOp::kInput && (e.value[k] != 0 || e.error[k] > 0))
          e.error[k] += lost_below(n.dtype, std::abs(e.value[k]));
      all_.push_back(std::move(e));
    }
  }

  std::vector<Elements> outputs() const {
    std::vector<Elements> out;
    for (int o : graph_.outputs) out.push_back(all_[at(o)]);
    return out;
  }

 private:
  const Elements& in(const Node& n, size_t i) const { return all_[at(n.inputs[i])]; }

  Elements node(const Node& n) {
    Elements out;
    out.shape = n.shape;
    out.value.resize(at(numel(n.shape)));
    out.error.resize(out.value.size());
    switch (info(n.op).kind) {
      case ExprKind::kPointwise:
      case ExprKind::kCall:
        elements(n, out);
        break;
      case ExprKind::kPlace:
        return place(n);
      case ExprKind::kView:
        view(n, out);
        break;
      case ExprKind::kReduce:
      case ExprKind::kRow:
        rows(n, out);
        break;
      case ExprKind::kMatmul:
        product(n, out);
        break;
      case ExprKind::kInput:
      case ExprKind::kScalar:
        break;
    }
    return out;
  }

  Elements place(const Node& n) {
    Elements out;
    out.shape = n.shape;
    out.value.resize(at(numel(n.shape)));
    out.error.resize(out.value.size());
    for (size_t i = 0; i < out.value.size(); ++i) {
      if (n.op == ExprOp::kIota) {
        out.value[i] = stored(n.dtype, static_cast<double>(i));
        continue;
      }
      if (n.op == ExprOp::kFull) {
        out.value[i] = stored(n.dtype, std::visit([](auto v) { return static_cast<double>(v); }, n.attributes.value));
        continue;
      }
      const Shape c = coordinates(static_cast<int64_t>(i), n.shape);
      const Elements& from = in(n, 0);
      Shape place = c;
      bool inside = true;
      for (size_t k = 0; k < n.attributes.axes.size(); ++k) {
        const size_t axis = at(n.attributes.axes[k]);
        const Elements& places = in(n, k + 1);
        auto p = static_cast<int64_t>(places.value[broadcast_at(c, places.shape)]);
        // A negative place counts from the end.
        if (p < 0) p += from.shape[axis];
        inside = inside && p >= 0 && p < from.shape[axis];
        place[axis] = p;
      }
      const size_t p = inside ? broadcast_at(place, from.shape) : 0;
      // What lies outside is NaN, so that whoever uses it is seen.
      const double missing = is_float(n.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
      out.value[i] = inside ? from.value[p] : missing;
      out.error[i] = inside ? from.error[p] : 0;
    }
    return out;
  }

  void elements(const Node& n, Elements& out) {
    std::vector<const Node*> nodes;
    for (int i : n.inputs) nodes.push_back(&graph_.nodes[at(i)]);
    // The operands meet in one dtype, by the rules of the operation.
    const DType meets = n.op == ExprOp::kCall ? n.dtype : operand_dtype(n.op, nodes);
    std::vector<double> x, e, moved;
    std::array<std::vector<double>, 3> all;
    for (size_t i = 0; i < out.value.size(); ++i) {
      const Shape c = coordinates(static_cast<int64_t>(i), n.shape);
      x.clear(), e.clear();
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const Elements& from = in(n, k);
        const size_t p = broadcast_at(c, from.shape);
        // A condition keeps its own type.
        const bool condition = n.op == ExprOp::kWhere && k == 0;
        x.push_back(condition || n.op == ExprOp::kCast || n.op == ExprOp::kLogicalNot || n.op == ExprOp::kCall
                        ? from.value[p]
                        : stored(meets, from.value[p]));
        e.push_back(from.error[p] +
                    (is_float(meets) ? epsilon(DType::kF32) * std::abs(x.back()) * is_float(nodes[k]->dtype) : 0));
        // A tensor without dimensions is rounded to what it meets.
        if (is_float(meets) && is_float(nodes[k]->dtype) && size_of(meets) < size_of(nodes[k]->dtype))
          e.back() += epsilon(meets) * std::abs(x.back());
        if (graph_.nodes[at(n.inputs[k])].op == ExprOp::kScalar || meets == DType::kF64) e.back() = from.error[p];
        // Of what may be 0 nothing is known as a truth value.
        if (meets == DType::kI1 && is_float(nodes[k]->dtype)) e.back() = std::abs(from.value[p]) <= 4 * e.back();
      }
      auto f = [&](const std::vector<double>& v) { return stored(n.dtype, apply(n.op, meets, v)); };
      out.value[i] = f(x);
      auto off = [&](const std::vector<double>& v) {
        // A quarter, since each operand was moved four times as far as its error.
        const double by = std::abs(f(v) - out.value[i]) / 4;
        return std::isnan(by) ? kNothingIsSaid : by;
      };
      // Each operand as far down and up as the check allows, and at 0, where truth changes; then all of them at once.
      double apart = 0, together = 0;
      moved = x;
      all.fill(x);
      int moving = 0;
      for (size_t k = 0; k < x.size(); ++k) {
        if (e[k] == 0) continue;
        const double far = 4 * e[k];
        const double to[] = {x[k] - far, x[k] + far, std::abs(x[k]) <= far ? 0 : x[k]};
        double most = std::isinf(e[k]) ? e[k] : 0;  // nothing is known of it, nor of what is made of it
        for (size_t way = 0; way < 3; ++way) {
          moved[k] = all[way][k] = to[way];
          if (to[way] != x[k]) most = std::max(most, off(moved));
        }
        moved[k] = x[k];
        apart += most;
        ++moving;
      }
      if (moving > 1)
        for (const std::vector<double>& v : all) together = std::max(together, off(v));
      double bound = epsilon(n.dtype) * std::abs(out.value[i]) + std::max(apart, together);
      // Functions lose digits of their own near their zeros.
      if (is_float(n.dtype) && info(n.op).flop > 1)
        bound += 4 * epsilon(n.dtype == DType::kF64 ? n.dtype : DType::kF32);
      // Equality is between two numbers: either may move onto the other.
      if ((n.op == ExprOp::kEq || n.op == ExprOp::kNe) && std::abs(x[0] - x[1]) <= 4 * (e[0] + e[1]) && e[0] + e[1] > 0)
        bound += 1;
      // What may move by as much as a remainder's divisor may leave any.
      if (n.op == ExprOp::kMod && 8 * e[0] >= std::abs(x[1])) bound += std::abs(x[1]);
      // A float outside of an integer type converts to anything.
      const DType from = nodes[0]->dtype;
      if (n.op == ExprOp::kCast && is_float(from) && is_int(n.dtype) && n.dtype != DType::kI1 &&
          std::trunc(x[0]) != out.value[i])
        bound = kNothingIsSaid;
      out.error[i] = bound;
    }
  }

  void view(const Node& n, Elements& out) {
    const Elements& x = in(n, 0);
    const ExprAttributes& a = n.attributes;
    for (size_t i = 0; i < out.value.size(); ++i) {
      const Shape c = coordinates(static_cast<int64_t>(i), n.shape);
      size_t from = i;
      if (n.op == ExprOp::kExpand) from = broadcast_at(c, x.shape);
      if (n.op == ExprOp::kPermute || n.op == ExprOp::kSlice) {
        Shape source(x.shape.size());
        for (size_t d = 0; d < c.size(); ++d)
          if (n.op == ExprOp::kPermute)
            source[at(a.axes[d])] = c[d];
          else
            source[d] = a.starts[d] + c[d] * a.steps[d];
        from = broadcast_at(source, x.shape);
      }
      out.value[i] = x.value[from];
      out.error[i] = x.error[from];
    }
  }

  void rows(const Node& n, Elements& out) {
    const Elements& x = in(n, 0);
    const std::vector<int>& axes = n.attributes.axes;
    Shape kept, reduced;
    for (size_t d = 0; d < x.shape.size(); ++d)
      // The axes are sorted.
      (std::binary_search(axes.begin(), axes.end(), static_cast<int>(d)) ? reduced : kept).push_back(x.shape[d]);
    const int64_t count = numel(kept), length = numel(reduced);
    auto position = [&](int64_t row, int64_t column) {
      const Shape a = coordinates(row, kept), b = coordinates(column, reduced);
      int64_t i = 0;
      size_t k = 0, r = 0;
      for (size_t d = 0; d < x.shape.size(); ++d)
        i = i * x.shape[d] + (std::binary_search(axes.begin(), axes.end(), static_cast<int>(d)) ? b[r++] : a[k++]);
      return at(i);
    };
    for (int64_t row = 0; row < count; ++row) {
      std::vector<double> v, e;
      for (int64_t c = 0; c < length; ++c) {
        v.push_back(x.value[position(row, c)]);
        e.push_back(x.error[position(row, c)]);
      }
      if (info(n.op).kind == ExprKind::kReduce) {
        auto [value, error] = reduce(n, v, e);
        out.value[at(row)] = value;
        out.error[at(row)] = error;
        continue;
      }
      // A running result has an error at each place.
      if (reduction_of_scan(n.op)) {
        const std::vector<std::pair<double, double>> sums = running(n, v, e);
        for (int64_t c = 0; c < length; ++c)
          std::tie(out.value[position(row, c)], out.error[position(row, c)]) = sums[at(c)];
        continue;
      }
      // Of the largest error in the row, as each element depends on all.
      double most = 0;
      for (size_t k = 0; k < v.size(); ++k)
        most = std::max(most, e[k] + epsilon(n.dtype == DType::kF64 ? n.dtype : DType::kF32) * (std::abs(v[k]) + 1));
      double scale = 1;
      const std::vector<double> y = normalise(n, v, scale);
      for (int64_t c = 0; c < length; ++c) {
        const double size = std::abs(y[at(c)]);
        // A softmax's error is relative to its value.
        double error = n.op == ExprOp::kSoftmax ? 4 * size * most : 4 * most;
        const double weight = n.inputs.size() > 1 ? std::abs(in(n, 1).value[at(c)]) : 1;
        if (n.op == ExprOp::kLayerNorm || n.op == ExprOp::kRmsNorm)
          error = most * scale * weight * 4 * (2 + std::abs(v[at(c)]) * scale) + epsilon(DType::kF32);
        out.value[position(row, c)] = y[at(c)];
        out.error[position(row, c)] = error + 2 * epsilon(n.dtype) * size;
      }
    }
  }

  /// Running sums or products, with their bounds.
  static std::vector<std::pair<double, double>> running(const Node& n, const std::vector<double>& v,
                                                        const std::vector<double>& e) {
    std::vector<std::pair<double, double>> out;
    const bool adds = n.op == ExprOp::kCumSum, floats = is_float(n.dtype);
    const double eps = !floats ? 0 : epsilon(n.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
    const double most = floats ? most_finite(n.dtype == DType::kF64 ? DType::kF64 : DType::kF32) : kNothingIsSaid;
    const bool extreme = n.op == ExprOp::kCumMax || n.op == ExprOp::kCumMin;
    double total = adds ? 0 : 1, size = total, error = 0, part = 1;
    for (size_t i = 0; i < v.size(); ++i) {
      const double x = floats ? v[i] : stored(n.dtype, v[i]);
      if (extreme) {
        const bool first = i == 0, higher = n.op == ExprOp::kCumMax ? x > total : x < total;
        error = first ? e[i] : std::max(error, e[i]);
        // A NaN stays the extreme from there on.
        if (first || (!std::isnan(total) && (std::isnan(x) || higher))) total = x;
        out.emplace_back(stored(n.dtype, total), error + epsilon(n.dtype) * std::abs(total));
        continue;
      }
      if (adds) {
        total += x, error += e[i], size += std::abs(x);
      } else {
        // Errors of a product grow with the factors, those of a sum only add.
        error = std::abs(total) * e[i] + (std::abs(x) + e[i]) * error, total *= x, size = std::abs(total);
        // The largest product of factors up to here: what is infinite once, in any order, stays so.
        part = std::max(1.0, part) * std::abs(x);
        if (part > most) error = kNothingIsSaid;
      }
      // Products of integers leave what a double tells exactly.
      const bool told = floats || std::abs(total) < kMostExact;
      const double bound =
          error + eps * size * (adds ? 1 : static_cast<double>(i + 1)) + epsilon(n.dtype) * std::abs(total);
      out.emplace_back(stored(n.dtype, total), told ? bound : kNothingIsSaid);
    }
    return out;
  }

  std::pair<double, double> reduce(const Node& n, const std::vector<double>& v, const std::vector<double>& e) {
    double total = 0, size = 0, error = 0, most = 0;
    for (size_t i = 0; i < v.size(); ++i)
      total += v[i], size += std::abs(v[i]), error += e[i], most = std::max(most, e[i]);
    const double count = static_cast<double>(v.size()),
                 eps = epsilon(n.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
    const bool floats = is_float(n.dtype);
    if (n.op == ExprOp::kSum) {
      const double value = stored(n.dtype, total);
      return {value, error + (floats ? eps * size + epsilon(n.dtype) * std::abs(value) : 0)};
    }
    if (n.op == ExprOp::kMean)
      return {total / count, (error + eps * size) / count + epsilon(n.dtype) * std::abs(total / count)};
    if (n.op == ExprOp::kVar) {
      const double mean = total / count;
      double sum = 0, slope = 0;
      // A mean that is off moves every difference.
      for (size_t i = 0; i < v.size(); ++i) {
        sum += (v[i] - mean) * (v[i] - mean);
        slope += 2 * std::abs(v[i] - mean) * (e[i] + most) + (e[i] + most) * (e[i] + most) +
                 eps * (1 + size / count) * (1 + size / count);
      }
      const double by = std::max(0.0, count - n.attributes.correction);
      return {sum / by, slope / by + epsilon(n.dtype) * std::abs(sum / by)};
    }
    if (n.op == ExprOp::kArgMax || n.op == ExprOp::kArgMin) {
      const bool greatest = n.op == ExprOp::kArgMax;
      size_t place = 0;
      for (size_t i = 1; i < v.size() && !std::isnan(v[place]); ++i)
        if (std::isnan(v[i]) || (greatest ? v[i] > v[place] : v[i] < v[place])) place = i;
      // Elements that are closer than their errors may be taken for each other.
      double farthest = 0;
      for (size_t i = 0; i < v.size(); ++i)
        if (e[i] + e[place] > 0 && !(std::abs(v[i] - v[place]) > 4 * (e[i] + e[place])))
          farthest = std::max(farthest, std::abs(static_cast<double>(i) - static_cast<double>(place)));
      return {static_cast<double>(place), farthest};
    }
    double best = v[0];
    for (double x : v) best = pick(best, x, n.op == ExprOp::kMax);
    return {stored(n.dtype, best), most + epsilon(n.dtype) * std::abs(best)};
  }

  /// `scale`: what norms multiply a row by.
  std::vector<double> normalise(const Node& n, const std::vector<double>& v, double& scale) {
    std::vector<double> y = v;
    const double count = static_cast<double>(v.size());
    if (n.op == ExprOp::kSoftmax || n.op == ExprOp::kLogSoftmax) {
      double top = -std::numeric_limits<double>::infinity(), total = 0;
      for (double x : v) top = std::max(top, x);
      // Less the largest, so that no exponential overflows.
      for (double x : v) total += std::exp(x - top);
      for (double& x : y) x = n.op == ExprOp::kSoftmax ? std::exp(x - top) / total : x - top - std::log(total);
      return y;
    }
    double mean = 0, squares = 0;
    if (n.op == ExprOp::kLayerNorm)
      for (double x : v) mean += x / count;
    for (double x : v) squares += (x - mean) * (x - mean);
    // eps as the norm has it, under the root.
    scale = 1 / std::sqrt(squares / count + n.attributes.eps);
    for (size_t c = 0; c < v.size(); ++c) {
      y[c] = (v[c] - mean) * scale;
      if (n.inputs.size() > 1) y[c] *= in(n, 1).value[c];
      if (n.inputs.size() > 2) y[c] += in(n, 2).value[c];
    }
    return y;
  }

  void product(const Node& n, Elements& out) {
    const Elements &a = in(n, 0), &b = in(n, 1);
    Shape sa = a.shape, sb = b.shape, so = n.shape;
    // A vector counts as a matrix of one row or one column, whose dimension the result does not have.
    if (sa.size() == 1) sa.insert(sa.begin(), 1), so.insert(so.end() - (sb.size() > 1 ? 1 : 0), 1);
    if (sb.size() == 1) sb.push_back(1), so.push_back(1);
    const int64_t k = sa.back();
    // Columns of the right one as rows: most of the time of these tests goes here.
    const auto depth = static_cast<size_t>(sb[sb.size() - 2]), columns = static_cast<size_t>(sb.back());
    std::vector<double> values(b.value.size()), errors(b.value.size());
    for (size_t p = 0; p < values.size(); ++p) {
      const size_t first = p - p % (depth * columns),
                   to = first + p % columns * depth + p % (depth * columns) / columns;
      values[to] = b.value[p], errors[to] = b.error[p];
    }
    for (size_t i = 0; i < out.value.size(); ++i) {
      Shape c = coordinates(static_cast<int64_t>(i), so);
      const int64_t column = c.back(), row = c[c.size() - 2];
      double sum = 0, error = 0, size = 0;
      Shape ca = c, cb = c;
      ca.back() = 0;
      ca[ca.size() - 2] = row;
      cb.back() = column;
      cb[cb.size() - 2] = 0;
      size_t pa = broadcast_at(ca, sa), pb = broadcast_at(cb, sb);
      pb += pb % columns * (depth - 1);  // from [0, column] of its matrix to where that column begins
      for (int64_t x = 0; x < k; ++x, ++pa, ++pb) {
        const double u = a.value[pa], v = values[pb];
        sum += u * v;
        size += std::abs(u * v);
        // The product rule, with the errors' own product.
        error += std::abs(u) * errors[pb] + std::abs(v) * a.error[pa] + a.error[pa] * errors[pb];
      }
      out.value[i] = stored(n.dtype, sum);
      out.error[i] = error + (is_float(n.dtype) ? epsilon(n.dtype == DType::kF64 ? n.dtype : DType::kF32) * size : 0) +
                     epsilon(n.dtype) * std::abs(sum);
    }
  }

  const Graph& graph_;
  std::vector<Elements> all_;
};

}  // namespace

std::vector<Elements> evaluate(const Graph& graph, const std::vector<std::vector<double>>& inputs) {
  return Evaluator(graph, inputs).outputs();
}

}  // namespace kiln::fusion::testing
