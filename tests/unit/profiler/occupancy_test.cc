// Expected values: the CUDA occupancy calculator's, for sm_80, sm_86 and sm_90.
#include "profiler/occupancy.h"

#include <gtest/gtest.h>

namespace kiln::profiler {
namespace {

struct Known {
  const char* target;
  int threads, registers;
  int64_t shared;
  int blocks;
  OccupancyLimiter limiter;
};

TEST(Occupancy, KnownValues) {
  const Known kKnown[] = {
      {"sm_90a", 128, 32, 0, 16, OccupancyLimiter::kThreads},
      {"sm_90a", 32, 16, 0, 32, OccupancyLimiter::kBlocks},
      {"sm_90a", 256, 32, 0, 8, OccupancyLimiter::kThreads},
      {"sm_90a", 256, 64, 0, 4, OccupancyLimiter::kRegisters},
      {"sm_90a", 256, 33, 0, 6, OccupancyLimiter::kRegisters},   // 40 registers are taken
      {"sm_90a", 128, 255, 0, 2, OccupancyLimiter::kRegisters},  // 64 per warp side: 16384 / 8192 = 2 warps × 4
      {"sm_90a", 1024, 64, 0, 1, OccupancyLimiter::kRegisters},
      {"sm_90a", 384, 168, 0, 1, OccupancyLimiter::kRegisters},  // warp-specialised GEMM: 3 warps per side, 12 in all
      {"sm_90a", 128, 32, 65536, 3, OccupancyLimiter::kSharedMemory},
      {"sm_90a", 128, 32, 232448, 1, OccupancyLimiter::kSharedMemory},
      {"sm_90a", 128, 32, 232449, 0, OccupancyLimiter::kDoesNotFit},
      {"sm_80", 128, 32, 98304, 1, OccupancyLimiter::kSharedMemory},
      {"sm_80", 256, 40, 0, 6, OccupancyLimiter::kRegisters},
      {"sm_86", 256, 32, 0, 6, OccupancyLimiter::kThreads},  // 1536 threads
      {"sm_86", 32, 16, 0, 16, OccupancyLimiter::kBlocks},
  };
  for (const Known& k : kKnown) {
    SCOPED_TRACE(std::string(k.target) + " threads " + std::to_string(k.threads) + " registers " +
                 std::to_string(k.registers) + " shared " + std::to_string(k.shared));
    Occupancy o = occupancy(*target::find(k.target), {k.threads, k.registers, k.shared});
    EXPECT_EQ(o.blocks_per_sm, k.blocks);
    EXPECT_EQ(name(o.limiter), name(k.limiter));
    EXPECT_EQ(o.warps_per_sm, k.blocks * ((k.threads + 31) / 32));
  }
}

TEST(Occupancy, FractionIsOfTheWarpsOfAnSm) {
  EXPECT_DOUBLE_EQ(occupancy(*target::find("sm_90a"), {256, 64, 0}).fraction, 0.5);
  EXPECT_DOUBLE_EQ(occupancy(*target::find("sm_90a"), {384, 168, 0}).fraction, 12.0 / 64);
}

TEST(Occupancy, HostHasNone) { EXPECT_EQ(occupancy(*target::find("host"), {128, 32, 0}).blocks_per_sm, 0); }

TEST(Occupancy, RegistersForAGivenNumberOfBlocks) {
  const target::Target& t = *target::find("sm_90a");
  for (int blocks : {1, 2, 3, 4, 8}) {
    int r = registers_for(t, {256, 0, 0}, blocks);
    ASSERT_GT(r, 0);
    EXPECT_GE(occupancy(t, {256, r, 0}).by_registers, blocks);
    if (r < 255) {
      EXPECT_LT(occupancy(t, {256, r + 1, 0}).by_registers, blocks);
    }
  }
}

}  // namespace
}  // namespace kiln::profiler
