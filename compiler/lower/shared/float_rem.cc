#include "compiler/lower/shared/float_rem.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

namespace kiln::lower {

using llvm::BasicBlock;
using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::Value;

namespace {

/// Long division of the significands in 64-bit integers: x = mx·2^ex, y = my·2^ey, and mx·2^(ex-ey) mod my is computed
/// a few bits at a time, as many as fit beside the significand.
llvm::Function* make_fmod(llvm::Module& module, llvm::Type* type, const char* name) {
  llvm::LLVMContext& context = module.getContext();
  const bool is_double = type->isDoubleTy();
  const unsigned width = is_double ? 64 : 32, fraction = is_double ? 52 : 23;
  const uint64_t chunk = 63 - (fraction + 1);
  auto* fn = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false), llvm::Function::InternalLinkage,
                                    name, module);
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->setMemoryEffects(llvm::MemoryEffects::none());
  auto block = [&](const char* label) { return BasicBlock::Create(context, label, fn); };
  BasicBlock *entry = block("entry"), *simple = block("simple"), *divide = block("divide"), *loop = block("loop"),
             *next = block("next"), *finish = block("finish");

  llvm::IRBuilder<> b(entry);
  llvm::IntegerType* bits_type = b.getIntNTy(width);
  llvm::IntegerType* i64 = b.getInt64Ty();
  auto num = [&](uint64_t v) { return ConstantInt::get(i64, v); };
  Value *x = fn->getArg(0), *y = fn->getArg(1);
  auto magnitude = [&](Value* v) {
    Value* bits = b.CreateZExt(b.CreateBitCast(v, bits_type), i64);
    return b.CreateAnd(bits, num((uint64_t{1} << (width - 1)) - 1));
  };
  const uint64_t infinity = ((uint64_t{1} << (width - 1 - fraction)) - 1) << fraction;
  Value *ax = magnitude(x), *ay = magnitude(y);
  Value* invalid = b.CreateOr(b.CreateICmpUGE(ax, num(infinity)),
                              b.CreateOr(b.CreateICmpUGT(ay, num(infinity)), b.CreateICmpEQ(ay, num(0))));
  b.CreateCondBr(b.CreateOr(invalid, b.CreateICmpULT(ax, ay)), simple, divide);

  b.SetInsertPoint(simple);
  Value* kept = b.CreateSelect(b.CreateFCmpUNO(x, x), x, ConstantFP::getNaN(type));
  b.CreateRet(b.CreateSelect(invalid, kept, x));

  b.SetInsertPoint(divide);
  auto unpack = [&](Value* bits) {  // denormals share the exponent of the smallest normals, without the hidden bit
    Value* exponent = b.CreateLShr(bits, num(fraction));
    Value* significand = b.CreateAnd(bits, num((uint64_t{1} << fraction) - 1));
    Value* normal = b.CreateICmpNE(exponent, num(0));
    significand = b.CreateSelect(normal, b.CreateOr(significand, num(uint64_t{1} << fraction)), significand);
    return std::pair(significand, b.CreateSelect(normal, exponent, num(1)));
  };
  auto [mx, ex] = unpack(ax);
  auto [my, ey] = unpack(ay);
  Value* first = b.CreateURem(mx, my);
  Value* distance = b.CreateSub(ex, ey);
  b.CreateBr(loop);

  b.SetInsertPoint(loop);
  auto* rest = b.CreatePHI(i64, 2);
  auto* left = b.CreatePHI(i64, 2);
  rest->addIncoming(first, divide);
  left->addIncoming(distance, divide);
  b.CreateCondBr(b.CreateICmpEQ(left, num(0)), finish, next);

  b.SetInsertPoint(next);
  Value* step = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, num(chunk));
  rest->addIncoming(b.CreateURem(b.CreateShl(rest, step), my), next);
  left->addIncoming(b.CreateSub(left, step), next);
  b.CreateBr(loop);

  b.SetInsertPoint(finish);
  // rest·2^ey back to a float: up to the hidden bit, but not below the smallest exponent.
  Value* zeros = b.CreateIntrinsic(llvm::Intrinsic::ctlz, {i64}, {rest, b.getFalse()});
  Value* up = b.CreateSub(zeros, num(63 - fraction));
  up = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, up, b.CreateSub(ey, num(1)));
  Value* significand = b.CreateShl(rest, up);
  Value* biased = b.CreateSub(b.CreateSub(ey, num(1)), up);  // the hidden bit adds the missing one
  Value* bits = b.CreateAdd(b.CreateShl(biased, num(fraction)), significand);
  bits = b.CreateSelect(b.CreateICmpEQ(rest, num(0)), num(0), bits);
  Value* result = b.CreateBitCast(b.CreateTrunc(bits, bits_type), type);
  b.CreateRet(b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x));
  return fn;
}

}  // namespace

Value* emit_fmod(llvm::IRBuilderBase& b, Value* x, Value* y) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::Type* type = x->getType()->getScalarType();
  const char* name = type->isDoubleTy() ? "kiln_fmod_f64" : "kiln_fmod_f32";
  llvm::Function* fn = module.getFunction(name);
  if (!fn) fn = make_fmod(module, type, name);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return b.CreateCall(fn, {x, y});
  Value* out = llvm::PoisonValue::get(vector);
  for (unsigned i = 0; i < vector->getNumElements(); ++i)
    out = b.CreateInsertElement(out, b.CreateCall(fn, {b.CreateExtractElement(x, i), b.CreateExtractElement(y, i)}), i);
  return out;
}

}  // namespace kiln::lower
