// backward() and optimizers on a real GPU: the same steps as on the CPU, from the same parameters.
#include "tests/gpu/gpu_script.h"

namespace kiln::runtime {
namespace {

constexpr const char* kSteps = R"(
import copy, torch
from torch import nn
import torch.nn.functional as F

def losses(model, make, x, y, loss_of, device, steps=6):
    model = copy.deepcopy(model).to(device)
    x, y = x.to(device), y.to(device)
    optimizer = make(model.parameters())
    found = []
    for i in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        if i == 2:
            found.append(loss.item())  # looked at before its gradient is asked for
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        found.append(loss.item())
    return found, [t.detach().cpu() for t in model.state_dict().values()]  # running statistics too

def same(model, make, x, y, loss_of, tolerance=2e-4):
    a, p = losses(model, make, x, y, loss_of, "cuda")
    b, q = losses(model, make, x, y, loss_of, "cpu")
    assert all(abs(u - v) <= tolerance * (1 + abs(v)) for u, v in zip(a, b)), (a, b)
    assert a[-1] != a[0], a
    for u, v in zip(p, q):
        assert (u - v).abs().max().item() <= 20 * tolerance, (u - v).abs().max().item()

torch.set_default_device("cpu")
adamw = lambda p: torch.optim.AdamW(p, lr=1e-3)
momentum = lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True)
)";

TEST(GpuTraining, OfLayers) {
  GPU_OR_SKIP(device);
  run_script(device, std::string(kSteps) + R"(
for n, width in ((129, 257), (1000, 512)):
    model = nn.Sequential(nn.Linear(65, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width), nn.SiLU(),
                          nn.Linear(width, 33))
    x = torch.randn(n, 65)
    for make in (adamw, momentum, lambda p: torch.optim.RMSprop(p, lr=1e-4),
                 lambda p: torch.optim.Adagrad(p, lr=1e-2)):
        same(model, make, x, torch.randint(0, 33, (n,)), F.cross_entropy)
        same(model, make, x, torch.randn(n, 33), F.mse_loss)
)");
}

TEST(GpuTraining, OfConvolutionsAndBatchNorm) {
  GPU_OR_SKIP(device);
  run_script(device, std::string(kSteps) + R"(
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                      nn.Conv2d(16, 24, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(24 * 6 * 6, 10))
same(model, momentum, torch.randn(17, 3, 27, 27), torch.randint(0, 10, (17,)), F.cross_entropy, 1e-3)
)");
}

TEST(GpuTraining, OfEmbeddingsAndAttention) {
  GPU_OR_SKIP(device);
  run_script(device, std::string(kSteps) + R"(
class Model(nn.Module):
    def __init__(self, d=64, heads=4):
        super().__init__()
        self.symbols, self.qkv, self.out = nn.Embedding(97, d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.head = nn.Linear(d, 97, bias=False)
        self.head.weight = self.symbols.weight
        self.norm, self.heads = nn.LayerNorm(d), heads
    def forward(self, text):
        x = self.symbols(text)
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.norm(x)).split(d, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.out(mixed.transpose(1, 2).reshape(b, t, d)))

text = torch.randint(0, 97, (8, 51))
same(Model(), adamw, text[:, :-1], text[:, 1:], lambda y, t: F.cross_entropy(y.reshape(-1, 97), t.reshape(-1)), 5e-4)
)");
}

TEST(GpuTraining, OptimizersUpdateAllParametersInOneKernel) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
from torch import optim
torch.set_default_device("cpu")
shapes = ((70, 81), (81,), (5, 7, 9), (4096,), (1,), (33, 31), (1031, 517))

def trained(make, device, parameters, slopes):
    parameters = [torch.nn.Parameter(p.to(device)) for p in parameters]
    optimizer = make(parameters)
    for step in range(3):
        optimizer.zero_grad()
        (sum([(p.float() * s.to(device)).sum() for p, s in zip(parameters, slopes)]) * (step + 1)).backward()
        optimizer.step()
    return [p.detach().cpu() for p in parameters]

for make in (lambda p: optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True), lambda p: optim.AdamW(p, amsgrad=True),
             lambda p: optim.RMSprop(p, centered=True, momentum=0.5), lambda p: optim.Adadelta(p)):
    for dtype, most in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        parameters, slopes = [torch.randn(*s).to(dtype) for s in shapes], [torch.randn(*s) for s in shapes]
        found = [trained(make, device, parameters, slopes) for device in ("cuda", "cpu")]
        for a, b in zip(*found):
            assert (a.float() - b.float()).abs().max().item() <= most, (dtype, a.shape)
)");
}

TEST(GpuTraining, BackwardLetsGoOfActivations) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
import torch.nn.functional as F
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.proj = nn.LayerNorm(256), nn.Linear(256, 768), nn.Linear(256, 256)
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)
    def forward(self, x):
        q, k, v = [t.view(4, 512, 4, 64).transpose(1, 2) for t in self.qkv(self.norm(x)).split(256, dim=2)]
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(4, 512, 256))
        return x + self.down(F.gelu(self.up(self.norm(x))))

def held(blocks):
    model = nn.Sequential(*[Block() for _ in range(blocks)]).bfloat16()
    model.requires_grad_()
    x = torch.randn(4, 512, 256).bfloat16()
    before = torch.cuda.memory_allocated()
    loss = model(x).float().square().mean()
    loss.backward()
    held = torch.cuda.memory_allocated() - before
    loss.item(), [p.grad.sum().item() for p in model.parameters()]
    return held - sum(p.numel() * 2 for p in model.parameters())

activations = 4 * 512 * 256 * 2
assert held(8) - held(4) < 4 * activations, (held(4) / activations, held(8) / activations)
)");
}

TEST(GpuTraining, TheFirstBackwardOfASessionGoesThroughAttention) {
  GPU_OR_SKIP(device);
  // No optimizer and no requires_grad=True: attention's forward kernel has kept nothing for its gradient.
  run_script(device, R"(
import torch
import torch.nn.functional as F
from torch import nn
qkv = nn.Linear(64, 192).to(torch.float16)
x = torch.randn(2, 100, 64, dtype=torch.float16)
def loss_of(layer, x):
    q, k, v = [t.view(2, 100, 1, 64).transpose(1, 2) for t in layer(x).split(64, dim=2)]
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).float().square().mean()
with torch.no_grad():
    other = nn.Linear(64, 192, device="cpu")
    for mine, theirs in zip(other.parameters(), qkv.parameters()):
        mine.copy_(theirs.cpu().float())
loss_of(qkv, x).backward()
assert qkv.weight.grad is not None and qkv.bias.grad is not None
loss_of(other, x.cpu().float()).backward()
for mine, theirs in zip(qkv.parameters(), other.parameters()):
    assert (mine.grad.cpu().float() - theirs.grad).abs().max() < 0.02 * theirs.grad.abs().max()
)");
}

TEST(GpuTraining, RecordedStepsOfOptimizersGoOn) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import torch
from torch import nn, optim
shapes = ((70, 81), (81,), (1,), (1031, 517))

def training(make, dtype):
    torch.manual_seed(3)
    parameters = [nn.Parameter((torch.randn(*s) + 0.5).to(dtype)) for s in shapes]
    optimizer = make(parameters)
    def step():
        optimizer.zero_grad()
        loss = sum([((p.float() * (i + 1)).sin() * p.float()).mean() for i, p in enumerate(parameters)])
        loss.backward()
        optimizer.step()
        return loss
    return parameters, step

for make in (lambda p, **kw: optim.AdamW(p, **kw), lambda p, **kw: optim.NAdam(p, **kw),
             lambda p, **kw: optim.Adamax(p, **kw), lambda p, **kw: optim.RMSprop(p, **kw)):
    for dtype, most in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        wanted, eager = training(make, dtype)
        found, recorded = training(lambda p: make(p, capturable=True), dtype)
        for i in range(2):
            eager(), recorded()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            recorded()
        for i in range(5):
            graph.replay()
            eager()
        for p, q in zip(found, wanted):
            assert (p.float() - q.float()).abs().max().item() <= most, (dtype, p.shape)
)");
}

TEST(GpuTraining, AStepIsRecordedInAGraph) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import copy, torch
from torch import nn
import torch.nn.functional as F
model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 64))
other = copy.deepcopy(model)
x, y = torch.randn(512, 128), torch.randn(512, 64)
def stepping(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step
eager, recorded = stepping(other), stepping(model)
# Warmed up on another stream, as PyTorch's guide does: the gradients that the recorded step drops are that stream's.
stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for i in range(3):
        eager(), recorded()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = recorded()
for i in range(5):
    graph.replay()
    wanted = eager()
    torch.cuda.synchronize()
    assert abs(loss.item() - wanted.item()) < 1e-5, (i, loss.item(), wanted.item())
for p, q in zip(model.parameters(), other.parameters()):
    assert (p - q).abs().max().item() < 1e-5
)");
}

// Two graphs of one model, replayed in turns between other work, whose memory is their own; a tensor outlives them.
TEST(GpuTraining, GraphsHaveMemoryOfTheirOwn) {
  GPU_OR_SKIP(device);
  run_script(device, R"(
import copy, torch
from torch import nn
import torch.nn.functional as F
model = nn.Sequential(nn.Linear(77, 129), nn.LayerNorm(129), nn.GELU(), nn.Linear(129, 33))
data = [(torch.randn(57, 77), torch.randint(0, 33, (57,))) for i in range(8)]
def stepping(model, x, y):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step
x, y = data[0][0].clone(), data[0][1].clone()
other = copy.deepcopy(model)
step, eager = stepping(model, x, y), stepping(other, x, y)
assert abs(step().item() - eager().item()) < 1e-5
graph, scoring = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
with torch.cuda.graph(scoring):
    score = F.cross_entropy(model(x), y).exp()
for a, b in data[1:]:
    x.copy_(a)
    y.copy_(b)
    scoring.replay()
    made = [torch.full((1 << 18,), 7.0) for i in range(6)]
    graph.replay()
    wanted = eager().item()
    assert abs(score.log().item() - wanted) < 1e-4 and abs(loss.item() - wanted) < 1e-4, (score, loss, wanted)
    assert all(m.min().item() == 7 and m.max().item() == 7 for m in made)
for p, q in zip(model.parameters(), other.parameters()):
    assert (p - q).abs().max().item() < 1e-4
last = loss.item()
del graph, scoring
made = [torch.full((1 << 18,), 9.0) for i in range(12)]
assert loss.item() == last
)");
}

}  // namespace
}  // namespace kiln::runtime
