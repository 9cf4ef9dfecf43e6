# The gradient of a softmax, a row in one block.
from harness import *
from src_liger_softmax_backward import _softmax_single_block_backward_kernel


def draw(d, tiny):
    if tiny:
        return dict(N=6, D=1000)
    return dict(N=d.between(256, 16384), D=d.between(512, 16384))


def make(N, D):
    y = torch.softmax(torch.randn((N, D), device=DEVICE), dim=-1).to(BF16)
    dy = randn(N, D, dtype=BF16)
    dx = torch.empty_like(y)
    block, warps = row_settings(D)

    def launch(c):
        _softmax_single_block_backward_kernel[(N,)](dy, dy.stride(0), y, y.stride(0), dx, dx.stride(0), D, BLOCK_SIZE=block,
                                                    **c)

    def expected():
        return [y.float() * (dy.float() - (dy.float() * y.float()).sum(-1, keepdim=True))]

    return Case([config(warps)], launch, lambda: [dx], expected)


main("liger_softmax_backward", draw, make, 0.02)
