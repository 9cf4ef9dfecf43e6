#include "compiler/codegen/nvptx_divide.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

#include "compiler/codegen/nvptx_calls.h"

namespace kiln::codegen {

namespace {

using llvm::Instruction;
using llvm::Value;

// Of some 60 instructions each.
constexpr std::size_t kMostDivisions = 16;

bool divides(const Instruction& i) {
  return i.isIntDivRem() && i.getType()->isIntegerTy(64) && !llvm::isa<llvm::Constant>(i.getOperand(1));
}

/// |x|, with all bits set in `sign` where x is negative. The least i64 becomes 2^63.
Value* magnitude(llvm::IRBuilder<>& b, Value* x, Value*& sign) {
  sign = b.CreateAShr(x, 63);
  return b.CreateSub(b.CreateXor(x, sign), sign);
}

struct Divided {
  Value *quotient, *remainder;
};

Divided divide_short(llvm::IRBuilder<>& b, Value* x, Value* y) {
  Value *x32 = b.CreateTrunc(x, b.getInt32Ty()), *y32 = b.CreateTrunc(y, b.getInt32Ty());
  return {b.CreateZExt(b.CreateUDiv(x32, y32), b.getInt64Ty()), b.CreateZExt(b.CreateURem(x32, y32), b.getInt64Ty())};
}

/// Of unsigned numbers. The reciprocal is below 1/y by a relative 2^-49 to 2^-47, which covers the roundings of x, y
/// and itself: no quotient is too large, the first is short by 2^18 at most, and what is left of x by one after the
/// second.
Divided divide_long(llvm::IRBuilder<>& b, Value* x, Value* y) {
  llvm::Type* f64 = b.getDoubleTy();
  auto real = [&](double v) { return llvm::ConstantFP::get(f64, v); };
  Value* divisor = b.CreateUIToFP(y, f64);
  Value* reciprocal = b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_d, {divisor});
  Value* negative = b.CreateFNeg(divisor);
  for (int step = 0; step < 2; ++step) {  // Newton's: 23 bits become 46, and then all
    Value* error = b.CreateIntrinsic(llvm::Intrinsic::fma, {f64}, {negative, reciprocal, real(1)});
    reciprocal = b.CreateIntrinsic(llvm::Intrinsic::fma, {f64}, {reciprocal, error, reciprocal});
  }
  reciprocal = b.CreateFMul(reciprocal, real(1 - 0x1p-48));
  Value *quotient = b.getInt64(0), *remainder = x;
  for (int step = 0; step < 2; ++step) {
    Value* estimate = b.CreateFMul(b.CreateUIToFP(remainder, f64), reciprocal);
    Value* part = b.CreateIntrinsic(llvm::Intrinsic::nvvm_d2ull_rz, {estimate});
    quotient = b.CreateAdd(quotient, part);
    remainder = b.CreateSub(remainder, b.CreateMul(part, y));
  }
  Value* is_short = b.CreateICmpUGE(remainder, y);
  return {b.CreateAdd(quotient, b.CreateZExt(is_short, b.getInt64Ty())),
          b.CreateSelect(is_short, b.CreateSub(remainder, y), remainder)};
}

void expand(Instruction& i) {
  const unsigned code = i.getOpcode();
  const bool is_signed = code == Instruction::SDiv || code == Instruction::SRem;
  const bool wants_quotient = code == Instruction::SDiv || code == Instruction::UDiv;
  llvm::IRBuilder<> b(&i);
  Value *x = i.getOperand(0), *y = i.getOperand(1), *x_sign = nullptr, *y_sign = nullptr;
  if (is_signed) x = magnitude(b, x, x_sign), y = magnitude(b, y, y_sign);
  Value* is_short = b.CreateICmpEQ(b.CreateLShr(b.CreateOr(x, y), 32), b.getInt64(0));
  Instruction *short_end = nullptr, *long_end = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(is_short, &i, &short_end, &long_end);
  b.SetInsertPoint(short_end);
  const Divided by_32 = divide_short(b, x, y);
  b.SetInsertPoint(long_end);
  const Divided by_64 = divide_long(b, x, y);
  b.SetInsertPoint(&i);
  llvm::PHINode* joined = b.CreatePHI(i.getType(), 2);
  joined->addIncoming(wants_quotient ? by_32.quotient : by_32.remainder, short_end->getParent());
  joined->addIncoming(wants_quotient ? by_64.quotient : by_64.remainder, long_end->getParent());
  Value* result = joined;
  if (is_signed) {  // towards zero; a remainder has the sign of what is divided
    Value* sign = wants_quotient ? b.CreateXor(x_sign, y_sign) : x_sign;
    result = b.CreateSub(b.CreateXor(joined, sign), sign);
  }
  i.replaceAllUsesWith(result);
  i.eraseFromParent();
}

}  // namespace

void divide_without_calls(llvm::Function& fn) {
  std::vector<Instruction*> found;
  for (Instruction& i : llvm::instructions(fn))
    if (divides(i)) found.push_back(&i);
  if (found.size() > kMostDivisions && !has_wgmma(fn)) return;
  for (Instruction* i : found) expand(*i);
}

}  // namespace kiln::codegen
