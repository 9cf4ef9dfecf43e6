"""The kernels of torch._device, _sort, _select, _put and _scan against the host: random shapes and dtypes."""
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
# More than a thousand of a long row, among many that are equal; sorted values alone.
for shape, k in (((20000,), 2000), ((2, 17000), 1500), ((3, 9001), 2250)):
    for dt in (torch.bfloat16, torch.float32, r.choice([torch.uint8, torch.int16, torch.int32, torch.int64])):
        x = specials((torch.randint(0, 4, shape) if r.random() < 0.4 else torch.randn(shape) * 60).to(dt))
        down = r.random() < 0.5
        same_bits(f"topk of many {shape} {dt} {k} {down}", lambda: torch.topk(x, k, -1, largest=down))
        same_bits(f"unique {shape} {dt}", lambda: [torch.unique(x)])
# Of long rows by a threshold from a sample, wherever the rows begin; where the sample misleads too, so that there are
# too few candidates or no room for them, in all or in a part.
from torch import _threshold
plan = _threshold.plan
def misled(room):
    def wrong(x, rows, width, k):
        p = _threshold._Plan(x, rows, width, k)
        if room == "too few":
            p.gap = 1
        else:
            setattr(p, room, (k + 63) // 64 * 64 if room == "capacity" else 64)
        return p
    return wrong
def marked(pair):
    return [torch.where(pair[0] != pair[0], pair[0].new_zeros(()), pair[0]), pair[0] != pair[0], pair[1]]
for shape, k, dt in (((131072,), 300, torch.bfloat16), ((3, 131073), 400, torch.float32),
                     ((140001,), 8000, torch.int32), ((150001,), 4096, torch.bfloat16), ((1 << 20,), 1, torch.float16),
                     ((131077, 2), 500, torch.int64), ((150000,), 3000, torch.float64), ((131072,), 2000, torch.uint8),
                     ((140000,), 700, torch.int16)):
    dim, down = 0 if shape[-1] == 2 else -1, r.random() < 0.5  # one order, because others are other kernels to compile
    for kind in (r.randint(0, 1), r.randint(2, 3), r.choice(["too few", "capacity"]), "of_part"):
        if k == 1 and kind not in (0, 1):
            continue
        n = torch.empty(shape).numel()
        x = (torch.randint(0, 3, shape) if kind == 1 else torch.full(shape, 3) if kind == 2 else
             torch.arange(n).reshape(shape) % 100 if kind == 3 else torch.randn(shape) * 60)
        x = specials(x.to(dt))
        if isinstance(kind, str):
            _threshold.plan = misled(kind)
        assert _threshold.plan(x, n // x.shape[dim], x.shape[dim], k)
        same(f"topk of long {shape} {dt} {k} {down} {kind}", lambda: marked(torch.topk(x, k, dim, largest=down)))
        _threshold.plan = plan
x = torch.randint(0, 1 << 40, (9000,))
for shape, dim in (((2, 700), 0), ((4, 3, 5), 1), ((301, 3), 1), ((1, 4), 1), ((40, 8), 1), ((9, 30), 1)):
    for dt in (torch.float32, torch.float16, torch.int64, torch.float64, torch.bool):
        for down in (False, True):
            x = (torch.randn(shape) * 2).round()
            x = torch.where(torch.rand(shape) < 0.2, float("nan"), x).to(dt) if dt.is_floating_point else (x > 0).to(dt)
            same_bits(f"sort of few {shape} {dt} {down}", lambda: torch.sort(x, dim, down, stable=True))
for i in range(8):  # rows of 64 bits, of which few, 48 or all differ
    most, rows, width = [40, 1 << 16, 1 << 30, 1 << 62][i % 4], r.randint(1, 9), r.randint(33, 256)
    x = torch.randint(-most, most, (rows, width)) if i < 4 else torch.randn(rows, width).double() * most
    for down in (False, True):
        same_bits(f"sort of 64 bits {rows} {width} {most} {down}", lambda: torch.sort(x, -1, down, stable=True))
for i in range(12):  # rows that lie side by side
    shape, d = [r.choice([1, 3, 40]), r.choice([5, 8, 31, 64, 200]), r.choice([2, 7, 129, 1000])], r.choice([1, -2])
    x = (torch.randn(shape) * 3).to((dtypes + more)[i % 10])
    same_bits(f"sort beside {shape} {x.dtype}", lambda: torch.sort(x, d, i % 3 == 0, stable=True))
same("sort of few digits", lambda: torch.sort(x % 200))
for i in range(6):
    dt = (dtypes[1:] + more)[i * 2 % 8] if i else torch.float32
    width = r.choice([257, 300, 1024, 5000, 8192])
    x = specials((torch.randn(3, width) * 40).to(dt)) if i % 2 == 0 else torch.randint(0, 90, (width, 3)).to(dt)
    d = 1 - i % 2
    same_bits(f"median {width} {dt}", lambda: torch.median(x, d, keepdim=i > 3))
    same_bits(f"kthvalue {width} {dt}", lambda: torch.kthvalue(x, width // 3, d))
for i in range(2):  # many rows of more than one program's elements
    width, dt = r.randint(8193, 13000), (dtypes[1:] + more)[r.randint(0, 8)]
    x = torch.randint(0, 90, (32, width)).to(dt) if i % 2 else specials((torch.randn(32, width) * 40).to(dt))
    same_bits(f"median {width} {dt}", lambda: torch.median(x, 1))
    k = r.choice([1, 2, 4000, width])
    same_bits(f"kthvalue {k} of {width} {dt}", lambda: torch.kthvalue(x, k, 1))
same("sort of one digit", lambda: torch.sort(torch.full((9000,), 7)))
s, v = torch.tensor([1.0, 2.0, nan, nan]), torch.tensor([nan, 2.0, -1.0, float("inf")])
for right in (False, True):
    same("searchsorted nan", lambda: torch.searchsorted(s, v, right=right))
s2 = torch.randn(5, 33).sort(-1)[0]
same("searchsorted lines", lambda: torch.searchsorted(s2, torch.ones(5, 9)))
x = torch.arange(4_200_000) % 7  # more blocks than are added up at once
same("nonzero of many", lambda: torch.nonzero(x == 0).reshape(-1)[::997])
same("unique of many", lambda: [t[::997] for t in torch.unique_consecutive(x // 3, True, True)])
same("nonzero nan", lambda: torch.nonzero(torch.tensor([nan, 0.0, -0.0, 1.0])))
same("histc", lambda: torch.histc(torch.arange(100).float(), 7))
for n in (1, 1000, 5000):
    for dt in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        x = specials((torch.randn(n) * 2).to(dt))
        bins = r.choice([1, 7, 64, 1000, 1500])
        same(f"histc of {n} {dt} in {bins}", lambda: torch.histc(x, bins, -3, 2))
# Putting elements: whole numbers, so that sums do not depend on their order, and places that differ where the last of
# equal ones would stay.
kinds = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64]
def shuffled(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1) if r.random() < 0.3 else x
for i in range(10):
    shape = [r.choice([1, 2, 5, 33]) for _ in range(r.randint(1, 3))]
    dim, dt = r.randint(0, len(shape) - 1), kinds[i % len(kinds)]
    x = shuffled(torch.randint(0, 3, shape).to(dt))
    n = r.choice([0, 1, 3, 70])
    of = [n if d == dim else s if r.random() < 0.7 else max(1, s - 1) for d, s in enumerate(shape)]
    at, src = torch.randint(0, shape[dim], of), shuffled(torch.randint(-1, 3, of).to(dt))
    same(f"scatter_add {shape} {of} {dim} {dt}", lambda: x.scatter_add(dim, at, src))
    if dt is not torch.bool:
        how = r.choice(["amax", "amin", "prod", "mean"] if dt.is_floating_point else ["amax", "amin", "prod"])
        same(f"scatter_reduce {how} {shape} {of} {dim} {dt}",
             lambda: x.scatter_reduce(dim, at, src, how, include_self=i % 3 > 0))
    apart = torch.rand(shape).argsort(dim)
    same(f"scatter {shape} {dim} {dt}", lambda: x.scatter(dim, apart, x.flip(0)))
    same(f"scatter number {shape} {dim} {dt}", lambda: x.scatter(dim, at, 1))
    row, rows = torch.randint(0, shape[dim], (n,)), [n if d == dim else s for d, s in enumerate(shape)]
    one, more_src = torch.randperm(shape[dim]), torch.randint(0, 3, rows).to(dt)
    same(f"index_add {shape} {dim} {dt}", lambda: x.index_add(dim, row, more_src))
    same(f"index_copy {shape} {dim} {dt}", lambda: x.index_copy(dim, one, x.flip(0)))
    same(f"index_fill {shape} {dim} {dt}", lambda: x.index_fill(dim, row - shape[dim], 2))
    y = x.flatten()[:r.randint(1, 30)] if r.random() < 0.5 else x
    index = [torch.randint(-s, s, (7,)) for s in y.shape[:r.randint(1, len(y.shape))]]
    add = torch.randint(0, 2, (7,) + tuple(y.shape[len(index):])).to(dt)
    same(f"index_put add {list(y.shape)} {dt}", lambda: y.clone().index_put_(index, add, accumulate=True))
inf, nan = float("inf"), float("nan")
special = [nan, -nan, inf, -inf, 0.0, -0.0, 1.5, 2.5, -1.5, -2.5, 1e-41, -1e-41]  # the words of floats are compared
for dt in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    for values in (special, special[2:], special[4:]):
        values = torch.tensor(values, dtype=dt)
        values = torch.where(torch.arange(values.numel()) == 1, -values, values)
        x, src = values[torch.randint(0, values.numel(), (90,))], values[torch.randint(0, values.numel(), (7, 90))]
        at = torch.randint(0, 90, (7, 90)).reshape(-1)
        for how in ("amax", "amin"):
            for both_of in (True, False):
                same_bits(f"scatter_reduce {how} {dt} of {values.tolist()}",
                          lambda: [x.scatter_reduce(0, at, src.reshape(-1), how, include_self=both_of)])
for i in range(12):  # numbers into parts of what is not computed yet
    shape = [r.choice([1, 2, 5, 33]) for _ in range(r.randint(1, 3))]
    dt, of = kinds[i % len(kinds)], torch.randint(0, 3, shape)
    def parts_of(n):
        return tuple(r.choice([slice(None), slice(r.randint(-n, n), None), slice(None, r.randint(-n, n), 3),
                               slice(1, n, 2), r.randint(0, s - 1)]) for s in shape[:r.randint(1, n)])
    cut = [(parts_of(len(shape)), r.choice([0, 1, 2])) for _ in range(r.randint(1, 3))]
    def with_parts(x):
        before, view = x + 0, x.view(-1) if i % 3 == 0 else None
        for index, value in cut:
            x[index] = value
        return [x, before, x.flip(0)] + ([] if view is None else [view])
    same(f"parts of ones {shape} {dt} {cut}", lambda: with_parts(torch.ones(shape, dtype=dt)))
    same(f"parts of what is made {shape} {dt} {cut}", lambda: with_parts((of + 1).to(dt)))
    same(f"elements of parts {shape} {dt} {cut}",
         lambda: torch.gather(with_parts(torch.zeros(shape, dtype=dt))[0], 0, of.clamp(max=shape[0] - 1)))
for n in (16, 17, 48, 1, 1024, 1000):  # strides of which vectors may begin at each row, or at some
    for dt in (torch.float32, torch.bfloat16, torch.int32, torch.int8):
        x, row, apart = torch.zeros(50, n, dtype=dt), torch.randint(0, 50, (37,)), torch.randperm(50)[:37]
        more_src = torch.randint(-2, 3, (37, n)).to(dt)
        same(f"index_add of rows {n} {dt}", lambda: x.index_add(0, row, more_src))
        same(f"index_copy of rows {n} {dt}", lambda: x.index_copy(0, apart, more_src))
def put(x, index, value):
    x = x.clone()
    x[index] = value
    return x
a, p = torch.arange(120).reshape(4, 5, 6), torch.tensor([2, 0, -1])
for name, index, value in (("rows", p, -1), ("columns", (slice(None), p), torch.arange(6)),
                           ("last", (slice(None), slice(None), p), torch.arange(3)),
                           ("two", (p, p), torch.arange(18).reshape(3, 6)), ("outer", (p[:, None], p), -1),
                           ("apart", (p, slice(None), p), torch.arange(15).reshape(3, 5)), ("list", [0, 2], -5),
                           ("slice", (slice(1, 3), p), torch.arange(6)), ("int", (1, p), -2), ("dots", (..., p), 7),
                           ("new", (None, p), 9), ("mask", a > 60, torch.arange(59)),
                           ("line", torch.tensor([True, False, True, False]), 3),
                           ("mixed", (slice(None), torch.tensor([True, False, True, False, True]), p), 4)):
    same("put " + name, lambda: put(a, index, value))
    same("put into a view " + name, lambda: put(a.transpose(1, 2).contiguous().transpose(1, 2), index, value))
b = torch.zeros(2, 3, 5, 4)
def part():
    c = b.clone()
    c[:, 1][:, p[:2]] = 3.0
    c[1, :, ::2].index_add_(0, p[:2], torch.ones(2, 3, 4))
    return c
same("put into parts", part)
w = torch.tensor([1, 4, 4, 0, 1, 1, 2, 7, 7])
same("bincount weights", lambda: [torch.bincount(w, torch.ones(9)), torch.bincount(w, torch.ones(9).long() * 3, 12)])
# Scans, and what is made of them.
for i in range(12):
    shape = [r.choice([1, 3, 40, 700]) for _ in range(r.randint(1, 2))] + [r.choice([1, 3, 33])]
    dt, dim = (dtypes + more)[i % 10], r.randint(0, len(shape) - 1)
    x = specials((torch.randn(shape) * 3).to(dt)) if i % 4 else torch.randint(0, 3, shape).to(dt)
    same_bits(f"cummax {shape} {dim} {dt}", lambda: torch.cummax(x, dim))
    same_bits(f"cummin {shape} {dim} {dt}", lambda: torch.cummin(x, dim))
    if dt.is_floating_point:
        h, k = both(lambda: torch.logcumsumexp(x, dim))
        assert torch.allclose(h, k, 1e-2 if dt.itemsize == 2 else 1e-5, 1e-5, True), f"logcumsumexp {shape} {dim} {dt}"
    else:
        same(f"unique {shape} {dt}", lambda: torch.unique(x, return_inverse=True, return_counts=True))
        same(f"mode {shape} {dt}", lambda: torch.mode(x, dim))
        if dt is not torch.bool:
            same(f"gcd {shape} {dt}", lambda: [torch.gcd(x * 6, x.flip(0) * 4), torch.lcm(x, x + 1)])
for width in (2048, 2049, 5000):
    x = torch.randint(-1000, 1000, (3, width)).float()
    same(f"cummax {width}", lambda: torch.cummax(x, 1))
    same(f"cummin {width}", lambda: torch.cummin(x, 1))
    h, k = both(lambda: torch.logcumsumexp(x / 100, 1))
    assert torch.allclose(h, k, 1e-5), f"logcumsumexp {width}"
# Rows that lie side by side: fewer than a tile has, more of them, in parts, and around others.
for shape, dim in (((700, 3), 0), ((2500, 70), 0), ((3, 900, 33), 1), ((2, 1, 40), 1), ((2, 5, 4, 6), 2), ((3, 0, 4), 2)):
    for dt in (torch.float32, torch.float64, torch.bfloat16):
        x = specials((torch.randn(shape) * 3).to(dt)) if dt is torch.float64 and 0 not in shape else torch.randn(shape).to(dt)
        h, k = both(lambda: torch.logcumsumexp(x, dim))
        assert h.shape == k.shape and torch.allclose(h, k, 1e-2 if dt.itemsize == 2 else 1e-5, 1e-5, True), f"logcumsumexp {shape} {dim} {dt}"
# Parts in one pass, of one row and of several, with totals of groups and without; numbers near each other and not.
for shape, dim in (((2100001,), 0), ((8, 263001), 1), ((3000, 701), 0), ((2, 1100, 1001), 1)):
    for scale in (1, 40):
        x = torch.randn(shape) * scale
        x.view(-1)[x.numel() // 2], x.view(-1)[5], x.view(-1)[-3] = float("-inf"), float("-inf"), nan
        h, k = both(lambda: torch.logcumsumexp(x, dim))
        assert torch.allclose(h, k, 1e-5, 1e-5, True), f"logcumsumexp {shape} {dim} {scale}"
# Tensors that are made, and those of which the host need not know more than a size.
def again(make):
    return lambda: make(torch.Generator().manual_seed(5))
for n in (0, 1, 10, 5000, 70001):
    same(f"randperm {n}", again(lambda g: torch.randperm(n, generator=g)))
    assert sorted(torch.randperm(n).tolist()) == list(range(n))
same("randperm", again(lambda g: torch.randperm(5000, generator=g, dtype=torch.int32)))
for dt in (torch.float64, torch.float32, torch.bfloat16, torch.int64):
    same(f"linspace {dt}", lambda: [torch.linspace(-3, 10.7, n, dtype=dt) for n in (0, 1, 2, 7, 5000)])
    step, small = (1.7, 1.0) if dt is torch.int64 else (0.7, 0.001)  # which are 0 in whole numbers
    same(f"arange {dt}", lambda: [torch.arange(0.3, 700.0, step, dtype=dt), torch.arange(0.0, 1.0, small, dtype=dt)])
x, times = torch.randn(40, 30), torch.randint(0, 4, (30,))
same("repeats", lambda: [x.repeat_interleave(times, 1), times.repeat_interleave(times.int()),
                         x.repeat_interleave(times, 1, output_size=int(times.sum()))])
place, i3 = torch.tensor(-2), torch.randint(0, 5, (5, 6, 7))
def one_place(*index):
    def f():
        y = i3.clone()
        y[index] = y[index] * 0 - 1
        return y
    return f
for name, f in {"rows": one_place(place, slice(1, 3)), "last": one_place(Ellipsis, place), "new": one_place(None, place, 1),
                "both": one_place(place, slice(None), torch.tensor([0, 3])), "mask": one_place(place, i3[0] > 2),
                "list": one_place([0, 1], place, slice(2))}.items():
    same(f"one place {name}", f)
close = [x, x + 1e-7, x + 1e-3, torch.where(x > 0, x, float("nan"))]
same("equal", lambda: [torch.tensor([torch.equal(a, b), torch.allclose(a, b), torch.allclose(a, b, 0, 1e-2, True)])
                       for a in close for b in close])
same("of nothing", lambda: [torch.cat([x, x[:0]]), x[torch.zeros(0, dtype=torch.int64)] * 2, x[:0].sum(0) + x.sum(0),
                            torch.cat([x[:0] * 1, x[:0] * 2]), (x * 2)[:, :0].sum(1) + x[:, 0], x.topk(0)[0]])
same("masked_fill", lambda: [x.masked_fill(x > 0, x.max()), x.clone().index_fill_(1, torch.tensor([0, -1]), x.max())])
print("same")
