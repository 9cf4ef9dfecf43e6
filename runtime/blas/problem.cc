#include "runtime/blas/problem.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/device/device.h"
#include "support/diag.h"

namespace kiln::runtime::blas {

namespace {

using enum DType;

// cublasLt does all of them (`serves`). Where nobody asks for a dtype of the result, the first row that fits gives it.
constexpr TypeRow kTypes[] = {
    // a      b        d      cublas openblas
    {kF16, kF16, kF16, true, false},         {kF16, kF16, kF32, true, false},
    {kBF16, kBF16, kBF16, true, false},      {kBF16, kBF16, kF32, true, false},
    {kF32, kF32, kF32, true, true},          {kF64, kF64, kF64, true, true},
    {kI8, kI8, kI32, true, false},           {kF8E4M3, kF8E4M3, kBF16, false, false},
    {kF8E4M3, kF8E4M3, kF16, false, false},  {kF8E4M3, kF8E4M3, kF32, false, false},
    {kF8E4M3, kF8E5M2, kBF16, false, false}, {kF8E4M3, kF8E5M2, kF16, false, false},
    {kF8E4M3, kF8E5M2, kF32, false, false},  {kF8E5M2, kF8E4M3, kBF16, false, false},
    {kF8E5M2, kF8E4M3, kF16, false, false},  {kF8E5M2, kF8E4M3, kF32, false, false},
};

bool serves(const TypeRow& row, MatmulImpl impl) {
  switch (info(impl).library) {
    case BlasLibraryId::kCublas:
      return row.cublas;
    case BlasLibraryId::kCublasLt:
      return true;
    case BlasLibraryId::kOpenBlas:
      return row.openblas;
  }
  return false;
}

// What works on the device when this library does not.
std::string help_for(MatmulImpl impl) {
  std::vector<std::string> taken;
  for (const TypeRow& r : kTypes)
    if (serves(r, impl))
      taken.push_back(r.a == r.b ? fmt::format("{} -> {}", name(r.a), name(r.d))
                                 : fmt::format("{} @ {} -> {}", name(r.a), name(r.b), name(r.d)));
  return fmt::format("help: {} multiplies {}", name(impl), fmt::join(taken, ", "));
}

Diagnostic not_placed(std::string_view which, const Tensor& t) {
  return with_note(error(ErrorKind::kUnsupported,
                         "matmul: {} of shape {} has strides {}: BLAS needs one of the last two to be 1, and the other "
                         "to step over it",
                         which, shape_text(t.shape()), shape_text(t.strides())),
                   fmt::format("help: take a copy with {}.contiguous()", which));
}

Status check_handle(std::string_view which, const Tensor& t) {
  if (!t) return error(ErrorKind::kValue, "matmul: {} is an empty tensor handle", which);
  if (t.is_freed()) return freed_error(fmt::format("matmul: {}", which));
  return {};
}

Status check_device(const Tensor& a, std::string_view which, const Tensor& t) {
  if (a.device() == t.device()) return {};
  return with_note(
      error(ErrorKind::kType, "matmul: a is on {} and {} on {}", a.device().name(), which, t.device().name()),
      "help: move one with .to(device)");
}

// The row of the types that fits, or why there is none.
Result<TypeRow> find_row(const Tensor& a, const Tensor& b, const MatmulOptions& options, MatmulImpl impl) {
  std::optional<DType> wanted = options.out ? std::optional(options.out.dtype()) : options.out_dtype;
  if (options.out && options.out_dtype && options.out.dtype() != *options.out_dtype)
    return error(ErrorKind::kType, "matmul: out is {}, and out_dtype asks for {}", name(options.out.dtype()),
                 name(*options.out_dtype));
  bool known = false;
  for (const TypeRow& r : kTypes) {
    if (r.a != a.dtype() || r.b != b.dtype()) continue;
    known = true;
    if ((!wanted || r.d == *wanted) && serves(r, impl)) return r;
  }
  if (a.dtype() != b.dtype() && !known)
    return error(ErrorKind::kType, "matmul: a is {} and b is {}: the dtypes must be equal (or e4m3 with e5m2)",
                 name(a.dtype()), name(b.dtype()));
  return with_note(error(ErrorKind::kUnsupported, "{} does not multiply {} @ {}{}", name(impl), name(a.dtype()),
                         name(b.dtype()), wanted ? fmt::format(" -> {}", name(*wanted)) : ""),
                   help_for(impl));
}

Status check_options(const GemmProblem& p, MatmulImpl impl) {
  if (!info(impl).has_epilogues() && (p.has_bias || p.activation != Activation::kNone)) {
    std::string others;
    for (const MatmulImplInfo& row : kMatmulImplRows)
      if (row.has_epilogues()) others += (others.empty() ? "" : " or ") + std::string(row.name);
    return with_note(
        error(ErrorKind::kUnsupported, "{} has no epilogues: {}", name(impl), p.has_bias ? "bias" : name(p.activation)),
        fmt::format("help: impl {} has them, on a GPU", others));
  }
  if (p.tf32 && p.a != kF32)
    return error(ErrorKind::kValue, "matmul: tf32 is a way to multiply f32, and the operands are {}", name(p.a));
  if (p.tf32 && !info(impl).has('T'))
    return error(ErrorKind::kUnsupported, "{} multiplies f32 in f32 only, not in tf32", name(impl));
  if (p.fast_accumulation && !is_fp8(p.a))
    return error(ErrorKind::kValue, "matmul: fast accumulation is a way to multiply fp8, and the operands are {}",
                 name(p.a));
  // cublasLt has fp8 only in its "TN" form. Seen from row-major matrices, k is contiguous in both operands there.
  if (is_fp8(p.a) && (p.a_place.column_major || !p.b_place.column_major))
    return with_note(
        error(ErrorKind::kUnsupported,
              "{} multiplies fp8 only where k is contiguous in both operands: {} is laid out the other way", name(impl),
              p.a_place.column_major ? "a" : "b"),
        "help: a row-major [M, K], and b as the transposed view w.t() of a row-major w [N, K]");
  return {};
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::span<const TypeRow> type_rows() { return kTypes; }

std::optional<Placement> place(const Tensor& t, bool prefer_column_major) {
  size_t r = static_cast<size_t>(t.rank()) - 2, c = r + 1;
  int64_t rows = t.shape()[r], columns = t.shape()[c], row_step = t.strides()[r], column_step = t.strides()[c];
  Placement p;
  if (t.rank() == 3 && t.shape()[0] > 1) p.batch_stride = t.strides()[0];
  // BLAS wants a leading dimension that spans a row: expanded tensors, whose step is 0, have no placement.
  if (t.numel() == 0) return Placement{prefer_column_major, 1, 0};
  std::optional<Placement> row_major, column_major;
  if ((columns <= 1 || column_step == 1) && (rows <= 1 || row_step >= std::max<int64_t>(columns, 1)))
    row_major = Placement{false, rows <= 1 ? std::max<int64_t>(columns, 1) : row_step, p.batch_stride};
  if ((rows <= 1 || row_step == 1) && (columns <= 1 || column_step >= std::max<int64_t>(rows, 1)))
    column_major = Placement{true, columns <= 1 ? std::max<int64_t>(rows, 1) : column_step, p.batch_stride};
  if (column_major && (prefer_column_major || !row_major)) return column_major;
  return row_major;
}

std::string GemmProblem::text() const {
  std::string lead = batched ? fmt::format("{}, ", batch) : "";
  std::string s = fmt::format("{} [{}{}, {}]{} @ {} [{}{}, {}]{} -> {}", name(a), lead, m, k,
                              a_place.column_major ? " (transposed)" : "", name(b), lead, k, n,
                              b_place.column_major ? " (transposed)" : "", name(d));
  if (tf32) s += ", tf32";
  if (fast_accumulation) s += ", fast accumulation";
  if (has_bias) s += ", bias";
  if (activation != Activation::kNone) s += fmt::format(", {}", name(activation));
  return s;
}

Result<GemmProblem> make_problem(const Tensor& a, const Tensor& b, const MatmulOptions& options, MatmulImpl impl) {
  KILN_CHECK_OK(check_handle("a", a));
  KILN_CHECK_OK(check_handle("b", b));
  KILN_CHECK_OK(check_device(a, "b", b));
  auto both = [&] { return fmt::format("a {} and b {}", shape_text(a.shape()), shape_text(b.shape())); };
  if (a.rank() < 2 || a.rank() > 3 || b.rank() < 2 || b.rank() > 3)
    return error(ErrorKind::kType, "matmul takes matrices [M, K] and [K, N] or batches of them, got {}", both());
  GemmProblem p;
  auto last = [](const Tensor& t, int from_end) { return t.shape()[static_cast<size_t>(t.rank() - from_end)]; };
  p.m = last(a, 2), p.k = last(a, 1), p.n = last(b, 1);
  if (p.k != last(b, 2))
    return error(ErrorKind::kType, "matmul of {}: the inner dimensions {} and {} differ", both(), p.k, last(b, 2));
  p.batched = a.rank() == 3 || b.rank() == 3;
  int64_t a_batch = a.rank() == 3 ? a.shape()[0] : 1, b_batch = b.rank() == 3 ? b.shape()[0] : 1;
  if (a_batch != b_batch && a_batch != 1 && b_batch != 1)
    return error(ErrorKind::kType, "matmul of {}: the batches {} and {} differ", both(), a_batch, b_batch);
  p.batch = a_batch == 1 ? b_batch : a_batch;

  KILN_TRY(TypeRow row, find_row(a, b, options, impl));
  p.a = row.a, p.b = row.b, p.d = row.d;
  bool needs_k_contiguous = size_of(p.a) == 1;
  auto a_place = place(a, false), b_place = place(b, needs_k_contiguous);
  if (!a_place) return not_placed("a", a);
  if (!b_place) return not_placed("b", b);
  p.a_place = *a_place, p.b_place = *b_place;
  p.d_place = {false, std::max<int64_t>(p.n, 1), p.batch > 1 ? p.m * p.n : 0};

  if (options.out) {
    KILN_CHECK_OK(check_handle("out", options.out));
    KILN_CHECK_OK(check_device(a, "out", options.out));
    std::vector<int64_t> shape = {p.m, p.n};
    if (p.batched) shape.insert(shape.begin(), p.batch);
    if (!std::equal(shape.begin(), shape.end(), options.out.shape().begin(), options.out.shape().end()))
      return error(ErrorKind::kType, "matmul of {} gives {}, and out is {}", both(), shape_text(shape),
                   shape_text(options.out.shape()));
    auto out_place = place(options.out, false);
    // With a step of 0 all matrices of the batch would be written to the same place.
    if (!out_place || out_place->column_major ||
        (p.batch > 1 && out_place->batch_stride == 0 && options.out.numel() > 0))
      return error(ErrorKind::kUnsupported, "matmul: out of shape {} must be row-major, and its strides are {}",
                   shape_text(options.out.shape()), shape_text(options.out.strides()));
    p.d_place = *out_place;
  }
  if (options.bias) {
    KILN_CHECK_OK(check_handle("bias", options.bias));
    KILN_CHECK_OK(check_device(a, "bias", options.bias));
    const int64_t wanted[] = {p.n};
    if (options.bias.rank() != 1 || options.bias.shape()[0] != p.n || !options.bias.is_contiguous())
      return error(ErrorKind::kType, "matmul of {} takes a bias of shape {}, contiguous, got {} with strides {}",
                   both(), shape_text(wanted), shape_text(options.bias.shape()), shape_text(options.bias.strides()));
    if (options.bias.dtype() != p.d)
      return error(ErrorKind::kType, "matmul: the bias is {} and the result {}: the dtypes must be equal",
                   name(options.bias.dtype()), name(p.d));
    p.has_bias = true;
  }
  p.activation = options.activation;
  p.tf32 = options.tf32;
  p.fast_accumulation = options.fast_accumulation;
  KILN_CHECK_OK(check_options(p, impl));
  return p;
}

}  // namespace kiln::runtime::blas
