# Log-softmax of eight rows in one program, two passes.
from harness import *
from src_gems_log_softmax import log_softmax_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=20, N=1000)
    return dict(M=d.between(256, 8192), N=d.between(512, 50257))


def make(M, N):
    x = randn(M, N, dtype=BF16)
    y = torch.empty_like(x)

    def launch(c):
        log_softmax_kernel[(triton.cdiv(M, 8), 1)](y, x, M, N, 1, BLOCK_M=8, BLOCK_N=256, **c)

    return Case([config(8)], launch, lambda: [y], lambda: [torch.log_softmax(x.float(), dim=-1)])


main("gems_log_softmax", draw, make, 0.01)
