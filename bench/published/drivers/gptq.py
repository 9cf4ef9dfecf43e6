# Weights of 4 bits with groups in any order: scales and zero points gathered row by row.
from harness import *
from src_gptq import quant_matmul_248_kernel

GROUP = 128


def draw(d, tiny):
    if tiny:
        return dict(M=40, N=256, K=256)
    return dict(M=d.between(1, 512), N=d.between(1024, 8192, 256), K=d.between(1024, 8192, 128))


def make(M, N, K):
    a = randn(M, K)
    q = ints(-2147483648, 2147483647, (K // 8, N))
    zeros = ints(-2147483648, 2147483647, (K // GROUP, N // 8))
    scales = (torch.rand((K // GROUP, N), device=DEVICE) * 0.01 + 0.001).to(torch.float16)
    groups = (torch.arange(K, dtype=torch.int32, device=DEVICE) // GROUP).to(torch.int32)
    c = empty(M, N)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]),)
        quant_matmul_248_kernel[grid](a, q, c, scales, zeros, groups, M, N, K, 4, 15, a.stride(0), a.stride(1), q.stride(0),
                                      q.stride(1), c.stride(0), c.stride(1), scales.stride(0), zeros.stride(0), **c_)

    def expected():
        w = (nibbles(q, 0) - nibbles(zeros, 1).repeat_interleave(GROUP, dim=0) - 1).float()
        return [a.float() @ (w * scales.float().repeat_interleave(GROUP, dim=0))]

    configs = [config(w, s, BLOCK_SIZE_M=m, BLOCK_SIZE_N=n, BLOCK_SIZE_K=32, GROUP_SIZE_M=8) for m, n, s, w in [
        (64, 256, 4, 4), (128, 128, 4, 4), (64, 64, 4, 4), (64, 128, 2, 8)]]
    return Case(configs, launch, lambda: [c], expected)


main("gptq", draw, make, 0.02)
