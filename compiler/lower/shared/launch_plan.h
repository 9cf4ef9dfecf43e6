// What a launch of a kernel of the distributed stage needs besides its own parameters: warps that only run the further
// regions of warp_specialize, and tensor maps, which are hidden parameters after the kernel's own.
#pragma once
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/layout/shared_forms.h"
#include "compiler/target/target.h"
#include "support/tensor_map.h"

namespace kiln::lower {

/// Numbers of the hardware's barriers: all threads, the kernel's own warps, and the groups of warps among them.
inline constexpr int kHardwareBarriers = 16, kEveryonesBarrier = 0, kOwnBarrier = 1, kFirstGroupBarrier = 2;

/// How many blocks of a warp-specialised kernel share an SM, and the setmaxnreg values that let them: registers of a
/// thread of the extra warps and of the kernel's own; zeros where the even share is enough.
struct RegisterShares {
  int extra = 0, own = 0;
  int blocks = 1;
};
/// Beyond so many the tensor cores are busy.
inline constexpr int kMostBlocks = 4;

/// A tensor map that the kernel makes, with the box of it that one copy moves.
struct DeviceMap {
  const ir::Op* maker = nullptr;  // make_descriptor
  std::vector<int32_t> box;       // in elements, outermost dimension first
  int32_t swizzle = 0;            // bytes, as of recipes
  bool operator==(const DeviceMap&) const = default;
};

struct LaunchPlan {
  int extra_warps = 0;
  std::vector<TensorMapRecipe> tensor_maps;
  std::vector<DeviceMap> device_maps;
  /// How a tma_load or tma_store moves its tile, and with which tensor map.
  struct Copies {
    int tensor_map = 0;
    bool on_device = false;  // the map's number is one of device_maps
    layout::TmaPlan boxes;
    // A tma_store by groups of warps, or a tma_load by the blocks of a cluster: `boxes` are those of the first, the
    // others' follow in equal steps.
    int groups = 1, group_rows = 0;
    int64_t group_bytes = 0;  // in shared memory
  };
  std::unordered_map<const ir::Op*, Copies> copies;
  bool uses_wgmma = false;
  bool has_math = false;          // exponentials and the like on tiles
  int wgmma_registers = 0;        // of a thread: sums and first operands of products in flight together
  int instruction_registers = 0;  // of these, the most that one instruction takes
  RegisterShares registers;
};

/// kUnsupported, each with what would work: an op that the target lacks, a tensor that the host cannot describe (its
/// descriptor is made of more than parameters), a tile of shared memory that no TMA box makes, a second
/// warp_specialize, or more than 32 warps.
/// Registers are shared out to as many blocks as shared memory holds, up to `most_blocks`, while accumulators and what
/// is beside them fit: one block's epilogue runs behind another's products. To none with 0: the kernel's own limit
/// holds.
Result<LaunchPlan> plan_launch(const ir::Module& module, const target::Target& target, int most_blocks = kMostBlocks);

/// The operands of a descriptor's make_descriptor op.
const ir::Op& descriptor_of(const ir::Value* descriptor);

}  // namespace kiln::lower
