// Loads and stores of global memory: vectors of up to 16 bytes, predicated where there is a mask.
#include <fmt/format.h>
#include <llvm/IR/InlineAsm.h>

#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "compiler/layout/algebra.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/nvptx/vectors.h"
#include "compiler/lower/shared/elementwise.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using llvm::Value;

namespace {

/// ".cg", ".L1::evict_last", ".volatile": what PTX writes between the opcode and the type.
std::string cache_suffix(const ir::Op& op) {
  if (op.flag(AttrName::kVolatile)) return ".volatile";
  if (const auto cache = op.find_word<ir::Cache>()) return std::string(ir::spelling(*cache));
  if (const auto eviction = op.find_word<ir::Eviction>()) return fmt::format(".L1::{}", ir::spelling(*eviction));
  return "";
}
/// PTX puts `volatile` before the state space, cache operators (ld.global.cg) and eviction priorities after it.
std::string opcode(std::string_view name, const std::string& suffix) {
  if (suffix == ".volatile") return fmt::format("{}{}.global", name, suffix);
  return fmt::format("{}.global{}", name, suffix);
}

llvm::CallInst* call_asm(llvm::IRBuilderBase& b, llvm::Type* result, const std::string& text,
                         const std::string& constraints, std::span<Value* const> args, llvm::MemoryEffects effects) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  auto* code = llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true);
  llvm::CallInst* call = b.CreateCall(type, code, llvm::ArrayRef<Value*>(args.data(), args.size()));
  call->setDoesNotThrow();
  call->addFnAttr(llvm::Attribute::WillReturn);
  call->setMemoryEffects(effects);
  return call;
}

std::vector<Value*> load_plain(llvm::IRBuilderBase& b, Value* address, const Packing& p) {
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(p.word_bytes()) * 8);
  const llvm::Align align(static_cast<uint64_t>(p.access_bytes()));
  if (p.words() == 1) return {b.CreateAlignedLoad(word, address, align)};
  Value* v = b.CreateAlignedLoad(llvm::FixedVectorType::get(word, static_cast<unsigned>(p.words())), address, align);
  std::vector<Value*> words;
  for (int i = 0; i < p.words(); ++i) words.push_back(b.CreateExtractElement(v, static_cast<uint64_t>(i)));
  return words;
}

/// One predicated ld; the results keep `otherwise` where the predicate is off. A branch around a load would keep ptxas
/// from having several in flight.
std::vector<Value*> load_asm(llvm::IRBuilderBase& b, Value* address, Value* predicate,
                             std::span<Value* const> otherwise, const Packing& p, const std::string& suffix,
                             Value* policy) {
  llvm::Type* word = p.word_bytes() == 8 ? b.getInt64Ty() : b.getInt32Ty();
  const int n = p.words();
  std::string constraints;
  for (int i = 0; i < n; ++i) constraints += fmt::format("=&{},", p.constraint());
  constraints += "l";
  std::vector<Value*> args{address};
  std::string guard, hint;
  if (policy) {
    constraints += ",l";
    hint = fmt::format(", ${}", n + 1);
    args.push_back(policy);
  }
  if (predicate) {
    constraints += ",b";
    guard = fmt::format("@${} ", static_cast<size_t>(n) + args.size());
    args.push_back(predicate);
    for (int i = 0; i < n; ++i) {
      constraints += fmt::format(",{}", i);
      args.push_back(b.CreateZExt(otherwise[static_cast<size_t>(i)], word));
    }
  }
  const std::string text =
      fmt::format("{}{}{}.{} {}, [${}]{};", guard, opcode("ld", suffix), policy ? ".L2::cache_hint" : "", p.ptx_type(),
                  word_list(0, static_cast<size_t>(n)), n, hint);
  llvm::Type* result = word;
  if (n > 1) result = llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(static_cast<size_t>(n), word));
  // A volatile load must not be merged with another.
  const auto effects =
      suffix == ".volatile" ? llvm::MemoryEffects::unknown() : llvm::MemoryEffects::argMemOnly(llvm::ModRefInfo::Ref);
  llvm::CallInst* call = call_asm(b, result, text, constraints, args, effects);
  const unsigned bits = static_cast<unsigned>(p.word_bytes()) * 8;
  // ld extends bytes and halves with zeros: what widens them again takes no instruction.
  if (n == 1 && bits < 32)
    call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt::getOneBitSet(32, bits)));
  std::vector<Value*> words;
  llvm::Type* exact = b.getIntNTy(bits);
  for (int i = 0; i < n; ++i)
    words.push_back(b.CreateTrunc(n == 1 ? call : b.CreateExtractValue(call, static_cast<unsigned>(i)), exact));
  return words;
}

/// `halves`: words of less than 32 bits in registers of 16, of which ptxas clears no other bits. Not everywhere: among
/// many masked stores ptxas then keeps more predicates (a product of 128x128 that ends anywhere: 13 % more code).
void store_asm(llvm::IRBuilderBase& b, Value* address, Value* predicate, std::span<Value* const> words,
               const Packing& p, const std::string& suffix, bool halves) {
  const bool is_half = halves && p.word_bytes() < 4;
  llvm::Type* word = p.word_bytes() == 8 ? b.getInt64Ty() : is_half ? b.getInt16Ty() : b.getInt32Ty();
  std::string constraints = "l";
  std::vector<Value*> args{address};
  for (Value* w : words) {
    constraints += fmt::format(",{}", is_half ? "h" : p.constraint());
    args.push_back(b.CreateZExt(w, word));
  }
  std::string guard;
  if (predicate) {
    guard = fmt::format("@${} ", args.size());
    constraints += ",b";
    args.push_back(predicate);
  }
  call_asm(b, b.getVoidTy(),
           fmt::format("{}{}.{} [$0], {};", guard, opcode("st", suffix), p.ptx_type(),
                       word_list(1, static_cast<size_t>(p.words()))),
           constraints, args, llvm::MemoryEffects::argMemOnly(llvm::ModRefInfo::ModRef));
}

void store_plain(llvm::IRBuilderBase& b, Value* address, std::span<Value* const> words, const Packing& p) {
  Value* v = words[0];
  if (words.size() > 1) {
    v = llvm::PoisonValue::get(llvm::FixedVectorType::get(words[0]->getType(), static_cast<unsigned>(words.size())));
    for (size_t i = 0; i < words.size(); ++i) v = b.CreateInsertElement(v, words[i], i);
  }
  b.CreateAlignedStore(v, address, llvm::Align(static_cast<uint64_t>(p.access_bytes())));
}

/// Each element is written once: by the thread and the register whose copy bits are 0. A scalar: by thread 0.
layout::FreeBits copies_of(Lowering& l, const ir::Type& type) {
  if (type.is_tile()) return layout::free_variables(*type.layout);
  layout::FreeBits copies;
  copies.lane = ~0u >> (32 - 5), copies.warp = static_cast<uint32_t>(l.thread.num_warps() - 1);
  return copies;
}

bool always_true(const Value* v) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->isOne();
}
bool never_true(const Value* v) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->isZero();
}

}  // namespace

Value* l2_policy(llvm::IRBuilderBase& b, const ir::Op& op) {
  const auto eviction = op.find_word<ir::Eviction>();
  if (!eviction) return nullptr;
  auto* code =
      llvm::InlineAsm::get(llvm::FunctionType::get(b.getInt64Ty(), false),
                           fmt::format("createpolicy.fractional.L2::{}.b64 $0, 1.0;", ir::spelling(*eviction)), "=l",
                           /*hasSideEffects=*/false);
  llvm::CallInst* call = b.CreateCall(code);
  call->setDoesNotThrow();
  call->setDoesNotAccessMemory();
  return call;
}

template <>
Status lower<ir::OpKind::kLoad>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  const ir::Type& type = op.result()->type;
  const Registers& addresses = l.of(op.operand(0));
  const Registers* masks = op.operands.size() > 1 ? &l.of(op.operand(1)) : nullptr;
  const Registers* others = op.operands.size() > 2 ? &l.of(op.operand(2)) : nullptr;
  const int width = type.is_tile() ? l.axis.vector_width(&op) : 1;
  const Packing packing{width, element_bytes(type)};
  const std::string suffix = cache_suffix(op);
  Value* policy = suffix.starts_with(".L1") ? l2_policy(b, op) : nullptr;
  llvm::Type* element = l.type_of(type);
  llvm::Type* in_memory = memory_type(element);

  Registers moved(addresses.size());  // as memory holds them
  // Element → first register that holds it: copies, and neighbours at one address, are loaded once.
  std::unordered_map<uint64_t, size_t> seen;
  std::vector<std::pair<size_t, size_t>> copies;
  std::optional<VectorEnds> ends;
  if (masks && l.axis.may_end_within_vector(&op)) ends.emplace(l, *masks, width);
  std::map<size_t, std::vector<Value*>>
      whole;  // words by their first register, which may get elements behind the branch
  auto take_apart = [&](size_t r, std::span<Value* const> words) {
    std::vector<Value*> elements;
    unpack(b, words, packing, in_memory, elements);
    std::copy(elements.begin(), elements.end(), moved.begin() + static_cast<std::ptrdiff_t>(r));
  };
  auto otherwise = [&](size_t r) -> Value* {
    return others ? to_memory(b, (*others)[r]) : llvm::Constant::getNullValue(in_memory);
  };
  for (size_t r = 0; r < moved.size(); r += static_cast<size_t>(width)) {
    if (type.is_tile()) {
      auto [it, fresh] =
          seen.try_emplace(l.axis.first_loaded(&op, type.layout->apply(static_cast<uint32_t>(r), 0, 0)), r);
      if (!fresh) {
        copies.emplace_back(r, it->second);
        continue;
      }
    }
    Value* predicate = !masks ? nullptr : ends ? ends->whole(r) : (*masks)[r];
    if (predicate && always_true(predicate)) predicate = nullptr;
    std::vector<Value*> words;
    if (predicate || !suffix.empty()) {
      std::vector<Value*> kept;
      if (predicate) {
        for (size_t i = 0; i < static_cast<size_t>(width); ++i) kept.push_back(otherwise(r + i));
        kept = pack(b, kept, packing);
      }
      words = predicate && never_true(predicate) ? kept
                                                 : load_asm(b, addresses[r], predicate, kept, packing, suffix, policy);
    } else {
      words = load_plain(b, addresses[r], packing);
    }
    if (ends)
      whole[r] = words;
    else
      take_apart(r, words);
  }
  if (ends) {
    // Words are what both ways lead to: taking halves out of them above the branch would wait for the loads there.
    const Packing one{1, packing.bytes};
    std::map<size_t, std::vector<Value*>> ended;
    llvm::BasicBlock* above = b.GetInsertBlock();
    llvm::BasicBlock* behind = ends->rest([&](size_t first, std::span<Value* const> masks_left) {
      std::vector<Value*> elements;
      unpack(b, whole[first], packing, in_memory, elements);
      for (size_t i = 0; i < masks_left.size(); ++i) {
        if (never_true(masks_left[i])) continue;
        const std::vector<Value*> kept = pack(b, std::span(&elements[i], 1), one);
        const std::vector<Value*> words =
            load_asm(b, element_at(b, addresses[first], i, packing.bytes), masks_left[i], kept, one, suffix, policy);
        std::vector<Value*> loaded;
        unpack(b, words, one, in_memory, loaded);
        elements[i] = loaded[0];
      }
      ended[first] = pack(b, elements, packing);
    });
    for (auto& [r, words] : whole)
      for (size_t w = 0; w < words.size(); ++w) {
        llvm::PHINode* either = b.CreatePHI(words[w]->getType(), 2);
        either->addIncoming(words[w], above);
        either->addIncoming(ended[r][w], behind);
        words[w] = either;
      }
    for (const auto& [r, words] : whole) take_apart(r, words);
  }
  for (const auto& [copy, r] : copies)
    std::copy_n(moved.begin() + static_cast<std::ptrdiff_t>(r), width,
                moved.begin() + static_cast<std::ptrdiff_t>(copy));
  Registers out;
  for (Value* v : moved) out.push_back(from_memory(b, v, element));
  l.values[op.result()] = std::move(out);
  return {};
}

template <>
Status lower<ir::OpKind::kStore>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  const ir::Type& type = op.operand(1)->type;
  const Registers& addresses = l.of(op.operand(0));
  const Registers& stored = l.of(op.operand(1));
  const Registers* masks = op.operands.size() > 2 ? &l.of(op.operand(2)) : nullptr;
  const int width = type.is_tile() ? l.axis.vector_width(&op) : 1;
  const Packing packing{width, element_bytes(type)};
  const std::string suffix = cache_suffix(op);

  const layout::FreeBits copies = copies_of(l, type);
  Value* owner = l.thread.is_zero(copies.lane, copies.warp);

  std::optional<VectorEnds> ends;
  if (masks && l.axis.may_end_within_vector(&op)) ends.emplace(l, *masks, width);
  auto store = [&](Value* address, size_t r, Value* mask, const Packing& p, bool halves) {
    if (mask && never_true(mask)) return;
    Value* predicate = mask && !always_true(mask) ? mask : nullptr;
    if (owner) predicate = predicate ? b.CreateAnd(owner, predicate) : owner;
    std::vector<Value*> elements;
    for (size_t i = 0; i < static_cast<size_t>(p.width); ++i) elements.push_back(to_memory(b, stored[r + i]));
    const std::vector<Value*> words = pack(b, elements, p);
    if (predicate || !suffix.empty())
      store_asm(b, address, predicate, words, p, suffix, halves);
    else
      store_plain(b, address, words, p);
  };
  for (size_t r = 0; r < stored.size(); r += static_cast<size_t>(width))
    if (!(r & copies.reg))
      store(addresses[r], r, !masks ? nullptr : ends ? ends->whole(r) : (*masks)[r], packing, /*halves=*/false);
  // Of two elements one can be left: what a branch of its own would hold.
  const bool apart = width > 2;
  auto store_singly = [&](size_t first, std::span<Value* const> left) {
    for (size_t i = 0; i < left.size(); ++i)
      store(element_at(b, addresses[first], i, packing.bytes), first + i, left[i], {1, packing.bytes}, apart);
  };
  if (ends && apart)
    ends->rest_apart(store_singly);
  else if (ends)
    ends->rest(store_singly);
  return {};
}

template <>
Status lower<ir::OpKind::kPrefetch>(Lowering& l, const ir::Op& op) {
  llvm::IRBuilder<>& b = l.b;
  const Registers& addresses = l.of(op.operand(0));
  const Registers* masks = op.operands.size() > 1 ? &l.of(op.operand(1)) : nullptr;
  const layout::FreeBits copies = copies_of(l, op.operand(0)->type);
  Value* owner = l.thread.is_zero(copies.lane, copies.warp);
  for (size_t r = 0; r < addresses.size(); ++r) {
    if (r & copies.reg) continue;
    Value* predicate = masks ? (*masks)[r] : b.getTrue();
    if (owner) predicate = b.CreateAnd(owner, predicate);
    // It changes no memory that a program sees, but is no dead code.
    call_asm(b, b.getVoidTy(), "@$1 prefetch.global.L2 [$0];", "l,b", std::array{addresses[r], predicate},
             llvm::MemoryEffects::inaccessibleMemOnly());
  }
  return {};
}

}  // namespace kiln::lower
