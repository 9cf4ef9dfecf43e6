// The caller's own CUcontext and CUstream, against the fake driver.
#include "kiln/interop.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/cuda/function_launch.h"
#include "runtime/device/device.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/cuda/fake/fake_cuda.h"

namespace kiln::runtime {
namespace {

class InteropTest : public testing::Test {
 protected:
  static FakeCuda& open_fake() {
    setenv("KILN_CUDA_LIBRARY", FAKE_CUDA, 1);
    return *reinterpret_cast<FakeCuda* (*)()>(dlsym(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL), "fake_cuda"))();
  }
  void SetUp() override {
    const CUcontext made = fake.made_context;
    fake = FakeCuda();
    fake.made_context = made;
  }
  static std::shared_ptr<LoadedKernel> load(const Device& device) {
    KernelImage image;
    image.name = "kernel_a";
    image.num_params = 3;
    image.ptx = ".version 8.3\n.visible .entry kernel_a()";
    auto loaded = device.impl()->backend().load(image);
    EXPECT_TRUE(loaded.ok());
    return *loaded;
  }
  static Status launch(const Device& device, const LoadedKernel& kernel, const Stream& stream) {
    const uint64_t slots[] = {1, 2, 3};
    return device.impl()->backend().launch(kernel, {1, 1, 1}, slots, *stream.impl());
  }
  CUstream new_stream() {
    CUstream stream = nullptr;
    auto* library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    reinterpret_cast<CUresult (*)(CUstream*, unsigned)>(dlsym(library, "cuStreamCreate"))(&stream,
                                                                                          CU_STREAM_NON_BLOCKING);
    return stream;
  }

  FakeCuda& fake = open_fake();
};

TEST_F(InteropTest, WorksInTheCallersContext) {
  auto device = device_from_cuda(test_runtime(), fake.made_context);
  ASSERT_TRUE(device.ok()) << render(device.error());
  EXPECT_EQ(fake.contexts, 0) << "the primary context was retained";
  EXPECT_EQ(device->name(), "cuda:0");
  auto again = device_from_cuda(test_runtime(), fake.made_context);
  EXPECT_EQ(device->impl(), again->impl());
  const auto kernel = load(*device);
  CUstream native = new_stream();
  {
    auto stream = stream_from_cuda(*device, native);
    ASSERT_TRUE(stream.ok()) << render(stream.error());
    EXPECT_EQ(stream_from_cuda(*device, native)->impl(), stream->impl());
    EXPECT_EQ(*cuda_stream(*device, *stream), native);
    fake.calls.clear();
    const Status launched = launch(*device, *kernel, *stream);
    ASSERT_TRUE(launched.ok()) << render(launched.error());
    EXPECT_EQ(fake.calls, std::vector<std::string>{"cuLaunchKernel"}) << "a launch is one call of the driver";
    EXPECT_EQ(fake.launches.at(0).stream, native);
    fake.calls.clear();
  }
  EXPECT_EQ(fake.count("cuStreamDestroy"), 0);
  EXPECT_EQ(fake.count("cuStreamSynchronize"), 0);
  EXPECT_EQ(fake.live_streams, 2) << "the caller's and the device's default";
}

TEST_F(InteropTest, ForgetsADeviceWithItsLastHandle) {
  const DeviceImpl* first = nullptr;
  {
    auto device = device_from_cuda(test_runtime(), fake.made_context);
    first = device->impl();
    ASSERT_TRUE(device->new_stream().ok());
    EXPECT_EQ(fake.live_streams, 1);
  }
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(fake.live_streams, 0);
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRelease"), 0);
}

TEST_F(InteropTest, TheLegacyDefaultStreamIsAStream) {
  fake.takes_null_stream = true;
  auto device = *device_from_cuda(test_runtime(), fake.made_context);
  const auto kernel = load(device);
  auto stream = stream_from_cuda(device, nullptr);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(launch(device, *kernel, *stream).ok());
  EXPECT_EQ(fake.launches.at(0).stream, nullptr);
}

TEST_F(InteropTest, WaitsForAStreamWhereItsMemoryMayBeInUse) {
  auto device = *device_from_cuda(test_runtime(), fake.made_context);
  const int64_t shape[] = {64};
  {
    auto stream = *stream_from_cuda(device, new_stream());
    const StreamGuard guard(stream);
    auto tensor = Tensor::empty(device, DType::kF32, shape);
    ASSERT_TRUE(tensor.ok()) << render(tensor.error());
    fake.calls.clear();
  }
  EXPECT_EQ(fake.count("cuStreamSynchronize"), 1);
}

TEST_F(InteropTest, ForeignMemoryIsNeitherAllocatedNorFreed) {
  auto device = *device_from_cuda(test_runtime(), fake.made_context);
  auto stream = *stream_from_cuda(device, new_stream());
  auto owner = std::make_shared<int>(1);
  fake.calls.clear();
  {
    const int64_t shape[] = {4, 8}, strides[] = {16, 1};
    auto tensor = tensor_from_memory(device, DType::kF16, shape, strides, {0x7f0000000000, 1024, owner});
    ASSERT_TRUE(tensor.ok()) << render(tensor.error());
    EXPECT_EQ(tensor->address(), 0x7f0000000000u);
    EXPECT_EQ(tensor->bytes_available(), 1024);
    tensor->used_on(stream);
    EXPECT_EQ(owner.use_count(), 2);
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(fake.calls, std::vector<std::string>{});
}

TEST_F(InteropTest, RefusesWhatIsNone) {
  EXPECT_EQ(device_from_cuda(test_runtime(), nullptr).error().kind, ErrorKind::kValue);
  fake.failures["cuCtxSetCurrent"] = {CUDA_ERROR_INVALID_CONTEXT};
  EXPECT_EQ(device_from_cuda(test_runtime(), &fake).error().kind, ErrorKind::kDevice);
}

TEST_F(InteropTest, LaunchesFunctionsOfTheCallers) {
  auto device = *device_from_cuda(test_runtime(), fake.made_context);
  ASSERT_TRUE(device.synchronize().ok());  // the context is current now
  KernelImage image;
  image.name = "kernel_a";
  image.num_params = 3;
  image.num_warps = 4, image.extra_warps = 1, image.num_ctas = 2, image.shared_bytes = 1024;
  image.ptx = ".version 8.3\n.visible .entry kernel_a()";
  auto* library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  reinterpret_cast<CUresult (*)(CUmodule*, const void*, unsigned, CUjit_option*, void**)>(
      dlsym(library, "cuModuleLoadDataEx"))(&module, image.ptx.c_str(), 0, nullptr, nullptr);
  reinterpret_cast<CUresult (*)(CUfunction*, CUmodule, const char*)>(dlsym(library, "cuModuleGetFunction"))(
      &function, module, "kernel_a");
  reinterpret_cast<CUresult (*)(CUfunction, CUfunction_attribute, int)>(dlsym(library, "cuFuncSetAttribute"))(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
  auto launch = make_function_launch(image);
  ASSERT_TRUE(launch.ok()) << render(launch.error());
  const uint64_t slots[] = {1, 2, 3};
  const Status status = (*launch)->launch(function, {5, 1, 1}, slots, new_stream(), false);
  ASSERT_TRUE(status.ok()) << render(status.error());
  EXPECT_EQ(*(*launch)->device_address(4096), 4096u);
}

}  // namespace
}  // namespace kiln::runtime
