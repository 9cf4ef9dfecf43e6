# Weights of 4 bits, k split over programs, which add their sums to the result.
from harness import *
from src_splitk_int4 import matmul_split_k_kernel

GROUP, SPLIT = 128, 4


def draw(d, tiny):
    if tiny:
        return dict(M=16, N=64, K=1024)
    return dict(M=d.pick([16, 32, 64]), N=d.between(1024, 8192, 256), K=d.between(1024, 8192, 512))


def make(M, N, K):
    a = randn(M, K)
    q = ints(-2147483648, 2147483647, (K // 8, N))
    zeros = ints(-2147483648, 2147483647, (K // GROUP, N // 8))
    scales = (torch.rand((K // GROUP, N), device=DEVICE) * 0.01 + 0.001).to(torch.float16)
    c = torch.zeros((M, N), dtype=torch.float16, device=DEVICE)

    def launch(c_):
        grid = (triton.cdiv(M, c_["block_m"]) * triton.cdiv(N, c_["block_n"]), SPLIT)
        matmul_split_k_kernel[grid](a, q, c, scales, zeros, a.stride(0), a.stride(1), q.stride(0), q.stride(1), c.stride(0),
                                    c.stride(1), scales.stride(0), scales.stride(1), zeros.stride(0), zeros.stride(1), GROUP,
                                    M, N, K, group_m=8, split_k=SPLIT, **c_)

    def expected():
        w = (nibbles(q, 0) - nibbles(zeros, 1).repeat_interleave(GROUP, dim=0) - 1).float()
        return [a.float() @ (w * scales.float().repeat_interleave(GROUP, dim=0))]

    return Case([config(4, 3, block_m=16, block_n=32, block_k=128)], launch, lambda: [c], expected, lambda: c.zero_())


main("splitk_int4", draw, make, 0.03)
