#include "compiler/fusion/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "support/diag.h"

namespace kiln::fusion {

namespace {

using Operands = std::span<const Node* const>;

/// 0 bool, 1 integer, 2 float.
int kind_of(DType t) { return is_float(t) ? 2 : t == DType::kI1 ? 0 : 1; }

/// Tensors with dimensions, 0-d tensors, Python numbers: the later follow the earlier.
int strength(const Node& n) { return n.op == ExprOp::kScalar ? 2 : n.shape.empty() ? 1 : 0; }

DType result_dtype(Operands inputs) {
  std::optional<DType> result;
  for (int level = 0; level < 3; ++level) {
    std::optional<DType> here;
    for (const Node* n : inputs)
      if (strength(*n) == level) here = here ? promote(*here, n->dtype) : n->dtype;
    if (here && (!result || kind_of(*here) > kind_of(*result))) result = here;
  }
  return *result;
}

DType as_float(DType t) { return is_float(t) ? t : DType::kF32; }

Result<Shape> broadcast(ExprOp op, Operands inputs) {
  Shape out;
  for (const Node* n : inputs) out.resize(std::max(out.size(), n->shape.size()), 1);
  for (const Node* n : inputs)
    for (size_t i = 1; i <= n->shape.size(); ++i) {
      const int64_t size = n->shape[n->shape.size() - i];
      int64_t& slot = out[out.size() - i];
      if (slot == 1) slot = size;
      if (size == 1 || size == slot) continue;
      std::string shapes;
      for (const Node* each : inputs)
        if (each->op != ExprOp::kScalar) shapes += (shapes.empty() ? "" : " and ") + to_string(each->shape);
      return error(ErrorKind::kType, "{}: the shapes {} do not broadcast: dimension -{} is {} and {}", name(op), shapes,
                   i, slot, size);
    }
  return out;
}

/// Axes counted from 0, in order; none given means all when `all_by_default`.
Result<std::vector<int>> axes_of(ExprOp op, const Node& x, const std::vector<int>& given, bool all_by_default) {
  const int rank = static_cast<int>(x.shape.size());
  std::vector<int> axes;
  if (given.empty() && all_by_default)
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  for (int d : given) {
    if (rank == 0 && (d == 0 || d == -1)) continue;  // torch lets these name the one element
    if (d < -rank || d >= rank)
      return error(ErrorKind::kValue, "{}: dimension {} of a tensor that has {}", name(op), d, rank);
    axes.push_back(d < 0 ? d + rank : d);
  }
  std::sort(axes.begin(), axes.end());
  if (auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end())
    return error(ErrorKind::kValue, "{}: dimension {} is named twice", name(op), *twice);
  return axes;
}

Diagnostic needs_float(ExprOp op, DType got) {
  return with_note(error(ErrorKind::kType, "{} of {} has no dtype to be in", name(op), info(got).torch),
                   "help: convert first, with .float()");
}

Status view(ExprOp op, const Node& x, Node& out) {
  ExprAttributes& a = out.attributes;
  const size_t rank = x.shape.size();
  out.dtype = x.dtype;
  if (op == ExprOp::kPermute) {
    std::vector<bool> seen(rank);
    if (a.axes.size() != rank)
      return error(ErrorKind::kType, "permute: {} dimensions are given for a tensor of {}", a.axes.size(), rank);
    for (int& d : a.axes) {
      if (d < -static_cast<int>(rank) || d >= static_cast<int>(rank))
        return error(ErrorKind::kValue, "permute: dimension {} of a tensor that has {}", d, rank);
      if (d < 0) d += static_cast<int>(rank);
      if (seen[static_cast<size_t>(d)]) return error(ErrorKind::kValue, "permute: dimension {} is named twice", d);
      seen[static_cast<size_t>(d)] = true;
      out.shape.push_back(x.shape[static_cast<size_t>(d)]);
    }
    return {};
  }
  if (op == ExprOp::kExpand) {
    if (a.shape.size() < rank)
      return error(ErrorKind::kType, "expand: {} cannot become {}, which has fewer dimensions", to_string(x.shape),
                   to_string(a.shape));
    for (size_t d = 0; d < a.shape.size(); ++d) {
      const size_t lead = a.shape.size() - rank;
      const int64_t own = d < lead ? 1 : x.shape[d - lead];
      if (a.shape[d] == -1 && d >= lead) a.shape[d] = own;
      if (a.shape[d] < 0 || (a.shape[d] != own && own != 1))
        return error(ErrorKind::kType, "expand: {} cannot become {}: dimension {} is {} and {}", to_string(x.shape),
                     to_string(a.shape), d, own, a.shape[d]);
    }
    out.shape = a.shape;
    return {};
  }
  if (op == ExprOp::kReshape) {
    int64_t known = 1, unknown = -1;
    bool is_counted = true;  // sizes whose product is beyond 64 bits are those of no tensor
    for (size_t d = 0; d < a.shape.size(); ++d) {
      if (a.shape[d] == -1 && unknown < 0) {
        unknown = static_cast<int64_t>(d);
      } else if (a.shape[d] < 0) {
        return error(ErrorKind::kValue, "reshape: {} has more than one -1, or a negative size", to_string(a.shape));
      } else {
        is_counted = !__builtin_mul_overflow(known, a.shape[d], &known) && is_counted;
      }
    }
    const int64_t n = numel(x.shape);
    if (is_counted && unknown >= 0 && known > 0) a.shape[static_cast<size_t>(unknown)] = n / known;
    if (!is_counted || numel(a.shape) != n || (unknown >= 0 && known == 0))
      return error(ErrorKind::kType, "reshape: {} has {} elements and cannot become {}", to_string(x.shape), n,
                   to_string(a.shape));
    out.shape = a.shape;
    return {};
  }
  KILN_ASSERT(op == ExprOp::kSlice, "view {}", name(op));
  if (a.steps.empty()) a.steps.assign(rank, 1);
  if (a.shape.size() != rank || a.starts.size() != rank || a.steps.size() != rank)
    return error(ErrorKind::kType, "slice: of a tensor of {} dimensions, {} starts, {} steps and {} sizes are given",
                 rank, a.starts.size(), a.steps.size(), a.shape.size());
  for (size_t d = 0; d < rank; ++d) {
    if (a.steps[d] < 1) return error(ErrorKind::kValue, "slice: the step {} is not positive", a.steps[d]);
    const bool inside = a.shape[d] == 0 || (a.starts[d] >= 0 && a.starts[d] < x.shape[d] &&
                                            a.shape[d] - 1 <= (x.shape[d] - 1 - a.starts[d]) / a.steps[d]);
    if (a.shape[d] < 0 || !inside)
      return error(ErrorKind::kValue, "slice: {} elements from {} by {} reach outside of dimension {}, which has {}",
                   a.shape[d], a.starts[d], a.steps[d], d, x.shape[d]);
  }
  out.shape = a.shape;
  return {};
}

Status reduce(ExprOp op, const Node& x, Node& out) {
  ExprAttributes& a = out.attributes;
  KILN_TRY(a.axes, axes_of(op, x, a.axes, a.axes.empty()));
  int64_t n = 1;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const bool reduced = std::binary_search(a.axes.begin(), a.axes.end(), static_cast<int>(d));
    if (reduced) n *= x.shape[d];
    if (!reduced || a.keepdim) out.shape.push_back(reduced ? 1 : x.shape[d]);
  }
  out.dtype = x.dtype;
  if (op == ExprOp::kSum) {
    out.dtype = a.dtype.value_or(is_float(x.dtype) ? x.dtype : DType::kI64);
  } else if (op == ExprOp::kMean || op == ExprOp::kVar) {
    out.dtype = a.dtype.value_or(x.dtype);
    if (!is_float(out.dtype)) return needs_float(op, out.dtype);
  } else if (n == 0) {
    return error(ErrorKind::kValue, "{} of no elements", name(op));
  }
  if (op == ExprOp::kArgMax || op == ExprOp::kArgMin) {
    if (a.axes.size() > 1 && a.axes.size() < x.shape.size())
      return with_note(error(ErrorKind::kType, "{} takes one dimension, or none for all of them", name(op)),
                       "help: reshape, so that the dimensions are one");
    out.dtype = DType::kI64;
  }
  return {};
}

Status row(ExprOp op, Operands in, Node& out) {
  ExprAttributes& a = out.attributes;
  const Node& x = *in[0];
  out.shape = x.shape;
  if (reduction_of_scan(op)) {
    const bool adds = op == ExprOp::kCumSum || op == ExprOp::kCumProd;
    out.dtype = adds ? a.dtype.value_or(is_float(x.dtype) ? x.dtype : DType::kI64) : x.dtype;
    if (in.size() != 1 || a.axes.size() != 1)
      return error(ErrorKind::kType, "{} takes one tensor and one dimension", name(op));
    KILN_TRY(a.axes, axes_of(op, x, a.axes, false));
    return {};
  }
  out.dtype = a.dtype.value_or(x.dtype);
  if (!is_float(out.dtype)) return needs_float(op, out.dtype);
  KILN_TRY(a.axes, axes_of(op, x, a.axes.empty() ? std::vector<int>{-1} : a.axes, false));
  if (op == ExprOp::kSoftmax || op == ExprOp::kLogSoftmax) {
    if (in.size() != 1 || a.axes.size() > 1)
      return error(ErrorKind::kType, "{} takes one tensor and one dimension", name(op));
    return {};
  }
  const size_t most = op == ExprOp::kLayerNorm ? 3 : 2;
  if (in.empty() || in.size() > most)
    return error(ErrorKind::kType, "{} takes 1 to {} tensors, got {}", name(op), most, in.size());
  const size_t first = x.shape.size() - a.axes.size();
  for (size_t i = 0; i < a.axes.size(); ++i)
    if (a.axes[i] != static_cast<int>(first + i))
      return error(ErrorKind::kValue, "{} works along the last dimensions only", name(op));
  const Shape want(x.shape.begin() + static_cast<std::ptrdiff_t>(first), x.shape.end());
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i]->shape != want)
      return error(ErrorKind::kType, "{} of {}: the {} has the shape {} and must have {}", name(op), to_string(x.shape),
                   i == 1 ? "weight" : "bias", to_string(in[i]->shape), to_string(want));
  return {};
}

Status matmul(Operands in, Node& out) {
  const Node &a = *in[0], &b = *in[1];
  auto fail = [&](std::string_view why) {
    return error(ErrorKind::kType, "matmul of {} and {}: {}", to_string(a.shape), to_string(b.shape), why);
  };
  if (a.shape.empty() || b.shape.empty()) return fail("both need at least one dimension");
  if (a.dtype != b.dtype)
    return with_note(
        error(ErrorKind::kType, "matmul of {} and {}: the dtypes differ", info(a.dtype).torch, info(b.dtype).torch),
        "help: convert one with .to(dtype)");
  const int64_t k = a.shape.back(), other = b.shape[b.shape.size() == 1 ? 0 : b.shape.size() - 2];
  if (k != other) return fail(fmt::format("the inner dimensions are {} and {}", k, other));
  Node lead_a, lead_b;
  if (a.shape.size() > 2) lead_a.shape.assign(a.shape.begin(), a.shape.end() - 2);
  if (b.shape.size() > 2) lead_b.shape.assign(b.shape.begin(), b.shape.end() - 2);
  const Node* leads[] = {&lead_a, &lead_b};
  auto shape = broadcast(ExprOp::kMatMul, leads);
  if (!shape.ok()) return fail("the leading dimensions do not broadcast");
  out.shape = *std::move(shape);
  if (a.shape.size() > 1) out.shape.push_back(a.shape[a.shape.size() - 2]);
  if (b.shape.size() > 1) out.shape.push_back(b.shape.back());
  if (is_int(a.dtype) && a.dtype != DType::kI8)
    return with_note(error(ErrorKind::kUnsupported, "matmul of {}: there is no product of these", info(a.dtype).torch),
                     "help: multiply floats or int8, converting with .to(dtype)");
  const DType usual = is_int(a.dtype) ? DType::kI32 : is_fp8(a.dtype) ? DType::kBF16 : a.dtype;
  out.dtype = out.attributes.dtype.value_or(usual);
  return {};
}

Status iota(Node& out) {
  const ExprAttributes& a = out.attributes;
  out.dtype = a.dtype.value_or(DType::kI64);
  if (a.shape.size() != 1 || a.shape[0] < 0 || !is_int(out.dtype) || out.dtype == DType::kI1)
    return error(ErrorKind::kType, "iota has one dimension, of integers");
  out.shape = a.shape;
  return {};
}

Status full(Node& out) {
  const ExprAttributes& a = out.attributes;
  out.dtype = a.dtype.value_or(DType::kF32);
  if (std::ranges::any_of(a.shape, [](int64_t d) { return d < 0; }))
    return error(ErrorKind::kType, "full of negative dimensions");
  out.shape = a.shape;
  return {};
}

/// The result has the dimensions of the first operand, along some of which the others say where to look.
Status take(Operands in, Node& out) {
  ExprAttributes& a = out.attributes;
  const Node& x = *in[0];
  if (in.size() != a.axes.size() + 1)
    return error(ErrorKind::kType, "take along {} dimensions needs as many tensors of places, got {}", a.axes.size(),
                 in.size() - 1);
  const int rank = static_cast<int>(x.shape.size());
  Node rest;
  rest.shape = x.shape;  // with one element where places are looked up
  std::vector<bool> seen(x.shape.size());
  for (int& d : a.axes) {
    if (d < -rank || d >= rank) return error(ErrorKind::kValue, "take: dimension {} of a tensor that has {}", d, rank);
    if (d < 0) d += rank;
    if (seen[at(d)]) return error(ErrorKind::kValue, "take: dimension {} is named twice", d);
    seen[at(d)] = true;
    rest.shape[at(d)] = 1;
  }
  std::vector<const Node*> places = {&rest};
  for (const Node* index : in.subspan(1)) {
    if (!is_int(index->dtype) || index->dtype == DType::kI1 || index->op == ExprOp::kScalar)
      return error(ErrorKind::kType, "take: places are a tensor of integers, not of {}", info(index->dtype).torch);
    if (static_cast<int>(index->shape.size()) > rank)
      return error(ErrorKind::kType, "take: places of {} for a tensor of {}", to_string(index->shape),
                   to_string(x.shape));
    places.push_back(index);
  }
  KILN_TRY(out.shape, broadcast(ExprOp::kTake, places));
  for (int d : a.axes)
    if (x.shape[at(d)] == 0 && numel(out.shape) > 0 && !a.any_outside)
      return error(ErrorKind::kValue, "take: dimension {} has no elements", d);
  out.dtype = x.dtype;
  return {};
}

/// What a take read, added up where it came from: the result has its operand's shape, whose dimensions of one element
/// the values may repeat.
Status scatter_add(Operands in, Node& out) {
  ExprAttributes& a = out.attributes;
  const Node& x = *in[0];
  const size_t rank = x.shape.size();
  if (in.size() != a.axes.size() + 1 || a.axes.empty())
    return error(ErrorKind::kType, "scatter_add along {} dimensions needs as many tensors of places, got {}",
                 a.axes.size(), in.size() - 1);
  if (!is_float(x.dtype)) return needs_float(ExprOp::kScatterAdd, x.dtype);
  if (a.shape.size() != rank)
    return error(ErrorKind::kType, "scatter_add: {} cannot become {}", to_string(x.shape), to_string(a.shape));
  KILN_TRY(std::vector<int> sorted, axes_of(ExprOp::kScatterAdd, x, a.axes, false));
  for (int& d : a.axes) d += d < 0 ? static_cast<int>(rank) : 0;
  for (size_t d = 0; d < rank; ++d)
    if (!std::binary_search(sorted.begin(), sorted.end(), static_cast<int>(d)) && a.shape[d] != x.shape[d] &&
        a.shape[d] != 1)
      return error(ErrorKind::kType, "scatter_add: {} cannot become {}", to_string(x.shape), to_string(a.shape));
  std::vector<const Node*> places = {&x};
  for (const Node* index : in.subspan(1)) {
    if (!is_int(index->dtype) || index->dtype == DType::kI1 || index->op == ExprOp::kScalar)
      return error(ErrorKind::kType, "scatter_add: places are a tensor of integers, not of {}",
                   info(index->dtype).torch);
    places.push_back(index);
  }
  KILN_TRY(Shape both, broadcast(ExprOp::kScatterAdd, places));
  if (both != x.shape) return error(ErrorKind::kType, "scatter_add: places do not broadcast to {}", to_string(x.shape));
  out.shape = a.shape;
  out.dtype = x.dtype;
  return {};
}

/// Values, where each goes, and whether it does.
Status put(Operands in, Node& out) {
  if (in[0]->op == ExprOp::kScalar || !is_int(in[1]->dtype) || in[1]->dtype == DType::kI1 ||
      in[1]->op == ExprOp::kScalar || in[2]->dtype != DType::kI1)
    return error(ErrorKind::kType, "put takes a tensor, a tensor of integers and one of bools, got {}, {} and {}",
                 info(in[0]->dtype).torch, info(in[1]->dtype).torch, info(in[2]->dtype).torch);
  KILN_TRY(out.shape, broadcast(ExprOp::kPut, in));
  out.dtype = in[0]->dtype;
  return {};
}

/// Refuses what torch refuses of bools and floats, and gives the dtype.
Result<DType> pointwise_dtype(ExprOp op, Operands in, const ExprAttributes& a) {
  const DType promoted = result_dtype(in);
  switch (info(op).dtypes) {
    case ExprDTypeRule::kBool:
      return DType::kI1;
    case ExprDTypeRule::kFloat:
      return as_float(promoted);
    case ExprDTypeRule::kFirst:
      if (in[0]->dtype == DType::kI1 && op != ExprOp::kTrunc)
        return error(ErrorKind::kType, "{} does not apply to tensors of bool", name(op));
      return in[0]->dtype;
    case ExprDTypeRule::kBits:
      if (is_float(promoted))
        return error(ErrorKind::kType, "{} does not apply to tensors of {}", name(op), info(promoted).torch);
      if (promoted == DType::kI1 && (op == ExprOp::kShl || op == ExprOp::kShr))
        return error(ErrorKind::kType, "{} does not apply to tensors of bool", name(op));
      if (op == ExprOp::kRandomWord && promoted != DType::kI64)
        return error(ErrorKind::kType, "random_word counts in int64, not {}", info(promoted).torch);
      return promoted;
    case ExprDTypeRule::kPromote: {
      if (op == ExprOp::kSub && (in[0]->dtype == DType::kI1 || in[1]->dtype == DType::kI1))
        return with_note(error(ErrorKind::kType, "sub does not apply to bools"),
                         "help: use ^ or ~, or convert with .to(dtype)");
      const bool sums = op == ExprOp::kAdd || op == ExprOp::kMul || op == ExprOp::kMaximum || op == ExprOp::kMinimum;
      if (promoted == DType::kI1 && !sums)
        return with_note(error(ErrorKind::kType, "{} does not apply to tensors of bool", name(op)),
                         "help: use ^, & or |, or convert with .to(dtype)");
      return promoted;
    }
    case ExprDTypeRule::kOther:
      break;
  }
  if (op == ExprOp::kWhere) {
    if (in[0]->dtype != DType::kI1)
      return with_note(error(ErrorKind::kType, "where: the condition is {} and must be bool", info(in[0]->dtype).torch),
                       "help: compare it, as in x != 0");
    return result_dtype(in.subspan(1));
  }
  if (op == ExprOp::kCast) {
    if (!a.dtype) return error(ErrorKind::kType, "cast needs a dtype");
    return *a.dtype;
  }
  if (op == ExprOp::kCall) return a.dtype.value_or(promoted);
  return DType::kI1;  // the logical ones
}

/// What has no value whatever the elements are.
Status check_number(ExprOp op, Operands in, DType dtype) {
  if (!is_int(dtype) || in.size() < 2 || in[1]->op != ExprOp::kScalar) return {};
  const double v = std::visit([](auto x) { return static_cast<double>(x); }, in[1]->attributes.value);
  if ((op == ExprOp::kFloorDiv || op == ExprOp::kMod) && v == 0)
    return error(ErrorKind::kValue, "division by zero of a tensor of integers");
  if (op == ExprOp::kPow && v < 0) return error(ErrorKind::kValue, "integers cannot be raised to a negative power");
  return {};
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (bits(a) == bits(b)) return DType::kF32;  // f16 with bf16, one fp8 with the other
    return bits(a) > bits(b) ? a : b;
  }
  if (is_signed(a) == is_signed(b)) return bits(a) > bits(b) ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (bits(s) > bits(u)) return s;
  for (DType wider : {DType::kI16, DType::kI32})
    if (bits(wider) > bits(u)) return wider;
  return DType::kI64;
}

DType operand_dtype(ExprOp op, Operands inputs) {
  switch (info(op).dtypes) {
    case ExprDTypeRule::kPromote:
    case ExprDTypeRule::kBool:
    case ExprDTypeRule::kBits:
      return result_dtype(inputs);
    case ExprDTypeRule::kFloat:
      return as_float(result_dtype(inputs));
    case ExprDTypeRule::kFirst:
      return inputs[0]->dtype;
    case ExprDTypeRule::kOther:
      break;
  }
  if (op == ExprOp::kWhere) return result_dtype(inputs.subspan(1));
  if (op == ExprOp::kLogicalAnd || op == ExprOp::kLogicalOr) return DType::kI1;
  return inputs[0]->dtype;
}

namespace {

Status infer_any(ExprOp op, Operands in, std::span<const int> positions, ExprAttributes attributes, Node& out) {
  const ExprOpInfo& row_of = info(op);
  if (row_of.arity != ExprOpInfo::kAnyNumber && static_cast<size_t>(row_of.arity) != in.size())
    return error(ErrorKind::kType, "{} takes {} operands, got {}", name(op), row_of.arity, in.size());
  if (in.empty() && op != ExprOp::kIota && op != ExprOp::kFull)
    return error(ErrorKind::kType, "{} needs an operand", name(op));
  KILN_ASSERT(in.size() == positions.size(), "{}: {} operands at {} positions", name(op), in.size(), positions.size());
  out.op = op;
  out.inputs.assign(positions.begin(), positions.end());
  out.attributes = std::move(attributes);
  switch (row_of.kind) {
    case ExprKind::kInput:
    case ExprKind::kScalar:
      break;
    case ExprKind::kView:
      return view(op, *in[0], out);
    case ExprKind::kPlace:
      if (op == ExprOp::kScatterAdd) return scatter_add(in, out);
      if (op == ExprOp::kPut) return put(in, out);
      if (op == ExprOp::kFull) return full(out);
      return op == ExprOp::kIota ? iota(out) : take(in, out);
    case ExprKind::kReduce:
      return reduce(op, *in[0], out);
    case ExprKind::kRow:
      return row(op, in, out);
    case ExprKind::kMatmul:
      return matmul(in, out);
    case ExprKind::kCall:
      if (!out.attributes.function) return error(ErrorKind::kType, "call needs a jit function");
      [[fallthrough]];
    case ExprKind::kPointwise: {
      KILN_TRY(out.dtype, pointwise_dtype(op, in, out.attributes));
      KILN_CHECK_OK(check_number(op, in, out.dtype));
      KILN_TRY(out.shape, broadcast(op, in));
      return {};
    }
  }
  KILN_UNREACHABLE("{} is a leaf", name(op));
}

}  // namespace

Status infer_into(Node& out, ExprOp op, Operands in, std::span<const int> positions, ExprAttributes attributes) {
  KILN_CHECK_OK(infer_any(op, in, positions, std::move(attributes), out));
  double elements = 1;
  for (int64_t d : out.shape) elements *= static_cast<double>(d);
  if (elements > 0x1p60)
    return error(ErrorKind::kMemory, "{}: a result of {} would have {:.3g} elements", name(op), to_string(out.shape),
                 elements);
  return {};
}

Result<Node> infer(ExprOp op, Operands in, std::span<const int> positions, ExprAttributes attributes) {
  Node out;
  KILN_CHECK_OK(infer_into(out, op, in, positions, std::move(attributes)));
  return out;
}

Result<int> append(Graph& graph, ExprOp op, std::span<const int> inputs, ExprAttributes attributes) {
  std::vector<const Node*> nodes;
  for (int i : inputs) nodes.push_back(&graph.nodes[static_cast<size_t>(i)]);
  KILN_TRY(Node node, infer(op, nodes, inputs, std::move(attributes)));
  graph.nodes.push_back(std::move(node));
  return static_cast<int>(graph.nodes.size()) - 1;
}

}  // namespace kiln::fusion
