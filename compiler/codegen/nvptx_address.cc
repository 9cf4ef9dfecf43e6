#include "compiler/codegen/nvptx_address.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/PatternMatch.h>

#include <vector>

namespace kiln::codegen {

using namespace llvm::PatternMatch;
using llvm::Value;

namespace {

/// number = rest + constant without wrapping; rest is null when there is no constant to take out.
struct Split {
  Value* rest = nullptr;
  int64_t constant = 0;
};

/// Constants among disjoint bits, however deep.
Split split_bits(llvm::IRBuilder<>& b, Value* number) {
  Value *x = nullptr, *y = nullptr;
  const llvm::APInt* c = nullptr;
  if (match(number, m_DisjointOr(m_Value(x), m_APInt(c))))
    return c->isNegative() ? Split{} : Split{x, c->getSExtValue()};
  if (!match(number, m_DisjointOr(m_Value(x), m_Value(y)))) return {};
  for (auto [inner, other] : {std::pair(x, y), std::pair(y, x)})
    if (Split s = split_bits(b, inner); s.rest) return {b.CreateOr(s.rest, other, "", /*IsDisjoint=*/true), s.constant};
  return {};
}

Split split(llvm::IRBuilder<>& b, Value* number, bool sign) {
  Value* x = nullptr;
  const llvm::APInt* c = nullptr;
  if (sign && match(number, m_NSWAdd(m_Value(x), m_APInt(c)))) return {x, c->getSExtValue()};
  if (!sign && match(number, m_NUWAdd(m_Value(x), m_APInt(c)))) return {x, static_cast<int64_t>(c->getZExtValue())};
  return split_bits(b, number);
}

}  // namespace

bool split_addresses(llvm::Function& fn) {
  std::vector<llvm::GetElementPtrInst*> addresses;
  for (llvm::BasicBlock& block : fn)
    for (llvm::Instruction& i : block)
      if (auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&i);
          gep && gep->getNumIndices() == 1 && gep->getType()->isPointerTy())
        addresses.push_back(gep);
  bool changed = false;
  for (llvm::GetElementPtrInst* gep : addresses) {
    Value *index = gep->getOperand(1), *narrow = nullptr;
    const bool sign = match(index, m_SExt(m_Value(narrow)));
    if (!sign && !match(index, m_ZExt(m_Value(narrow)))) continue;
    llvm::IRBuilder<> b(gep);
    const Split parts = split(b, narrow, sign);
    if (!parts.rest) continue;
    Value* rest = sign ? b.CreateSExt(parts.rest, index->getType()) : b.CreateZExt(parts.rest, index->getType());
    Value* base = b.CreateGEP(gep->getSourceElementType(), gep->getPointerOperand(), rest);
    gep->replaceAllUsesWith(
        b.CreateGEP(gep->getSourceElementType(), base, b.getInt64(static_cast<uint64_t>(parts.constant))));
    gep->eraseFromParent();
    changed = true;
  }
  return changed;
}

}  // namespace kiln::codegen
