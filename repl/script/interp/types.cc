// The types of the language, their methods' lookup, exceptions, and what the interpreter starts with.
#include <algorithm>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

namespace {

struct ExceptionRow {
  std::string_view name, base;
  std::optional<ErrorKind> kind;
};
/// Bases before those that derive from them. Without a kind of its own an exception is reported as its base is.
constexpr ExceptionRow kExceptions[] = {
    {"BaseException", "", ErrorKind::kValue},
    {"Exception", "BaseException", std::nullopt},
    {"KeyboardInterrupt", "BaseException", ErrorKind::kInterrupted},
    {"SystemExit", "BaseException", std::nullopt},
    {"ArithmeticError", "Exception", std::nullopt},
    {"ZeroDivisionError", "ArithmeticError", std::nullopt},
    {"OverflowError", "ArithmeticError", std::nullopt},
    {"AssertionError", "Exception", ErrorKind::kMismatch},
    {"AttributeError", "Exception", ErrorKind::kName},
    {"ImportError", "Exception", ErrorKind::kName},
    {"ModuleNotFoundError", "ImportError", std::nullopt},
    {"LookupError", "Exception", std::nullopt},
    {"IndexError", "LookupError", std::nullopt},
    {"KeyError", "LookupError", std::nullopt},
    {"MemoryError", "Exception", ErrorKind::kMemory},
    {"NameError", "Exception", ErrorKind::kName},
    {"OSError", "Exception", ErrorKind::kIo},
    {"FileNotFoundError", "OSError", std::nullopt},
    {"RuntimeError", "Exception", ErrorKind::kLaunch},
    {"NotImplementedError", "RuntimeError", ErrorKind::kUnsupported},
    {"RecursionError", "RuntimeError", ErrorKind::kValue},
    {"StopIteration", "Exception", std::nullopt},
    {"SyntaxError", "Exception", ErrorKind::kSyntax},
    {"SystemError", "Exception", ErrorKind::kInternal},
    {"TypeError", "Exception", ErrorKind::kType},
    {"ValueError", "Exception", std::nullopt},
    {"Warning", "Exception", std::nullopt},
    {"UserWarning", "Warning", std::nullopt},
};

size_t& state_count() {
  static size_t count = 0;  // grows before main() only
  return count;
}

}  // namespace

size_t register_state() { return state_count()++; }

Interp::Interp(std::unique_ptr<Host> host) : states_(state_count()), host_(std::move(host)) {
  self_ = std::make_shared<Interp*>(this);
  methods_.resize(count_kinds());
  make_types();
  for (const ExceptionRow& r : kExceptions) add_builtin(r.name, add_exception(std::string(r.name), r.base, r.kind));
  install_builtins(*this);
}

Interp::~Interp() {
  // Values may hold functions that hold programs: let go of the variables first.
  for (auto& slot : globals_.slots()) slot.value = slot.builtin = Value();
}

void Interp::make_types() {
  for (size_t k = 0; k < count_kinds(); ++k) {
    auto type = make<TypeObject>(std::string(kind_name(static_cast<Kind>(k))));
    type->of_kind = static_cast<Kind>(k);
    types_.push_back(type);
  }
}

Ref<TypeObject> Interp::add_exception(std::string name, std::string_view base, std::optional<ErrorKind> kind) {
  auto type = make<TypeObject>(name);
  if (!base.empty()) {
    Ref<TypeObject> parent = exception_type(base);
    type->bases.push_back(parent);
    type->error = parent->error;
  }
  if (kind) type->error = kind;
  exceptions_[std::move(name)] = type;
  return type;
}

Ref<TypeObject> Interp::exception_type(std::string_view name) const {
  auto it = exceptions_.find(std::string(name));
  KILN_ASSERT(it != exceptions_.end(), "no exception {}", name);
  return it->second;
}

Ref<TypeObject> Interp::type_of(const Value& v) const {
  if (auto* i = v.get<Instance>()) return i->type;
  return types_[static_cast<size_t>(v.kind())];
}

std::string Interp::type_name(const Value& v) const { return v.missing() ? "unset" : type_of(v)->name; }

bool Interp::is_instance(const Value& v, const Value& type) {
  if (auto* t = type.get<Tuple>())
    return std::any_of(t->items.begin(), t->items.end(), [&](const Value& one) { return is_instance(v, one); });
  auto* t = type.get<TypeObject>();
  if (!t) fail(ErrorKind::kType, "expected a type or a tuple of types, got '{}'", type_name(type));
  if (auto* i = v.get<Instance>())
    return i->type->derives_from(t) || t == types_[static_cast<size_t>(Kind::kInstance)].get();
  if (!t->of_kind) return false;
  if (*t->of_kind == Kind::kInstance) return true;  // object
  return *t->of_kind == v.kind() || (*t->of_kind == Kind::kInt && v.is_bool());
}

void Interp::add_methods(const MethodTable& table) {
  auto& methods = methods_[static_cast<size_t>(table.kind)];
  for (const NativeDef& d : table.methods) {
    auto native = make<Native>(d, table.kind);
    methods.emplace(native->name, native);
  }
}

Native* Interp::method(Kind kind, std::string_view name) const {
  const auto& methods = methods_[static_cast<size_t>(kind)];
  if (methods.empty()) return nullptr;
  auto it = methods.find(std::string(name));
  return it == methods.end() ? nullptr : it->second.get();
}

void Interp::method_names(Kind kind, std::vector<std::string>& out) const {
  for (const auto& [name, native] : methods_[static_cast<size_t>(kind)]) out.push_back(name);
}

void Interp::add_builtins(std::span<const NativeDef> defs) {
  for (const NativeDef& d : defs) {
    auto native = make<Native>(d);
    add_builtin(native->name, native);
  }
}

Ref<ModuleObject> Interp::import_module(std::string_view path) {
  auto it = modules_.find(std::string(path));
  if (it != modules_.end()) return it->second;
  Ref<ModuleObject> module = find_module_ ? find_module_(path) : Ref<ModuleObject>();
  const ModuleDef* def = nullptr;
  for (auto table : module_tables_)
    for (const ModuleDef& d : table)
      if (d.path == path) def = &d;
  if (!module && !def) return {};
  if (!module) module = make<ModuleObject>(std::string(path));
  // Known before it is filled: what fills it imports its submodules, and those look for their parent.
  modules_.emplace(path, module);
  if (def) def->fill(*this, *module);
  // `import a.b` also makes b an attribute of a.
  if (size_t dot = path.rfind('.'); dot != std::string_view::npos)
    if (Ref<ModuleObject> parent = import_module(path.substr(0, dot)))
      parent->members.set(path.substr(dot + 1), module);
  return module;
}

}  // namespace kiln::script
