#include "repl/commands/assumed_constexpr.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "compiler/ast/walk.h"
#include "kiln/dtype.h"
#include "repl/commands/assumed_integers.h"

namespace kiln::repl {

namespace {

using ast::Expr;
using frontend::Global;

// --- what the decorators say -----------------------------------------------------------------------------------------

// Calls `fn` for the expressions of the decorators, and of the module's lists and functions that they name: the configs
// of `@triton.autotune(configs=CONFIGS)` and `configs=get_configs()`.
void walk_decorators(const frontend::JitFunction& f, const ast::OnStmt& on_stmt, const ast::OnExpr& on_expr) {
  std::set<std::string> named;
  auto look = [&](const Expr& e) {
    if (const auto* n = ast::dyn_as<ast::Name>(&e)) named.insert(n->id);
    on_expr(e);
  };
  for (const ast::ExprPtr& d : f.def->decorators) ast::walk(d.get(), look);
  if (!f.module) return;
  for (const ast::StmtPtr& s : f.module->body) {
    if (const auto* a = ast::dyn_as<ast::Assign>(s.get()); a && a->targets.size() == 1)
      if (const auto* n = ast::dyn_as<ast::Name>(a->targets[0].get()); n && named.contains(n->id))
        ast::walk(a->value.get(), on_expr);
    if (const auto* g = ast::dyn_as<ast::FunctionDef>(s.get()); g && named.contains(g->name))
      ast::walk(g->body, on_stmt, on_expr);
  }
}

// The first value that a loop gives its variables: `for b, w in [(64, 4), (128, 8)]`.
void bind_first(const Expr* target, const Expr* iterable, std::map<std::string, Global, std::less<>>& out) {
  const auto* items = ast::items_of(iterable);
  if (!items || items->empty()) return;
  const Expr* first = items->front().get();
  if (const auto* n = ast::dyn_as<ast::Name>(target)) {
    if (auto v = literal(first)) out.emplace(n->id, std::move(*v));
    return;
  }
  const auto *names = items_of(target), *values = items_of(first);
  if (!names || !values || names->size() != values->size()) return;
  for (size_t i = 0; i < names->size(); ++i)
    if (const auto* n = ast::dyn_as<ast::Name>((*names)[i].get()))
      if (auto v = literal((*values)[i].get())) out.emplace(n->id, std::move(*v));
}

// The value of `name` in the first triton.Config that has it.
std::optional<Global> configured(const frontend::JitFunction& f, std::string_view name) {
  const Expr* found = nullptr;
  std::map<std::string, Global, std::less<>> loop_values;
  auto on_stmt = [&](const ast::Stmt& s) {
    if (const auto* l = ast::dyn_as<ast::For>(&s)) bind_first(l->target.get(), l->iterable.get(), loop_values);
  };
  auto on_expr = [&](const Expr& e) {
    if (const auto* c = ast::dyn_as<ast::Comprehension>(&e))
      for (const ast::ForClause& clause : c->clauses)
        bind_first(clause.target.get(), clause.iterable.get(), loop_values);
    const auto* call = ast::dyn_as<ast::Call>(&e);
    if (!call || found || last_name(call->callee.get()) != "Config") return;
    const Expr* values = call->args.empty() ? nullptr : call->args[0].get();
    for (const ast::Keyword& k : call->keywords)
      if (k.name == "kwargs") values = k.value.get();
    if (const auto* dict = ast::dyn_as<ast::Dict>(values))
      for (size_t i = 0; i < dict->keys.size(); ++i)
        if (auto key = literal(dict->keys[i].get()); key && *key == Global(ast::Constant(std::string(name))))
          found = dict->values[i].get();
    if (const auto* made = ast::dyn_as<ast::Call>(values); made && last_name(made->callee.get()) == "dict")
      for (const ast::Keyword& k : made->keywords)
        if (k.name == name) found = k.value.get();
  };
  walk_decorators(f, on_stmt, on_expr);
  if (auto v = literal(found)) return v;
  if (const auto* n = ast::dyn_as<ast::Name>(found))
    if (auto it = loop_values.find(n->id); it != loop_values.end()) return it->second;
  return std::nullopt;
}

// What a rule such as `lambda args: args["bias_ptr"] is not None` gives where every pointer is there. Of other
// conditions False, which leaves bounds checks in.
std::optional<Global> result_of_rule(const Expr* e) {
  if (const auto* c = ast::dyn_as<ast::Compare>(e)) {
    const bool with_none = literal(c->rights[0].get()) == Global(ast::Constant(ast::None{}));
    return Global(ast::Constant(with_none && c->ops[0] == ast::CompareOp::kIsNot));
  }
  const auto* u = ast::dyn_as<ast::Unary>(e);
  if (ast::dyn_as<ast::BoolOp>(e) || (u && u->op == ast::UnaryOp::kNot)) return Global(ast::Constant(false));
  return std::nullopt;
}

std::optional<Global> by_heuristics(const frontend::JitFunction& f, std::string_view name) {
  std::optional<Global> found;
  auto on_expr = [&](const Expr& e) {
    const auto* call = ast::dyn_as<ast::Call>(&e);
    if (!call || call->args.empty() || last_name(call->callee.get()) != "heuristics") return;
    const auto* rules = ast::dyn_as<ast::Dict>(call->args[0].get());
    if (!rules) return;
    for (size_t i = 0; i < rules->keys.size(); ++i)
      if (auto key = literal(rules->keys[i].get()); key && *key == Global(ast::Constant(std::string(name))))
        if (const auto* rule = ast::dyn_as<ast::Lambda>(rules->values[i].get()))
          found = result_of_rule(rule->body.get());
  };
  walk_decorators(
      f, [](const ast::Stmt&) {}, on_expr);
  return found;
}

// --- how the text uses it --------------------------------------------------------------------------------------------

// In the order in which they decide: a name that is both a dtype's and a flag's (`if DTYPE is not None`) is a dtype.
enum class Use { kTuple, kDType, kText, kSize, kNumber, kFlag, kNone, kCount };

// Keyword arguments of the language whose value is a word, and one that it accepts.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"eviction_policy", ""}, {"cache_modifier", ""}, {"padding_option", ""}, {"input_precision", "tf32"},
    {"sem", "acq_rel"},      {"scope", "gpu"},       {"boundary", ""},       {"fp_downcast_rounding", "rtne"}};
constexpr std::string_view kFlagKeywords[] = {"volatile", "allow_tf32", "keep_dims",      "reverse",
                                              "flatten",  "descending", "warp_specialize"};
// What a dtype has and no other constexpr.
constexpr std::string_view kDTypeMembers[] = {"primitive_bitwidth",
                                              "itemsize",
                                              "is_fp8",
                                              "is_fp16",
                                              "is_bf16",
                                              "is_fp32",
                                              "is_fp64",
                                              "is_floating",
                                              "is_int",
                                              "is_int_signed",
                                              "is_int_unsigned",
                                              "is_standard_floating",
                                              "is_bool",
                                              "is_ptr"};
constexpr std::string_view kTakesAxis[] = {"program_id", "num_programs"};
// Parameters of what takes a tuple for each but the first.
constexpr std::string_view kOfBlockPointers[] = {"base", "shape", "strides", "offsets", "block_shape", "order"};
constexpr std::string_view kOfDescriptors[] = {"base", "shape", "strides", "block_shape"};

bool among(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool names_flag(std::string_view name) {
  constexpr std::string_view kFlags[] = {"HAS_", "IS_", "USE_", "DO_", "has_", "is_", "use_"};
  return std::ranges::any_of(kFlags, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

class Uses {
 public:
  Uses(std::string_view name, bool flags) : is_named_flag_(names_flag(name)), flags_(flags) {}

  void look(const frontend::JitFunction& f, std::string_view param) {
    if (!seen_.emplace(f.def, param).second) return;
    const std::set<std::string, std::less<>> outer = std::exchange(names_, {std::string(param)});
    ast::walk(
        f.def->body, [&](const ast::Stmt& s) { in_statement(s); }, [&](const Expr& e) { in_expression(f, e); });
    names_ = outer;
  }

  std::optional<Global> value() const {
    for (size_t use = 0; use < std::size(found_); ++use) {
      // Both sides of a square: what a row may have would take minutes to compile.
      if (use == static_cast<size_t>(Use::kSize) && is_square_) return Global(ast::Constant(ast::Int{64}));
      if (use == static_cast<size_t>(Use::kSize) && (is_block_ || (is_size_ && !found_[use]))) return std::nullopt;
      if (found_[use]) return found_[use];
    }
    return std::nullopt;
  }

 private:
  void add(Use use, Global value) {
    auto& slot = found_[static_cast<size_t>(use)];
    if (!slot) slot = std::move(value);
  }
  void dtype() { add(Use::kDType, DType::kF32); }
  void format() { add(Use::kText, ast::Constant(std::string("e4m3"))); }
  void flag() { add(Use::kFlag, ast::Constant(flags_)); }
  void size() { is_size_ = true; }
  void block() { is_block_ = true; }
  /// Copies of a loop's body: loops within loops multiply them, so that a block's size may take minutes to compile.
  /// And how far an integer is shifted.
  void count() { add(Use::kSize, ast::Constant(ast::Int{4})); }

  bool is_it(const Expr* e) const {
    if (const auto* n = ast::dyn_as<ast::Name>(e)) return names_.contains(n->id);
    const auto* a = ast::dyn_as<ast::Attribute>(e);  // constexpr.value
    return a && a->name == "value" && is_it(a->base.get());
  }

  /// Whether a name that gets `e` stands for the parameter: `T`, `T if flag else tl.float32`.
  bool gives_it(const Expr* e) const {
    const auto* choice = ast::dyn_as<ast::IfExp>(e);
    return choice ? gives_it(choice->then_value.get()) || gives_it(choice->else_value.get()) : is_it(e);
  }

  void in_statement(const ast::Stmt& s) {
    if (const auto* a = ast::dyn_as<ast::Assign>(&s); a && gives_it(a->value.get())) {
      for (const ast::ExprPtr& t : a->targets)
        if (const auto* n = ast::dyn_as<ast::Name>(t.get())) names_.insert(n->id);
    } else if (const auto* b = ast::dyn_as<ast::AnnAssign>(&s); b && gives_it(b->value.get())) {
      if (const auto* n = ast::dyn_as<ast::Name>(b->target.get())) names_.insert(n->id);
    } else if (const auto* i = ast::dyn_as<ast::If>(&s)) {
      condition(i->condition.get());
    } else if (const auto* w = ast::dyn_as<ast::While>(&s)) {
      condition(w->condition.get());
    }
  }

  void condition(const Expr* e) {
    if (is_it(e)) flag();
  }

  void in_expression(const frontend::JitFunction& f, const Expr& e) {
    if (const auto* c = ast::dyn_as<ast::Call>(&e)) return call(f, *c);
    if (const auto* c = ast::dyn_as<ast::Compare>(&e)) return compare(f, *c);
    if (const auto* b = ast::dyn_as<ast::Binary>(&e)) {
      const bool bitwise = b->op == ast::BinaryOp::kAnd || b->op == ast::BinaryOp::kOr;
      const bool shift = b->op == ast::BinaryOp::kShl || b->op == ast::BinaryOp::kShr;
      if (!is_it(b->left.get()) && !is_it(b->right.get())) return;
      if (bitwise && is_named_flag_)
        flag();  // `mask & HAS_BIAS`
      else if (shift && is_it(b->right.get()))
        count();  // bits of an integer
      else
        bitwise ? add(Use::kNumber, ast::Constant(ast::Int{1})) : size();
    }
    if (const auto* b = ast::dyn_as<ast::BoolOp>(&e))
      for (const ast::ExprPtr& v : b->values) condition(v.get());
    if (const auto* u = ast::dyn_as<ast::Unary>(&e)) {
      if (u->op == ast::UnaryOp::kNot) condition(u->operand.get());
    }
    if (const auto* i = ast::dyn_as<ast::IfExp>(&e)) condition(i->condition.get());
    if (const auto* a = ast::dyn_as<ast::Attribute>(&e); a && is_it(a->base.get()) && among(a->name, kDTypeMembers))
      dtype();
    if (const auto* items = items_of(&e)) {  // a shape
      const auto sides = std::ranges::count_if(*items, [&](const ast::ExprPtr& i) { return is_it(i.get()); });
      if (sides > 0) block();
      is_square_ = is_square_ || sides > 1;
    }
  }

  void compare(const frontend::JitFunction& f, const ast::Compare& c) {
    if (c.rights.size() != 1) return;
    const Expr *left = c.left.get(), *right = c.rights[0].get();
    if (!is_it(left)) std::swap(left, right);
    if (!is_it(left)) return;
    if (const auto* items = items_of(right); items && !items->empty()) right = items->front().get();
    if (last_name(right) == "dtype" || last_name(right) == "element_ty") return dtype();
    auto other = literal(right);
    if (!other) other = named_global(f, *right);
    if (!other) return;
    if (const auto* t = std::get_if<DType>(&*other)) return add(Use::kDType, *t);
    const auto* constant = std::get_if<ast::Constant>(&*other);
    if (!constant) return;
    if (std::holds_alternative<std::string>(*constant)) return add(Use::kText, *constant);
    if (std::holds_alternative<ast::None>(*constant)) return add(Use::kNone, *constant);
    if (std::holds_alternative<bool>(*constant)) return flag();
    const bool equality = c.ops[0] == ast::CompareOp::kEq || c.ops[0] == ast::CompareOp::kNe ||
                          c.ops[0] == ast::CompareOp::kIn || c.ops[0] == ast::CompareOp::kNotIn;
    equality ? add(Use::kNumber, *constant) : size();
  }

  void call(const frontend::JitFunction& f, const ast::Call& c) {
    const std::string_view name = last_name(c.callee.get());
    if (const auto helper = helper_of(f, c)) return call_of_helper(*helper, c);
    if (name == "make_block_ptr") tuples(c, kOfBlockPointers);
    if (name == "make_tensor_descriptor") tuples(c, kOfDescriptors);
    for (size_t i = 0; i < c.args.size(); ++i)
      if (is_it(c.args[i].get())) positional(name, i, c);
    for (const ast::Keyword& k : c.keywords)
      if (is_it(k.value.get())) keyword(k.name);
  }

  /// A tuple of as many numbers as the tuples beside it that are written out; of two where none is.
  void tuples(const ast::Call& c, std::span<const std::string_view> params) {
    size_t rank = 2;
    for (size_t i = 1; i < params.size(); ++i)
      if (const auto* items = ast::items_of(argument(c, params[i], i))) rank = items->size();
    const int64_t side = rank == 1 ? 1024 : 32;
    for (size_t i = 1; i < params.size(); ++i) {
      if (!is_it(argument(c, params[i], i))) continue;
      std::vector<Global> items;
      for (size_t d = 0; d < rank; ++d) {
        const bool is_last = d + 1 == rank;
        const int64_t item = params[i] == "order"     ? static_cast<int64_t>(rank - 1 - d)  // the last is contiguous
                             : params[i] == "offsets" ? 0
                             : params[i] == "strides" ? (is_last ? 1 : side)
                                                      : side;
        items.emplace_back(ast::Constant(ast::Int{item}));
      }
      add(Use::kTuple, std::make_shared<const frontend::GlobalTuple>(frontend::GlobalTuple{std::move(items)}));
    }
  }

  void call_of_helper(const frontend::JitFunction& helper, const ast::Call& c) {
    const auto& params = helper.def->params;
    for (size_t i = 0; i < std::min(c.args.size(), params.size()); ++i)
      if (is_it(c.args[i].get())) look(helper, params[i].name);
    for (const ast::Keyword& k : c.keywords)
      if (is_it(k.value.get())) look(helper, k.name);
  }

  void positional(std::string_view function, size_t place, const ast::Call& c) {
    constexpr std::pair<std::string_view, size_t> kDTypePlaces[] = {
        {"to", 0}, {"cast", 1}, {"zeros", 1}, {"full", 2}, {"pointer_type", 0}, {"block_type", 0}};
    // x.cast(T), but not tl.cast(T, tl.float32).
    if (function == "dot_scaled" && (place == 2 || place == 5)) return format();
    if (function == "cast" && place == 0 && c.args.size() == 1 && c.keywords.empty()) return dtype();
    for (const auto& [name, at] : kDTypePlaces)
      if (function == name && place == at) return dtype();
    if (among(function, kTakesAxis)) return add(Use::kNumber, ast::Constant(ast::Int{0}));
    if (function == "static_range") return count();
    if (function == "arange") return block();
    if (function.ends_with("range") || function == "cdiv") size();
  }

  void keyword(std::string_view name) {
    if (name.ends_with("dtype")) return dtype();
    if (name == "lhs_format" || name == "rhs_format") return format();
    for (const auto& [word, value] : kWords)
      if (name == word) return add(Use::kText, ast::Constant(std::string(value)));
    if (among(name, kFlagKeywords)) return flag();
    if (name == "axis" || name == "dim") add(Use::kNumber, ast::Constant(ast::Int{0}));
    if (name == "num_stages" || name == "loop_unroll_factor") add(Use::kNumber, ast::Constant(ast::Int{2}));
  }

  std::set<std::string, std::less<>> names_;  // the parameter's in the function at hand, and those that it is copied to
  std::set<std::pair<const ast::FunctionDef*, std::string>> seen_;  // functions and their parameters
  std::optional<Global> found_[static_cast<size_t>(Use::kCount)];
  bool is_size_ = false, is_block_ = false, is_square_ = false;
  const bool is_named_flag_, flags_;  // and what flags are taken for
};

}  // namespace

std::optional<Global> assumed_constexpr(const frontend::JitFunction& function, const ast::Param& param,
                                        const LaunchFacts& launch, bool flags) {
  if (auto v = literal(param.default_value.get())) return v;
  if (auto v = param.default_value && function.default_of ? function.default_of(param.name) : std::nullopt) return v;
  if (auto v = configured(function, param.name)) return v;
  if (auto v = by_heuristics(function, param.name)) return v;
  if (auto it = launch.constants.find(param.name); it != launch.constants.end()) return it->second;
  Uses uses(param.name, flags);
  uses.look(function, param.name);
  if (auto v = uses.value()) return v;
  return names_flag(param.name) ? std::optional<Global>(ast::Constant(flags)) : std::nullopt;
}

}  // namespace kiln::repl
