#include "repl/modules/triton/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/ast/walk.h"
#include "compiler/frontend/frontend.h"
#include "kiln/check.h"
#include "repl/modules/torch/lazy_scope.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/triton/kernel_globals.h"
#include "repl/modules/triton/language.h"
#include "repl/modules/triton/launch_state.h"
#include "repl/modules/triton/options.h"
#include "runtime/jit/closure.h"
#include "runtime/launch/args.h"
#include "runtime/launch/kernel_launched.h"
#include "support/trace.h"

namespace kiln::script {

namespace {

// Keywords of a launch that are no part of its code.
constexpr std::string_view kCheckOption = "check";  // accesses are looked at first
constexpr std::string_view kTimeoutOption = "timeout";

/// do_not_specialize: names or positions.
std::vector<std::string> parameter_names(Interp& in, const Function& f, const Value& list) {
  std::vector<std::string> out;
  if (list.missing() || list.is_none()) return out;
  for (const Value& v : in.to_vector(list)) {
    if (v.small_int_or_bool()) {
      out.push_back(
          (*f.params)[static_cast<size_t>(in.index_in(v, static_cast<int64_t>(f.params->size()), "parameter list"))]
              .name);
    } else {
      out.push_back(in.to_text(v, "a parameter's name"));
    }
  }
  return out;
}

Value make_kernel(Interp& in, const Value& v, const Value& do_not_specialize, bool constexpr_function) {
  if (auto* k = v.get<KernelObject>()) return Value(k);
  auto* f = v.get<Function>();
  if (!f || !f->def)
    in.fail(ErrorKind::kType, "@triton.jit needs a function that is written with def, got '{}'", in.type_name(v));
  auto jit = std::make_shared<frontend::JitFunction>();
  jit->module = f->program->module;
  jit->def = f->def;
  jit->constexpr_function = constexpr_function;
  jit->do_not_specialize = parameter_names(in, *f, do_not_specialize);
  give_globals(in, Ref<Function>(f), *jit);
  return make<KernelObject>(Kernel::from_function(jit), Ref<Function>(f), jit);
}

}  // namespace

Value constexpr_function_of(Interp& in, const Value& function) {
  if (function.get<KernelMember>()) return function;  // kernels may call what is Triton's already
  return make_kernel(in, function, {}, true);
}

namespace {

/// @triton.jit and @triton.jit(do_not_specialize=…).
Value jit(Interp& in, NativeArgs& a) {
  if (!a[0].missing()) return make_kernel(in, a[0], a[1], false);
  auto o = make<Opaque>("triton.jit(…)");
  o->on_call = [fixed = a[1]](Interp& interp, CallArgs& args) -> Value {
    if (args.args.size() != 1) interp.fail(ErrorKind::kType, "@triton.jit(…) decorates one function");
    return make_kernel(interp, args.args[0], fixed, false);
  };
  return o;
}
Value constexpr_function(Interp& in, NativeArgs& a) { return constexpr_function_of(in, a[0]); }

constexpr NativeDef kFunctions[] = {
    {"jit(fn=, *, do_not_specialize=None, do_not_specialize_on_alignment=None, version=None, debug=None, "
     "noinline=None, repr=None, launch_metadata=None)",
     jit, "makes a kernel of a function"},
    {"constexpr_function(fn)", constexpr_function,
     "a function that kernels call on constexprs while they are compiled"},
};

/// A `kernel[grid]` that is kept: each call launches.
class Launcher : public Object {
 public:
  static inline const KindOf<Launcher> kKind{"launcher"};
  Launcher(Ref<Launchable> k, Value g) : Object(kKind), kernel_(std::move(k)), grid_(std::move(g)) {}
  Value call(Interp& in, CallArgs& args) override { return kernel_->launched(in, grid_, args); }

 private:
  Ref<Launchable> kernel_;
  Value grid_;
};

// Figures that are not known, as all of the CPU's registers and shared memory, are None.
Value figure_value(const KernelField&, const KernelInfo&, int64_t v) {
  return v >= 0 ? Value::integer(v) : Value::none();
}
Value figure_value(const KernelField&, const KernelInfo&, bool v) { return Value::boolean(v); }
Value figure_value(const KernelField& field, const KernelInfo& info, int v) {
  return figure_value(field, info, int64_t{v});
}
Value figure_value(const KernelField&, const KernelInfo&, const std::string& v) { return Value::str(v); }
template <class T>
Value figure_value(const KernelField&, const KernelInfo&, const std::vector<T>&) {
  return Value::none();  // no list has a name in scripts
}

/// What scripts ask of a compiled kernel: the fields with a name there.
std::optional<Value> figure(const KernelInfo& info, std::string_view name) {
  std::optional<Value> found;
  auto in_group = [&](std::string_view group, auto add) {
    for_each_field(info, [&](const KernelField& field, const auto& value) {
      if (field.script.starts_with(group))
        add(std::string(field.script.substr(group.size())), figure_value(field, info, value));
    });
  };
  if (name == "metadata") {
    auto o = make<Opaque>("metadata");
    in_group("metadata.", [&](const std::string& member, Value v) { o->members.set(member, std::move(v)); });
    o->members.set("name", Value::str(info.name));
    return Value(o);
  }
  if (name == "asm") {
    auto d = make<Dict>();
    in_group("asm.", [&](const std::string& key, Value v) {
      if (!v.get<Str>()->text.empty()) d->table.set(key, std::move(v));
    });
    return Value(d);
  }
  if (name == "_init_handles") {
    auto o = make<Opaque>("_init_handles");
    o->on_call = [](Interp&, CallArgs&) { return Value::none(); };
    return Value(o);
  }
  if (name.find('.') != std::string_view::npos) return std::nullopt;
  in_group(name, [&](const std::string& rest, Value v) {
    if (rest.empty()) found = std::move(v);
  });
  return found;
}
void figure_names(std::vector<std::string>& out) {
  const KernelInfo none;
  out.insert(out.end(), {"metadata", "asm"});
  for_each_field(none, [&](const KernelField& field, const auto&) {
    if (!field.script.empty() && field.script.find('.') == std::string_view::npos) out.emplace_back(field.script);
  });
}
std::string figure_repr(const KernelInfo& info) {
  return fmt::format("<compiled kernel {} for {}>", info.name, info.target);
}

/// What a launch gives: the figures of the code that it ran.
class LaunchedObject : public Object {
 public:
  static inline const KindOf<LaunchedObject> kKind{"CompiledKernel"};
  explicit LaunchedObject(std::shared_ptr<const KernelInfo> info) : Object(kKind), info_(std::move(info)) {}
  std::optional<Value> attribute(Interp&, std::string_view name) override { return figure(*info_, name); }
  void attribute_names(std::vector<std::string>& out) const override { figure_names(out); }
  std::optional<Value> call_at(Interp& in, const Value&, CallArgs&) override {
    in.fail(with_note(error(ErrorKind::kType, "the result of a launch cannot be launched"),
                      fmt::format("help: {}[grid](…), or {}.warmup(…, grid=grid)[grid](…)", info_->name, info_->name)));
  }
  std::string repr(Interp&) override { return figure_repr(*info_); }
  bool is_quiet() const override { return true; }  // a launch shows its figures when its name is asked for

 private:
  std::shared_ptr<const KernelInfo> info_;
};

/// What warmup() gives: the figures, and a launch of just that.
class CompiledObject : public Object {
 public:
  static inline const KindOf<CompiledObject> kKind{"CompiledKernel"};
  CompiledObject(KernelInfo info, Ref<Launchable> k, Ref<Dict> constants)
      : Object(kKind), info_(std::move(info)), kernel_(std::move(k)), constants_(std::move(constants)) {}

  std::optional<Value> attribute(Interp&, std::string_view name) override { return figure(info_, name); }
  void attribute_names(std::vector<std::string>& out) const override { figure_names(out); }
  /// `compiled[(x, y, z)](args…)`: positional arguments in the order of the kernel's parameters; constexprs as
  /// compiled.
  std::optional<Value> call_at(Interp& in, const Value& grid, CallArgs& args) override {
    KernelObject& k = kernel_->innermost();
    auto params = k.kernel.params();
    CallArgs full;
    size_t next = 0;
    for (const ParamDesc& p : params) {
      Value* fixed = constants_->table.find(p.name);
      bool given = next < args.args.size();
      // Triton's compiled kernels take every parameter; its tutorials also pass the runtime ones alone.
      bool all = args.args.size() == params.size();
      if (fixed && p.is_constexpr && !all)
        full.keywords.push_back({p.name, *fixed, {}});
      else if (given)
        full.keywords.push_back({p.name, args.args[next++], {}});
    }
    if (next < args.args.size())
      in.fail(ErrorKind::kType, "the compiled kernel {} takes {} arguments, got {}", info_.name, params.size(),
              args.args.size());
    for (const LaunchOption& option : kLaunchOptions)
      if (Value* v = constants_->table.find(option.name); v && !names_parameter(option.name))
        full.keywords.push_back({option.name, *v, {}});
    for (KeywordArg& k2 : args.keywords) full.keywords.push_back(k2);
    return kernel_->launched(in, grid, full);
  }
  std::string repr(Interp&) override { return figure_repr(info_); }

 private:
  bool names_parameter(std::string_view name) const {
    auto params = kernel_->innermost().kernel.params();
    return std::any_of(params.begin(), params.end(), [&](const ParamDesc& p) { return p.name == name; });
  }

  KernelInfo info_;
  Ref<Launchable> kernel_;
  Ref<Dict> constants_;
};

/// kernel.run(*args, grid=…, warmup=False, **named) and kernel.warmup(*args, grid=…, **named).
Value run_method(Interp& in, NativeArgs& a, bool only_compile) {
  Launchable* k = launchable(*a.self);
  CallArgs args;
  for (const Value& v : a[0].get<Tuple>()->items) args.args.push_back(v);
  Dict* named = a[2].get<Dict>();
  bool warm = only_compile;
  for (const auto& e : named->table.live()) {
    const std::string& name = e.key.get<Str>()->text;
    if (name == "warmup")
      warm |= in.truth(e.value);
    else
      args.keywords.push_back({name, e.value, e.key});
  }
  Value grid = a[1].missing() ? Value::integer(1) : a[1];
  if (warm) return k->warmup(in, grid, args);
  if (a[1].missing()) in.fail(ErrorKind::kType, "run() needs grid=(x, y, z)");
  return k->launched(in, grid, args);
}
Value run(Interp& in, NativeArgs& a) { return run_method(in, a, false); }
Value warmup(Interp& in, NativeArgs& a) { return run_method(in, a, true); }
constexpr NativeDef kMethods[] = {
    {"run(*args, grid=, **named)", run, "launches over a grid"},
    {"warmup(*args, grid=, **named)", warmup, "compiles without launching; dtypes may stand for tensors"},
};

}  // namespace

std::span<const NativeDef> launch_methods() { return kMethods; }

void install_kernel_methods(Interp& in) { in.add_methods({KernelObject::kKind, kMethods}); }

void install_kernels(ModuleObject& triton) { add_functions(triton, kFunctions); }

Launchable* launchable(const Value& v) { return dynamic_cast<Launchable*>(v.object()); }

KernelObject* innermost_kernel(const Value& v) {
  Launchable* l = launchable(v);
  return l ? &l->innermost() : nullptr;
}

Value Launchable::launched(Interp& in, const Value& grid, CallArgs& args) {
  launch(in, grid, args);
  return innermost().launched_code();
}

Value Launchable::item(Interp&, const Value& grid) { return make<Launcher>(Ref<Launchable>(this), grid); }

Value Launchable::call(Interp& in, CallArgs&) {
  const std::string& name = innermost().kernel.name();
  in.fail(with_note(error(ErrorKind::kType, "the kernel {} is launched over a grid, not called", name),
                    fmt::format("help: {}[grid](…)", name)));
}

KernelObject::KernelObject(Kernel k, Ref<Function> f, std::shared_ptr<const frontend::JitFunction> jit_function)
    : Launchable(kKind), kernel(std::move(k)), function(std::move(f)), kernel_function(std::move(jit_function)) {
  for (const ParamDesc& p : kernel.params()) {
    names_.push_back(Value::str(p.name));
    named_.set(p.name, Value::none());
  }
}

namespace {

/// What the text of a jit function needs around it: the jit functions and constants that it names, callees first.
class SourceCollector {
 public:
  explicit SourceCollector(Interp& in) : in_(in) {}

  void add(const frontend::JitFunction& f) {
    if (!seen_.insert(f.def).second) return;
    out_.defines.push_back(f.def->name);
    for (const std::string& name : runtime::free_names(*f.def)) add_name(f, name);
    for (const ast::Param& p : f.def->params)
      ast::walk(p.default_value.get(), [&](const ast::Expr& e) {
        if (const auto* name = ast::dyn_as<ast::Name>(&e)) add_name(f, name->id);
      });
    text_ += without_indent(f.def->full_range) + "\n\n";
  }
  ExprFunction take() {
    out_.text = constants_ + (constants_.empty() ? "" : "\n") + text_;
    return std::move(out_);
  }

 private:
  void add_name(const frontend::JitFunction& f, const std::string& name) {
    if (name == f.def->name) return;
    auto global = f.lookup(name);
    if (!global) return;
    if (auto* callee = std::get_if<std::shared_ptr<const frontend::JitFunction>>(&*global)) {
      if ((*callee)->def->name != name)
        in_.fail(ErrorKind::kUnsupported, "the jit function {} calls {} by another name, {}: call it by its own",
                 f.def->name, (*callee)->def->name, name);
      add(**callee);
    } else if (auto* constant = std::get_if<ast::Constant>(&*global)) {
      if (names_.insert(name).second)
        constants_ += fmt::format("{} = tl.constexpr({})\n", name, in_.repr(Value::of(*constant)));
    } else if (auto* module = std::get_if<frontend::ModulePath>(&*global)) {
      if (module->path != "triton.language.extra.libdevice" && module->path != "triton.language.extra.cuda.libdevice")
        return;
      if (name != "libdevice")
        in_.fail(ErrorKind::kUnsupported,
                 "the jit function {} has libdevice by another name, {}: import it as libdevice", f.def->name, name);
      out_.libdevice = true;
    }
  }
  /// Its first line starts behind the indent.
  static std::string without_indent(const SourceRange& range) {
    const std::string_view text = range.str();
    const auto indent = static_cast<size_t>(range.text->column_of(range.begin) - 1);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view one = text.substr(at, end - at);
      const size_t blanks = std::min(one.find_first_not_of(" \t"), one.size());
      out += one.substr(at == 0 ? 0 : std::min(blanks, indent));
      out += '\n';
      at = end + 1;
    }
    return out;
  }

  Interp& in_;
  std::set<const ast::FunctionDef*> seen_;
  std::set<std::string> names_;
  std::string constants_, text_;
  ExprFunction out_;
};

}  // namespace

Value KernelObject::call(Interp& in, CallArgs& args) {
  // As in Python: called by the host it is the function itself, on the values of constexprs.
  if (kernel_function->constexpr_function) {
    const auto plain = [](Value& v) {
      if (auto* c = v.get<ConstexprObject>()) v = Value(c->value);
    };
    for (Value& v : args.args) plain(v);
    for (KeywordArg& k : args.keywords) plain(k.value);
    return in.call(Value(function), args);
  }
  const bool tensors =
      std::any_of(args.args.begin(), args.args.end(), [](const Value& v) { return v.get<TensorObject>() != nullptr; });
  if (!tensors) return Launchable::call(in, args);
  if (!args.keywords.empty() || args.args.size() != kernel.params().size())
    in.fail(with_note(error(ErrorKind::kType, "called on tensors, {} takes its {} arguments by position, got {}{}",
                            kernel.name(), kernel.params().size(), args.args.size(),
                            args.keywords.empty() ? "" : fmt::format(" and {} by name", args.keywords.size())),
                      fmt::format("help: a launch has a grid: {}[(n_programs,)](…)", kernel.name())));
  bool has_result = false;
  const auto look = [&](const ast::Stmt& s) {
    const auto* r = ast::dyn_as<ast::Return>(&s);
    has_result = has_result || (r && r->value);
  };
  ast::walk(kernel_function->def->body, look, [](const ast::Expr&) {});
  if (!has_result)
    in.fail(with_note(
        error(ErrorKind::kType, "the kernel {} returns nothing that a call on tensors could give", kernel.name()),
        fmt::format("help: a launch has a grid: {}[(n_programs,)](…)", kernel.name())));
  SourceCollector source(in);
  source.add(*kernel_function);
  auto f = std::make_shared<ExprFunction>(source.take());
  f->name = kernel.name();
  ExprAttributes attributes;
  attributes.function = std::move(f);
  std::vector<Value> operands(args.args.begin(), args.args.end());
  // What the function means is only known by running it: the host does not compute it, however small.
  const LazyScope scope(in);
  return compute(in, ExprOp::kCall, operands, std::move(attributes));
}

std::string KernelObject::signature() const {
  std::string out = kernel.name() + "(";
  const std::span<const ParamDesc> params = kernel.params();
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamDesc& p = params[i];
    out += (i ? ", " : "") + p.name + (p.is_constexpr ? ": tl.constexpr" : "");
    const ast::ExprPtr& initial = (*function->params)[i].default_value;
    if (initial) out += (p.is_constexpr ? " = " : "=") + std::string(initial->range.str());
  }
  return out + ")";
}

std::string KernelObject::source() const { return std::string(function->def->full_range.str()); }

std::optional<Value> KernelObject::attribute(Interp& in, std::string_view name) {
  if (name == "__name__") return Value::str(kernel.name());
  if (name == "fn") return Value(function);
  if (name == "arg_names") return Value(make<List>(names_));
  if (name == "src") return Value::str(source());
  if (name == "__doc__") return function->attribute(in, name);
  return std::nullopt;
}

void KernelObject::attribute_names(std::vector<std::string>& out) const {
  out.insert(out.end(), {"__name__", "fn", "arg_names", "src"});
}

const KernelObject::KnownKeyword& KernelObject::known_keyword(size_t at, std::string_view name) const {
  if (at < keywords_.size() && keywords_[at].name == name) return keywords_[at];
  if (at >= keywords_.size()) keywords_.resize(at + 1);
  const std::span<const ParamDesc> params = kernel.params();
  size_t i = 0;
  while (i < params.size() && params[i].name != name) ++i;
  return keywords_[at] = {std::string(name), i, find_launch_option(name)};
}

void KernelObject::bind(Interp& in, CallArgs& args, Bound& out) const {
  auto params = kernel.params();
  for (size_t i = 0; i < params.size(); ++i) out.values.push_back(nullptr);
  if (args.args.size() > params.size())
    in.fail(with_note(error(ErrorKind::kType, "the kernel {} has {} parameters, got {} arguments", kernel.name(),
                            params.size(), args.args.size()),
                      fmt::format("help: it is {}", signature()), function->def->name_range));
  for (size_t i = 0; i < args.args.size(); ++i) out.values[i] = &args.args[i];
  for (KeywordArg& k : args.keywords) {
    const KnownKeyword& known = known_keyword(static_cast<size_t>(&k - args.keywords.begin()), k.name);
    const size_t i = known.parameter;
    // A kernel may have a parameter of that name as well: both get the value.
    const LaunchOption* option = known.option;
    if (option) set_option(in, *option, k.value, out.options);
    if (k.name == kCheckOption) out.check = in.truth(k.value);
    if (k.name == kTimeoutOption && i == params.size() && !k.value.is_none()) {
      out.options.timeout_s = in.to_double(k.value, k.name);
      if (!(out.options.timeout_s > 0))
        in.fail(ErrorKind::kValue, "timeout is a number of seconds above 0, not {}", in.repr(k.value));
    }
    if (i < params.size()) {
      if (out.values[i]) in.fail(ErrorKind::kType, "the kernel {} got the argument '{}' twice", kernel.name(), k.name);
      out.values[i] = &k.value;
      continue;
    }
    if (option || k.name == kCheckOption || k.name == kTimeoutOption) continue;
    std::vector<std::string> names;
    for (const ParamDesc& p : params) names.push_back(p.name);
    std::string options;
    for (const LaunchOption& o : kLaunchOptions)
      names.emplace_back(o.name), options += std::string(options.empty() ? "" : ", ") + std::string(o.name);
    for (std::string_view own : {kCheckOption, kTimeoutOption}) names.emplace_back(own);
    std::string near = nearest_name(k.name, names);
    Diagnostic d = error(ErrorKind::kName, "the kernel {} has no parameter '{}'", kernel.name(), k.name);
    if (!near.empty()) d = with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
    in.fail(with_note(std::move(d),
                      fmt::format("help: it is {}, with the options {}, {} and {}", signature(), options,
                                  kTimeoutOption, kCheckOption),
                      function->def->name_range));
  }
  for (size_t i = 0; i < params.size(); ++i)
    if (!out.values[i] && !params[i].has_default)
      in.fail(with_note(error(ErrorKind::kType, "the kernel {} needs the argument '{}'", kernel.name(), params[i].name),
                        fmt::format("help: it is {}", signature()), function->def->name_range));
}

Arg KernelObject::argument(Interp& in, size_t param, const Value& value, int depth) const {
  const Value* v = &value;
  if (auto* c = v->get<ConstexprObject>()) v = &c->value;
  if (auto* t = v->get<TensorObject>()) {
    // A kernel may write to it.
    // Of an operation of torch that is a kernel of the library, the gradient would be lost without a word.
    const bool is_operation = function->program->globals->module.starts_with("torch.");
    const Tensor& tensor = is_operation && t->records() ? t->constant(in, "the kernel " + kernel.name())
                                                        : t->launched_with(in, kernel.name());
    return depth ? Arg(tensor) : Arg(&tensor);
  }
  if (v->is_small_int()) return v->integer();
  if (auto* w = v->get<WideInt>()) {
    if (w->value > 0 && w->value <= ast::Int{UINT64_MAX}) return static_cast<uint64_t>(w->value);
    in.fail(ErrorKind::kValue, "the argument '{}' of the kernel {} is {}, which does not fit 64 bits",
            kernel.params()[param].name, kernel.name(), in.repr(*v));
  }
  if (v->is_float()) return v->real();
  if (v->is_bool()) return v->boolean();
  if (v->is_none()) return std::monostate();
  if (v->is_dtype()) return v->dtype();
  if (auto* s = v->get<Str>()) return s->text;
  if (auto* k = innermost_kernel(*v)) return k->kernel;
  if (auto* m = v->get<KernelMember>()) return LanguageFunction{m->path};
  if (auto* d = v->get<TensorDescriptorObject>()) {
    PendingTensors& pending = *torch_state(in).pending();
    if (!pending.empty()) pending.run_readers(in, d->descriptor->tensor.storage().get());
    return d->descriptor;
  }
  if (auto* t = v->get<Tuple>()) {
    constexpr int kDeepest = 32;
    if (depth == kDeepest)
      in.fail(ErrorKind::kValue, "the argument '{}' of the kernel {} has tuples in more than {} tuples",
              kernel.params()[param].name, kernel.name(), kDeepest);
    auto tuple = std::make_shared<ArgTuple>();
    // What computes a pending tensor may run code that changes nothing of a tuple.
    for (const Value& item : t->items) tuple->items.push_back(argument(in, param, item, depth + 1));
    const Ref<TypeObject>* type = t->own_type();
    const Value* names = type ? (*type)->find("_fields") : nullptr;
    if (const auto* fields = names ? names->get<Tuple>() : nullptr; fields && fields->items.size() == t->items.size())
      for (const Value& field : fields->items)
        if (const auto* text = field.get<Str>()) tuple->fields.push_back(text->text);
    if (tuple->fields.size() != tuple->items.size()) tuple->fields.clear();
    return std::shared_ptr<const ArgTuple>(std::move(tuple));
  }
  in.fail(with_note(error(ErrorKind::kType, "the argument '{}' of the kernel {} cannot be of type '{}'",
                          kernel.params()[param].name, kernel.name(), in.type_name(*v)),
                    "help: kernels take tensors, tensor descriptors, numbers, bools, None, strings, dtypes, kernels, "
                    "functions of the language and tuples of these"));
}

void KernelObject::convert(Interp& in, const Bound& bound, std::vector<std::optional<Arg>>& out) const {
  out.resize(bound.values.size());
  for (size_t i = 0; i < bound.values.size(); ++i)
    if (bound.values[i])
      out[i].emplace(argument(in, i, *bound.values[i], 0));
    else
      out[i].reset();
}

Ref<Dict> KernelObject::named(const Bound& bound) const {
  auto dict = make<Dict>();
  dict->table = named_;  // a copy hashes no names and makes no strings
  auto value_of = [&](size_t i) {
    const Value* v = bound.values[i];
    if (!v && i < function->defaults.size()) v = &function->defaults[i];
    return v && !v->missing() ? v : nullptr;
  };
  std::vector<Table::Entry>& entries = dict->table.entries();
  for (size_t i = 0; i < entries.size(); ++i)
    if (const Value* v = value_of(i)) entries[i].value = *v;
  for (size_t i = 0; i < names_.size(); ++i)
    if (!value_of(i)) dict->table.erase(names_[i].get<Str>()->text);
  return dict;
}

std::array<int64_t, 3> KernelObject::grid_of(Interp& in, const Value& grid, const Bound& bound) const {
  const Value* v = &grid;
  Value computed;
  Kind kind = v->kind();
  if (kind == Kind::kFunction || kind == Kind::kNative || kind == Kind::kBoundMethod || kind == Kind::kInstance) {
    computed = in.call(*v, {named(bound)});
    v = &computed;
  }
  std::array<int64_t, 3> out{1, 1, 1};
  if (v->small_int_or_bool()) {
    out[0] = v->integer();
    return out;
  }
  auto* tuple = v->get<Tuple>();
  auto* list = v->get<List>();
  if (!tuple && !list)
    in.fail(with_note(
        error(ErrorKind::kType, "a grid is an int, or a tuple of 1 to 3 ints, or a function that gives one, got '{}'",
              in.type_name(*v)),
        "help: kernel[(n_programs,)](…)"));
  const std::vector<Value>& items = tuple ? tuple->items : list->items;
  if (items.empty() || items.size() > 3)
    in.fail(ErrorKind::kValue, "a grid has 1 to 3 dimensions, got {}", items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_float())
      in.fail(with_note(error(ErrorKind::kType, "dimension {} of the grid is the float {}", i, in.repr(items[i])),
                        "help: divide with // or triton.cdiv"));
    out[i] = in.to_int(items[i], "a dimension of the grid");
  }
  return out;
}

namespace {

template <class T, class Same>
void add_once(std::vector<T>& list, T item, Same same) {
  if (std::none_of(list.begin(), list.end(), [&](const T& o) { return same(o, item); }))
    list.push_back(std::move(item));
}

/// Without a tensor among its arguments a kernel runs where the session makes tensors.
void choose_device(Interp& in, std::span<const std::optional<Arg>> args, LaunchOptions& options) {
  bool has_tensor = false;
  for (const std::optional<Arg>& arg : args) runtime::each_tensor(arg, [&](const Tensor&) { has_tensor = true; });
  if (!has_tensor) options.device = torch_state(in).device();
}

Status launch_looking(Interp& in, AccessChecks checks, const Kernel& kernel, const std::array<int64_t, 3>& grid,
                      std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  auto looked = launch_checked(kernel, grid, args, options);
  AccessLog& log = launch_state(in).access_log;
  if (looked.ok()) {
    ++log.launches;
    log.accesses += looked->accesses;
    for (Place& p : looked->unchecked)
      add_once(log.unchecked, std::move(p),
               [](const Place& a, const Place& b) { return a.file == b.file && a.line == b.line; });
    return {};
  }
  Diagnostic& d = looked.error();
  if (d.kind != ErrorKind::kUnsupported || checks == AccessChecks::kAlways) return std::move(d);
  add_once(log.refused, d.notes.empty() ? d.message : fmt::format("{}: {}", d.message, d.notes[0].message),
           std::equal_to<>());
  return kernel.launch(grid, args, options);
}

/// What tells launches of a kernel apart that may reach different memory.
size_t form_of(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args) {
  size_t hash = 0;
  auto add = [&]<class T>(const T& value) { hash = (hash ^ std::hash<T>{}(value)) * 0x9E3779B97F4A7C15u; };
  for (int64_t d : grid) add(d);
  auto add_argument = [&](const auto& self, const std::optional<Arg>& arg) -> void {
    add(arg ? arg->index() : SIZE_MAX);
    if (!arg) return;
    if (const auto* tuple = std::get_if<std::shared_ptr<const ArgTuple>>(&*arg)) {
      for (const std::string& field : (*tuple)->fields) add(field);
      for (const Arg& item : (*tuple)->items) self(self, item);
    }
    const Tensor* tensor = std::get_if<Tensor>(&*arg);
    if (const auto* p = std::get_if<const Tensor*>(&*arg)) tensor = *p;
    if (tensor) {
      add(static_cast<int>(tensor->dtype()));
      add(tensor->bytes_available());
    }
    if (const auto* b = std::get_if<bool>(&*arg)) add(*b);
    if (const auto* i = std::get_if<int64_t>(&*arg)) add(*i);
    if (const auto* d = std::get_if<double>(&*arg)) add(*d);
    if (const auto* s = std::get_if<std::string>(&*arg)) add(*s);
    if (const auto* t = std::get_if<DType>(&*arg)) add(static_cast<int>(*t));
  };
  for (const std::optional<Arg>& arg : args) add_argument(add_argument, arg);
  return hash;
}

bool is_on_cpu(std::span<const std::optional<Arg>> args) {
  bool found = false;
  for (const std::optional<Arg>& arg : args) {
    if (arg && std::holds_alternative<std::shared_ptr<const TensorDescriptor>>(*arg)) continue;
    runtime::each_tensor(arg, [&](const Tensor& tensor) { found = found || !tensor.device().is_cuda(); });
  }
  return found;
}

Status launch_first(Interp& in, const Kernel& kernel, const std::array<int64_t, 3>& grid,
                    std::span<const std::optional<Arg>> args, const LaunchOptions& options) {
  Status looked = launch_looking(in, AccessChecks::kWherePossible, kernel, grid, args, options);
  if (looked.ok()) return runtime::note_launch(kernel, args, options);
  if (looked.error().kind != ErrorKind::kLaunch) return looked;
  return with_note(std::move(looked.error()),
                   "note: the first launch of its form at the prompt is checked: what lies outside was left alone, and "
                   "variables are kept");
}

}  // namespace

Value KernelObject::launched_code() {
  if (checked_) return Value::none();  // guarded code is not what the kernel is
  if (!launched_info_ || !kernel.was_launched_as(launched_info_.get())) {
    launched_info_ = kernel.launched();
    launched_ = launched_info_ ? Value(make<LaunchedObject>(launched_info_)) : Value::none();
  }
  return launched_;
}

void KernelObject::launch(Interp& in, const Value& grid, CallArgs& args) {
  SourceRange site = in.where();
  Bound bound;
  bind(in, args, bound);
  std::array<int64_t, 3> dims = grid_of(in, grid, bound);
  in.set_where(site);
  convert(in, bound, scratch_);
  choose_device(in, scratch_, bound.options);
  const LaunchState& state = launch_state(in);
  if (state.on_launch) state.on_launch(kernel, scratch_, bound.options);
  const AccessChecks checks = bound.check ? AccessChecks::kAlways : state.access_checks;
  checked_ = checks != AccessChecks::kOff;
  // A profile shows launches as they are.
  constexpr size_t kMostForms = 64;
  const bool is_first = state.checks_first && !checked_ && !trace::on(trace::kSpans) && forms_.size() < kMostForms &&
                        is_on_cpu(scratch_) && forms_.insert(form_of(dims, scratch_)).second;
  Status status = is_first   ? launch_first(in, kernel, dims, scratch_, bound.options)
                  : checked_ ? launch_looking(in, checks, kernel, dims, scratch_, bound.options)
                             : kernel.launch(dims, scratch_, bound.options);
  for (auto& a : scratch_) a.reset();  // kernels must not live longer because they were arguments
  in.check(std::move(status));
}

profiler::TuneCandidate KernelObject::resolve(Interp& in, const Value& grid, CallArgs& args) {
  SourceRange site = in.where();
  Bound bound;
  bind(in, args, bound);
  profiler::TuneCandidate out;
  out.kernel = kernel;
  out.options = bound.options;
  out.grid = grid_of(in, grid, bound);
  in.set_where(site);
  convert(in, bound, out.args);
  choose_device(in, out.args, out.options);
  for (std::optional<Arg>& arg : out.args)
    if (const auto* t = arg ? std::get_if<const Tensor*>(&*arg) : nullptr) arg.emplace(Tensor(**t));
  return out;
}

Value KernelObject::warmup(Interp& in, const Value&, CallArgs& args) {
  Bound bound;
  bind(in, args, bound);
  // A dtype may stand for a tensor of it (Triton's MockTensor): one element is enough to compile for.
  std::vector<Value> stand_ins(bound.values.size());
  auto constants = make<Dict>();
  for (size_t i = 0; i < bound.values.size(); ++i) {
    const ParamDesc& p = kernel.params()[i];
    if (!bound.values[i]) continue;
    if (p.is_constexpr) constants->table.set(p.name, *bound.values[i]);
    if (!p.is_constexpr && bound.values[i]->is_dtype()) {
      int64_t one[] = {1};
      stand_ins[i] = wrap(in.take(Tensor::empty(torch_state(in).device(), bound.values[i]->dtype(), one)));
      bound.values[i] = &stand_ins[i];
    }
  }
  for (const KeywordArg& k : args.keywords)
    if (find_launch_option(k.name)) constants->table.set(k.name, k.value);
  std::vector<std::optional<Arg>> converted;
  convert(in, bound, converted);
  choose_device(in, converted, bound.options);
  KernelInfo info = in.take(kernel.compile(converted, bound.options));
  return make<CompiledObject>(std::move(info), Ref<Launchable>(this), constants);
}

}  // namespace kiln::script
