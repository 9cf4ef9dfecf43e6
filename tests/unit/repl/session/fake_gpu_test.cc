// Scripts on the fake driver, whose kernels compute nothing: what waits, and how many kernels there are.
#ifdef FAKE_CUDA
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "repl/session/session.h"
#include "tests/unit/runtime/cuda/fake/fake_device.h"

namespace kiln::script {
namespace {

class FakeGpuTest : public runtime::FakeDeviceTest {
 protected:
  std::string run(const char* text) {
    if (!session) {
      fake->param_bytes.clear();  // kernels of any parameters are launched here
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
  int launches() const { return fake->count("cuLaunchKernel") + fake->count("cuLaunchKernelEx"); }
  /// Those of kernels whose names begin so.
  long launches_of(const char* text, std::string_view name) {
    const auto before = static_cast<std::ptrdiff_t>(fake->launches.size());
    run(text);
    return std::count_if(fake->launches.begin() + before, fake->launches.end(),
                         [&](const FakeCuda::Launch& l) { return l.kernel.starts_with(name); });
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
  const int before = launches();
  run(R"(
last, steps = torch.zeros_like(value[0]), []
for i in range(24):
    last = reward[i] + 0.99 * value[i] * last
    steps.append(last)
advantage = torch.stack(steps)
torch.cuda.synchronize()
)");
  EXPECT_LE(launches() - before, 8);
}

TEST_F(FakeGpuTest, AnLstmComputesItsProductsOnce) {
  run(R"(
import time, torch
from torch import nn
net = nn.LSTM(128, 256)
x = torch.ones(12, 32, 128)
def all_read():
    with torch.no_grad():
        out, (h, c) = net(x)
        return h.sum().item(), c.sum().item(), out.sum().item()
def states_ignored():
    with torch.no_grad():
        out, _ = net(x)
        return out.sum().item()
time.perf_counter()
states_ignored()
torch.cuda.synchronize()
)");
  for (const char* call : {"all_read()\n", "states_ignored()\n", "states_ignored()\ntime.perf_counter()\n"})
    EXPECT_EQ(launches_of(call, "matmul_add_add"), 12) << call;
  // So many operations that those of the first places are computed before the last ones are written down.
  run("x = torch.ones(60, 32, 128)\n");
  for (const char* call : {"all_read()\n", "states_ignored()\n"})
    EXPECT_EQ(launches_of(call, "matmul_add_add"), 60) << call;
}

// Of which a script that times it reads none.
TEST_F(FakeGpuTest, WhatDroppedResultsHaveInCommonIsComputedOnce) {
  run(R"(
import time, torch
x = torch.ones(300, 400)
def f():
    y = x @ x.t()
    return y + 1, y * 2, y[:, :7].exp().sum(0)
time.perf_counter()
f()
time.perf_counter()
)");
  const long product = launches_of("z = x @ x.t()\ntorch.cuda.synchronize()\n", "matmul");
  EXPECT_GT(product, 0);
  EXPECT_EQ(launches_of("f()\ntime.perf_counter()\n", "matmul"), product);
  EXPECT_EQ(launches_of("for _ in range(3):\n    f()\ntime.perf_counter()\n", "matmul"), 3 * product) << "each call";
}

// Its parameters have gradients, for which nothing is stored before somebody asks for one.
TEST_F(FakeGpuTest, AModelThatIsOnlyAskedLaunchesWhatItLaunchesInsideOfNoGrad) {
  run(R"(
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 512), nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64))
x = torch.ones(128, 256)
def ask():
    return net(x).softmax(-1).sum().item()
ask()
torch.cuda.synchronize()
)");
  auto launches_of = [&](const char* text) {
    const int before = launches();
    run(text);
    return launches() - before;
  };
  const int asked = launches_of("ask()\n");
  EXPECT_GT(asked, 0);
  EXPECT_EQ(asked, launches_of("with torch.no_grad():\n    ask()\n"));
  EXPECT_EQ(run("a = torch.cuda.memory_allocated()\ny = net(x).sum()\ny.item()\n"
                "print(y.requires_grad, torch.cuda.memory_allocated() - a <= 512)\n"),
            "True True\n");
  EXPECT_EQ(run("y.backward()\nprint([p.grad.shape == p.shape for p in net.parameters()].count(True))\n"), "8\n");
}

TEST_F(FakeGpuTest, NothingOfLargeTensorsIsComputedOnTheHost) {
  const char* setup = R"(
import torch
import torch.nn.functional as F
x, y, big = torch.ones(300, 400), torch.ones(300, 400), torch.ones(2, 3, 2, 5, 7, 9, 4, 4)
n, b, e = x.long(), x > 0, x.to(torch.float8_e5m2)
p, q, s, w = torch.arange(300), n % 300, torch.ones(()), torch.zeros((), dtype=torch.int64)
torch.cuda.synchronize()
)";
  run(setup);
  for (const char* line : {"x[1:] = y[1:] * 2",
                           "x[1:] = x[:-1] + x[1:]",
                           "x[:, 1] = n[:, 0]",
                           "n[3:] = b[3:]",
                           "e[1:] = x[1:]",
                           "x[1] = s",
                           "n[1] = s",
                           "x[:, 1] += x[:, 0]",
                           "x[:, 1].mul_(2)",
                           "x.T[3].copy_(n[0, :300])",
                           "x[b] = s",
                           "x[b] = x.sum()",
                           "x.masked_fill_(b, s)",
                           "x.index_fill_(0, p, s)",
                           "x[w, 1:] = 3",
                           "x[1:, w] = y[1:, 0]",
                           "x[0].add_(x[1])",
                           "x[:, 3].fill_(2)",
                           "z = x[:, 1].double()",
                           "z = x.topk(2, 0)",
                           "z = e.sort(1)",
                           "z = torch.cat([x, x[:0]])",
                           "z = x[p[:0]] + 1",
                           "z = torch.linspace(0, 1, 9999)",
                           "z = torch.randperm(9999)",
                           "z = torch.arange(0.5, 9999, 0.5, dtype=torch.float64)",
                           "z = torch.randint(0, 9, (99, 99), dtype=torch.bfloat16)",
                           "z = torch.randn(99, 999).to(torch.float8_e4m3fn)",
                           "e.normal_()",
                           "z = torch.tensor(x, dtype=torch.float8_e5m2)",
                           "z = torch.gradient(x[:2], dim=(0, 1))",
                           "z = x.repeat_interleave(q[0, :300], 0, output_size=400)",
                           "z = torch.func.grad(lambda t: x.scatter_add(0, q, t).square().sum())(y)",
                           "z = torch.func.grad(lambda t: x.index_put((p, p), t[0, :300]).square().sum())(y)",
                           "z = big.permute(7, 5, 3, 1, 0, 2, 4, 6).contiguous()"}) {
    run(setup);
    const int before = fake->count("cuMemcpyDtoHAsync");
    run((std::string(line) + "\ntorch.cuda.synchronize()\n").c_str());
    EXPECT_EQ(fake->count("cuMemcpyDtoHAsync") - before, 0) << line;
  }
}

// And before what they sort changes.
TEST_F(FakeGpuTest, HalvesOfSortsWaitUntilTheyAreRead) {
  run("import torch\nx = torch.ones(512, 64)\ntorch.cuda.synchronize()\n");
  auto launches_of = [&](const char* text) {
    const int before = launches();
    run(text);
    return launches() - before;
  };
  EXPECT_EQ(launches_of("v = x.sort()[0]\nprint(v.shape, v.dtype)\n"), 0);
  EXPECT_EQ(out, "torch.Size([512, 64]) torch.float32\n");
  EXPECT_EQ(launches_of("torch.cuda.synchronize()\n"), 1);
  // Who waits for the GPU may be measuring: what nobody read is computed then.
  EXPECT_EQ(launches_of("v, i = x.sort()\ndel v, i\n"), 0);
  EXPECT_EQ(launches_of("torch.cuda.synchronize()\n"), 1);
  EXPECT_EQ(launches_of("v, i = x.sort()\nj = i + 1\n"), 1);
  EXPECT_EQ(launches_of("w = v + 1\ntorch.cuda.synchronize()\n"), 2);  // the additions
  EXPECT_EQ(launches_of("many = [x.sort()[0] for _ in range(20)]\nfirst = many[0] + many[1]\n"), 2);
  EXPECT_EQ(launches_of("x.zero_()\n"), 18);  // those that wait
}

TEST_F(FakeGpuTest, OnlyAnAnswerIsReadOfAComparison) {
  run("import torch\nx, n = torch.ones(9000, 20), torch.ones(9000, dtype=torch.int64)\ntorch.cuda.synchronize()\n");
  for (const char* line :
       {"torch.equal(x, x)", "torch.allclose(x, x)", "torch.histc(x, 5)", "x.repeat_interleave(n, 0)"}) {
    const int before = fake->count("cuMemcpyDtoHAsync");
    run((std::string(line) + "\n").c_str());
    EXPECT_EQ(fake->count("cuMemcpyDtoHAsync") - before, 1) << line;
  }
}

// Nobody reads it, so that it need not go to the host, however small it is.
TEST_F(FakeGpuTest, DroppedResultsAreComputedWithoutAWait) {
  run("import time, torch\nx = torch.ones(64, 10)\nstart = time.time()\n");
  const int copies = fake->count("cuMemcpyDtoHAsync"), before = launches();
  run("for _ in range(3):\n    loss = (x * 2).mean()\n    del loss\ntorch.cuda.synchronize()\n");
  EXPECT_EQ(fake->count("cuMemcpyDtoHAsync") - copies, 0);
  EXPECT_GE(launches() - before, 3);
}

// Running statistics of batch norm are small, and made of what the GPU makes of the batch.
TEST_F(FakeGpuTest, StepsOfTrainingCopyNothingToTheHost) {
  run(R"(
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
opt = torch.optim.AdamW(net.parameters())
x, y = torch.ones(256, 64), torch.zeros(256, dtype=torch.int64)
def step():
    opt.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
step()
torch.cuda.synchronize()
)");
  run("step()\ntorch.cuda.synchronize()\n");
  // Nor is anything compiled, as it would be for statistics that wait for several steps.
  const int copies = fake->count("cuMemcpyDtoHAsync"), functions = fake->count("cuModuleGetFunction");
  ASSERT_GT(functions, 0);
  run("step()\nstep()\nstep()\ntorch.cuda.synchronize()\n");
  EXPECT_EQ(fake->count("cuMemcpyDtoHAsync") - copies, 0);
  EXPECT_EQ(fake->count("cuModuleGetFunction") - functions, 0);
}

// What is assigned to rows is computed there, without a copy.
TEST_F(FakeGpuTest, PendingValuesAreStoredWhereTheyAreAssigned) {
  run("import torch\nx, y = torch.ones(300, 400), torch.ones(300, 400)\ntorch.cuda.synchronize()\n");
  for (const char* line :
       {"x[100:] = y[100:] * 2 + 1", "x[:200] = y[0] * 3", "x[7:9] = (y[1:3] > 0)", "x[1:] = x[1:] * 2"}) {
    const int before = launches(), copies = fake->count("cuMemcpyDtoDAsync");
    run((std::string(line) + "\ntorch.cuda.synchronize()\n").c_str());
    EXPECT_EQ(launches() - before, 1) << line;
    EXPECT_EQ(fake->count("cuMemcpyDtoDAsync") - copies, 0) << line;
  }
}

// The forward kernel of a session that expects no gradients keeps nothing for them: they come from the scores.
TEST_F(FakeGpuTest, TheFirstBackwardReachesWhatAttentionIsMadeOf) {
  run("import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
      "layer = nn.Linear(64, 192).to(torch.float16)\nx = torch.ones(1, 2, 128, 64, dtype=torch.float16)\n"
      "F.scaled_dot_product_attention(*layer(x).split(64, dim=-1)).float().sum().backward()\n"
      "assert layer.weight.grad is not None and layer.bias.grad is not None\n");
}

}  // namespace
}  // namespace kiln::script
#endif
