"""Scans of tensors under kiln.compile, beside PyTorch's own and a copy of as many bytes.

PYTHONPATH=build/release/python python3 scans.py [--seconds T] [--rounds N] [NAME...]

Running sums, products, maxima and logcumsumexp, along rows, columns and dimensions between others, of widths that
vectors divide and that none does. Each is measured as a CUDA graph (cold L2, median). Prints microseconds, the ratios
eager / Kiln and copy / Kiln, and in how many kernels Kiln computes it; then those below 1.0 of PyTorch or 0.8 of a
copy. Names choose the cases whose text begins so.
"""
import argparse
import statistics
import time
import warnings

import torch

import kiln
import kiln.dynamo
from graphs import graphed, timed

F32, BF16, F16, F64, I64, I32 = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32)

ONE_ROW = [(1 << p, t) for p in (24, 26, 28) for t in (F32, BF16, I64, F64)] + [(20000003, F32), (1 << 22, F32),
                                                                               (1 << 26, I32)]
PLANES = [
    # Shape and dimension.
    ((5000, 9000), 0), ((32768, 64), 0), ((200000, 16), 0), ((1300, 3000), 0), ((70000, 300), 0), ((3000, 7001), 0),
    ((1000000, 3), 0), ((8, 4096, 512), 1), ((64, 512, 1024), 1), ((16, 1000, 333), 1), ((3, 100000, 48), 1),
    ((2, 128, 65536), 1), ((3000, 5001), 1), ((20000, 333), 1), ((16, 300001), 1), ((100, 9001), 1), ((1000, 65537), 1),
    ((64, 33333), 1), ((3000, 5000), 1), ((40000, 64), 1), ((1000, 16384), 1), ((300, 100000), 1), ((1000000, 17), 1)
]
OTHERS = [((1 << 24,), 0), ((4000, 4096), 1), ((4096, 2000), 0), ((16, 1000000), 1)]


def made(shape, dtype):
    if dtype.is_floating_point: return torch.randn(shape, device="cuda").to(dtype)
    return torch.randint(-5, 5, shape, dtype=dtype, device="cuda")


def wide(x):
    """In float64, whose sums the others are compared with: PyTorch adds halves up in halves."""
    return x.double() if x.dtype.is_floating_point else x


def segmented(x, begins, row):
    """Running sums that begin anew with each segment; `row` is the segment of each element."""
    sums = x.cumsum(0)
    before = torch.where(begins > 0, sums[(begins - 1).clamp(min=0)], 0)
    return sums - before[row]


def cases():
    for shape, dim in PLANES: yield "cumsum", shape, dim, F32
    for name in ("cumprod", "cummax", "logcumsumexp"):
        for shape, dim in OTHERS: yield name, shape, dim, F32
    for n in (1 << 24, 1 << 20): yield "segmented", (n, ), 0, F32
    for n, t in ONE_ROW: yield "cumsum", (n, ), 0, t
    for k, (shape, dim) in enumerate(PLANES): yield "cumsum", shape, dim, (BF16, I64)[k % 2]


def call_of(name, shape, dim, dtype):
    x = made(shape, dtype)
    if name == "segmented":
        begins = torch.cat([torch.zeros(1, dtype=I64, device="cuda"),
                            torch.sort(torch.randperm(shape[0] - 1, device="cuda")[:shape[0] // 100] + 1).values])
        starts = torch.zeros(shape[0], dtype=I64, device="cuda").index_fill_(0, begins[1:], 1)
        return segmented, [x, begins, starts.cumsum(0)]
    return {
        "cumsum": lambda x: x.cumsum(dim),
        "cumprod": lambda x: x.cumprod(dim),
        "cummax": lambda x: x.cummax(dim),
        "logcumsumexp": lambda x: x.logcumsumexp(dim)
    }[name], [x]


def bytes_of(values):
    if isinstance(values, torch.Tensor): return values.nbytes
    return sum(bytes_of(v) for v in values)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1e9, help="no case begins later")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("names", nargs="*", help="all cases unless named")
    o = p.parse_args()
    warnings.filterwarnings("ignore")
    begun = time.time()
    flushed = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    slow = []
    for name, shape, dim, dtype in cases():
        text = "%s %s dim=%d %s" % (name, "x".join(map(str, shape)), dim, str(dtype)[6:])
        if o.names and not any(text.startswith(n) for n in o.names): continue
        if time.time() > begun + o.seconds: break
        f, args = call_of(name, shape, dim, dtype)
        torch._dynamo.reset()
        kiln.dynamo.clear_report()
        compiled = kiln.compile(f, dynamic=False)
        want, got = f(*[wide(a) for a in args]), compiled(*args)
        for a, b in zip(*([v] if isinstance(v, torch.Tensor) else v for v in (want, got))):
            scale = a.double().abs().max().item() or 1.0
            worst = (a.double() - b.double()).abs().max().item() / scale
            if not worst < 2e-2: text += " WRONG %.2g" % worst
        moved = bytes_of(args) + bytes_of(got)
        source = torch.empty(moved // 8, dtype=F32, device="cuda")
        target = torch.empty_like(source)
        del want, got
        graphs = {
            "kiln": graphed(compiled, args),
            "torch": graphed(f, args),
            "copy": graphed(lambda s, t: torch.mul(s, 1, out=t), [source, target])  # by a kernel, as all else
        }
        us = {side: [] for side in graphs}
        for _ in range(o.rounds):
            for side, graph in graphs.items(): us[side].append(timed(graph, flushed))
        us = {side: statistics.median(v) for side, v in us.items()}
        report = kiln.dynamo.report()
        kernels = report.kernels
        left = ", ".join(["%s (%s)" % what for what in report.left] + [p.reason for p in report.pieces if p.reason])
        of_torch, of_copy = us["torch"] / us["kiln"], us["copy"] / us["kiln"]
        print("%-46s %8.1f %8.1f %8.1f  %5.2f %5.2f  %d  %s" % (text, us["kiln"], us["torch"], us["copy"], of_torch,
                                                               of_copy, kernels, left), flush=True)
        if of_torch < 1 or of_copy < 0.8: slow.append("%s %.2f %.2f" % (text, of_torch, of_copy))
        del graphs, source, target, args
        torch.cuda.empty_cache()
    print("below 1.0 of PyTorch or 0.8 of a copy:\n  " + "\n  ".join(slow))


main()
