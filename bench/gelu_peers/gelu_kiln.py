# Kiln's side of gelu_peers.py: captures gelu(x @ w + b) for each shape, and measures a round whenever that asks for one.
import os
import sys
import time

import torch

ROUNDS, ASK = int(sys.argv[1]), sys.argv[2]
shapes = [tuple([int(d) for d in text.split("x")]) for text in sys.argv[3:]]
flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32)

for i in range(len(shapes)):
    M, N, K = shapes[i]
    x = torch.randn(M, K, dtype=torch.bfloat16)
    w = (torch.randn(K, N) / K**0.5).to(torch.bfloat16)
    b = torch.randn(N, dtype=torch.bfloat16)
    torch.nn.functional.gelu(x @ w + b).run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.nn.functional.gelu(x @ w + b)
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
