// Gradients of views and of what is looked up by places: each element of the gradient goes back to where it was read.
#include <algorithm>
#include <numeric>

#include "runtime/expr/gradient_terms.h"
#include "runtime/expr/host.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

/// Elements of a result that were read at start, start + step, … of a line: result[first + i] for i < count.
struct PlaceRun {
  int64_t first, count, start, step;
};

/// What was read along one dimension, put back into a line of `size` elements, zeros elsewhere: each element looks for
/// the one that read it.
Term put_back(GradientTerms& t, const Device& device, const Term& g, size_t dim, int64_t size, const PlaceRun& run) {
  if (!t.problem.ok()) return g;
  const size_t rank = g.shape().size();
  const Term place = t.places(device, size, dim, rank);
  auto at = [&](int64_t n) { return t.term(Expr::scalar(n)); };
  const int64_t last = run.start + (run.count - 1) * run.step;
  std::optional<Term> inside;
  auto require = [&](const Term& test) { inside = inside ? *inside & test : test; };
  if (run.count == 1) {
    require(place == at(run.start));
  } else {
    if (std::min(run.start, last) > 0) require(place >= at(std::min(run.start, last)));
    if (std::max(run.start, last) < size - 1) require(place <= at(std::max(run.start, last)));
  }
  Term from = run.start == 0 ? place : place - at(run.start);
  if (run.step < 0) from = at(run.start) - place;
  if (const int64_t step = std::abs(run.step); step > 1) {
    require(t.op(ExprOp::kMod, {from, at(step)}) == at(0));
    from = t.op(ExprOp::kFloorDiv, {from, at(step)});
  }
  if (run.first > 0) from = from + at(run.first);
  Term found = g;
  if (run.count > 1 || g.shape()[dim] > 1) {
    ExprAttributes take;
    take.axes = {static_cast<int>(dim)};
    take.any_outside = true;
    if (run.count == 1) from = from * at(0) + at(run.first);
    found = t.op(ExprOp::kTake, {g, from}, std::move(take));
  }
  return inside ? t.or_zero(*inside, found) : found;
}

void slice_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const ExprAttributes& a = s.attributes();
  Term g = s.narrow_g();
  if (s.node().node.shape.empty()) return s.give(0, g);
  if (fusion::numel(s.node().node.shape) == 0)
    return s.give(0, t.zeros(s.node().device, s.node().node.dtype, s.shape(0)));
  for (size_t d = 0; d < s.shape(0).size(); ++d)
    if (a.shape[d] != s.shape(0)[d])
      g = put_back(t, s.node().device, g, d, s.shape(0)[d], {0, a.shape[d], a.starts[d], a.steps[d]});
  s.give(0, g);
}

/// Known places along one dimension as few runs; nullopt when they are many.
std::optional<std::vector<PlaceRun>> runs_of(const ExprNode& places, size_t dim, size_t rank, int64_t size,
                                             bool any_outside) {
  constexpr int64_t kMostPlaces = int64_t{1} << 22;
  constexpr size_t kMostRuns = 8;
  const fusion::Shape& shape = places.node.shape;
  const int64_t n = fusion::numel(shape);
  const size_t lead = rank - shape.size();
  if (n > kMostPlaces || n == 0 || (n > 1 && (dim < lead || shape[dim - lead] != n)) || !is_known(places))
    return std::nullopt;
  auto values = evaluate(places);
  if (!values.ok()) return std::nullopt;
  std::vector<int64_t> at = std::move(values->ints);
  if (!any_outside)
    for (int64_t& p : at) p += p < 0 ? size : 0;
  std::vector<PlaceRun> runs;
  auto inside = [&](int64_t i) { return at[static_cast<size_t>(i)] >= 0 && at[static_cast<size_t>(i)] < size; };
  for (int64_t i = 0; i < n;) {
    if (!inside(i)) {
      ++i;
      continue;
    }
    PlaceRun run{i, 1, at[static_cast<size_t>(i)], 1};
    if (i + 1 < n && inside(i + 1)) run.step = at[static_cast<size_t>(i) + 1] - run.start;
    while (run.step != 0 && i + run.count < n && inside(i + run.count) &&
           at[static_cast<size_t>(i + run.count)] == run.start + run.count * run.step)
      ++run.count;
    i += run.count;
    runs.push_back(run);
    if (runs.size() > kMostRuns) return std::nullopt;
  }
  return runs;
}

/// Each line of the result looks at one place: a comparison finds where that is.
Term one_place(GradientStep& s, const Term& g) {
  GradientTerms& t = s.terms();
  const size_t rank = s.shape(0).size();
  std::optional<Term> here;
  for (size_t k = 0; k < s.attributes().axes.size(); ++k) {
    const auto d = static_cast<size_t>(s.attributes().axes[k]);
    const Term size = t.term(Expr::scalar(s.shape(0)[d])), zero = t.term(Expr::scalar(int64_t{0}));
    Term place = s.operand(k + 1);
    if (!s.attributes().any_outside) place = t.where(place < zero, place + size, place);
    const Term test = t.places(s.node().device, s.shape(0)[d], d, rank) == place;
    here = here ? *here & test : test;
  }
  return t.or_zero(*here, g);
}

/// Each place of the operand sums what was read there.
Term all_places(GradientStep& s, const Term& g) {
  std::vector<Term> operands = {g};
  for (size_t k = 1; k < s.operands(); ++k) operands.push_back(s.operand(k));
  ExprAttributes a;
  a.axes = s.attributes().axes;
  a.any_outside = s.attributes().any_outside;
  a.shape.assign(s.shape(0).begin(), s.shape(0).end());
  return s.terms().op(ExprOp::kScatterAdd, operands, std::move(a));
}

/// Each value looks at where it was added.
void scatter_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  ExprAttributes a;
  a.axes = s.attributes().axes;
  a.any_outside = s.attributes().any_outside;
  std::vector<Term> operands = {s.narrow_g()};
  std::optional<Term> inside;
  for (size_t k = 1; k < s.operands(); ++k) {
    const Term place = s.operand(k);
    operands.push_back(place);
    const Term size = t.term(Expr::scalar(s.node().node.shape[static_cast<size_t>(a.axes[k - 1])]));
    const Term zero = t.term(Expr::scalar(int64_t{0}));
    const Term test =
        (place >=
         (a.any_outside ? zero : t.term(Expr::scalar(-s.node().node.shape[static_cast<size_t>(a.axes[k - 1])])))) &
        (place < size);
    inside = inside ? *inside & test : test;
  }
  s.give(0, t.or_zero(*inside, t.op(ExprOp::kTake, operands, std::move(a))));
}

void take_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const ExprAttributes& a = s.attributes();
  const fusion::Shape& read = s.node().node.shape;
  const size_t rank = s.shape(0).size();
  Term g = s.narrow_g();
  if (fusion::numel(read) == 0) return s.give(0, t.zeros(s.node().device, s.node().node.dtype, s.shape(0)));
  bool one_each = true;  // of the lines of the operand
  for (size_t d = 0; d < rank; ++d) {
    const bool looked = std::ranges::find(a.axes, static_cast<int>(d)) != a.axes.end();
    one_each = one_each && (looked ? read[d] == 1 : read[d] == s.shape(0)[d]);
  }
  if (one_each) return s.give(0, one_place(s, g));
  std::vector<std::vector<PlaceRun>> runs;
  for (size_t k = 0; k < a.axes.size(); ++k) {
    const auto d = static_cast<size_t>(a.axes[k]);
    auto known = runs_of(*s.node().operands[k + 1], d, rank, s.shape(0)[d], a.any_outside);
    if (!known) return s.give(0, all_places(s, s.narrow_g()));
    runs.push_back(*std::move(known));
  }
  for (size_t k = 0; k < a.axes.size(); ++k) {
    const auto d = static_cast<size_t>(a.axes[k]);
    if (runs[k].empty()) return s.give(0, t.zeros(s.node().device, s.node().node.dtype, s.shape(0)));
    std::optional<Term> sum;
    for (const PlaceRun& run : runs[k]) {
      const Term part = put_back(t, s.node().device, g, d, s.shape(0)[d], run);
      sum = sum ? *sum + part : part;
    }
    g = *sum;
  }
  s.give(0, g);
}

}  // namespace

bool is_known(const ExprNode& n) {
  if (n.is_scalar() || n.node.op == ExprOp::kIota) return true;
  if (n.value || n.node.op == ExprOp::kInput) return false;
  return std::ranges::all_of(n.operands, [](const auto& operand) { return is_known(*operand); });
}

void view_gradient(GradientStep& s) {
  GradientTerms& t = s.terms();
  const ExprOp op = s.node().node.op;
  if (op == ExprOp::kSlice) return slice_gradient(s);
  if (op == ExprOp::kExpand) return s.give(0, s.narrow_g());  // which sums it
  if (op == ExprOp::kReshape) return s.give(0, t.reshaped(s.narrow_g(), s.shape(0)));
  KILN_ASSERT(op == ExprOp::kPermute, "{} is no view", name(op));
  const std::vector<int>& axes = s.attributes().axes;
  std::vector<int> back(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) back[static_cast<size_t>(axes[d])] = static_cast<int>(d);
  s.give(0, t.permuted(s.narrow_g(), std::move(back)));
}

void place_gradient(GradientStep& s) {
  if (s.node().node.op == ExprOp::kScatterAdd) return scatter_gradient(s);
  take_gradient(s);
}

}  // namespace kiln::runtime
