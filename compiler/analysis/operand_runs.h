// How many neighbours along k a thread should have of the operands of a product by mma.sync.
//
//   %k = load %p : f16[64, 32]
//   %w = cast %k : f32[64, 32]                                 two: 32 bits of halves, which ldmatrix gives a thread
//   %s = dot %a, %w, %sum {precision = "tf32", k_width = 2}
#pragma once
#include "compiler/analysis/axis_info.h"
#include "compiler/ir/ir.h"

namespace kiln::analysis {

/// The attribute `k_width` of a dot, or 0 where it should take its operands as the instruction orders them. Of what is
/// loaded as narrower elements and widened, a thread has as many as lie in 32 bits, so that it is read from shared
/// memory in 32 bits as it was loaded: of halves in either order of memory, which ldmatrix reads both, of bytes along
/// k. Both operands have the same width, since they are multiplied element by element along k. An operand that is
/// loaded as halves and multiplied as halves is read by ldmatrix in the instruction's order alone, and decides; one of
/// 32 bits is read by vectors instead.
int wanted_k_width(const ir::Op& dot, const AxisAnalysis& axis);

}  // namespace kiln::analysis
