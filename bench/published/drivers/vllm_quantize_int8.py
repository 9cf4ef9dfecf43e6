# Rows to int8 with a scale each.
from harness import *
from src_vllm_quantize_int8 import _per_token_quant_int8


def draw(d, tiny):
    if tiny:
        return dict(M=5, N=1000)
    return dict(M=d.between(16, 16384), N=d.between(512, 16384, 8))


def make(M, N):
    x, y = randn(M, N, dtype=BF16), empty(M, N, dtype=torch.int8)
    s = torch.empty((M, 1), device=DEVICE)
    block = triton.next_power_of_2(N)

    def launch(c):
        _per_token_quant_int8[(M,)](x, y, s, stride_x=N, stride_xq=N, N=N, BLOCK=block, **c)

    return Case([config(min(max(block // 256, 1), 8), 1)], launch, lambda: [y.float() * s, s],
                lambda: [x, x.float().abs().amax(dim=-1, keepdim=True) / 127.0])


main("vllm_quantize_int8", draw, make, 0.005)
