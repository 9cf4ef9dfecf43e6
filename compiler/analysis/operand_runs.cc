#include "compiler/analysis/operand_runs.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace kiln::analysis {

namespace {

using ir::Op;
using ir::OpKind;
using ir::Value;

constexpr int kRegisterBits = 32, kHalfBits = 16, kLeastBits = 8, kLanesAlongK = 4;

class Runs {
 public:
  explicit Runs(const AxisAnalysis& axis) : axis_(axis) {}

  /// Elements in 32 bits of the narrowest tile that is loaded and becomes `v` element by element, where a thread can
  /// have them side by side along `dim`; 0: there is none.
  int of(const Value* v, int dim) {
    if (!v->op || !v->type.is_tile() || !seen_.insert(v).second) return 0;
    const Op* op = v->op;
    if (op->kind == OpKind::kLoad) return of_load(*op, dim);
    if (op->kind == OpKind::kTrans) {
      const auto& order = std::get<std::vector<int64_t>>(*op->find(ir::AttrName::kOrder));
      return of(op->operand(0), static_cast<int>(order[static_cast<size_t>(dim)]));
    }
    int most = 0;
    if (ir::is_elementwise(op))
      for (const Value* operand : op->operands) most = std::max(most, of(operand, dim));
    return most;
  }

 private:
  int of_load(const Op& load, int dim) const {
    const ir::Type& type = load.result()->type;
    if (type.pointer) return 0;
    const int bits = std::max(kLeastBits, type.element_bits());
    if (bits != kHalfBits && axis_.order_of(load.operand(0))[0] != dim) return 0;
    return std::max(1, kRegisterBits / bits);
  }

  const AxisAnalysis& axis_;
  std::unordered_set<const Value*> seen_;
};

}  // namespace

int wanted_k_width(const Op& dot, const AxisAnalysis& axis) {
  const ir::Type& type = dot.operand(0)->type;
  const int rank = type.shape.rank, depth = type.shape[rank - 1], packed = kRegisterBits / type.element_bits();
  const int of_a = Runs(axis).of(dot.operand(0), rank - 1), of_b = Runs(axis).of(dot.operand(1), rank - 2);
  if (packed > 1 && (of_a == packed || of_b == packed)) return 0;
  int width = std::max(of_a, of_b);
  while (width > packed && kLanesAlongK * width > depth) width /= 2;
  return width > packed ? width : 0;
}

}  // namespace kiln::analysis
