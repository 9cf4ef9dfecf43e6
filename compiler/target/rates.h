// What kernels cost on a machine, for the models that choose between plans of expressions: as measured, one row a chip.
// matmul_tile.cc has those of products by blocks.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace kiln::target {

/// A product whose operands are read through pointers, in tiles: compiler/fusion/pointer_product.
struct PointerProductRates {
  double launch_us, step_us;  // of a step along k, whatever its size
  double flop_per_us;         // of a multiprocessor, in registers
  double made_flop_per_us;    // the same of operands that are computed, of one program
  double read_sides;          // a small tile reads more shared memory for each of its sums, as if so much larger
  /// One step of 128 rows or columns of an operand along 128 bytes of k: of 4-byte elements; whose rows begin at
  /// multiples of 16, 8 or 4 bytes; and of others, whose elements go through registers one by one.
  double words_us, by_16_us, by_8_us, by_4_us, singly_us;
  /// How busy one of its programs keeps a multiprocessor, two, three; of large tiles there are two at most, of those
  /// of fewer sums than 64 x 64, or with half as many columns in a step, four.
  std::array<double, 3> busy;
  std::array<double, 2> busy_of_large;
  std::array<double, 4> busy_of_small;
};

struct Rates {
  std::string_view chip;             // as in arch.def
  int64_t l2_bytes;                  // that the L2 keeps until they are read again
  double kernel_us;                  // what one kernel more takes: of parts, of copies
  double part_bytes_per_us;          // of products in parts, which a second kernel adds; it reads them from the L2
  double copy_bytes_per_us;          // read and written, in rows of any alignment
  double pointwise_bytes_per_us;     // of memory, by a pointwise kernel
  double pointwise_flop_per_us;      // of all multiprocessors, beside as many instructions that are none
  double epilogue_bytes_per_us;      // by the epilogues of a product, beyond its own result
  double odd_epilogue_bytes_per_us;  // the same of tensors whose rows begin anywhere, beside sums in full registers
  double exact_root_us;              // a division or root of a tile, whose exact forms branch for each element
  PointerProductRates pointer_product;
};

/// The row of the target's chip; of one without, and of the host, the first.
const Rates& rates_of(std::string_view target);

}  // namespace kiln::target
