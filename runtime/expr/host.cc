#include "runtime/expr/host.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/fusion/infer.h"
#include "kiln/runtime.h"
#include "runtime/expr/host_error.h"
#include "runtime/expr/host_scalar.h"
#include "runtime/tensor/convert.h"
#include "support/diag.h"
#include "support/knobs.h"

namespace kiln::runtime {

namespace {

using fusion::Node;
using fusion::Shape;

size_t count(const Shape& shape) { return static_cast<size_t>(fusion::numel(shape)); }

/// Elements of row-major `values` of shape `from` as seen through strides of `shape`.
template <class T>
std::vector<T> gathered(const std::vector<T>& values, const Shape& shape, const Shape& strides, int64_t offset) {
  std::vector<T> out;
  out.reserve(count(shape));
  if (count(shape) == 0) return out;
  Shape at(shape.size(), 0);
  int64_t position = offset;
  for (;;) {
    out.push_back(values[static_cast<size_t>(position)]);
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == shape[d - 1]) {
      position -= (shape[d - 1] - 1) * strides[d - 1];
      at[--d] = 0;
    }
    if (d == 0) return out;
    position += strides[d - 1];
  }
}

HostArray seen_through(const HostArray& x, Shape shape, const Shape& strides, int64_t offset) {
  HostArray out{x.dtype, std::move(shape), {}, {}};
  if (x.is_float())
    out.floats = gathered(x.floats, out.shape, strides, offset);
  else
    out.ints = gathered(x.ints, out.shape, strides, offset);
  if (!x.error.empty()) out.error = gathered(x.error, out.shape, strides, offset);
  return out;
}

HostArray broadcast(HostArray x, const Shape& shape) {
  if (x.shape == shape) return x;
  Shape own = fusion::row_major(x.shape), strides(shape.size(), 0);
  const size_t lead = shape.size() - x.shape.size();
  for (size_t d = lead; d < shape.size(); ++d) strides[d] = x.shape[d - lead] == 1 ? 0 : own[d - lead];
  return seen_through(x, shape, strides, 0);
}

/// Through the bits of the dtype and back: rounds floats, wraps integers.
template <class T>
void settle(std::vector<T>& values, DType dtype) {
  constexpr DType kHere = std::is_same_v<T, double> ? DType::kF64 : DType::kI64;
  if (dtype == kHere) return;
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(size_of(dtype)));
  const auto n = static_cast<int64_t>(values.size());
  convert_elements(kHere, values.data(), dtype, bytes.data(), n);
  convert_elements(dtype, bytes.data(), kHere, values.data(), n);
}

/// As another dtype, where integers become floats, floats are cut to integers, and bool is "other than 0".
HostArray converted(HostArray x, DType to, bool round_floats) {
  if (x.is_float() && is_float(to)) {
    if (round_floats && x.dtype != to) settle(x.floats, to);
  } else if (x.is_float()) {
    std::vector<std::byte> bytes(x.floats.size() * static_cast<size_t>(size_of(to)));
    x.ints.resize(x.floats.size());
    const auto n = static_cast<int64_t>(x.ints.size());
    convert_elements(DType::kF64, x.floats.data(), to, bytes.data(), n);
    convert_elements(to, bytes.data(), DType::kI64, x.ints.data(), n);
    x.floats.clear();
    x.error.clear();
  } else if (is_float(to)) {
    x.floats.resize(x.ints.size());
    const auto n = static_cast<int64_t>(x.ints.size());
    const DType from = x.dtype == DType::kU64 ? x.dtype : DType::kI64, by = round_floats ? to : DType::kF64;
    std::vector<std::byte> bytes(x.ints.size() * static_cast<size_t>(size_of(by)));
    convert_elements(from, x.ints.data(), by, bytes.data(), n);
    convert_elements(by, bytes.data(), DType::kF64, x.floats.data(), n);
    x.ints.clear();
  } else if (x.dtype != to) {
    settle(x.ints, to);
  }
  x.dtype = to;
  return x;
}

/// Functions that no rule of rounding fixes: a kernel computes them, with the bits that larger tensors get.
constexpr ExprOp kFunctions[] = {ExprOp::kExp,  ExprOp::kExp2,  ExprOp::kExpm1,    ExprOp::kLog,
                                 ExprOp::kLog2, ExprOp::kLog1p, ExprOp::kSin,      ExprOp::kCos,
                                 ExprOp::kTanh, ExprOp::kErf,   ExprOp::kSigmoid,  ExprOp::kSilu,
                                 ExprOp::kGelu, ExprOp::kRsqrt, ExprOp::kGeluTanh, ExprOp::kPow};

/// Elements that such a kernel takes at a time: one kernel per function and dtype, whatever the shape.
constexpr int64_t kFunctionElements = 1024;

/// Whether its value depends on the order of additions, which is the kernel's.
bool adds_up(const ExprNode& n) {
  const ExprOp op = n.node.op;
  const ExprKind kind = info(op).kind;
  const bool sums = op == ExprOp::kSum || op == ExprOp::kMean || op == ExprOp::kVar || op == ExprOp::kScatterAdd ||
                    kind == ExprKind::kRow || kind == ExprKind::kMatmul;
  return sums && is_float(n.node.dtype) && count(n.operands[0]->node.shape) > 0 && count(n.node.shape) > 0;
}

class Evaluation {
 public:
  Evaluation(const ExprWalk& walk, bool with_error)
      : walk_(walk), with_error_(with_error), rounds_each_(!with_error || knob_on(Knob::kExact)) {}

  Result<HostArray> run() {
    std::vector<int> uses(walk_.order.size(), 0);
    for (const ExprNode* n : walk_.order)
      if (n->is_pending())
        for (const auto& operand : n->operands) ++uses[static_cast<size_t>(operand->position)];
    std::vector<HostArray> arrays(walk_.order.size());
    for (size_t i = 0; i < walk_.order.size(); ++i) {
      const ExprNode& n = *walk_.order[i];
      std::vector<HostArray> operands;
      if (n.is_pending())
        for (const auto& operand : n.operands) {
          auto from = static_cast<size_t>(operand->position);
          // Its last user gets the array itself, without a copy.
          operands.push_back(--uses[from] == 0 ? std::move(arrays[from]) : arrays[from]);
        }
      KILN_TRY(arrays[i], value(n, operands));
      const ExprKind kind = info(n.node.op).kind;
      // What only moves elements rounds nothing, and would else be charged an error.
      const bool copies = kind == ExprKind::kView || (kind == ExprKind::kPlace && n.node.op != ExprOp::kScatterAdd);
      const bool computes = n.is_pending() && !copies;
      if (!computes || !arrays[i].is_float()) continue;
      if (rounds_each_) settle(arrays[i].floats, arrays[i].dtype);
      if (with_error_) add_rounding(arrays[i]);
    }
    return std::move(arrays.back());
  }

 private:
  Result<HostArray> value(const ExprNode& n, std::vector<HostArray>& in) {
    if (n.value) return leaf(n.value);
    const ExprKind kind = info(n.node.op).kind;
    const bool rounds =
        n.node.op == ExprOp::kCast || kind == ExprKind::kReduce || kind == ExprKind::kRow || kind == ExprKind::kMatmul;
    for (size_t i = 0; i < in.size() && rounds && !rounds_each_; ++i)
      if (in[i].is_float() && !n.operands[i]->is_scalar()) settle(in[i].floats, in[i].dtype);
    if (n.is_pending() && !with_error_ && adds_up(n)) {
      auto out = whole_by_kernel(n, in);
      // A kernel that cannot be (of types, of places) leaves the work to this code.
      if (out.ok() || out.error().kind != ErrorKind::kUnsupported) return out;
    }
    switch (kind) {
      case ExprKind::kInput:
        break;
      case ExprKind::kScalar:
        return scalar(n.node);
      case ExprKind::kView:
        return view(n.node, in[0]);
      case ExprKind::kPlace:
        if (n.node.op == ExprOp::kScatterAdd) return scatter_add(n.node, in);
        if (n.node.op == ExprOp::kFull) return full(n.node);
        if (n.node.op == ExprOp::kPut)
          return error(ErrorKind::kUnsupported, "a put is run by run_put(), into a tensor");
        return n.node.op == ExprOp::kIota ? iota(n.node) : take(n.node, in);
      case ExprKind::kPointwise:
        return pointwise(n, in);
      case ExprKind::kReduce:
        return reduce(n.node, std::move(in[0]));
      case ExprKind::kRow:
        return row(n.node, in);
      case ExprKind::kMatmul:
        return matmul(n.node, in[0], in[1]);
      case ExprKind::kCall:
        return call(n, in);
    }
    KILN_UNREACHABLE("an input without a tensor");
  }

  static Result<HostArray> leaf(const Tensor& t) {
    HostArray out{t.dtype(), {t.shape().begin(), t.shape().end()}, {}, {}};
    KILN_TRY(std::vector<std::byte> bytes, t.to_bytes());
    if (out.is_float()) {
      out.floats.resize(count(out.shape));
      convert_elements(t.dtype(), bytes.data(), DType::kF64, out.floats.data(), t.numel());
    } else {
      out.ints.resize(count(out.shape));
      convert_elements(t.dtype(), bytes.data(), DType::kI64, out.ints.data(), t.numel());
    }
    return out;
  }

  static HostArray scalar(const Node& n) {
    const auto& v = n.attributes.value;
    if (const double* d = std::get_if<double>(&v)) return {DType::kF64, {}, {*d}, {}};
    const bool* b = std::get_if<bool>(&v);
    return {b ? DType::kI1 : DType::kI64, {}, {}, {b ? int64_t{*b} : std::get<int64_t>(v)}};
  }

  static HostArray view(const Node& n, HostArray& x) {
    const ExprAttributes& a = n.attributes;
    const Shape own = fusion::row_major(x.shape);
    if (n.op == ExprOp::kExpand) return broadcast(std::move(x), n.shape);
    if (n.op == ExprOp::kReshape) {
      x.shape = n.shape;
      return std::move(x);
    }
    Shape strides;
    int64_t offset = 0;
    if (n.op == ExprOp::kPermute) {
      for (int d : a.axes) strides.push_back(own[static_cast<size_t>(d)]);
    } else {
      KILN_ASSERT(n.op == ExprOp::kSlice, "{} is no view", name(n.op));
      for (size_t d = 0; d < own.size(); ++d) {
        strides.push_back(own[d] * a.steps[d]);
        offset += a.starts[d] * own[d];
      }
    }
    return seen_through(x, n.shape, strides, offset);
  }

  static HostArray iota(const Node& n) {
    HostArray out{n.dtype, n.shape, {}, {}};
    out.ints.resize(count(n.shape));
    std::iota(out.ints.begin(), out.ints.end(), int64_t{0});
    settle(out.ints, n.dtype);
    return out;
  }

  static HostArray full(const Node& n) {
    HostArray out = number(n.attributes.value, n.dtype);  // the constant that a kernel has
    out.shape = n.shape;
    if (out.is_float())
      out.floats.resize(count(n.shape), out.floats[0]);
    else
      out.ints.resize(count(n.shape), out.ints[0]);
    return out;
  }

  static HostArray take(const Node& n, std::vector<HostArray>& in) {
    const ExprAttributes& a = n.attributes;
    HostArray& x = in[0];
    Shape strides = fusion::row_major(x.shape);
    std::vector<int64_t> from(count(n.shape), 0);
    // Along the dimensions without places first, as a view would read them.
    Shape at_rest(n.shape.size(), 0);
    for (size_t d = 0; d < x.shape.size(); ++d) {
      const bool looked_up = std::find(a.axes.begin(), a.axes.end(), static_cast<int>(d)) != a.axes.end();
      if (!looked_up && x.shape[d] != 1) at_rest[d] = strides[d];
    }
    Shape place(n.shape.size(), 0);
    for (int64_t& f : from) {
      for (size_t d = 0; d < place.size(); ++d) f += place[d] * at_rest[d];
      for (size_t d = place.size(); d-- > 0;) {
        if (++place[d] < n.shape[d]) break;
        place[d] = 0;
      }
    }
    for (size_t k = 0; k < a.axes.size(); ++k) {
      const auto axis = static_cast<size_t>(a.axes[k]);
      const HostArray places = broadcast(std::move(in[k + 1]), n.shape);
      for (size_t i = 0; i < from.size(); ++i) {
        int64_t p = places.ints[i];
        if (p < 0 && !a.any_outside) p += x.shape[axis];
        from[i] = from[i] < 0 || p < 0 || p >= x.shape[axis] ? -1 : from[i] + p * strides[axis];
        // -1 marks what is outside for good: a later axis must not bring it back.
      }
    }
    HostArray out{n.dtype, n.shape, {}, {}};
    auto pick = [&](const auto& values, auto& to, auto missing) {
      to.reserve(from.size());
      for (int64_t f : from) to.push_back(f < 0 ? missing : values[static_cast<size_t>(f)]);
    };
    if (x.is_float())
      pick(x.floats, out.floats, a.any_outside ? 0.0 : std::numeric_limits<double>::quiet_NaN());
    else
      pick(x.ints, out.ints, int64_t{0});
    if (!x.error.empty()) pick(x.error, out.error, 0.0);
    return out;
  }

  HostArray scatter_add(const Node& n, std::vector<HostArray>& in) const {
    const ExprAttributes& a = n.attributes;
    const HostArray& x = in[0];
    const Shape strides = fusion::row_major(n.shape);
    std::vector<int64_t> to(count(x.shape), 0);
    Shape at(x.shape.size(), 0);
    for (int64_t& t : to) {
      for (size_t d = 0; d < at.size(); ++d)
        if (n.shape[d] != 1 && std::find(a.axes.begin(), a.axes.end(), static_cast<int>(d)) == a.axes.end())
          t += at[d] * strides[d];
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < x.shape[d]) break;
        at[d] = 0;
      }
    }
    for (size_t k = 0; k < a.axes.size(); ++k) {
      const auto axis = static_cast<size_t>(a.axes[k]);
      const HostArray places = broadcast(std::move(in[k + 1]), x.shape);
      for (size_t i = 0; i < to.size(); ++i) {
        int64_t p = places.ints[i];
        if (p < 0 && !a.any_outside) p += n.shape[axis];
        to[i] = to[i] < 0 || p < 0 || p >= n.shape[axis] ? -1 : to[i] + p * strides[axis];
      }
    }
    HostArray out{n.dtype, n.shape, std::vector<double>(count(n.shape)), {}};
    if (with_error_) out.error.resize(out.floats.size());
    // As a sum of halves and float32 rounds: by float32 of each step at most.
    const double step = n.dtype == DType::kF64 ? 0x1p-53 : 0x1p-24;
    std::vector<int64_t> terms(out.floats.size());
    std::vector<double> sizes(with_error_ ? out.floats.size() : 0);
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i] < 0) continue;
      const auto place = static_cast<size_t>(to[i]);
      out.floats[place] += x.floats[i];
      if (!with_error_) continue;
      ++terms[place];
      sizes[place] += std::fabs(x.floats[i]);
      out.error[place] += x.error.empty() ? 0 : x.error[i];
    }
    for (size_t i = 0; i < sizes.size(); ++i) out.error[i] += static_cast<double>(terms[i]) * step * sizes[i];
    return out;
  }

  Result<HostArray> pointwise(const ExprNode& n, std::vector<HostArray>& in) {
    const Node& node = n.node;
    if (node.op == ExprOp::kCast) return converted(std::move(in[0]), node.dtype, true);
    std::vector<const Node*> nodes;
    for (const auto& operand : n.operands) nodes.push_back(&operand->node);
    const DType meet = fusion::operand_dtype(node.op, nodes);
    const bool where = node.op == ExprOp::kWhere;
    for (size_t i = 0; i < in.size(); ++i) {
      if (n.operands[i]->is_scalar() && !(where && i == 0))
        in[i] = number(nodes[i]->attributes.value, fusion::number_type(node.op, meet));
      if (!(where && i == 0)) in[i] = converted(std::move(in[i]), meet, !n.operands[i]->is_scalar());
      in[i] = broadcast(std::move(in[i]), node.shape);
    }
    HostArray out{node.dtype, node.shape, {}, {}};
    if (where) return chosen(in, std::move(out));
    const size_t elements = count(node.shape);
    if (is_float(meet)) {
      const bool function = std::find(std::begin(kFunctions), std::end(kFunctions), node.op) != std::end(kFunctions);
      if (function && !with_error_) return by_kernel(n, in);
      const double* operands[3] = {};
      for (size_t i = 0; i < in.size(); ++i) operands[i] = in[i].floats.data();
      std::vector<double> values(elements);
      // Halves are computed in float32, as kernels do; the reference rounds nothing on the way.
      if (meet == DType::kF64 || with_error_)
        host_floats<double>(node.op, operands, values.data(), elements);
      else
        host_floats<float>(node.op, operands, values.data(), elements);
      if (out.is_float())
        out.floats = std::move(values);
      else
        out.ints.assign(values.begin(), values.end());
      if (with_error_ && out.is_float()) out.error = pointwise_error(node.op, in, out);
      return out;
    }
    const int64_t* operands[3] = {};
    for (size_t i = 0; i < in.size(); ++i) operands[i] = in[i].ints.data();
    out.ints.resize(elements);
    host_ints(node.op, meet, operands, out.ints.data(), elements);
    settle(out.ints, node.dtype);
    return out;
  }

  /// A number as an operand of that type.
  static HostArray number(const fusion::Number& value, DType type) {
    const fusion::Number as = fusion::converted(value, type);
    HostArray out{type, {}, {}, {}};
    if (out.is_float())
      out.floats = {std::get<double>(as)};
    else
      out.ints = {std::visit([](auto v) { return static_cast<int64_t>(v); }, as)};
    return out;
  }

  /// A function of converted and broadcast operands, by the kernel for large tensors.
  static Result<HostArray> by_kernel(const ExprNode& n, const std::vector<HostArray>& in) {
    HostArray out{n.node.dtype, n.node.shape, {}, {}};
    const auto elements = static_cast<int64_t>(count(out.shape));
    out.floats.resize(count(out.shape));
    for (int64_t start = 0; start < elements; start += kFunctionElements) {
      const auto chunk = static_cast<size_t>(std::min(kFunctionElements, elements - start));
      const auto first = static_cast<std::ptrdiff_t>(start);
      std::vector<Expr> operands;
      for (size_t i = 0; i < in.size(); ++i) {
        if (n.operands[i]->is_scalar()) {
          operands.push_back(Expr::scalar(n.operands[i]->node.attributes.value));
          continue;
        }
        HostArray part{in[i].dtype, {kFunctionElements}, {}, {}};
        // The last kernel of a tensor is filled up with ones, at which every function is defined and fast.
        part.floats.assign(in[i].floats.begin() + first,
                           in[i].floats.begin() + first + static_cast<std::ptrdiff_t>(chunk));
        part.floats.resize(kFunctionElements, 1.0);
        KILN_TRY(Tensor t, host_tensor(n.device, part.dtype, part));
        operands.push_back(Expr(std::move(t)));
      }
      KILN_TRY(Expr e, apply(n.node.op, operands, n.node.attributes));
      KILN_TRY(Tensor result, kiln::run(e, ExprVariant::kUnfused));
      KILN_TRY(HostArray values, leaf(result));
      std::copy_n(values.floats.begin(), chunk, out.floats.begin() + first);
    }
    return out;
  }

  /// One operation by its kernel.
  static Result<HostArray> whole_by_kernel(const ExprNode& n, const std::vector<HostArray>& in) {
    std::vector<Expr> operands;
    for (size_t i = 0; i < in.size(); ++i) {
      Tensor t = n.operands[i]->value;  // in its own order of memory, which the kernel follows
      if (!t) {
        KILN_TRY(t, host_tensor(n.device, in[i].dtype, in[i]));
      }
      operands.push_back(Expr(std::move(t)));
    }
    KILN_TRY(Expr e, apply(n.node.op, operands, n.node.attributes));
    KILN_TRY(Tensor result, kiln::run(e, ExprVariant::kUnfused));
    return leaf(result);
  }

  HostArray chosen(std::vector<HostArray>& in, HostArray out) {
    const std::vector<int64_t>& test = in[0].ints;
    auto choose = [&](auto& x, const auto& y) {
      for (size_t i = 0; i < x.size(); ++i)
        if (!test[i]) x[i] = y[i];
      return std::move(x);
    };
    // What is not chosen brings no error with it.
    if (with_error_ && out.is_float()) {
      for (size_t k : {1, 2}) in[k].error.resize(in[k].floats.size());
      out.error = choose(in[1].error, in[2].error);
    }
    if (out.is_float())
      out.floats = choose(in[1].floats, in[2].floats);
    else
      out.ints = choose(in[1].ints, in[2].ints);
    return out;
  }

  /// Part of an array, with its errors.
  static HostLine line_of(const HostArray& x, size_t start, size_t n, DType dtype) {
    return {x.floats.data() + start, x.error.empty() ? nullptr : x.error.data() + start, n, dtype};
  }

  /// The axes that stay, then those worked along.
  static HostArray axes_last(HostArray x, const std::vector<int>& axes, Shape& kept, int64_t& inner) {
    const Shape own = fusion::row_major(x.shape);
    Shape shape, strides;
    inner = 1;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t d = 0; d < x.shape.size(); ++d) {
        const bool worked = std::find(axes.begin(), axes.end(), static_cast<int>(d)) != axes.end();
        if (worked != (pass == 1)) continue;
        shape.push_back(x.shape[d]);
        strides.push_back(own[d]);
        if (pass == 0) kept.push_back(x.shape[d]);
        if (pass == 1) inner *= x.shape[d];
      }
    return strides == own ? std::move(x) : seen_through(x, shape, strides, 0);
  }

  Result<HostArray> reduce(const Node& n, HostArray x) {
    Shape kept;
    int64_t inner = 1;
    HostArray lines = axes_last(std::move(x), n.attributes.axes, kept, inner);
    const size_t lengths = static_cast<size_t>(inner), lines_count = count(kept);
    HostArray out{n.dtype, n.shape, {}, {}};
    if (is_float(n.dtype) || lines.is_float()) {
      const DType as = is_float(lines.dtype) ? lines.dtype : DType::kF64;
      lines = converted(std::move(lines), as, false);
      for (size_t i = 0; i < lines_count; ++i) {
        const HostLine line = line_of(lines, i * lengths, lengths, n.dtype);
        out.floats.push_back(host_reduce(n.op, line.v, lengths, n.attributes.correction));
        const bool place = n.op == ExprOp::kArgMax || n.op == ExprOp::kArgMin;
        if (with_error_ && place)
          out.error.push_back(place_error(n.op, line, out.floats.back()));
        else if (with_error_ && is_float(n.dtype) && lengths > 0)
          out.error.push_back(reduce_error(n.op, line, out.floats.back(), n.attributes.correction));
      }
      if (!is_float(n.dtype)) {
        HostArray floats{DType::kF64, n.shape, std::move(out.floats), {}};
        HostArray whole_numbers = converted(std::move(floats), n.dtype, false);
        if (n.op == ExprOp::kArgMax || n.op == ExprOp::kArgMin) whole_numbers.error = std::move(out.error);
        return whole_numbers;
      }
      return out;
    }
    for (size_t i = 0; i < lines_count; ++i)
      out.ints.push_back(host_reduce(n.op, lines.ints.data() + i * lengths, lengths));
    settle(out.ints, n.dtype);
    return out;
  }

  /// Lines of axes_last() in the order of the tensor's dimensions.
  static HostArray axes_back(const HostArray& lines, const Shape& whole, const std::vector<int>& axes,
                             const Shape& kept) {
    Shape moved = kept, strides(whole.size());
    for (int d : axes) moved.push_back(whole[static_cast<size_t>(d)]);
    const Shape packed = fusion::row_major(moved);
    size_t at_kept = 0, at_axes = kept.size();
    for (size_t d = 0; d < whole.size(); ++d) {
      const bool worked = std::find(axes.begin(), axes.end(), static_cast<int>(d)) != axes.end();
      strides[d] = packed[worked ? at_axes++ : at_kept++];
    }
    return seen_through(lines, whole, strides, 0);
  }

  HostArray scan(const Node& n, HostArray x) {
    Shape kept;
    int64_t inner = 1;
    const Shape whole = x.shape;
    const DType as = !is_float(n.dtype) ? n.dtype : x.is_float() ? x.dtype : DType::kF64;
    x = converted(std::move(x), as, false);
    HostArray lines = axes_last(std::move(x), n.attributes.axes, kept, inner);
    const size_t length = static_cast<size_t>(inner), lines_count = count(kept);
    std::vector<double> before, error;
    if (with_error_ && is_float(n.dtype)) before = lines.floats, error.resize(before.size());
    for (size_t i = 0; i < lines_count; ++i) {
      if (!is_float(n.dtype)) {
        host_scan(n.op, lines.ints.data() + i * length, length);
        continue;
      }
      double* line = lines.floats.data() + i * length;
      host_scan(n.op, line, length);
      if (error.empty()) continue;
      HostLine from = line_of(lines, i * length, length, n.dtype);
      from.v = before.data() + i * length;
      scan_error(n.op, from, line, error.data() + i * length);
    }
    if (!is_float(n.dtype)) settle(lines.ints, n.dtype);
    lines.error = std::move(error);
    lines.dtype = n.dtype;
    return axes_back(lines, whole, n.attributes.axes, kept);
  }

  Result<HostArray> row(const Node& n, std::vector<HostArray>& in) {
    if (fusion::reduction_of_scan(n.op)) return scan(n, std::move(in[0]));
    Shape kept;
    int64_t inner = 1;
    const Shape whole = in[0].shape;
    HostArray x = converted(std::move(in[0]), is_float(in[0].dtype) ? in[0].dtype : DType::kF64, false);
    HostArray lines = axes_last(std::move(x), n.attributes.axes, kept, inner);
    const size_t length = static_cast<size_t>(inner);
    auto part = [&](size_t i) { return i < in.size() ? in[i].floats.data() : nullptr; };
    for (size_t i = 1; i < in.size(); ++i)
      in[i] = converted(std::move(in[i]), is_float(in[i].dtype) ? in[i].dtype : DType::kF64, false);
    std::vector<double> before, error;
    if (with_error_) before = lines.floats, error.resize(before.size());
    auto factor = [&](size_t i) { return i < in.size() ? line_of(in[i], 0, length, n.dtype) : HostLine{}; };
    for (size_t i = 0; i < count(kept); ++i) {
      double* line = lines.floats.data() + i * length;
      host_row(n.op, line, length, part(1), part(2), n.attributes.eps);
      if (!with_error_ || length == 0) continue;
      HostLine from = line_of(lines, i * length, length, n.dtype);
      from.v = before.data() + i * length;
      row_error(n.op, from, line, factor(1), factor(2), n.attributes.eps, error.data() + i * length);
    }
    lines.dtype = DType::kF64;
    lines.error = std::move(error);
    HostArray out = axes_back(lines, whole, n.attributes.axes, kept);
    out.dtype = n.dtype;
    return out;
  }

  Result<HostArray> matmul(const Node& n, HostArray& a, HostArray& b) {
    // The batches are those of `lead`.
    // Vectors count as one row or column; batches are broadcast.
    Shape p = a.shape, q = b.shape, lead = n.shape;
    if (p.size() == 1) p.insert(p.begin(), 1);
    if (q.size() == 1) q.push_back(1);
    if (a.shape.size() > 1) lead.pop_back();
    if (b.shape.size() > 1) lead.pop_back();
    const int64_t m = p[p.size() - 2], k = p.back(), columns = q.back();
    const auto batch = static_cast<int64_t>(count(lead));
    auto batched = [&](HostArray& x, Shape own, int64_t rows, int64_t cols) {
      own.resize(own.size() - 2);
      Shape full = lead;
      full.push_back(rows), full.push_back(cols);
      own.push_back(rows), own.push_back(cols);
      x.shape = own;
      if (count(own) == static_cast<size_t>(rows * cols)) return false;  // one for all
      x = broadcast(std::move(x), full);
      return true;
    };
    const bool many_a = batched(a, p, m, k), many_b = batched(b, q, k, columns);
    HostArray out{n.dtype, n.shape, {}, {}};
    auto multiply = [&](const auto& x, const auto& y, auto& z) {
      z.resize(static_cast<size_t>(batch * m * columns));
      for (int64_t g = 0; g < batch; ++g) {
        auto* first_x = x.data() + (many_a ? g * m * k : 0);
        auto* first_y = y.data() + (many_b ? g * k * columns : 0);
        for (int64_t i = 0; i < m; ++i) {
          auto* line = z.data() + (g * m + i) * columns;
          // Row by row of b: both inner reads go through memory in order.
          for (int64_t e = 0; e < k; ++e) {
            const auto v = first_x[i * k + e];
            const auto* other = first_y + e * columns;
            for (int64_t j = 0; j < columns; ++j) line[j] += v * other[j];
          }
        }
      }
    };
    if (out.is_float()) {
      const DType as_a = is_float(a.dtype) ? a.dtype : DType::kF64, as_b = is_float(b.dtype) ? b.dtype : DType::kF64;
      a = converted(std::move(a), as_a, false);
      b = converted(std::move(b), as_b, false);
      multiply(a.floats, b.floats, out.floats);
      if (with_error_) {
        out.error.resize(out.floats.size());
        auto error_of = [](const HostArray& x, int64_t start) {
          return x.error.empty() ? nullptr : &x.error[0] + start;
        };
        for (int64_t g = 0; g < batch; ++g) {
          const int64_t first_a = many_a ? g * m * k : 0, first_b = many_b ? g * k * columns : 0;
          product_error(out.floats.data() + g * m * columns, a.floats.data() + first_a, error_of(a, first_a),
                        b.floats.data() + first_b, error_of(b, first_b), m, k, columns, n.dtype, n.attributes.tf32,
                        out.error.data() + g * m * columns);
        }
      }
    } else {
      multiply(a.ints, b.ints, out.ints);
      settle(out.ints, n.dtype);
    }
    return out;
  }

  /// The user's function has no meaning but its own: it is compiled and run, for a reference in float64 on the CPU. Its
  /// expression shares no node with this one, whose walk goes on.
  Result<HostArray> call(const ExprNode& n, std::vector<HostArray>& in) const {
    Device device = n.device;
    if (with_error_) {
      KILN_TRY(device, n.device.runtime().open("cpu"));
    }
    std::vector<Expr> operands;
    for (size_t i = 0; i < in.size(); ++i) {
      if (n.operands[i]->is_scalar()) {
        operands.push_back(Expr::scalar(n.operands[i]->node.attributes.value));
        continue;
      }
      const DType dtype = with_error_ && in[i].is_float() ? DType::kF64 : in[i].dtype;
      KILN_TRY(Tensor t, host_tensor(device, dtype, in[i]));
      operands.push_back(Expr(std::move(t)));
    }
    ExprAttributes attributes = n.node.attributes;
    if (is_float(n.node.dtype)) attributes.dtype = with_error_ ? DType::kF64 : n.node.dtype;
    KILN_TRY(Expr e, apply(ExprOp::kCall, operands, std::move(attributes)));
    KILN_TRY(Tensor result, kiln::run(e, ExprVariant::kUnfused));
    // In float64 the reference says what it computed, not what it would be stored as.
    KILN_TRY(HostArray out, leaf(result));
    out.dtype = n.node.dtype;
    return out;
  }

  const ExprWalk& walk_;
  const bool with_error_;   // the reference in float64
  const bool rounds_each_;  // operation to its dtype; else what is converted, reduced or multiplied
};

}  // namespace

Result<Tensor> host_tensor(const Device& device, DType dtype, const HostArray& x) {
  std::vector<std::byte> bytes(count(x.shape) * static_cast<size_t>(size_of(dtype)));
  const auto n = static_cast<int64_t>(count(x.shape));
  if (x.is_float())
    convert_elements(DType::kF64, x.floats.data(), dtype, bytes.data(), n);
  else
    convert_elements(DType::kI64, x.ints.data(), dtype, bytes.data(), n);
  return Tensor::from_host(device, dtype, x.shape, bytes.data(), bytes.size());
}

Result<HostArray> evaluate(const ExprNode& root, bool with_error) {
  ExprWalk walk(root);
  return Evaluation(walk, with_error).run();
}

double evaluation_cost(const ExprNode& root) {
  // In steps of a product, about a nanosecond each: what is read and rounded costs more than what is computed.
  constexpr double kRead = 4, kElement = 60;
  double total = 0;
  for (const ExprNode* n : ExprWalk(root).order) {
    if (!n->is_pending()) {
      total += kRead * static_cast<double>(fusion::numel(n->node.shape));
      continue;
    }
    // Constants of a fit to measured times.
    double each = kElement + info(n->node.op).flop;
    const Shape& first = n->operands.empty() ? n->node.shape : n->operands[0]->node.shape;
    double elements = static_cast<double>(fusion::numel(n->node.shape));
    if (n->node.op == ExprOp::kMatMul) each = 2.0 * static_cast<double>(first.back());
    if (info(n->node.op).kind == ExprKind::kReduce) elements = static_cast<double>(fusion::numel(first));
    total += each * elements;
  }
  return total;
}

}  // namespace kiln::runtime

namespace kiln {

using namespace runtime;

Result<Tensor> run_on_host(const Expr& expr) {
  if (!expr || expr.is_scalar()) return error(ErrorKind::kValue, "only an expression with a tensor in it can be run");
  ExprNode& n = *expr.node();
  if (n.value) return n.value;
  if (n.node.op == ExprOp::kFull) return fill(n);
  if (const Tensor from = n.node.op == ExprOp::kCast ? n.operands[0]->value : Tensor();
      from && from.dtype() == n.node.dtype && !from.is_contiguous()) {  // a copy keeps all bits, those of NaNs too
    KILN_TRY(Tensor copy, from.contiguous());
    n.set_value(copy);
    return copy;
  }
  if (info(n.node.op).kind == ExprKind::kView) {  // shares the memory of what it is a view of, as in run()
    KILN_TRY(Tensor base, run_on_host(Expr(n.operands[0])));
    if (auto viewed = view_of(base, n.node)) {
      n.set_value(*viewed);
      return *viewed;
    }
  }
  if (adds_up(n) && std::ranges::all_of(n.operands, [](const auto& o) { return static_cast<bool>(o->value); })) {
    // By its kernel anyway, of tensors that are where it reads them: nothing goes to the host and back.
    auto t = run(expr, ExprVariant::kUnfused);
    if (t.ok() || t.error().kind != ErrorKind::kUnsupported) return t;
  }
  KILN_TRY(HostArray values, evaluate(n));
  KILN_TRY(Tensor t, host_tensor(n.device, n.node.dtype, values));
  n.set_value(t);
  return t;
}

}  // namespace kiln
