#include <algorithm>
#include <cmath>
#include <cstring>

#include "repl/script/tensor_object.h"
#include "runtime/convert.h"

namespace kiln::script {

using ast::BinaryOp;
using ast::CompareOp;

Shape shape_vector(const Tensor& t) { return Shape(t.shape().begin(), t.shape().end()); }

Shape broadcast_shapes(Interp& in, const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      in.fail(ErrorKind::kType, "the shapes {} and {} do not broadcast: dimension {} is {} and {}",
              in.repr(size_value(a)), in.repr(size_value(b)), -static_cast<int>(i) - 1, x, y);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Tensor expanded(Interp& in, const Tensor& t, const Shape& shape) {
  Shape strides(shape.size(), 0);
  size_t skip = shape.size() - t.shape().size();
  for (size_t i = skip; i < shape.size(); ++i) strides[i] = t.shape()[i - skip] == 1 ? 0 : t.strides()[i - skip];
  return in.take(t.as_strided(shape, strides, t.offset()));
}

namespace {

template <class T>
std::vector<T> load(Interp& in, const Tensor& t, const Shape& shape, DType as) {
  Tensor source =
      std::equal(shape.begin(), shape.end(), t.shape().begin(), t.shape().end()) ? t : expanded(in, t, shape);
  std::vector<std::byte> bytes = in.take(source.to_bytes());
  size_t n = static_cast<size_t>(source.numel());
  std::vector<T> out(n);
  runtime::convert_elements(t.dtype(), bytes.data(), as, out.data(), static_cast<int64_t>(n));
  return out;
}

template <class T>
Tensor store(Interp& in, const Device& device, DType dtype, const Shape& shape, const std::vector<T>& values,
             DType as) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(size_of(dtype)));
  runtime::convert_elements(as, values.data(), dtype, bytes.data(), static_cast<int64_t>(values.size()));
  return in.take(Tensor::from_host(device, dtype, shape, bytes.data(), bytes.size()));
}

}  // namespace

std::vector<double> load_floats(Interp& in, const Tensor& t, const Shape& shape) {
  return load<double>(in, t, shape, DType::kF64);
}
std::vector<int64_t> load_ints(Interp& in, const Tensor& t, const Shape& shape) {
  return load<int64_t>(in, t, shape, DType::kI64);
}
Tensor store_floats(Interp& in, const Device& d, DType t, const Shape& s, const std::vector<double>& v) {
  return store(in, d, t, s, v, DType::kF64);
}
Tensor store_ints(Interp& in, const Device& d, DType t, const Shape& s, const std::vector<int64_t>& v) {
  return store(in, d, t, s, v, DType::kI64);
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (is_half(a) && is_half(b)) return DType::kF32;
    if (is_fp8(a) && is_fp8(b)) return DType::kF32;
    return bits(a) > bits(b) ? a : b;
  }
  if (is_signed(a) == is_signed(b)) return bits(a) > bits(b) ? a : b;
  DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (bits(s) > bits(u)) return s;
  constexpr DType kWider[] = {DType::kI16, DType::kI32, DType::kI64};
  for (DType w : kWider)
    if (bits(w) > bits(u)) return w;
  return DType::kI64;
}

namespace {

/// A side of an operator: a tensor, or a Python number that follows the tensor's dtype.
struct Side {
  const Tensor* tensor = nullptr;
  double number = 0;
  int64_t whole = 0;
  int rank = 0;  // 0 bool, 1 int, 2 float
  Shape shape() const { return tensor ? shape_vector(*tensor) : Shape(); }
};

int rank_of(DType t) { return is_float(t) ? 2 : t == DType::kI1 ? 0 : 1; }

std::optional<Side> side_of(Interp& in, const Value& v) {
  Side s;
  if (auto* t = v.get<TensorObject>()) {
    s.tensor = &t->tensor;
    s.rank = rank_of(t->tensor.dtype());
    return s;
  }
  if (v.is_float()) {
    s.number = v.real();
    s.rank = 2;
  } else if (v.small_int_or_bool()) {
    s.whole = v.integer();
    s.number = static_cast<double>(s.whole);
    s.rank = v.is_bool() ? 0 : 1;
  } else {
    return std::nullopt;
  }
  (void)in;
  return s;
}

/// Tensors with dimensions decide among themselves, then 0-d tensors, then numbers, unless a later one is of a higher
/// kind (bool < int < float): torch's rule.
DType result_dtype(const Side& a, const Side& b) {
  auto order = [](const Side& s) { return !s.tensor ? 2 : s.tensor->rank() == 0 ? 1 : 0; };
  auto own = [](const Side& s) {
    return s.tensor ? s.tensor->dtype() : s.rank == 2 ? DType::kF32 : s.rank == 1 ? DType::kI64 : DType::kI1;
  };
  if (order(a) == order(b)) return promote(own(a), own(b));
  const Side& strong = order(a) < order(b) ? a : b;
  const Side& weak = order(a) < order(b) ? b : a;
  return weak.rank > strong.rank ? own(weak) : own(strong);
}

const Device device_for(Interp& in, const Side& a, const Side& b, std::string_view what) {
  const Tensor& first = a.tensor ? *a.tensor : *b.tensor;
  if (a.tensor && b.tensor && a.tensor->rank() > 0 && b.tensor->rank() > 0 &&
      !(a.tensor->device() == b.tensor->device()))
    in.fail(with_note(error(ErrorKind::kType, "'{}' of tensors on two devices, {} and {}", what,
                            a.tensor->device().name(), b.tensor->device().name()),
                      "help: move one with .to(device)"));
  return b.tensor && b.tensor->rank() > first.rank() ? b.tensor->device() : first.device();
}

template <class T>
std::vector<T> values_of(Interp& in, const Side& s, const Shape& shape, size_t n) {
  if constexpr (std::is_same_v<T, double>) {
    return s.tensor ? load_floats(in, *s.tensor, shape) : std::vector<double>(n, s.number);
  } else {
    return s.tensor ? load_ints(in, *s.tensor, shape) : std::vector<int64_t>(n, s.whole);
  }
}

size_t count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return static_cast<size_t>(n);
}

template <class T, class F>
void zip_with(std::vector<T>& x, const std::vector<T>& y, F f) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], y[i]);
}

void float_binary(BinaryOp op, std::vector<double>& x, const std::vector<double>& y) {
  switch (op) {
    case BinaryOp::kAdd:
      return zip_with(x, y, [](double a, double b) { return a + b; });
    case BinaryOp::kSub:
      return zip_with(x, y, [](double a, double b) { return a - b; });
    case BinaryOp::kMul:
      return zip_with(x, y, [](double a, double b) { return a * b; });
    case BinaryOp::kDiv:
      return zip_with(x, y, [](double a, double b) { return a / b; });
    case BinaryOp::kFloorDiv:
      return zip_with(x, y, [](double a, double b) { return std::floor(a / b); });
    case BinaryOp::kMod:
      return zip_with(x, y, [](double a, double b) {
        double r = std::fmod(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      });
    case BinaryOp::kPow:
      return zip_with(x, y, [](double a, double b) { return std::pow(a, b); });
    case BinaryOp::kMatMul:
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      break;
  }
}

int64_t wrapped_pow(int64_t base, int64_t exponent) {
  auto b = static_cast<uint64_t>(base);
  uint64_t r = 1;
  for (; exponent > 0; exponent >>= 1, b *= b)
    if (exponent & 1) r *= b;
  return static_cast<int64_t>(r);
}

void int_binary(Interp& in, BinaryOp op, std::vector<int64_t>& x, const std::vector<int64_t>& y) {
  using U = uint64_t;
  auto wrap = [](U v) { return static_cast<int64_t>(v); };
  if (op == BinaryOp::kFloorDiv || op == BinaryOp::kMod)
    for (int64_t v : y)
      if (v == 0) in.fail_as("ZeroDivisionError", "division by zero in a tensor of integers");
  if (op == BinaryOp::kPow)
    for (int64_t v : y)
      if (v < 0) in.fail(ErrorKind::kValue, "integers cannot be raised to a negative power");
  switch (op) {
    case BinaryOp::kAdd:
      return zip_with(x, y, [&](int64_t a, int64_t b) { return wrap(U(a) + U(b)); });
    case BinaryOp::kSub:
      return zip_with(x, y, [&](int64_t a, int64_t b) { return wrap(U(a) - U(b)); });
    case BinaryOp::kMul:
      return zip_with(x, y, [&](int64_t a, int64_t b) { return wrap(U(a) * U(b)); });
    case BinaryOp::kFloorDiv:
      return zip_with(x, y, [&](int64_t a, int64_t b) {
        if (b == -1) return wrap(U(0) - U(a));
        int64_t q = a / b;
        return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
      });
    case BinaryOp::kMod:
      return zip_with(x, y, [](int64_t a, int64_t b) {
        int64_t r = b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      });
    case BinaryOp::kPow:
      return zip_with(x, y, wrapped_pow);
    case BinaryOp::kAnd:
      return zip_with(x, y, [](int64_t a, int64_t b) { return a & b; });
    case BinaryOp::kOr:
      return zip_with(x, y, [](int64_t a, int64_t b) { return a | b; });
    case BinaryOp::kXor:
      return zip_with(x, y, [](int64_t a, int64_t b) { return a ^ b; });
    case BinaryOp::kShl:
      return zip_with(x, y, [&](int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : wrap(U(a) << b); });
    case BinaryOp::kShr:
      return zip_with(x, y, [](int64_t a, int64_t b) { return a >> std::clamp<int64_t>(b, 0, 63); });
    case BinaryOp::kDiv:
    case BinaryOp::kMatMul:
      break;
  }
}

bool is_bitwise(BinaryOp op) {
  return op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor || op == BinaryOp::kShl ||
         op == BinaryOp::kShr;
}

}  // namespace

Value tensor_binary(Interp& in, BinaryOp op, const Value& left, const Value& right) {
  auto a = side_of(in, left), b = side_of(in, right);
  if (!a || !b)
    in.fail(ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", ast::spelling(op), in.type_name(left),
            in.type_name(right));
  if (op == BinaryOp::kMatMul) return wrap(matmul(in, tensor_of(in, left, "'@'"), tensor_of(in, right, "'@'")));
  DType dtype = result_dtype(*a, *b);
  if (op == BinaryOp::kDiv && !is_float(dtype)) dtype = DType::kF32;
  if (is_bitwise(op) && is_float(dtype))
    in.fail(ErrorKind::kType, "'{}' does not apply to tensors of {}", ast::spelling(op), info(dtype).torch);
  Device device = device_for(in, *a, *b, ast::spelling(op));
  Shape shape = broadcast_shapes(in, a->shape(), b->shape());
  size_t n = count(shape);
  if (is_float(dtype)) {
    auto x = values_of<double>(in, *a, shape, n), y = values_of<double>(in, *b, shape, n);
    float_binary(op, x, y);
    return wrap(store_floats(in, device, dtype, shape, x));
  }
  auto x = values_of<int64_t>(in, *a, shape, n), y = values_of<int64_t>(in, *b, shape, n);
  int_binary(in, op, x, y);
  return wrap(store_ints(in, device, dtype, shape, x));
}

namespace {
template <class T>
std::vector<int64_t> compared(CompareOp op, const std::vector<T>& x, const std::vector<T>& y) {
  std::vector<int64_t> out(x.size());
  auto run = [&](auto test) {
    for (size_t i = 0; i < x.size(); ++i) out[i] = test(x[i], y[i]);
  };
  switch (op) {
    case CompareOp::kEq:
      run([](T a, T b) { return a == b; });
      break;
    case CompareOp::kNe:
      run([](T a, T b) { return a != b; });
      break;
    case CompareOp::kLt:
      run([](T a, T b) { return a < b; });
      break;
    case CompareOp::kLe:
      run([](T a, T b) { return a <= b; });
      break;
    case CompareOp::kGt:
      run([](T a, T b) { return a > b; });
      break;
    case CompareOp::kGe:
      run([](T a, T b) { return a >= b; });
      break;
    case CompareOp::kIs:
    case CompareOp::kIsNot:
    case CompareOp::kIn:
    case CompareOp::kNotIn:
      break;
  }
  return out;
}
}  // namespace

Value tensor_compare(Interp& in, CompareOp op, const Value& left, const Value& right) {
  auto a = side_of(in, left), b = side_of(in, right);
  if (!a || !b) {
    if (op == CompareOp::kEq || op == CompareOp::kNe) return Value::boolean(op == CompareOp::kNe);
    in.fail(ErrorKind::kType, "'{}' does not apply to '{}' and '{}'", ast::spelling(op), in.type_name(left),
            in.type_name(right));
  }
  Device device = device_for(in, *a, *b, ast::spelling(op));
  Shape shape = broadcast_shapes(in, a->shape(), b->shape());
  size_t n = count(shape);
  bool floats = a->rank == 2 || b->rank == 2;
  auto out = floats ? compared(op, values_of<double>(in, *a, shape, n), values_of<double>(in, *b, shape, n))
                    : compared(op, values_of<int64_t>(in, *a, shape, n), values_of<int64_t>(in, *b, shape, n));
  return wrap(store_ints(in, device, DType::kI1, shape, out));
}

Tensor map_floats(Interp& in, const Tensor& t, double (*f)(double)) {
  Shape shape = shape_vector(t);
  std::vector<double> v = load_floats(in, t, shape);
  for (double& x : v) x = f(x);
  return store_floats(in, t.device(), is_float(t.dtype()) ? t.dtype() : DType::kF32, shape, v);
}

std::vector<bool> close_elements(Interp& in, const Tensor& a, const Tensor& b, double rtol, double atol,
                                 bool equal_nan) {
  Shape shape = broadcast_shapes(in, shape_vector(a), shape_vector(b));
  auto x = load_floats(in, a, shape), y = load_floats(in, b, shape);
  std::vector<bool> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    bool nans = std::isnan(x[i]) && std::isnan(y[i]);
    out[i] = x[i] == y[i] || (nans && equal_nan) ||
             (std::isfinite(x[i]) && std::isfinite(y[i]) && std::fabs(x[i] - y[i]) <= atol + rtol * std::fabs(y[i]));
  }
  return out;
}

Value element_value(DType dtype, const void* element) {
  if (dtype == DType::kI1) return Value::boolean(*static_cast<const uint8_t*>(element) != 0);
  if (is_float(dtype)) return Value::real(to_double(dtype, element));
  if (dtype == DType::kU64) {
    uint64_t v;
    std::memcpy(&v, element, sizeof v);
    return Value::wide(static_cast<ast::Int>(v));
  }
  int64_t v = 0;
  runtime::convert_elements(dtype, element, DType::kI64, &v, 1);
  return Value::integer(v);
}

Value item_of(Interp& in, const Tensor& t) {
  if (t.numel() != 1) in.fail(ErrorKind::kValue, "a tensor of {} elements is no single number", t.numel());
  std::vector<std::byte> bytes = in.take(t.to_bytes());
  return element_value(t.dtype(), bytes.data());
}

}  // namespace kiln::script
