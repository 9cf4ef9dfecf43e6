// Operations on linear layouts: pure functions of values. docs/layouts.md explains them with pictures.
//
// An element index is the row-major number of a coordinate; as sizes are powers of two, its bits are the coordinates'
// bits put side by side, the last dimension lowest.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/layout/gf2.h"
#include "compiler/layout/linear_layout.h"
#include "kiln/result.h"

namespace kiln::layout {

/// log2 of a power of two.
int log2_exact(int64_t n);
int64_t num_elements(const LinearLayout& layout);
/// Bits of the element index.
int index_bits(const LinearLayout& layout);
uint64_t index_of(std::span<const int32_t> shape, const Coord& coord);
Coord coord_of(std::span<const int32_t> shape, uint64_t index);
/// The bases of one input group as element indices.
std::vector<uint64_t> index_bases(const LinearLayout& layout, In in);
/// All bases as columns of element indices: register, lane, warp, block, offset bits, in that order.
BitMatrix matrix_of(const LinearLayout& layout);
/// Element index that a thread's register holds.
uint64_t index_at(const LinearLayout& layout, uint32_t reg, uint32_t lane, uint32_t warp);

// --- questions

bool is_surjective(const LinearLayout& layout);
bool is_injective(const LinearLayout& layout);

/// Masks of the input bits that only make copies: with those bits 0, every element occurs exactly once.
/// So a store is done by registers, lanes and warps r, l, w with (r & reg) == 0, (l & lane) == 0, (w & warp) == 0.
struct FreeBits {
  uint32_t reg = 0, lane = 0, warp = 0, block = 0, offset = 0;
  uint32_t& of(In in);
  bool operator==(const FreeBits&) const = default;
};
FreeBits free_variables(const LinearLayout& layout);

/// True when each basis is zero or one power of two along one dimension that no other has: what reductions and scans
/// ask for. All layouts but swizzled ones are so.
bool has_unit_bases(const LinearLayout& layout);

// --- making layouts from layouts

/// The map from inputs of `inner` to outputs of `outer`: inner's five dimensions are (register, lane, warp, block,
/// offset) of outer, as invert() makes them. apply(compose(outer, inner), x) = outer.apply(inner.apply(x)).
LinearLayout compose(const LinearLayout& outer, const LinearLayout& inner);
/// From the element index (input group `offset`) to (register, lane, warp, block, offset) of a holder; of several
/// holders the one whose free bits are 0. The layout must be surjective. compose(A, invert(A)) is the identity on
/// element indices.
LinearLayout invert(const LinearLayout& layout);
/// `a` on the low bits of every dimension and input group, `b` on the next.
LinearLayout product(const LinearLayout& a, const LinearLayout& b);
/// Without dimension `dim`: the layout of a reduction's result. Lane and warp bits that only ran along it become
/// copies; register bits that did are dropped.
LinearLayout slice(const LinearLayout& layout, int dim);
/// With a new dimension of size 1 before dimension `axis`.
LinearLayout expand_dims(const LinearLayout& layout, int axis);
/// The layout of broadcasting an operand with `layout`: each thread repeats its own values in registers.
LinearLayout broadcast(const LinearLayout& layout, std::span<const int32_t> shape);
/// The layout of a broadcast's operand (dimensions of size 1 where `shape` says so) such that every thread has what it
/// needs for a result with `layout`. Register bits that become copies are dropped.
LinearLayout broadcast_operand(const LinearLayout& layout, std::span<const int32_t> shape);
/// Dimension i of the result is dimension order[i] of the operand.
LinearLayout transpose(const LinearLayout& layout, std::span<const int64_t> order);
/// Another shape with the same elements in row-major order.
LinearLayout reshape(const LinearLayout& layout, std::span<const int32_t> shape);
/// The layout of join(a, b) for operands with `layout`: register bit 0 selects the operand.
LinearLayout join(const LinearLayout& layout);
/// Whether such a tile can be split without moving data: one register bit, and nothing else, runs along the last
/// dimension (of size 2).
bool can_split(const LinearLayout& layout);
/// The layout of both results of such a split.
LinearLayout split(const LinearLayout& layout);
/// The same with the positions along `dim` dealt out anew: the lowest to the registers that ran along it, then those to
/// the lanes, then to the warps, so that each thread has neighbours. Bases that run along another dimension too stay.
LinearLayout neighbours_along(const LinearLayout& layout, int dim);
/// The same with the neighbours that each thread has kept, and the rest of the positions dealt out to lanes, then to
/// registers, then to warps: each warp has a stretch of its own, whose lines it moves one after the other.
LinearLayout stretches_along(const LinearLayout& layout, int dim);
/// Drops register bits that only make copies.
LinearLayout without_register_copies(const LinearLayout& layout);

// --- named constructors

/// The usual layout of memory operations: `size_per_thread` elements of each thread side by side, then the lanes, then
/// the warps, each filling the dimensions in `order` (fastest first); what of the tile is left is repeated in further
/// registers, and what goes beyond the tile becomes copies. All sizes are powers of two; threads multiply to 32.
LinearLayout blocked(std::span<const int32_t> shape, std::span<const int32_t> size_per_thread,
                     std::span<const int32_t> threads, std::span<const int32_t> warps, std::span<const int> order);
/// A vector whose warps hold one stretch each, in their order; its elements lie side by side over the lanes, then over
/// the registers. What goes beyond the vector becomes copies.
LinearLayout stretches(int32_t size, int num_warps);
/// Every thread of `num_warps` warps holds the whole tile.
LinearLayout replicated(std::span<const int32_t> shape, int num_warps);

// --- text

/// "[128, 64] register (0,1)(0,2) lane (0,4)(0,8)(0,16)(1,0)(2,0) warp (4,0)(8,0)"; groups without bits are left out.
std::string to_string(const LinearLayout& layout);
/// Reads what to_string writes.
Result<LinearLayout> parse_layout(std::string_view text);
/// A table of the owner of each element: for small tiles "lane:register" (warps before a dot) per element, for others
/// the bits' meaning. Ends with a newline.
std::string draw(const LinearLayout& layout);

}  // namespace kiln::layout
