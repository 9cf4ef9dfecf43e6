# The upper triangles of matrices.
from harness import *
from src_gems_triu import triu_batch_kernel


def draw(d, tiny):
    if tiny:
        return dict(B=2, M=30, N=47)
    return dict(B=d.between(1, 64), M=d.between(256, 2048), N=d.between(256, 2048))


def make(B, M, N):
    x = randn(B, M, N, dtype=BF16)
    y = torch.empty_like(x)

    def launch(c):
        triu_batch_kernel[(B, triton.cdiv(M * N, 512))](x, y, B, M * N, N, 1, BATCH_BLOCK_SIZE=1, MN_BLOCK_SIZE=512, **c)

    return Case([config(w) for w in (1, 4, 16)], launch, lambda: [y], lambda: [torch.triu(x.float(), 1)])


main("gems_triu", draw, make, 1e-6)
