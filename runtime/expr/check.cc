// Expressions against float64.
#include <algorithm>
#include <cmath>

#include "runtime/device/device.h"
#include "runtime/expr/host.h"
#include "runtime/expr/plan.h"
#include "support/diag.h"
#include "support/float_bits.h"

namespace kiln {

using namespace runtime;

namespace {

/// What has no slabs that are cheaper may take so many times the budget.
constexpr double kMostOverBudget = 8;

// Rounding of the result, and of sums and functions in f32 before it, which the values' size explains.
constexpr double kRoundings = 2, kSums = 64 * 0x1p-23, kSumsF64 = 64 * 0x1p-52;
// A kernel for each operation rounds between them.
constexpr double kUnfusedRoundings = 32;
constexpr double kOverUnfused = 4;
// Times what rounding is estimated to do to an element: where operands cancel, or a norm divides by next to nothing.
constexpr double kOverEstimate = 4;

uint64_t next_random(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Result<ExprReference::Slab> slab(const Expr& part, int64_t start) {
  KILN_TRY(HostArray values, evaluate(*part.node(), true));
  if (!values.is_float()) values.floats.assign(values.ints.begin(), values.ints.end());
  if (values.is_float())
    for (double& e : values.error) e *= kOverEstimate;
  return ExprReference::Slab{start, std::move(values.floats), std::move(values.error)};
}

}  // namespace

int64_t ExprReference::checked() const {
  int64_t n = 0;
  for (const Slab& s : slabs) n += static_cast<int64_t>(s.values.size());
  return n;
}

Result<ExprReference> reference(const Expr& expr, double budget, uint64_t seed) {
  if (!expr || !expr.device()) return error(ErrorKind::kValue, "only an expression with a tensor in it has a value");
  KILN_CHECK_OK(check_leaves(ExprWalk(*expr.node())));
  ExprReference out;
  out.dtype = expr.dtype();
  out.shape.assign(expr.shape().begin(), expr.shape().end());
  const double whole = evaluation_cost(*expr.node());
  auto all_of_it = [&]() -> Result<ExprReference> {
    if (whole > kMostOverBudget * budget)
      return error(ErrorKind::kUnsupported, "a float64 reference takes {:.2g} operations on the host, more than {:.2g}",
                   whole, kMostOverBudget * budget);
    KILN_TRY(ExprReference::Slab all, slab(expr, 0));
    out.slabs.push_back(std::move(all));
    return out;
  };
  if (expr.rank() == 0 || expr.shape()[0] < 2 || whole <= budget) return all_of_it();
  constexpr int64_t kSlabs = 4;
  const int64_t rows = expr.shape()[0], row_elements = expr.numel() / rows;
  KILN_TRY(Expr one, rows_of(expr, 0, 1));
  KILN_TRY(Expr two, rows_of(expr, 0, 2));
  const double first = evaluation_cost(*one.node()), each = std::max(1.0, evaluation_cost(*two.node()) - first);
  const double left = std::max(0.0, budget / kSlabs - first);
  // Of a sum over rows a few cost what all do; of a large product one of each slab may be all that can be had.
  const double most = kMostOverBudget * budget;
  if (left == 0 && (whole <= most || kSlabs * first > most)) return all_of_it();
  const int64_t thick = std::clamp<int64_t>(static_cast<int64_t>(left / each), 1, std::max<int64_t>(1, rows / kSlabs));
  std::vector<int64_t> starts = {0, rows - thick};
  for (int64_t i = 2; i < kSlabs; ++i)
    starts.push_back(static_cast<int64_t>(next_random(seed) % static_cast<uint64_t>(rows - thick + 1)));
  std::ranges::sort(starts);
  for (int64_t start : starts) {
    KILN_TRY(Expr part, rows_of(expr, start, thick));
    KILN_TRY(ExprReference::Slab s, slab(part, start * row_elements));
    out.slabs.push_back(std::move(s));
  }
  return out;
}

Result<ExprError> compare(const ExprReference& expected, const Tensor& got, const ExprError* allowed) {
  if (got.dtype() != expected.dtype || !std::ranges::equal(got.shape(), expected.shape))
    return error(ErrorKind::kType, "the result and its reference differ in dtype or shape");
  double squares = 0;
  int64_t finite = 0;
  for (const auto& s : expected.slabs)
    for (double v : s.values)
      if (std::isfinite(v)) squares += v * v, ++finite;
  const double usual = finite ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  ExprError out;
  if (is_float(got.dtype())) {
    const double eps = float_epsilon(got.dtype());
    const double sums = got.dtype() == DType::kF64 ? kSumsF64 : kSums;
    out.tolerance =
        allowed ? std::max(kRoundings * eps + sums, kOverUnfused * allowed->max_rel) : kUnfusedRoundings * eps + sums;
  } else {
    out.tolerance = allowed ? allowed->max_rel : 0;
  }
  KILN_TRY(Tensor flat, got.contiguous());
  const int64_t total = got.numel();
  for (const auto& s : expected.slabs) {
    const auto n = static_cast<int64_t>(s.values.size());
    KILN_TRY(Tensor lines, flat.view(std::span<const int64_t>(&total, 1)));
    const int64_t one = 1;
    KILN_TRY(lines, lines.as_strided(std::span<const int64_t>(&n, 1), std::span<const int64_t>(&one, 1),
                                     lines.offset() + s.start));
    KILN_TRY(std::vector<double> values, lines.to_doubles());
    for (int64_t i = 0; i < n; ++i) {
      const double want = s.values[static_cast<size_t>(i)], have = values[static_cast<size_t>(i)];
      double rounded = want;  // as far as the dtype goes: what is too large for it is infinite
      if (is_float(got.dtype())) {
        std::byte bits[8] = {};
        from_double(got.dtype(), want, bits);
        rounded = to_double(got.dtype(), bits);
      }
      if (have == rounded || (std::isnan(have) && std::isnan(want))) continue;
      out.nans += std::isnan(have) && !std::isnan(want);
      const bool off = !std::isfinite(have) || !std::isfinite(want);
      const double abs = off ? INFINITY : std::fabs(have - want), scale = std::max(std::fabs(want), usual);
      const double rel = off ? INFINITY : scale > 0 ? abs / scale : abs;
      out.max_abs = std::max(out.max_abs, abs);
      out.max_rel = std::max(out.max_rel, rel);
      const double slack = s.slack.empty() ? 0 : s.slack[static_cast<size_t>(i)];
      if (rel > out.tolerance && abs > slack && (out.first_bad < 0 || s.start + i < out.first_bad)) {
        out.first_bad = s.start + i;
        out.got = have;
        out.expected = want;
      }
    }
  }
  return out;
}

}  // namespace kiln
