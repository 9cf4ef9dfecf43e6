#include "repl/modules/torch/torch_ranges.h"

#include <algorithm>
#include <cmath>

#include "repl/script/builtins/builtins.h"

namespace kiln::script {

Value grad_flag(Interp& in, Value tensor, const Value& flag) {
  if (!flag.missing()) tensor.get<TensorObject>()->set_requires_grad(in, in.truth(flag));
  return tensor;
}

bool counts_lazily(Interp& in, const Device& device) { return device.is_cuda() || torch_state(in).always_lazy; }

namespace {

constexpr int64_t kMaxMade = int64_t{1} << 31;

Expr as_dtype(Interp& in, const Expr& e, DType dtype) {
  if (e.dtype() == dtype) return e;
  ExprAttributes to;
  to.dtype = dtype;
  return taken(in, apply(ExprOp::kCast, {e}, std::move(to)));
}

/// start, start + step, …, of `T`, rounded to the dtype at the end as on the host.
template <class T>
Value progression(Interp& in, const Device& device, DType dtype, T start, T step, int64_t count) {
  Expr e = Expr::iota(device, count, DType::kI64);
  if constexpr (std::is_same_v<T, double>) e = as_dtype(in, e, DType::kF64);
  if (step != 1) e = taken(in, apply(ExprOp::kMul, {e, Expr::scalar(step)}));
  // One kernel may round a product and a sum together, which only shows in float64.
  if (dtype == DType::kF64 && step != 1 && start != 0) e = Expr(taken(in, run(e)));
  if (start != 0) e = taken(in, apply(ExprOp::kAdd, {e, Expr::scalar(start)}));
  return settled(in, as_dtype(in, e, dtype));
}

/// What arange() was given by position and by name, as (end) or (start, end) or (start, end, step).
std::vector<Value> bounds_of(Interp& in, NativeArgs& a) {
  const std::vector<Value>& by_position = rest_of(a[0]);
  if (by_position.size() > 3) in.fail(ErrorKind::kType, "arange() takes 1 to 3 numbers, got {}", by_position.size());
  const bool end_first = by_position.size() == 1 && a[2].missing();  // arange(5), but arange(1, end=5)
  Value bounds[3];
  for (size_t i = 0; i < by_position.size(); ++i) bounds[end_first ? 1 : i] = by_position[i];
  constexpr std::string_view kNames[] = {"start", "end", "step"};
  for (size_t i = 0; i < 3; ++i) {
    if (a[i + 1].missing()) continue;
    if (!bounds[i].missing()) in.fail(ErrorKind::kType, "arange() got the argument '{}' twice", kNames[i]);
    bounds[i] = a[i + 1];
  }
  if (bounds[1].missing()) in.fail(ErrorKind::kType, "arange() needs the argument 'end'");
  if (bounds[0].missing() && bounds[2].missing()) return {bounds[1]};
  if (bounds[0].missing()) bounds[0] = Value::integer(0);
  if (bounds[2].missing()) return {bounds[0], bounds[1]};
  return {bounds[0], bounds[1], bounds[2]};
}

Value arange(Interp& in, NativeArgs& a) {
  const std::vector<Value> v = bounds_of(in, a);
  bool floats = std::any_of(v.begin(), v.end(), [](const Value& x) { return x.is_float(); });
  auto fail_direction = [&] { in.fail_as("RuntimeError", "arange(): the step leads away from the end"); };
  if (!floats) {
    const int64_t start = v.size() > 1 ? in.to_int(v[0], "start") : 0, end = in.to_int(v[v.size() > 1 ? 1 : 0], "end"),
                  step = v.size() > 2 ? in.to_int(v[2], "step") : 1;
    if (step == 0) in.fail_as("RuntimeError", "arange() needs a step other than 0");
    if (step > 0 ? end < start : end > start) fail_direction();
    const __int128 span = step > 0 ? static_cast<__int128>(end) - start : static_cast<__int128>(start) - end;
    const __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
    const __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
    if (count > kMaxMade)
      in.fail(ErrorKind::kMemory, "arange() of {} elements: at most {} are made", ast::to_string(count), kMaxMade);
    const DType dtype = dtype_of(in, a[4], DType::kI64);
    const Device device = device_of(in, a[5]);
    if (count > 0 && counts_lazily(in, device))
      return grad_flag(in, progression(in, device, dtype, start, step, static_cast<int64_t>(count)), a[6]);
    std::vector<int64_t> out;
    out.reserve(static_cast<size_t>(count));
    in.in_pieces(static_cast<size_t>(count), [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) out.push_back(start + static_cast<int64_t>(i) * step);
    });
    const Shape shape{static_cast<int64_t>(count)};
    return grad_flag(in, wrap(store_ints(in, device, dtype, shape, out)), a[6]);
  }
  double start = v.size() > 1 ? in.to_double(v[0], "start") : 0, end = in.to_double(v[v.size() > 1 ? 1 : 0], "end"),
         step = v.size() > 2 ? in.to_double(v[2], "step") : 1;
  DType dtype = dtype_of(in, a[4], default_dtype(in));
  double elements = (end - start) / step;
  if (step == 0 || !std::isfinite(elements))
    in.fail_as("RuntimeError", "arange() needs finite bounds and a step other than 0");
  const bool rises = step > 0;
  if (is_int(dtype) && dtype != DType::kI1) {
    // As in torch, bounds are whole where the elements are; only int64 counts them by these.
    start = std::trunc(start);
    end = std::trunc(end);
    if (dtype == DType::kI64 && std::trunc(step) == 0)
      in.fail_as("RuntimeError", "arange(): the step {} is 0 in torch.int64", step);
    step = std::trunc(step);
    if (dtype == DType::kI64) elements = (end - start) / step;
  }
  if (rises ? end < start : end > start) fail_direction();
  double count = std::ceil(elements);
  if (count > static_cast<double>(kMaxMade))
    in.fail(ErrorKind::kMemory, "arange() of {} elements: at most {} are made", ast::float_repr(count), kMaxMade);
  Shape shape{std::max<int64_t>(0, static_cast<int64_t>(count))};
  const Device device = device_of(in, a[5]);
  if (shape[0] > 0 && counts_lazily(in, device))
    return grad_flag(in, progression(in, device, dtype, start, step, shape[0]), a[6]);
  std::vector<double> out;
  out.reserve(static_cast<size_t>(shape[0]));
  in.in_pieces(static_cast<size_t>(shape[0]), [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) out.push_back(start + static_cast<double>(i) * step);
  });
  return grad_flag(in, wrap(store_floats(in, device, dtype, shape, out)), a[6]);
}

/// linspace() of integers, as torch has it: whole bounds, steps from the nearer one, and fractions left out.
Value whole_spaced(Interp& in, const Device& device, DType dtype, double start, double end, int64_t n) {
  start = std::trunc(start);
  end = std::trunc(end);
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  if (n > 1 && counts_lazily(in, device)) {
    auto number = [](double x) { return Expr::scalar(x); };
    const Expr i = as_dtype(in, Expr::iota(device, n, DType::kI64), DType::kF64);
    auto along = [&](const Expr& steps, double from) {
      const Expr way = taken(in, apply(ExprOp::kMul, {steps, number(step)}));
      return taken(in, apply(ExprOp::kAdd, {way, number(from)}));
    };
    const Expr behind = taken(in, apply(ExprOp::kAdd, {i, number(static_cast<double>(1 - n))}));
    const int64_t half = n / 2;
    const Expr near_start = taken(in, apply(ExprOp::kLt, {i, number(static_cast<double>(half))}));
    const Expr both = taken(in, apply(ExprOp::kWhere, {near_start, along(i, start), along(behind, end)}));
    return settled(in, as_dtype(in, taken(in, apply(ExprOp::kTrunc, {both})), dtype));
  }
  std::vector<double> out;
  out.reserve(static_cast<size_t>(n));
  in.in_pieces(static_cast<size_t>(n), [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const auto at = static_cast<int64_t>(i);
      out.push_back(std::trunc(at < n / 2 || n == 1 ? start + step * static_cast<double>(at)
                                                    : end - step * static_cast<double>(n - 1 - at)));
    }
  });
  return wrap(store_floats(in, device, dtype, {n}, out));
}

Value evenly_spaced(Interp& in, NativeArgs& a) {
  double start = in.to_double(a[0], "start"), end = in.to_double(a[1], "end");
  int64_t n = in.to_int(a[2], "steps");
  if (n < 0 || n > kMaxMade) in.fail_as("RuntimeError", "linspace() of {} steps: there are 0 to {}", n, kMaxMade);
  const Device device = device_of(in, a[4]);
  const DType dtype = dtype_of(in, a[3], default_dtype(in));
  if (is_int(dtype) && dtype != DType::kI1) return whole_spaced(in, device, dtype, start, end, n);
  // Each element of a narrower type is a multiple of the step, which is rounded once more: a kernel that makes them has
  // no quotient for each.
  const bool by_steps = n > 1 && dtype != DType::kF64;
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  if (n > 1 && counts_lazily(in, device)) {
    Expr e = as_dtype(in, Expr::iota(device, n, DType::kI64), DType::kF64);
    e = taken(in, apply(ExprOp::kMul, {e, Expr::scalar(by_steps ? step : end - start)}));
    if (!by_steps) e = taken(in, apply(ExprOp::kDiv, {e, Expr::scalar(static_cast<double>(n - 1))}));
    return settled(in, as_dtype(in, taken(in, apply(ExprOp::kAdd, {e, Expr::scalar(start)})), dtype));
  }
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(n == 1     ? start
                  : by_steps ? start + step * static_cast<double>(i)
                             : start + (end - start) * static_cast<double>(i) / static_cast<double>(n - 1));
  return wrap(store_floats(in, device, dtype, {n}, out));
}
Value linspace(Interp& in, NativeArgs& a) { return grad_flag(in, evenly_spaced(in, a), a[5]); }

Value identity_matrix(Interp& in, NativeArgs& a) {
  int64_t n = in.to_int(a[0], "n"), m = a[1].missing() || a[1].is_none() ? n : in.to_int(a[1], "m");
  if (n < 0 || m < 0 || (m > 0 && n > kMaxMade / m))
    in.fail_as("RuntimeError",
               "eye() of {} rows and {} columns: no size is negative, and there are at most {} elements", n, m,
               kMaxMade);
  const Device device = device_of(in, a[3]);
  if (n * m > 0 && counts_lazily(in, device)) {
    ExprAttributes column;
    column.shape = {n, 1};
    const Expr rows = taken(in, apply(ExprOp::kReshape, {Expr::iota(device, n, DType::kI64)}, std::move(column)));
    const Expr same = taken(in, apply(ExprOp::kEq, {rows, Expr::iota(device, m, DType::kI64)}));
    return settled(in, as_dtype(in, same, dtype_of(in, a[2], default_dtype(in))));
  }
  std::vector<double> out(static_cast<size_t>(n * m));
  for (int64_t i = 0; i < std::min(n, m); ++i) out[static_cast<size_t>(i * m + i)] = 1;
  return wrap(store_floats(in, device_of(in, a[3]), dtype_of(in, a[2], default_dtype(in)), {n, m}, out));
}
Value eye(Interp& in, NativeArgs& a) { return grad_flag(in, identity_matrix(in, a), a[4]); }

constexpr NativeDef kRanges[] = {
    {"arange(*bounds, start=, end=, step=, dtype=None, device=None, requires_grad=False, pin_memory=False)",
     pinned<arange, 7>, "numbers from start to below end"},
    {"eye(n, m=None, *, dtype=None, device=None, requires_grad=False, pin_memory=False)", pinned<eye, 5>,
     "ones on the diagonal"},
    {"linspace(start, end, steps, *, dtype=None, device=None, requires_grad=False, pin_memory=False)",
     pinned<linspace, 6>, "evenly spaced floats, both ends included"},
};

}  // namespace

std::span<const NativeDef> range_functions() { return kRanges; }

}  // namespace kiln::script
