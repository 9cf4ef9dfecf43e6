# The place of each row's maximum.
from harness import *
from src_gems_argmax import argmax_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=13, N=1000)
    return dict(M=d.between(16, 4096), N=d.between(1024, 131072))


def make(M, N):
    x = torch.randn((M, N), device=DEVICE)
    out = torch.empty((M,), dtype=torch.int64, device=DEVICE)
    rows = 4 if M < 4096 else 8

    def launch(c):
        argmax_kernel[(triton.cdiv(M, rows), 1)](x, out, M, N, 1, BLOCK_M=rows,
                                                 BLOCK_N=min(4096, triton.next_power_of_2(N)), **c)

    # Compared by value, since equal values may have two places.
    return Case([config()], launch, lambda: [torch.gather(x, 1, out[:, None])[:, 0]], lambda: [x.amax(dim=-1)])


main("gems_argmax", draw, make, 1e-6)
