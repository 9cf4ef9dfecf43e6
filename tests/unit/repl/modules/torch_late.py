"""Halves of sorts, which wait until they are read, by kernels: in every order, of what was sorted, whatever changes."""
import torch
from torch import _kiln


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.shape)
    assert torch.equal(got, want)


def host(f, *xs):
    _kiln.stay_lazy(False)
    out = f(*[x.clone() for x in xs])
    _kiln.stay_lazy(True)
    return out


torch.manual_seed(3)
_kiln.stay_lazy(True)
first = torch.randn(4, 50)
values, places = host(lambda x: x.sort(), first)

# One half, or both, in either order, some of them dropped.
x = first.clone()
same(x.sort()[0], values)
same(x.argsort(), places)
v, i = x.sort()
same(i, places)
same(v, values)
v, i = x.sort()
del v
same(i, places)
v, i = x.sort()
del i
same(v, values)
same(x.topk(4, sorted=False)[1], host(lambda x: x.topk(4)[1], x))
same(x.kthvalue(7)[1], host(lambda x: x.kthvalue(7)[1], x))
same(x.nanmedian(0, True)[0], host(lambda x: x.nanmedian(0, True)[0], x))
assert x.sort()[0].shape == (4, 50) and x.sort()[1].dtype is torch.int64 and x.topk(3)[1].shape == (4, 3)

# What is sorted changes before a half is read.
for change in (lambda x: x.zero_(), lambda x: x.add_(1), lambda x: x[1].fill_(5), lambda x: x.view(-1)[60:70].zero_(),
               lambda x: x.copy_(x.flip(1)), lambda x: torch.sort(x, out=(x, torch.empty_like(places)))):
    x = first.clone()
    v, i = x.sort()
    only = x.sort()[0]
    change(x)
    same(i, places)
    same(v, values)
    same(only, values)
x = first.clone()
x += x.sort()[0]
same(x, first + values)
x = first.clone()
x[:] = x.sort()[0]
same(x, values)
x = first.clone()
v = (x * 2).sort()[0]
x.zero_()
same(v, values * 2)
x = first.clone()
v = x[1:, 10:].sort()[0]
x.zero_()
same(v, host(lambda x: x[1:, 10:].sort()[0], first))

# A half changes: the other one, what was sorted and views of the half.
x = first.clone()
v, i = x.sort()
v += 1
same(i, places)
same(v, values + 1)
same(x, first)
v, i = x.sort()
row = v[0]
v.zero_()
same(row, torch.zeros(50))
same(i, places)
v, i = x.sort()
i[0] = 3
same(v, values)
same(i[1:], places[1:])

# Many of one tensor, and each of the one before.
many = [x.sort() for _ in range(300)]
same(many[299][0], values)
x.zero_()
for v, i in many[::13]:
    same(v, values)
    same(i, places)
y = first.clone()
for _ in range(5):
    y = y.sort(-1, True)[0] + y.sort(0)[0]


def steps(y):
    for _ in range(5):
        y = y.sort(-1, True)[0] + y.sort(0)[0]
    return y


same(y, host(steps, first))

# Gradients, rows by vmap, and what leaves a function of either.
row = torch.randn(50)
for f in (lambda x: (x.sort()[0] * torch.arange(50.0)).sum(), lambda x: (x * x.detach().sort()[0]).sum(),
          lambda x: (x * x.argsort()).sum(), lambda x: (x.topk(5)[0] * 3).sum()):
    same(torch.func.grad(f)(row), host(torch.func.grad(f), row))
left = []


def leaves(x):
    left.append(x.detach().sort())
    return (x * x).sum()


torch.func.grad(leaves)(row)
same(left[0][0], host(lambda x: x.sort()[0], row))
for f in (lambda r: r.sort()[0], lambda r: r.topk(3)[1]):
    same(torch.func.vmap(f)(first), host(torch.func.vmap(f), first))
with torch.no_grad():
    same(first.sort()[0], values)

# The order of an order is its inverse, without another sort; what changed since is none.
for dim in (0, 1, -1):
    for descending in (False, True):
        order = lambda x: x.argsort(dim, descending).argsort(dim)
        same(order(first), host(order, first))
        if dim < 1:
            want = torch.stack((host(order, first), host(order, -first)))
            same(torch.func.vmap(order)(torch.stack((first, -first))), want)
for order in (lambda x: x.argsort(0).argsort(1), lambda x: x.argsort(1).argsort(1, True),
              lambda x: x.topk(50)[1].argsort(), lambda x: x.argsort()[:, 3:].argsort(),
              lambda x: x.argsort().t().argsort(0), lambda x: x.argsort().argsort().argsort()):
    same(order(first), host(order, first))
i = first.argsort()
i[0] = 3
same(i.argsort(), host(lambda i: i.argsort(), i))
i = first.argsort()
ranks = i.argsort()
i.zero_()
same(ranks, host(lambda x: x.argsort().argsort(), first))

# Few elements, none, and types of which kernels sort others.
for shape in ((0, 9), (9, 0), (5, 1), (3, 4), (2, 5), (3, 1025), (1, 520)):
    for dtype in (torch.float32, torch.int64, torch.bool, torch.float8_e4m3fn):
        x = torch.randint(0, 2 if dtype is torch.bool else 9, shape).float().to(dtype)
        v, i = host(lambda x: x.sort(-1, True, stable=True), x)
        same(x.sort(-1, True)[1], i)
        same(x.sort(-1, True)[0].float(), v.float())
_kiln.stay_lazy(False)
print("same")
