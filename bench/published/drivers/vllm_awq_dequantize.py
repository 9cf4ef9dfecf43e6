# 4-bit weights of AWQ to float16.
from harness import *
from src_vllm_awq_dequantize import awq_dequantize_kernel

GROUP = 128
NIBBLES = [0, 4, 1, 5, 2, 6, 3, 7]


def draw(d, tiny):
    if tiny:
        return dict(K=256, N=320)
    return dict(K=d.between(1024, 16384, 128), N=d.between(1024, 16384, 64))


def unpacked(q):
    shifts = torch.tensor(NIBBLES, dtype=torch.int32, device=DEVICE) * 4
    return ((q[:, :, None] >> shifts) & 15).reshape(q.shape[0], q.shape[1] * 8)


def make(K, N):
    q = ints(-2147483648, 2147483647, (K, N // 8))
    zeros = ints(-2147483648, 2147483647, (K // GROUP, N // 8))
    scales = (torch.rand((K // GROUP, N), device=DEVICE) * 0.01 + 0.001).to(torch.float16)
    y = empty(K, N)

    def launch(c):
        awq_dequantize_kernel[(triton.cdiv(N // 8, 32), triton.cdiv(K, 32))](q, scales, zeros, GROUP, y, N // 8, K,
                                                                             BLOCK_SIZE_X=32, BLOCK_SIZE_Y=32, **c)

    def expected():
        w = (unpacked(q) - unpacked(zeros).repeat_interleave(GROUP, dim=0)).float()
        return [w * scales.float().repeat_interleave(GROUP, dim=0)]

    return Case([config()], launch, lambda: [y], expected)


main("vllm_awq_dequantize", draw, make, 0.002)
