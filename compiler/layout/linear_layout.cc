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

Coord LinearLayout::apply(In in, uint32_t value) const {
  Coord r;
  const auto& bases = bases_[static_cast<int>(in)];
  for (size_t bit = 0; bit < bases.size(); ++bit)
    if (value >> bit & 1) r = r ^ bases[bit];
  return r;
}

Coord LinearLayout::apply(uint32_t reg, uint32_t lane, uint32_t warp, uint32_t block) const {
  return apply(In::kRegister, reg) ^ apply(In::kLane, lane) ^ apply(In::kWarp, warp) ^ apply(In::kBlock, block);
}

}  // namespace kiln::layout
