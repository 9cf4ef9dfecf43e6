# A product of float8 with a scale for each block of 128.
from blocks_of_scales import *
from src_block_fp8 import _w8a8_block_fp8_matmul


def draw(d, tiny):
    return draw_sizes(d, tiny)


def make(M, N, K):
    a, b = randn(M, K, dtype=torch.float8_e4m3fn), randn(N, K, dtype=torch.float8_e4m3fn)
    a_scale, b_scale = scales_of(M, N, K)
    c = empty(M, N, dtype=BF16)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)
        _w8a8_block_fp8_matmul[grid](a, b, c, a_scale, b_scale, M, N, K, BLOCK, BLOCK, a.stride(0), a.stride(1),
                                      b.stride(1), b.stride(0), c.stride(0), c.stride(1), a_scale.stride(0),
                                      a_scale.stride(1), b_scale.stride(1), b_scale.stride(0), **c_)

    def expected():
        return scaled_product(a, b, a_scale, b_scale)

    configs = [config(4, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128, GROUP_SIZE_M=32)
               for m, s in ([(64, 2)] if M > 64 else [(64, 2), (16, 3)])]
    return Case(configs, launch, lambda: [c], expected)


main("block_fp8", draw, make, 0.02)
