// An LLVM function pass for NVPTX: works around a ptxas bug in 16-bit negation.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// ptxas (12.4 to 13.0 at least) compares the result of neg.s16 as if it had 32 bits: -(-32768) >= 5 holds there. So
/// 16-bit negations are written as PTX that extends, negates and cuts. Goes when `neg.s16` followed by `setp.s16` of
/// -32768 is right on a GPU (tests/gpu/kernel_test.cc, SmallIntegersWrap).
void negate_by_32_bits(llvm::Function& fn);

}  // namespace kiln::codegen
