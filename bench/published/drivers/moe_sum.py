# The outputs of a token's experts summed.
from harness import *
from src_moe_sum import _moe_sum_reduce_kernel


def draw(d, tiny):
    if tiny:
        return dict(T=5, TOP=4, D=3000)
    return dict(T=d.between(16, 8192), TOP=d.pick([2, 4, 8]), D=d.between(1024, 8192, 8))


def make(T, TOP, D):
    x, y = randn(T, TOP, D, dtype=BF16), empty(T, D, dtype=BF16)

    def launch(c):
        _moe_sum_reduce_kernel[(T, triton.cdiv(D, 2048))](
            x, x.stride(0), x.stride(1), x.stride(2), y, y.stride(0), y.stride(1), token_num=T, topk_num=TOP, hidden_dim=D,
            routed_scaling_factor=1.5, BLOCK_M=1, BLOCK_DIM=2048, NUM_STAGE=1, **c)

    return Case([config(16)], launch, lambda: [y], lambda: [x.float().sum(1) * 1.5])


main("moe_sum", draw, make, 0.01)
