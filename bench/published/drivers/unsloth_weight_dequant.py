# Weights of float8 with a scale for each block of 128 by 128.
from harness import *
from src_unsloth_weight_dequant import weight_dequant_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=200, N=384)
    return dict(M=d.between(512, 16384, 8), N=d.between(512, 8192, 128))


def make(M, N):
    x = randn(M, N, dtype=torch.float32, scale=50.0).to(torch.float8_e4m3fn)
    s = torch.rand((triton.cdiv(M, 128), triton.cdiv(N, 128)), device=DEVICE) + 0.5
    y = empty(M, N, dtype=BF16)

    def launch(c):
        weight_dequant_kernel[(triton.cdiv(M, 128), triton.cdiv(N, 128))](x, s, y, M, N, BLOCK_SIZE=128, **c)

    def expected():
        scales = s.repeat_interleave(128, dim=0)[:M].repeat_interleave(128, dim=1)[:, :N]
        return [x.float() * scales]

    return Case([config()], launch, lambda: [y], expected)


main("unsloth_weight_dequant", draw, make, 0.01)
