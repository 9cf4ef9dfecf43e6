// LLVM function passes for NVPTX: they work around what ptxas takes for granted about signs.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// ptxas (12.4 to 13.0 at least) compares the result of neg.s16 as if it had 32 bits: -(-32768) >= 5 holds there. So
/// 16-bit negations are written as PTX that extends, negates and cuts. Goes when `neg.s16` followed by `setp.s16` of
/// -32768 is right on a GPU (tests/gpu/kernel_test.cc, SmallIntegersWrap).
void negate_by_32_bits(llvm::Function& fn);

/// ptxas (13.0) takes the result of abs for no negative number, and that of abs.s16 for one of 32 bits, where the least
/// number is its own absolute value: cvt.rn.f32.u32 of abs.s32 becomes I2FP.F32.S32, and abs < 0 false. LLVM makes
/// llvm.abs of min(x, -x) of unsigned numbers too. So absolute values that may be the least number are written as the
/// maximum of x and -x. Goes when AbsoluteValueOfTheLeastNumber there passes without it.
void absolute_by_maximum(llvm::Function& fn);

}  // namespace kiln::codegen
