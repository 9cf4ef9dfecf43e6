// The module torch: dtypes, making tensors, and functions of tensors. Tensors are made on the session's device unless
// `device=` says otherwise (torch itself would make them on the CPU).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "repl/modules/modules.h"
#include "repl/modules/torch/memory_order.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/tensor_sort.h"
#include "repl/modules/torch/tolerance.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/modules/torch/torch_formats.h"
#include "repl/modules/torch/torch_ranges.h"
#include "repl/modules/torch/torch_testing.h"
#include "repl/script/builtins/builtins.h"
#include "repl/script/value/classes.h"

namespace kiln::script {

namespace {

/// The shape from `*shape` or `size=`; a dtype may come behind the sizes, as in randn(4, 4, bf16).
Shape size_of_args(Interp& in, const Value& shape, const Value& named) {
  if (!named.missing()) return shape_of(in, {named});
  const std::vector<Value>& sizes = rest_of(shape);
  if (sizes.empty() || !sizes.back().is_dtype()) return shape_of(in, sizes);
  return shape_of(in, {sizes.begin(), sizes.end() - 1});
}
/// The dtype from `dtype=`, or from behind the sizes.
DType dtype_of_args(Interp& in, NativeArgs& a) {
  const std::vector<Value>& sizes = rest_of(a[0]);
  if (a[2].missing() && !sizes.empty() && sizes.back().is_dtype()) return sizes.back().dtype();
  return dtype_of(in, a[2], default_dtype(in));
}

// --- making tensors: (*shape, size, dtype, device, requires_grad, …)
// -------------------------------------------------------

using RandomFunction = Result<Tensor> (*)(const Device&, DType, std::span<const int64_t>, uint64_t);

void of_floats(Interp& in, DType dtype, std::string_view what) {
  if (!is_float(dtype)) in.fail_as("NotImplementedError", "{}() makes floats, not {}", what, info(dtype).torch);
}

Value random_tensor(Interp& in, NativeArgs& a, RandomFunction make_random, std::string_view what) {
  DType dtype = dtype_of_args(in, a);
  of_floats(in, dtype, what);
  return grad_flag(
      in, wrap(taken(in, make_random(device_of(in, a[3]), dtype, size_of_args(in, a[0], a[1]), seed_of(in, a[5])))),
      a[4]);
}
Value randn_(Interp& in, NativeArgs& a) { return random_tensor(in, a, randn, "randn"); }
Value rand_(Interp& in, NativeArgs& a) { return random_tensor(in, a, rand, "rand"); }

/// randint(high, size) or randint(low, high, size)
Value randint_(Interp& in, NativeArgs& a) {
  const std::vector<Value>& v = rest_of(a[0]);
  bool named_size = !a[1].missing();
  size_t numbers = v.size() - (named_size || v.empty() ? 0 : 1);
  if (numbers + (a[4].missing() ? 0 : 1) + (a[5].missing() ? 0 : 1) < 1 || numbers > 2)
    in.fail(ErrorKind::kType, "randint() takes (high, size) or (low, high, size)");
  if (numbers == 0 && a[5].missing()) in.fail(ErrorKind::kType, "randint() misses its bound 'high'");
  if (!named_size && v.empty()) in.fail(ErrorKind::kType, "randint() misses its 'size'");
  int64_t low = !a[4].missing() ? in.to_int(a[4], "low") : numbers == 2 ? in.to_int(v[0], "low") : 0;
  int64_t high = !a[5].missing() ? in.to_int(a[5], "high") : in.to_int(v[numbers - 1], "high");
  if (low >= high) in.fail_as("RuntimeError", "randint({}, {}): the range is empty", low, high);
  Shape shape = shape_of(in, {named_size ? a[1] : v.back()});
  const Tensor made =
      taken(in, randint(device_of(in, a[3]), dtype_of(in, a[2], DType::kI64), shape, low, high, seed_of(in, a[6])));
  return grad_flag(in, wrap(made), a[7]);
}
Value randperm(Interp& in, NativeArgs& a) {
  int64_t n = in.to_int(a[0], "randperm()'s n");
  if (n < 0) in.fail_as("RuntimeError", "randperm() of {}", n);
  // The order of random words: the same wherever they are sorted.
  const Device device = device_of(in, a[2]);
  const DType dtype = dtype_of(in, a[1], DType::kI64);
  const bool sorts = n >= kLazyElements && runs_kernels(in, device);
  const Device where = sorts ? device : taken(in, torch_state(in).runtime().open("cpu"));
  const int64_t shape[] = {n};
  const Tensor words = taken(in, randint(where, DType::kI64, shape, INT64_MIN, INT64_MAX, seed_of(in, a[3])));
  if (sorts) {
    const Value arguments[] = {wrap(words), Value::integer(0), Value::boolean(false)};
    Value places = in.to_vector(by_kernels(in, "torch._sort", "sort", arguments))[1];
    if (dtype == DType::kI64) return places;
    ExprAttributes as;
    as.dtype = dtype;
    return compute(in, ExprOp::kCast, {places}, std::move(as));
  }
  // The words are even: each goes to the bucket of its first bits, which has a few.
  const auto count = static_cast<size_t>(n);
  std::vector<int64_t> word(count), v(count);
  std::ranges::copy(taken(in, words.to_bytes()), reinterpret_cast<std::byte*>(word.data()));
  const auto width = static_cast<int>(std::bit_width(count));
  auto bucket = [&](size_t i) {
    return n == 0 ? 0 : (static_cast<uint64_t>(word[i]) ^ (uint64_t{1} << 63)) >> (64 - width);
  };
  std::vector<size_t> ends((size_t{1} << width) + 1);
  in.in_pieces(count, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) ++ends[bucket(i) + 1];
  });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  in.in_pieces(count, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) v[ends[bucket(i)]++] = static_cast<int64_t>(i);
  });
  in.in_pieces(ends.size() - 1, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      auto at = [&](size_t place) { return v.begin() + static_cast<ptrdiff_t>(place); };
      std::sort(at(b == 0 ? 0 : ends[b - 1]), at(ends[b]), [&](int64_t x, int64_t y) {
        return std::pair(word[static_cast<size_t>(x)], x) < std::pair(word[static_cast<size_t>(y)], y);
      });
    }
  });
  return wrap(store_ints(in, device, dtype, {n}, v));
}

Value filled(Interp& in, NativeArgs& a, double value) {
  return grad_flag(
      in, filled_tensor(in, device_of(in, a[3]), dtype_of_args(in, a), size_of_args(in, a[0], a[1]), value), a[4]);
}
Value zeros(Interp& in, NativeArgs& a) { return filled(in, a, 0); }
Value ones(Interp& in, NativeArgs& a) { return filled(in, a, 1); }
Value empty(Interp& in, NativeArgs& a) {
  return grad_flag(
      in, wrap(taken(in, Tensor::empty(device_of(in, a[3]), dtype_of_args(in, a), size_of_args(in, a[0], a[1])))),
      a[4]);
}
Value empty_strided(Interp& in, NativeArgs& a) {
  const Shape shape = shape_of(in, {a[0]}), strides = shape_of(in, {a[1]});
  int64_t elements = 1;  // what is wrong with the sizes and strides else, as_strided() says
  for (size_t i = 0; i < std::min(shape.size(), strides.size()); ++i) {
    int64_t along = 0;
    if (shape[i] > 1 && strides[i] > 0 &&
        (__builtin_mul_overflow(shape[i] - 1, strides[i], &along) ||
         __builtin_add_overflow(elements, along, &elements)))
      in.fail(ErrorKind::kMemory, "empty_strided(): the last element, at such strides, is beyond any memory");
  }
  const int64_t span[] = {elements};
  Tensor storage = taken(in, Tensor::empty(device_of(in, a[3]), dtype_of(in, a[2], default_dtype(in)), span));
  return wrap(taken(in, storage.as_strided(shape, strides, 0)));
}
Value full(Interp& in, NativeArgs& a) {
  DType natural = a[1].is_float() ? default_dtype(in) : a[1].is_bool() ? DType::kI1 : DType::kI64;
  const DType dtype = dtype_of(in, a[2], natural);
  return grad_flag(in,
                   filled_tensor(in, device_of(in, a[3]), dtype, shape_of(in, {a[0]}),
                                 fill_value(in, a[1], dtype, "full()'s value")),
                   a[4]);
}

/// A tensor with another's shape and order in memory, and its dtype and device where the arguments from `options` on
/// name no others. `value`: what all its elements are, as `make` has them.
Value like(Interp& in, NativeArgs& a, size_t options,
           const std::function<Result<Tensor>(const Device&, DType, std::span<const int64_t> shape)>& make,
           std::optional<FillValue> value = std::nullopt) {
  auto* t = a[0].get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "the first argument needs to be a tensor, got '{}'", in.type_name(a[0]));
  const Device device =
      a[options + 1].missing() || a[options + 1].is_none() ? t->device() : device_of(in, a[options + 1]);
  const DType dtype = dtype_of(in, a[options], t->dtype());
  Value made;
  if (value && (t->is_pending() || t->tensor(in).is_contiguous()))
    made = filled_tensor(in, device, dtype, {t->shape().begin(), t->shape().end()}, *value);
  else if (t->is_pending())
    made = wrap(taken(in, make(device, dtype, t->shape())));
  else
    made = wrap(in_memory_order(in, t->tensor(in), [&](const Tensor& of) { return make(device, dtype, of.shape()); }));
  return grad_flag(in, in_memory_format(in, made, a[options + 3]), a[options + 2]);
}
Value empty_like(Interp& in, NativeArgs& a) { return like(in, a, 1, &Tensor::empty); }
Value filled_like(Interp& in, NativeArgs& a, size_t options, FillValue value) {
  return like(
      in, a, options,
      [&](const Device& device, DType dtype, std::span<const int64_t> shape) {
        return Tensor::full(device, dtype, shape, value);
      },
      value);
}
Value zeros_like(Interp& in, NativeArgs& a) { return filled_like(in, a, 1, 0); }
Value ones_like(Interp& in, NativeArgs& a) { return filled_like(in, a, 1, 1); }
Value full_like(Interp& in, NativeArgs& a) {
  auto* t = a[0].get<TensorObject>();
  const DType dtype = dtype_of(in, a[2], t ? t->dtype() : default_dtype(in));
  return filled_like(in, a, 2, fill_value(in, a[1], dtype, "full_like()'s value"));
}
Value randn_like(Interp& in, NativeArgs& a) {
  return like(in, a, 1, [&](const Device& device, DType dtype, std::span<const int64_t> shape) {
    of_floats(in, dtype, "randn_like");
    return randn(device, dtype, shape, torch_state(in).next_seed());
  });
}
Value rand_like(Interp& in, NativeArgs& a) {
  return like(in, a, 1, [&](const Device& device, DType dtype, std::span<const int64_t> shape) {
    of_floats(in, dtype, "rand_like");
    return rand(device, dtype, shape, torch_state(in).next_seed());
  });
}

void flatten(Interp& in, const Value& v, size_t depth, Shape& shape, std::vector<Value>& out) {
  in.check_stack();
  if (!v.get<List>() && !v.get<Tuple>() && !v.get<Range>()) {
    if (depth < shape.size()) in.fail(ErrorKind::kValue, "the nested lists differ in depth");
    if (auto* t = v.get<TensorObject>()) return out.push_back(item_of(in, t->constant(in, "torch.tensor()")));
    if (v.get<WideInt>()) in.fail_as("RuntimeError", "the element {} does not fit into 64 bits", in.repr(v));
    if (!v.is_float() && !v.small_int_or_bool()) {
      // As torch: the first element decides the dtype, and a str is read as a sequence whose elements are strs again.
      const bool text = v.get<Str>() != nullptr;
      const std::string_view kind = !out.empty() || (text && depth == 0) ? "TypeError"
                                    : text                               ? "ValueError"
                                                                         : "RuntimeError";
      in.fail_as(kind, "a tensor is made of numbers, not of '{}'", in.type_name(v));
    }
    return out.push_back(v);
  }
  std::vector<Value> items = in.to_vector(v);
  if (depth == shape.size()) {
    if (!out.empty()) in.fail(ErrorKind::kValue, "the nested lists differ in depth");
    shape.push_back(static_cast<int64_t>(items.size()));
  }
  if (shape[depth] != static_cast<int64_t>(items.size()))
    in.fail(ErrorKind::kValue, "the nested lists differ in length: {} and {}", shape[depth], items.size());
  for (const Value& i : items) flatten(in, i, depth + 1, shape, out);
}

/// A few numbers as an expression, where they cannot be copied to the GPU because a graph is captured.
bool writes_numbers(Interp& in, const Device& device, size_t count) {
  constexpr size_t kMostWritten = 16;
  return torch_state(in).captures && counts_lazily(in, device) && count > 1 && count <= kMostWritten;
}

template <typename T>
Value written_numbers(Interp& in, const Device& device, DType dtype, Shape shape, const std::vector<T>& v) {
  const auto count = static_cast<int64_t>(v.size());
  Expr e = Expr::full(device, {count}, v[0], dtype);
  const Expr at = Expr::iota(device, count, DType::kI64);
  for (int64_t i = 1; i < count; ++i) {
    const Expr here = taken(in, apply(ExprOp::kEq, {at, Expr::scalar(i)}));
    const Expr number = Expr::full(device, {1}, v[static_cast<size_t>(i)], dtype);
    e = taken(in, apply(ExprOp::kWhere, {here, number, e}));
  }
  ExprAttributes as;
  as.shape = std::move(shape);
  return settled(in, taken(in, apply(ExprOp::kReshape, {e}, std::move(as))));
}

Value tensor(Interp& in, NativeArgs& a) {
  if (auto* t = a[0].get<TensorObject>()) {
    const Tensor& source = t->constant(in, "torch.tensor()");
    ExprAttributes as;
    as.dtype = dtype_of(in, a[1], source.dtype());
    if (*as.dtype != source.dtype()) return compute(in, ExprOp::kCast, {wrap(source)}, std::move(as));
    Tensor copy = taken(in, Tensor::empty(source.device(), source.dtype(), source.shape()));
    checked(in, copy.copy_from(source));
    return wrap(copy);
  }
  Shape shape;
  std::vector<Value> flat;
  flatten(in, a[0], 0, shape, flat);
  bool floats = flat.empty() || std::any_of(flat.begin(), flat.end(), [](const Value& v) { return v.is_float(); });
  bool bools = !flat.empty() && std::all_of(flat.begin(), flat.end(), [](const Value& v) { return v.is_bool(); });
  DType dtype = dtype_of(in, a[1], floats ? default_dtype(in) : bools ? DType::kI1 : DType::kI64);
  Device device = device_of(in, a[2]);
  if (is_int(dtype)) {
    std::vector<int64_t> v;
    for (const Value& x : flat) {
      fill_value(in, x, dtype, "the element");
      v.push_back(!x.is_float() ? x.integer() : dtype == DType::kI1 ? x.real() != 0 : static_cast<int64_t>(x.real()));
    }
    if (v.size() == 1) return grad_flag(in, filled_tensor(in, device, dtype, std::move(shape), v[0]), a[3]);
    if (writes_numbers(in, device, v.size()))
      return grad_flag(in, written_numbers(in, device, dtype, std::move(shape), v), a[3]);
    return grad_flag(in, wrap(store_ints(in, device, dtype, shape, v)), a[3]);
  }
  std::vector<double> v;
  for (const Value& x : flat) v.push_back(in.to_double(x, "an element"));
  if (v.size() == 1) {  // halves are rounded from float32
    const double number = bits(dtype) < 32 ? static_cast<float>(v[0]) : v[0];
    return grad_flag(in, filled_tensor(in, device, dtype, std::move(shape), number), a[3]);
  }
  if (writes_numbers(in, device, v.size())) {
    if (bits(dtype) < 32)
      for (double& x : v) x = static_cast<float>(x);
    return grad_flag(in, written_numbers(in, device, dtype, std::move(shape), v), a[3]);
  }
  return grad_flag(in, wrap(store_floats(in, device, dtype, shape, v)), a[3]);
}

// --- torch itself
// ---------------------------------------------------------------------------------------------------------

Value manual_seed(Interp& in, NativeArgs& a) {
  torch_state(in).set_seed(static_cast<uint64_t>(in.to_int(a[0], "the seed")));
  return Value::none();
}
Value device(Interp& in, NativeArgs& a) {
  if (!a[1].missing())
    return make<DeviceObject>(device_of(in, Value::str(in.to_text(a[0], "the device's type") + ":" +
                                                       std::to_string(in.to_int(a[1], "the device's index")))));
  return make<DeviceObject>(device_of(in, a[0]));
}
Value generator(Interp&, NativeArgs&) { return make<GeneratorObject>(); }
Value generator_seed(Interp& in, NativeArgs& a) {
  a.self->get<GeneratorObject>()->seeds = {static_cast<uint64_t>(in.to_int(a[0], "the seed"))};
  return *a.self;
}
Value generator_initial(Interp&, NativeArgs& a) {
  return Value::wide(static_cast<ast::Int>(a.self->get<GeneratorObject>()->seeds.seed));
}
constexpr NativeDef kGenerator[] = {
    {"initial_seed()", generator_initial, "the seed that its numbers began with"},
    {"manual_seed(seed)", generator_seed, "restarts its numbers"},
};

Value is_tensor(Interp&, NativeArgs& a) { return Value::boolean(a[0].get<TensorObject>() != nullptr); }

constexpr NativeDef kTorch[] = {
    {"Generator(device=None)", generator, "random numbers of its own"},
    {"allclose(input, other, rtol=1e-5, atol=1e-8, equal_nan=False)", allclose_tensors,
     "are all elements close: |a-b| <= atol + rtol*|b|?"},
    {"empty(*shape, size=, dtype=None, device=None, requires_grad=False, pin_memory=False)", pinned<empty, 5>,
     "uninitialised"},
    {"empty_like(input, *, dtype=None, device=None, requires_grad=False, memory_format=None)", empty_like,
     "uninitialised, with another tensor's shape, dtype and device"},
    {"empty_strided(size, stride, *, dtype=None, device=None, pin_memory=False)", pinned<empty_strided, 4>,
     "uninitialised, with the given strides"},
    {"equal(input, other)", equal_tensors, "same shape and same elements?"},
    {"full(size, fill_value, *, dtype=None, device=None, requires_grad=False, pin_memory=False)", pinned<full, 5>,
     "one value everywhere"},
    {"full_like(input, fill_value, *, dtype=None, device=None, requires_grad=False, memory_format=None)", full_like,
     "one value everywhere, as another tensor"},
    {"is_tensor(obj)", is_tensor, "is it a tensor?"},
    {"manual_seed(seed)", manual_seed, "restarts the random numbers"},
    {"ones(*shape, size=, dtype=None, device=None, requires_grad=False, pin_memory=False)", pinned<ones, 5>, "ones"},
    {"ones_like(input, *, dtype=None, device=None, requires_grad=False, memory_format=None)", ones_like,
     "ones, as another tensor"},
    {"rand(*shape, size=, dtype=None, device=None, requires_grad=False, generator=None, pin_memory=False)",
     pinned<rand_, 6>, "uniform in [0, 1)"},
    {"rand_like(input, *, dtype=None, device=None, requires_grad=False, memory_format=None)", rand_like,
     "uniform in [0, 1), as another tensor"},
    {"randint(*bounds, size=, dtype=None, device=None, low=, high=, generator=None, requires_grad=False, "
     "pin_memory=False)",
     pinned<randint_, 8>, "integers from low to below high"},
    {"randn(*shape, size=, dtype=None, device=None, requires_grad=False, generator=None, pin_memory=False)",
     pinned<randn_, 6>, "normally distributed"},
    {"randn_like(input, *, dtype=None, device=None, requires_grad=False, memory_format=None)", randn_like,
     "normally distributed, as another tensor"},
    {"randperm(n, *, dtype=None, device=None, generator=None, requires_grad=False, pin_memory=False)",
     pinned<randperm, 5>, "0 to n-1 in random order"},
    {"tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)", pinned<tensor, 4>,
     "a tensor of numbers or nested lists"},
    {"zeros(*shape, size=, dtype=None, device=None, requires_grad=False, pin_memory=False)", pinned<zeros, 5>, "zeros"},
    {"zeros_like(input, *, dtype=None, device=None, requires_grad=False, memory_format=None)", zeros_like,
     "zeros, as another tensor"},
};

/// Methods that torch also offers as functions: torch.exp(x) is x.exp().
constexpr std::string_view kForwarded[] = {
    "abs",       "add",     "all",     "amax",  "amin",      "any",         "argmax",      "argmin",      "bmm",
    "ceil",      "clamp",   "clip",    "clone", "cos",       "cumprod",     "cumsum",      "div",         "eq",
    "erf",       "exp",     "exp2",    "expm1", "floor",     "ge",          "gt",          "isfinite",    "isinf",
    "isnan",     "le",      "log",     "log1p", "log2",      "log_softmax", "logical_and", "logical_not", "logical_or",
    "logsumexp", "lt",      "matmul",  "max",   "mean",      "min",         "mm",          "mul",         "ne",
    "neg",       "numel",   "permute", "pow",   "prod",      "reciprocal",  "relu",        "reshape",     "round",
    "rsqrt",     "sigmoid", "sign",    "sin",   "softmax",   "sqrt",        "square",      "squeeze",     "std",
    "sub",       "sum",     "t",       "tanh",  "transpose", "trunc",       "unsqueeze",   "var"};
constexpr std::string_view kFunctional[] = {"gelu", "sigmoid", "tanh"};

/// Those of kForwarded whose result is a view, or its argument, so that torch has no out= for them.
constexpr std::string_view kWithoutOut[] = {"clone",   "matmul",  "numel", "permute",   "relu",
                                            "reshape", "squeeze", "t",     "transpose", "unsqueeze"};

/// Those that take a number first, too.
constexpr std::string_view kOfNumbers[] = {"add", "div", "mul", "sub"};

/// torch.pow(2, x), whose argument is not called `other`.
bool is_power_of_number(const Value& base, const CallArgs& others) {
  if (base.get<TensorObject>() || others.args.size() + others.keywords.size() != 1) return false;
  if (!others.args.empty()) return others.args[0].get<TensorObject>() != nullptr;
  return others.keywords[0].name == "exponent" && others.keywords[0].value.get<TensorObject>();
}

Ref<MethodFunction> forwarded(std::string_view name) {
  auto o = make<MethodFunction>(std::string(name));
  o->on_call = [method = std::string(name)](Interp& in, CallArgs& args) -> Value {
    if (auto v = of_complex(in, method, nullptr, args)) return *std::move(v);
    // The tensor comes first, or as input=.
    Value self, out;
    CallArgs others;
    for (Value& v : args.args) {
      if (self.missing())
        self = std::move(v);
      else
        others.args.push_back(std::move(v));
    }
    for (KeywordArg& k : args.keywords) {
      if ((k.name == "input" || (k.name == "self" && method == "pow")) && self.missing())
        self = std::move(k.value);
      else if (k.name == "out" && std::ranges::find(kWithoutOut, method) == std::end(kWithoutOut))
        out = std::move(k.value);
      else
        others.keywords.push_back({k.name == "axis" ? "dim" : k.name, std::move(k.value), std::move(k.key)});
    }
    if (self.missing()) in.fail(ErrorKind::kType, "torch.{}() needs a tensor", method);
    sum_into(method, out, others);
    Value result;
    if (method == "pow" && is_power_of_number(self, others)) {
      const Value& exponent = others.args.empty() ? others.keywords[0].value : others.args[0];
      result = in.binary(ast::BinaryOp::kPow, self, exponent);
    } else if (self.get<TensorObject>()) {
      result = in.method(TensorObject::kKind, method)->call_on(in, &self, others);
    } else if (std::ranges::find(kOfNumbers, method) != std::end(kOfNumbers) &&
               (self.small_int_or_bool() || self.is_float())) {
      CallArgs all;
      all.args.push_back(std::move(self));
      for (Value& v : others.args) all.args.push_back(std::move(v));
      for (KeywordArg& k : others.keywords) all.keywords.push_back(std::move(k));
      result = in.call(in.attribute(in.import_module("torch._aliases"), "_" + method + "_to_number"), all);
    } else {
      in.fail(ErrorKind::kType, "torch.{}() needs a tensor, got '{}'", method, in.type_name(self));
    }
    return put_out(in, method, result, out);
  };
  return o;
}

struct DTypeAlias {
  std::string_view name;
  DType dtype;
};
constexpr DTypeAlias kAliases[] = {{"half", DType::kF16},  {"float", DType::kF32}, {"double", DType::kF64},
                                   {"short", DType::kI16}, {"int", DType::kI32},   {"long", DType::kI64}};

void fill_autograd(Interp&, ModuleObject& m) {
  m.texts = {library_module("torch._autograd"), library_module("torch._tape")};
}

/// A method's function of torch.nn.functional that may store its result in the input.
Value activation(Interp& in, NativeArgs& a, std::string_view method) {
  if (!a[0].get<TensorObject>()) in.fail(ErrorKind::kType, "{}() needs a tensor, got '{}'", method, in.type_name(a[0]));
  Value result = in.call(in.attribute(a[0], method), {});
  if (!given(a[1]) || !in.truth(a[1])) return result;
  return in.call(in.attribute(a[0], "copy_"), {std::move(result)});
}
Value relu(Interp& in, NativeArgs& a) { return activation(in, a, "relu"); }
Value silu(Interp& in, NativeArgs& a) { return activation(in, a, "silu"); }
constexpr NativeDef kActivations[] = {
    {"relu(input, inplace=False)", relu, "max(x, 0)"},
    {"silu(input, inplace=False)", silu, "x · sigmoid(x)"},
};

void fill_functional(Interp& in, ModuleObject& m) {
  add_functions(m, norm_functions());
  add_functions(m, softmax_functions());
  add_functions(m, kActivations);
  for (std::string_view name : kFunctional) m.members.set(name, forwarded(name));
  m.texts = {library_module("torch._activations"), library_module("torch._functional"),
             library_module("torch._pools"),       library_module("torch._layers"),
             library_module("torch._margins"),     library_module("torch._losses")};
  add_complex(in, m);
}
void fill_nn(Interp& in, ModuleObject& m) {
  m.members.set("functional", in.import_module("torch.nn.functional"));
  m.texts = {library_module("torch._nn"),          library_module("torch._nn_functions"),
             library_module("torch._nn_layers"),   library_module("torch._nn_recurrent"),
             library_module("torch._transformer"), library_module("torch._nn_more")};
}

constexpr NativeDef kTesting[] = {
    {"_assert_tensors_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True)",
     assert_tensors_close, "an error unless all elements of two tensors are close"}};
void fill_func(Interp&, ModuleObject& m) { m.texts = {library_module("torch._grad")}; }
void fill_testing(Interp&, ModuleObject& m) {
  add_functions(m, kTesting);
  m.texts = {library_module("torch._testing")};
}

/// The PyTorch whose rules are kept: what the tests' recorded results are from.
constexpr std::string_view kTorchVersion = "2.15.0+kiln";

/// What torch has of torch._complex for all tensors. Its other names are methods, and functions that torch has for real
/// ones, which complex arguments find there (of_complex).
constexpr std::string_view kComplexNames[] = {
    "adjoint",   "angle", "cdouble",       "cfloat",      "complex",         "complex128",
    "complex64", "conj",  "conj_physical", "imag",        "is_conj",         "isreal",
    "polar",     "real",  "resolve_conj",  "resolve_neg", "view_as_complex", "view_as_real"};

/// torch.Tensor(data), torch.Tensor(2, 3): as torch.FloatTensor.
Value make_tensor(Interp& in, NativeArgs& a) {
  CallArgs args;
  for (const Value& v : rest_of(a[0])) args.args.push_back(v);
  return in.call(*in.import_module("torch")->attribute(in, "FloatTensor"), args);
}
constexpr NativeDef kMakeTensor{"Tensor(*args)", make_tensor, "a tensor of float32: of data, or empty of these sizes"};
constexpr NativeDef kMakeDevice{"device(type, index=)", device, "a device by its name"};

void fill_torch(Interp& in, ModuleObject& m) {
  install_tensor_methods(in);
  in.add_methods({GeneratorObject::kKind, kGenerator});
  add_functions(m, kTorch);
  add_functions(m, expression_functions());
  add_functions(m, range_functions());
  add_functions(m, cat_functions());
  add_functions(m, file_functions());
  for (std::string_view name : kForwarded) m.members.set(name, forwarded(name));
  for (int i = 0; i < kNumDTypes; ++i)
    if (is_in_torch(static_cast<DType>(i))) m.members.set(kDTypes[i].torch, Value::dtype(static_cast<DType>(i)));
  for (const DTypeAlias& d : kAliases) m.members.set(d.name, Value::dtype(d.dtype));
  in.type_of(TensorObject::kKind)->constructor = make<Native>(kMakeTensor);
  m.members.set("Tensor", in.type_of(TensorObject::kKind));
  in.type_of(DeviceObject::kKind)->constructor = make<Native>(kMakeDevice);
  m.members.set("device", in.type_of(DeviceObject::kKind));
  m.members.set("dtype", in.type_of(Kind::kDType));
  m.members.set("Size", size_type(in));
  m.texts = {
      library_module("torch._tensor"),  library_module("torch._elementwise"), library_module("torch._products"),
      library_module("torch._sorting"), library_module("torch._functions"),   library_module("torch._special"),
      library_module("torch._series"),  library_module("torch._amp"),         library_module("torch._algebra"),
      library_module("torch._slices"),  library_module("torch._gammas"),      library_module("torch._generators"),
      library_module("torch._aliases")};
  add_out(m);
  add_complex(in, m);
  ModuleObject::Text& complex = m.texts.emplace_back(library_module("torch._complex"));
  complex.names.assign(std::begin(kComplexNames), std::end(kComplexNames));
  m.texts.push_back(library_module("torch._spectra"));
  add_constants(in, m);
  for (std::string_view name : {"Event", "Stream"})
    m.members.set(name, *in.import_module("torch.cuda")->members.find(name));
  // What a device that is full raises.
  m.members.set("OutOfMemoryError", in.exception_type("MemoryError"));
  m.members.set("e", Value::real(M_E));
  m.members.set("inf", Value::real(INFINITY));
  m.members.set("nan", Value::real(NAN));
  m.members.set("pi", Value::real(M_PI));
  m.members.set("__version__", Value::str(std::string(kTorchVersion)));
  for (std::string_view sub : {"cuda", "cpu", "nn", "testing", "autograd", "func", "profiler"})
    m.members.set(sub, in.import_module("torch." + std::string(sub)));
}

/// Names that hide nothing of Python's.
constexpr std::string_view kPromptTorch[] = {"arange", "empty",   "exp",  "full",  "log",   "maximum",
                                             "mean",   "minimum", "ones", "rand",  "randn", "rsqrt",
                                             "sqrt",   "tensor",  "var",  "where", "zeros"};
constexpr std::string_view kPromptCuda[] = {"Event", "Stream", "stream"};
constexpr std::string_view kPromptProfiler[] = {"profile", "record_function"};
constexpr std::string_view kPromptFunctional[] = {"gelu", "layer_norm", "relu", "rms_norm",   "sigmoid",
                                                  "silu", "softmax",    "tanh", "log_softmax"};

constexpr ModuleDef kTorchModules[] = {
    {"torch", fill_torch},           {"torch.autograd", fill_autograd},
    {"torch.nn", fill_nn},           {"torch.nn.functional", fill_functional},
    {"torch.testing", fill_testing}, {"torch.func", fill_func},
};

}  // namespace

std::span<const ModuleDef> torch_modules() { return kTorchModules; }

void add_prompt_names(Interp& in) {
  auto add = [&](std::string_view module, std::span<const std::string_view> names) {
    for (std::string_view name : names) in.add_builtin(name, *in.import_module(module)->members.find(name));
  };
  add("torch", kPromptTorch);
  add("torch.nn.functional", kPromptFunctional);
  add("torch.cuda", kPromptCuda);
  add("torch.profiler", kPromptProfiler);
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    in.add_builtin(kiln::name(dtype), Value::dtype(dtype));
  }
}

}  // namespace kiln::script
