// Creates and names tiles in swizzled shared memory, for the passes that prefetch loads and stage stores.
#pragma once
#include <span>

#include "compiler/ir/builder.h"

namespace kiln::passes {

/// `copies` such tiles in shared memory, with the widest swizzle that their rows along order[0] allow (which must be at
/// least 32 bytes long: layout::widest_swizzle).
ir::Type swizzled_type(ir::Module& module, const ir::Type& tile, std::span<const int> order, int copies = 1);

/// The same without a swizzle: element by element along order[0], then along order[1], ….
ir::Type rows_type(ir::Module& module, const ir::Type& tile, std::span<const int> order, int copies = 1);

/// The dimension of a matrix along which a thread holds neighbours, or if it holds none, neighbouring threads do.
int dim_of_neighbours(const layout::LinearLayout& layout);

/// Row-major.
inline constexpr int kRowMajor[] = {1, 0};

/// The order of a transposed matrix.
inline constexpr int64_t kSwap[] = {1, 0};

/// Copy number `slot` of several.
ir::Value* view(ir::Builder& b, ir::Value* handle, ir::Value* slot);
/// The same bytes with other dimensions: dim i is dim order[i].
ir::Value* transposed(ir::Builder& b, ir::Value* handle, std::span<const int64_t> order);

/// Whether several warps hold the same elements of such a tile. If not, a warp reads from shared memory only what its
/// own lanes have copied there.
bool warps_share(const ir::Type& tile);
/// The wgmma for a dot whose operands are `sides`: handles, or a tile in registers on the left.
ir::Value* warp_group_product(ir::Builder& b, const ir::Op& dot, std::span<ir::Value* const> sides);

/// A barrier between copies and reads: of all warps, or of each warp's lanes.
ir::Op* join_lanes(ir::Builder& b, bool of_all_warps);

/// The slot after `slot` of so many, and whether that is the first one again (i1).
struct NextSlot {
  ir::Value *slot, *wraps;
};
NextSlot next_slot(ir::Builder& b, ir::Value* slot, int slots);

}  // namespace kiln::passes
