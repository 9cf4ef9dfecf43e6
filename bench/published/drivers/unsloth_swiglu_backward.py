# The gradients of a SwiGLU in place of its inputs.
from harness import *
from src_unsloth_swiglu_backward import _DWf_DW_dfg_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=3, D=1000)
    return dict(N=d.between(64, 8192), D=d.pick([8192, 11008, 14336]))


def make(N, D):
    dw0, e0, g0 = [randn(N, D, dtype=BF16) for _ in range(3)]
    dw, e, g = dw0.clone(), e0.clone(), g0.clone()

    def reset():
        dw.copy_(dw0)
        e.copy_(e0)
        g.copy_(g0)

    def launch(c):
        _DWf_DW_dfg_kernel[(triton.cdiv(N * D, 1024),)](dw, e, g, N * D, BLOCK_SIZE=1024, LONG_INDEXING=0, **c)

    def expected():
        up, x, gate = dw0.float(), e0.float(), g0.float()
        s = torch.sigmoid(x)
        return [x * s * gate, up * x * s, up * gate * s * (1 + x * (1 - s))]

    return Case([config()], launch, lambda: [dw, e, g], expected, reset)


main("unsloth_swiglu_backward", draw, make, 0.02)
