# Kiln's side of torch_peers.py: captures each expression, and measures a round whenever that asks for one.
import os
import sys
import time

import torch

gelu = torch.nn.functional.gelu
ROUNDS, ASK = int(sys.argv[1]), sys.argv[2]
flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32)


def layer(shape):
    M, N, K = [int(d) for d in shape.split("x")]
    x = torch.randn(M, K, dtype=torch.bfloat16)
    w = (torch.randn(K, N) / K**0.5).to(torch.bfloat16)
    b = torch.randn(N, dtype=torch.bfloat16)
    return lambda: gelu(x @ w + b)


def chain(name):
    dtype = torch.bfloat16 if name == "chain-bf16" else torch.float32
    x = torch.randn(2**28, dtype=dtype)
    y = torch.randn(2**28, dtype=dtype)
    return lambda: gelu(x * 2 + y) * torch.sigmoid(y) - x


for i, what in enumerate(sys.argv[3:]):
    f = chain(what) if what.startswith("chain") else layer(what)
    f().run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = f()
        y.run()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    print("ready", i, flush=True)
    for r in range(ROUNDS):
        while not os.path.exists("%s/%d.%d" % (ASK, i, r)):
            time.sleep(0.0005)
        flushed.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        print(start.elapsed_time(end) * 1e3, flush=True)
