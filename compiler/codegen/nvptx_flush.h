// An LLVM function pass for NVPTX: flush-to-zero hardware functions where the result cannot differ.
#pragma once
#include <llvm/IR/Function.h>

namespace kiln::codegen {

/// ex2.approx costs four instructions, three of them for denormal results; its .ftz form is one. Where every use adds
/// the result to a constant that absorbs any denormal (1 + exp(-x) of a sigmoid), both give the same sum; no result is
/// denormal where the operations that the exponent is made of keep it from -126 on: max(x, -126), or a polynomial of
/// what min() and abs() bound.
void flush_where_unseen(llvm::Function& fn);

}  // namespace kiln::codegen
