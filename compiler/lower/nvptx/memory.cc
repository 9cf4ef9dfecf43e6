// Loads and stores of global memory: vectors of up to 16 bytes, predicated where there is a mask.
#include <llvm/IR/InlineAsm.h>

#include <unordered_map>

#include "compiler/layout/algebra.h"
#include "compiler/lower/nvptx/lowering.h"
#include "compiler/lower/shared/elementwise.h"
#include "support/diag.h"

namespace kiln::lower {

using ir::AttrName;
using llvm::Value;

namespace {

/// How `width` elements of `bytes` each travel in PTX registers: words of 32 bits, or of 64 for 64-bit elements; fewer
/// than 32 bits travel in the low bits of one word.
struct Packing {
  int width, bytes;

  int access_bytes() const { return width * bytes; }
  int word_bytes() const { return bytes == 8 ? 8 : std::min(4, access_bytes()); }
  int words() const { return access_bytes() / word_bytes(); }
  int per_word() const { return word_bytes() / bytes; }
  /// "v4.b32"
  std::string ptx_type() const {
    std::string type = fmt::format("{}{}", word_bytes() < 4 ? "u" : "b", word_bytes() * 8);
    return words() == 1 ? type : fmt::format("v{}.{}", words(), type);
  }
  std::string_view constraint() const { return word_bytes() == 8 ? "l" : "r"; }
};

/// Memory elements (memory_type) → words.
std::vector<Value*> pack(llvm::IRBuilderBase& b, std::span<Value* const> elements, const Packing& p) {
  std::vector<Value*> words;
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(p.word_bytes()) * 8);
  for (int w = 0; w < p.words(); ++w) {
    const auto part =
        elements.subspan(static_cast<size_t>(w) * static_cast<size_t>(p.per_word()), static_cast<size_t>(p.per_word()));
    if (p.per_word() == 1) {
      words.push_back(to_bits(b, part[0]));
      continue;
    }
    Value* v =
        llvm::PoisonValue::get(llvm::FixedVectorType::get(part[0]->getType(), static_cast<unsigned>(part.size())));
    for (size_t i = 0; i < part.size(); ++i) v = b.CreateInsertElement(v, part[i], i);
    words.push_back(b.CreateBitCast(v, word));
  }
  return words;
}

void unpack(llvm::IRBuilderBase& b, std::span<Value* const> words, const Packing& p, llvm::Type* element,
            std::vector<Value*>& out) {
  for (Value* w : words) {
    if (p.per_word() == 1) {
      out.push_back(from_bits(b, w, element));
      continue;
    }
    Value* v = b.CreateBitCast(w, llvm::FixedVectorType::get(element, static_cast<unsigned>(p.per_word())));
    for (int i = 0; i < p.per_word(); ++i) out.push_back(b.CreateExtractElement(v, static_cast<uint64_t>(i)));
  }
}

/// ".cg", ".L1::evict_last", ".volatile": what PTX writes between the opcode and the type.
std::string cache_suffix(const ir::Op& op) {
  if (op.flag(AttrName::kVolatile)) return ".volatile";
  if (const auto cache = op.find_word<ir::Cache>()) return std::string(ir::spelling(*cache));
  if (const auto eviction = op.find_word<ir::Eviction>()) return fmt::format(".L1::{}", ir::spelling(*eviction));
  return "";
}
/// PTX puts `volatile` and the cache operator before the state space (ld.cg.global), eviction priorities after it.
std::string opcode(std::string_view name, const std::string& suffix) {
  if (suffix.starts_with(".L1")) return fmt::format("{}.global{}", name, suffix);
  return fmt::format("{}{}.global", name, suffix);
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

std::string braces(int first, int count) {
  if (count == 1) return fmt::format("${}", first);
  std::string s = "{";
  for (int i = 0; i < count; ++i) s += fmt::format("{}${}", i ? ", " : "", first + i);
  return s + "}";
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
  const std::string text = fmt::format("{}{}{}.{} {}, [${}]{};", guard, opcode("ld", suffix),
                                       policy ? ".L2::cache_hint" : "", p.ptx_type(), braces(0, n), n, hint);
  llvm::Type* result = word;
  if (n > 1) result = llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(static_cast<size_t>(n), word));
  // A volatile load must not be merged with another.
  const auto effects =
      suffix == ".volatile" ? llvm::MemoryEffects::unknown() : llvm::MemoryEffects::argMemOnly(llvm::ModRefInfo::Ref);
  Value* call = call_asm(b, result, text, constraints, args, effects);
  std::vector<Value*> words;
  llvm::Type* exact = b.getIntNTy(static_cast<unsigned>(p.word_bytes()) * 8);
  for (int i = 0; i < n; ++i)
    words.push_back(b.CreateTrunc(n == 1 ? call : b.CreateExtractValue(call, static_cast<unsigned>(i)), exact));
  return words;
}

void store_asm(llvm::IRBuilderBase& b, Value* address, Value* predicate, std::span<Value* const> words,
               const Packing& p, const std::string& suffix) {
  llvm::Type* word = p.word_bytes() == 8 ? b.getInt64Ty() : b.getInt32Ty();
  std::string constraints = "l";
  std::vector<Value*> args{address};
  for (Value* w : words) {
    constraints += fmt::format(",{}", p.constraint());
    args.push_back(b.CreateZExt(w, word));
  }
  std::string guard;
  if (predicate) {
    guard = fmt::format("@${} ", args.size());
    constraints += ",b";
    args.push_back(predicate);
  }
  call_asm(b, b.getVoidTy(),
           fmt::format("{}{}.{} [$0], {};", guard, opcode("st", suffix), p.ptx_type(), braces(1, p.words())),
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

bool always_true(const Value* v) {
  auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->isOne();
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

  Registers out(addresses.size());
  std::unordered_map<uint64_t, size_t> seen;  // element → first register that holds it: copies are loaded once
  for (size_t r = 0; r < out.size(); r += static_cast<size_t>(width)) {
    if (type.is_tile()) {
      auto [it, fresh] = seen.try_emplace(layout::index_at(*type.layout, static_cast<uint32_t>(r), 0, 0), r);
      if (!fresh) {
        for (int i = 0; i < width; ++i) out[r + static_cast<size_t>(i)] = out[it->second + static_cast<size_t>(i)];
        continue;
      }
    }
    Value* predicate = masks && !always_true((*masks)[r]) ? (*masks)[r] : nullptr;
    std::vector<Value*> words;
    if (predicate || !suffix.empty()) {
      std::vector<Value*> otherwise;
      if (predicate) {
        for (size_t i = 0; i < static_cast<size_t>(width); ++i)
          otherwise.push_back(others ? to_memory(b, (*others)[r + i]) : llvm::Constant::getNullValue(in_memory));
        otherwise = pack(b, otherwise, packing);
      }
      words = load_asm(b, addresses[r], predicate, otherwise, packing, suffix, policy);
    } else {
      words = load_plain(b, addresses[r], packing);
    }
    std::vector<Value*> elements;
    unpack(b, words, packing, in_memory, elements);
    for (size_t i = 0; i < elements.size(); ++i) out[r + i] = from_memory(b, elements[i], element);
  }
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

  // Each element is written once: by the thread and the register whose copy bits are 0. A scalar: by thread 0.
  layout::FreeBits copies;
  if (type.is_tile())
    copies = layout::free_variables(*type.layout);
  else
    copies.lane = ~0u >> (32 - 5), copies.warp = static_cast<uint32_t>(l.thread.num_warps() - 1);
  Value* owner = l.thread.is_zero(copies.lane, copies.warp);

  for (size_t r = 0; r < stored.size(); r += static_cast<size_t>(width)) {
    if (r & copies.reg) continue;
    Value* predicate = owner;
    if (masks && !always_true((*masks)[r])) predicate = owner ? b.CreateAnd(owner, (*masks)[r]) : (*masks)[r];
    std::vector<Value*> elements;
    for (size_t i = 0; i < static_cast<size_t>(width); ++i) elements.push_back(to_memory(b, stored[r + i]));
    std::vector<Value*> words = pack(b, elements, packing);
    if (predicate || !suffix.empty())
      store_asm(b, addresses[r], predicate, words, packing, suffix);
    else
      store_plain(b, addresses[r], words, packing);
  }
  return {};
}

}  // namespace kiln::lower
