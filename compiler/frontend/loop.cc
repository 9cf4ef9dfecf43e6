// for and while: names that an iteration changes become region arguments; static_range unrolls.
#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/codegen.h"

#include <fmt/format.h>

namespace kiln::frontend {

using ir::OpKind;

/// A name that a loop assigns: its value before, and the same with a region argument for every tensor in it.
struct Codegen::Carried {
  struct Leaf {
    ir::Value* init;
    std::vector<ir::Value*> args;  // one per region
    int index;                     // among the loop's leaves
  };
  std::string id;
  Binding before;
  std::vector<Leaf> leaves;
};

namespace {

/// Calls `fn` on every tensor of a value, and rebuilds the value from what it gives.
template <class Fn>
Value map_tensors(const Value& v, Fn&& fn) {
  if (ir::Value* t = v.tensor()) return Value(fn(t));
  if (const std::vector<Value>* parts = parts_of(v)) {
    std::vector<Value> mapped;
    for (const Value& part : *parts) mapped.push_back(map_tensors(part, fn));
    return with_parts(v, std::move(mapped));
  }
  return v;
}

void collect_tensors(const Value& v, std::vector<ir::Value*>& out) {
  map_tensors(v, [&](ir::Value* t) { return out.push_back(t), t; });
}

/// Same structure, tensors aside.
bool same_but_tensors(const Value& a, const Value& c) {
  if (a.tensor() || c.tensor()) return a.tensor() && c.tensor();
  if (!parts_of(a) || !parts_of(c)) return same(a, c);
  if (!same_kind_of_parts(a, c)) return false;
  const std::vector<Value>&s = *parts_of(a), &t = *parts_of(c);
  for (size_t i = 0; i < s.size(); ++i)
    if (!same_but_tensors(s[i], t[i])) return false;
  return true;
}

}  // namespace

Result<std::vector<Codegen::Carried>> Codegen::carry(const ast::Stmt& loop, std::span<const ast::StmtPtr> statements,
                                                     std::string_view target, std::span<ir::Block* const> blocks) {
  std::vector<Carried> out;
  // An ordered set, because it decides the order of the region arguments: the same source must give the same IR.
  std::set<std::string, std::less<>> names = assigned_names(statements);
  if (!target.empty()) names.insert(std::string(target));
  int index = 0;
  for (const std::string& id : names) {
    auto it = frame().env.find(id);
    if (it == frame().env.end() || it->second.state != Binding::State::kLive) continue;
    // The loop variable is set before every iteration, so only what follows the loop can see its last value.
    bool needed = id == target ? is_live(id, end_of(loop)) : is_live(id, loop.range.begin);
    if (!needed) continue;
    Carried c{id, it->second, {}};
    it->second.value = map_tensors(c.before.value, [&](ir::Value* init) {
      Carried::Leaf leaf{init, {}, index++};
      for (ir::Block* block : blocks) leaf.args.push_back(module.add_arg(block, init->type, id));
      c.leaves.push_back(leaf);
      return leaf.args.front();
    });
    out.push_back(std::move(c));
  }
  return out;
}

std::set<std::string, std::less<>> Codegen::changed_numbers(const std::vector<Carried>& carried) {
  std::set<std::string, std::less<>> out;
  for (const Carried& c : carried) {
    auto it = frame().env.find(c.id);
    if (c.before.value.is_number() && it != frame().env.end() && !same(it->second.value, c.before.value))
      out.insert(c.id);
  }
  return out;
}

Result<bool> Codegen::materialize(const std::set<std::string, std::less<>>& names) {
  bool any = false;
  for (const std::string& n : names) {
    auto it = frame().env.find(n);
    if (it == frame().env.end() || !it->second.value.is_number()) continue;
    KILN_TRY(ir::Value * v, tensor({it->second.value, it->second.at}));
    it->second.value = Value(v);
    any = true;
  }
  return any;
}

Status Codegen::finish_loop(ir::Op* loop, std::vector<Carried>& carried, int first_arg, const Env& before,
                            std::vector<ir::Value*>& yields, SourceRange where) {
  Env end = std::move(frame().env);
  // Final values by leaf; a leaf that ends as it began is not carried at all.
  std::vector<std::pair<Carried::Leaf*, ir::Value*>> leaves;
  std::vector<Value> final_values;
  for (Carried& c : carried) {
    auto it = end.find(c.id);
    std::vector<ir::Value*> finals;
    bool alive = it != end.end() && it->second.state == Binding::State::kLive;
    if (!alive) {  // dropped as dead
      for (Carried::Leaf& leaf : c.leaves) finals.push_back(leaf.args.back());
      final_values.push_back(c.before.value);
    } else {
      bool fits_before = same_but_tensors(c.before.value, it->second.value);
      collect_tensors(it->second.value, finals);
      for (size_t i = 0; fits_before && i < finals.size(); ++i) fits_before = finals[i]->type == c.leaves[i].init->type;
      if (!fits_before) {
        const std::vector<Value>*was = parts_of(c.before.value), *is = parts_of(it->second.value);
        if (c.before.value.aggregate() && same_kind_of_parts(c.before.value, it->second.value))
          for (size_t i = 0; i < was->size(); ++i)
            if (!same_but_tensors((*was)[i], (*is)[i]))
              return with_note(
                  fail(it->second.at, ErrorKind::kType,
                       "{}.{} is {} before the loop and {} after an iteration; a variable keeps its type in "
                       "a loop",
                       c.id, c.before.value.aggregate()->of->fields[i].name, describe((*was)[i]), describe((*is)[i])),
                  "its value before the loop is bound here", c.before.at);
        Diagnostic d = fail(it->second.at, ErrorKind::kType,
                            "{} is {} before the loop and {} after an iteration; a variable keeps its type in a loop",
                            c.id, describe(c.before.value), describe(it->second.value));
        d = with_note(std::move(d), "its value before the loop is bound here", c.before.at);
        if (!finals.empty() && c.leaves.size() == 1 && finals.size() == 1 &&
            finals[0]->type.shape == c.leaves[0].init->type.shape)
          d = with_note(std::move(d),
                        fmt::format("help: give it the type {} before the loop, or convert it with .to(tl.{}) here",
                                    info(finals[0]->type.dtype).triton, info(c.leaves[0].init->type.dtype).triton));
        else if (finals.size() == 1 && finals[0]->type.is_tile() && c.leaves.size() == 1)
          d = with_note(
              std::move(d),
              fmt::format("help: start with tl.zeros({}, {})", ir::to_string(finals[0]->type.shape),
                          finals[0]->type.pointer ? "…" : fmt::format("tl.{}", info(finals[0]->type.dtype).triton)));
        return d;
      }
      final_values.push_back(it->second.value);
    }
    for (size_t i = 0; i < finals.size(); ++i) leaves.emplace_back(&c.leaves[i], finals[i]);
  }
  std::unordered_map<ir::Value*, ir::Value*> outside;  // region argument → its value after the loop
  auto unchanged = [](const Carried::Leaf& leaf, ir::Value* last) { return last == leaf.args.back(); };
  for (auto& [leaf, last] : leaves)
    if (unchanged(*leaf, last))
      for (ir::Value* arg : leaf->args) outside[arg] = leaf->init;
  for (auto& [leaf, last] : leaves) {
    if (unchanged(*leaf, last)) continue;
    auto replaced = outside.find(last);
    // A name may end an iteration with the value of another one that the loop does not carry after all, as in `a = b`.
    yields.push_back(replaced == outside.end() ? last : replaced->second);
    loop->append_operand(leaf->init);
    ir::Value* result = module.add_result(loop, leaf->init->type);
    result->name = leaf->args.front()->name;
    leaf->args.push_back(result);
  }
  // After the loop a name is bound to its result, or to its old value.
  frame().env = before;
  size_t k = 0;
  for (size_t i = 0; i < carried.size(); ++i) {
    Binding& binding = frame().env.find(carried[i].id)->second;
    size_t leaf_at = k;
    k += carried[i].leaves.size();
    binding.value = map_tensors(carried[i].before.value, [&](ir::Value*) {
      auto& [leaf, last] = leaves[leaf_at++];
      return unchanged(*leaf, last) ? leaf->init : leaf->args.back();
    });
    if (auto it = end.find(carried[i].id); it != end.end()) binding.at = it->second.at;
  }
  for (auto& [id, binding] : end) {
    if (before.contains(id)) continue;
    Binding gone = binding;
    if (gone.state == Binding::State::kLive) gone.state = Binding::State::kLoopOnly, gone.why = where;
    frame().env.emplace(id, std::move(gone));
  }
  // From the last argument on: erasing one moves those behind it.
  for (size_t i = leaves.size(); i-- > 0;) {
    auto& [leaf, last] = leaves[i];
    bool result_added = !leaf->args.empty() && leaf->args.back()->is_result() && leaf->args.back()->op == loop;
    if (result_added) continue;
    for (size_t r = 0; r < leaf->args.size(); ++r) {
      ir::replace_all_uses(leaf->args[r], leaf->init);
      module.erase_arg(loop->region(static_cast<int>(r)), first_arg + leaf->index);
    }
  }
  return {};
}

Status Codegen::for_stmt(const ast::For& s) {
  if (!s.else_body.empty())
    return fail(s.else_body.front()->range, ErrorKind::kUnsupported, "else after a loop is not supported in kernels");
  KILN_TRY(Value iterable, expr(*s.iterable));
  const RangeValue* range = iterable.range();
  if (!range && computing()) return items_for(s, iterable);
  if (!range) {
    Diagnostic d =
        fail(s.iterable->range, ErrorKind::kUnsupported,
             "a for loop in a kernel goes over range, tl.range or tl.static_range, not {}", describe(iterable));
    if (iterable.as_tuple())
      d = with_note(std::move(d), "help: write `for i in tl.static_range(len(items))` and use items[i]");
    return d;
  }
  if (!ast::dyn_as<ast::Name>(s.target.get()))
    return fail(s.target->range, ErrorKind::kUnsupported, "the loop variable must be one name");
  return range->is_static || computing() ? static_for(s, *range) : runtime_for(s, *range);
}

bool Codegen::leaves_loop() {
  Flow& flow = frame().flow;
  if (flow.kind == Flow::Kind::kContinues) flow = {};
  if (flow.kind == Flow::Kind::kFalls) return false;
  if (flow.kind == Flow::Kind::kBroke) flow = {};
  return true;
}

/// A loop of a constexpr function through a tuple.
Status Codegen::items_for(const ast::For& s, const Value& iterable) {
  KILN_TRY(std::vector<Value> items, items_of({iterable, s.iterable->range}));
  const Statements statements = pointers(s.body);
  frame().loop_starts.push_back(s.range.begin);
  for (Value& item : items) {
    KILN_CHECK_OK(step(s.iterable->range));
    KILN_CHECK_OK(assign(*s.target, std::move(item), s.iterable->range, true));
    KILN_CHECK_OK(body(statements, false));
    if (leaves_loop()) break;
  }
  frame().loop_starts.pop_back();
  return {};
}

Status Codegen::static_for(const ast::For& s, const RangeValue& range) {
  ast::Int bounds[3];
  const Arg* parts[] = {&range.start, &range.end, &range.step};
  for (int i = 0; i < 3; ++i) {
    const ast::Int* v = parts[i]->value.constant_as<ast::Int>();
    if (!v)
      return with_note(fail(parts[i]->range, ErrorKind::kType,
                            "the bounds of tl.static_range must be constexpr ints, got {}", describe(parts[i]->value)),
                       "help: tl.range takes bounds that are known only when the kernel runs");
    bounds[i] = *v;
  }
  if (bounds[2] == 0) return fail(parts[2]->range, ErrorKind::kValue, "the step of a loop cannot be 0");
  Statements statements = pointers(s.body);
  frame().loop_starts.push_back(s.range.begin);
  const std::string& id = ast::as<ast::Name>(*s.target).id;
  for (ast::Int i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) {
    KILN_CHECK_OK(step(s.iterable->range));
    KILN_CHECK_OK(bind(id, Value::integer(i), s.target->range, true));
    KILN_CHECK_OK(body(statements, false));
    if (frame().flow.kind == Flow::Kind::kMaybe)
      return with_note(fail(s.iterable->range, ErrorKind::kUnsupported,
                            "return under a runtime condition inside a loop is not supported"),
                       "help: keep the result in a variable and return it after the loop");
    if (leaves_loop()) break;
  }
  frame().loop_starts.pop_back();
  return {};
}

Status Codegen::runtime_for(const ast::For& s, const RangeValue& range) {
  const std::string& id = ast::as<ast::Name>(*s.target).id;
  const Arg* parts[] = {&range.start, &range.end, &range.step};
  ir::Value* bounds[3];
  RangeScope scope(*this, s.iterable->range);
  // A step of known sign: a constexpr, or a name that holds one.
  std::optional<ast::Int> constant_step;
  DType step_type = DType::kI32;
  if (const auto* c = range.step.value.constant_as<ast::Int>()) {
    constant_step = *c;
    step_type = natural_dtype(ast::Constant(-*c)).value_or(DType::kI64);
  } else if (ir::Value* v = range.step.value.tensor();
             v && v->op && v->op->kind == OpKind::kConstant && v->type.is_int() && v->type.is_scalar()) {
    constant_step = v->op->int_attr(ir::AttrName::kValue);
    step_type = v->type.dtype;
    if (*constant_step < 0 && !is_signed(step_type))
      return fail(range.step.range, ErrorKind::kValue, "this step is too large for a loop");
  }
  if (constant_step && *constant_step == 0)
    return fail(range.step.range, ErrorKind::kValue, "the step of a loop cannot be 0");
  bool down = constant_step && *constant_step < 0;
  DType common = DType::kI32;
  for (int i = 0; i < 3; ++i) {
    if (i == 2 && down) {
      bounds[i] = constant(ast::Constant(-*constant_step), step_type);
    } else {
      KILN_TRY(bounds[i], tensor(*parts[i]));
    }
    if (!bounds[i]->type.is_int() || bounds[i]->type.is_tile()) {
      Diagnostic d = fail(parts[i]->range, ErrorKind::kType, "the bounds of a loop must be scalar ints, got {}",
                          describe(parts[i]->value));
      // A tensor of one element is passed as a pointer to it.
      if (bounds[i]->type.pointer)
        d = with_note(std::move(d), "help: load it with tl.load(pointer), or pass a number, such as x.item()");
      return d;
    }
    common = i == 0 ? bounds[i]->type.dtype : promote_ints(common, bounds[i]->type.dtype);
  }
  // Python's bools count as integers: range(True) runs once.
  if (common == DType::kI1) common = DType::kI32;
  for (ir::Value*& v : bounds) {
    KILN_TRY(v, cast(v, ir::scalar_type(common), s.iterable->range));
  }
  // Counting down runs the same iterations upwards: i = start - (k - end).
  if (down) std::swap(bounds[0], bounds[1]);

  ir::Block* after = b.block();
  Statements statements = pointers(s.body);
  // A Python number that the body changes becomes a tensor before the loop, one more at each try; one that it leaves
  // alone stays constexpr.
  for (;;) {
    Snapshot start = snapshot();
    ir::Op* loop = b.for_loop(bounds[0], bounds[1], bounds[2], {});
    loop->attrs = range.attrs;
    ir::Block* region = loop->region();
    KILN_TRY(std::vector<Carried> carried, carry(s, s.body, id, std::span(&region, 1)));
    b.set_to_end(region);
    ir::Value* iv = region->args[0];
    if (down) iv = b.binary(OpKind::kAdd, b.binary(OpKind::kSub, bounds[1], iv), bounds[0]);
    KILN_CHECK_OK(bind(id, Value(iv), s.target->range, false));
    frame().loop_starts.push_back(s.range.begin);
    ++frame().runtime_loops;
    KILN_CHECK_OK(body(statements, false));
    --frame().runtime_loops;
    frame().loop_starts.pop_back();
    if (std::set<std::string, std::less<>> changed = changed_numbers(carried); !changed.empty()) {
      loop->erase();
      restore(std::move(start));
      b.set_to_end(after);
      KILN_TRY(bool any, materialize(changed));
      KILN_ASSERT(any);
      continue;
    }
    std::vector<ir::Value*> yields;
    KILN_CHECK_OK(finish_loop(loop, carried, 1, start.env, yields, s.iterable->range));
    b.set_to_end(region);
    b.yield(yields);
    b.set_to_end(after);
    return {};
  }
}

Status Codegen::while_stmt(const ast::While& s) {
  if (!s.else_body.empty())
    return fail(s.else_body.front()->range, ErrorKind::kUnsupported, "else after a loop is not supported in kernels");
  if (frame().function->constexpr_function) return constexpr_while(s);
  ir::Block* after = b.block();
  Statements statements = pointers(s.body);
  std::set<std::string, std::less<>> assigned = assigned_names(s.body);
  for (;;) {
    Snapshot start = snapshot();
    ir::Op* loop = b.while_loop({});
    ir::Block* regions[] = {loop->region(0), loop->region(1)};
    KILN_TRY(std::vector<Carried> carried, carry(s, s.body, {}, regions));
    frame().loop_starts.push_back(s.range.begin);
    ++frame().runtime_loops;
    b.set_to_end(regions[0]);
    KILN_TRY(Value condition, expr(*s.condition));
    if (!condition.tensor()) {
      frame().loop_starts.pop_back();
      --frame().runtime_loops;
      loop->erase();
      restore(std::move(start));
      b.set_to_end(after);
      // A false constexpr: the loop never runs. A true one may depend on numbers that the body changes, so those become
      // tensors and the condition is evaluated again.
      if (!condition.constant() || !ast::truth(*condition.constant())) return {};
      KILN_TRY(bool any, materialize(assigned));
      if (!any)
        return fail(s.condition->range, ErrorKind::kValue, "this loop never ends: its condition is the constexpr {}",
                    to_text(condition));
      continue;
    }
    RangeScope scope(*this, s.condition->range);
    KILN_TRY(ir::Value * bit, scalar_condition({condition, s.condition->range}, "a while loop"));
    // The body sees the second region's arguments.
    std::unordered_map<ir::Value*, ir::Value*> second;
    for (const Carried& c : carried)
      for (const Carried::Leaf& leaf : c.leaves) second[leaf.args[0]] = leaf.args[1];
    for (auto& [id, binding] : frame().env)
      binding.value = map_tensors(binding.value, [&](ir::Value* v) { return second.contains(v) ? second[v] : v; });
    b.set_to_end(regions[1]);
    KILN_CHECK_OK(body(statements, false));
    --frame().runtime_loops;
    frame().loop_starts.pop_back();
    if (std::set<std::string, std::less<>> changed = changed_numbers(carried); !changed.empty()) {
      loop->erase();
      restore(std::move(start));
      b.set_to_end(after);
      KILN_TRY(bool any, materialize(changed));
      KILN_ASSERT(any);
      continue;
    }
    b.set_to_end(regions[0]);
    ir::Op* terminator = b.create(OpKind::kCondition, std::span(&bit, 1), {});
    std::vector<ir::Value*> yields;
    KILN_CHECK_OK(finish_loop(loop, carried, 0, start.env, yields, s.condition->range));
    for (ir::Value* arg : regions[0]->args) terminator->append_operand(arg);
    b.set_to_end(regions[1]);
    b.yield(yields);
    b.set_to_end(after);
    return {};
  }
}

Status Codegen::constexpr_while(const ast::While& s) {
  Statements statements = pointers(s.body);
  frame().loop_starts.push_back(s.range.begin);
  for (;;) {
    KILN_CHECK_OK(step(s.condition->range));
    KILN_TRY(Value condition, expr(*s.condition));
    if (!condition.constant() || !ast::truth(*condition.constant())) break;
    KILN_CHECK_OK(body(statements, false));
    if (leaves_loop()) break;
  }
  frame().loop_starts.pop_back();
  return {};
}

}  // namespace kiln::frontend
