// Attributes and methods: of tensors, types, modules, tuples and constants.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/frontend/aggregate.h"
#include "compiler/frontend/codegen.h"

namespace kiln::frontend {

using ir::Type;

namespace {

/// What is written in place of a function that torch and NumPy have and the language has not; empty: not known.
std::string_view other_way(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kWays[] = {
      {"mean", "help: write tl.sum(x, axis) / n"},
      {"var", "help: write tl.sum((x - mean) * (x - mean), axis) / n"},
      {"size", "help: x.shape has the sizes"},
      {"matmul", "help: a matrix product is tl.dot(a, b)"},
      {"concatenate", "help: tl.join and tl.cat put two tensors together"},
      {"stack", "help: tl.join puts two tensors together"},
      {"astype", "help: write x.to(dtype)"},
      {"half", "help: write x.to(tl.float16)"},
      {"float", "help: write x.to(tl.float32)"},
      {"double", "help: write x.to(tl.float64)"},
      {"bfloat16", "help: write x.to(tl.bfloat16)"},
      {"int", "help: write x.to(tl.int32)"},
      {"long", "help: write x.to(tl.int64)"},
      {"bool", "help: write x != 0"},
      {"unsqueeze", "help: write x[:, None] or tl.expand_dims(x, axis)"},
      {"squeeze", "help: write tl.reshape(x, shape)"},
      {"transpose", "help: write tl.trans(x) or tl.permute(x, dims)"},
      {"pow", "help: write x * x, or use libdevice.pow(x, y) on float32"},
      {"relu", "help: write tl.maximum(x, 0)"},
      {"ones", "help: write tl.full(shape, 1, dtype)"},
      {"empty", "help: write tl.zeros(shape, dtype)"},
  };
  for (const auto& [known, way] : kWays)
    if (known == name) return way;
  return {};
}

Value method(std::string name, const Builtin* builtin, FunctionPtr function, Arg self) {
  return Value(
      std::make_shared<const MethodValue>(MethodValue{std::move(name), builtin, std::move(function), std::move(self)}));
}

/// A predicate of a type, called with no arguments: `x.dtype.is_fp16()`.
struct Predicate {
  std::string_view name;
  bool (*holds)(const Type& t);
};
constexpr Predicate kPredicates[] = {
    {"is_floating", [](const Type& t) { return t.is_float(); }},
    {"is_standard_floating", [](const Type& t) { return t.is_float() && !is_fp8(t.dtype); }},
    {"is_fp8", [](const Type& t) { return t.is_float() && is_fp8(t.dtype); }},
    {"is_fp8e4nv", [](const Type& t) { return t.is_float() && t.dtype == DType::kF8E4M3; }},
    {"is_fp8e5", [](const Type& t) { return t.is_float() && t.dtype == DType::kF8E5M2; }},
    {"is_fp8e4b15", [](const Type& t) { return t.is_float() && t.dtype == DType::kF8E4B15; }},
    {"is_fp8e4b8", [](const Type&) { return false; }},
    {"is_fp8e5b16", [](const Type&) { return false; }},
    {"is_fp16", [](const Type& t) { return t.is_float() && t.dtype == DType::kF16; }},
    {"is_bf16", [](const Type& t) { return t.is_float() && t.dtype == DType::kBF16; }},
    {"is_fp32", [](const Type& t) { return t.is_float() && t.dtype == DType::kF32; }},
    {"is_fp64", [](const Type& t) { return t.is_float() && t.dtype == DType::kF64; }},
    {"is_int", [](const Type& t) { return t.is_int(); }},
    {"is_int_signed", [](const Type& t) { return t.is_int() && is_signed(t.dtype); }},
    {"is_int_unsigned", [](const Type& t) { return t.is_int() && !is_signed(t.dtype); }},
    {"is_bool", [](const Type& t) { return t.is_bool(); }},
    {"is_int1", [](const Type& t) { return t.is_bool(); }},
    {"is_int8", [](const Type& t) { return t.is_int() && t.dtype == DType::kI8; }},
    {"is_int16", [](const Type& t) { return t.is_int() && t.dtype == DType::kI16; }},
    {"is_int32", [](const Type& t) { return t.is_int() && t.dtype == DType::kI32; }},
    {"is_int64", [](const Type& t) { return t.is_int() && t.dtype == DType::kI64; }},
    {"is_uint8", [](const Type& t) { return t.is_int() && t.dtype == DType::kU8; }},
    {"is_uint16", [](const Type& t) { return t.is_int() && t.dtype == DType::kU16; }},
    {"is_uint32", [](const Type& t) { return t.is_int() && t.dtype == DType::kU32; }},
    {"is_uint64", [](const Type& t) { return t.is_int() && t.dtype == DType::kU64; }},
    {"is_ptr", [](const Type& t) { return t.pointer; }},
    {"is_block", [](const Type& t) { return t.is_tile(); }},
    {"is_const", [](const Type&) { return false; }},
    {"is_void", [](const Type&) { return false; }},
};
constexpr std::string_view kTypeFields[] = {
    "element_ty",        "scalar", "shape", "primitive_bitwidth", "int_bitwidth", "itemsize",
    "fp_mantissa_width", "name",   "numel", "get_block_shapes"};
constexpr std::string_view kTensorFields[] = {"dtype", "shape", "type", "T", "numel"};

Value shape_value(const ir::Shape& shape) {
  std::vector<Value> dims;
  for (int32_t d : shape.span()) dims.push_back(Value::integer(d));
  return Value::tuple(std::move(dims));
}

int mantissa_width(DType t) {
  switch (t) {
    case DType::kF8E4M3:
    case DType::kF8E4B15:
      return 3;
    case DType::kF8E5M2:
      return 2;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    case DType::kF32:
      return 23;
    case DType::kF64:
      return 52;
    case DType::kI1:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return 0;
  }
  return 0;
}

}  // namespace

Result<Value> Codegen::type_attribute(const Type& t, std::string_view name, SourceRange range, SourceRange name_range) {
  for (const Predicate& p : kPredicates)
    if (p.name == name) return method(std::string(name), nullptr, nullptr, {Value::boolean(p.holds(t)), range});
  if (name == "element_ty") {
    if (t.is_tile()) return Value(TypeValue{t.scalar()});
    if (t.pointer) return Value(TypeValue{ir::scalar_type(t.dtype)});
    return with_note(
        fail(name_range, ErrorKind::kType, "{} has no element_ty; only pointers and tensors have one", describe(t)),
        "help: a dtype is already its own element type");
  }
  if (name == "scalar") return Value(TypeValue{t.scalar()});
  if (name == "shape") return shape_value(t.shape);
  if (name == "get_block_shapes" && t.is_tile())
    return method(std::string(name), nullptr, nullptr, {shape_value(t.shape), range});
  if (name == "numel") return Value::integer(t.shape.numel());
  if (name == "primitive_bitwidth") return Value::integer(t.element_bits());
  if (name == "int_bitwidth" && t.is_int()) return Value::integer(bits(t.dtype));
  if (name == "itemsize") return Value::integer(t.pointer ? 8 : size_of(t.dtype));
  if (name == "fp_mantissa_width" && t.is_float()) return Value::integer(mantissa_width(t.dtype));
  if (name == "name") return Value::text(describe(t));
  std::vector<std::string> names(std::begin(kTypeFields), std::end(kTypeFields));
  for (const Predicate& p : kPredicates) names.emplace_back(p.name);
  Diagnostic d = fail(name_range, ErrorKind::kName, "the type {} has no attribute {}", describe(t), name);
  std::string near = nearest_name(name, names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean {}?", near));
}

Result<Value> Codegen::tensor_attribute(const Arg& base, std::string_view name, SourceRange range,
                                        SourceRange name_range) {
  // A number that was specialised into a constexpr (an argument of 1) still has a tensor's attributes.
  if (!base.value.tensor() && name == "value") return base.value;
  std::optional<DType> natural = base.value.tensor() ? std::nullopt : natural_dtype(*base.value.constant());
  if (!base.value.tensor() && !natural)
    return fail(range, ErrorKind::kValue, "{} does not fit in 64 bits", to_text(base.value));
  Type t = natural ? ir::scalar_type(*natural) : base.value.tensor()->type;
  if (name == "dtype") return Value(TypeValue{t.scalar()});
  if (name == "type") return Value(TypeValue{t});
  if (name == "shape") return shape_value(t.shape);
  if (name == "numel") return Value::integer(t.shape.numel());
  if (name == "T") return call(Value(find_builtin("trans", kInLanguage)), {base}, {}, range, range);
  if (const Builtin* row = find_builtin(name, kIsMethod)) {
    bool library = row->in_library();
    return method(std::string(name), library ? nullptr : row, library ? library_function(*row) : nullptr, base);
  }
  std::vector<std::string> names = builtin_names(kIsMethod);
  names.insert(names.end(), std::begin(kTensorFields), std::end(kTensorFields));
  Diagnostic d = fail(name_range, ErrorKind::kName, "a tensor has no attribute {}, got {}", name, describe(base.value));
  if (t.pointer && (name == "size" || name == "stride" || name == "strides"))
    return with_note(std::move(d), kOnlyPointer);
  if (auto way = other_way(name); !way.empty()) return with_note(std::move(d), std::string(way));
  if (const Builtin* row = find_builtin(name, kInLanguage | kInMath | kInLibdevice))
    return with_note(std::move(d), fmt::format("help: it is a function, {}", row->display_name()));
  std::string near = nearest_name(name, names);
  if (!near.empty()) return with_note(std::move(d), fmt::format("help: did you mean {}?", near));
  return d;
}

Result<Value> Codegen::descriptor_attribute(const Value& base, const DescriptorValue& descriptor, std::string_view name,
                                            SourceRange range, SourceRange name_range) {
  const Type& type = descriptor.type;
  if (name == "dtype") return Value(TypeValue{ir::scalar_type(type.dtype)});
  if (name == "block_shape") return shape_value(type.shape);
  if (name == "shape") return Value::tuple(descriptor.shape());
  if (name == "strides") return Value::tuple(descriptor.strides());
  if (const Builtin* row = find_builtin(name, kOfDescriptor))
    return method(std::string(name), row, nullptr, {base, range});
  std::vector<std::string> names = builtin_names(kOfDescriptor);
  names.insert(names.end(), {"dtype", "block_shape", "shape", "strides"});
  Diagnostic d = fail(name_range, ErrorKind::kName, "a tensor descriptor has no attribute {}", name);
  std::string near = nearest_name(name, names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean {}?", near));
}

Result<Value> Codegen::block_pointer_attribute(const Value& base, std::string_view name, SourceRange range,
                                               SourceRange name_range) {
  const BlockPointerValue& pointer = *base.block_pointer();
  if (name == "dtype" || name == "type") return Value(TypeValue{pointer.base()->type});
  if (name == "block_shape") return shape_value(pointer.block);
  if (const Builtin* row = find_builtin(name, kOfBlockPointer))
    return method(std::string(name), row, nullptr, {base, range});
  return with_note(fail(name_range, ErrorKind::kName, "a block pointer has no attribute {}", name),
                   "help: tl.load and tl.store read and write its block, tl.advance moves it");
}

namespace {

/// What a name under tl.constexpr may hold as a value.
bool is_constexpr_value(const Value& v) {
  const TupleValue* t = v.as_tuple();
  return v.constant() || v.type() || v.function() || v.builtin() ||
         (t && std::all_of(t->items.begin(), t->items.end(), is_constexpr_value));
}

}  // namespace

Result<Value> Codegen::attribute(const Arg& of, std::string_view name, SourceRange range, SourceRange name_range) {
  const Value& base = of.value;
  if (const TupleValue* t = base.as_tuple())
    for (size_t i = 0; i < t->fields.size(); ++i)
      if (t->fields[i] == name) return t->items[i];
  if (std::optional<Value> member = member_of(of, name)) return *std::move(member);
  if (name == "type" && is_constexpr_value(base)) return Value::type_of_constexpr(base);
  if (base.tensor() || base.is_number()) return tensor_attribute(of, name, range, name_range);
  // What a constexpr holds: dtypes, strings, None, functions and tuples, as much as numbers.
  if (name == "value" && (base.constant() || base.type() || base.function() || base.builtin() || base.as_tuple()))
    return base;
  if (const ModulePath* m = base.module()) {
    if (std::optional<Value> member = module_member(m->path, name)) return *std::move(member);
    if (const JitFunction& f = *frame().function; f.member)
      if (std::optional<Global> g = f.member(m->path, name)) return from_global(*g);
    if (std::optional<Value> v = host_attribute(of, name)) return *std::move(v);
    // torch.float16, torch.exp: the kernel's own are in tl.
    if (!is_known_module(m->path))
      if (std::optional<Value> ours = module_member("triton.language", name))
        return with_note(fail(range, ErrorKind::kName, "the module {} cannot be used in a kernel", m->path),
                         fmt::format("help: in kernels it is tl.{}", name));
    constexpr std::string_view kOfTriton = "triton.language.extra.";
    if (!is_known_module(m->path))
      return with_note(
          fail(range, ErrorKind::kName, "the module {} cannot be used in a kernel", m->path),
          m->path.starts_with(kOfTriton)
              ? "help: it belongs to another vendor's GPUs; triton.language.extra.libdevice has such functions for "
                "every GPU"
              : "help: kernels see triton, triton.language and its submodules, the constants of math, and what is "
                "under @triton.jit or tl.constexpr in modules of your own");
    Diagnostic d = fail(name_range, ErrorKind::kName, "{} has no member {}", m->path, name);
    if (auto way = other_way(name); !way.empty()) return with_note(std::move(d), std::string(way));
    if (const Builtin* row = find_builtin(name, kInLanguage | kInMath | kInLibdevice))
      return with_note(std::move(d), fmt::format("help: did you mean {}?", row->display_name()));
    std::string near = nearest_name(name, member_names(m->path));
    if (!near.empty()) return with_note(std::move(d), fmt::format("help: did you mean {}?", near));
    return d;
  }
  if (const ConstexprTypeValue* t = base.constexpr_type(); t && name == "value") return t->value;
  if (const DescriptorValue* d = base.descriptor()) return descriptor_attribute(base, *d, name, range, name_range);
  if (base.block_pointer()) return block_pointer_attribute(base, name, range, name_range);
  if (const TypeValue* t = base.type()) return type_attribute(t->type, name, range, name_range);
  if (std::optional<Value> v = host_attribute(of, name)) return *std::move(v);
  Diagnostic d = fail(name_range, ErrorKind::kName, "{} has no attribute {}", describe(base), name);
  if (const AggregateValue* a = base.aggregate()) {
    std::vector<std::string> names;
    for (const AggregateClass::Field& f : a->of->fields) names.push_back(f.name);
    for (const auto& [member, function] : a->of->members) names.push_back(member);
    if (std::string near = nearest_name(name, names); !near.empty())
      return with_note(std::move(d), fmt::format("help: did you mean {}?", near));
  }
  return d;
}

}  // namespace kiln::frontend
