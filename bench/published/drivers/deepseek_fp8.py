# A product of float8 with a scale for each 128 of k of a row and for each 128 x 128 block of the weights.
from harness import *
from src_deepseek_fp8 import fp8_gemm_kernel

BLOCK = 128


def draw(d, tiny):
    if tiny:
        return dict(M=40, N=128, K=256)
    return dict(M=d.between(1, 2048), N=d.between(512, 8192, 128), K=d.between(512, 8192, 128))


def make(M, N, K):
    a, b = randn(M, K, dtype=torch.float8_e4m3fn), randn(N, K, dtype=torch.float8_e4m3fn)
    a_scale = torch.rand((M, K // BLOCK), device=DEVICE) + 0.5
    b_scale = torch.rand((N // BLOCK, K // BLOCK), device=DEVICE) + 0.5
    c = empty(M, N, dtype=BF16)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]), triton.cdiv(N, c_["BLOCK_SIZE_N"]))
        fp8_gemm_kernel[grid](a, b, c, a_scale, b_scale, M, N, K, **c_)

    def expected():
        x = a.float() * a_scale.repeat_interleave(BLOCK, dim=1)
        w = b.float() * b_scale.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)
        return [x @ w.T]

    configs = [config(8, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=128) for m, n, s in (
        (16, 32, 6), (16, 64, 4), (32, 128, 4), (64, 64, 5), (64, 128, 3))]
    return Case(configs, launch, lambda: [c], expected)


main("deepseek_fp8", draw, make, 0.02)
