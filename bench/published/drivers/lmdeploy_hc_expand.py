# Residual streams of hyper-connections: each a mix of the streams before and of a layer's output.
from harness import *
from src_lmdeploy_hc_expand import _hc_post_expand_kernel

STREAMS = 4


def draw(d, tiny):
    if tiny:
        return dict(T=20, D=1000)
    return dict(T=d.between(64, 16384), D=d.pick([2048, 4096, 7168]))


def make(T, D):
    x, residual, out = randn(T, D, dtype=BF16), randn(T, STREAMS, D, dtype=BF16), empty(T, STREAMS, D, dtype=BF16)
    post, mix = torch.rand((T, STREAMS), device=DEVICE), torch.rand((T, STREAMS, STREAMS), device=DEVICE)
    block = 256

    def launch(c):
        _hc_post_expand_kernel[(T * STREAMS, triton.cdiv(D, block))](
            x, residual, post, mix, out, *[v.stride(i) for v in (x, residual, post, mix, out) for i in range(len(v.shape))],
            D, STREAMS, block, **c)

    return Case([config(4)], launch, lambda: [out],
                lambda: [post[:, :, None] * x.float()[:, None] + mix @ residual.float()])


main("lmdeploy_hc_expand", draw, make, 0.01)
