// Graphs on the CUDA backend, against the fake driver.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kiln/graph.h"
#include "kiln/tensor.h"
#include "runtime/device/runtime.h"
#include "support/diag.h"
#include "tests/unit/runtime/cuda/fake/fake_device.h"

namespace kiln::runtime {
namespace {

using Shape = std::vector<int64_t>;

class CudaGraphTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    device = Device(impl);
  }
  std::shared_ptr<LoadedKernel> load(const std::string& name) {
    KernelImage image;
    image.name = name;
    image.num_params = 3;
    std::string ptx = ".version 8.3\n.visible .entry " + name + "()";
    image.ptx = ptx;
    auto kernel = impl->backend().load(image);
    KILN_ASSERT(kernel.ok(), "{}", kernel.ok() ? "" : kernel.error().message);
    return *kernel;
  }
  Status launch(const LoadedKernel& kernel, uint64_t value) {
    const uint64_t slots[] = {value, 2, 3};
    return impl->backend().launch(kernel, {4, 1, 1}, slots, impl->backend().default_stream());
  }

  Device device;
};

TEST_F(CudaGraphTest, ReplaysLaunchesCopiesAndFillsInOrder) {
  auto a = load("kernel_a"), b = load("kernel_b");
  Tensor x = *Tensor::full(device, DType::kF32, Shape{64}, 1), y = *Tensor::zeros(device, DType::kF32, Shape{64});
  auto graph = Graph::capture(device, [&]() -> Status {
    KILN_CHECK_OK(launch(*a, 11));
    KILN_CHECK_OK(y.copy_from(x));
    KILN_CHECK_OK(x.fill(5));
    return launch(*b, 12);
  });
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->size(), 4);
  EXPECT_TRUE(fake->launches.empty()) << "a capture runs nothing";
  EXPECT_EQ(x.to_doubles()->at(0), 1);
  // The graph outlives the names of what it launches.
  a.reset(), b.reset();
  for (int i = 1; i <= 2; ++i) {
    fake->calls.clear();
    ASSERT_TRUE(graph->launch().ok());
    EXPECT_EQ(fake->count("cuGraphLaunch"), 1);
    EXPECT_EQ(fake->count("cuLaunchKernel"), 0);
    ASSERT_EQ(fake->launches.size(), static_cast<size_t>(2 * i));
    EXPECT_EQ(fake->launches.back().kernel, "kernel_b");
    EXPECT_EQ(fake->launches.back().params[0], 12u);
    EXPECT_EQ(y.to_doubles()->at(63), i == 1 ? 1 : 5);
  }
  EXPECT_EQ(fake->live_modules, 2);
  *graph = Graph();
  EXPECT_EQ(fake->live_graphs, 0);
  EXPECT_EQ(fake->live_modules, 0);
}

TEST_F(CudaGraphTest, KeepsTheMemoryThatItUses) {
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{64}), watch = x;
  Graph graph = *Graph::capture(device, [&] { return x.fill(3); });
  x = Tensor();
  int64_t in_use = impl->allocator().stats().allocated;
  ASSERT_TRUE(graph.launch().ok());
  EXPECT_EQ(watch.to_doubles()->at(5), 3);
  watch.free();
  auto status = graph.launch();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kValue);
  EXPECT_LT(impl->allocator().stats().allocated, in_use);
}

TEST_F(CudaGraphTest, MemoryOfADeadGraphWaitsForItsLaunches) {
  const Shape shape = {1 << 21};
  Stream side = *device.new_stream();
  auto kernel = load("kernel_a");
  DeviceAddress inner = 0;
  Graph graph = *Graph::capture(device, [&]() -> Status {
    KILN_TRY(const Tensor made, Tensor::zeros(device, DType::kF32, shape));
    inner = made.address();
    return launch(*kernel, inner);
  });
  const int64_t in_use = impl->allocator().stats().allocated;
  EXPECT_NE(Tensor::zeros(device, DType::kF32, shape)->address(), inner) << "while the graph is there";
  ASSERT_TRUE(graph.launch(side).ok());
  graph = Graph();
  EXPECT_EQ(impl->allocator().stats().allocated, in_use);
  EXPECT_GE(fake->count("cuEventRecord"), 1) << "on the stream that it was launched on";
  std::vector<Tensor> all;
  bool is_reused = false;
  for (int i = 0; i < 4; ++i) {
    all.push_back(*Tensor::zeros(device, DType::kF32, shape));
    is_reused = is_reused || all.back().address() == inner;
  }
  EXPECT_TRUE(is_reused);
}

TEST_F(CudaGraphTest, RefusesWhatCannotBeRecorded) {
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{4});
  float values[4] = {};
  struct {
    const char* what;
    std::function<Status()> work;
  } cases[] = {
      {"a wait for the device", [&] { return device.synchronize(); }},
      {"a wait for the device", [&] { return device.default_stream().synchronize(); }},
      {"a copy to the host",
       [&]() -> Status {
         auto r = x.to_bytes();
         return r.ok() ? Status() : Status(r.error());
       }},
      {"a copy from the host",
       [&] { return impl->backend().copy_in(x.address(), values, 16, impl->backend().default_stream()); }},
      {"another capture",
       [&]() -> Status {
         auto g = Graph::capture(device, [] { return Status(); });
         return g.ok() ? Status() : Status(g.error());
       }},
  };
  for (auto& c : cases) {
    auto graph = Graph::capture(device, c.work);
    ASSERT_FALSE(graph.ok()) << c.what;
    EXPECT_EQ(graph.error().kind, ErrorKind::kUnsupported);
    EXPECT_EQ(graph.error().message, std::string(c.what) + " cannot be part of a graph that is being captured");
    EXPECT_FALSE(impl->backend().default_stream().is_capturing());
    EXPECT_TRUE(x.to_doubles().ok()) << "the stream works again";
  }
}

TEST_F(CudaGraphTest, FreesMemoryOfAnotherStreamDuringACapture) {
  Stream side = *device.new_stream();
  auto on_side = [&] {
    StreamGuard guard(side);
    return *Tensor::zeros(device, DType::kF32, Shape{64});
  };
  Tensor dies = on_side(), y = *Tensor::zeros(device, DType::kF32, Shape{64});
  const uint64_t address = dies.address();
  auto kernel = load("kernel_a");
  auto graph = Graph::capture(device, [&]() -> Status {
    // Its memory may still be read on the default stream, where no event can say when that is over.
    dies = Tensor();
    KILN_TRY(Tensor made, Tensor::zeros(device, DType::kF32, Shape{64}));
    KILN_CHECK_OK(y.copy_from(made));
    EXPECT_NE(on_side().address(), address) << "before the end of the capture";
    return launch(*kernel, 1);
  });
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->size(), 3);
  ASSERT_TRUE(graph->launch().ok());
  EXPECT_EQ(on_side().address(), address) << "used again after the capture";
}

TEST_F(CudaGraphTest, EventsOfACaptureAreNotAskedOf) {
  Event before = *device.record();
  Event inside;
  auto graph = Graph::capture(device, [&]() -> Status {
    KILN_TRY(inside, device.record());
    EXPECT_FALSE(inside.is_done());
    EXPECT_FALSE(device.default_stream().is_idle());
    EXPECT_TRUE(before.is_done());
    for (const Status& refused : {inside.synchronize(), Status(device.elapsed_ms(inside, before).error())}) {
      EXPECT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported) << refused.error().message;
    }
    return launch(*load("kernel_a"), 1);
  });
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_TRUE(graph->launch().ok());
}

// What the runtime does not know of is told by the driver at the call that does it.
TEST_F(CudaGraphTest, ReportsWhatInvalidatesACapture) {
  Stream side = *device.new_stream();
  Event before = *device.record(side);
  auto graph = Graph::capture(device, [&] { return device.default_stream().wait(before); });
  ASSERT_FALSE(graph.ok());
  EXPECT_TRUE(graph.error().message.starts_with("cuStreamWaitEvent")) << graph.error().message;
  EXPECT_NE(graph.error().message.find("CUDA_ERROR_STREAM_CAPTURE_ISOLATION"), std::string::npos);
  EXPECT_TRUE(device.synchronize().ok()) << "the stream works again";
}

TEST_F(CudaGraphTest, DriverFailuresEndTheCapture) {
  Tensor x = *Tensor::zeros(device, DType::kF32, Shape{4});
  for (const char* call : {"cuStreamBeginCapture", "cuGraphInstantiate", "cuGraphGetNodes", "cuStreamEndCapture"}) {
    fake->failures[call] = {CUDA_ERROR_UNKNOWN};
    auto graph = Graph::capture(device, [&] { return x.fill(1); });
    ASSERT_FALSE(graph.ok()) << call;
    EXPECT_EQ(graph.error().kind, ErrorKind::kDevice) << graph.error().message;
    EXPECT_TRUE(graph.error().message.starts_with(call)) << graph.error().message;
    EXPECT_FALSE(impl->backend().default_stream().is_capturing());
    EXPECT_EQ(fake->live_graphs, 0) << call;
  }
}

}  // namespace
}  // namespace kiln::runtime
