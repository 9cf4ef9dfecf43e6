// Methods of tensors: shapes, conversions, copies and elementwise maths.
#include <algorithm>
#include <cmath>

#include "repl/script/tensor_object.h"

namespace kiln::script {

namespace {

const Tensor& self(NativeArgs& a) { return a.self->get<TensorObject>()->tensor; }
const std::vector<Value>& rest(const Value& v) { return v.get<Tuple>()->items; }

size_t dim_of(Interp& in, const Value& v, const Tensor& t, int64_t extra = 0) {
  int64_t rank = t.rank() + extra, d = in.to_int(v, "a dimension");
  if (d < -rank || d >= rank) in.fail_as("IndexError", "dimension {} of a tensor that has {}", d, t.rank());
  return static_cast<size_t>(d < 0 ? d + rank : d);
}

// --- shape
// ----------------------------------------------------------------------------------------------------------------

Value stride(Interp& in, NativeArgs& a) {
  if (!a[0].missing()) return Value::integer(self(a).strides()[dim_of(in, a[0], self(a))]);
  std::vector<Value> out;
  for (int64_t s : self(a).strides()) out.push_back(Value::integer(s));
  return make<Tuple>(std::move(out));
}
Value size(Interp& in, NativeArgs& a) {
  return a[0].missing() ? size_value(self(a).shape()) : Value::integer(self(a).shape()[dim_of(in, a[0], self(a))]);
}
Value numel(Interp&, NativeArgs& a) { return Value::integer(self(a).numel()); }
Value dim(Interp&, NativeArgs& a) { return Value::integer(self(a).rank()); }
Value element_size(Interp&, NativeArgs& a) { return Value::integer(size_of(self(a).dtype())); }
Value data_ptr(Interp&, NativeArgs& a) { return Value::wide(static_cast<ast::Int>(self(a).address())); }
Value is_contiguous(Interp&, NativeArgs& a) { return Value::boolean(self(a).is_contiguous()); }
Value is_floating_point(Interp&, NativeArgs& a) { return Value::boolean(is_float(self(a).dtype())); }
Value contiguous(Interp& in, NativeArgs& a) {
  return self(a).is_contiguous() ? *a.self : wrap(in.take(self(a).contiguous()));
}

Value view(Interp& in, NativeArgs& a) { return wrap(in.take(self(a).view(shape_of(in, rest(a[0]))))); }
Value reshape(Interp& in, NativeArgs& a) {
  Shape shape = shape_of(in, rest(a[0]));
  auto viewed = self(a).view(shape);
  if (viewed.ok()) return wrap(*viewed);
  return wrap(in.take(in.take(self(a).contiguous()).view(shape)));
}
Value flatten(Interp& in, NativeArgs& a) { return wrap(in.take(in.take(self(a).contiguous()).view(Shape{-1}))); }

Tensor permuted(Interp& in, const Tensor& t, const std::vector<size_t>& order) {
  Shape shape, strides;
  for (size_t d : order) {
    shape.push_back(t.shape()[d]);
    strides.push_back(t.strides()[d]);
  }
  return in.take(t.as_strided(shape, strides, t.offset()));
}
Value transpose(Interp& in, NativeArgs& a) {
  std::vector<size_t> order(self(a).shape().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::swap(order[dim_of(in, a[0], self(a))], order[dim_of(in, a[1], self(a))]);
  return wrap(permuted(in, self(a), order));
}
Value t(Interp& in, NativeArgs& a) {
  if (self(a).rank() > 2)
    in.fail(ErrorKind::kType, "t() is for matrices, this tensor has {} dimensions: use transpose(a, b)",
            self(a).rank());
  return self(a).rank() < 2 ? *a.self : wrap(permuted(in, self(a), {1, 0}));
}
Value permute(Interp& in, NativeArgs& a) {
  std::vector<size_t> order;
  std::vector<bool> used(self(a).shape().size());
  for (int64_t d : shape_of(in, rest(a[0]))) {
    size_t i = dim_of(in, Value::integer(d), self(a));
    if (used[i]) in.fail(ErrorKind::kValue, "permute() names dimension {} twice", i);
    used[i] = true;
    order.push_back(i);
  }
  if (order.size() != used.size()) in.fail(ErrorKind::kValue, "permute() needs all {} dimensions", used.size());
  return wrap(permuted(in, self(a), order));
}
Value unsqueeze(Interp& in, NativeArgs& a) {
  size_t d = dim_of(in, a[0], self(a), 1);
  Shape shape = shape_vector(self(a)), strides(self(a).strides().begin(), self(a).strides().end());
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(d), 1);
  strides.insert(strides.begin() + static_cast<ptrdiff_t>(d), 1);
  return wrap(in.take(self(a).as_strided(shape, strides, self(a).offset())));
}
Value squeeze(Interp& in, NativeArgs& a) {
  Shape shape, strides;
  bool one = !a[0].missing() && !a[0].is_none();
  size_t only = one ? dim_of(in, a[0], self(a)) : 0;
  for (size_t d = 0; d < self(a).shape().size(); ++d) {
    if (self(a).shape()[d] == 1 && (!one || d == only)) continue;
    shape.push_back(self(a).shape()[d]);
    strides.push_back(self(a).strides()[d]);
  }
  return wrap(in.take(self(a).as_strided(shape, strides, self(a).offset())));
}
Value expand(Interp& in, NativeArgs& a) {
  Shape shape = shape_of(in, rest(a[0])), own = shape_vector(self(a));
  if (shape.size() < own.size()) in.fail(ErrorKind::kValue, "expand() needs at least {} dimensions", own.size());
  size_t skip = shape.size() - own.size();
  for (size_t i = skip; i < shape.size(); ++i) {
    if (shape[i] == -1) shape[i] = own[i - skip];
    if (own[i - skip] != 1 && own[i - skip] != shape[i])
      in.fail(ErrorKind::kValue, "dimension {} of size {} cannot be expanded to {}", i, own[i - skip], shape[i]);
  }
  return wrap(expanded(in, self(a), shape));
}

// --- conversions and copies
// -------------------------------------------------------------------------------------------------

Value converted(Interp& in, NativeArgs& a, DType dtype) {
  return self(a).dtype() == dtype ? *a.self : wrap(in.take(self(a).to(dtype)));
}
template <DType T>
Value convert(Interp& in, NativeArgs& a) {
  return converted(in, a, T);
}

/// to(dtype), to(device), to(device, dtype), to(other)
Value to(Interp& in, NativeArgs& a) {
  Tensor out = self(a);
  auto apply = [&](const Value& v) {
    if (v.missing() || v.is_none()) return;
    if (v.is_dtype() || v.get<TypeObject>()) {
      out = in.take(out.to(dtype_of(in, v, out.dtype())));
    } else if (auto* other = v.get<TensorObject>()) {
      out = in.take(in.take(out.to(other->tensor.dtype())).to(other->tensor.device()));
    } else {
      out = in.take(out.to(device_of(in, v)));
    }
  };
  for (const Value& v : rest(a[0])) apply(v);
  apply(a[1]);
  apply(a[2]);
  bool same = out.dtype() == self(a).dtype() && out.device() == self(a).device();
  return same ? *a.self : wrap(out);
}
Value type(Interp& in, NativeArgs& a) { return converted(in, a, dtype_of(in, a[0], self(a).dtype())); }
Value cpu(Interp& in, NativeArgs& a) { return wrap(in.take(self(a).to(in.take(Device::open("cpu"))))); }
Value cuda(Interp& in, NativeArgs& a) { return wrap(in.take(self(a).to(device_of(in, Value::str("cuda"))))); }

Tensor copy(Interp& in, const Tensor& t) {
  Tensor out = in.take(Tensor::empty(t.device(), t.dtype(), t.shape()));
  in.check(out.copy_from(t));
  return out;
}
Value clone(Interp& in, NativeArgs& a) { return wrap(copy(in, self(a))); }
Value itself(Interp&, NativeArgs& a) { return *a.self; }
Value requires_grad(Interp& in, NativeArgs& a) {
  a.self->get<TensorObject>()->requires_grad = a[0].missing() || in.truth(a[0]);
  return *a.self;
}
Value backward(Interp& in, NativeArgs&) {
  in.fail(
      with_note(error(ErrorKind::kUnsupported, "Kiln has no autograd"), "help: launch the backward kernel yourself"));
}

Value fill(Interp& in, NativeArgs& a) {
  in.check(self(a).fill(in.to_double(a[0], "the value")));
  return *a.self;
}
Value zero(Interp& in, NativeArgs& a) {
  in.check(self(a).fill(0));
  return *a.self;
}
Value copy_in(Interp& in, NativeArgs& a) {
  const Tensor& from = tensor_of(in, a[0], "copy_()");
  in.check(self(a).copy_from(
      expanded(in, in.take(in.take(from.to(self(a).device())).to(self(a).dtype())), shape_vector(self(a)))));
  return *a.self;
}
Value uniform(Interp& in, NativeArgs& a) {
  double low = a[0].missing() ? 0 : in.to_double(a[0], "from"), high = a[1].missing() ? 1 : in.to_double(a[1], "to");
  Tensor r = in.take(rand(self(a).device(), DType::kF64, self(a).shape(), in.next_seed()));
  Shape shape = shape_vector(r);
  std::vector<double> v = load_floats(in, r, shape);
  for (double& x : v) x = low + (high - low) * x;
  in.check(self(a).copy_from(store_floats(in, self(a).device(), self(a).dtype(), shape, v)));
  return *a.self;
}
Value normal(Interp& in, NativeArgs& a) {
  double mean = a[0].missing() ? 0 : in.to_double(a[0], "mean"), sigma = a[1].missing() ? 1 : in.to_double(a[1], "std");
  Tensor r = in.take(randn(self(a).device(), DType::kF64, self(a).shape(), in.next_seed()));
  Shape shape = shape_vector(r);
  std::vector<double> v = load_floats(in, r, shape);
  for (double& x : v) x = mean + sigma * x;
  in.check(self(a).copy_from(store_floats(in, self(a).device(), self(a).dtype(), shape, v)));
  return *a.self;
}

Value item(Interp& in, NativeArgs& a) { return item_of(in, self(a)); }
/// What float() and int() of a tensor with one element give.
Value as_float(Interp& in, NativeArgs& a) { return Value::real(in.to_double(item_of(in, self(a)), "the element")); }
Value as_int(Interp& in, NativeArgs& a) {
  Value v = item_of(in, self(a));
  if (!v.is_float()) return in.unary(ast::UnaryOp::kPlus, v);
  if (!std::isfinite(v.real()) || std::fabs(v.real()) >= 0x1p126)
    in.fail(ErrorKind::kValue, "{} cannot be an int", in.repr(v));
  return Value::wide(static_cast<ast::Int>(v.real()));
}
Value as_index(Interp& in, NativeArgs& a) {
  if (is_float(self(a).dtype())) in.fail(ErrorKind::kType, "a tensor of {} is no index", info(self(a).dtype()).torch);
  return as_int(in, a);
}

Value to_list(const std::vector<Value>& flat, const Shape& shape, size_t dim, size_t& at) {
  if (dim == shape.size()) return flat[at++];
  std::vector<Value> out;
  for (int64_t i = 0; i < shape[dim]; ++i) out.push_back(to_list(flat, shape, dim + 1, at));
  return make<List>(std::move(out));
}
Value tolist(Interp& in, NativeArgs& a) {
  std::vector<std::byte> bytes = in.take(self(a).to_bytes());
  std::vector<Value> flat;
  size_t size_each = static_cast<size_t>(size_of(self(a).dtype()));
  for (size_t i = 0; i < static_cast<size_t>(self(a).numel()); ++i)
    flat.push_back(element_value(self(a).dtype(), bytes.data() + i * size_each));
  size_t at = 0;
  return to_list(flat, shape_vector(self(a)), 0, at);
}

// --- new tensors like this one
// ----------------------------------------------------------------------------------------------

Value new_filled(Interp& in, NativeArgs& a, std::optional<double> value) {
  Shape shape = shape_of(in, rest(a[0]));
  DType dtype = dtype_of(in, a[1], self(a).dtype());
  Device device = a[2].missing() || a[2].is_none() ? self(a).device() : device_of(in, a[2]);
  return wrap(in.take(value ? Tensor::full(device, dtype, shape, *value) : Tensor::empty(device, dtype, shape)));
}
Value new_empty(Interp& in, NativeArgs& a) { return new_filled(in, a, std::nullopt); }
Value new_zeros(Interp& in, NativeArgs& a) { return new_filled(in, a, 0.0); }
Value new_ones(Interp& in, NativeArgs& a) { return new_filled(in, a, 1.0); }

// --- maths
// ------------------------------------------------------------------------------------------------------------------

template <double (*F)(double)>
Value mapped(Interp& in, NativeArgs& a) {
  return wrap(map_floats(in, self(a), F));
}
/// Keeps integers: abs, relu, sign, floor…
template <double (*F)(double)>
Value kept(Interp& in, NativeArgs& a) {
  Shape shape = shape_vector(self(a));
  std::vector<double> v = load_floats(in, self(a), shape);
  for (double& x : v) x = F(x);
  return wrap(store_floats(in, self(a).device(), self(a).dtype(), shape, v));
}
template <bool (*F)(double)>
Value tested(Interp& in, NativeArgs& a) {
  Shape shape = shape_vector(self(a));
  std::vector<int64_t> out;
  for (double x : load_floats(in, self(a), shape)) out.push_back(F(x));
  return wrap(store_ints(in, self(a).device(), DType::kI1, shape, out));
}

double exp_of(double x) { return std::exp(x); }
double exp2_of(double x) { return std::exp2(x); }
double log_of(double x) { return std::log(x); }
double log2_of(double x) { return std::log2(x); }
double log1p_of(double x) { return std::log1p(x); }
double sqrt_of(double x) { return std::sqrt(x); }
double rsqrt_of(double x) { return 1 / std::sqrt(x); }
double sin_of(double x) { return std::sin(x); }
double cos_of(double x) { return std::cos(x); }
double tanh_of(double x) { return std::tanh(x); }
double erf_of(double x) { return std::erf(x); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double silu_of(double x) { return x / (1 + std::exp(-x)); }
double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }
double gelu_tanh_of(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double reciprocal_of(double x) { return 1 / x; }
double abs_of(double x) { return std::fabs(x); }
double relu_of(double x) { return x > 0 || std::isnan(x) ? x : 0; }
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double floor_of(double x) { return std::floor(x); }
double ceil_of(double x) { return std::ceil(x); }
double round_of(double x) { return std::nearbyint(x); }
bool nan_of(double x) { return std::isnan(x); }
bool inf_of(double x) { return std::isinf(x); }
bool finite_of(double x) { return std::isfinite(x); }

Value gelu(Interp& in, NativeArgs& a) {
  bool tanh_form = !a[0].missing() && in.to_text(a[0], "approximate") == "tanh";
  return wrap(map_floats(in, self(a), tanh_form ? gelu_tanh_of : gelu_of));
}
Value square(Interp& in, NativeArgs& a) { return tensor_binary(in, ast::BinaryOp::kMul, *a.self, *a.self); }
Value neg(Interp& in, NativeArgs& a) { return in.unary(ast::UnaryOp::kNegate, *a.self); }
Value logical_not(Interp& in, NativeArgs& a) {
  return tensor_compare(in, ast::CompareOp::kEq, *a.self, Value::integer(0));
}

template <ast::BinaryOp Op>
Value combine(Interp& in, NativeArgs& a) {
  return tensor_binary(in, Op, *a.self, a[0]);
}
template <ast::BinaryOp Op>
Value combine_in(Interp& in, NativeArgs& a) {
  Value v = tensor_binary(in, Op, *a.self, a[0]);
  in.check(self(a).copy_from(in.take(v.get<TensorObject>()->tensor.to(self(a).dtype()))));
  return *a.self;
}
template <ast::CompareOp Op>
Value test(Interp& in, NativeArgs& a) {
  return tensor_compare(in, Op, *a.self, a[0]);
}

Value clamp(Interp& in, NativeArgs& a) {
  Shape shape = shape_vector(self(a));
  std::vector<double> v = load_floats(in, self(a), shape);
  bool low = !a[0].missing() && !a[0].is_none(), high = !a[1].missing() && !a[1].is_none();
  double lowest = low ? in.to_double(a[0], "min") : 0, highest = high ? in.to_double(a[1], "max") : 0;
  for (double& x : v) {
    if (low && x < lowest) x = lowest;
    if (high && x > highest) x = highest;
  }
  return wrap(store_floats(in, self(a).device(), self(a).dtype(), shape, v));
}

constexpr NativeDef kMethods[] = {
    {"__float__()", as_float, "the one element as a float"},
    {"__index__()", as_index, "the one integer"},
    {"__int__()", as_int, "the one element as an int"},
    {"add(other)", combine<ast::BinaryOp::kAdd>, "x + other"},
    {"add_(other)", combine_in<ast::BinaryOp::kAdd>, "x += other, in place"},
    {"abs()", kept<abs_of>, "absolute values"},
    {"backward(*args)", backward, "not supported"},
    {"bfloat16()", convert<DType::kBF16>, "as bfloat16"},
    {"bool()", convert<DType::kI1>, "as bool: is it other than 0?"},
    {"ceil()", kept<ceil_of>, "rounded up"},
    {"clamp(min=None, max=None)", clamp, "limited to a range"},
    {"clone()", clone, "a copy"},
    {"contiguous()", contiguous, "in row-major order; itself when it is already"},
    {"copy_(other)", copy_in, "takes the other's elements"},
    {"cos()", mapped<cos_of>, ""},
    {"cpu()", cpu, "on the CPU"},
    {"cuda()", cuda, "on the GPU"},
    {"data_ptr()", data_ptr, "its address on the device"},
    {"detach()", itself, "itself: Kiln has no autograd"},
    {"dim()", dim, "the number of dimensions"},
    {"div(other)", combine<ast::BinaryOp::kDiv>, "x / other"},
    {"div_(other)", combine_in<ast::BinaryOp::kDiv>, "x /= other, in place"},
    {"double()", convert<DType::kF64>, "as float64"},
    {"element_size()", element_size, "bytes of an element"},
    {"eq(other)", test<ast::CompareOp::kEq>, "x == other"},
    {"erf()", mapped<erf_of>, ""},
    {"exp()", mapped<exp_of>, ""},
    {"exp2()", mapped<exp2_of>, ""},
    {"expand(*shape)", expand, "repeated along dimensions of size 1, without a copy"},
    {"fill_(value)", fill, "sets all elements"},
    {"flatten()", flatten, "with one dimension"},
    {"float()", convert<DType::kF32>, "as float32"},
    {"floor()", kept<floor_of>, "rounded down"},
    {"ge(other)", test<ast::CompareOp::kGe>, "x >= other"},
    {"gelu(approximate='none')", gelu, "x · Φ(x)"},
    {"gt(other)", test<ast::CompareOp::kGt>, "x > other"},
    {"half()", convert<DType::kF16>, "as float16"},
    {"int()", convert<DType::kI32>, "as int32"},
    {"is_contiguous()", is_contiguous, "is it in row-major order without gaps?"},
    {"is_floating_point()", is_floating_point, "does it hold floats?"},
    {"isfinite()", tested<finite_of>, ""},
    {"isinf()", tested<inf_of>, ""},
    {"isnan()", tested<nan_of>, ""},
    {"item()", item, "the one element as a number"},
    {"le(other)", test<ast::CompareOp::kLe>, "x <= other"},
    {"log()", mapped<log_of>, ""},
    {"log1p()", mapped<log1p_of>, ""},
    {"log2()", mapped<log2_of>, ""},
    {"logical_not()", logical_not, "x == 0"},
    {"long()", convert<DType::kI64>, "as int64"},
    {"lt(other)", test<ast::CompareOp::kLt>, "x < other"},
    {"mul(other)", combine<ast::BinaryOp::kMul>, "x * other"},
    {"mul_(other)", combine_in<ast::BinaryOp::kMul>, "x *= other, in place"},
    {"ndimension()", dim, "the number of dimensions"},
    {"ne(other)", test<ast::CompareOp::kNe>, "x != other"},
    {"neg()", neg, "-x"},
    {"nelement()", numel, "the number of elements"},
    {"new_empty(*shape, dtype=None, device=None)", new_empty, "an uninitialised tensor of the same dtype and device"},
    {"new_ones(*shape, dtype=None, device=None)", new_ones, "ones of the same dtype and device"},
    {"new_zeros(*shape, dtype=None, device=None)", new_zeros, "zeros of the same dtype and device"},
    {"normal_(mean=0.0, std=1.0)", normal, "fills it with normal random numbers"},
    {"numel()", numel, "the number of elements"},
    {"permute(*dims)", permute, "the dimensions in another order, without a copy"},
    {"pow(exponent)", combine<ast::BinaryOp::kPow>, "x ** exponent"},
    {"reciprocal()", mapped<reciprocal_of>, "1 / x"},
    {"relu()", kept<relu_of>, "max(x, 0)"},
    {"requires_grad_(requires_grad=True)", requires_grad, "accepted; Kiln has no autograd"},
    {"reshape(*shape)", reshape, "in another shape; copies only when it must"},
    {"round()", kept<round_of>, "rounded to the nearest"},
    {"rsqrt()", mapped<rsqrt_of>, "1 / sqrt(x)"},
    {"sigmoid()", mapped<sigmoid_of>, "1 / (1 + exp(-x))"},
    {"sign()", kept<sign_of>, "-1, 0 or 1"},
    {"silu()", mapped<silu_of>, "x · sigmoid(x)"},
    {"sin()", mapped<sin_of>, ""},
    {"size(dim=None)", size, "the shape, or one dimension"},
    {"sqrt()", mapped<sqrt_of>, ""},
    {"square()", square, "x * x"},
    {"squeeze(dim=None)", squeeze, "without dimensions of size 1"},
    {"stride(dim=None)", stride, "the strides in elements, or one of them"},
    {"sub(other)", combine<ast::BinaryOp::kSub>, "x - other"},
    {"sub_(other)", combine_in<ast::BinaryOp::kSub>, "x -= other, in place"},
    {"t()", t, "transposed"},
    {"tanh()", mapped<tanh_of>, ""},
    {"to(*target, dtype=None, device=None)", to, "as another dtype or on another device"},
    {"tolist()", tolist, "as nested lists"},
    {"transpose(dim0, dim1)", transpose, "two dimensions swapped, without a copy"},
    {"type(dtype)", type, "as another dtype"},
    {"uniform_(low=0.0, high=1.0)", uniform, "fills it with uniform random numbers"},
    {"unsqueeze(dim)", unsqueeze, "with a dimension of size 1 put in"},
    {"view(*shape)", view, "in another shape, without a copy"},
    {"zero_()", zero, "sets all elements to 0"},
};

}  // namespace

void install_tensor_methods(Interp& in) {
  in.add_methods({Kind::kTensor, kMethods});
  install_tensor_reductions(in);
  install_tensor_matmul(in);
}

}  // namespace kiln::script
