"""One side of large.py: runs under Kiln and under PyTorch. Prints operation, elements, what was timed, milliseconds.

kiln run large_side.py SEED COUNT
"""
import sys

import torch
from triton.testing import do_bench

from draw import DEVICE, Draw

seed, count = int(sys.argv[1]), int(sys.argv[2])


def of_bits(bits):
    """Random keys whose every bit is drawn."""
    return torch.randint(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, (n,), device=DEVICE,
                         dtype=torch.int32 if bits == 32 else torch.int64)


def timed(call):
    return do_bench(call, warmup=10, rep=60, return_mode="median")


OPERATIONS = {
    "sort-int32": lambda: (of_bits(32), lambda x: torch.sort(x)),
    "sort-int64": lambda: (of_bits(64), lambda x: torch.sort(x)),
    "sort-f32": lambda: (torch.randn(n, device=DEVICE), lambda x: torch.sort(x)),
    "sort-f32-falling": lambda: (torch.randn(n, device=DEVICE), lambda x: torch.sort(x, descending=True)),
    "sort-bf16": lambda: (torch.randn(n, device=DEVICE).bfloat16(), lambda x: torch.sort(x)),
    "argsort-stable": lambda: (torch.randint(0, 1000, (n,), device=DEVICE, dtype=torch.int32),
                               lambda x: torch.argsort(x, stable=True)),
    "topk": lambda: (torch.randn(n, device=DEVICE), lambda x: torch.topk(x, k)),
    "topk-bf16": lambda: (torch.randn(n, device=DEVICE).bfloat16(), lambda x: torch.topk(x, k)),
    "unique": lambda: (torch.randint(0, k * 100, (n,), device=DEVICE, dtype=torch.int32), lambda x: torch.unique(x)),
    "cumsum-f32": lambda: (torch.randn(n, device=DEVICE), lambda x: torch.cumsum(x, 0)),
    "cumsum-int32": lambda: (torch.randint(0, 9, (n,), device=DEVICE, dtype=torch.int32),
                             lambda x: torch.cumsum(x, 0, dtype=torch.int32)),
    "cumsum-bf16": lambda: (torch.randn(n, device=DEVICE).bfloat16(), lambda x: torch.cumsum(x, 0)),
}

draw = Draw(seed)
for name, make in OPERATIONS.items():
    for _ in range(count):
        low = 24 if name.startswith("cumsum") else 20
        size = 1 << (low + draw.below(28 - low))
        n = size + draw.below(size)
        k = 1 + draw.below(1 << (1 + draw.below(12)))
        x, call = make()
        print(name, n, "call", timed(lambda: call(x)), flush=True)
        if name.startswith("cumsum"):
            out = torch.empty_like(x)
            print(name, n, "copy", timed(lambda: out.copy_(x)), flush=True)
