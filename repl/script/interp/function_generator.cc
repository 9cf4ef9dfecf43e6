#include "repl/script/interp/function_generator.h"

#include <fmt/format.h>

#include "repl/script/interp/generator.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

using namespace ast;

namespace {

const Yield* yield_of(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::kExpr:
      return dyn_as<Yield>(as<ExprStmt>(s).value.get());
    case StmtKind::kAssign:
      return dyn_as<Yield>(as<Assign>(s).value.get());
    case StmtKind::kAugAssign:
      return dyn_as<Yield>(as<AugAssign>(s).value.get());
    case StmtKind::kAnnAssign:
      return dyn_as<Yield>(as<AnnAssign>(s).value.get());
    case StmtKind::kReturn:
      return dyn_as<Yield>(as<Return>(s).value.get());
    default:
      return nullptr;
  }
}

}  // namespace

FunctionGenerator::FunctionGenerator(Interp& in, const Function& function)
    // A weak handle: the interpreter may end before a generator that a cycle keeps.
    : function_(const_cast<Function*>(&function)), interp_(in.self()), frame_(*function.program, *function.code) {
  frame_.free = &function_->free;
  frame_.function = function_.get();
  blocks_.push_back({Form::kBlock, &function.def->body});
}

FunctionGenerator::~FunctionGenerator() {
  const std::shared_ptr<Interp*> in = interp_.lock();
  if (!in || !started_ || blocks_.empty()) return;
  // A finally block runs wherever the last handle goes, and must not change what a diagnostic points at.
  const SourceRange where = (*in)->where();
  try {
    close(**in);
  } catch (const ScriptError& e) {
    // Whoever let go of it expects no exception, as in Python.
    if ((*in)->error_output) (*in)->error_output("ignored in a generator that ends: " + e.diagnostic.message + "\n");
  }
  (*in)->set_where(where);
}

std::string FunctionGenerator::repr(Interp&) { return fmt::format("<generator object {}>", function_->name); }

void FunctionGenerator::push(Form form, const Body& body, const Stmt& s, bool enter) {
  // Loops begin behind their body: the first step is then the test, as after each round.
  blocks_.push_back({form, &body, enter ? 0 : body.size(), &s});
}

bool FunctionGenerator::has_finally(const Block& b) const {
  return (b.form == Form::kTry || b.form == Form::kElse || b.form == Form::kHandler) &&
         !as<Try>(*b.stmt).finally_body.empty();
}

bool FunctionGenerator::resume(Interp& in, const Value& sent, const ScriptError* thrown, Value& out) {
  if (running_) in.fail(ErrorKind::kValue, "generator already executing");
  if (blocks_.empty()) {
    if (thrown) throw ScriptError(*thrown);
    result_ = Value::none();  // the value of a return is told once
    return false;
  }
  if (!started_ && !sent.is_none()) in.fail(ErrorKind::kType, "a value was sent to a generator that has not started");
  in.check_interrupt();
  in.check_stack();
  struct Running {
    Interp& in;
    FunctionGenerator& g;
    const size_t handled = in.handled_.size();
    bool ended = true;  // also by an exception that nothing in it took
    ~Running() {
      g.handled_.assign(in.handled_.begin() + static_cast<ptrdiff_t>(handled), in.handled_.end());
      in.handled_.resize(handled);
      g.running_ = false;
      if (ended) g.blocks_.clear();
    }
  };
  Interp::Entered entered(in, {function_.get(), in.where_, function_->program.get()});
  // Exceptions take calls away down to here.
  depth_ = in.calls_.size();
  Running running{in, *this};
  // The exceptions that its handlers are in are those of its caller while it runs (`raise` alone).
  in.handled_.insert(in.handled_.end(), handled_.begin(), handled_.end());
  running_ = started_ = true;
  try {
    Step step = go_on(in, sent, thrown, out);
    while (step == Step::kGoOn) step = blocks_.empty() ? Step::kEnded : advance(in, out);
    running.ended = step == Step::kEnded;
  } catch (const ScriptError& e) {
    throw_out_of_generator(in, e);
  }
  return !running.ended;
}

FunctionGenerator::Step FunctionGenerator::go_on(Interp& in, const Value& sent, const ScriptError* thrown, Value& out) {
  std::optional<ScriptError> error;
  // An exception is taken out of the catch block first: unwind() may run code of the script, which throws on its own.
  try {
    const Stmt* s = std::exchange(at_, nullptr);
    if (blocks_.back().form == Form::kDelegate) return delegate(in, sent, thrown, out);
    if (thrown) throw ScriptError(*thrown);
    if (s)
      if (Flow flow = complete(in, *s, sent); flow != Flow::kNormal) leave(in, flow);
  } catch (ScriptError& e) {
    error = std::move(e);
  }
  if (error) unwind(in, std::move(*error));
  return Step::kGoOn;
}

FunctionGenerator::Step FunctionGenerator::advance(Interp& in, Value& out) {
  std::optional<ScriptError> error;
  try {
    Block& b = blocks_.back();
    if (b.at < b.body->size()) return start(in, *(*b.body)[b.at++], out);
    end_block(in);
  } catch (ScriptError& e) {
    error = std::move(e);
  }
  if (error) unwind(in, std::move(*error));
  return Step::kGoOn;
}

FunctionGenerator::Step FunctionGenerator::start(Interp& in, const Stmt& s, Value& out) {
  // Statements without a yield need no blocks: the interpreter runs them whole.
  if (!frame_.code.yielding.contains(&s)) {
    if (Flow flow = in.exec_one(s, frame_); flow != Flow::kNormal) leave(in, flow);
    return Step::kGoOn;
  }
  if (const Yield* y = yield_of(s)) return yield(in, s, *y, out);
  if (const auto* n = dyn_as<If>(&s)) {
    push(Form::kBlock, in.truth(in.eval(*n->condition, frame_)) ? n->body : n->else_body, s);
  } else if (const auto* w = dyn_as<While>(&s)) {
    push(Form::kWhile, w->body, s, false);
  } else if (const auto* loop = dyn_as<ast::For>(&s)) {
    const Value items = in.eval(*loop->iterable, frame_);
    in.set_where(loop->iterable->range);
    Ref<IteratorObject> it = in.iterator(items);
    push(Form::kFor, loop->body, s, false);
    blocks_.back().items = std::move(it);
  } else if (const auto* m = dyn_as<Match>(&s)) {
    if (const Body* body = in.chosen_case(*m, frame_)) push(Form::kBlock, *body, s);
  } else if (const auto* t = dyn_as<Try>(&s)) {
    push(Form::kTry, t->body, s);
  } else {
    const auto& with = as<With>(s);
    push(Form::kWith, with.body, s);
    for (const With::Item& i : with.items) {
      Value v = in.enter_context(i, blocks_.back().exits, frame_);
      if (i.target) in.assign(*i.target, std::move(v), frame_);
    }
  }
  return Step::kGoOn;
}

FunctionGenerator::Step FunctionGenerator::yield(Interp& in, const Stmt& s, const Yield& y, Value& out) {
  // The old value is read before the yield, as Python does for `x += yield`.
  if (const auto* n = dyn_as<AugAssign>(&s)) augmented_ = in.eval(*n->target, frame_);
  Value v = y.value ? in.eval(*y.value, frame_) : Value::none();
  if (!y.from) {
    at_ = &s;
    out = std::move(v);
    return Step::kYielded;
  }
  in.set_where(y.range);
  Ref<IteratorObject> it = in.iterator(v);
  // A block without statements, which stands for what it delegates to.
  static const Body kNothing;
  push(Form::kDelegate, kNothing, s);
  blocks_.back().items = std::move(it);
  return delegate(in, Value::none(), nullptr, out);
}

FunctionGenerator::Step FunctionGenerator::delegate(Interp& in, const Value& sent, const ScriptError* thrown,
                                                    Value& out) {
  const Stmt& s = *blocks_.back().stmt;
  // Kept here: the block may go while the inner generator runs.
  const Ref<IteratorObject> items = blocks_.back().items;
  auto* inner = dynamic_cast<FunctionGenerator*>(items.get());
  std::optional<ScriptError> error;
  Flow flow = Flow::kNormal;
  try {
    // What is thrown or sent goes to the inner generator; a plain iterator takes neither.
    if (inner ? inner->resume(in, sent, thrown, out) : thrown ? throw ScriptError(*thrown) : items->next(in, out))
      return Step::kYielded;
    blocks_.pop_back();
    flow = complete(in, s, inner ? inner->result() : Value::none());
  } catch (ScriptError& e) {
    error = std::move(e);
  }
  if (error) unwind(in, std::move(*error));
  if (flow != Flow::kNormal) leave(in, flow);
  return Step::kGoOn;
}

Flow FunctionGenerator::complete(Interp& in, const Stmt& s, Value v) {
  if (const auto* n = dyn_as<Assign>(&s)) {
    for (const ExprPtr& t : n->targets) in.assign(*t, v, frame_);
  } else if (const auto* aug = dyn_as<AugAssign>(&s)) {
    in.assign(*aug->target, in.combine(*aug, std::exchange(augmented_, Value()), v), frame_);
  } else if (const auto* ann = dyn_as<AnnAssign>(&s)) {
    in.assign(*ann->target, std::move(v), frame_);
  } else if (s.kind == StmtKind::kReturn) {
    frame_.result = std::move(v);
    return Flow::kReturn;
  }
  return Flow::kNormal;
}

void FunctionGenerator::end_block(Interp& in) {
  Block& b = blocks_.back();
  switch (b.form) {
    case Form::kBlock:
    case Form::kDelegate:
      blocks_.pop_back();
      return;
    case Form::kWhile: {
      in.check_interrupt();
      const auto& n = as<While>(*b.stmt);
      if (in.truth(in.eval(*n.condition, frame_))) {
        blocks_.back().at = 0;
      } else {
        blocks_.pop_back();
        push(Form::kBlock, n.else_body, n);
      }
      return;
    }
    case Form::kFor: {
      in.check_interrupt();
      const auto& n = as<ast::For>(*b.stmt);
      Value item;
      if (b.items->next(in, item)) {
        in.assign(*n.target, std::move(item), frame_);
        blocks_.back().at = 0;
      } else {
        blocks_.pop_back();
        push(Form::kBlock, n.else_body, n);
      }
      return;
    }
    case Form::kWith: {
      std::vector<Value> exits = std::move(b.exits);
      // The exits go first: an exception in one of them is no longer for this block.
      blocks_.pop_back();
      in.leave_contexts(exits, Value());
      return;
    }
    case Form::kTry:
      b.form = Form::kElse;
      b.body = &as<Try>(*b.stmt).else_body;
      b.at = 0;
      return;
    case Form::kHandler:
      leave_handler(in, b);
      [[fallthrough]];
    case Form::kElse:
      b.form = Form::kFinally;
      b.body = &as<Try>(*b.stmt).finally_body;
      b.at = 0;
      b.flow = Flow::kNormal;
      return;
    case Form::kFinally: {
      // A return or an exception goes on behind its `finally`, unless that has ended otherwise.
      Block done = std::move(b);
      blocks_.pop_back();
      if (done.error) throw std::move(*done.error);
      frame_.result = std::move(done.result);
      if (done.flow != Flow::kNormal) leave(in, done.flow);
      return;
    }
  }
}

void FunctionGenerator::leave_handler(Interp& in, const Block& b) {
  in.handled_.pop_back();
  for (const Try::Handler& h : as<Try>(*b.stmt).handlers)
    if (b.body == &h.body) in.forget_name(h, frame_);
}

void FunctionGenerator::unwind(Interp& in, ScriptError error) {
  in.calls_.resize(depth_);
  while (!blocks_.empty()) {
    Block& b = blocks_.back();
    std::optional<ScriptError> next;  // what a handler's own code raises takes the place of the exception
    try {
      if (b.form == Form::kTry) {
        const auto& s = as<Try>(*b.stmt);
        b.form = Form::kElse;  // an exception in the type of a handler is not for the handlers
        if (const Try::Handler* h = in.handler_of(s, error, frame_)) {
          in.handled_.push_back(error.exception);
          b.form = Form::kHandler;
          b.body = &h->body;
          b.at = 0;
          return;
        }
      } else if (b.form == Form::kWith) {
        std::vector<Value> exits = std::move(b.exits);
        blocks_.pop_back();
        if (in.leave_contexts(exits, error.exception)) return;
        continue;
      }
    } catch (ScriptError& e) {
      next = std::move(e);
    }
    if (next) {
      in.calls_.resize(depth_);
      error = std::move(*next);
      continue;
    }
    if (b.form == Form::kHandler) leave_handler(in, b);
    if (has_finally(b)) {
      b.form = Form::kFinally;
      b.body = &as<Try>(*b.stmt).finally_body;
      b.at = 0;
      b.error = std::move(error);
      return;
    }
    blocks_.pop_back();
  }
  throw error;
}

void FunctionGenerator::leave(Interp& in, Flow flow) {
  while (!blocks_.empty()) {
    Block& b = blocks_.back();
    // break and continue are the innermost loop's; return goes through all.
    if (flow != Flow::kReturn && (b.form == Form::kFor || b.form == Form::kWhile)) {
      if (flow == Flow::kBreak)
        blocks_.pop_back();
      else
        b.at = b.body->size();
      return;
    }
    if (b.form == Form::kHandler) leave_handler(in, b);
    if (has_finally(b)) {
      b.form = Form::kFinally;
      b.body = &as<Try>(*b.stmt).finally_body;
      b.at = 0;
      b.flow = flow;
      // Kept for the end of `finally`, which may return on its own.
      b.result = std::move(frame_.result);
      return;
    }
    std::vector<Value> exits = std::move(b.exits);
    blocks_.pop_back();
    in.leave_contexts(exits, Value());
  }
  result_ = flow == Flow::kReturn ? std::move(frame_.result) : Value::none();
}

void FunctionGenerator::close(Interp& in) {
  if (running_) in.fail(ErrorKind::kValue, "generator already executing");
  if (!started_) blocks_.clear();
  // One that has not started has nothing to end, as in Python.
  if (blocks_.empty()) return;
  ScriptError exit;
  exit.exception = make<Instance>(in.exception_type("GeneratorExit"));
  exit.exception.get<Instance>()->fields.set("args", make<Tuple>(std::vector<Value>{}));
  exit.diagnostic = Diagnostic{ErrorKind::kValue, "GeneratorExit", {}, {}};
  try {
    Value out;
    if (!resume(in, Value::none(), &exit, out)) return;
  } catch (const ScriptError& e) {
    auto* raised = e.exception.get<Instance>();
    if (raised && raised->type->derives_from(in.exception_type("GeneratorExit").get())) return;
    throw;
  }
  in.fail_as("RuntimeError", "generator ignored GeneratorExit");
}

namespace {

/// The generator of a function, or null for a generator expression, which is then `expression`.
FunctionGenerator* generator_of(Interp& in, const NativeArgs& a, Generator*& expression) {
  auto* g = dynamic_cast<FunctionGenerator*>(a.self->object());
  expression = g ? nullptr : dynamic_cast<Generator*>(a.self->object());
  if (!g && !expression) in.fail_as("AttributeError", "only generators have this method");
  return g;
}

Value send(Interp& in, NativeArgs& a) {
  Generator* expression = nullptr;
  const Ref<FunctionGenerator> g(generator_of(in, a, expression));
  Value out;
  if (g) {
    if (g->resume(in, a[0], nullptr, out)) return out;
    stop_iteration(in, g->result());
  }
  // No yield of an expression takes what is sent.
  const Ref<Generator> kept(expression);
  if (!kept->has_started() && !a[0].is_none())
    in.fail(ErrorKind::kType, "a value was sent to a generator that has not started");
  if (kept->next(in, out)) return out;
  stop_iteration(in, Value::none());
}

Value throw_into(Interp& in, NativeArgs& a) {
  Generator* expression = nullptr;
  const Ref<FunctionGenerator> g(generator_of(in, a, expression));
  const Ref<Generator> kept(expression);
  // throw(type, value, traceback) is the old spelling.
  Value exception = a[1].missing() || a[1].is_none() ? a[0] : a[1];
  if (exception.get<TypeObject>()) exception = in.call(exception, {});
  auto* instance = exception.get<Instance>();
  if (!instance || !instance->type->derives_from(in.exception_type("BaseException").get()))
    in.fail(ErrorKind::kType, "throw() needs an exception, got '{}'", in.type_name(exception));
  // An expression has no handler that would take it, and where it goes on it comes out as of any generator.
  if (kept) {
    const bool ended = kept->has_ended();
    kept->end(in);
    try {
      in.raise(exception, in.where());
    } catch (const ScriptError& e) {
      if (ended) throw;
      throw_out_of_generator(in, e);
    }
  }
  std::optional<ScriptError> thrown;
  try {
    in.raise(exception, in.where());
  } catch (ScriptError& e) {
    thrown = std::move(e);
  }
  Value out;
  if (g->resume(in, Value::none(), &*thrown, out)) return out;
  stop_iteration(in, g->result());
}

Value close_generator(Interp& in, NativeArgs& a) {
  Generator* expression = nullptr;
  if (const Ref<FunctionGenerator> g(generator_of(in, a, expression)); g)
    g->close(in);
  else
    expression->end(in);
  return Value::none();
}

Value next_value(Interp& in, NativeArgs& a) {
  const Ref<IteratorObject> it(a.self->get<IteratorObject>());
  Value out;
  if (it->next(in, out)) return out;
  const auto* g = dynamic_cast<const FunctionGenerator*>(it.get());
  stop_iteration(in, g ? g->result() : Value::none());
}

Value same_iterator(Interp&, NativeArgs& a) { return *a.self; }

constexpr NativeDef kIteratorMethods[] = {
    {"__iter__()", same_iterator, "the iterator itself"},
    {"__next__()", next_value, "the next value"},
    {"close()", close_generator, "ends a generator: its `finally` blocks run"},
    {"send(value)", send, "goes on with the value of the yield, to the next one"},
    {"throw(exception, value=None, traceback=None)", throw_into, "goes on with an exception raised at the yield"},
};

}  // namespace

void throw_out_of_generator(Interp& in, const ScriptError& e) {
  if (!is_stop_iteration(in, e)) throw ScriptError(e);
  try {
    in.fail_as("RuntimeError", "generator raised StopIteration");
  } catch (ScriptError& error) {
    for (const char* link : {"__cause__", "__context__"})
      error.exception.get<Instance>()->fields.set(link, e.exception);
    throw;
  }
}

void stop_iteration(Interp& in, const Value& result) {
  in.raise(result.is_none() ? in.call(in.exception_type("StopIteration"), {})
                            : in.call(in.exception_type("StopIteration"), {result}),
           in.where());
}

void install_iterator_methods(Interp& in) { in.add_methods({Kind::kIterator, kIteratorMethods}); }

}  // namespace kiln::script
