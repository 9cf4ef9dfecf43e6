// Memory and tensors of other owners, on the CPU.
#include "kiln/interop.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kiln/kernel.h"
#include "runtime/tensor/dlpack_abi.h"
#include "tests/unit/open_device.h"

namespace kiln {
namespace {

Device host() { return *open_device("cpu"); }

TEST(Interop, KernelsWorkOnForeignMemory) {
  std::vector<float> memory(64);
  std::iota(memory.begin(), memory.end(), 0.f);
  const int64_t shape[] = {64}, none[] = {65};
  const ForeignMemory all{reinterpret_cast<uint64_t>(memory.data()), 64 * 4};
  auto tensor = tensor_from_memory(host(), DType::kF32, shape, {}, all);
  ASSERT_TRUE(tensor.ok()) << render(tensor.error());
  auto kernel = *Kernel::from_source(
      "import triton\nimport triton.language as tl\n\n@triton.jit\ndef twice(x, N: tl.constexpr):\n    i = "
      "tl.arange(0, N)\n"
      "    tl.store(x + i, tl.load(x + i) * 2)\n",
      "twice.py");
  const std::optional<Arg> args[] = {*tensor, int64_t{64}};
  const Status launched = kernel.launch({1, 1, 1}, args);
  ASSERT_TRUE(launched.ok()) << render(launched.error());
  EXPECT_EQ(memory[63], 126.f);
  EXPECT_EQ(tensor_from_memory(host(), DType::kF32, none, {}, all).error().kind, ErrorKind::kValue);
  EXPECT_EQ(tensor_from_memory(host(), DType::kF32, shape, {}, {all.address + 2, all.bytes}).error().kind,
            ErrorKind::kValue);
  EXPECT_EQ(tensor_from_memory(host(), DType::kF32, shape, {}, {0, all.bytes}).error().kind, ErrorKind::kValue);
}

TEST(Interop, EmptyMemoryHasNoAddress) {
  const int64_t shape[] = {0, 3};
  auto tensor = tensor_from_memory(host(), DType::kF32, shape, {}, {});
  ASSERT_TRUE(tensor.ok()) << render(tensor.error());
  EXPECT_FALSE(tensor->is_freed());
  EXPECT_EQ(tensor->to_doubles()->size(), 0u);
}

struct Source {
  std::vector<int16_t> data{1, 2, 3, 4, 5, 6};
  std::vector<int64_t> shape{2, 2}, strides{3, 1};
  int deleted = 0;
  DLManagedTensor managed{};

  Source() {
    managed.context = this;
    managed.deleter = [](DLManagedTensor* m) { ++static_cast<Source*>(m->context)->deleted; };
    managed.tensor = {
        data.data(), {runtime::dlpack::kCpu, 0}, 2, {runtime::dlpack::kInt, 16, 1}, shape.data(), strides.data(), 2};
  }
};

TEST(Interop, TakesOverADlpackTensor) {
  Source source;
  {
    auto tensor = from_dlpack(&source.managed, test_runtime());
    ASSERT_TRUE(tensor.ok()) << render(tensor.error());
    EXPECT_EQ(tensor->dtype(), DType::kI16);
    EXPECT_EQ(*tensor->to_doubles(), (std::vector<double>{2, 3, 5, 6}));
    EXPECT_EQ(source.deleted, 0);
  }
  EXPECT_EQ(source.deleted, 1);
}

TEST(Interop, ARefusedDlpackTensorStaysTheCallers) {
  for (auto spoil : std::vector<void (*)(Source&)>{
           [](Source& s) { s.managed.tensor.dtype.lanes = 4; }, [](Source& s) { s.managed.tensor.dtype.code = 5; },
           [](Source& s) { s.managed.tensor.device.type = 10; }, [](Source& s) { s.strides[0] = -3; },
           [](Source& s) { s.shape[0] = INT64_MAX; }, [](Source& s) { s.managed.tensor.byte_offset = 1; }}) {
    Source source;
    spoil(source);
    EXPECT_FALSE(from_dlpack(&source.managed, test_runtime()).ok());
    EXPECT_EQ(source.deleted, 0);
  }
}

TEST(Interop, GivesEveryDtypeAndTakesItBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const int64_t shape[] = {3, 5};
    auto tensor = *Tensor::full(host(), dtype, shape, 1);
    auto managed = to_dlpack_versioned(tensor);
    if (!is_in_torch(dtype)) {
      EXPECT_EQ(managed.error().message, "DLPack has no type for f8e4b15");
      continue;
    }
    ASSERT_TRUE(managed.ok());
    const void* data = (*managed)->tensor.data;
    tensor = {};
    auto back = from_dlpack(*managed, test_runtime());
    ASSERT_TRUE(back.ok()) << render(back.error());
    EXPECT_EQ(back->dtype(), dtype);
    EXPECT_EQ(reinterpret_cast<const void*>(back->address()), data);
    EXPECT_EQ(*back->to_doubles(), std::vector<double>(15, 1));
  }
}

TEST(Interop, TheCpuHasNoCudaStreams) {
  const int64_t shape[] = {8};
  auto block = *Tensor::empty(host(), DType::kF32, shape);  // so that the allocator has one to look at
  EXPECT_EQ(stream_from_cuda(host(), nullptr).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(cuda_stream(host()).error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace kiln
