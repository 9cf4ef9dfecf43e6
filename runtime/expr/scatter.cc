#include "runtime/expr/scatter.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "runtime/expr/gradient_terms.h"
#include "runtime/expr/kept.h"
#include "runtime/expr/plan.h"
#include "runtime/tensor/convert.h"
#include "support/diag.h"

namespace kiln::runtime {

namespace {

// On a GPU each element of the result sums what is put there, place by place, so that the sum has one order. Places are
// looked through by blocks, of which most have nothing for a program's elements.
constexpr std::string_view kScatterSource = R"(import triton
import triton.language as tl


@triton.jit
def scatter_rows(values, places, out, n, size, columns, places_stride, BLOCK: tl.constexpr, PART: tl.constexpr,
                 COLUMNS: tl.constexpr, TYPE: tl.constexpr):
    batch = (tl.program_id(0) // size).to(tl.int64)
    row = tl.program_id(0) % size
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), TYPE)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        here = tl.load(places + batch * places_stride + i, mask=i < n, other=-1) == row
        if tl.max(here.to(tl.int32), 0) > 0:
            for part in range(start, start + BLOCK, PART):
                j = part + tl.arange(0, PART)
                at = tl.load(places + batch * places_stride + j, mask=j < n, other=-1) == row
                if tl.max(at.to(tl.int32), 0) > 0:
                    x = tl.load(values + (batch * n + j[:, None]) * columns + c[None, :],
                                mask=at[:, None] & (c < columns)[None, :], other=0.0)
                    total += tl.sum(x.to(TYPE), 0)
    tl.store(out + (batch * size + row) * columns + c, total, mask=c < columns)


@triton.jit
def scatter_elements(values, places, out, n, size, columns, places_stride, BLOCK: tl.constexpr, PART: tl.constexpr,
                     COLUMNS: tl.constexpr, TYPE: tl.constexpr):
    blocks = tl.cdiv(size, COLUMNS)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    first = tl.program_id(0) % blocks * COLUMNS
    e = first + tl.arange(0, COLUMNS)
    c = tl.program_id(1)
    total = tl.zeros((COLUMNS,), TYPE)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        near = tl.load(places + batch * places_stride + i, mask=i < n, other=-1)
        if tl.max(((near >= first) & (near < first + COLUMNS)).to(tl.int32), 0) > 0:
            for part in range(start, start + BLOCK, PART):
                j = part + tl.arange(0, PART)
                at = tl.load(places + batch * places_stride + j, mask=j < n, other=-1)
                inside = (at >= first) & (at < first + COLUMNS)
                if tl.max(inside.to(tl.int32), 0) > 0:
                    x = tl.load(values + (batch * n + j) * columns + c, mask=inside, other=0.0)
                    total += tl.sum(tl.where(at[:, None] == e[None, :], x[:, None].to(TYPE), 0.0), 0)
    tl.store(out + (batch * size + e) * columns + c, total, mask=e < size)
)";

bool is_scatter(const ExprNode& n) { return n.node.op == ExprOp::kScatterAdd && n.is_pending(); }

/// A scatter as batches of rows: values [batch, n, columns], to places [batch or 1, n] in [batch, size, columns].
struct Rows {
  Expr values, places;
  int64_t batch = 1, n = 1, size = 1, columns = 1;
  bool one_for_all = false;  // places
};

Result<Rows> rows_of_scatter(const ExprNode& node) {
  const fusion::Shape &from = node.operands[0]->node.shape, &to = node.node.shape;
  const ExprAttributes& a = node.node.attributes;
  const size_t rank = to.size();
  auto looked = [&](size_t d) { return std::ranges::find(a.axes, static_cast<int>(d)) != a.axes.end(); };
  // Of each tensor of places, its size along a dimension of the values.
  auto varies = [&](size_t d) {
    for (size_t k = 1; k < node.operands.size(); ++k) {
      const fusion::Shape& shape = node.operands[k]->node.shape;
      if (d + shape.size() >= rank && shape[d + shape.size() - rank] != 1) return true;
    }
    return false;
  };
  size_t first = 0, last = rank;  // of the dimensions that places are about
  while (first < rank && !looked(first) && from[first] == to[first]) ++first;
  while (last > first && !looked(last - 1) && from[last - 1] == to[last - 1] && !varies(last - 1)) --last;
  Rows out;
  out.one_for_all = true;
  for (size_t d = 0; d < first; ++d) out.batch *= to[d], out.one_for_all = out.one_for_all && !varies(d);
  for (size_t d = last; d < rank; ++d) out.columns *= to[d];
  for (size_t d = first; d < last; ++d) out.n *= from[d], out.size *= to[d];
  GradientTerms t;
  std::optional<Term> place, inside;
  auto number = [&](int64_t n) { return t.term(Expr::scalar(n)); };
  int64_t stride = 1;
  for (size_t d = last; d-- > first;) {
    std::optional<Term> along;
    for (size_t k = 0; k < a.axes.size(); ++k) {
      if (a.axes[k] != static_cast<int>(d)) continue;
      Term at = t.term(Expr(node.operands[k + 1]));
      if (!a.any_outside) at = t.where(at < number(0), at + number(to[d]), at);
      const Term test = (at >= number(0)) & (at < number(to[d]));
      inside = inside ? *inside & test : test;
      along = at;
    }
    if (!along && to[d] != 1) along = t.places(node.device, from[d], d, rank);
    if (along) along = stride == 1 ? *along : *along * number(stride);
    if (along) place = place ? *place + *along : *along;
    stride *= to[d];
  }
  KILN_ASSERT(place && inside, "scatter_add without places");
  fusion::Shape whole(rank, 1);
  for (size_t d = out.one_for_all ? first : 0; d < last; ++d) whole[d] = from[d];
  ExprAttributes as;
  as.dtype = DType::kI32;
  // -1 is the place of what is left out: a program compares with places from 0 on.
  Term flat = t.expanded(t.where(*inside, *place, number(-1)), whole);
  // Places in 32 bits where they fit: half as much to read, and one instruction to compare.
  if (out.size < (int64_t{1} << 31)) flat = t.op(ExprOp::kCast, {flat}, std::move(as));
  const fusion::Shape lines = {out.one_for_all ? 1 : out.batch, out.n}, values = {out.batch, out.n, out.columns};
  out.places = t.reshaped(flat, lines).expr;
  out.values = t.reshaped(t.term(Expr(node.operands[0])), values).expr;
  KILN_CHECK_OK(t.problem);
  return out;
}

/// On a CPU one value after the other.
template <class T>
Result<Tensor> scattered_in_turn(const ExprNode& node, const Rows& rows, const Tensor& values, const Tensor& places) {
  constexpr DType kType = std::is_same_v<T, double> ? DType::kF64 : DType::kF32;
  const auto n = static_cast<size_t>(rows.n), size = static_cast<size_t>(rows.size);
  const auto columns = static_cast<size_t>(rows.columns), batches = static_cast<size_t>(rows.batch);
  std::vector<T> from(batches * n * columns), sums(batches * size * columns);
  std::vector<int64_t> at(static_cast<size_t>(places.numel()));
  KILN_TRY(std::vector<std::byte> bytes, values.to_bytes());
  convert_elements(values.dtype(), bytes.data(), kType, from.data(), values.numel());
  KILN_TRY(bytes, places.to_bytes());
  convert_elements(places.dtype(), bytes.data(), DType::kI64, at.data(), places.numel());
  for (size_t b = 0; b < batches; ++b)
    for (size_t i = 0; i < n; ++i) {
      const int64_t place = at[(rows.one_for_all ? 0 : b * n) + i];
      if (place < 0) continue;
      const T* row = from.data() + (b * n + i) * columns;
      T* sum = sums.data() + (b * size + static_cast<size_t>(place)) * columns;
      for (size_t c = 0; c < columns; ++c) sum[c] += row[c];
    }
  bytes.resize(sums.size() * static_cast<size_t>(size_of(node.node.dtype)));
  convert_elements(kType, sums.data(), node.node.dtype, bytes.data(), static_cast<int64_t>(sums.size()));
  return Tensor::from_host(node.device, node.node.dtype, node.node.shape, bytes.data(), bytes.size());
}

Result<Tensor> scattered(const ExprNode& node, const Rows& rows) {
  KILN_TRY(Tensor values, run(rows.values));
  KILN_TRY(Tensor places, run(rows.places));
  if (!node.device.is_cuda() && node.node.dtype == DType::kF64)
    return scattered_in_turn<double>(node, rows, values, places);
  if (!node.device.is_cuda()) return scattered_in_turn<float>(node, rows, values, places);
  KILN_TRY(values, values.contiguous());
  KILN_TRY(places, places.contiguous());
  const std::vector<int64_t> shape = {rows.batch, rows.size, rows.columns};
  KILN_TRY(Tensor out, Tensor::empty(node.device, node.node.dtype, shape));
  // With fewer columns, rows would leave most lanes idle: a program then sums a range of rows in one column.
  constexpr int64_t kFewColumns = 8, kMostColumns = 512, kElements = 64;
  const bool by_rows = rows.columns >= kFewColumns;
  KILN_TRY(Kernel kernel,
           kernel_of(node.device, std::string(kScatterSource), by_rows ? "scatter_rows" : "scatter_elements"));
  int64_t block = kFewColumns;
  while (block < std::min(rows.columns, kMostColumns)) block *= 2;
  if (!by_rows) block = kElements;
  const std::array<int64_t, 3> grid =
      by_rows ? std::array<int64_t, 3>{rows.batch * rows.size, (rows.columns + block - 1) / block, 1}
              : std::array<int64_t, 3>{rows.batch * ((rows.size + block - 1) / block), rows.columns, 1};
  const std::vector<std::optional<Arg>> args = {
      Arg(&values),
      Arg(&places),
      Arg(&out),
      Arg(rows.n),
      Arg(rows.size),
      Arg(rows.columns),
      Arg(rows.one_for_all ? int64_t{0} : rows.n),
      Arg(int64_t{1024}),
      Arg(by_rows ? int64_t{16} : int64_t{32}),
      Arg(block),
      Arg(node.node.dtype == DType::kF64 ? DType::kF64 : DType::kF32),
  };
  KILN_CHECK_OK(kernel.launch(grid, args));
  return out.view(node.node.shape);
}

}  // namespace

bool has_scatters(const ExprWalk& walk) {
  return std::ranges::any_of(walk.order, [](const ExprNode* n) { return is_scatter(*n); });
}

Status run_scatters(std::span<const Expr> exprs, ExprVariant variant, bool with_others) {
  // Most have none, and need no walk to know it.
  if (std::ranges::none_of(exprs, [](const Expr& e) { return e.node()->is_pending() && e.node()->may_scatter; }))
    return {};
  for (;;) {
    std::vector<const ExprNode*> roots;
    for (const Expr& e : exprs) roots.push_back(e.node());
    std::vector<std::shared_ptr<ExprNode>> next;  // scatters that need no other one
    std::vector<Expr> together;
    {
      const ExprWalk walk(roots);
      if (!has_scatters(walk)) return {};
      std::unordered_set<const ExprNode*> after;  // what needs a scatter
      std::unordered_set<const ExprNode*> seen;
      for (const ExprNode* n : walk.order) {
        if (!n->is_pending()) continue;
        for (const auto& operand : n->operands) {
          if (after.contains(operand.get()) || is_scatter(*operand)) after.insert(n);
          if (is_scatter(*operand) && !after.contains(operand.get()) && seen.insert(operand.get()).second)
            next.push_back(operand);
        }
      }
      for (const Expr& e : exprs) {
        if (is_scatter(*e.node()) && !after.contains(e.node()) && seen.insert(e.node()).second)
          next.push_back(e.shared());
        else if (with_others && e.node()->is_pending() && !after.contains(e.node()) && !is_scatter(*e.node()))
          together.push_back(e);
      }
    }
    std::vector<Rows> rows;
    for (const auto& n : next) {
      KILN_TRY(Rows of, rows_of_scatter(*n));
      together.push_back(of.values);
      together.push_back(of.places);
      rows.push_back(std::move(of));
    }
    if (!with_others) {
      Nodes needed;
      for (const Expr& e : together) needed.push_back(e.shared());
      append_read_elsewhere(needed, together);
    }
    KILN_CHECK_OK(run_together(together, variant));
    for (size_t i = 0; i < next.size(); ++i) {
      KILN_TRY(Tensor value, scattered(*next[i], rows[i]));
      next[i]->set_value(std::move(value));
    }
  }
}

}  // namespace kiln::runtime
