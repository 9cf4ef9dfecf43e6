"""Kiln's times of lines over many draws, to find those that are slow for what they move. Needs no PyTorch.

kiln run sweep.py SEED COUNT SHARE SHARES SECONDS [NAME...]

Prints of each draw: name, seed of its Draw, bytes of arguments and results, microseconds (the least of nine replays of
a CUDA graph, the L2 flushed before each), and shapes. SHARES processes, each with a SHARE of its own, take the draws in
turn and may run at once: the least of the times is hardly longer so. Ends after SECONDS.
"""
import sys
import time

import torch

import lines
from graphs import shapes_of, timed

torch.backends.cudnn.allow_tf32 = True

seed, count, share, shares, seconds = [int(a) for a in sys.argv[1:6]]
flushed = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int32, device="cuda")
end = time.time() + seconds


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


for i, (name, line_seed) in enumerate(lines.drawn(seed, count, sys.argv[6:])):
    if i % shares != share:
        continue
    if time.time() > end:
        break
    try:
        f, args = lines.LINES[name](lines.Draw(line_seed))
        torch.cuda.synchronize()
        y = f(*args)
        torch.cuda.synchronize()  # computes what is pending
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = f(*args)
        results = list(y) if isinstance(y, (tuple, list)) else [y]
        us = min([timed(graph, flushed) for _ in range(9)])
        moved = bytes_of(args) + bytes_of(results)
        print("%s %d %d %.1f %s" % (name, line_seed, moved, us, shapes_of(args)), flush=True)
    except Exception as e:
        print("fails", name, line_seed, str(e).split("\n")[0], flush=True)
