"""Kiln's side of peers.py: captures each line, and measures a round whenever peers.py asks for one.

kiln run kiln_side.py ROUNDS FOLDER SEED COUNT [NAME...]
"""
import os
import sys
import time

import torch

import lines
from graphs import timed

torch.backends.cudnn.allow_tf32 = True  # as it is in PyTorch unless cleared

rounds, ask = int(sys.argv[1]), sys.argv[2]
flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32, device="cuda")

for i, (name, line_seed) in enumerate(lines.drawn(int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])):
    try:
        f, args = lines.LINES[name](lines.Draw(line_seed))
        y = f(*args)
        torch.cuda.synchronize()  # computes what is pending
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = f(*args)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
    except Exception as e:
        print("fails", i, str(e).split("\n")[0], flush=True)
        continue
    print("ready", i, flush=True)
    for r in range(rounds):
        while not os.path.exists("%s/%d.%d" % (ask, i, r)):
            time.sleep(0.0005)
        print(timed(graph, flushed), flush=True)
