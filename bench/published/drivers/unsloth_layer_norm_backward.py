# The gradient of a layer norm's input in place of the output's.
from harness import *
from src_unsloth_layer_norm_backward import layernorm_backward


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    x, dy0, w, b = randn(N, D, dtype=BF16), randn(N, D, dtype=BF16), randn(D, dtype=BF16), randn(D, dtype=BF16)
    dy = dy0.clone()
    mean = x.float().mean(-1)
    rstd = 1 / torch.sqrt(x.float().var(-1, unbiased=False) + 1e-5)
    block, warps = row_settings(D)

    def launch(c):
        layernorm_backward[(N,)](dy, dy.stride(0), x, x.stride(0), w, b, rstd, mean, D, 1e-5, BLOCK_SIZE=block, **c)

    def expected():
        hat = (x.float() - mean[:, None]) * rstd[:, None]
        wdy = w.float() * dy0.float()
        return [(wdy - wdy.mean(-1, keepdim=True) - hat * (wdy * hat).mean(-1, keepdim=True)) * rstd[:, None]]

    return Case([config(warps)], launch, lambda: [dy], expected, lambda: dy.copy_(dy0))


main("unsloth_layer_norm_backward", draw, make, 0.01)
