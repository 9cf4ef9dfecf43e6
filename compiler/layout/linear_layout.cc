#include "compiler/layout/linear_layout.h"

#include "support/diag.h"

namespace kiln::layout {

Coord operator^(const Coord& a, const Coord& b) {
  Coord r;
  for (int i = 0; i < kMaxDims; ++i) r.at[i] = a.at[i] ^ b.at[i];
  return r;
}

LinearLayout::LinearLayout(std::span<const int32_t> shape) : rank_(static_cast<int>(shape.size())) {
  KILN_ASSERT(rank_ <= kMaxDims);
  for (int i = 0; i < rank_; ++i) shape_[i] = shape[i];
}

// Of the many dimensions that a Coord may have, a layout has few.
void LinearLayout::add(In in, uint32_t value, Coord& to) const {
  const auto& bases = bases_[static_cast<int>(in)];
  for (size_t bit = 0; bit < bases.size(); ++bit)
    if (value >> bit & 1)
      for (int d = 0; d < rank_; ++d) to.at[d] ^= bases[bit].at[d];
}

Coord LinearLayout::apply(In in, uint32_t value) const {
  Coord r;
  add(in, value, r);
  return r;
}

Coord LinearLayout::apply(uint32_t reg, uint32_t lane, uint32_t warp, uint32_t block) const {
  Coord r;
  add(In::kRegister, reg, r);
  add(In::kLane, lane, r);
  add(In::kWarp, warp, r);
  add(In::kBlock, block, r);
  return r;
}

}  // namespace kiln::layout
