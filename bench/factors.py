"""Times of torch.linalg at random sizes; the same program runs in both:

    kiln run bench/factors.py 7 && python bench/factors.py 7

The argument is the seed. Milliseconds of one call that has ended (the least of five), after one that compiles.
"""
import random
import sys
import time

import torch

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
random.seed(seed)
sizes = [(1, 8), (256, 8), (1, 16), (256, 16), (1, 32), (128, 32), (1, 64), (128, 64)]
sizes += [(random.choice([1, 1, 2, 8]), int(2**random.uniform(6, 10.5))) for _ in range(6)]


def milliseconds(call):
    call()
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


print("seed", seed, torch.cuda.get_device_name())
print(f"{'matrices':>12}" + "".join(f"{name:>10}" for name in ("solve", "cholesky", "slogdet", "qr", "eigh", "svd")))
for batch, n in sizes:
    A = torch.randn(batch, n, n, device="cuda")
    B, G = torch.randn(batch, n, 4, device="cuda"), A @ A.mT + n * torch.eye(n, device="cuda")
    calls = [lambda: torch.linalg.solve(A, B), lambda: torch.linalg.cholesky(G), lambda: torch.linalg.slogdet(A),
             lambda: torch.linalg.qr(A), lambda: torch.linalg.eigh(G), lambda: torch.linalg.svd(A)]
    print(f"{batch:>4} x {n:>5}" + "".join(f"{milliseconds(call):10.2f}" for call in calls), flush=True)
