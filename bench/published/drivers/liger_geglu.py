# Gated GELU, the tanh approximation.
from harness import *
from src_liger_geglu import _geglu_tanh_forward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(1024, 16384, 8))


def make(N, D):
    a, b = randn(N, D, dtype=BF16), randn(N, D, dtype=BF16)
    y = torch.empty_like(a)
    block, warps = row_settings(D)

    def launch(c):
        _geglu_tanh_forward_kernel[(N,)](a, b, y, y.stride(0), n_cols=D, BLOCK_SIZE=block, **c)

    def expected():
        f = a.float()
        return [0.5 * f * (1 + torch.tanh(0.7978845608028654 * (f + 0.044715 * f * f * f))) * b.float()]

    return Case([config(warps)], launch, lambda: [y], expected)


main("liger_geglu", draw, make, 0.02)
