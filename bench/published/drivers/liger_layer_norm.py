# Layer norm with its mean and deviation.
from harness import *
from src_liger_layer_norm import _layer_norm_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384, 8))


def make(N, D):
    x, w, b = randn(N, D, dtype=BF16), randn(D, dtype=BF16), randn(D, dtype=BF16)
    y, mean, rstd = torch.empty_like(x), empty(N, dtype=BF16), empty(N, dtype=BF16)
    block, warps = row_settings(D)

    def launch(c):
        _layer_norm_forward_kernel[(N,)](y, y.stride(0), x, x.stride(0), w, 1, b, 1, mean, 1, rstd, 1, D, 1e-5,
                                         BLOCK_SIZE=block, **c)

    def expected():
        f = x.float()
        r = 1 / torch.sqrt(f.var(-1, unbiased=False) + 1e-5)
        return [(f - f.mean(-1, keepdim=True)) * r[:, None] * w.float() + b.float(), r]

    return Case([config(warps)], launch, lambda: [y, rstd], expected)


main("liger_layer_norm", draw, make, 0.01)
