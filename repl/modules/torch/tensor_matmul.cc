// Matrix products of scripts by a library of the script's choice: torch's shapes on top of kiln::matmul.
#include <utility>

#include "kiln/blas.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/script/builtins/builtins.h"
#include "support/diag.h"

namespace kiln::script {

namespace {

constexpr std::string_view kReference = "reference";

/// The implementation of a product, and its options.
struct Choice {
  MatmulOptions options;
  bool reference = false;  // in float64 on the host, rounded once: what results are checked against
};

[[noreturn]] void fail_shapes(Interp& in, const Tensor& a, const Tensor& b, std::string_view why) {
  in.fail_as("RuntimeError", "matmul of {} and {}: {}", in.repr(size_value(a.shape())), in.repr(size_value(b.shape())),
             why);
}

Tensor reshaped(Interp& in, const Tensor& t, const Shape& shape) {
  if (auto view = t.view(shape); view.ok()) return *view;
  return taken(in, taken(in, t.contiguous()).view(shape));
}

Tensor reference_product(Interp& in, const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  if (options.bias || options.activation != Activation::kNone || options.out || options.tf32 ||
      options.fast_accumulation)
    in.fail(ErrorKind::kUnsupported, "impl reference takes no out, bias, activation, tf32 or fast_accumulation");
  size_t last = static_cast<size_t>(a.rank()) - 1;
  if (!(a.device() == b.device()))
    in.fail_as("RuntimeError", "matmul: a is on {} and b on {}", a.device().name(), b.device().name());
  int64_t m = a.shape()[last - 1], k = a.shape()[last], n = b.shape()[static_cast<size_t>(b.rank()) - 1];
  if (k != b.shape()[static_cast<size_t>(b.rank()) - 2]) fail_shapes(in, a, b, "the inner dimensions differ");
  int64_t a_batch = a.rank() == 3 ? a.shape()[0] : 1, b_batch = b.rank() == 3 ? b.shape()[0] : 1;
  if (a_batch != b_batch && a_batch != 1 && b_batch != 1) fail_shapes(in, a, b, "the batches differ");
  int64_t batch = a_batch == 1 ? b_batch : a_batch;
  std::vector<double> x = load_floats(in, a, shape_vector(a)), y = load_floats(in, b, shape_vector(b));
  std::vector<double> out(static_cast<size_t>(batch * m * n));
  for (int64_t i = 0; i < batch * m; ++i) {
    in.check_interrupt();
    int64_t a_row = a_batch == 1 ? i % m : i, b_first = b_batch == 1 ? 0 : i / m * k;
    double* row = out.data() + i * n;
    for (int64_t p = 0; p < k; ++p) {
      double v = x[static_cast<size_t>(a_row * k + p)];
      const double* other = y.data() + (b_first + p) * n;
      for (int64_t j = 0; j < n; ++j) row[j] += v * other[j];
    }
  }
  Shape shape = {m, n};
  if (a.rank() == 3 || b.rank() == 3) shape.insert(shape.begin(), batch);
  return store_floats(in, a.device(), options.out_dtype.value_or(promote(a.dtype(), b.dtype())), shape, out);
}

/// Two or three dimensions on both sides.
Tensor product(Interp& in, const Tensor& a, const Tensor& b, const Choice& choice) {
  if (choice.reference) return reference_product(in, a, b, choice.options);
  auto ready = [&](const Tensor& t) { return t.is_freed() || matmul_takes_strides(t) ? t : taken(in, t.contiguous()); };
  return taken(in, kiln::matmul(ready(a), ready(b), choice.options));
}

/// torch.matmul's shapes: vectors count as one row or column, more than one leading dimension as one batch.
Tensor product_of_any(Interp& in, const Tensor& a, const Tensor& b, const Choice& choice) {
  if (a.rank() < 1 || b.rank() < 1) fail_shapes(in, a, b, "both need at least one dimension");
  if (a.rank() >= 2 && b.rank() >= 2 && a.rank() <= 3 && b.rank() <= 3) return product(in, a, b, choice);
  if (choice.options.out) in.fail(ErrorKind::kUnsupported, "matmul: out= is for matrices and batches of them");
  Tensor x = a, y = b;
  if (a.rank() == 1)
    x = taken(in, a.as_strided(Shape{1, a.shape()[0]}, Shape{a.shape()[0], a.strides()[0]}, a.offset()));
  if (b.rank() == 1) y = taken(in, b.as_strided(Shape{b.shape()[0], 1}, Shape{b.strides()[0], 1}, b.offset()));
  Shape p = shape_vector(x), q = shape_vector(y), lead(p.begin(), p.end() - 2), other(q.begin(), q.end() - 2);
  if (!lead.empty() && !other.empty() && lead != other)
    in.fail(ErrorKind::kUnsupported, "matmul of {} and {}: the leading dimensions must be equal, or on one side only",
            in.repr(size_value(a.shape())), in.repr(size_value(b.shape())));
  auto joined = [&](const Tensor& t, const Shape& shape) {
    if (shape.size() <= 3) return t;
    return reshaped(in, t, {-1, shape[shape.size() - 2], shape[shape.size() - 1]});
  };
  Tensor out = product(in, joined(x, p), joined(y, q), choice);
  Shape shape = lead.empty() ? other : lead;
  if (a.rank() > 1) shape.push_back(p[p.size() - 2]);
  if (b.rank() > 1) shape.push_back(q.back());
  return reshaped(in, out, shape);
}

/// From the slots impl, out, bias, activation, out_dtype, tf32, fast_accumulation, which begin at `first`.
Choice choice_of(Interp& in, NativeArgs& a, size_t first) {
  Choice c;
  if (given(a[first])) {
    const std::string& text = in.to_text(a[first], "impl");
    c.reference = text == kReference;
    c.options.impl = parse_matmul_impl(text);
    if (!c.options.impl && !c.reference) {
      in.fail(ErrorKind::kValue, "there is no matmul impl '{}': they are {}, {}", text, matmul_impl_names(),
              kReference);
    }
  }
  if (given(a[first + 1])) {
    c.options.out = tensor_of(in, a[first + 1], "out");
    a[first + 1].get<TensorObject>()->changing(in);
  }
  if (given(a[first + 2])) c.options.bias = tensor_of(in, a[first + 2], "bias");
  if (given(a[first + 3])) {
    const std::string& text = in.to_text(a[first + 3], "activation");
    auto activation = parse_activation(text);
    if (!activation) in.fail(ErrorKind::kValue, "there is no activation '{}': they are none, relu, gelu", text);
    c.options.activation = *activation;
  }
  if (given(a[first + 4])) c.options.out_dtype = dtype_of(in, a[first + 4], DType::kF32);
  c.options.tf32 = given(a[first + 5]) && in.truth(a[first + 5]);
  c.options.fast_accumulation = given(a[first + 6]) && in.truth(a[first + 6]);
  return c;
}

/// Without an `impl`, a product is an expression like any other.
Value product_value(Interp& in, const Value& a, const Value& b, const Choice& c) {
  const MatmulOptions& o = c.options;
  const bool plain =
      !c.reference && !o.impl && !o.out && !o.bias && o.activation == Activation::kNone && !o.fast_accumulation;
  if (!plain) return wrap(product_of_any(in, tensor_of(in, a, "matmul()"), tensor_of(in, b, "matmul()"), c));
  for (const Value* v : {&a, &b})
    if (!v->get<TensorObject>()) in.fail(ErrorKind::kType, "matmul() needs a tensor, got '{}'", in.type_name(*v));
  ExprAttributes attributes;
  attributes.dtype = o.out_dtype;
  attributes.tf32 = o.tf32;
  return compute(in, ExprOp::kMatMul, {a, b}, std::move(attributes));
}

/// An empty tensor as out= gets the result's shape; into others the library writes.
Value product_into(Interp& in, NativeArgs& a, const Value& x, const Value& y, size_t options) {
  Value& out = a[options + 1];
  const auto* to = given(out) ? out.get<TensorObject>() : nullptr;
  const Value empty = to && to->numel() == 0 ? std::exchange(out, Value()) : Value();
  return put_out(in, "matmul", product_value(in, x, y, choice_of(in, a, options)), empty);
}
Value matmul_method(Interp& in, NativeArgs& a) { return product_into(in, a, *a.self, a[0], 1); }
Value matmul_function(Interp& in, NativeArgs& a) { return product_into(in, a, a[0], a[1], 2); }
Value ranked(Interp& in, NativeArgs& a, int rank, std::string_view what) {
  auto *x = a.self->get<TensorObject>(), *y = a[0].get<TensorObject>();
  if (!y) in.fail(ErrorKind::kType, "{} needs a tensor, got '{}'", what, in.type_name(a[0]));
  if (x->rank() != rank || y->rank() != rank)
    in.fail_as("RuntimeError", "{} takes two tensors of {} dimensions, got {} and {}", what, rank,
               in.repr(size_value(x->shape())), in.repr(size_value(y->shape())));
  return compute(in, ExprOp::kMatMul, {*a.self, a[0]});
}
Value mm(Interp& in, NativeArgs& a) { return ranked(in, a, 2, "mm()"); }
Value bmm(Interp& in, NativeArgs& a) { return ranked(in, a, 3, "bmm()"); }

#define KILN_MATMUL_IMPL(ENUM, NAME, ...) NAME ", "
constexpr std::string_view kMethodHelp =
    "x @ other; impl: "
#include "kiln/matmul_impl.def"
    "reference";
#define KILN_MATMUL_IMPL(ENUM, NAME, ...) NAME ", "
constexpr std::string_view kFunctionHelp =
    "a @ b; by a BLAS library with impl="
#include "kiln/matmul_impl.def"
    "or reference (float64 on the host)";

constexpr NativeDef kMatmulMethods[] = {
    {"bmm(mat2)", bmm, "batches of matrices multiplied"},
    {"matmul(other, *, impl=None, out=None, bias=None, activation=None, out_dtype=None, tf32=False, "
     "fast_accumulation=False)",
     matmul_method, kMethodHelp},
    {"mm(mat2)", mm, "two matrices multiplied"},
};
constexpr NativeDef kMatmulFunctions[] = {
    {"matmul(a, b, *, impl=None, out=None, bias=None, activation=None, out_dtype=None, tf32=False, "
     "fast_accumulation=False)",
     matmul_function, kFunctionHelp},
};

}  // namespace

void install_tensor_matmul(Interp& in) {
  in.add_methods({TensorObject::kKind, kMatmulMethods});
  in.add_builtins(kMatmulFunctions);
}

}  // namespace kiln::script
