# Products of 8-bit operands with a scale for each 128 of k of a row and for each 128 x 128 block of the weights.
from harness import *

BLOCK = 128


def draw_sizes(d, tiny, most_rows=4096):
    if tiny:
        return dict(M=40, N=128, K=256)
    return dict(M=d.between(1, most_rows), N=d.between(512, 8192, 128), K=d.between(512, 8192, 128))


def scales_of(M, N, K):
    return (torch.rand((M, K // BLOCK), device=DEVICE) + 0.5,
            torch.rand((N // BLOCK, K // BLOCK), device=DEVICE) + 0.5)


def scaled_product(a, b, a_scale, b_scale):
    x = a.float() * a_scale.repeat_interleave(BLOCK, dim=1)
    w = b.float() * b_scale.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)
    return [x @ w.T]
