#include "compiler/lower/nvptx/thread.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>

#include "support/diag.h"

namespace kiln::lower {

using layout::XorMap;
using llvm::Value;

namespace {

constexpr int kLaneBits = 5;

template <class Fn>
// Shuffles move 32 bits: narrower values are extended, wider ones go in two halves.
Value* by_words(llvm::IRBuilderBase& b, Value* v, Fn&& shuffle) {
  Value* bits = to_bits(b, v);
  const unsigned width = bits->getType()->getIntegerBitWidth();
  if (width <= 32)
    return from_bits(b, b.CreateTrunc(shuffle(b.CreateZExt(bits, b.getInt32Ty())), bits->getType()), v->getType());
  Value* low = shuffle(b.CreateTrunc(bits, b.getInt32Ty()));
  Value* high = shuffle(b.CreateTrunc(b.CreateLShr(bits, 32), b.getInt32Ty()));
  Value* joined = b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
  return from_bits(b, joined, v->getType());
}

}  // namespace

ThreadCode::ThreadCode(llvm::BasicBlock* entry, int num_warps, int extra_warps)
    : entry_(entry), num_warps_(num_warps), extra_warps_(extra_warps) {}

Value* ThreadCode::thread() {
  if (thread_) return thread_;
  llvm::CallInst* tid = entry_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  // The range lets LLVM fold index arithmetic that could otherwise overflow.
  const llvm::APInt zero(32, 0), limit(32, static_cast<uint64_t>(kLanes * (num_warps_ + extra_warps_)));
  tid->addRangeRetAttr(llvm::ConstantRange(zero, limit));
  return thread_ = tid;
}

Value* ThreadCode::lane() { return entry_.CreateAnd(thread(), kLanes - 1); }

Value* ThreadCode::uniform_warp() {
  if (!uniform_warp_)
    uniform_warp_ = entry_.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                                           {entry_.getInt32(~0u), entry_.CreateLShr(thread(), kLaneBits),
                                            entry_.getInt32(0), entry_.getInt32(kLanes - 1)});
  return uniform_warp_;
}

Value* ThreadCode::cta_rank() {
  if (!cta_rank_) cta_rank_ = entry_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank, {});
  return cta_rank_;
}

// The thread number has the lane in its low bits and the warp above them, so one mask and shift serves both.
Value* ThreadCode::share(const XorMap& map) {
  std::vector<uint32_t> bases(map.lane);
  bases.resize(kLaneBits);
  bases.insert(bases.end(), map.warp.begin(), map.warp.end());
  return combine(thread(), std::move(bases));
}

Value* ThreadCode::uniform_share(const std::vector<uint32_t>& warp_bases) {
  return combine(uniform_warp(), warp_bases);
}

/// The xor of the bases whose bit is set in `number`: as few shifts as there are distances between bits.
Value* ThreadCode::combine(Value* number, std::vector<uint32_t> bases) {
  while (!bases.empty() && bases.back() == 0) bases.pop_back();
  if (bases.empty()) return entry_.getInt32(0);
  auto [it, inserted] = shares_.try_emplace({number, bases}, nullptr);
  if (!inserted) return it->second;
  std::map<int, uint32_t> inputs;  // by distance: the thread bits that move so far
  for (size_t i = 0; i < bases.size(); ++i)
    for (uint32_t rest = bases[i]; rest; rest &= rest - 1)
      inputs[std::countr_zero(rest) - static_cast<int>(i)] |= 1u << i;
  Value* sum = nullptr;
  uint32_t used = 0;
  for (auto [distance, mask] : inputs) {
    Value* term = entry_.CreateAnd(number, mask);
    term = distance >= 0 ? entry_.CreateShl(term, static_cast<uint64_t>(distance), "", true, true)
                         : entry_.CreateLShr(term, static_cast<uint64_t>(-distance), "", true);
    const uint32_t bits = distance >= 0 ? mask << distance : mask >> -distance;
    if (!sum)
      sum = term;
    else if (used & bits)
      sum = entry_.CreateXor(sum, term);
    else
      sum = entry_.CreateOr(sum, term, "", /*IsDisjoint=*/true);
    used |= bits;
  }
  return it->second = sum;
}

Value* ThreadCode::is_zero(uint32_t lane_mask, uint32_t warp_mask) { return matches(lane_mask, 0, warp_mask, 0); }

Value* ThreadCode::matches(uint32_t lane_mask, uint32_t lane_value, uint32_t warp_mask, uint32_t warp_value) {
  const uint32_t mask = lane_mask | (warp_mask << kLaneBits), value = lane_value | (warp_value << kLaneBits);
  if (mask == 0) return nullptr;
  return entry_.CreateICmpEQ(entry_.CreateAnd(thread(), mask), entry_.getInt32(value));
}

Value* ThreadCode::pick(llvm::IRBuilderBase& b, std::span<Value* const> registers, const XorMap& map, uint32_t r) {
  const uint32_t fixed = map.of_register(r), varying = map.thread_bits();
  if (varying == 0) return registers[fixed];
  // A binary tree of selects over the registers that the varying bits can choose. Dynamic indexing would force the
  // registers into local memory.
  std::vector<Value*> level;
  for (uint32_t subset = 0;; subset = (subset - varying) & varying) {  // all subsets of the varying bits, ascending
    level.push_back(registers[fixed ^ subset]);
    if (subset == varying) break;
  }
  Value* number = share(map);
  for (uint32_t rest = varying; rest; rest &= rest - 1) {
    Value* set = b.CreateICmpNE(b.CreateAnd(number, rest & -rest), b.getInt32(0));
    for (size_t i = 0; 2 * i < level.size(); ++i) level[i] = b.CreateSelect(set, level[2 * i + 1], level[2 * i]);
    level.resize(level.size() / 2);
  }
  return level[0];
}

Value* join_share(llvm::IRBuilderBase& b, Value* share, uint32_t share_bits, uint32_t constant) {
  if (constant == 0) return share;
  if (share_bits & constant) return b.CreateXor(share, constant);
  return b.CreateOr(share, b.getInt32(constant), "", /*IsDisjoint=*/true);
}

Value* to_bits(llvm::IRBuilderBase& b, Value* v) {
  llvm::Type* t = v->getType();
  if (t->isPointerTy()) return b.CreatePtrToInt(v, b.getInt64Ty());
  return t->isIntegerTy() ? v : b.CreateBitCast(v, b.getIntNTy(t->getScalarSizeInBits()));
}

Value* from_bits(llvm::IRBuilderBase& b, Value* bits, llvm::Type* type) {
  if (type->isPointerTy()) return b.CreateIntToPtr(bits, type);
  return type->isIntegerTy() ? bits : b.CreateBitCast(bits, type);
}

Value* shuffle_xor(llvm::IRBuilderBase& b, Value* v, uint32_t mask) {
  return by_words(b, v, [&](Value* word) -> Value* {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32,
                             {b.getInt32(~0u), word, b.getInt32(mask), b.getInt32(kLanes - 1)});
  });
}

Value* shuffle_from(llvm::IRBuilderBase& b, Value* v, Value* lane) {
  return by_words(b, v, [&](Value* word) -> Value* {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                             {b.getInt32(~0u), word, lane, b.getInt32(kLanes - 1)});
  });
}

}  // namespace kiln::lower
