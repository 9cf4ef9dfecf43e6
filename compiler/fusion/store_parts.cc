// Results that are put together of parts which other kernels compute, as a stack of sums: each part is stored where it
// belongs. Else all parts would be stored, read and stored once more by a kernel that does nothing else.
#include <algorithm>
#include <optional>
#include <set>

#include "compiler/fusion/grouping.h"

namespace kiln::fusion {

namespace {

/// Bytes of one element of each part side by side, which threads store one after the other: the sectors of 32 bytes
/// that a warp's store touches are two for each that it fills.
constexpr int64_t kMostInterleaved = 16;
/// Bytes that a part has in a row, where they are more.
constexpr int64_t kLeastRun = 32;

struct StoredPart {
  int node;
  Shape strides;  // of its dimensions, in the whole
  int64_t offset;
};

class PartStorer {
 public:
  PartStorer(Dag& dag, Grouping& grouping) : dag_(dag), grouping_(grouping) {}

  void run() {
    for (const Operand& o : dag_.outputs) {
      const std::optional<std::vector<StoredPart>> parts = parts_of(o.node);
      if (!parts) continue;
      for (const StoredPart& p : *parts) {
        DagNode& n = dag_.nodes[at(p.node)];
        n.part_of = o.node, n.part_strides = p.strides, n.part_offset = p.offset;
      }
      remove(grouping_.cluster_of[at(o.node)]);
    }
  }

 private:
  /// The parts of where(i < end, part, where(…)), when all of its kernel is that.
  std::optional<std::vector<StoredPart>> parts_of(int whole) {
    const int own = grouping_.cluster_of[at(whole)];
    const DagNode& all = dag_.nodes[at(whole)];
    if (own < 0 || all.op != ExprOp::kWhere || all.row_stride > 0) return std::nullopt;
    std::set<int> seen;
    std::vector<StoredPart> parts;
    int dim = -1;
    int64_t start = 0;
    for (int node = whole;;) {
      const DagNode& n = dag_.nodes[at(node)];
      seen.insert(node);
      const std::optional<std::pair<int, int64_t>> end = end_of(n, own, seen);
      if (n.shape != all.shape || !end || (dim >= 0 && end->first != dim) || end->second <= start) return std::nullopt;
      dim = end->first;
      if (!add(parts, n.operands[1], all, dim, start, end->second)) return std::nullopt;
      start = end->second;
      const Operand& rest = n.operands[2];
      const bool goes_on = !rest.is_number() && grouping_.cluster_of[at(rest.node)] == own;
      if (!goes_on) {
        if (!add(parts, rest, all, dim, start, all.shape[at(dim)])) return std::nullopt;
        break;
      }
      if (dag_.nodes[at(rest.node)].op != ExprOp::kWhere || !axis_map(rest, all.shape) || is_read_twice(rest.node))
        return std::nullopt;
      node = rest.node;
    }
    if (seen.size() != grouping_.clusters[at(own)].members.size() || is_read(whole)) return std::nullopt;
    return parts;
  }

  /// Of a select, the dimension along which the numbers of elements say what it selects, and the first that gives the
  /// other.
  std::optional<std::pair<int, int64_t>> end_of(const DagNode& select, int own, std::set<int>& seen) const {
    if (select.op != ExprOp::kWhere || select.operands[0].is_number()) return std::nullopt;
    const Operand& condition = select.operands[0];
    const DagNode& less = dag_.nodes[at(condition.node)];
    if (less.op != ExprOp::kLt || grouping_.cluster_of[at(condition.node)] != own || less.operands[0].is_number() ||
        !less.operands[1].is_literal())
      return std::nullopt;
    const Operand& i = less.operands[0];
    if (!dag_.nodes[at(i.node)].counts || i.offset != 0 || condition.offset != 0) return std::nullopt;
    seen.insert(condition.node);
    int dim = -1;
    for (size_t d = 0; d < select.shape.size(); ++d) {
      const bool varies = condition.strides[d] != 0 && select.shape[d] > 1;
      if (!varies) continue;
      if (dim >= 0) return std::nullopt;
      dim = static_cast<int>(d);
    }
    const bool counts_one_by_one =
        std::ranges::count(i.strides, 1) == 1 && std::ranges::count(i.strides, 0) + 1 == std::ssize(i.strides);
    if (dim < 0 || !counts_one_by_one || numel(less.shape) != select.shape[at(dim)]) return std::nullopt;
    const int64_t* end = std::get_if<int64_t>(&less.operands[1].number);
    return end ? std::optional(std::pair(dim, *end)) : std::nullopt;
  }

  /// Whether the operand is a part from `start` to `end` along `dim`, which is stored for the whole alone.
  bool add(std::vector<StoredPart>& parts, const Operand& o, const DagNode& all, int dim, int64_t start,
           int64_t end) const {
    if (o.is_number() || end - start != 1) return false;
    const DagNode& n = dag_.nodes[at(o.node)];
    const int cluster = grouping_.cluster_of[at(o.node)];
    if (cluster < 0 || !grouping_.stored[at(o.node)] || n.kind != DagKind::kPointwise || n.dtype != all.dtype ||
        n.op == ExprOp::kPut || n.row_stride > 0 || n.part_of >= 0 || is_output(o.node) ||
        readers(o.node, cluster) > 1 || grouping_.clusters[at(cluster)].form != Form::kPointwise || o.offset != 0 ||
        o.strides[at(dim)] != 0)
      return false;
    const auto axes = axis_map(o, n.shape);
    if (!axes) return false;
    const Shape strides = row_major(all.shape);
    StoredPart part{o.node, Shape(n.shape.size(), 0), start * strides[at(dim)]};
    int64_t elements = 1;
    for (size_t d = 0; d < axes->size(); ++d)
      if ((*axes)[d] >= 0) part.strides[at((*axes)[d])] = strides[d], elements *= all.shape[d];
    const int64_t bytes = size_of(all.dtype), run = strides[at(dim)] * bytes;
    const bool is_dense = run >= kLeastRun || (strides[at(dim)] == 1 && all.shape[at(dim)] * bytes <= kMostInterleaved);
    if (elements != numel(n.shape) || elements * all.shape[at(dim)] != numel(all.shape) || !is_dense) return false;
    parts.push_back(std::move(part));
    return true;
  }

  bool is_output(int node) const {
    return std::ranges::any_of(dag_.outputs, [&](const Operand& o) { return o.node == node; });
  }

  /// Readers in other kernels than `own`; what the same kernel reads stays in registers.
  int readers(int node, int own = -1) const {
    int count = 0;
    for (size_t i = 0; i < dag_.nodes.size(); ++i)
      if (grouping_.cluster_of[i] >= 0 && grouping_.cluster_of[i] != own)
        count += static_cast<int>(
            std::ranges::count_if(dag_.nodes[i].operands, [&](const Operand& o) { return o.node == node; }));
    return count;
  }
  bool is_read(int node) const { return readers(node) > 0; }
  bool is_read_twice(int node) const { return readers(node) > 1; }

  void remove(int cluster) {
    grouping_.clusters.erase(grouping_.clusters.begin() + cluster);
    for (int& c : grouping_.cluster_of) {
      if (c == cluster) c = -1;
      if (c > cluster) --c;
    }
  }

  Dag& dag_;
  Grouping& grouping_;
};

}  // namespace

void store_parts(Dag& dag, Grouping& grouping) { PartStorer(dag, grouping).run(); }

}  // namespace kiln::fusion
