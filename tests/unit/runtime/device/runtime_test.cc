// What two runtimes share (nothing), how long devices live, and in what order what they own goes.
#include "runtime/device/runtime.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "kiln/kernel.h"
#include "kiln/tensor.h"
#include "runtime/jit/jit.h"
#include "tests/unit/runtime/fake_compiler.h"

namespace kiln::runtime {
namespace {

using Args = std::vector<std::optional<Arg>>;
using Shape = std::vector<int64_t>;

class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override { setenv("KILN_CACHE", "0", 1); }
  void TearDown() override { unsetenv("KILN_CACHE"); }

  Runtime make() {
    return make_runtime(std::make_unique<Jit>(fake_compiler(recorder), [](const std::string&) {}));
  }
  static Tensor zeros(const Device& device) { return *Tensor::zeros(device, DType::kF32, Shape{16}); }
  static std::weak_ptr<DeviceImpl> watch(const Device& device) { return device.impl()->weak_from_this(); }

  Recorder recorder;
  Program program{"@triton.jit\ndef f(x, y):\n    pass\n"};
  Kernel f = Kernel::from_function(program.functions.at("f"));
};

TEST_F(RuntimeTest, TwoShareNothing) {
  const Runtime a = make(), b = make();
  const Device first = *a.open("cpu"), second = *b.open("cpu");
  EXPECT_FALSE(first == second);
  EXPECT_EQ(*a.open("cpu"), first);
  Tensor x = zeros(first), y = zeros(second);
  EXPECT_EQ(first.memory().segments, 1);
  EXPECT_EQ(second.memory().segments, 1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(f.launch({1, 1, 1}, Args{x, x}).ok());
    ASSERT_TRUE(f.launch({1, 1, 1}, Args{y, y}).ok());
  }
  EXPECT_EQ(recorder.compiled.size(), 2u) << "once by the compiler of each";
  EXPECT_EQ(f.launch({1, 1, 1}, Args{x, y}).error().message,
            "kernel 'f': 'x' is on cpu and 'y' is on cpu of another runtime");
}

TEST_F(RuntimeTest, DevicesStayOpenWhileTheirRuntimeIsHeld) {
  std::weak_ptr<DeviceImpl> device;
  {
    const Runtime runtime = make();
    device = watch(*runtime.open("cpu"));
    ASSERT_FALSE(device.expired());
    EXPECT_EQ(Device(device.lock()).runtime().open("cpu")->impl(), device.lock().get());
  }
  EXPECT_TRUE(device.expired());
}

TEST_F(RuntimeTest, ADeviceLivesOnWithItsTensors) {
  auto runtime = std::make_unique<Runtime>(make());
  Tensor x = zeros(*runtime->open("cpu"));
  const std::weak_ptr<DeviceImpl> device = watch(x.device());
  runtime.reset();
  ASSERT_FALSE(device.expired());
  EXPECT_TRUE(f.launch({1, 1, 1}, Args{x, x}).ok()) << "it has its compiler";
  EXPECT_EQ(*x.device().runtime().open("cpu"), x.device());
  x = {};
  EXPECT_TRUE(device.expired());
}

TEST_F(RuntimeTest, KernelsKeepTheirCodeAndNotTheDevice) {
  const int before = Recorder::loaded();
  std::weak_ptr<DeviceImpl> device;
  {
    Tensor x = zeros(*make().open("cpu"));
    device = watch(x.device());
    ASSERT_TRUE(f.launch({1, 1, 1}, Args{x, x}).ok());
  }
  EXPECT_TRUE(device.expired());
  EXPECT_EQ(Recorder::loaded(), before + 1);
  // The address of the device that is gone says nothing of another one.
  Tensor x = zeros(*make().open("cpu"));
  ASSERT_TRUE(f.launch({1, 1, 1}, Args{x, x}).ok());
  EXPECT_EQ(recorder.compiled.size(), 2u);
  f = {};
  EXPECT_EQ(Recorder::loaded(), before);
}

// A plan, in the little: it owns a kernel with code for the device, and memory of it.
struct Owned : Companion {
  Owned(DeviceImpl& of, Kernel k, int& closed_at, int& last)
      : device(of), kernel(std::move(k)), closed(closed_at), order(last) {}
  ~Owned() override {
    closed = ++order;
    device.allocator().free(block);
  }
  DeviceImpl& device;
  Kernel kernel;
  Block* block = nullptr;
  int& closed;
  int& order;
};

TEST_F(RuntimeTest, WhatADeviceOwnsGoesBeforeItAndWithIt) {
  const int before = Recorder::loaded();
  int closed = 0, last = 0;
  std::weak_ptr<DeviceImpl> watched;
  {
    const Runtime runtime = make();
    const Device device = *runtime.open("cpu");
    watched = watch(device);
    auto made = device.impl()->companion("owned", [&](DeviceImpl& d) -> Result<std::unique_ptr<Companion>> {
      auto owned = std::make_unique<Owned>(d, std::move(f), closed, last);
      KILN_TRY(owned->block, d.allocator().allocate(64, d.backend().default_stream()));
      return std::unique_ptr<Companion>(std::move(owned));
    });
    ASSERT_TRUE(made.ok());
    Tensor x = zeros(device);
    ASSERT_TRUE(static_cast<Owned*>(*made)->kernel.launch({1, 1, 1}, Args{x, x}).ok());
    EXPECT_EQ(Recorder::loaded(), before + 1);
    EXPECT_EQ(closed, 0);
  }
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(Recorder::loaded(), before);
}

TEST_F(RuntimeTest, ALaunchWithoutATensorNamesItsDevice) {
  Program plain("@triton.jit\ndef g(n):\n    pass\n");
  const Kernel g = Kernel::from_function(plain.functions.at("g"));
  EXPECT_EQ(g.launch({1, 1, 1}, Args{int64_t{2}}).error().message,
            "kernel 'g' got no tensor, which would say on what device it runs");
  LaunchOptions options;
  options.device = *make().open("cpu");
  EXPECT_TRUE(g.launch({3, 1, 1}, Args{int64_t{2}}, options).ok());
  EXPECT_EQ(recorder.programs, 3);
}

}  // namespace
}  // namespace kiln::runtime
