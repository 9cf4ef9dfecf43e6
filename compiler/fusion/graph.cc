#include "compiler/fusion/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/fusion/dag.h"
#include "support/float_bits.h"

namespace kiln::fusion {

bool takes_argument(ExprOp op) {
  using enum ExprOp;
  return op == kAdd || op == kSub || op == kMul || op == kDiv || op == kMaximum || op == kMinimum || op == kClamp ||
         op == kEq || op == kNe || op == kLt || op == kLe || op == kGt || op == kGe || op == kWhere ||
         op == kRandomWord;
}

std::optional<ExprOp> reduction_of_scan(ExprOp op) {
  if (op == ExprOp::kCumSum) return ExprOp::kSum;
  if (op == ExprOp::kCumProd) return ExprOp::kCumProd;  // itself: there is no other name for the product
  if (op == ExprOp::kCumMax) return ExprOp::kMax;
  if (op == ExprOp::kCumMin) return ExprOp::kMin;
  return std::nullopt;
}

bool is_ordinary(const Number& number) {
  if (std::holds_alternative<bool>(number)) return false;
  const double size = std::fabs(std::visit([](auto v) { return static_cast<double>(v); }, number));
  return size > 1e-30 && size < 1e30 && size != 0.5 && size != 1 && size != 2;
}

DType number_type(ExprOp op, DType type) {
  const bool own = info(op).dtypes == ExprDTypeRule::kBool || op == ExprOp::kMod || op == ExprOp::kPow;
  return own ? type : register_type(type);
}

Number converted(const Number& number, DType type) {
  const double real = std::visit([](auto v) { return static_cast<double>(v); }, number);
  if (type == DType::kI1) return real != 0;
  if (is_float(type)) return float_from_bits(type, unsaturated_float_bits(type, real));
  int64_t v = 0;
  if (!std::holds_alternative<double>(number))
    v = std::visit([](auto x) { return static_cast<int64_t>(x); }, number);
  else if (real >= 0x1p63)
    v = std::numeric_limits<int64_t>::max();
  else if (real >= -0x1p63)
    v = static_cast<int64_t>(real);
  else if (real < -0x1p63)  // and 0 for a NaN, as the conversion of an element is
    v = std::numeric_limits<int64_t>::min();
  if (bits(type) < 64) {
    const int spare = 64 - bits(type);
    const uint64_t up = static_cast<uint64_t>(v) << spare;
    v = is_signed(type) ? static_cast<int64_t>(up) >> spare : static_cast<int64_t>(up >> spare);
  }
  return v;
}

int64_t numel(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(1, shape[d]);
  }
  return strides;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

namespace {

std::string number_text(const Number& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "True" : "False";
  if (const int64_t* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  return fmt::format("{}", std::get<double>(value));
}

}  // namespace

std::string to_string(const Graph& graph) {
  std::string out;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    out += fmt::format("%{} = {}", i, name(n.op));
    for (int from : n.inputs) out += fmt::format(" %{}", from);
    const ExprAttributes& a = n.attributes;
    if (n.op == ExprOp::kScalar) out += " " + number_text(a.value) + (n.is_argument ? " (argument)" : "");
    if (!a.axes.empty()) out += fmt::format(" axes=[{}]", fmt::join(a.axes, ", "));
    if (a.keepdim) out += " keepdim";
    if (a.any_outside) out += " any_outside";
    if (a.adds) out += " adds";
    if (!a.starts.empty()) out += fmt::format(" starts=[{}]", fmt::join(a.starts, ", "));
    if (!a.steps.empty()) out += fmt::format(" steps=[{}]", fmt::join(a.steps, ", "));
    if (a.function) out += " @" + a.function->name;
    out += fmt::format(" : {}{}", kiln::name(n.dtype), to_string(n.shape));
    if (n.op == ExprOp::kInput && n.strides != row_major(n.shape)) out += " strides " + to_string(n.strides);
    out += '\n';
  }
  out += fmt::format("return %{}\n", fmt::join(graph.outputs, " %"));
  return out;
}

Node input(DType dtype, Shape shape, Shape strides, int alignment, std::string name) {
  Node n;
  n.dtype = dtype;
  n.shape = std::move(shape);
  n.strides = std::move(strides);
  n.alignment = alignment;
  n.name = std::move(name);
  return n;
}

Node scalar(Number value) {
  Node n;
  n.op = ExprOp::kScalar;
  n.dtype = value.index() == 0 ? DType::kI1 : value.index() == 1 ? DType::kI64 : DType::kF32;
  n.attributes.value = value;
  return n;
}

}  // namespace kiln::fusion
