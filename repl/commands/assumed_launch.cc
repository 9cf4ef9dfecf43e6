#include "repl/commands/assumed_launch.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "compiler/ast/constant.h"
#include "compiler/ast/walk.h"
#include "compiler/frontend/constexpr_text.h"
#include "kiln/dtype.h"
#include "repl/commands/assumed_integers.h"

namespace kiln::repl {

namespace {

using ast::Expr;
using frontend::Global;
using frontend::last_name;
using frontend::literal;

// Names follow names only so far: `x = x.contiguous()` is a definition by itself.
constexpr int kDepth = 8;

// A size from which others are computed.
constexpr int64_t kLarger = 128;

/// The kernel's name in `kernel[grid]`, and in `wrap_triton(kernel)[grid]`.
bool launches(const ast::Call& call, const frontend::JitFunction& kernel) {
  const auto* subscript = ast::dyn_as<ast::Subscript>(call.callee.get());
  if (!subscript) return false;
  const Expr* base = subscript->base.get();
  if (const auto* wrapped = ast::dyn_as<ast::Call>(base); wrapped && wrapped->args.size() == 1)
    base = wrapped->args[0].get();
  // `ReLU.forward[grid]`, also of another module's class: `kernel.ReLU.forward[grid]`.
  if (const auto* member = ast::dyn_as<ast::Attribute>(base); member && !kernel.class_name.empty()) {
    const auto* outer = ast::dyn_as<ast::Attribute>(member->base.get());
    const auto* holder = ast::dyn_as<ast::Name>(member->base.get());
    const std::string_view of = outer ? outer->name : holder ? holder->id : std::string_view();
    return member->name == kernel.def->name && of == kernel.class_name;
  }
  const auto* name = ast::dyn_as<ast::Name>(base);
  return name && name->id == kernel.own_name();
}

/// The type of a signature for a dtype of torch, "" for what is none.
std::string_view element_of(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"int8", "i8"},          {"uint8", "u8"},   {"byte", "u8"},
      {"int16", "i16"},        {"int32", "i32"},  {"int", "i32"},
      {"int64", "i64"},        {"long", "i64"},   {"bool", "i1"},
      {"float16", "fp16"},     {"half", "fp16"},  {"bfloat16", "bf16"},
      {"float32", "fp32"},     {"float", "fp32"}, {"float64", "fp64"},
      {"double", "fp64"},      {"uint32", "u32"}, {"float8_e4m3fn", "fp8e4nv"},
      {"float8_e5m2", "fp8e5"}};
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.first == dtype; });
  return found == std::end(kTypes) ? std::string_view() : found->second;
}

bool is_integer(std::string_view element) { return element.starts_with('i') || element.starts_with('u'); }

// A function of the host that launches the kernel, or the module.
class Host {
 public:
  Host(const frontend::JitFunction& kernel, const ast::FunctionDef* function, const ast::Body& body)
      : kernel_(kernel), function_(function) {
    auto on_stmt = [&](const ast::Stmt& s) {
      if (const auto* a = ast::dyn_as<ast::Assign>(&s)) {
        for (const ast::ExprPtr& target : a->targets) define(target.get(), a->value.get());
      } else if (const auto* n = ast::dyn_as<ast::AnnAssign>(&s)) {
        if (n->value) define(n->target.get(), n->value.get());
      } else if (const auto* u = ast::dyn_as<ast::AugAssign>(&s)) {
        define(u->target.get(), nullptr);
      } else if (const auto* l = ast::dyn_as<ast::For>(&s)) {
        define(l->target.get(), nullptr);
      }
    };
    auto on_expr = [&](const Expr& e) {
      if (const auto* c = ast::dyn_as<ast::Call>(&e); c && !launch_ && launches(*c, kernel)) launch_ = c;
    };
    ast::walk(body, on_stmt, on_expr);
  }

  const ast::Call* launch() const { return launch_; }

  struct Value {
    ast::Constant constant;
    bool known = true;  // not computed from a size that only a run tells
    bool plain = true;  // such a size itself
  };

  /// The value of `e`, where each size that the text does not tell is `size`; their names go to `used` where something
  /// is computed from them.
  std::optional<Value> evaluate(const Expr* e, int64_t size, const std::set<std::string, std::less<>>& larger,
                                int depth = kDepth) {
    if (!e || depth == 0) return std::nullopt;
    if (auto v = literal(e)) {
      const auto* c = std::get_if<ast::Constant>(&*v);
      return c ? std::optional(Value{*c}) : std::nullopt;
    }
    auto free = [&](const std::string& name) {
      const int64_t n = larger.contains(name) ? std::max<int64_t>(size, kLarger) : size;
      return Value{ast::Constant(ast::Int{n}), false, true};
    };
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      if (const Expr* only = definition(n->id)) {
        auto v = evaluate(only, size, larger, depth - 1);
        if (v && (v->known || !v->plain)) return v;
        return free(n->id);
      }
      if (!values_.contains(n->id) && !parameter(n->id) && kernel_.lookup)
        if (const auto global = kernel_.lookup(n->id))
          if (const auto* c = std::get_if<ast::Constant>(&*global)) return Value{*c};
      if (const ast::Param* p = parameter(n->id); p && !values_.contains(n->id))
        if (const auto v = literal(p->default_value.get()))
          if (const auto* c = std::get_if<ast::Constant>(&*v); c && !std::holds_alternative<ast::None>(*c))
            return Value{*c};
      return free(n->id);
    }
    if (const auto* b = ast::dyn_as<ast::Binary>(e)) {
      const auto left = evaluate(b->left.get(), size, larger, depth - 1);
      const auto right = evaluate(b->right.get(), size, larger, depth - 1);
      if (!left || !right) return std::nullopt;
      auto made = ast::apply(b->op, left->constant, right->constant, e->range);
      if (!made.ok()) return std::nullopt;
      return Value{*std::move(made), left->known && right->known, false};
    }
    if (const auto* call = ast::dyn_as<ast::Call>(e)) return evaluate_call(*call, size, larger, depth);
    return std::nullopt;
  }

  /// The names of sizes in `e`, through definitions.
  void names_in(const Expr* e, std::set<std::string, std::less<>>& out, int depth = kDepth) const {
    if (!e || depth == 0) return;
    ast::walk(e, [&](const Expr& at) {
      const auto* n = ast::dyn_as<ast::Name>(&at);
      if (!n || !out.insert(n->id).second) return;
      names_in(definition(n->id), out, depth - 1);
    });
  }

  bool computes(const Expr* e, int depth = kDepth) const {
    if (!e || depth == 0) return false;
    if (const auto* n = ast::dyn_as<ast::Name>(e)) return computes(definition(n->id), depth - 1);
    return ast::dyn_as<ast::Binary>(e) != nullptr;
  }

  bool is_float(const Expr* e, int depth = kDepth) const {
    if (!e || depth == 0) return false;
    if (const auto v = literal(e)) {
      const auto* c = std::get_if<ast::Constant>(&*v);
      return c && std::holds_alternative<double>(*c);
    }
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      if (const Expr* only = definition(n->id)) return is_float(only, depth - 1);
      const ast::Param* p = parameter(n->id);
      return p && (last_name(p->annotation.get()) == "float" || is_float(p->default_value.get(), depth - 1));
    }
    if (const auto* i = ast::dyn_as<ast::IfExp>(e))
      return is_float(i->then_value.get(), depth - 1) || is_float(i->else_value.get(), depth - 1);
    const auto* b = ast::dyn_as<ast::Binary>(e);
    return b && (b->op == ast::BinaryOp::kDiv ||
                 (b->op != ast::BinaryOp::kFloorDiv &&
                  (is_float(b->left.get(), depth - 1) || is_float(b->right.get(), depth - 1))));
  }

  /// The sides of the block of a tensor descriptor; null for what is none.
  const std::vector<ast::ExprPtr>* block_of(const Expr* e, int depth = kDepth) const {
    if (!e || depth == 0) return nullptr;
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      const auto it = values_.find(n->id);
      for (size_t i = 0; it != values_.end() && i < it->second.size(); ++i)
        if (const auto* block = block_of(it->second[i], depth - 1)) return block;
      return nullptr;
    }
    const auto* call = ast::dyn_as<ast::Call>(e);
    const std::string_view maker = call ? last_name(call->callee.get()) : std::string_view();
    if (maker != "TensorDescriptor" && maker != "from_tensor") return nullptr;
    return ast::items_of(argument(*call, "block_shape", maker == "from_tensor" ? 1 : 3));
  }

  /// What the elements of a tensor are, as far as the text shows how it was made; or "".
  std::string_view element(const Expr* e, int depth = kDepth) const {
    if (!e || depth == 0) return {};
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      if (const auto it = seconds_.find(n->id); it != seconds_.end() && !definition(n->id)) return it->second;
      return element(definition(n->id), depth - 1);
    }
    if (const auto* s = ast::dyn_as<ast::Subscript>(e)) return element(s->base.get(), depth - 1);
    const auto* call = ast::dyn_as<ast::Call>(e);
    if (!call) return {};
    if (block_of(call)) return element(argument(*call, "base", 0), depth - 1);
    for (const ast::Keyword& k : call->keywords)
      if (k.name == "dtype") return dtype(k.value.get(), depth);
    const auto* method = ast::dyn_as<ast::Attribute>(call->callee.get());
    if (!method) return {};
    const std::string_view name = method->name;
    const auto* owner = ast::dyn_as<ast::Name>(method->base.get());
    if (owner && owner->id == "torch") {
      constexpr std::string_view kIndices[] = {"argsort", "argmax",       "argmin",  "arange",
                                               "nonzero", "searchsorted", "bincount"};
      if (std::find(std::begin(kIndices), std::end(kIndices), name) != std::end(kIndices)) return "i64";
      if (call->args.empty()) return {};
      const std::string_view first = element(call->args[0].get(), depth - 1);
      if (name == "cumsum" && is_integer(first)) return "i64";
      return name.ends_with("_like") || name == "cat" || name == "flip" ? first : std::string_view();
    }
    if (name == "to" || name == "type")
      for (const ast::ExprPtr& a : call->args)
        if (const std::string_view t = dtype(a.get(), depth); !t.empty()) return t;
    if (call->args.empty()) {
      constexpr std::string_view kCasts[] = {"int", "long", "bool", "half", "bfloat16", "float", "double", "byte"};
      if (std::find(std::begin(kCasts), std::end(kCasts), name) != std::end(kCasts)) return element_of(name);
    }
    constexpr std::string_view kSame[] = {"to",        "contiguous", "view",    "reshape",   "flatten",
                                          "transpose", "permute",    "squeeze", "unsqueeze", "expand",
                                          "clone",     "detach",     "cuda",    "t"};
    const bool same = std::find(std::begin(kSame), std::end(kSame), name) != std::end(kSame);
    return same ? element(method->base.get(), depth - 1) : std::string_view();
  }

 private:
  void define(const Expr* target, const Expr* value) {
    if (const auto* n = ast::dyn_as<ast::Name>(target)) {
      values_[n->id].push_back(value);
      return;
    }
    const auto *names = ast::items_of(target), *items = value ? ast::items_of(value) : nullptr;
    for (size_t i = 0; names && i < names->size(); ++i)
      define((*names)[i].get(), items && items->size() == names->size() ? (*items)[i].get() : nullptr);
    // `values, indices = torch.sort(x)`.
    const auto* call = value ? ast::dyn_as<ast::Call>(value) : nullptr;
    const std::string_view made_by = call ? last_name(call->callee.get()) : std::string_view();
    if (names && names->size() == 2 &&
        (made_by == "sort" || made_by == "topk" || made_by == "max" || made_by == "min" ||
         made_by == "unique_consecutive"))
      if (const auto* n = ast::dyn_as<ast::Name>((*names)[1].get())) seconds_.emplace(n->id, "i64");
  }

  /// The value of a name that is bound once; null for others.
  const Expr* definition(std::string_view name) const {
    const auto it = values_.find(name);
    return it != values_.end() && it->second.size() == 1 && !parameter(name) ? it->second[0] : nullptr;
  }

  const ast::Param* parameter(std::string_view name) const {
    if (!function_) return nullptr;
    const auto it = std::find_if(function_->params.begin(), function_->params.end(),
                                 [&](const ast::Param& p) { return p.name == name; });
    return it == function_->params.end() ? nullptr : &*it;
  }

  std::string_view dtype(const Expr* e, int depth) const {
    const auto* a = ast::dyn_as<ast::Attribute>(e);
    if (a && a->name == "dtype") return element(a->base.get(), depth - 1);
    if (a) return element_of(a->name);
    const auto* n = ast::dyn_as<ast::Name>(e);
    const Expr* only = n && depth > 0 ? definition(n->id) : nullptr;
    return only ? dtype(only, depth - 1) : std::string_view();
  }

  std::optional<Value> evaluate_call(const ast::Call& call, int64_t size,
                                     const std::set<std::string, std::less<>>& larger, int depth) {
    std::vector<Value> args;
    for (const ast::ExprPtr& a : call.args) {
      auto v = evaluate(a.get(), size, larger, depth - 1);
      if (!v || !std::holds_alternative<ast::Int>(v->constant)) return std::nullopt;
      args.push_back(*std::move(v));
    }
    auto at = [&](size_t i) { return std::get<ast::Int>(args[i].constant); };
    const std::string_view name = last_name(call.callee.get());
    if (args.size() == 1 && name == "int") return args[0];
    constexpr ast::Int kMost = ast::Int{1} << 40;
    if (args.size() == 1 && name == "next_power_of_2" && at(0) > 0 && at(0) < kMost)
      return Value{ast::Constant(ast::Int{static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(at(0))))}),
                   args[0].known, args[0].plain};
    if (args.size() != 2) return std::nullopt;
    const bool known = args[0].known && args[1].known, plain = args[0].plain && args[1].plain;
    if (name == "cdiv" && at(1) > 0) return Value{ast::Constant((at(0) + at(1) - 1) / at(1)), known, false};
    if (name == "min") return Value{ast::Constant(std::min(at(0), at(1))), known, plain};
    if (name == "max") return Value{ast::Constant(std::max(at(0), at(1))), known, plain};
    return std::nullopt;
  }

  const frontend::JitFunction& kernel_;
  const ast::FunctionDef* function_;
  const ast::Call* launch_ = nullptr;
  std::map<std::string, std::vector<const Expr*>, std::less<>> values_;  // null: what a loop or += gives
  std::map<std::string, std::string_view, std::less<>> seconds_;         // elements of second results
};

/// The first function of the file that launches the kernel, else the module's own statements.
std::optional<Host> host_of(const frontend::JitFunction& kernel) {
  std::optional<Host> found;
  if (kernel.around) {  // which hides kernels of that name elsewhere
    Host maker(kernel, kernel.around, kernel.around->body);
    if (maker.launch()) found.emplace(std::move(maker));
    return found;
  }
  auto on_stmt = [&](const ast::Stmt& s) {
    const auto* f = ast::dyn_as<ast::FunctionDef>(&s);
    if (!f || f == kernel.def || found) return;
    bool has = false;
    ast::walk(
        f->body, [](const ast::Stmt&) {},
        [&](const Expr& e) {
          const auto* c = ast::dyn_as<ast::Call>(&e);
          has = has || (c && launches(*c, kernel));
        });
    if (has) found.emplace(kernel, f, f->body);
  };
  ast::walk(kernel.module->body, on_stmt, [](const Expr&) {});
  if (!found) {
    Host module(kernel, nullptr, kernel.module->body);
    if (module.launch()) found.emplace(std::move(module));
  }
  return found;
}

}  // namespace

LaunchFacts launch_facts(const frontend::JitFunction& kernel, int64_t size) {
  LaunchFacts facts;
  std::optional<Host> host = kernel.module ? host_of(kernel) : std::nullopt;
  if (!host) return facts;
  const ast::Call& launch = *host->launch();
  std::vector<std::pair<std::string, const Expr*>> given;
  const std::vector<ast::Param>& params = kernel.def->params;
  for (size_t i = 0; i < std::min(launch.args.size(), params.size()); ++i) {
    if (ast::dyn_as<ast::Starred>(launch.args[i].get())) break;
    given.emplace_back(params[i].name, launch.args[i].get());
  }
  for (const ast::Keyword& k : launch.keywords)
    if (!k.name.empty()) given.emplace_back(k.name, k.value.get());
  std::set<std::string, std::less<>> larger;
  for (const auto& [name, value] : given)
    if (host->computes(value)) host->names_in(value, larger);
  for (const auto& [name, value] : given) {
    if (const std::string_view t = host->element(value); !t.empty()) facts.elements.emplace(name, t);
    if (host->is_float(value)) facts.floats.insert(name);
    if (const auto* block = host->block_of(value)) {
      std::vector<LaunchFacts::Side>& sides = facts.blocks[name];
      for (const ast::ExprPtr& side : *block) {
        const auto v = host->evaluate(side.get(), size, larger);
        const auto* n = v && v->known ? std::get_if<ast::Int>(&v->constant) : nullptr;
        sides.push_back({side.get(), n ? std::optional(static_cast<int64_t>(*n)) : std::nullopt});
      }
    }
    if (const auto v = literal(value); v && std::holds_alternative<DType>(*v)) facts.constants.emplace(name, *v);
    const auto v = host->evaluate(value, size, larger);
    if (!v) continue;
    if (v->known) {
      facts.constants.emplace(name, v->constant);
      continue;
    }
    const auto* n = std::get_if<ast::Int>(&v->constant);
    if (n && *n > 0 && *n <= 1 << 20 && (!v->plain || *n != size)) facts.sizes.emplace(name, static_cast<int64_t>(*n));
  }
  return facts;
}

}  // namespace kiln::repl
