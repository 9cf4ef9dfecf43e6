// A plan as a program: its sources, and the host part that allocates and launches as the runtime would. It runs under
// Kiln and under Triton with torch.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "compiler/fusion/emitter.h"
#include "compiler/fusion/plan.h"
#include "support/launch_options.h"

namespace kiln::fusion {

namespace {

std::string torch_name(DType t) { return fmt::format("torch.{}", info(t).torch); }
std::string tuple(const Shape& s) { return fmt::format("({}{})", fmt::join(s, ", "), s.size() == 1 ? "," : ""); }

bool is_whole(const View& view, const Value& value) {
  return view.shape == value.shape && view.strides == value.strides && view.offset == 0;
}

class Script {
 public:
  explicit Script(const Plan& plan) : plan_(plan) {
    for (const Value& v : plan.values) names_.push_back(fresh(v.name.empty() ? (v.input >= 0 ? "x" : "t") : v.name));
  }

  std::string text() {
    std::string out = "import torch\n" + imports(any(&Group::libdevice));
    for (const Group& g : plan_.groups) out += functions_of(g);
    std::vector<std::string> inputs;
    for (size_t v = 0; v < plan_.values.size(); ++v)
      if (plan_.values[v].input >= 0) inputs.push_back(names_[v]);
    out += fmt::format("\n\ndef run({}):\n", fmt::join(inputs, ", "));
    const std::string device = inputs.empty() ? "\"cuda\"" : inputs.front() + ".device";
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      const Value& value = plan_.values[v];
      if (value.input >= 0) continue;
      const bool padded = value.strides != row_major(value.shape);
      out +=
          fmt::format("    {} = torch.{}({}{}, dtype={}, device={})\n", names_[v],
                      value.turns || value.zeros ? "zeros"
                      : padded                   ? "empty_strided"
                                                 : "empty",
                      tuple(value.shape), padded ? ", " + tuple(value.strides) : "", torch_name(value.dtype), device);
    }
    for (const Group& g : plan_.groups) out += g.kind == GroupKind::kKernel ? launch(g) : product(g.product);
    std::vector<std::string> results;
    for (const View& v : plan_.outputs) results.push_back(tensor(v));
    out += fmt::format("    return {}\n", fmt::join(results, ", "));
    out += "\n\nif __name__ == \"__main__\":\n";
    out += "    device = \"cuda\" if torch.cuda.is_available() else \"cpu\"\n    torch.manual_seed(0)\n";
    if (any(&Group::descriptors))
      out +=
          "    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=device))\n";
    for (size_t v = 0; v < plan_.values.size(); ++v)
      if (plan_.values[v].input >= 0) out += "    " + names_[v] + " = " + made(plan_.values[v]) + "\n";
    return out + fmt::format("    print(run({}))\n", fmt::join(inputs, ", "));
  }

 private:
  std::string fresh(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    if (std::isdigit(static_cast<unsigned char>(name[0]))) name = "t" + name;
    std::string out = name;
    for (int i = 1; !taken_.insert(out).second; ++i) out = fmt::format("{}{}", name, i);
    return out;
  }

  // Each function once: kernels share helpers. Other kernels of the same name, as of a scan's parts, get a number.
  std::string functions_of(const Group& g) {
    std::string out;
    for (const std::string& f : g.functions) {
      if (!functions_.insert(f).second) continue;
      std::string text = f;
      if (&f == &g.functions.back()) {
        const std::string head = "def " + g.kernel + "(";
        if (const size_t at = text.find(head); at != std::string::npos)
          text.replace(at, head.size(), "def " + (kernels_[f] = fresh(g.kernel)) + "(");
      }
      out += "\n\n" + text + "\n";
    }
    return out;
  }

  bool any(bool Group::*fact) const {
    return std::any_of(plan_.groups.begin(), plan_.groups.end(), [&](const Group& g) { return g.*fact; });
  }

  std::string tensor(const View& v) const {
    const std::string& name = names_[at(v.value)];
    if (is_whole(v, plan_.values[at(v.value)])) return name;
    return fmt::format("{0}.as_strided({1}, {2}, {0}.storage_offset() + {3})", name, tuple(v.shape), tuple(v.strides),
                       v.offset);
  }

  std::string argument(const Argument& a) const {
    struct Visit {
      const Script& script;
      std::string operator()(std::monostate) const { return "None"; }
      std::string operator()(const TensorArg& t) const {
        // Of a pointer only the address counts.
        return t.offset == 0 ? script.names_[at(t.value)] : script.tensor({t.value, {1}, {1}, t.offset});
      }
      std::string operator()(int64_t v) const { return std::to_string(v); }
      std::string operator()(double v) const { return Emitter::literal(v, DType::kF64); }
      std::string operator()(bool v) const { return v ? "True" : "False"; }
      std::string operator()(DType t) const { return fmt::format("tl.{}", info(t).triton); }
    };
    return std::visit(Visit{*this}, a.value);
  }

  std::string launch(const Group& g) const {
    std::vector<std::string> arguments;
    for (const Argument& a : g.arguments)
      arguments.push_back(a.is_constexpr ? fmt::format("{}={}", a.name, argument(a)) : argument(a));
    for (const LaunchOption& o : kLaunchOptions)
      if (o.has('W') || o.get(g) != o.get({})) arguments.push_back(o.text(g));
    const auto own = g.functions.empty() ? kernels_.end() : kernels_.find(g.functions.back());
    return fmt::format("    {}[({}, {}, {})]({})\n", own == kernels_.end() ? g.kernel : own->second, g.grid[0],
                       g.grid[1], g.grid[2], fmt::join(arguments, ", "));
  }

  std::string product(const LibraryProduct& p) const {
    std::string value = fmt::format("{} @ {}", tensor(p.a), tensor(p.b));
    if (p.bias.value >= 0) value += " + " + tensor(p.bias);
    if (p.activation == Activation::kRelu) value = fmt::format("torch.nn.functional.relu({})", value);
    if (p.activation == Activation::kGeluTanh)
      value = fmt::format("torch.nn.functional.gelu({}, approximate=\"tanh\")", value);
    return fmt::format("    {}.copy_({})\n", tensor(p.out), value);
  }

  // Random elements of its dtype, in memory as the plan's were.
  static std::string made(const Value& v) {
    std::string random =
        v.dtype == DType::kI1 ? fmt::format("torch.randint(0, 2, {}, device=device).to(torch.bool)", tuple(v.shape))
        : is_int(v.dtype)
            ? fmt::format("torch.randint(0, 100, {}, device=device).to({})", tuple(v.shape), torch_name(v.dtype))
            : fmt::format("torch.randn({}, device=device).to({})", tuple(v.shape), torch_name(v.dtype));
    if (v.strides == row_major(v.shape)) return random;
    return fmt::format("torch.empty_strided({}, {}, dtype={}, device=device).copy_({})", tuple(v.shape),
                       tuple(v.strides), torch_name(v.dtype), random);
  }

  const Plan& plan_;
  std::set<std::string> taken_ = {"torch", "triton", "tl", "run", "device"};
  std::vector<std::string> names_;
  std::set<std::string> functions_;
  std::map<std::string, std::string> kernels_;  // what a kernel is called here, by its text
};

}  // namespace

std::string plan_script(const Plan& plan) { return Script(plan).text(); }

}  // namespace kiln::fusion
