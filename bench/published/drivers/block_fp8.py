# A product of float8 with a scale for each block of 128.
from harness import *
from src_block_fp8 import _w8a8_block_fp8_matmul

BLOCK = 128


def draw(d, tiny):
    if tiny:
        return dict(M=40, N=128, K=256)
    return dict(M=d.between(1, 4096), N=d.between(512, 8192, 128), K=d.between(512, 8192, 128))


def make(M, N, K):
    a, b = randn(M, K, dtype=torch.float8_e4m3fn), randn(N, K, dtype=torch.float8_e4m3fn)
    a_scale = torch.rand((M, K // BLOCK), device=DEVICE) + 0.5
    b_scale = torch.rand((N // BLOCK, K // BLOCK), device=DEVICE) + 0.5
    c = empty(M, N, dtype=BF16)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)
        _w8a8_block_fp8_matmul[grid](a, b, c, a_scale, b_scale, M, N, K, BLOCK, BLOCK, a.stride(0), a.stride(1),
                                      b.stride(1), b.stride(0), c.stride(0), c.stride(1), a_scale.stride(0),
                                      a_scale.stride(1), b_scale.stride(1), b_scale.stride(0), **c_)

    def expected():
        x = a.float() * a_scale.repeat_interleave(BLOCK, dim=1)
        w = b.float() * b_scale.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)
        return [x @ w.T]

    configs = [config(4, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128, GROUP_SIZE_M=32)
               for m, s in ([(64, 2)] if M > 64 else [(64, 2), (16, 3)])]
    return Case(configs, launch, lambda: [c], expected)


main("block_fp8", draw, make, 0.02)
