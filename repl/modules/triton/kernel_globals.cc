#include "repl/modules/triton/kernel_globals.h"

#include <map>
#include <utility>

#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/named_tuple.h"
#include "repl/modules/triton/kernel.h"
#include "repl/modules/triton/language.h"
#include "repl/script/value/classes.h"
#include "support/diag.h"

namespace kiln::script {

namespace {

std::optional<frontend::Global> global_of(const Value& v);

/// A class of NamedTuple as the function that makes one.
std::optional<frontend::Global> named_tuple_of(TypeObject& type) {
  const Value *names = type.find("_fields"), *defaults = type.find("_field_defaults");
  auto* fields = names ? names->get<Tuple>() : nullptr;
  if (!fields || !defaults || type.base_kind != Kind::kTuple) return std::nullopt;
  auto known = std::make_shared<std::map<std::string, frontend::Global, std::less<>>>();
  std::vector<frontend::NamedTupleField> made;
  for (const Value& field : fields->items) {
    const auto* name_of = field.get<Str>();
    if (!name_of) return std::nullopt;
    const std::string& name = name_of->text;
    auto* dict = defaults->get<Dict>();
    const Value* value = dict ? dict->table.find(name) : nullptr;
    made.push_back({name, value ? "None" : ""});
    if (!value) continue;
    const auto constant = value->constant();
    if (auto global = constant ? std::optional<frontend::Global>(*constant) : global_of(*value))
      known->emplace(name, *std::move(global));
  }
  auto function = frontend::named_tuple(type.name, made, type.name, 1);
  if (!function.ok()) return std::nullopt;
  function->default_of = [known](std::string_view name) -> std::optional<frontend::Global> {
    const auto it = known->find(name);
    return it == known->end() ? std::nullopt : std::optional(it->second);
  };
  return frontend::Global(std::make_shared<const frontend::JitFunction>(*std::move(function)));
}

/// A class under @_aggregate as its constructor: made once, since objects are of one class where it is the same.
class Aggregate : public Object {
 public:
  static inline const KindOf<Aggregate> kKind{"aggregate"};
  explicit Aggregate(frontend::FunctionPtr f) : Object(kKind), constructor(std::move(f)) {}
  const frontend::FunctionPtr constructor;
};

constexpr std::string_view kAggregate = "__triton_aggregate__";

/// A class as the tuple of the kernels that it holds, by their names; without any it is nothing to kernels.
std::optional<frontend::Global> namespace_of(const TypeObject& type) {
  auto held = std::make_shared<frontend::GlobalTuple>();
  for (const Table::Entry& e : type.members.entries()) {
    const auto* name = e.key.get<Str>();
    const auto* wrapped = e.value.get<StaticMethod>();
    auto* kernel = name ? innermost_kernel(wrapped ? wrapped->function : e.value) : nullptr;
    if (!kernel) continue;
    held->items.emplace_back(kernel->kernel_function);
    held->fields.push_back(name->text);
  }
  if (held->items.empty()) return std::nullopt;
  return frontend::Global(std::shared_ptr<const frontend::GlobalTuple>(std::move(held)));
}

/// A value of the script as what a kernel may see of it.
std::optional<frontend::Global> global_of(const Value& v) {
  if (v.missing()) return std::nullopt;
  if (auto* type = v.get<TypeObject>()) {
    if (const Value* made = type->members.find(kAggregate))
      return frontend::Global(made->get<Aggregate>()->constructor);
    auto tuple = named_tuple_of(*type);
    return tuple ? std::move(tuple) : namespace_of(*type);
  }
  if (v.is_dtype()) return frontend::Global(v.dtype());
  if (auto* k = innermost_kernel(v)) return frontend::Global(k->kernel_function);
  if (auto* m = v.get<ModuleObject>()) return frontend::Global(frontend::ModulePath{m->path});
  if (auto* m = v.get<KernelMember>()) return frontend::Global(frontend::ModulePath{m->path});
  if (auto* c = v.get<ConstexprObject>()) {
    if (auto constant = c->value.constant()) return frontend::Global(*constant);
    if (auto* t = c->value.get<Tuple>()) {
      auto tuple = std::make_shared<frontend::GlobalTuple>();
      for (const Value& item : t->items) {
        auto constant = item.constant();
        auto global = constant ? std::optional<frontend::Global>(*constant) : global_of(item);
        if (!global) return std::nullopt;
        tuple->items.push_back(std::move(*global));
      }
      return frontend::Global(std::shared_ptr<const frontend::GlobalTuple>(std::move(tuple)));
    }
    return global_of(c->value);
  }
  // Plain numbers are no constants to Triton: a kernel that was compiled could not know that they changed.
  return std::nullopt;
}

/// What a constexpr function of the script gives: plain values too.
std::optional<frontend::Global> result_of(Interp& in, const Value& v, int depth = 0) {
  constexpr int kDeepestTuple = 32;
  if (v.missing() || depth > kDeepestTuple) return std::nullopt;
  if (const auto constant = v.constant()) return frontend::Global(*constant);
  if (!is_collection(v)) return global_of(v);
  return collected(in, v, [&](const Value& item) { return result_of(in, item, depth + 1); });
}

/// An argument of such a call; missing for what scripts have no value for.
Value argument_of(Interp& in, const frontend::Global& g) {
  if (const auto* c = std::get_if<ast::Constant>(&g)) return Value::of(*c);
  if (const auto* d = std::get_if<DType>(&g)) return Value::dtype(*d);
  if (const auto* m = std::get_if<frontend::ModulePath>(&g)) {
    if (const Ref<ModuleObject> module = in.import_module(m->path)) return module;
    return make<KernelMember>(m->path);
  }
  const auto* tuple = std::get_if<std::shared_ptr<const frontend::GlobalTuple>>(&g);
  if (!tuple || !(*tuple)->fields.empty() || (*tuple)->is_dict) return {};
  std::vector<Value> items;
  for (const frontend::Global& item : (*tuple)->items)
    if (items.emplace_back(argument_of(in, item)).missing()) return {};
  return make<Tuple>(std::move(items));
}

/// A function without a decorator, as constexpr functions call it; null: it is none that is written with def.
std::shared_ptr<const frontend::JitFunction> plain_function(Interp& in, const Value& v) {
  auto* f = v.get<Function>();
  if (!f || !f->def) return nullptr;
  auto plain = std::make_shared<frontend::JitFunction>();
  plain->module = f->program->module;
  plain->def = f->def;
  plain->constexpr_function = plain->plain = true;
  give_globals(in, Ref<Function>(f), *plain);
  return plain;
}

/// A kernel's view of the script's variables: those that its function captured, then the globals as they are now.
/// `sees_plain`: also functions without a decorator, as the compiler computes what calls them.
class Lookup {
 public:
  Lookup(Interp& in, Ref<Function> f, bool sees_plain)
      : interp_(in.self()), function_(std::move(f)), sees_plain_(sees_plain) {}
  std::optional<frontend::Global> operator()(std::string_view name) const {
    const Found found = find(name);
    if (!found.value) return std::nullopt;
    if (std::shared_ptr<Interp*> in = sees_plain_ ? interp_.lock() : nullptr)
      if (auto plain = plain_function(**in, *found.value)) return frontend::Global(std::move(plain));
    return global_of(*found.value);
  }
  std::optional<frontend::HiddenName> hidden(std::string_view name) const {
    const Found found = find(name);
    std::shared_ptr<Interp*> in = interp_.lock();
    if (!in || !found.value || found.value->missing()) return std::nullopt;
    return frontend::HiddenName{(*in)->type_name(*found.value), found.captured, found.builtin};
  }

  /// The name's value is the one that it has now: a look at the variable alone, without what a kernel sees of it.
  /// Empty for values of which that would not say enough.
  std::function<bool()> watch(std::string_view name) const {
    for (size_t i = 0; i < function_->free.size(); ++i)
      if (function_->code->free[i].name == name) {
        // The cell lives as long as the function, and the function as long as a closure that watches it.
        auto is_same = same_as(function_->free[i]->value);
        if (!is_same) return {};
        return [cell = function_->free[i], is_same] { return is_same(cell->value); };
      }
    Globals* globals = function_->program->globals;
    const Globals::Slot* slot = interp_.expired() ? nullptr : globals->find(name);
    auto is_same = slot ? same_as(slot->value) : nullptr;
    if (!is_same) return {};
    return [interp = interp_, globals, index = globals->index(name), is_same] {
      return !interp.expired() && is_same((*globals)[index].value);
    };
  }

 private:
  /// Holds no object of the script, which may hold the kernel that holds this.
  static std::function<bool(const Value&)> same_as(const Value& v) {
    if (auto* k = v.get<KernelObject>())
      return [f = k->kernel_function](const Value& now) {
        auto* other = now.get<KernelObject>();
        return other && other->kernel_function == f;
      };
    auto* c = v.get<ConstexprObject>();
    if (!c || c->value.is_object()) return {};
    return [value = c->value](const Value& now) {
      auto* other = now.get<ConstexprObject>();
      return other && other->value.same(value);
    };
  }

  struct Found {
    const Value* value = nullptr;
    bool captured = false, builtin = false;
  };
  Found find(std::string_view name) const {
    for (size_t i = 0; i < function_->free.size(); ++i)
      if (function_->code->free[i].name == name) return {&function_->free[i]->value, true};
    std::shared_ptr<Interp*> in = interp_.lock();
    Globals::Slot* slot = in ? function_->program->globals->find(name) : nullptr;
    if (!slot) return {};
    const bool builtin = slot->value.missing();
    return {builtin ? &slot->builtin : &slot->value, false, builtin};
  }

  std::weak_ptr<Interp*> interp_;
  Ref<Function> function_;
  bool sees_plain_;
};

/// The names of a module that the script imported (`import helpers as h`; `h.f(x)` in a kernel).
std::optional<frontend::Global> member_of(const std::weak_ptr<Interp*>& interp, std::string_view path,
                                          std::string_view name) {
  std::shared_ptr<Interp*> in = interp.lock();
  Ref<ModuleObject> module = in ? (*in)->import_module(path) : Ref<ModuleObject>();
  if (!module) return std::nullopt;
  std::optional<Value> value = module->attribute(**in, name);
  return value ? global_of(*value) : std::nullopt;
}

/// Calls the function itself, for what the compiler does not compute of it.
frontend::Interpret run_by_script(Interp& in, Ref<Function> f) {
  return [interp = in.self(), f = std::move(f)](
             const std::shared_ptr<const frontend::JitFunction>&, std::span<const frontend::Global> positional,
             std::span<const std::pair<std::string, frontend::Global>> keywords) -> Result<frontend::Global> {
    const std::shared_ptr<Interp*> script = interp.lock();
    const Diagnostic cannot = error(ErrorKind::kUnsupported, "{} cannot run here", f->name);
    if (!script) return cannot;
    CallArgs args;
    for (const frontend::Global& g : positional) args.args.push_back(argument_of(**script, g));
    for (const auto& [name, g] : keywords) args.keywords.push_back({name, argument_of(**script, g), {}});
    for (const Value& v : args.args)
      if (v.missing()) return cannot;
    for (const KeywordArg& k : args.keywords)
      if (k.value.missing()) return cannot;
    try {
      const Value result = (*script)->call(Value(f), args);
      if (auto global = result_of(**script, result)) return *std::move(global);
      return error(ErrorKind::kType, "{} returns a value of type {}, which kernels do not have", f->name,
                   (*script)->type_name(result));
    } catch (const ScriptError& e) {
      Diagnostic d = e.diagnostic;
      // The innermost call, of those that led here, is the compiler's: it says the same.
      if (!d.notes.empty() && d.notes.back().message.starts_with("in ")) d.notes.pop_back();
      return d;
    } catch (const std::bad_alloc&) {
      return error(ErrorKind::kMemory, "{} needs more memory than there is", f->name);
    }
  };
}

}  // namespace

bool is_collection(const Value& v) { return v.get<Dict>() || v.get<Tuple>() || v.get<List>() || v.get<Range>(); }

std::optional<frontend::Global> collected(Interp& in, const Value& v, const ToGlobal& convert,
                                          std::vector<std::string> fields) {
  auto out = std::make_shared<frontend::GlobalTuple>();
  out->fields = std::move(fields);
  auto add = [&](std::vector<frontend::Global>& to, const Value& item) {
    auto global = convert(item);
    if (!global) return false;
    to.push_back(*std::move(global));
    return true;
  };
  if (auto* dict = v.get<Dict>()) {
    out->is_dict = true;
    for (const Table::Entry& e : dict->table.live())
      if (!add(out->keys, e.key) || !add(out->items, e.value)) return std::nullopt;
  } else {
    for (const Value& item : in.to_vector(v))
      if (!add(out->items, item)) return std::nullopt;
  }
  return frontend::Global(std::shared_ptr<const frontend::GlobalTuple>(std::move(out)));
}

void give_globals(Interp& in, Ref<Function> f, frontend::JitFunction& jit) {
  if (jit.constexpr_function) jit.interpret = run_by_script(in, f);
  const Lookup names(in, std::move(f), jit.constexpr_function);
  jit.lookup = names;
  jit.hidden = [names](std::string_view name) { return names.hidden(name); };
  jit.watch = [names](std::string_view name) { return names.watch(name); };
  jit.member = [interp = in.self()](std::string_view path, std::string_view name) {
    return member_of(interp, path, name);
  };
}

void make_aggregate(Interp& in, TypeObject& type) {
  const std::shared_ptr<frontend::AggregateClass> of = frontend::aggregate_of(*type.def);
  auto constructor = std::make_shared<frontend::JitFunction>();
  for (const Table::Entry& e : type.members.live()) {
    const auto* name = e.key.get<Str>();
    auto* wrapped = e.value.get<StaticMethod>();
    const Value& value = wrapped ? wrapped->function : e.value;
    auto* kernel = innermost_kernel(value);
    auto* plain = value.get<Function>();
    if (!name || (!kernel && (!plain || !plain->def))) continue;
    auto f = std::make_shared<frontend::JitFunction>();
    if (kernel)
      *f = *kernel->kernel_function;
    else
      f->module = plain->program->module, f->def = plain->def;
    frontend::make_member(*f, *of, kernel && !f->constexpr_function);
    if (!kernel) give_globals(in, Ref<Function>(plain), *f);
    if (name->text == "__init__") *constructor = *f;
    of->members.insert_or_assign(name->text, frontend::AggregateClass::Member{std::move(f), wrapped != nullptr});
  }
  if (!constructor->def) *constructor = in.take(frontend::implicit_constructor(*of, *type.def));
  frontend::make_constructor(*constructor, of);
  type.members.set(kAggregate, make<Aggregate>(std::move(constructor)));
}

}  // namespace kiln::script
