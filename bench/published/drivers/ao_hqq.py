# Activations times weights of 4 bits, two rows of the sum in a byte, with scales and zeros by group.
from harness import *
from src_ao_hqq import _mixed_mm_kernel

GROUP = 64


def draw(d, tiny):
    if tiny:
        return dict(M=24, N=128, K=256)
    return dict(M=d.pick([d.between(1, 64), d.between(64, 4096)]), N=d.between(512, 8192, 128),
                K=d.between(512, 8192, 128))


def make(M, N, K):
    x, packed = randn(M, K), ints(0, 256, (K // 2, N), dtype=torch.uint8)
    scales = (torch.rand((K // GROUP, N), device=DEVICE) * 0.1).half()
    zeros = ints(4, 12, (K // GROUP, N)).half()
    c = empty(M, N)

    def launch(c_):
        grid = (triton.cdiv(M, c_["BLOCK_M"]) * triton.cdiv(N, c_["BLOCK_N"]), 1)
        _mixed_mm_kernel[grid](x, packed, scales, zeros, c, M, N, K, x.stride(0), x.stride(1), packed.stride(0),
                               packed.stride(1), c.stride(0), c.stride(1), scales.stride(0), scales.stride(1),
                               IS_BFLOAT16=False, QGROUP_SIZE=GROUP, SPLIT_K=1, EVEN_K=K % c_["BLOCK_K"] == 0, **c_)

    def expected():
        bits = packed.to(torch.int32)
        w = torch.stack([bits % 16, bits // 16], dim=1).reshape(K, N).float()
        return [x.float() @ ((w - zeros.float().repeat_interleave(GROUP, dim=0)) *
                             scales.float().repeat_interleave(GROUP, dim=0))]

    small = [(16, 64, 64, 2, 4), (16, 128, 64, 4, 4), (32, 128, 64, 4, 3)]
    large = [(128, 128, 64, 4, 3), (128, 256, 64, 8, 3), (64, 128, 64, 4, 4)]
    configs = [config(w, s, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k) for m, n, k, w, s in (small if M <= 64 else large)]
    return Case(configs, launch, lambda: [c], expected)


main("ao_hqq", draw, make, 0.02)
