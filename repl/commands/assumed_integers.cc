#include "repl/commands/assumed_integers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ast/walk.h"
#include "kiln/dtype.h"
#include "repl/commands/assumed_constexpr.h"

namespace kiln::repl {

namespace {

using ast::BinaryOp;
using ast::Expr;

/// Functions that return their first argument, of which they say something: `tl.load(tl.multiple_of(x, 16))`.
bool is_hint(std::string_view name) {
  return name == "multiple_of" || name == "max_contiguous" || name == "max_constancy";
}

struct Product {
  const ast::Call* call;
  const Expr *left, *right;
};

// What an assignment of the text says: the name, and the expression that it gets.
struct Definition {
  std::string name;
  const Expr* value;
};

class Finder {
 public:
  Finder(IntegerUses& all, const frontend::JitFunction& f, IntegerUses::Names& out) : all_(all), f_(f), out_(out) {}

  /// `returned`: which of the values that the function returns are integers.
  void run(const IntegerUses::Returned& returned) {
    ast::walk(
        f_.def->body, [&](const ast::Stmt& s) { statement(s); }, [&](const Expr& e) { expression(e); });
    for (const auto& [place, value] : results_)
      if (returned.contains(place)) integer(value);
    // `n = 0` before a loop or a branch and `n += x` in it: a name keeps its type there.
    for (const std::string& n : counters_)
      if (changed_.contains(n)) out_.values.insert(n);
    // What an integer is computed from is one too, and so on backwards. A pointer that is moved points to the same.
    auto known = [&] { return out_.values.size() + out_.pointees.size() + out_.truths.size() + out_.flags.size(); };
    for (size_t before = 0; before != known();) {
      before = known();
      for (const auto& [name, place, call] : unpacked_)
        if (out_.values.contains(name)) integer_result(*call, place);
      for (const Definition& d : definitions_) {
        if (out_.values.contains(d.name)) integer(d.value);
        if (out_.truths.contains(d.name)) truth(d.value);
        if (out_.pointees.contains(d.name)) add(out_.pointees, d.value);
        if (out_.flags.contains(d.name)) add(out_.flags, d.value);
      }
    }
    for (const auto& [operand, type] : typed_) {
      Seen seen;
      loaded_as(operand, type, seen);
    }
    // Types go from operand to operand: of q @ k and p.to(tl.float16) @ q, k too is float16.
    auto narrow = [&] { return out_.narrow.size() + out_.tiles.size(); };
    for (size_t before = narrow() + 1; before != narrow();) {
      before = narrow();
      for (const Product& p : dots_)
        for (const auto& [from, to] : {std::pair(p.left, p.right), std::pair(p.right, p.left)}) {
          Seen seen, loads;
          const std::string type = sums_integers(p) ? "i8" : type_of(from, seen);
          if (!type.empty()) loaded_as(to, type, loads);
        }
      for (const Definition& d : definitions_)
        if (auto it = out_.narrow.find(d.name); it != out_.narrow.end())
          if (auto from = pointed(d.value); !from.empty()) out_.narrow.emplace(from, it->second);
    }
  }

 private:
  void statement(const ast::Stmt& s) {
    if (const auto* r = ast::dyn_as<ast::Return>(&s)) {
      const auto* items = ast::dyn_as<ast::Tuple>(r->value.get());
      if (r->value && !items) results_.emplace_back(0, r->value.get());
      for (size_t i = 0; items && i < items->items.size(); ++i) results_.emplace_back(i, items->items[i].get());
    } else if (const auto* a = ast::dyn_as<ast::Assign>(&s)) {
      for (const ast::ExprPtr& t : a->targets) define(t.get(), a->value.get());
    } else if (const auto* u = ast::dyn_as<ast::AugAssign>(&s)) {
      if (const auto* n = ast::dyn_as<ast::Name>(u->target.get())) {
        definitions_.push_back({n->id, u->value.get()});
        changed_.insert(n->id);
        if (const auto* c = ast::dyn_as<ast::Call>(u->value.get())) sums_.emplace(c, n);
      }
      if (only_for_integers(u->op)) integer(u->target.get()), integer(u->value.get());
    } else if (const auto* b = ast::dyn_as<ast::AnnAssign>(&s)) {
      if (const auto* n = ast::dyn_as<ast::Name>(b->target.get()); n && b->value)
        definitions_.push_back({n->id, b->value.get()});
    }
  }

  void define(const Expr* target, const Expr* value) {
    if (const auto* n = ast::dyn_as<ast::Name>(target)) {
      definitions_.push_back({n->id, value});
      const auto* sum = ast::dyn_as<ast::Binary>(value);
      const auto* old = sum ? ast::dyn_as<ast::Name>(sum->left.get()) : nullptr;
      if (old && old->id == n->id) changed_.insert(n->id);
      const auto* number = ast::dyn_as<ast::ConstantExpr>(value);
      const auto* call = ast::dyn_as<ast::Call>(value);
      const std::string_view function = call ? last_name(call->callee.get()) : "";
      if ((number && std::holds_alternative<ast::Int>(number->value)) || function == "program_id" ||
          function == "num_programs")
        counters_.insert(n->id);
    }
    const auto* names = ast::dyn_as<ast::Tuple>(target);
    const auto* values = ast::dyn_as<ast::Tuple>(value);
    if (const auto* call = ast::dyn_as<ast::Call>(value); names && call)
      for (size_t i = 0; i < names->items.size(); ++i)
        if (const auto* n = ast::dyn_as<ast::Name>(names->items[i].get())) unpacked_.push_back({n->id, i, call});
    for (size_t i = 0; names && values && i < std::min(names->items.size(), values->items.size()); ++i)
      define(names->items[i].get(), values->items[i].get());
  }

  static bool only_for_integers(BinaryOp op) {
    return op == BinaryOp::kFloorDiv || op == BinaryOp::kMod || op == BinaryOp::kShl || op == BinaryOp::kShr ||
           op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor;
  }

  void expression(const Expr& e) {
    if (const auto* b = ast::dyn_as<ast::Binary>(&e); b && only_for_integers(b->op))
      return integer(b->left.get()), integer(b->right.get());
    const auto* call = ast::dyn_as<ast::Call>(&e);
    if (!call) return;
    const std::string_view name = last_name(call->callee.get());
    if (name == "make_tensor_descriptor" || name == "make_block_ptr")
      for (const auto& [keyword, at] : {std::pair("shape", size_t{1}), std::pair("strides", size_t{2})}) {
        if (const auto* sizes = ast::items_of(argument(*call, keyword, at)))
          for (const ast::ExprPtr& size : *sizes) integer(size.get());
      }
    if (const Expr* at = address_of(*call)) {
      if (name == "atomic_and" || name == "atomic_or" || name == "atomic_xor") {
        add(out_.pointees, at);
        if (call->args.size() > 1) integer(call->args[1].get());
      }
      if (const Expr* mask = argument(*call, "mask", name == "load" ? 1 : 2); mask && name != "atomic_cas") truth(mask);
      return address(at);
    }
    if (const Expr* left = argument(*call, "input", 0), *right = argument(*call, "other", 1);
        name == "dot" && left && right)
      dots_.push_back({call, left, right});
    if (name == "dot_scaled") scaled(*call);
    if (name == "range" || name == "static_range" || name == "cdiv")
      for (const ast::ExprPtr& a : call->args) integer(a.get());
    if (name.starts_with("rand") || name == "philox")  // a seed, and offsets or counters
      for (const ast::ExprPtr& a : call->args) integer(a.get());
    const auto* method = ast::dyn_as<ast::Attribute>(call->callee.get());
    const auto* owner = method ? ast::dyn_as<ast::Name>(method->base.get()) : nullptr;
    if (owner && owner->id != "tl" && (name == "gather" || name == "scatter"))  // rows of a descriptor
      if (const Expr* rows = argument(*call, "x_offsets", name == "gather" ? 0 : 1)) integer(rows);
    if (name == "gather" || name == "histogram")
      if (const Expr* places = name == "gather" ? argument(*call, "index", 1) : argument(*call, "input", 0))
        integer(places);
    if (const auto helper = helper_of(f_, *call)) {
      const IntegerUses::Names inside = all_.of(*helper);
      for (const auto& [param, value] : handed_on(*helper, *call)) use_as(inside, param, value);
    }
  }

  /// Operands of tl.dot_scaled are bytes, of which the format says what they hold, or halves; their scales are bytes.
  void scaled(const ast::Call& call) {
    constexpr std::pair<std::string_view, size_t> kSides[] = {{"lhs", 0}, {"rhs", 3}};
    for (const auto& [side, at] : kSides) {
      const std::string prefix(side);
      const auto format = literal(argument(call, prefix + "_format", at + 2));
      const bool brain = format == frontend::Global(ast::Constant(std::string("bf16")));
      const bool half = format == frontend::Global(ast::Constant(std::string("fp16")));
      if (const Expr* e = argument(call, side, at)) typed_.emplace_back(e, brain ? "bf16" : half ? "fp16" : "u8");
      if (const Expr* e = argument(call, prefix + "_scale", at + 1)) typed_.emplace_back(e, "u8");
    }
  }

  void use_as(const IntegerUses::Names& inside, std::string_view param, const Expr* argument) {
    if (inside.values.contains(param)) integer(argument);
    if (inside.truths.contains(param)) truth(argument);
    if (inside.pointees.contains(param)) add(out_.pointees, argument);
    if (inside.flags.contains(param)) add(out_.flags, argument);
    if (auto it = inside.narrow.find(param); it != inside.narrow.end())
      if (auto from = pointed(argument); !from.empty()) out_.narrow.emplace(from, it->second);
    if (auto it = inside.tiles.find(param); it != inside.tiles.end()) typed_.emplace_back(argument, it->second);
    if (inside.handles.contains(param)) add(out_.handles, argument);
    if (inside.addresses.contains(param)) address(argument);
  }

  /// The name that leads an address, also behind a block pointer or a descriptor that is made of it.
  static std::string_view pointed(const Expr* e) {
    const auto* c = ast::dyn_as<ast::Call>(e);
    const Expr* base = c && last_name(c->callee.get()).starts_with("make_") ? address_of(*c) : nullptr;
    return leading_name(base ? base : e);
  }

  static void add(std::set<std::string, std::less<>>& to, const Expr* address) {
    if (auto name = pointed(address); !name.empty()) to.emplace(name);
  }

  // `e` becomes an address by a cast: it is one in other words, or an integer that was read from memory.
  void cast_to_address(const Expr* e) {
    const auto* c = ast::dyn_as<ast::Call>(e);
    if (c && last_name(c->callee.get()) == "load" && !c->args.empty()) return add(out_.handles, c->args[0].get());
    const auto* n = ast::dyn_as<ast::Name>(e);
    bool loaded = false;
    each_value(n, [&](const Expr* value) {
      const auto* from = ast::dyn_as<ast::Call>(value);
      if (!from || last_name(from->callee.get()) != "load" || from->args.empty()) return;
      loaded = true;
      add(out_.handles, from->args[0].get());
    });
    if (!loaded) address(e);
  }

  // What the text assigns to a name, further down too: a loop moves its pointers at its end.
  template <class Fn>
  void each_value(const ast::Name* n, Fn&& fn) {
    if (!n) return;
    ast::walk(
        f_.def->body,
        [&](const ast::Stmt& s) {
          const auto* a = ast::dyn_as<ast::Assign>(&s);
          for (size_t i = 0; a && i < a->targets.size(); ++i)
            if (const auto* target = ast::dyn_as<ast::Name>(a->targets[i].get()); target && target->id == n->id)
              fn(a->value.get());
        },
        [](const Expr&) {});
  }

  // Everything of an address but the name that leads it is an offset. The name may hold a part of the address.
  void address(const Expr* e) {
    if (const auto* b = ast::dyn_as<ast::Binary>(e); b && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub)) {
      integer(b->right.get());
      return address(b->left.get());
    }
    if (const auto* s = ast::dyn_as<ast::Subscript>(e)) return address(s->base.get());
    if (const auto* c = ast::dyn_as<ast::Call>(e)) {
      const std::string_view name = last_name(c->callee.get());
      const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
      if (is_hint(name) && !c->args.empty()) return address(c->args[0].get());
      if (name == "cast" && !c->args.empty()) return cast_to_address(c->args[0].get());
      if (name == "to" && method) return cast_to_address(method->base.get());
      return;
    }
    const auto* n = ast::dyn_as<ast::Name>(e);
    if (!n || !out_.addresses.insert(n->id).second) return;
    each_value(n, [&](const Expr* value) { address(value); });
    ast::walk(
        f_.def->body,
        [&](const ast::Stmt& s) {
          const auto* u = ast::dyn_as<ast::AugAssign>(&s);
          const auto* target = u ? ast::dyn_as<ast::Name>(u->target.get()) : nullptr;
          if (target && target->id == n->id) integer(u->value.get());
        },
        [](const Expr&) {});
  }

  /// What a function is given for a result that is an integer.
  void integer_result(const ast::Call& call, size_t place) {
    const auto helper = helper_of(f_, call);
    if (!helper || !asked_.emplace(&call, place).second) return;
    const IntegerUses::Names inside = all_.of(*helper, {place});
    for (const auto& [param, value] : handed_on(*helper, call)) use_as(inside, param, value);
  }

  // `e` is an integer: so are the names in its sums and products, and what its loads read.
  void integer(const Expr* e) {
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      out_.values.insert(n->id);
    } else if (const auto* b = ast::dyn_as<ast::Binary>(e)) {
      if (b->op == BinaryOp::kDiv) return;
      integer(b->left.get());
      integer(b->right.get());
    } else if (const auto* u = ast::dyn_as<ast::Unary>(e)) {
      integer(u->operand.get());
    } else if (const auto* s = ast::dyn_as<ast::Subscript>(e)) {
      integer(s->base.get());
    } else if (const auto* i = ast::dyn_as<ast::IfExp>(e)) {
      integer(i->then_value.get());
      integer(i->else_value.get());
    } else if (const auto* c = ast::dyn_as<ast::Call>(e)) {
      const std::string_view name = last_name(c->callee.get());
      if (name == "load" || name.starts_with("atomic_")) {
        if (c->args.empty()) return;
        if (auto from = leading_name(c->args[0].get()); !from.empty()) out_.pointees.emplace(from);
        return;
      }
      if (is_hint(name) && !c->args.empty()) return integer(c->args[0].get());
      constexpr std::string_view kSame[] = {"sum",     "max",   "min",          "minimum",
                                            "maximum", "where", "broadcast_to", "cumsum"};
      if (std::find(std::begin(kSame), std::end(kSame), name) != std::end(kSame)) {
        const size_t first = name == "where" ? 1 : 0;
        for (size_t at = first; at < c->args.size(); ++at) integer(c->args[at].get());
      } else if (name == "to") {
        // `tl.load(index_ptr).to(tl.int64)`: a float that is cast to an integer to address memory is rare.
        if (const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get())) integer(method->base.get());
      } else {
        integer_result(*c, 0);
      }
    }
  }

  // `e` is an int1: so is what `&` and `|` make it of, and what its loads read. Comparisons are of anything.
  void truth(const Expr* e) {
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      out_.truths.insert(n->id);
    } else if (const auto* b = ast::dyn_as<ast::Binary>(e)) {
      if (b->op != BinaryOp::kAnd && b->op != BinaryOp::kOr && b->op != BinaryOp::kXor) return;
      truth(b->left.get());
      truth(b->right.get());
    } else if (const auto* u = ast::dyn_as<ast::Unary>(e)) {
      if (u->op == ast::UnaryOp::kInvert) truth(u->operand.get());
    } else if (const auto* s = ast::dyn_as<ast::Subscript>(e)) {
      truth(s->base.get());
    } else if (const auto* i = ast::dyn_as<ast::IfExp>(e)) {
      truth(i->then_value.get());
      truth(i->else_value.get());
    } else if (const auto* c = ast::dyn_as<ast::Call>(e)) {
      const std::string_view name = last_name(c->callee.get());
      if (name == "load") {
        if (!c->args.empty()) add(out_.flags, c->args[0].get());
      } else if (name == "where") {
        for (size_t at = 1; at < c->args.size(); ++at) truth(c->args[at].get());
      } else if (name == "broadcast_to" || name == "expand_dims" || name == "reshape" || name == "trans") {
        const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
        const bool of_module = method && ast::dyn_as<ast::Name>(method->base.get()) && !c->args.empty() &&
                               ast::as<ast::Name>(*method->base).id == "tl";
        if (of_module || !method) {
          if (!c->args.empty()) truth(c->args[0].get());
        } else {
          truth(method->base.get());
        }
      }
    }
  }

  /// What transposes or reshapes `e` is made of; `e` itself where that is nothing.
  static const Expr* without_shape(const Expr* e) {
    for (;;) {
      if (const auto* a = ast::dyn_as<ast::Attribute>(e); a && a->name == "T") {
        e = a->base.get();
        continue;
      }
      const auto* c = ast::dyn_as<ast::Call>(e);
      if (!c || c->args.empty()) return e;
      const std::string_view name = last_name(c->callee.get());
      if (name != "trans" && name != "reshape" && name != "permute") return e;
      const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
      const auto* base = method ? ast::dyn_as<ast::Name>(method->base.get()) : nullptr;
      e = method && !(base && base->id == "tl") ? method->base.get() : c->args[0].get();
    }
  }

  using Seen = std::set<std::string, std::less<>>;  // names whose definitions are being looked at: `x = tl.trans(x)`

  /// The half, fp8 or byte that `e` is cast to, here or where the name at hand is bound; or empty.
  std::string cast_to(const Expr* e, Seen& seen) const {
    e = without_shape(e);
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      std::string type;
      if (!seen.insert(n->id).second) return type;
      for (const Definition& d : definitions_)
        if (d.name == n->id)
          if (std::string t = cast_to(d.value, seen); !t.empty()) type = std::move(t);
      return type;
    }
    const auto* c = ast::dyn_as<ast::Call>(e);
    if (!c || c->args.empty() || last_name(c->callee.get()) != "to") return {};
    // As signatures name them.
    constexpr std::pair<DType, std::string_view> kNarrow[] = {{DType::kF16, "fp16"},       {DType::kBF16, "bf16"},
                                                              {DType::kF8E4M3, "fp8e4nv"}, {DType::kF8E5M2, "fp8e5"},
                                                              {DType::kI8, "i8"},          {DType::kU8, "u8"}};
    const std::optional<DType> type = parse_dtype(last_name(c->args[0].get()));
    for (const auto& [narrow, name] : kNarrow)
      if (type == narrow) return std::string(name);
    return {};
  }

  /// Whether the product is added up in int32, as only those of int8 are.
  bool sums_integers(const Product& p) const {
    const auto is_int32 = [](const Expr* e) { return e && parse_dtype(last_name(e)) == DType::kI32; };
    if (is_int32(argument(*p.call, "out_dtype", 6))) return true;
    const Expr* sum = argument(*p.call, "acc", 2);
    if (const auto it = sums_.find(p.call); it != sums_.end()) sum = it->second;
    const auto* name = ast::dyn_as<ast::Name>(sum);
    return name && std::ranges::any_of(definitions_, [&](const Definition& d) {
             const auto* made = d.name == name->id ? ast::dyn_as<ast::Call>(d.value) : nullptr;
             const std::string_view maker = made ? last_name(made->callee.get()) : "";
             return (maker == "zeros" || maker == "full") &&
                    is_int32(argument(*made, "dtype", maker == "zeros" ? 1 : 2));
           });
  }

  /// The narrow type that `e` is cast to or was loaded as; or empty.
  std::string type_of(const Expr* e, Seen& seen) const {
    Seen casts;
    if (std::string type = cast_to(e, casts); !type.empty()) return type;
    e = without_shape(e);
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      if (!seen.insert(n->id).second) return {};
      if (const auto it = out_.tiles.find(n->id); it != out_.tiles.end()) return it->second;
      for (const Definition& d : definitions_)
        if (d.name == n->id)
          if (std::string type = type_of(d.value, seen); !type.empty()) return type;
      return {};
    }
    const std::string_view from = loaded_from(e);
    const auto it = from.empty() ? out_.narrow.end() : out_.narrow.find(from);
    return it == out_.narrow.end() ? std::string() : it->second;
  }

  /// What `e` is loaded from points to `type`.
  void loaded_as(const Expr* e, const std::string& type, Seen& seen) {
    e = without_shape(e);
    if (const auto* n = ast::dyn_as<ast::Name>(e)) {
      if (!seen.insert(n->id).second) return;
      bool defined = false;
      for (const Definition& d : definitions_)
        if (d.name == n->id) defined = true, loaded_as(d.value, type, seen);
      if (!defined) out_.tiles.emplace(n->id, type);
      return;
    }
    if (const std::string_view from = loaded_from(e); !from.empty()) out_.narrow.emplace(from, type);
  }

  /// The name that leads the address of a load: of `d.load([i, j])` of a descriptor, or of `tl.load(address)`.
  static std::string_view loaded_from(const Expr* e) {
    const auto* c = ast::dyn_as<ast::Call>(e);
    if (!c || last_name(c->callee.get()) != "load") return {};
    const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
    const auto* owner = method ? ast::dyn_as<ast::Name>(method->base.get()) : nullptr;
    const Expr* at = owner && owner->id != "tl" ? owner : address_of(*c);
    return at ? pointed(at) : std::string_view();
  }

  IntegerUses& all_;
  const frontend::JitFunction& f_;
  IntegerUses::Names& out_;
  std::vector<Definition> definitions_;
  std::vector<Product> dots_;
  std::map<const Expr*, const Expr*> sums_;                 // calls, and what they are added to: `acc += tl.dot(a, b)`
  std::vector<std::pair<const Expr*, std::string>> typed_;  // what is of a type that is known elsewhere
  struct Unpacked {
    std::string name;
    size_t place;
    const ast::Call* call;
  };
  std::vector<Unpacked> unpacked_;                       // `a, b = f(x)`
  std::vector<std::pair<size_t, const Expr*>> results_;  // of return statements
  std::set<std::pair<const ast::Call*, size_t>> asked_;  // results that are integers
  // Names that begin as an int, and that are updated.
  std::set<std::string, std::less<>> counters_, changed_;
};

}  // namespace

bool takes_address(std::string_view name) {
  return name == "load" || name == "store" || name.starts_with("atomic_") || name == "make_tensor_descriptor" ||
         name == "make_block_ptr";
}

const Expr* address_of(const ast::Call& call) {
  if (!takes_address(last_name(call.callee.get()))) return nullptr;
  if (!call.args.empty()) return call.args[0].get();
  for (const ast::Keyword& k : call.keywords)
    if (k.name == "pointer" || k.name == "base") return k.value.get();
  return nullptr;
}

const Expr* argument(const ast::Call& call, std::string_view keyword, size_t position) {
  for (const ast::Keyword& k : call.keywords)
    if (k.name == keyword) return k.value.get();
  return position < call.args.size() ? call.args[position].get() : nullptr;
}

std::optional<frontend::Global> named_global(const frontend::JitFunction& f, const Expr& e) {
  if (const auto* n = ast::dyn_as<ast::Name>(&e)) return f.lookup ? f.lookup(n->id) : std::nullopt;
  const auto* member = ast::dyn_as<ast::Attribute>(&e);
  const auto base = member ? named_global(f, *member->base) : std::nullopt;
  if (!base) return std::nullopt;
  if (const auto* m = std::get_if<frontend::ModulePath>(&*base))
    return f.member ? f.member(m->path, member->name) : std::nullopt;
  const auto* tuple = std::get_if<std::shared_ptr<const frontend::GlobalTuple>>(&*base);
  for (size_t i = 0; tuple && i < (*tuple)->fields.size(); ++i)
    if ((*tuple)->fields[i] == member->name) return (*tuple)->items[i];
  return std::nullopt;
}

std::shared_ptr<const frontend::JitFunction> helper_of(const frontend::JitFunction& f, const ast::Call& call) {
  const auto found = named_global(f, *call.callee);
  const auto* helper = found ? std::get_if<std::shared_ptr<const frontend::JitFunction>>(&*found) : nullptr;
  return helper ? *helper : nullptr;
}

std::vector<std::pair<std::string_view, const Expr*>> handed_on(const frontend::JitFunction& helper,
                                                                const ast::Call& call) {
  std::vector<std::pair<std::string_view, const Expr*>> out;
  const std::vector<ast::Param>& params = helper.def->params;
  for (size_t i = 0; i < std::min(call.args.size(), params.size()); ++i)
    out.emplace_back(params[i].name, call.args[i].get());
  for (const ast::Keyword& k : call.keywords) out.emplace_back(k.name, k.value.get());
  return out;
}

std::string_view leading_name(const Expr* e) {
  while (e) {
    if (auto* n = ast::dyn_as<ast::Name>(e)) return n->id;
    if (auto* b = ast::dyn_as<ast::Binary>(e); b && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub))
      e = b->left.get();
    else if (auto* s = ast::dyn_as<ast::Subscript>(e))
      e = s->base.get();
    else if (auto* c = ast::dyn_as<ast::Call>(e)) {
      auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
      const bool hint = is_hint(last_name(c->callee.get())) && !c->args.empty();
      e = hint ? c->args[0].get() : method ? method->base.get() : nullptr;
    } else
      return {};
  }
  return {};
}

const IntegerUses::Names& IntegerUses::of(const frontend::JitFunction& f, const Returned& returned) {
  auto [it, fresh] = names_.try_emplace({f.def, returned});
  if (fresh) {  // a call back to a function that is being looked at adds nothing
    Names found;
    Finder(*this, f, found).run(returned);
    it->second = std::move(found);  // the map keeps its nodes in place
  }
  return it->second;
}

}  // namespace kiln::repl
