// if, the ternary, and returns inside branches: regions, and the names that leave them.
#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

using ir::OpKind;

Codegen::Snapshot Codegen::snapshot() {
  Frame& f = frame();
  return {f.env, f.flow, f.result, f.result_at};
}

void Codegen::restore(Snapshot s) {
  Frame& f = frame();
  f.env = std::move(s.env);
  f.flow = s.flow;
  f.result = std::move(s.result);
  f.result_at = s.result_at;
}

bool Codegen::is_live(std::string_view id, uint32_t from) {
  const Frame& f = frame();
  // Inside a loop the next iteration may read it.
  if (!f.loop_starts.empty()) from = std::min(from, f.loop_starts.front());
  return f.uses->any(id, from);
}

Result<ir::Value*> Codegen::scalar_condition(const Arg& a, std::string_view what) {
  ir::Value* v = a.value.tensor();
  if (v->type.is_tile() && v->type.shape.numel() == 1 && !v->type.pointer) {
    if (what == "an if")
      warn(a.range,
           "If conditional called with multidimensional Tensor instead of scalar; please use \"if ({}).item()\" "
           "instead",
           a.range.str());
    v = only_element(v);
  }
  if (v->type.is_tile())
    return with_note(
        fail(a.range, ErrorKind::kType, "the condition of {} must be a scalar, got {}", what, describe(v->type)),
        "help: choose elements with tl.where(condition, x, y), or reduce the condition with tl.max");
  return truth(v, a.range);
}

/// The two ends of an `if` being joined: pairs of values become its results.
struct Codegen::Merge {
  Codegen& g;
  ir::Op* branch;
  std::vector<ir::Value*> then_yields, else_yields;

  ir::Value* add(ir::Value* a, ir::Value* c) {
    then_yields.push_back(a);
    else_yields.push_back(c);
    ir::Value* out = g.module.add_result(branch, a->type);
    out->name = a->name.empty() ? c->name : a->name;
    return out;
  }
  ir::Value* constant(int side, const Value& v, DType dtype) {
    g.b.set_to_end(branch->region(side));
    return g.constant(*v.constant(), dtype);
  }
  /// nullopt: the two cannot be one value.
  std::optional<Value> join(const Value& a, const Value& c) {
    if (same(a, c)) return a;
    ir::Value *x = a.tensor(), *y = c.tensor();
    auto natural = [](const Value& v) { return v.is_number() ? natural_dtype(*v.constant()) : std::nullopt; };
    if (!x && natural(a)) {
      if (std::optional<DType> t = natural(a)) x = constant(0, a, *t);
    }
    if (!y && natural(c)) {
      if (std::optional<DType> t = natural(c)) y = constant(1, c, *t);
    }
    if (x && y) return x->type == y->type ? std::optional<Value>(add(x, y)) : std::nullopt;
    if (!same_kind_of_parts(a, c)) return std::nullopt;
    const std::vector<Value>&s = *parts_of(a), &t = *parts_of(c);
    std::vector<Value> parts;
    for (size_t i = 0; i < s.size(); ++i) {
      std::optional<Value> part = join(s[i], t[i]);
      if (!part) return std::nullopt;
      parts.push_back(*std::move(part));
    }
    return with_parts(a, std::move(parts));
  }
  /// The value of one side, where the other has left the function and its value is never looked at.
  Value one_sided(const Value& v, int side) {
    if (ir::Value* x = v.tensor()) {
      g.b.set_to_end(branch->region(1 - side));
      ir::Value* unused = g.b.zero(x->type);
      return side == 0 ? add(x, unused) : add(unused, x);
    }
    if (const std::vector<Value>* parts = parts_of(v)) {
      std::vector<Value> kept;
      for (const Value& part : *parts) kept.push_back(one_sided(part, side));
      return with_parts(v, std::move(kept));
    }
    return v;
  }
  ir::Value* flag(const Flow& flow, int side) {
    if (flow.kind == Flow::Kind::kMaybe) return flow.returned;
    g.b.set_to_end(branch->region(side));
    return g.b.constant_int(ir::scalar_type(DType::kI1), flow.kind == Flow::Kind::kReturned);
  }
};

Status Codegen::merge(ir::Op* branch, ir::Block* after, Snapshot then_end, Snapshot else_end, SourceRange where,
                      uint32_t live_from, bool tail) {
  Merge m{*this, branch, {}, {}};
  using Kind = Flow::Kind;
  Flow tf = then_end.flow, ef = else_end.flow;
  bool then_left = tf.kind == Kind::kReturned, else_left = ef.kind == Kind::kReturned;
  Env out;
  if (!(then_left && else_left)) {
    for (auto& [id, t] : then_end.env) {
      auto it = else_end.env.find(id);
      const Binding* e = it == else_end.env.end() ? nullptr : &it->second;
      bool t_live = t.state == Binding::State::kLive, e_live = e && e->state == Binding::State::kLive;
      if (t_live && e_live && same(t.value, e->value)) {
        out.emplace(id, t);
        continue;
      }
      if (!is_live(id, live_from)) continue;
      if (then_left || else_left) {
        const Binding* kept = then_left ? e : &t;
        if (!kept) continue;
        Binding joined = *kept;
        if (kept->state == Binding::State::kLive) joined.value = m.one_sided(kept->value, then_left ? 1 : 0);
        out.emplace(id, std::move(joined));
        continue;
      }
      if (!t_live || !e_live) {
        Binding gone = t_live || !e ? t : *e;
        if (gone.state == Binding::State::kLive) gone.state = Binding::State::kOneBranch, gone.why = where;
        out.emplace(id, std::move(gone));
        continue;
      }
      std::optional<Value> joined = m.join(t.value, e->value);
      if (!joined) {
        Diagnostic d = fail(e->at.begin > t.at.begin ? e->at : t.at, ErrorKind::kType,
                            "{} is {} in one branch of an if and {} in the other; its type must be the same after both",
                            id, describe(t.value), describe(e->value));
        return with_note(std::move(d), "the other value is bound here", e->at.begin > t.at.begin ? t.at : e->at);
      }
      bool declared = t.declared_constexpr && e->declared_constexpr && !joined->tensor();
      out.emplace(id, Binding{*std::move(joined), e->at.begin > t.at.begin ? e->at : t.at, declared});
    }
    for (auto& [id, e] : else_end.env) {
      if (then_end.env.contains(id) || !is_live(id, live_from)) continue;
      Binding kept = e;
      if (then_left && e.state == Binding::State::kLive) kept.value = m.one_sided(e.value, 1);
      if (else_left) continue;
      if (!then_left && e.state == Binding::State::kLive) kept.state = Binding::State::kOneBranch, kept.why = where;
      out.emplace(id, std::move(kept));
    }
  }
  Snapshot joined{std::move(out), {}, std::nullopt, {}};
  if (tf.kind == ef.kind && tf.kind != Kind::kMaybe) {
    joined.flow = tf;
  } else {
    joined.flow = {Kind::kMaybe, nullptr};
  }
  if (joined.flow.kind == Kind::kMaybe && !tail) {
    ir::Value* t = m.flag(tf, 0);
    ir::Value* e = m.flag(ef, 1);
    joined.flow.returned = m.add(t, e);
  }
  if (then_end.result && else_end.result) {
    joined.result = m.join(*then_end.result, *else_end.result);
    joined.result_at = then_end.result_at;
    if (!joined.result) {
      Diagnostic d = fail(else_end.result_at, ErrorKind::kType,
                          "{} returns {} here and {} elsewhere; every return must give the same type",
                          frame().function->def->name, describe(*else_end.result), describe(*then_end.result));
      return with_note(std::move(d), "the other return is here", then_end.result_at);
    }
  } else if (then_end.result) {
    joined.result = m.one_sided(*then_end.result, 0);
    joined.result_at = then_end.result_at;
  } else if (else_end.result) {
    joined.result = m.one_sided(*else_end.result, 1);
    joined.result_at = else_end.result_at;
  }
  b.set_to_end(branch->region(0));
  b.yield(m.then_yields);
  b.set_to_end(branch->region(1));
  b.yield(m.else_yields);
  b.set_to_end(after);
  restore(std::move(joined));
  return {};
}

Status Codegen::too_deep(SourceRange range) {
  constexpr int kMaxDepth = 256;
  if (branch_depth_ <= kMaxDepth) return {};
  return with_note(
      fail(range, ErrorKind::kUnsupported, "branches and early returns are nested more than {} deep", kMaxDepth),
      "help: what follows an early return counts as nested in its other branch");
}

Status Codegen::if_stmt(const ast::If& s, ir::Value* condition, std::span<const ast::Stmt* const> rest, bool tail) {
  Depth depth(branch_depth_);
  KILN_CHECK_OK(too_deep(s.condition->range));
  ir::Block* after = b.block();
  ir::Op* branch = b.if_op(condition, {});
  Snapshot before = snapshot();
  auto run = [&](int side, const ast::Body& own, bool absorbs) -> Result<Snapshot> {
    b.set_to_end(branch->region(side));
    restore(before);
    Statements statements = pointers(own);
    if (absorbs) statements.insert(statements.end(), rest.begin(), rest.end());
    KILN_CHECK_OK(body(statements, tail));
    return snapshot();
  };
  bool then_absorbs = surely_returns(s.else_body) && !surely_returns(s.body);
  bool else_absorbs = surely_returns(s.body);
  KILN_TRY(Snapshot then_end, run(0, s.body, then_absorbs));
  KILN_TRY(Snapshot else_end, run(1, s.else_body, else_absorbs));
  uint32_t live_from = rest.empty() ? end_of(s) : end_of(*rest.back());
  return merge(branch, after, std::move(then_end), std::move(else_end), s.condition->range, live_from, tail);
}

Status Codegen::guarded(std::span<const ast::Stmt* const> rest, bool tail) {
  Depth depth(branch_depth_);
  KILN_CHECK_OK(too_deep(rest.front()->range));
  ir::Block* after = b.block();
  ir::Value* goes_on = b.binary(OpKind::kXor, frame().flow.returned, b.constant_int(ir::scalar_type(DType::kI1), 1));
  ir::Op* branch = b.if_op(goes_on, {});
  Snapshot left = snapshot();
  left.flow = {Flow::Kind::kReturned, nullptr};
  Frame& f = frame();
  f.flow = {};
  f.result.reset();
  b.set_to_end(branch->region(0));
  KILN_CHECK_OK(body(rest, tail));
  Snapshot end = snapshot();
  return merge(branch, after, std::move(end), std::move(left), rest.front()->range, end_of(*rest.back()), tail);
}

Result<Value> Codegen::if_exp(const ast::IfExp& e) {
  KILN_TRY(Value condition, expr(*e.condition));
  if (!condition.tensor()) {
    KILN_TRY(bool taken, constant_truth(condition, e.condition->range));
    return expr(taken ? *e.then_value : *e.else_value);
  }
  KILN_TRY(ir::Value * bit, scalar_condition({condition, e.condition->range}, "a conditional expression"));
  ir::Block* after = b.block();
  ir::Op* branch = b.if_op(bit, {});
  auto side = [&](int i, const ast::Expr& value) -> Result<Value> {
    b.set_to_end(branch->region(i));
    return expr(value);
  };
  KILN_TRY(Value x, side(0, *e.then_value));
  KILN_TRY(Value y, side(1, *e.else_value));
  Merge m{*this, branch, {}, {}};
  std::optional<Value> joined = m.join(x, y);
  if (!joined)
    return fail(e.range, ErrorKind::kType,
                "the two values of a conditional expression must have one type, got {} and {}", describe(x),
                describe(y));
  b.set_to_end(branch->region(0));
  b.yield(m.then_yields);
  b.set_to_end(branch->region(1));
  b.yield(m.else_yields);
  b.set_to_end(after);
  return *std::move(joined);
}

}  // namespace kiln::frontend
