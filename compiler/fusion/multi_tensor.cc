#include "compiler/fusion/multi_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion/emitter.h"

namespace kiln::fusion {

namespace {

/// More than a machine has programs for, and odd: a tensor of any size may end inside of a block.
constexpr int64_t kElements = (int64_t{1} << 26) + 1;

/// The graph for tensors of kElements elements; nullopt where it does not say the same of them.
std::optional<Graph> flat(const Graph& graph) {
  Graph out = graph;
  const Shape* shape = nullptr;
  const bool has_dimensions = std::ranges::any_of(graph.nodes, [](const Node& n) { return !n.shape.empty(); });
  for (Node& n : out.nodes) {
    if (n.op == ExprOp::kScalar) continue;
    const bool keeps_shape = n.op == ExprOp::kExpand || n.op == ExprOp::kReshape;  // else they have another one
    const bool is_of_elements = n.op == ExprOp::kInput || n.op == ExprOp::kCast || n.op == ExprOp::kFull ||
                                keeps_shape || info(n.op).kind == ExprKind::kPointwise;
    if (!is_of_elements || (n.op == ExprOp::kInput && (n.strides != row_major(n.shape) || n.alignment < 16)))
      return std::nullopt;
    const Shape& own = graph.nodes[static_cast<size_t>(&n - out.nodes.data())].shape;
    if (own.empty() && has_dimensions) continue;  // all tuples share it
    if (!shape) shape = &own;
    if (own != *shape) return std::nullopt;
    n.shape = {kElements};
    if (!n.attributes.shape.empty()) n.attributes.shape = n.shape;
    if (n.op == ExprOp::kInput) n.strides = {1};
  }
  out.any_order.clear();
  return shape ? std::optional(std::move(out)) : std::nullopt;
}

/// Whether it is one kernel of elements that stores whole results, each in memory of its own.
bool is_one_kernel(const Plan& plan) {
  if (plan.groups.size() != 1 || plan.groups[0].kind != GroupKind::kKernel || plan.groups[0].descriptors) return false;
  if (std::ranges::any_of(plan.values, [](const Value& v) { return v.turns || v.zeros || v.put; })) return false;
  std::vector<int> results;
  for (const View& v : plan.outputs) {
    if (v.offset != 0 || plan.values[at(v.value)].input >= 0 || std::ranges::find(results, v.value) != results.end())
      return false;
    results.push_back(v.value);
  }
  return true;
}

Argument named(std::string name) {
  Argument a;
  a.name = std::move(name);
  return a;
}

std::string pointer_type(DType dtype) {
  return fmt::format("tl.pointer_type(tl.{})", dtype == DType::kI1 ? "int1" : info(dtype).triton);
}

}  // namespace

Result<std::optional<MultiTensor>> multi_tensor(const Graph& graph, const PlanOptions& given) {
  const std::optional<Graph> of_elements = flat(graph);
  const std::optional<MultiTensor> none;
  if (!of_elements) return none;
  PlanOptions options = given;
  options.gives_program = true;
  options.joins_totals = false;
  MultiTensor out;
  KILN_TRY(out.of_one, plan(*of_elements, options));
  if (!is_one_kernel(out.of_one)) return none;
  const Group& one = out.of_one.groups[0];
  Names names;
  for (const Argument& a : one.arguments) names.fresh(a.name);
  const std::string programs = names.fresh("programs_ptr"), rows = names.fresh("rows_ptr"),
                    row = names.fresh("row_ptr"), entry = names.fresh("entry");
  std::vector<Argument> parameters = {named(programs), named(rows)};
  std::string body = fmt::format(
      "\n    {0} = tl.load({1} + tl.program_id(0))\n"
      "    {2} = {3} + ({0} & 0xFFFFFFFF)",
      entry, programs, row, rows);
  std::string call = entry + " >> 32";
  for (const Argument& a : one.arguments) {
    call += ", ";
    if (const auto* tensor = std::get_if<TensorArg>(&a.value)) {
      if (tensor->offset != 0) return none;
      const Value& value = out.of_one.values[at(tensor->value)];
      if (value.shape.empty()) {
        if (value.input < 0) return none;
        parameters.push_back(a);
        out.arguments.push_back(a);
        call += a.name;
        continue;
      }
      out.columns.push_back(*tensor);
      body += fmt::format("\n    {} = tl.multiple_of(tl.load({} + {}).to({}), 16)", a.name, row, out.columns.size(),
                          pointer_type(value.dtype));
    } else if (const auto* number = std::get_if<int64_t>(&a.value); number && a.scalar < 0 && !a.is_constexpr) {
      if (*number != kElements) return none;  // another size
      call += fmt::format("tl.load({})", row);
      continue;
    } else {
      if (a.is_constexpr && number) out.block = *number;
      parameters.push_back(a);
      out.arguments.push_back(a);
    }
    call += a.name;
  }
  if (out.block == 0) return none;
  const std::string function = names.fresh(one.name), kernel = names.fresh("each_" + one.name + "_kernel");
  std::vector<Argument> inner = one.arguments;
  inner.insert(inner.begin(), named(std::string(kGivenProgram)));
  Group g = one;
  g.functions.pop_back();
  g.functions.push_back(function_text(function, inner, {}, one.body));
  g.functions.push_back(function_text(kernel, parameters, one.unspecialized,
                                      body + "\n" + broken(fmt::format("    {}({})", function, call))));
  g.comment = "# Of each tensor of a list: " + one.comment.substr(std::min<size_t>(2, one.comment.size()));
  out.source = source_of(g);
  out.kernel = kernel;
  out.options = one;
  return std::optional(std::move(out));
}

}  // namespace kiln::fusion
