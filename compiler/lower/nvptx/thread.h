// The identity of one CUDA thread: its lane and warp, the numbers that layouts derive from them, and shuffles.
// Internal to the NVPTX lowering.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <span>
#include <vector>

#include "compiler/layout/xor_map.h"

namespace kiln::lower {

inline constexpr int kLanes = 32;

class ThreadCode {
 public:
  /// `entry` must stay without terminator until the function is complete: what depends on the thread alone is computed
  /// there, once. A layout's warps are the first `num_warps` of a block; `extra_warps` come after them.
  ThreadCode(llvm::BasicBlock* entry, int num_warps, int extra_warps = 0);

  int num_warps() const { return num_warps_; }
  llvm::Value* lane();
  llvm::Value* thread();  // 0 … 32·(num_warps + extra_warps)-1
  /// The warp's number, taken from its first lane, so that the assembler knows it to be the same in all lanes.
  llvm::Value* uniform_warp();
  llvm::Value* cta_rank();  // of the block in its cluster

  /// map.apply(0, lane, warp) as i32.
  llvm::Value* share(const layout::XorMap& map);
  /// The xor of the constants whose bit is set in uniform_warp().
  llvm::Value* uniform_share(const std::vector<uint32_t>& warp_bases);
  /// (lane & lane_mask) == 0 && (warp & warp_mask) == 0; nullptr when both masks are 0: every thread.
  llvm::Value* is_zero(uint32_t lane_mask, uint32_t warp_mask);
  /// (lane & lane_mask) == lane_value && (warp & warp_mask) == warp_value; nullptr when both masks are 0.
  llvm::Value* matches(uint32_t lane_mask, uint32_t lane_value, uint32_t warp_mask, uint32_t warp_value);

  /// registers[map(r, lane, warp)]: by selects where the thread decides.
  llvm::Value* pick(llvm::IRBuilderBase& b, std::span<llvm::Value* const> registers, const layout::XorMap& map,
                    uint32_t r);

 private:
  llvm::Value* combine(llvm::Value* number, std::vector<uint32_t> bases);

  llvm::IRBuilder<> entry_;
  int num_warps_, extra_warps_;
  llvm::Value *thread_ = nullptr, *uniform_warp_ = nullptr, *cta_rank_ = nullptr;
  std::map<std::pair<llvm::Value*, std::vector<uint32_t>>, llvm::Value*> shares_;
};

/// `share` xor `constant`, as an addition where no bits meet (address arithmetic folds additions).
llvm::Value* join_share(llvm::IRBuilderBase& b, llvm::Value* share, uint32_t share_bits, uint32_t constant);

/// A value's bits as an integer of its width (pointers: i64), and back.
llvm::Value* to_bits(llvm::IRBuilderBase& b, llvm::Value* v);
llvm::Value* from_bits(llvm::IRBuilderBase& b, llvm::Value* bits, llvm::Type* type);

/// The value of another lane of the warp, of any scalar type. All lanes must take part.
llvm::Value* shuffle_xor(llvm::IRBuilderBase& b, llvm::Value* v, uint32_t mask);
llvm::Value* shuffle_from(llvm::IRBuilderBase& b, llvm::Value* v, llvm::Value* lane);

}  // namespace kiln::lower
