// The steps of a reduction or a scan of a distributed tile along one dimension, as data for the NVPTX lowering and the
// distributed interpreter. All operands of one op have one layout, and the steps hold for each of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/layout/linear_layout.h"
#include "compiler/layout/xor_map.h"

namespace kiln::layout {

/// Reduction. In order:
///   1. part[i] = combine of the operand's registers[i], from the left.
///   2. For each of `halvings`: of two parts whose numbers differ in `part` a lane without lane_mask keeps the one
///   without
///      it, a lane with lane_mask the other, combined with the same part of lane ^ lane_mask; the parts that are kept
///      are numbered anew, in order. Then for each mask of lane_masks: part[i] = combine(part[i], part[i] of lane ^
///      mask)                                       (shfl.sync.bfly)
///   3. When crosses_warps: threads with (lane & write_lane_mask) == 0 && (warp & write_warp_mask) == 0 write part[i]
///   at
///      element write(i, lane, warp); barrier; every thread reads, for each s of `serial`, element read(i, lane, warp)
///      ^ s, and combines them from the left, i now being all of the result's registers; then the xor steps of
///      shared_lane_masks as in 2.
/// After that part[i] is register i of the result, in every thread that holds a copy of it.
struct ReducePlan {
  /// A step between lanes that shuffles and combines half as much as an xor step, since no lane gets all of the sums.
  /// What goes through shared memory anyway can be put there by any lane.
  struct Halving {
    uint32_t lane_mask;
    uint32_t part;
  };

  explicit ReducePlan(LinearLayout result_layout) : result(std::move(result_layout)) {}

  LinearLayout result;                      // slice(operand, axis); rank 0 when the result is a scalar
  std::vector<std::vector<int>> registers;  // per result register; each list ascends along the axis
  std::vector<Halving> halvings;            // only where it crosses warps
  std::vector<uint32_t> lane_masks;

  bool crosses_warps = false;
  XorMap write, read;  // element offsets in the operand's share of the scratch
  uint32_t write_lane_mask = 0, write_warp_mask = 0;
  std::vector<uint32_t> serial;  // ascending from 0
  std::vector<uint32_t> shared_lane_masks;
  int64_t scratch_elements = 0;  // of each operand
};

/// The operand's layout must have unit bases (has_unit_bases). `halves`: false leaves `halvings` out, for ops that have
/// an instruction for the sums of a warp.
ReducePlan plan_reduce(const LinearLayout& operand, int axis, bool halves = true);

/// The positions (register, lane, warp) with (x & mask) == value in each of the three.
struct Positions {
  uint32_t reg_mask = 0, reg_value = 0;
  uint32_t lane_mask = 0, lane_value = 0;
  uint32_t warp_mask = 0, warp_value = 0;

  bool has(uint32_t reg, uint32_t lane, uint32_t warp) const {
    return (reg & reg_mask) == reg_value && (lane & lane_mask) == lane_value && (warp & warp_mask) == warp_value;
  }
};

enum class ScanReach : uint8_t { kRegisters, kShuffle, kShared, kPrefix };

/// One step of a scan: value(p) = combine(value(source of p), value(p)) at every position p of `active`, all at once
/// (read old values). The source of (r, l, w) is ((r & ~reg_mask) | reg_value, …) of `sources`.
///   kRegisters: the source is in the same thread.     kShuffle: in another lane of the same warp.
///   kShared: barrier when scratch may still be read; positions in `writers` write element offset(r, lane, warp);
///   barrier; active positions read element offset(r, lane, warp), which is where their source wrote.
/// A thread that holds many elements in a row joins what other threads have to the last of them alone, and, where
/// joins_prefix, to what comes before them all: prefix(p) = combine(value(source of p), prefix(p)), or only
/// value(source of p) at positions of `without`, which have none yet. Then
///   kPrefix: value(p) = combine(prefix, value(p)) at each p whose register is not of `sources` and which is not in
///   `without`; the prefix is that of the register among `sources`.
struct ScanStep {
  ScanReach reach = ScanReach::kRegisters;
  Positions active, sources;
  Positions writers;  // `sources` with copies left out
  bool joins_prefix = false;
  Positions without;
  XorMap offset;
  int64_t first_element = 0;  // where this step's elements begin in the operand's share of the scratch
};

/// Inclusive scan along the axis; the result has the operand's layout. Each step of shared memory has its own scratch,
/// so one barrier per step (between write and read) is enough.
struct ScanPlan {
  std::vector<ScanStep> steps;
  int64_t scratch_elements = 0;  // of each operand; 0: no shared memory
};

/// The operand's layout must have unit bases. `reverse`: from the last element to the first.
ScanPlan plan_scan(const LinearLayout& operand, int axis, bool reverse);

/// Where each operand's share of the scratch begins, in bytes from the op's shared_offset, each aligned to 16; the last
/// entry is the whole size. `element_bytes` has one entry per operand.
std::vector<int64_t> scratch_shares(int64_t scratch_elements, std::span<const int> element_bytes);

}  // namespace kiln::layout
