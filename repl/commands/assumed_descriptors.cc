#include "repl/commands/assumed_descriptors.h"

#include <algorithm>
#include <bit>

#include "compiler/ast/walk.h"
#include "repl/commands/assumed_constexpr.h"
#include "repl/commands/assumed_integers.h"

namespace kiln::repl {

namespace {

using ast::Expr;

// Names follow names, and functions call functions, only so far.
constexpr int kFollowed = 8;

/// Of `x.load([i, j])` the name and the offsets.
struct Access {
  std::string_view name;
  const std::vector<ast::ExprPtr>* offsets;
};

std::optional<Access> access_of(const ast::Call& call) {
  const auto* method = ast::dyn_as<ast::Attribute>(call.callee.get());
  if (!method || call.args.empty() || (method->name != "load" && method->name != "store")) return std::nullopt;
  const auto* name = ast::dyn_as<ast::Name>(method->base.get());
  const auto* offsets = ast::items_of(call.args[0].get());
  return name && offsets ? std::optional(Access{name->id, offsets}) : std::nullopt;
}

/// The value of `e` where all of its names are sizes that are known: `BLOCK_N // 2`, `nargs["BLOCK_N"]`.
std::optional<int64_t> evaluate(const Expr* e, const SizeOf& size_of, int depth = kFollowed) {
  if (!e || depth == 0) return std::nullopt;
  if (const auto* n = ast::dyn_as<ast::Name>(e)) return size_of(n->id);
  if (const auto* s = ast::dyn_as<ast::Subscript>(e)) {
    const auto* key = ast::dyn_as<ast::ConstantExpr>(s->index.get());
    const auto* name = key ? std::get_if<std::string>(&key->value) : nullptr;
    return name ? size_of(*name) : std::nullopt;
  }
  if (const auto* c = ast::dyn_as<ast::ConstantExpr>(e)) {
    const auto* n = std::get_if<ast::Int>(&c->value);
    return n ? std::optional(static_cast<int64_t>(*n)) : std::nullopt;
  }
  const auto* b = ast::dyn_as<ast::Binary>(e);
  const auto left = b ? evaluate(b->left.get(), size_of, depth - 1) : std::nullopt;
  const auto right = b ? evaluate(b->right.get(), size_of, depth - 1) : std::nullopt;
  if (!left || !right) return std::nullopt;
  const auto made = ast::apply(b->op, ast::Constant(ast::Int{*left}), ast::Constant(ast::Int{*right}), e->range);
  const auto* n = made.ok() ? std::get_if<ast::Int>(&*made) : nullptr;
  return n ? std::optional(static_cast<int64_t>(*n)) : std::nullopt;
}

/// A size that a dimension of a block may have.
std::optional<int64_t> as_side(std::optional<int64_t> n) {
  constexpr int64_t kMost = 1024;
  return n && *n > 0 && *n <= kMost && std::has_single_bit(static_cast<uint64_t>(*n)) ? n : std::nullopt;
}

/// By how much an offset of a kernel moves from block to block.
class Steps {
 public:
  Steps(const frontend::JitFunction& f, const SizeOf& size_of) : size_of_(size_of) {
    ast::walk(
        f.def->body,
        [&](const ast::Stmt& s) {
          if (const auto* a = ast::dyn_as<ast::Assign>(&s)) {
            for (const ast::ExprPtr& t : a->targets) define(t.get(), a->value.get(), false);
          } else if (const auto* u = ast::dyn_as<ast::AugAssign>(&s)) {
            define(u->target.get(), u->value.get(), true);
          } else if (const auto* l = ast::dyn_as<ast::For>(&s)) {
            const auto* range = ast::dyn_as<ast::Call>(l->iterable.get());
            if (range) define(l->target.get(), argument(*range, "step", 2), true);
          }
        },
        [](const Expr&) {});
  }

  std::optional<int64_t> of(const Expr* e, int depth = kFollowed) const {
    if (!e || depth == 0) return std::nullopt;
    if (const auto* b = ast::dyn_as<ast::Binary>(e)) {
      if (b->op == ast::BinaryOp::kMul)
        for (const Expr* side : {b->right.get(), b->left.get()})
          if (const auto n = as_side(evaluate(side, size_of_)); n && *n > 1) return n;
      const auto left = of(b->left.get(), depth - 1);
      return left ? left : of(b->right.get(), depth - 1);
    }
    if (const auto* c = ast::dyn_as<ast::Call>(e)) {  // tl.multiple_of(x, 16), x.to(tl.int32)
      const auto* method = ast::dyn_as<ast::Attribute>(c->callee.get());
      if (method && method->name == "to") return of(method->base.get(), depth - 1);
      return c->args.empty() ? std::nullopt : of(c->args[0].get(), depth - 1);
    }
    const auto* n = ast::dyn_as<ast::Name>(e);
    if (!n) return std::nullopt;
    for (const auto& [name, value, is_step] : definitions_) {
      if (name != n->id) continue;
      const auto found = is_step ? as_side(evaluate(value, size_of_)) : of(value, depth - 1);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  struct Definition {
    std::string_view name;
    const Expr* value;
    bool is_step;  // what is added to it
  };

  void define(const Expr* target, const Expr* value, bool is_step) {
    if (const auto* n = ast::dyn_as<ast::Name>(target); n && value) definitions_.push_back({n->id, value, is_step});
  }

  const SizeOf& size_of_;
  std::vector<Definition> definitions_;
};

using Block = std::vector<std::optional<int64_t>>;

/// What is not known yet of a block.
void fill(Block& block, size_t d, std::optional<int64_t> side) {
  if (d < block.size() && !block[d]) block[d] = as_side(side);
}

void by_hooks(const ast::Module& module, std::string_view param, const SizeOf& size_of, Block& block) {
  ast::walk(
      module.body,
      [&](const ast::Stmt& s) {
        const auto* a = ast::dyn_as<ast::Assign>(&s);
        const auto* field = a && a->targets.size() == 1 ? ast::dyn_as<ast::Attribute>(a->targets[0].get()) : nullptr;
        if (!field || field->name != "block_shape") return;
        const auto* held = ast::dyn_as<ast::Subscript>(field->base.get());
        const auto* key = held ? ast::dyn_as<ast::ConstantExpr>(held->index.get()) : nullptr;
        const auto* name = key ? std::get_if<std::string>(&key->value) : nullptr;
        const auto* sides = ast::items_of(a->value.get());
        if (!name || *name != param || !sides || sides->size() != block.size()) return;
        for (size_t d = 0; d < sides->size(); ++d) fill(block, d, evaluate((*sides)[d].get(), size_of));
      },
      [](const Expr&) {});
}

void by_offsets(const frontend::JitFunction& f, std::string_view param, const SizeOf& size_of, Block& block,
                int depth = kFollowed) {
  if (depth == 0) return;
  const Steps steps(f, size_of);
  ast::walk(
      f.def->body, [](const ast::Stmt&) {},
      [&](const Expr& e) {
        const auto* call = ast::dyn_as<ast::Call>(&e);
        if (!call) return;
        if (const auto access = access_of(*call); access && access->name == param) {
          for (size_t d = 0; d < access->offsets->size(); ++d) fill(block, d, steps.of((*access->offsets)[d].get()));
          return;
        }
        const auto helper = helper_of(f, *call);
        if (!helper) return;
        const auto given = handed_on(*helper, *call);
        const SizeOf size_inside = [&](std::string_view name) -> std::optional<int64_t> {
          for (const auto& [inside, value] : given)
            if (inside == name) return evaluate(value, size_of);
          return std::nullopt;
        };
        for (const auto& [inside, value] : given)
          if (const auto* n = ast::dyn_as<ast::Name>(value); n && n->id == param)
            by_offsets(*helper, inside, size_inside, block, depth - 1);
      });
}

void find_descriptors(const frontend::JitFunction& f, std::map<std::string, size_t, std::less<>>& ranks, int depth) {
  ast::walk(
      f.def->body, [](const ast::Stmt&) {},
      [&](const Expr& e) {
        const auto* field = ast::dyn_as<ast::Attribute>(&e);
        if (const auto* name = field ? ast::dyn_as<ast::Name>(field->base.get()) : nullptr;
            name && field->name == "block_shape")
          ranks.emplace(name->id, 2);
        const auto* call = ast::dyn_as<ast::Call>(&e);
        if (!call) return;
        if (const auto access = access_of(*call))
          ranks.insert_or_assign(std::string(access->name), access->offsets->size());
        const auto helper = depth > 0 ? helper_of(f, *call) : nullptr;
        if (!helper) return;
        std::map<std::string, size_t, std::less<>> inside;
        find_descriptors(*helper, inside, depth - 1);
        for (const auto& [param, value] : handed_on(*helper, *call))
          if (const auto* n = ast::dyn_as<ast::Name>(value); n && inside.contains(param))
            ranks.emplace(n->id, inside.find(param)->second);
      });
}

}  // namespace

std::map<std::string, size_t, std::less<>> descriptors_of(const frontend::JitFunction& function) {
  constexpr int kCalls = 3;
  std::map<std::string, size_t, std::less<>> ranks;
  find_descriptors(function, ranks, kCalls);
  return ranks;
}

std::vector<std::optional<int64_t>> descriptor_block(const frontend::JitFunction& function, std::string_view param,
                                                     size_t rank, const LaunchFacts& launch, const SizeOf& size_of) {
  Block block(rank);
  if (function.module) by_hooks(*function.module, param, size_of, block);
  if (const auto it = launch.blocks.find(param); it != launch.blocks.end())
    for (size_t d = 0; d < it->second.size(); ++d) {
      const auto& [text, value] = it->second[d];
      const auto named = evaluate(text, size_of);
      fill(block, d, named ? named : value);
    }
  by_offsets(function, param, size_of, block);
  return block;
}

}  // namespace kiln::repl
