// The occupancy model against the driver's own answers, clusters among them.
#include "profiler/roofline/occupancy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kiln/tensor.h"
#include "support/dynlib.h"
#include "tests/gpu/gpu_test_util.h"

#if KILN_HAS_CUDA

#include <cuda.h>

namespace kiln::profiler {
namespace {

/// The driver's calls that only this test asks.
struct Calls {
  decltype(&cuModuleLoadData) load = nullptr;
  decltype(&cuModuleUnload) unload = nullptr;
  decltype(&cuModuleGetFunction) function = nullptr;
  decltype(&cuFuncGetAttribute) get = nullptr;
  decltype(&cuFuncSetAttribute) set = nullptr;
  decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor) blocks = nullptr;
  decltype(&cuOccupancyMaxActiveClusters) clusters = nullptr;
};

TEST(GpuOccupancy, BlocksAndClustersAreTheDrivers) {
  GPU_OR_SKIP(device);
  const target::Target* target = target::find(device.info().target);
  ASSERT_TRUE(target && target->is_cuda());
  if (!target->has(target::Feature::kTma)) GTEST_SKIP() << target->name << " has no clusters";
  const std::string names[] = {"libcuda.so.1"};
  auto driver = DynLib::open(names, "CUDA driver");
  ASSERT_TRUE(driver.ok());
  Calls call;
  call.load = driver->function<decltype(call.load)>("cuModuleLoadData");
  call.unload = driver->function<decltype(call.unload)>("cuModuleUnload");
  call.function = driver->function<decltype(call.function)>("cuModuleGetFunction");
  call.get = driver->function<decltype(call.get)>("cuFuncGetAttribute");
  call.set = driver->function<decltype(call.set)>("cuFuncSetAttribute");
  call.blocks = driver->function<decltype(call.blocks)>("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  call.clusters = driver->function<decltype(call.clusters)>("cuOccupancyMaxActiveClusters");
  ASSERT_TRUE(call.load && call.unload && call.function && call.get && call.set && call.blocks && call.clusters);
  ASSERT_TRUE(Tensor::zeros(device, DType::kF32, std::vector<int64_t>{1}).ok());  // its context is current then
  const int multiprocessors = device.info().compute_units;

  for (int threads : {128, 384, 1024}) {
    const std::string ptx =
        fmt::format(".version 8.0\n.target {}\n.address_size 64\n.visible .entry k()\n.maxntid {}\n{{\n  ret;\n}}\n",
                    target->name, threads);
    CUmodule module = nullptr;
    ASSERT_EQ(call.load(&module, ptx.c_str()), CUDA_SUCCESS) << ptx;
    CUfunction function = nullptr;
    ASSERT_EQ(call.function(&function, module, "k"), CUDA_SUCCESS);
    int registers = 0;
    ASSERT_EQ(call.get(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function), CUDA_SUCCESS);
    ASSERT_EQ(
        call.set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(target->shared_per_block)),
        CUDA_SUCCESS);
    ASSERT_EQ(call.set(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), CUDA_SUCCESS);
    for (int64_t shared : {0, 50'000, 100'000, 200'000}) {
      const Occupancy o = occupancy(*target, {threads, registers, shared});
      int blocks = 0;
      ASSERT_EQ(call.blocks(&blocks, function, threads, static_cast<size_t>(shared)), CUDA_SUCCESS);
      EXPECT_EQ(o.blocks_per_sm, blocks) << threads << " threads, " << shared << " bytes";
      std::string line = fmt::format(
          "{:4} threads {:6} B: {:2} blocks/SM; clusters at once, driver of at most:", threads, shared, blocks);
      for (int size : {1, 2, 4, 8, 16}) {
        CUlaunchAttribute cluster = {};
        cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster.value.clusterDim = {static_cast<unsigned>(size), 1, 1};
        CUlaunchConfig config = {};
        config.gridDimX = static_cast<unsigned>(size) * 1024, config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = static_cast<unsigned>(threads), config.blockDimY = config.blockDimZ = 1;
        config.sharedMemBytes = static_cast<unsigned>(shared);
        config.attrs = &cluster, config.numAttrs = 1;
        int clusters = 0;
        ASSERT_EQ(call.clusters(&clusters, function, &config), CUDA_SUCCESS) << size;
        const int64_t most = most_clusters(o, multiprocessors, size);
        EXPECT_LE(clusters, most) << size << " blocks of " << threads << " threads, " << shared << " bytes";
        EXPECT_GT(clusters, 0);
        // Without shared memory the driver counts 8 blocks per SM at most, as a carve-out of 8 KB would hold.
        if (size <= 2 && shared > 0) {
          EXPECT_EQ(clusters, most) << "SMs come in pairs, so none is left over";
        }
        line += fmt::format("  {}: {} of {}", size, clusters, most);
      }
      printf("%s\n", line.c_str());
    }
    ASSERT_EQ(call.unload(module), CUDA_SUCCESS);
  }
}

}  // namespace
}  // namespace kiln::profiler

#endif
