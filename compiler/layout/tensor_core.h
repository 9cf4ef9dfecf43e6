// Layouts that tensor cores dictate: the fragments of mma.sync and wgmma in registers (PTX ISA, "Matrix fragments for
// mma.m16n8k…" and "Register fragments and shared memory matrix layouts" of wgmma), and tiles in swizzled shared memory
// as TMA boxes write them and ldmatrix and wgmma read them.
//
// A product has tiles a[…, M, K], b[…, K, N] and c[…, M, N]; dimensions before the last two are a batch.
#pragma once
#include <cstdint>
#include <span>

#include "compiler/layout/linear_layout.h"

namespace kiln::layout {

enum class DotSide : uint8_t { kA, kB };

/// Warps that issue one wgmma together, and the rows of its result.
inline constexpr int kGroupWarps = 4, kGroupRows = 64;

/// Elements that one mma.sync m16n8k… takes along k: 256 bits' worth (8 tf32, 16 f16 or bf16, 32 of eight bits).
int mma_depth(int element_bits);
/// One instruction's accumulator, [16, 8] of 32 bits (f16 accumulators have the same places, two to a register).
LinearLayout mma_accumulator_tile();
/// One instruction's operand: a is [16, depth], b is [depth, 8]. Elements of a 32-bit register run along k.
LinearLayout mma_operand_tile(DotSide side, int element_bits);
/// The element along k that instructions, one after the other, multiply as their `k`-th. A product may sum over k in
/// any order, so long as both operands have the same. Of a run of `k_width` neighbours that a thread holds, each
/// instruction takes the next two registers; a run of one register (or less) is the instruction's own order.
int32_t mma_depth_index(int32_t k, int element_bits, int k_width);

/// The accumulator of a tile c: instruction tiles repeated in registers, along N first, so that each warp holds one
/// block of the tile; `warps` says how many blocks there are along each dimension (all powers of two). Warp bits run
/// along M first, then N, then the batch from its last dimension on. What goes beyond the tile becomes copies.
LinearLayout mma_accumulator(std::span<const int32_t> shape, std::span<const int32_t> warps);
/// The layout that an operand's tile must have for a result with layout `accumulator` (one of mma_accumulator or
/// wgmma_accumulator): every warp has the rows (a) or columns (b) of its block, so that a repeats over warps along N
/// and b over warps along M. The operand is at least one instruction deep. A thread holds runs of `k_width` neighbours
/// along k (mma_depth_index), a power of two up to a quarter of k; of one register's, where k_width is less.
LinearLayout mma_operand(DotSide side, std::span<const int32_t> shape, int element_bits,
                         const LinearLayout& accumulator, int k_width = 0);
/// The same for a result of any layout whose elements are computed one by one: every thread has the whole rows or
/// columns of its elements.
LinearLayout fma_operand(DotSide side, std::span<const int32_t> shape, const LinearLayout& result);

/// The accumulator of wgmma m64nN for c[M, N] with M ≥ 64 and N ≥ 8; num_warps is a multiple of 4. Four warps share 64
/// rows; further groups of four take further rows, and columns when there are no more rows.
LinearLayout wgmma_accumulator(std::span<const int32_t> shape, int num_warps);
/// A tile in shared memory (offset bits only, counted in elements): rows of `swizzle_bytes` (128, 64 or 32) along
/// order[0], one after the other along order[1]; a tile that is wider along order[0] is several such panels one after
/// the other; further dimensions follow in `order`. Bits 4… of the byte address are xored with bits 7… (3, 2 or 1 of
/// them), as TMA's and wgmma's swizzle modes do at addresses that are multiples of 1024. The tile is at least
/// swizzle_bytes wide along order[0].
LinearLayout swizzled(std::span<const int32_t> shape, int element_bits, int swizzle_bytes, std::span<const int> order);
/// The widest of 128, 64 and 32 that `swizzled` takes for this width in elements; 0 when the rows are too short.
int widest_swizzle(int32_t width, int element_bits);

}  // namespace kiln::layout
