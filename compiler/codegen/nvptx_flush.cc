#include "compiler/codegen/nvptx_flush.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/lower/shared/llvm_version.h"

namespace kiln::codegen {

namespace {

/// An addition of a constant whose last place is far above every denormal.
bool absorbs_denormals(const llvm::User* user) {
  auto* add = llvm::dyn_cast<llvm::BinaryOperator>(user);
  if (!add || add->getOpcode() != llvm::Instruction::FAdd) return false;
  for (const llvm::Use& operand : add->operands())
    if (auto* c = llvm::dyn_cast<llvm::ConstantFP>(operand))
      if (std::fabs(c->getValueAPF().convertToFloat()) >= 0x1p-60f) return true;
  return false;
}

/// Between which numbers a float lies, unless it is NaN. Roundings keep the order of what they round, so f32 operations
/// on the ends give ends that are exact.
struct Range {
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

constexpr int kDeepest = 16;  // operations from a value to what bounds it

Range range_of(const llvm::Value* v, int depth);

/// Of an operation that rises or falls throughout with each operand while the others stay: the extremes are at corners.
template <class F>
Range at_corners(F f, Range a, Range b, Range c = {0, 0}) {
  Range r = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for (float x : {a.least, a.most})
    for (float y : {b.least, b.most})
      for (float z : {c.least, c.most}) {
        const float v = f(x, y, z);
        if (std::isnan(v)) return {};  // 0 · inf, or inf - inf
        r = {std::min(r.least, v), std::max(r.most, v)};
      }
  return r;
}

float least_of(float x, float y, float) { return std::min(x, y); }
float most_of(float x, float y, float) { return std::max(x, y); }

/// A NaN gives way to the other operand; constants are none.
template <class F>
Range extreme_number(F f, const llvm::IntrinsicInst& op, int depth) {
  const llvm::Value* of[] = {op.getArgOperand(0), op.getArgOperand(1)};
  const Range a = range_of(of[0], depth), b = range_of(of[1], depth);
  Range r = at_corners(f, a, b);
  for (int i : {0, 1}) {
    const Range& other = i == 0 ? b : a;
    if (!llvm::isa<llvm::ConstantFP>(of[i])) r = {std::min(r.least, other.least), std::max(r.most, other.most)};
  }
  return r;
}

Range range_of_call(const llvm::IntrinsicInst& op, int depth) {
  auto of = [&](unsigned i) { return range_of(op.getArgOperand(i), depth); };
  switch (op.getIntrinsicID()) {
    case llvm::Intrinsic::fabs: {
      const Range a = of(0);
      return {std::max({0.0f, a.least, -a.most}), std::max(-a.least, a.most)};
    }
    case llvm::Intrinsic::fma:
      return at_corners([](float x, float y, float z) { return std::fma(x, y, z); }, of(0), of(1), of(2));
    case llvm::Intrinsic::minimum:
      return at_corners(least_of, of(0), of(1));
    case llvm::Intrinsic::maximum:
      return at_corners(most_of, of(0), of(1));
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::minimumnum:
      return extreme_number(least_of, op, depth);
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::maximumnum:
      return extreme_number(most_of, op, depth);
    default:
      return {};
  }
}

Range range_of(const llvm::Value* v, int depth) {
  if (!v->getType()->isFloatTy() || depth == kDeepest) return {};
  if (auto* c = llvm::dyn_cast<llvm::ConstantFP>(v)) {
    const float value = c->getValueAPF().convertToFloat();
    return std::isnan(value) ? Range{} : Range{value, value};
  }
  if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v)) return range_of_call(*call, depth + 1);
  auto* op = llvm::dyn_cast<llvm::Instruction>(v);
  if (!op) return {};
  auto of = [&](unsigned i) { return range_of(op->getOperand(i), depth + 1); };
  switch (op->getOpcode()) {
    case llvm::Instruction::FAdd:
      return at_corners([](float x, float y, float) { return x + y; }, of(0), of(1));
    case llvm::Instruction::FSub:
      return at_corners([](float x, float y, float) { return x - y; }, of(0), of(1));
    case llvm::Instruction::FMul:
      return at_corners([](float x, float y, float) { return x * y; }, of(0), of(1));
    case llvm::Instruction::FNeg:
      return {-of(0).most, -of(0).least};
    default:
      return {};
  }
}

/// Whether 2^x is no denormal, as far as the operations that x is made of tell.
bool has_normal_power(const llvm::Value* x) { return range_of(x, 0).least >= -126; }

}  // namespace

void flush_where_unseen(llvm::Function& fn) {
  for (llvm::Instruction& i : llvm::instructions(fn)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call || call->getIntrinsicID() != lower::kEx2Approx || !call->getType()->isFloatTy()) continue;
    if (!has_normal_power(call->getArgOperand(0)) && !llvm::all_of(call->users(), absorbs_denormals)) continue;
    llvm::SmallVector<llvm::Type*, 1> types;
    if (llvm::Intrinsic::isOverloaded(lower::kEx2ApproxFtz)) types.push_back(call->getType());
    call->setCalledFunction(llvm::Intrinsic::getOrInsertDeclaration(fn.getParent(), lower::kEx2ApproxFtz, types));
  }
}

}  // namespace kiln::codegen
