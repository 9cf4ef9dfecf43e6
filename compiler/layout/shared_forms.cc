#include "compiler/layout/shared_forms.h"

#include <algorithm>
#include <array>
#include <bit>

#include "compiler/layout/algebra.h"
#include "compiler/layout/gf2.h"

namespace kiln::layout {

namespace {

constexpr int kSwizzles[] = {0, 128, 64, 32};
constexpr int kUnitBytes = 16;      // what swizzles move
constexpr int kSwizzleFromBit = 7;  // address bits 7… are xored into bits 4…
constexpr int kSwizzleToBit = 4;
constexpr int kTmaAlignment = 128;

/// Which offset bit is the step `1 << b` along each dimension, without the swizzle.
struct UnitSteps {
  std::array<std::vector<int>, kMaxDims> place;  // [dim][b] → offset bit
  std::vector<std::pair<int, int>> steps;        // [offset bit] → (dim, b)
};

/// The layout with a swizzle mode taken away, when what is left has one dimension's bit for each offset bit.
std::optional<UnitSteps> without_swizzle(const LinearLayout& shared, int swizzle, int element_bytes) {
  UnitSteps u;
  const int log_bytes = log2_exact(element_bytes);
  for (int dim = 0; dim < shared.rank(); ++dim)
    u.place[static_cast<size_t>(dim)].assign(static_cast<size_t>(log2_exact(shared.shape()[static_cast<size_t>(dim)])),
                                             -1);
  for (int bit = 0; bit < shared.bits(In::kOffset); ++bit) {
    uint32_t offset = 1u << bit;
    const int address_bit = bit + log_bytes;
    const bool swizzles = address_bit >= kSwizzleFromBit && (kUnitBytes << (address_bit - kSwizzleFromBit)) < swizzle;
    if (swizzles) offset |= 1u << (bit - (kSwizzleFromBit - kSwizzleToBit));
    const Coord c = shared.apply(In::kOffset, offset);
    int dim = -1;
    for (int d = 0; d < shared.rank(); ++d)
      if (c[d]) {
        if (dim >= 0 || !std::has_single_bit(static_cast<uint32_t>(c[d]))) return std::nullopt;
        dim = d;
      }
    if (dim < 0) return std::nullopt;
    const int b = log2_exact(c[dim]);
    int& place = u.place[static_cast<size_t>(dim)][static_cast<size_t>(b)];
    if (place >= 0) return std::nullopt;
    place = bit;
    u.steps.emplace_back(dim, b);
  }
  for (const auto& places : u.place)
    if (std::count(places.begin(), places.end(), -1)) return std::nullopt;
  return u;
}

/// True when bits [first, last) of a dimension have neighbouring offset bits, from `offset_bit` on.
bool is_run(const std::vector<int>& place, int first, int last, int offset_bit) {
  for (int b = first; b < last; ++b)
    if (b >= static_cast<int>(place.size()) || place[static_cast<size_t>(b)] != offset_bit + b - first) return false;
  return true;
}

std::optional<TmaPlan> plan_tma_with(const LinearLayout& shared, int swizzle, int element_bytes, int rows) {
  const auto u = without_swizzle(shared, swizzle, element_bytes);
  if (!u) return std::nullopt;
  const int rank = shared.rank(), bits = shared.bits(In::kOffset);
  TmaPlan plan;
  plan.swizzle = swizzle;
  plan.box.assign(static_cast<size_t>(rank), 1);
  // Offset bits, from the lowest, that one dense box takes: the last dimension, then the one before it, …
  const int widest = swizzle ? swizzle / element_bytes : kMaxTmaBox;
  int taken = 0;
  for (int dim = rank - 1; dim >= 0; --dim) {
    const auto& place = u->place[static_cast<size_t>(dim)];
    const int limit = log2_exact(std::min(dim == rank - 1 ? widest : kMaxTmaBox, dim == 0 ? rows : kMaxTmaBox));
    int b = 0;
    while (b < limit && taken < bits && is_run(place, b, b + 1, taken)) ++b, ++taken;
    plan.box[static_cast<size_t>(dim)] = 1 << b;
    // A box is dense: a dimension that it does not span can only be followed by dimensions of size 1.
    if (b < static_cast<int>(place.size()) && dim != rank - 1) break;
  }
  // Rows of a swizzled box are as wide as the swizzle: what the unit makes of narrower ones is not documented.
  const int row_bytes = plan.box.back() * element_bytes;
  if (swizzle ? row_bytes != swizzle : row_bytes < kUnitBytes) return std::nullopt;
  for (uint32_t n = 0; n < 1u << (bits - taken); ++n) {
    TmaPlan::Copy copy;
    for (uint32_t rest = n; rest; rest &= rest - 1) {
      const int bit = taken + std::countr_zero(rest);
      const auto [dim, b] = u->steps[static_cast<size_t>(bit)];
      copy.at[dim] += 1 << b;
    }
    copy.offset = (static_cast<int64_t>(n) << taken) * element_bytes;
    if (copy.offset % kTmaAlignment) return std::nullopt;
    plan.copies.push_back(copy);
  }
  return plan;
}

std::optional<WgmmaMatrix> plan_wgmma_with(const LinearLayout& shared, int k, int span, int swizzle, int bytes) {
  const auto u = without_swizzle(shared, swizzle, bytes);
  if (!u || shared.rank() != 2) return std::nullopt;
  const auto &depth = u->place[static_cast<size_t>(k)], &own = u->place[static_cast<size_t>(1 - k)];
  WgmmaMatrix m;
  m.swizzle = swizzle;
  auto bytes_at = [&](int offset_bit) { return static_cast<uint32_t>(bytes) << offset_bit; };
  for (int bit : own) m.own.push_back(bytes_at(bit));
  for (int bit : depth) m.depth.push_back(bytes_at(bit));
  const int row_bits = log2_exact((swizzle ? swizzle : kUnitBytes) / bytes);
  const int atom_bits = log2_exact(kAtomRows), span_bits = log2_exact(span);
  const int depth_bits = log2_exact(2 * kUnitBytes / bytes);  // one instruction's depth
  if (static_cast<int>(depth.size()) < depth_bits || static_cast<int>(own.size()) < span_bits) return std::nullopt;
  /// Neighbouring atoms along a dimension, from its bit `from` to what an instruction takes, must be equally far apart.
  auto step = [&](const std::vector<int>& place, int from, int to, uint32_t& out) {
    if (from >= to) return true;
    if (!is_run(place, from, to, place[static_cast<size_t>(from)])) return false;
    out = bytes_at(place[static_cast<size_t>(from)]);
    return true;
  };
  if (is_run(depth, 0, row_bits, 0)) {
    if (!is_run(own, 0, atom_bits, row_bits)) return std::nullopt;
    m.stride = kAtomRows * static_cast<uint32_t>(swizzle ? swizzle : kUnitBytes);
    if (!step(own, atom_bits, span_bits, m.stride)) return std::nullopt;
    if (!swizzle && !step(depth, row_bits, depth_bits, m.leading)) return std::nullopt;
    return m;
  }
  if (bytes != 2 || !is_run(own, 0, row_bits, 0) || !is_run(depth, 0, atom_bits, row_bits)) return std::nullopt;
  m.transposed = true;
  uint32_t along_own = kUnitBytes, along_depth = kUnitBytes;
  if (!step(own, row_bits, span_bits, along_own) || !step(depth, atom_bits, depth_bits, along_depth))
    return std::nullopt;
  m.leading = swizzle ? along_own : along_depth;
  m.stride = swizzle ? along_depth : along_own;
  return m;
}

}  // namespace

std::optional<TmaPlan> plan_tma(const LinearLayout& shared, int element_bytes, int rows) {
  for (int swizzle : kSwizzles)
    if (auto plan = plan_tma_with(shared, swizzle, element_bytes, rows)) return plan;
  return std::nullopt;
}

std::optional<WgmmaMatrix> plan_wgmma_matrix(const LinearLayout& shared, int k, int span, int element_bytes) {
  for (int swizzle : kSwizzles)
    if (auto m = plan_wgmma_with(shared, k, span, swizzle, element_bytes)) return m;
  return std::nullopt;
}

namespace {

/// Byte offsets in shared memory of each bit of the tile's registers, lanes and warps.
XorMap byte_offsets(const LinearLayout& tile, const LinearLayout& shared, int element_bytes) {
  const Span span(index_bases(shared, In::kOffset));
  auto of = [&](In in) {
    std::vector<uint32_t> offsets;
    for (uint64_t basis : index_bases(tile, in))
      offsets.push_back(static_cast<uint32_t>(*span.express(basis)) * static_cast<uint32_t>(element_bytes));
    return offsets;
  };
  return {of(In::kRegister), of(In::kLane), of(In::kWarp)};
}

bool whole_rows(uint32_t offset) { return offset % kUnitBytes == 0; }

}  // namespace

std::optional<MatrixAccess> plan_matrix_access(const LinearLayout& tile, const LinearLayout& shared,
                                               int element_bytes) {
  constexpr uint32_t kWord = 4;
  if (element_bytes > static_cast<int>(kWord) || free_variables(tile).reg || tile.bits(In::kLane) != 5)
    return std::nullopt;
  const XorMap bytes = byte_offsets(tile, shared, element_bytes);
  if (!std::all_of(bytes.warp.begin(), bytes.warp.end(), whole_rows)) return std::nullopt;
  MatrixAccess access;
  std::vector<size_t> word, others;  // register bits
  std::array<uint32_t, 3> row{};     // what the three bits of a row's number add
  const std::vector<uint32_t>& lane = bytes.lane;
  const auto e = static_cast<uint32_t>(element_bytes);
  if (lane[0] == kWord && lane[1] == 2 * kWord && whole_rows(lane[2]) && whole_rows(lane[3]) && whole_rows(lane[4])) {
    row = {lane[2], lane[3], lane[4]};
    for (uint32_t b = e; b < kWord; b *= 2) {
      const auto at = std::find(bytes.reg.begin(), bytes.reg.end(), b);
      if (at == bytes.reg.end()) return std::nullopt;
      word.push_back(static_cast<size_t>(at - bytes.reg.begin()));
    }
  } else if (e == 2 && !bytes.reg.empty() && lane[2] == e && lane[3] == 2 * e && lane[4] == 4 * e &&
             whole_rows(lane[0]) && whole_rows(lane[1]) && whole_rows(bytes.reg[0])) {
    access.transposed = true;
    row = {bytes.reg[0], lane[0], lane[1]};
    word = {0};
  } else {
    return std::nullopt;
  }
  for (size_t bit = 0; bit < bytes.reg.size(); ++bit) {
    if (std::count(word.begin(), word.end(), bit)) continue;
    if (!whole_rows(bytes.reg[bit])) return std::nullopt;
    others.push_back(bit);
  }
  const size_t matrix_bits = std::min<size_t>(2, others.size());
  access.matrices = 1 << matrix_bits;
  access.address = {bytes.reg, {row[0], row[1], row[2], 0, 0}, bytes.warp};
  for (size_t i = 0; i < matrix_bits; ++i) access.address.lane[3 + i] = bytes.reg[others[i]];
  auto register_of = [](const std::vector<size_t>& bits, size_t from, uint32_t number) {
    uint32_t r = 0;
    for (; number; number &= number - 1) r |= 1u << bits[from + static_cast<size_t>(std::countr_zero(number))];
    return r;
  };
  for (uint32_t g = 0; g < 1u << (others.size() - matrix_bits); ++g) {
    std::vector<int>& group = access.groups.emplace_back();
    for (uint32_t matrix = 0; matrix < 1u << matrix_bits; ++matrix)
      for (uint32_t part = 0; part < 1u << word.size(); ++part)
        group.push_back(static_cast<int>(register_of(others, matrix_bits, g) | register_of(others, 0, matrix) |
                                         register_of(word, 0, part)));
  }
  return access;
}

}  // namespace kiln::layout
