# 4-bit weights dequantised in the loop, split along K; accumulates in float16 as published.
from harness import *
from src_awq import awq_gemm_kernel

GROUP, SPLITS = 128, 8
NIBBLES = [0, 4, 1, 5, 2, 6, 3, 7]


def draw(d, tiny):
    if tiny:
        return dict(M=5, N=64, K=512)
    return dict(M=d.between(1, 256), N=d.between(512, 8192, 64), K=d.between(1024, 8192, 128))


def unpacked(q):
    shifts = torch.tensor(NIBBLES, dtype=torch.int32, device=DEVICE) * 4
    return ((q[:, :, None] >> shifts) & 15).reshape(q.shape[0], q.shape[1] * 8)


def make(M, N, K):
    a = randn(M, K)
    q = ints(-2147483648, 2147483647, (K, N // 8))
    zeros = ints(-2147483648, 2147483647, (K // GROUP, N // 8))
    scales = (torch.rand((K // GROUP, N), device=DEVICE) * 0.01 + 0.001).to(torch.float16)
    c = empty(SPLITS, M, N)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_SIZE_M"]) * triton.cdiv(N, c_["BLOCK_SIZE_N"]), SPLITS)
        awq_gemm_kernel[grid](a, q, c, zeros, scales, M, N, K, GROUP, SPLIT_K=SPLITS, **c_)

    def expected():
        w = (unpacked(q) - unpacked(zeros).repeat_interleave(GROUP, dim=0)).float()
        return [a.float() @ (w * scales.float().repeat_interleave(GROUP, dim=0))]

    configs = [config(BLOCK_SIZE_M=32, BLOCK_SIZE_N=32, BLOCK_SIZE_K=32)]
    return Case(configs, launch, lambda: [c.float().sum(0)], expected)


main("awq", draw, make, 0.03)
