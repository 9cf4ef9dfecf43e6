#include "repl/session/session.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "compiler/ast/walk.h"
#include "compiler/parse/parser.h"
#include "kiln/interrupt.h"
#include "repl/modules/modules.h"
#include "repl/modules/results/results.h"
#include "repl/modules/results/table_object.h"
#include "repl/modules/torch/lazy_scope.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/launch_state.h"
#include "repl/script/interp/docstring.h"
#include "repl/script/interp/interp.h"
#include "repl/session/describe.h"
#include "repl/session/guarded.h"
#include "runtime/launch/args.h"
#include "support/text.h"
#include "support/trace.h"

namespace kiln::script {

Session::Session(Options options) : interp_(std::make_unique<Interp>(tensor_host())) {
  interp_->output = options.output ? std::move(options.output)
                                   : [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  interp_->error_output = options.error_output ? std::move(options.error_output) : [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
  };
  interp_->argv = std::move(options.argv);
  install_modules(*interp_);
  add_help(*interp_);
  if (options.device) torch_state(*interp_).set_device(options.device);
}

Session::~Session() = default;

namespace {

/// Finds `name[…](…)` among the statements of a text, in order, but not in the bodies of functions and classes.
class LaunchFinder {
 public:
  explicit LaunchFinder(std::map<std::string, std::string, std::less<>>& found) : found_(found) {}
  // Not ast::walk(), which goes into functions too: a launch there reads names that mean nothing at the prompt.
  void visit(const ast::Body& body) {
    for (const ast::StmtPtr& s : body) visit(*s);
  }

 private:
  void visit(const ast::Stmt& s) {
    if (const auto* e = ast::dyn_as<ast::ExprStmt>(&s)) return visit(*e->value);
    if (const auto* n = ast::dyn_as<ast::For>(&s)) return visit(n->body), visit(n->else_body);
    if (const auto* n = ast::dyn_as<ast::While>(&s)) return visit(n->body), visit(n->else_body);
    if (const auto* n = ast::dyn_as<ast::If>(&s)) return visit(n->body), visit(n->else_body);
    if (const auto* n = ast::dyn_as<ast::With>(&s)) return visit(n->body);
    if (const auto* n = ast::dyn_as<ast::Try>(&s)) return visit(n->body), visit(n->else_body), visit(n->finally_body);
    if (const auto* n = ast::dyn_as<ast::Match>(&s))
      for (const ast::Match::Case& c : n->cases) visit(c.body);
  }
  void visit(const ast::Expr& e) {
    const auto* call = ast::dyn_as<ast::Call>(&e);
    const auto* sub = call ? ast::dyn_as<ast::Subscript>(call->callee.get()) : nullptr;
    const auto* name = sub ? ast::dyn_as<ast::Name>(sub->base.get()) : nullptr;
    // The later of two launches wins, as it would have run last.
    if (name) found_[name->id] = std::string(e.range.str());
  }
  std::map<std::string, std::string, std::less<>>& found_;
};

}  // namespace

std::optional<std::string> Session::last_launch(std::string_view name) const {
  auto it = launches_.find(name);
  return it == launches_.end() ? std::nullopt : std::optional(it->second);
}

static Shown shown_in(Mode mode) {
  switch (mode) {
    case Mode::kFile:
      return Shown::kNothing;
    case Mode::kInteractive:
      return Shown::kLast;
    case Mode::kLeading:
      return Shown::kAssigned;
  }
  return Shown::kNothing;
}

Status Session::run(std::string text, std::string file_name, Mode mode) {
  auto parsed = [&] {
    trace::Scope phase(trace::kSpans, trace::Step::kPhase, "parse");
    return parse::parse_module(SourceText::make(file_name, std::move(text)));
  };
  KILN_TRY(auto module, parsed());
  // From the text, not from the launch itself: what ran holds values, and a user wants the line that can be run again.
  LaunchFinder(launches_).visit(module->body);
  // A text of the prompt has no file, and Python's prompt has no __file__ either.
  if (mode == Mode::kFile && !file_name.starts_with('<')) interp_->add_builtin("__file__", Value::str(file_name));
  if (mode == Mode::kFile) interp_->add_builtin("__doc__", docstring_of(module->body));
  KILN_TRY(auto program, resolve(std::move(module), interp_->globals()));
  return guarded(*interp_, [&] {
    interp_->run(program, shown_in(mode));
    interp_->check_interrupt();  // one that came as its last operation ended
  });
}

namespace {

struct Expression {
  std::shared_ptr<const Program> program;
  const ast::Expr* expr = nullptr;
};

Result<Expression> parse_one(Interp& in, std::string text, std::string file_name) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make(std::move(file_name), std::move(text))));
  const auto* only = module->body.size() == 1 ? ast::dyn_as<ast::ExprStmt>(module->body[0].get()) : nullptr;
  // Checked before resolve(): a statement would make globals of the names that it assigns.
  if (!only) return error(ErrorKind::kSyntax, "expected one expression, as in f(x)");
  Expression e;
  e.expr = only->value.get();
  KILN_TRY(e.program, resolve(std::move(module), in.globals()));
  return e;
}

}  // namespace

Result<std::function<Status()>> Session::prepare(std::string expression, std::string file_name) {
  KILN_TRY(Expression e, parse_one(*interp_, std::move(expression), std::move(file_name)));
  return std::function<Status()>(
      // The program is copied in: the function outlives this call and runs many times.
      [this, e] { return guarded(*interp_, [&] { interp_->evaluate(e.program, *e.expr); }); });
}

Result<Value> value_of(Interp& in, std::string expression) {
  KILN_TRY(Expression e, parse_one(in, std::move(expression), "<expression>"));
  Value v;
  KILN_CHECK_OK(guarded(in, [&] { v = in.evaluate(e.program, *e.expr); }));
  // exit() inside an expression ends the script by an exit code and leaves no value.
  if (v.missing()) return error(ErrorKind::kValue, "the expression ended the script");
  return v;
}

Result<Value> Session::value(std::string expression) { return value_of(*interp_, std::move(expression)); }

Result<std::string> Session::repr_of(const Value& v) {
  std::string text;
  KILN_CHECK_OK(guarded(*interp_, [&] { text = interp_->repr(v); }));
  return text;
}

Result<std::string> Session::json_of(const Value& v) {
  // A table of a view has its own form, of typed columns; json.dumps would know nothing of it.
  if (auto* table = v.get<TableObject>()) return report::to_json(table->table);
  std::string text;
  KILN_CHECK_OK(guarded(*interp_, [&] {
    CallArgs args;
    args.args.push_back(v);
    // What JSON has no form for is its repr, rather than an error: the caller asked for the value, whatever it is.
    args.keywords.push_back({"default", interp_->globals().find("repr")->builtin, {}});
    text = interp_->str(interp_->call(*interp_->import_module("json")->attribute(*interp_, "dumps"), args));
  }));
  return text;
}

Result<std::string> Session::evaluate(std::string expression) {
  KILN_TRY(Value v, value_of(*interp_, std::move(expression)));
  return repr_of(v);
}

Result<Kernel> Session::kernel(std::string expression) {
  // Kept for the message: value_of() takes the text away.
  std::string text = expression;
  KILN_TRY(Value v, value_of(*interp_, std::move(expression)));
  // An autotuner or heuristics around a kernel count as the kernel.
  if (KernelObject* k = innermost_kernel(v)) return k->kernel;
  return error(ErrorKind::kType, "'{}' is no kernel but '{}': a kernel is a function under @triton.jit", text,
               interp_->type_name(v));
}

Result<Tensor> Session::tensor(std::string expression) {
  std::string text = expression;
  KILN_TRY(Value v, value_of(*interp_, std::move(expression)));
  if (auto* t = v.get<TensorObject>()) {
    Tensor tensor;
    KILN_CHECK_OK(guarded(*interp_, [&] { tensor = t->tensor(*interp_); }));
    return tensor;
  }
  return error(ErrorKind::kType, "'{}' is no tensor but '{}'", text, interp_->type_name(v));
}

namespace {

bool is_word(char c) {
  // Bytes of UTF-8 beyond ASCII are letters here, as the lexer has them in names.
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<uint8_t>(c) >= 0x80;
}

/// The tensors among the variables that an expression reads. None of a text with an error, which evaluation reports.
std::vector<TensorObject*> tensors_read(Interp& in, const std::string& text) {
  std::vector<TensorObject*> out;
  auto module = parse::parse_module(SourceText::make("<expression>", text));
  if (!module.ok()) return out;
  ast::walk((*module)->body, [](const ast::Stmt&) {},
            [&](const ast::Expr& e) {
              const auto* name = ast::dyn_as<ast::Name>(&e);
              Globals::Slot* slot = name ? in.globals().find(name->id) : nullptr;
              if (!slot || slot->value.missing()) return;
              if (auto* t = slot->value.get<TensorObject>()) out.push_back(t);
            });
  return out;
}

bool is_name(const std::string& text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_word); }

/// While one lives, variables of a text that are pending are tensors of the same form, whose elements nobody has set.
class StandIns {
 public:
  StandIns(Interp& in, const std::string& text) : in_(in) {
    const std::vector<TensorObject*> read = tensors_read(in, text);
    // Over the slots and not the names read: a variable is replaced once, however often the text has it.
    for (const Globals::Slot& slot : in.globals().slots()) {
      auto* t = slot.value.missing() ? nullptr : slot.value.get<TensorObject>();
      // One that records for a gradient has a history, which a stand-in would lack.
      if (!t || !t->is_pending() || t->records() || std::ranges::find(read, t) == read.end()) continue;
      // Without memory for it the variable stays pending and becomes a part of the plan.
      auto memory = Tensor::empty(t->device(), t->dtype(), t->shape());
      if (memory.ok()) all_.push_back({slot.name, slot.value, wrap(*std::move(memory))});
    }
    for (const Variable& v : all_) in_.globals().find(v.name)->value = v.stand_in;
  }
  ~StandIns() {
    for (Variable& v : all_)
      // Only where the text has not assigned the variable meanwhile.
      if (Globals::Slot* slot = in_.globals().find(v.name); slot->value.same(v.stand_in)) slot->value = v.value;
  }
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

 private:
  struct Variable {
    std::string name;
    Value value, stand_in;
  };
  Interp& in_;
  std::vector<Variable> all_;
};

/// The value of a text without computing its tensors, but those of variables in it. kValue for the name of a tensor
/// that is computed already.
Result<Value> lazy_value(Interp& in, std::string text) {
  text = std::string(trimmed(text));
  const bool name_alone = is_name(text);
  if (!name_alone)
    KILN_CHECK_OK(guarded(in, [&] {
      for (TensorObject* t : tensors_read(in, text)) t->tensor(in);
      // So that the plan is of this text alone; a variable's own history belongs to what made it.
    }));
  // Operations of tensors on the host are computed at once otherwise, and there would be no expression.
  auto value = [&] {
    const LazyScope lazy(in);
    return value_of(in, text);
  }();
  const TensorObject* t = value.ok() ? value->get<TensorObject>() : nullptr;
  // A text that gave no tensor is the caller's to judge.
  if (!t || t->is_pending() || !name_alone) return value;
  return with_note(error(ErrorKind::kValue, "'{}' is computed already: there is no expression left", text),
                   "help: give the expression itself, as in gelu(x @ w + b)");
}

/// The tensors in a value, at any depth of tuples, lists and dicts, which may contain themselves.
void collect_tensors(const Value& value, std::set<const script::Object*>& seen, std::vector<TensorObject*>& out) {
  auto all = [&](const std::vector<Value>& items) {
    for (const Value& item : items) collect_tensors(item, seen, out);
  };
  if (auto* t = value.get<TensorObject>()) {
    out.push_back(t);
  } else if (auto* tuple = value.get<script::Tuple>()) {
    all(tuple->items);
    // Only what may contain itself needs a mark: a tuple is made after its items.
  } else if (auto* list = value.get<script::List>(); list && seen.insert(list).second) {
    all(list->items);
  } else if (auto* dict = value.get<script::Dict>(); dict && seen.insert(dict).second) {
    for (const auto& entry : dict->table.live()) collect_tensors(entry.value, seen, out);
  }
}

}  // namespace

Result<Session::ToPlan> Session::expressions_to_plan(const std::string& text) {
  std::optional<StandIns> inputs;
  // A name alone is a tensor whose own plan is asked for, so it gets no stand-in.
  if (!is_name(std::string(trimmed(text)))) inputs.emplace(*interp_, text);
  // The names are taken while the stand-ins live, since the expressions hold these.
  KILN_TRY(std::vector<Expr> exprs, expressions(text));
  return ToPlan{std::move(exprs), tensor_names()};
}

Result<std::vector<Expr>> Session::expressions(std::string text) {
  KILN_TRY(const Value value, lazy_value(*interp_, std::move(text)));
  std::set<const script::Object*> seen;
  std::vector<TensorObject*> tensors;
  collect_tensors(value, seen, tensors);
  std::vector<Expr> out;
  for (TensorObject* t : tensors)
    // A tensor that is computed has no expression; the others of a list still have.
    if (t->is_pending()) out.push_back(t->expr());
  return out;
}

Result<std::optional<Expr>> Session::expression(std::string text) {
  KILN_TRY(const Value value, lazy_value(*interp_, std::move(text)));
  auto* t = value.get<TensorObject>();
  return t && t->is_pending() ? std::optional(t->expr()) : std::nullopt;
}

std::vector<ExprName> Session::tensor_names() const {
  std::vector<ExprName> out;
  for (const auto& slot : interp_->globals().slots())
    if (auto* t = slot.value.missing() ? nullptr : slot.value.get<TensorObject>(); t && !t->is_pending())
      out.push_back({t->tensor(*interp_), slot.name});
  return out;
}

namespace {

/// What is still pending of a result is computed: of a tensor that, of anything else all that is, since tensors may be
/// anywhere in it.
void compute(Interp& in, const Value& v) {
  if (v.get<TensorObject>())
    script::seen_tensor(in, v, "a result");
  else
    script::torch_state(in).pending()->run_all(in);
}

/// What statements left pending, in a statement of its own: the one that gave it has ended.
void compute_results(Interp& in, const std::string& file_name) {
  script::PendingTensors& pending = *script::torch_state(in).pending();
  if (pending.empty()) return;
  trace::Scope span(trace::kStatements, trace::Step::kStatement, "(its result)");
  // At line 1 of the text that was measured, as the statements of a prompt's text are counted.
  if (trace::Event* event = span.event()) event->file = file_name, event->line = 1;
  pending.run_all(in);
}

}  // namespace

Result<Prepared> Session::prepare_value(std::string expression, std::string file_name) {
  KILN_TRY(Expression e, parse_one(*interp_, std::move(expression), std::move(file_name)));
  // Shared with the caller, who reads after each run what that run gave.
  auto last = std::make_shared<Value>();
  Prepared p;
  p.value = last;
  p.run = [this, e, last] {
    return guarded(*interp_, [&] {
      Value v = interp_->evaluate(e.program, *e.expr);
      // Before the time ends: a lazy tensor that nobody reads would be measured as doing nothing.
      compute(*interp_, v);
      *last = std::move(v);
    });
  };
  return p;
}

Result<std::function<Status()>> Session::prepare_statements(std::string text, std::string file_name) {
  KILN_TRY(auto module, parse::parse_module(SourceText::make(file_name, std::move(text))));
  // An empty text would measure as nothing and look very fast.
  if (module->body.empty()) return error(ErrorKind::kSyntax, "expected a statement, as in y = f(x)");
  if (module->body.size() == 1)
    if (const auto* only = ast::dyn_as<ast::ExprStmt>(module->body[0].get())) {
      const ast::Expr* e = only->value.get();
      KILN_TRY(std::shared_ptr<const Program> program, resolve(std::move(module), interp_->globals()));
      return std::function<Status()>([this, program, e, file_name] {
        return guarded(*interp_, [&] {
          // The value stays alive to the next line: a tensor that is freed before is computed by nobody.
          Value v = interp_->evaluate(program, *e);
          compute_results(*interp_, file_name);
        });
      });
    }
  KILN_TRY(std::shared_ptr<const Program> program, resolve(std::move(module), interp_->globals()));
  return std::function<Status()>([this, program, file_name] {
    return guarded(*interp_, [&] {
      interp_->run(program, Shown::kNothing);
      compute_results(*interp_, file_name);
    });
  });
}

Result<std::vector<Launched>> Session::launches_of(const std::function<Status()>& run) {
  std::vector<Launched> seen;
  Status figures;
  launch_state(*interp_).on_launch = [&](const Kernel& kernel, std::span<const std::optional<Arg>> args,
                                         const LaunchOptions& options) {
    // Before the launch, which finds it compiled.
    auto info = kernel.compile(args, options);
    if (!info.ok()) {
      // The launch itself goes on; only the figures are missing, which is said when it has ended.
      figures = std::move(info.error());
      return;
    }
    Launched launch{std::move(*info), {}};
    for (const auto& arg : args)
      // A handle without a tensor has no bytes to count.
      runtime::each_tensor(arg, [&](const Tensor& tensor) {
        if (tensor) launch.tensors.push_back(tensor);
      });
    seen.push_back(std::move(launch));
  };
  Status status = run();
  // Before the first return, or the next launch would call into this frame.
  launch_state(*interp_).on_launch = {};
  KILN_CHECK_OK(std::move(status));
  KILN_CHECK_OK(std::move(figures));
  return seen;
}

Result<AccessLog> Session::checked(const std::function<Status()>& run, AccessChecks checks) {
  LaunchState& state = launch_state(*interp_);
  // Never less than the user has set: `max` keeps %check's own setting.
  const AccessChecks before = std::exchange(state.access_checks, std::max(checks, state.access_checks));
  state.access_log = {};
  Status status = run();
  // Also after a failure: a check costs a launch far too much to be left on.
  state.access_checks = before;
  KILN_CHECK_OK(std::move(status));
  return std::exchange(state.access_log, {});
}

void Session::check_accesses(AccessChecks checks) { launch_state(*interp_).access_checks = checks; }

void Session::check_first_launches() { launch_state(*interp_).checks_first = true; }

bool Session::checks_accesses() const { return launch_state(*interp_).access_checks != AccessChecks::kOff; }

Result<std::optional<Tensor>> Session::tensor_of(const Value& value) {
  if (!value.get<TensorObject>()) return std::optional<Tensor>();
  Tensor tensor;
  KILN_CHECK_OK(guarded(*interp_, [&] { tensor = script::seen_tensor(*interp_, value, "a result"); }));
  return std::optional<Tensor>(std::move(tensor));
}

// Any iterable, as a range or a generator.
Result<std::vector<Value>> Session::items(std::string expression) {
  KILN_TRY(Value v, value_of(*interp_, std::move(expression)));
  std::vector<Value> items;
  KILN_CHECK_OK(guarded(*interp_, [&] { items = interp_->to_vector(v); }));
  return items;
}

Result<std::string> Session::text_of(const Value& value) {
  std::string text;
  KILN_CHECK_OK(guarded(*interp_, [&] { text = interp_->str(value); }));
  return text;
}

Value Session::variable(std::string_view name) const {
  Globals::Slot* slot = interp_->globals().find(name);
  return slot ? slot->value : Value();
}

void Session::set_variable(std::string_view name, Value value) {
  Globals& globals = interp_->globals();
  // index() makes the name where there is none.
  globals[globals.index(name)].value = std::move(value);
}

void Session::begin_entry(int number, std::string_view text) { interp_->state<Results>().begin(number, text); }

void Session::keep_result(const Value& v) { interp_->state<Results>().keep(v); }

void Session::show_tables_by(std::function<std::string(const report::Table&, bool colored)> text,
                             std::function<int()> columns) {
  interp_->state<Results>().table_text = std::move(text);
  interp_->state<Results>().columns = std::move(columns);
}

void Session::show_results_by(std::function<void(std::string_view text)> show) {
  interp_->state<Results>().show = std::move(show);
}

namespace {

struct Target {
  std::shared_ptr<const Program> program;
  const ast::Assign* statement = nullptr;
};

Result<Target> parse_target(Interp& in, const std::string& target) {
  // Parsed as an assignment, so that a command's target may be all that Python's may: `a.b`, `d[0]`, `x, y`.
  auto parsed = parse::parse_module(SourceText::make("<command>", target + " = None"));
  if (!parsed.ok()) {
    // The place would be in a text that nobody wrote.
    return error(ErrorKind::kSyntax, "the value of a command cannot be assigned to '{}': {}", target,
                 parsed.error().message);
  }
  auto module = *std::move(parsed);
  const auto* only = module->body.size() == 1 ? ast::dyn_as<ast::Assign>(module->body[0].get()) : nullptr;
  if (!only)
    return error(ErrorKind::kSyntax, "the value of a command cannot be assigned to '{}': use names, as in r = %who",
                 target);
  Target t;
  t.statement = only;
  KILN_TRY(t.program, resolve(std::move(module), in.globals()));
  return t;
}

}  // namespace

Status Session::check_target(const std::string& target) {
  KILN_TRY([[maybe_unused]] Target t, parse_target(*interp_, target));
  return {};
}

Status Session::assign(const std::string& target, const Value& value) {
  KILN_TRY(Target t, parse_target(*interp_, target));
  Status done = guarded(*interp_, [&] { interp_->assign_value(t.program, *t.statement, value); });
  // For the same reason: it would be a place in `target + " = None"`.
  if (!done.ok()) done.error().place = {};
  return done;
}

std::vector<Variable> Session::variables() const {
  std::vector<Variable> out;
  for (const auto& slot : interp_->globals().slots()) {
    // A name that begins with an underscore is the prompt's own, as _ and _3, or private by Python's custom.
    if (slot.value.missing() || slot.value.get<ModuleObject>() || slot.name[0] == '_') continue;
    Variable v{slot.name, interp_->type_name(slot.value), ""};
    // A repr that the script defines may fail; the list of variables must not.
    if (Status s = guarded(*interp_, [&] { v.summary = summary_of(*interp_, slot.value); }); !s.ok())
      v.summary = "(its repr fails: " + s.error().message + ")";
    out.push_back(std::move(v));
  }
  return out;
}

void Session::interrupt() {
  // Counted too: the flag is cleared by whoever takes the interrupt, and a watch must still see that there was one.
  interrupts_.fetch_add(1);
  request_interrupt();
  // After the request, which ends a kernel that the interpreter may be waiting for; the interpreter reads the flag
  // itself.
  interp_->interrupted.store(true);
}
void Session::stop_statement() {
  // Set before the interrupt, which may be taken at once on the script's thread.
  interp_->stops_statement.store(true);
  interrupt();
}
bool Session::is_stopped() const { return interp_->stops_statement.load(); }
bool Session::is_interrupted() const { return interp_->interrupted.load(); }
std::function<bool()> Session::interrupt_watch() const {
  return [this, before = interrupts_.load()] { return is_interrupted() || interrupts_.load() != before; };
}
void Session::forget_interrupt() { interp_->forget_interrupt(); }

Result<Device> Session::device() {
  Device d;
  KILN_CHECK_OK(guarded(*interp_, [&] { d = torch_state(*interp_).device(); }));
  return d;
}

void Session::set_device(Device device) { torch_state(*interp_).set_device(std::move(device)); }

Runtime Session::runtime() { return torch_state(*interp_).runtime(); }
void Session::set_runtime(Runtime runtime) { torch_state(*interp_).set_runtime(std::move(runtime)); }

std::optional<int> Session::exit_code() const { return interp_->exit_code; }

// Taken, since the prompt goes on after a script's exit(), and the next script must not find it.
std::optional<int> Session::take_exit_code() { return std::exchange(interp_->exit_code, std::nullopt); }

std::vector<std::string> Session::set_arguments(std::vector<std::string> arguments) {
  auto list = make<List>();
  for (const std::string& s : arguments) list->items.push_back(Value::str(s));
  // sys has a list of its own, which was made from the arguments of before.
  if (auto sys = interp_->import_module("sys")) sys->members.set("argv", list);
  return std::exchange(interp_->argv, std::move(arguments));
}

}  // namespace kiln::script
