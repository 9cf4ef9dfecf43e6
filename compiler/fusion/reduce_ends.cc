// Scans of which no more is read than the end of each row, as of running products for a product: reductions, which
// store one value for each row.
#include <algorithm>
#include <optional>

#include "compiler/fusion/dag.h"

namespace kiln::fusion {

namespace {

/// The view of what a scan along `axis` reduces to, where `o` reads the ends of its rows alone.
std::optional<Operand> of_ends(const Operand& o, const Shape& scanned, int axis) {
  const int64_t length = scanned[at(axis)], inner = row_major(scanned)[at(axis)], row = inner * length;
  if (length == 0 || o.offset / inner % length != length - 1) return std::nullopt;
  Operand r = o;
  int64_t furthest = o.offset % inner;  // of the dimensions behind the axis
  for (size_t d = 0; d < o.shape.size(); ++d) {
    if (o.shape[d] == 1 || o.strides[d] == 0) continue;
    if (o.strides[d] < 0) return std::nullopt;
    if (o.strides[d] % row == 0)
      r.strides[d] = o.strides[d] / length;
    else
      furthest += (o.shape[d] - 1) * o.strides[d];
  }
  if (furthest >= inner) return std::nullopt;
  r.offset = o.offset / row * inner + o.offset % inner;
  return r;
}

}  // namespace

void reduce_ends(Dag& dag) {
  std::vector<bool> ends;
  for (const DagNode& n : dag.nodes)
    ends.push_back(n.kind == DagKind::kScan && !n.reverse && n.operands.size() == 1 && !n.operands[0].is_number());
  auto each = [&](auto&& visit) {
    for (DagNode& n : dag.nodes)
      for (Operand& o : n.operands)
        if (!o.is_number() && ends[at(o.node)]) visit(o);
    for (Operand& o : dag.outputs)
      if (!o.is_number() && ends[at(o.node)]) visit(o);
  };
  each([&](const Operand& o) {
    const DagNode& scan = dag.nodes[at(o.node)];
    if (!of_ends(o, scan.shape, scan.axes[0])) ends[at(o.node)] = false;
  });
  each([&](Operand& o) {
    const DagNode& scan = dag.nodes[at(o.node)];
    o = *of_ends(o, scan.shape, scan.axes[0]);
  });
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    if (!ends[i]) continue;
    DagNode n = reduction_of(dag.nodes[i]);
    n.shape.erase(n.shape.begin() + n.axes[0]);
    dag.nodes[i] = std::move(n);
  }
}

}  // namespace kiln::fusion
