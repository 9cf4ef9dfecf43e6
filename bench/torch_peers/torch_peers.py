"""Expressions by Kiln and by PyTorch: two processes that take turns, round by round.

python3 torch_peers.py KILN [WHAT …]

WHAT is MxNxK: gelu(x @ w + b) in bf16; or chain-bf16, chain-f32: gelu(x * 2 + y) * sigmoid(y) - x of 2^28 elements.
Each is a CUDA graph, so that CPU time stays out, and runs with a flushed L2. Medians in microseconds, half the
interquartile range in percent, and the ratios to Kiln.
"""
import math
import os
import statistics
import subprocess
import sys
import tempfile

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

ROUNDS = 15
LAYERS = ["512x512x512", "4096x4096x4096", "8192x8192x8192", "8192x28672x8192"]
WHAT = sys.argv[2:] or LAYERS + ["chain-bf16", "chain-f32"]
gelu = torch.nn.functional.gelu


def graphed(f):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            f()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    return graph.replay


def timed(f, flushed):
    flushed.zero_()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    f()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3


def spread(us):
    low, _, high = statistics.quantiles(us, n=4)
    return (high - low) / 2 / statistics.median(us) * 100


def compiled(f, *args):
    torch._dynamo.reset()
    g = torch.compile(f, dynamic=False)
    g(*args)
    return lambda: g(*args)


def layer(shape):
    M, N, K = map(int, shape.split("x"))
    x = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
    w = (torch.randn(K, N, device="cuda") / K**0.5).to(torch.bfloat16)
    b = torch.randn(N, device="cuda", dtype=torch.bfloat16)
    return {
        "eager": lambda: gelu(x @ w + b),
        "addmm+gelu": lambda: gelu(torch.addmm(b, x, w)),
        "torch.compile": compiled(lambda x, w, b: gelu(x @ w + b), x, w, b),
        "product alone": lambda: torch.matmul(x, w),
    }


def chain(name):
    dtype = torch.bfloat16 if name == "chain-bf16" else torch.float32
    x, y = (torch.randn(2**28, device="cuda", dtype=dtype) for _ in range(2))
    f = lambda x, y: gelu(x * 2 + y) * torch.sigmoid(y) - x
    return {"eager": lambda: f(x, y), "torch.compile": compiled(f, x, y)}


def main():
    ask = tempfile.mkdtemp()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kiln_side.py")
    kiln = subprocess.Popen([sys.argv[1], "run", script, str(ROUNDS), ask] + WHAT, stdout=subprocess.PIPE, text=True)
    flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32, device="cuda")
    ratios = {}
    for i, what in enumerate(WHAT):
        peers = {name: graphed(f) for name, f in (chain(what) if what.startswith("chain") else layer(what)).items()}
        if kiln.stdout.readline().split() != ["ready", str(i)]:
            sys.exit("kiln ended early")
        us = {name: [] for name in ["kiln", *peers]}
        for r in range(ROUNDS):
            for name, f in peers.items():
                us[name].append(timed(f, flushed))
            open("%s/%d.%d" % (ask, i, r), "w").close()
            us["kiln"].append(float(kiln.stdout.readline()))
        print(what, "  ".join("%s %.2f ±%.1f" % (name, statistics.median(v), spread(v)) for name, v in us.items()), flush=True)
        for name in peers:
            of = what + " " + name if what.startswith("chain") else name
            ratios.setdefault(of, []).append(statistics.median(us[name]) / statistics.median(us["kiln"]))
    for name, v in ratios.items():
        mean = math.exp(sum(map(math.log, v)) / len(v))
        print("%-24s %s  geometric mean %.3f" % (name, " ".join("%.3f" % r for r in v), mean))


main()
