# Optimizers step all parameters that differ in their shapes alone in one kernel: the same bits as one by one.
import torch
from torch import _kiln, optim

SHAPES = ((70, 81), (81,), (5, 7, 9), (4096,), (1,), (33, 31))
MAKERS = dict(
    sgd=lambda p: optim.SGD(p, lr=1e-2),
    momentum=lambda p: optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True, weight_decay=1e-2),
    adam=lambda p: optim.Adam(p, weight_decay=1e-2),
    adamw=lambda p: optim.AdamW(p, amsgrad=True, maximize=True),
    nadam=lambda p: optim.NAdam(p),
    adamax=lambda p: optim.Adamax(p),
    rmsprop=lambda p: optim.RMSprop(p, centered=True, momentum=0.5),
    adagrad=lambda p: optim.Adagrad(p, initial_accumulator_value=0.1),
    adadelta=lambda p: optim.Adadelta(p),
    radam=lambda p: optim.RAdam(p, betas=(0.5, 0.6), weight_decay=1e-2),
    rprop=lambda p: optim.Rprop(p, lr=1e-3),
    asgd=lambda p: optim.ASGD(p, t0=-1),
    copying=lambda p: optim.ASGD(p),
    adafactor=lambda p: optim.Adafactor(p),
)


def trained(make, dtype, prepare=lambda parameters: None):
    torch.manual_seed(3)
    parameters = [torch.nn.Parameter(torch.randn(*s).to(dtype)) for s in SHAPES]
    seen = prepare(parameters)
    optimizer = make(parameters)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        loss = sum([((p.float() * (i + 1)).sin() * p.float()).sum() for i, p in enumerate(parameters)])
        loss.backward()
        optimizer.step()
        losses.append(loss)  # which the step must not see changed parameters in
    state = [v for kept in optimizer.state.values() for v in kept.values() if isinstance(v, torch.Tensor)]
    return [t.detach().clone() for t in parameters + state + [x.reshape(1) for x in losses]], seen


def same(found, expected):
    return len(found) == len(expected) and all(torch.equal(a, b) for a, b in zip(found, expected))


one_by_one, calls = _kiln.update_alike, []


def counted(rows):
    calls.append(one_by_one(rows))
    return calls[-1]


def refused(rows):
    return False


_kiln.stay_lazy(True)
for name, make in MAKERS.items():
    for dtype in (torch.float32, torch.bfloat16):
        _kiln.update_alike, calls = counted, []
        together, _ = trained(make, dtype)
        # The first step of a momentum makes its tensors.
        assert calls.count(True) == {"momentum": 3, "asgd": 3, "copying": 0, "adafactor": 0}.get(name, 4), (name, calls)
        _kiln.update_alike = refused
        assert same(together, trained(make, dtype)[0]), (name, dtype)

# Parameters that somebody looks at through a view change there too, whichever comes first.
for at in (0, 3):
    _kiln.update_alike = counted
    together, view = trained(MAKERS["adamw"], torch.float32, lambda parameters: parameters[at].data.view(-1))
    assert torch.equal(view, together[at].reshape(-1)), at
    _kiln.update_alike = refused
    assert same(together, trained(MAKERS["adamw"], torch.float32)[0])

# One that begins later, or has options of its own, is stepped by itself.
_kiln.update_alike, calls = counted, []
torch.manual_seed(0)
a, b, c, d = [torch.nn.Parameter(torch.randn(n)) for n in (5, 6, 7, 8)]
optimizer = optim.Adam([{"params": [a, b, c]}, {"params": [d], "lr": 0.5}])
for late in (True, False):
    optimizer.zero_grad()
    (a.sum() + b.sum() + d.sum() + (0 if late else c.sum())).backward()
    optimizer.step()
assert [optimizer.state[p]["step"] for p in (a, b, c, d)] == [2, 2, 1, 2]
assert calls == [True, True]
_kiln.update_alike = one_by_one
_kiln.stay_lazy(False)
print("same")
