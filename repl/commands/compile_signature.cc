#include "repl/commands/compile_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ast/annotation.h"
#include "compiler/ast/walk.h"
#include "compiler/parse/parser.h"
#include "repl/commands/assumed_constexpr.h"
#include "repl/commands/assumed_descriptors.h"
#include "repl/commands/assumed_integers.h"
#include "repl/commands/assumed_launch.h"
#include "support/diag.h"

namespace kiln::repl {

namespace {

using ast::Expr;
using ast::Stmt;

// Parameters and local names that are used as addresses, by the function or by those that it hands them to.
class Addresses {
 public:
  using Names = std::set<std::string, std::less<>>;

  const Names& of(const frontend::JitFunction& f) {
    auto [it, fresh] = names_.try_emplace(f.def);
    if (fresh) it->second = find(f);  // a call back to a function that is being looked at adds nothing
    return names_.at(f.def);
  }

 private:
  Names find(const frontend::JitFunction& f) {
    Names names;
    std::multimap<std::string, std::string, std::less<>> comes_from;  // local name → what its value starts with
    auto on_expr = [&](const Expr& e) {
      auto* call = ast::dyn_as<ast::Call>(&e);
      if (!call) return;
      if (const Expr* address = address_of(*call))
        add(names, address);
      else if (const auto helper = helper_of(f, *call)) {
        const Names inside = of(*helper);
        for (const auto& [param, value] : handed_on(*helper, *call))
          if (inside.contains(param)) add(names, value);
      }
    };
    auto on_stmt = [&](const Stmt& s) {
      auto* a = ast::dyn_as<ast::Assign>(&s);
      if (!a) return;
      for (const auto& t : a->targets)
        if (auto* n = ast::dyn_as<ast::Name>(t.get()))
          if (auto from = leading_name(a->value.get()); !from.empty()) comes_from.emplace(n->id, from);
    };
    ast::walk(f.def->body, on_stmt, on_expr);
    for (bool grew = true; grew;) {
      grew = false;
      for (const auto& [local, from] : comes_from)
        if (names.contains(local)) grew |= names.insert(from).second;
    }
    return names;
  }

  static void add(Names& names, const Expr* address) {
    if (auto name = leading_name(address); !name.empty()) names.emplace(name);
  }

  std::map<const ast::FunctionDef*, Names> names_;
};

// How many items a parameter has that is indexed by numbers or unpacked, by the function or by those that it hands it
// to: `x[1]`, `a, b = x`. What is indexed by names alone has two.
class Tuples {
 public:
  using Sizes = std::map<std::string, size_t, std::less<>>;

  const Sizes& of(const frontend::JitFunction& f) {
    auto [it, fresh] = sizes_.try_emplace(f.def);
    if (fresh) {  // a call back to a function that is being looked at adds nothing
      Sizes found = find(f);
      it = sizes_.insert_or_assign(f.def, std::move(found)).first;
    }
    return it->second;
  }

 private:
  Sizes find(const frontend::JitFunction& f) {
    Sizes sizes;
    auto add = [&](const Expr* e, size_t n) {
      const auto* name = ast::dyn_as<ast::Name>(e);
      const bool is_param = name && std::any_of(f.def->params.begin(), f.def->params.end(),
                                                [&](const ast::Param& p) { return p.name == name->id; });
      if (!is_param) return;
      size_t& size = sizes.try_emplace(name->id, 0).first->second;
      size = std::max(size, n);
    };
    auto on_stmt = [&](const Stmt& s) {
      const auto* a = ast::dyn_as<ast::Assign>(&s);
      for (size_t i = 0; a && i < a->targets.size(); ++i)
        if (const auto* names = ast::dyn_as<ast::Tuple>(a->targets[i].get())) add(a->value.get(), names->items.size());
    };
    auto on_expr = [&](const Expr& e) {
      if (const auto* s = ast::dyn_as<ast::Subscript>(&e)) {
        const auto* index = ast::dyn_as<ast::ConstantExpr>(s->index.get());
        const auto* n = index ? std::get_if<ast::Int>(&index->value) : nullptr;
        constexpr ast::Int kMost = 64;
        if (n && *n >= 0 && *n < kMost) add(s->base.get(), static_cast<size_t>(*n) + 1);
        if (ast::dyn_as<ast::Name>(s->index.get())) add(s->base.get(), 2);
        return;
      }
      const auto* call = ast::dyn_as<ast::Call>(&e);
      const auto helper = call ? helper_of(f, *call) : nullptr;
      if (!helper) return;
      const Sizes inside = of(*helper);
      for (const auto& [param, value] : handed_on(*helper, *call))
        if (auto it = inside.find(param); it != inside.end()) add(value, it->second);
    };
    ast::walk(f.def->body, on_stmt, on_expr);
    return sizes;
  }

  std::map<const ast::FunctionDef*, Sizes> sizes_;
};

/// Names that are the last stride of a descriptor, which is 1: `strides=[stride_m, stride_k]`.
std::set<std::string, std::less<>> last_strides_of(const ast::FunctionDef& f) {
  std::set<std::string, std::less<>> names;
  ast::walk(
      f.body, [](const Stmt&) {},
      [&](const Expr& e) {
        const auto* call = ast::dyn_as<ast::Call>(&e);
        if (!call || last_name(call->callee.get()) != "make_tensor_descriptor") return;
        const auto* strides = ast::items_of(argument(*call, "strides", 2));
        if (!strides || strides->empty()) return;
        if (const auto* last = ast::dyn_as<ast::Name>(strides->back().get())) names.insert(last->id);
      });
  return names;
}

std::string repeated(const std::string& item, size_t n) {
  std::string out = item;
  for (size_t i = 1; i < n; ++i) out += ", " + item;
  return fmt::format("({}{})", out, n == 1 ? "," : "");
}

// "fp32", as Triton's signatures have it.
std::string signature_name(DType t) {
  const std::string_view long_name = info(t).triton;
  return long_name.starts_with("float") ? "fp" + std::string(long_name.substr(5)) : std::string(name(t));
}

// "*fp32" or "i64" from an annotation, or "".
std::string annotated_type(const Expr* annotation) {
  if (!annotation) return {};
  std::string text;
  if (auto* c = ast::dyn_as<ast::ConstantExpr>(annotation))
    if (auto* s = std::get_if<std::string>(&c->value)) text = *s;
  if (text.empty()) text = last_name(annotation);
  std::string_view element = text;
  if (element.starts_with("*")) element.remove_prefix(1);
  if (element.starts_with("tl.")) element.remove_prefix(3);
  auto dtype = parse_dtype(element);
  if (!dtype) return {};
  return text.starts_with("*") ? "*" + signature_name(*dtype) + ":16" : signature_name(*dtype);
}

bool usually_float(std::string_view name) {
  constexpr std::string_view kNames[] = {"eps",      "epsilon",       "p",  "alpha", "beta",     "scale",
                                         "sm_scale", "softmax_scale", "lr", "slope", "momentum", "dropout_p",
                                         "factor",   "weight_decay"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Whether the function, or one that it calls, adds dimensions, as in `x[:, None]`.
bool makes_tiles(const frontend::JitFunction& f, std::set<const ast::FunctionDef*>& seen) {
  if (!seen.insert(f.def).second) return false;
  bool found = false;
  ast::walk(
      f.def->body, [](const Stmt&) {},
      [&](const Expr& e) {
        if (found) return;
        const auto* s = ast::dyn_as<ast::Subscript>(&e);
        const auto* index = s ? ast::dyn_as<ast::Tuple>(s->index.get()) : nullptr;
        found = index && std::any_of(index->items.begin(), index->items.end(),
                                     [](const ast::ExprPtr& i) { return ast::dyn_as<ast::Slice>(i.get()) != nullptr; });
        const auto* call = ast::dyn_as<ast::Call>(&e);
        const auto helper = call ? helper_of(f, *call) : nullptr;
        found = found || (helper && makes_tiles(*helper, seen));
      });
  return found;
}

std::string show(const frontend::Global& g) {
  if (auto* c = std::get_if<ast::Constant>(&g)) return ast::repr(*c);
  if (auto* t = std::get_if<DType>(&g)) return "tl." + std::string(info(*t).triton);
  if (auto* m = std::get_if<frontend::ModulePath>(&g))
    return m->path.starts_with("triton.language.") ? "tl." + m->path.substr(std::string("triton.language.").size())
                                                   : m->path;
  if (auto* f = std::get_if<std::shared_ptr<const frontend::JitFunction>>(&g)) return (*f)->def->name;
  if (auto* tuple = std::get_if<std::shared_ptr<const frontend::GlobalTuple>>(&g)) {
    std::string items;
    for (const frontend::Global& item : (*tuple)->items) items += show(item) + ", ";
    return "(" + items.substr(0, items.size() - ((*tuple)->items.size() > 1 ? 2 : 1)) + ")";
  }
  return "…";
}

constexpr std::string_view kGuessedPointer = "*fp32:16";

std::string assumed_type(const ast::Param& param, const Addresses::Names& addresses, const IntegerUses::Names& integers,
                         const LaunchFacts& launch, Evidence evidence) {
  if (std::string t = annotated_type(param.annotation.get()); !t.empty()) return t;
  const bool by_name = evidence == Evidence::kNamesToo;
  const bool named_pointer = by_name && (param.name.ends_with("ptr") || param.name.ends_with("Ptr"));
  if (addresses.contains(param.name) || named_pointer) {
    if (const auto element = launch.elements.find(param.name); element != launch.elements.end())
      return "*" + element->second + ":16";
    const auto narrow = integers.narrow.find(param.name);
    return integers.handles.contains(param.name)    ? "*i64:16"
           : integers.flags.contains(param.name)    ? "*i1:16"
           : integers.pointees.contains(param.name) ? "*i32:16"
           : narrow != integers.narrow.end()        ? "*" + narrow->second + ":16"
                                                    : std::string(kGuessedPointer);
  }
  if (auto* c = ast::dyn_as<ast::ConstantExpr>(param.default_value.get())) {
    if (std::holds_alternative<double>(c->value)) return "fp32";
    if (std::holds_alternative<bool>(c->value)) return "i1";
  }
  if (integers.truths.contains(param.name)) return "i1";
  if (launch.floats.contains(param.name) && !integers.values.contains(param.name)) return "fp32";
  return by_name && usually_float(param.name) && !integers.values.contains(param.name) ? "fp32" : "i32:16";
}

}  // namespace

AssumedSignature assume_signature(const frontend::JitFunction& function,
                                  const std::vector<std::pair<std::string, frontend::Global>>& constexprs,
                                  Evidence evidence, const Revision& revision) {
  AssumedSignature out;
  out.constexprs = constexprs;
  const ast::FunctionDef& f = *function.def;
  Addresses found;
  const Addresses::Names& addresses = found.of(function);
  IntegerUses uses;
  const IntegerUses::Names& integers = uses.of(function);
  auto given = [&](const std::string& name) {
    return std::any_of(constexprs.begin(), constexprs.end(), [&](const auto& c) { return c.first == name; });
  };
  Tuples tuples;
  const Tuples::Sizes& tuple_sizes = tuples.of(function);
  auto tuple_of = [&](const std::string& name) {
    const auto it = tuple_sizes.find(name);
    return it == tuple_sizes.end() ? 0 : it->second;
  };
  const auto descriptors = descriptors_of(function);
  const auto last_strides = last_strides_of(f);
  constexpr int64_t kSide = 32, kVector = 1024;
  LaunchFacts launch = revision.launch ? launch_facts(function, kSide) : LaunchFacts();
  std::map<std::string_view, std::optional<frontend::Global>> assumed;
  for (const ast::Param& p : f.params)
    if (last_strides.contains(p.name) && !given(p.name))
      assumed.emplace(p.name, ast::Constant(ast::Int{1}));
    else if (!given(p.name) && p.annotation && ast::is_constexpr_annotation(*p.annotation))
      if (const auto& [at, fresh] = assumed.emplace(p.name, assumed_constexpr(function, p, launch, revision.flags));
          at->second == frontend::Global(ast::Constant(revision.flags)))
        out.guessed_flags |= assumed_constexpr(function, p, launch, !revision.flags) != at->second;
  // One free size is a block of a vector; several, or one in a function of tiles, are the sides of a tile.
  const auto sizes = std::count_if(assumed.begin(), assumed.end(), [](const auto& a) { return !a.second; });
  std::set<const ast::FunctionDef*> seen;
  const bool is_side = sizes > 1 || makes_tiles(function, seen);
  const int64_t free_size = (is_side ? kSide : kVector) * revision.size;
  const ast::Constant size(ast::Int{free_size});
  if (revision.launch && !is_side) launch = launch_facts(function, kVector);
  for (auto& [name, value] : assumed) {
    if (value) continue;
    if (const auto it = launch.sizes.find(name); it != launch.sizes.end())
      value = ast::Constant(ast::Int{it->second * revision.size}), out.used_launch = true;
    out.guessed_sizes = true;
  }
  for (const auto& [name, value] : launch.constants)
    if (const auto it = assumed.find(name); it != assumed.end() && it->second == value) out.used_launch = true;
  const SizeOf size_of = [&](std::string_view name) -> std::optional<int64_t> {
    const frontend::Global* value = nullptr;
    for (const auto& [given_name, v] : constexprs)
      if (given_name == name) value = &v;
    if (const auto it = assumed.find(name); it != assumed.end()) {
      if (!it->second) return free_size;
      value = &*it->second;
    }
    const auto* c = value ? std::get_if<ast::Constant>(value) : nullptr;
    const auto* n = c ? std::get_if<ast::Int>(c) : nullptr;
    return n ? std::optional(static_cast<int64_t>(*n)) : std::nullopt;
  };
  for (const ast::Param& param : f.params) {
    std::string type;
    auto* none = ast::dyn_as<ast::ConstantExpr>(param.default_value.get());
    bool none_by_default = none && std::holds_alternative<ast::None>(none->value);
    if (given(param.name)) {
      type = "constexpr";
    } else if (auto it = assumed.find(param.name); it != assumed.end() || none_by_default) {
      type = "constexpr";
      frontend::Global value = it == assumed.end() ? ast::Constant(ast::None{}) : it->second.value_or(size);
      if (const size_t n = tuple_of(param.name); n > 0 && it != assumed.end() && !it->second)
        value = std::make_shared<const frontend::GlobalTuple>(
            frontend::GlobalTuple{std::vector<frontend::Global>(n, value)});
      out.constexprs.emplace_back(param.name, std::move(value));
      out.assumptions.push_back(fmt::format("{}={}", param.name, show(out.constexprs.back().second)));
    } else {
      type = assumed_type(param, addresses, integers, launch, evidence);
      if (type == "*i32:16" && !launch.elements.contains(param.name)) {
        out.guessed_integers = true;
        if (revision.wide) type = "*i64:16";
        if (revision.truths) type = "*i1:16";
      } else if (revision.integers.contains(param.name)) {
        type = "*i32:16";
      }
      if (type == kGuessedPointer && !launch.elements.contains(param.name)) {
        out.guessed_pointers.push_back(param.name);
        if (revision.halves) type = "*fp16:16";
      }
      out.used_launch |= launch.elements.contains(param.name) || launch.floats.contains(param.name);
      if (const auto d = descriptors.find(param.name);
          d != descriptors.end() && d->second > 0 && !addresses.contains(param.name)) {
        const auto narrow = integers.narrow.find(param.name);
        const auto element = launch.elements.find(param.name);
        const std::string of = element != launch.elements.end()  ? element->second
                               : narrow != integers.narrow.end() ? narrow->second
                                                                 : std::string("fp32");
        const auto block = descriptor_block(function, param.name, d->second, launch, size_of);
        // Two sides of a vector's size would be a million elements, which take seconds to compile.
        const int64_t side = d->second == 1 ? free_size : kSide * revision.size;
        type = fmt::format("tensordesc<{}[", of);
        for (size_t i = 0; i < d->second; ++i) type += fmt::format("{}{}", i ? ", " : "", block[i].value_or(side));
        type += "]>";
      } else if (const size_t n = tuple_of(param.name); n > 0) {
        type = repeated(type, n);
      }
      out.assumptions.push_back(fmt::format("{}: {}", param.name, type));
    }
    out.signature += (out.signature.empty() ? "" : ", ") + type;
  }
  return out;
}

std::vector<std::string> called_names(const ast::FunctionDef& function) {
  std::vector<std::string> names;
  ast::walk(
      function.body, [](const Stmt&) {},
      [&](const Expr& e) {
        if (auto* call = ast::dyn_as<ast::Call>(&e))
          if (auto* n = ast::dyn_as<ast::Name>(call->callee.get())) names.push_back(n->id);
      });
  return names;
}

}  // namespace kiln::repl
