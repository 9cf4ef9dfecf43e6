#include "compiler/fusion/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::fusion {

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

std::string number_text(const std::variant<bool, int64_t, double>& value) {
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
    if (n.op == ExprOp::kScalar) out += " " + number_text(a.value);
    if (!a.axes.empty()) out += fmt::format(" axes=[{}]", fmt::join(a.axes, ", "));
    if (a.keepdim) out += " keepdim";
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

Node scalar(std::variant<bool, int64_t, double> value) {
  Node n;
  n.op = ExprOp::kScalar;
  n.dtype = value.index() == 0 ? DType::kI1 : value.index() == 1 ? DType::kI64 : DType::kF32;
  n.attributes.value = value;
  return n;
}

}  // namespace kiln::fusion
