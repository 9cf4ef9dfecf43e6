// Works around a bug of LLVM in the minimum and maximum of scalars.
#pragma once

namespace llvm {
class Module;
}

namespace kiln::codegen {

/// With AVX512DQ, LLVM 22 selects a sequence for a scalar `maximumnum` and `minimumnum` that gives NaN where one
/// operand is NaN and LLVM knows that the other is not; the number is right. So it is kept from knowing: the operands
/// go through a fence, which is no instruction. Call it when nothing but instruction selection follows. Goes when
/// HostMinMax.OfScalarsLeavesNaNOut passes without it on a CPU with AVX512DQ.
void fence_minmax(llvm::Module& module);

}  // namespace kiln::codegen
