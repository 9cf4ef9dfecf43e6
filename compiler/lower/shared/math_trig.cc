// sin and cos: Cody–Waite reduction with fma where that is exact enough, Payne–Hanek on the bits of 2/π beyond.
#include <fmt/format.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <string>
#include <utility>

#include "compiler/lower/shared/math.h"
#include "compiler/lower/shared/math_coefficients.h"
#include "compiler/lower/shared/math_emitter.h"

namespace kiln::lower {

using namespace coefficients;
using V = llvm::Value*;

namespace {

// π/2 in three parts. With n ≤ 2^16 (f32) or 2^30 (f64), x - n·part0 is exact, and what is left of π/2 after part2 is
// smaller than the rounding of the smallest |x - n·π/2| that occurs.
constexpr double kHalfPi32[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
constexpr double kHalfPi64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
constexpr double kFastLimit32 = 0x1.9p16, kFastLimit64 = 0x1.9p30;

// {r, quadrant} of any finite number of either type: x·2/π = quadrant (mod 4) + r·2/π with |r| ≤ π/4. One function in
// the module for each type, which converts inside: what leads to a call is computed ahead of the branch to it. Called
// for large |x| only.
llvm::Function* slow_reduction(MathEmitter& m) {
  llvm::IRBuilderBase& outer = m.b;
  llvm::Module& module = *outer.GetInsertBlock()->getModule();
  const char* name = m.f32 ? "kiln_trig_reduce_f32" : "kiln_trig_reduce";
  if (llvm::Function* f = module.getFunction(name)) return f;

  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *f64 = b.getDoubleTy(), *i64 = b.getInt64Ty(), *i128 = b.getInt128Ty();
  llvm::Type *number = m.float_type->getScalarType(), *integer = m.int_type->getScalarType();
  auto* result_type = llvm::StructType::get(context, {number, integer});
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result_type, {number}, false),
                                   llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(m.target.is_cuda() ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  auto* table_data = llvm::ConstantDataArray::get(context, llvm::ArrayRef<uint64_t>(kTwoOverPi));
  unsigned address_space = m.target.is_cuda() ? 1 : 0;
  constexpr const char* kTable = "kiln_two_over_pi";
  llvm::GlobalVariable* table = module.getNamedGlobal(kTable);
  if (!table)
    table = new llvm::GlobalVariable(module, table_data->getType(), true, llvm::GlobalValue::InternalLinkage,
                                     table_data, kTable, nullptr, llvm::GlobalValue::NotThreadLocal, address_space);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", f));
  auto c = [&](uint64_t v) { return b.getInt64(v); };

  // |x| = mantissa·2^(exponent - 1075). Bits of 2/π with a weight of 4 or more (after scaling) only add multiples of 4.
  V bits = b.CreateBitCast(b.CreateFPCast(f->getArg(0), f64), i64);
  V exponent = b.CreateAnd(b.CreateLShr(bits, c(52)), c(0x7ff));
  V mantissa = b.CreateOr(b.CreateAnd(bits, c((1ull << 52) - 1)), c(1ull << 52));
  // First bit kept: exponent - 1075 - 2 into 2/π, and 64 more into the table, which starts with a word of zeros.
  // Small arguments, which come along in a vector with a large one, have no place in the table and no use for the
  // result.
  V position = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateSub(exponent, c(1075 + 2 - 64)), c(0));
  V shift = b.CreateAnd(position, c(63));
  // NaN and infinity have the largest exponent: the table is long enough for it, and their result is replaced below.
  V first = b.CreateLShr(position, c(6));
  V words[4];
  for (unsigned i = 0; i < 4; ++i) {
    V address = b.CreateGEP(i64, table, b.CreateAdd(first, c(i)));
    words[i] = b.CreateLoad(i64, address);
  }
  V window[3];  // 192 bits, the most significant first
  for (int i = 0; i < 3; ++i)
    window[i] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {words[i], words[i + 1], shift});
  // mantissa·window modulo 2^192.
  auto wide = [&](V v) { return b.CreateZExt(v, i128); };
  V low = b.CreateMul(wide(window[2]), wide(mantissa));
  V middle = b.CreateAdd(b.CreateMul(wide(window[1]), wide(mantissa)), b.CreateLShr(low, 64));
  V p2 = b.CreateTrunc(low, i64), p1 = b.CreateTrunc(middle, i64);
  V p0 = b.CreateAdd(b.CreateMul(window[0], mantissa), b.CreateTrunc(b.CreateLShr(middle, 64), i64));
  // The top two bits are the quadrant; rounding to the nearest leaves a signed fraction.
  V quadrant = b.CreateLShr(b.CreateAdd(p0, c(1ull << 61)), c(62));
  V f0 = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {p0, p1, c(2)});
  V f1 = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {p1, p2, c(2)});
  V sign = b.CreateAShr(f0, c(63));
  f0 = b.CreateXor(f0, sign);
  f1 = b.CreateXor(f1, sign);
  V zeros = b.CreateIntrinsic(llvm::Intrinsic::ctlz, {i64}, {f0, b.getFalse()});
  V top = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {f0, f1, zeros});
  // top·2^(-64 - zeros)·π/2, with π/2 folded so that the exponent's bits can be made directly.
  V weight = b.CreateBitCast(b.CreateShl(b.CreateSub(c(1023 - 64), zeros), c(52)), f64);
  V r = b.CreateFMul(b.CreateFMul(b.CreateUIToFP(top, f64), llvm::ConstantFP::get(f64, kHalfPi64[0])), weight);
  V x_negative = b.CreateICmpSLT(bits, c(0));
  V r_negative = b.CreateXor(x_negative, b.CreateICmpSLT(sign, c(0)));
  r = b.CreateSelect(r_negative, b.CreateFNeg(r), r);
  quadrant = b.CreateSelect(x_negative, b.CreateNeg(quadrant), quadrant);
  r = b.CreateSelect(b.CreateICmpEQ(exponent, c(0x7ff)), llvm::ConstantFP::getNaN(f64), r);
  V result = b.CreateInsertValue(llvm::PoisonValue::get(result_type), b.CreateFPCast(r, number), 0);
  b.CreateRet(b.CreateInsertValue(result, b.CreateTrunc(quadrant, integer), 1));
  return f;
}

struct Reduced {
  V r, quadrant;
};

/// Sine, cosine or both of what was reduced.
SinCos evaluate(MathEmitter& m, const Reduced& reduced, bool sine, bool cosine) {
  llvm::IRBuilderBase& b = m.b;
  const V r = reduced.r, z = m.mul(r, r);
  const V sin = m.fma(m.mul(z, r), m.f32 ? m.poly(kSin32, z) : m.poly(kSin64, z), r);
  const V cos = m.fma(m.mul(z, z), m.f32 ? m.poly(kCos32, z) : m.poly(kCos64, z), m.fma(z, m.k(-0.5), m.k(1)));
  auto of = [&](V quadrant) {
    const V odd = b.CreateICmpNE(b.CreateAnd(quadrant, m.ki(1)), m.ki(0));
    const V sign = b.CreateShl(b.CreateAnd(quadrant, m.ki(2)), m.ki(m.pick(30, 62)));
    return m.from_bits(b.CreateXor(m.bits(m.select(odd, cos, sin)), sign));
  };
  return {.sine = sine ? of(reduced.quadrant) : nullptr,
          .cosine = cosine ? of(b.CreateAdd(reduced.quadrant, m.ki(1))) : nullptr};
}

/// Of `count` numbers in memory, the results for the large ones in place of those that lie there. For GPUs, in line:
/// what is live across a call wants registers that the function leaves alone, of which there are few, and ptxas keeps
/// the rest in memory on the fast path too. As a loop its code is short. Beside its results nothing is live across it.
llvm::Function* slow_results(MathEmitter& outer, bool sine, bool cosine) {
  llvm::Function* one = slow_reduction(outer);
  llvm::Module& module = *one->getParent();
  const std::string name =
      fmt::format("kiln_{}{}_of_large{}", sine ? "sin" : "", cosine ? "cos" : "", outer.f32 ? "_f32" : "");
  if (llvm::Function* f = module.getFunction(name)) return f;

  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* number = outer.float_type->getScalarType();
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt32Ty()}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::AlwaysInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  auto block = [&] { return llvm::BasicBlock::Create(context, "", f); };
  llvm::BasicBlock *entry = block(), *loop = block(), *large = block(), *next = block(), *end = block();
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* i = b.CreatePHI(b.getInt32Ty(), 2);
  i->addIncoming(b.getInt32(0), entry);
  V x = b.CreateLoad(number, b.CreateGEP(number, f->getArg(0), {i}));
  MathEmitter m(b, number, outer.target);
  b.CreateCondBr(m.lt(m.k(m.pick(kFastLimit32, kFastLimit64)), m.abs(x)), large, next);
  b.SetInsertPoint(large);
  V pair = b.CreateCall(one, {x});
  const SinCos results = evaluate(m, {b.CreateExtractValue(pair, 0), b.CreateExtractValue(pair, 1)}, sine, cosine);
  for (auto [result, to] : {std::pair(results.sine, 1U), std::pair(results.cosine, 2U)})
    if (result) b.CreateStore(result, b.CreateGEP(number, f->getArg(to), {i}));
  b.CreateBr(next);
  b.SetInsertPoint(next);
  V after = b.CreateAdd(i, b.getInt32(1));
  i->addIncoming(after, next);
  b.CreateCondBr(b.CreateICmpULT(after, f->getArg(3)), loop, end);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
  return f;
}

SinCos in_memory(MathEmitter& m, V x, const SinCos& fast) {
  llvm::IRBuilderBase& b = m.b;
  llvm::Function* f = slow_results(m, fast.sine, fast.cosine);
  llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  auto stored = [&](V value) -> V {
    if (!value) return llvm::ConstantPointerNull::get(b.getPtrTy());
    V place = at_entry.CreateAlloca(m.float_type);
    b.CreateStore(value, place);
    return place;
  };
  V xs = stored(x), sines = stored(fast.sine), cosines = stored(fast.cosine);
  const auto count = llvm::cast<llvm::FixedVectorType>(m.float_type)->getNumElements();
  b.CreateCall(f, {xs, sines, cosines, b.getInt32(count)});
  return {.sine = fast.sine ? b.CreateLoad(m.float_type, sines) : nullptr,
          .cosine = fast.cosine ? b.CreateLoad(m.float_type, cosines) : nullptr};
}

SinCos lane_by_lane(MathEmitter& m, V x, V large, const SinCos& fast) {
  llvm::IRBuilderBase& b = m.b;
  llvm::Function* f = slow_reduction(m);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(m.float_type);
  Reduced all = {llvm::PoisonValue::get(m.float_type), llvm::PoisonValue::get(m.int_type)};
  for (uint64_t lane = 0; lane < (vector ? vector->getNumElements() : 1); ++lane) {
    V pair = b.CreateCall(f, {vector ? b.CreateExtractElement(x, lane) : x});
    V r = b.CreateExtractValue(pair, 0), quadrant = b.CreateExtractValue(pair, 1);
    all = vector ? Reduced{b.CreateInsertElement(all.r, r, lane), b.CreateInsertElement(all.quadrant, quadrant, lane)}
                 : Reduced{r, quadrant};
  }
  SinCos slow = evaluate(m, all, fast.sine, fast.cosine);
  if (slow.sine) slow.sine = m.select(large, slow.sine, fast.sine);
  if (slow.cosine) slow.cosine = m.select(large, slow.cosine, fast.cosine);
  return slow;
}

/// The results of the fast reduction, but those of large numbers by the slow one.
SinCos with_large(MathEmitter& m, V x, const SinCos& fast) {
  llvm::IRBuilderBase& b = m.b;
  V limit = m.k(m.pick(kFastLimit32, kFastLimit64)), magnitude = m.abs(x), large = m.lt(limit, magnitude), any = large;
  const bool is_vector = m.float_type->isVectorTy(), uses_memory = is_vector && m.target.is_cuda();
  // A GPU has no registers of bits to collect the comparisons in. Maxima leave NaNs out, as comparisons do.
  if (uses_memory)
    any = b.CreateFCmpOLT(llvm::cast<llvm::Constant>(limit)->getSplatValue(), b.CreateFPMaxReduce(magnitude));
  else if (is_vector)
    any = b.CreateOrReduce(large);
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "trig.slow", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "trig", function);
  b.CreateCondBr(any, slow, after);
  b.SetInsertPoint(slow);
  const SinCos exact = uses_memory ? in_memory(m, x, fast) : lane_by_lane(m, x, large, fast);
  llvm::BasicBlock* slow_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  auto join = [&](V fast_value, V slow_value) -> V {
    if (!fast_value) return nullptr;
    llvm::PHINode* phi = b.CreatePHI(fast_value->getType(), 2);
    phi->addIncoming(fast_value, before);
    phi->addIncoming(slow_value, slow_end);
    return phi;
  };
  return {.sine = join(fast.sine, exact.sine), .cosine = join(fast.cosine, exact.cosine)};
}

}  // namespace

SinCos emit_sin_cos(llvm::IRBuilderBase& b, V x, SinCosOptions o, const target::Target& target) {
  MathEmitter m(b, x->getType(), target);
  auto [value, quadrant] = m.round(m.mul(x, m.k(m.pick(0x1.45f306p-1, 0x1.45f306dc9c883p-1))));
  V r = x;
  for (double part : m.pick(std::span(kHalfPi32), std::span(kHalfPi64))) r = m.fma(value, m.k(-part), r);
  SinCos fast = evaluate(m, {r, quadrant}, o.sine, o.cosine);
  // Keeps -0 and denormals, whose squares vanish.
  if (o.sine) fast.sine = m.select(m.lt(m.abs(x), m.k(m.pick(0x1p-13, 0x1p-27))), x, fast.sine);
  return o.may_be_large ? with_large(m, x, fast) : fast;
}

}  // namespace kiln::lower
