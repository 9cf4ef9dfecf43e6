// The CUDA backend against the fake driver: every failure that a real machine has, without one.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "kiln/interrupt.h"
#include "kiln/tensor.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/driver_assembler.h"
#include "runtime/device/device.h"
#include "runtime/device/runtime.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/cuda/fake/fake_cuda.h"
#include "tests/unit/runtime/fake_compiler.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

FakeCuda& controls(const char* path) {
  // The same library that the runtime opens: a second dlopen() gives the same copy, with its state.
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return *reinterpret_cast<FakeCuda* (*)()>(dlsym(library, "fake_cuda"))();
}

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("KILN_CUDA_LIBRARY", FAKE_CUDA, 1);
    // All controls as they are by default, but for the context, which the library made as it was loaded.
    fake = FakeCuda();
    fake.made_context = context;
  }
  void TearDown() override { unsetenv("KILN_CUDA_MEMORY"); }
  // A device of this test alone, so that breaking it harms no other.
  std::shared_ptr<DeviceImpl> make_device(int ordinal = 0, const Runtime& runtime = test_runtime()) {
    auto backend = make_cuda_backend(ordinal);
    KILN_ASSERT(backend.ok(), "{}", backend.ok() ? "" : backend.error().message);
    return std::make_shared<DeviceImpl>(fmt::format("cuda:{}", ordinal), std::move(*backend),
                                        runtime.impl().shared_from_this());
  }
  Result<std::shared_ptr<LoadedKernel>> load(DeviceImpl& device, const std::string& name = "kernel_a",
                                             int64_t shared = 0) {
    KernelImage image;
    image.name = name;
    image.num_params = 3;
    image.num_warps = 8;
    image.shared_bytes = shared;
    std::string ptx = ".version 8.3\n.visible .entry " + name + "()";
    image.ptx = ptx;
    return device.backend().load(image);
  }
  static Status launch(DeviceImpl& device, const LoadedKernel& kernel, Grid grid = {2, 3, 4}) {
    // Upper halves that must not reach a parameter of four bytes.
    const uint64_t slots[] = {0x1111222233334444, 2, 0xffffffff00000003};
    return device.backend().launch(kernel, grid, slots, device.backend().default_stream());
  }
  std::string open_error() {
    auto driver = Driver::open();
    EXPECT_FALSE(driver.ok());
    if (driver.ok()) return {};
    EXPECT_EQ(driver.error().kind, ErrorKind::kDevice);
    return driver.error().message;
  }

  FakeCuda& fake = controls(FAKE_CUDA);
  const CUcontext context = fake.made_context;
};

TEST_F(CudaTest, AssemblesForItself) {
  auto device = make_device();
  const Assembler* assembler = device->backend().assembler();
  ASSERT_NE(assembler, nullptr);
  // An assembler is asked for at start-up, when a context costs a good part of a second.
  EXPECT_EQ(fake.contexts, 0) << "to ask who it is needs no context";
  EXPECT_TRUE(assembler->name().starts_with("driver ")) << assembler->name();
  auto done = assembler->assemble(".version 8.4");
  ASSERT_TRUE(done.ok()) << render(done.error());
  EXPECT_EQ(done->image, "code of .version 8.4");
  EXPECT_EQ(done->log, fake.info_log);
  EXPECT_EQ(fake.linked.size(), 1u);
  fake.failures["cuLinkAddData"] = {CUDA_ERROR_INVALID_PTX};
  fake.jit_log = "line 4; error: Not a name of any known instruction: 'foo'";
  auto refused = assembler->assemble("foo");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the driver rejects the generated PTX: " + fake.jit_log);
  EXPECT_EQ(fake.live_links, 0);
}

TEST_F(CudaTest, AnAssemblerThatSaysNothingIsAskedAgain) {
  // The driver's cache answers with an empty log; a comment at the end makes the text another one.
  fake.jit_cache = true;
  auto device = make_device();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(device->backend().assembler()->assemble("text")->log, fake.info_log);
  ASSERT_EQ(fake.linked.size(), 3u);
  EXPECT_TRUE(fake.linked[2].starts_with("text\n//")) << fake.linked[2];
}

TEST_F(CudaTest, ReadsThePtxOfItsTime) {
  // By CUDA's table: the newest PTX that each release reads.
  for (auto [driver, ptx] :
       {std::pair{12000, 80}, std::pair{12040, 84}, std::pair{12060, 85}, std::pair{12090, 88}, std::pair{13000, 90}}) {
    fake.driver_version = driver;
    const DriverAssembler assembler(*Driver::open(), [] { return Status{}; });
    EXPECT_EQ(assembler.ptx_version(), ptx);
  }
}

TEST_F(CudaTest, OpenErrorsAreOneSentenceEach) {
  setenv("KILN_CUDA_LIBRARY", "/no/such/libcuda.so.1", 1);
  EXPECT_EQ(open_error(), "no CUDA driver: /no/such/libcuda.so.1 not found");
  setenv("KILN_CUDA_LIBRARY", FAKE_CUDA_INCOMPLETE, 1);
  EXPECT_EQ(open_error(), "the CUDA driver " FAKE_CUDA_INCOMPLETE
                          " lacks cuLaunchKernel: install an NVIDIA driver for CUDA 12.0 or newer");
  setenv("KILN_CUDA_LIBRARY", FAKE_CUDA, 1);
  fake.driver_version = 11040;
  EXPECT_EQ(open_error(), "the NVIDIA driver is too old: it supports CUDA 11.4, and Kiln needs CUDA 12.0 or newer");
  fake.driver_version = 12000;
  fake.devices = 0;
  EXPECT_EQ(open_error(), "the CUDA driver finds no GPU");
  fake.devices = 1;
  fake.failures["cuInit"] = {CUDA_ERROR_UNKNOWN};
  EXPECT_EQ(open_error(), "cuInit(0) failed: CUDA_ERROR_UNKNOWN (the fake driver says so)");
  // A failure of the first call is not remembered.
  EXPECT_TRUE(Driver::open().ok());
}

TEST_F(CudaTest, MemoryThatHostAndKernelsShare) {
  auto device = make_device(1);
  EXPECT_EQ(device->backend().info().pci_bus, "0000:19:00.0");
  {
    auto memory = device->backend().shared_memory(64);
    ASSERT_TRUE(memory.ok());
    for (int i = 0; i < 64; ++i) EXPECT_EQ(static_cast<const char*>(memory->get())[i], 0);
    EXPECT_EQ(fake.live_host_blocks, 1);
  }
  EXPECT_EQ(fake.live_host_blocks, 0);
  fake.failures["cuMemHostAlloc"] = {CUDA_ERROR_OUT_OF_MEMORY};
  auto refused = device->backend().shared_memory(64);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kMemory);
}

TEST_F(CudaTest, NoSuchGpu) {
  fake.devices = 2;
  EXPECT_EQ(make_cuda_backend(2).error().message, "no device cuda:2: there are 2 GPUs");
  fake.devices = 1;
  EXPECT_EQ(make_cuda_backend(1).error().message, "no device cuda:1: there is 1 GPU");
}

TEST_F(CudaTest, InfoMakesNoContext) {
  auto device = make_device();
  DeviceInfo info = Device(device).info();
  EXPECT_EQ(info.name, "Fake GPU");
  EXPECT_EQ(info.target, "sm_90a");
  EXPECT_EQ(info.compute_units, 132);
  // The opt-in limit and not the 48 KiB that a kernel has without asking.
  EXPECT_EQ(info.shared_bytes, 232448);
  EXPECT_EQ(Device(device).free_bytes(), -1);
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRetain"), 0);
  EXPECT_TRUE(Device(device).synchronize().ok());
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRetain"), 0);
  Tensor t = *Tensor::zeros(Device(device), DType::kF32, Shape{4});
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRetain"), 1);
  // A block of 2 MiB is what the allocator takes for a small tensor.
  EXPECT_EQ(Device(device).free_bytes(), (1 << 30) - (2 << 20));
}

TEST_F(CudaTest, TargetsFollowTheCapability) {
  for (auto [major, minor, target] : {std::tuple{9, 0, "sm_90a"},
                                      {8, 0, "sm_80"},
                                      // Code of the 8.6 runs on the 8.7, and 10.3 has no code of its own: the nearest
                                      // older one is taken.
                                      {8, 7, "sm_86"},
                                      {8, 9, "sm_89"},
                                      {10, 0, "sm_100a"},
                                      {10, 3, "sm_90"},
                                      {7, 5, ""}}) {
    fake.major = major, fake.minor = minor;
    EXPECT_EQ(make_device()->target(), target) << major << "." << minor;
  }
}

TEST_F(CudaTest, TensorsGoThereAndBack) {
  Device device(make_device());
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.0f);
  Tensor t = *Tensor::from_host(device, DType::kF32, Shape{10, 100}, values.data(), 4000);
  EXPECT_EQ(t.to_doubles()->at(999), 999);
  // A transposed view is laid out by a kernel, which does nothing here, and on its way to the CPU by the host.
  Tensor columns = *t.as_strided(Shape{100, 10}, Shape{1, 100}, 0);
  ASSERT_TRUE(columns.contiguous().ok());
  EXPECT_EQ(fake.launches.size(), 1U);
  Tensor host = *columns.to(*open_device("cpu"));
  EXPECT_EQ(host.to_doubles()->at(1), 100);
  EXPECT_EQ(*host.to_doubles(), *columns.to_doubles());
  Tensor back = *host.to(device);
  EXPECT_EQ(*back.to_bytes(), *host.to_bytes());
  Tensor half = *t.to(DType::kF16);
  EXPECT_EQ(half.to_doubles()->at(7), 7);
  ASSERT_TRUE(t.as_strided(Shape{10}, Shape{100}, 5)->fill(-1).ok());
  EXPECT_EQ(fake.launches.size(), 2U);
  for (DType dtype : {DType::kI8, DType::kBF16, DType::kF32, DType::kF64, DType::kI64}) {
    Tensor filled = *Tensor::full(device, dtype, Shape{33}, 3);
    EXPECT_EQ(*filled.to_doubles(), std::vector<double>(33, 3.0)) << name(dtype);
    // Patterns of 8 bytes have no memset: the first elements are written and doubled.
    for (int64_t n : {4096, 4097, 20000}) {  // elements of 8 bytes are copied behind the first ones
      Tensor more = *Tensor::full(device, dtype, Shape{n}, 3);
      EXPECT_EQ(*more.to_doubles(), std::vector<double>(static_cast<size_t>(n), 3.0)) << name(dtype) << ' ' << n;
    }
  }
  EXPECT_EQ(Tensor::full(device, DType::kF64, Shape{2}, 0.1)->to_doubles()->at(1), 0.1);
  Device second(make_device(1));
  EXPECT_EQ(*t.to(second)->to_bytes(), *t.to_bytes());
  // Random numbers are the same on every device, since a seed must give the same run.
  EXPECT_EQ(*randn(device, DType::kF32, Shape{1000}, 5)->to_bytes(),
            *randn(*open_device("cpu"), DType::kF32, Shape{1000}, 5)->to_bytes());
}

TEST_F(CudaTest, LaunchPassesGridThreadsAndSlots) {
  auto device = make_device();
  auto kernel = load(*device, "kernel_a", 65536);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  EXPECT_EQ((*kernel)->registers(), 24);
  ASSERT_TRUE(launch(*device, **kernel).ok());
  ASSERT_EQ(fake.launches.size(), 1u);
  const auto& l = fake.launches[0];
  EXPECT_EQ(l.kernel, "kernel_a");
  EXPECT_EQ(l.grid[2], 4u);
  EXPECT_EQ(l.threads, 256u);
  EXPECT_EQ(l.shared, 65536u);
  // The upper half of the last slot is not zero: only four bytes may be read.
  EXPECT_EQ(l.params, (std::vector<uint64_t>{0x1111222233334444, 2, 3}))
      << "a 4-byte parameter is the low half of its slot";
}

// Programs are launched as clusters of blocks: twice the grid in its first dimension.
TEST_F(CudaTest, AProgramOfSeveralBlocksMayBeginEarly) {
  auto device = make_device();
  KernelImage image;
  image.name = "kernel_a";
  image.num_params = 3;
  image.num_ctas = 2;
  image.launch_pdl = true;
  image.ptx = ".version 8.3\n.visible .entry kernel_a()";
  auto kernel = device->backend().load(image);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  ASSERT_TRUE(launch(*device, **kernel).ok());
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_TRUE(fake.launches[0].early);
  EXPECT_EQ(fake.launches[0].grid[0], 4u);
  EXPECT_EQ(fake.launches[0].grid[1], 3u);
}

TEST_F(CudaTest, ALaunchMakesItsContextCurrentOnlyWhereItIsNot) {
  auto device = make_device();
  auto kernel = *load(*device);
  using Calls = std::vector<std::string>;
  const Calls once{"cuLaunchKernel"};
  // The cheapest way: no question which context is current, only another try after a refusal.
  auto calls_of_a_launch = [&] {
    fake.calls.clear();
    EXPECT_TRUE(launch(*device, *kernel).ok());
    return fake.calls;
  };
  EXPECT_EQ(calls_of_a_launch(), once);
  std::thread([&] {
    Calls calls = calls_of_a_launch();
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuLaunchKernel"), 2) << "refused without a context";
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuCtxSetCurrent"), 1);
    EXPECT_EQ(calls_of_a_launch(), once);
    // The program around Kiln uses a context of its own on this thread.
    auto driver = *Driver::open();
    ASSERT_EQ(driver->cuCtxSetCurrent(reinterpret_cast<CUcontext>(this)), CUDA_SUCCESS);
    EXPECT_EQ(calls_of_a_launch().back(), "cuLaunchKernel");
    EXPECT_EQ(calls_of_a_launch(), once);
  }).join();
  EXPECT_EQ(fake.launches.size(), 5u);
}

TEST_F(CudaTest, LoadErrors) {
  auto device = make_device();
  // One byte more than the device has.
  auto kernel = load(*device, "big", 232449);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(kernel.error().message,
            "kernel 'big' needs 232449 bytes of shared memory per program, and cuda:0 has 232448");
  fake.failures["cuModuleLoadDataEx(ptx)"] = {CUDA_ERROR_INVALID_PTX};
  fake.jit_log = "ptxas error: line 3";
  kernel = load(*device);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().message,
            "kernel 'kernel_a' does not load: cuModuleLoadDataEx(&module, ptx) failed: CUDA_ERROR_INVALID_PTX (the "
            "fake driver says so)");
  ASSERT_EQ(kernel.error().notes.size(), 1u);
  EXPECT_EQ(kernel.error().notes[0].message, "the driver says: ptxas error: line 3");
  // A module that does not load harms nothing, unlike a kernel that fails.
  EXPECT_TRUE(load(*device).ok()) << "the device is still usable";
}

TEST_F(CudaTest, ACubinThatTheDriverRefusesFallsBackToPtx) {
  auto device = make_device();
  KernelImage image;
  image.name = "k";
  image.cubin = "binary k";
  // Both are given: the PTX is for drivers that do not take the cubin.
  image.ptx = ".version k";
  ASSERT_TRUE(device->backend().load(image).ok());
  EXPECT_EQ(fake.count("cuModuleLoadDataEx(ptx)"), 0);
  fake.failures["cuModuleLoadDataEx(cubin)"] = {CUDA_ERROR_NO_BINARY_FOR_GPU};
  ASSERT_TRUE(device->backend().load(image).ok());
  EXPECT_EQ(fake.count("cuModuleLoadDataEx(ptx)"), 1);
  fake.failures["cuModuleLoadDataEx(cubin)"] = {CUDA_ERROR_NO_BINARY_FOR_GPU};
  image.ptx = {};
  EXPECT_FALSE(device->backend().load(image).ok());
}

class TensorMapTest : public CudaTest {
 protected:
  /// A kernel of (pointer, size, stride) whose tensor is f16[size, columns] in boxes of [64, 64].
  Result<std::shared_ptr<LoadedKernel>> load_with_map(DeviceImpl& device, bool stored = false, int64_t columns = 100) {
    // The recipe is evaluated at each launch, from the arguments.
    const HostExpression width{{{HostOp::kConstant, DType::kI32, columns}}}, one{{{HostOp::kConstant, DType::kI64, 1}}},
        size{{{HostOp::kParam, DType::kI32, 1}}}, stride{{{HostOp::kParam, DType::kI64, 2}}};
    const TensorMapRecipe recipe{
        "x", DType::kF16, {{{HostOp::kParam, DType::kU64, 0}}}, {size, width}, {stride, one}, {64, 64}, 128, stored};
    KernelImage image;
    image.name = "k";
    image.num_params = 3;
    image.num_warps = 8;
    image.extra_warps = 4;
    image.tensor_maps = std::span(&recipe, 1);
    image.ptx = ".version 8.3\n.visible .entry k()";
    fake.param_bytes = {8, 4, 8, 8};  // of a map, its number
    return device.backend().load(image);
  }
  static Status launch_map(DeviceImpl& device, const LoadedKernel& kernel, uint64_t address, uint64_t size,
                           uint64_t stride) {
    const uint64_t slots[] = {address, size, stride};
    return device.backend().launch(kernel, {1, 1, 1}, slots, device.backend().default_stream());
  }
  static std::string refusal(const Status& status) {
    EXPECT_FALSE(status.ok());
    if (status.ok()) return {};
    EXPECT_EQ(status.error().kind, ErrorKind::kLaunch);
    return status.error().message;
  }
};

TEST_F(TensorMapTest, LaunchesEncodeThemOnce) {
  auto device = make_device();
  auto kernel = load_with_map(*device);
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(launch_map(*device, **kernel, 0x10000, 7, 104).ok());
  // The same arguments: the map of the last launch is used again.
  ASSERT_TRUE(launch_map(*device, **kernel, 0x10000, 7, 104).ok());
  ASSERT_EQ(fake.tensor_maps.size(), 1u);
  const FakeCuda::TensorMap& map = fake.tensor_maps[0];
  EXPECT_EQ(map.dtype, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  EXPECT_EQ(map.swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(map.address, 0x10000u);
  // In the driver's order, the innermost dimension first.
  EXPECT_EQ(map.sizes, (std::vector<uint64_t>{100, 7}));
  EXPECT_EQ(map.strides, (std::vector<uint64_t>{208}));
  EXPECT_EQ(map.box, (std::vector<uint32_t>{64, 64}));
  ASSERT_TRUE(launch_map(*device, **kernel, 0x20000, 7, 104).ok());
  ASSERT_EQ(fake.launches.size(), 3u);
  // Eight warps and the four that load.
  EXPECT_EQ(fake.launches[0].threads, 12u * 32);
  EXPECT_EQ(fake.launches[0].params, (std::vector<uint64_t>{0x10000, 7, 104, 0}));
  EXPECT_EQ(fake.launches[1].params.back(), 0u);
  EXPECT_EQ(fake.launches[2].params.back(), 1u);
}

TEST_F(TensorMapTest, RefusalsNameTheTensor) {
  auto device = make_device();
  auto kernel = *load_with_map(*device), writes = *load_with_map(*device, true, 96);
  auto ragged = *load_with_map(*device, true, 100);
  // Rows of 200 bytes can be read, as the rest of a box is cut off, and not written.
  EXPECT_EQ(refusal(launch_map(*device, *ragged, 0x10000, 7, 104)),
            "kernel 'k': TMA cannot write tensor 'x': its rows have 200 bytes, which is no multiple of 16");
  EXPECT_EQ(refusal(launch_map(*device, *kernel, 0x10008, 7, 104)),
            "kernel 'k': TMA cannot read tensor 'x': it starts at an address that is 8 bytes off a multiple of 16");
  EXPECT_EQ(refusal(launch_map(*device, *writes, 0x10000, 7, 101)),
            "kernel 'k': TMA cannot write tensor 'x': its dimension 0 has a stride of 202 bytes, which is no multiple "
            "of 16 below 2^40");
  // As an i32 the size is -1.
  EXPECT_EQ(refusal(launch_map(*device, *kernel, 0x10000, 0xffffffff, 104)),
            "kernel 'k': TMA cannot read tensor 'x': its dimension 0 has -1 elements");
  fake.failures["cuTensorMapEncodeTiled"] = {CUDA_ERROR_UNKNOWN};
  EXPECT_EQ(refusal(launch_map(*device, *kernel, 0x10000, 7, 104)),
            "kernel 'k': TMA cannot read tensor 'x': cuTensorMapEncodeTiled failed: CUDA_ERROR_UNKNOWN (the fake "
            "driver says so)");
  EXPECT_TRUE(fake.launches.empty());
  EXPECT_TRUE(launch_map(*device, *kernel, 0x10000, 7, 104).ok());
}

TEST_F(TensorMapTest, OneRowNeedsNoStride) {
  auto device = make_device();
  auto kernel = *load_with_map(*device);
  // A stride of one row is never used, so that its alignment does not matter.
  EXPECT_TRUE(launch_map(*device, *kernel, 0x10000, 1, 101).ok());
}

TEST_F(TensorMapTest, EmptyTensorsReadZerosOfOurOwn) {
  auto device = make_device();
  auto reads = *load_with_map(*device), writes = *load_with_map(*device, true, 96);
  ASSERT_TRUE(launch_map(*device, *reads, 0, 0, 104).ok());
  ASSERT_TRUE(launch_map(*device, *writes, 8, 0, 104).ok());
  ASSERT_EQ(fake.tensor_maps.size(), 2u);
  // A map of no elements is refused by the driver; one zero of our own stands for them.
  EXPECT_EQ(fake.tensor_maps[0].sizes, (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(fake.tensor_maps[0].address), 0u);
  EXPECT_NE(fake.tensor_maps[0].address, fake.tensor_maps[1].address);
}

TEST_F(CudaTest, RefusedLaunchNamesTheKernelAndKeepsTheDevice) {
  auto device = make_device();
  auto kernel = *load(*device);
  // No fault: the kernel never ran.
  fake.failures["cuLaunchKernel"] = {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES};
  auto status = launch(*device, *kernel);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(status.error().message,
            "kernel 'kernel_a' over a grid of 2x3x4 with 256 threads and 0 bytes of shared memory per program: "
            "cuLaunchKernel failed: "
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (the fake driver says so)");
  EXPECT_TRUE(launch(*device, *kernel).ok());
}

TEST_F(CudaTest, AFaultNamesTheKernelAndBreaksTheDevice) {
  auto device = make_device();
  Tensor t = *Tensor::zeros(Device(device), DType::kF32, Shape{8});
  auto kernel = *load(*device);
  ASSERT_TRUE(launch(*device, *kernel).ok());
  // The fault shows at the next wait, and is that of the kernel.
  fake.failures["cuStreamSynchronize"] = {CUDA_ERROR_ILLEGAL_ADDRESS};
  auto status = Device(device).default_stream().synchronize();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(status.error().message,
            "kernel 'kernel_a' on cuda:0 read or wrote an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)");
  const std::string later = "the context of cuda:0 is lost since kernel 'kernel_a' failed; start kiln again to use it";
  for (const Status& s : {launch(*device, *kernel), Device(device).synchronize(), t.fill(1)}) {
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().kind, ErrorKind::kDevice);
    EXPECT_EQ(s.error().message, later);
  }
  EXPECT_EQ(t.to_bytes().error().message, later);
  EXPECT_EQ(load(*device, "other").error().message, later);
  // Memory of a lost context cannot be had either.
  EXPECT_EQ(Tensor::zeros(Device(device), DType::kF32, Shape{4 << 20}).error().message, later);
  t.free();
}

TEST_F(CudaTest, AFaultMetByALoadIsThatOfTheKernelBefore) {
  auto device = make_device();
  auto kernel = *load(*device, "bad");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(launch(*device, *kernel).ok());
  // The load itself is fine; it is the first call that meets the fault.
  fake.failures["cuModuleLoadDataEx(ptx)"] = {CUDA_ERROR_INVALID_ADDRESS_SPACE};
  auto loaded = load(*device, "good");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message,
            "kernel 'bad' on cuda:0 used an address of the wrong memory space (CUDA error 717)");
  EXPECT_EQ(load(*device, "good").error().message,
            "the context of cuda:0 is lost since kernel 'bad' failed; start kiln again to use it");
}

TEST_F(CudaTest, AWaitForAKernelThatSpinsCanBeInterrupted) {
  auto device = make_device();
  Tensor t = *Tensor::zeros(Device(device), DType::kF32, Shape{8});
  auto kernel = *load(*device, "spin");
  ASSERT_TRUE(launch(*device, *kernel).ok());
  auto event = std::move(*device->backend().record(device->backend().default_stream()));
  // Never ready: both queries are what an interruptible wait asks in turns.
  fake.failures["cuStreamQuery"] = fake.failures["cuEventQuery"] = {CUDA_ERROR_NOT_READY, 0, 1 << 30};
  for (int kind = 0; kind < 5; ++kind) {
    std::chrono::steady_clock::time_point pressed;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      pressed = std::chrono::steady_clock::now();
      request_interrupt();
    });
    std::vector<std::byte> bytes(32);
    Status s = kind == 0   ? device->backend().default_stream().synchronize()
               : kind == 1 ? Device(device).synchronize()
               : kind == 2 ? event->synchronize()
               : kind == 3
                   ? device->backend().copy_out(bytes.data(), t.address(), 32, device->backend().default_stream())
                   : device->backend().copy_in(t.address(), bytes.data(), 32, device->backend().default_stream());
    // From the moment of the interrupt, since the threads start at their own time.
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - pressed;
    other.join();
    clear_interrupt();
    ASSERT_FALSE(s.ok()) << kind;
    EXPECT_EQ(s.error().kind, ErrorKind::kInterrupted);
    EXPECT_EQ(s.error().message, "interrupted; kernel 'spin' still runs on cuda:0");
    EXPECT_LT(took.count(), 0.1);
  }
  fake.failures.clear();
  // The kernel runs on and ends some day; nothing was lost.
  EXPECT_TRUE(Device(device).synchronize().ok()) << "the device is not broken";
}

TEST_F(CudaTest, AKernelThatTakesLongerThanItsTimeoutIsToldAndRunsOn) {
  auto device = make_device();
  auto kernel = *load(*device, "spin");
  const uint64_t slots[] = {1, 2, 3};
  StreamImpl& stream = device->backend().default_stream();
  // The stream is empty at once, so the timeout has nothing to tell.
  EXPECT_TRUE(device->backend().launch(*kernel, {1, 1, 1}, slots, stream, 0.5).ok());
  EXPECT_GE(fake.count("cuStreamQuery"), 1) << "it is waited for";
  fake.failures["cuStreamQuery"] = {CUDA_ERROR_NOT_READY, 0, 1 << 30};
  Status s = device->backend().launch(*kernel, {1, 1, 1}, slots, stream, 0.03);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::kLaunch);
  EXPECT_EQ(s.error().message, "kernel 'spin' still runs on cuda:0 after 0.03 s, its timeout");
  fake.failures.clear();
  const int queries = fake.count("cuStreamQuery");
  EXPECT_TRUE(device->backend().launch(*kernel, {1, 1, 1}, slots, stream).ok());
  EXPECT_EQ(fake.count("cuStreamQuery"), queries) << "a launch without a timeout waits for nothing";
}

TEST_F(CudaTest, AFaultAfterSeveralLaunchesSaysWhichWasLast) {
  auto device = make_device();
  auto first = *load(*device, "first"), second = *load(*device, "second");
  ASSERT_TRUE(launch(*device, *first).ok());
  // What was waited for successfully cannot be the cause later.
  ASSERT_TRUE(Device(device).default_stream().synchronize().ok());
  ASSERT_TRUE(launch(*device, *first).ok());
  ASSERT_TRUE(launch(*device, *second).ok());
  fake.failures["cuStreamSynchronize"] = {CUDA_ERROR_LAUNCH_FAILED};
  EXPECT_EQ(Device(device).default_stream().synchronize().error().message,
            "a kernel on cuda:0 failed while running (CUDA_ERROR_LAUNCH_FAILED); kernel 'second' was launched last, of "
            "2 since the stream was last idle");
}

TEST_F(CudaTest, AFaultSeenByACopyIsTheKernelsFault) {
  auto device = make_device();
  Tensor t = *Tensor::zeros(Device(device), DType::kF32, Shape{8});
  auto kernel = *load(*device);
  ASSERT_TRUE(launch(*device, *kernel).ok());
  fake.failures["cuMemcpyDtoHAsync"] = {CUDA_ERROR_ILLEGAL_ADDRESS};
  EXPECT_EQ(t.to_bytes().error().message,
            "kernel 'kernel_a' on cuda:0 read or wrote an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)");
}

TEST_F(CudaTest, AFaultAfterUnloadingNamesNobody) {
  auto device = make_device();
  {
    auto kernel = *load(*device);
    ASSERT_TRUE(launch(*device, *kernel).ok());
  }
  // A module is unloaded with its kernel, and with it the name of who failed.
  EXPECT_EQ(fake.live_modules, 0);
  fake.failures["cuStreamSynchronize"] = {CUDA_ERROR_ILLEGAL_ADDRESS};
  EXPECT_EQ(Device(device).default_stream().synchronize().error().message,
            "a kernel on cuda:0 read or wrote an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)");
}

TEST_F(CudaTest, OutOfMemoryGivesFiguresAndIsNoFault) {
  Device device(make_device());
  Tensor a = *Tensor::empty(device, DType::kF32, Shape{150 << 20});
  auto b = Tensor::empty(device, DType::kF32, Shape{150 << 20});
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(b.error().kind, ErrorKind::kMemory);
  EXPECT_EQ(b.error().message,
            "out of memory on cuda:0: asked for 600.0 MiB, 424.0 MiB free, 600.0 MiB in use by tensors, 0 B were "
            "cached and given back");
  a.free();
  // The cache gives back what it holds before it says that there is no memory.
  EXPECT_TRUE(Tensor::empty(device, DType::kF32, Shape{200 << 20}).ok()) << "the cached 600 MiB are given back for 800";
}

TEST_F(CudaTest, MemoryLimit) {
  setenv("KILN_CUDA_MEMORY", "100M", 1);
  Device device(make_device());
  // Given back at the end of the statement, so the limit is free again.
  EXPECT_TRUE(Tensor::empty(device, DType::kI8, Shape{90 << 20}).ok());
  auto second = Tensor::empty(device, DType::kI8, Shape{101 << 20});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kMemory);
  // Read by each device as it is made.
  setenv("KILN_CUDA_MEMORY", "lots", 1);
  EXPECT_EQ(Tensor::empty(Device(make_device()), DType::kI8, Shape{1}).error().kind, ErrorKind::kValue);
}

TEST_F(CudaTest, StreamsEventsAndTheirEnd) {
  auto impl = make_device();
  Device device(impl);
  {
    Stream side = *device.new_stream();
    Event from = *device.record(), to = *device.record(side);
    EXPECT_TRUE(side.wait(from).ok());
    EXPECT_EQ(fake.count("cuStreamWaitEvent"), 1);
    EXPECT_GE(*device.elapsed_ms(from, to), 0);
    // The side stream and the default one.
    EXPECT_EQ(fake.live_streams, 2);
    EXPECT_EQ(fake.live_events, 2);
    Device other(make_device(1));
    // Objects of another device are refused before the driver sees them.
    EXPECT_EQ(other.record(side).error().kind, ErrorKind::kValue);
    EXPECT_EQ(other.elapsed_ms(from, to).error().kind, ErrorKind::kValue);
    Event on_cpu = *open_device("cpu")->record();
    EXPECT_EQ(side.wait(on_cpu).error().kind, ErrorKind::kValue);
  }
  EXPECT_EQ(fake.live_streams, 1) << "the default stream";
  EXPECT_EQ(fake.live_events, 0);
  // Freed into the cache of the device, which must give it back at its end.
  { Tensor t = *Tensor::zeros(device, DType::kF32, Shape{100}); }
  device = Device();
  impl.reset();
  EXPECT_EQ(fake.live_streams, 0);
  EXPECT_EQ(fake.memory_used, 0u);
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaTest, ATensorUsedOnASideStreamIsNotReusedEarly) {
  Device device(make_device());
  Stream side = *device.new_stream();
  Tensor t = *Tensor::empty(device, DType::kF32, Shape{1 << 20});
  uint64_t address = t.address();
  t.storage()->used_on(*side.impl());
  // Not ready once: the first try must take other memory, the second may have this.
  fake.failures["cuEventQuery"] = {CUDA_ERROR_NOT_READY, 0, 1};
  t.free();
  Tensor second = *Tensor::empty(device, DType::kF32, Shape{1 << 20});
  EXPECT_NE(second.address(), address);
  Tensor third = *Tensor::empty(device, DType::kF32, Shape{1 << 20});
  EXPECT_EQ(third.address(), address);
}

TEST_F(CudaTest, KernelsGoThroughTheCompilerToTheDriver) {
  // The fake compiler's results must not land in the user's cache.
  setenv("KILN_CACHE", "0", 1);
  Recorder recorder;
  const Runtime runtime = make_runtime(std::make_unique<Jit>(fake_compiler(recorder), [](const std::string&) {}));
  Program program("@triton.jit\ndef add(x, y, n, BLOCK: tl.constexpr):\n    pass\n");
  Kernel add = Kernel::from_function(program.functions.at("add"));
  using Args = std::vector<std::optional<Arg>>;
  Device device(make_device(0, runtime)), cpu = *runtime.open("cpu");
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{64}), y = *Tensor::zeros(device, DType::kF32, Shape{64});
  LaunchOptions options;
  options.num_warps = 2;
  options.stream = *device.new_stream();
  Status status = add.launch({5, 1, 1}, Args{x, y, int64_t{64}, int64_t{16}}, options);
  ASSERT_TRUE(status.ok()) << render(status.error());
  EXPECT_EQ(recorder.targets.back(), "sm_90a");
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].kernel, "add");
  EXPECT_EQ(fake.launches[0].threads, 64u);
  EXPECT_EQ(fake.launches[0].params, (std::vector<uint64_t>{x.address(), y.address(), 64}));
  // A launch on a side stream marks its tensors: freeing one records an event there.
  int events = fake.count("cuEventRecord");
  y.free();
  EXPECT_EQ(fake.count("cuEventRecord"), events + 1);
  // So does one that repeats the last specialisation.
  Tensor other = *Tensor::zeros(device, DType::kF32, Shape{64});
  ASSERT_TRUE(add.launch({5, 1, 1}, Args{x, other, int64_t{64}, int64_t{16}}, options).ok());
  ASSERT_EQ(fake.launches.size(), 2u);
  EXPECT_EQ(fake.launches[1].stream, fake.launches[0].stream);
  events = fake.count("cuEventRecord");
  other.free();
  EXPECT_EQ(fake.count("cuEventRecord"), events + 1);
  Tensor host = *Tensor::zeros(cpu, DType::kF32, Shape{64});
  status = add.launch({5, 1, 1}, Args{x, host, int64_t{64}, int64_t{16}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "kernel 'add': 'x' is on cuda:0 and 'y' is on cpu");
  status = add.launch({5, 1, 1}, Args{host, host, int64_t{64}, int64_t{16}}, options);
  EXPECT_EQ(status.error().message,
            "kernel 'add': the stream belongs to another device than its tensors, which are on cpu");
  // 7.5: older than every target that there is.
  fake.major = 7, fake.minor = 5;
  Device old(make_device(0, runtime));
  Tensor z = *Tensor::zeros(old, DType::kF32, Shape{64});
  status = add.launch({5, 1, 1}, Args{z, z, int64_t{64}, int64_t{16}});
  EXPECT_EQ(status.error().message,
            "kernel 'add': cuda:0 (Fake GPU) is older than every GPU that Kiln compiles for; use device cpu");
  unsetenv("KILN_CACHE");
}

}  // namespace
}  // namespace kiln::runtime
