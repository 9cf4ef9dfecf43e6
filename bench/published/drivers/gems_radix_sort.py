# Rows sorted by radix, four bits at a time: histograms of all digits, then sweeps that look back at earlier tiles.
from harness import *
from src_gems_radix_sort import compute_global_hist_kernel, sweep

BITS = 4
BINS = 16


def draw(d, tiny):
    if tiny:
        return dict(M=2, N=3000, WIDTH=16)
    return dict(M=d.pick([1, 3, 16]), N=d.between(20000, 1000000), WIDTH=d.pick([16, 32]))


def make(M, N, WIDTH):
    x = randn(M, N, dtype=torch.float16 if WIDTH == 16 else torch.float32)
    passes = WIDTH // BITS
    counts = torch.empty((M, passes, BINS), dtype=torch.int32, device=DEVICE)
    keys = [torch.empty_like(x) for _ in range(2)]
    orders = [torch.empty((M, N), dtype=torch.int64, device=DEVICE) for _ in range(2)]
    start = torch.arange(N, device=DEVICE)[None, :] + torch.zeros((M, N), dtype=torch.int64, device=DEVICE)
    tiles = triton.cdiv(N, 2048)
    status = torch.empty((M, BINS, tiles), dtype=torch.uint32, device=DEVICE)

    def launch(c):
        counts.zero_()
        compute_global_hist_kernel[(M * triton.cdiv(N, 8192),)](x, counts, passes, M, N, 8, 1024, 16, BITS, False, **c)
        before = (torch.cumsum(counts, dim=-1) - counts).to(torch.uint32)
        for i in range(passes):
            status.zero_()
            # The last pass, an odd one, leaves its result in the first of both.
            a, b = i % 2, 1 - i % 2
            sources = (x, start) if i == 0 else (keys[a], orders[a])
            sweep[(M * tiles, 2)](sources[0], sources[1], keys[b], orders[b], before, status, passes, i, i * BITS, M, N, tiles,
                                  2048, 8, BITS, False, **c)

    def result():
        return [keys[0], torch.gather(x, 1, orders[0])]

    def expected():
        inorder = torch.sort(x, dim=-1)[0]
        return [inorder, inorder]

    return Case([config()], launch, result, expected)


main("gems_radix_sort", draw, make, 0)
