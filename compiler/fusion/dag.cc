#include "compiler/fusion/dag.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "compiler/fusion/infer.h"
#include "support/diag.h"

namespace kiln::fusion {

Shape stored_strides(const DagNode& node) {
  Shape strides = row_major(node.shape);
  const size_t r = strides.size();
  if (node.row_stride == 0 || r < 2) return strides;
  strides[r - 2] = node.row_stride;
  for (size_t d = r - 2; d-- > 0;) strides[d] = strides[d + 1] * node.shape[d + 1];
  return strides;
}

DType register_type(DType t) { return is_float(t) && bits(t) < 32 ? DType::kF32 : t; }

namespace {

double as_double(const Number& n) {
  return std::visit([](auto v) { return static_cast<double>(v); }, n);
}

class Builder {
 public:
  Builder(const Graph& graph, bool share, bool library, bool gpu)
      : graph_(graph), share_(share), library_(library), gpu_(gpu) {}

  Result<Dag> run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      origin_ = static_cast<int>(i);
      KILN_TRY(Operand o, make(graph_.nodes[i]));
      refs_.push_back(std::move(o));
    }
    dag_.any_order = graph_.any_order;
    dag_.any_order.resize(graph_.outputs.size());
    for (int o : graph_.outputs) {
      Operand out = refs_[at(o)];
      const Node& n = graph_.nodes[at(o)];
      if (out.is_number())
        return error(ErrorKind::kUnsupported, "an expression of numbers alone has no tensor to be in");
      // The result of an operation is memory of its own, and row-major, also where that operation changes nothing:
      // x * 1, and the conversion of x.T to its own dtype, which contiguous() is.
      origin_ = o;
      const bool is_leaf = dag_.nodes[at(out.node)].kind == DagKind::kLeaf;
      const bool turned = info(n.op).kind != ExprKind::kView && n.op != ExprOp::kInput &&
                          (out.offset != 0 || out.strides != row_major(out.shape) ||
                           numel(out.shape) != numel(dag_.nodes[at(out.node)].shape));
      if ((is_leaf && !is_view_of_input(o)) || turned) out = copy(out);
      dag_.outputs.push_back(std::move(out));
      dag_.output_dtypes.push_back(n.dtype);
    }
    return std::move(dag_);
  }

 private:
  bool is_view_of_input(int node) const {
    while (info(graph_.nodes[at(node)].op).kind == ExprKind::kView) node = graph_.nodes[at(node)].inputs[0];
    return graph_.nodes[at(node)].op == ExprOp::kInput;
  }
  DType dtype_of(const Operand& o) const { return dag_.nodes[at(o.node)].dtype; }

  Operand whole(int node) const {
    Operand o;
    o.node = node;
    o.shape = dag_.nodes[at(node)].shape;
    o.strides = row_major(o.shape);
    return o;
  }

  std::string key(const DagNode& n) const {
    std::string k =
        fmt::format("{} {} {} {} {} {} {} {} {} {} {}", n.counts + 2 * n.adds, n.tf32, n.batch_dims,
                    static_cast<int>(n.kind), static_cast<int>(n.op), static_cast<int>(n.dtype),
                    static_cast<int>(n.operand_type), fmt::join(n.shape, ","), fmt::join(n.axes, ","),
                    10 * static_cast<int>(n.number_type) + n.plain_max, static_cast<const void*>(n.function.get()));
    for (const Taken& t : n.taken) k += fmt::format(";{}x{}{}", t.stride, t.size, t.any_outside ? "?" : "");
    for (const Operand& o : n.operands) {
      if (o.argument >= 0)
        k += fmt::format(";argument {}", o.argument);
      else if (o.is_number())
        k += fmt::format(";{}:{}", o.number.index(), as_double(o.number));
      else
        k += fmt::format(";%{} {} {} {}", o.node, fmt::join(o.shape, ","), fmt::join(o.strides, ","), o.offset);
      if (const int64_t* whole_number = std::get_if<int64_t>(&o.number)) k += fmt::format("={}", *whole_number);
    }
    // Without sharing, an operation is computed as often as it is written; its own parts are still shared.
    if (!share_) k += fmt::format(" @{}", origin_);
    return k;
  }

  Operand add(DagNode n) {
    n.origin = origin_;
    if (n.name.empty()) n.name = graph_.nodes[at(origin_)].name;
    auto [it, fresh] = known_.try_emplace(key(n), static_cast<int>(dag_.nodes.size()));
    if (fresh) dag_.nodes.push_back(std::move(n));
    return whole(it->second);
  }

  /// `o` as a tensor of `shape`, repeated where it has one element.
  static Operand expanded(const Operand& o, const Shape& shape) {
    Operand out = o;
    out.shape = shape;
    out.strides.assign(shape.size(), 0);
    const size_t lead = shape.size() - o.shape.size();
    for (size_t d = lead; d < shape.size(); ++d)
      if (o.shape[d - lead] != 1) out.strides[d] = o.strides[d - lead];
    return out;
  }

  Operand cast(Operand o, DType to) {
    if (o.is_number()) {
      // Of floats the source keeps the digits that were given: the compiler rounds them.
      o.number = is_float(to) && bits(to) >= 32 ? Number(as_double(o.number)) : fusion::converted(o.number, to);
      return o;
    }
    if (dtype_of(o) == to || register_type(dtype_of(o)) == to) return o;
    DagNode n;
    n.kind = DagKind::kPointwise;
    n.op = ExprOp::kCast;
    n.operand_type = register_type(dtype_of(o));
    n.dtype = to;
    // The conversion is of the elements there are, before any repetition.
    Shape shape = o.shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (o.strides[d] == 0) shape[d] = 1;
    Operand narrow = o;
    narrow.shape = shape;
    n.shape = shape;
    n.operands = {narrow};
    return expanded(add(std::move(n)), o.shape);
  }

  /// A pointwise node in `type`, of dtype `dtype`; operands are broadcast and converted.
  Operand pointwise(ExprOp op, std::vector<Operand> operands, DType type, DType dtype, const Shape& shape,
                    std::string name = {}) {
    DagNode n;
    n.kind = DagKind::kPointwise;
    n.op = op;
    n.operand_type = register_type(type);
    n.number_type = number_type(op, type);
    n.dtype = dtype;
    n.shape = shape;
    n.name = std::move(name);
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool condition = op == ExprOp::kWhere && i == 0;
      // A tensor of another dtype is converted to the one in which all meet, which rounds, and numbers as
      // number_type().
      const DType to = condition ? DType::kI1 : operands[i].is_number() ? n.number_type : type;
      n.operands.push_back(expanded(cast(operands[i], to), shape));
    }
    return add(std::move(n));
  }

  Operand number(double v) const {
    Operand o;
    o.number = v;
    return o;
  }

  Operand copy(const Operand& o) {
    DagNode n;
    n.kind = DagKind::kPointwise;
    n.op = ExprOp::kCast;
    n.operand_type = register_type(dtype_of(o));
    n.dtype = dtype_of(o);
    n.shape = o.shape;
    n.operands = {o};
    return add(std::move(n));
  }

  Operand reshaped(const Operand& o, const Shape& shape) {
    if (o.is_number()) {
      Operand out = o;
      out.shape = shape;
      out.strides.assign(shape.size(), 0);
      return out;
    }
    if (auto view = reshape(o, shape)) return *view;
    return *reshape(copy(o), shape);
  }

  Result<Operand> make(const Node& n) {
    std::vector<Operand> in;
    for (int i : n.inputs) in.push_back(refs_[at(i)]);
    switch (info(n.op).kind) {
      case ExprKind::kInput: {
        DagNode leaf;
        leaf.dtype = n.dtype;
        leaf.shape = n.shape;
        leaf.origin = origin_;
        leaf.name = n.name;
        leaf.alignment = n.alignment;
        Operand o;
        o.node = static_cast<int>(dag_.nodes.size());
        o.shape = n.shape;
        o.strides = n.strides;
        dag_.nodes.push_back(std::move(leaf));
        return o;
      }
      case ExprKind::kScalar: {
        Operand o;
        o.number = n.attributes.value;
        if (n.is_argument) o.argument = origin_;
        return o;
      }
      case ExprKind::kView:
        return view(n, in[0]);
      case ExprKind::kPlace:
        if (n.op == ExprOp::kScatterAdd)
          return error(ErrorKind::kUnsupported, "scatter_add is a kernel of its own, between two plans");
        if (n.op == ExprOp::kFull) return full(n);
        if (n.op == ExprOp::kPut) return put(n, in);
        return n.op == ExprOp::kIota ? index_along(n.shape, 0, n.dtype) : take(n, in);
      case ExprKind::kPointwise:
        return elements(n, std::move(in));
      case ExprKind::kReduce:
        return reduction(n, in[0]);
      case ExprKind::kRow:
        return rows(n, in);
      case ExprKind::kMatmul:
        return product(n, in[0], in[1]);
      case ExprKind::kCall: {
        DagNode c;
        c.kind = DagKind::kPointwise;
        c.op = ExprOp::kCall;
        c.function = n.attributes.function;
        std::vector<const Node*> nodes;
        for (int i : n.inputs) nodes.push_back(&graph_.nodes[at(i)]);
        c.operand_type = register_type(n.dtype);
        c.dtype = n.dtype;
        c.shape = n.shape;
        for (Operand& o : in) c.operands.push_back(expanded(o, n.shape));  // each in its own type
        return add(std::move(c));
      }
    }
    KILN_UNREACHABLE("op {}", name(n.op));
  }

  Result<Operand> view(const Node& n, const Operand& o) {
    const ExprAttributes& a = n.attributes;
    if (n.op == ExprOp::kExpand) return expanded(o, n.shape);
    if (n.op == ExprOp::kReshape) return reshaped(o, n.shape);
    Operand out = o;
    out.shape = n.shape;
    for (size_t d = 0; d < n.shape.size(); ++d) {
      if (n.op == ExprOp::kPermute) {
        out.strides[d] = o.strides[at(a.axes[d])];
      } else {
        out.strides[d] = o.strides[d] * a.steps[d];
        if (numel(n.shape) > 0) out.offset += o.strides[d] * a.starts[d];
      }
    }
    return out;
  }

  Result<Operand> take(const Node& n, const std::vector<Operand>& in) {
    DagNode t;
    t.kind = DagKind::kPointwise;
    t.op = n.op;
    t.dtype = n.dtype;
    t.operand_type = register_type(n.dtype);
    t.shape = n.shape;
    t.name = n.name;
    Operand from = in[0];
    std::vector<Operand> places;
    for (size_t k = 0; k < n.attributes.axes.size(); ++k) {
      const size_t axis = at(n.attributes.axes[k]);
      // Where there is one element, or one for all places, there is nothing to look up.
      if (from.strides[axis] != 0 && from.shape[axis] != 1) {
        t.taken.push_back({from.strides[axis], from.shape[axis], n.attributes.any_outside});
        places.push_back(expanded(in[k + 1], n.shape));
      }
      from.shape[axis] = 1;
    }
    from = expanded(from, n.shape);
    if (places.empty()) return from;
    t.operands = {from};
    t.operands.insert(t.operands.end(), places.begin(), places.end());
    return add(std::move(t));
  }

  /// Values, places and whether they are inside, each in its own type.
  Operand put(const Node& n, const std::vector<Operand>& in) {
    DagNode p;
    p.kind = DagKind::kPointwise;
    p.op = n.op;
    p.dtype = n.dtype;
    p.operand_type = p.number_type = register_type(n.dtype);
    p.shape = n.shape;
    p.adds = n.attributes.adds;
    p.name = n.name;
    for (size_t i = 0; i < in.size(); ++i) {
      const std::optional<Operand> value = i == 0 ? number_of(in[0]) : std::nullopt;
      p.operands.push_back(expanded(value ? cast(*value, n.dtype) : in[i], n.shape));
    }
    return add(std::move(p));
  }

  /// x to the power of 1/4, 3/4 or 3/2, within two units in the last place as pow is: at most three roundings, where
  /// pow takes a logarithm in two parts.
  Operand by_roots(const Node& n, const Operand& x, double power, DType type) {
    auto of = [&](ExprOp op, std::vector<Operand> in) { return pointwise(op, std::move(in), type, n.dtype, n.shape); };
    const Operand root = of(ExprOp::kSqrt, {x});
    const Operand other = power == 1.5 ? x : of(ExprOp::kSqrt, {root});
    // Of -0.0 the roots are -0.0, and of minus infinity no numbers.
    const Operand value = power == 0.25 ? of(ExprOp::kAbs, {other}) : of(ExprOp::kMul, {root, other});
    const Operand endless = pointwise(ExprOp::kEq, {x, number(-INFINITY)}, type, DType::kI1, n.shape);
    return of(ExprOp::kWhere, {endless, number(INFINITY), value});
  }

  Result<Operand> power(const Node& n, const Operand& x, const Operand& e, DType type) {
    auto mul = [&](const Operand& a, const Operand& b) {
      return pointwise(ExprOp::kMul, {a, b}, type, n.dtype, n.shape);
    };
    if (e.is_literal()) {
      const double v = as_double(e.number);
      if (is_float(type)) {
        if (v == 2) return mul(x, x);
        if (v == 3) return mul(mul(x, x), x);
        // Within the error of pow; halves would round in between, which torch does not.
        if (v == 4 && size_of(type) >= 4) return mul(mul(x, x), mul(x, x));
        if (v == 0.5) return pointwise(ExprOp::kSqrt, {x}, type, n.dtype, n.shape);
        if (v == -0.5) return pointwise(ExprOp::kRsqrt, {x}, type, n.dtype, n.shape);
        if (v == -1) return pointwise(ExprOp::kReciprocal, {x}, type, n.dtype, n.shape);
        if (v == -2) return pointwise(ExprOp::kReciprocal, {mul(x, x)}, type, n.dtype, n.shape);
        if ((v == 0.25 || v == 0.75 || v == 1.5) && size_of(type) >= 4) return by_roots(n, x, v, type);
      } else {
        if (v >= 1 && v <= 64) {  // by squares
          auto power = static_cast<int64_t>(v);
          std::optional<Operand> result;
          for (Operand square = x; power > 0; power >>= 1) {
            if (power & 1) result = result ? mul(*result, square) : square;
            if (power > 1) square = mul(square, square);
          }
          return result->node == x.node ? pointwise(ExprOp::kCast, {x}, type, n.dtype, n.shape) : *result;
        }
      }
    }
    return pointwise(ExprOp::kPow, {x, e}, type, n.dtype, n.shape);
  }

  /// An identity that is exact: its operand, when nothing but the operation's name would change.
  std::optional<Operand> unchanged(const Node& n, const std::vector<Operand>& in) {
    if (!share_ || in.empty() || in[0].is_number() || dtype_of(in[0]) != n.dtype || in[0].shape != n.shape)
      return std::nullopt;
    auto second_is = [&](double v) { return in.size() == 2 && in[1].is_literal() && as_double(in[1].number) == v; };
    const bool whole_numbers = is_int(n.dtype) && n.dtype != DType::kI1;
    if (n.op == ExprOp::kCast) return in[0];
    if ((n.op == ExprOp::kMul || n.op == ExprOp::kDiv || n.op == ExprOp::kPow) && second_is(1)) return in[0];
    if (n.op == ExprOp::kSub && second_is(0)) return in[0];
    if (n.op == ExprOp::kAdd && whole_numbers && second_is(0)) return in[0];
    if (whole_numbers && (n.op == ExprOp::kFloor || n.op == ExprOp::kCeil || n.op == ExprOp::kRound ||
                          n.op == ExprOp::kTrunc || (n.op == ExprOp::kAbs && !is_signed(n.dtype))))
      return in[0];
    return std::nullopt;
  }

  /// A node without a tensor to read, of which operations with tensors read the number.
  Operand full(const Node& n) {
    Operand value;
    value.number = n.attributes.value;
    DagNode d;
    d.kind = DagKind::kPointwise;
    d.op = ExprOp::kCast;
    d.operand_type = d.number_type = register_type(n.dtype);
    d.dtype = n.dtype;
    d.shape = n.shape;
    d.operands = {expanded(cast(value, n.dtype), n.shape)};
    d.name = "full";
    return add(std::move(d));
  }

  /// The number that all elements of an operand are, where that is known.
  std::optional<Operand> number_of(const Operand& o) const {
    if (o.is_number()) return std::nullopt;
    const DagNode& n = dag_.nodes[at(o.node)];
    if (n.kind != DagKind::kPointwise || n.op != ExprOp::kCast || !n.operands[0].is_literal()) return std::nullopt;
    Operand value = n.operands[0];
    value.shape = o.shape;
    value.strides.assign(o.shape.size(), 0);
    return value;
  }

  Result<Operand> elements(const Node& n, std::vector<Operand> in) {
    const bool reads = std::ranges::any_of(in, [&](const Operand& o) { return !o.is_number() && !number_of(o); });
    for (Operand& o : in)
      if (const auto value = number_of(o); value && reads) o = *value;
    bool numbers = true;
    for (const Operand& o : in) numbers = numbers && o.is_number();
    if (numbers) return error(ErrorKind::kUnsupported, "{} of numbers alone: one operand must be a tensor", name(n.op));
    if (auto same = unchanged(n, in)) return *same;
    std::vector<const Node*> nodes;
    for (int i : n.inputs) nodes.push_back(&graph_.nodes[at(i)]);
    const DType type = operand_dtype(n.op, nodes);
    ExprOp op = n.op;
    if (op == ExprOp::kPow) return power(n, in[0], in[1], type);
    if (op == ExprOp::kCast) {
      DagNode c;
      c.kind = DagKind::kPointwise;
      c.op = op;
      c.operand_type = register_type(dtype_of(in[0]));
      c.dtype = n.dtype;
      c.shape = n.shape;
      c.operands = {in[0]};
      return add(std::move(c));
    }
    if (type == DType::kI1) {  // what arithmetic on bools means
      if (op == ExprOp::kAdd || op == ExprOp::kMaximum) op = ExprOp::kBitOr;
      if (op == ExprOp::kMul || op == ExprOp::kMinimum) op = ExprOp::kBitAnd;
      if (op == ExprOp::kBitNot) op = ExprOp::kLogicalNot;
    }
    return pointwise(op, std::move(in), type, n.dtype, n.shape, n.name);
  }

  /// Reduces the axes of `x` in `type`. The result has no place for them.
  Operand reduce(ExprOp op, const Operand& x, const std::vector<int>& axes, DType type, DType dtype, std::string name,
                 bool plain_max = false) {
    DagNode n;
    n.kind = DagKind::kReduce;
    n.op = op;
    n.axes = axes;
    n.operand_type = register_type(type);
    n.dtype = dtype;
    n.plain_max = plain_max;
    n.name = std::move(name);
    for (size_t d = 0; d < x.shape.size(); ++d)
      if (!std::binary_search(axes.begin(), axes.end(), static_cast<int>(d))) n.shape.push_back(x.shape[d]);
    n.operands = {cast(x, n.operand_type)};
    return add(std::move(n));
  }

  /// A reduced tensor, with dimensions of one element where `axes` were.
  static Operand with_axes(const Operand& o, const std::vector<int>& axes) {
    Operand out = o;
    for (int d : axes) {
      out.shape.insert(out.shape.begin() + d, 1);
      out.strides.insert(out.strides.begin() + d, 0);
    }
    return out;
  }

  static double count(const Operand& x, const std::vector<int>& axes) {
    double n = 1;
    for (int d : axes) n *= static_cast<double>(x.shape[at(d)]);
    return n;
  }

  Result<Operand> reduction(const Node& n, const Operand& x) {
    const std::vector<int>& axes = n.attributes.axes;
    if (x.is_number()) return error(ErrorKind::kUnsupported, "{} of a number: it takes a tensor", name(n.op));
    auto shaped = [&](const Operand& o) { return n.attributes.keepdim ? with_axes(o, axes) : o; };
    if (n.op == ExprOp::kMax || n.op == ExprOp::kMin) {
      if (axes.empty()) return x;
      return shaped(reduce(n.op, x, axes, n.dtype, n.dtype, {}));
    }
    if (n.op == ExprOp::kArgMax || n.op == ExprOp::kArgMin) return place_of(n, x, axes);
    if (n.op == ExprOp::kSum) {
      if (axes.empty() && dtype_of(x) == n.dtype) return x;
      if (axes.empty()) return cast(x, n.dtype);
      return shaped(reduce(n.op, x, axes, n.dtype, n.dtype, {}));
    }
    const DType type = register_type(n.dtype);
    const Operand mean = mean_of(x, axes, type, n.op == ExprOp::kMean ? n.dtype : type);
    if (n.op == ExprOp::kMean) return shaped(mean);
    const Operand away = pointwise(ExprOp::kSub, {x, with_axes(mean, axes)}, type, type, x.shape);
    const Operand squares = pointwise(ExprOp::kMul, {away, away}, type, type, x.shape);
    const Operand total = reduce(ExprOp::kSum, squares, axes, type, type, "squares");
    const double by = std::max(0.0, count(x, axes) - n.attributes.correction);
    return shaped(pointwise(ExprOp::kDiv, {total, number(by)}, type, n.dtype, total.shape, "var"));
  }

  /// Where along its one axis each element of a tensor of `shape` is.
  Operand index_along(const Shape& shape, int axis, DType type) {
    DagNode n;
    n.counts = true;
    n.dtype = n.operand_type = type;
    n.shape = {shape[at(axis)]};
    n.name = "index";
    Operand o = add(std::move(n));
    o.shape = shape;
    o.strides.assign(shape.size(), 0);
    o.strides[at(axis)] = 1;
    return o;
  }

  /// The first place of an extreme, where a NaN is one: the least of the places that hold it.
  Operand place_of(const Node& n, Operand x, const std::vector<int>& axes) {
    int axis = axes.empty() ? -1 : axes[0];
    if (axes.size() != 1) {
      x = reshaped(x, {numel(x.shape)});
      axis = 0;
    }
    const DType type = dtype_of(x) == DType::kI1 ? DType::kI8 : dtype_of(x);
    x = cast(x, type);
    const ExprOp extreme = n.op == ExprOp::kArgMax ? ExprOp::kMax : ExprOp::kMin;
    const Operand best = with_axes(reduce(extreme, x, {axis}, type, type, "best"), {axis});
    Operand holds = pointwise(ExprOp::kEq, {x, best}, type, DType::kI1, x.shape);
    if (is_float(type)) {
      const Operand nan = pointwise(ExprOp::kIsNan, {x}, type, DType::kI1, x.shape);
      holds = pointwise(ExprOp::kLogicalOr, {holds, nan}, DType::kI1, DType::kI1, x.shape);
    }
    const int64_t count = x.shape[at(axis)];
    const DType places = count < std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
    Operand beyond;
    beyond.number = count;
    const Operand place = pointwise(ExprOp::kWhere, {holds, index_along(x.shape, axis, places), beyond}, places, places,
                                    x.shape, "place");
    Operand first = reduce(ExprOp::kMin, place, {axis}, places, DType::kI64, n.name);
    return axes.size() == 1 && n.attributes.keepdim ? with_axes(first, {axis}) : *reshape(first, n.shape);
  }

  Operand scan(const Node& n, const Operand& x) {
    const std::vector<int>& axes = n.attributes.axes;
    const DType type = register_type(n.dtype);
    if (axes.empty() || x.shape[at(axes[0])] == 1 || numel(x.shape) == 0)
      return pointwise(ExprOp::kCast, {x}, type, n.dtype, x.shape);
    DagNode s;
    s.kind = DagKind::kScan;
    s.op = n.op;
    s.axes = axes;
    s.operand_type = type;
    s.dtype = n.dtype;
    s.shape = x.shape;
    s.operands = {cast(x, type)};
    return add(std::move(s));
  }

  Operand mean_of(const Operand& x, const std::vector<int>& axes, DType type, DType dtype) {
    const Operand total = reduce(ExprOp::kSum, x, axes, type, type, "total");
    return pointwise(ExprOp::kDiv, {total, number(count(x, axes))}, type, dtype, total.shape, "mean");
  }

  Result<Operand> rows(const Node& n, const std::vector<Operand>& in) {
    const std::vector<int>& axes = n.attributes.axes;
    const Operand& x = in[0];
    if (x.is_number()) return error(ErrorKind::kUnsupported, "{} of a number: it takes a tensor", name(n.op));
    if (reduction_of_scan(n.op)) return scan(n, x);
    const DType type = register_type(n.dtype);
    if (n.op == ExprOp::kSoftmax || n.op == ExprOp::kLogSoftmax) {
      const Operand top = reduce(ExprOp::kMax, x, axes, type, type, "top", true);
      const Operand below = pointwise(ExprOp::kSub, {x, with_axes(top, axes)}, type, type, x.shape);
      const Operand e = pointwise(ExprOp::kExp, {below}, type, type, x.shape, "e");
      const Operand total = reduce(ExprOp::kSum, e, axes, type, type, "total");
      if (n.op == ExprOp::kLogSoftmax) {
        const Operand log = pointwise(ExprOp::kLog, {total}, type, type, total.shape, "log_total");
        return pointwise(ExprOp::kSub, {below, with_axes(log, axes)}, type, n.dtype, x.shape);
      }
      const Operand scale = pointwise(ExprOp::kReciprocal, {total}, type, type, total.shape, "scale");
      return pointwise(ExprOp::kMul, {e, with_axes(scale, axes)}, type, n.dtype, x.shape);
    }
    Operand away = x;
    if (n.op == ExprOp::kLayerNorm) {
      const Operand mean = mean_of(x, axes, type, type);
      away = pointwise(ExprOp::kSub, {x, with_axes(mean, axes)}, type, type, x.shape, "away");
    }
    const Operand squares = pointwise(ExprOp::kMul, {away, away}, type, type, x.shape);
    const Operand total = reduce(ExprOp::kSum, squares, axes, type, type, "squares");
    const Operand var = pointwise(ExprOp::kDiv, {total, number(count(x, axes))}, type, type, total.shape, "var");
    const Operand sum = pointwise(ExprOp::kAdd, {var, number(n.attributes.eps)}, type, type, total.shape);
    const Operand rstd = pointwise(ExprOp::kRsqrt, {sum}, type, type, total.shape, "rstd");
    Operand out =
        pointwise(ExprOp::kMul, {away, with_axes(rstd, axes)}, type, in.size() == 1 ? n.dtype : type, x.shape);
    if (in.size() > 1) out = pointwise(ExprOp::kMul, {out, in[1]}, type, in.size() == 2 ? n.dtype : type, x.shape);
    if (in.size() > 2) out = pointwise(ExprOp::kAdd, {out, in[2]}, type, n.dtype, x.shape);
    return out;
  }

  static Operand unsqueeze(Operand o, size_t d) {
    o.shape.insert(o.shape.begin() + static_cast<std::ptrdiff_t>(d), 1);
    o.strides.insert(o.strides.begin() + static_cast<std::ptrdiff_t>(d), 0);
    return o;
  }

  /// Whether a product is better computed by sums(): one with a vector, where the matrix lies along k, or on a GPU k is
  /// short. Long sums across rows of memory have tiles, which share them out. Sums of a few terms, as of two
  /// vectors' outer product or of points, leave a tile almost empty, and take their time to be stored (float32 of
  /// 1698 x 8560, k = 1, with a bias, on an H200: 51.3 us by tiles; cuBLASLt 32.4).
  bool is_better_summed(const Operand& a, const Operand& b) const {
    constexpr int64_t kShortSum = 1024, kFewTerms = 4;
    const size_t last_a = a.shape.size() - 1, last_b = b.shape.size() - 1;
    const int64_t k = a.shape[last_a];
    const bool by_rows = b.shape[last_b] == 1;
    if (k > 0 && k <= kFewTerms) return true;
    if (k == 0 || !(by_rows || a.shape[last_a - 1] == 1)) return false;
    return (gpu_ && k <= kShortSum) || (by_rows ? a.strides[last_a] : b.strides[last_b - 1]) == 1;
  }

  /// A product as the sums that it is, such as along rows or columns of a matrix times a vector: tiles of tensor cores
  /// would multiply what pads them, and read the matrix by fewer threads.
  Operand sums(const Node& n, Operand a, Operand b, const Shape& lead) {
    const size_t last = b.shape.size() - 1;
    std::swap(b.shape[last], b.shape[last - 1]);  // [batches.., columns, k]
    std::swap(b.strides[last], b.strides[last - 1]);
    Shape full = lead;
    const int64_t m = a.shape[a.shape.size() - 2], columns = b.shape[last - 1];
    const bool is_matrix = m != 1 && columns != 1;
    if (is_matrix) {
      const size_t before_k = a.shape.size() - 1, before_columns = b.shape.size() - 2;
      a = unsqueeze(std::move(a), before_k);        // [batches.., m, 1, k]
      b = unsqueeze(std::move(b), before_columns);  // [batches.., 1, columns, k]
      full.push_back(m);
    }
    full.push_back(is_matrix ? columns : m * columns);
    full.push_back(b.shape.back());
    const DType of = dtype_of(a), type = of == DType::kF64 ? of : is_int(of) ? DType::kI32 : DType::kF32;
    const Operand terms = pointwise(ExprOp::kMul, {expanded(a, full), expanded(b, full)}, type, type, full);
    const Operand summed = reduce(ExprOp::kSum, terms, {static_cast<int>(full.size()) - 1}, type, n.dtype, n.name);
    return *reshape(summed, n.shape);
  }

  Result<Operand> product(const Node& n, Operand a, Operand b) {
    if (a.is_number() || b.is_number()) return error(ErrorKind::kUnsupported, "matmul of a number: it takes tensors");
    if (a.shape.size() == 1) a = unsqueeze(a, 0);
    if (b.shape.size() == 1) b = unsqueeze(b, 1);
    const int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), cols = b.shape.back();
    Shape lead(std::max(a.shape.size(), b.shape.size()) - 2, 1);
    for (const Operand* o : {&a, &b})
      for (size_t i = 0; i + 2 < o->shape.size(); ++i) {
        int64_t& slot = lead[lead.size() - (o->shape.size() - 2) + i];
        if (o->shape[i] != 1) slot = o->shape[i];
      }
    if (!library_ && is_better_summed(a, b)) return sums(n, a, b, lead);
    DagNode p;
    p.kind = DagKind::kProduct;
    p.op = ExprOp::kMatMul;
    p.dtype = n.dtype;
    p.operand_type = dtype_of(a);
    p.tf32 = n.attributes.tf32;
    p.name = n.name;
    const bool shared = b.shape.size() == 2;  // one right operand: the batch is only more rows
    if (lead.empty() || shared) {
      p.operands = {reshaped(a, {numel(lead) * m, k}), b};
      p.shape = lead;
      p.shape.push_back(m);
      p.shape.push_back(cols);
      if (library_) p.shape = {numel(lead) * m, cols};
    } else {
      auto batched = [&](const Operand& o, int64_t rows_of, int64_t cols_of) {
        Shape full = lead;
        full.push_back(rows_of);
        full.push_back(cols_of);
        const Operand all = expanded(o, full);
        return library_ ? reshaped(all, {numel(lead), rows_of, cols_of}) : all;
      };
      p.operands = {batched(a, m, k), batched(b, k, cols)};
      p.shape = library_ ? Shape{numel(lead)} : lead;
      p.batch_dims = static_cast<int>(p.shape.size());
      p.shape.push_back(m);
      p.shape.push_back(cols);
    }
    return *reshape(add(std::move(p)), n.shape);
  }

  const Graph& graph_;
  const bool share_, library_, gpu_;
  Dag dag_;
  std::vector<Operand> refs_;
  std::unordered_map<std::string, int> known_;
  int origin_ = -1;
};

}  // namespace

Result<Dag> make_dag(const Graph& graph, bool share, bool library, bool gpu) {
  KILN_TRY(Dag dag, Builder(graph, share, library, gpu).run());
  tidy(dag);
  return dag;
}

std::vector<int> uses_of_nodes(const Dag& dag) {
  std::vector<int> uses(dag.nodes.size());
  for (const DagNode& n : dag.nodes)
    for (const Operand& o : n.operands)
      if (!o.is_number()) ++uses[at(o.node)];
  for (const Operand& o : dag.outputs) uses[at(o.node)] += 2;
  return uses;
}

std::vector<bool> nodes_of_counts(const Dag& dag) {
  std::vector<bool> found;
  for (const DagNode& n : dag.nodes)
    found.push_back(n.counts || (n.kind == DagKind::kPointwise && n.op != ExprOp::kCall && n.op != ExprOp::kTake &&
                                 std::ranges::all_of(n.operands, [&](const Operand& o) {
                                   return o.is_number() || found[at(o.node)];
                                 })));
  return found;
}

DagNode reduction_of(DagNode scan) {
  scan.kind = DagKind::kReduce;
  scan.op = *reduction_of_scan(scan.op);
  return scan;
}

Operand append(Dag& dag, DagNode n) {
  Operand o;
  o.node = static_cast<int>(dag.nodes.size());
  o.shape = n.shape;
  o.strides = row_major(n.shape);
  dag.nodes.push_back(std::move(n));
  return o;
}

void split_dimension(Operand& o, size_t d, int64_t inner) {
  o.shape.insert(o.shape.begin() + static_cast<int64_t>(d) + 1, inner);
  o.shape[d] /= inner;
  o.strides.insert(o.strides.begin() + static_cast<int64_t>(d) + 1, o.strides[d]);
  o.strides[d] *= inner;
}

void tidy(Dag& dag) {
  std::vector<int> place(dag.nodes.size(), -1);
  std::vector<DagNode> sorted;
  // Post-order by an explicit stack: expressions may be deep.
  auto visit = [&](int root) {
    std::vector<std::pair<int, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      DagNode& n = dag.nodes[static_cast<size_t>(node)];
      if (place[static_cast<size_t>(node)] >= 0) {
        stack.pop_back();
      } else if (next < n.operands.size()) {
        const Operand& o = n.operands[next++];
        if (!o.is_number()) stack.emplace_back(o.node, 0);
      } else {
        for (Operand& o : n.operands)
          if (!o.is_number()) o.node = place[static_cast<size_t>(o.node)];
        place[static_cast<size_t>(node)] = static_cast<int>(sorted.size());
        sorted.push_back(std::move(n));
        stack.pop_back();
      }
    }
  };
  for (Operand& o : dag.outputs) {
    visit(o.node);
    o.node = place[static_cast<size_t>(o.node)];
  }
  dag.nodes = std::move(sorted);
}

}  // namespace kiln::fusion
