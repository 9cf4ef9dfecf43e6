# The gradients of gelu(e) * g with tanh, in place of all three inputs.
from harness import *
from src_unsloth_geglu_backward import _approx_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=6, N=1000)
    return dict(M=d.between(256, 8192), N=d.between(512, 16384, 8))


def make(M, N):
    d0, e0, g0 = [randn(M, N, dtype=BF16) for _ in range(3)]
    dw, e, g = d0.clone(), e0.clone(), g0.clone()

    def reset():
        dw.copy_(d0)
        e.copy_(e0)
        g.copy_(g0)

    def launch(c):
        _approx_backward_kernel[(triton.cdiv(M * N, 1024),)](dw, e, g, M * N, BLOCK_SIZE=1024, LONG_INDEXING=0, **c)

    def expected():
        x, s = e0.float(), 0.7978845608028654
        t = torch.tanh(s * x * (1 + 0.044715 * x * x))
        f = 0.5 * x * (1 + t)
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * s * (1 + 3 * 0.044715 * x * x)
        return [f * g0.float(), d0.float() * f, d0.float() * g0.float() * slope]

    return Case([config()], launch, lambda: [dw, e, g], expected, reset)


main("unsloth_geglu_backward", draw, make, 0.02)
