"""One side of first.py: runs under Kiln and under PyTorch. Prints a line's number, its name, and milliseconds.

kiln run first_side.py SEED COUNT [NAME...]
"""
import sys
import time

import torch

import lines
from draw import DEVICE

of_pytorch = hasattr(torch, "_dynamo")


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def first(f, args):
    """Milliseconds of the first call."""
    synchronize()
    start = time.perf_counter()
    y = f(*args)
    synchronize()
    return (time.perf_counter() - start) * 1e3


def compiled(f):
    if of_pytorch:
        torch._dynamo.reset()
        return torch.compile(f, dynamic=False)
    return f


first(compiled(lambda x: torch.exp(x) * 2), [torch.ones(100, 100, device=DEVICE)])
for i, (name, seed) in enumerate(lines.drawn(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])):
    f, args = lines.LINES[name](lines.Draw(seed))
    try:
        print(i, name, first(compiled(f), args), flush=True)
    except Exception as e:
        print(name, "fails:", str(e).split("\n")[0], file=sys.stderr)
