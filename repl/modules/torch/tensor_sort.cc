#include "repl/modules/torch/tensor_sort.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "repl/modules/torch/host_order.h"
#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

bool runs_kernels(Interp& in, const Device& device) { return device.is_cuda() || torch_state(in).always_kernels; }

Value by_kernels(Interp& in, std::string_view module, std::string_view function, std::span<const Value> arguments) {
  ++torch_state(in).kernel_runs;
  CallArgs args;
  for (const Value& v : arguments) args.args.push_back(v);
  return in.call(*in.import_module(module)->attribute(in, function), args);
}

namespace {

/// A tensor's elements along one dimension, line by line.
struct Lines {
  Tensor tensor;  // with that dimension last
  Shape shape;
  size_t dim = 0, length = 1, count = 1;
};

Lines lines_of(Interp& in, const Tensor& t, int64_t dim) {
  if (dim < 0 || dim >= std::max(1, t.rank()))
    in.fail_as("IndexError", "dimension {} of a tensor that has {}", dim, t.rank());
  Lines out;
  out.shape = shape_vector(t);
  Shape shape = out.shape, strides(t.strides().begin(), t.strides().end());
  if (!shape.empty()) {
    out.dim = static_cast<size_t>(dim);
    std::rotate(shape.begin() + dim, shape.begin() + dim + 1, shape.end());
    std::rotate(strides.begin() + dim, strides.begin() + dim + 1, strides.end());
    out.length = static_cast<size_t>(shape.back());
  }
  out.tensor = taken(in, t.as_strided(shape, strides, t.offset()));
  out.count = out.length == 0 ? 0 : static_cast<size_t>(t.numel()) / out.length;
  return out;
}

/// Lines as a tensor with the dimension where it was.
Value unlined(Interp& in, const Lines& l, const Tensor& lines) {
  if (l.shape.empty()) return wrap(lines);
  Shape shape = shape_vector(lines), strides(lines.strides().begin(), lines.strides().end());
  std::rotate(shape.begin() + static_cast<ptrdiff_t>(l.dim), shape.end() - 1, shape.end());
  std::rotate(strides.begin() + static_cast<ptrdiff_t>(l.dim), strides.end() - 1, strides.end());
  return wrap(taken(in, taken(in, lines.as_strided(shape, strides, lines.offset())).contiguous()));
}

/// Lines that are sorted on the host, and where elements of theirs are.
class HostLines {
 public:
  HostLines(Interp& in, const Tensor& t, int64_t dim, bool descending)
      : in_(in),
        lines_(lines_of(in, t, dim)),
        width_(static_cast<size_t>(size_of(t.dtype()))),
        bytes_(taken(in, lines_.tensor.to_bytes())),
        order_(t.dtype(), descending, [&in] { in.check_interrupt(); }) {
    ++torch_state(in).host_reads;
  }

  size_t length() const { return lines_.length; }

  /// The first `keep` elements of each sorted line, and where they were.
  Value first(size_t keep) {
    std::vector<int64_t> places(lines_.count * keep);
    for (size_t i = 0; i < lines_.count; ++i)
      order_.first(line(i), lines_.length, std::span(places).subspan(i * keep, keep));
    Shape shape = shape_vector(lines_.tensor);
    if (!shape.empty()) shape.back() = static_cast<int64_t>(keep);
    auto [values, where] = results(shape, places, keep);
    return make<Tuple>(std::vector<Value>{unlined(in_, lines_, values), unlined(in_, lines_, where)});
  }

  /// The element of each line that a sort puts at `rank`, and where it was; with `nan_first` the first NaN if there is
  /// one.
  Value ranked(size_t rank, bool nan_first) {
    std::vector<int64_t> places(lines_.count);
    for (size_t i = 0; i < lines_.count; ++i) places[i] = order_.ranked(line(i), lines_.length, rank, nan_first);
    Shape shape = shape_vector(lines_.tensor);
    shape.pop_back();
    auto [values, where] = results(shape, places, 1);
    return make<Tuple>(std::vector<Value>{wrap(std::move(values)), wrap(std::move(where))});
  }

 private:
  const std::byte* line(size_t i) const { return bytes_.data() + i * lines_.length * width_; }

  /// Tensors of the elements at these places, as many of each line, and of the places.
  std::pair<Tensor, Tensor> results(const Shape& shape, const std::vector<int64_t>& places, size_t of_each) {
    std::vector<std::byte> values(places.size() * width_);
    in_.in_pieces(places.size(), [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i)
        std::memcpy(values.data() + i * width_, line(i / of_each) + static_cast<size_t>(places[i]) * width_, width_);
    });
    const Device device = lines_.tensor.device();
    return {taken(in_, Tensor::from_host(device, lines_.tensor.dtype(), shape, values.data(), values.size())),
            taken(in_, Tensor::from_host(device, DType::kI64, shape, places.data(), places.size() * sizeof(int64_t)))};
  }

  Interp& in_;
  const Lines lines_;
  const size_t width_;
  const std::vector<std::byte> bytes_;
  LineOrder order_;
};

/// NaN is the greatest.
bool is_less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

Value as_dtype(Interp& in, const Value& v, DType dtype) {
  ExprAttributes as;
  as.dtype = dtype;
  return compute(in, ExprOp::kCast, {v}, std::move(as));
}

/// Floats of eight bits, for which the kernels have no keys, are halves meanwhile; the first result is of them again.
Value by_kernels_of_halves(Interp& in, std::string_view module, std::string_view function, DType dtype,
                           std::span<const Value> arguments) {
  if (!is_fp8(dtype)) return by_kernels(in, module, function, arguments);
  std::vector<Value> wide(arguments.begin(), arguments.end());
  wide[0] = as_dtype(in, wide[0], DType::kF16);
  Value result = by_kernels(in, module, function, wide);
  if (result.is_none()) return result;
  if (!result.get<Tuple>()) return as_dtype(in, result, dtype);
  std::vector<Value> items = result.get<Tuple>()->items;
  if (!items[0].is_none()) items[0] = as_dtype(in, items[0], dtype);
  return make<Tuple>(std::move(items));
}

/// sort(input, dim, descending, has_values, has_places, is_stable): values and where they were; equal ones keep their
/// order. See torch._sort for what may be left out.
Value sort(Interp& in, NativeArgs& a) {
  const Tensor& t = tensor_of(in, a[0], "sort()");
  if (runs_kernels(in, t.device())) return by_kernels_of_halves(in, "torch._sort", "sort", t.dtype(), a.slots);
  HostLines lines(in, t, in.to_int(a[1], "the dimension"), in.truth(a[2]));
  return lines.first(lines.length());
}

/// topk(input, k, dim, largest, has_values, has_places)
Value topk(Interp& in, NativeArgs& a) {
  const Tensor& t = tensor_of(in, a[0], "topk()");
  if (runs_kernels(in, t.device())) return by_kernels_of_halves(in, "torch._select", "topk", t.dtype(), a.slots);
  HostLines lines(in, t, in.to_int(a[2], "the dimension"), in.truth(a[3]));
  return lines.first(t.rank() == 0 ? 1 : static_cast<size_t>(in.to_int(a[1], "k")));
}

/// late(function, input, shape, orders): function(input, has_values, has_places) gives values, of the input's dtype,
/// and places, both of this shape; or None for what it is not asked for. It runs when one of them is needed. `orders`:
/// the dimension of which the places are an order.
Value late(Interp& in, NativeArgs& a) {
  const Tensor& input = tensor_of(in, a[1], "late()");
  const Shape shape = shape_of(in, {a[2]});
  auto pair = std::make_shared<LatePair>(in, a[0], input,
                                         std::array<LatePair::Half, 2>{
                                             LatePair::Half{input.dtype(), shape},
                                             LatePair::Half{DType::kI64, shape},
                                         });
  if (given(a[3])) pair->orders = in.to_int(a[3], "the dimension");
  std::vector<Value> halves = {make<TensorObject>(pair, 0), make<TensorObject>(pair, 1)};
  return make<Tuple>(std::move(halves));
}

/// is_order(input, dim): whether these are places of all elements along the dimension, of a sort that still waits.
Value is_order(Interp& in, NativeArgs& a) {
  const auto* t = a[0].get<TensorObject>();
  const LatePair* places = t ? t->late_places() : nullptr;
  return Value::boolean(places && places->orders == in.to_int(a[1], "the dimension"));
}

/// ranked(input, dim, rank, nan_first): of a tensor with dimensions.
Value ranked(Interp& in, NativeArgs& a) {
  const Tensor& t = tensor_of(in, a[0], "a rank");
  if (runs_kernels(in, t.device())) return by_kernels_of_halves(in, "torch._sort", "ranked", t.dtype(), a.slots);
  HostLines lines(in, t, in.to_int(a[1], "the dimension"), false);
  return lines.ranked(static_cast<size_t>(in.to_int(a[2], "the rank")), in.truth(a[3]));
}

/// logcumsumexp(input, dim)
Value logcumsumexp(Interp& in, NativeArgs& a) {
  const Tensor& t = tensor_of(in, a[0], "logcumsumexp()");
  if (!is_float(t.dtype())) in.fail(ErrorKind::kType, "logcumsumexp() takes floats");
  if (runs_kernels(in, t.device())) return by_kernels_of_halves(in, "torch._scan", "logcumsumexp", t.dtype(), a.slots);
  const Lines l = lines_of(in, t, in.to_int(a[1], "the dimension"));
  std::vector<double> values = load_floats(in, l.tensor, shape_vector(l.tensor));
  for (size_t i = 0; i < l.count; ++i) {
    double total = -INFINITY;
    for (size_t k = 0; k < l.length; ++k) {
      in.check_interrupt();
      double& v = values[i * l.length + k];
      const double most = std::max(total, v), least = std::min(total, v);
      total = std::isnan(total) || std::isnan(v) ? NAN
              : std::isinf(most)                 ? most
                                                 : most + std::log1p(std::exp(least - most));
      v = total;
    }
  }
  return unlined(in, l, store_floats(in, t.device(), t.dtype(), shape_vector(l.tensor), values));
}

/// searchsorted(sorted, values, right): of lines along the last dimension, or of one line for all values. A NaN is
/// behind all there is, as in torch.
Value searchsorted(Interp& in, NativeArgs& a) {
  const Tensor &s = seen_tensor(in, a[0], "searchsorted()"), &v = seen_tensor(in, a[1], "searchsorted()");
  if (runs_kernels(in, v.device())) return by_kernels(in, "torch._device", "searchsorted", a.slots);
  const bool right = in.truth(a[2]);
  const Shape shape = shape_vector(v);
  const std::vector<double> line = load_floats(in, s, shape_vector(s)), x = load_floats(in, v, shape);
  const size_t length = s.rank() == 0 ? 1 : static_cast<size_t>(s.shape().back());
  const size_t lines = length == 0 || line.empty() ? 1 : line.size() / length,
               each = x.size() / std::max<size_t>(lines, 1);
  if (lines > 1 && x.size() % lines != 0) in.fail(ErrorKind::kType, "searchsorted(): the leading dimensions differ");
  std::vector<int64_t> out;
  for (size_t i = 0; i < x.size(); ++i) {
    in.check_interrupt();
    const auto first = line.begin() + static_cast<ptrdiff_t>((lines > 1 ? i / each : 0) * length);
    const auto last = first + static_cast<ptrdiff_t>(length);
    const auto less = [](double p, double q) { return is_less(p, q); };
    const auto found = std::isnan(x[i]) ? last
                       : right          ? std::upper_bound(first, last, x[i], less)
                                        : std::lower_bound(first, last, x[i], less);
    out.push_back(found - first);
  }
  return wrap(store_ints(in, v.device(), DType::kI64, shape, out));
}

/// counts(bins, weights, number): how often each of 0 … number - 1 is among the bins, or the sum of its weights.
Value counts(Interp& in, NativeArgs& a) {
  const Tensor& b = tensor_of(in, a[0], "bincount()");
  const int64_t n = in.to_int(a[2], "the number of bins");
  constexpr int64_t kMostBins = int64_t{1} << 31;
  if (n < 0 || n > kMostBins) in.fail(ErrorKind::kValue, "{} bins", n);
  if (runs_kernels(in, b.device())) return by_kernels(in, "torch._device", "counts", a.slots);
  const std::vector<int64_t> bins = load_ints(in, b, shape_vector(b));
  if (!given(a[1])) {
    std::vector<int64_t> out(static_cast<size_t>(n));
    for (int64_t i : bins) {
      in.check_interrupt();
      if (i >= 0 && i < n) ++out[static_cast<size_t>(i)];
    }
    return wrap(store_ints(in, b.device(), DType::kI64, {n}, out));
  }
  const Tensor& w = tensor_of(in, a[1], "bincount()'s weights");
  const std::vector<double> weights = load_floats(in, w, shape_vector(w));
  if (weights.size() != bins.size()) in.fail(ErrorKind::kType, "there are as many weights as numbers");
  std::vector<double> out(static_cast<size_t>(n));
  for (size_t i = 0; i < bins.size(); ++i) {
    in.check_interrupt();
    if (bins[i] >= 0 && bins[i] < n) out[static_cast<size_t>(bins[i])] += weights[i];
  }
  return wrap(store_floats(in, b.device(), w.dtype() == DType::kF32 ? DType::kF32 : DType::kF64, {n}, out));
}

/// even_counts(input, number, low, high): how many elements each bin of one width has. None where they are counted from
/// their bins.
Value even_counts(Interp& in, NativeArgs& a) {
  if (!runs_kernels(in, seen_tensor(in, a[0], "histc()").device())) return Value::none();
  return by_kernels(in, "torch._device", "even_counts", a.slots);
}

constexpr NativeDef kSorting[] = {
    {"counts(bins, weights, number)", counts, "how often each number occurs, or the sums of weights"},
    {"even_counts(input, number, low, high)", even_counts, "a histogram of even bins; None on the host"},
    {"logcumsumexp(input, dim)", logcumsumexp, "running logarithms of sums of exponentials"},
    {"searchsorted(sorted, values, right)", searchsorted, "where values would be put in"},
    {"is_order(input, dim)", is_order, "whether these are the places of a sort that waits"},
    {"late(function, input, shape, orders=None)", late, "values and places, of which only what is read is computed"},
    {"sort(input, dim, descending, has_values=True, has_places=True, is_stable=True)", sort,
     "sorted, and where the elements were"},
    {"ranked(input, dim, rank, nan_first)", ranked,
     "one element of each sorted line; None where a sort takes less time"},
    {"topk(input, k, dim, largest, has_values=True, has_places=True)", topk, "the first ones of a sort, without one"},
};

}  // namespace

std::span<const NativeDef> sorting_functions() { return kSorting; }

}  // namespace kiln::script
