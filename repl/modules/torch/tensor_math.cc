#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "repl/modules/torch/tensor_object.h"
#include "runtime/tensor/convert.h"

namespace kiln::script {

Shape shape_vector(const Tensor& t) { return Shape(t.shape().begin(), t.shape().end()); }

Tensor expanded(Interp& in, const Tensor& t, const Shape& shape) {
  if (auto both = broadcast_shapes(t.shape(), shape); !both.ok() || *both != shape)
    in.fail_as("RuntimeError", "a tensor of shape [{}] does not broadcast to [{}]", fmt::join(t.shape(), ", "),
               fmt::join(shape, ", "));
  Shape strides(shape.size(), 0);
  // A size of 1 is read again and again, by a stride of 0.
  size_t skip = shape.size() - t.shape().size();
  for (size_t i = skip; i < shape.size(); ++i) strides[i] = t.shape()[i - skip] == 1 ? 0 : t.strides()[i - skip];
  return taken(in, t.as_strided(shape, strides, t.offset()));
}

namespace {

template <class T>
std::vector<T> load(Interp& in, const Tensor& t, const Shape& shape, DType as) {
  // For tests: what can be computed where the tensor is must not come by here.
  ++torch_state(in).host_reads;
  Tensor source =
      std::equal(shape.begin(), shape.end(), t.shape().begin(), t.shape().end()) ? t : expanded(in, t, shape);
  // Packed elements of the host are read where they are.
  const bool here = !source.device().is_cuda() && source.is_contiguous() && !source.is_freed();
  const std::vector<std::byte> copied = here ? std::vector<std::byte>() : taken(in, source.to_bytes());
  const std::byte* bytes = here ? reinterpret_cast<const std::byte*>(source.address()) : copied.data();
  size_t n = static_cast<size_t>(source.numel());
  const auto width = static_cast<size_t>(size_of(t.dtype()));
  std::vector<T> out;
  out.reserve(n);
  in.in_pieces(n, [&](size_t first, size_t last) {
    out.resize(last);
    runtime::convert_elements(t.dtype(), bytes + first * width, as, out.data() + first,
                              static_cast<int64_t>(last - first));
  });
  return out;
}

template <class T>
Tensor store(Interp& in, const Device& device, DType dtype, const Shape& shape, const std::vector<T>& values,
             DType as) {
  const auto width = static_cast<size_t>(size_of(dtype));
  std::vector<std::byte> bytes;
  bytes.reserve(values.size() * width);
  in.in_pieces(values.size(), [&](size_t first, size_t last) {
    bytes.resize(last * width);
    runtime::convert_elements(as, values.data() + first, dtype, bytes.data() + first * width,
                              static_cast<int64_t>(last - first));
  });
  return taken(in, Tensor::from_host(device, dtype, shape, bytes.data(), bytes.size()));
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

std::vector<bool> close_elements(Interp& in, const Tensor& a, const Tensor& b, double rtol, double atol,
                                 bool equal_nan) {
  Shape shape = taken(in, broadcast_shapes(a.shape(), b.shape()));
  auto x = load_floats(in, a, shape), y = load_floats(in, b, shape);
  std::vector<bool> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    in.check_interrupt();
    bool nans = std::isnan(x[i]) && std::isnan(y[i]);
    // Equal infinities are close; their difference would be NaN.
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
    // The other integers, in the width that Value has.
  }
  int64_t v = 0;
  runtime::convert_elements(dtype, element, DType::kI64, &v, 1);
  return Value::integer(v);
}

Value item_of(Interp& in, const Tensor& t) {
  if (t.numel() != 1) in.fail_as("RuntimeError", "a tensor of {} elements is no single number", t.numel());
  std::vector<std::byte> bytes = taken(in, t.to_bytes());
  return element_value(t.dtype(), bytes.data());
}

}  // namespace kiln::script
