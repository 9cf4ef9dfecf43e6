#include "compiler/codegen/nvptx_address.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>

#include <utility>
#include <vector>

namespace kiln::codegen {

using namespace llvm::PatternMatch;
using llvm::Value;

namespace {

constexpr size_t kMostTerms = 8;  // of an index

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

std::vector<llvm::GetElementPtrInst*> addresses_of(llvm::Function& fn) {
  std::vector<llvm::GetElementPtrInst*> addresses;
  for (llvm::Instruction& i : llvm::instructions(fn))
    if (auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&i);
        gep && gep->getNumIndices() == 1 && gep->getType()->isPointerTy())
      addresses.push_back(gep);
  return addresses;
}

/// What a sum of 64 bits adds, from left to right.
void add_terms(Value* sum, std::vector<Value*>& terms) {
  Value *x = nullptr, *y = nullptr;
  if (terms.size() < kMostTerms && match(sum, m_Add(m_Value(x), m_Value(y)))) {
    add_terms(x, terms);
    add_terms(y, terms);
  } else {
    terms.push_back(sum);
  }
}

}  // namespace

bool share_bases(llvm::Function& fn) {
  struct Address {
    llvm::GetElementPtrInst* gep;
    std::vector<Value*> terms;
  };
  llvm::MapVector<std::pair<Value*, llvm::Type*>, std::vector<Address>> by_tensor;
  for (llvm::GetElementPtrInst* gep : addresses_of(fn)) {
    std::vector<Value*> terms;
    if (gep->getOperand(1)->getType()->isIntegerTy(64)) add_terms(gep->getOperand(1), terms);
    if (terms.size() > 1) by_tensor[{gep->getPointerOperand(), gep->getSourceElementType()}].push_back({gep, terms});
  }
  bool changed = false;
  for (const auto& [tensor, addresses] : by_tensor) {
    llvm::DenseMap<Value*, int> uses;
    for (const Address& address : addresses)
      for (Value* term : address.terms) ++uses[term];
    for (const auto& [gep, terms] : addresses) {
      std::vector<Value*> shared, own;
      for (Value* term : terms) (uses[term] > 1 ? shared : own).push_back(term);
      if (shared.empty() || own.empty()) continue;
      llvm::IRBuilder<> b(gep);
      auto sum = [&](const std::vector<Value*>& of) {
        Value* all = of[0];
        for (size_t i = 1; i < of.size(); ++i) all = b.CreateAdd(all, of[i]);
        return all;
      };
      Value* base = b.CreateGEP(tensor.second, tensor.first, sum(shared));
      gep->replaceAllUsesWith(b.CreateGEP(tensor.second, base, sum(own)));
      gep->eraseFromParent();
      changed = true;
    }
  }
  return changed;
}

bool split_addresses(llvm::Function& fn) {
  const std::vector<llvm::GetElementPtrInst*> addresses = addresses_of(fn);
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
