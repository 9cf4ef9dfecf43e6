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

}  // namespace kiln::analysis
