// How the elements of a tile get from the threads that hold them by one layout to those that shall hold them by
// another. The plan is data: the NVPTX lowering emits it and the distributed interpreter plays it.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/layout/linear_layout.h"
#include "compiler/layout/xor_map.h"

namespace kiln::layout {

enum class ConvertKind : uint8_t {
  kRegisters,  // every thread has what it needs: registers are permuted, dropped or repeated
  kShuffle,    // inside each warp
  kShared,     // through shared memory
};
std::string_view name(ConvertKind kind);

/// One side of a trip through shared memory. Every access moves `vector` neighbouring elements.
struct SharedAccess {
  int vector = 1;
  std::vector<std::vector<int>> groups;  // the registers of each access, in the order of their addresses
  XorMap offset;                         // element offset of a register; an access's is that of groups[i][0]
  uint32_t lane_mask = 0,
           warp_mask = 0;    // only threads with (lane & lane_mask) == 0 && (warp & warp_mask) == 0 take part
  int wavefronts = 1;        // bank cycles of one access by a full warp
  int ideal_wavefronts = 1;  // the same without bank conflicts: one per 128 bytes
};

struct ConvertPlan {
  ConvertKind kind = ConvertKind::kRegisters;
  int from_registers = 1, to_registers = 1;

  // kRegisters: result[r] = operand[source(r, lane, warp)]. Where `source` is not uniform, the register is selected by
  // parities of the thread's lane and warp bits.
  XorMap source;

  // kShuffle, in three steps over slots 0 … num_slots-1 (each one shuffle of one value):
  //   sent[s]   = operand[send(s, lane, warp)]
  //   moved[s]  = sent[s] of lane ask(s, lane, warp) of the same warp       (shfl.sync.idx)
  //   result[r] = moved[take(r, lane, warp)]
  // The first argument of send and ask is the slot.
  int num_slots = 0;
  XorMap send, ask, take;

  // kShared: barrier when the scratch may still be read; write; barrier; read; then result[r] = read value of
  // copy_of[r].
  // The accesses may be made by ldmatrix and stmatrix instead, where plan_matrix_access finds them for `scratch`.
  SharedAccess write, read;
  std::optional<LinearLayout> scratch;  // offset bits, in elements
  std::vector<int> copy_of;             // r itself, unless register r of the result is a copy of a lower one
  int64_t scratch_bytes = 0;

  bool is_identity() const;
};

/// The plan for elements of `element_bytes` (1, 2, 4 or 8; i1 takes one byte, pointers eight). Both layouts have the
/// same shape, lanes and warps, and are surjective.
ConvertPlan plan_convert(const LinearLayout& from, const LinearLayout& to, int element_bytes);

/// How the threads of a tile access it in shared memory with layout `shared` (offset bits, in elements): accesses of up
/// to 16 bytes. Registers that are copies are in no group.
SharedAccess plan_shared_access(const LinearLayout& tile, const LinearLayout& shared, int element_bytes);

/// For each register of `wanted`, the register of `held` with the same element in the same thread; empty when some
/// thread lacks one. What the shape operations use: they move nothing.
std::vector<int> match_registers(const LinearLayout& held, const LinearLayout& wanted);

/// Bank cycles of one access by the 32 lanes when lane bit i adds lane_offsets[i] (xor, in bytes): lanes are served in
/// groups that together ask for at most 128 bytes, and a group takes as many cycles as the busiest of 32 banks has
/// words.
int bank_wavefronts(const std::vector<uint32_t>& lane_offsets, int access_bytes);

}  // namespace kiln::layout
