// The builtins' table, its lookup by name and module path, and the binding of arguments.
#include "compiler/frontend/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "compiler/frontend/builtin_impl.h"
#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

using ir::OpKind;

namespace {

constexpr Builtin kBuiltins[] = {
#define KILN_BUILTIN(name, where, params, fn) {name, where, params, impl::fn},
#define KILN_MATH_BUILTIN(name, where, op) {name, where, "x", impl::math_op<OpKind::op>},
#define KILN_LIBRARY(name, where, file) {name, where, file, nullptr},
#include "compiler/frontend/builtins.def"
};

constexpr std::string_view kLetters = "LMDSTPRCBKNIXAO";  // in the order of Exposure's bits

/// A module of Triton, the functions it shows, and its submodules (comma-separated).
struct ModuleRow {
  std::string_view path;
  unsigned exposure;
  std::string_view submodules;
};
constexpr ModuleRow kModules[] = {
    {"triton", kInTriton, "language,runtime"},
    {"triton.runtime", 0, ""},
    {"math", 0, ""},
    {"torch.version", 0, ""},
    {"triton.language", kInLanguage, "math,core,standard,random,extra,target_info,PropagateNan"},
    {"triton.language.math", kInMath, ""},
    {"triton.language.core", kInLanguage, "PropagateNan"},
    {"triton.language.standard", kInLanguage | kInStandard, ""},
    {"triton.language.random", kInRandom, ""},
    {"triton.language.target_info", kInTargetInfo, ""},
    {"triton.profiler.language", kInProfiler, ""},
    {"triton.language.PropagateNan", 0, ""},
    {"triton.language.core.PropagateNan", 0, ""},
    {"triton.language.extra", 0, "libdevice,cuda,kiln"},
    {"triton.language.extra.libdevice", kInLibdevice, ""},
    {"triton.language.extra.cuda", kInCuda, "libdevice"},
    {"triton.language.extra.cuda.libdevice", kInLibdevice, ""},
    {"triton.language.extra.kiln", kInKiln, ""},
    {"torch._inductor.runtime.triton_helpers", kInInductor, "libdevice,math"},
    {"torch._inductor.runtime.triton_helpers.libdevice", kInLibdevice, ""},
    {"torch._inductor.runtime.triton_helpers.math", kInMath, ""},
    // Where PyTorch 2.1 to 2.3 had them.
    {"torch._inductor.triton_helpers", kInInductor, "libdevice,math"},
    {"torch._inductor.triton_helpers.libdevice", kInLibdevice, ""},
    {"torch._inductor.triton_helpers.math", kInMath, ""},
};

const ModuleRow* find_module(std::string_view path) {
  for (const ModuleRow& m : kModules)
    if (m.path == path) return &m;
  return nullptr;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    out.push_back(item);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return out;
}

bool shows_dtypes(std::string_view path) { return path == "triton.language" || path == "triton.language.core"; }

ast::Constant parse_default(std::string_view text) {
  if (text == "None") return ast::None{};
  if (text == "True" || text == "False") return text == "True";
  if (text.front() == '\'') return std::string(text.substr(1, text.size() - 2));
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  KILN_ASSERT(error == std::errc() && end == text.data() + text.size(), "default in builtins.def");
  return ast::Int{v};
}

}  // namespace

std::string_view BoundArgs::name(int i) const { return parse_params(builtin->params)[i].name; }

unsigned Builtin::exposure() const {
  unsigned bits = 0;
  for (char c : where) bits |= 1u << kLetters.find(c);
  return bits;
}

std::string Builtin::display_name() const {
  unsigned e = exposure();
  if (e & kInLanguage) return fmt::format("tl.{}", name);
  if (e & kInLibdevice) return fmt::format("libdevice.{}", name);
  if (e & (kIsMethod | kOfDescriptor)) return fmt::format(".{}()", name);
  if (e & kInTriton) return fmt::format("triton.{}", name);
  if (e & kInStandard) return fmt::format("tl.standard.{}", name);
  if (e & kInRandom) return fmt::format("tl.random.{}", name);
  if (e & kInInductor) return fmt::format("triton_helpers.{}", name);
  if (e & kInKiln) return fmt::format("tl.extra.kiln.{}", name);
  if (e & kInTargetInfo) return fmt::format("tl.target_info.{}", name);
  if (e & kInProfiler) return fmt::format("triton.profiler.language.{}", name);
  if (e & kInCuda) return fmt::format("tl.extra.cuda.{}", name);
  return std::string(name);
}

std::span<const Builtin> builtins() { return kBuiltins; }

const Builtin* find_builtin(std::string_view name, unsigned exposure) {
  static const std::unordered_multimap<std::string_view, const Builtin*> index = [] {
    std::unordered_multimap<std::string_view, const Builtin*> out;
    for (const Builtin& row : kBuiltins) out.emplace(row.name, &row);
    return out;
  }();
  auto [first, last] = index.equal_range(name);
  for (auto it = first; it != last; ++it)
    if (it->second->exposure() & exposure) return it->second;
  return nullptr;
}

std::vector<std::string> builtin_names(unsigned exposure) {
  std::vector<std::string> out;
  for (const Builtin& row : kBuiltins)
    if (row.exposure() & exposure) out.emplace_back(row.name);
  return out;
}

std::vector<BuiltinParam> parse_params(std::string_view params) {
  std::vector<BuiltinParam> out;
  for (std::string_view item : split_list(params)) {
    BuiltinParam p;
    if (item.front() == '*') p.variadic = true, p.required = false, item.remove_prefix(1);
    size_t equals = item.find('=');
    p.name = item.substr(0, equals);
    if (equals != std::string_view::npos) p.required = false, p.default_value = parse_default(item.substr(equals + 1));
    out.push_back(std::move(p));
  }
  return out;
}

Result<BoundArgs> bind_builtin(Codegen& g, const Builtin& builtin, std::vector<Arg> positional,
                               std::vector<std::pair<std::string, Arg>> keywords, SourceRange range) {
  std::vector<BuiltinParam> params = parse_params(builtin.params);
  BoundArgs out{&builtin, range, std::vector<Arg>(params.size()), std::vector<bool>(params.size())};
  std::string shown = builtin.display_name();
  size_t next = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].variadic) {
      std::vector<Value> rest;
      SourceRange where;
      for (; next < positional.size(); ++next)
        where = cover(where, positional[next].range), rest.push_back(positional[next].value);
      out.given[i] = !rest.empty();
      out.args[i] = {Value::tuple(std::move(rest)), where};
    } else if (next < positional.size()) {
      out.args[i] = positional[next++];
      out.given[i] = true;
    }
  }
  if (next < positional.size()) {
    size_t required = static_cast<size_t>(
        std::count_if(params.begin(), params.end(), [](const BuiltinParam& p) { return p.required; }));
    std::string count =
        required == params.size() ? std::to_string(required) : fmt::format("{} to {}", required, params.size());
    return with_note(g.fail(positional[next].range, ErrorKind::kType, "{} takes {} argument{}, got {}", shown, count,
                            params.size() == 1 ? "" : "s", positional.size()),
                     fmt::format("help: {}({})", shown, builtin.params));
  }
  for (auto& [key, arg] : keywords) {
    auto p = std::find_if(params.begin(), params.end(), [&](const BuiltinParam& x) { return x.name == key; });
    if (p == params.end()) {
      std::vector<std::string> names;
      for (const BuiltinParam& x : params) names.emplace_back(x.name);
      Diagnostic d = g.fail(arg.range, ErrorKind::kName, "{} has no parameter {}", shown, key);
      std::string near = nearest_name(key, names);
      return with_note(std::move(d), near.empty() ? fmt::format("help: {}({})", shown, builtin.params)
                                                  : fmt::format("help: did you mean {}?", near));
    }
    size_t i = static_cast<size_t>(p - params.begin());
    if (out.given[i])
      return with_note(g.fail(arg.range, ErrorKind::kType, "the argument {} of {} is given twice", key, shown),
                       "it is given by its position here", out.args[i].range);
    out.given[i] = true;
    out.args[i] = p->variadic && !arg.value.as_tuple() ? Arg{Value::tuple({arg.value}), arg.range} : std::move(arg);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (out.given[i] || params[i].variadic) continue;
    if (params[i].required)
      return with_note(g.fail(range, ErrorKind::kType, "{} needs the argument {}", shown, params[i].name),
                       fmt::format("help: {}({})", shown, builtin.params));
    out.args[i].value = Value(params[i].default_value);
  }
  return out;
}

std::string path_of(const Builtin& builtin) {
  for (const ModuleRow& m : kModules)
    if (m.exposure & builtin.exposure()) return fmt::format("{}.{}", m.path, builtin.name);
  return {};
}

bool is_known_module(std::string_view path) { return find_module(path) != nullptr; }

// Numbers of Python's modules, which torch and numpy have too (but for tau).
std::optional<Value> number_of(std::string_view module, std::string_view name) {
  if (module != "math" && (name == "tau" || (module != "torch" && module != "numpy"))) return std::nullopt;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr std::pair<std::string_view, double> kConstants[] = {{"pi", std::numbers::pi},
                                                                {"e", std::numbers::e},
                                                                {"tau", 2 * std::numbers::pi},
                                                                {"inf", kInf},
                                                                {"nan", std::numeric_limits<double>::quiet_NaN()}};
  for (auto [constant, value] : kConstants)
    if (constant == name) return Value(ast::Constant(value));
  return std::nullopt;
}

std::optional<Value> module_member(std::string_view path, std::string_view name) {
  if (std::optional<Value> number = number_of(path, name)) return number;
  // Kernels ask it which vendor's GPU they are for.
  if (path == "torch" && name == "version") return Value(ModulePath{"torch.version"});
  if (path == "torch.version") return name == "hip" || name == "xpu" ? std::optional<Value>(Value()) : std::nullopt;
  if (path == "triton" && name == "__version__") return Value::text(std::string(kTritonVersion));
  const ModuleRow* module = find_module(path);
  if (!module) return std::nullopt;
  if (path.ends_with("PropagateNan")) {
    if (name == "ALL") return Value::text("all");
    if (name == "NONE") return Value::text("none");
    return std::nullopt;
  }
  // A default of parameters in Triton's own library, and so in published code.
  if (path == "triton.language.core" && name == "CONSTEXPR_0") return Value(ast::Constant(ast::Int{0}));
  for (std::string_view sub : split_list(module->submodules))
    if (sub == name) return Value(ModulePath{fmt::format("{}.{}", path, name)});
  if (shows_dtypes(path))
    for (int i = 0; i < kNumDTypes; ++i)
      if (kDTypes[i].triton == name) return Value(TypeValue{ir::scalar_type(static_cast<DType>(i))});
  if (const Builtin* b = find_builtin(name, module->exposure)) return Value(b);
  // Triton 2 had libdevice under these names.
  if (path == "triton.language" && name == "libdevice") return Value(ModulePath{"triton.language.extra.libdevice"});
  if (path == "triton.language.math")
    if (const Builtin* b = find_builtin(name, kInLibdevice)) return Value(b);
  return std::nullopt;
}

std::optional<Value> resolve_path(std::string_view path) {
  if (is_known_module(path)) return Value(ModulePath{std::string(path)});
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::optional<Value> parent = resolve_path(path.substr(0, dot));
  if (!parent || !parent->module()) return std::nullopt;
  return module_member(parent->module()->path, path.substr(dot + 1));
}

std::vector<std::string> member_names(std::string_view path) {
  const ModuleRow* module = find_module(path);
  if (!module) return {};
  std::vector<std::string> out = builtin_names(module->exposure);
  for (std::string_view sub : split_list(module->submodules)) out.emplace_back(sub);
  if (shows_dtypes(path))
    for (const DTypeInfo& t : kDTypes) out.emplace_back(t.triton);
  return out;
}

}  // namespace kiln::frontend
