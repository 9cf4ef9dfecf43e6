#include "compiler/analysis/tensor_map.h"

#include "compiler/analysis/host_expression.h"
#include "support/tensor_map.h"

namespace kiln::analysis {

bool has_tensor_map(const ir::Op& descriptor, const AxisAnalysis& axis, bool stored) {
  const ir::Type& type = descriptor.result()->type;
  const int rank = type.shape.rank, size = size_of(type.dtype);
  const ir::Value* base = descriptor.operand(0);
  if (!host_expression(base) || axis.of(base).divisibility[0] % kTensorMapAlignment != 0) return false;
  for (int d = 0; d < rank; ++d) {
    const ir::Value *extent = descriptor.operand(1 + d), *stride = descriptor.operand(1 + rank + d);
    if (!host_expression(extent) || !host_expression(stride)) return false;
    const ir::Value* unit = d != rank - 1 ? stride : stored ? extent : nullptr;
    if (unit && axis.of(unit).divisibility[0] * size % kTensorMapAlignment != 0) return false;
  }
  return true;
}

bool can_make_tensor_map(const ir::Op& descriptor, const AxisAnalysis& axis) {
  const ir::Type& type = descriptor.result()->type;
  auto is_aligned = [&](int operand, int64_t unit) {
    const ir::Value* v = descriptor.operand(operand);
    return !host_expression(v) || axis.of(v).divisibility[0] * unit % kTensorMapAlignment == 0;
  };
  if (!is_aligned(0, 1)) return false;
  const int rank = type.shape.rank;
  for (int d = 0; d + 1 < rank; ++d)
    if (!is_aligned(1 + rank + d, size_of(type.dtype))) return false;
  return true;
}

}  // namespace kiln::analysis
