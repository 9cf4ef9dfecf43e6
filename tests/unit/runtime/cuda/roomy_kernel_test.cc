// Kernels with a second code for few blocks, against the fake driver: which one a launch runs, and when it is loaded.
#include "runtime/cuda/roomy_kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "kiln/graph.h"
#include "kiln/tensor.h"
#include "runtime/device/runtime.h"
#include "support/diag.h"
#include "tests/unit/runtime/cuda/fake/fake_device.h"
#include "tests/unit/runtime/fake_compiler.h"

namespace kiln::runtime {
namespace {

using Codes = std::vector<std::string>;

class RoomyKernelTest : public FakeDeviceTest {
 protected:
  /// Two blocks of the second code share an SM.
  std::shared_ptr<LoadedKernel> load(int num_ctas = 1) {
    const RoomyCode roomy{"roomy k", 120, 2};
    KernelImage image;
    image.name = "k";
    image.num_params = 3;
    image.num_ctas = num_ctas;
    image.cubin = "own k";
    image.roomy = &roomy;
    auto kernel = impl->backend().load(image);
    KILN_ASSERT(kernel.ok(), "{}", kernel.ok() ? "" : kernel.error().message);
    return *kernel;
  }
  Status launch(const LoadedKernel& kernel, Grid grid) const {
    const uint64_t slots[] = {1, 2, 3};
    return impl->backend().launch(kernel, grid, slots, impl->backend().default_stream());
  }
  Codes launched() const {
    Codes codes;
    for (const FakeCuda::Launch& l : fake->launches) codes.push_back(l.code);
    return codes;
  }
  int loads() const { return fake->count("cuModuleLoadDataEx(cubin)"); }
};

constexpr uint32_t kRoom = 2 * 132;  // of the fake's GPU

TEST_F(RoomyKernelTest, TheGridChooses) {
  auto kernel = load();
  ASSERT_TRUE(launch(*kernel, {kRoom + 1, 1, 1}).ok());
  EXPECT_EQ(loads(), 1) << "the second code is loaded when it is wanted";
  EXPECT_FALSE(kernel->ran_roomy());
  ASSERT_TRUE(launch(*kernel, {kRoom / 4, 2, 2}).ok());
  EXPECT_TRUE(kernel->ran_roomy());
  ASSERT_TRUE(launch(*kernel, {1, 1, 1}).ok());
  ASSERT_TRUE(launch(*kernel, {kRoom / 4, 2, 3}).ok());
  EXPECT_FALSE(kernel->ran_roomy());
  EXPECT_EQ(loads(), 2) << "once";
  EXPECT_EQ(launched(), (Codes{"own k", "roomy k", "roomy k", "own k"}));
  EXPECT_EQ(fake->launches[1].params, (std::vector<uint64_t>{1, 2, 3}));
  kernel.reset();
  EXPECT_EQ(fake->live_modules, 0);
}

TEST_F(RoomyKernelTest, ProgramsOfAClusterCountAsItsBlocks) {
  auto kernel = load(4);
  ASSERT_TRUE(launch(*kernel, {kRoom / 4, 1, 1}).ok());
  ASSERT_TRUE(launch(*kernel, {kRoom / 4 + 1, 1, 1}).ok());
  EXPECT_EQ(launched(), (Codes{"roomy k", "own k"}));
  EXPECT_EQ(fake->launches[0].grid[0], kRoom);
}

TEST_F(RoomyKernelTest, WhatDoesNotLoadIsDoneWithout) {
  auto kernel = load();
  fake->failures["cuModuleLoadDataEx(cubin)"] = {CUDA_ERROR_OUT_OF_MEMORY};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(launch(*kernel, {1, 1, 1}).ok());
  EXPECT_EQ(launched(), (Codes{"own k", "own k"}));
  EXPECT_EQ(loads(), 2) << "tried once";
  EXPECT_FALSE(kernel->ran_roomy());
}

TEST_F(RoomyKernelTest, AFaultThatItsLoadMeetsIsReported) {
  auto kernel = load();
  ASSERT_TRUE(launch(*kernel, {kRoom + 1, 1, 1}).ok());
  fake->failures["cuModuleLoadDataEx(cubin)"] = {CUDA_ERROR_ILLEGAL_ADDRESS};
  const Status status = launch(*kernel, {1, 1, 1});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kLaunch);
  EXPECT_NE(status.error().message.find("kernel 'k' on cuda:0"), std::string::npos) << status.error().message;
}

TEST_F(RoomyKernelTest, AGraphKeepsTheCodeThatItLaunches) {
  auto kernel = load();
  auto graph = Graph::capture(Device(impl), [&] { return launch(*kernel, {1, 1, 1}); });
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(fake->launches.empty());
  kernel.reset();
  EXPECT_EQ(fake->live_modules, 1) << "its own code is gone";
  ASSERT_TRUE(graph->launch().ok());
  EXPECT_EQ(launched(), Codes{"roomy k"});
}

TEST_F(RoomyKernelTest, ThreadsLoadItOnce) {
  auto kernel = load();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) EXPECT_TRUE(launch(*kernel, {n % 2 ? kRoom + 1 : 1, 1, 1}).ok());
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(loads(), 2);
  EXPECT_EQ(fake->launches.size(), 80u);
}

TEST_F(RoomyKernelTest, ALaunchTellsOfTheCodeThatItRan) {
  setenv("KILN_CACHE", "0", 1);
  Recorder recorder;
  Compiler compiler = fake_compiler(recorder);
  compiler.compile = [fakes = compiler.compile](const auto& function, auto args,
                                                const auto& options) -> Result<CompiledKernel> {
    KILN_TRY(CompiledKernel k, fakes(function, args, options));
    k.cubin = "own add", k.registers = 60, k.spill_bytes = 0;
    k.roomy = RoomyCode{"roomy add", 120, 2};
    return k;
  };
  const Runtime runtime = make_runtime(std::make_unique<Jit>(std::move(compiler), [](const std::string&) {}));
  auto backend = make_cuda_backend(0);
  ASSERT_TRUE(backend.ok());
  const Device device(std::make_shared<DeviceImpl>("cuda:0", std::move(*backend), runtime.impl().shared_from_this()));
  Program program("@triton.jit\ndef add(x, y, n):\n    pass\n");
  const Kernel add = Kernel::from_function(program.functions.at("add"));
  const Tensor x = *Tensor::zeros(device, DType::kF32, std::vector<int64_t>{64});
  auto registers_of = [&](int64_t programs) {
    const Status status = add.launch({programs, 1, 1}, std::vector<std::optional<Arg>>{x, x, int64_t{64}});
    EXPECT_TRUE(status.ok());
    const auto info = add.launched();
    EXPECT_TRUE(add.was_launched_as(info.get()));
    return info->registers;
  };
  EXPECT_EQ(registers_of(kRoom + 1), 60);
  EXPECT_EQ(registers_of(kRoom), 120);
  EXPECT_EQ(registers_of(kRoom + 1), 60);
  EXPECT_EQ(launched(), (Codes{"own add", "roomy add", "own add"}));
  // Samples of either lead to source lines.
  Codes listed;
  for (const auto& code : loaded_code(device)) listed.push_back(code->cubin);
  EXPECT_EQ(listed, (Codes{"roomy add", "own add"}));
  unsetenv("KILN_CACHE");
}

}  // namespace
}  // namespace kiln::runtime
