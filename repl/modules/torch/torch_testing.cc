// Whether the elements of two tensors are close, and what is said of those that are not.
#include "repl/modules/torch/torch_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repl/modules/modules.h"
#include "repl/modules/torch/memory_order.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/modules/torch/tensor_sort.h"
#include "repl/modules/torch/tolerance.h"

namespace kiln::script {

namespace {

double number_or(Interp& in, const Value& v, double otherwise) {
  return v.missing() || v.is_none() ? otherwise : in.to_double(v, "a tolerance");
}

/// Whether all elements of a tensor of bools are true: one element is read.
bool all_true(Interp& in, const Value& bools) {
  CallArgs none;
  return in.truth(in.call(in.attribute(bools, "all"), none));
}

/// What torch.isclose() says of all, by kernels; nothing where they do not compare these.
std::optional<bool> close_by_kernels(Interp& in, const Tensor& x, const Tensor& y, double rtol, double atol,
                                     bool equal_nan) {
  if (!runs_kernels(in, x.device()) || x.numel() == 0 || !(x.device() == y.device()) || x.dtype() != y.dtype() ||
      !(rtol >= 0 && atol >= 0))
    return std::nullopt;
  auto numbers = [&](const Tensor& t) {
    ExprAttributes as;
    as.dtype = DType::kF32;
    return is_fp8(t.dtype()) ? compute(in, ExprOp::kCast, {wrap(t)}, std::move(as)) : wrap(t);
  };
  CallArgs args;
  for (const Value& v : {numbers(x), numbers(y), Value::real(rtol), Value::real(atol), Value::boolean(equal_nan)})
    args.args.push_back(v);
  return all_true(in, in.call(in.attribute(in.import_module("torch"), "isclose"), args));
}

/// "torch.float32"
std::string dtype_text(const Tensor& t) { return fmt::format("torch.{}", info(t.dtype()).torch); }

/// What a script that catches the error reads: PyTorch's text.
std::string not_close_text(Interp& in, const Tensor& x, const std::vector<double>& p, const std::vector<double>& q,
                           const std::vector<bool>& close, double rtol, double atol) {
  const Shape shape = shape_vector(x);
  const size_t wrong = static_cast<size_t>(std::count(close.begin(), close.end(), false));
  const bool exact = rtol == 0 && atol == 0, whole = !is_float(x.dtype());
  double most[2] = {-1, -1};  // absolute, relative
  size_t worst[2] = {0, 0};
  for (size_t i = 0; i < p.size(); ++i) {
    if (close[i]) continue;
    double apart = std::fabs(p[i] - q[i]);
    if (x.dtype() == DType::kF32) apart = static_cast<double>(static_cast<float>(apart));
    double share = apart / std::fabs(q[i]);
    if (x.dtype() == DType::kF32 || whole) share = static_cast<double>(static_cast<float>(share));
    const double both[2] = {apart, share};
    for (int k : {0, 1})  // NaN is the most there is
      if (!std::isnan(most[k]) && (both[k] > most[k] || std::isnan(both[k]))) most[k] = both[k], worst[k] = i;
  }
  auto number = [&](double v, bool as_int) {
    return as_int ? fmt::format("{}", static_cast<int64_t>(v)) : in.repr(Value::real(v));
  };
  auto allowed = [&](double tolerance) {
    return exact ? std::string() : fmt::format(" (up to {} allowed)", in.repr(Value::real(tolerance)));
  };
  if (shape.empty())
    return fmt::format(
        "Scalars are not {}!\n\nExpected {} but got {}.\nAbsolute difference: {}{}\n"
        "Relative difference: {}{}",
        exact ? "equal" : "close", number(q[0], whole), number(p[0], whole), number(most[0], whole), allowed(atol),
        number(most[1], false), allowed(rtol));
  auto place = [&](size_t left) {
    std::vector<int64_t> at(shape.size());
    for (size_t d = shape.size(); d-- > 0; left /= static_cast<size_t>(shape[d]))
      at[d] = static_cast<int64_t>(left % static_cast<size_t>(shape[d]));
    return fmt::format("({}{})", fmt::join(at, ", "), at.size() == 1 ? "," : "");
  };
  return fmt::format(
      "Tensor-likes are not {}!\n\nMismatched elements: {} / {} ({:.1f}%)\n"
      "Greatest absolute difference: {} at index {}{}\nGreatest relative difference: {} at index {}{}",
      exact ? "equal" : "close", wrong, p.size(), 100.0 * static_cast<double>(wrong) / static_cast<double>(p.size()),
      number(most[0], whole), place(worst[0]), allowed(atol), number(most[1], false), place(worst[1]), allowed(rtol));
}

}  // namespace

Value allclose_tensors(Interp& in, NativeArgs& a) {
  const Tensor &x = seen_tensor(in, a[0], "allclose()"), &y = seen_tensor(in, a[1], "allclose()");
  const double rtol = number_or(in, a[2], 1e-5), atol = number_or(in, a[3], 1e-8);
  const bool equal_nan = !a[4].missing() && in.truth(a[4]);
  if (const auto close = close_by_kernels(in, x, y, rtol, atol, equal_nan)) return Value::boolean(*close);
  auto close = close_elements(in, x, y, rtol, atol, equal_nan);
  return Value::boolean(std::all_of(close.begin(), close.end(), [](bool b) { return b; }));
}
Value equal_tensors(Interp& in, NativeArgs& a) {
  const Tensor &x = seen_tensor(in, a[0], "equal()"), &y = seen_tensor(in, a[1], "equal()");
  if (shape_vector(x) != shape_vector(y)) return Value::boolean(false);
  const Value same = tensor_compare(in, ast::CompareOp::kEq, wrap(x), wrap(y));
  if (runs_kernels(in, x.device()) && x.numel() > 0) return Value::boolean(all_true(in, same));
  std::vector<int64_t> v = load_ints(in, same.get<TensorObject>()->tensor(in), shape_vector(x));
  return Value::boolean(std::all_of(v.begin(), v.end(), [](int64_t b) { return b != 0; }));
}

Value assert_tensors_close(Interp& in, NativeArgs& a) {
  const Tensor &x = seen_tensor(in, a[0], "assert_close()"), &y = seen_tensor(in, a[1], "assert_close()");
  if (shape_vector(x) != shape_vector(y))
    in.fail_as_type(
        "AssertionError",
        fmt::format("the shapes {} and {} differ", in.repr(size_value(x.shape())), in.repr(size_value(y.shape()))), {},
        fmt::format("The values for attribute 'shape' do not match: {} != {}.", in.repr(size_value(x.shape())),
                    in.repr(size_value(y.shape()))));
  bool check_dtype = a[5].missing() || in.truth(a[5]);
  if (check_dtype && x.dtype() != y.dtype())
    in.fail_as_type(
        "AssertionError", fmt::format("the dtypes {} and {} differ", info(x.dtype()).torch, info(y.dtype()).torch), {},
        fmt::format("The values for attribute 'dtype' do not match: {} != {}.", dtype_text(x), dtype_text(y)));
  Tolerance s = tolerance_of(x.dtype()), t = tolerance_of(y.dtype());
  double rtol = number_or(in, a[2], std::max(s.rtol, t.rtol)), atol = number_or(in, a[3], std::max(s.atol, t.atol));
  Shape shape = shape_vector(x);
  const bool equal_nan = !a[4].missing() && in.truth(a[4]);
  // Which are not close is looked up here, and said.
  if (x.numel() >= kLazyElements && close_by_kernels(in, x, y, rtol, atol, equal_nan).value_or(false))
    return Value::none();
  auto close = close_elements(in, x, y, rtol, atol, equal_nan);
  size_t wrong = static_cast<size_t>(std::count(close.begin(), close.end(), false));
  if (wrong == 0) return Value::none();
  auto p = load_floats(in, x, shape), q = load_floats(in, y, shape);
  size_t worst = 0;
  double most = -1;
  for (size_t i = 0; i < p.size(); ++i) {
    double d = std::isnan(p[i]) != std::isnan(q[i]) ? INFINITY : std::fabs(p[i] - q[i]);
    if (!close[i] && d > most) most = d, worst = i;
  }
  std::vector<int64_t> at(shape.size());
  size_t left = worst;
  for (size_t d = shape.size(); d-- > 0; left /= static_cast<size_t>(shape[d]))
    at[d] = static_cast<int64_t>(left % static_cast<size_t>(shape[d]));
  in.fail_as_type(
      "AssertionError",
      fmt::format("{} of {} elements ({:.1f}%) are not close", wrong, p.size(),
                  100.0 * static_cast<double>(wrong) / static_cast<double>(p.size())),
      fmt::format("the largest difference is {:.6g}, at [{}]: {:.9g} and {:.9g} (allowed: {:g} + {:g} * |expected|)",
                  most, fmt::join(at, ", "), p[worst], q[worst], atol, rtol),
      not_close_text(in, x, p, q, close, rtol, atol));
}

}  // namespace kiln::script
