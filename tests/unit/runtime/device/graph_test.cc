// Graphs on the CPU: a list of launches that is run again.
#include "kiln/graph.h"

#include <gtest/gtest.h>

#include "kiln/kernel.h"
#include "kiln/runtime.h"
#include "kiln/tensor.h"
#include "runtime/device/device.h"
#include "runtime/launch/kernel_impl.h"
#include "support/diag.h"
#include "tests/unit/open_device.h"
#include "tests/unit/runtime/add_one.h"

namespace kiln {
namespace {

using Shape = std::vector<int64_t>;

TEST(HostGraph, RunsLaunchesAgainInOrder) {
  Device cpu = *open_device("cpu");
  auto kernel = Kernel::from_source(kAddOneSource, "add_one.py");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  Tensor x = *Tensor::zeros(cpu, DType::kF32, Shape{1000}), y = *Tensor::zeros(cpu, DType::kF32, Shape{1000});
  std::vector<std::optional<Arg>> args = {Arg(x), Arg(int64_t{1000}), Arg(int64_t{256})};
  auto launch = [kernel = *kernel, args] { return kernel.launch({4, 1, 1}, args); };
  ASSERT_TRUE(Graph::capture(cpu, launch).ok()) << "it compiles the kernel";
  EXPECT_EQ(x.to_doubles()->at(0), 0);
  ASSERT_TRUE(launch().ok());
  auto graph = Graph::capture(cpu, [&]() -> Status {
    KILN_CHECK_OK(launch());
    KILN_CHECK_OK(y.copy_from(x));
    KILN_CHECK_OK(x.fill(10));
    return launch();
  });
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->size(), 4);
  EXPECT_EQ(x.to_doubles()->at(999), 1) << "a capture runs nothing";
  *kernel = Kernel();
  ASSERT_TRUE(graph->launch().ok());
  EXPECT_EQ(y.to_doubles()->at(999), 2);
  EXPECT_EQ(x.to_doubles()->at(0), 11);
  ASSERT_TRUE(graph->launch().ok());
  EXPECT_EQ(y.to_doubles()->at(0), 12);
  EXPECT_EQ(x.to_doubles()->at(999), 11);
}

TEST(HostGraph, KeepsTheTensorsThatItsWorkMade) {
  Device cpu = *open_device("cpu");
  Tensor x = *Tensor::full(cpu, DType::kF32, Shape{1000}, 3), y;
  Graph graph = *Graph::capture(cpu, [&]() -> Status {
    KILN_TRY(Tensor inner, Tensor::empty(cpu, DType::kF32, Shape{1000}));
    KILN_CHECK_OK(inner.copy_from(x));
    KILN_TRY(y, Tensor::zeros(cpu, DType::kF32, Shape{1000}));
    return y.copy_from(inner);
  });
  Tensor other = *Tensor::full(cpu, DType::kF32, Shape{1000}, 7);  // not in the memory of `inner`
  ASSERT_TRUE(graph.launch().ok());
  EXPECT_EQ(y.to_doubles()->at(999), 3);
  EXPECT_EQ(other.to_doubles()->at(0), 7);
  ASSERT_TRUE(x.fill(4).ok());
  ASSERT_TRUE(graph.launch().ok());
  EXPECT_EQ(y.to_doubles()->at(0), 4);
}

TEST(HostGraph, UsesItsMemoryAgainAndGivesItBack) {
  // A device of its own: the peak of the shared one is that of every test before.
  const Runtime runtime;
  Device cpu = *runtime.open("cpu");
  const Shape shape = {1 << 20};
  constexpr int64_t kBytes = 4 << 20;
  const int64_t before = cpu.memory().allocated;
  Tensor x = *Tensor::full(cpu, DType::kF32, shape, 1);
  std::vector<Tensor> kept(2);
  // y = x + 2 by many temporaries, of which one is alive at a time.
  auto work = [&](Tensor& y, double add) -> Status {
    KILN_TRY(y, Tensor::empty(cpu, DType::kF32, shape));
    KILN_CHECK_OK(y.copy_from(x));
    for (int i = 0; i < 16; ++i) {
      KILN_TRY(Tensor inner, Tensor::empty(cpu, DType::kF32, shape));
      KILN_CHECK_OK(inner.copy_from(y));
      KILN_CHECK_OK(y.fill(-1));
      KILN_CHECK_OK(y.copy_from(inner));
    }
    return x.fill(add);
  };
  std::vector<Graph> graphs;
  for (size_t g = 0; g < 2; ++g) {
    GraphCapture capture = *GraphCapture::begin(cpu);
    ASSERT_TRUE(work(kept[g], static_cast<double>(g) + 5).ok());
    graphs.push_back(*capture.end());
  }
  EXPECT_EQ(cpu.memory().allocated, before + 3 * kBytes);
  EXPECT_LE(cpu.memory().peak, before + 4 * kBytes);
  // In another order than they were captured in, and with other work between them.
  ASSERT_TRUE(graphs[1].launch().ok());
  EXPECT_EQ(kept[1].to_doubles()->at(7), 1);
  Tensor other = *Tensor::full(cpu, DType::kF32, shape, 9);
  ASSERT_TRUE(graphs[0].launch().ok());
  EXPECT_EQ(kept[0].to_doubles()->at(7), 6);
  EXPECT_EQ(kept[1].to_doubles()->at(7), 1);
  EXPECT_EQ(other.to_doubles()->at(7), 9);
  // A tensor outlives its graph, and what the graph had beside it is anybody's.
  graphs.clear();
  const int64_t reserved = cpu.memory().reserved;
  Tensor late = *Tensor::full(cpu, DType::kF32, shape, 8);
  EXPECT_EQ(cpu.memory().reserved, reserved);
  EXPECT_EQ(kept[0].to_doubles()->at(7), 6);
  EXPECT_EQ(kept[1].to_doubles()->at(7), 1);
  EXPECT_EQ(other.to_doubles()->at(7), 9);
  // A capture that fails leaves nothing.
  Tensor made;
  EXPECT_FALSE(Graph::capture(cpu, [&]() -> Status {
                 KILN_CHECK_OK(work(made, 1));
                 return cpu.synchronize();
               }).ok());
  made = Tensor();
  EXPECT_EQ(cpu.memory().allocated, before + 5 * kBytes);
}

TEST(HostGraph, IsCapturedInTwoSteps) {
  Device cpu = *open_device("cpu");
  Tensor x = *Tensor::zeros(cpu, DType::kF32, Shape{8});
  Stream side = *cpu.new_stream();
  {
    GraphCapture thrown_away = *GraphCapture::begin(cpu, side);
    EXPECT_EQ(cpu.current_stream().impl(), side.impl());
    ASSERT_TRUE(x.fill(1).ok());
  }
  EXPECT_EQ(cpu.current_stream().impl(), cpu.default_stream().impl());
  GraphCapture capture = *GraphCapture::begin(cpu, side);
  ASSERT_TRUE(x.fill(2).ok());
  Graph graph = *capture.end();
  EXPECT_EQ(graph.size(), 1);
  EXPECT_EQ(x.to_doubles()->at(0), 0);
  ASSERT_TRUE(graph.launch().ok());
  EXPECT_EQ(x.to_doubles()->at(0), 2);
}

TEST(HostGraph, ACaptureEndsOnTheStreamThatItBeganOn) {
  Device cpu = *open_device("cpu");
  Tensor x = *Tensor::zeros(cpu, DType::kF32, Shape{8});
  Stream side = *cpu.new_stream();
  GraphCapture capture = *GraphCapture::begin(cpu);
  ASSERT_TRUE(x.fill(2).ok());
  const StreamGuard guard(side);  // as set_stream() leaves it
  Graph graph = *capture.end();
  EXPECT_EQ(graph.size(), 1);
  EXPECT_FALSE(cpu.default_stream().impl()->is_capturing());
  ASSERT_TRUE(graph.launch().ok());
  EXPECT_EQ(x.to_doubles()->at(0), 2);
}

TEST(HostGraph, RefusesWhatCannotBeRecorded) {
  Device cpu = *open_device("cpu");
  Tensor x = *Tensor::zeros(cpu, DType::kF32, Shape{8});
  auto refusal = [&](std::function<Status()> work) {
    auto graph = Graph::capture(cpu, std::move(work));
    return graph.ok() ? std::string("captured") : graph.error().message;
  };
  const std::string tail = " cannot be part of a graph that is being captured";
  EXPECT_EQ(refusal([&] { return cpu.synchronize(); }), "a wait for the device" + tail);
  EXPECT_EQ(refusal([&]() -> Status {
              KILN_TRY([[maybe_unused]] auto t, x.to_bytes());
              return {};
            }),
            "a copy to the host" + tail);
  EXPECT_EQ(refusal([] { return Status(error(ErrorKind::kValue, "its own reason")); }), "its own reason");
  EXPECT_TRUE(x.to_bytes().ok()) << "the device works again";
  EXPECT_EQ(Graph().launch().error().message, "launch of a graph that was never captured");
}

}  // namespace
}  // namespace kiln
