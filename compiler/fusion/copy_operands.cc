#include "compiler/fusion/copy_operands.h"

#include <algorithm>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/pointer_product.h"

namespace kiln::fusion {

namespace {

constexpr double kWorth = 0.9;  // of the time without copies

/// The operand's elements, each once: dimensions along which it repeats have one. `along_k`: k becomes contiguous, else
/// what is contiguous stays it.
Operand copied(Dag& dag, const Operand& o, size_t side, bool along_k) {
  const size_t r = o.shape.size(), k = side == 0 ? r - 1 : r - 2, other = side == 0 ? r - 2 : r - 1;
  const size_t inner = along_k || o.strides[other] != 1 ? k : other, outer = inner == k ? other : k;
  DagNode n;
  n.kind = DagKind::kPointwise;
  n.op = ExprOp::kCast;
  n.dtype = dag.nodes[at(o.node)].dtype;
  n.operand_type = register_type(n.dtype);
  n.number_type = n.operand_type;
  n.origin = dag.nodes[at(o.node)].origin;
  n.name = dag.nodes[at(o.node)].name.empty() ? "rows" : dag.nodes[at(o.node)].name + "_rows";
  Operand from = o;
  for (size_t d = 0; d + 2 < r; ++d)
    if (o.strides[d] == 0) from.shape[d] = 1;
  from.shape[r - 2] = o.shape[outer], from.shape[r - 1] = o.shape[inner];
  from.strides[r - 2] = o.strides[outer], from.strides[r - 1] = o.strides[inner];
  n.shape = from.shape;
  const int64_t unit = kLineBytes / size_of(n.dtype);
  n.row_stride = cdiv(n.shape[r - 1], unit) * unit;
  n.operands = {from};
  Operand out;
  out.node = static_cast<int>(dag.nodes.size());
  out.shape = o.shape;
  const Shape stored = stored_strides(n);
  out.strides = stored;
  out.strides[outer] = stored[r - 2], out.strides[inner] = stored[r - 1];
  for (size_t d = 0; d + 2 < r; ++d)
    if (n.shape[d] == 1) out.strides[d] = 0;
  dag.nodes.push_back(std::move(n));
  return out;
}

double copy_us(const DagNode& n, const target::Rates& rates) {
  return rates.kernel_us + 2.0 * static_cast<double>(numel(n.shape)) * size_of(n.dtype) / rates.copy_bytes_per_us;
}

}  // namespace

void copy_operands(Dag& dag, const Machine& machine) {
  constexpr unsigned kA = 1, kB = 2;
  constexpr int64_t kLeastDepth = 16;  // of a product that is worth it
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const DagNode product = dag.nodes[i];
    if (product.kind != DagKind::kProduct || product.splits > 1 || !multiplies_blocks(product, machine)) continue;
    if (product.operands[0].shape.back() < kLeastDepth) continue;
    const auto as_is = blocks_of(dag, product, machine);
    if (as_is) {
      const ProductSize size = size_of_product(product, &*as_is);
      if (std::min(size.a_alignment, size.b_alignment) == kLineBytes) continue;  // no copy lies better
    }
    const bool along_k = size_of(product.operand_type) != 2;
    auto with_copies = [&](unsigned sides) {
      DagNode p = product;
      for (unsigned side : {0u, 1u})
        if (sides >> side & 1) p.operands[side] = copied(dag, product.operands[side], side, along_k);
      return p;
    };
    double least = kWorth * (as_is ? product_us(product, *as_is, machine) : best_pointer_split(product, machine).us);
    unsigned best = 0;
    for (unsigned sides : {kA, kB, kA | kB}) {
      const size_t before = dag.nodes.size();
      const DagNode p = with_copies(sides);
      if (const auto blocks = blocks_of(dag, p, machine)) {
        double us = product_us(p, *blocks, machine);
        for (size_t copy = before; copy < dag.nodes.size(); ++copy) us += copy_us(dag.nodes[copy], machine.rates());
        if (us < least) least = us, best = sides;
      }
      dag.nodes.resize(before);
    }
    if (best) {
      DagNode p = with_copies(best);
      dag.nodes[i] = std::move(p);
    }
  }
  tidy(dag);
}

}  // namespace kiln::fusion
