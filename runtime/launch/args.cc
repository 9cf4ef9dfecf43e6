#include "runtime/launch/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/ast/annotation.h"
#include "compiler/frontend/builtins.h"
#include "runtime/device/device.h"
#include "runtime/launch/kernel_launched.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln::runtime {
namespace {

using frontend::JitFunction;

// Tags below kRuntime are constexprs: the value follows in the key and determines the specialisation.
enum Tag : uint8_t {
  kNone,
  kFalse,
  kTrue,
  kInt,
  kUint,
  kDouble,
  kString,
  kDtype,
  kFunction,
  kLanguageFunction,
  kTuple,             // the number of its items and their names follow, then the items
  kRuntime = 0x20,    // + dtype: a scalar by value
  kPointer = 0x40,    // + dtype
  kBlocks = 0x60,     // + dtype: a tensor descriptor; its rank and block follow
  kDivisible = 0x80,  // of kRuntime and kPointer: the value is a multiple of 16; of kBlocks: the bytes of a row are
  // Of integers that are no multiple of 16: a multiple of 8 or of 4. Rows of so many elements may still begin at
  // multiples of 16 bytes, which vector loads, cp.async and TMA need. Triton tells multiples of 16 from others alone.
  kDivisibleBy8 = 0x90,
  kDivisibleBy4 = 0x10,
  kDTypeBits = 0x0f,
};
static_assert(kNumDTypes <= kDTypeBits + 1);

constexpr uint64_t kAlignment = 16;

constexpr uint8_t divisibility_tag(uint64_t v) {
  return v % 16 == 0 ? kDivisible : v % 8 == 0 ? kDivisibleBy8 : v % 4 == 0 ? kDivisibleBy4 : 0;
}

/// What a tag says every value divides by.
constexpr int divisor_of(uint8_t tag) {
  switch (tag & kDivisibleBy8) {
    case kDivisible:
      return 16;
    case kDivisibleBy8:
      return 8;
    case kDivisibleBy4:
      return 4;
  }
  return 1;
}

enum ArgIndex : size_t {
  kArgNone,
  kArgBool,
  kArgInt,
  kArgDouble,
  kArgString,
  kArgDtype,
  kArgTensor,
  kArgKernel,
  kArgUint,
  kArgTensorPointer,
  kArgDescriptor,
  kArgLanguageFunction,
  kArgTuple
};
static_assert(std::variant_size_v<Arg> == kArgTuple + 1);

std::string_view type_text(const Arg& arg) {
  static constexpr std::string_view kNames[] = {"None",
                                                "a bool",
                                                "an int",
                                                "a float",
                                                "a str",
                                                "a dtype",
                                                "a tensor",
                                                "a jit function",
                                                "an int",
                                                "a tensor",
                                                "a tensor descriptor",
                                                "a function of the language",
                                                "a tuple"};
  return kNames[arg.index()];
}

[[gnu::cold]] const Tensor* empty_handle() {
  static const Tensor none;
  return &none;
}

inline const Tensor* tensor_of(const Arg& arg) {
  if (auto* held = std::get_if<Tensor>(&arg)) return held;
  if (auto* pointer = std::get_if<const Tensor*>(&arg)) return *pointer ? *pointer : empty_handle();
  return nullptr;
}

Diagnostic arg_error(std::string_view kernel, const ParamInfo& param, ErrorKind kind, std::string_view problem) {
  return error(kind, "kernel '{}': argument '{}' {}", kernel, param.name, problem);
}

// The specialisation of a scalar without annotation: its tag, and its slot when it has one.
struct Scalar {
  uint8_t tag;
  uint64_t slot;
};

inline Scalar classify_int(bool specialize, int64_t v) {
  // Triton makes a constant of 1, for strides to vanish from addresses.
  if (v == 1 && specialize) return {kInt, 1};
  DType type = v >= INT32_MIN && v <= INT32_MAX ? DType::kI32 : DType::kI64;
  const auto bits = static_cast<uint64_t>(v);
  return {static_cast<uint8_t>((kRuntime + static_cast<uint8_t>(type)) | (specialize ? divisibility_tag(bits) : 0)),
          bits};
}

Scalar classify_uint(bool specialize, uint64_t v) {
  if (v <= INT64_MAX) return classify_int(specialize, static_cast<int64_t>(v));
  return {static_cast<uint8_t>((kRuntime + static_cast<uint8_t>(DType::kU64)) | (specialize ? divisibility_tag(v) : 0)),
          v};
}

// A scalar whose annotation fixes its type: `== 1` is off, divisibility stays (Triton's jit.py).
Result<Scalar> classify_annotated(std::string_view kernel, const ParamInfo& param, const Arg& arg) {
  DType type = *param.annotation;
  auto wrong = [&] {
    return arg_error(kernel, param, ErrorKind::kType,
                     fmt::format("is annotated {} and got {}", name(type), type_text(arg)));
  };
  auto tag = static_cast<uint8_t>(kRuntime + static_cast<uint8_t>(type));
  __int128 integer = 0;
  double real = 0;
  switch (arg.index()) {
    case kArgBool:
      integer = std::get<bool>(arg);
      break;
    case kArgInt:
      integer = std::get<int64_t>(arg);
      break;
    case kArgUint:
      integer = std::get<uint64_t>(arg);
      break;
    case kArgDouble:
      if (is_int(type)) return wrong();
      real = std::get<double>(arg);
      break;
    default:
      return wrong();
  }
  if (is_float(type)) {
    if (arg.index() != kArgDouble) real = static_cast<double>(integer);
    return Scalar{tag, float_to_bits(type, real)};
  }
  // A bool is true for any other number than 0, as in C; nothing is out of its range.
  if (type == DType::kI1) return Scalar{tag, integer != 0};
  int value_bits = bits(type) - (is_signed(type) ? 1 : 0);
  __int128 most = (static_cast<__int128>(1) << value_bits) - 1, least = is_signed(type) ? -most - 1 : 0;
  if (integer < least || integer > most)
    return arg_error(kernel, param, ErrorKind::kValue,
                     fmt::format("is annotated {}, which {} does not fit", name(type), ast::to_string(integer)));
  const auto low = static_cast<uint64_t>(integer);
  return Scalar{static_cast<uint8_t>(tag | (param.specialize ? divisibility_tag(low) : 0)), low};
}

// --- one walk over the arguments, with two ends: a launch compares with the key of the launch before (KeySteps have
// short cuts for the usual kinds), and where that differs the key is built.

/// Builds the key; an error describes the invalid argument.
class KeyBuilder {
 public:
  KeyBuilder(std::string_view kernel_name, BoundArgs& out) : kernel(kernel_name), out_(out) {}
  bool tag(uint8_t v) { return out_.key.byte(v), true; }
  bool word(uint64_t v) { return out_.key.word(v), true; }
  bool bytes(std::string_view v) { return out_.key.bytes(v.data(), v.size()), true; }
  void slot(uint64_t v) { out_.slot(v); }
  bool tensor(const ParamInfo& param, const Tensor& t) {
    if (!t) return fail(arg_error(kernel, param, ErrorKind::kValue, "is an empty tensor handle"));
    if (t.is_freed()) return fail(arg_error(kernel, param, ErrorKind::kValue, "was freed: free() released its memory"));
    // A tensor without elements is nothing that a kernel reads: as in Triton, it may stand for "none" on any device.
    const bool is_empty = t.numel() == 0;
    if (!out_.first_tensor || (out_.first_tensor->numel() == 0 && !is_empty)) {
      out_.first_tensor = &t;
      first_param_ = &param;
    }
    const DeviceImpl &first = *out_.first_tensor->storage()->device, &device = *t.storage()->device;
    if (&first == &device || is_empty) return true;
    return fail(with_note(
        error(ErrorKind::kDevice, "kernel '{}': '{}' is on {} and '{}' is on {}{}", kernel, first_param_->name,
              first.name(), param.name, device.name(), first.name() == device.name() ? " of another runtime" : ""),
        "help: move one of them with .to(device)"));
  }
  bool fail(Diagnostic d) {
    status = std::move(d);
    return false;
  }

  const std::string_view kernel;
  Status status;

 private:
  BoundArgs& out_;
  const ParamInfo* first_param_ = nullptr;
};

/// Compares with the rest of a key. What it compares never runs past that key's end: up to the first difference, where
/// the walk stops, equal bytes mean arguments of equal kinds.
class KeyMatcher {
 public:
  KeyMatcher(std::string_view key, const Backend* backend, uint64_t* slots)
      : at_(key.data()), backend_(backend), slots_(slots) {}
  bool tag(uint8_t v) { return static_cast<uint8_t>(*at_++) == v; }
  bool word(uint64_t v) {
    uint64_t expected;
    std::memcpy(&expected, at_, sizeof expected);
    at_ += sizeof expected;
    return expected == v;
  }
  bool bytes(std::string_view v) {
    bool equal = std::memcmp(at_, v.data(), v.size()) == 0;
    at_ += v.size();
    return equal;
  }
  void slot(uint64_t v) { *slots_++ = v; }
  bool tensor(const ParamInfo&, const Tensor& t) {
    const Storage* storage = t.storage().get();
    return storage && !storage->is_freed() && &storage->device->backend() == backend_;
  }
  bool fail(const Diagnostic&) { return false; }
  uint64_t* next_slot() const { return slots_; }

  static constexpr std::string_view kernel = {};  // what fails here is found again by KeyBuilder

 private:
  const char* at_;
  const Backend* backend_;
  uint64_t* slots_;
};

const ArgTuple& tuple_of(const Arg& arg) { return *std::get<std::shared_ptr<const ArgTuple>>(arg); }

/// What stands in front of a tuple's items.
template <class Sink>
bool bind_head(const ParamInfo& param, const Arg& arg, Sink& sink) {
  if (!std::get<std::shared_ptr<const ArgTuple>>(arg))
    return sink.fail(arg_error(sink.kernel, param, ErrorKind::kValue, "is an empty tuple handle"));
  const ArgTuple& tuple = tuple_of(arg);
  std::string names;
  for (const std::string& f : tuple.fields) names += f + " ";
  return sink.tag(kTuple) && sink.word(tuple.items.size()) && sink.word(names.size()) && sink.bytes(names);
}

template <class Sink>
bool bind_constexpr(const ParamInfo& param, const Arg& arg, Sink& sink) {
  switch (arg.index()) {
    case kArgNone:
      return sink.tag(kNone);
    case kArgBool:
      return sink.tag(std::get<bool>(arg) ? kTrue : kFalse);
    case kArgInt:
      return sink.tag(kInt) && sink.word(static_cast<uint64_t>(std::get<int64_t>(arg)));
    case kArgUint:
      return sink.tag(kUint) && sink.word(std::get<uint64_t>(arg));
    case kArgDouble:
      return sink.tag(kDouble) && sink.word(std::bit_cast<uint64_t>(std::get<double>(arg)));
    case kArgString: {
      const auto& text = std::get<std::string>(arg);
      return sink.tag(kString) && sink.word(text.size()) && sink.bytes(text);
    }
    case kArgDtype:
      return sink.tag(kDtype) && sink.tag(static_cast<uint8_t>(std::get<DType>(arg)));
    case kArgKernel: {
      const auto& function = std::get<Kernel>(arg);
      if (!function) return sink.fail(arg_error(sink.kernel, param, ErrorKind::kValue, "is an empty kernel handle"));
      // By identity: a function that was defined again is another one. The specialisation keeps its code, not its
      // address.
      return sink.tag(kFunction) && sink.word(reinterpret_cast<uint64_t>(function_of(function).get()));
    }
    case kArgLanguageFunction: {
      const std::string& path = std::get<LanguageFunction>(arg).path;
      return sink.tag(kLanguageFunction) && sink.word(path.size()) && sink.bytes(path);
    }
    case kArgTuple:
      return bind_head(param, arg, sink) && std::ranges::all_of(tuple_of(arg).items, [&](const Arg& item) {
               return bind_constexpr(param, item, sink);
             });
    default:
      return sink.fail(arg_error(sink.kernel, param, ErrorKind::kType,
                                 fmt::format("is a tl.constexpr parameter and got {}", type_text(arg))));
  }
}

// Of a tensor that has a storage.
inline uint64_t address_of(const Tensor& t) {
  uint64_t address = t.storage()->address();
  if (int64_t offset = t.offset()) address += static_cast<uint64_t>(offset * size_of(t.dtype()));
  return address;
}

// As 32 bits: a plain float is an f32 in a kernel, as in Triton.
inline uint64_t float_slot(double v) { return std::bit_cast<uint32_t>(static_cast<float>(v)); }

template <class Sink>
inline bool bind_tensor(const ParamInfo& param, bool specialize, const Tensor& t, Sink& sink) {
  if (!sink.tensor(param, t)) return false;
  const uint64_t address = address_of(t);
  bool aligned = specialize && address % kAlignment == 0;
  sink.slot(address);
  return sink.tag(static_cast<uint8_t>((kPointer + static_cast<uint8_t>(t.dtype())) | (aligned ? kDivisible : 0)));
}

template <class Sink>
inline bool bind_scalar(Scalar scalar, Sink& sink) {
  if (scalar.tag == kInt) return sink.tag(kInt) && sink.word(1);
  sink.slot(scalar.slot);
  return sink.tag(scalar.tag);
}

template <class Sink>
bool bind_descriptor(const ParamInfo& param, bool specialize, const std::shared_ptr<const TensorDescriptor>& descriptor,
                     Sink& sink) {
  if (!descriptor) return sink.fail(arg_error(sink.kernel, param, ErrorKind::kValue, "is an empty tensor descriptor"));
  const TensorDescriptor& d = *descriptor;
  const size_t rank = d.block_shape.size();
  const DType dtype = d.tensor.dtype();
  const bool whole = specialize && d.shape.back() * size_of(dtype) % kTensorMapAlignment == 0;
  if (!sink.tensor(param, d.tensor) ||
      !sink.tag(static_cast<uint8_t>((kBlocks + static_cast<uint8_t>(dtype)) | (whole ? kDivisible : 0))) ||
      !sink.tag(static_cast<uint8_t>(rank)))
    return false;
  for (int32_t size : d.block_shape)
    if (!sink.word(static_cast<uint64_t>(size))) return false;
  sink.slot(d.tensor.address());
  for (int64_t size : d.shape) sink.slot(static_cast<uint64_t>(size));
  // The last stride is 1 (TensorDescriptor::make) and is not passed.
  for (size_t i = 0; i + 1 < rank; ++i) sink.slot(static_cast<uint64_t>(d.strides[i]));
  return true;
}

template <class Sink>
bool bind_argument(const ParamInfo& param, ParamRule rule, const Arg& arg, Sink& sink);

/// What is neither a tensor by pointer nor an int without an annotation.
template <class Sink>
[[gnu::noinline]] bool bind_other(const ParamInfo& param, ParamRule rule, const Arg& arg, Sink& sink) {
  if (rule == ParamRule::kConstexpr) return bind_constexpr(param, arg, sink);
  if (rule == ParamRule::kAnnotated && (tensor_of(arg) || arg.index() == kArgDescriptor))
    return sink.fail(arg_error(sink.kernel, param, ErrorKind::kType,
                               fmt::format("is annotated {} and got {}", name(*param.annotation), type_text(arg))));
  if (arg.index() == kArgDescriptor)
    return bind_descriptor(param, rule == ParamRule::kPlain, std::get<std::shared_ptr<const TensorDescriptor>>(arg),
                           sink);
  if (rule == ParamRule::kAnnotated && arg.index() != kArgNone) {
    auto scalar = classify_annotated(sink.kernel, param, arg);
    return scalar.ok() ? bind_scalar(*scalar, sink) : sink.fail(std::move(scalar.error()));
  }
  switch (arg.index()) {
    case kArgTuple:
      return bind_head(param, arg, sink) && std::ranges::all_of(tuple_of(arg).items, [&](const Arg& item) {
               return bind_argument(param, rule, item, sink);
             });
    case kArgBool:
      return bind_scalar({kRuntime + static_cast<uint8_t>(DType::kI1), std::get<bool>(arg)}, sink);
    case kArgUint:
      return bind_scalar(classify_uint(rule == ParamRule::kPlain, std::get<uint64_t>(arg)), sink);
    case kArgDouble:
      return bind_scalar({kRuntime + static_cast<uint8_t>(DType::kF32), float_slot(std::get<double>(arg))}, sink);
    default:
      return bind_constexpr(param, arg, sink);
  }
}

template <class Sink>
inline bool bind_argument(const ParamInfo& param, ParamRule rule, const Arg& arg, Sink& sink) {
  bool typed_by_value = rule == ParamRule::kPlain || rule == ParamRule::kUnspecialized;
  if (const Tensor* tensor = typed_by_value ? tensor_of(arg) : nullptr)
    return bind_tensor(param, rule == ParamRule::kPlain, *tensor, sink);
  if (auto* integer = std::get_if<int64_t>(&arg)) {
    if (rule == ParamRule::kConstexpr) return sink.tag(kInt) && sink.word(static_cast<uint64_t>(*integer));
    if (typed_by_value) return bind_scalar(classify_int(rule == ParamRule::kPlain, *integer), sink);
  }
  return bind_other(param, rule, arg, sink);
}

ParamRule rule_of(const ParamInfo& param) {
  if (param.is_constexpr) return ParamRule::kConstexpr;
  if (param.annotation) return ParamRule::kAnnotated;
  return param.specialize ? ParamRule::kPlain : ParamRule::kUnspecialized;
}

frontend::Global global_of(const Arg& arg) {
  switch (arg.index()) {
    case kArgNone:
      return ast::Constant(ast::None{});
    case kArgBool:
      return ast::Constant(std::get<bool>(arg));
    case kArgInt:
      return ast::Constant(ast::Int{std::get<int64_t>(arg)});
    case kArgUint:
      return ast::Constant(ast::Int{std::get<uint64_t>(arg)});
    case kArgDouble:
      return ast::Constant(std::get<double>(arg));
    case kArgString:
      return ast::Constant(std::get<std::string>(arg));
    case kArgDtype:
      return std::get<DType>(arg);
    case kArgKernel:
      return function_of(std::get<Kernel>(arg));
    case kArgLanguageFunction:
      return frontend::ModulePath{std::get<LanguageFunction>(arg).path};
    case kArgTuple: {
      auto tuple = std::make_shared<frontend::GlobalTuple>();
      for (const Arg& item : tuple_of(arg).items) tuple->items.push_back(global_of(item));
      tuple->fields = tuple_of(arg).fields;
      return std::shared_ptr<const frontend::GlobalTuple>(std::move(tuple));
    }
    default:
      KILN_UNREACHABLE("a tensor is no constexpr");
  }
}

std::optional<Arg> arg_of(const frontend::Global& value, const MakeKernel& make_kernel) {
  if (auto* type = std::get_if<DType>(&value)) return Arg(*type);
  if (auto* function = std::get_if<std::shared_ptr<const JitFunction>>(&value)) return Arg(make_kernel(*function));
  if (auto* path = std::get_if<frontend::ModulePath>(&value)) {
    const auto found = frontend::resolve_path(path->path);
    return found && found->builtin() ? std::optional<Arg>(LanguageFunction{path->path}) : std::nullopt;
  }
  auto* constant = std::get_if<ast::Constant>(&value);
  if (!constant) return std::nullopt;
  if (std::holds_alternative<ast::None>(*constant)) return Arg(std::monostate{});
  if (auto* v = std::get_if<bool>(constant)) return Arg(*v);
  if (auto* v = std::get_if<double>(constant)) return Arg(*v);
  if (auto* v = std::get_if<std::string>(constant)) return Arg(*v);
  ast::Int v = std::get<ast::Int>(*constant);
  if (v >= INT64_MIN && v <= INT64_MAX) return Arg(static_cast<int64_t>(v));
  if (v >= 0 && v <= UINT64_MAX) return Arg(static_cast<uint64_t>(v));
  return std::nullopt;
}

// The value of a default or an annotation's part: a constant, a global, or a dtype of a known module.
std::optional<frontend::Global> evaluate(const ast::Expr& e, const JitFunction& function) {
  if (auto* c = ast::dyn_as<ast::ConstantExpr>(&e)) return frontend::Global(c->value);
  if (auto* n = ast::dyn_as<ast::Name>(&e)) return function.lookup ? function.lookup(n->id) : std::nullopt;
  if (auto* u = ast::dyn_as<ast::Unary>(&e)) {
    auto operand = evaluate(*u->operand, function);
    auto* c = operand ? std::get_if<ast::Constant>(&*operand) : nullptr;
    if (!c) return std::nullopt;
    auto value = ast::apply(u->op, *c, e.range);
    return value.ok() ? std::optional<frontend::Global>(*value) : std::nullopt;
  }
  if (auto* b = ast::dyn_as<ast::Binary>(&e)) {
    auto left = evaluate(*b->left, function), right = evaluate(*b->right, function);
    auto* l = left ? std::get_if<ast::Constant>(&*left) : nullptr;
    auto* r = right ? std::get_if<ast::Constant>(&*right) : nullptr;
    if (!l || !r) return std::nullopt;
    auto value = ast::apply(b->op, *l, *r, e.range);
    return value.ok() ? std::optional<frontend::Global>(*value) : std::nullopt;
  }
  if (auto* a = ast::dyn_as<ast::Attribute>(&e)) {
    auto base = evaluate(*a->base, function);
    if (base && std::holds_alternative<frontend::ModulePath>(*base)) {
      if (auto type = parse_dtype(a->name)) return frontend::Global(*type);
      return frontend::Global(frontend::ModulePath{std::get<frontend::ModulePath>(*base).path + "." + a->name});
    }
  }
  return std::nullopt;
}

// `n: tl.int64`, `n: "i64"`; Python's own int and float fix nothing.
std::optional<DType> annotated_type(const ast::Expr& e, const JitFunction& function) {
  if (auto* c = ast::dyn_as<ast::ConstantExpr>(&e)) {
    auto* text = std::get_if<std::string>(&c->value);
    return text && *text != "int" && *text != "float" ? parse_dtype(*text) : std::nullopt;
  }
  auto value = evaluate(e, function);
  if (value && std::holds_alternative<DType>(*value)) return std::get<DType>(*value);
  return std::nullopt;
}

// How many bytes of a key its first argument has.
size_t piece_bytes(std::string_view key) {
  const auto tag = static_cast<uint8_t>(key[0]);
  if ((tag & kBlocks) == kBlocks) return 2 + 8 * static_cast<size_t>(key[1]);
  if (tag >= kRuntime || tag <= kTrue) return 1;
  if (tag == kTuple) {
    uint64_t items = 0, names = 0;
    std::memcpy(&items, key.data() + 1, sizeof items);
    std::memcpy(&names, key.data() + 9, sizeof names);
    size_t at = 17 + names;
    for (; items > 0; --items) at += piece_bytes(key.substr(at));
    return at;
  }
  if (tag == kDtype) return 2;
  uint64_t text = 0;
  if (tag == kString || tag == kLanguageFunction) std::memcpy(&text, key.data() + 1, sizeof text);
  return 9 + text;
}

const Arg* value_of(const ParamInfo& param, const std::optional<Arg>& arg) {
  return arg ? &*arg : param.default_value ? &*param.default_value : nullptr;
}

}  // namespace

std::vector<ParamInfo> read_params(const JitFunction& function, const MakeKernel& make_kernel) {
  std::vector<ParamInfo> params;
  const auto& skip = function.do_not_specialize;
  for (const ast::Param& p : function.def->params) {
    ParamInfo info;
    info.name = p.name;
    info.is_constexpr = p.annotation && ast::is_constexpr_annotation(*p.annotation);
    if (p.annotation && !info.is_constexpr) info.annotation = annotated_type(*p.annotation, function);
    info.specialize = std::find(skip.begin(), skip.end(), p.name) == skip.end();
    info.has_default = p.default_value != nullptr;
    if (p.default_value) {
      if (auto value = evaluate(*p.default_value, function)) info.default_value = arg_of(*value, make_kernel);
      if (!info.default_value)
        info.default_error =
            error_at(p.default_value->range, ErrorKind::kUnsupported,
                     "the default of parameter '{}' is not a constant; pass the argument at the launch", p.name);
    }
    params.push_back(std::move(info));
  }
  return params;
}

void SpecKey::spill(const void* data, size_t n) {
  if (large_.empty()) large_.assign(inline_, size_);
  large_.append(static_cast<const char*>(data), n);
}

void BoundArgs::slot_on_heap(uint64_t v) {
  if (many_slots.empty()) many_slots.assign(inline_slots, inline_slots + kInline);
  many_slots.push_back(v);
  ++num_slots;
}

const Tensor* tensor_in(const Arg& arg) {
  if (auto* d = std::get_if<std::shared_ptr<const TensorDescriptor>>(&arg)) return *d ? &(*d)->tensor : empty_handle();
  return tensor_of(arg);
}

std::vector<ParamRule> rules_of(std::span<const ParamInfo> params) {
  std::vector<ParamRule> rules;
  for (const ParamInfo& param : params) rules.push_back(rule_of(param));
  return rules;
}

Status bind_args(std::string_view kernel, std::span<const ParamInfo> params, std::span<const std::optional<Arg>> args,
                 BoundArgs& out) {
  if (args.size() != params.size())
    return error(ErrorKind::kType, "kernel '{}' has {} parameter{}, got {} argument{}", kernel, params.size(),
                 params.size() == 1 ? "" : "s", args.size(), args.size() == 1 ? "" : "s");
  KeyBuilder builder(kernel, out);
  for (size_t i = 0; i < params.size(); ++i) {
    const ParamInfo& param = params[i];
    const Arg* arg = value_of(param, args[i]);
    if (!arg) {
      if (param.has_default) return param.default_error;
      return error(ErrorKind::kType, "kernel '{}': argument '{}' is missing", kernel, param.name);
    }
    if (out.slot_of_param) out.slot_of_param->push_back(out.num_slots);
    if (!bind_argument(param, rule_of(param), *arg, builder)) return std::move(builder.status);
  }
  return {};
}

void append(const KeyEnd& end, SpecKey& key) {
  key.word(reinterpret_cast<uint64_t>(end.backend));
#define KILN_LAUNCH_OPTION(NAME, ...) key.bytes(&end.options->NAME, sizeof end.options->NAME);
#include "kiln/launch_option.def"
}

KeySteps::KeySteps(std::span<const ParamRule> rules, const KeyEnd& end, std::string_view key)
    : backend_(end.backend), options_(*end.options), key_(key) {
  size_t at = 0;
  for (ParamRule rule : rules) {
    Step step;
    step.at = static_cast<uint32_t>(at);
    const auto tag = static_cast<uint8_t>(key_[at]);
    const bool plain = rule == ParamRule::kPlain, typed_by_value = plain || rule == ParamRule::kUnspecialized;
    step.dtype = static_cast<DType>(tag & kDTypeBits);
    // The low bits by which a value has the tag's divisor and no greater one; of a value without any, those it has not.
    const int divisor = divisor_of(tag);
    const bool pointer = (tag & kBlocks) == kPointer;
    step.mask = !plain ? 0 : pointer || divisor >= 8 ? 15 : divisor == 4 ? 7 : 3;
    step.low_bits = static_cast<uint8_t>(plain && !pointer && divisor != 16 && divisor != 1 ? divisor : 0);
    step.divisible = !plain || divisor != 1;
    if (tag < kRuntime) {
      if (tag == kInt && (plain || rule == ParamRule::kConstexpr)) {
        step.kind = Kind::kFixedInt;
        std::memcpy(&step.value, key_.data() + at + 1, sizeof step.value);
      }
    } else if (typed_by_value && (tag & kBlocks) != kBlocks) {
      if (tag & kPointer)
        step.kind = Kind::kTensor;
      else if (step.dtype == DType::kI32 || step.dtype == DType::kI64)
        step.kind = Kind::kInt;
      else if (step.dtype == DType::kF32)
        step.kind = Kind::kFloat;
    }
    steps_.push_back(step);
    at += piece_bytes(std::string_view(key_).substr(at));
  }
}

bool KeySteps::match(std::span<const ParamInfo> params, std::span<const ParamRule> rules,
                     std::span<const std::optional<Arg>> args, const KeyEnd& end, uint64_t* slots) const {
  if (args.size() != steps_.size() || end.backend != backend_ || *end.options != options_) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    const Step& step = steps_[i];
    const Arg* arg = args[i] ? &*args[i] : nullptr;
    switch (arg ? step.kind : Kind::kOther) {
      case Kind::kTensor: {
        const Tensor* tensor = tensor_of(*arg);
        if (!tensor) return false;
        const Storage* storage = tensor->storage().get();
        if (!storage || &storage->device->backend() != backend_ || storage->is_freed()) return false;
        const uint64_t address = address_of(*tensor);
        if (tensor->dtype() != step.dtype || ((address & step.mask) == 0) != step.divisible) return false;
        *slots++ = address;
        continue;
      }
      case Kind::kInt:
        if (const auto* integer = std::get_if<int64_t>(arg)) {
          const int64_t v = *integer;
          if ((v == static_cast<int32_t>(v)) != (step.dtype == DType::kI32) || (v == 1 && step.mask) ||
              ((static_cast<uint64_t>(v) & step.mask) == step.low_bits) != step.divisible)
            return false;
          *slots++ = static_cast<uint64_t>(v);
          continue;
        }
        break;
      case Kind::kFloat:
        if (const auto* real = std::get_if<double>(arg)) {
          *slots++ = float_slot(*real);
          continue;
        }
        break;
      case Kind::kFixedInt:
        if (const auto* integer = std::get_if<int64_t>(arg)) {
          if (*integer != step.value) return false;
          continue;
        }
        break;
      case Kind::kOther:
        break;
    }
    slots = match_other(params[i], rules[i], args[i], step, slots);
    if (!slots) return false;
  }
  return true;
}

// Apart, so that the usual kinds above stay few lines of code: the driver's own pushes them out of the caches each
// time.
[[gnu::noinline]] uint64_t* KeySteps::match_other(const ParamInfo& param, ParamRule rule,
                                                  const std::optional<Arg>& given, const Step& step,
                                                  uint64_t* slots) const {
  const Arg* arg = value_of(param, given);
  KeyMatcher matcher(key_.data() + step.at, backend_, slots);
  return arg && bind_argument(param, rule, *arg, matcher) ? matcher.next_slot() : nullptr;
}

namespace {

frontend::ArgSpec arg_spec(const ParamInfo& param, const Arg& arg) {
  frontend::ArgSpec spec;
  if (arg.index() == kArgTuple && !param.is_constexpr) {
    spec.is_tuple = true;
    for (const Arg& item : tuple_of(arg).items) spec.items.push_back(arg_spec(param, item));
    spec.fields = tuple_of(arg).fields;
    return spec;
  }
  // The tag that the launch put into the key says it all.
  BoundArgs one;
  const std::optional<Arg> given = arg;
  Status bound = bind_args("", {&param, 1}, {&given, 1}, one);
  KILN_ASSERT(bound.ok(), "{}", bound.ok() ? "" : bound.error().message);
  auto tag = static_cast<uint8_t>(one.key.view()[0]);
  if (tag < kRuntime) {
    spec.is_constexpr = true;
    spec.value = global_of(arg);
  } else if ((tag & kBlocks) == kBlocks) {
    const TensorDescriptor& d = *std::get<std::shared_ptr<const TensorDescriptor>>(arg);
    spec.type = ir::pointer_type(d.tensor.dtype());
    spec.block = d.block_shape;
    spec.divisibility = divisor_of(tag);
  } else {
    spec.divisibility = divisor_of(tag);
    auto dtype = static_cast<DType>(tag & kDTypeBits);
    spec.type = tag & kPointer ? ir::pointer_type(dtype) : ir::scalar_type(dtype);
  }
  return spec;
}

}  // namespace

std::vector<frontend::ArgSpec> arg_specs(std::span<const ParamInfo> params, std::span<const std::optional<Arg>> args) {
  std::vector<frontend::ArgSpec> specs;
  for (size_t i = 0; i < params.size(); ++i) specs.push_back(arg_spec(params[i], *value_of(params[i], args[i])));
  return specs;
}

}  // namespace kiln::runtime
