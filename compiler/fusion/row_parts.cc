#include "compiler/fusion/row_parts.h"

#include <algorithm>
#include <utility>

#include "compiler/fusion/writer.h"

namespace kiln::fusion {

const DagNode* RowParts::pointwise(const Operand& o, ExprOp op) const {
  if (o.is_number()) return nullptr;
  const DagNode& n = dag_.nodes[at(o.node)];
  return n.kind == DagKind::kPointwise && n.op == op && is_whole(o, n.shape) ? &n : nullptr;
}

bool RowParts::is_sum(const DagNode& n) {
  return n.kind == DagKind::kReduce && n.op == ExprOp::kSum && n.splits == 1 && is_float(n.operand_type);
}

std::optional<RowParts::Cut> RowParts::cut_of(const DagNode& n, const Operand& x, int64_t wanted) const {
  if (numel(n.operands[0].shape) == 0) return std::nullopt;
  const Shape& all = n.operands[0].shape;
  const int64_t rows = numel(n.shape), columns = numel(all) / rows;
  const bool across = n.axes.back() != static_cast<int>(all.size()) - 1;
  const int64_t most = across ? 256 : 8192, least = across ? 32 : 1024;
  const int64_t first = std::max<int64_t>(2, cdiv(columns, most)), last = columns / least;
  // Elements of a part that lie side by side, where rows do.
  auto run = [&](int axis, int64_t parts) {
    int64_t elements = all[at(axis)] / parts;
    for (size_t d = at(axis) + 1; d < all.size(); ++d) elements *= all[d];
    return elements;
  };
  constexpr int64_t kLeastRun = 64;
  std::optional<Cut> best;
  for (int axis : n.axes)
    for (int64_t parts = first; parts <= std::min(last, all[at(axis)]); ++parts) {
      if (all[at(axis)] % parts != 0 || (!across && run(axis, parts) < kLeastRun)) continue;
      const auto off = [&](int64_t p) { return std::abs(p - std::max(wanted, first)); };
      if (!best || off(parts) < off(best->parts)) best = Cut{axis, parts};
    }
  const int64_t few = std::max(wanted, first) / 2;
  int64_t parts = std::min(std::max(wanted, first), last);
  if ((best && best->parts >= few) || parts < first) return best;
  const int longest = *std::ranges::max_element(n.axes, {}, [&](int a) { return all[at(a)]; });
  // Not so many that what is left is longer than a part.
  while (parts >= first && all[at(longest)] % parts > all[at(longest)] / parts) --parts;
  if (parts < std::max(first, best ? best->parts + 1 : 0) || (!across && run(longest, parts) < kLeastRun)) return best;
  return is_sliced(x, at(longest)) ? Cut{longest, parts} : best;
}

/// Whether slices of it along dimension `d` can be computed for themselves, from slices of what it is computed from.
bool RowParts::is_sliced(const Operand& x, size_t d) const {
  int nodes = 0;
  return is_sliced(x, d, nodes);
}
bool RowParts::is_sliced(const Operand& x, size_t d, int& nodes) const {
  constexpr int kMostOfCopy = 16;  // nodes, each counted as often as it is read
  if (x.is_number() || x.strides[d] == 0) return true;
  const DagNode& n = dag_.nodes[at(x.node)];
  if (n.kind == DagKind::kLeaf) return true;
  nodes += 1;
  return nodes <= kMostOfCopy && n.kind == DagKind::kPointwise && n.taken.empty() && n.op != ExprOp::kPut &&
         n.row_stride == 0 && is_whole(x, n.shape) &&
         std::ranges::all_of(n.operands, [&](const Operand& o) { return is_sliced(o, d, nodes); });
}

Operand RowParts::slice(Operand x, size_t d, int64_t begin, int64_t count) {
  if (!x.is_number() && x.strides[d] != 0 && dag_.nodes[at(x.node)].kind != DagKind::kLeaf) {
    DagNode n = dag_.nodes[at(x.node)];
    n.shape[d] = count;
    for (Operand& o : n.operands) o = slice(std::move(o), d, begin, count);
    return append(dag_, std::move(n));
  }
  if (!x.shape.empty()) x.shape[d] = count;
  if (!x.is_number()) x.offset += begin * x.strides[d];
  return x;
}

Operand RowParts::computed(ExprOp op, std::vector<Operand> operands, const DagNode& like, const Shape& shape,
                           std::string name) {
  DagNode n;
  n.kind = DagKind::kPointwise;
  n.op = op;
  n.dtype = n.operand_type = n.number_type = like.operand_type;
  n.shape = shape;
  n.origin = like.origin;
  n.name = std::move(name);
  n.operands = std::move(operands);
  return append(dag_, std::move(n));
}

Operand RowParts::number(double value, const Shape& shape) {
  Operand o;
  o.number = value;
  o.shape = shape;
  o.strides.assign(shape.size(), 0);
  return o;
}

Operand RowParts::repeated(Operand o, size_t d, int64_t size) {
  o.shape.insert(o.shape.begin() + static_cast<std::ptrdiff_t>(d), size);
  o.strides.insert(o.strides.begin() + static_cast<std::ptrdiff_t>(d), 0);
  return o;
}

Operand RowParts::without_axes(const Operand& o, const std::vector<int>& axes) {
  Operand kept = o;
  kept.shape.clear(), kept.strides.clear();
  for (size_t d = 0; d < o.shape.size(); ++d)
    if (!std::ranges::binary_search(axes, static_cast<int>(d)))
      kept.shape.push_back(o.shape[d]), kept.strides.push_back(o.strides[d]);
  return kept;
}

Operand RowParts::with_axes(Operand o, const std::vector<int>& axes, const Shape& whole) {
  for (const int a : axes) o = repeated(std::move(o), at(a), whole[at(a)]);
  return o;
}

RowParts::Parts RowParts::take_apart(Operand x, const DagNode& sum, const Cut& cut) {
  const size_t axis = at(cut.axis);
  const int64_t left = x.shape[axis] % cut.parts, even = x.shape[axis] - left;
  Parts out;
  if (left > 0) {
    out.rest = slice(x, axis, even, left);
    x = slice(x, axis, 0, even);
  }
  split_dimension(x, axis, even / cut.parts);
  out.even = std::move(x);
  out.place = static_cast<size_t>(cut.axis - (std::ranges::lower_bound(sum.axes, cut.axis) - sum.axes.begin()));
  out.sum = sum;
  for (int& a : out.sum.axes) a += a >= cut.axis;
  out.sum.shape.insert(out.sum.shape.begin() + static_cast<std::ptrdiff_t>(out.place), cut.parts);
  return out;
}

void RowParts::join(size_t node, const Operand& parts, size_t place, const std::optional<Operand>& rest, ExprOp op) {
  DagNode of_parts = dag_.nodes[node];
  of_parts.operands = {parts};
  of_parts.axes = {static_cast<int>(place)};
  if (!rest) {
    dag_.nodes[node] = std::move(of_parts);
    return;
  }
  of_parts.dtype = of_parts.operand_type;
  const Operand joined = append(dag_, std::move(of_parts));
  DagNode& all = dag_.nodes[node];
  all.kind = DagKind::kPointwise;
  all.op = op;
  all.axes.clear();
  all.operands = {joined, *rest};
}

}  // namespace kiln::fusion
