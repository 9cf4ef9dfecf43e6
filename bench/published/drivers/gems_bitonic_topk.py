# Chunks' largest sorted with their places by a bitonic network: the second stage of a top-k.
from harness import *
from src_gems_bitonic_topk import topk_stage2_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=3, N=50, TOP=4)
    return dict(B=d.between(64, 4096), N=d.between(100, 1024), TOP=d.pick([5, 8, 20, 50]))


def make(B, N, TOP):
    x = torch.randn((B, N), device=DEVICE)
    ids = torch.arange(N, device=DEVICE, dtype=torch.int64)[None, :].repeat(B, 1) * 3
    y, places = torch.empty((B, TOP), device=DEVICE), torch.empty((B, TOP), dtype=torch.int64, device=DEVICE)

    def launch(c):
        topk_stage2_kernel[(B,)](y, places, x, ids, 1, TOP, N, triton.next_power_of_2(N), True, **c)

    def expected():
        values, at = torch.topk(x, TOP, dim=-1)
        return [values, at * 3]

    return Case([config()], launch, lambda: [y, places], expected)


main("gems_bitonic_topk", draw, make, 1e-6)
