# A step of an optimizer that is recorded in a graph goes on at each replay as one that is not.
import torch
from torch import _kiln, nn, optim

SHAPES = ((7, 9), (9,), (33,), (1,), ())
MAKERS = dict(
    sgd=lambda p, **kw: optim.SGD(p, lr=1e-2, momentum=0.9, weight_decay=1e-2),
    adam=lambda p, **kw: optim.Adam(p, weight_decay=1e-2, **kw),
    adamw=lambda p, **kw: optim.AdamW(p, amsgrad=True, maximize=True, **kw),
    nadam=lambda p, **kw: optim.NAdam(p, **kw),
    adamax=lambda p, **kw: optim.Adamax(p, **kw),
    rmsprop=lambda p, **kw: optim.RMSprop(p, centered=True, momentum=0.5, **kw),
    adagrad=lambda p, **kw: optim.Adagrad(p, initial_accumulator_value=0.1),
    adadelta=lambda p, **kw: optim.Adadelta(p, **kw),
    radam=lambda p, **kw: optim.RAdam(p, betas=(0.5, 0.8), weight_decay=1e-2, **kw),
    rprop=lambda p, **kw: optim.Rprop(p, **kw),
    asgd=lambda p, **kw: optim.ASGD(p, t0=3, lambd=1e-2, **kw),
)


def training(make, dtype, **options):
    torch.manual_seed(3)
    parameters = [nn.Parameter((torch.randn(*s) + 0.5).to(dtype)) for s in SHAPES]
    unused = nn.Parameter(torch.ones(3))
    optimizer = make([{"params": parameters[:2] + [unused]}, {"params": parameters[2:], "lr": 3e-2}], **options)

    def step():
        optimizer.zero_grad()
        loss = sum([((p.float() * (i + 1)).sin() * p.float()).sum() for i, p in enumerate(parameters)])
        loss.backward()
        optimizer.step()
        return loss

    return parameters, optimizer, step


def same(found, expected, dtype):
    most = dict(rtol=2e-6, atol=1e-6) if dtype == torch.float32 else dict(rtol=2e-2, atol=2e-2)
    return all(torch.allclose(a.float(), b.float(), **most) for a, b in zip(found, expected))


for name, make in MAKERS.items():
    for dtype in (torch.float32, torch.bfloat16):
        wanted, _, eager = training(make, dtype)
        found, optimizer, step = training(make, dtype, capturable=True)
        for _ in range(2):
            eager(), step()
        assert same(found, wanted, dtype), (name, dtype, "not captured")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step()
        for i in range(6):
            graph.replay()
            of = eager()
            assert abs(loss.item() - of.item()) <= (1e-4 if dtype == torch.float32 else 0.3), (name, dtype, i)
        assert same(found, wanted, dtype), (name, dtype)
        if name not in ("sgd", "adagrad"):
            assert [optimizer.state[p]["step"].item() for p in found] == [8] * 5, name

# Parameters are counted together for as long as they are stepped together, also in a state that was loaded.
for load in (False, True):
    a, b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(4))
    optimizer = optim.Adam([a, b], capturable=True)
    for both in (True, True, False, True):
        optimizer.zero_grad()
        (a.sum() + b.sum() if both else a.sum()).backward()
        optimizer.step()
        if load:
            state, optimizer = optimizer.state_dict(), optim.Adam([a, b], capturable=True)
            optimizer.load_state_dict(state)
        steps = [optimizer.state[p]["step"] for p in (a, b)]
    assert [s.item() for s in steps] == [4, 3], steps
plain = optim.Adam([a, b])
plain.load_state_dict(optimizer.state_dict())
for group in plain.param_groups:
    group["capturable"] = False
plain.step()
assert [plain.state[p]["step"] for p in (a, b)] == [5, 4]
again = optim.Adam([a, b], capturable=True)
again.load_state_dict({**plain.state_dict(), "param_groups": again.state_dict()["param_groups"]})
again.step()
assert [again.state[p]["step"].item() for p in (a, b)] == [6, 5]

# A learning rate that is a tensor is read at each replay; schedules change it in place.
a = nn.Parameter(torch.ones(3))
lr = torch.tensor(0.5)
optimizer = optim.AdamW([a], lr=lr, capturable=True, weight_decay=0.1)
a.grad = torch.ones(3)
optimizer.step()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    optimizer.step()
before = a.detach().clone()
lr.fill_(0.0)
graph.replay()
assert torch.equal(a, before)
lr.fill_(0.25)
graph.replay()
assert torch.allclose(a, before * (1 - 0.25 * 0.1) - 0.25)
schedule = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
schedule.step()
assert optimizer.param_groups[0]["lr"] is lr and lr.item() == 0.125


# What would be the same step at each replay is refused.
def refused(make, first=True):
    p = nn.Parameter(torch.ones(3))
    optimizer = make([p])
    p.grad = torch.ones(3)
    if first:
        optimizer.step()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            optimizer.step()
    except RuntimeError as e:
        return str(e)


for make in (optim.Adam, optim.AdamW, optim.NAdam, optim.Adamax, optim.RMSprop, optim.Adadelta):
    text = f"step() for an instance of {make.__name__} but param_groups' capturable is False"
    assert text in refused(make), make
    assert "a step before the capture" in refused(lambda p: make(p, capturable=True), first=False), make
assert "lr_decay" in refused(lambda p: optim.Adagrad(p, lr_decay=0.1))
assert refused(optim.Adagrad) is None and refused(optim.SGD, first=False) is None
assert "a step before" in refused(lambda p: optim.SGD(p, momentum=0.9), first=False)
assert not torch.cuda.is_current_stream_capturing()
print("same")
