#include "repl/commands/assumed_integers.h"

#include <algorithm>
#include <vector>

#include "compiler/ast/walk.h"
#include "repl/commands/assumed_constexpr.h"

namespace kiln::repl {

namespace {

using ast::BinaryOp;
using ast::Expr;

// What an assignment of the text says: the name, and the expression that it gets.
struct Definition {
  std::string name;
  const Expr* value;
};

class Finder {
 public:
  Finder(IntegerUses& all, const frontend::JitFunction& f, IntegerUses::Names& out) : all_(all), f_(f), out_(out) {}

  void run() {
    ast::walk(
        f_.def->body, [&](const ast::Stmt& s) { statement(s); }, [&](const Expr& e) { expression(e); });
    // What an integer is computed from is one too, and so on backwards. A pointer that is moved points to the same.
    for (size_t before = 0, now = 1; before != now;) {
      before = out_.values.size() + out_.pointees.size();
      for (const Definition& d : definitions_) {
        if (out_.values.contains(d.name)) integer(d.value);
        if (out_.pointees.contains(d.name))
          if (auto from = leading_name(d.value); !from.empty()) out_.pointees.emplace(from);
      }
      now = out_.values.size() + out_.pointees.size();
    }
  }

 private:
  void statement(const ast::Stmt& s) {
    if (const auto* a = ast::dyn_as<ast::Assign>(&s)) {
      for (const ast::ExprPtr& t : a->targets)
        if (const auto* n = ast::dyn_as<ast::Name>(t.get())) definitions_.push_back({n->id, a->value.get()});
    } else if (const auto* u = ast::dyn_as<ast::AugAssign>(&s)) {
      if (const auto* n = ast::dyn_as<ast::Name>(u->target.get())) definitions_.push_back({n->id, u->value.get()});
      if (only_for_integers(u->op)) integer(u->target.get()), integer(u->value.get());
    } else if (const auto* b = ast::dyn_as<ast::AnnAssign>(&s)) {
      if (const auto* n = ast::dyn_as<ast::Name>(b->target.get()); n && b->value)
        definitions_.push_back({n->id, b->value.get()});
    }
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
    if (takes_address(name) && !call->args.empty()) return address(call->args[0].get());
    if (name == "range" || name == "static_range" || name == "cdiv")
      for (const ast::ExprPtr& a : call->args) integer(a.get());
    const auto* plain = ast::dyn_as<ast::Name>(call->callee.get());
    if (!plain || !f_.lookup) return;
    const auto found = f_.lookup(plain->id);
    const auto* helper = found ? std::get_if<std::shared_ptr<const frontend::JitFunction>>(&*found) : nullptr;
    if (!helper) return;
    const IntegerUses::Names inside = all_.of(**helper);
    const std::vector<ast::Param>& params = (*helper)->def->params;
    for (size_t i = 0; i < std::min(call->args.size(), params.size()); ++i)
      handed_on(inside, params[i].name, call->args[i].get());
    for (const ast::Keyword& k : call->keywords) handed_on(inside, k.name, k.value.get());
  }

  void handed_on(const IntegerUses::Names& inside, std::string_view param, const Expr* argument) {
    if (inside.values.contains(param)) integer(argument);
    if (inside.pointees.contains(param))
      if (auto name = leading_name(argument); !name.empty()) out_.pointees.emplace(name);
  }

  // Everything of an address but the name that leads it is an offset. The name may hold a part of the address.
  void address(const Expr* e) {
    if (const auto* b = ast::dyn_as<ast::Binary>(e); b && (b->op == BinaryOp::kAdd || b->op == BinaryOp::kSub)) {
      integer(b->right.get());
      return address(b->left.get());
    }
    if (const auto* s = ast::dyn_as<ast::Subscript>(e)) return address(s->base.get());
    const auto* n = ast::dyn_as<ast::Name>(e);
    if (!n || !addresses_.insert(n->id).second) return;
    // Definitions further down the text count too: a loop moves its pointers at its end.
    ast::walk(
        f_.def->body,
        [&](const ast::Stmt& s) {
          const auto* a = ast::dyn_as<ast::Assign>(&s);
          const auto* u = ast::dyn_as<ast::AugAssign>(&s);
          auto is_it = [&](const ast::ExprPtr& t) {
            const auto* target = ast::dyn_as<ast::Name>(t.get());
            return target && target->id == n->id;
          };
          if (a && std::any_of(a->targets.begin(), a->targets.end(), is_it)) address(a->value.get());
          if (u && is_it(u->target)) integer(u->value.get());
        },
        [](const Expr&) {});
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
      constexpr std::string_view kSame[] = {"sum",     "max",   "min",          "minimum",
                                            "maximum", "where", "broadcast_to", "cumsum"};
      if (std::find(std::begin(kSame), std::end(kSame), name) != std::end(kSame)) {
        const size_t first = name == "where" ? 1 : 0;
        for (size_t at = first; at < c->args.size(); ++at) integer(c->args[at].get());
      } else if (name == "to") {
        // `tl.load(index_ptr).to(tl.int64)`: a float that is cast to an integer to address memory is rare.
        if (const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get())) integer(method->base.get());
      }
    }
  }

  IntegerUses& all_;
  const frontend::JitFunction& f_;
  IntegerUses::Names& out_;
  std::vector<Definition> definitions_;
  std::set<std::string, std::less<>> addresses_;
};

}  // namespace

bool takes_address(std::string_view name) {
  return name == "load" || name == "store" || name.starts_with("atomic_") || name == "make_tensor_descriptor" ||
         name == "make_block_ptr";
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
      e = method ? method->base.get() : nullptr;
    } else
      return {};
  }
  return {};
}

const IntegerUses::Names& IntegerUses::of(const frontend::JitFunction& f) {
  auto [it, fresh] = names_.try_emplace(f.def);
  if (fresh) {  // a call back to a function that is being looked at adds nothing
    Names found;
    Finder(*this, f, found).run();
    it->second = std::move(found);  // the map keeps its nodes in place
  }
  return it->second;
}

}  // namespace kiln::repl
