// Calls, functions and errors.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <unordered_set>

#include "kiln/interrupt.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/docstring.h"
#include "repl/script/interp/function_generator.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

using namespace ast;

Frame::Frame(const Program& p, const Code& c) : program(p), code(c), count_(c.slot_names.size()) {
  if (count_ > kInline) {
    heap_ = std::make_unique<Value[]>(count_);
    slots = heap_.get();
    return;
  }
  slots = reinterpret_cast<Value*>(inline_);
  std::uninitialized_value_construct_n(slots, count_);
}

void Frame::make_cells() {
  for (uint32_t i : code.cell_slots) {
    auto cell = make<Cell>();
    cell->value = std::move(slots[i]);
    slots[i] = cell;
  }
}

std::vector<Ref<Cell>> Frame::captured(const Code& inner) const {
  std::vector<Ref<Cell>> out;
  for (const Code::FreeVariable& v : inner.free)
    out.push_back(v.from_cell ? Ref<Cell>(slots[v.index].get<Cell>()) : (*free)[v.index]);
  return out;
}

Value Function::call(Interp& in, CallArgs& args) { return in.call_function(*this, args); }

namespace {
/// As their texts: nothing evaluates annotations.
Ref<Dict> annotations(const Function& f) {
  auto out = make<Dict>();
  auto add = [&](const std::string& name, const Expr* e) {
    if (!e) return;
    const auto* quoted = dyn_as<ConstantExpr>(e);
    const auto* text = quoted ? std::get_if<std::string>(&quoted->value) : nullptr;
    out->table.set(name, Value::str(text ? *text : std::string(e->range.str())));
  };
  for (const Param& p : *f.params) add(p.name, p.annotation.get());
  if (f.def) add("return", f.def->returns.get());
  return out;
}
}  // namespace

namespace {
/// What `__code__` says of a function.
Value code_object(const Function& f) {
  auto out = make<Opaque>("code object " + f.name);
  std::vector<Value> names;
  auto add = [&](Param::Kind kind) {
    int64_t count = 0;
    for (const Param& p : *f.params)
      if (p.kind == kind) names.push_back(Value::str(p.name)), ++count;
    return Value::integer(count);
  };
  out->members.set("co_argcount", add(Param::Kind::kPlain));
  out->members.set("co_kwonlyargcount", add(Param::Kind::kKeywordOnly));
  add(Param::Kind::kArgs);
  add(Param::Kind::kKwargs);
  for (size_t i = f.params->size(); i < f.code->slot_names.size(); ++i)
    if (f.code->slot_names[i].find('#') == std::string::npos) names.push_back(Value::str(f.code->slot_names[i]));
  const auto only = std::count_if(f.params->begin(), f.params->end(), [](const Param& p) { return p.positional_only; });
  const Place place = place_of(f.def ? f.def->range : f.body->range);
  out->members.set("co_posonlyargcount", Value::integer(only));
  out->members.set("co_varnames", make<Tuple>(std::move(names)));
  out->members.set("co_name", Value::str(f.name));
  out->members.set("co_filename", Value::str(place.file));
  out->members.set("co_firstlineno", Value::integer(place.line));
  return out;
}
}  // namespace

std::optional<Value> Function::attribute(Interp&, std::string_view attribute) {
  if (Value* v = fields.find(attribute)) return *v;
  if (attribute == "__name__") return Value::str(name);
  if (attribute == "__qualname__") return Value::str(code->qualified_name);
  if (attribute == "__module__") return Value::str(program->globals->module);
  if (attribute == "__dict__") {
    auto dict = make<Dict>();
    dict->table = fields;
    return Value(dict);
  }
  if (attribute == "__annotations__") return Value(annotations(*this));
  if (attribute == "__defaults__") {
    std::vector<Value> items;
    for (size_t i = 0; i < params->size(); ++i)
      if ((*params)[i].kind == Param::Kind::kPlain && !defaults[i].missing()) items.push_back(defaults[i]);
    return items.empty() ? Value::none() : Value(make<Tuple>(std::move(items)));
  }
  if (attribute == "__code__") return code_object(*this);
  if (attribute == "__get__") {
    // f.__get__(x) is what x.f gives of a method.
    auto get = make<Opaque>("method-wrapper '__get__' of function object");
    get->on_call = [self = Ref<Function>(this)](Interp& in, CallArgs& args) -> Value {
      if (args.args.empty() || args.args.size() > 2 || !args.keywords.empty())
        in.fail(ErrorKind::kType, "__get__() takes an instance, and its class or nothing");
      return args.args[0].is_none() ? Value(self) : Value(make<BoundMethod>(args.args[0], Value(self)));
    };
    return Value(get);
  }
  if (attribute == "__kwdefaults__") {
    auto named = make<Dict>();
    for (size_t i = 0; i < params->size(); ++i)
      if ((*params)[i].kind == Param::Kind::kKeywordOnly && !defaults[i].missing())
        named->table.set((*params)[i].name, defaults[i]);
    return named->table.size() == 0 ? Value::none() : Value(named);
  }
  if (attribute == "__doc__") return def ? docstring_of(def->body) : Value::none();
  return std::nullopt;
}

void Function::set_attribute(Interp&, std::string_view attribute, Value value) {
  fields.set(attribute, std::move(value));
}

std::string Function::repr(Interp&) { return fmt::format("<function {}>", name); }

Value Interp::call(const Value& callee, CallArgs& args) {
  if (auto* fn = callee.get<Function>()) return call_function(*fn, args);
  if (auto* o = callee.object()) return o->call(*this, args);
  fail(ErrorKind::kType, "'{}' cannot be called", type_name(callee));
}

Value Interp::call(const Value& callee, std::initializer_list<Value> args) {
  CallArgs call_args;
  for (const Value& v : args) call_args.args.push_back(v);
  return call(callee, call_args);
}

void Interp::gather(const ast::Call& e, CallArgs& out, Frame& f) {
  out.site = &e;
  // As in Python one that stands alone is gone through once the keywords are known.
  const auto* alone = e.args.size() == 1 ? dyn_as<Starred>(e.args[0].get()) : nullptr;
  const Value items = alone ? eval(*alone->value, f) : Value();
  for (const ExprPtr& a : e.args) {
    if (alone) break;
    const auto* star = dyn_as<Starred>(a.get());
    if (!star) {
      out.args.push_back(eval(*a, f));
      continue;
    }
    Value many = eval(*star->value, f);
    where_ = a->range;
    for (Value& v : to_vector(many)) out.args.push_back(std::move(v));
  }
  // A '**' may repeat a name; the parser has checked the others, and most calls have no '**'.
  bool has_mapping = false;
  std::unordered_set<std::string_view> names;  // of many arguments
  auto is_given = [&](std::string_view name) {
    constexpr size_t kFew = 24;
    if (out.keywords.size() < kFew)
      return std::any_of(out.keywords.begin(), out.keywords.end(), [&](const KeywordArg& k) { return k.name == name; });
    if (names.empty())
      for (const KeywordArg& k : out.keywords) names.insert(k.name);
    return !names.insert(name).second;
  };
  for (const Keyword& k : e.keywords) {
    Value v = eval(*k.value, f);
    if (!k.name.empty()) {
      if (has_mapping && is_given(k.name)) fail(ErrorKind::kType, "the argument '{}' is given twice", k.name);
      out.keywords.push_back({k.name, std::move(v), {}});
      continue;
    }
    where_ = k.range;
    has_mapping = true;
    auto add = [&](const Value& key, Value value) {
      const std::string& name = to_text(key, "a key of '**'");
      if (is_given(name)) fail(ErrorKind::kType, "the argument '{}' is given twice", name);
      out.keywords.push_back({name, std::move(value), key});
    };
    if (auto* dict = v.get<Dict>(); dict && !dict->own_type()) {
      // No code of the script runs while they are added, so the table stays as it is.
      for (const Table::Entry& entry : dict->table.entries())
        if (!entry.key.missing()) add(entry.key, entry.value);
      continue;
    }
    if (!visit_mapping(*this, v, add)) fail(ErrorKind::kType, "'**' needs a dict, got '{}'", type_name(v));
  }
  if (!alone) return;
  where_ = alone->range;
  for (Value& v : to_vector(items)) out.args.push_back(std::move(v));
}

namespace {
/// The variables of a function or class body: parameters and plain ones, those that inner functions share, and those of
/// functions around it that it reads.
Value locals_of(const Frame& f) {
  auto out = make<Dict>();
  auto add = [&](const std::string& name, const Value& v) {
    // Variables of comprehensions have a '#' in their names.
    if (!v.missing() && name.find('#') == std::string::npos) out->table.set(name, v);
  };
  // As Python orders them: named parameters, *args, **kwargs, plain variables, shared ones.
  auto rank = [&](size_t i) {
    if (i >= f.code.parameter_count) return f.slots[i].get<Cell>() ? 4 : 3;
    const Param::Kind kind = f.function ? (*f.function->params)[i].kind : Param::Kind::kPlain;
    return kind == Param::Kind::kArgs ? 1 : kind == Param::Kind::kKwargs ? 2 : 0;
  };
  for (int now = 0; now <= 4; ++now)
    for (size_t i = 0; i < f.code.slot_names.size(); ++i) {
      auto* cell = f.slots[i].get<Cell>();
      if (rank(i) == now) add(f.code.slot_names[i], cell ? cell->value : f.slots[i]);
    }
  if (!f.code.is_class)
    for (size_t i = 0; i < f.code.free.size(); ++i) add(f.code.free[i].name, (*f.free)[i]->value);
  return out;
}
}  // namespace

Value Interp::eval_call(const ast::Call& e, Frame& f) {
  CallArgs args;
  if (const auto* sub = dyn_as<Subscript>(e.callee.get())) {
    // `kernel[grid](…)`: call_at() launches without making an object for `kernel[grid]` first.
    Value base = eval(*sub->base, f);
    Value index = eval(*sub->index, f);
    gather(e, args, f);
    where_ = e.range;
    if (auto* o = base.object())
      if (auto v = o->call_at(*this, index, args)) return *std::move(v);
    where_ = sub->range;
    Value callee = item(base, index);
    where_ = e.range;
    return call(callee, args);
  }
  if (const auto* attr = dyn_as<Attribute>(e.callee.get())) {
    Value base = eval(*attr->base, f);
    auto* instance = base.get<Instance>();
    const bool own = base.object() && base.object()->own_type();
    if (instance && !instance->fields.find(attr->name)) {
      Value* found = instance->type->find(attr->name);
      if (auto* fn = found ? found->get<Function>() : nullptr) {
        // Evaluating the arguments may rebind the method on its class and free the function.
        Ref<Function> keep(fn);
        args.args.push_back(base);
        gather(e, args, f);
        where_ = e.range;
        return call_function(*keep, args);
      }
    }
    where_ = attr->name_range;
    Kind kind = base.kind();
    Native* native = own || kind == Kind::kModule || kind == Kind::kType ? nullptr : method(kind, attr->name);
    Value callee = native ? Value() : attribute(base, attr->name);
    gather(e, args, f);
    where_ = e.range;
    return native ? native->call_on(*this, &base, args) : call(callee, args);
  }
  Value callee = eval(*e.callee, f);
  {
    const auto* native = callee.get<Native>();
    const std::shared_ptr<void> around =
        native && native->def.around_arguments ? native->def.around_arguments(*this) : nullptr;
    gather(e, args, f);
  }
  where_ = e.range;
  auto* native = args.args.empty() ? callee.get<Native>() : nullptr;
  // Those that are about the function (or class) around the call.
  if (native && (f.function || f.code.is_class)) {
    if (native->name == "locals" || native->name == "vars") return locals_of(f);
    if (native->name == "dir") {
      std::vector<Value> names = to_vector(locals_of(f));
      std::sort(names.begin(), names.end(), [&](const Value& a, const Value& b) { return less(a, b); });
      return make<List>(std::move(names));
    }
  }
  if (native && native->name == "super") {
    if (!f.function || !f.function->owner || !*f.function->owner || f.function->params->empty())
      fail(ErrorKind::kType, "super() stands outside of a method");
    const Value& first = f.slots[0];
    // `self` lives in a cell when an inner function of the method uses it.
    auto* cell = first.get<Cell>();
    Value self = cell ? cell->value : first;
    if (!self.get<TypeObject>() && !fields_of(self))
      fail(ErrorKind::kType, "super() needs the method's first parameter to be the instance, or the class");
    return make_super(Ref<TypeObject>(*f.function->owner), std::move(self));
  }
  return call(callee, args);
}

void Interp::evaluate_launch(const std::shared_ptr<const Program>& program, const ast::Call& e, Value& base,
                             Value& grid, CallArgs& args) {
  const auto* sub = dyn_as<Subscript>(e.callee.get());
  KILN_ASSERT(sub, "a launch is a call of a subscript");
  handled_.clear();
  calls_.clear();
  check_stack();
  Frame frame(*program, *program->codes.at(nullptr));
  frame.make_cells();
  base = eval(*sub->base, frame);
  grid = eval(*sub->index, frame);
  gather(e, args, frame);
  where_ = e.range;
}

Value Interp::call_function(const Function& fn, CallArgs& args) {
  check_interrupt();
  check_stack();
  if (fn.elsewhere)
    if (auto v = fn.elsewhere(*this, fn.name, nullptr, args)) return *std::move(v);
  if (fn.def && fn.def->is_generator) {
    auto generator = make<FunctionGenerator>(*this, fn);
    bind(fn, args, generator->frame());
    generator->frame().make_cells();
    return generator;
  }
  SourceRange site = where_;
  Frame frame(*fn.program, *fn.code);
  frame.free = &fn.free;
  frame.function = &fn;
  bind(fn, args, frame);
  frame.make_cells();
  Entered entered(*this, {&fn, site, fn.program.get()});
  if (fn.body) return eval(*fn.body, frame);
  if (exec(fn.def->body, frame) == Flow::kReturn) return std::move(frame.result);
  return Value::none();
}

void Interp::bind(const Function& fn, CallArgs& args, Frame& frame) {
  const std::vector<Param>& params = *fn.params;
  size_t next = 0;
  Ref<Dict> rest;
  for (size_t i = 0; i < params.size(); ++i) {
    switch (params[i].kind) {
      case Param::Kind::kPlain:
        if (next < args.args.size()) frame.slots[i] = std::move(args.args[next++]);
        break;
      case Param::Kind::kArgs: {
        std::vector<Value> more;
        while (next < args.args.size()) more.push_back(std::move(args.args[next++]));
        frame.slots[i] = make<Tuple>(std::move(more));
        break;
      }
      case Param::Kind::kKwargs:
        rest = make<Dict>();
        frame.slots[i] = rest;
        break;
      case Param::Kind::kKeywordOnly:
        break;
    }
  }
  if (next < args.args.size()) fail_binding(fn, args);
  for (KeywordArg& k : args.keywords) {
    const size_t i = fn.code->parameter(k.name);
    const bool named = i < params.size() && params[i].kind != Param::Kind::kArgs &&
                       params[i].kind != Param::Kind::kKwargs && !params[i].positional_only;
    if (named) {
      if (!frame.slots[i].missing()) fail(ErrorKind::kType, "{}() got the argument '{}' twice", fn.name, k.name);
      frame.slots[i] = std::move(k.value);
    } else if (rest) {
      rest->table.set(k.name, std::move(k.value));
    } else {
      fail_binding(fn, args);
    }
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (!frame.slots[i].missing()) continue;
    if (fn.defaults[i].missing()) fail_binding(fn, args);
    frame.slots[i] = fn.defaults[i];
  }
}

void Interp::fail_binding(const Function& fn, const CallArgs& args) {
  std::vector<std::string> names, needed;
  std::unordered_set<std::string_view> known, given;
  for (const Param& p : *fn.params)
    if (p.kind == Param::Kind::kPlain || p.kind == Param::Kind::kKeywordOnly) known.insert(p.name);
  for (const KeywordArg& k : args.keywords) given.insert(k.name);
  size_t positional = 0;
  for (size_t i = 0; i < fn.params->size(); ++i) {
    const Param& p = (*fn.params)[i];
    if (p.kind == Param::Kind::kPlain) ++positional;
    if (p.kind != Param::Kind::kPlain && p.kind != Param::Kind::kKeywordOnly) continue;
    names.push_back(p.name);
    bool by_position = p.kind == Param::Kind::kPlain && i < args.args.size();
    if (fn.defaults[i].missing() && !by_position && !given.contains(p.name)) needed.push_back("'" + p.name + "'");
  }
  SourceRange place = fn.def ? fn.def->range : fn.body->range;
  std::string help =
      fmt::format("{}() takes {}", fn.name, names.empty() ? "no arguments" : fmt::to_string(fmt::join(names, ", ")));
  for (const KeywordArg& k : args.keywords) {
    const size_t i = fn.code->parameter(k.name);
    if (i < fn.params->size() && (*fn.params)[i].positional_only)
      fail(with_note(error(ErrorKind::kType, "{}() takes the argument '{}' by position only", fn.name, k.name), help,
                     place));
    if (!known.contains(k.name) && !k.name.empty()) {
      std::string near = nearest_name(k.name, names);
      Diagnostic d = error(ErrorKind::kType, "{}() has no argument '{}'", fn.name, k.name);
      fail(with_note(std::move(d), near.empty() ? help : fmt::format("help: did you mean '{}'?", near), place));
    }
  }
  if (args.args.size() > positional)
    fail(with_note(error(ErrorKind::kType, "{}() takes {} positional argument{}, got {}", fn.name, positional,
                         positional == 1 ? "" : "s", args.args.size()),
                   help, place));
  fail(with_note(error(ErrorKind::kType, "{}() needs the argument{} {}", fn.name, needed.size() == 1 ? "" : "s",
                       fmt::join(needed, ", ")),
                 help, place));
}

// --- errors
// -------------------------------------------------------------------------------------------------------------

namespace {

struct KindRow {
  ErrorKind kind;
  std::string_view exception;
};
constexpr KindRow kExceptionOf[] = {
    {ErrorKind::kSyntax, "SyntaxError"},
    {ErrorKind::kName, "NameError"},
    {ErrorKind::kType, "TypeError"},
    {ErrorKind::kValue, "ValueError"},
    {ErrorKind::kUnsupported, "NotImplementedError"},
    {ErrorKind::kMismatch, "AssertionError"},
    {ErrorKind::kLaunch, "RuntimeError"},
    {ErrorKind::kMemory, "MemoryError"},
    {ErrorKind::kDevice, "RuntimeError"},
    {ErrorKind::kIo, "OSError"},
    {ErrorKind::kInterrupted, "KeyboardInterrupt"},
    {ErrorKind::kInternal, "SystemError"},
};

std::string_view exception_of(ErrorKind kind) {
  for (const KindRow& r : kExceptionOf)
    if (r.kind == kind) return r.exception;
  return "RuntimeError";
}

constexpr size_t kShownCalls = 6;

}  // namespace

namespace {
/// In the text of a module that comes with Kiln.
bool is_library(SourceRange range) { return range.text && range.text->file_name().starts_with(kLibraryFolder); }
bool is_library(const Function& f) {
  if (f.def) return is_library(f.def->range);
  const ast::Body& text = f.program->module->body;
  return std::any_of(text.begin(), text.end(), [](const auto& s) { return is_library(s->range); });
}
}  // namespace

SourceRange Interp::blamed() const {
  if (!is_library(where_)) return where_;
  for (size_t i = calls_.size(); i-- > 0;)
    if (!is_library(calls_[i].site)) return calls_[i].site;
  return where_;
}

std::vector<Note> Interp::stack_notes() const {
  struct Step {
    const Call* call;
    const Function* function;  // where it led in what the user wrote: a library's function may have called that
  };
  std::vector<Step> calls;  // that the user wrote, outermost first
  size_t n = calls_.size();
  if (is_library(where_)) {
    while (n > 0 && is_library(calls_[n - 1].site)) --n;
    if (n > 0) --n;  // the place of the error itself
  }
  for (size_t i = 0; i < n; ++i)
    if (!is_library(calls_[i].site))
      calls.push_back({&calls_[i], calls_[i].function});
    else if (!calls.empty() && calls_[i].function && !is_library(*calls_[i].function))
      calls.back().function = calls_[i].function;
  std::vector<Note> notes;
  n = calls.size();
  for (size_t i = n; i-- > 0;) {
    // Of a deep recursion the innermost and outermost calls say enough.
    if (n > 2 * kShownCalls && n - i == kShownCalls + 1) {
      notes.push_back({fmt::format("… {} further calls …", n - 2 * kShownCalls), {}});
      i = kShownCalls;
      continue;
    }
    const auto& [call, function] = calls[i];
    notes.push_back({function ? fmt::format("in {}, called from here", function->name)
                              : fmt::format("in the module {}, imported here", call->program->globals->module),
                     place_of(call->site)});
  }
  return notes;
}

void Interp::fail(Diagnostic d, std::string_view type) {
  // The flag is cleared where the exception is made; otherwise its handler would be interrupted at once.
  if (d.kind == ErrorKind::kInterrupted) take_interrupt();
  ScriptError e;
  const bool by_zero =
      d.message.starts_with("division by zero") || d.message.ends_with(" cannot be raised to a negative power");
  const bool overflow = d.message == "the result of '**' is too large for a float";
  if (type.empty()) type = by_zero ? "ZeroDivisionError" : overflow ? "OverflowError" : exception_of(d.kind);
  auto instance = make<Instance>(exception_type(type));
  instance->fields.set("args", make<Tuple>(std::vector<Value>{Value::str(d.message)}));
  set_context(*instance);
  e.exception = instance;
  e.diagnostic = std::move(d);
  Place here = place_of(blamed());
  Place& place = e.diagnostic.place;
  if (place.line == 0) {
    place = here;
  } else if (place.file != here.file || place.line != here.line) {
    e.diagnostic.notes.push_back({"from this line of the script", here});
  }
  for (Note& n : stack_notes()) e.diagnostic.notes.push_back(std::move(n));
  throw e;
}

void Interp::fail_key(const Value& key, std::string_view message) {
  const std::string shown = repr(key);
  try {
    fail_as_type("KeyError", fmt::format(fmt::runtime(message), shown), "");
  } catch (ScriptError& e) {
    e.exception.get<Instance>()->fields.set("args", make<Tuple>(std::vector<Value>{key}));
    throw;
  }
}

void Interp::fail_as_type(std::string_view type, std::string message, std::string help,
                          std::optional<std::string> argument) {
  Ref<TypeObject> t = exception_type(type);
  ScriptError e;
  auto instance = make<Instance>(t);
  std::vector<Value> values;
  if (!argument || !argument->empty()) values.push_back(Value::str(argument ? *argument : message));
  instance->fields.set("args", make<Tuple>(std::move(values)));
  set_context(*instance);
  e.exception = instance;
  e.diagnostic = Diagnostic{t->error.value_or(ErrorKind::kValue), std::move(message), place_of(blamed()), {}};
  if (!help.empty()) e.diagnostic.notes.push_back({std::move(help), {}});
  for (Note& n : stack_notes()) e.diagnostic.notes.push_back(std::move(n));
  throw e;
}

void Interp::set_context(Instance& exception) {
  const Value around = handled();
  if (around.missing() || around.same(Value(&exception))) return;
  // Without a circle, as when the exception that is handled was raised while this one was.
  constexpr int kMostLooked = 1000;  // a script may have closed a circle of its own
  Value at = around;
  for (int looked = 0; looked < kMostLooked; ++looked) {
    auto* i = at.get<Instance>();
    if (!i) break;
    Value* next = i->fields.find("__context__");
    if (!next) break;
    if (next->same(Value(&exception))) {
      i->fields.erase("__context__");
      break;
    }
    at = Value(*next);
  }
  exception.fields.set("__context__", around);
}

namespace {

Value args_of(Instance& exception) {
  const Value* args = exception.fields.find("args");
  return args ? *args : Value();
}

std::string message_of(Interp& in, Instance& exception) {
  const std::string text = in.str(Value(&exception));
  return exception.type->name + (text.empty() ? "" : ": " + text);
}

/// The message of an exception that was caught. Its handler may have changed it: the args, or whatever the __str__ of
/// a class of the script's shows.
std::string message_now(Interp& in, Instance& exception) {
  const bool is_same = !exception.type->def && exception.caught->args.same(args_of(exception));
  return is_same ? exception.caught->report.message : message_of(in, exception);
}

}  // namespace

void Interp::raise(Value exception, SourceRange where) {
  auto* instance = exception.get<Instance>();
  set_context(*instance);
  ScriptError e;
  e.diagnostic = Diagnostic{instance->type->error.value_or(ErrorKind::kValue),
                            message_of(*this, *instance),
                            place_of(is_library(where) ? blamed() : where),
                            {}};
  for (Note& n : stack_notes()) e.diagnostic.notes.push_back(std::move(n));
  e.exception = std::move(exception);
  throw e;
}

void Interp::keep_report(const Value& exception, Diagnostic report) {
  if (auto* instance = exception.get<Instance>())
    instance->caught.reset(new Instance::Caught{std::move(report), args_of(*instance)});
}

void Interp::raise_again(const Value& exception, SourceRange where, bool named) {
  constexpr size_t kMostNotes = 32;  // of an object that is raised time after time
  auto* instance = exception.get<Instance>();
  if (!instance->caught) raise(exception, where);
  set_context(*instance);
  // Copied first: a __str__ may raise and catch the exception itself.
  ScriptError e{instance->caught->report, exception};
  e.diagnostic.message = message_now(*this, *instance);
  std::vector<Note>& notes = e.diagnostic.notes;
  if (named && notes.size() < kMostNotes) {
    const Note again{"raised again here", place_of(where)};
    const bool is_told = std::any_of(notes.begin(), notes.end(), [&](const Note& n) {
      return n.message == again.message && n.place.file == again.place.file && n.place.line == again.place.line;
    });
    if (!is_told) notes.push_back(again);
  }
  throw e;
}

void Interp::add_causes(ScriptError& error) {
  constexpr int kMost = 8;  // a script may have closed a circle
  Value at = error.exception;
  for (int n = 0; n < kMost; ++n) {
    auto* instance = at.get<Instance>();
    Value* cause = instance ? instance->fields.find("__cause__") : nullptr;
    Value* context = instance && !cause ? instance->fields.find("__context__") : nullptr;
    auto* before = cause ? cause->get<Instance>() : context ? context->get<Instance>() : nullptr;
    if (!before) return;  // also `from None`
    Note note{std::string(cause ? "caused by " : "raised while this was handled: "), {}};
    if (before->caught) note.place = before->caught->report.place;
    try {
      note.message += before->caught ? message_now(*this, *before) : message_of(*this, *before);
    } catch (ScriptError&) {  // of a __str__ of the script's
      note.message += before->type->name;
    }
    error.diagnostic.notes.push_back(std::move(note));
    at = Value(before);
  }
}

void Interp::take_interrupt() {
  if (!stops_statement.load()) forget_interrupt();
}

void Interp::forget_interrupt() {
  clear_interrupt();
  stops_statement.store(false);
  interrupted.store(false);
}

Interp::Cleanup::Cleanup(Interp& in) : in_(in), waits_(in.stops_statement && in.interrupted.exchange(false)) {
  if (waits_) clear_interrupt();
}

Interp::Cleanup::~Cleanup() {
  if (!waits_) return;
  request_interrupt();
  in_.interrupted.store(true);
}

int Interp::exit_status(const Value& exception) {
  const Value code = attribute(exception, "code");
  if (code.is_none()) return 0;
  // As CPython and POSIX: the low 8 bits are the status, anything but a number goes to stderr with status 1.
  if (code.kind() == Kind::kInt || code.is_bool())
    return code.is_object() ? 255 : static_cast<int>(code.integer() & 255);
  if (error_output) error_output(str(code) + "\n");
  return 1;
}

void Interp::stop_interrupted() {
  take_interrupt();
  fail_as("KeyboardInterrupt", "interrupted");
}

void Interp::check_stack() {
  auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (stack_limit_ == 0 || stack_thread_ != pthread_self()) {
    stack_thread_ = pthread_self();
    // A stack without a limit (ulimit -s unlimited) would take the machine's memory.
    constexpr uintptr_t kMost = uintptr_t{24} << 20;
    pthread_attr_t attr;
    void* base = nullptr;
    size_t size = size_t{1} << 20;
    stack_limit_ = here > kMost ? here - kMost : 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
      pthread_attr_getstack(&attr, &base, &size);
      pthread_attr_destroy(&attr);
      // A quarter of the stack stays free for what natives and the layers below need.
      stack_limit_ = std::max(stack_limit_, reinterpret_cast<uintptr_t>(base) + size / 4);
    } else {
      stack_limit_ = here - size / 2;
    }
  }
  if (here >= stack_limit_) return;
  if (calls_.empty()) fail_as("RecursionError", "the value is nested too deeply");
  fail_as("RecursionError", "the calls are nested too deeply: {} functions are running", calls_.size());
}

}  // namespace kiln::script
