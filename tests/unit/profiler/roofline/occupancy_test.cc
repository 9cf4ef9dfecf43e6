// Expected values: the CUDA occupancy calculator's, for sm_80, sm_86 and sm_90.
#include "profiler/roofline/occupancy.h"

#include <gtest/gtest.h>

#if KILN_HAS_CUDA
#include <cuda_occupancy.h>
#endif

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

TEST(Occupancy, ClustersShareWhatTheSmsHold) {
  const target::Target& t = *target::find("sm_90a");
  const Occupancy two = occupancy(t, {384, 80, 100'000}), none = occupancy(t, {384, 80, 300'000});
  ASSERT_EQ(two.blocks_per_sm, 2);
  EXPECT_EQ(most_clusters(two, 132, 1), 264);
  EXPECT_EQ(most_clusters(two, 132, 2), 132);
  EXPECT_EQ(most_clusters(two, 132, 16), 16);  // and 8 blocks are left over
  EXPECT_EQ(most_clusters(two, 132, 17), 0) << "no chip has clusters of 17 blocks";
  EXPECT_EQ(most_clusters(none, 132, 2), 0);
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

TEST(Occupancy, AStepIsTheNextThatHelps) {
  for (const char* name : {"sm_80", "sm_89", "sm_90a"}) {
    const target::Target& t = *target::find(name);
    for (int threads : {32, 96, 256, 1024})
      for (int registers : {32, 40, 64, 128, 255})
        for (int64_t shared : {int64_t{0}, int64_t{100}, int64_t{20000}, int64_t{50000}, t.shared_per_block}) {
          SCOPED_TRACE(std::string(name) + " " + std::to_string(threads) + " " + std::to_string(registers) + " " +
                       std::to_string(shared));
          const BlockResources block{threads, registers, shared};
          const int now = occupancy(t, block).blocks_per_sm;
          auto r = fewer_registers(t, block);
          for (int less = registers - 1; less > 0; --less) {
            const bool helps = occupancy(t, {threads, less, shared}).blocks_per_sm > now;
            if (helps) {
              ASSERT_TRUE(r);
              EXPECT_EQ(r->needs, less);
              EXPECT_GT(r->gives.blocks_per_sm, now);
              break;
            }
            if (less == 1) {
              EXPECT_FALSE(r);
            }
          }
          auto s = less_shared(t, block);
          int64_t most = -1;
          for (int64_t less = shared - 1; less >= 0 && most < 0; --less)
            if (occupancy(t, {threads, registers, less}).blocks_per_sm > now) most = less;
          ASSERT_EQ(s.has_value(), most >= 0);
          if (s) {
            EXPECT_EQ(s->needs, most);
          }
        }
  }
}

#if KILN_HAS_CUDA

// NVIDIA's own calculator, over a sweep of everything that a block takes.
TEST(Occupancy, IsThatOfNvidiasCalculator) {
  for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    const target::Target& t = *target::find(name);
    cudaOccDeviceProp device = {};
    device.computeMajor = t.sm / 10;
    device.computeMinor = t.sm % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = t.threads_per_sm;
    device.regsPerBlock = 65536;
    device.regsPerMultiprocessor = t.registers_per_sm;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = static_cast<size_t>(t.shared_per_sm);
    device.numSms = 1;
    device.sharedMemPerBlockOptin = static_cast<size_t>(t.shared_per_block);
    device.reservedSharedMemPerBlock = 1024;
    int compared = 0;
    for (int threads = 32; threads <= 1024; threads += 32)
      for (int registers = 1; registers <= 255; registers += 3)
        for (int64_t shared :
             {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{9000}, int64_t{33333}, int64_t{49152}, int64_t{65536},
              int64_t{98304}, int64_t{101376}, t.shared_per_block, t.shared_per_block + 1}) {
          cudaOccFuncAttributes function = {};
          function.maxThreadsPerBlock = 1024;
          function.numRegs = registers;
          function.sharedSizeBytes = 0;
          function.partitionedGCConfig = PARTITIONED_GC_OFF;
          function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          function.maxDynamicSharedSizeBytes = static_cast<size_t>(t.shared_per_block);
          function.numBlockBarriers = 1;
          cudaOccDeviceState state = {};
          cudaOccResult want = {};
          const cudaOccError failed = cudaOccMaxActiveBlocksPerMultiprocessor(&want, &device, &function, &state,
                                                                              threads, static_cast<size_t>(shared));
          ASSERT_EQ(failed, CUDA_OCC_SUCCESS);
          const Occupancy got = occupancy(t, {threads, registers, shared});
          ++compared;
          ASSERT_EQ(got.blocks_per_sm, want.activeBlocksPerMultiprocessor)
              << name << " threads " << threads << " registers " << registers << " shared " << shared;
        }
    EXPECT_GT(compared, 20000);
  }
}

#endif

}  // namespace
}  // namespace kiln::profiler
