# The gradient of a layer norm's input, several rows in a program, two passes.
from harness import *
from src_gems_layer_norm_backward import layer_norm_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=13, N=3000)
    return dict(M=d.between(256, 16384), N=d.between(512, 16384))


def make(M, N):
    x, dy, w = randn(M, N, dtype=BF16), randn(M, N, dtype=BF16), randn(N, dtype=BF16)
    mean = x.float().mean(-1)
    rstd = 1 / torch.sqrt(x.float().var(-1, unbiased=False) + 1e-5)
    dx = torch.empty_like(x)

    def launch(c):
        layer_norm_backward_kernel[(triton.cdiv(M, c["BLOCK_ROW_SIZE"]),)](dy, x, w, mean, rstd, dx, M, N,
                                                                           BLOCK_COL_SIZE=2048, **c)

    def expected():
        hat = (x.float() - mean[:, None]) * rstd[:, None]
        wdy = w.float() * dy.float()
        return [(wdy - wdy.mean(-1, keepdim=True) - hat * (wdy * hat).mean(-1, keepdim=True)) * rstd[:, None]]

    return Case([config(w, BLOCK_ROW_SIZE=r) for r, w in ((1, 8), (2, 8), (4, 16))], launch, lambda: [dx], expected)


main("gems_layer_norm_backward", draw, make, 0.01)
