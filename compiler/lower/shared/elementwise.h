// LLVM for elementwise ops: one scalar (or one SIMD vector of lanes) at a time. Shared by the NVPTX and host lowerings,
// so that both compute the same bits wherever the hardware has no approximation of its own that Triton's semantics
// allow.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <span>

#include "compiler/ir/ir.h"
#include "compiler/target/target.h"

namespace kiln::lower {

/// LLVM's type of one element: iN, half, bfloat, float, double; fp8 is i8; pointers are i64 on the host and
/// ptr addrspace(1) on CUDA. i1 is i1 (one byte in memory).
llvm::Type* element_type(const ir::Type& type, llvm::LLVMContext& context, const target::Target& target);

/// The result of `op` (an elementwise pure op of ops.def: arithmetic, cmp, select, casts, math, addptr) on operands
/// that are all scalars, or all <N x T> vectors of the same N. `types` come from op's operands and result, so
/// signedness is known.
llvm::Value* emit_elementwise(llvm::IRBuilderBase& b, const ir::Op& op, std::span<llvm::Value* const> operands,
                              const target::Target& target);

/// The constant of a kConstant op as a scalar of element_type.
llvm::Constant* emit_constant(const ir::Op& op, llvm::LLVMContext& context, const target::Target& target);

/// Inlines a combine region (of reduce or scan) on scalar or vector values; returns what it yields.
std::vector<llvm::Value*> emit_combine(llvm::IRBuilderBase& b, const ir::Block& region,
                                       std::span<llvm::Value* const> args, const target::Target& target);

}  // namespace kiln::lower
