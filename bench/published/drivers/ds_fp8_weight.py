# Activations times weights of 8 bits, which are made into bfloat16 by shifts of their bits.
from harness import *
from src_ds_fp8_weight import matmul_kernel_fp8_bf16

GROUP = 128


def draw(d, tiny):
    if tiny:
        return dict(M=40, N=128, K=256)
    return dict(M=d.between(1, 4096), N=d.between(512, 8192, 128), K=d.between(512, 8192, 128))


def make(M, N, K):
    x, w = randn(M, K, dtype=torch.bfloat16), ints(0, 256, (K, N), dtype=torch.uint8)
    scales = torch.rand((K * N // GROUP,), device=DEVICE) + 0.5
    out = empty(M, N, dtype=torch.bfloat16)

    def launch(c):
        grid = (triton.cdiv(M, c["BLOCK_SIZE_M"]) * triton.cdiv(N, c["BLOCK_SIZE_N"]),)
        matmul_kernel_fp8_bf16[grid](x, w, out, scales, M, N, K, x.stride(0), x.stride(1), w.stride(0), w.stride(1),
                                     out.stride(0), out.stride(1), quantization_group_size=GROUP, GROUP_SIZE_M=8, **c)

    def expected():
        bits = w.to(torch.int32)
        magnitude = (1.0 + (bits % 8).float() / 8.0) * torch.exp2(((bits // 8) % 16).float() - 7.0)
        values = torch.where(bits >= 128, -magnitude, magnitude)
        return [x.float() @ (values * scales.reshape(K, N // GROUP).repeat_interleave(GROUP, dim=1))]

    block = 16 if M <= 16 else 32 if M <= 32 else 64 if M <= 64 else 128
    c = config(8, 2, BLOCK_SIZE_M=256, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128) if M >= 256 else config(
        4, 4, BLOCK_SIZE_M=block, BLOCK_SIZE_N=64, BLOCK_SIZE_K=128)
    return Case([c], launch, lambda: [out], expected)


main("ds_fp8_weight", draw, make, 0.02)
