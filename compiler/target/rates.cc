#include "compiler/target/rates.h"

#include "compiler/target/target.h"

namespace kiln::target {

namespace {

// Measured on an H100 and an H200 (bench/results). A chip that is measured gets a row of its own here.
constexpr Rates kRates[] = {
    {.chip = "GH100",
     .l2_bytes = 48 << 20,
     .kernel_us = 2.0,
     .part_bytes_per_us = 3e6,
     .copy_bytes_per_us = 2.5e6,
     .pointwise_bytes_per_us = 2.95e6,
     .pointwise_flop_per_us = 1.5e7,
     .epilogue_bytes_per_us = 1.6e6,
     .odd_epilogue_bytes_per_us = 0.3e6,
     .exact_root_us = 1.5,
     // By mma.sync. 71 x 993 x 1399 halves, whose rows begin anywhere, take 17.5 us so, 14.6 copied.
     .pointer_product = {.launch_us = 3,
                         .step_us = 0.3,
                         .flop_per_us = 0.31e6,
                         .made_flop_per_us = 1e5,
                         .read_sides = 12,
                         .words_us = 0.7,
                         .by_16_us = 0.3,
                         .by_8_us = 0.5,
                         .by_4_us = 1.1,
                         .singly_us = 2.0,
                         .busy = {0.45, 0.8, 1.0},
                         .busy_of_large = {0.6, 1.0},
                         .busy_of_small = {0.45, 0.8, 1.0, 1.1}}},
};

}  // namespace

const Rates& rates_of(std::string_view target) {
  const Target* of = find(target);
  for (const Rates& row : kRates)
    if (of && row.chip == of->chip) return row;
  return kRates[0];
}

}  // namespace kiln::target
