// The elements of a tile that one instruction moves: as words of PTX, and where a mask ends among them.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lower/nvptx/lowering.h"

namespace kiln::lower {

/// How `width` elements of `bytes` each travel in PTX registers: words of 32 bits, or of 64 for 64-bit elements; fewer
/// than 32 bits travel in the low bits of one word.
struct Packing {
  int width, bytes;

  int access_bytes() const { return width * bytes; }
  int word_bytes() const { return bytes == 8 ? 8 : std::min(4, access_bytes()); }
  int words() const { return access_bytes() / word_bytes(); }
  int per_word() const { return word_bytes() / bytes; }
  /// "v4.b32"
  std::string ptx_type() const;
  std::string_view constraint() const { return word_bytes() == 8 ? "l" : "r"; }
};

/// Memory elements (memory_type) → words, and back: appended to `out`.
std::vector<llvm::Value*> pack(llvm::IRBuilderBase& b, std::span<llvm::Value* const> elements, const Packing& p);
void unpack(llvm::IRBuilderBase& b, std::span<llvm::Value* const> words, const Packing& p, llvm::Type* element,
            std::vector<llvm::Value*>& out);

/// The operands of inline assembly that are the words of one value: "$4", "{$4, $5}".
std::string word_list(size_t first, size_t count);

/// The address `i` elements of `bytes` behind another.
llvm::Value* element_at(llvm::IRBuilderBase& b, llvm::Value* first, size_t i, int bytes);

/// The masks of accesses that may end within a vector: its first few elements are on. Such an access moves a vector
/// where its last element is on. What is on of the others goes element by element, behind one branch, since it is few
/// threads that meet an end.
class VectorEnds {
 public:
  VectorEnds(Lowering& l, const Registers& masks, int width)
      : l_(l), masks_(masks), width_(static_cast<size_t>(width)) {}

  /// Notes a vector; what moves it as a whole.
  llvm::Value* whole(size_t first) {
    llvm::Value* last = masks_[first + width_ - 1];
    llvm::Value* ends = l_.b.CreateAnd(masks_[first], l_.b.CreateNot(last));
    some_ = some_ ? l_.b.CreateOr(some_, ends) : ends;
    vectors_.push_back(first);
    return last;
  }

  /// Calls vector(first, masks) for each vector, the masks of what is left of its elements but the last, in a block for
  /// the threads that have such a one; the end of that block.
  template <class Fn>
  llvm::BasicBlock* rest(Fn&& vector) {
    llvm::BasicBlock* end = nullptr;
    auto each = [&] {
      for (const size_t first : vectors_) {
        llvm::Value* left = l_.b.CreateNot(masks_[first + width_ - 1]);
        std::vector<llvm::Value*> masks;
        for (size_t i = 0; i + 1 < width_; ++i) masks.push_back(l_.b.CreateAnd(masks_[first + i], left));
        vector(first, masks);
      }
      end = l_.b.GetInsertBlock();
    };
    l_.when(some_, each, /*rarely=*/true);
    return end;
  }

  /// The same for accesses that give nothing, each vector behind a branch of its own: there its first element is on,
  /// and the masks are without what they share with that one's. A mask of rows and columns is then one of columns, the
  /// same for all vectors. (The masks of rows and columns of a block of 128 x 128 in 4 warps were 96 predicates at a
  /// time, and half of the machine code of a product.)
  template <class Fn>
  void rest_apart(Fn&& vector) {
    auto each = [&] {
      for (const size_t first : vectors_) {
        auto ended = [&] {
          std::vector<llvm::Value*> masks;
          for (size_t i = 0; i + 1 < width_; ++i) masks.push_back(beside(masks_[first + i], masks_[first]));
          vector(first, masks);
        };
        l_.when(l_.b.CreateAnd(masks_[first], l_.b.CreateNot(masks_[first + width_ - 1])), ended);
      }
    };
    l_.when(some_, each, /*rarely=*/true);
  }

 private:
  /// `mask` where `known` holds: what it asks for beside that.
  llvm::Value* beside(llvm::Value* mask, llvm::Value* known);

  Lowering& l_;
  const Registers& masks_;
  size_t width_;
  llvm::Value* some_ = nullptr;
  std::vector<size_t> vectors_;
};

}  // namespace kiln::lower
