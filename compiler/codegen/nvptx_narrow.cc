#include "compiler/codegen/nvptx_narrow.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

#include <vector>

namespace kiln::codegen {

using namespace llvm::PatternMatch;
using llvm::Instruction;
using llvm::Value;

namespace {

constexpr unsigned kDeepestMasked = 64;  // of a tree; deeper ones keep what is below

/// Whether the low 32 bits of a sum, product or the like depend on those of its operands alone.
bool stays_low(const Instruction& i) {
  switch (i.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
      return true;
    default:
      return false;
  }
}

/// Builds the low 32 bits of a value of 64 in front of an instruction.
struct Narrower {
  llvm::IRBuilder<>& b;

  /// Whether `low` computes something anew below it, rather than truncating it. Others would still need the 64 bits of
  /// what has more users.
  static bool is_computed(Value* v) {
    Value* x = nullptr;
    const llvm::APInt* c = nullptr;
    auto* i = llvm::dyn_cast<Instruction>(v);
    if (!i || !i->hasOneUse()) return false;
    if (stays_low(*i)) return true;
    if (match(v, m_Shl(m_Value(x), m_APInt(c)))) return c->ult(64);
    return match(v, m_LShr(m_ZExt(m_Value(x)), m_APInt(c))) && x->getType()->isIntegerTy(32) && c->ult(32);
  }

  Value* low(Value* v, unsigned depth = 0) {
    Value* x = nullptr;
    const llvm::APInt* c = nullptr;
    llvm::Type* word = b.getInt32Ty();
    if (match(v, m_ZExt(m_Value(x))) || match(v, m_SExt(m_Value(x))))
      if (x->getType()->getIntegerBitWidth() <= 32)
        return llvm::isa<llvm::ZExtInst>(v) ? b.CreateZExt(x, word) : b.CreateSExt(x, word);
    if (depth >= kDeepestMasked || !is_computed(v)) return b.CreateTrunc(v, word);
    auto* i = llvm::cast<Instruction>(v);
    if (stays_low(*i)) {
      Value* left = low(i->getOperand(0), depth + 1);
      Value* right = low(i->getOperand(1), depth + 1);
      return b.CreateBinOp(static_cast<Instruction::BinaryOps>(i->getOpcode()), left, right);
    }
    if (match(v, m_Shl(m_Value(x), m_APInt(c))))
      return c->uge(32) ? b.getInt32(0) : b.CreateShl(low(x, depth + 1), c->getZExtValue());
    (void)match(v, m_LShr(m_ZExt(m_Value(x)), m_APInt(c)));
    return b.CreateLShr(x, c->getZExtValue());
  }
};

}  // namespace

void narrow_masked(llvm::Function& fn) {
  // In order: what a root becomes is the extension of 32 bits that the next one starts from.
  std::vector<Instruction*> roots;
  for (Instruction& i : llvm::instructions(fn)) {
    const llvm::APInt* mask = nullptr;
    Value* x = nullptr;
    const bool keeps_low =
        (i.getType()->isIntegerTy(64) && match(&i, m_And(m_Value(x), m_APInt(mask))) && mask->isIntN(32)) ||
        (i.getType()->isIntegerTy(32) && match(&i, m_Trunc(m_Value(x))) && x->getType()->isIntegerTy(64));
    if (keeps_low) roots.push_back(&i);
  }
  for (Instruction* root : roots) {
    Value* x = root->getOperand(0);
    if (!Narrower::is_computed(x)) continue;
    llvm::IRBuilder<> b(root);
    Value* low = Narrower{b}.low(x);
    const llvm::APInt* mask = nullptr;
    if (match(root, m_And(m_Value(), m_APInt(mask)))) {
      if (!mask->isMask(32)) low = b.CreateAnd(low, b.getInt(mask->trunc(32)));
      low = b.CreateZExt(low, root->getType());
    }
    root->replaceAllUsesWith(low);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(root);
  }
}

}  // namespace kiln::codegen
