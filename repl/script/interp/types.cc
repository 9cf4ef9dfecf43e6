// The types of the language, their methods' lookup, exceptions, and what the interpreter starts with.
#include <algorithm>

#include "repl/script/builtins/builtins.h"
#include "repl/script/interp/interp.h"
#include "repl/script/value/classes.h"

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
    {"GeneratorExit", "BaseException", std::nullopt},
    {"ArithmeticError", "Exception", std::nullopt},
    {"ZeroDivisionError", "ArithmeticError", std::nullopt},
    {"OverflowError", "ArithmeticError", std::nullopt},
    {"FloatingPointError", "ArithmeticError", std::nullopt},
    {"AssertionError", "Exception", ErrorKind::kMismatch},
    {"AttributeError", "Exception", ErrorKind::kName},
    {"ImportError", "Exception", ErrorKind::kName},
    {"ModuleNotFoundError", "ImportError", std::nullopt},
    {"LookupError", "Exception", std::nullopt},
    {"IndexError", "LookupError", std::nullopt},
    {"KeyError", "LookupError", std::nullopt},
    {"MemoryError", "Exception", ErrorKind::kMemory},
    {"NameError", "Exception", ErrorKind::kName},
    {"UnboundLocalError", "NameError", std::nullopt},
    {"BufferError", "Exception", std::nullopt},
    {"EOFError", "Exception", std::nullopt},
    {"OSError", "Exception", ErrorKind::kIo},
    {"FileNotFoundError", "OSError", std::nullopt},
    {"FileExistsError", "OSError", std::nullopt},
    {"IsADirectoryError", "OSError", std::nullopt},
    {"NotADirectoryError", "OSError", std::nullopt},
    {"PermissionError", "OSError", std::nullopt},
    {"TimeoutError", "OSError", std::nullopt},
    {"BlockingIOError", "OSError", std::nullopt},
    {"ChildProcessError", "OSError", std::nullopt},
    {"InterruptedError", "OSError", std::nullopt},
    {"ProcessLookupError", "OSError", std::nullopt},
    {"ConnectionError", "OSError", std::nullopt},
    {"BrokenPipeError", "ConnectionError", std::nullopt},
    {"ConnectionAbortedError", "ConnectionError", std::nullopt},
    {"ConnectionRefusedError", "ConnectionError", std::nullopt},
    {"ConnectionResetError", "ConnectionError", std::nullopt},
    {"RuntimeError", "Exception", ErrorKind::kLaunch},
    {"NotImplementedError", "RuntimeError", ErrorKind::kUnsupported},
    {"RecursionError", "RuntimeError", ErrorKind::kValue},
    {"StopIteration", "Exception", std::nullopt},
    {"ReferenceError", "Exception", std::nullopt},
    {"SyntaxError", "Exception", ErrorKind::kSyntax},
    {"IndentationError", "SyntaxError", std::nullopt},
    {"TabError", "IndentationError", std::nullopt},
    {"SystemError", "Exception", ErrorKind::kInternal},
    {"TypeError", "Exception", ErrorKind::kType},
    {"ValueError", "Exception", std::nullopt},
    {"UnicodeError", "ValueError", std::nullopt},
    {"UnicodeDecodeError", "UnicodeError", std::nullopt},
    {"UnicodeEncodeError", "UnicodeError", std::nullopt},
    {"Warning", "Exception", std::nullopt},
    {"UserWarning", "Warning", std::nullopt},
    {"DeprecationWarning", "Warning", std::nullopt},
    {"PendingDeprecationWarning", "Warning", std::nullopt},
    {"FutureWarning", "Warning", std::nullopt},
    {"ImportWarning", "Warning", std::nullopt},
    {"ResourceWarning", "Warning", std::nullopt},
    {"RuntimeWarning", "Warning", std::nullopt},
    {"SyntaxWarning", "Warning", std::nullopt},
    {"UnicodeWarning", "Warning", std::nullopt},
    {"BytesWarning", "Warning", std::nullopt},
    {"EncodingWarning", "Warning", std::nullopt},
};

class NotImplementedObject : public Opaque {
 public:
  NotImplementedObject() : Opaque("NotImplemented") {}
  std::string repr(Interp&) override { return name; }
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
  add_builtin("IOError", exception_type("OSError"));
  add_builtin("EnvironmentError", exception_type("OSError"));
  not_implemented_ = make<NotImplementedObject>();
  add_builtin("NotImplemented", not_implemented_);
  ellipsis_ = make<EllipsisObject>();
  add_builtin("Ellipsis", ellipsis_);
  install_builtins(*this);
}

Interp::~Interp() {
  // Values may hold functions that hold programs: let go of the variables first.
  // Generators among them run their `finally` blocks, which need the builtins.
  auto each = [&](auto&& visit) {
    for (auto& slot : globals_.slots()) visit(slot);
    for (auto& globals : module_globals_)
      for (auto& slot : globals->slots()) visit(slot);
  };
  each([](Globals::Slot& slot) { slot.value = Value(); });
  each([](Globals::Slot& slot) { slot.builtin = Value(); });
  self_.reset();
}

void Interp::make_types() {
  for (size_t k = 0; k < count_kinds(); ++k) {
    auto type = make<TypeObject>(std::string(kind_name(static_cast<Kind>(k))));
    type->of_kind = static_cast<Kind>(k);
    types_.push_back(type);
  }
  // The one type of the language that derives from another.
  const Ref<TypeObject>&boolean = type_of(Kind::kBool), &integer = type_of(Kind::kInt);
  boolean->bases.push_back(integer);
  boolean->order.push_back(integer.get());
  generator_type_ = make<TypeObject>("generator");
  generator_type_->of_kind = Kind::kIterator;
}

Ref<TypeObject> Interp::add_exception(std::string name, std::string_view base, std::optional<ErrorKind> kind) {
  auto type = make<TypeObject>(name);
  if (!base.empty()) {
    Ref<TypeObject> parent = exception_type(base);
    type->bases.push_back(parent);
    type->order.push_back(parent.get());
    type->order.insert(type->order.end(), parent->order.begin(), parent->order.end());
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
  if (auto* o = v.object()) {
    if (auto* own = o->own_type()) return *own;
    if (auto* it = v.get<IteratorObject>(); it && it->is_generator()) return generator_type_;
    if (auto* t = v.get<Tuple>(); t && !t->class_name.empty())
      if (auto it = tuple_types_.find(t->class_name); it != tuple_types_.end()) return it->second;
  }
  return types_[static_cast<size_t>(v.kind())];
}

std::string Interp::type_name(const Value& v) const { return v.missing() ? "unset" : type_of(v)->name; }

bool Interp::is_instance(const Value& v, const Value& type) {
  check_stack();  // of tuples in tuples
  if (auto* t = type.get<Tuple>())
    return std::any_of(t->items.begin(), t->items.end(), [&](const Value& one) { return is_instance(v, one); });
  auto* t = type.get<TypeObject>();
  if (!t) fail(ErrorKind::kType, "expected a type or a tuple of types, got '{}'", type_name(type));
  if (Value* test = t->of_kind ? nullptr : t->find("__class_instancecheck__"))
    return truth(call(bound(*this, Value(*test), nullptr, Ref<TypeObject>(t)), {v}));
  if (auto* own = v.object() ? v.object()->own_type() : nullptr)
    return (*own)->derives_from(t) || t == types_[static_cast<size_t>(Kind::kInstance)].get();
  if (!t->of_kind) return v.kind() == Kind::kTuple && type_of(v)->derives_from(t);  // torch.Size
  if (t == generator_type_.get()) return v.get<IteratorObject>() && v.get<IteratorObject>()->is_generator();
  if (*t->of_kind == Kind::kInstance) return true;  // object
  return *t->of_kind == v.kind() || (*t->of_kind == Kind::kInt && v.is_bool());
}

Ref<TypeObject> Interp::add_tuple_type(std::string_view class_name, Value constructor) {
  auto type = make<TypeObject>(std::string(class_name));
  type->bases.push_back(type_of(Kind::kTuple));
  type->order.push_back(type_of(Kind::kTuple).get());
  type->constructor = std::move(constructor);
  return tuple_types_[class_name] = type;
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
  auto it = methods.find(name);
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

}  // namespace kiln::script
