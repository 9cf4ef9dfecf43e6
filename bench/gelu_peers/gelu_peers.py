"""gelu(x @ w + b) in bf16 by Kiln and by PyTorch: two processes that take turns, round by round.

python3 gelu_peers.py KILN [MxNxK …]

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
SHAPES = sys.argv[2:] or ["512x512x512", "4096x4096x4096", "8192x8192x8192", "8192x28672x8192"]
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


def main():
    ask = tempfile.mkdtemp()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gelu_kiln.py")
    kiln = subprocess.Popen([sys.argv[1], "run", script, str(ROUNDS), ask] + SHAPES, stdout=subprocess.PIPE, text=True)
    flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32, device="cuda")
    ratios = {}
    for i, shape in enumerate(SHAPES):
        M, N, K = map(int, shape.split("x"))
        x = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
        w = (torch.randn(K, N, device="cuda") / K**0.5).to(torch.bfloat16)
        b = torch.randn(N, device="cuda", dtype=torch.bfloat16)
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, w, b: gelu(x @ w + b), dynamic=False)
        compiled(x, w, b)
        peers = {
            "eager": graphed(lambda: gelu(x @ w + b)),
            "addmm+gelu": graphed(lambda: gelu(torch.addmm(b, x, w))),
            "torch.compile": graphed(lambda: compiled(x, w, b)),
            "product alone": graphed(lambda: torch.matmul(x, w)),
        }
        if kiln.stdout.readline().split() != ["ready", str(i)]:
            sys.exit("kiln ended early")
        us = {name: [] for name in ["kiln", *peers]}
        for r in range(ROUNDS):
            for name, f in peers.items():
                us[name].append(timed(f, flushed))
            open("%s/%d.%d" % (ask, i, r), "w").close()
            us["kiln"].append(float(kiln.stdout.readline()))
        print(shape, "  ".join("%s %.2f ±%.1f" % (name, statistics.median(v), spread(v)) for name, v in us.items()), flush=True)
        for name in peers:
            ratios.setdefault(name, []).append(statistics.median(us[name]) / statistics.median(us["kiln"]))
    for name, v in ratios.items():
        mean = math.exp(sum(map(math.log, v)) / len(v))
        print("%-14s %s  geometric mean %.3f" % (name, " ".join("%.3f" % r for r in v), mean))


main()
