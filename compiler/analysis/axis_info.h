// Facts about the numbers in a tile that decide how wide memory accesses can be. Per dimension: how far neighbours
// count up by one, how far they are equal, and what divides them. All facts are powers of two and lower bounds.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "compiler/ir/ir.h"
#include "compiler/layout/linear_layout.h"

namespace kiln::analysis {

/// Elements along which a usual step is taken to stay what it is: a few rows of a picture are longer.
constexpr int64_t kUsualRun = 32;
/// Rows of fewer elements are taken to wrap between most neighbours. Those of small pictures have 14, 15 or 28.
constexpr int64_t kLeastRun = 8;

/// Of an integer, pointer or i1 value. With c = contiguity[d]: in each aligned group of c elements along d, each is the
/// one before plus one (pointers: plus one element). With k = constancy[d]: the elements of each aligned group of k
/// along d are equal. divisibility[d] divides the first element of each such contiguous group along d (pointers: in
/// bytes). In each aligned group of run[d] elements along d, each is the one before or at most step[d] more, as in
/// arange // 2 with steps of 1 and in arange * 3 with steps of 3. In each aligned group of prefix[d] elements of an i1
/// along d, those that are true come first.
/// usual_step[d] is a guess, for choices alone: how far apart neighbours along d lie on most of their way. A remainder
/// is taken to wrap seldom, a quotient by an unknown number to change seldom, an unknown stride to be large, and the
/// larger the more divides it.
struct AxisInfo {
  int rank = 0;
  std::array<int64_t, ir::kMaxRank> contiguity{}, divisibility{}, constancy{}, run{}, step{}, prefix{};
  std::array<double, ir::kMaxRank> usual_step{};
  std::optional<int64_t> constant;  // when every element is this number
  bool non_negative = false;        // no element is below zero, unless index arithmetic overflowed its type

  bool operator==(const AxisInfo&) const = default;
};

/// The pointers and the mask (or nullptr) of a load, store, atomic or asynchronous copy.
const ir::Value* pointer_of(const ir::Op* access);
ir::Value* mask_of(const ir::Op* access);
/// The operand that is or would be the mask of such an access or of an assert; -1: it can have none.
int mask_index(const ir::Op& op);
/// Whether there are instructions that do such an access to several elements: of atomics, additions of floats.
bool moves_vectors(const ir::Op* access);

/// Computed for a whole module at once; values made afterwards are unknown (contiguity and constancy 1).
class AxisAnalysis {
 public:
  explicit AxisAnalysis(const ir::Module& module);
  ~AxisAnalysis();
  AxisAnalysis(AxisAnalysis&&) noexcept;

  const AxisInfo& of(const ir::Value* value) const;

  /// The index (layout/algebra.h) of the first element of the aligned group of equal ones that holds the one at
  /// `place`.
  uint64_t first_equal(const ir::Value* value, layout::Coord place) const;
  /// The same of what a load gets: from one address, under one mask. Of other accesses and volatile loads: of the
  /// place.
  uint64_t first_loaded(const ir::Op* access, layout::Coord place) const;

  /// The dimension along which neighbours of a pointer tile are most contiguous in memory, then the one with the
  /// longest run of addresses, then the one with the shortest usual step; ties go to the last dimension.
  std::array<int, ir::kMaxRank> order_of(const ir::Value* pointer) const;
  /// Elements that one access may move along `dim`, limited by alignment, contiguity, mask and 16 bytes: the mask is on
  /// for the first few of them, which may be none or all. `mask` may be null. Where it is on for some of them alone, no
  /// hint of the kernel's is relied on: Triton moves no more elements than a mask is equal for, so that wrong hints do
  /// no harm there.
  int64_t alignment_width(const ir::Value* pointer, const ir::Value* mask, int dim) const;
  /// Elements that each thread moves by one access of a load, store or asynchronous copy when its pointer has layout
  /// `layout`: what alignment_width permits and the layout has in its lowest registers (a power of two; 1: no vectors).
  /// Registers k·width … k·width+width-1 then hold neighbours in memory, the first at an address aligned to the whole
  /// access.
  int vector_width(const ir::Op* access, const layout::LinearLayout& layout) const;
  /// The same for the layout that the access has; a scalar access has width 1.
  int vector_width(const ir::Op* access) const;
  /// Whether the mask of an access may be on for some elements of such a vector and off for the others.
  bool may_end_within_vector(const ir::Op* access) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::unique_ptr<State> without_hints_;  // null where a kernel has none
};

}  // namespace kiln::analysis
