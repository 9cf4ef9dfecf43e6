# A product of float8 with a scale for each 128 of k of a row and for each 128 x 128 block of the weights.
from blocks_of_scales import *
from src_deepseek_fp8 import fp8_gemm_kernel


def draw(d, tiny):
    return draw_sizes(d, tiny, 2048)


def make(M, N, K):
    a, b = randn(M, K, dtype=torch.float8_e4m3fn), randn(N, K, dtype=torch.float8_e4m3fn)
    a_scale, b_scale = scales_of(M, N, K)
    c = empty(M, N, dtype=BF16)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]), triton.cdiv(N, c_["BLOCK_SIZE_N"]))
        fp8_gemm_kernel[grid](a, b, c, a_scale, b_scale, M, N, K, **c_)

    def expected():
        return scaled_product(a, b, a_scale, b_scale)

    configs = [config(8, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=128) for m, n, s in (
        (16, 32, 6), (16, 64, 4), (32, 128, 4), (64, 64, 5), (64, 128, 3))]
    return Case(configs, launch, lambda: [c], expected)


main("deepseek_fp8", draw, make, 0.02)
