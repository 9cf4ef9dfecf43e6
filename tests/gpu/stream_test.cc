// Streams that a thread makes current: where work goes, that streams run side by side, and that memory stays right.
#include <numeric>

#include "kiln/kernel.h"
#include "profiler/measure/gate.h"
#include "tests/gpu/gpu_test_util.h"

namespace kiln::runtime {
namespace {

using profiler::Gate;
using Shape = std::vector<int64_t>;
constexpr double kGateMs = 5000;

TEST(GpuCurrentStream, WorkGoesToItAndPassesWhatWaitsElsewhere) {
  GPU_OR_SKIP(device);
  Stream side = *device.new_stream();
  Tensor x = *Tensor::full(device, DType::kF32, Shape{1000}, 3);
  ASSERT_OK(device.synchronize());
  auto gate = Gate::make(device, kGateMs);
  ASSERT_TRUE(gate.ok()) << render(gate.error());
  Tensor copy;
  ASSERT_OK((*gate)->close());  // the default stream
  {
    StreamGuard guard(side);
    EXPECT_EQ(device.current_stream().impl(), side.impl());
    copy = *Tensor::empty(device, DType::kF32, Shape{1000});
    ASSERT_OK(copy.fill(0));
    ASSERT_OK(copy.copy_from(x));
    ASSERT_OK(side.synchronize());
    EXPECT_TRUE(side.is_idle());
    EXPECT_FALSE(device.default_stream().is_idle());
  }
  EXPECT_EQ(device.current_stream().impl(), device.default_stream().impl());
  (*gate)->open();
  ASSERT_OK(device.synchronize());
  EXPECT_FALSE((*gate)->ran_out());
  EXPECT_EQ(copy.to_doubles()->at(999), 3);
}

TEST(GpuCurrentStream, TheHostReadsWhatIsFinished) {
  GPU_OR_SKIP(device);
  Stream side = *device.new_stream();
  auto gate = *Gate::make(device, 50);
  Tensor x;
  {
    StreamGuard guard(side);
    x = *Tensor::full(device, DType::kF32, Shape{1000}, 1);
    ASSERT_OK(gate->close());  // ends by its limit
    ASSERT_OK(x.fill(2));
  }
  EXPECT_EQ(x.to_doubles()->at(0), 2);
}

TEST(GpuCurrentStream, CopiesOfPinnedMemoryAreOnlyQueued) {
  GPU_OR_SKIP(device);
  Stream side = *device.new_stream();
  constexpr int64_t kCount = 1 << 20;
  Tensor host = *Tensor::empty_pinned(device, DType::kF32, Shape{kCount});
  EXPECT_TRUE(host.is_pinned());
  EXPECT_EQ(host.device().name(), "cpu");
  auto* values = reinterpret_cast<float*>(host.address());
  std::iota(values, values + kCount, 0.0f);
  auto gate = *Gate::make(device, kGateMs);
  Tensor there, back;
  std::weak_ptr<Storage> kept;
  {
    StreamGuard guard(side);
    ASSERT_OK(gate->close());
    there = *Tensor::empty(device, DType::kF32, Shape{kCount});
    ASSERT_OK(there.queue_copy_from(host));
    back = *Tensor::empty_pinned(device, DType::kF32, Shape{kCount});
    ASSERT_OK(back.queue_copy_from(there));
    EXPECT_FALSE(side.is_idle());
    kept = host.storage();
    host = Tensor();  // the copy keeps it
  }
  gate->open();
  ASSERT_OK(side.synchronize());
  EXPECT_FALSE(kept.expired());
  ASSERT_OK(device.synchronize());
  EXPECT_TRUE(kept.expired());  // and lets go of it
  const auto* got = reinterpret_cast<const float*>(back.address());
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[kCount - 1], static_cast<float>(kCount - 1));
}

TEST(GpuCurrentStream, MemoryOfASideStreamIsNotReusedWhileTheDefaultStreamWorksOnIt) {
  GPU_OR_SKIP(device);
  Stream side = *device.new_stream();
  StreamGuard guard(side);
  device.impl()->allocator().trim();
  Tensor t = *Tensor::full(device, DType::kI32, Shape{1 << 20}, 1);
  const uint64_t address = t.address();
  ASSERT_OK(side.synchronize());
  auto gate = *Gate::make(device, kGateMs);
  {
    StreamGuard main(device.default_stream());
    ASSERT_OK(gate->close());
    ASSERT_OK(t.fill(2));
  }
  t.free();
  Tensor early = *Tensor::empty(device, DType::kI32, Shape{1 << 20});
  EXPECT_NE(early.address(), address);
  gate->open();
  ASSERT_OK(device.synchronize());
  Tensor late = *Tensor::empty(device, DType::kI32, Shape{1 << 20});
  EXPECT_EQ(late.address(), address);
}

}  // namespace
}  // namespace kiln::runtime
