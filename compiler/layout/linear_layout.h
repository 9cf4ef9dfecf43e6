// The one layout type: a linear map over GF(2) from input bits (register, lane, warp, block, or shared-memory offset)
// to the bits of a tile's element index. See docs/layouts.md; the idea is public (arXiv 2505.23819).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::layout {

enum class In : uint8_t { kRegister, kLane, kWarp, kBlock, kOffset };
inline constexpr int kNumIns = 5;
/// As ir::kMaxRank; here so that layouts stay pure maths.
inline constexpr int kMaxDims = 24;

/// A coordinate in the tile, one number per dimension.
struct Coord {
  std::array<int32_t, kMaxDims> at{};
  int32_t& operator[](int dim) { return at[dim]; }
  int32_t operator[](int dim) const { return at[dim]; }
  bool operator==(const Coord&) const = default;
};
Coord operator^(const Coord& a, const Coord& b);

class LinearLayout {
 public:
  /// A layout onto a tile of the given shape (sizes are powers of two), with no input bits yet.
  explicit LinearLayout(std::span<const int32_t> shape);

  int rank() const { return rank_; }
  std::span<const int32_t> shape() const { return {shape_.data(), static_cast<size_t>(rank_)}; }

  /// Appends one input bit and the coordinate it contributes; a zero coordinate means a copy.
  void push(In in, const Coord& basis) { bases_[static_cast<int>(in)].push_back(basis); }
  std::span<const Coord> bases(In in) const { return bases_[static_cast<int>(in)]; }
  int bits(In in) const { return static_cast<int>(bases_[static_cast<int>(in)].size()); }
  int size(In in) const { return 1 << bits(in); }
  int num_registers() const { return size(In::kRegister); }

  /// xor of the bases whose input bits are set.
  Coord apply(In in, uint32_t value) const;
  Coord apply(uint32_t reg, uint32_t lane, uint32_t warp, uint32_t block = 0) const;

  bool operator==(const LinearLayout&) const = default;

 private:
  void add(In in, uint32_t value, Coord& to) const;

  std::array<int32_t, kMaxDims> shape_{};
  int rank_ = 0;
  std::array<std::vector<Coord>, kNumIns> bases_;
};

}  // namespace kiln::layout
