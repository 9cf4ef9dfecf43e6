"""Lines of PyTorch under kiln.compile, beside torch.compile and eager: one process that takes turns, call by call.

PYTHONPATH=build/release/python python3 compiled.py [--seed S] [--part I/N] [--seconds T] [NAME...]

Lines (lines.py), their order and shapes follow from the seed; I/N is every N-th of them, for several GPUs. With a GPU
each is measured as a CUDA graph (cold L2, median) and as calls one behind the other, and the first call of each side
is timed. Prints microseconds, how many operations Kiln computes and what it leaves to PyTorch; then geometric means
of the faster of torch.compile and eager over Kiln, and the worst. Without a GPU small draws are held to eager.
"""
import argparse
import os
import statistics
import time
import warnings
from statistics import geometric_mean

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

import kiln
import kiln.dynamo
import lines
from graphs import graphed, shapes_of, timed

# Of the largest number in a result.
TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 4e-3}


def flat(value):
    """The tensors in a result."""
    if isinstance(value, torch.Tensor): return [value]
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else []


def shuffled(names, draw):
    for i in range(len(names) - 1, 0, -1):
        j = draw.below(i + 1)
        names[i], names[j] = names[j], names[i]
    return names


def us_of_call(f, args, count=20):
    for _ in range(3):
        f(*args)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        f(*args)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e6


def measured(f, args, flushed):
    """Microseconds of graphs and of calls and seconds of first calls, by side; what a side cannot do is left out."""
    sides = {"kiln": kiln.compile(f, dynamic=False), "torch": torch.compile(f, dynamic=False), "eager": f}
    graphs, calls, first = {}, {}, {}
    for side, g in sides.items():
        try:
            torch.cuda.synchronize()
            start = time.perf_counter()
            g(*args)
            torch.cuda.synchronize()
            first[side] = time.perf_counter() - start
            calls[side] = us_of_call(g, args)
            graphs[side] = graphed(g, args)
        except Exception as e:
            print("    %s: %s" % (side, str(e).strip().split("\n")[0][:160]))
    taken = {side: [] for side in graphs}
    for _ in range(7):
        for side, graph in graphs.items():
            taken[side].append(timed(graph, flushed))
    return {side: statistics.median(us) for side, us in taken.items()}, calls, first


def differences(f, args):
    """Results and arguments of a call that are not eager's, in words."""
    copies = [[a.clone() if isinstance(a, torch.Tensor) else a for a in args] for _ in range(2)]
    torch.manual_seed(7)
    want = flat([f(*copies[0]), copies[0]])
    torch.manual_seed(7)
    got = flat([kiln.compile(f)(*copies[1]), copies[1]])
    found = [] if len(want) == len(got) else ["%d results, not %d" % (len(got), len(want))]
    for x, y in zip(want, got):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            found.append("%s of %s, not %s of %s" % (y.dtype, list(y.shape), x.dtype, list(x.shape)))
        elif not x.is_floating_point():
            if not torch.equal(x, y):
                found.append("%d elements differ" % (x != y).sum())
        elif x.numel():
            most = x.double().nan_to_num(0, 0, 0).abs().max().item() or 1.0
            limit = TOLERANCE.get(x.dtype, 1e-4) * most
            if not torch.allclose(y.double(), x.double(), rtol=0, atol=limit, equal_nan=True):
                found.append("an element differs by more than %.2g" % limit)
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--part", default="0/1", help="I/N: every N-th line, from the I-th")
    p.add_argument("--seconds", type=float, default=1e9, help="no line begins later")
    p.add_argument("names", nargs="*", help="all lines unless named")
    o = p.parse_args()
    warnings.filterwarnings("ignore")
    gpu = torch.cuda.is_available()
    part, parts = map(int, o.part.split("/"))
    begun = time.time()
    flushed = torch.empty(64 << 20, dtype=torch.int32, device="cuda") if gpu else None
    ratios, of_calls, firsts, wrong = [], [], [], []
    for k, name in enumerate(shuffled(sorted(o.names or lines.LINES), lines.Draw(o.seed))):
        if k % parts != part or time.time() > begun + o.seconds: continue
        f, args = lines.LINES[name](lines.Draw(o.seed * 1000 + k, not gpu))
        torch._dynamo.reset()
        kiln.dynamo.clear_report()
        if gpu:
            graphs, calls, first = measured(f, args, flushed)
            numbers = " ".join("%9.1f" % graphs.get(s, float("nan")) for s in ("kiln", "torch", "eager"))
            peers = [graphs[s] for s in ("torch", "eager") if s in graphs]
            if peers and "kiln" in graphs:
                ratios.append((min(peers) / graphs["kiln"], name))
            if len(calls) == 3:
                of_calls.append(min(calls["torch"], calls["eager"]) / calls["kiln"])
                firsts.append(first["torch"] / first["kiln"])
        else:
            found = differences(f, args)
            wrong += [name] * bool(found)
            numbers = "; ".join(found) or "as eager"
        report = kiln.dynamo.report()
        left = ", ".join("%s (%s)" % what for what in report.left)
        print("%-28s %s  %d/%d  %s  %s" % (name, numbers, report.covered, report.operations, shapes_of(args), left),
              flush=True)
        torch.cuda.empty_cache()
    print("seed %d, torch %s" % (o.seed, torch.__version__))
    if ratios:
        print("graphs: geometric mean %.3f of %d, 5th percentile %.2f; calls: %.3f; first calls %.1f times as fast" % (
            geometric_mean(r for r, _ in ratios), len(ratios), sorted(ratios)[len(ratios) // 20][0],
            geometric_mean(of_calls), geometric_mean(firsts)))
        print("worst: " + ", ".join("%s %.2f" % (n, r) for r, n in sorted(ratios)[:10]))
    if wrong:
        raise SystemExit("not as eager: " + ", ".join(wrong))


main()
