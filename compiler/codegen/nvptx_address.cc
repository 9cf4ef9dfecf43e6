#include "compiler/codegen/nvptx_address.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ValueHandle.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln::codegen {

using namespace llvm::PatternMatch;
using llvm::Value;

namespace {

constexpr char kOwnStep[] = "kiln.own_step";
constexpr size_t kFewSteps = 8;      // that are not worth another order of a loop's instructions
constexpr size_t kMostTerms = 8;     // of an index
constexpr unsigned kMostShift = 20;  // of a constant that shall fit into an instruction

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

/// Likewise of 64 bits, where sums may wrap, as addresses do: the constants of what is extended, scaled and added.
Split split_wide(llvm::IRBuilder<>& b, Value* number, size_t depth = 0) {
  Value *x = nullptr, *y = nullptr;
  const llvm::APInt* c = nullptr;
  if (depth > kMostTerms) return {};
  if (match(number, m_ZExt(m_Value(x))) || match(number, m_SExt(m_Value(x)))) {
    const bool sign = llvm::isa<llvm::SExtInst>(number);
    const Split s = split(b, x, sign);
    if (!s.rest) return {};
    return {sign ? b.CreateSExt(s.rest, number->getType()) : b.CreateZExt(s.rest, number->getType()), s.constant};
  }
  if (match(number, m_AddLike(m_Value(x), m_APInt(c)))) return {x, c->getSExtValue()};
  if (match(number, m_Shl(m_Value(x), m_APInt(c))) && c->ult(kMostShift)) {
    const Split s = split_wide(b, x, depth + 1);
    if (!s.rest) return {};
    return {b.CreateShl(s.rest, c->getZExtValue()), s.constant * (int64_t{1} << c->getZExtValue())};
  }
  if (match(number, m_Mul(m_Value(x), m_APInt(c))) && c->abs().ult(uint64_t{1} << kMostShift)) {
    const Split s = split_wide(b, x, depth + 1);
    if (!s.rest) return {};
    return {b.CreateMul(s.rest, b.getInt64(c->getZExtValue())), s.constant * c->getSExtValue()};
  }
  if (!match(number, m_AddLike(m_Value(x), m_Value(y)))) return {};
  for (auto [inner, other] : {std::pair(x, y), std::pair(y, x)})
    if (const Split s = split_wide(b, inner, depth + 1); s.rest) return {b.CreateAdd(s.rest, other), s.constant};
  return {};
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

bool share_steps(llvm::Function& fn) {
  struct Address {
    llvm::GetElementPtrInst* gep;
    llvm::WeakTrackingVH tensor;  // which may be an address that was itself made anew
    std::vector<Value*> steps;    // from the tensor on
  };
  const llvm::DominatorTree tree(fn);
  const llvm::LoopInfo loops(tree);
  if (loops.empty()) return false;
  auto previous = [](llvm::GetElementPtrInst* gep) -> llvm::GetElementPtrInst* {
    auto* from = llvm::dyn_cast<llvm::GetElementPtrInst>(gep->getPointerOperand());
    const bool goes_on = from && from->getNumIndices() == 1 &&
                         from->getSourceElementType() == gep->getSourceElementType() &&
                         from->getType() == gep->getType();
    return goes_on ? from : nullptr;
  };
  auto back = [&](llvm::GetElementPtrInst* gep, size_t steps) {
    for (; gep && steps > 1; --steps) gep = previous(gep);
    return gep;
  };
  llvm::MapVector<std::pair<Value*, std::pair<llvm::BasicBlock*, llvm::Type*>>, std::vector<Address>> by_tensor;
  for (llvm::GetElementPtrInst* gep : addresses_of(fn)) {
    // Steps on the way to others, and addresses of shared memory, which have 32 bits, stay.
    const bool ends = llvm::any_of(gep->users(), [&](llvm::User* u) {
      auto* next = llvm::dyn_cast<llvm::GetElementPtrInst>(u);
      return !next || next->getPointerOperand() != gep || !previous(next);
    });
    if (!ends || gep->getAddressSpace() != 1 || !loops.getLoopFor(gep->getParent())) continue;
    Address address{gep, gep, {}};
    for (llvm::GetElementPtrInst* at = gep; at && address.steps.size() < kMostTerms; at = previous(at)) {
      address.steps.push_back(at->getOperand(1));
      address.tensor = at->getPointerOperand();
    }
    std::ranges::reverse(address.steps);
    by_tensor[{address.tensor, {gep->getParent(), gep->getSourceElementType()}}].push_back(std::move(address));
  }

  bool changed = false;
  for (auto& [tensor, addresses] : by_tensor) {
    const llvm::Loop* loop = loops.getLoopFor(tensor.second.first);
    auto varies = [&](const Value* v) {
      if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(v)) v = cast->getOperand(0);
      const auto* i = llvm::dyn_cast<llvm::Instruction>(v);
      return i && loop->contains(i);
    };
    llvm::DenseMap<Value*, std::pair<int, size_t>> uses;  // of a step, and its earliest place
    std::set<const llvm::GetElementPtrInst*> before;      // the sums of the loop: others are hoisted
    for (const Address& address : addresses) {
      bool moves = false;
      for (size_t i = 0; i < address.steps.size(); ++i) {
        auto& [count, place] = uses.try_emplace(address.steps[i], 0, i).first->second;
        ++count, place = std::min(place, i);
        if (moves |= varies(address.steps[i]); moves) before.insert(back(address.gep, address.steps.size() - i));
      }
    }
    // What many have first, and of that what does not change in the loop, where it is added once. Constants last: they
    // are offsets of memory instructions.
    auto rank = [&](Value* step) {
      const auto& [count, place] = uses[step];
      return std::tuple(llvm::isa<llvm::Constant>(step), -count, varies(step), place);
    };
    std::set<std::vector<Value*>> after;
    for (Address& address : addresses) {
      std::ranges::stable_sort(address.steps, {}, rank);
      bool moves = false;
      for (size_t i = 0; i < address.steps.size(); ++i)
        if (moves |= varies(address.steps[i]); moves)
          after.insert({address.steps.begin(), address.steps.begin() + static_cast<std::ptrdiff_t>(i) + 1});
    }
    if (2 * after.size() > before.size() || before.size() - after.size() < kFewSteps) continue;
    // Each anew; what is equal is found by the passes behind this one, as is what moves out of the loop.
    for (const Address& address : addresses) {
      llvm::IRBuilder<> b(address.gep);
      Value* sum = address.tensor;
      for (Value* step : address.steps) sum = b.CreateGEP(tensor.second.second, sum, step);
      if (auto* last = llvm::dyn_cast<llvm::Instruction>(sum); last && uses[address.steps.back()].first == 1)
        last->setMetadata(kOwnStep, llvm::MDNode::get(fn.getContext(), {}));
      address.gep->replaceAllUsesWith(sum);
    }
    for (const Address& address : addresses) llvm::RecursivelyDeleteTriviallyDeadInstructions(address.gep);
    changed = true;
  }
  return changed;
}

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

bool widen_in_loops(llvm::Function& fn) {
  const llvm::DominatorTree tree(fn);
  const llvm::LoopInfo loops(tree);
  if (loops.empty()) return false;
  bool changed = false;
  for (llvm::GetElementPtrInst* gep : addresses_of(fn)) {
    if (!gep->getMetadata(kOwnStep)) continue;
    const llvm::Loop* loop = loops.getLoopFor(gep->getParent());
    const auto* wide = llvm::dyn_cast<llvm::SExtInst>(gep->getOperand(1));
    if (!loop || !wide || !wide->getSrcTy()->isIntegerTy(32) || !loop->isLoopInvariant(wide)) continue;
    llvm::IRBuilder<> b(gep);
    Value *step = wide->getOperand(0), *from = gep->getPointerOperand();
    auto* type = llvm::FunctionType::get(gep->getType(), {step->getType(), from->getType()}, /*isVarArg=*/false);
    const uint64_t size = fn.getDataLayout().getTypeAllocSize(gep->getSourceElementType());
    auto* sum = llvm::InlineAsm::get(type, fmt::format("mad.wide.s32 $0, $1, {}, $2;", size), "=l,r,l",
                                     /*hasSideEffects=*/false);
    auto* call = b.CreateCall(sum, {step, from});
    call->setDoesNotAccessMemory();
    call->setDoesNotThrow();
    gep->replaceAllUsesWith(call);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(gep);
    changed = true;
  }
  return changed;
}

bool split_addresses(llvm::Function& fn) {
  const std::vector<llvm::GetElementPtrInst*> addresses = addresses_of(fn);
  bool changed = false;
  for (llvm::GetElementPtrInst* gep : addresses) {
    Value *index = gep->getOperand(1), *narrow = nullptr;
    if (index->getType()->isIntegerTy(64) && !llvm::isa<llvm::CastInst>(index)) {
      llvm::IRBuilder<> b(gep);
      const Split parts = split_wide(b, index);
      if (!parts.rest) continue;
      Value* base = b.CreateGEP(gep->getSourceElementType(), gep->getPointerOperand(), parts.rest);
      gep->replaceAllUsesWith(
          b.CreateGEP(gep->getSourceElementType(), base, b.getInt64(static_cast<uint64_t>(parts.constant))));
      gep->eraseFromParent();
      changed = true;
      continue;
    }
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

void move_constants_out(llvm::Function& fn) {
  struct Sum {
    llvm::Instruction* sum;
    const llvm::APInt* constant;
    size_t pair;
  };
  // What sums have in common; each may itself be a sum that is replaced before.
  struct Pair {
    llvm::WeakTrackingVH other, rest;
    int sums = 0;
  };
  std::vector<Sum> sums;
  std::vector<Pair> pairs;
  llvm::DenseMap<std::pair<Value*, Value*>, size_t> pair_of;
  for (llvm::Instruction& i : llvm::instructions(fn)) {
    if (!match(&i, m_DisjointOr(m_Value(), m_Value()))) continue;
    for (const unsigned side : {0u, 1u}) {
      Value *inner = i.getOperand(side), *other = i.getOperand(1 - side), *narrow = inner, *rest = nullptr;
      (void)match(inner, m_ZExt(m_Value(narrow)));
      const llvm::APInt* c = nullptr;
      if (llvm::isa<llvm::Constant>(other) || !match(narrow, m_DisjointOr(m_Value(rest), m_APInt(c)))) continue;
      const auto [known, is_new] = pair_of.try_emplace({other, rest}, pairs.size());
      if (is_new) pairs.push_back({other, rest});
      ++pairs[known->second].sums;
      sums.push_back({&i, c, known->second});
      break;
    }
  }
  std::map<std::pair<llvm::BasicBlock*, size_t>, llvm::WeakTrackingVH> commons;  // at the first sum of a block
  for (const Sum& s : sums) {
    const Pair& pair = pairs[s.pair];
    if (pair.sums < 2) continue;
    llvm::IRBuilder<> b(s.sum);
    llvm::Type* type = s.sum->getType();
    llvm::WeakTrackingVH& common = commons[{s.sum->getParent(), s.pair}];
    if (!common) common = b.CreateOr(pair.other, b.CreateZExt(pair.rest, type), "", /*IsDisjoint=*/true);
    Value* constant = llvm::ConstantInt::get(type, s.constant->zext(type->getScalarSizeInBits()));
    s.sum->replaceAllUsesWith(b.CreateOr(common, constant, "", /*IsDisjoint=*/true));
    s.sum->eraseFromParent();
  }
}

namespace {

/// Whether all threads have it in common: an argument of the kernel, or what is made of such and constants.
bool is_uniform(const Value* v, size_t depth = 0) {
  if (llvm::isa<llvm::Argument>(v) || llvm::isa<llvm::ConstantInt>(v)) return true;
  if (depth > kMostTerms || !(llvm::isa<llvm::CastInst>(v) || llvm::isa<llvm::BinaryOperator>(v))) return false;
  return llvm::all_of(llvm::cast<llvm::Instruction>(v)->operands(),
                      [&](const Value* operand) { return is_uniform(operand, depth + 1); });
}

}  // namespace

void share_products(llvm::Function& fn) {
  constexpr size_t kFewest = 4;  // rows of a thread, to be worth another base
  struct Product {
    llvm::Instruction* product;
    llvm::APInt constant;
  };
  struct Rows {
    std::vector<Product> products;
    std::set<const Value*> tensors;
  };
  auto address_by = [](llvm::User* u, const Value* index) -> llvm::GetElementPtrInst* {
    auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(u);
    const bool is_address =
        gep && gep->getNumIndices() == 1 && gep->getOperand(1) == index && gep->getType()->isPointerTy();
    return is_address ? gep : nullptr;
  };
  if (const llvm::DominatorTree tree(fn); !llvm::LoopInfo(tree).empty()) return;
  llvm::MapVector<std::tuple<Value*, Value*, unsigned>, Rows> by_row;  // of x, n, and whether x is signed
  for (llvm::Instruction& i : llvm::instructions(fn)) {
    Value *a = nullptr, *b = nullptr;
    if (!i.getType()->isIntegerTy(64) || !match(&i, m_Mul(m_Value(a), m_Value(b)))) continue;
    if (!llvm::all_of(i.users(), [&](llvm::User* u) { return address_by(u, &i); })) continue;
    for (const auto& [row, size] : {std::pair(a, b), std::pair(b, a)}) {
      Value *narrow = nullptr, *x = nullptr;
      const llvm::APInt* c = nullptr;
      const bool sign = match(row, m_SExt(m_Value(narrow)));
      if (!sign && !match(row, m_ZExt(m_Value(narrow)))) continue;
      if (llvm::isa<llvm::Constant>(size) || !is_uniform(size) || is_uniform(row)) continue;
      const bool adds = match(narrow, m_DisjointOr(m_Value(x), m_APInt(c))) ? !c->isNegative()
                        : sign ? match(narrow, m_NSWAdd(m_Value(x), m_APInt(c)))
                               : match(narrow, m_NUWAdd(m_Value(x), m_APInt(c)));
      Rows& rows = by_row[{adds ? x : narrow, size, sign ? 1u : 0u}];
      rows.products.push_back({&i, !adds ? llvm::APInt(64, 0) : sign ? c->sext(64) : c->zext(64)});
      for (llvm::User* u : i.users())
        rows.tensors.insert(llvm::getUnderlyingObject(address_by(u, &i)->getPointerOperand()));
      break;
    }
  }
  for (const auto& [key, rows] : by_row) {
    const auto& [x, size, sign] = key;
    if (rows.products.size() < kFewest || rows.tensors.size() < 2) continue;
    for (const auto& [product, constant] : rows.products) {
      if (constant.isZero()) continue;
      for (llvm::User* u : llvm::make_early_inc_range(product->users())) {
        llvm::GetElementPtrInst* gep = address_by(u, product);
        llvm::IRBuilder<> b(gep);  // what is equal is found by the passes behind this one
        Value* row = sign ? b.CreateSExt(x, product->getType()) : b.CreateZExt(x, product->getType());
        llvm::Type* element = gep->getSourceElementType();
        Value* base = b.CreateGEP(element, gep->getPointerOperand(), b.CreateMul(row, size));
        gep->replaceAllUsesWith(b.CreateGEP(element, base, b.CreateMul(size, b.getInt(constant))));
        gep->eraseFromParent();
      }
    }
  }
}

void compare_differences(llvm::Function& fn) {
  constexpr size_t kFewest = 4;  // in a block, to be worth the difference
  struct Compared {
    llvm::ICmpInst* compare;
    llvm::APInt constant;
  };
  llvm::MapVector<std::pair<Value*, Value*>, llvm::SmallVector<Compared>> sums;  // of a and x
  for (llvm::BasicBlock& block : fn) {
    sums.clear();
    for (llvm::Instruction& i : block) {
      auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&i);
      if (!compare || !compare->isEquality() || !compare->getOperand(0)->getType()->isIntegerTy()) continue;
      for (const unsigned side : {0u, 1u}) {
        Value *sum = compare->getOperand(side), *a = compare->getOperand(1 - side), *x = nullptr;
        const llvm::APInt* c = nullptr;
        if (llvm::isa<llvm::Constant>(a) || !match(sum, m_AddLike(m_Value(x), m_APInt(c)))) continue;
        sums[{a, x}].push_back({compare, *c});
        break;
      }
    }
    for (auto& [of, compares] : sums) {
      if (compares.size() < kFewest) continue;
      llvm::IRBuilder<> b(compares.front().compare);
      // Frozen, it is one number to LoopStrengthReduce, which would compare the counter with each a - c.
      Value* difference = b.CreateFreeze(b.CreateSub(of.first, of.second));
      for (const Compared& c : compares) {
        c.compare->setOperand(0, difference);
        c.compare->setOperand(1, b.getInt(c.constant));
      }
    }
  }
}

}  // namespace kiln::codegen
