// What integers can be, as they are emitted: counters of loops between constants, and what is computed from them.
#pragma once
#include <llvm/IR/ConstantRange.h>

#include <optional>
#include <unordered_map>

namespace llvm {
class ICmpInst;
class Value;
}  // namespace llvm

namespace kiln::lower {

/// Comparisons that need not be made. A tile that a loop of constant bounds moves along a row meets the row's end in
/// its last elements alone: the mask of all others is known, and their loads are neither compared for nor predicated.
/// LLVM's InstCombine goes by bits, and has no ranges of counters.
///
/// Operands are looked at while loops are being emitted, when phis lack what comes in from behind: but for counters, no
/// phi says anything, and no function of LLVM that goes through phis may be asked.
class Ranges {
 public:
  /// The counter of a loop: `first`, then by `step`, as long as it is below `end`; no step wraps around.
  void add_counter(const llvm::Value* counter, const llvm::APInt& first, const llvm::APInt& end,
                   const llvm::APInt& step);

  /// What a comparison always gives, if that is known. Looks at nothing where there are no counters.
  std::optional<bool> compare(const llvm::ICmpInst& comparison) const;

 private:
  llvm::ConstantRange of(const llvm::Value* v, int depth) const;

  std::unordered_map<const llvm::Value*, llvm::ConstantRange> counters_;
};

}  // namespace kiln::lower
