#include "repl/modules/torch/torch_complex.h"

#include "repl/modules/torch/tensor_object.h"
#include "repl/script/value/complex.h"

namespace kiln::script {

namespace {

constexpr int kMostNesting = 64;  // of lists of numbers

/// A complex tensor, dtype or number, or a list or tuple with one.
bool is_complex(Interp& in, const Value& v, int depth = 0) {
  auto* o = v.object();
  if (!o || v.get<TensorObject>()) return false;
  if (v.get<ComplexNumber>()) return true;
  if (auto* instance = v.get<Instance>())
    return instance->type->derives_from(in.type_of(TensorObject::kKind).get()) ||
           instance->type->derives_from(in.type_of(Kind::kDType).get());
  const std::vector<Value>* items = nullptr;
  if (auto* list = v.get<List>()) items = &list->items;
  if (auto* tuple = v.get<Tuple>()) items = &tuple->items;
  return items && depth < kMostNesting &&
         std::ranges::any_of(*items, [&](const Value& item) { return is_complex(in, item, depth + 1); });
}

/// derive(class, base): objects of the class are objects of a type of torch's too.
Value derive(Interp& in, NativeArgs& a) {
  auto *made = a[0].get<TypeObject>(), *base = a[1].get<TypeObject>();
  if (!made || !base) in.fail(ErrorKind::kType, "derive() takes two types");
  made->bases.emplace_back(base);
  made->order.push_back(base);
  return a[0];
}

Value complex_text(Interp& in, NativeArgs& a) {
  return Value::str(
      tensor_text(in, seen_tensor(in, a[0], "the real part"), &seen_tensor(in, a[1], "the imaginary part")));
}

constexpr NativeDef kFunctions[] = {
    {"complex_text(real, imag)", complex_text, "torch's text of a complex tensor"},
    {"derive(made, base)", derive, "objects of a class are objects of a type of torch's too"},
};

}  // namespace

std::optional<Value> of_complex(Interp& in, std::string_view name, const Value* self, CallArgs& args) {
  const bool any = std::ranges::any_of(args.args, [&](const Value& v) { return is_complex(in, v); }) ||
                   std::ranges::any_of(args.keywords, [&](const KeywordArg& k) { return is_complex(in, k.value); });
  if (!any) return std::nullopt;
  const std::optional<Value> function = in.import_module("torch._complex")->attribute(in, name);
  if (!function || name.starts_with('_'))
    in.fail(ErrorKind::kUnsupported, "{}() of complex tensors is not supported", name);
  if (!self) return in.call(*function, args);
  CallArgs all;
  all.args.push_back(*self);
  for (Value& v : args.args) all.args.push_back(std::move(v));
  for (KeywordArg& k : args.keywords) all.keywords.push_back(std::move(k));
  return in.call(*function, all);
}

namespace {
std::optional<Value> complex_operation(Interp& in, std::string_view name, const Value& a, const Value& b) {
  CallArgs args;
  args.args.push_back(a);
  args.args.push_back(b);
  return of_complex(in, name, nullptr, args);
}
}  // namespace

std::optional<Value> complex_binary(Interp& in, ast::BinaryOp op, const Value& a, const Value& b, bool reflected) {
  using enum ast::BinaryOp;
  const std::string_view name = op == kAdd      ? "add"
                                : op == kSub    ? "sub"
                                : op == kMul    ? "mul"
                                : op == kDiv    ? "div"
                                : op == kPow    ? "pow"
                                : op == kMatMul ? "matmul"
                                                : "";
  if (name.empty()) return std::nullopt;
  return reflected ? complex_operation(in, name, b, a) : complex_operation(in, name, a, b);
}

std::optional<Value> complex_compare(Interp& in, ast::CompareOp op, const Value& a, const Value& b) {
  if (op != ast::CompareOp::kEq && op != ast::CompareOp::kNe) return std::nullopt;
  return complex_operation(in, op == ast::CompareOp::kEq ? "eq" : "ne", a, b);
}

void fail_if_complex(Interp& in, const Value& v) {
  if (is_complex(in, v))
    in.fail_as_type("RuntimeError", "a complex result cannot be put into a real tensor in place",
                    "help: x = x + z makes a new tensor");
}

Value unless_complex(Interp& in, const Value& function) {
  const auto wrapped = function.get<TypeObject>() ? std::nullopt : in.find_attribute(function, "__wrapped__");
  if (auto* f = (wrapped ? *wrapped : function).get<Function>()) f->elsewhere = of_complex;
  return function;
}

void add_complex(Interp&, ModuleObject& module) {
  for (const auto& e : module.members.live())
    if (auto* native = e.value.get<Native>()) native->elsewhere = of_complex;
  for (ModuleObject::Text& text : module.texts) text.prepare = unless_complex;
}

void add_complex_methods(Interp& in) {
  std::vector<std::string> names;
  in.method_names(TensorObject::kKind, names);
  for (const std::string& name : names) in.method(TensorObject::kKind, name)->elsewhere = of_complex;
}

std::span<const NativeDef> complex_functions() { return kFunctions; }

}  // namespace kiln::script
