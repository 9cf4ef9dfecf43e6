// Scripts on the fake driver, whose kernels compute nothing: what waits, and how many kernels there are.
#ifdef FAKE_CUDA
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "repl/session/session.h"
#include "tests/unit/runtime/cuda/fake/fake_device.h"

namespace kiln::script {
namespace {

class FakeGpuTest : public runtime::FakeDeviceTest {
 protected:
  std::string run(const char* text) {
    if (!session) {
      Options options;
      options.output = [this](std::string_view s) { out += s; };
      options.device = Device(impl);
      session = std::make_unique<Session>(std::move(options));
    }
    out.clear();
    const Status done = session->run(text, "test.py", Mode::kFile);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return out;
  }

  std::string out;
  std::unique_ptr<Session> session;
};

TEST_F(FakeGpuTest, ComputedTensorsAreJoinedWhereTheyAreUsedUnlessTheyGrow) {
  EXPECT_EQ(run(R"(
import torch
x, row = torch.ones(3, 300, 128), torch.ones(1, 128)
torch.cuda.synchronize()
print(torch.cat([x[0, :, :64], x[1, :, 64:]], -1).is_lazy())
print(torch.cat([x[0, :, i : i + 8] for i in range(0, 128, 8)], -1).is_lazy())
cache = x[0]
for _ in range(3):
    cache = torch.cat([cache, row])
    print(cache.is_lazy(), list(cache.shape))
    torch.cuda.synchronize()
)"),
            "True\nTrue\nTrue [301, 128]\nFalse [302, 128]\nFalse [303, 128]\n");
}

// What each step gives is read by the next one and by the list.
TEST_F(FakeGpuTest, StepsOfALoopShareTheirKernels) {
  run(R"(
import torch
reward, value = torch.ones(24, 5000), torch.ones(24, 5000)
torch.cuda.synchronize()
)");
  const int before = fake->count("cuLaunchKernel");
  run(R"(
last, steps = torch.zeros_like(value[0]), []
for i in range(24):
    last = reward[i] + 0.99 * value[i] * last
    steps.append(last)
advantage = torch.stack(steps)
torch.cuda.synchronize()
)");
  EXPECT_LE(fake->count("cuLaunchKernel") - before, 8);
}

}  // namespace
}  // namespace kiln::script
#endif
