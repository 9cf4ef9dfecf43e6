#include "tests/unit/fusion/run_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kiln::fusion::testing {

namespace {

/// A buffer whose bytes are all ones: NaN in every float type, -1 and 255 in integers.
Result<Tensor> poisoned(const Device& device, DType dtype, int64_t n) {
  std::vector<std::byte> bytes(static_cast<size_t>(n * size_of(dtype)), std::byte{0xff});
  const int64_t shape[] = {n};
  return Tensor::from_host(device, dtype, shape, bytes.data(), bytes.size());
}
}  // namespace

int add_input(Problem& p, const Device& device, DType dtype, const Shape& shape, const Shape& strides, int64_t offset,
              const std::vector<double>& elements, std::string name) {
  int64_t last = offset;
  for (size_t d = 0; d < shape.size(); ++d) last += std::max<int64_t>(0, shape[d] - 1) * strides[d];
  const int64_t size = last + 8;
  std::vector<std::byte> bytes(static_cast<size_t>(size * size_of(dtype)), std::byte{0xff});
  std::vector<double> read(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), place = offset;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) place += rest % shape[d] * strides[d];
    std::byte* element = bytes.data() + place * size_of(dtype);
    from_double(dtype, elements[i], element);
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), place = offset;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) place += rest % shape[d] * strides[d];
    read[i] = to_double(dtype, bytes.data() + place * size_of(dtype));
  }
  const int64_t flat[] = {size};
  auto whole = Tensor::from_host(device, dtype, flat, bytes.data(), bytes.size());
  EXPECT_TRUE(whole.ok()) << render(whole.error());
  auto view = whole->as_strided(shape, strides, offset);
  EXPECT_TRUE(view.ok()) << render(view.error());
  const int alignment = static_cast<int>(view->address() & (~view->address() + 1) & 15);
  p.graph.nodes.push_back(input(dtype, shape, strides, alignment == 0 ? 16 : alignment, std::move(name)));
  p.tensors.resize(p.graph.nodes.size());
  p.elements.resize(p.graph.nodes.size());
  p.tensors.back() = *view;
  p.elements.back() = std::move(read);
  return static_cast<int>(p.graph.nodes.size()) - 1;
}

Machine host_machine() { return {"host", 2, 0}; }
Machine hopper_machine() { return {"sm_90a", 132, 227 << 10}; }

std::vector<std::optional<Arg>> arguments(const Group& group, const std::vector<Tensor>& values) {
  std::vector<std::optional<Arg>> out;
  for (const Argument& a : group.arguments) {
    if (const TensorArg* t = std::get_if<TensorArg>(&a.value)) {
      const Tensor& tensor = values[at(t->value)];
      auto moved = tensor.as_strided(tensor.shape(), tensor.strides(), tensor.offset());
      // The pointer alone matters: a view that starts at the offset.
      if (t->offset != 0) {
        const int64_t one[] = {1};
        moved = tensor.as_strided(one, one, tensor.offset() + t->offset);
      }
      EXPECT_TRUE(moved.ok()) << render(moved.error());
      out.emplace_back(Arg(*moved));
    } else if (const int64_t* i = std::get_if<int64_t>(&a.value)) {
      out.emplace_back(Arg(*i));
    } else if (const double* d = std::get_if<double>(&a.value)) {
      out.emplace_back(Arg(*d));
    } else if (const bool* b = std::get_if<bool>(&a.value)) {
      out.emplace_back(Arg(*b));
    } else if (const DType* t2 = std::get_if<DType>(&a.value)) {
      out.emplace_back(Arg(*t2));
    } else {
      out.emplace_back(Arg(std::monostate{}));
    }
  }
  return out;
}

Plan configured(Plan plan, size_t group, const Configuration& configuration) {
  Group& g = plan.groups[group];
  for (const auto& [name, value] : configuration.constants) {
    auto at_name =
        std::find_if(g.arguments.begin(), g.arguments.end(), [&](const Argument& a) { return a.name == name; });
    EXPECT_TRUE(at_name != g.arguments.end() && at_name->is_constexpr) << name;
    if (at_name != g.arguments.end()) at_name->value = value;
  }
  g.grid = configuration.grid;
  g.num_warps = configuration.num_warps;
  g.num_ctas = configuration.num_ctas;
  g.num_stages = configuration.num_stages;
  return plan;
}

Result<std::vector<Tensor>> run(const Plan& plan, const Problem& problem, const Device& device) {
  std::vector<Tensor> values, slots;
  for (const Value& v : plan.values) {
    if (v.input >= 0) {
      values.push_back(problem.tensors[at(v.input)]);
      continue;
    }
    if (v.turns || v.zeros) {
      KILN_TRY(values.emplace_back(), Tensor::zeros(device, v.dtype, v.shape));
      continue;
    }
    KILN_TRY(Tensor buffer, poisoned(device, v.dtype, v.bytes() / size_of(v.dtype)));
    KILN_TRY(values.emplace_back(), buffer.as_strided(v.shape, v.strides, 0));
  }
  // What programs told each other in one launch does not count in the next one.
  const bool again = std::ranges::any_of(plan.values, &Value::zeros);
  for (int launch = 0; launch < (again ? 2 : 1); ++launch)
    for (const Group& g : plan.groups) {
      KILN_TRY(Kernel kernel, Kernel::from_source(g.source, g.name + ".py", g.kernel));
      LaunchOptions options;
      options.num_warps = g.num_warps;
      options.num_stages = g.num_stages;
      options.num_ctas = g.num_ctas;
      KILN_CHECK_OK(kernel.launch(g.grid, arguments(g, values), options));
    }
  for (size_t i = 0; i < values.size(); ++i)
    if (plan.values[i].turns) {
      KILN_TRY(const std::vector<double> count, values[i].to_doubles());
      EXPECT_EQ(count, std::vector<double>(count.size(), 0)) << "the next launch would count on";
    }
  std::vector<Tensor> outputs;
  for (const View& o : plan.outputs) {
    const Tensor& t = values[at(o.value)];
    KILN_TRY(outputs.emplace_back(), t.as_strided(o.shape, o.strides, t.offset() + o.offset));
  }
  return outputs;
}

double expect_close(const Problem& problem, const std::vector<Tensor>& outputs, const std::string& what) {
  return expect_close(problem, evaluate(problem.graph, problem.elements), outputs, what);
}

double expect_close(const Problem& problem, const std::vector<Elements>& want, const std::vector<Tensor>& outputs,
                    const std::string& what) {
  EXPECT_EQ(want.size(), outputs.size());
  double tight = 0, all = 0;
  for (size_t o = 0; o < want.size(); ++o) {
    const Node& n = problem.graph.nodes[at(problem.graph.outputs[o])];
    EXPECT_EQ(outputs[o].dtype(), n.dtype);
    auto got = outputs[o].to_doubles();
    if (!got.ok()) {
      ADD_FAILURE() << render(got.error());
      continue;
    }
    EXPECT_EQ(got->size(), want[o].value.size());
    int bad = 0;
    for (size_t i = 0; i < got->size(); ++i) {
      const double value = want[o].value[i], bound = want[o].error[i], g = (*got)[i];
      ++all;
      if (!std::isfinite(bound) || !std::isfinite(value)) continue;
      tight += bound < 0.1 * (1 + std::abs(value));
      if (std::abs(g - value) <= 5 * bound + (n.dtype == DType::kF16 ? 1e-7 : 1e-37)) continue;  // the least numbers
      if (++bad > 3) break;
      ADD_FAILURE() << what << ": output " << o << " element " << i << " is " << g << ", expected " << value
                    << " within " << bound;
    }
  }
  return all == 0 ? 1 : std::min(1.0, (tight + 1) / all);
}

}  // namespace kiln::fusion::testing
