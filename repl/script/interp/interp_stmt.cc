// Statements.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"
#include "support/trace.h"

namespace kiln::script {

using namespace ast;

namespace {

// Its place and first line, for a profile.
void describe(SourceRange range, trace::Event& event) {
  if (!range.text) return;
  constexpr size_t kLongest = 80;
  event.file = range.text->file_name();
  event.line = range.text->line_of(range.begin);
  std::string_view text = range.str();
  text = text.substr(0, text.find('\n'));
  event.name = text.substr(0, kLongest);
}

}  // namespace

namespace {

/// `x;` shows nothing, as in IPython.
bool ends_with_semicolon(const Stmt& s) {
  if (!s.range.text) return false;
  // Brackets around it are not of its range.
  const std::string_view rest = s.range.text->text().substr(s.range.end);
  const size_t at = rest.find_first_not_of(" \t\n)");
  return at != std::string_view::npos && rest[at] == ';';
}

}  // namespace

void Interp::announce(const Stmt& s, Frame& f) {
  const auto* assignment = dyn_as<Assign>(&s);
  const auto* name = assignment ? dyn_as<Name>(assignment->targets.back().get()) : nullptr;
  if (name) host_->assigned(*this, name->id, load(name, name->id, name->range, f));
}

void Host::show(Interp& in, const Value& v) { in.print(in.repr(v) + "\n"); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): it lives as long as it runs, whatever becomes of the caller's
void Interp::run(std::shared_ptr<const Program> program, Shown shown) {
  handled_.clear();
  calls_.clear();
  host_->begin(*this);
  check_stack();
  Frame frame(*program, *program->codes.at(nullptr));
  frame.make_cells();
  const StmtPtr* last =
      shown == Shown::kLast && !program->module->body.empty() ? &program->module->body.back() : nullptr;
  for (const StmtPtr& s : program->module->body) {
    const auto* result = &s == last ? dyn_as<ExprStmt>(s.get()) : nullptr;
    if (!result) {
      exec_one(*s, frame);
      if (shown != Shown::kNothing) announce(*s, frame);
      continue;
    }
    trace::Scope span(trace::kStatements, trace::Step::kStatement);
    if (trace::Event* event = span.event()) describe(s->range, *event);
    Value v = eval(*result->value, frame);
    // Only a call may stay quiet: a bare name asks to see its value.
    const bool quiet = dyn_as<ast::Call>(result->value.get()) && v.object() && v.object()->is_quiet();
    if (v.is_none() || quiet || ends_with_semicolon(*s)) continue;
    host_->show(*this, v);
  }
}

void Interp::assign_value(const std::shared_ptr<const Program>& program, const Assign& s, const Value& v) {
  handled_.clear();
  calls_.clear();
  check_stack();
  Frame frame(*program, *program->codes.at(nullptr));
  frame.make_cells();
  for (const ExprPtr& target : s.targets) assign(*target, v, frame);
}

Value Interp::evaluate(const std::shared_ptr<const Program>& program, const Expr& e) {
  handled_.clear();
  calls_.clear();
  check_stack();
  Frame frame(*program, *program->codes.at(nullptr));
  frame.make_cells();
  trace::Scope span(trace::kStatements, trace::Step::kStatement);
  if (trace::Event* event = span.event()) describe(e.range, *event);
  return eval(e, frame);
}

Flow Interp::exec(const Body& body, Frame& f) {
  for (const StmtPtr& s : body)
    if (Flow flow = exec_one(*s, f); flow != Flow::kNormal) return flow;
  return Flow::kNormal;
}

Flow Interp::exec_one(const Stmt& s, Frame& f) {
  trace::Scope span(trace::kStatements, trace::Step::kStatement);
  if (trace::Event* event = span.event()) describe(s.range, *event);
  switch (s.kind) {
    case StmtKind::kExpr:
      eval(*as<ExprStmt>(s).value, f);
      return Flow::kNormal;
    case StmtKind::kAssign: {
      const auto& n = as<Assign>(s);
      if (n.targets.size() == 1 && assign_each(*n.targets[0], *n.value, f)) return Flow::kNormal;
      Value v = eval(*n.value, f);
      // Python assigns from left to right.
      for (size_t i = 0; i + 1 < n.targets.size(); ++i) assign(*n.targets[i], v, f);
      assign(*n.targets.back(), std::move(v), f);
      return Flow::kNormal;
    }
    case StmtKind::kAugAssign:
      exec_augmented(as<AugAssign>(s), f);
      return Flow::kNormal;
    case StmtKind::kAnnAssign: {
      const auto& n = as<AnnAssign>(s);
      if (!n.value) return Flow::kNormal;
      Value v = eval(*n.value, f);
      // `N: tl.constexpr = 3` is a value that kernels may see; other annotations say nothing to Kiln.
      const auto* annotation = dyn_as<Attribute>(n.annotation.get());
      if (annotation && annotation->name == "constexpr") {
        Value wrapper = eval(*annotation, f);
        where_ = annotation->range;
        v = call(wrapper, {v});
      }
      assign(*n.target, std::move(v), f);
      return Flow::kNormal;
    }
    case StmtKind::kFor:
      return exec_for(as<ast::For>(s), f);
    case StmtKind::kWhile: {
      const auto& n = as<While>(s);
      while (truth(eval(*n.condition, f))) {
        check_interrupt();
        Flow flow = exec(n.body, f);
        if (flow == Flow::kBreak) return Flow::kNormal;
        if (flow == Flow::kReturn) return flow;
      }
      return exec(n.else_body, f);
    }
    case StmtKind::kIf: {
      const auto& n = as<If>(s);
      return exec(truth(eval(*n.condition, f)) ? n.body : n.else_body, f);
    }
    case StmtKind::kFunctionDef:
      define_function(as<FunctionDef>(s), f);
      return Flow::kNormal;
    case StmtKind::kClassDef:
      exec_class(as<ClassDef>(s), f);
      return Flow::kNormal;
    case StmtKind::kReturn: {
      const auto& n = as<Return>(s);
      f.result = n.value ? eval(*n.value, f) : Value::none();
      return Flow::kReturn;
    }
    case StmtKind::kPass:
      return Flow::kNormal;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
    case StmtKind::kImport:
      exec_import(as<Import>(s), f);
      return Flow::kNormal;
    case StmtKind::kAssert:
      exec_assert(as<Assert>(s), f);
      return Flow::kNormal;
    case StmtKind::kDel:
      for (const ExprPtr& t : as<Del>(s).targets) exec_del(*t, f);
      return Flow::kNormal;
    case StmtKind::kGlobal:
      return Flow::kNormal;
    case StmtKind::kWith:
      return exec_with(as<With>(s), f);
    case StmtKind::kTry:
      return exec_try(as<Try>(s), f);
    case StmtKind::kRaise:
      exec_raise(as<Raise>(s), f);
      return Flow::kNormal;
    case StmtKind::kUnsupported:
      take(Result<Value>(as<ast::Unsupported>(s).why));
      return Flow::kNormal;
    case StmtKind::kMatch: {
      const Body* body = chosen_case(as<Match>(s), f);
      return body ? exec(*body, f) : Flow::kNormal;
    }
  }
  KILN_UNREACHABLE("statement");
}

Flow Interp::exec_for(const ast::For& s, Frame& f) {
  Value items = eval(*s.iterable, f);
  where_ = s.iterable->range;
  Flow flow = Flow::kNormal;
  bool finished = true;
  for_each(items, [&](Value item) {
    check_interrupt();
    assign(*s.target, std::move(item), f);
    flow = exec(s.body, f);
    if (flow == Flow::kContinue || flow == Flow::kNormal) {
      flow = Flow::kNormal;
      return true;
    }
    finished = false;
    return false;
  });
  if (flow == Flow::kReturn) return flow;
  return finished ? exec(s.else_body, f) : Flow::kNormal;
}

Value Interp::combine(const AugAssign& s, const Value& old, const Value& right) {
  where_ = s.range;
  if (auto* o = old.object())
    if (auto changed = o->in_place(*this, s.op, right)) return *std::move(changed);
  return binary(s.op, old, right);
}

void Interp::exec_augmented(const AugAssign& s, Frame& f) {
  auto combined = [&](const Value& old) { return combine(s, old, eval(*s.value, f)); };
  if (const auto* name = dyn_as<Name>(s.target.get())) {
    store(name, combined(load(name, name->id, name->range, f)), f);
  } else if (const auto* attr = dyn_as<Attribute>(s.target.get())) {
    // The base is evaluated once although it is read and written: `f().x += 1` calls f once, as in Python.
    Value base = eval(*attr->base, f);
    where_ = attr->range;
    Value v = combined(attribute(base, attr->name));
    where_ = s.range;
    set_attribute(base, attr->name, std::move(v));
  } else {
    const auto& sub = as<Subscript>(*s.target);
    Value base = eval(*sub.base, f);
    Value index = eval(*sub.index, f);
    where_ = sub.range;
    if (auto* o = base.object(); o && o->change_item(*this, index, s.op, [&] { return eval(*s.value, f); })) return;
    Value v = combined(item(base, index));
    where_ = s.range;
    set_item(base, index, std::move(v));
  }
}

void Interp::store(const void* node, Value v, Frame& f) {
  NameRef ref = f.program.names.find(node);
  switch (ref.where) {
    case NameRef::Where::kLocal:
      f.slots[ref.index] = std::move(v);
      return;
    case NameRef::Where::kCell:
      f.slots[ref.index].get<Cell>()->value = std::move(v);
      return;
    case NameRef::Where::kFree:
      (*f.free)[ref.index]->value = std::move(v);
      return;
    case NameRef::Where::kGlobal:
      (*f.program.globals)[ref.index].value = std::move(v);
      return;
    case NameRef::Where::kConstant:
    case NameRef::Where::kNone:
      break;
  }
  KILN_UNREACHABLE("a name that was not resolved");
}

void Interp::assign(const Expr& target, Value v, Frame& f) {
  switch (target.kind) {
    case ExprKind::kName:
      store(&target, std::move(v), f);
      return;
    case ExprKind::kTuple:
      unpack(as<ast::Tuple>(target).items, v, target, f);
      return;
    case ExprKind::kList:
      unpack(as<ast::List>(target).items, v, target, f);
      return;
    case ExprKind::kAttribute: {
      const auto& n = as<Attribute>(target);
      Value base = eval(*n.base, f);
      where_ = target.range;
      set_attribute(base, n.name, std::move(v));
      return;
    }
    case ExprKind::kSubscript: {
      const auto& n = as<Subscript>(target);
      Value base = eval(*n.base, f);
      Value index = eval(*n.index, f);
      where_ = target.range;
      set_item(base, index, std::move(v));
      return;
    }
    default:
      KILN_UNREACHABLE("assignment target");
  }
}

bool Interp::assign_each(const Expr& target, const Expr& value, Frame& f) {
  const auto *to = dyn_as<ast::Tuple>(&target), *from = dyn_as<ast::Tuple>(&value);
  if (!to || !from || to->items.size() != from->items.size()) return false;
  auto is_starred = [](const ExprPtr& e) { return e->kind == ExprKind::kStarred; };
  if (std::ranges::any_of(to->items, is_starred) || std::ranges::any_of(from->items, is_starred)) return false;
  SmallVector<Value, 4> values;  // all of them before the first is assigned: a, b = b, a
  for (const ExprPtr& e : from->items) values.push_back(eval(*e, f));
  for (size_t i = 0; i < values.size(); ++i) assign(*to->items[i], std::move(values[i]), f);
  return true;
}

void Interp::unpack(const std::vector<ExprPtr>& targets, const Value& v, const Expr& whole, Frame& f) {
  where_ = whole.range;
  const bool plain = std::ranges::none_of(targets, [](const ExprPtr& e) { return e->kind == ExprKind::kStarred; });
  if (auto* t = v.get<Tuple>(); t && plain && t->items.size() == targets.size() && !has_own_iterator(v)) {
    for (size_t i = 0; i < targets.size(); ++i) assign(*targets[i], t->items[i], f);
    return;
  }
  std::vector<Value> items;
  if (auto* t = v.get<Tuple>(); t && !has_own_iterator(v)) {
    items = t->items;
  } else {
    if (!v.object() || v.object()->iterate(*this).missing())
      fail(ErrorKind::kType, "'{}' cannot be unpacked into {} names", type_name(v), targets.size());
    items = to_vector(v);
  }
  if (plain) {
    if (items.size() != targets.size())
      fail(ErrorKind::kValue, "expected {} values to unpack, got {}", targets.size(), items.size());
    for (size_t i = 0; i < targets.size(); ++i) assign(*targets[i], std::move(items[i]), f);
    return;
  }
  size_t star = 0;
  while (targets[star]->kind != ExprKind::kStarred) ++star;
  size_t after = targets.size() - star - 1;
  if (items.size() + 1 < targets.size())
    fail(ErrorKind::kValue, "expected at least {} values to unpack, got {}", targets.size() - 1, items.size());
  for (size_t i = 0; i < star; ++i) assign(*targets[i], items[i], f);
  auto first = items.begin() + static_cast<ptrdiff_t>(star), last = items.end() - static_cast<ptrdiff_t>(after);
  assign(*as<Starred>(*targets[star]).value, make<List>(std::vector<Value>(first, last)), f);
  for (size_t i = 0; i < after; ++i) assign(*targets[star + 1 + i], items[items.size() - after + i], f);
}

void Interp::exec_del(const Expr& target, Frame& f) {
  if (const auto* n = dyn_as<Name>(&target)) {
    // Only for its error: deleting a name that has no value is a NameError.
    load(n, n->id, n->range, f);
    store(n, Value(), f);
    return;
  }
  if (const auto* n = dyn_as<Subscript>(&target)) {
    Value base = eval(*n->base, f);
    Value index = eval(*n->index, f);
    where_ = target.range;
    if (!base.object()) fail(ErrorKind::kType, "the elements of '{}' cannot be deleted", type_name(base));
    base.object()->delete_item(*this, index);
    return;
  }
  const auto& n = as<Attribute>(target);
  Value base = eval(*n.base, f);
  where_ = target.range;
  delete_attribute(*this, base, n.name);
}

void Interp::exec_assert(const Assert& s, Frame& f) {
  if (truth(eval(*s.condition, f))) return;
  if (s.message) {
    const Value value = eval(*s.message, f);
    const std::string message = str(value);
    where_ = s.condition->range;
    try {
      fail_as_type("AssertionError", message.empty() ? "assertion failed" : "assertion failed: " + message, "");
    } catch (ScriptError& e) {
      e.exception.get<Instance>()->fields.set("args", make<Tuple>(std::vector<Value>{value}));
      throw;
    }
  }
  where_ = s.condition->range;
  // Show both sides of a plain comparison: they are what the reader asks for next.
  const auto* c = dyn_as<Compare>(s.condition.get());
  bool plain = c && c->ops.size() == 1 && c->left->kind == ExprKind::kName;
  if (!plain) fail_as_type("AssertionError", "assertion failed", "", "");
  std::string left = repr(load(c->left.get(), as<Name>(*c->left).id, c->left->range, f));
  where_ = s.condition->range;
  // The value of a tensor or a long list would bury the message.
  if (left.size() > 80) fail_as_type("AssertionError", "assertion failed", "", "");
  fail_as_type("AssertionError", "assertion failed", fmt::format("{} is {}", as<Name>(*c->left).id, left), "");
}

void Interp::exec_raise(const Raise& s, Frame& f) {
  if (!s.value) {
    where_ = s.range;
    if (handled_.empty()) fail_as("RuntimeError", "no exception is being handled that 'raise' could raise again");
    raise_again(handled_.back(), s.range, false);
  }
  Value v = eval(*s.value, f);
  where_ = s.range;
  if (auto* type = v.get<TypeObject>()) {
    CallArgs none;
    v = type->call(*this, none);
  }
  auto* instance = v.get<Instance>();
  if (!instance || !instance->type->derives_from(exception_type("BaseException").get()))
    fail(ErrorKind::kType, "'raise' needs an exception, got '{}'", type_name(v));
  if (s.cause) {
    Value cause = eval(*s.cause, f);
    if (auto* type = cause.get<TypeObject>()) cause = call(Value(type), {});
    instance->fields.set("__cause__", std::move(cause));
    where_ = s.range;
  }
  if (instance->caught) raise_again(v, s.range, true);
  raise(v, s.range);
}

const Try::Handler* Interp::handler_of(const Try& s, ScriptError& error, Frame& f) {
  for (const Try::Handler& h : s.handlers) {
    if (h.type) {
      Value type = eval(*h.type, f);
      where_ = h.range;
      if (!is_instance(error.exception, type)) continue;
    }
    if (!h.name.empty()) store(binding_key(h.name), error.exception, f);
    keep_report(error.exception, std::move(error.diagnostic));
    return &h;
  }
  return nullptr;
}

Flow Interp::exec_try(const Try& s, Frame& f) {
  size_t depth = calls_.size();
  auto attempt = [&]() -> Flow {
    std::optional<ScriptError> error;
    Flow flow = Flow::kNormal;
    try {
      flow = exec(s.body, f);
    } catch (ScriptError& e) {
      error = std::move(e);
    }
    if (!error) return flow == Flow::kNormal ? exec(s.else_body, f) : flow;
    calls_.resize(depth);
    if (const Try::Handler* h = handler_of(s, *error, f)) {
      handled_.push_back(error->exception);
      // A handler may leave by an exception of its own, and a bare `raise` after it must not find this one.
      struct Pop {
        Interp& in;
        const Try::Handler& handler;
        Frame& frame;
        size_t size;
        ~Pop() {
          in.handled_.resize(size);
          in.forget_name(handler, frame);
        }
      } pop{*this, *h, f, handled_.size() - 1};
      return exec(h->body, f);
    }
    throw std::move(*error);
  };
  if (s.finally_body.empty()) return attempt();
  Flow flow = Flow::kNormal;
  try {
    flow = attempt();
  } catch (ScriptError& e) {
    // What the finally block raises came while this exception was on its way.
    struct Handled {
      std::vector<Value>& all;
      const size_t size = all.size();
      ~Handled() { all.resize(size); }
    } around{handled_};
    handled_.push_back(e.exception);
    keep_report(e.exception, e.diagnostic);
    const Cleanup cleanup(*this);
    // `return`, `break` or `continue` in a finally block swallows the exception, as in Python.
    if (Flow last = exec(s.finally_body, f); last != Flow::kNormal) return last;
    throw;
  }
  // The finally block may set f.result and yet end normally: an inner `finally: break` overrides a `return`.
  Value result = f.result;
  Flow last = exec(s.finally_body, f);
  if (last != Flow::kNormal) return last;
  f.result = std::move(result);
  return flow;
}

void Interp::forget_name(const Try::Handler& h, Frame& f) {
  if (!h.name.empty()) store(binding_key(h.name), Value(), f);
}

Value Interp::enter_context(const With::Item& item, std::vector<Value>& exits, Frame& f) {
  Value context = eval(*item.context, f);
  where_ = item.context->range;
  auto enter = find_attribute(context, "__enter__"), exit = find_attribute(context, "__exit__");
  if (!enter || !exit)
    fail(ErrorKind::kType, "'{}' cannot stand in 'with': it has no __enter__ and __exit__", type_name(context));
  Value v = call(*enter, {});
  exits.push_back(*exit);
  return v;
}

bool Interp::leave_contexts(std::vector<Value>& exits, const Value& exception) {
  bool swallowed = false;
  const Cleanup cleanup(*this);
  while (!exits.empty()) {
    Value exit = std::move(exits.back());
    exits.pop_back();
    Value none = Value::none();
    // Once an __exit__ has swallowed the exception, the outer ones are told that all went well, as with nested `with`.
    auto* raised = swallowed || exception.missing() ? nullptr : exception.get<Instance>();
    swallowed |= truth(raised ? call(exit, {Value(raised->type), exception, none}) : call(exit, {none, none, none})) &&
                 raised != nullptr;
  }
  return swallowed;
}

Flow Interp::exec_with(const With& s, Frame& f) {
  std::vector<Value> exits;
  Flow flow = Flow::kNormal;
  try {
    for (const With::Item& i : s.items) {
      Value v = enter_context(i, exits, f);
      if (i.target) assign(*i.target, std::move(v), f);
    }
    flow = exec(s.body, f);
  } catch (ScriptError& e) {
    if (leave_contexts(exits, e.exception)) return Flow::kNormal;
    throw;
  }
  leave_contexts(exits, Value());
  return flow;
}

Value Interp::make_function(const Code& code, const std::vector<Param>& params, Frame& f, std::string name) {
  auto fn = make<Function>();
  fn->name = std::move(name);
  // At the prompt every input is a program of its own; a function must keep the tree alive that it points into.
  fn->program = f.program.shared_from_this();
  fn->code = &code;
  fn->params = &params;
  fn->defaults.resize(params.size());
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].default_value) fn->defaults[i] = eval(*params[i].default_value, f);
  fn->free = f.captured(code);
  return fn;
}

void Interp::define_function(const FunctionDef& s, Frame& f) {
  std::vector<Value> decorators;
  for (const ExprPtr& d : s.decorators) decorators.push_back(eval(*d, f));
  Value v = make_function(*f.program.codes.at(&s), s.params, f, s.name);
  v.get<Function>()->def = &s;
  // Decorators are evaluated from the top and applied from the bottom, as in Python.
  for (size_t i = decorators.size(); i-- > 0;) {
    where_ = s.decorators[i]->range;
    v = call(decorators[i], {v});
  }
  store(binding_key(s.name), std::move(v), f);
}

Value Interp::function_of(const std::shared_ptr<const Program>& program, const FunctionDef& def) {
  const auto code = program->codes.find(&def);
  if (code == program->codes.end() || !code->second->free.empty()) return {};
  Frame f(*program, *program->codes.at(nullptr));
  f.make_cells();
  Value v = make_function(*code->second, def.params, f, def.name);
  v.get<Function>()->def = &def;
  return v;
}

}  // namespace kiln::script
