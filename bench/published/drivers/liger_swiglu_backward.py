# The gradients of silu(a) * b, in place of a and b.
from harness import *
from src_liger_swiglu_backward import _swiglu_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 8192), D=d.between(512, 28672, 8))


def make(N, D):
    dc, a0, b0 = [randn(N, D, dtype=BF16) for _ in range(3)]
    a, b = a0.clone(), b0.clone()
    block, warps = row_settings(D)

    def reset():
        a.copy_(a0)
        b.copy_(b0)

    def launch(c):
        _swiglu_backward_kernel[(N,)](dc, a, b, dc.stride(0), 1.0, n_cols=D, BLOCK_SIZE=block, **c)

    def expected():
        x, g, u = a0.float(), dc.float(), b0.float()
        s = torch.sigmoid(x)
        return [g * (x * s * (1 - s) + s) * u, g * x * s]

    return Case([config(warps)], launch, lambda: [a, b], expected, reset)


main("liger_swiglu_backward", draw, make, 0.02)
