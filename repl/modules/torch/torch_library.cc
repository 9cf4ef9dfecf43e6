// The part of torch that is written in the language (library/*.py), and what its texts need beside torch itself:
// torch._kiln.
#include <unordered_map>

#include "repl/modules/modules.h"
#include "repl/modules/torch/lazy_scope.h"
#include "repl/modules/torch/tensor_eigen.h"
#include "repl/modules/torch/tensor_grad.h"
#include "repl/modules/torch/tensor_index.h"
#include "repl/modules/torch/tensor_sort.h"
#include "repl/modules/torch/torch_complex.h"
#include "repl/modules/torch/torch_state.h"
#include "repl/script/builtins/builtins.h"
#include "runtime/tensor/random.h"

namespace kiln::script {

namespace {

/// Small tensors are computed now, as every operation's are.
void settle(Interp& in, Value& v) {
  if (auto* tuple = v.get<Tuple>()) {
    for (Value& each : tuple->items) settle(in, each);
    return;
  }
  auto* t = v.get<TensorObject>();
  if (!t || !t->is_pending() || t->expr().has_elements(kLazyElements)) return;
  if (t->is_store())
    t->tensor(in);
  else
    v = settled(in, t->expr());
}

/// A function of the library whose operations stay one expression until it is done, however small its tensors are.
class LazyFunction : public Opaque {
 public:
  static inline const KindOf<LazyFunction> kKind{"builtin_function_or_method"};
  LazyFunction(std::string shown, Value f) : Opaque(std::move(shown), kKind), function_(std::move(f)) {}
  Value call(Interp& in, CallArgs& args) override {
    Value result;
    {
      LazyScope scope(in);
      result = in.call(function_, args);
    }
    if (!torch_state(in).always_lazy) settle(in, result);
    return result;
  }
  std::optional<Value> attribute(Interp& in, std::string_view of) override {
    return of == "__wrapped__" ? std::optional(function_) : in.find_attribute(function_, of);
  }

 private:
  Value function_;
};

Value lazily(Interp& in, NativeArgs& a) {
  return make<LazyFunction>("built-in function torch." + in.str(in.attribute(a[0], "__name__")), a[0]);
}

TensorObject& tensor_object(Interp& in, const Value& v) {
  auto* t = v.get<TensorObject>();
  if (!t) in.fail(ErrorKind::kType, "a tensor is needed, got '{}'", in.type_name(v));
  return *t;
}

Value iota(Interp& in, NativeArgs& a) {
  const int64_t n = in.to_int(a[0], "the number of places");
  const DType dtype = given(a[2])              ? dtype_of(in, a[2], DType::kI32)
                      : n < (int64_t{1} << 30) ? DType::kI32
                                               : DType::kI64;
  if (n < 0) in.fail(ErrorKind::kValue, "{} places", n);
  if (!is_int(dtype) || dtype == DType::kI1) in.fail(ErrorKind::kType, "places are integers");
  return settled(in, Expr::iota(tensor_object(in, a[1]).device(), n, dtype));
}

/// uniform(shape, like, generator): the elements of torch.rand in float32, as part of an expression.
Value uniform(Interp& in, NativeArgs& a) {
  const Shape shape = shape_of(in, {a[0]});
  const Device& device = tensor_object(in, a[1]).device();
  const uint64_t seed = seed_of(in, a[2]);
  int64_t count = 1;
  bool sound = true;  // else rand() says what is wrong with the shape
  for (int64_t d : shape) sound = sound && d >= 0 && !__builtin_mul_overflow(count, d, &count);
  if (!sound || count == 0) return wrap(taken(in, rand(device, DType::kF32, shape, seed)));
  ExprAttributes as;
  as.shape = shape;
  auto number = [](int64_t n) { return Expr::scalar(n); };
  auto converted = [&](const Expr& e, DType to) {
    ExprAttributes type;
    type.dtype = to;
    return applied(in, ExprOp::kCast, {e}, std::move(type));
  };
  const Expr place = applied(in, ExprOp::kReshape, {Expr::iota(device, count, DType::kI64)}, std::move(as));
  const Expr word = applied(in, ExprOp::kRandomWord, {place, number(static_cast<int64_t>(runtime::random_key(seed)))});
  const int bits = runtime::uniform_bits(DType::kF32);  // the top ones
  const Expr top =
      applied(in, ExprOp::kBitAnd, {applied(in, ExprOp::kShr, {word, number(64 - bits)}), number((1 << bits) - 1)});
  const Expr whole = converted(converted(top, DType::kI32), DType::kF32);
  return settled(in, applied(in, ExprOp::kMul, {whole, Expr::scalar(1.0 / (1 << bits))}));
}

/// take(input, dims, places, any_outside)
Value take(Interp& in, NativeArgs& a) {
  TensorObject& x = tensor_object(in, a[0]);
  std::vector<Expr> operands = {x.expr()};
  ExprAttributes attributes;
  for (int64_t d : shape_of(in, {a[1]})) attributes.axes.push_back(static_cast<int>(d));
  for (const Value& v : in.to_vector(a[2])) {
    const Value places = places_in(in, v, x.device());
    operands.push_back(tensor_object(in, places).expr());
  }
  attributes.any_outside = given(a[3]) && in.truth(a[3]);
  return settled(in, taken(in, apply(ExprOp::kTake, operands, std::move(attributes))));
}

Value check_places(Interp& in, NativeArgs& a) {
  const Value places = places_in(in, a[0], tensor_object(in, a[0]).device());
  // torch's gather and scatter have a RuntimeError.
  const bool of_gather = given(a[4]) && in.truth(a[4]);
  check_places(in, places, in.to_int(a[1], "the size"), in.to_int(a[2], "the dimension"), in.truth(a[3]),
               of_gather ? "RuntimeError" : "IndexError");
  return Value::none();
}

Value nonzero(Interp& in, NativeArgs& a) {
  std::vector<Value> out;
  for (Tensor& t : places_of_nonzero(in, seen_tensor(in, a[0], "nonzero()"))) out.push_back(wrap(std::move(t)));
  return make<Tuple>(std::move(out));
}

Combine combine_of(Interp& in, const Value& v) {
  const std::string how = in.to_text(v, "how");
  return how == "add"    ? Combine::kAdd
         : how == "prod" ? Combine::kMultiply
         : how == "amin" ? Combine::kLeast
         : how == "amax" ? Combine::kGreatest
                         : Combine::kSet;
}

/// put_items(input, index, values, how): in place; `values` of the same dtype is expanded to the elements.
Value put_items(Interp& in, NativeArgs& a) {
  const Tensor values = tensor_object(in, a[2]).constant(in, "put_items() of elements");
  add_items(in, tensor_object(in, a[0]), a[1], values, combine_of(in, a[3]));
  return a[0];
}

/// put(input, places, values, how): in place, at row-major positions.
Value put(Interp& in, NativeArgs& a) {
  const Tensor& places = tensor_of(in, a[1], "put()");
  TensorObject& given_values = tensor_object(in, a[2]);
  const Shape shape = shape_vector(places);
  const int64_t elements = tensor_object(in, a[0]).numel();
  // What a GPU holds is not looked at: nothing is put outside.
  std::vector<int64_t> at;
  if (!places.device().is_cuda()) at = load_ints(in, places, shape);
  for (int64_t p : at)
    if (p < 0 || p >= elements) in.fail_as("IndexError", "position {} in a tensor of {} elements", p, elements);
  if (auto both = broadcast_shapes(given_values.shape(), shape); !both.ok() || *both != shape)
    in.fail(ErrorKind::kType, "put() of {} at places of {}", in.repr(size_value(given_values.shape())),
            in.repr(size_value(shape)));
  const Combine combine = combine_of(in, a[3]);
  TensorObject& self = tensor_object(in, a[0]);
  if ((self.records() || given_values.records()) && (combine == Combine::kSet || combine == Combine::kAdd)) {
    self.become(in, [&] {
      const Value whole = expanded_to(in, a[2], shape);
      const Expr values = whole.get<TensorObject>()->expr();
      const Tensor row = taken(in, taken(in, taken(in, places.contiguous()).view(Shape{-1})).to(DType::kI64));
      return combine == Combine::kSet ? with_put(in, self.expr(), row, values)
                                      : with_added(in, self.expr(), row, values);
    });
    return a[0];
  }
  if (places.device().is_cuda()) at = load_ints(in, places, shape);
  const Tensor values = given_values.constant(in, in.to_text(a[3], "how") + " of elements"), &to = self.changing(in);
  put_elements(in, to, {std::move(at)}, expanded(in, values, shape), combine);
  return a[0];
}

/// store(input, places, inside, values, adds)
Value store(Interp& in, NativeArgs& a) {
  TensorObject& self = tensor_object(in, a[0]);
  const Tensor to = self.changing(in);
  ExprAttributes attributes;
  attributes.adds = in.truth(a[4]);
  const Expr put = applied(
      in, ExprOp::kPut,
      {tensor_object(in, a[3]).expr(), tensor_object(in, a[1]).expr(), tensor_object(in, a[2]).expr()}, attributes);
  torch_state(in).pending()->keep_parts(in, put);
  checked(in, run_put(put, to));
  return a[0];
}

Value become(Interp& in, NativeArgs& a) {
  TensorObject &self = tensor_object(in, a[0]), &view = tensor_object(in, a[1]);
  self.become(in, view);
  return a[0];
}

Value is_deterministic(Interp& in, NativeArgs&) { return Value::boolean(torch_state(in).deterministic); }
Value set_deterministic(Interp& in, NativeArgs& a) {
  torch_state(in).deterministic = in.truth(a[0]);
  return Value::none();
}

/// set_print(precision, threshold, edgeitems, linewidth, sci_mode): None leaves what is there, of sci_mode it is a
/// value.
Value set_print(Interp& in, NativeArgs& a) {
  PrintOptions& print = torch_state(in).print;
  auto take = [&](const Value& v, auto& to, std::string_view what) {
    if (v.is_none()) return;
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const double asked = in.to_double(v, what);  // a threshold may be infinite
    if (!(asked >= 0)) in.fail(ErrorKind::kValue, "set_printoptions({}={}): it is a number from 0", what, in.repr(v));
    to = static_cast<std::remove_reference_t<decltype(to)>>(std::min(asked, static_cast<double>(kMost)));
  };
  constexpr double kMostDigits = 100;  // more than a float64 has
  if (!a[0].is_none() && in.to_double(a[0], "precision") > kMostDigits)
    in.fail(ErrorKind::kValue, "set_printoptions(precision={}): it is a number up to {}", in.repr(a[0]), kMostDigits);
  take(a[0], print.precision, "precision");
  take(a[1], print.threshold, "threshold");
  take(a[2], print.edge, "edgeitems");
  take(a[3], print.line_width, "linewidth");
  print.scientific = a[4].is_none() ? std::nullopt : std::optional(in.truth(a[4]));
  return Value::none();
}

/// autocast(device_type, dtype): what products have there from now on, None: what they are given; what it was before.
Value autocast(Interp& in, NativeArgs& a) {
  TorchState::Autocast& cast = torch_state(in).autocast;
  std::optional<DType>& of = in.to_text(a[0], "device_type") == "cuda" ? cast.cuda : cast.cpu;
  const std::optional<DType> before =
      std::exchange(of, a[1].is_none() ? std::nullopt : std::optional(dtype_of(in, a[1], DType::kBF16)));
  return before ? Value::dtype(*before) : Value::none();
}
/// The tensors with the elements that torch.autocast() has products take, or functions that need a wide range.
Value autocast_operands(Interp& in, NativeArgs& a, bool is_wide) {
  const TorchState::Autocast& cast = torch_state(in).autocast;
  std::vector<Value> out = rest_of(a[0]);
  for (Value& v : out) {
    auto* t = v.get<TensorObject>();
    if (!t || !is_autocast_operand(t->dtype())) continue;
    const std::optional<DType> to = cast.of(t->device());
    if (!to) continue;
    ExprAttributes attributes;
    attributes.dtype = is_wide ? DType::kF32 : *to;
    if (t->dtype() != *attributes.dtype) v = compute(in, ExprOp::kCast, {v}, std::move(attributes));
  }
  return make<Tuple>(std::move(out));
}
Value narrowed(Interp& in, NativeArgs& a) { return autocast_operands(in, a, false); }
Value widened(Interp& in, NativeArgs& a) { return autocast_operands(in, a, true); }

Value set_tf32(Interp& in, NativeArgs& a) {
  torch_state(in).tf32 = in.truth(a[0]);
  return Value::none();
}
Value set_default_device(Interp& in, NativeArgs& a) {
  torch_state(in).set_device(device_of(in, a[0]));
  return Value::none();
}
Value set_default_dtype(Interp& in, NativeArgs& a) {
  const DType dtype = dtype_of(in, a[0], DType::kF32);
  if (!is_float(dtype) || is_fp8(dtype))
    in.fail(ErrorKind::kType, "the default dtype is a float of 16 bits or more, got {}", info(dtype).torch);
  torch_state(in).default_dtype = dtype;
  return Value::none();
}
Value get_default_dtype(Interp& in, NativeArgs&) { return Value::dtype(default_dtype(in)); }
/// What torch.cuda.get_device_properties() says, None where it is not known.
Value device_info(Interp& in, NativeArgs& a) {
  const Device device = described_device(in, a[0]);
  const DeviceInfo i = device.info();
  auto d = make<Dict>();
  auto set = [&](std::string_view key, int64_t n) { d->table.set(key, n > 0 ? Value::integer(n) : Value::none()); };
  const int capability = i.target.starts_with("sm_") ? std::atoi(i.target.c_str() + 3) : 0;
  d->table.set("name", Value::str(i.name));
  set("major", capability / 10);
  d->table.set("minor", capability > 0 ? Value::integer(capability % 10) : Value::none());
  set("total_memory", i.memory_bytes);
  set("multi_processor_count", i.compute_units);
  set("L2_cache_size", i.l2_bytes);
  set("shared_memory_per_block_optin", i.shared_bytes);
  set("max_threads_per_block", i.max_threads_per_block);
  set("warp_size", device.is_cuda() ? 32 : 0);
  return d;
}
/// How many programs run at once is asked before most launches of the library: without a table of all figures.
Value processors(Interp& in, NativeArgs& a) {
  const Device device = tensor_object(in, a[0]).device();
  if (!device.is_cuda() && !a[1].missing()) return a[1];
  TorchState::Processors& known = torch_state(in).processors;
  if (!(known.device == device)) known = {device, device.info().compute_units};
  return Value::integer(known.count);
}
/// dimension(dim, rank, extra=0): from 0. Torch lets a tensor without dimensions have -1 and 0.
Value dimension(Interp& in, NativeArgs& a) {
  const int64_t rank = in.to_int(a[1], "a rank");
  const int64_t n = std::max<int64_t>(rank + (a[2].missing() ? 0 : in.to_int(a[2], "dimensions more")), 1);
  // A bool is an int for Python.
  if (!a[0].is_small_int() && (a[0].is_bool() || !in.is_instance(a[0], Value(in.type_of(Kind::kInt)))))
    in.fail(ErrorKind::kType, "a dimension is an int, not {}", in.repr(a[0]));
  const auto* wide = a[0].get<WideInt>();
  const int64_t d = wide && !wide->fits() ? n : in.to_int(a[0], "a dimension");
  if (d < -n || d >= n) in.fail_as("IndexError", "dimension {} of a tensor that has {}", in.repr(a[0]), rank);
  return Value::integer(d < 0 ? d + n : d);
}
Value promoted(Interp& in, NativeArgs& a) {
  for (const Value& v : a.slots)
    if (!v.is_dtype()) in.fail(ErrorKind::kType, "promote_types() takes two dtypes, got '{}'", in.type_name(v));
  return Value::dtype(promote(a[0].dtype(), a[1].dtype()));
}
Value free_memory(Interp& in, NativeArgs& a) {
  const int64_t bytes = described_device(in, a[0]).free_bytes();
  return bytes >= 0 ? Value::integer(bytes) : Value::none();
}
/// Asked by a function of the library that then does so, for which the tensor has to be in memory: a kernel may change
/// it through a view. Not of what has gradients: kernels record nothing.
Value runs_kernels_(Interp& in, NativeArgs& a) {
  bool does = runs_kernels(in, tensor_object(in, a[0]).device()) && !tensor_object(in, a[0]).records();
  for (const Value& v : rest_of(a[1]))
    if (auto* t = v.get<TensorObject>()) does = does && !t->records();
  if (does) {
    tensor_object(in, a[0]).tensor(in);
    ++torch_state(in).kernel_runs;
  }
  return Value::boolean(does);
}
/// rng_state(generator=None, to=None): the seed and how many draws there were of it; `to` sets both.
Value rng_state(Interp& in, NativeArgs& a) {
  SeedStream* of = &torch_state(in).seeds();
  if (given(a[0])) {
    auto* g = a[0].get<GeneratorObject>();
    if (!g) in.fail(ErrorKind::kType, "a torch.Generator has a state, not '{}'", in.type_name(a[0]));
    of = &g->seeds;
  }
  if (given(a[1])) {
    const std::vector<Value> to = in.to_vector(a[1]);
    if (to.size() != 2) in.fail(ErrorKind::kValue, "a state is a seed and a number of draws");
    *of = {static_cast<uint64_t>(in.to_int(to[0], "the seed")), static_cast<uint64_t>(in.to_int(to[1], "the draws"))};
  }
  return make<Tuple>(std::vector<Value>{Value::integer(static_cast<int64_t>(of->seed)),
                                        Value::integer(static_cast<int64_t>(of->draws))});
}
Value host_reads(Interp& in, NativeArgs&) { return Value::integer(torch_state(in).host_reads); }
Value kernel_runs(Interp& in, NativeArgs&) { return Value::integer(torch_state(in).kernel_runs); }
/// For tests: all that follows is an expression, however small its tensors are.
Value stay_lazy(Interp& in, NativeArgs& a) {
  TorchState& state = torch_state(in);
  state.always_lazy = state.always_kernels = in.truth(a[0]);
  state.captures = !a[1].missing() && in.truth(a[1]);
  return Value::none();
}

/// For kernels of the library to count in: there at once, without an expression that others might take in.
Value zeros_in_memory(Interp& in, NativeArgs& a) {
  const Device device = tensor_object(in, a[2]).device();
  const int64_t shape[] = {in.to_int(a[0], "a size")};
  return wrap(taken(in, Tensor::full(device, a[1].dtype(), shape, 0)));
}

constexpr NativeDef kLibrary[] = {
    {"autocast(device_type, dtype)", autocast, "what products have there, or None; what it was before"},
    {"become(input, view)", become, "the same memory in another shape, in place"},
    {"check_places(places, size, dim, from_end, of_gather=False)", check_places, "an error for one outside"},
    {"device_info(device=None)", device_info, "figures of a device"},
    {"dimension(dim, rank, extra=0)", dimension, "a dimension from 0"},
    {"free_memory(device=None)", free_memory, "bytes of it that nobody has"},
    {"host_reads()", host_reads, "how often tensors were read on the host, for tests"},
    {"iota(n, like, dtype=None)", iota, "0, 1, 2… as part of an expression"},
    {"is_deterministic()", is_deterministic, "must sums have one order in every run?"},
    {"uniform(shape, like, generator=None)", uniform, "torch.rand as part of an expression"},
    {"kernel_runs()", kernel_runs, "how often operations that are no expressions ran as kernels, for tests"},
    {"lazily(function)", lazily, "the same function, whose operations are one expression"},
    {"narrowed(*tensors)", narrowed, "as torch.autocast() has products take them"},
    {"nonzero(input)", nonzero, "where elements are other than 0, per dimension"},
    {"processors(input, otherwise=)", processors, "multiprocessors of the tensor's GPU, or what it is elsewhere"},
    {"promoted(type1, type2)", promoted, "the dtype that numbers of both become"},
    {"put(input, places, values, how)", put, "stores values at row-major positions (on the host)"},
    {"put_items(input, index, values, how)", put_items, "combines values with the elements of an index (on the host)"},
    {"rng_state(generator=None, to=None)", rng_state, "a seed and how many draws there were of it"},
    {"runs_kernels(input, *others)", runs_kernels_,
     "do operations that are no expressions run as kernels on its device?"},
    {"set_default_device(device)", set_default_device, "where tensors are made"},
    {"set_default_dtype(d)", set_default_dtype, "of what is made of floats"},
    {"get_default_dtype()", get_default_dtype, "of what is made of floats"},
    {"set_deterministic(on)", set_deterministic, "must sums have one order in every run?"},
    {"set_print(precision, threshold, edgeitems, linewidth, sci_mode)", set_print, "how tensors are shown"},
    {"set_tf32(on)", set_tf32, "may products of float32 round to tf32?"},
    {"stay_lazy(on, captured=False)", stay_lazy, "all operations are expressions or kernels, for tests"},
    {"store(input, places, inside, values, adds)", store,
     "an expression's values at places of a tensor's memory, by the kernel that computes them"},
    {"widened(*tensors)", widened, "as torch.autocast() has functions take them that need a wide range"},
    {"zeros(n, dtype, like)", zeros_in_memory, "zeros in memory"},
    {"take(input, dims, places, any_outside=False)", take, "elements at places of some dimensions"},
};

void fill_library(Interp& in, ModuleObject& m) {
  install_grad(in);
  add_functions(m, kLibrary);
  add_functions(m, grad_functions());
  add_functions(m, update_functions());
  add_functions(m, sorting_functions());
  add_functions(m, scanning_functions());
  add_functions(m, complex_functions());
  add_functions(m, eigen_functions());
  add_functions(m, archive_functions());
}

constexpr ModuleDef kModules[] = {{"torch._kiln", fill_library}};

}  // namespace

std::span<const ModuleDef> torch_library_modules() { return kModules; }

namespace {

/// Whose functions are methods of tensors.
constexpr std::string_view kMethodModules[] = {
    "torch._tensor",  "torch._elementwise", "torch._products", "torch._sorting", "torch._methods",
    "torch._special", "torch._algebra",     "torch._in_place", "torch._slices",  "torch._gammas"};

}  // namespace

std::optional<Value> tensor_library_method(Interp& in, const Value& self, std::string_view name) {
  static const std::unordered_map<std::string, std::string_view, TextHash, std::equal_to<>> path_of = [] {
    std::unordered_map<std::string, std::string_view, TextHash, std::equal_to<>> all;
    for (std::string_view path : kMethodModules)
      for (std::string& method : library_module(path).names) all.emplace(std::move(method), path);
    return all;
  }();
  const auto known = path_of.find(name);
  if (known == path_of.end()) return std::nullopt;
  const Value function = *in.import_module(known->second)->attribute(in, name);
  return Value(make<BoundMethod>(self, unless_complex(in, function)));
}

void tensor_library_names(std::vector<std::string>& out) {
  for (std::string_view path : kMethodModules)
    for (std::string& name : library_module(path).names) out.push_back(std::move(name));
}

}  // namespace kiln::script
