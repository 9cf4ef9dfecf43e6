#include "compiler/fusion/heavy_epilogue.h"

#include <algorithm>

#include "compiler/fusion/product_form.h"
#include "support/tensor_map.h"

namespace kiln::fusion {

namespace {

/// Of a product's tile, whose divisions and roots its program computes.
constexpr int kTileElements = 128 * 128;

/// Whether the operand is no row or column, and its rows begin inside of 16 bytes or are not contiguous: TMA cannot
/// bring its tiles.
bool has_odd_rows(const Dag& dag, const Operand& o) {
  const int bytes = size_of(dag.nodes[at(o.node)].dtype);
  bool moves = false, odd = false;
  for (size_t d = 0; d + 1 < o.shape.size(); ++d) {
    if (o.shape[d] == 1 || o.strides[d] == 0) continue;
    moves = true;
    odd = odd || o.strides[d] * bytes % kTensorMapAlignment != 0;
  }
  return moves && o.strides.back() != 0 && (odd || o.strides.back() != 1);
}

size_t index_of(const Cluster& c, int member) {
  return static_cast<size_t>(std::ranges::find(c.members, member) - c.members.begin());
}

bool is_exact_root(const DagNode& n) {
  return n.op == ExprOp::kDiv || n.op == ExprOp::kReciprocal || n.op == ExprOp::kSqrt;
}

/// The product and the few operations behind it that read nothing else but rows and columns, as a bias and a cast, up
/// to where an element has the fewest bytes.
std::vector<int> product_and_bias(const Dag& dag, const Cluster& c, int product, const std::vector<bool>& leaves) {
  constexpr size_t kMost = 4;
  constexpr int64_t kOfTensor = 16;  // a row or a column has fewer elements than a tensor by this
  std::vector<int> members = {product}, least = members;
  while (members.size() <= kMost) {
    const int last = members.back();
    auto reads = [&](int m) {
      return std::ranges::any_of(dag.nodes[at(m)].operands,
                                 [&](const Operand& o) { return !o.is_number() && o.node == last; });
    };
    if (leaves[index_of(c, last)]) break;
    if (std::ranges::count_if(c.members, reads) != 1) break;
    const int next = *std::ranges::find_if(c.members, reads);
    const DagNode& n = dag.nodes[at(next)];
    auto is_small = [&](const Operand& o) {
      return o.is_number() || o.node == last || (!c.contains(o.node) && touched(o) * kOfTensor <= numel(n.shape));
    };
    if (n.kind != DagKind::kPointwise || is_exact_root(n) || !std::ranges::all_of(n.operands, is_small)) break;
    members.push_back(next);
    if (size_of(n.dtype) <= size_of(dag.nodes[at(least.back())].dtype)) least = members;
  }
  return least;
}

}  // namespace

std::vector<int> members_beside_product(const Dag& dag, const Machine& machine, const Cluster& c, int product,
                                        const std::vector<bool>& leaves) {
  const DagNode& p = dag.nodes[at(product)];
  // Sums of a smaller tile leave registers for what is loaded element by element.
  const bool is_large = numel(p.shape) > int64_t{kTileElements} * machine.multiprocessors;
  const bool spills = is_large && blocks_of(dag, p, machine).has_value();
  std::vector<int> read;
  double bytes = 0, singly = 0;
  int64_t exact_roots = 0;
  for (size_t i = 0; i < c.members.size(); ++i) {
    const DagNode& n = dag.nodes[at(c.members[i])];
    if (c.members[i] == product) continue;
    if (is_exact_root(n)) ++exact_roots;
    if (leaves[i]) bytes += static_cast<double>(numel(n.shape)) * size_of(n.dtype);
    for (const Operand& o : n.operands) {
      if (o.is_number() || c.contains(o.node) || std::ranges::find(read, o.node) != read.end()) continue;
      read.push_back(o.node);
      const DagNode& from = dag.nodes[at(o.node)];
      if (from.counts) continue;
      const double size = static_cast<double>(touched(o)) * size_of(from.dtype);
      (spills && has_odd_rows(dag, o) ? singly : bytes) += size;
    }
  }
  const std::vector<int> least = product_and_bias(dag, c, product, leaves);
  const auto of_elements = [&](int node) {
    return static_cast<double>(numel(p.shape)) * size_of(dag.nodes[at(node)].dtype);
  };
  const double own = of_elements(product);
  const bool leaves_product = leaves[index_of(c, product)];
  const int64_t rounds = cdiv(numel(p.shape), int64_t{kTileElements} * machine.multiprocessors);
  const target::Rates& rates = machine.rates();
  const double fused = (leaves_product ? bytes : bytes - own) / rates.epilogue_bytes_per_us +
                       singly / rates.odd_epilogue_bytes_per_us +
                       static_cast<double>(rounds * exact_roots) * rates.exact_root_us;
  const double apart = (bytes + singly + of_elements(least.back())) / rates.pointwise_bytes_per_us + rates.kernel_us;
  if (c.members.size() <= kMostEpilogue + 1 && fused <= apart) return c.members;
  return least.size() < c.members.size() ? least : std::vector<int>{product};
}

}  // namespace kiln::fusion
