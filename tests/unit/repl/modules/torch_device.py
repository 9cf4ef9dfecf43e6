"""The kernels of torch._device and torch._sort against the host: random shapes and dtypes, values exactly equal."""
import random
import sys
import torch
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
print("seed", seed)
random.seed(seed); torch.manual_seed(seed); r = random
dtypes = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
def both(f):
    out = []
    for on in (False, True):
        torch._kiln.stay_lazy(on)
        out.append(f())
    torch._kiln.stay_lazy(False)
    return out
def same(name, f):
    a, b = both(f)
    a, b = (list(a), list(b)) if isinstance(a, (tuple, list)) else ([a], [b])
    assert len(a) == len(b), name
    for x, y in zip(a, b):
        if x.shape != y.shape or x.dtype != y.dtype or x.tolist() != y.tolist():
            raise AssertionError(f"{name}: {x.dtype} {x.shape} on the host, {y.dtype} {y.shape} by kernels")
def same_bits(name, f):
    """As same(), where NaN is NaN."""
    same(name, lambda: [torch.where(t != t, t.new_zeros(()), t) for t in f()])
    same(name, lambda: [t != t for t in f()])
for i in range(24):
    shape = [r.choice([0, 1, 3, 17, 64, 129]) for _ in range(r.randint(1, 3))]
    dt = dtypes[i % len(dtypes)]
    x = torch.randint(0, 3, shape).to(dt)
    if len(shape) > 1 and r.random() < 0.5:
        x = x.transpose(0, -1)
    same(f"nonzero {shape} {dt}", lambda: torch.nonzero(x))
    same(f"select {shape}", lambda: x[x != 0])
    n = r.choice([0, 1, 1000, 5000])
    b = torch.randint(0, 50, (n,))
    same(f"bincount {n}", lambda: torch.bincount(b, minlength=60))
    w = r.choice([1, 7, 100, 1025])
    s = torch.randint(-20, 20, (w,)).to(dt if dt is not torch.bool else torch.int32).sort()[0]
    v = torch.randint(-20, 20, (r.choice([1, 300]),)).to(s.dtype)
    for right in (False, True):
        same(f"searchsorted {w} {dt}", lambda: torch.searchsorted(s, v, right=right))
# Sorts of rows in one tile, several to a program, and of rows that take passes over memory; topk by chunks too.
nan = float("nan")
def specials(x):
    if x.is_floating_point():
        flat = x.reshape(-1)
        for value in (nan, -0.0, 0.0, float("inf"), -float("inf"), nan):
            flat[r.randint(0, flat.numel() - 1)] = value
    return x
shapes = [(5,), (1,), (), (3, 70), (40, 128), (4, 3, 33), (2, 5000), (8192,), (8193,), (2, 20000), (30000,)]
more = [torch.int8, torch.int16]
for i in range(len(shapes) * 2):
    shape, dt = shapes[i // 2], (dtypes + more)[r.randint(0, len(dtypes + more) - 1)]
    x = torch.randint(-3, 4, shape) if r.random() < 0.3 else torch.randn(shape) * 60
    x = specials(x.to(dt)) if shape else x.to(dt)
    dim = r.randint(0, len(shape) - 1) if shape else 0
    down = r.random() < 0.5
    same_bits(f"sort {shape} {dt} {dim} {down}", lambda: torch.sort(x, dim, down, stable=True))
    if dt is not torch.bool:
        k = r.choice([0, 1, 3, 50, 1500])
        k = min(k, shape[dim] if shape else 1)
        same_bits(f"topk {shape} {dt} {k} {down}", lambda: torch.topk(x, k, dim, largest=down))
x = torch.randint(0, 1 << 40, (9000,))
same("sort of few digits", lambda: torch.sort(x % 200))
same("sort of one digit", lambda: torch.sort(torch.full((9000,), 7)))
s, v = torch.tensor([1.0, 2.0, nan, nan]), torch.tensor([nan, 2.0, -1.0, float("inf")])
for right in (False, True):
    same("searchsorted nan", lambda: torch.searchsorted(s, v, right=right))
s2 = torch.randn(5, 33).sort(-1)[0]
same("searchsorted lines", lambda: torch.searchsorted(s2, torch.ones(5, 9)))
same("nonzero nan", lambda: torch.nonzero(torch.tensor([nan, 0.0, -0.0, 1.0])))
same("histc", lambda: torch.histc(torch.arange(100).float(), 7))
print("same")
