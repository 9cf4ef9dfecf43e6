// Instructions that LLVM 21 has no intrinsics for: under LLVM 22 these are its intrinsics, under 21 assembly that gives
// the same PTX. To go with support of LLVM 21.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>

namespace kiln::lower {

/// The address space of shared memory of all blocks of a cluster.
inline constexpr unsigned kClusterSpace = 7;

/// One arrival at a barrier in shared memory of this block, or in kClusterSpace of any block of the cluster; it
/// releases to the barrier's block.
void mbarrier_arrive(llvm::IRBuilderBase& b, llvm::Value* barrier);
/// An arrival, with so many more bytes (i32) to wait for in this phase.
void mbarrier_arrive_expect_tx(llvm::IRBuilderBase& b, llvm::Value* barrier, llvm::Value* bytes);
/// i1: whether the phase of this parity (i32) is over. Waits for a while until it is.
llvm::Value* mbarrier_try_wait_parity(llvm::IRBuilderBase& b, llvm::Value* barrier, llvm::Value* parity);

/// Initialised barriers, for all blocks of the cluster.
void fence_mbarrier_init(llvm::IRBuilderBase& b);
/// Between accesses of threads and those of asynchronous copies: all, or those of this block's shared memory alone.
void fence_proxy_async(llvm::IRBuilderBase& b);
void fence_proxy_async_shared(llvm::IRBuilderBase& b);

/// Stores 1, 2 or 4 matrices of 8x8 16-bit elements to shared memory, one word (i32) of each per lane.
void stmatrix(llvm::IRBuilderBase& b, llvm::Value* address, std::span<llvm::Value* const> words, bool transposed);

}  // namespace kiln::lower
