// The layouts that memory operations prefer, and the cost of an access under any layout.
#pragma once
#include <vector>

#include "compiler/analysis/axis_info.h"
#include "compiler/ir/ir.h"
#include "compiler/layout/linear_layout.h"

namespace kiln::analysis {

/// A blocked layout of `num_warps` warps: `width` neighbours along order[0] in each thread, lanes along the dimensions
/// in order, at most `most_lanes` along the first, warps from the last of them (so that a row stays in one warp) or, if
/// not `warps_outermost`, from the first.
layout::LinearLayout blocked_layout(const ir::Shape& shape, std::span<const int> order, int64_t width, int num_warps,
                                    bool warps_outermost, int most_lanes = 32);

/// Layouts under which neighbouring lanes access neighbouring addresses, with 16 bytes per thread where alignment, mask
/// and the number of elements allow that. `access` is a load, a store or an atomic of tiles; a thread has
/// `least_width` neighbours at least, as far as they are neighbours in memory, whether one access moves them or not.
/// `most_lanes`: along neighbours where an access moves one element; a thread has several of a row then.
std::vector<layout::LinearLayout> coalesced_layouts(const AxisAnalysis& axis, const ir::Op* access, int num_warps,
                                                    int64_t least_width = 1, int most_lanes = 32);

/// Approximate SM cycles of the access: 32-byte sectors that memory must deliver, sectors that are requested again, and
/// instructions. `streams`: the kernel waits for memory, and for little else, so that the lines of the first-level
/// cache that are looked up again count too, and those that are stored to again, each time a request to the second
/// level; beside the products of a loop those are hidden.
double access_cost(const AxisAnalysis& axis, const ir::Op* access, const layout::LinearLayout& layout,
                   bool streams = false);

/// Approximate SM cycles of an elementwise operation on integers: those that are known to be equal are computed once.
double arithmetic_cost(const AxisAnalysis& axis, const ir::Op* op, const layout::LinearLayout& layout);

/// Approximate SM cycles of a reduction's steps between lanes, for each of what a thread holds then, and between warps.
double reduction_cost(const ir::Op& reduce, const layout::LinearLayout& layout, int num_warps);

/// Approximate SM cycles of a scan's steps: within threads, between lanes for each of what a thread holds apart, and
/// between warps.
double scan_cost(const ir::Op& scan, const layout::LinearLayout& layout, int num_warps);

/// Approximate cycles of converting so many bytes through shared memory.
double conversion_cost(int64_t bytes);

}  // namespace kiln::analysis
