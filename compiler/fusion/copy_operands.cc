#include "compiler/fusion/copy_operands.h"

#include <algorithm>

#include "compiler/fusion/grouping.h"
#include "compiler/fusion/product_form.h"
#include "compiler/fusion/split.h"
#include "compiler/target/target.h"

namespace kiln::fusion {

namespace {

constexpr int64_t kRowBytes = 64;  // a copy's rows begin at multiples of them
// On an H200: a kernel of its own, and memory that is read and written in rows of any alignment.
constexpr double kCopyUs = 2.0, kCopyBytesPerUs = 2.5e6;
constexpr double kWorth = 0.9;  // of the time without copies

/// One step of a 128 x 128 tile along 128 bytes of k, through pointers: what each operand costs (H200, mma.sync).
double pointer_step_us(const Operand& o, int bytes, bool words) {
  const size_t r = o.shape.size();
  const int64_t stride = o.strides[r - 1] == 1 ? o.strides[r - 2] : o.strides[r - 1];
  if (words) return 0.7;
  if (o.strides[r - 1] != 1 && o.strides[r - 2] != 1) return 2.0;
  return stride * bytes % 16 == 0 ? 0.3 : stride * bytes % 8 == 0 ? 0.5 : 1.1;
}

double pointer_us(const DagNode& p, const Machine& machine) {
  const ProductSize size = size_of_product(p);
  const MatmulTile tile = pointer_tile(p, machine);
  const bool words = size.operand_bytes == 4;
  const double step = (tile.m * pointer_step_us(p.operands[0], size.operand_bytes, words) +
                       tile.n * pointer_step_us(p.operands[1], size.operand_bytes, words)) /
                      128;
  const int64_t tiles = cdiv(size.m, tile.m) * cdiv(size.n, tile.n) * size.batch;
  // Few tiles share their sums (split.h).
  const double rounds = std::max(static_cast<double>(cdiv(tiles, machine.multiprocessors)),
                                 static_cast<double>(tiles) * 2 > machine.multiprocessors
                                     ? 1.0
                                     : static_cast<double>(tiles) / machine.multiprocessors);
  return 3 + rounds * static_cast<double>(cdiv(size.k, tile.k)) * step;
}

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
  const int64_t unit = kRowBytes / size_of(n.dtype);
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

double copy_us(const Dag& dag, const Operand& copy) {
  const DagNode& n = dag.nodes[at(copy.node)];
  return kCopyUs + 2.0 * static_cast<double>(numel(n.shape)) * size_of(n.dtype) / kCopyBytesPerUs;
}

}  // namespace

void copy_operands(Dag& dag, const Machine& machine) {
  const target::Target* t = target::find(machine.target);
  if (!t || !t->has(target::kTma) || !t->has(target::kWgmma)) return;
  const size_t count = dag.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const DagNode product = dag.nodes[i];
    if (product.kind != DagKind::kProduct || product.splits > 1 || !multiplies_blocks(product, machine)) continue;
    if (numel(product.shape) == 0 || product.operands[0].shape.back() < 16) continue;
    const bool along_k = size_of(product.operand_type) != 2;
    const auto as_is = blocks_of(dag, product, machine);
    double least = kWorth * (as_is ? product_us(product, *as_is, machine) : pointer_us(product, machine));
    unsigned best = 0;
    for (unsigned sides : {1u, 2u, 3u}) {
      Dag with;  // the copies alone, behind as many nodes as there are
      with.nodes = dag.nodes;
      DagNode p = product;
      double us = 0;
      for (size_t side : {0u, 1u}) {
        if (!(sides >> side & 1)) continue;
        p.operands[side] = copied(with, product.operands[side], side, along_k);
        us += copy_us(with, p.operands[side]);
      }
      const auto blocks = blocks_of(with, p, machine);
      if (!blocks) continue;
      us += product_us(p, *blocks, machine);
      if (us < least) least = us, best = sides;
    }
    for (size_t side : {0u, 1u})
      if (best >> side & 1) {
        Operand copy = copied(dag, product.operands[side], side, along_k);
        dag.nodes[i].operands[side] = std::move(copy);
      }
  }
  tidy(dag);
}

}  // namespace kiln::fusion
