#include "compiler/lower/nvptx/vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/shared/elementwise.h"

namespace kiln::lower {

using llvm::Value;

namespace {

/// The values that are all true where `mask`, an i1, is: each once.
void add_terms(Value* mask, std::vector<Value*>& terms) {
  auto* op = llvm::dyn_cast<llvm::BinaryOperator>(mask);
  if (op && op->getOpcode() == llvm::Instruction::And) {
    add_terms(op->getOperand(0), terms);
    add_terms(op->getOperand(1), terms);
  } else if (std::ranges::find(terms, mask) == terms.end()) {
    terms.push_back(mask);
  }
}

}  // namespace

std::string Packing::ptx_type() const {
  std::string type = fmt::format("{}{}", word_bytes() < 4 ? "u" : "b", word_bytes() * 8);
  return words() == 1 ? type : fmt::format("v{}.{}", words(), type);
}

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

std::string word_list(size_t first, size_t count) {
  return count == 1 ? fmt::format("${}", first) : operand_list(first, count);
}

Value* element_at(llvm::IRBuilderBase& b, Value* first, size_t i, int bytes) {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), first, i * static_cast<uint64_t>(bytes));
}

Value* VectorEnds::beside(Value* mask, Value* known) {
  std::vector<Value*> known_terms, terms;
  add_terms(known, known_terms);
  add_terms(mask, terms);
  Value* left = nullptr;
  for (Value* term : terms)
    if (std::ranges::find(known_terms, term) == known_terms.end()) left = left ? l_.b.CreateAnd(left, term) : term;
  return left ? left : l_.b.getTrue();
}

}  // namespace kiln::lower
