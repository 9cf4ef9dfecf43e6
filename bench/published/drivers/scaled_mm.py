# A product of int8 or float8 with a scale for each row and column.
from harness import *
from src_scaled_mm import scaled_mm_kernel


def draw(d, tiny):
    if tiny:
        return dict(M=40, N=136, K=320, FP8=0)
    return dict(M=d.between(1, 4096), N=d.between(512, 8192, 16), K=d.between(512, 8192, 64), FP8=d.pick([0, 1]))


def make(M, N, K, FP8):
    if FP8:
        a, b = randn(M, K, dtype=torch.float8_e4m3fn), randn(N, K, dtype=torch.float8_e4m3fn)
    else:
        a, b = ints(-128, 128, (M, K), torch.int8), ints(-128, 128, (N, K), torch.int8)
    a_scale, b_scale = torch.rand((M, 1), device=DEVICE) + 0.5, torch.rand((N, 1), device=DEVICE) + 0.5
    c = empty(M, N, dtype=BF16)

    def launch(c_):
        m, n = c_["BLOCK_SIZE_M"], c_["BLOCK_SIZE_N"]
        scaled_mm_kernel[(triton.cdiv(M, m) * triton.cdiv(N, n),)](
            a, b, a_scale, b_scale, c, None, M, N, K, a.stride(0), a.stride(1), b.stride(1), b.stride(0), c.stride(0),
            c.stride(1), tl.float32 if FP8 else tl.int32, BLOCK_SIZE_SCALE_A=m, BLOCK_SIZE_SCALE_B=n, **c_)

    if M <= 32:
        blocks = (64, 64, 256) if N < 8192 else (64, 128, 256)
    else:
        blocks = (64, 64, 256) if M <= 64 else (64, 128, 128) if M <= 128 else (128, 128, 128)
    configs = [config(BLOCK_SIZE_M=blocks[0], BLOCK_SIZE_N=blocks[1], BLOCK_SIZE_K=blocks[2])]
    return Case(configs, launch, lambda: [c], lambda: [(a.float() @ b.float().T) * a_scale * b_scale.T])


main("scaled_mm", draw, make, 0.02)
